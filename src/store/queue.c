/* The embedded log: a table of messages by position.
 *
 * Positions rise by one and are never used twice: next_position is stored in
 * each transaction that appends, and not made from the largest row, which may
 * have been trimmed. What messages fill of the file is counted, not measured:
 * each row has the sum of all before it, and so any range is a difference of
 * two rows. The first position that is too old, or beyond the room, is found by
 * halving. */
#include "store/queue.h"

#include <stdlib.h>

#include "store/parcel.h"
#include "store/sqlite.h"

/* Bulk rows of the queue need their bodies until they are replayed: `needed` is
 * where the first of them begins. */
static int prepare(stg_queue *q, stg_db *db)
{
    const struct {
        stg_stmt **st;
        const char *text;
    } all[] = {
        {&q->add,
         "INSERT INTO messages (position, key_hash, created_at,"
         " filled_before, content_type, headers, key, body)"
         " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
        {&q->note_next,
         "UPDATE meta SET value = ? WHERE name = 'next_position'"},
        {&q->remove, "DELETE FROM messages WHERE position < ?"},
        {&q->at,
         "SELECT position, created_at, filled_before FROM messages"
         " WHERE position >= ? ORDER BY position LIMIT 1"},
        {&q->needed,
         "SELECT position FROM failed_broadcast_logs"
         " WHERE partition = 0 AND last_position IS NOT NULL"
         " AND state = 'dead' ORDER BY position LIMIT 1"},
    };
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all && rc == SQLITE_OK; i++)
        rc = stg_sql_prepare(db, all[i].st, all[i].text);
    return rc;
}

/* -- what a message fills -------------------------------------------------- */

enum {
    HEAD = 44,
    LEAF = STG_PAGE - 8,
    KEPT_MAX = STG_PAGE - 35,
    KEPT_MIN = (STG_PAGE - 12) * 32 / 255 - 23,
    OVERFLOW = STG_PAGE - 4,
};

/* What is on a leaf takes its share of it: whole rows. */
static uint64_t share_of(uint64_t kept)
{
    return STG_PAGE / (LEAF / kept);
}

/* Source: "Database File Format", sqlite.org, section 1.6: a leaf keeps up to
 * U - 35 bytes of a row (X); of a longer one it keeps K, or M where K is above X,
 * and the rest is in overflow pages of U - 4. U is the page size. */
static uint64_t cost_of(uint64_t size)
{
    uint64_t row = size + HEAD, kept;

    if (row <= KEPT_MAX)
        return share_of(row);
    kept = KEPT_MIN + (row - KEPT_MIN) % OVERFLOW;
    if (kept > KEPT_MAX)
        kept = KEPT_MIN;
    return (row - kept + OVERFLOW - 1) / OVERFLOW * STG_PAGE + share_of(kept);
}

uint64_t stg_queue_cost(const stg_parcel *p)
{
    return cost_of(p->content_type.size + p->headers.size + p->key.size +
                   p->body.size);
}

uint64_t stg_queue_bytes(const stg_queue *q)
{
    return stg_ns_sub(q->filled, q->gone);
}

/* -- places ---------------------------------------------------------------- */

int stg_queue_at(stg_queue *q, uint64_t from, stg_queue_place *place)
{
    int rc = stg_sql_bind(q->at, "u", from);

    *place = (stg_queue_place){
        .position = q->next, .created_at = UINT64_MAX, .filled = q->filled};
    if (rc != SQLITE_OK)
        return rc;
    rc = stg_sql_step(q->at);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    place->position = stg_sql_column(q->at, 0);
    place->created_at = stg_sql_column(q->at, 1);
    place->filled = stg_sql_column(q->at, 2);
    return stg_sql_reset(q->at);
}

static bool is_young(const stg_queue_place *p, uint64_t since)
{
    return p->created_at >= since;
}

static bool is_filled(const stg_queue_place *p, uint64_t bytes)
{
    return p->filled >= bytes;
}

/* The first position below `end` that is there and is what it is to be, or end:
 * so are all behind it. Halved until low is that one. A clock may have stepped:
 * then it is one of those at which old turns young. */
static int search(stg_queue *q, uint64_t end,
                  bool (*is_it)(const stg_queue_place *p, uint64_t least),
                  uint64_t least, uint64_t *position)
{
    uint64_t low = q->first, high = end;
    stg_queue_place there;
    int rc = SQLITE_OK;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        rc = stg_queue_at(q, middle, &there);
        if (rc != SQLITE_OK)
            break;
        if (is_it(&there, least))
            high = middle;
        else
            low = there.position + 1;
    }
    *position = stg_ns_min(low, end);
    return rc;
}

int stg_queue_younger(stg_queue *q, stg_ns wall, stg_ns age, uint64_t *position)
{
    return search(q, q->next, is_young, stg_ns_sub(wall, age) / STG_MS,
                  position);
}

int stg_queue_behind(stg_queue *q, uint64_t bytes, uint64_t *position)
{
    return search(q, q->next, is_filled, stg_ns_add(q->gone, bytes), position);
}

int stg_queue_needed(stg_queue *q, uint64_t *position)
{
    int rc = stg_sql_number(q->needed, position);

    if (rc != SQLITE_DONE)
        return rc;
    *position = UINT64_MAX;
    return SQLITE_OK;
}

/* -- opening --------------------------------------------------------------- */

