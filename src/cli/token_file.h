/* token_file.h - the token that a hub wants of a command. */
#ifndef STAGGER_CLI_TOKEN_FILE_H
#define STAGGER_CLI_TOKEN_FILE_H

#include <stdbool.h>

#include <stagger/status.h>

enum { STG_TOKEN_MAX = 512 };

/* The first line of a file that is neither empty nor a comment. Returns
 * STG_INVALID or STG_IO with words that name the file, and never the token. */
stg_status stg_token_file_read(char token[STG_TOKEN_MAX + 1], const char *path,
                               stg_error *err);

/* Advice where a hub refuses with 401 or 403; "" for other answers. */
const char *stg_token_advice(int status, bool has_token);

#endif
