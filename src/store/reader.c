/* The reader: messages of the queue and parked rows, for flow.
 *
 * It has a connection of its own, and no read transaction outlives a request:
 * else the WAL could not be reset. Requests are taken in their order, but for a
 * read that waits for messages that are not there yet: the others pass it. A
 * fetch is not answered while a replay commits, so that flow hears of the replay
 * before it sees its rows. */
#include <stdlib.h>

#include "host/process.h"
#include "store/internal.h"
#include "store/postgres/open.h"
#include "store/sqlite.h"

/* One list for reads and fetches: the reader takes the first that is ready. */
static void ask_reader(stg_store *s, stg_store_request *e)
{
    uv_mutex_lock(&s->in.lock);
    stg_list_push(&s->in.reads, &e->link);
    uv_cond_signal(&s->in.reader_wake);
    uv_mutex_unlock(&s->in.lock);
}

/* -- messages -------------------------------------------------------------- */

typedef struct reading {
    stg_store_request request;
    uint64_t from;
    size_t bytes_max;
    bool waits;
    stg_read_fn *done;
    void *ctx;
    uint64_t seen; /* what waits: nothing was found below */
    stg_chunk found;
} reading;

static reading *reading_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, reading, request.link);
}

/* `seen` keeps a read that waits from being tried again before something new is
 * durable. */
static bool is_ready(stg_store_request *e, const stg_request_queue *in)
{
    reading *r = reading_of(e);

    if (r->waits && (r->from >= in->next || r->seen >= in->next))
        return false;
    r->seen = in->next;
    return true;
}

static int read_messages(stg_store_request *e, stg_store_reader *reader)
{
    reading *r = reading_of(e);
    int rc = stg_queue_read(&reader->queue, r->from, r->bytes_max, &r->found);

    return rc == SQLITE_OK && r->waits && r->found.count == 0 ? SQLITE_DONE
                                                              : rc;
}

/* Without records it goes on from where it was; gaps are passed by the last
 * position. */
static void tell_messages(stg_store_request *e)
{
    const reading *r = reading_of(e);
    const stg_chunk *f = &r->found;

    r->done(r->ctx, f->records, f->count,
            f->count == 0 ? r->from : f->records[f->count - 1].position + 1);
}

static void free_reading(stg_store_request *e)
{
    reading *r = reading_of(e);

    stg_chunk_free(&r->found);
    free(r);
}

void stg_store_read(stg_store *s, uint64_t from, size_t bytes_max, bool waits,
                    stg_read_fn *done, void *ctx)
{
    reading *r = stg_store_new_request(s, sizeof *r);

    if (r == NULL)
        return;
    r->request.read = read_messages;
    r->request.is_ready = is_ready;
    r->request.tell = tell_messages;
    r->request.free = free_reading;
    r->from = from;
    r->bytes_max = bytes_max;
    r->waits = waits;
    r->done = done;
    r->ctx = ctx;
    // With PostgreSQL there is no queue, and nothing ever comes.
    if (s->url != NULL && waits)
        free_reading(&r->request);
    else if (s->url != NULL)
        stg_request_queue_answer(&s->in, &r->request);
    else
        ask_reader(s, &r->request);
}

/* -- parked rows ----------------------------------------------------------- */

typedef struct fetching {
    stg_store_request request;
    uint32_t lane;
    uint32_t rows_max;
    bool is_replay;
    stg_mark after;
    char *claimed; /* "{1,7}": of these partitions only; NULL: of all */
    stg_fetch_fn *done;
    void *ctx;
    stg_fetched found;
} fetching;

static fetching *fetching_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, fetching, request.link);
}

static void wait_for_replay(stg_request_queue *in)
{
    uv_mutex_lock(&in->lock);
    while (in->is_replaying && !in->is_broken)
        uv_cond_wait(&in->reader_wake, &in->lock);
    uv_mutex_unlock(&in->lock);
}

static int fetch_rows(stg_store_request *e, stg_store_reader *reader)
{
    fetching *f = fetching_of(e);
    int rc =
        stg_rows_fetch(f->is_replay ? reader->fetch_replays : reader->fetch,
                       f->lane, &f->after, f->rows_max, f->claimed, &f->found);

    if (rc == SQLITE_OK)
        wait_for_replay(reader->in);
    return rc;
}

/* Drops rows of partitions that were let go since the fetch was sent: their
 * next owner has them by now. */
static void drop_unclaimed(const stg_store *s, stg_fetched *f)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->count; i++) {
        const stg_partition_row *p =
            stg_partitions_get(&s->partitions, f->rows[i].partition);

        if (f->rows[i].partition == 0 || (p != NULL && p->is_claimed))
            f->rows[kept++] = f->rows[i];
    }
    f->count = kept;
}

static void tell_rows(stg_store_request *e)
{
    fetching *f = fetching_of(e);

    if (e->s->url != NULL)
        drop_unclaimed(e->s, &f->found);
    f->done(f->ctx, f->lane, f->is_replay, f->found.rows, f->found.count,
            f->found.is_all);
}

static void free_fetching(stg_store_request *e)
{
    fetching *f = fetching_of(e);

    stg_fetched_free(&f->found);
    free(f->claimed);
    free(f);
}

