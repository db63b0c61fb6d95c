/* Epochs of the queue: which random number stands before a position in an id.
 *
 * The epoch of now is in `meta`; the table has those of before, each with the
 * position at which it ended. A new one begins only with a restore (copy.c). */
#include "store/ids.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "store/sqlite.h"

/* -- the table ------------------------------------------------------------- */

/* 16 hex digits. */
static bool parse_epoch(const char *text, uint64_t *epoch)
{
    if (text == NULL || strspn(text, "0123456789abcdef") != 16 ||
        text[16] != '\0')
        return false;
    *epoch = strtoull(text, NULL, 16);
    return true;
}

static int add(stg_epochs *e, stg_stmt *row)
{
    stg_epoch *all = realloc(e->all, (e->count + 1) * sizeof *all);

    if (all == NULL)
        return SQLITE_NOMEM;
    e->all = all;
    all[e->count].below =
        stg_sql_is_null(row, 0) ? UINT64_MAX : stg_sql_column(row, 0);
    if (!parse_epoch(stg_sql_text(row, 1), &all[e->count].epoch))
        return SQLITE_CORRUPT;
    e->count++;
    return SQLITE_OK;
}

/* The epoch of now has no upper end, and is the last: NULLS LAST. */
int stg_epochs_load(stg_epochs *e, stg_db *db)
{
    stg_stmt *rows = NULL;
    int rc = stg_sql_prepare_once(
        db, &rows,
        "SELECT below, epoch FROM epochs UNION ALL"
        " SELECT NULL, value FROM meta WHERE name = 'epoch'"
        " ORDER BY below NULLS LAST");

    while (rc == SQLITE_OK && (rc = stg_sql_step(rows)) == SQLITE_ROW)
        rc = add(e, rows);
    stg_sql_finalize(rows);
    if (rc != SQLITE_DONE)
        return rc;
    return e->count > 0 && e->all[e->count - 1].below == UINT64_MAX
               ? SQLITE_OK
               : SQLITE_CORRUPT;
}

/* Not stored: no message has an id of it, for such a store has no queue. */
bool stg_epochs_make(stg_epochs *e)
{
    uint64_t epoch = uv_hrtime();

    e->all = calloc(1, sizeof *e->all);
    if (e->all == NULL)
        return false;
    uv_random(NULL, NULL, &epoch, sizeof epoch, 0, NULL);
    e->all[0] = (stg_epoch){.below = UINT64_MAX, .epoch = epoch};
    e->count = 1;
    return true;
}

void stg_epochs_free(stg_epochs *e)
{
    free(e->all);
    *e = (stg_epochs){.count = 0};
}

/* The first epoch of a store has none before it (from is 1). One that is there
 * already for this position stays. */
static int keep_old(stg_db *db, uint64_t from)
{
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(
        db, &st,
        "INSERT OR IGNORE INTO epochs (below, epoch)"
        " SELECT ?1, value FROM meta WHERE name = 'epoch' AND ?1 > 1");

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "u", from);
    stg_sql_finalize(st);
    return rc;
}

int stg_epochs_begin(stg_db *db, uint64_t from)
{
    uint64_t epoch;
    int rc = keep_old(db, from);

    if (rc != SQLITE_OK)
        return rc;
    if (uv_random(NULL, NULL, &epoch, sizeof epoch, 0, NULL) != 0)
        return SQLITE_IOERR;
    return stg_meta_write_epoch(db, epoch);
}

/* -- which one ------------------------------------------------------------- */

uint64_t stg_epochs_now(const stg_epochs *e)
{
    return e->all[e->count - 1].epoch;
}

uint64_t stg_epochs_at(const stg_epochs *e, uint64_t position)
{
    size_t at = e->count - 1;

    // Restores are few, and nearly all that is asked for is of now.
    while (at > 0 && position < e->all[at - 1].below)
        at--;
    return e->all[at].epoch;
}
