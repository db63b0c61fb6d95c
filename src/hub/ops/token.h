/* token.h - who may publish: bearer tokens, from a file.
 *
 * One token a line, 16 to 512 letters, digits and - . _ ~ + / =; blank lines and
 * lines that begin with '#' are skipped. Only hashes stay in memory, and all of
 * them are compared in a time that does not depend on the token. */
#ifndef STAGGER_HUB_OPS_TOKEN_H
#define STAGGER_HUB_OPS_TOKEN_H

#include <stdbool.h>

#include <stagger/status.h>

#include "hub/parcel.h"

typedef struct stg_tokens stg_tokens;

enum { STG_TOKENS_MAX = 1000 };

/* Reads the file. Returns STG_IO if it cannot be read, STG_INVALID if group or
 * others may read it, or for a line that is no token, with words. */
stg_status stg_tokens_load(stg_tokens **tokens, const char *path,
                           stg_error *err);

/* The same from the text of such a file; name is what errors call it. */
stg_status stg_tokens_parse(stg_tokens **tokens, stg_span text,
                            const char *name, stg_error *err);

void stg_tokens_free(stg_tokens *t);

/* Whether the value of an Authorization header, "Bearer TOKEN", has one of
 * them. NULL: there was none. */
bool stg_tokens_allow(const stg_tokens *t, const char *authorization);

#endif