void stg_store_fetch(stg_store *s, uint32_t lane, bool is_replay,
                     const stg_mark *after, uint32_t rows_max,
                     stg_fetch_fn *done, void *ctx)
{
    fetching *f = stg_store_new_request(s, sizeof *f);

    if (f == NULL)
        return;
    f->request.read = fetch_rows;
    f->request.tell = tell_rows;
    f->request.free = free_fetching;
    f->lane = lane;
    f->is_replay = is_replay;
    f->after = *after;
    f->rows_max = rows_max;
    f->done = done;
    f->ctx = ctx;
    f->claimed = s->url == NULL ? NULL : stg_store_claimed(s);
    if (s->url != NULL && f->claimed == NULL) {
        free_fetching(&f->request);
        stg_store_lack_memory(s);
        return;
    }
    ask_reader(s, &f->request);
}

/* -- the thread ------------------------------------------------------------ */

static stg_store_request *first_ready(stg_request_queue *in)
{
    for (stg_link *link = stg_list_first(&in->reads); link != NULL;
         link = stg_list_next(&in->reads, link)) {
        stg_store_request *e = STG_HOLDER(link, stg_store_request, link);

        if (e->is_ready != NULL && !e->is_ready(e, in))
            continue;
        stg_list_remove(link);
        return e;
    }
    return NULL;
}

/* NULL: the store closes, or broke. */
static stg_store_request *take(stg_request_queue *in)
{
    stg_store_request *e = NULL;

    uv_mutex_lock(&in->lock);
    while (!in->is_broken && (e = first_ready(in)) == NULL &&
           in->stage < STG_QUEUE_WRITTEN)
        uv_cond_wait(&in->reader_wake, &in->lock);
    uv_mutex_unlock(&in->lock);
    return e;
}

/* At the end of the list, where it does not hold up others. */
static void put_back(stg_request_queue *in, stg_store_request *e)
{
    uv_mutex_lock(&in->lock);
    stg_list_push(&in->reads, &e->link);
    uv_mutex_unlock(&in->lock);
}

/* False: the store is broken, or the server is away and it closes. */
static bool serve(stg_store_reader *r, stg_store_request *e)
{
    stg_error why;
    int rc;

    do
        rc = e->read(e, r);
    while (rc != SQLITE_OK && rc != SQLITE_DONE &&
           stg_store_again(&r->again, r->db, rc));
    if (rc == SQLITE_DONE) {
        put_back(r->in, e);
        return true;
    }
    if (rc == SQLITE_OK) {
        stg_request_queue_answer(r->in, e);
        return true;
    }
    e->free(e);
    if (rc == STG_SQL_AWAY)
        return false;
    stg_sql_words(&why, r->o->path, "cannot be read", r->db, rc);
    stg_request_queue_break(r->in, &why);
    return false;
}

void stg_store_reader_run(void *reader)
{
    stg_store_reader *r = reader;
    stg_store_request *e;

    stg_thread_name("store-reader");
    while ((e = take(r->in)) != NULL && serve(r, e))
        ;
    stg_sql_close(r->db);
    r->db = NULL;
    stg_request_queue_leave(r->in);
}

int stg_store_reader_open(stg_store_reader *r)
{
    int rc =
        stg_store_connect_again(&r->again, r->in, &r->db, r->url, r->o->path);

    if (rc == SQLITE_OK && r->url == NULL)
        rc = stg_queue_reader_prepare(&r->queue, r->db);
    if (rc == SQLITE_OK)
        rc = stg_rows_prepare_fetch(r->db, false, &r->fetch);
    return rc == SQLITE_OK
               ? stg_rows_prepare_fetch(r->db, true, &r->fetch_replays)
               : rc;
}

void stg_store_reader_free(stg_store_reader *r)
{
    stg_sql_close(r->db);
}

/* -- asking again ---------------------------------------------------------- */

static const uint64_t PATIENCE = 10 * STG_S; /* from when it closes */

/* Also while an answer is waited for: a server may hang. */
static bool is_over(void *ctx)
{
    stg_read_retry *a = ctx;
    uint64_t now = uv_hrtime();
    bool over;

    uv_mutex_lock(&a->in->lock);
    if (a->in->stage >= STG_QUEUE_CLOSING && a->closing_at == 0)
        a->closing_at = now;
    over = a->in->is_broken ||
           (a->closing_at > 0 && now - a->closing_at >= PATIENCE);
    uv_mutex_unlock(&a->in->lock);
    return over;
}

/* A file is asked again for as long as it takes; a server until PATIENCE after
 * the store began to close. */
bool stg_store_again(stg_read_retry *a, stg_db *db, int rc)
{
    // Another process has it for a moment; nothing was read yet.
    if ((rc & 0xff) == SQLITE_BUSY)
        return !stg_request_queue_is_broken(a->in);
    return rc == STG_SQL_AWAY && !is_over(a) &&
           stg_sql_revive(db, is_over, a) == SQLITE_OK &&
           !stg_request_queue_is_broken(a->in);
}

int stg_store_connect(stg_db **db, const char *url, const char *path)
{
    return url != NULL ? stg_pg_open_another(db, url)
                       : stg_sql_open_reader(db, path);
}

int stg_store_connect_again(stg_read_retry *a, stg_request_queue *in,
                            stg_db **db, const char *url, const char *path)
{
    int rc = stg_store_connect(db, url, path);

    *a = (stg_read_retry){.in = in};
    if (rc == SQLITE_OK && url != NULL)
        stg_pg_watch(*db, is_over, a);
    return rc;
}
