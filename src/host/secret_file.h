/* secret_file.h - small files with secrets: tokens, keys. Nobody but the hub may
 * read one, what was read of it is wiped, and no error repeats what is in it. */
#ifndef STAGGER_HOST_SECRET_FILE_H
#define STAGGER_HOST_SECRET_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include <stagger/status.h>

enum { STG_SECRET_FILE_MAX = 1 << 20 };

/* Blocks. Returns STG_INVALID with words, without the path, for what only a
 * person can mend: no such file, or one that others may use; STG_IO otherwise.
 * text: to be freed with its size. */
stg_status stg_secret_file_read(const char *path, char **text, size_t *size,
                                stg_error *err);
void stg_secret_file_free(char *text, size_t size);

/* Whether nobody else may use a file with a secret, by its mode
 * (stg_file_is_private()), or as it is a credential of the service. */
bool stg_secret_is_private(const char *path, const struct stat *s);

/* The path of a credential that systemd has given the service
 * ($CREDENTIALS_DIRECTORY/NAME), to be freed; NULL: there is none. */
char *stg_secret_credential(const char *name);

#endif
