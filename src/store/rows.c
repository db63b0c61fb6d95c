/* What flow stores in a group: parked rows, dead letters, and ends of lanes.
 *
 * A group may come twice, after an answer that was lost. So inserts leave, or
 * renew, what is there under the same key (lane, partition, position, replay),
 * and deletes name a key. A parked row that is there keeps its message, which
 * never changes, and has the rest anew. A letter that is there stays as it is: an
 * operator may have replayed or dropped it since.
 *
 * Changes of different rows are written kind by kind, whatever their order in the
 * group: a server then hears one command a kind. Where a row is in a group twice,
 * or a change concerns a whole lane, what comes before it is written first. */
#include "store/rows.h"

#include <stdlib.h>
#include <string.h>

#include "store/cause.h"

/* A row that is there keeps its message. */
static const char park[] =
    "INSERT INTO parked (lane, partition, position, replay, due_at,"
    " wait, attempts, last_wait, limited, has_failure, fault,"
    " code_kind, code, is_permanent, is_unsent, delay, why, first_attempt_at,"
    " last_attempt_at, cause, detail, answer, attempts_before, began_at,"
    " key_hash, content_type, headers, key, source_key, source_headers, body,"
    " created_at) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
    " ?13, ?14, ?15, ?16, ?17, ?18, ?19,"
    " ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32";

static const char park_again[] =
    " WHERE true ON CONFLICT (lane, partition, position, replay) DO UPDATE SET"
    " due_at = excluded.due_at, wait = excluded.wait,"
    " attempts = excluded.attempts,"
    " last_wait = excluded.last_wait, limited = excluded.limited,"
    " has_failure = excluded.has_failure, fault = excluded.fault,"
    " code_kind = excluded.code_kind, code = excluded.code,"
    " is_permanent = excluded.is_permanent, is_unsent = excluded.is_unsent,"
    " delay = excluded.delay, why = excluded.why,"
    " first_attempt_at = excluded.first_attempt_at,"
    " last_attempt_at = excluded.last_attempt_at, cause = excluded.cause,"
    " detail = excluded.detail, answer = excluded.answer,"
    " attempts_before = excluded.attempts_before,"
    " began_at = excluded.began_at";

static const char unpark[] = "DELETE FROM parked";

/* With a plain "replay = ?4" SQLite looks anew with each value whether an index
 * of some replays would do, and parses the statement again for that. */
static const char by_key[] =
    " WHERE lane = ?1 AND partition = ?2"
    " AND position = ?3 AND replay = +?4";

#define LETTER                                                               \
    "INSERT INTO failed_broadcast_logs (message_id, target,"                 \
    " target_url, lane, partition, position, replay, count, state, why,"     \
    " category, cause, http_status, detail, answer, attempts,"               \
    " first_attempt_at, last_attempt_at, created_at, version, headers,"      \
    " content_type, key, source_key, source_headers, payload, copied)"       \
    " SELECT ?1,"                                                            \
    " coalesce((SELECT name FROM lanes WHERE number = ?2), 'lane ' || ?2),"  \
    " coalesce((SELECT url FROM lanes WHERE number = ?2), ''),"              \
    " ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16," \
    " ?17, "

/* A row that is there stays as it is: it may have been replayed since. */
#define ONCE " ON CONFLICT (lane, partition, position, replay) DO NOTHING"

static const char insert_dead[] = LETTER "?18, ?19, ?20, ?21, ?22, ?23, 1";

/* Some at a time: of a server they come all at once. */
static const char of_lane[] =
    "SELECT " STG_PARKED_COLUMNS
    " FROM parked WHERE lane = ?1"
    " AND partition = ?2 AND (position, replay) > (?3, ?4)"
    " ORDER BY position, replay LIMIT 64";

static const char clear[] =
    "DELETE FROM parked WHERE lane = ? AND partition = ?";

static const char forget[] =
    "UPDATE lanes SET is_forgotten = 1 WHERE number = ?";

static int prepare_many(stg_rows *r, stg_db *db)
{
    const struct {
        stg_stmt **st;
        const char *head, *joint, *tail;
    } all[] = {{&r->park, park, "FROM", park_again},
               {&r->unpark, unpark, "USING", by_key},
               {&r->insert_dead, insert_dead, "FROM", " WHERE true" ONCE}};
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all && rc == SQLITE_OK; i++)
        rc = stg_sql_prepare_many(db, all[i].st, all[i].head, all[i].joint,
                                  all[i].tail);
    return rc;
}

