/* Which letters leave the store, and what is left of them.
 *
 * Three statements do it for a piece of ids: NOTE adds them to the books of
 * deleted_letters, FOLD (of those that are still dead) counts them in the bulk
 * row of their lane and cause, REMOVE deletes them. All three are in one
 * transaction of the caller's: no letter is counted twice, or not at all. */
#include "store/eviction.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/group.h"

static_assert(STG_REPLAY_EVICTED == 2147483646, "see STG_EVICTED");
static_assert(STG_REPLAY_EVICTED != STG_REPLAY_LOST, "each is one name");

/* A replay of a bulk row that stands still is not under way any more. */
static const stg_ns BITING = 5 * STG_MIN;

/* -- which ones ------------------------------------------------------------ */

/* ?1: before, ?2: copied, ?3: rows_max, ?4 (of ranges): a replay that changed it
 * since then is under way. */
#define COPIED "version", "version <= ?2"
#define COPIED_SHARED \
    "version, sent_version", "(version = sent_version OR ?2 > 0)"

/* Only the oldest are looked at, so that rows which the copy has not got cost
 * little. */
#define ENDED(columns, copied)                                    \
    "SELECT id FROM (SELECT id, " columns                         \
    ","                                                           \
    " coalesce(changed_at, created_at) AS at"                     \
    " FROM failed_broadcast_logs"                                 \
    " WHERE state <> 'dead' AND last_position IS NULL"            \
    " ORDER BY coalesce(changed_at, created_at) LIMIT 8192) AS o" \
    " WHERE at < ?1 AND " copied " ORDER BY at LIMIT ?3"

#define DEAD(columns, copied)                               \
    "SELECT id FROM (SELECT id, created_at, " columns       \
    " FROM failed_broadcast_logs WHERE state = 'dead'"      \
    " AND last_position IS NULL AND replay <> " STG_EVICTED \
    " ORDER BY id LIMIT 8192) AS o"                         \
    " WHERE created_at < ?1 AND " copied " ORDER BY id LIMIT ?3"

/* Flow lengthens the newest one. */
#define RANGES(state, columns, copied)                            \
    "SELECT id FROM failed_broadcast_logs r"                      \
    " WHERE last_position IS NOT NULL AND " state " AND " copied  \
    " AND NOT (eaten > 0 AND state = 'dead' AND changed_at > ?4)" \
    " AND EXISTS (SELECT 1 FROM failed_broadcast_logs n"          \
    " WHERE n.lane = r.lane AND n.partition = r.partition"        \
    " AND n.replay = r.replay AND n.last_position IS NOT NULL"    \
    " AND n.id > r.id) ORDER BY id LIMIT ?3"

#define ENDED_RANGES(columns, copied)                                        \
    RANGES("state <> 'dead' AND coalesce(changed_at, last_attempt_at) < ?1", \
           columns, copied)
#define DEAD_RANGES(columns, copied) \
    RANGES("state = 'dead' AND last_attempt_at < ?1", columns, copied)

#define CHOICES(...)                                             \
    {                                                            \
        [STG_EVICTION_ENDED] = ENDED(__VA_ARGS__),               \
        [STG_EVICTION_ENDED_RANGES] = ENDED_RANGES(__VA_ARGS__), \
        [STG_EVICTION_DEAD] = DEAD(__VA_ARGS__),                 \
        [STG_EVICTION_DEAD_RANGES] = DEAD_RANGES(__VA_ARGS__),   \
    }

static const char *const choices[STG_EVICTION_KINDS] = CHOICES(COPIED);
static const char *const choices_shared[STG_EVICTION_KINDS] =
    CHOICES(COPIED_SHARED);

/* -- what becomes of them -------------------------------------------------- */

#define THESE "id IN (SELECT value FROM json_each(?1))"
#define THESE_SHARED "id = ANY (CAST(?1 AS BIGINT[]))"

#define NOTE(these)                                                          \
    "INSERT INTO deleted_letters (lane, partition, dead, cancelled)"         \
    " SELECT lane, partition, sum(CASE WHEN state IN"                        \
    " ('dead', 'dropped', 'expired') THEN count ELSE 0 END),"                \
    " sum(CASE WHEN state = 'cancelled' THEN count ELSE 0 END)"              \
    " FROM failed_broadcast_logs WHERE " these " AND replay <> " STG_EVICTED \
    " GROUP BY lane, partition"                                              \
    " ON CONFLICT (lane, partition) DO UPDATE SET"                           \
    " dead = deleted_letters.dead + excluded.dead,"                          \
    " cancelled = deleted_letters.cancelled + excluded.cancelled"

/* Times are in order as texts. The row is no news for the copy, which has had
 * each of them: its version is 0. */
