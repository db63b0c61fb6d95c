#include "hub/stores/letters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/refuse.h"
#include "hub/stores/letter.h"
#include "hub/stores/sqlite.h"

enum {
    PIECE = 256, /* rows between two syncs */
    PIECE_BYTES = 1 << 20,
};

/* -- the file -------------------------------------------------------------- */

/* Where the last whole line ends: what is behind it was cut off by a crash, and
 * its row comes again. */
static off_t end_of_lines(int fd, off_t size)
{
    char piece[4096];

    while (size > 0) {
        size_t most = size < (off_t)sizeof piece ? (size_t)size : sizeof piece;
        ssize_t got = pread(fd, piece, most, size - (off_t)most);

        if (got != (ssize_t)most)
            return size;
        for (size_t i = most; i > 0; i--)
            if (piece[i - 1] == '\n')
                return size - (off_t)(most - i);
        size -= (off_t)most;
    }
    return 0;
}

static bool open_file(stg_letters *l)
{
    struct stat s;

    if (l->fd >= 0)
        return true;
    l->fd = open(l->o->letters, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (l->fd < 0)
        return false;
    l->size = 0;
    l->is_regular = fstat(l->fd, &s) == 0 && S_ISREG(s.st_mode);
    if (!l->is_regular)
        return true;
    l->size = (uint64_t)end_of_lines(l->fd, s.st_size);
    return (off_t)l->size == s.st_size || ftruncate(l->fd, (off_t)l->size) == 0;
}

static void close_file(stg_letters *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

/* "PATH.n", and PATH itself for 0. */
static void name_of(const stg_letters *l, int n, char *name, size_t size)
{
    if (n == 0)
        snprintf(name, size, "%s", l->o->letters);
    else
        snprintf(name, size, "%s.%d", l->o->letters, n);
}

static bool rotate(stg_letters *l)
{
    size_t size = strlen(l->o->letters) + 8;
    char *from = malloc(size), *to = malloc(size);
    bool is_done = from != NULL && to != NULL;

    for (int n = STG_LETTERS_KEPT; n > 0 && is_done; n--) {
        name_of(l, n - 1, from, size);
        name_of(l, n, to, size);
        is_done = rename(from, to) == 0 || errno == ENOENT;
    }
    free(from);
    free(to);
    close_file(l);
    return is_done && open_file(l);
}

static bool write_whole(stg_letters *l, stg_span line)
{
    for (size_t at = 0; at < line.size;) {
        ssize_t written = write(l->fd, line.at + at, line.size - at);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            // Half a line is no line.
            if (l->is_regular && ftruncate(l->fd, (off_t)l->size) != 0)
                close_file(l);
            return false;
        }
        at += (size_t)written;
    }
    l->size += line.size;
    return true;
}

static bool write_line(stg_letters *l, stg_span line)
{
    if (!open_file(l))
        return false;
    if (l->is_regular && l->size > 0 &&
        l->size + line.size > l->o->letters_max &&
        (fdatasync(l->fd) != 0 || !rotate(l)))
        return false;
    return write_whole(l, line);
}

/* -- rows ------------------------------------------------------------------ */

typedef enum copied { COPIED_ALL, COPIED_SOME, COPIED_NONE } copied;

/* Some rows as lines, and the last one's version. A file may hang, and then no read
 * transaction may be open: so they are in memory first. */
static int collect(stg_letters *l, stg_line *lines, uint64_t *version,
                   bool *is_all)
{
    int rc = stg_sql_bind(l->read, "uu", l->version, (uint64_t)PIECE);
    size_t rows = 0;

    *version = l->version;
    *is_all = false;
    if (rc != SQLITE_OK)
        return rc;
    while (lines->size < PIECE_BYTES &&
           (rc = stg_sql_step(l->read)) == SQLITE_ROW) {
        stg_letter_write(lines, l->read);
        *version = stg_sql_column(l->read, STG_LETTER_COLUMNS);
        rows++;
    }
    stg_sql_reset(l->read);
    *is_all = rc == SQLITE_DONE && rows < PIECE;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static bool write_lines(stg_letters *l, const stg_line *lines)
{
    const char *at = lines->at, *end = lines->at + lines->size, *next;

    errno = ENOMEM;
    if (lines->is_short)
        return false;
    for (; at < end; at = next) {
        next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
        if (!write_line(l, (stg_span){at, (size_t)(next - at)}))
            return false;
    }
    return fdatasync(l->fd) == 0;
}

/* The next piece of the table. *rc: what SQLite said. */
static copied copy_rows(stg_letters *l, int *rc)
{
    stg_line lines = {.size = 0};
    uint64_t version;
    bool is_all, is_written = true;

    *rc = collect(l, &lines, &version, &is_all);
    if (*rc == SQLITE_OK && lines.size > 0)
        is_written = write_lines(l, &lines);
    l->error = errno;
    stg_line_free(&lines);
    if ((*rc & 0xff) == SQLITE_BUSY) {
        // Another process has the store for a moment.
        *rc = SQLITE_OK;
        l->error = EBUSY;
        return COPIED_NONE;
    }
    if (*rc != SQLITE_OK || !is_written)
        return COPIED_NONE;
    l->version = version;
    return is_all ? COPIED_ALL : COPIED_SOME;
}

static void tell_trouble(stg_letters *l)
{
    stg_inbox_tell(l->in, STG_STORE_LETTERS,
                   "%s: dead letters cannot be copied: %s; they are in the "
                   "store, and it is tried again",
                   l->o->letters, strerror(l->error));
    l->is_troubled = true;
}

static void tell_end_of_trouble(stg_letters *l)
{
    if (l->is_troubled)
        stg_inbox_tell(l->in, STG_STORE_LETTERS, NULL);
    l->is_troubled = false;
}

/* -- the thread ------------------------------------------------------------ */

/* Waits for new rows, or for a time. False: it is over. */
static bool take(stg_letters *l, copied last)
{
    stg_inbox *in = l->in;
    uint64_t until = uv_hrtime() + STG_S;
    bool goes_on = true;

    uv_mutex_lock(&in->lock);
    if (in->letters_version != l->version) {
        in->letters_version = l->version;
        uv_cond_signal(&in->writer_wake);
    }
    while (last != COPIED_SOME && !in->is_broken) {
        uint64_t now = uv_hrtime();

        if (last == COPIED_ALL && in->dead_groups != l->seen)
            break;
        if (in->is_written) {
            goes_on = false;
            break;
        }
        if (last == COPIED_NONE && now >= until)
            break;
        if (last == COPIED_NONE)
            uv_cond_timedwait(&in->letters_wake, &in->lock, until - now);
        else
            uv_cond_wait(&in->letters_wake, &in->lock);
    }
    l->seen = in->dead_groups;
    goes_on = goes_on && !in->is_broken;
    uv_mutex_unlock(&in->lock);
    return goes_on;
}

static void end(stg_letters *l)
{
    stg_job *ended = stg_job_new(STG_JOB_ENDED, NULL, 0);

    stg_sql_close(l->db);
    l->db = NULL;
    close_file(l);
    if (ended == NULL)
        abort();
    uv_mutex_lock(&l->in->lock);
    l->in->has_letters = false;
    uv_cond_signal(&l->in->writer_wake);
    uv_mutex_unlock(&l->in->lock);
    stg_inbox_answer(l->in, ended);
}

void stg_letters_run(void *letters)
{
    stg_letters *l = letters;
    copied last = COPIED_SOME;
    stg_error why;

    while (take(l, last)) {
        int rc;

        last = copy_rows(l, &rc);
        if (rc != SQLITE_OK) {
            stg_sql_words(&why, l->o->path, "dead letters cannot be read",
                          l->db, rc);
            stg_inbox_break(l->in, &why);
            break;
        }
        if (last == COPIED_NONE && !l->is_troubled)
            tell_trouble(l);
        else if (last != COPIED_NONE)
            tell_end_of_trouble(l);
    }
    end(l);
}

stg_status stg_letters_open(stg_letters *l, stg_error *err)
{
    int rc;

    l->fd = -1;
    if (!open_file(l)) {
        return stg_hub_refuse(
            err, STG_IO,
            "%s: dead letters cannot be written: %s; name a file in a "
            "directory that is there and writable",
            l->o->letters, strerror(errno));
    }
    rc = stg_sql_open_reader(&l->db, l->o->path);
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(l->db, &l->read,
                             "SELECT " STG_LETTER_SELECT
                             ", version FROM failed_broadcast_logs"
                             " WHERE version > ? ORDER BY version LIMIT ?");
    if (rc == SQLITE_OK)
        return STG_OK;
    stg_sql_words(err, l->o->path, "cannot be read", l->db, rc);
    return STG_IO;
}

void stg_letters_free(stg_letters *l)
{
    stg_sql_close(l->db);
    close_file(l);
}
