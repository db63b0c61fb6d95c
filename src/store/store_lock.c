/* One hub a store: the lock, and the file that it is for.
 *
 * The lock file is beside the file itself, where all links have been followed: so
 * by whatever name a hub comes, it is the same lock. A file with a second name is
 * refused: it would have a write-ahead log for each. The lock is flock()'s, ends
 * with the process, and its file is never removed but with a store that was made
 * and not used. Somebody else may remove or replace it: so the store itself is
 * locked, too, at a byte that SQLite never locks, by a lock of the open file (of
 * the process it would be lost with any descriptor that closes). A restore that ended between its two renames is finished here. */
#include "store/store_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/refuse.h"
#include "store/sqlite.h"

enum {
    PATH_ROOM = 4096,
    LOCKED_BYTE = 0x40000000 + 4096, /* SQLite has 512 bytes from 0x40000000 */
};

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
    case ENOTDIR:
        return "a part of the path is a file: name a file in a directory";
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
    case ELOOP:
        return "STORE-lock is a link, or no plain file: remove it";
    default:
        return "the file and its directory must be writable";
    }
}

static stg_status refuse(const char *path, const char *what, stg_error *err)
{
    const char *why = strerror(errno);
    stg_status status = stg_hub_file_status(errno);

    return stg_hub_refuse(err, status, "%s: %s: %s; %s", path, what, why,
                          advice(path));
}

static stg_status refuse_second(const char *path, int fd, stg_error *err)
{
    char pid[24] = "";
    ssize_t length = fd < 0 ? 0 : pread(fd, pid, sizeof pid - 1, 0);

    pid[length < 0 ? 0 : length] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    return stg_hub_refuse(
        err, STG_IO,
        "%s: another hub has it%s%s; a store has one hub: end that one, "
        "or name another file",
        path, *pid == '\0' ? "" : ", process ", pid);
}

static void note_pid(int fd)
{
    char pid[24];
    int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());

    // It is a help for people: the lock is what counts.
    if (ftruncate(fd, 0) == 0 && pwrite(fd, pid, (size_t)length, 0) < 0)
        return;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

/* To be freed; NULL: no memory. */
static char *join(const char *a, const char *between, const char *b)
{
    size_t size = strlen(a) + strlen(between) + strlen(b) + 1;
    char *all = malloc(size);

    if (all != NULL)
        snprintf(all, size, "%s%s%s", a, between, b);
    return all;
}

/* The file that SQLite opens, which follows links, or would make: path without
 * links, also where it leads to a file that is not there yet. To be freed; NULL:
 * errno says why. */
static char *find_real(const char *path)
{
    char folder[PATH_ROOM], to[PATH_ROOM];
    char *real = realpath(path, NULL), *at;
    ssize_t length;

    if (real != NULL || errno != ENOENT)
        return real;
    length = readlink(path, to, sizeof to - 1);
    if (length < 0) {
        at = realpath(directory_of(path, folder), NULL);
        real = at == NULL ? NULL : join(at, "/", name_of(path));
    } else { // realpath() has found no circle of links
        to[length] = '\0';
        at =
            *to == '/' ? strdup(to) : join(directory_of(path, folder), "/", to);
        real = at == NULL ? NULL : find_real(at);
    }
    free(at);
    return real;
}

/* The lock is beside the file itself: the same one by whatever link. NULL: errno
 * says why. */
static char *lock_name(const char *path)
{
    char *real = find_real(path);
    char *name = real == NULL ? NULL : join(real, "", "-lock");

    free(real);
    return name;
}

/* It is written to: what a link, also a hard one, leads to is somebody else's.
 * -1: errno says why. */
static int open_lock(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                  0600);
    struct stat s;

    if (fd < 0 || (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_nlink == 1))
        return fd;
    close(fd);
    errno = ELOOP;
    return -1;
}

/* By a hub that was refused meanwhile, and takes its new store with it: who
 * comes now would lock another file. */
static bool is_removed(int fd)
{
    struct stat s;

    if (fstat(fd, &s) != 0 || s.st_nlink > 0)
        return false;
    errno = EWOULDBLOCK;
    return true;
}

/* flock() is on the file, not its name: one that was removed since it was opened
 * locks nobody out. */
static stg_status lock_file(stg_store_lock *lock, const char *path,
                            stg_error *err)
{
    char *name = lock_name(path);
    int fd;

    if (name == NULL)
        return refuse(path, "cannot be opened", err);
    fd = open_lock(name);
    free(name);
    if (fd < 0)
        return refuse(path, "its lock file cannot be opened", err);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || is_removed(fd)) {
        stg_status status = errno == EWOULDBLOCK
                                ? refuse_second(path, fd, err)
                                : refuse(path, "cannot be locked", err);

        close(fd);
        return status;
    }
    note_pid(fd);
    lock->beside = fd;
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