int stg_rows_prepare(stg_rows *r, stg_db *db)
{
    const struct {
        stg_stmt **st;
        const char *text;
    } all[] = {
        {&r->of_lane, of_lane}, {&r->clear, clear}, {&r->forget, forget}};
    int rc = prepare_many(r, db);

    for (size_t i = 0; i < sizeof all / sizeof *all && rc == SQLITE_OK; i++)
        rc = stg_sql_prepare(db, all[i].st, all[i].text);
    r->db = db;
    // With others a version is a time, see stg_rows_version().
    r->is_shared = stg_sql_is_shared(db);
    if (rc == SQLITE_OK && !r->is_shared)
        rc = stg_sql_ask(
            db,
            // Rows with the last ones may have been deleted.
            "SELECT max(coalesce((SELECT max(version)"
            " FROM failed_broadcast_logs), 0), (SELECT value FROM meta"
            " WHERE name = 'letters_version'))",
            &r->version);
    return rc == SQLITE_OK ? stg_ranges_prepare(&r->ranges, db) : rc;
}

/* Rises by one in a file. Hubs that share a database have no common counter:
 * there it is the server's clock, or one more than the last if that is not
 * ahead of it. */
uint64_t stg_rows_version(stg_rows *r)
{
    stg_ns wall;

    r->version++;
    if (!r->is_shared)
        return r->version;
    wall = stg_sql_now(r->db);
    if (wall > r->version)
        r->version = wall;
    return r->version;
}

/* -- dead letters ---------------------------------------------------------- */

/* Never is NULL. */
static const char *time_of(stg_ns wall, char text[STG_SQL_TIME_MAX])
{
    return wall == 0 ? NULL : stg_sql_time(wall, text);
}

static const char *text_of(const char *text)
{
    return text == NULL || *text == '\0' ? NULL : text;
}

/* A dead letter of what a parked row says, or would say. */
static int write_dead(stg_rows *r, uint32_t lane, const stg_parked *p,
                      const char *state, const char *why, stg_ns wall)
{
    const stg_failure *f = &p->failure;
    const stg_outcome *o = &f->outcome;
    const char *category =
        stg_category_letter(stg_fault_about(o->fault)->category);
    uint64_t status = o->code_kind == STG_CODE_STATUS ? o->code : 0;
    char id[STG_MESSAGE_ID_MAX], cause[STG_CAUSE_MAX], first[STG_SQL_TIME_MAX],
        last[STG_SQL_TIME_MAX], now[STG_SQL_TIME_MAX];
    int rc = stg_sql_bind(
        r->insert_dead, "suuuussssosvusssutttnnn",
        stg_ids_print(&r->ids, p->partition, p->position, id), (uint64_t)lane,
        (uint64_t)p->partition, p->position, (uint64_t)p->replay, state, why,
        p->has_failure ? category : NULL,
        p->has_failure ? stg_outcome_cause(o, cause) : NULL, status,
        text_of(f->detail), (stg_span){f->answer, f->answer_size},
        p->attempts_before + p->progress.attempts,
        time_of(f->first_attempt_at, first), time_of(f->last_attempt_at, last),
        stg_sql_time(wall, now), stg_rows_version(r), p->parcel.headers,
        p->parcel.content_type, p->parcel.key, p->parcel.source_key,
        p->parcel.source_headers, p->parcel.body);

    return rc == SQLITE_OK ? stg_sql_run(r->insert_dead, "") : rc;
}

/* A change, as a parked row would have it. */
static int parked_of(stg_parked *p, const stg_change *c)
{
    *p = (stg_parked){.partition = c->partition,
                      .position = c->position,
                      .replay = c->replay,
                      .progress = c->progress,
                      .attempts_before = c->attempts_before,
                      .began_at = c->began_at,
                      .has_failure = c->failure != NULL,
                      .wait = c->wait,
                      .due_at = c->due_at};
    if (c->failure != NULL)
        p->failure = *c->failure;
    p->key_hash = c->message->key;
    if (!stg_parcel_unpack(&p->parcel, c->message->bytes, c->message->size))
        return SQLITE_MISUSE;
    // Its body was left out, for it was too large.
    if (c->message->true_size > 0)
        p->parcel.body = (stg_span){NULL, 0};
    return SQLITE_OK;
}

static int run_on_row(stg_stmt *st, const stg_change *c)
{
    return stg_sql_run(st, "uuuu", (uint64_t)c->lane, (uint64_t)c->partition,
                       c->position, (uint64_t)c->replay);
}

