#include "hub/stores/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tables.
 *
 * meta: epoch (16 hex digits), next_position (of the queue: stored, and never
 * made from the largest row, for a position is never used twice), incarnations,
 * message_bytes (pages that the queue fills, about), letters_row (the last row
 * copied to the file of dead letters).
 *
 * lanes: a number is never given to another name; one that was forgotten keeps
 * its row.
 *
 * messages: the queue. created_at in ms since 1970.
 *
 * idempotency_keys: SHA-256, the first half, of the key; and of content type
 * and body. In the order of the log, so that the oldest go first; what is
 * looked for is found by an index in memory, for random places in a tree of
 * this size would be written with each message.
 *
 * cursors: 256 lanes a row, as JSON for people: see cursors.h.
 *
 * parked: what was tried and waits, with its body. Times in ns since 1970. The
 * outcome is there twice: as the words of a dead letter, and as numbers.
 *
 * failed_broadcast_logs: what ended badly. A row with last_position stands for
 * all that its lane got from position to last_position, `count` of them; their
 * bodies are in messages as long as these are kept. */
static const char version_1[] =
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;"

    "CREATE TABLE lanes ("
    " number INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " url TEXT NOT NULL,"
    " is_forgotten INTEGER NOT NULL DEFAULT 0);"

    "CREATE TABLE messages ("
    " position INTEGER PRIMARY KEY,"
    " key_hash INTEGER NOT NULL,"
    " created_at INTEGER NOT NULL,"
    " content_type TEXT,"
    " headers TEXT,"
    " key TEXT,"
    " body BLOB NOT NULL);"

    "CREATE TABLE idempotency_keys ("
    " position INTEGER PRIMARY KEY,"
    " key BLOB NOT NULL,"
    " body BLOB NOT NULL,"
    " at INTEGER NOT NULL);"

    "CREATE TABLE cursors ("
    " partition INTEGER NOT NULL,"
    " slice INTEGER NOT NULL,"
    " lanes TEXT NOT NULL,"
    " PRIMARY KEY (partition, slice));"

    "CREATE TABLE parked ("
    " lane INTEGER NOT NULL,"
    " partition INTEGER NOT NULL,"
    " position INTEGER NOT NULL,"
    " replay INTEGER NOT NULL,"
    " due_at INTEGER NOT NULL,"
    " wait INTEGER NOT NULL,"
    " attempts INTEGER NOT NULL,"
    " own_waits INTEGER NOT NULL,"
    " last_wait INTEGER NOT NULL,"
    " limited BLOB," // retries by limited rule, a byte each; NULL: none
    " has_failure INTEGER NOT NULL,"
    " fault INTEGER NOT NULL,"
    " code_kind INTEGER NOT NULL,"
    " code INTEGER NOT NULL,"
    " is_permanent INTEGER NOT NULL,"
    " is_unsent INTEGER NOT NULL,"
    " delay INTEGER NOT NULL,"
    " why INTEGER NOT NULL,"
    " cause TEXT,"
    " first_attempt_at INTEGER NOT NULL,"
    " last_attempt_at INTEGER NOT NULL,"
    " detail TEXT,"
    " answer BLOB,"
    " key_hash INTEGER NOT NULL,"
    " content_type TEXT,"
    " headers TEXT,"
    " key TEXT,"
    " body BLOB NOT NULL,"
    " PRIMARY KEY (lane, partition, position, replay));"
    "CREATE INDEX parked_due ON parked"
    " (lane, due_at, position, partition, replay, wait);"

    "CREATE TABLE failed_broadcast_logs ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " message_id TEXT NOT NULL,"
    " target TEXT NOT NULL,"
    " target_url TEXT NOT NULL,"
    " payload BLOB," // NULL: a range row's are in messages
    " headers TEXT,"
    " content_type TEXT,"
    " key TEXT,"
    " lane INTEGER NOT NULL,"
    " partition INTEGER NOT NULL,"
    " position INTEGER NOT NULL,"
    " replay INTEGER NOT NULL,"
    " last_position INTEGER," // NULL: a row for one message
    " count INTEGER NOT NULL,"
    " state TEXT NOT NULL," // dead, replayed, dropped, expired, cancelled
    " why TEXT NOT NULL,"
    " category TEXT," // A connect, B server, C request, D overload
    " cause TEXT,"
    " http_status INTEGER,"
    " detail TEXT,"
    " answer BLOB,"
    " attempts INTEGER NOT NULL,"
    " first_attempt_at TEXT,"
    " last_attempt_at TEXT,"
    " created_at TEXT NOT NULL);"
    "CREATE UNIQUE INDEX failed_broadcast_logs_delivery"
    " ON failed_broadcast_logs (lane, partition, position, replay);"
    "CREATE INDEX failed_broadcast_logs_ranges"
    " ON failed_broadcast_logs (partition, position)"
    " WHERE last_position IS NOT NULL AND state = 'dead';";

