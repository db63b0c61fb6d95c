#include "hub/stores/opening.h"

#include <inttypes.h>
#include <stdio.h>

#include "hub/stores/queue.h"
#include "hub/stores/rows.h"
#include "hub/stores/schema.h"

/* Of this connection. The WAL is moved into the file by the writer, when it has
 * the time; what is deleted need not be overwritten. */
static int set_up(sqlite3 *db, const stg_store_options *o)
{
    char text[512];

    snprintf(text, sizeof text,
             "PRAGMA page_size = %d;"
             "PRAGMA journal_mode = WAL;"
             "PRAGMA synchronous = FULL;"
             "PRAGMA wal_autocheckpoint = 0;"
             "PRAGMA max_page_count = %" PRIu64
             ";"
             "PRAGMA secure_delete = OFF;"
             "PRAGMA trusted_schema = OFF;"
             "PRAGMA temp_store = MEMORY;"
             "PRAGMA cache_size = -8192;",
             STG_PAGE, o->quota / STG_PAGE);
    return stg_sql_exec(db, text);
}

static int ask(sqlite3 *db, const char *question, uint64_t *number)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, question, -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, number);
    sqlite3_finalize(st);
    return rc;
}

/* What a new store is told once. */
static int begin_meta(sqlite3 *db)
{
    uint64_t epoch;
    int rc;

    if (uv_random(NULL, NULL, &epoch, sizeof epoch, 0, NULL) != 0)
        return SQLITE_IOERR;
    rc = stg_meta_write_epoch(db, epoch);
    // 0 is no position.
    if (rc == SQLITE_OK)
        rc = stg_meta_write(db, "next_position", 1);
    if (rc == SQLITE_OK)
        rc = stg_meta_write(db, "message_bytes", 0);
    if (rc == SQLITE_OK)
        rc = stg_meta_write(db, "letters_row", 0);
    return rc == SQLITE_OK ? stg_meta_write(db, "incarnations", 0) : rc;
}

/* In one transaction: a file is never half a store, nor half migrated. */
static int bring_up(sqlite3 *db, uint64_t *epoch)
{
    uint64_t version, incarnations = 0;
    stg_schema_kind kind;
    int rc = stg_schema_look(db, &kind, &version);

    if (rc == SQLITE_OK)
        rc = stg_schema_migrate(db, version);
    if (rc == SQLITE_OK && kind == STG_SCHEMA_EMPTY)
        rc = begin_meta(db);
    if (rc == SQLITE_OK)
        rc = stg_meta_read_epoch(db, epoch);
    if (rc == SQLITE_OK)
        rc = stg_meta_read(db, "incarnations", &incarnations);
    if (rc == SQLITE_OK)
        rc = stg_meta_write(db, "incarnations", incarnations + 1);
    if (rc == SQLITE_OK)
        rc = stg_rows_pull_in(db, stg_sql_wall());
    return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

/* Another process that writes for longer than a second has lost its way. */
static bool is_enough(void *ctx)
{
    (void)ctx;
    return true;
}

static stg_status refuse(const stg_store_options *o, const char *what,
                         sqlite3 *db, int rc, stg_error *err)
{
    stg_sql_words(err, o->path, what, db, rc);
    return STG_IO;
}

stg_status stg_opening_open(sqlite3 **db, const stg_store_options *o,
                            uint64_t *epoch, stg_error *err)
{
    uint64_t page_size = 0;
    stg_status status;
    int rc = stg_sql_open_writer(db, o->path);

    if (rc != SQLITE_OK)
        return refuse(o, "cannot be opened", *db, rc, err);
    status = stg_schema_check(*db, o->path, true, err);
    if (status != STG_OK)
        return status;
    rc = set_up(*db, o);
    if (rc != SQLITE_OK)
        return refuse(o, "cannot be set up", *db, rc, err);
    rc = ask(*db, "PRAGMA page_size", &page_size);
    if (rc == SQLITE_OK && page_size != STG_PAGE) {
        stg_sql_say(err,
                    "%s: has pages of %" PRIu64
                    " bytes, a store has %d; copy it back as it was made",
                    o->path, page_size, STG_PAGE);
        return STG_INVALID;
    }
    if (rc == SQLITE_OK)
        rc = stg_sql_begin(*db, is_enough, NULL);
    if (rc != SQLITE_OK)
        return refuse(o, "cannot be opened", *db, rc, err);
    rc = stg_sql_end(*db, bring_up(*db, epoch), o->path, err);
    return rc == SQLITE_OK ? STG_OK : STG_IO;
}
