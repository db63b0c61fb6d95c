/* Lines that are appended to a file which others may rotate under us. Of a regular
 * file a line is there whole or not at all, so that a full disk leaves no half of a
 * line for the next one to go on from. */
#include "host/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TRIES = 3,                 /* writes of a batch whose file is replaced */
    PIECE = 4096,              /* bytes that are read at once, backward */
    LOOKED_BACK_MAX = 64 << 20 /* bytes of a line that a crash has cut */
};

enum { REPLACED = ESTALE, TAKEN = EBUSY };

const char *stg_lines_error(int error)
{
    if (error == REPLACED)
        return "the file was replaced or truncated while it was written, again "
               "and again";
    if (error == TAKEN)
        return "it is a file of the store; a copy needs a file of its own";
    return strerror(error);
}

/* -- opening --------------------------------------------------------------- */

/* Makes the name of a file durable, whoever made it, where its folder can be
 * read: to sync a file is not to sync its name. */
static void lines_sync_folder(const char *path)
{
    char *real = realpath(path, NULL);
    int fd = real == NULL ? -1 : open(dirname(real), O_RDONLY | O_CLOEXEC);

    free(real);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

/* Opens for reading, too: the last bytes are looked at. O_NONBLOCK is for a pipe
 * that nobody reads, O_NOCTTY for a terminal. */
static int lines_open_path(const char *path, bool is_regular)
{
    const int flags = O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = open(path, flags | (is_regular ? O_RDWR : O_WRONLY));

    if (fd < 0 && errno == EACCES)
        fd = open(path, flags | O_WRONLY);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    return open(path, flags | O_RDWR | O_CREAT, 0600);
}

/* Closes, and keeps errno. */
static void lines_close(stg_lines *l)
{
    int error = errno;

    if (l->is_open)
        close(l->fd);
    l->is_open = false;
    errno = error;
}

void stg_lines_close(stg_lines *l)
{
    lines_close(l);
}

/* Writing to a pipe or a terminal may block. */
static bool lines_take(stg_lines *l, int fd, const struct stat *s)
{
    l->fd = fd;
    l->is_open = true;
    l->is_regular = S_ISREG(s->st_mode);
    return l->is_regular || fcntl(fd, F_SETFL, O_APPEND) == 0;
}

static bool lines_open(stg_lines *l, struct stat *s)
{
    bool is_there = stat(l->path, s) == 0;
    int fd;

    if (is_there && l->is_taken != NULL && l->is_taken(l->taken_ctx, s)) {
        errno = TAKEN;
        return false;
    }
    fd = lines_open_path(l->path, !is_there || S_ISREG(s->st_mode));
    if (fd < 0)
        return false;
    if (fstat(fd, s) == 0 && lines_take(l, fd, s))
        return true;
    l->is_open = true;
    l->fd = fd;
    lines_close(l);
    return false;
}

/* -- an unfinished line ---------------------------------------------------- */

/* Finds where the line begins that ends before `end`; -1: too far, or unreadable. */
static off_t lines_find_begin(const stg_lines *l, off_t end)
{
    char piece[PIECE];
    off_t at = end;

    while (at > 0 && end - at < LOOKED_BACK_MAX) {
        size_t size = at < PIECE ? (size_t)at : PIECE;

        if (pread(l->fd, piece, size, at - (off_t)size) != (ssize_t)size)
            return -1;
        for (size_t i = size; i > 0; i--)
            if (piece[i - 1] == '\n')
                return at - (off_t)(size - i);
        at -= (off_t)size;
    }
    return at == 0 ? 0 : -1;
}

/* Skips digits. Returns whether there was one, or the text is over. */
static bool lines_skip_digits(stg_span *text)
{
    size_t count = 0;

    while (count < text->size && text->at[count] >= '0' &&
           text->at[count] <= '9')
        count++;
    *text = (stg_span){text->at + count, text->size - count};
    return count > 0 || text->size == 0;
}

/* Whether the text begins as our lines do; is_whole: to the end of that. */
static bool lines_match(const char *begins, stg_span text, bool is_whole)
{
    for (; *begins != '\0' && text.size > 0; begins++) {
        if (*begins == '#') {
            if (!lines_skip_digits(&text))
                return false;
            continue;
        }
        if (*text.at != *begins)
            return false;
        text = (stg_span){text.at + 1, text.size - 1};
    }
    return *begins == '\0' || !is_whole;
}

static bool lines_is_ours(const stg_lines *l, off_t from, off_t to,
                          bool is_whole)
{
    char text[128];
    size_t size =
        to - from < (off_t)sizeof text ? (size_t)(to - from) : sizeof text;

    return from >= 0 && pread(l->fd, text, size, from) == (ssize_t)size &&
           lines_match(l->begins, (stg_span){text, size}, is_whole);
}

/* Returns where our unfinished line begins; -1: the end of the file is not ours.
 * A few bytes say little, so that the line before them has to be ours, too. */
static off_t lines_find_unfinished(const stg_lines *l, off_t size)
{
    off_t begin = l->begins == NULL ? -1 : lines_find_begin(l, size);

    if (begin < 0 || !lines_is_ours(l, begin, size, begin == 0))
        return -1;
    if (begin == 0)
        return 0;
    return lines_is_ours(l, lines_find_begin(l, begin - 1), begin - 1, true)
               ? begin
               : -1;
}

static bool lines_put(int fd, stg_span bytes, size_t *written)
{
    for (*written = 0; *written < bytes.size;) {
        ssize_t some = write(fd, bytes.at + *written, bytes.size - *written);

        if (some < 0 && errno != EINTR)
            return false;
        *written += some > 0 ? (size_t)some : 0;
    }
    return true;
}

/* Cuts an unfinished line of ours off a file that was not seen before, and ends any
 * other one: of a file that we had open it is somebody else's, who may be at it. */
static bool lines_mend_end(stg_lines *l, const struct stat *s, bool is_new)
{
    off_t begin;
    size_t written;
    char last;

    // A file that cannot be read stays as it is.
    if (s->st_size == 0 || pread(l->fd, &last, 1, s->st_size - 1) != 1 ||
        last == '\n')
        return true;
    begin = is_new ? lines_find_unfinished(l, s->st_size) : -1;
    if (begin >= 0 && ftruncate(l->fd, begin) == 0)
        return true;
    return lines_put(l->fd, (stg_span){"\n", 1}, &written);
}

/* Notes which file is open, and prepares one that was not seen before. */
static bool lines_meet(stg_lines *l, const struct stat *s)
{
    bool is_new = s->st_dev != l->device || s->st_ino != l->inode;

    if (!l->is_regular)
        return true;
    l->device = s->st_dev;
    l->inode = s->st_ino;
    if (is_new)
        lines_sync_folder(l->path);
    return lines_mend_end(l, s, is_new);
}

/* -- a batch --------------------------------------------------------------- */

/* Whether path and descriptor lead to one file. */
static bool lines_is_current(const stg_lines *l, struct stat *at)
{
    struct stat is;

    return stat(l->path, at) == 0 && fstat(l->fd, &is) == 0 &&
           at->st_dev == is.st_dev && at->st_ino == is.st_ino;
}

static bool lines_begin(stg_lines *l)
{
    struct stat s;

    l->end = 0;
    l->is_short = false;
    if (l->is_open && lines_is_current(l, &s))
        return true;
    lines_close(l);
    if (!lines_open(l, &s))
        return false;
    if (lines_meet(l, &s))
        return true;
    lines_close(l);
    return false;
}

/* Takes back what is there of a line, unless somebody has added to it. */
static void lines_take_back(const stg_lines *l, off_t before, size_t written)
{
    int error = errno;
    struct stat s;

    if (l->is_regular && fstat(l->fd, &s) == 0 &&
        s.st_size == before + (off_t)written && ftruncate(l->fd, before) != 0)
        error = errno;
    errno = error;
}

/* Each line ends where the next one begins, unless the file was truncated. */
static void lines_note(stg_lines *l, size_t size)
{
    off_t end = l->is_regular ? lseek(l->fd, 0, SEEK_CUR) : 0;

    if (end - (off_t)size < l->end)
        l->is_short = l->is_regular;
    l->end = end;
}

bool stg_lines_write(stg_lines *l, stg_span lines)
{
    struct stat before = {.st_size = 0};
    size_t written;

    if (l->is_regular && fstat(l->fd, &before) != 0)
        return false;
    if (lines_put(l->fd, lines, &written)) {
        lines_note(l, written);
        return true;
    }
    lines_take_back(l, before.st_size, written);
    return false;
}

/* Whether the batch is where it should be: a pipe or a terminal cannot be
 * synced, nor looked at. */
static bool lines_settle(const stg_lines *l, bool is_synced)
{
    struct stat at;

    if (!l->is_regular)
        return true;
    if (is_synced && fdatasync(l->fd) != 0)
        return false;
    if (!l->is_short && lines_is_current(l, &at) && at.st_size >= l->end)
        return true;
    errno = REPLACED;
    return false;
}

/* An error of what was not synced may come as late as this. */
static bool lines_end(stg_lines *l, bool is_settled)
{
    if (!is_settled) {
        lines_close(l);
        return false;
    }
    if (!l->is_regular)
        return true;
    l->is_open = false;
    return close(l->fd) == 0;
}

bool stg_lines_append(stg_lines *l, bool is_synced, void (*write)(void *ctx),
                      void *ctx)
{
    for (int i = 0; i < TRIES; i++) {
        if (!lines_begin(l))
            return false;
        write(ctx);
        if (lines_end(l, lines_settle(l, is_synced)))
            return true;
        if (errno != REPLACED)
            return false;
    }
    return false;
}

bool stg_lines_check(stg_lines *l)
{
    struct stat s;

    if (!lines_begin(l))
        return errno == ENXIO && stat(l->path, &s) == 0 && S_ISFIFO(s.st_mode);
    return lines_end(l, true);
}
