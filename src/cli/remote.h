/* remote.h - a hub's HTTP interface, for a command: one call at a time, which
 * is waited for.
 *
 * What is called is in docs/openapi.yaml. Answers are JSON; whatever is refused
 * comes with words for people, which say what to do. */
#ifndef STAGGER_CLI_REMOTE_H
#define STAGGER_CLI_REMOTE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/options.h"
#include "http/client.h"

/* Options that all such commands have. */
typedef struct stg_remote_options {
    const char *hub;        /* NULL: STAGGER_HUB in the environment, or else
                        http://127.0.0.1:8080 */
    const char *token_file; /* NULL: none */
    // For https: whom to trust, NULL: whom the system does; and what to show.
    const char *ca_file, *certificate_file, *key_file;
} stg_remote_options;

/* o->hub, or what stands for it. */
const char *stg_remote_url(const stg_remote_options *o);

enum { STG_TOKEN_MAX = 512 };

/* The first line of a file that is neither empty nor a comment. Returns
 * STG_INVALID or STG_IO with words that name the file, and never the token. */
stg_status stg_token_file_read(char token[STG_TOKEN_MAX + 1], const char *path,
                               stg_error *err);

/* Advice where a hub refuses with 401 or 403; "" for other answers. */
const char *stg_token_advice(int status, bool has_token);

/* Gives e the settings of o for TLS. */
void stg_remote_secure(const stg_remote_options *o, stg_endpoint_options *e);

/* Their values; those of a command's own options begin behind. */
enum {
    STG_REMOTE_HUB = 256,
    STG_REMOTE_TOKEN,
    STG_REMOTE_CA,
    STG_REMOTE_CERTIFICATE,
    STG_REMOTE_KEY,
    STG_REMOTE_NEXT
};

/* Rows of a table of options; `which` subcommands have them, NULL: all. */
#define STG_REMOTE_OPTIONS(which)                                         \
    {"--hub URL",                                                         \
     "URL of the hub (STAGGER_HUB in the environment, or else "           \
     "http://127.0.0.1:8080)",                                            \
     STG_REMOTE_HUB, which},                                              \
        {"--token-file F", "file with the token that the hub asks for",   \
         STG_REMOTE_TOKEN, which},                                        \
        {"--ca F", "https: certificates to trust, PEM (the system's)",    \
         STG_REMOTE_CA, which},                                           \
        {"--client-cert F", "https: certificate to show to the hub, PEM", \
         STG_REMOTE_CERTIFICATE, which},                                  \
    {                                                                     \
        "--client-key F", "https: the key of that certificate, PEM",      \
            STG_REMOTE_KEY, which                                         \
    }

/* Whether any of them was given. */
bool stg_remote_is_named(const stg_remote_options *o);

/* Whether option is one of them, whose argument it takes. */
bool stg_remote_take(stg_remote_options *o, int option, const char *argument);

/* stg_options_read() for a command whose options are these alone. */
int stg_remote_read(const stg_usage *u, int argc, char **argv,
                    stg_remote_options *o, stg_arguments *left);

typedef struct stg_remote stg_remote;

/* Strings of o are kept. Complains as `who`, and returns NULL, for a URL or a
 * token that is none. */
stg_remote *stg_remote_open(const char *who, const stg_remote_options *o);
void stg_remote_close(stg_remote *r);

/* The hub's URL. */
const char *stg_remote_hub(const stg_remote *r);

/* Calls method and path (which may have a query, both as they are sent) with
 * body, or without where it is NULL. True: a 2xx; *answer is given, to be
 * released by json_decref(). False: see stg_remote_why(). */
bool stg_remote_call(stg_remote *r, const char *method, const char *path,
                     const json_t *body, json_t **answer);

/* After false: the status, 0 where there was no answer; and in a line or more
 * what is wrong, with what to do. */
int stg_remote_status(const stg_remote *r);
const char *stg_remote_why(const stg_remote *r);

/* Tells it. Returns the exit code for it: 1. */
int stg_remote_complain(const stg_remote *r);

/* text for a path or a query. Returns to, cut where it does not fit. */
const char *stg_remote_escape(const char *text, char *to, size_t size);

/* -- reading answers -------------------------------------------------------- */

/* Of an object; "" and 0 where there is none, or it is null. */
const char *stg_json_text_of(const json_t *object, const char *key);
uint64_t stg_json_count_of(const json_t *object, const char *key);

/* -- printing answers ------------------------------------------------------- */

/* Prints an answer as JSON, indented or in one line, and an end of line. What no
 * terminal may show is escaped: the same value, whoever reads it. */
void stg_say_json(FILE *to, const json_t *value, bool is_line);

#endif
