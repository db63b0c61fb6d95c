#include "hub/stores/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/stores/sqlite.h"

enum { PATH_ROOM = 4096 };

/* The directory that path is in; text is room for it. */

static const char *directory_of(const char *path, char text[PATH_ROOM])
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        return ".";
    if (slash == path)
        return "/";
    snprintf(text, PATH_ROOM, "%.*s", (int)(slash - path), path);
    return text;
}

static const char *advice(const char *path)
{
    char text[PATH_ROOM];
    struct stat s;

    switch (errno) {
    case ENOENT:
        return stat(directory_of(path, text), &s) != 0
                   ? "there is no such directory: make it, or name another"
                   : "name another file";
    case EACCES:
    case EPERM:
        return "the file and its directory must be writable for the hub's user";
    case EROFS:
        return "the file system is read-only: name a file on another one";
    case ENOSPC:
    case EDQUOT:
        return "make room on the disk, or name a file on another one";
    case EISDIR:
        return "it is a directory: name a file in it";
    default:
        return "the file and its directory must be writable";
    }
}

static stg_status refuse(const char *path, const char *what, stg_error *err)
{
    const char *why = strerror(errno);

    stg_sql_say(err, "%s: %s: %s; %s", path, what, why, advice(path));
    return STG_IO;
}

static stg_status refuse_second(const char *path, int fd, stg_error *err)
{
    char pid[24] = "";
    ssize_t length = pread(fd, pid, sizeof pid - 1, 0);

    pid[length < 0 ? 0 : length] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    stg_sql_say(
        err,
        "%s: another hub has it%s%s; a store has one hub: end that one, "
        "or name another file",
        path, *pid == '\0' ? "" : ", process ", pid);
    return STG_IO;
}

static void note_pid(int fd)
{
    char pid[24];
    int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());

    // It is a help for people: the lock is what counts.
    if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)length, 0) < 0)
        return;
}

/* SQLite follows links, and so does the lock; the file is there by now, also
 * where a link leads to. NULL: errno says why. */
static char *lock_name(const char *path)
{
    char *real = realpath(path, NULL), *name;
    size_t size;

    if (real == NULL)
        return NULL;
    size = strlen(real) + sizeof "-lock";
    name = malloc(size);
    if (name != NULL)
        snprintf(name, size, "%s-lock", real);
    free(real);
    return name;
}

static stg_status lock_file(int *lock, const char *path, stg_error *err)
{
    char *name = lock_name(path);
    int fd;

    if (name == NULL)
        return refuse(path, "cannot be locked", err);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    free(name);
    if (fd < 0)
        return refuse(path, "its lock file cannot be opened", err);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        stg_status status = errno == EWOULDBLOCK
                                ? refuse_second(path, fd, err)
                                : refuse(path, "cannot be locked", err);

        close(fd);
        return status;
    }
    note_pid(fd);
    *lock = fd;
    return STG_OK;
}

/* A new name is durable when its directory is. */
static void sync_directory(const char *path)
{
    char text[PATH_ROOM];
    int fd = open(directory_of(path, text), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

/* Makes it if it is not there. By two names it would have two write-ahead logs,
 * and each hub its own. */
static stg_status make_file(const char *path, stg_error *err)
{
    struct stat s;
    bool is_new = stat(path, &s) != 0 && errno == ENOENT;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || fstat(fd, &s) != 0) {
        stg_status status = refuse(path, "cannot be opened", err);

        if (fd >= 0)
            close(fd);
        return status;
    }
    close(fd);
    if (is_new)
        sync_directory(path);
    if (s.st_nlink <= 1)
        return STG_OK;
    stg_sql_say(
        err,
        "%s: has another name (a hard link), and a store must have one: "
        "remove the others, or name another file",
        path);
    return STG_IO;
}

stg_status stg_claim_begin(int *lock, const char *path, stg_error *err)
{
    struct stat s;
    stg_status status;

    *lock = -1;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) {
        errno = EISDIR;
        return refuse(path, "cannot be opened", err);
    }
    status = make_file(path, err);
    return status == STG_OK ? lock_file(lock, path, err) : status;
}

void stg_claim_end(int lock)
{
    if (lock >= 0)
        close(lock);
}
