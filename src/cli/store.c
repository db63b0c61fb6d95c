/* stagger store: copies of a hub's store, and whether it is sound. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/store_path.h"
#include "store/copy.h"
#include "store/schema.h"
#include "store/store.h"
#include "store/verify.h"

static const char who[] = "stagger store";

static const char help[] =
    "usage: stagger store backup [-s FILE] TO\n"
    "       stagger store restore [-s FILE] [--force] FROM\n"
    "       stagger store verify [-s FILE] [FILE]\n"
    "\n"
    "A hub's store is one file: messages, cursors, parked rows, dead letters,\n"
    "idempotency keys. This copies it, brings a copy back, and says whether it\n"
    "is sound.\n"
    "\n"
    "  backup   writes the store to the file TO, as it is at one moment, also\n"
    "           while the hub runs. TO appears when it is complete\n"
    "  restore  makes the backup FROM the store. The hub must be stopped. What\n"
    "           was delivered since the backup is delivered again, under the\n"
    "           same ids; what was accepted since is not there\n"
    "  verify   looks whether the store, or FILE, is damaged, and whether its\n"
    "           tables agree; also while the hub runs\n"
    "\n"
    "  -s, --store FILE  the hub's store (STAGGER_STORE in the environment, or\n"
    "                    ./stagger.db)\n"
    "  -f, --force       restore: put a store that is there aside; it is kept\n"
    "                    under another name\n"
    "  -q, --quiet       say nothing when all is well\n"
    "  -h, --help        this text\n"
    "\n"
    "Exit code: 0; 1 if verify finds something wrong; 2 for bad options, and\n"
    "where a file cannot be read or written.\n"
    "\n"
    "  stagger store backup /backup/stagger-$(date +%F).db\n"
    "  stagger store verify /backup/stagger-2026-03-01.db\n"
    "  stagger store restore --force /backup/stagger-2026-03-01.db\n";

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

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* -- the commands ------------------------------------------------------------- */

static int backup(const store_options *o)
{
    stg_error err;

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
            "%s: is %s now; messages from here on have ids that begin with "
            "%016" PRIx64 "\n",
            o->store, o->file, done.epoch);
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
           plural(v->letters), v->dead);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].count > 0)
            printf(", %" PRIu64 " %s", others[i].count, others[i].state);
}

static void print_sound(const char *path, const stg_verified *v)
{
    stg_say(stdout,
            "%s: is sound: %" PRIu64 " message%s, %" PRIu64
            " target%s, %" PRIu64 " parked, ",
            path, v->messages, plural(v->messages), v->lanes, plural(v->lanes),
            v->parked);
    print_letters(v);
    putchar('\n');
}

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
        stg_say(stdout, "%s: is not sound; restore a backup\n", path);
        return EXIT_FLAWS;
    }
    if (o->is_quiet)
        return 0;
    print_sound(path, &v);
    return 0;
}

/* -- options --------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(const store_options *o);
    int least, most; /* files that are named */
} commands[] = {{"backup", backup, 1, 1},
                {"restore", restore, 1, 1},
                {"verify", verify, 0, 1}};

enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct option options[] = {
    {"store", required_argument, NULL, 's'},
    {"force", no_argument, NULL, 'f'},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

enum { HELPED = -1 };

static int read_option(void *ctx, int option)
{
    store_options *o = ctx;

    switch (option) {
    case 's':
        o->store = optarg;
        return 0;
    case 'f':
        o->is_forced = true;
        return 0;
    case 'q':
        o->is_quiet = true;
        return 0;
    case 'h':
        fputs(help, stdout);
        return HELPED;
    default:
        return STG_EXIT_USAGE;
    }
}

static int refuse(const char *what, const char *wanted)
{
    stg_options_complain(who, "%s: %s", what, wanted);
    fputs("See stagger store --help.\n", stderr);
    return STG_EXIT_USAGE;
}

static int refuse_command(const char *word)
{
    const char *names[COMMANDS + 1] = {NULL};
    char hint[STG_SUGGESTION_MAX], wanted[128];

    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    snprintf(wanted, sizeof wanted, "wanted backup, restore or verify%s",
             stg_options_hint(hint, word, names));
    return refuse(word, wanted);
}

static int run(size_t command, store_options *o, int count, char **files)
{
    if (count < commands[command].least)
        return refuse(commands[command].name, commands[command].run == backup
                                                  ? "to which file?"
                                                  : "from which file?");
    if (count > commands[command].most)
        return refuse(files[commands[command].most], "is a word too many");
    if (o->is_forced && commands[command].run != restore)
        return refuse("--force", "is for restore");
    o->file = count > 0 ? files[0] : NULL;
    if (!stg_store_path_check(who, o->store))
        return STG_EXIT_USAGE;
    o->store = stg_store_path(o->store);
    if (stg_store_is_url(o->store))
        return refuse(commands[command].name,
                      "the store is in PostgreSQL, which has its own: "
                      "pg_dump and pg_restore copy it; wanted a file");
    return stg_options_finish(who, commands[command].run(o));
}

int stg_cli_store(int argc, char **argv)
{
    store_options o = {.store = NULL};
    int code = stg_options_walk(argc, argv, "s:fqh", options, read_option, &o);

    if (code == HELPED)
        return stg_options_finish(who, 0);
    if (code != 0)
        return code;
    if (optind == argc)
        return refuse("no command", "wanted backup, restore or verify");
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[optind], commands[i].name) == 0)
            return run(i, &o, argc - optind - 1, argv + optind + 1);
    return refuse_command(argv[optind]);
}
