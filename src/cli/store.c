/* stagger store: copies of a hub's store, and whether it is sound; and where the
 * store is, for each command that opens it. The store module does the work under
 * its own lock: a restore refuses while a hub has the file. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/internal.h"
#include "cli/options.h"
#include "cli/say.h"
#include "config/from.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/store_file.h"

/* -- stagger store ---------------------------------------------------------- */

static const char who[] = "stagger store";

static const stg_subcommand subcommands[] = {
    {"backup",
     "write the store, as it is at one moment, to the file TO, also "
     "while the hub runs. TO appears when it is complete",
     1},
    {"restore",
     "replace the store by the backup FROM. Stop the hub first. What "
     "was delivered since the backup is delivered again, under the "
     "same ids; what was accepted since is lost",
     1},
    {"verify",
     "check that the store, or FILE, is not damaged, and that its tables "
     "agree; also while the hub runs",
     1},
    {NULL, NULL, 0},
};

static const stg_option options[] = {
    {"-s, --store FILE",
     "the hub's store (STAGGER_STORE in the environment, or "
     "./stagger.db)",
     0, NULL},
    {"-f, --force",
     "replace a store that exists; it is kept under another name", 0,
     "restore"},
    {"-q, --quiet", "print nothing when all is well", 0, NULL},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger store backup [-s FILE] TO\n"
        "       stagger store restore [-s FILE] [--force] FROM\n"
        "       stagger store verify [-s FILE] [FILE]\n"
        "\n"
        "A hub's store is one file: messages, cursors, parked deliveries, dead letters,\n"
        "idempotency keys. This command backs it up, restores it, and checks it.\n"
        "\n",
    .subcommands = subcommands,
    .options = options,
    .tail =
        "\n"
        "Exit code: 0; 1 if verify finds damage; 2 for bad options, and for a file\n"
        "that cannot be read or written.\n"
        "\n"
        "  stagger store backup /backup/stagger-$(date +%F).db\n"
        "  stagger store verify /backup/stagger-2026-03-01.db\n"
        "  stagger store restore --force /backup/stagger-2026-03-01.db\n",
};

enum { EXIT_FLAWS = 1 };

typedef struct store_options {
    const char *store;
    const char *file; /* NULL: none was named */
    bool is_forced, is_quiet;
} store_options;

static int fail(const stg_error *err)
{
    stg_options_complain(who, "%s", err->text);
    return STG_EXIT_USAGE;
}

/* -- the commands ---------------------------------------------------------- */

static int backup(const store_options *o)
{
    stg_error err;

    if (!stg_store_path_look(who, o->store))
        return STG_EXIT_USAGE;
    if (stg_copy_backup(o->store, o->file, &err) != STG_OK)
        return fail(&err);
    if (!o->is_quiet)
        stg_say(stdout, "%s: a backup of %s\n", o->file, o->store);
    return 0;
}

static int restore(const store_options *o)
{
    stg_restored done;
    stg_error err;

    if (stg_copy_restore(o->file, o->store, o->is_forced, &done, &err) !=
        STG_OK)
        return fail(&err);
    if (o->is_quiet)
        return 0;
    stg_say(stdout,
            "%s: is %s now; new messages have ids with another first half\n",
            o->store, o->file);
    if (done.replaced[0] != '\0')
        stg_say(stdout, "%s: the store that was there\n", done.replaced);
    return 0;
}

static void print_flaw(void *ctx, const char *words)
{
    const char *path = ctx;

    stg_say(stdout, "%s: %s\n", path, words);
}

/* "1930 rows of dead letters: 8 dead, 1922 replayed": they stay in the table,
 * whatever became of them. */
static void print_letters(const stg_verified *v)
{
    const struct {
        uint64_t count;
        const char *state;
    } others[] = {{v->replayed, "replayed"},
                  {v->dropped, "dropped"},
                  {v->expired, "expired"},
                  {v->cancelled, "cancelled"}};

    if (v->letters == 0) {
        printf("no dead letters");
        return;
    }
    printf("%" PRIu64 " row%s of dead letters: %" PRIu64 " dead", v->letters,
           stg_plural(v->letters), v->dead);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].count > 0)
            printf(", %" PRIu64 " %s", others[i].count, others[i].state);
}