#define FOLD(these)                                                             \
    "INSERT INTO failed_broadcast_logs (message_id, target, target_url,"        \
    " lane, partition, position, replay, count, state, why, category,"          \
    " cause, http_status, attempts, first_attempt_at, last_attempt_at,"         \
    " created_at, changed_at)"                                                  \
    " SELECT '', max(target), max(target_url), lane, 0, -max(id), " STG_EVICTED \
    ", sum(count), 'dead', 'evicted', max(category),"                           \
    " coalesce(cause, 'UNKNOWN'), max(http_status), sum(attempts),"             \
    " min(first_attempt_at), max(coalesce(last_attempt_at, created_at)),"       \
    " min(created_at), ?2"                                                      \
    " FROM failed_broadcast_logs WHERE " these                                  \
    " GROUP BY lane, coalesce(cause, 'UNKNOWN')"                                \
    " ON CONFLICT (lane, cause)"                                                \
    " WHERE replay = " STG_EVICTED                                              \
    " AND state = 'dead' DO UPDATE SET"                                         \
    " count = failed_broadcast_logs.count + excluded.count,"                    \
    " attempts = failed_broadcast_logs.attempts + excluded.attempts,"           \
    " first_attempt_at = coalesce(failed_broadcast_logs.first_attempt_at,"      \
    " excluded.first_attempt_at),"                                              \
    " last_attempt_at = CASE WHEN excluded.last_attempt_at >"                   \
    " failed_broadcast_logs.last_attempt_at THEN excluded.last_attempt_at"      \
    " ELSE failed_broadcast_logs.last_attempt_at END,"                          \
    " changed_at = excluded.changed_at"

#define REMOVE(these) "DELETE FROM failed_broadcast_logs WHERE " these

bool stg_letter_is_evicted(const char *why)
{
    return why != NULL && strcmp(why, "evicted") == 0;
}

/* A file keeps totals in a table; the rows of a database are counted. */
int stg_eviction_prepare(stg_eviction *e, stg_db *db)
{
    bool is_shared = stg_sql_is_shared(db);
    const struct {
        stg_stmt **st;
        const char *text;
    } all[] = {
        {&e->totals, is_shared ? "SELECT 0, count(*), 0"
                                 " FROM failed_broadcast_logs"
                                 " WHERE state = 'dead'"
                                 " AND last_position IS NULL"
                                 " AND replay <> " STG_EVICTED
                               : "SELECT letters, dead, bytes"
                                 " FROM letter_totals"},
        {&e->note, is_shared ? NOTE(THESE_SHARED) : NOTE(THESE)},
        {&e->fold, is_shared ? FOLD(THESE_SHARED) : FOLD(THESE)},
        {&e->remove, is_shared ? REMOVE(THESE_SHARED) : REMOVE(THESE)},
    };
    int rc = SQLITE_OK;

    e->db = db;
    for (size_t i = 0; i < sizeof all / sizeof *all && rc == SQLITE_OK; i++)
        rc = stg_sql_prepare(db, all[i].st, all[i].text);
    for (size_t i = 0; i < STG_EVICTION_KINDS && rc == SQLITE_OK; i++)
        rc = stg_sql_prepare(db, &e->choose[i],
                             is_shared ? choices_shared[i] : choices[i]);
    return rc;
}

int stg_eviction_look(stg_eviction *e)
{
    int rc = stg_sql_step(e->totals);

    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    e->letters = stg_sql_column(e->totals, 0);
    e->dead = stg_sql_column(e->totals, 1);
    e->bytes = stg_sql_column(e->totals, 2);
    return stg_sql_reset(e->totals);
}

/* -- a piece --------------------------------------------------------------- */

enum { ID_SIZE = 21 }; /* as a text, and what stands behind it */

/* "[1,7]", or of PostgreSQL "{1,7}". */
static int choose(stg_eviction *e, stg_eviction_piece *p, stg_ns wall,
                  char *ids)
{
    char before[STG_SQL_TIME_MAX], biting[STG_SQL_TIME_MAX];
    bool is_shared = stg_sql_is_shared(e->db);
    stg_stmt *st = e->choose[p->kind];
    size_t at = 0;
    int rc = stg_sql_bind(st, "suu", stg_sql_time(p->before, before), p->copied,
                          (uint64_t)p->rows_max);

    if (rc == SQLITE_OK && (p->kind == STG_EVICTION_ENDED_RANGES ||
                            p->kind == STG_EVICTION_DEAD_RANGES))
        rc = stg_sql_bind_from(st, 4, "s",
                               stg_sql_time(stg_ns_sub(wall, BITING), biting));
    ids[at++] = is_shared ? '{' : '[';
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        if (p->rows++ > 0)
            ids[at++] = ',';
        at += (size_t)snprintf(ids + at, ID_SIZE, "%" PRIu64,
                               stg_sql_column(st, 0));
        rc = SQLITE_OK;
    }
    ids[at++] = is_shared ? '}' : ']';
    ids[at] = '\0';
    stg_sql_reset(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A piece in one transaction: its rows are chosen, noted for the copy, folded into
 * bulk rows, and deleted. */
int stg_eviction_run(stg_eviction *e, stg_eviction_piece *p, stg_ns wall)
{
    static const size_t most = STG_EVICTION_MOST;
    char now[STG_SQL_TIME_MAX];
    char *ids;
    int rc;

    p->rows = 0;
    if (p->rows_max > most)
        p->rows_max = most;
    ids = malloc(p->rows_max * ID_SIZE + 4);
    if (ids == NULL)
        return SQLITE_NOMEM;
    rc = choose(e, p, wall, ids);
    if (rc == SQLITE_OK && p->rows > 0)
        rc = stg_sql_run(e->note, "s", ids);
    if (rc == SQLITE_OK && p->rows > 0 && p->kind >= STG_EVICTION_DEAD)
        rc = stg_sql_run(e->fold, "ss", ids, stg_sql_time(wall, now));
    if (rc == SQLITE_OK && p->rows > 0)
        rc = stg_sql_run(e->remove, "s", ids);
    free(ids);
    return rc;
}
