/* Rewinds as they are asked for: made, cancelled and listed. */
#include <stdlib.h>

#include "store/replay_job.h"
#include "store/rewinds.h"

enum { REMEMBERED = 20 }; /* rewinds of a lane */

/* -- made ------------------------------------------------------------------ */

/* Where the lane stands in a partition: all from there on it still gets. */
typedef struct stand {
    uint32_t partition;
    uint64_t position;
} stand;

typedef struct making {
    stg_store_request request;
    stg_rewind_start start;
    stg_rewound how;
    uint64_t number;
    stand *stands;
    size_t count, room;
    bool is_short;
    stg_rewound_fn *done;
    void *ctx;
} making;

static making *making_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, making, request.link);
}

/* Shards have a cursor each: the furthest counts. Rows come by partition. */
static void note_stand(void *ctx, const stg_cursor *c)
{
    making *m = ctx;
    uint64_t position = c->base;

    if (c->lane != m->start.lane)
        return;
    if (c->settled_count > 0)
        position =
            stg_ns_max(position, c->settled[c->settled_count - 1].last + 1);
    if (m->count > 0 && m->stands[m->count - 1].partition == c->partition) {
        stand *last = &m->stands[m->count - 1];

        last->position = stg_ns_max(last->position, position);
        return;
    }
    if (m->count == m->room) {
        size_t room = m->room == 0 ? 32 : 2 * m->room;
        stand *stands = realloc(m->stands, room * sizeof *stands);

        m->is_short |= stands == NULL;
        if (stands == NULL)
            return;
        m->stands = stands;
        m->room = room;
    }
    m->stands[m->count++] = (stand){c->partition, position};
}

/* Of a topic that was made again only the newest number counts: the log has the
 * others no more. */
static int find_stands(making *m, stg_db *db)
{
    uint32_t slice = m->start.lane / STG_SLICE;
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st,
        "SELECT partition, lanes FROM cursors WHERE slice = ?"
        " AND (partition = 0 OR partition IN (SELECT max(number)"
        " FROM partitions GROUP BY log, topic, partition)) ORDER BY partition");

    m->count = 0;
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "u", (uint64_t)slice);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = stg_cursors_parse(stg_sql_column_span(st, 1),
                               (uint32_t)stg_sql_column(st, 0), slice,
                               note_stand, m)
                 ? SQLITE_OK
                 : SQLITE_CORRUPT;
    stg_sql_finalize(st);
    if (m->is_short)
        return SQLITE_NOMEM;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int count_running(stg_db *db, uint32_t lane, uint64_t *count)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(db, &st,
                                  "SELECT count(*) FROM rewinds WHERE lane = ?"
                                  " AND state IN ('new', 'running')");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "u", (uint64_t)lane);
    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, count);
    stg_sql_finalize(st);
    return rc;
}

/* Older ones are forgotten, and those of targets that were. */
static int forget_old(stg_db *db, uint32_t lane, uint64_t number)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st,
        "DELETE FROM rewinds WHERE (lane = ?1 AND number + ?2 < ?3)"
        " OR lane IN (SELECT number FROM lanes WHERE is_forgotten = 1)");

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "uuu", (uint64_t)lane, (uint64_t)REMEMBERED,
                         number);
    stg_sql_finalize(st);
    return rc;
}

static bool is_of(const stg_rewind_start *start, const stand *at)
{
    return start->since > 0 || start->partition == STG_NO_PARTITION ||
           start->partition == at->partition;
}

static int add_row(const making *m, stg_stmt *st, const stand *at, stg_ns now)
{
    const stg_rewind_start *start = &m->start;
    bool is_exact = start->since == 0 && start->partition == at->partition;

    return stg_sql_run(
        st, "uuusoouuu", (uint64_t)start->lane, m->number,
        (uint64_t)at->partition, start->is_one ? "running" : "new",
        start->is_one ? start->position : 0, start->since / STG_MS,
        is_exact ? start->position : 0,
        start->is_one ? start->position + 1 : at->position, now / STG_MS);
}

static int add_rows(making *m, stg_db *db)
{
    stg_ns now = stg_sql_now(db);
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st,
        "INSERT INTO rewinds (lane, number, partition, state, first, since,"
        " position, until, began_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");

    for (size_t i = 0; i < m->count && rc == SQLITE_OK; i++)
        if (is_of(&m->start, &m->stands[i]))
            rc = add_row(m, st, &m->stands[i], now);
    stg_sql_finalize(st);
    return rc;
}

static bool has_stand(const making *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (is_of(&m->start, &m->stands[i]))
            return true;
    return false;
}

static int write_rewind(stg_store_request *e, stg_store_writer *w)
{
    making *m = making_of(e);
    uint64_t running = 0;
    int rc = count_running(w->db, m->start.lane, &running);

    m->how = STG_REWOUND_RUNNING;
    if (rc == SQLITE_OK && running == 0)
        rc = find_stands(m, w->db);
    if (rc != SQLITE_OK || running > 0)
        return rc;
    m->how = STG_REWOUND_NOTHING;
    if (!has_stand(m))
        return SQLITE_OK;
    m->how = STG_REWOUND_NO_ROOM;
    rc = stg_rewind_take_number(w->db, m->start.lane, &m->number);
    if (rc != SQLITE_OK || m->number == 0)
        return rc;
    m->how = STG_REWOUND;
    rc = forget_old(w->db, m->start.lane, m->number);
    return rc == SQLITE_OK ? add_rows(m, w->db) : rc;
}