/* Locks the open file. Returns whether nobody else has it; where a file system
 * has no such locks, PATH-lock is all there is. */
static bool lock_own_file(int fd)
{
#ifdef F_OFD_SETLK
    struct flock own = {.l_type = F_WRLCK,
                        .l_whence = SEEK_SET,
                        .l_start = LOCKED_BYTE,
                        .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &own) == 0 ||
           (errno != EAGAIN && errno != EACCES);
#else
    return fd >= 0;
#endif
}

/* Makes it if it is not there. The lock is held: nobody else makes it, or has
 * it when this process removes it again. */
static stg_status make_file(stg_store_lock *lock, const char *path,
                            bool *is_new, stg_error *err)
{
    struct stat s;

    *is_new = stat(path, &s) != 0 && errno == ENOENT;
    lock->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock->file < 0)
        return refuse(path, "cannot be opened", err);
    if (!lock_own_file(lock->file))
        return refuse_second(path, -1, err);
    if (*is_new)
        sync_directory(path);
    return STG_OK;
}

/* Moves a file beside the store back from the name that it has for a moment. */
static void move_back(const char *from, const char *to, const char *end)
{
    char a[PATH_ROOM], b[PATH_ROOM];

    if (snprintf(a, sizeof a, "%s%s", from, end) < PATH_ROOM &&
        snprintf(b, sizeof b, "%s%s", to, end) < PATH_ROOM &&
        access(b, F_OK) != 0 && errno == ENOENT)
        rename(a, b);
}

/* A restore gives the store a second name, PATH.replaced-TIME, before it takes
 * the first one. If it ended in between, this is the store as it was. */
static void take_back(const char *path, const struct stat *s)
{
    char folder[PATH_ROOM], other[PATH_ROOM];
    const char *in = directory_of(path, folder);
    const char *name = name_of(path);
    size_t length = strlen(name);
    DIR *all = opendir(in);
    struct dirent *entry;
    struct stat there;

    while (all != NULL && (entry = readdir(all)) != NULL) {
        if (strncmp(entry->d_name, name, length) != 0 ||
            strncmp(entry->d_name + length, ".replaced-", 10) != 0 ||
            snprintf(other, sizeof other, "%s/%s", in, entry->d_name) >=
                PATH_ROOM ||
            lstat(other, &there) != 0 || there.st_dev != s->st_dev ||
            there.st_ino != s->st_ino)
            continue;
        move_back(other, path, "-wal");
        move_back(other, path, "-journal");
        unlink(other);
    }
    if (all != NULL)
        closedir(all);
    sync_directory(path);
}

/* By two names it would have two write-ahead logs, and each hub its own. */
static stg_status check_names(const char *path, stg_error *err)
{
    char *real = realpath(path, NULL);
    struct stat s;
    bool is_known = real != NULL && stat(real, &s) == 0;

    if (is_known && s.st_nlink > 1) {
        take_back(real, &s);
        is_known = stat(real, &s) == 0;
    }
    free(real);
    if (!is_known)
        return refuse(path, "cannot be opened", err);
    if (s.st_nlink <= 1)
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID,
        "%s: has another name (a hard link), and a store must have one: "
        "remove the others, or name another file",
        path);
}

/* The lock first, so that two processes do not both make the store. */
stg_status stg_store_lock_begin(stg_store_lock *lock, bool *is_new,
                                const char *path, stg_error *err)
{
    struct stat s;
    stg_status status;

    *lock = STG_STORE_LOCK_NONE;
    *is_new = false;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) {
        errno = EISDIR;
        return refuse(path, "cannot be opened", err);
    }
    status = lock_file(lock, path, err);
    if (status != STG_OK)
        return status;
    status = make_file(lock, path, is_new, err);
    if (status == STG_OK)
        status = check_names(path, err);
    if (status != STG_OK) {
        if (*is_new)
            stg_store_lock_remove(path);
        stg_store_lock_end(lock);
    }
    return status;
}

void stg_store_lock_remove(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char *real = find_real(path), name[PATH_ROOM];

    for (size_t i = 0; real != NULL && i < sizeof ends / sizeof *ends; i++)
        if (snprintf(name, sizeof name, "%s%s", real, ends[i]) < PATH_ROOM)
            (void)unlink(name);
    free(real);
}

void stg_store_lock_end(stg_store_lock *lock)
{
    if (lock->file >= 0)
        close(lock->file);
    if (lock->beside >= 0)
        close(lock->beside);
    *lock = STG_STORE_LOCK_NONE;
}
