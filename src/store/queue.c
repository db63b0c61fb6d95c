/* The embedded log: messages by position, in tables.
 *
 * Positions rise by one and are never used twice: next_position is stored in
 * each transaction that appends, and not made from the largest row, which may
 * have been trimmed. What messages fill of the file is counted, not measured:
 * each row has the sum of all before it, and so any range is a difference of
 * two rows. The first position that is too old, or beyond the room, is found by
 * halving.
 *
 * A segment ends when it fills half of what is there, within bounds: so there are
 * few, and what is emptied late is no more than a part. */
#include "store/queue.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/parcel.h"
#include "store/sqlite.h"

enum {
    SEGMENT_MAX = 16, /* times the least */
    EMPTIED_MAX = 32, /* a larger one, written while there was no other table,
                         goes by its rows */
};

/* Bulk rows of the queue need their bodies until they are replayed: `needed` is
 * where the first of them begins. */
static int prepare(stg_queue *q, stg_db *db)
{
    int rc = stg_sql_prepare(
        db, &q->note_next,
        "UPDATE meta SET value = ? WHERE name = 'next_position'");

    if (rc != SQLITE_OK)
        return rc;
    return stg_sql_prepare(db, &q->needed,
                           "SELECT position FROM failed_broadcast_logs"
                           " WHERE partition = 0 AND last_position IS NOT NULL"
                           " AND state = 'dead' ORDER BY position LIMIT 1");
}

/* Makes *st of head, the table's name and tail, if it is not there. */
static int prepare_of(stg_db *db, stg_stmt **st, const char *head,
                      unsigned table, const char *tail)
{
    char text[256];

    if (*st != NULL)
        return SQLITE_OK;
    snprintf(text, sizeof text, "%s messages_%u %s", head, table, tail);
    return stg_sql_prepare(db, st, text);
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
    return stg_ns_sub(q->is.filled, q->is.gone);
}

/* -- places ---------------------------------------------------------------- */

/* The segment that has `from`, or the first. There is one. */
static size_t segment_of(const stg_queue *q, uint64_t from)
{
    size_t i = q->is.count - 1;

    while (i > 0 && q->is.segments[i].first > from)
        i--;
    return i;
}

/* SQLITE_DONE: none from `from` on. */
static int at_in(stg_queue *q, unsigned table, uint64_t from,
                 stg_queue_place *place)
{
    stg_stmt **st = &q->tables[table].at;
    int rc =
        prepare_of(q->db, st, "SELECT position, created_at, filled_before FROM",
                   table, "WHERE position >= ? ORDER BY position LIMIT 1");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(*st, "u", from);
    if (rc == SQLITE_OK)
        rc = stg_sql_step(*st);
    if (rc != SQLITE_ROW)
        return rc;
    place->position = stg_sql_column(*st, 0);
    place->created_at = stg_sql_column(*st, 1);
    place->filled = stg_sql_column(*st, 2);
    return stg_sql_reset(*st);
}

/* Positions have no gaps: a segment that has `from` has its message. */
int stg_queue_at(stg_queue *q, uint64_t from, stg_queue_place *place)
{
    int rc;

    *place = (stg_queue_place){.position = q->is.next,
                               .created_at = UINT64_MAX,
                               .filled = q->is.filled};
    if (q->is.count == 0)
        return SQLITE_OK;
    rc = at_in(q, q->is.segments[segment_of(q, from)].table, from, place);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
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
    uint64_t low = q->is.first, high = end;
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
    return search(q, q->is.next, is_young, stg_ns_sub(wall, age) / STG_MS,
                  position);
}

