/* Policies in files: a file is read whole, 1 MiB at most, so that a flaw anywhere in
 * it is found, and not with the first use of another policy. */
#include <stagger/load.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/writer.h"

static stg_status refuse(stg_error *err, stg_status status, const char *path,
                         const char *why)
{
    stg_writer w = stg_writer_on_error(err);

    stg_write_path(&w, path);
    stg_write_text(&w, ": ");
    stg_write_text(&w, why);
    return status;
}

/* Reads to the end or one byte past the limit. Returns 0 or an errno. */
static int read_all(FILE *file, char **text, size_t *size)
{
    size_t room = 4096;
    char *grown;

    *size = 0;
    *text = NULL;
    do {
        room = 2 * room < STG_FILE_MAX + 2 ? 2 * room : STG_FILE_MAX + 2;
        grown = realloc(*text, room);
        if (grown == NULL)
            return ENOMEM;
        *text = grown;
        *size += fread(*text + *size, 1, room - 1 - *size, file);
        if (ferror(file))
            return errno;
    } while (*size == room - 1 && *size <= STG_FILE_MAX);
    (*text)[*size] = '\0';
    return 0;
}

stg_status stg_file_read(const char *path, char **text, size_t *size,
                         stg_error *err)
{
    FILE *file;
    int error;

    if (path == NULL || text == NULL || size == NULL)
        return refuse(err, STG_INVALID, "policies", "an argument is NULL");
    file = fopen(path, "rb");
    if (file == NULL)
        return refuse(err, STG_IO, path, strerror(errno));
    error = read_all(file, text, size);
    fclose(file);
    if (error == 0 && *size <= STG_FILE_MAX)
        return STG_OK;
    free(*text);
    *text = NULL;
    if (error != 0)
        return refuse(err, STG_IO, path, strerror(error));
    return refuse(err, STG_INVALID, path, "too long, expected at most 1 MiB");
}

/* The whole file is read and checked for the one policy. */
stg_status stg_policy_load(stg_policy *policy, const char *path,
                           const char *name, stg_error *err)
{
    stg_policies file = {.source = path};
    char *text;
    stg_status status = stg_file_read(path, &text, &file.size, err);

    if (status != STG_OK)
        return status;
    file.text = text;
    status = stg_policies_find(&file, name, policy, err);
    free(text);
    return status;
}
