/* One dead letter is replayed or dropped, in the writer's transaction.
 *
 * A replay makes the parked row and changes the letter's state at once: the
 * message waits in exactly one of them at any time (I13). Each statement names
 * the state that it expects, so that the second of two calls finds nothing to do.
 *
 * Of a bulk row a piece is taken from its front: its messages are parked, its
 * position moves behind them, and `eaten` counts them; messages that have a row
 * of their own (they were settled by themselves) are passed over. */
#include "store/rows.h"

#include "store/eviction.h"

static const char look[] =
    "SELECT lane, partition, position, replay, last_position, count, eaten,"
    " coalesce((SELECT is_forgotten FROM lanes WHERE number = lane), 1), key,"
    " CASE WHEN last_position IS NULL AND payload IS NULL THEN 1 ELSE 0 END"
    " FROM failed_broadcast_logs WHERE id = ? AND state = 'dead'";

/* Attempts begin anew, and go on being counted. */
#define PARKED                                                             \
    "INSERT INTO parked (lane, partition, position, replay,"               \
    " due_at, wait, attempts, last_wait, has_failure, fault,"              \
    " code_kind, code, is_permanent, is_unsent, delay, why,"               \
    " first_attempt_at, last_attempt_at, key_hash, content_type, headers," \
    " key, body, attempts_before, created_at, source_key, source_headers)"

#define NOTHING_YET "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0"

#define ONCE " ON CONFLICT (lane, partition, position, replay) DO NOTHING"

#define PARK(created_at)                                                      \
    PARKED " SELECT lane, partition, position, replay + 1, ?2, " NOTHING_YET  \
           ", ?3, content_type, headers, key, payload, attempts, " created_at \
           ", source_key, source_headers"                                     \
           " FROM failed_broadcast_logs f WHERE id = ?1" ONCE

static const char park[] = PARK(
    "coalesce((SELECT m.created_at * 1000000 FROM messages m"
    " WHERE m.position = f.position AND f.partition = 0), 0)");

/* There is no queue beside it. */
static const char park_shared[] = PARK("0");

#define IS_NOT_PARKED                                       \
    " NOT EXISTS (SELECT 1 FROM parked p WHERE p.lane = ?1" \
    " AND p.partition = ?2 AND p.position = ?3)"

/* What was settled by itself has a row of its own. */
#define HAS_NO_LETTER                                             \
    " AND NOT EXISTS (SELECT 1 FROM failed_broadcast_logs f"      \
    " WHERE f.lane = ?1 AND f.partition = ?2 AND f.position = ?3" \
    " AND f.last_position IS NULL)"

#define EAT(replay, unless)                                           \
    PARKED " SELECT ?1, ?2, m.position, " replay ", ?4, " NOTHING_YET \
           ", key_hash, content_type, headers, key, body, 0,"         \
           " created_at * 1000000, NULL, NULL FROM messages m"        \
           " WHERE m.position = ?3 AND" IS_NOT_PARKED unless ONCE

/* The same of another log: who reads it brings the message. */
#define FEED(replay, unless)                                  \
    PARKED " SELECT ?1, ?2, ?3, " replay ", ?4, " NOTHING_YET \
           ", ?5, ?6, ?7, ?8, ?9, 0, ?10, ?11, ?12"           \
           " WHERE" IS_NOT_PARKED unless ONCE

static const char eat[] = EAT("1", HAS_NO_LETTER);
static const char feed[] = FEED("1", HAS_NO_LETTER);
static const char eat_again[] = EAT("?5", "");
static const char feed_again[] = FEED("?13", "");

/* The body is in the parked row now. */
static const char over[] =
    "UPDATE failed_broadcast_logs SET state = 'replayed', payload = NULL,"
    " changed_at = ?2, version = ?3 WHERE id = ?1";

/* A bulk row of evicted letters is no news for the copy, which had them. */
static const char drop[] =
    "UPDATE failed_broadcast_logs SET state = 'dropped', payload = NULL,"
    " answer = NULL, headers = NULL, source_headers = NULL,"
    " changed_at = ?2, version = CASE"
    " WHEN replay = " STG_EVICTED " THEN version ELSE ?3 END WHERE id = ?1";

static const char shorten[] =
    "UPDATE failed_broadcast_logs SET position = ?2, count = ?3, eaten = ?4,"
    " changed_at = ?5 WHERE id = ?1";

