/* The copy of the dead letters, in a file or by a sink: on a thread of its own.
 *
 * What is durable when: rows are read in the order of their versions, written,
 * and synced (fdatasync; a sink answers when they are durable there); only then
 * the version that was reached is told to the writer, which notes it in `meta`
 * within a second (with PostgreSQL: in each row). So a crash repeats letters, and
 * loses none. A line that a crash has cut is cut off when the file is opened, and
 * its row comes again. Letters count as copied when they are in the file that the
 * path names: see host/lines.h. */
#include "store/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "host/process.h"
#include "store/letter.h"
#include "store/reader.h"
#include "store/sqlite.h"
#include "store/store_names.h"

enum {
    PIECE = 256,       /* rows between two syncs */
    SHARED_PIECE = 32, /* of a server they come all at once */
    PIECE_BYTES = 1 << 20,
};

/* -- rows ------------------------------------------------------------------ */

typedef enum copied { COPIED_ALL, COPIED_SOME, COPIED_NONE } copied;

/* Counts the large columns only. */
static uint64_t bytes_of(const stg_found *found)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < found->count; i++)
        bytes += found->letters[i].payload_size +
                 found->letters[i].source_headers.size;
    return bytes;
}

static int bind_read(stg_letters *l)
{
    if (l->url == NULL)
        return stg_sql_bind(l->read, "uu", l->version, (uint64_t)PIECE);
    return stg_sql_bind(l->read, "su", l->claimed, (uint64_t)SHARED_PIECE);
}

/* Some rows. A file may hang, and then no read transaction may be open: so they
 * are in memory first. */
