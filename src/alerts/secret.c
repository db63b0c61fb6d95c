/* A secret out of a file, for alerts: one line, without the blanks around it.
 *
 * What was read is wiped on all ways out. A FIFO or a device that nobody writes to is
 * not waited for (O_NONBLOCK), since a reload reads these files, too. */
#include "alerts/options.h"
#include "base/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>

static stg_status fail(stg_error *err, stg_status status, const char *path,
                       const char *words)
{
    return stg_hub_refuse(err, status, "%.200s: %s", path, words);
}

/* How many bytes, -1 with errno. One more than may be: it is too long. */
static ssize_t read_file(const char *path, char bytes[STG_SECRET_MAX + 1])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error;
    ssize_t size = 0, count = 1;

    if (fd < 0)
        return -1;
    while (count > 0 && size <= STG_SECRET_MAX) {
        count = read(fd, bytes + size, (size_t)(STG_SECRET_MAX + 1 - size));
        size += count > 0 ? count : 0;
    }
    error = errno;
    close(fd);
    errno = error;
    return count < 0 ? -1 : size;
}

static bool is_around(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_one_line(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') ||
            text[i] == '\x7f')
            return false;
    return true;
}

static stg_status take(const char *path, const char *at, size_t size,
                       char **secret, stg_error *err)
{
    while (size > 0 && is_around(at[size - 1]))
        size--;
    while (size > 0 && is_around(*at)) {
        at++;
        size--;
    }
    if (size == 0)
        return fail(err, STG_INVALID, path, "there is nothing in it");
    if (!is_one_line(at, size))
        return fail(err, STG_INVALID, path, "expected one line of text");
    *secret = malloc(size + 1);
    if (*secret == NULL)
        return fail(err, STG_IO, path, "there is no memory for it");
    memcpy(*secret, at, size);
    (*secret)[size] = '\0';
    return STG_OK;
}

stg_status stg_secret_read(const char *path, char **secret, stg_error *err)
{
    char bytes[STG_SECRET_MAX + 1];
    ssize_t size = read_file(path, bytes);
    stg_status status;

    if (size < 0)
        return fail(err, STG_IO, path, strerror(errno));
    status = size > STG_SECRET_MAX
                 ? fail(err, STG_INVALID, path, "it is longer than 4096 bytes")
                 : take(path, bytes, (size_t)size, secret, err);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return status;
}

void stg_secret_free(char *secret)
{
    if (secret != NULL)
        OPENSSL_cleanse(secret, strlen(secret));
    free(secret);
}