static int write_dead_change(stg_rows *r, const stg_change *c, stg_ns wall)
{
    stg_parked p;
    int rc = parked_of(&p, c);

    return rc == SQLITE_OK ? write_dead(r, c->lane, &p, "dead",
                                        stg_why_name(p.failure.why), wall)
                           : rc;
}

/* The next rows of a lane behind a place; SQLITE_ROW: there may be more. */
static int cancel_some(stg_rows *r, const stg_change *c, uint64_t *position,
                       uint64_t *replay, stg_ns wall)
{
    const char *why = stg_why_name(STG_WHY_CANCELLED);
    int rc = stg_sql_bind(r->of_lane, "uuhh", (uint64_t)c->lane,
                          (uint64_t)c->partition, *position, *replay);
    bool is_any = false;

    while (rc == SQLITE_OK && (rc = stg_sql_step(r->of_lane)) == SQLITE_ROW) {
        stg_parked p;

        stg_parked_read(&p, r->of_lane);
        *position = p.position;
        *replay = p.replay;
        is_any = true;
        rc = write_dead(r, c->lane, &p, "cancelled", why, wall);
    }
    stg_sql_reset(r->of_lane);
    return rc == SQLITE_DONE && is_any ? SQLITE_ROW : rc;
}

/* Makes a letter of each parked row, in pieces, and then deletes them all: the
 * order matters, for the letters are read from these rows. */
static int write_cancel(stg_rows *r, const stg_change *c, stg_ns wall)
{
    uint64_t position = UINT64_MAX, replay = 0; // -1: before the first
    int rc;

    do
        rc = cancel_some(r, c, &position, &replay, wall);
    while (rc == SQLITE_ROW);
    if (rc != SQLITE_DONE)
        return rc;
    return stg_sql_run(r->clear, "uu", (uint64_t)c->lane,
                       (uint64_t)c->partition);
}

/* -- parked rows ----------------------------------------------------------- */

/* All zeros are stored as NULL. */
static stg_span limited_of(const stg_progress *p)
{
    for (size_t i = 0; i < sizeof p->limited; i++)
        if (p->limited[i] != 0)
            return (stg_span){(const char *)p->limited, sizeof p->limited};
    return (stg_span){NULL, 0};
}

static int write_park(stg_rows *r, const stg_change *c)
{
    const stg_failure *f;
    const stg_outcome *o;
    char cause[STG_CAUSE_MAX];
    stg_parked p;
    int rc = parked_of(&p, c);

    if (rc != SQLITE_OK)
        return rc;
    f = &p.failure;
    o = &f->outcome;
    rc = stg_sql_bind(
        r->park, "uuuuuuuuvduuudduuuussvuuhtttnnbu", (uint64_t)c->lane,
        (uint64_t)p.partition, p.position, (uint64_t)p.replay, p.due_at, p.wait,
        (uint64_t)p.progress.attempts, p.progress.last, limited_of(&p.progress),
        (int)p.has_failure, (uint64_t)o->fault, (uint64_t)o->code_kind,
        (uint64_t)o->code, (int)o->permanent, (int)o->unsent, o->delay,
        (uint64_t)f->why, f->first_attempt_at, f->last_attempt_at,
        p.has_failure ? stg_outcome_cause(o, cause) : NULL, text_of(f->detail),
        (stg_span){f->answer, f->answer_size}, p.attempts_before, p.began_at,
        p.key_hash, p.parcel.content_type, p.parcel.headers, p.parcel.key,
        p.parcel.source_key, p.parcel.source_headers, p.parcel.body,
        c->message->created_at);
    return rc == SQLITE_OK ? stg_sql_run(r->park, "") : rc;
}

/* -- a group --------------------------------------------------------------- */

/* The kind of changes that is written at a time. */
typedef enum turn {
    PARKED,
    DIED,
    ENDED, /* parked rows are deleted, after letters are made of them */
    TURNS,
} turn;

static bool is_of(turn t, const stg_change *c)
{
    switch (t) {
    case PARKED:
        return c->kind == STG_CHANGE_PARK;
    case DIED:
        return c->kind == STG_CHANGE_DEAD;
    default:
        return c->kind == STG_CHANGE_DEAD || c->kind == STG_CHANGE_DELIVERED;
    }
}

static int write_turn(stg_rows *r, turn t, const stg_change *c, stg_ns wall)
{
    if (t == ENDED)
        return run_on_row(r->unpark, c);
    return c->kind == STG_CHANGE_PARK ? write_park(r, c)
                                      : write_dead_change(r, c, wall);
}

