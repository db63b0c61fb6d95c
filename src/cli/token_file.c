#include "cli/remote.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/load.h>

#include "core/reader.h"

static bool is_token(stg_reader line)
{
    for (const char *at = line.at; at < line.end; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    return line.at < line.end && line.end - line.at <= STG_TOKEN_MAX;
}

/* The first line that is neither empty nor a comment. */
static bool find_token(const char *text, size_t size, stg_reader *token)
{
    stg_reader rest = {text, text + size};

    while (!stg_reader_is_empty(&rest)) {
        *token = stg_read_until(&rest, '\n');
        while (token->end > token->at &&
               (stg_is_blank(token->end[-1]) || token->end[-1] == '\r'))
            token->end--;
        while (token->end > token->at && stg_is_blank(*token->at))
            token->at++;
        if (token->at < token->end && *token->at != '#')
            return is_token(*token);
    }
    return false;
}

stg_status stg_token_file_read(char token[STG_TOKEN_MAX + 1], const char *path,
                               stg_error *err)
{
    char *text;
    size_t size;
    stg_reader found;
    stg_status status = stg_file_read(path, &text, &size, err);

    if (status != STG_OK)
        return status;
    if (find_token(text, size, &found)) {
        memcpy(token, found.at, (size_t)(found.end - found.at));
        token[found.end - found.at] = '\0';
    } else {
        snprintf(err->text, sizeof err->text,
                 "--token-file=%s: wanted a token in its first line", path);
        status = STG_INVALID;
    }
    free(text);
    return status;
}

const char *stg_token_advice(int status, bool has_token)
{
    if (status == 401)
        return has_token ? "The token of --token-file is none of its tokens."
                         : "Name a file with a token of it: --token-file.";
    if (status == 403 && has_token)
        return "Another token may do this: its role is publish for messages, "
               "view for what only looks, operate for changes.";
    return "";
}