int stg_queue_behind(stg_queue *q, uint64_t bytes, uint64_t *position)
{
    return search(q, q->is.next, is_filled, stg_ns_add(q->is.gone, bytes),
                  position);
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

/* A table that has messages is a segment. */
static int load_segments(stg_queue *q)
{
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(
        q->db, &st,
        "SELECT number, first FROM segments WHERE first IS NOT NULL"
        " ORDER BY first");

    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        q->is.segments[q->is.count++] = (stg_segment){
            .table = (unsigned)stg_sql_column(st, 0) % STG_SEGMENTS,
            .first = stg_sql_column(st, 1)};
        rc = SQLITE_OK;
    }
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Where each begins, and the last message ends. */
static int load_filled(stg_queue *q)
{
    stg_stmt *st = NULL;
    stg_queue_place first = {.filled = 0};
    uint64_t last = 0;
    int rc = SQLITE_OK;

    for (size_t i = 0; i < q->is.count && rc == SQLITE_OK; i++) {
        rc = at_in(q, q->is.segments[i].table, 0, &first);
        q->is.segments[i].filled = first.filled;
    }
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(
            q->db, &st,
            // Lengths are in the row's head: its body is not read for them.
            "SELECT position, filled_before, coalesce(length(content_type), 0)"
            " + coalesce(length(headers), 0) + coalesce(length(key), 0)"
            " + length(body) FROM messages ORDER BY position DESC LIMIT 1");
    if (rc == SQLITE_OK)
        rc = stg_sql_step(st);
    if (rc == SQLITE_ROW) {
        last = stg_sql_column(st, 0);
        q->is.filled = stg_sql_column(st, 1) + cost_of(stg_sql_column(st, 2));
    }
    stg_sql_finalize(st);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    return q->is.next == 0 || last >= q->is.next ? SQLITE_CORRUPT : SQLITE_OK;
}

static void find_first(stg_queue *q)
{
    bool is_empty = q->is.count == 0;

    q->is.first = is_empty ? q->is.next : q->is.segments[0].first;
    q->is.gone = is_empty ? q->is.filled : q->is.segments[0].filled;
}

int stg_queue_load(stg_queue *q, stg_db *db, uint64_t segment_min)
{
    int rc;

    q->db = db;
    q->segment_min = segment_min;
    rc = stg_meta_read(db, "next_position", &q->is.next);
    if (rc == SQLITE_OK)
        rc = prepare(q, db);
    if (rc == SQLITE_OK)
        rc = load_segments(q);
    if (rc == SQLITE_OK)
        rc = load_filled(q);
    if (rc != SQLITE_OK)
        return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    find_first(q);
    return SQLITE_OK;
}

/* -- appending ------------------------------------------------------------- */

/* The first table without messages. There is one. */
static unsigned free_table(const stg_queue *q)
{
    bool is_used[STG_SEGMENTS + 1] = {false};
    unsigned table = 0;

    for (size_t i = 0; i < q->is.count; i++)
        is_used[q->is.segments[i].table] = true;
    while (is_used[table])
        table++;
    return table;
}

/* Whether the next message begins a segment. */
static bool has_ended(const stg_queue *q)
{
    const stg_queue_extent *is = &q->is;
    uint64_t most =
        stg_ns_min(stg_queue_bytes(q) / 2, SEGMENT_MAX * q->segment_min);

    if (is->count == 0)
        return true;
    return is->count < STG_SEGMENTS &&
           is->filled - is->segments[is->count - 1].filled >=
               stg_ns_max(q->segment_min, most);
}

/* The table for the next message. */
static unsigned take_table(stg_queue *q)
{
    stg_queue_extent *is = &q->is;

    if (has_ended(q)) {
        unsigned table = free_table(q);

        is->segments[is->count++] = (stg_segment){
            .table = table, .first = is->next, .filled = is->filled};
    }
    return is->segments[is->count - 1].table;
}

/* created_at is in ms in the table and in stg_queue_place, and in ns in a
 * record. */
int stg_queue_add(stg_queue *q, const stg_parcel *p, stg_ns wall,
                  uint64_t *position)
{
    uint64_t hash = stg_parcel_hash(p->key);
    unsigned table = take_table(q);
    stg_stmt **st = &q->tables[table].add;
    int rc = prepare_of(q->db, st, "INSERT INTO", table,
                        "(position, key_hash, created_at, filled_before,"
                        " content_type, headers, key, body)"
                        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)");

    if (rc == SQLITE_OK)
        rc = stg_sql_run(*st, "uhuutttb", q->is.next, hash, wall / STG_MS,
                         q->is.filled, p->content_type, p->headers, p->key,
                         p->body);
    if (rc != SQLITE_OK)
        return rc;
    *position = q->is.next++;
    q->is.filled += stg_queue_cost(p);
    return SQLITE_OK;
}

int stg_queue_note(stg_queue *q)
{
    return stg_sql_run(q->note_next, "u", q->is.next);
}

/* -- trimming -------------------------------------------------------------- */

/* Where the segment i ends, and what is filled before that. */
static stg_queue_place end_of(const stg_queue *q, size_t i)
{
    const stg_segment *next = &q->is.segments[i + 1];

    return i + 1 < q->is.count ? (stg_queue_place){.position = next->first,
                                                   .filled = next->filled}
                               : (stg_queue_place){.position = q->is.next,
                                                   .filled = q->is.filled};
}

uint64_t stg_queue_ended(const stg_queue *q, uint64_t limit)
{
    uint64_t end = q->is.first;

    for (size_t i = 0; i + 1 < q->is.count; i++)
        if (q->is.segments[i + 1].first <= limit)
            end = q->is.segments[i + 1].first;
    return end;
}

static int empty(stg_queue *q, unsigned table)
{
    stg_stmt **st = &q->tables[table].empty;
    int rc = prepare_of(q->db, st, "DELETE FROM", table, "");

    return rc == SQLITE_OK ? stg_sql_run(*st, "") : rc;
}

/* Never deletes beyond `end`, which is in the first segment; where one message
 * alone is larger than bytes_max, it still goes. */
static int remove_rows(stg_queue *q, uint64_t end, uint64_t bytes_max,
                       stg_queue_place *place)
{
    unsigned table = q->is.segments[0].table;
    stg_stmt **st = &q->tables[table].remove;
    int rc = stg_queue_at(q, end, place);

    if (rc == SQLITE_OK && stg_ns_sub(place->filled, q->is.gone) > bytes_max) {
        rc = search(q, end, is_filled, stg_ns_add(q->is.gone, bytes_max), &end);
        if (rc == SQLITE_OK)
            rc = stg_queue_at(q, end, place);
    }
    if (rc == SQLITE_OK)
        rc = prepare_of(q->db, st, "DELETE FROM", table, "WHERE position < ?");
    return rc == SQLITE_OK ? stg_sql_run(*st, "u", end) : rc;
}

/* The first segment begins at `place`, or is over. */
static void begin_at(stg_queue *q, const stg_queue_place *place)
{
    stg_queue_extent *is = &q->is;

    if (place->position >= end_of(q, 0).position) {
        is->count--;
        memmove(is->segments, is->segments + 1,
                is->count * sizeof *is->segments);
    } else {
        is->segments[0].first = place->position;
        is->segments[0].filled = place->filled;
    }
    find_first(q);
}

int stg_queue_trim(stg_queue *q, uint64_t limit, size_t rows_max,
                   uint64_t bytes_max)
{
    stg_queue_place place;
    int rc;

    assert(q->is.first < limit && limit <= q->is.next);
    place = end_of(q, 0);
    if (limit >= place.position &&
        place.filled - q->is.gone <= EMPTIED_MAX * q->segment_min)
        rc = empty(q, q->is.segments[0].table);
    else
        rc = remove_rows(q,
                         stg_ns_min(stg_ns_min(limit, place.position),
                                    q->is.first + rows_max),
                         bytes_max, &place);
    if (rc == SQLITE_OK)
        begin_at(q, &place);
    return rc;
}

/* -- the reader's side ----------------------------------------------------- */

int stg_queue_reader_prepare(stg_queue_reader *r, stg_db *db)
{
    r->db = db;
    return stg_sql_prepare(
        db, &r->segments,
        "SELECT number, first FROM segments ORDER BY first DESC");
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

/* SQLITE_DONE: the segment has no more; SQLITE_ROW: the chunk is full. */
static int read_segment(stg_queue_reader *r, unsigned table, uint64_t from,
                        size_t bytes_max, stg_chunk *b)
{
    stg_stmt **st = &r->read[table];
    int rc = prepare_of(r->db, st,
                        "SELECT position, key_hash, content_type, headers, key,"
                        " body, created_at FROM",
                        table, "WHERE position >= ? ORDER BY position");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(*st, "u", from);
    while (rc == SQLITE_OK && (rc = stg_sql_step(*st)) == SQLITE_ROW) {
        stg_parcel p = {.content_type = stg_sql_column_span(*st, 2),
                        .headers = stg_sql_column_span(*st, 3),
                        .key = stg_sql_column_span(*st, 4),
                        .body = stg_sql_column_span(*st, 5)};
        size_t size = stg_parcel_size(&p);

        if (b->count > 0 && b->size + size > bytes_max)
            break;
        rc = add(b, *st, &p, size) ? SQLITE_OK : SQLITE_NOMEM;
    }
    stg_sql_reset(*st);
    return rc;
}

/* The segments that may have `from` or what comes after it, the last one first.
 * Leaves the statement on a row: while it is, the connection reads the file as it
 * is now, where a table that is emptied may soon have later messages. */
static int find_segments(stg_queue_reader *r, uint64_t from,
                         unsigned tables[static STG_SEGMENTS], size_t *count)
{
    int rc = SQLITE_ROW;

    for (*count = 0; *count < STG_SEGMENTS && rc == SQLITE_ROW;) {
        rc = stg_sql_step(r->segments);
        if (rc != SQLITE_ROW || stg_sql_is_null(r->segments, 1))
            break;
        tables[(*count)++] =
            (unsigned)stg_sql_column(r->segments, 0) % STG_SEGMENTS;
        if (stg_sql_column(r->segments, 1) <= from)
            break;
    }
    return rc;
}

int stg_queue_read(stg_queue_reader *r, uint64_t from, size_t bytes_max,
                   stg_chunk *b)
{
    unsigned tables[STG_SEGMENTS];
    size_t count;
    int rc = find_segments(r, from, tables, &count);

    if (rc == SQLITE_ROW)
        rc = SQLITE_DONE;
    while (count > 0 && rc == SQLITE_DONE)
        rc = read_segment(r, tables[--count], from, bytes_max, b);
    // No read transaction outlives the call: the WAL could not be reset.
    stg_sql_reset(r->segments);
    point(b);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void stg_chunk_free(stg_chunk *b)
{
    free(b->records);
    free(b->bytes);
}
