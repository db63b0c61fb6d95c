/* Rewinds in their table, as the job goes through them: begun and moved on by the
 * writer, looked up by the query thread. */
#include <stdlib.h>

#include "store/replay_job.h"
#include "store/rewinds.h"

enum { NUMBER_MAX = INT32_MAX / STG_REWIND_REPLAYS - 1 };

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
    a->position = stg_ns_max(a->position, w->queue.first);
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
        " AND partition = ? AND state IN ('running', 'resend') AND position = ?"
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

/* A rewind goes on to run: what it has parked has not ended yet. */
static int move_on(stg_store_writer *w, const stg_again *a,
                   const stg_replayed *out)
{
    bool is_over = a->is_one && out->next >= a->until;
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        w->db, &st,
        "UPDATE rewinds SET position = ?4, sent = sent + ?5, state = ?6,"
        " ended_at = ?7 WHERE lane = ?1 AND number = ?2 AND partition = ?3");

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "uuuuuso", (uint64_t)a->lane, a->number,
                         (uint64_t)a->partition, out->next, out->messages,
                         is_over     ? "done"
                         : a->is_one ? "resend"
                                     : "running",
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
                          (uint64_t)b->replay,
                          (uint64_t)b->replay + STG_REWIND_REPLAYS);
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
                        .replay = (uint32_t)number * STG_REWIND_REPLAYS,
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

/* -- ended ----------------------------------------------------------------- */

int stg_rewind_end(stg_store_writer *w, stg_replay_job_step *s)
{
    const stg_again *a = s->r->again;
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        w->db, &st,
        "UPDATE rewinds SET state = 'done', ended_at = ?4 WHERE lane = ?1"
        " AND number = ?2 AND partition = ?3 AND state = 'running'"
        " AND position >= until AND " STG_REWIND_PARKED " = 0");

    s->out[0] = (stg_replayed){.is_done = false};
    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "uuuu", (uint64_t)a->lane, a->number,
                         (uint64_t)a->partition, stg_sql_now(w->db) / STG_MS);
    if (rc == SQLITE_OK)
        s->out[0].is_done = stg_sql_changes(st, &rc) > 0;
    stg_sql_finalize(st);
    return rc;
}

static int note_cancelled(stg_store_writer *w, const stg_again *a,
                          stg_replayed *out)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        w->db, &st,
        "UPDATE rewinds SET state = 'cancelled', ended_at = ?4, cancelled ="
        " " STG_REWIND_PARKED
        " WHERE lane = ?1 AND number = ?2"
        " AND partition = ?3 AND state = 'cancelling'");

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "uuuu", (uint64_t)a->lane, a->number,
                         (uint64_t)a->partition, stg_sql_now(w->db) / STG_MS);
    if (rc == SQLITE_OK)
        out->is_done = stg_sql_changes(st, &rc) > 0;
    stg_sql_finalize(st);
    return rc;
}

static int unpark(stg_store_writer *w, const stg_again *a, stg_replayed *out)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        w->db, &st,
        "DELETE FROM parked WHERE lane = ? AND replay > 0 AND replay = ?"
        " AND +partition = ?");

    if (rc == SQLITE_OK)
        rc =
            stg_sql_run(st, "uuu", (uint64_t)a->lane,
                        a->number * STG_REWIND_REPLAYS, (uint64_t)a->partition);
    if (rc == SQLITE_OK)
        out->messages = stg_sql_changes(st, &rc);
    stg_sql_finalize(st);
    return rc;
}

/* No dead letter tells of them, for the target had got these messages: the books
 * have them among those whose letters were deleted. */
static int note_deleted(stg_store_writer *w, const stg_replayed *out)
{
    stg_stmt *st;
    int rc;

    if (out->messages == 0)
        return SQLITE_OK;
    rc = stg_sql_prepare_once(
        w->db, &st,
        "INSERT INTO deleted_letters (lane, partition, dead, cancelled)"
        " VALUES (?, ?, 0, ?) ON CONFLICT (lane, partition) DO UPDATE SET"
        " cancelled = deleted_letters.cancelled + excluded.cancelled");
    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "uuu", (uint64_t)out->lane,
                         (uint64_t)out->partition, out->messages);
    stg_sql_finalize(st);
    return rc;
}

int stg_rewind_cancel(stg_store_writer *w, stg_replay_job_step *s)
{
    const stg_again *a = s->r->again;
    stg_replayed *out = &s->out[0];
    int rc;

    *out = (stg_replayed){.lane = a->lane, .partition = a->partition};
    rc = note_cancelled(w, a, out);
    if (rc != SQLITE_OK || !out->is_done)
        return rc;
    rc = unpark(w, a, out);
    return rc == SQLITE_OK ? note_deleted(w, out) : rc;
}

/* -- looked up ------------------------------------------------------------- */

enum { NEW, RUNNING, RESEND, CANCELLING }; /* as UNDER_WAY has them */

static int read_again(stg_again *a, stg_stmt *st)
{
    uint64_t state = stg_sql_column(st, 3);

    *a = (stg_again){.lane = (uint32_t)stg_sql_column(st, 0),
                     .number = stg_sql_column(st, 1),
                     .partition = (uint32_t)stg_sql_column(st, 2),
                     .has_begun = state != NEW,
                     .is_one = state == RESEND,
                     .is_cancelled = state == CANCELLING,
                     .since = stg_sql_column(st, 4) * STG_MS,
                     .position = stg_sql_column(st, 5),
                     .until = stg_sql_column(st, 6),
                     .sent = stg_sql_column(st, 7),
                     .waiting = stg_sql_column(st, 8),
                     .is_stored = true};
    return SQLITE_OK;
}

/* Those of a target that was forgotten do not go on. */
#define UNDER_WAY                                                    \
    "SELECT lane, number, partition, CASE state WHEN 'new' THEN 0"   \
    " WHEN 'running' THEN 1 WHEN 'resend' THEN 2 ELSE 3 END,"        \
    " coalesce(since, 0), position, until, sent, " STG_REWIND_PARKED \
    " FROM rewinds"                                                  \
    " WHERE state IN ('new', 'running', 'resend', 'cancelling')"     \
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
