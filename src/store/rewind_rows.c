/* Rewinds in their table, as the job goes through them: begun and moved on by the
 * writer, looked up by the query thread. */
#include <stdlib.h>

#include "store/replay_job.h"
#include "store/rewinds.h"

enum {
    REPLAYS = 256, /* numbers of replays that a rewind has for itself: of its
                      dead letters, sent again */
    NUMBER_MAX = INT32_MAX / REPLAYS - 1,
};

int stg_rewind_take_number(stg_db *db, uint32_t lane, uint64_t *number)
{
    stg_stmt *raise, *read = NULL;
    int rc = stg_sql_prepare_once(
        db, &raise,
        "UPDATE lanes SET rewinds = rewinds + 1"
        " WHERE number = ? AND is_forgotten = 0 AND rewinds < ?");

    *number = 0;
    if (rc == SQLITE_OK)
        rc = stg_sql_run(raise, "uu", (uint64_t)lane, (uint64_t)NUMBER_MAX);
    if (rc == SQLITE_OK && stg_sql_changes(raise, &rc) > 0 && rc == SQLITE_OK)
        rc = stg_sql_prepare_once(db, &read,
                                  "SELECT rewinds FROM lanes WHERE number = ?");
    if (rc == SQLITE_OK && read != NULL)
        rc = stg_sql_bind(read, "u", (uint64_t)lane);
    if (rc == SQLITE_OK && read != NULL)
        rc = stg_sql_number(read, number);
    stg_sql_finalize(raise);
    stg_sql_finalize(read);
    return rc;
}

/* -- begun ----------------------------------------------------------------- */

/* Of the queue the writer finds the time; of other logs who reads them has. */
static int find_begin(stg_store_writer *w, stg_again *a)
{
    int rc = SQLITE_OK;

    if (a->partition != 0)
        return SQLITE_OK;
    if (a->since > 0)
        rc = stg_queue_younger(&w->queue, a->since, 0, &a->position);
    a->position = stg_ns_max(a->position, w->queue.is.first);
    return rc;
}

int stg_rewind_begin(stg_store_writer *w, stg_replay_job_step *s)
{
    stg_again *a = s->r->again;
    stg_stmt *st;
    int rc = find_begin(w, a);
    bool is_over = a->position >= a->until;

    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(
            w->db, &st,
            "UPDATE rewinds SET state = ?4, first = ?5, position = ?5,"
            " until = ?6, ended_at = ?7 WHERE lane = ?1 AND number = ?2"
            " AND partition = ?3 AND state = 'new'");
    if (rc != SQLITE_OK)
        return rc;
    a->until = stg_ns_max(a->until, a->position);
    rc = stg_sql_run(st, "uuusuuo", (uint64_t)a->lane, a->number,
                     (uint64_t)a->partition, is_over ? "done" : "running",
                     a->position, a->until,
                     is_over ? stg_sql_now(w->db) / STG_MS : 0);
    s->out[0].is_done = rc == SQLITE_OK && stg_sql_changes(st, &rc) > 0;
    stg_sql_finalize(st);
    return rc;
}

/* -- moved on -------------------------------------------------------------- */

/* Whether it is under way, and goes on where the piece begins. */
static int is_current(stg_store_writer *w, const stg_again *a, uint64_t from,
                      bool *is_it)
{
    uint64_t count = 0;
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        w->db, &st,
        "SELECT count(*) FROM rewinds WHERE lane = ? AND number = ?"
        " AND partition = ? AND state = 'running' AND position = ?"
        " AND lane NOT IN (SELECT number FROM lanes WHERE is_forgotten = 1)");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "uuuu", (uint64_t)a->lane, a->number,
                          (uint64_t)a->partition, from);
    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, &count);
    stg_sql_finalize(st);
    *is_it = count > 0;
    return rc;
}

static int move_on(stg_store_writer *w, const stg_again *a,
                   const stg_replayed *out)
{
    bool is_over = out->next >= a->until;
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        w->db, &st,
        "UPDATE rewinds SET position = ?4, sent = sent + ?5, state = ?6,"
        " ended_at = ?7 WHERE lane = ?1 AND number = ?2 AND partition = ?3");

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "uuuuuso", (uint64_t)a->lane, a->number,
                         (uint64_t)a->partition, out->next, out->messages,
                         is_over ? "done" : "running",
                         is_over ? stg_sql_now(w->db) / STG_MS : 0);
    stg_sql_finalize(st);
    return rc;
}

/* The keys of what the rewind has parked, and has not ended. There are no more
 * than a lane has room for. */
