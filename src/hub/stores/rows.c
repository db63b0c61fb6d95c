#include "hub/stores/rows.h"

#include "hub/category.h"
#include "hub/wall.h"

/* A row that is there keeps its message, and what it was before its replay. */
static const char park[] =
    "INSERT INTO parked (lane, partition, position, replay, due_at,"
    " wait, attempts, own_waits, last_wait, limited, has_failure, fault,"
    " code_kind, code, is_permanent, is_unsent, delay, why, first_attempt_at,"
    " last_attempt_at, cause, detail, answer, key_hash, content_type, headers,"
    " key, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
    " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (lane, partition, position, replay) DO UPDATE SET"
    " due_at = excluded.due_at, wait = excluded.wait,"
    " attempts = excluded.attempts, own_waits = excluded.own_waits,"
    " last_wait = excluded.last_wait, limited = excluded.limited,"
    " has_failure = excluded.has_failure, fault = excluded.fault,"
    " code_kind = excluded.code_kind, code = excluded.code,"
    " is_permanent = excluded.is_permanent, is_unsent = excluded.is_unsent,"
    " delay = excluded.delay, why = excluded.why,"
    " first_attempt_at = excluded.first_attempt_at,"
    " last_attempt_at = excluded.last_attempt_at, cause = excluded.cause,"
    " detail = excluded.detail, answer = excluded.answer";

/* What it waits for is new; the message is there. Nobody else can have taken the
 * row away: who may write has the partition, and ends deliveries by its own
 * groups alone. */
static const char repark[] =
    "UPDATE parked SET due_at = ?5, wait = ?6, attempts = ?7, own_waits = ?8,"
    " last_wait = ?9, limited = ?10, has_failure = ?11, fault = ?12,"
    " code_kind = ?13, code = ?14, is_permanent = ?15, is_unsent = ?16,"
    " delay = ?17, why = ?18, first_attempt_at = ?19, last_attempt_at = ?20,"
    " cause = ?21, detail = ?22, answer = ?23"
    " WHERE lane = ?1 AND partition = ?2 AND position = ?3 AND replay = ?4";

static const char unpark[] =
    "DELETE FROM parked WHERE lane = ?"
    " AND partition = ? AND position = ?"
    " AND replay = ?";

/* A row that is there stays as it is: it may have been replayed since. What was
 * tried before a replay is in the parked row. */
static const char bury[] =
    "INSERT INTO failed_broadcast_logs (message_id, target,"
    " target_url, lane, partition, position, replay, count, state, why,"
    " category, cause, http_status, detail, answer, attempts,"
    " first_attempt_at, last_attempt_at, created_at, headers, content_type, key,"
    " payload, version, copied) VALUES (?1,"
    " coalesce((SELECT name FROM lanes WHERE number = ?2), 'lane ' || ?2),"
    " coalesce((SELECT url FROM lanes WHERE number = ?2), ''),"
    " ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
    " ?13 + coalesce((SELECT attempts_before FROM parked WHERE lane = ?2"
    " AND partition = ?3 AND position = ?4 AND replay = ?5), 0),"
    " ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, 1)"
    " ON CONFLICT (lane, partition, position, replay) DO NOTHING";

static const char find[] = "SELECT " STG_PARKED_COLUMNS
                           " FROM parked WHERE lane = ? AND partition = ?"
                           " AND position = ? AND replay = ?";

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

int stg_rows_prepare(stg_rows *r, stg_db *db)
{
    const struct {
        stg_stmt **st;
        const char *text;
    } all[] = {{&r->park, park},   {&r->repark, repark}, {&r->unpark, unpark},
               {&r->bury, bury},   {&r->find, find},     {&r->of_lane, of_lane},
               {&r->clear, clear}, {&r->forget, forget}};
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all && rc == SQLITE_OK; i++)
        rc = stg_sql_prepare(db, all[i].st, all[i].text);
    // With others a version is a time, see stg_rows_version().
    r->is_shared = stg_sql_is_shared(db);
    if (rc == SQLITE_OK && !r->is_shared)
        rc = stg_sql_ask(
            db, "SELECT coalesce(max(version), 0) FROM failed_broadcast_logs",
            &r->version);
    return rc == SQLITE_OK ? stg_ranges_prepare(&r->ranges, db) : rc;
}

uint64_t stg_rows_version(stg_rows *r)
{
    stg_ns wall;

    r->version++;
    if (!r->is_shared)
        return r->version;
    wall = stg_wall_now();
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

    return stg_sql_run(
        r->bury, "suuuussssosvussstttnu",
        stg_ids_print(&r->ids, p->partition, p->position, id), (uint64_t)lane,
        (uint64_t)p->partition, p->position, (uint64_t)p->replay, state, why,
        p->has_failure ? category : NULL,
        p->has_failure ? stg_outcome_cause(o, cause) : NULL, status,
        text_of(f->detail), (stg_span){f->answer, f->answer_size},
        (uint64_t)p->progress.attempts, time_of(f->first_attempt_at, first),
        time_of(f->last_attempt_at, last), stg_sql_time(wall, now),
        p->parcel.headers, p->parcel.content_type, p->parcel.key,
        p->parcel.body, stg_rows_version(r));
}