/* Its place is again where it began, which nobody else has taken. */
static const char end[] =
    "UPDATE failed_broadcast_logs AS f SET state = ?2, count = ?3, eaten = ?4,"
    " changed_at = ?5, version = ?6, copied = ?3, position = CASE WHEN"
    " taken = 0 AND NOT EXISTS (SELECT 1 FROM failed_broadcast_logs o"
    " WHERE o.lane = f.lane AND o.partition = f.partition"
    " AND o.position = f.range_first AND o.replay = f.replay)"
    " THEN range_first ELSE position END WHERE id = ?1";

int stg_replays_prepare(stg_replays *r, stg_db *db)
{
    bool is_shared = stg_sql_is_shared(db);
    const struct {
        stg_stmt **st;
        const char *text;
    } all[] = {{&r->look, look},
               {&r->park, is_shared ? park_shared : park},
               {&r->over, over},
               {&r->drop, drop},
               {&r->feed, feed},
               {&r->shorten, shorten},
               {&r->feed_again, feed_again},
               {&r->end, end}};
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all && rc == SQLITE_OK; i++)
        rc = stg_sql_prepare(db, all[i].st, all[i].text);
    if (is_shared || rc != SQLITE_OK)
        return rc;
    rc = stg_sql_prepare(db, &r->eat, eat);
    return rc == SQLITE_OK ? stg_sql_prepare(db, &r->eat_again, eat_again) : rc;
}

/* A letter that is dead. */
typedef struct letter {
    bool is_there, is_range;
    bool is_bare; /* its payload was never kept */
    uint64_t position, last, count, eaten, key_hash;
} letter;

/* Finds a letter that is dead; *out is set anew, with its lane and
 * partition. */
static int find(stg_replays *r, uint64_t id, letter *l, stg_replayed *out)
{
    int rc = stg_sql_bind(r->look, "u", id);

    *l = (letter){.is_there = false};
    *out = (stg_replayed){.is_done = false};
    if (rc != SQLITE_OK)
        return rc;
    rc = stg_sql_step(r->look);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    *l = (letter){.is_there = true,
                  .is_range = !stg_sql_is_null(r->look, 4),
                  .position = stg_sql_column(r->look, 2),
                  .last = stg_sql_column(r->look, 4),
                  .count = stg_sql_column(r->look, 5),
                  .eaten = stg_sql_column(r->look, 6),
                  .key_hash = stg_parcel_hash(stg_sql_column_span(r->look, 8)),
                  .is_bare = stg_sql_column(r->look, 9) != 0};
    out->lane = (uint32_t)stg_sql_column(r->look, 0);
    out->partition = (uint32_t)stg_sql_column(r->look, 1);
    out->is_forgotten = stg_sql_column(r->look, 7) != 0;
    return stg_sql_reset(r->look);
}

/* The row becomes a parked one, in one transaction; one whose body is gone is counted
 * as expired. */
int stg_replays_letter(stg_replays *r, stg_rows *rows, uint64_t id, stg_ns wall,
                       stg_replayed *out)
{
    char now[STG_SQL_TIME_MAX];
    letter l;
    int rc = find(r, id, &l, out);

    if (rc != SQLITE_OK || !l.is_there || l.is_range || out->is_forgotten)
        return rc;
    if (l.is_bare) {
        out->expired = 1;
        return SQLITE_OK;
    }
    rc = stg_sql_bind(r->park, "uuh", id, wall, l.key_hash);
    if (rc == SQLITE_OK)
        rc = stg_sql_run(r->park, "");
    if (rc != SQLITE_OK || stg_sql_changes(r->park, &rc) == 0)
        return rc;
    out->is_done = true;
    out->messages = 1;
    return stg_sql_run(r->over, "usu", id, stg_sql_time(wall, now),
                       stg_rows_version(rows));
}

int stg_replays_drop(stg_replays *r, stg_rows *rows, uint64_t id, stg_ns wall,
                     stg_replayed *out)
{
    char now[STG_SQL_TIME_MAX];
    letter l;
    int rc = find(r, id, &l, out);

    if (rc != SQLITE_OK || !l.is_there)
        return rc;
    out->is_done = true;
    out->messages = l.count;
    return stg_sql_run(r->drop, "usu", id, stg_sql_time(wall, now),
                       stg_rows_version(rows));
}

/* -- bulk rows ------------------------------------------------------------ */

