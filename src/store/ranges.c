/* Bulk rows as flow writes them.
 *
 * Flow names a range by its first position and says its last one and its count,
 * absolutely, as often as it grows. Meanwhile people may replay the row, piece by
 * piece from its front, or drop it. So the row keeps flow's name in range_first,
 * whatever became of its position; and where it is settled (replayed, dropped, or
 * expired behind a replay) what flow adds goes into another row of the same name,
 * which knows by `taken` what of flow's count is in the rows before.
 *
 * What the log had lost before it was read is a row of its own, by the replay
 * that flow gives it (STG_REPLAY_LOST): another may begin where it does.
 *
 * Nothing of it was ever tried: its last_attempt_at is when its newest message
 * came into it. Its cause is the fault that opened the breaker, with what was
 * last seen of that; or why else its messages waited for too long. */
#include <stdio.h>
#include <string.h>

#include "store/cause.h"
#include "store/rows.h"

static const char find[] =
    "SELECT id, state, last_position, taken, eaten, count"
    " FROM failed_broadcast_logs WHERE lane = ? AND partition = ?"
    " AND range_first = ? AND replay = ? ORDER BY id DESC LIMIT 1";

static const char add[] =
    "INSERT INTO failed_broadcast_logs (message_id, target, target_url, lane,"
    " partition, position, replay, last_position, count, state, why, cause,"
    " attempts, created_at, last_attempt_at, range_first, taken, version, copied,"
    " category, http_status, detail, answer)"
    " VALUES (?1,"
    " coalesce((SELECT name FROM lanes WHERE number = ?2), 'lane ' || ?2),"
    " coalesce((SELECT url FROM lanes WHERE number = ?2), ''),"
    " ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?11, ?11, ?12, ?13, ?14, ?7,"
    " ?15, ?16, ?17, ?18)";

/* A row that expired comes back to life with bodies that have not; but one of
 * messages that nobody ever read. */
static const char extend[] =
    "UPDATE failed_broadcast_logs SET last_position = ?2, count = ?3,"
    " last_attempt_at = ?4,"
    " state = CASE WHEN state = 'expired' AND cause <> 'EXPIRED'"
    " THEN 'dead' ELSE state END, detail = coalesce(?5, detail),"
    " answer = coalesce(?6, answer) WHERE id = ?1";

static const char is_taken[] =
    "SELECT 1 FROM failed_broadcast_logs WHERE lane = ? AND partition = ?"
    " AND position = ? AND replay = ?";

/* Those that the file of dead letters has with another count. */
static const char grown[] =
    "SELECT id FROM failed_broadcast_logs WHERE last_position IS NOT NULL"
    " AND state = 'dead' AND count <> copied";

static const char renew[] =
    "UPDATE failed_broadcast_logs SET version = ?, copied = count"
    " WHERE id = ?";

static const char spent[] =
    "SELECT id FROM failed_broadcast_logs WHERE partition = 0"
    " AND position < ?1 AND last_position IS NOT NULL AND state = 'dead'"
    " AND last_position < ?1";

static const char expire[] =
    "UPDATE failed_broadcast_logs SET state = 'expired', changed_at = ?2,"
    " version = ?3, copied = count WHERE id = ?1";

int stg_ranges_prepare(stg_ranges *r, stg_db *db)
{
    int rc = stg_sql_prepare(db, &r->find, find);

    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(db, &r->add, add);
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(db, &r->extend, extend);
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(db, &r->grown, grown);
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(db, &r->renew, renew);
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(db, &r->spent, spent);
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(db, &r->expire, expire);
    // One may have grown before a restart.
    r->has_grown = true;
    return rc == SQLITE_OK ? stg_sql_prepare(db, &r->is_taken, is_taken) : rc;
}

int stg_ranges_free_name(stg_ranges *r, uint32_t lane, uint32_t partition,
                         uint32_t replay, uint64_t *position)
{
    uint64_t one;
    int rc;

    for (;; ++*position) {
        rc = stg_sql_bind(r->is_taken, "uuuu", (uint64_t)lane,
                          (uint64_t)partition, *position, (uint64_t)replay);
        if (rc == SQLITE_OK)
            rc = stg_sql_number(r->is_taken, &one);
        if (rc != SQLITE_OK)
            return rc == SQLITE_DONE ? SQLITE_OK : rc;
    }
}

/* The last row of a name. */
typedef struct known {
    uint64_t id; /* 0: there is none */
    uint64_t last, taken, eaten, count;
    bool is_over; /* it does not grow */
    bool is_replayed;
} known;

/* An expired row with some that were sent again is over, too: its front is where
 * it began, and they would be sent once more, instead of those that come. */
static bool is_over(const char *state, uint64_t eaten)
{
    return state != NULL && (strcmp(state, "dropped") == 0 ||
                             (strcmp(state, "expired") == 0 && eaten > 0));
}

static int find_known(stg_ranges *r, const stg_change *c, known *k)
{
    const char *state;
    int rc =
        stg_sql_bind(r->find, "uuuu", (uint64_t)c->lane, (uint64_t)c->partition,
                     c->position, (uint64_t)c->replay);

    *k = (known){.id = 0};
    if (rc != SQLITE_OK)
        return rc;
    rc = stg_sql_step(r->find);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    state = stg_sql_text(r->find, 1);
    *k = (known){.id = stg_sql_column(r->find, 0),
                 .last = stg_sql_column(r->find, 2),
                 .taken = stg_sql_column(r->find, 3),
                 .eaten = stg_sql_column(r->find, 4),
                 .count = stg_sql_column(r->find, 5)};
    k->is_replayed = state != NULL && strcmp(state, "replayed") == 0;
    k->is_over = k->is_replayed || is_over(state, k->eaten);
    return stg_sql_reset(r->find);
}

