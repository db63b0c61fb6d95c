/* token.h - who may do what: bearer tokens, from a file.
 *
 *     # what a producer has
 *     publish sha256:9f86d081... till-3
 *     view,publish sha256:60303ae2...
 *
 * A line has the token's roles, its hash, and a name for logs; blank lines and
 * those that begin with '#' are skipped. A token is 16 to 512 letters, digits
 * and - . _ ~ + / =; the file does not have it. All hashes are compared, in a
 * time that does not depend on the token. SHA-256 is enough: a token is random,
 * and nothing that could be guessed from a list. */
#ifndef STAGGER_INGRESS_TOKEN_H
#define STAGGER_INGRESS_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/status.h>

#include "base/span.h"

/* -- routes ------------------------------------------------------------------ */

/* What the ingress answers: tables of methods, paths and roles.
 *
 *     static const stg_route routes[] = {
 *         {"GET", "/v1/targets/{name}", STG_ROLE_VIEW, STG_BODY_NONE, NULL,
 *          answer_target, false},
 *     };
 *     stg_ingress_serve(ingress, routes, 1, hub);
 *
 * A handler is called with a request that was checked: its token has the role,
 * its path and the names of its query are those of the route, its body is whole
 * and no larger than allowed. It answers by ask.h, at once or later. */

typedef struct stg_ask stg_ask;

/* A right of a token; a token may have several. */
typedef enum stg_role {
    STG_ROLE_ANYBODY = 0, /* of a route: no token is needed */
    STG_ROLE_PUBLISH = 1,
    STG_ROLE_VIEW = 2,
    STG_ROLE_OPERATE = 4, /* a token that has it has STG_ROLE_VIEW, too */
} stg_role;

typedef enum stg_body {
    STG_BODY_NONE,    /* an empty one */
    STG_BODY_JSON,    /* application/json, STG_JSON_BODY_MAX at most */
    STG_BODY_MESSAGE, /* these are the ingress' own */
    STG_BODY_BATCH,
    STG_BODY_WEBHOOK,
} stg_body;

enum { STG_JSON_BODY_MAX = 64 * 1024 };

typedef void stg_route_fn(void *ctx, stg_ask *a);

typedef struct stg_route {
    const char *method; /* "POST"; or "GET", which answers HEAD, too */
    const char *path;   /* {word} stands for any one segment, two at most; a
                           path without is found before one with */
    stg_role role;
    stg_body body;
    const char *const *options; /* names of the query, ended by NULL; NULL: it
                                   has none */
    stg_route_fn *handle;
    bool is_always; /* also when too many requests are being answered */
} stg_route;

/* A table, and the context of its handlers. */
typedef struct stg_routes {
    const stg_route *all;
    size_t count;
    void *ctx;
} stg_routes;

/* The result of looking a path up in some tables. */
typedef struct stg_match {
    const stg_route *route; /* NULL: none of this path and method */
    void *ctx;
    char allowed[32]; /* methods of the path, "GET, HEAD"; "": no such path */
} stg_match;

void stg_routes_match(const stg_routes *tables, size_t count, const char *path,
                      const char *method, stg_match *m);

/* The word number i, from 0, of a path that matches the pattern. Copies it, with
 * its terminator. Returns 0 if there is none, or it does not fit. */
size_t stg_route_word(const char *pattern, const char *path, size_t i,
                      char *word, size_t room);

typedef struct stg_tokens stg_tokens;

enum {
    STG_TOKENS_MAX = 1000,
    STG_TOKEN_NAME_MAX = 65, /* these with the terminator */
    STG_TOKEN_TEXT_MAX = 80,
    STG_TOKEN_LINE_MAX = 192,
    STG_ROLES_TEXT_MAX = 32,
};

typedef struct stg_token {
    unsigned roles; /* of stg_role */
    char name[STG_TOKEN_NAME_MAX];
} stg_token;

/* Reads the file. Returns STG_IO if it cannot be read, STG_INVALID if group or
 * others may read it, or for a wrong line, with words. */
stg_status stg_tokens_load(stg_tokens **tokens, const char *path,
                           stg_error *err);

/* The same from the text of such a file; name is what errors call it. */
stg_status stg_tokens_parse(stg_tokens **tokens, stg_span text,
                            const char *name, stg_error *err);

void stg_tokens_free(stg_tokens *t);

/* The one that the value of an Authorization header has, "Bearer TOKEN". NULL:
 * none. authorization may be NULL. */
const stg_token *stg_tokens_find(const stg_tokens *t,
                                 const char *authorization);

/* "publish,view"; 0: there is a word in it that is no role. */
unsigned stg_roles_parse(stg_span text);
const char *stg_roles_print(unsigned all, char text[STG_ROLES_TEXT_MAX]);

/* Up to 64 letters, digits and . _ @ -. */
bool stg_token_is_name(const char *name);

/* -- a new one --------------------------------------------------------------- */

/* A token of 256 random bits. */
stg_status stg_token_make(char token[STG_TOKEN_TEXT_MAX], stg_error *err);

/* Its line for the file; name may be "". False: there is no SHA-256. */
bool stg_token_print(const char *token, unsigned roles, const char *name,
                     char line[STG_TOKEN_LINE_MAX]);

#endif
