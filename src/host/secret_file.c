/* Reads a file with a secret in it. Its mode is checked on the open file, for the
 * path may lead to another one by then. */
#include "host/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/refuse.h"
#include "host/process.h"

/* systemd may give a service its credentials by an access control list: then the
 * mode says that the group root may read. Their folder is the service's alone. */
static bool is_credential(const char *path, mode_t mode)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    size_t size = folder == NULL ? 0 : strlen(folder);

    return size > 0 && strncmp(path, folder, size) == 0 && path[size] == '/' &&
           (mode & (S_IRWXO | S_IWGRP | S_IXGRP)) == 0;
}

bool stg_secret_is_private(const char *path, const struct stat *s)
{
    return stg_file_is_private(s) || is_credential(path, s->st_mode);
}

static stg_status check(int fd, const char *path, stg_error *err)
{
    struct stat s;

    if (fstat(fd, &s) != 0)
        return stg_hub_refuse(err, STG_IO, "%s", strerror(errno));
    if (S_ISDIR(s.st_mode))
        return stg_hub_refuse(err, STG_INVALID, "it is a directory");
    if (!stg_secret_is_private(path, &s))
        return stg_hub_refuse(err, STG_INVALID,
                              "others than the hub may use it (mode %03o); to "
                              "keep it for its owner: chmod 600 %.80s",
                              (unsigned)(s.st_mode & 0777), path);
    return STG_OK;
}

static stg_status read_all(int fd, char *text, size_t *size, stg_error *err)
{
    ssize_t got;

    *size = 0;
    do {
        got = read(fd, text + *size, STG_SECRET_FILE_MAX - *size);
        if (got < 0 && errno != EINTR)
            return stg_hub_refuse(err, STG_IO, "%s", strerror(errno));
        *size += got > 0 ? (size_t)got : 0;
    } while (got != 0 && *size < STG_SECRET_FILE_MAX);
    if (*size == STG_SECRET_FILE_MAX)
        return stg_hub_refuse(err, STG_INVALID, "more than %d bytes",
                              STG_SECRET_FILE_MAX);
    return STG_OK;
}

static stg_status load(int fd, const char *path, char **text, size_t *size,
                       stg_error *err)
{
    stg_status status = check(fd, path, err);

    if (status != STG_OK)
        return status;
    *text = malloc(STG_SECRET_FILE_MAX);
    if (*text == NULL)
        return stg_hub_refuse(err, STG_IO, "no memory");
    status = read_all(fd, *text, size, err);
    if (status != STG_OK)
        stg_secret_file_free(*text, *size);
    return status;
}

/* O_NONBLOCK, so that a FIFO does not hold the hub up. */
stg_status stg_secret_file_read(const char *path, char **text, size_t *size,
                                stg_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    stg_status status;

    if (fd < 0)
        return stg_hub_refuse(err, stg_hub_file_status(errno), "%s",
                              strerror(errno));
    status = load(fd, path, text, size, err);
    close(fd);
    return status;
}

void stg_secret_file_free(char *text, size_t size)
{
    OPENSSL_cleanse(text, size);
    free(text);
}

char *stg_secret_credential(const char *name)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    size_t size = folder == NULL ? 0 : strlen(folder) + strlen(name) + 2;
    char *path = size == 0 ? NULL : malloc(size);

    if (path == NULL)
        return NULL;
    snprintf(path, size, "%s/%s", folder, name);
    if (access(path, F_OK) == 0)
        return path;
    free(path);
    return NULL;
}