static void tell_made(stg_store_request *e)
{
    const making *m = making_of(e);

    if (!e->is_full && m->how == STG_REWOUND)
        stg_store_start_rewinds(e->s);
    m->done(m->ctx, e->is_full ? STG_REWOUND_NO_ROOM : m->how, m->number);
}

static void free_making(stg_store_request *e)
{
    free(making_of(e)->stands);
    free(making_of(e));
}

void stg_store_rewind(stg_store *s, const stg_rewind_start *start,
                      stg_rewound_fn *done, void *ctx)
{
    making *m = stg_store_new_request(s, sizeof *m);

    if (m == NULL)
        return;
    m->request.write = write_rewind;
    m->request.tell = tell_made;
    m->request.free = free_making;
    m->start = *start;
    m->done = done;
    m->ctx = ctx;
    stg_store_request_send(s, &m->request);
}

/* -- cancelled ------------------------------------------------------------- */

typedef struct cancelling {
    stg_store_request request;
    uint32_t lane;
    bool is_known;
    stg_rewind_cancelled_fn *done;
    void *ctx;
} cancelling;

static int write_cancel(stg_store_request *e, stg_store_writer *w)
{
    cancelling *c = STG_HOLDER(&e->link, cancelling, request.link);
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        w->db, &st,
        "UPDATE rewinds SET state = 'cancelled', ended_at = ?2"
        " WHERE lane = ?1 AND state IN ('new', 'running')");

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "uu", (uint64_t)c->lane,
                         stg_sql_now(w->db) / STG_MS);
    if (rc == SQLITE_OK)
        c->is_known = stg_sql_changes(st, &rc) > 0;
    stg_sql_finalize(st);
    return rc;
}

static void tell_cancelled(stg_store_request *e)
{
    const cancelling *c = STG_HOLDER(&e->link, cancelling, request.link);

    c->done(c->ctx, c->is_known, e->is_full);
}

static void free_cancelling(stg_store_request *e)
{
    free(STG_HOLDER(&e->link, cancelling, request.link));
}

void stg_store_cancel_rewind(stg_store *s, uint32_t lane,
                             stg_rewind_cancelled_fn *done, void *ctx)
{
    cancelling *c = stg_store_new_request(s, sizeof *c);

    if (c == NULL)
        return;
    c->request.write = write_cancel;
    c->request.tell = tell_cancelled;
    c->request.free = free_cancelling;
    c->lane = lane;
    c->done = done;
    c->ctx = ctx;
    stg_store_request_send(s, &c->request);
}

/* -- looked up ------------------------------------------------------------- */

typedef struct listing {
    stg_store_request request;
    uint32_t lane;
    stg_rewind_view all[REMEMBERED];
    size_t count;
    stg_rewinds_fn *done;
    void *ctx;
} listing;

static void read_view(stg_rewind_view *v, stg_stmt *st)
{
    *v = (stg_rewind_view){.number = stg_sql_column(st, 0),
                           .partitions = stg_sql_column(st, 1),
                           .begun = stg_sql_column(st, 2),
                           .is_running = stg_sql_column(st, 3) > 0,
                           .is_cancelled = stg_sql_column(st, 4) > 0,
                           .since = stg_sql_column(st, 5) * STG_MS,
                           .began_at = stg_sql_column(st, 6) * STG_MS,
                           .ended_at = stg_sql_column(st, 7) * STG_MS,
                           .messages = stg_sql_column(st, 8),
                           .passed = stg_sql_column(st, 9),
                           .sent = stg_sql_column(st, 10)};
    if (v->is_running)
        v->ended_at = 0;
}

/* sum() of whole numbers is no whole number in PostgreSQL. */
#define SUM(what) "CAST(coalesce(sum(" what "), 0) AS BIGINT)"

static int look_list(stg_store_request *e, stg_db *db)
{
    listing *l = STG_HOLDER(&e->link, listing, request.link);
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st,
        "SELECT number, count(*), count(first),"
        " " SUM("CASE WHEN state IN ('new', 'running') THEN 1 ELSE 0 END") ","
        " " SUM("CASE WHEN state = 'cancelled' THEN 1 ELSE 0 END") ","
        " coalesce(max(since), 0), min(began_at), coalesce(max(ended_at), 0),"
        " " SUM("until - first") ", " SUM("position - first") ", " SUM("sent")
        " FROM rewinds WHERE lane = ? GROUP BY number"
        " ORDER BY number DESC LIMIT ?");

    l->count = 0;
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "uu", (uint64_t)l->lane, (uint64_t)REMEMBERED);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        read_view(&l->all[l->count++], st);
        rc = SQLITE_OK;
    }
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void tell_list(stg_store_request *e)
{
    const listing *l = STG_HOLDER(&e->link, listing, request.link);

    l->done(l->ctx, l->all, l->count);
}

static void free_list(stg_store_request *e)
{
    free(STG_HOLDER(&e->link, listing, request.link));
}

void stg_store_rewinds(stg_store *s, uint32_t lane, stg_rewinds_fn *done,
                       void *ctx)
{
    listing *l = stg_store_new_request(s, sizeof *l);

    if (l == NULL)
        return;
    l->request.look = look_list;
    l->request.tell = tell_list;
    l->request.free = free_list;
    l->lane = lane;
    l->done = done;
    l->ctx = ctx;
    stg_store_request_send(s, &l->request);
}
