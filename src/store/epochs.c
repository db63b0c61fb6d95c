/* Epochs of the queue: the random number before a position in an id.
 *
 * A store's file can come back as it was: from a backup, a copy, a snapshot.
 * Nothing in the file tells that, and its positions are then given a second
 * time. So each opening draws an epoch of its own, for the positions that it
 * gives. The table gets a row for it with the first message (appends.c), in one
 * transaction: an epoch is durable before an id of it was answered, and an
 * opening that accepts nothing leaves no row. */
#include "store/ids.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "store/lanes.h"
#include "store/sqlite.h"

/* Rows that stay even where nothing is left of their messages: 1024 starts ago
 * an operator can still ask what became of an id. */
enum { KEPT = 1024 };

/* -- in memory ------------------------------------------------------------- */

static bool epochs_add(stg_epochs *e, uint64_t first, uint64_t epoch)
{
    if (e->count == e->room) {
        size_t room = e->room == 0 ? 16 : 2 * e->room;
        stg_epoch *all = realloc(e->all, room * sizeof *all);

        if (all == NULL)
            return false;
        e->all = all;
        e->room = room;
    }
    e->all[e->count++] = (stg_epoch){.first = first, .epoch = epoch};
    return true;
}

/* The last epoch that begins at the position or before it; 0 if none does. */
static size_t epochs_search(const stg_epochs *e, uint64_t position)
{
    size_t low = 0, high = e->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (e->all[middle].first <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t stg_epochs_now(const stg_epochs *e)
{
    return e->all[e->count - 1].epoch;
}

bool stg_epochs_have(const stg_epochs *e, uint64_t position)
{
    return e->count > 0 && position >= e->all[0].first;
}

uint64_t stg_epochs_at(const stg_epochs *e, uint64_t position)
{
    const stg_epoch *now = &e->all[e->count - 1];

    // Most messages are sent in the life that accepted them.
    if (position >= now->first)
        return now->epoch;
    return e->all[epochs_search(e, position)].epoch;
}

void stg_epochs_free(stg_epochs *e)
{
    free(e->all);
    *e = (stg_epochs){.count = 0};
}

/* -- the table ------------------------------------------------------------- */

/* Reads 16 hex digits. */
static bool epoch_parse(const char *text, uint64_t *epoch)
{
    if (text == NULL || strspn(text, "0123456789abcdef") != 16 ||
        text[16] != '\0')
        return false;
    *epoch = strtoull(text, NULL, 16);
    return true;
}

static int epochs_read_row(stg_epochs *e, stg_stmt *row, uint64_t next)
{
    uint64_t first = stg_sql_column(row, 0), epoch;

    if (first == 0 || first >= next ||
        !epoch_parse(stg_sql_text(row, 1), &epoch))
        return SQLITE_CORRUPT;
    return epochs_add(e, first, epoch) ? SQLITE_OK : SQLITE_NOMEM;
}

/* A store that has given a position has an epoch for it. */
static int epochs_load(stg_epochs *e, stg_db *db, uint64_t next)
{
    stg_stmt *rows = NULL;
    int rc = stg_sql_prepare_once(
        db, &rows, "SELECT first, epoch FROM epochs ORDER BY first");

    while (rc == SQLITE_OK && (rc = stg_sql_step(rows)) == SQLITE_ROW)
        rc = epochs_read_row(e, rows, next);
    stg_sql_finalize(rows);
    if (rc != SQLITE_DONE)
        return rc;
    return next > 1 && e->count == 0 ? SQLITE_CORRUPT : SQLITE_OK;
}

/* -- pruning --------------------------------------------------------------- */

static void epochs_note_cursor(void *ctx, const stg_cursor *c)
{
    uint64_t *floor = ctx;

    if (c->base < *floor)
        *floor = c->base;
}

/* Finds the lowest position that a row or a cursor names. Each table is asked
 * by an index; parked rows and letters, which have none by position alone, lane
 * by lane. A bulk row of evicted letters has a position below 0. */
static int epochs_find_floor(stg_db *db, uint64_t *floor)
{
    int rc = stg_sql_ask(
        db,
        "SELECT min(at) FROM (SELECT value AS at FROM meta"
        " WHERE name = 'next_position'"
        " UNION ALL SELECT min(first) FROM segments"
        " UNION ALL SELECT min(position) FROM idempotency_keys"
        " UNION ALL SELECT min(position) FROM receipts WHERE partition = 0"
        " UNION ALL SELECT min((SELECT min(position) FROM parked AS p"
        " WHERE p.lane = l.number AND p.partition = 0)) FROM lanes AS l"
        " UNION ALL SELECT min((SELECT min(position)"
        " FROM failed_broadcast_logs AS f WHERE f.lane = l.number"
        " AND f.partition = 0 AND f.position > 0)) FROM lanes AS l)",
        floor);

    return rc == SQLITE_OK
               ? stg_cursors_read(db, "0", false, epochs_note_cursor, floor)
               : rc;
}

static int epochs_delete_below(stg_db *db, uint64_t first)
{
    stg_stmt *st = NULL;
    int rc =
        stg_sql_prepare_once(db, &st, "DELETE FROM epochs WHERE first < ?");

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "u", first);
    stg_sql_finalize(st);
    return rc;
}

static int epochs_prune(stg_epochs *e, stg_db *db)
{
    uint64_t floor = 0;
    size_t gone;
    int rc;

    if (e->count <= KEPT)
        return SQLITE_OK;
    rc = epochs_find_floor(db, &floor);
    if (rc != SQLITE_OK)
        return rc;
    gone = epochs_search(e, floor);
    if (gone > e->count - KEPT)
        gone = e->count - KEPT;
    if (gone == 0)
        return SQLITE_OK;
    e->count -= gone;
    memmove(e->all, e->all + gone, e->count * sizeof *e->all);
    return epochs_delete_below(db, e->all[0].first);
}

/* -- a life of the store --------------------------------------------------- */

int stg_epochs_open(stg_epochs *e, stg_db *db)
{
    uint64_t next = 0, epoch;
    int rc = stg_meta_read(db, "next_position", &next);

    if (rc == SQLITE_OK)
        rc = epochs_load(e, db, next);
    if (rc == SQLITE_OK)
        rc = epochs_prune(e, db);
    if (rc != SQLITE_OK)
        return rc;
    if (uv_random(NULL, NULL, &epoch, sizeof epoch, 0, NULL) != 0)
        return SQLITE_IOERR;
    return epochs_add(e, next, epoch) ? SQLITE_OK : SQLITE_NOMEM;
}

int stg_epochs_store(const stg_epochs *e, stg_db *db)
{
    const stg_epoch *now = &e->all[e->count - 1];
    stg_stmt *st = NULL;
    char text[17];
    int rc = stg_sql_prepare_once(
        db, &st, "INSERT INTO epochs (first, epoch) VALUES (?, ?)");

    snprintf(text, sizeof text, "%016" PRIx64, now->epoch);
    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "us", now->first, text);
    stg_sql_finalize(st);
    return rc;
}

/* Not stored: no message has an id of it, for such a store has no queue. */
bool stg_epochs_make(stg_epochs *e)
{
    uint64_t epoch = uv_hrtime();

    uv_random(NULL, NULL, &epoch, sizeof epoch, 0, NULL);
    return epochs_add(e, 0, epoch);
}