/* Changes of different rows, by turns: a server hears one command for each. */
static int write_rows(stg_rows *r, const stg_change *c, size_t count,
                      stg_ns wall)
{
    int rc = SQLITE_OK;

    for (turn t = PARKED; t < TURNS; t++)
        for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
            if (is_of(t, &c[i]))
                rc = write_turn(r, t, &c[i], wall);
    return rc == SQLITE_OK ? stg_sql_flush(r->db) : rc;
}

/* Writes a change that concerns more than a row. */
static int write_wide(stg_rows *r, const stg_change *c, stg_ns wall)
{
    switch (c->kind) {
    case STG_CHANGE_RANGE:
        return stg_ranges_write(r, c, wall);
    case STG_CHANGE_CANCEL:
        return write_cancel(r, c, wall);
    case STG_CHANGE_FORGET:
        return stg_sql_run(r->forget, "u", (uint64_t)c->lane);
    default:
        return SQLITE_MISUSE;
    }
}

static bool is_wide(const stg_change *c)
{
    return c->kind == STG_CHANGE_RANGE || c->kind == STG_CHANGE_CANCEL ||
           c->kind == STG_CHANGE_FORGET;
}

static bool is_same(const stg_change *a, const stg_change *b)
{
    return a->lane == b->lane && a->partition == b->partition &&
           a->position == b->position && a->replay == b->replay;
}

/* Where in the table of those that were seen. */
static size_t place_of(const stg_rows *r, const stg_change *all,
                       const stg_change *c)
{
    uint64_t key = (uint64_t)c->lane << 32 ^ (uint64_t)c->partition << 16 ^
                   c->replay ^ c->position * 0x9e3779b97f4a7c15;
    size_t mask = r->seen_room - 1;
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15 >> 32) & mask;

    while (r->seen[at] != 0 && !is_same(&all[r->seen[at] - 1], c))
        at = (at + 1) & mask;
    return at;
}

/* Empty, with room for so many. */
static bool clear_seen(stg_rows *r, size_t count)
{
    size_t room = r->seen_room == 0 ? 64 : r->seen_room;

    while (room < 2 * count)
        room *= 2;
    if (room != r->seen_room) {
        free(r->seen);
        r->seen = malloc(room * sizeof *r->seen);
        r->seen_room = r->seen == NULL ? 0 : room;
    }
    if (r->seen != NULL)
        memset(r->seen, 0, r->seen_room * sizeof *r->seen);
    return r->seen != NULL;
}

/* Counts the changes at the front that are of different rows: up to the first
 * that is wide, or whose row was seen before. */
static size_t count_rows(stg_rows *r, const stg_change *c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t at;

        if (is_wide(&c[i]))
            return i;
        at = place_of(r, c, &c[i]);
        if (r->seen[at] != 0)
            return i;
        r->seen[at] = (uint32_t)i + 1;
    }
    return count;
}

int stg_rows_write(stg_rows *r, const stg_change *changes, size_t count,
                   stg_ns wall)
{
    int rc = SQLITE_OK;

    for (size_t at = 0, end; at < count && rc == SQLITE_OK; at = end) {
        if (is_wide(&changes[at])) {
            end = at + 1;
            rc = write_wide(r, &changes[at], wall);
            continue;
        }
        if (!clear_seen(r, count - at))
            return SQLITE_NOMEM;
        end = at + count_rows(r, changes + at, count - at);
        rc = write_rows(r, changes + at, end - at, wall);
    }
    return rc;
}

void stg_rows_free(stg_rows *r)
{
    free(r->seen);
    r->seen = NULL;
    r->seen_room = 0;
}

/* A due time is `wait` after `wall` at most. It is later where the clock was
 * set back since the row was written. */
static int pull_in(stg_db *db, const char *head, const char *partitions,
                   const char *tail, stg_ns wall)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_list(db, &st, head, partitions, tail);

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "u", wall);
    stg_sql_finalize(st);
    return rc;
}

#define PULL_IN "UPDATE parked SET due_at = ?1 + wait WHERE due_at - ?1 > wait"

int stg_rows_pull_in(stg_db *db, stg_ns wall)
{
    return pull_in(db, PULL_IN, "", "", wall);
}

int stg_rows_pull_in_of(stg_db *db, const char *partitions, stg_ns wall)
{
    return pull_in(db, PULL_IN " AND partition IN (", partitions, ")", wall);
}
