/* stagger token: makes the tokens that a hub knows people and programs by. */
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
#include "host/private_file.h"
#include "ingress/token.h"

static const char who[] = "stagger token";

static const char help[] =
    "usage: stagger token new FILE --role ROLE[,ROLE] [--name NAME]\n"
    "\n"
    "Makes a token, prints it, and appends its line to the token file of a\n"
    "hub, which is made if there is none, with mode 600. The file has only a\n"
    "hash of it: what is printed here cannot be read anywhere again. A hub\n"
    "that runs knows it after a reload, or SIGHUP. To take a token back,\n"
    "delete its line and reload.\n"
    "\n"
    "  -r, --role ROLES   what it may do, commas between:\n"
    "                       publish  hand messages to the hub\n"
    "                       view     see targets, dead letters and metrics\n"
    "                       operate  view, and replay, drop, pause, reload\n"
    "  -n, --name NAME    whose it is, for the audit log: up to 64 letters,\n"
    "                     digits and . _ @ -\n"
    "  -h, --help         this text\n"
    "\n"
    "Exit code: 0; 1 if the file cannot be written; 2 for an option that is\n"
    "wrong.\n"
    "\n"
    "  stagger token new /etc/stagger/tokens --role publish --name till-3\n"
    "  stagger token new tokens --role operate --name anna@example.org\n";

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

static bool write_line(int fd, const char *line)
{
    size_t size = strlen(line);

    return write(fd, line, size) == (ssize_t)size && fsync(fd) == 0;
}

/* Behind what is there, which others can append to at the same time. */
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

/* -- the command ---------------------------------------------------------------- */

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

static int refuse(const char *words)
{
    stg_options_complain(who, "%s", words);
    fputs("See stagger token --help.\n", stderr);
    return STG_EXIT_USAGE;
}

/* The first of them that is none. */
static int refuse_role(const char *roles)
{
    static const char *const names[] = {"publish", "view", "operate", NULL};
    char hint[STG_SUGGESTION_MAX] = "", role[40], text[200];

    for (const char *at = roles; hint[0] == '\0'; at++) {
        snprintf(role, sizeof role, "%.*s", (int)strcspn(at, ","), at);
        stg_options_hint(hint, role, names);
        at += strcspn(at, ",");
        if (*at == '\0')
            break;
    }
    snprintf(text, sizeof text,
             "--role: wanted publish, view or operate, or some of them with "
             "commas between%s",
             hint);
    return refuse(text);
}

static int read_option(token_options *o, int option)
{
    switch (option) {
    case 'r':
        o->roles = stg_roles_parse((stg_span){optarg, strlen(optarg)});
        return o->roles != 0 ? 0 : refuse_role(optarg);
    case 'n':
        o->name = optarg;
        return stg_token_is_name(optarg)
                   ? 0
                   : refuse(
                         "--name: wanted up to 64 letters, digits and "
                         ". _ @ -");
    case 'h':
        return -1;
    default:
        fputs("See stagger token --help.\n", stderr);
        return STG_EXIT_USAGE;
    }
}

static int read_words(token_options *o, int count, char **words)
{
    static const char *const names[] = {"new", NULL};
    char hint[STG_SUGGESTION_MAX], text[160];

    if (count == 0 || strcmp(words[0], "new") != 0) {
        snprintf(text, sizeof text, "wanted: new FILE --role ROLE%s",
                 stg_options_hint(hint, count > 0 ? words[0] : "", names));
        return refuse(text);
    }
    if (count != 2)
        return refuse(count < 2 ? "new: wanted the FILE"
                                : "new: wanted one FILE");
    if (o->roles == 0)
        return refuse(
            "new: wanted --role, what the token may do: publish, "
            "view or operate");
    o->path = words[1];
    return 0;
}

int stg_cli_token(int argc, char **argv)
{
    static const struct option options[] = {
        {"role", required_argument, NULL, 'r'},
        {"name", required_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    token_options o = {.name = ""};
    int option, code = 0;

    while (code == 0 &&
           (option = stg_options_next(argc, argv, "r:n:h", options)) != -1)
        code = read_option(&o, option);
    if (code == -1) {
        fputs(help, stdout);
        return stg_options_finish(who, 0);
    }
    if (code == 0)
        code = read_words(&o, argc - optind, argv + optind);
    return code == 0 ? make(&o) : code;
}
