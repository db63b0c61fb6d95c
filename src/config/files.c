/* Files that the settings name: secrets, and what is written to. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/load.h"
#include "config/loading.h"
#include "host/private_file.h"

enum { SECRET_MAX = 64 << 10 };

/* -- secrets --------------------------------------------------------------- */

/* An open secret, or -1: complained. Never blocks on a pipe. */
static int open_secret(stg_loading *l, stg_file_place place, const char *name,
                       const char *path, off_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) != 0) {
        stg_complain(l->c, place,
                     "`%s`: the file %.120s cannot be read: %s; "
                     "wanted one that can",
                     name, path, strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        stg_complain(l->c, place, "`%s`: %.120s is no plain file; wanted one",
                     name, path);
    } else if (!stg_file_is_private(&status)) {
        stg_complain(l->c, place,
                     "`%s`: others may use the file %.120s (mode %04o); wanted "
                     "0600, or 0440 of a group of the hub: chmod 600 %.120s",
                     name, path, (unsigned)(status.st_mode & 07777), path);
    } else if (status.st_size == 0) {
        stg_complain(l->c, place,
                     "`%s`: the file %.120s is empty; wanted a "
                     "secret in it",
                     name, path);
    } else if (status.st_size > SECRET_MAX) {
        stg_complain(l->c, place,
                     "`%s`: the file %.120s is too large; wanted "
                     "64 KiB at most",
                     name, path);
    } else {
        *size = status.st_size;
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

bool stg_load_check_secret(stg_loading *l, stg_file_place place,
                           const char *name, const char *path)
{
    off_t size;
    int fd = open_secret(l, place, name, path, &size);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Without the end of line that editors add. */
static size_t trim(const char *text, size_t size)
{
    if (size > 0 && text[size - 1] == '\n')
        size--;
    if (size > 0 && text[size - 1] == '\r')
        size--;
    return size;
}

const char *stg_load_secret(stg_loading *l, stg_file_place place,
                            const char *name, const char *path)
{
    off_t size = 0;
    int fd = open_secret(l, place, name, path, &size);
    char *text = fd >= 0 ? stg_load_keep(l, (size_t)size + 1) : NULL;
    ssize_t got = text != NULL ? read(fd, text, (size_t)size) : 0;

    if (fd >= 0)
        close(fd);
    if (text == NULL)
        return NULL;
    size = (off_t)trim(text, got > 0 ? (size_t)got : 0);
    text[size] = '\0';
    if (size > 0)
        return text;
    stg_complain(l->c, place,
                 "`%s`: the file %.120s has nothing in it; wanted a secret",
                 name, path);
    return NULL;
}

/* -- what is written to ---------------------------------------------------- */

void stg_settings_check_store(stg_diagnostics *c, stg_file_place place,
                              const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        stg_file_is_private(&status))
        return;
    stg_warn(c, place,
             "`store.path`: others may use the store %.120s (mode %04o), which "
             "has the messages and their headers; wanted 0600: chmod 600 "
             "%.120s",
             path, (unsigned)(status.st_mode & 07777), path);
}

void stg_load_check_output(stg_loading *l, const char *name, const char *path)
{
    stg_file_place place = stg_load_hub_place(l, name);
    char *copy;
    const char *folder;
    struct stat status;

    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            stg_complain(l->c, place,
                         "`%s`: %.120s is a directory; wanted a file in one",
                         name, path);
        else if (access(path, W_OK) != 0)
            stg_complain(l->c, place,
                         "`%s`: %.120s cannot be written: %s; wanted a file "
                         "that can",
                         name, path, strerror(errno));
        return;
    }
    copy = strdup(path);
    if (copy == NULL)
        return;
    folder = dirname(copy);
    if (access(folder, W_OK | X_OK) != 0)
        stg_complain(l->c, place,
                     "`%s`: no file can be made in %.120s: %s; wanted a "
                     "directory where one can",
                     name, folder, strerror(errno));
    free(copy);
}
