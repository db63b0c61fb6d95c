/* Lines that are appended: of a regular file all of them or none, so that a full disk leaves
 * no half of a line for the next one to go on from. */
#include "host/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NOCTTY, for the path may be a terminal. */
int stg_lines_open(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY,
                0600);
}

static bool write_bytes(int fd, stg_span bytes)
{
    while (bytes.size > 0) {
        ssize_t written = write(fd, bytes.at, bytes.size);

        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            bytes.at += written;
            bytes.size -= (size_t)written;
        }
    }
    return true;
}

bool stg_lines_write(int fd, stg_span lines)
{
    struct stat before;
    bool is_file = fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
    int error;

    if (write_bytes(fd, lines))
        return true;
    error = errno;
    if (is_file && ftruncate(fd, before.st_size) != 0)
        error = errno;
    errno = error;
    return false;
}