static void print_sound(const char *path, const stg_verified *v)
{
    stg_say(stdout,
            "%s: is intact: %" PRIu64 " message%s, %" PRIu64
            " target%s, %" PRIu64 " parked, ",
            path, v->messages, stg_plural(v->messages), v->lanes,
            stg_plural(v->lanes), v->parked);
    print_letters(v);
    putchar('\n');
}

/* The file of a backup, or the store itself. */
static int verify(const store_options *o)
{
    const char *path = o->file != NULL ? o->file : o->store;
    stg_verified v;
    stg_error err;

    if (!stg_store_path_look(who, path))
        return STG_EXIT_USAGE;
    if (stg_verify(path, &v, print_flaw, (void *)path, &err) != STG_OK)
        return fail(&err);
    if (v.flaws > 0) {
        stg_say(stdout, "%s: is damaged; restore a backup\n", path);
        return EXIT_FLAWS;
    }
    if (o->is_quiet)
        return 0;
    print_sound(path, &v);
    return 0;
}

/* -- options --------------------------------------------------------------- */

static int read_option(void *ctx, int option)
{
    store_options *o = ctx;

    if (option == 's')
        o->store = optarg;
    else if (option == 'f')
        o->is_forced = true;
    else
        o->is_quiet = true;
    return 0;
}

int stg_cli_store(int argc, char **argv)
{
    // In the order of the subcommands.
    static int (*const runs[])(const store_options *o) = {backup, restore,
                                                          verify};
    store_options o = {.store = NULL};
    stg_arguments files;
    const char *name;
    int code = stg_options_read(&usage, argc, argv, read_option, &o, &files);

    if (code != 0)
        return code;
    name = subcommands[files.subcommand].name;
    if (files.count == 0 && runs[files.subcommand] != verify)
        return stg_options_refuse(who, "%s: expected the file of the backup",
                                  name);
    o.file = files.count > 0 ? files.at[0] : NULL;
    if (!stg_store_path_check(who, o.store))
        return STG_EXIT_USAGE;
    o.store = stg_store_path(o.store);
    if (stg_store_is_url(o.store))
        return stg_options_refuse(who,
                                  "%s: the store is in PostgreSQL: copy it "
                                  "with pg_dump and pg_restore",
                                  name);
    return stg_options_finish(who, runs[files.subcommand](&o));
}

/* -- where it is ------------------------------------------------------------ */

/* The order is the same for every command: option, environment,
 * ./stagger.db. */
const char *stg_store_path(const char *given)
{
    const char *path = given != NULL ? given : getenv("STAGGER_STORE");

    return path != NULL && *path != '\0' ? path : "./stagger.db";
}

/* Only the option is refused: the environment of a process is not shown to
 * other users. */
bool stg_store_path_check(const char *command, const char *given)
{
    if (given == NULL || !stg_from_has_password(given))
        return true;
    stg_options_complain(command,
                         "--store: has a password, and everybody on this "
                         "machine reads command lines; put it in ~/.pgpass; a "
                         "hub also takes the whole URL from STAGGER_STORE");
    return false;
}

/* Before SQLite sees the path: its message would not say that no such file
 * exists. */
bool stg_store_path_look(const char *command, const char *path)
{
    struct stat status;
    bool is_there = stat(path, &status) == 0;
    int error = is_there ? 0 : errno;
    const struct passwd *owner = is_there ? getpwuid(status.st_uid) : NULL;

    if (is_there && S_ISDIR(status.st_mode))
        error = EISDIR;
    else if (is_there && access(path, R_OK) != 0)
        error = errno;
    if (error == 0)
        return true;
    if (error == EACCES)
        stg_options_complain(command,
                             "%s: %s; run this as the user of the hub, which "
                             "the store belongs to%s%.64s",
                             path, strerror(error), owner == NULL ? "" : ": ",
                             owner == NULL ? "" : owner->pw_name);
    else
        stg_options_complain(command, "%s: %s; name a store with --store", path,
                             error == ENOENT ? "there is no such file"
                                             : strerror(error));
    return false;
}
