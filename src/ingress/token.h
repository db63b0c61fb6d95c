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

#include <stagger/status.h>

#include "base/span.h"
#include "ingress/route.h"

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