/* steps[n] leads from version n to n + 1; one that was published does not
 * change any more. */
static const char *const steps[] = {version_1};

enum { VERSION = sizeof steps / sizeof *steps };

uint64_t stg_schema_version(void)
{
    return VERSION;
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

int stg_schema_look(sqlite3 *db, stg_schema_kind *kind, uint64_t *version)
{
    uint64_t application = 0, tables = 0;
    int rc = ask(db, "SELECT count(*) FROM sqlite_master", &tables);

    if (rc == SQLITE_OK)
        rc = ask(db, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = ask(db, "PRAGMA user_version", version);
    if (application == STG_SCHEMA_APPLICATION)
        *kind = *version > VERSION ? STG_SCHEMA_NEWER : STG_SCHEMA_OURS;
    else
        *kind = application == 0 && *version == 0 && tables == 0
                    ? STG_SCHEMA_EMPTY
                    : STG_SCHEMA_FOREIGN;
    return rc;
}

int stg_schema_migrate(sqlite3 *db, uint64_t version)
{
    char text[96];
    int rc = SQLITE_OK;

    if (version == VERSION)
        return SQLITE_OK;
    for (uint64_t at = version; at < VERSION && rc == SQLITE_OK; at++)
        rc = stg_sql_exec(db, steps[at]);
    if (rc != SQLITE_OK)
        return rc;
    snprintf(text, sizeof text,
             "PRAGMA application_id = %d; PRAGMA user_version = %d;",
             STG_SCHEMA_APPLICATION, VERSION);
    return stg_sql_exec(db, text);
}

stg_status stg_schema_check(sqlite3 *db, const char *path, bool may_be_empty,
                            stg_error *err)
{
    stg_schema_kind kind = STG_SCHEMA_FOREIGN;
    uint64_t version = 0;
    int rc = stg_schema_look(db, &kind, &version);

    if (rc != SQLITE_OK) {
        stg_sql_words(err, path, "cannot be read", db, rc);
        return STG_IO;
    }
    if (kind == STG_SCHEMA_NEWER) {
        stg_sql_say(err,
                    "%s: is a store of version %" PRIu64
                    ", this stagger knows %d at most; it was written by a "
                    "newer one: use that",
                    path, version, VERSION);
        return STG_INVALID;
    }
    if (kind == STG_SCHEMA_FOREIGN ||
        (kind == STG_SCHEMA_EMPTY && !may_be_empty)) {
        stg_sql_say(err,
                    "%s: is a database, but no store of stagger; name another "
                    "file",
                    path);
        return STG_INVALID;
    }
    return STG_OK;
}

int stg_meta_read(sqlite3 *db, const char *name, uint64_t *number)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE name = ?", -1,
                                &st, NULL);

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "s", name);
    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, number);
    sqlite3_finalize(st);
    return rc;
}

static int write_value(sqlite3 *db, const char *name, const char *letters,
                       uint64_t number, const char *text)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(
        db, "INSERT OR REPLACE INTO meta (value, name) VALUES (?, ?)", -1, &st,
        NULL);

    if (rc == SQLITE_OK)
        rc = text != NULL ? stg_sql_run(st, letters, text, name)
                          : stg_sql_run(st, letters, number, name);
    sqlite3_finalize(st);
    return rc;
}

int stg_meta_write(sqlite3 *db, const char *name, uint64_t number)
{
    return write_value(db, name, "us", number, NULL);
}

int stg_meta_write_epoch(sqlite3 *db, uint64_t epoch)
{
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, epoch);
    return write_value(db, "epoch", "ss", 0, text);
}

static int parse_epoch(sqlite3_stmt *st, uint64_t *epoch)
{
    const char *text;

    if (stg_sql_step(st) != SQLITE_ROW)
        return SQLITE_CORRUPT;
    text = (const char *)sqlite3_column_text(st, 0);
    if (text == NULL || strlen(text) != 16 ||
        strspn(text, "0123456789abcdef") != 16)
        return SQLITE_CORRUPT;
    *epoch = strtoull(text, NULL, 16);
    return SQLITE_OK;
}

int stg_meta_read_epoch(sqlite3 *db, uint64_t *epoch)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(
        db, "SELECT value FROM meta WHERE name = 'epoch'", -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = parse_epoch(st, epoch);
    sqlite3_finalize(st);
    return rc;
}
