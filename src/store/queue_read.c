/* The reader's side of the queue: messages as records, packed. */
#include <stdlib.h>

#include "store/queue.h"

int stg_queue_prepare_read(stg_db *db, stg_stmt **st)
{
    return stg_sql_prepare(
        db, st,
        "SELECT position, key_hash, content_type, headers, key, body,"
        " created_at"
        " FROM messages WHERE position >= ? ORDER BY position");
}

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
    if (!make_room(b, size))
        return false;
    stg_parcel_pack(p, b->bytes + b->size);
    b->records[b->count++] =
        (stg_record){.position = stg_sql_column(st, 0),
                     .key = stg_sql_bits(st, 1),
                     .size = size,
                     .created_at = stg_sql_column(st, 6) * STG_MS};
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
