#include "hub/stores/queue.h"

#include "hub/stores/schema.h"

static int prepare(stg_queue *q, stg_db *db)
{
    const struct {
        stg_stmt **st;
        const char *text;
    } all[] = {
        {&q->add,
         "INSERT INTO messages (position, key_hash, created_at,"
         " content_type, headers, key, body)"
         " VALUES (?, ?, ?, ?, ?, ?, ?)"},
        {&q->note_next,
         "UPDATE meta SET value = ? WHERE name = 'next_position'"},
        {&q->note_bytes,
         "UPDATE meta SET value = ? WHERE name = 'message_bytes'"},
        // Lengths are in the row's head: bodies are not read for them.
        {&q->sizes,
         "SELECT position, coalesce(length(content_type), 0),"
         " coalesce(length(headers), 0), coalesce(length(key), 0),"
         " length(body) FROM messages WHERE position >= ?"
         " ORDER BY position"},
        {&q->remove, "DELETE FROM messages WHERE position < ?"},
        {&q->created,
         "SELECT created_at, position FROM messages"
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

int stg_queue_at(stg_queue *q, uint64_t from, uint64_t *position,
                 uint64_t *created_at)
{
    int rc = stg_sql_bind(q->created, "u", from);

    if (rc != SQLITE_OK)
        return rc;
    rc = stg_sql_step(q->created);
    *position = q->next;
    *created_at = UINT64_MAX;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    *created_at = stg_sql_column(q->created, 0);
    *position = stg_sql_column(q->created, 1);
    return stg_sql_reset(q->created);
}

static int check_last(stg_queue *q)
{
    stg_stmt *st = NULL;
    uint64_t last = 0;
    int rc = stg_sql_prepare_once(
        q->db, &st, "SELECT coalesce(max(position), 0) FROM messages");

    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, &last);
    stg_sql_finalize(st);
    if (rc == SQLITE_OK && (q->next == 0 || last >= q->next))
        return SQLITE_CORRUPT;
    return rc;
}

int stg_queue_load(stg_queue *q, stg_db *db)
{
    uint64_t created_at;
    int rc;

    q->db = db;
    rc = stg_meta_read(db, "next_position", &q->next);
    if (rc == SQLITE_OK)
        rc = stg_meta_read(db, "message_bytes", &q->bytes);
    if (rc == SQLITE_OK)
        rc = check_last(q);
    if (rc == SQLITE_OK)
        rc = prepare(q, db);
    if (rc == SQLITE_OK)
        rc = stg_queue_at(q, 0, &q->first, &created_at);
    return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

/* -- what a message fills -------------------------------------------------- */

/* Source: "Database File Format", sqlite.org, section 1.6: a leaf keeps up to
 * U - 35 bytes of a row, and else its head and whole overflow pages of U - 4;
 * U is the page size. */
static uint64_t cost_of(uint64_t size)
{
    enum { HEAD = 40, LEAF = STG_PAGE - 8, OVERFLOW = STG_PAGE - 4 };
    uint64_t row = size + HEAD;

    if (row <= STG_PAGE - 35)
        return STG_PAGE / (LEAF / row);
    return (row / OVERFLOW + 1) * STG_PAGE;
}

uint64_t stg_queue_cost(const stg_parcel *p)
{
    return cost_of(p->content_type.size + p->headers.size + p->key.size +
                   p->body.size);
}

/* -- appending ------------------------------------------------------------- */

int stg_queue_add(stg_queue *q, const stg_parcel *p, stg_ns wall,
                  uint64_t *position)
{
    uint64_t hash = stg_parcel_hash(p->key);
    int rc = stg_sql_run(q->add, "uhutttb", q->next, hash, wall / STG_MS,
                         p->content_type, p->headers, p->key, p->body);

    if (rc != SQLITE_OK)
        return rc;
    *position = q->next++;
    q->bytes += stg_queue_cost(p);
    return SQLITE_OK;
}

int stg_queue_note(stg_queue *q)
{
    int rc = stg_sql_run(q->note_next, "u", q->next);

    return rc == SQLITE_OK ? stg_sql_run(q->note_bytes, "u", q->bytes) : rc;
}

/* -- trimming -------------------------------------------------------------- */

static uint64_t row_cost(stg_stmt *st)
{
    return cost_of(stg_sql_column(st, 1) + stg_sql_column(st, 2) +
                   stg_sql_column(st, 3) + stg_sql_column(st, 4));
}

/* Goes over messages from the first on, until a position, or a number of rows
 * or bytes. *end: the first that was not counted. */
static int measure(stg_queue *q, uint64_t limit, size_t rows_max,
                   uint64_t bytes_max, uint64_t *end, uint64_t *bytes)
{
    size_t rows = 0;
    int rc = stg_sql_bind(q->sizes, "u", q->first);

    *bytes = 0;
    *end = q->next;
    while (rc == SQLITE_OK && (rc = stg_sql_step(q->sizes)) == SQLITE_ROW) {
        uint64_t position = stg_sql_column(q->sizes, 0);

        if (position >= limit || rows == rows_max || *bytes >= bytes_max) {
            *end = position;
            break;
        }
        rows++;
        *bytes += row_cost(q->sizes);
        rc = SQLITE_OK;
    }
    stg_sql_reset(q->sizes);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int stg_queue_trim(stg_queue *q, uint64_t limit, size_t rows_max,
                   uint64_t bytes_max)
{
    uint64_t end, bytes;
    int rc = measure(q, limit, rows_max, bytes_max, &end, &bytes);

    if (rc == SQLITE_OK)
        rc = stg_sql_run(q->remove, "u", end);
    if (rc != SQLITE_OK)
        return rc;
    q->first = end;
    // The count is about right, and exact where it matters.
    q->bytes = end == q->next ? 0 : stg_ns_sub(q->bytes, bytes);
    return stg_sql_run(q->note_bytes, "u", q->bytes);
}

int stg_queue_younger(stg_queue *q, stg_ns wall, stg_ns age, uint64_t *position)
{
    uint64_t since = stg_ns_sub(wall, age) / STG_MS;
    uint64_t low = q->first, high = q->next;
    int rc = SQLITE_OK;

    // Halved until low is the first that is young enough. The clock may have
    // stepped: then it is one of those at which old turns young.
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, there, created_at;

        rc = stg_queue_at(q, middle, &there, &created_at);
        if (rc != SQLITE_OK)
            break;
        if (created_at >= since)
            high = middle;
        else
            low = there + 1;
    }
    *position = low < q->next ? low : q->next;
    return rc;
}

int stg_queue_behind(stg_queue *q, uint64_t bytes, size_t rows_max,
                     uint64_t *position)
{
    uint64_t filled;

    return measure(q, UINT64_MAX, rows_max, bytes, position, &filled);
}

int stg_queue_needed(stg_queue *q, uint64_t *position)
{
    int rc = stg_sql_number(q->needed, position);

    if (rc != SQLITE_DONE)
        return rc;
    *position = UINT64_MAX;
    return SQLITE_OK;
}