/* st: one of EAT or FEED. replay: of one that has a parameter for it; else 0. */
static int bind_message(stg_stmt *st, const stg_bite *b, size_t i,
                        uint32_t replay, stg_ns wall, const stg_replayed *out)
{
    const stg_record *m = b->records == NULL ? NULL : &b->records[i];
    stg_parcel p;
    int at = 5, rc;

    rc = stg_sql_bind(st, "uuuu", (uint64_t)out->lane, (uint64_t)out->partition,
                      b->positions[i], wall);
    if (rc == SQLITE_OK && m != NULL) {
        at = 13;
        if (!stg_parcel_unpack(&p, m->bytes, m->size))
            return SQLITE_MISUSE;
        rc = stg_sql_bind_from(st, 5, "htttbunn", m->key, p.content_type,
                               p.headers, p.key, p.body, m->created_at,
                               p.source_key, p.source_headers);
    }
    if (rc == SQLITE_OK && replay > 0)
        rc = stg_sql_bind_from(st, at, "u", (uint64_t)replay);
    return rc;
}

/* No row is made where the message has one of its own, or is gone: it is passed
 * over. */
static int park_message(stg_stmt *st, const stg_bite *b, size_t i,
                        uint32_t replay, stg_ns wall, stg_replayed *out)
{
    int rc = bind_message(st, b, i, replay, wall, out);

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "");
    if (rc == SQLITE_OK)
        out->messages += stg_sql_changes(st, &rc);
    return rc;
}

/* As many as the row stands for, and no more. */
static int park_messages(stg_replays *r, const stg_bite *b, uint64_t most,
                         stg_ns wall, stg_replayed *out)
{
    stg_stmt *st = b->records == NULL ? r->eat : r->feed;
    int rc = SQLITE_OK;

    for (size_t i = 0; i < b->count && out->messages < most && rc == SQLITE_OK;
         i++)
        rc = park_message(st, b, i, 0, wall, out);
    return rc;
}

/* Whether a message of b before this one, or one that is parked, goes first. */
static bool has_to_wait(const stg_again_bite *b, size_t i)
{
    if (b->order == STG_ORDER_STRICT)
        return b->waiting_count > 0 || i > 0;
    if (b->order == STG_ORDER_NONE || b->keys[i] == 0)
        return false;
    for (size_t j = 0; j < b->waiting_count; j++)
        if (b->waiting[j] == b->keys[i])
            return true;
    for (size_t j = 0; j < i; j++)
        if (b->keys[j] == b->keys[i])
            return true;
    return false;
}

int stg_replays_again(stg_replays *r, const stg_again_bite *b, stg_ns wall,
                      stg_replayed *out)
{
    const stg_bite *bite = b->bite;
    stg_stmt *st = bite->records == NULL ? r->eat_again : r->feed_again;
    int rc = SQLITE_OK;

    out->next = bite->to + 1;
    for (size_t i = 0; i < bite->count && rc == SQLITE_OK; i++) {
        if (has_to_wait(b, i)) {
            out->next = bite->positions[i];
            break;
        }
        rc = park_message(st, bite, i, b->replay, wall, out);
    }
    return rc;
}

int stg_replays_range(stg_replays *r, stg_rows *rows, const stg_bite *b,
                      stg_ns wall, stg_replayed *out)
{
    char text[STG_SQL_TIME_MAX];
    const char *now = stg_sql_time(wall, text);
    uint64_t next = b->to + 1, left, eaten;
    letter l;
    int rc = find(r, b->id, &l, out);

    if (rc != SQLITE_OK || !l.is_there || !l.is_range || out->is_forgotten ||
        l.position != b->from)
        return rc;
    out->is_done = true;
    rc = park_messages(r, b, l.count, wall, out);
    if (rc != SQLITE_OK)
        return rc;
    left = l.count - out->messages;
    eaten = l.eaten + out->messages;
    if (b->to >= l.last || left == 0) {
        out->expired = left;
        return stg_sql_run(
            r->end, "usuusu", b->id, left == 0 ? "replayed" : "expired",
            left == 0 ? eaten : left, eaten, now, stg_rows_version(rows));
    }
    rows->ranges.has_grown = true; // or shrunk
    rc = stg_ranges_free_name(&rows->ranges, out->lane, out->partition, 0,
                              &next);
    out->next = next;
    return rc == SQLITE_OK
               ? stg_sql_run(r->shorten, "uuuus", b->id, next, left, eaten, now)
               : rc;
}
