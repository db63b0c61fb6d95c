/* stagger token: makes the tokens that a hub knows people and programs by.
 *
 * The file gets a line with a hash, the terminal gets the token, once. The line
 * is on the disk before the token is printed, so that no token is handed out
 * that the hub will not know. The other order of failures is harmless: a line
 * whose token nobody has seen opens nothing.
 *
 * The trap is the end of the file. An editor may have left the last line
 * without its end; a line that is appended to it would spoil both tokens. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "host/process.h"
#include "ingress/token.h"

static const char who[] = "stagger token";

static const stg_subcommand subcommands[] = {
    {"new", "make a token, print it, and append its line to FILE", 1},
    {NULL, NULL, 0},
};

static const stg_option options[] = {
    {"-r, --role ROLES",
     "what it may do, with commas between"
     "\npublish  hand messages to the hub"
     "\nview     see targets, dead letters and metrics"
     "\noperate  view, and all changes: add, change, remove,"
     "\n         forget, pause, resume and rewind targets,"
     "\n         replay and drop dead letters, reload, test"
     "\n         alerts",
     0, NULL},
    {"-n, --name NAME",
     "whose it is, for the audit log: up to 64 letters, digits and . _ @ -", 0,
     NULL},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger token new FILE --role ROLE[,ROLE] [--name NAME]\n"
        "\n"
        "Makes a token, prints it, and appends its line to the token file of a hub,\n"
        "which is created with mode 600 if there is none. The file has only a hash of\n"
        "the token: what is printed here cannot be read anywhere again. A running hub\n"
        "knows it after a reload, or SIGHUP. To revoke a token, delete its line and\n"
        "reload.\n"
        "\n",
    .subcommands = subcommands,
    .options = options,
    .tail =
        "\n"
        "Exit code: 0; 1 if the file cannot be written; 2 for bad options.\n"
        "\n"
        "  stagger token new /etc/stagger/tokens --role publish --name till-3\n"
        "  stagger token new tokens --role operate --name anna@example.org\n",
};

enum { EXIT_FAILED = 1 };

typedef struct token_options {
    const char *path;
    unsigned roles;
    const char *name;
} token_options;

static int fail(const char *path, const char *why)
{
    stg_options_complain(who, "%s: %s", path, why);
    return EXIT_FAILED;
}

/* -- the file ---------------------------------------------------------------- */

static bool ends_with_a_line(int fd, off_t size)
{
    char last;

    return size == 0 || (pread(fd, &last, 1, size - 1) == 1 && last == '\n');
}

/* A short write, as on a full disk, is a failure: part of a line may stay. */
static bool write_line(int fd, const char *line)
{
    size_t size = strlen(line);

    return write(fd, line, size) == (ssize_t)size && fsync(fd) == 0;
}

/* Others can append at the same time: the lock covers the look at the last byte
 * and both writes. The mode is checked although open() asks for 600, as the
 * file may be older. */
static int append(int fd, const char *path, const char *line)
{
    struct stat about;

    if (flock(fd, LOCK_EX) != 0 || fstat(fd, &about) != 0)
        return fail(path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return fail(path, "it is no file");
    if (!stg_file_is_private(&about))
        return fail(path, "others may use it, and a hub refuses it; chmod 600");
    if (!ends_with_a_line(fd, about.st_size) && !write_line(fd, "\n"))
        return fail(path, strerror(errno));
    return write_line(fd, line) ? 0 : fail(path, strerror(errno));
}

static int append_to(const char *path, const char *line)
{
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int code;

    if (fd < 0)
        return fail(path, strerror(errno));
    code = append(fd, path, line);
    close(fd);
    return code;
}

/* -- the command ----------------------------------------------------------- */

/* Every path after the token was made wipes it from the stack. */
static int make(const token_options *o)
{
    char token[STG_TOKEN_TEXT_MAX], line[STG_TOKEN_LINE_MAX];
    stg_error err;
    int code;

    if (stg_token_make(token, &err) != STG_OK ||
        !stg_token_print(token, o->roles, o->name, line))
        return fail(o->path, "OpenSSL has no random numbers, or no SHA-256");
    code = append_to(o->path, line);
    if (code == 0) {
        printf("%s\n", token);
        code = stg_options_finish(who, 0);
    }
    OPENSSL_cleanse(token, sizeof token);
    return code;
}

/* Suggests a name for the first role that is close to a known one; a role that
 * is one of the three suggests nothing. */
static int refuse_role(const char *roles)
{
    static const char *const names[] = {"publish", "view", "operate", NULL};
    char suggestion[STG_SUGGESTION_MAX] = "", role[40], text[200];

    for (const char *at = roles; suggestion[0] == '\0'; at++) {
        snprintf(role, sizeof role, "%.*s", (int)strcspn(at, ","), at);
        stg_options_suggest(suggestion, role, names);
        at += strcspn(at, ",");
        if (*at == '\0')
            break;
    }
    snprintf(text, sizeof text,
             "--role: expected publish, view or operate, or some of them with "
             "commas between%s",
             suggestion);
    return stg_options_refuse(who, "%s", text);
}

static int read_option(void *ctx, int option)
{
    token_options *o = ctx;

    if (option == 'r') {
        o->roles = stg_roles_parse((stg_span){optarg, strlen(optarg)});
        return o->roles != 0 ? 0 : refuse_role(optarg);
    }
    o->name = optarg;
    if (stg_token_is_name(optarg))
        return 0;
    return stg_options_refuse(
        who, "--name: expected up to 64 letters, digits and . _ @ -");
}

int stg_cli_token(int argc, char **argv)
{
    token_options o = {.name = ""};
    stg_arguments files;
    int code = stg_options_read(&usage, argc, argv, read_option, &o, &files);

    if (code != 0)
        return code;
    if (files.count == 0)
        return stg_options_refuse(who, "new: expected the FILE of the tokens");
    if (o.roles == 0)
        return stg_options_refuse(who,
                                  "new: expected --role: what the token may "
                                  "do, publish, view or operate");
    o.path = files.at[0];
    return make(&o);
}
