/* Fingerprints of the logs that partitions are of: see store/fingerprint.h.
 *
 * The store only keeps them. Whether a log is still the one that was read is
 * decided by who compares (kafka/log_check.c), before the partition is
 * claimed: so what is known is asked by the log's name, and stored by the
 * number.
 *
 * Writes are not fenced by a generation: a number stands for one epoch of a
 * log, whoever reads it. */
#include <stdlib.h>
#include <string.h>

#include "store/internal.h"

/* -- what is known --------------------------------------------------------- */

typedef struct looking {
    stg_store_request request;
    char *log;
    stg_known_log *all;
    size_t count, room;
    stg_known_logs_fn *done;
    void *ctx;
} looking;

static looking *looking_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, looking, request.link);
}

/* Also before each run of look(), which begins anew when the server went
 * away. */
static void clear(looking *l)
{
    for (size_t i = 0; i < l->count; i++)
        free((char *)l->all[i].topic);
    l->count = 0;
}

static bool make_room(looking *l)
{
    size_t room = l->room == 0 ? 64 : 2 * l->room;
    stg_known_log *all;

    if (l->count < l->room)
        return true;
    all = realloc(l->all, room * sizeof *all);
    if (all == NULL)
        return false;
    l->all = all;
    l->room = room;
    return true;
}

static stg_log_mark read_mark(stg_stmt *st, int column)
{
    return (stg_log_mark){.position = stg_sql_column(st, column),
                          .at_ms = stg_sql_column(st, column + 1),
                          .hash = stg_sql_bits(st, column + 2)};
}

/* A number without a row of its own has a zeroed print, which is not known. */
static int read_row(looking *l, stg_stmt *st)
{
    const char *topic = stg_sql_text(st, 1);
    char *same = topic == NULL ? NULL : stg_store_copy(topic);

    if (same == NULL || !make_room(l)) {
        free(same);
        return SQLITE_NOMEM;
    }
    l->all[l->count] =
        (stg_known_log){.topic = same,
                        .partition = (uint32_t)stg_sql_column(st, 2),
                        .number = (uint32_t)stg_sql_column(st, 0)};
    if (!stg_sql_is_null(st, 3)) {
        l->all[l->count].print.begin = stg_sql_column(st, 3);
        l->all[l->count].print.first = read_mark(st, 4);
        l->all[l->count].print.last = read_mark(st, 7);
    }
    l->count++;
    return SQLITE_OK;
}

/* Reads the newest number of each partition of the log: the older ones are
 * of topics that are gone, and prove nothing about what is there now. */
static int look(stg_store_request *e, stg_db *db)
{
    looking *l = looking_of(e);
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st,
        "SELECT p.number, topic, partition, log_begin, first_position,"
        " first_at, first_hash, last_position, last_at, last_hash"
        " FROM partitions p LEFT JOIN fingerprints f ON f.number = p.number"
        " WHERE log = ? AND NOT EXISTS (SELECT 1 FROM partitions q"
        " WHERE q.log = p.log AND q.topic = p.topic"
        " AND q.partition = p.partition AND q.number > p.number)"
        " ORDER BY topic, partition");

    clear(l);
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "s", l->log);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = read_row(l, st);
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void have_looked(stg_store_request *e)
{
    looking *l = looking_of(e);

    l->done(l->ctx, l->all, l->count);
}

static void free_looking(stg_store_request *e)
{
    looking *l = looking_of(e);

    clear(l);
    free(l->all);
    free(l->log);
    free(l);
}

void stg_store_known_logs(stg_store *s, const char *log,
                          stg_known_logs_fn *done, void *ctx)
{
    looking *l = calloc(1, sizeof *l);

    if (l == NULL || (l->log = stg_store_copy(log)) == NULL) {
        free(l);
        stg_store_lack_memory(s);
        return;
    }
    l->request.look = look;
    l->request.tell = have_looked;
    l->request.free = free_looking;
    l->done = done;
    l->ctx = ctx;
    stg_store_request_send(s, &l->request);
}

/* -- what is stored -------------------------------------------------------- */

typedef struct writing {
    stg_store_request request;
    size_t count;
    stg_known_log all[];
} writing;

static writing *writing_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, writing, request.link);
}

static int write_one(stg_stmt *st, const stg_known_log *one)
{
    const stg_fingerprint *f = &one->print;

    return stg_sql_run(st, "uuuuhuuh", (uint64_t)one->number, f->begin,
                       f->first.position, f->first.at_ms, f->first.hash,
                       f->last.position, f->last.at_ms, f->last.hash);
}

static int write_all(stg_store_request *e, stg_store_writer *w)
{
    const writing *wr = writing_of(e);
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        w->db, &st,
        "INSERT INTO fingerprints (number, log_begin, first_position, first_at,"
        " first_hash, last_position, last_at, last_hash)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET"
        " log_begin = excluded.log_begin,"
        " first_position = excluded.first_position,"
        " first_at = excluded.first_at, first_hash = excluded.first_hash,"
        " last_position = excluded.last_position,"
        " last_at = excluded.last_at, last_hash = excluded.last_hash");

    for (size_t i = 0; i < wr->count && rc == SQLITE_OK; i++)
        rc = write_one(st, &wr->all[i]);
    stg_sql_finalize(st);
    return rc;
}

/* Nobody waits for it, and is_full is no trouble: the older row proves as
 * much. */
static void have_written(stg_store_request *e)
{
    (void)e;
}

static void free_writing(stg_store_request *e)
{
    free(writing_of(e));
}

/* Copies the array, but not the topics, which are the caller's: `topic` of a
 * copy must not be read. */
void stg_store_put_fingerprints(stg_store *s, const stg_known_log *all,
                                size_t count)
{
    writing *w = calloc(1, sizeof *w + count * sizeof *all);

    if (w == NULL) {
        stg_store_lack_memory(s);
        return;
    }
    w->request.write = write_all;
    w->request.tell = have_written;
    w->request.free = free_writing;
    w->count = count;
    memcpy(w->all, all, count * sizeof *all);
    stg_store_request_send(s, &w->request);
}
