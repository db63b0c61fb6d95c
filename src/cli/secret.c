/* stagger secret: makes the secrets that a hub signs requests with.
 *
 * Without a file the secret is printed. With one the hub's part is written there,
 * and what the receiver gets is printed: of an HMAC the same secret, of Ed25519
 * the public key. A file that is there already is left alone, since what it has
 * may be in use. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "http/sign_key.h"

static const char who[] = "stagger secret";

enum { SCHEME = 256, ED25519 };

static const stg_subcommand subcommands[] = {
    {"new", "make a secret, and print it", 1},
    {NULL, NULL, 0},
};

static const stg_option options[] = {
    {"--scheme S",
     "for which `sign.scheme`: standard-webhooks (the default) or stripe, "
     "whsec_ and Base64; github, custom or rfc9421, hexadecimal",
     SCHEME, NULL},
    {"--ed25519",
     "a pair of keys instead: whsk_ is the hub's, whpk_ the receiver's",
     ED25519, NULL},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger secret new [FILE] [OPTIONS]\n"
        "\n"
        "Makes a secret of 32 random bytes for `sign` of a target, and prints it. With\n"
        "FILE, which must not be there yet, the hub's part is written to it with mode\n"
        "600, and what the receiver gets is printed.\n"
        "\n",
    .subcommands = subcommands,
    .options = options,
    .tail =
        "\n"
        "Exit code: 0; 1 if the file cannot be written; 2 for bad options.\n"
        "\n"
        "  stagger secret new /etc/stagger/shop.secret\n"
        "  stagger secret new --ed25519 shop.key\n"
        "  stagger secret new --scheme github\n",
};

enum { EXIT_FAILED = 1 };

typedef struct secret_options {
    const char *path;               /* NULL: none */
    bool is_hex, is_pair, is_other; /* is_other: without pairs */
} secret_options;

static int fail(const char *path, const char *why)
{
    stg_options_complain(who, "%s: %s", path, why);
    return EXIT_FAILED;
}

/* Closed before anything is printed: what is printed is in the file. */
static int write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    size_t size = strlen(text);
    bool is_written;

    if (fd < 0 && errno == EEXIST)
        return fail(
            path,
            "it is there already, and its secret may be in use; expected "
            "the name of a new file");
    if (fd < 0)
        return fail(path, strerror(errno));
    is_written = write(fd, text, size) == (ssize_t)size &&
                 write(fd, "\n", 1) == 1 && fsync(fd) == 0;
    if (close(fd) == 0 && is_written)
        return 0;
    unlink(path);
    return fail(path, "it cannot be written");
}

/* hubs: what signs; receivers: what verifies, "" if it is the same. */
static int hand_out(const secret_options *o, const char *hubs,
                    const char *receivers)
{
    bool is_same = *receivers == '\0';
    int code = o->path != NULL ? write_file(o->path, hubs) : 0;

    if (code != 0)
        return code;
    if (o->path == NULL || is_same)
        printf("%s\n", hubs);
    if (!is_same)
        printf("%s\n", receivers);
    return stg_options_finish(who, 0);
}

static int make(const secret_options *o)
{
    char hubs[STG_SECRET_TEXT_MAX], receivers[STG_SECRET_TEXT_MAX] = "";
    bool is_made = o->is_pair  ? stg_secret_make_pair(hubs, receivers)
                   : o->is_hex ? stg_secret_make_hex(hubs)
                               : stg_secret_make(hubs);
    int code = is_made ? hand_out(o, hubs, receivers)
                       : fail("new", "OpenSSL has no random numbers");

    OPENSSL_cleanse(hubs, sizeof hubs);
    return code;
}

static int read_scheme(secret_options *o)
{
    enum { MESSAGE = 4 };
    static const char *const schemes[] = {
        "standard-webhooks", "stripe", "github", "custom", "rfc9421", NULL};
    char suggestion[STG_SUGGESTION_MAX];
    size_t i = 0;

    while (schemes[i] != NULL && strcmp(schemes[i], optarg) != 0)
        i++;
    if (schemes[i] == NULL)
        return stg_options_refuse(
            who,
            "--scheme: expected standard-webhooks, stripe, github, custom or "
            "rfc9421%s",
            stg_options_suggest(suggestion, optarg, schemes));
    o->is_other = i > 0 && i != MESSAGE;
    o->is_hex = i > 1;
    return 0;
}

static int read_option(void *ctx, int option)
{
    secret_options *o = ctx;

    if (option == SCHEME)
        return read_scheme(o);
    o->is_pair = true;
    return 0;
}

int stg_cli_secret(int argc, char **argv)
{
    secret_options o = {.path = NULL};
    stg_arguments files;
    int code = stg_options_read(&usage, argc, argv, read_option, &o, &files);

    if (code != 0)
        return code;
    if (o.is_pair && o.is_other)
        return stg_options_refuse(who,
                                  "--ed25519 is of the schemes "
                                  "standard-webhooks and rfc9421; expected no "
                                  "--scheme");
    if (files.count > 0)
        o.path = files.at[0];
    return make(&o);
}