/* Why its messages were settled, as columns. */
typedef struct reason {
    const char *state, *why, *cause, *category, *detail;
    uint64_t status;
    stg_span answer;
    char cause_text[STG_CAUSE_MAX], detail_text[400];
} reason;

static void describe_fault(reason *r, const stg_failure *f)
{
    const stg_outcome *o = &f->outcome;
    bool has_detail = f->detail != NULL && f->detail[0] != '\0';
    char since[STG_SQL_TIME_MAX];

    r->cause = stg_outcome_cause(o, r->cause_text);
    r->category = stg_category_letter(stg_fault_about(o->fault)->category);
    r->status = o->code_kind == STG_CODE_STATUS ? o->code : 0;
    snprintf(r->detail_text, sizeof r->detail_text, "breaker open since %s%s%s",
             stg_sql_time(f->first_attempt_at, since), has_detail ? ": " : "",
             has_detail ? f->detail : "");
    r->detail = r->detail_text;
    r->answer = (stg_span){f->answer, f->answer_size};
}

static void describe(reason *r, const stg_change *c)
{
    static const char *const states[STG_SHED_HOWS] = {
        [STG_SHED_HOW_SHED] = "dead",
        [STG_SHED_HOW_RETENTION] = "dead",
        [STG_SHED_HOW_EXPIRED] = "expired",
        [STG_SHED_HOW_CANCELLED] = "cancelled"};
    stg_shed_how how = stg_shed_how_of(c);

    r->state = states[how];
    r->why = stg_shed_how_name(how);
    r->cause = stg_shed_cause_name(stg_shed_cause_of(c));
    r->category = r->detail = NULL;
    r->status = 0;
    r->answer = (stg_span){NULL, 0};
    if (c->failure != NULL)
        describe_fault(r, c->failure);
}

/* first: where the row begins. taken: of flow's count, what is elsewhere. */
static int add_row(stg_rows *r, const stg_change *c, uint64_t first,
                   uint64_t taken, stg_ns wall)
{
    char id[STG_MESSAGE_ID_MAX], now[STG_SQL_TIME_MAX];
    reason k;
    int rc = stg_ranges_free_name(&r->ranges, c->lane, c->partition, c->replay,
                                  &first);

    if (rc != SQLITE_OK)
        return rc;
    describe(&k, c);
    return stg_sql_run(r->ranges.add, "suuuuuussssuuusosv",
                       stg_ids_print(&r->ids, c->partition, first, id),
                       (uint64_t)c->lane, (uint64_t)c->partition, first,
                       (uint64_t)c->replay, c->last_position, c->count - taken,
                       k.state, k.why, k.cause, stg_sql_time(wall, now),
                       c->position, taken, stg_rows_version(r), k.category,
                       k.status, k.detail, k.answer);
}

static int extend_row(stg_rows *r, const stg_change *c, uint64_t id,
                      uint64_t taken, stg_ns wall)
{
    char now[STG_SQL_TIME_MAX];
    reason k;

    describe(&k, c);
    r->ranges.has_grown = true;
    return stg_sql_run(r->ranges.extend, "uuussv", id, c->last_position,
                       c->count - taken, stg_sql_time(wall, now), k.detail,
                       k.answer);
}

int stg_ranges_write(stg_rows *r, const stg_change *c, stg_ns wall)
{
    uint64_t taken;
    known k;
    int rc = find_known(&r->ranges, c, &k);

    if (rc != SQLITE_OK)
        return rc;
    if (k.id == 0)
        return add_row(r, c, c->position, 0, wall);
    // It came already, or it comes late.
    if (c->last_position <= k.last)
        return SQLITE_OK;
    taken = k.taken + k.eaten;
    if (k.is_over && !k.is_replayed)
        taken += k.count;
    if (c->count <= taken)
        return SQLITE_OK;
    if (k.is_over)
        return add_row(r, c, k.last + 1, taken, wall);
    return extend_row(r, c, k.id, taken, wall);
}

enum { PIECE = 256 };

/* The ids that a query has, PIECE at most. SQLITE_ROW: there are more. */
static int read_ids(stg_stmt *st, uint64_t ids[PIECE], size_t *count)
{
    int rc = SQLITE_ROW;

    *count = 0;
    while (*count < PIECE && (rc = stg_sql_step(st)) == SQLITE_ROW)
        ids[(*count)++] = stg_sql_column(st, 0);
    stg_sql_reset(st);
    return rc;
}

/* In pieces: the statement reads what it is about to change. */
int stg_ranges_expire(stg_rows *r, uint64_t first, stg_ns wall)
{
    char now[STG_SQL_TIME_MAX];
    uint64_t ids[PIECE];
    size_t count;
    int rc;

    stg_sql_time(wall, now);
    do {
        int more = stg_sql_bind(r->ranges.spent, "u", first);

        if (more != SQLITE_OK)
            return more;
        more = read_ids(r->ranges.spent, ids, &count);
        rc = more == SQLITE_ROW || more == SQLITE_DONE ? SQLITE_OK : more;
        for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
            rc = stg_sql_run(r->ranges.expire, "usu", ids[i], now,
                             stg_rows_version(r));
    } while (rc == SQLITE_OK && count == PIECE);
    return rc;
}

int stg_ranges_renew(stg_rows *r, bool *is_more)
{
    stg_ranges *ranges = &r->ranges;
    uint64_t ids[PIECE];
    size_t count;
    int rc = read_ids(ranges->grown, ids, &count);

    *is_more = ranges->has_grown = rc == SQLITE_ROW;
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
        rc = stg_sql_run(ranges->renew, "uu", stg_rows_version(r), ids[i]);
    return rc;
}