/* Where the last message ends. */
static int load_last(stg_queue *q)
{
    stg_stmt *st = NULL;
    uint64_t last = 0;
    int rc = stg_sql_prepare_once(
        q->db, &st,
        // Lengths are in the row's head: its body is not read for them.
        "SELECT position, filled_before, coalesce(length(content_type), 0)"
        " + coalesce(length(headers), 0) + coalesce(length(key), 0)"
        " + length(body) FROM messages ORDER BY position DESC LIMIT 1");

    if (rc == SQLITE_OK)
        rc = stg_sql_step(st);
    if (rc == SQLITE_ROW) {
        last = stg_sql_column(st, 0);
        q->filled = stg_sql_column(st, 1) + cost_of(stg_sql_column(st, 2));
    }
    stg_sql_finalize(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    return q->next == 0 || last >= q->next ? SQLITE_CORRUPT : SQLITE_OK;
}

int stg_queue_load(stg_queue *q, stg_db *db)
{
    stg_queue_place first;
    int rc;

    q->db = db;
    rc = stg_meta_read(db, "next_position", &q->next);
    if (rc == SQLITE_OK)
        rc = load_last(q);
    if (rc == SQLITE_OK)
        rc = prepare(q, db);
    if (rc == SQLITE_OK)
        rc = stg_queue_at(q, 0, &first);
    if (rc != SQLITE_OK)
        return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    q->first = first.position;
    q->gone = first.filled;
    return SQLITE_OK;
}

/* -- appending ------------------------------------------------------------- */

/* created_at is in ms in the table and in stg_queue_place, and in ns in a
 * record. */
int stg_queue_add(stg_queue *q, const stg_parcel *p, stg_ns wall,
                  uint64_t *position)
{
    uint64_t hash = stg_parcel_hash(p->key);
    int rc =
        stg_sql_run(q->add, "uhuutttb", q->next, hash, wall / STG_MS, q->filled,
                    p->content_type, p->headers, p->key, p->body);

    if (rc != SQLITE_OK)
        return rc;
    *position = q->next++;
    q->filled += stg_queue_cost(p);
    return SQLITE_OK;
}

int stg_queue_note(stg_queue *q)
{
    return stg_sql_run(q->note_next, "u", q->next);
}

/* -- trimming -------------------------------------------------------------- */

/* Never deletes beyond `limit`; where one message alone is larger than
 * bytes_max, it still goes. */
int stg_queue_trim(stg_queue *q, uint64_t limit, size_t rows_max,
                   uint64_t bytes_max)
{
    uint64_t end = stg_ns_min(limit, stg_ns_add(q->first, rows_max));
    stg_queue_place place;
    int rc = stg_queue_at(q, end, &place);

    if (rc == SQLITE_OK && stg_ns_sub(place.filled, q->gone) > bytes_max) {
        rc = search(q, end, is_filled, stg_ns_add(q->gone, bytes_max), &end);
        if (rc == SQLITE_OK)
            rc = stg_queue_at(q, end, &place);
    }
    if (rc == SQLITE_OK)
        rc = stg_sql_run(q->remove, "u", end);
    if (rc != SQLITE_OK)
        return rc;
    q->first = place.position;
    q->gone = place.filled;
    return SQLITE_OK;
}

/* -- the reader's side ----------------------------------------------------- */

int stg_queue_prepare_read(stg_db *db, stg_stmt **st)
{
    return stg_sql_prepare(
        db, st,
        "SELECT position, key_hash, content_type, headers, key, body,"
        " created_at"
        " FROM messages WHERE position >= ? ORDER BY position");
}

/* Bytes may move while they grow: records get their pointers when the chunk is
 * complete. */
static bool make_room(stg_chunk *b, size_t size)
{
    if (b->count == b->room) {
        size_t room = b->room == 0 ? 64 : 2 * b->room;
        stg_record *records = realloc(b->records, room * sizeof *records);

        if (records == NULL)
            return false;
        b->records = records;
        b->room = room;
    }
    if (b->bytes_room - b->size < size) {
        size_t room = 2 * b->bytes_room + size;
        unsigned char *bytes = realloc(b->bytes, room);

        if (bytes == NULL)
            return false;
        b->bytes = bytes;
        b->bytes_room = room;
    }
    return true;
}

static bool add(stg_chunk *b, stg_stmt *st, const stg_parcel *p, size_t size)
{
    stg_times times = stg_times_find(p->headers);

    if (!make_room(b, size))
        return false;
    stg_parcel_pack(p, b->bytes + b->size);
    b->records[b->count++] =
        (stg_record){.position = stg_sql_column(st, 0),
                     .key = stg_sql_bits(st, 1),
                     .size = size,
                     .created_at = stg_sql_column(st, 6) * STG_MS,
                     .not_before = times.not_before,
                     .expires_at = times.expires_at};
    b->size += size;
    return true;
}

/* The bytes stay where they are from now on. */
static void point(stg_chunk *b)
{
    size_t at = 0;

    for (size_t i = 0; i < b->count; i++) {
        b->records[i].bytes = b->bytes + at;
        at += b->records[i].size;
    }
}

int stg_queue_read(stg_stmt *st, uint64_t from, size_t bytes_max, stg_chunk *b)
{
    int rc = stg_sql_bind(st, "u", from);

    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        stg_parcel p = {.content_type = stg_sql_column_span(st, 2),
                        .headers = stg_sql_column_span(st, 3),
                        .key = stg_sql_column_span(st, 4),
                        .body = stg_sql_column_span(st, 5)};
        size_t size = stg_parcel_size(&p);

        if (b->count > 0 && b->size + size > bytes_max)
            break;
        rc = add(b, st, &p, size) ? SQLITE_OK : SQLITE_NOMEM;
    }
    // No read transaction outlives the call: the WAL could not be reset.
    stg_sql_reset(st);
    point(b);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void stg_chunk_free(stg_chunk *b)
{
    free(b->records);
    free(b->bytes);
}