static int find_waiting(stg_store_writer *w, const stg_again *a,
                        stg_again_bite *b)
{
    size_t room = 0;
    stg_stmt *st;
    int rc;

    if (b->order == STG_ORDER_NONE)
        return SQLITE_OK;
    rc = stg_sql_prepare_once(
        w->db, &st,
        "SELECT DISTINCT key_hash FROM parked WHERE lane = ?"
        " AND partition = ? AND replay > 0 AND replay >= ? AND replay < ?");
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "uuuu", (uint64_t)a->lane, (uint64_t)a->partition,
                          (uint64_t)b->replay, (uint64_t)b->replay + REPLAYS);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        if (b->waiting_count == room) {
            uint64_t *wider;

            room = room == 0 ? 64 : 2 * room;
            wider = realloc(b->waiting, room * sizeof *wider);
            if (wider == NULL) {
                rc = SQLITE_NOMEM;
                break;
            }
            b->waiting = wider;
        }
        b->waiting[b->waiting_count++] = stg_sql_bits(st, 0);
    }
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int park(stg_store_writer *w, const stg_replay_job_step *s,
                uint64_t number, stg_replayed *out)
{
    const stg_again *a = s->r->again;
    stg_again_bite b = {.bite = &s->bite,
                        .replay = (uint32_t)number * REPLAYS,
                        .order = s->order,
                        .keys = s->keys};
    int rc = find_waiting(w, a, &b);

    out->lane = a->lane;
    out->partition = a->partition;
    if (rc == SQLITE_OK)
        rc = stg_replays_again(&w->replays, &b, stg_sql_now(w->db), out);
    out->is_done = rc == SQLITE_OK;
    out->expired = s->bite.count == 0;
    free(b.waiting);
    return rc;
}

/* Nothing is done where the rewind was cancelled, or its target forgotten. */
int stg_rewind_write(stg_store_writer *w, stg_replay_job_step *s)
{
    const stg_again *a = s->r->again;
    stg_replayed *out = &s->out[0];
    uint64_t number = a->number;
    bool is_it = true;
    int rc;

    *out = (stg_replayed){.is_done = false};
    if (a->is_stored)
        rc = is_current(w, a, s->bite.from, &is_it);
    else if (s->bite.count > 0)
        rc = stg_rewind_take_number(w->db, a->lane, &number);
    else
        rc = SQLITE_OK;
    if (rc != SQLITE_OK || !is_it || (s->bite.count > 0 && number == 0))
        return rc;
    rc = park(w, s, number, out);
    return rc == SQLITE_OK && a->is_stored ? move_on(w, a, out) : rc;
}

/* -- looked up ------------------------------------------------------------- */

static int read_again(stg_again *a, stg_stmt *st)
{
    *a = (stg_again){.lane = (uint32_t)stg_sql_column(st, 0),
                     .number = stg_sql_column(st, 1),
                     .partition = (uint32_t)stg_sql_column(st, 2),
                     .has_begun = stg_sql_column(st, 3) != 0,
                     .since = stg_sql_column(st, 4) * STG_MS,
                     .position = stg_sql_column(st, 5),
                     .until = stg_sql_column(st, 6),
                     .sent = stg_sql_column(st, 7),
                     .is_stored = true};
    return SQLITE_OK;
}

/* Those of a target that was forgotten do not go on. */
#define UNDER_WAY                                                         \
    "SELECT lane, number, partition, CASE state WHEN 'new' THEN 0"        \
    " ELSE 1 END, coalesce(since, 0), position, until, sent FROM rewinds" \
    " WHERE state IN ('new', 'running')"                                  \
    " AND lane NOT IN (SELECT number FROM lanes WHERE is_forgotten = 1)"

int stg_rewind_look(stg_db *db, const char *claimed, stg_again **all,
                    size_t *count)
{
    size_t room = 0;
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st,
        claimed == NULL ? UNDER_WAY
                        : UNDER_WAY
            " AND partition = ANY (CAST(?1 AS INTEGER[]))");

    *count = 0;
    if (rc == SQLITE_OK && claimed != NULL)
        rc = stg_sql_bind(st, "s", claimed);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        if (*count == room) {
            stg_again *wider;

            room = room == 0 ? 16 : 2 * room;
            wider = realloc(*all, room * sizeof *wider);
            if (wider == NULL) {
                rc = SQLITE_NOMEM;
                break;
            }
            *all = wider;
        }
        rc = read_again(&(*all)[(*count)++], st);
    }
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
