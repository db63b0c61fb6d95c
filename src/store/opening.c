/* A store in a file is opened by the hub: checked, set up, and made where there
 * is none.
 *
 * What is set for the connection (WAL, synchronous = FULL, the quota in pages)
 * comes before the first transaction: SQLite takes the page size and the
 * journal only then. */
#include "store/store_file.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/refuse.h"
#include "host/wall.h"
#include "store/ids.h"
#include "store/queue.h"
#include "store/rows.h"
#include "store/sqlite.h"

/* Of this connection. The WAL is moved into the file by the writer, when it has
 * the time; what is deleted need not be overwritten. */
static int set_up(stg_db *db, const stg_store_options *o)
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

/* Writes the values that a new store is given once. */
static int begin_meta(stg_db *db)
{
    // Positions begin at 1.
    int rc = stg_meta_write(db, "next_position", 1);

    if (rc == SQLITE_OK)
        rc = stg_meta_write(db, "letters_version", 0);
    return rc == SQLITE_OK ? stg_meta_write(db, "incarnations", 0) : rc;
}

/* Makes the tables of a new store, and reads what a known one has: in one
 * transaction, so that a file is never half a store. Parked rows are pulled in
 * here, before a thread can fetch them. */
static int bring_up(stg_db *db, stg_epochs *epochs)
{
    uint64_t version, incarnations = 0;
    stg_schema_kind kind;
    int rc = stg_schema_look(db, &kind, &version);

    if (rc == SQLITE_OK && kind == STG_SCHEMA_EMPTY)
        rc = stg_schema_make(db);
    if (rc == SQLITE_OK && kind == STG_SCHEMA_EMPTY)
        rc = begin_meta(db);
    if (rc == SQLITE_OK)
        rc = stg_epochs_open(epochs, db);
    if (rc == SQLITE_OK)
        rc = stg_meta_read(db, "incarnations", &incarnations);
    if (rc == SQLITE_OK)
        rc = stg_meta_write(db, "incarnations", incarnations + 1);
    if (rc == SQLITE_OK)
        rc = stg_rows_pull_in(db, stg_wall_now());
    return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

/* At the start, another process that still writes after STG_SQL_BUSY_MS is not
 * waited for: an operator waits for the words. */
static bool is_enough(void *ctx)
{
    (void)ctx;
    return true;
}

static stg_status refuse(const stg_store_options *o, const char *what,
                         stg_db *db, int rc, stg_error *err)
{
    stg_sql_words(err, o->path, what, db, rc);
    return STG_IO;
}

/* A file system without shared memory (of a network) has no WAL, and SQLite
 * then stays with what it had, without an error. */
static int ask_wal(stg_db *db, bool *has_wal)
{
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(db, &st, "PRAGMA journal_mode");

    if (rc == SQLITE_OK && stg_sql_step(st) == SQLITE_ROW)
        *has_wal = sqlite3_stricmp(stg_sql_text(st, 0), "wal") == 0;
    stg_sql_finalize(st);
    return rc;
}

static stg_status refuse_journal(const stg_store_options *o, stg_error *err)
{
    return stg_hub_refuse(
        err, STG_IO,
        "%s: cannot have a write-ahead log there; a store needs a disk "
        "of this machine, with room, or nobody else may have it open: "
        "name a file on another one",
        o->path);
}

/* Looks by a connection that writes nothing, neither into the file nor beside
 * it: the one that writes moves a WAL into the file when it closes. */
static stg_status opening_check(const stg_store_options *o, stg_error *err)
{
    stg_db *db = NULL;
    stg_status status;
    int rc = stg_sql_open_still(&db, o->path);

    status = rc == SQLITE_OK ? stg_schema_check(db, o->path, true, err)
                             : refuse(o, "cannot be opened", db, rc, err);
    stg_sql_close(db);
    return status;
}

/* What is no store of this version is left as it was. WAL and the size of pages have
 * to be as a new file got them: nothing here works with others. */
stg_status stg_opening_open(stg_db **db, const stg_store_options *o,
                            stg_epochs *epochs, stg_error *err)
{
    uint64_t page_size = 0;
    bool has_wal = false;
    stg_status status = opening_check(o, err);
    int rc;

    if (status != STG_OK)
        return status;
    rc = stg_sql_open_writer(db, o->path);
    if (rc != SQLITE_OK)
        return refuse(o, "cannot be opened", *db, rc, err);
    rc = set_up(*db, o);
    if (rc == SQLITE_OK)
        rc = ask_wal(*db, &has_wal);
    if (rc != SQLITE_OK)
        return refuse(o, "cannot be set up", *db, rc, err);
    if (!has_wal)
        return refuse_journal(o, err);
    rc = stg_sql_ask(*db, "PRAGMA page_size", &page_size);
    if (rc == SQLITE_OK && page_size != STG_PAGE) {
        return stg_hub_refuse(
            err, STG_INVALID,
            "%s: has pages of %" PRIu64
            " bytes, a store has %d; copy it back as it was made",
            o->path, page_size, STG_PAGE);
    }
    if (rc == SQLITE_OK)
        rc = stg_sql_begin(*db, is_enough, NULL);
    if (rc != SQLITE_OK)
        return refuse(o, "cannot be opened", *db, rc, err);
    rc = stg_sql_end(*db, bring_up(*db, epochs), o->path, err);
    return rc == SQLITE_OK ? STG_OK : STG_IO;
}