/* What a change with a message says, as a parked row would. */
static int parked_of(stg_parked *p, const stg_change *c)
{
    *p = (stg_parked){.partition = c->partition,
                      .position = c->position,
                      .replay = c->replay,
                      .progress = c->progress,
                      .has_failure = c->failure != NULL,
                      .wait = c->wait,
                      .due_at = c->due_at};
    if (c->failure != NULL)
        p->failure = *c->failure;
    if (c->message == NULL)
        return SQLITE_OK;
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

/* The parked row turns into a dead letter; what the change does not say, the
 * row does. No row: the group comes a second time. */
static int bury_parked(stg_rows *r, const stg_change *c, stg_ns wall)
{
    stg_parked p;
    int rc =
        stg_sql_bind(r->find, "uuuu", (uint64_t)c->lane, (uint64_t)c->partition,
                     c->position, (uint64_t)c->replay);

    if (rc != SQLITE_OK)
        return rc;
    rc = stg_sql_step(r->find);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    stg_parked_read(&p, r->find);
    if (c->failure != NULL) {
        p.failure = *c->failure;
        p.has_failure = true;
        p.progress = c->progress;
    }
    rc = write_dead(r, c->lane, &p, "dead", stg_why_name(p.failure.why), wall);
    stg_sql_reset(r->find);
    return rc;
}

static int write_dead_change(stg_rows *r, const stg_change *c, stg_ns wall)
{
    stg_parked p;
    int rc;

    if (c->message == NULL) {
        rc = bury_parked(r, c, wall);
    } else {
        rc = parked_of(&p, c);
        if (rc == SQLITE_OK)
            rc = write_dead(r, c->lane, &p, "dead", stg_why_name(p.failure.why),
                            wall);
    }
    return rc == SQLITE_OK ? run_on_row(r->unpark, c) : rc;
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
    stg_stmt *st = c->message != NULL ? r->park : r->repark;

    if (rc != SQLITE_OK)
        return rc;
    f = &p.failure;
    o = &f->outcome;
    rc = stg_sql_bind(
        st, "uuuuuuuuuvduuudduuuussv", (uint64_t)c->lane, (uint64_t)p.partition,
        p.position, (uint64_t)p.replay, p.due_at, p.wait,
        (uint64_t)p.progress.attempts, (uint64_t)p.progress.own_waits,
        p.progress.last, limited_of(&p.progress), (int)p.has_failure,
        (uint64_t)o->fault, (uint64_t)o->code_kind, (uint64_t)o->code,
        (int)o->permanent, (int)o->unsent, o->delay, (uint64_t)f->why,
        f->first_attempt_at, f->last_attempt_at,
        p.has_failure ? stg_outcome_cause(o, cause) : NULL, text_of(f->detail),
        (stg_span){f->answer, f->answer_size});
    if (rc == SQLITE_OK && c->message != NULL)
        rc = stg_sql_bind_from(st, 24, "htttbu", p.key_hash,
                               p.parcel.content_type, p.parcel.headers,
                               p.parcel.key, p.parcel.body,
                               c->message->created_at);
    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "");
    // A delivery would be waited for that nobody has: it would be lost.
    if (rc == SQLITE_OK && c->message == NULL && stg_sql_changes(st, &rc) == 0)
        rc = rc == SQLITE_OK ? SQLITE_CORRUPT : rc;
    return rc;
}

int stg_rows_write(stg_rows *r, const stg_change *c, stg_ns wall)
{
    switch (c->kind) {
    case STG_CHANGE_PARK:
        return write_park(r, c);
    case STG_CHANGE_DELIVERED:
        return run_on_row(r->unpark, c);
    case STG_CHANGE_DEAD:
        return write_dead_change(r, c, wall);
    case STG_CHANGE_RANGE:
        return stg_ranges_write(r, c, wall);
    case STG_CHANGE_CANCEL:
        return write_cancel(r, c, wall);
    case STG_CHANGE_FORGET:
        return stg_sql_run(r->forget, "u", (uint64_t)c->lane);
    }
    return SQLITE_MISUSE;
}

static int pull_in(stg_db *db, const char *text, uint32_t partition,
                   stg_ns wall)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(db, &st, text);

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "uu", wall, (uint64_t)partition);
    stg_sql_finalize(st);
    return rc;
}

int stg_rows_pull_in(stg_db *db, stg_ns wall)
{
    return pull_in(db,
                   "UPDATE parked SET due_at = ?1 + wait"
                   " WHERE due_at - ?1 > wait AND ?2 = 0",
                   0, wall);
}

int stg_rows_pull_in_one(stg_db *db, uint32_t partition, stg_ns wall)
{
    return pull_in(db,
                   "UPDATE parked SET due_at = ?1 + wait"
                   " WHERE due_at - ?1 > wait AND partition = ?2",
                   partition, wall);
}