static int collect(stg_letters *l, bool *is_all)
{
    size_t most = l->url == NULL ? PIECE : SHARED_PIECE;
    int rc = bind_read(l);

    l->count = 0;
    *is_all = false;
    if (rc == SQLITE_OK && !stg_found_clear(&l->found, PIECE))
        rc = SQLITE_NOMEM;
    if (rc != SQLITE_OK)
        return rc;
    while (bytes_of(&l->found) < PIECE_BYTES &&
           (rc = stg_sql_step(l->read)) == SQLITE_ROW) {
        if (!stg_find_add(&l->found, l->read, PIECE)) {
            rc = SQLITE_NOMEM;
            break;
        }
        l->ids[l->count] = stg_sql_column(l->read, 0);
        l->versions[l->count++] =
            stg_sql_column(l->read, STG_FIND_CHANGED_VERSION);
    }
    stg_sql_reset(l->read);
    *is_all = rc == SQLITE_DONE && l->count < most;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A batch of lines on its way to the file. */
typedef struct letter_batch {
    stg_letters *letters;
    size_t written; /* lines that are in the file */
    int error;      /* errno of the line behind them; 0: there is none */
} letter_batch;

/* errno is set beforehand, for a line that lacked memory sets none. */
static void letters_write_lines(void *batch)
{
    letter_batch *b = batch;
    const stg_found *found = &b->letters->found;
    stg_text line = {.size = 0};

    b->error = 0;
    for (b->written = 0; b->written < found->count; b->written++) {
        stg_text_clear(&line);
        stg_letter_write(&line, &found->letters[b->written]);
        errno = ENOMEM;
        if (line.is_short || !stg_lines_write(&b->letters->lines,
                                              (stg_span){line.at, line.size})) {
            b->error = errno;
            break;
        }
    }
    stg_text_free(&line);
}

static bool fail(stg_letters *l, const char *reason)
{
    snprintf(l->why.text, sizeof l->why.text,
             "%s: dead letters cannot be "
             "copied: %s; they are in the store, and it is tried again",
             l->o->letters, reason);
    return false;
}

/* Letters that are in the file are not written again, as of a sink. */
static bool letters_write_file(stg_letters *l)
{
    letter_batch b = {.letters = l};
    bool is_kept = stg_lines_append(&l->lines, true, letters_write_lines, &b);

    if (!is_kept)
        b = (letter_batch){.error = errno};
    l->count = b.written;
    return b.error == 0 || fail(l, stg_lines_error(b.error));
}

/* Letters that the sink has are not written again, whatever became of the
 * rest. */
static bool write_sink(stg_letters *l)
{
    stg_letter_report report = {.written = 0};
    bool is_written =
        l->o->sink.write(l->o->sink.ctx, l->found.letters, l->found.count,
                         &report, &l->why) == STG_OK;

    l->count = report.written;
    if (report.cut + report.left_out > 0)
        stg_request_queue_tell(l->in, STG_STORE_LETTERS_CUT, "%s",
                               report.why.text);
    return is_written;
}

/* True: all of them are durable there. The first l->count are in any case. */
static bool write_out(stg_letters *l)
{
    if (l->count == 0)
        return true;
    return l->o->sink.write != NULL ? write_sink(l) : letters_write_file(l);
}

/* In the rows themselves; what has changed since is copied again. */
static int mark_rows(stg_letters *l)
{
    int rc = stg_sql_begin(l->db, NULL, NULL);

    for (size_t i = 0; i < l->count && rc == SQLITE_OK; i++)
        rc = stg_sql_run(l->mark, "uu", l->ids[i], l->versions[i]);
    return stg_sql_end(l->db, rc, l->o->path, &l->why);
}

/* In a file the version is told to the writer by take(), and noted there; the
 * rows of a server say it themselves. */
static int note_copied(stg_letters *l)
{
    if (l->count == 0)
        return SQLITE_OK;
    l->version = l->versions[l->count - 1];
    return l->url == NULL ? SQLITE_OK : mark_rows(l);
}

/* The next piece of the table. *rc: what the database said. */
static copied copy_rows(stg_letters *l, int *rc)
{
    bool is_all, is_written = true;

    *rc = collect(l, &is_all);
    if (*rc == SQLITE_OK)
        is_written = write_out(l);
    if (*rc == SQLITE_OK)
        *rc = note_copied(l);
    if ((*rc & 0xff) == SQLITE_BUSY) {
        // Another process has the store for a moment.
        *rc = SQLITE_OK;
        fail(l, "another process writes to the store");
        return COPIED_NONE;
    }
    if (*rc != SQLITE_OK || !is_written)
        return COPIED_NONE;
    return is_all ? COPIED_ALL : COPIED_SOME;
}

static void tell_trouble(stg_letters *l)
{
    stg_request_queue_tell(l->in, STG_STORE_LETTERS, "%s", l->why.text);
    l->is_troubled = true;
}

static void tell_end_of_trouble(stg_letters *l)
{
    if (l->is_troubled)
        stg_request_queue_tell(l->in, STG_STORE_LETTERS, NULL);
    l->is_troubled = false;
}

/* -- the thread ------------------------------------------------------------ */

/* False: no memory. The lock is held. */
static bool take_claimed(stg_letters *l)
{
    if (l->url == NULL)
        return true;
    free(l->claimed);
    l->claimed = strdup(l->in->claimed);
    return l->claimed != NULL;
}

/* Waits for new rows, or for a time. False: it is over. */
static bool take(stg_letters *l, copied last)
{
    stg_request_queue *in = l->in;
    uint64_t until = uv_hrtime() + STG_S;
    bool goes_on = true;

    uv_mutex_lock(&in->lock);
    if (l->url == NULL && in->letters_version != l->version) {
        in->letters_version = l->version;
        uv_cond_signal(&in->writer_wake);
    }
    while (last != COPIED_SOME && !in->is_broken) {
        uint64_t now = uv_hrtime();

        if (last == COPIED_ALL && in->dead_groups != l->seen)
            break;
        if (in->stage == STG_QUEUE_WRITTEN) {
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
    goes_on = goes_on && !in->is_broken && take_claimed(l);
    uv_mutex_unlock(&in->lock);
    return goes_on;
}

/* Leaving the queue is the last call: the store may be freed behind it. */
static void end(stg_letters *l)
{
    stg_sql_close(l->db);
    l->db = NULL;
    stg_lines_close(&l->lines);
    stg_request_queue_leave(l->in);
}

/* The thread that copies: what could not be written is tried again, and is told
 * once. */
void stg_letters_run(void *letters)
{
    stg_letters *l = letters;
    copied last = COPIED_SOME;
    stg_error why;

    stg_thread_name("store-letters");
    while (take(l, last)) {
        int rc;

        do
            last = copy_rows(l, &rc);
        while (rc != SQLITE_OK && stg_store_again(&l->again, l->db, rc));
        if (rc == STG_SQL_AWAY)
            break;
        if (rc != SQLITE_OK) {
            stg_sql_words(&why, l->o->path, "dead letters cannot be read",
                          l->db, rc);
            stg_request_queue_break(l->in, &why);
            break;
        }
        if (last == COPIED_NONE && !l->is_troubled)
            tell_trouble(l);
        else if (last != COPIED_NONE)
            tell_end_of_trouble(l);
    }
    end(l);
}

static int prepare(stg_letters *l)
{
    int rc =
        stg_store_connect_again(&l->again, l->in, &l->db, l->url, l->o->path);

    if (rc != SQLITE_OK)
        return rc;
    rc = stg_find_prepare_changed(l->db, &l->read);
    return rc == SQLITE_OK && l->url != NULL
               ? stg_sql_prepare(l->db, &l->mark,
                                 "UPDATE failed_broadcast_logs"
                                 " SET sent_version = ?2 WHERE id = ?1")
               : rc;
}

/* The store's files are those of a URL nowhere. */
static stg_status letters_check_file(stg_letters *l, stg_error *err)
{
    l->lines.path = l->o->letters;
    l->lines.begins = "{\"id\": #, \"message_id\": \"";
    if (l->url == NULL) {
        l->lines.is_taken = stg_store_has_file;
        l->lines.taken_ctx = (void *)l->o->path;
    }
    if (stg_lines_check(&l->lines))
        return STG_OK;
    return stg_hub_refuse(
        err, stg_hub_file_status(errno),
        "%s: dead letters cannot be written: %s; name a file in a "
        "directory that is there and writable",
        l->o->letters, stg_lines_error(errno));
}

stg_status stg_letters_open(stg_letters *l, stg_error *err)
{
    stg_status status =
        l->o->sink.write != NULL ? STG_OK : letters_check_file(l, err);
    int rc;

    if (status != STG_OK)
        return status;
    l->ids = calloc(PIECE, sizeof *l->ids);
    l->versions = calloc(PIECE, sizeof *l->versions);
    rc = l->ids == NULL || l->versions == NULL ? SQLITE_NOMEM : prepare(l);
    if (rc == SQLITE_OK)
        return STG_OK;
    if (l->db == NULL)
        return stg_hub_refuse(err, STG_IO, "%s: there is no memory left",
                              l->o->path);
    stg_sql_words(err, l->o->path, "cannot be read", l->db, rc);
    return STG_IO;
}

void stg_letters_free(stg_letters *l)
{
    stg_sql_close(l->db);
    stg_found_free(&l->found);
    free(l->ids);
    free(l->versions);
    free(l->claimed);
    stg_lines_close(&l->lines);
}
