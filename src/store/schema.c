/* The tables of the store.
 *
 * meta: next_position (of the queue: stored, and never made from the largest
 * row, for a position is never used twice), incarnations, letters_version (the
 * last one copied to the file of dead letters).
 *
 * epochs: a row for each start that accepted a message: messages from `first` on
 * have its epoch (16 hex digits, as in their ids), up to the next row's first.
 *
 * lanes: a number is never given to another name, nor to the same name once it
 * was forgotten; its row stays. The url has no values of a query, which may be
 * secrets. failing_since: see stg_lane_note. rewinds: how many there were, and resends. begins: the first position that the lane was to see.
 *
 * targets: those that were added by calls: see target_rows.h. settings: JSON, or
 * that encrypted (store/seal.h), where the hub has a key.
 *
 * messages_0, messages_1, ...: the queue, a segment each (queue.h). created_at in
 * ms since 1970. filled_before: bytes of the file that the messages before it have
 * filled, about, those that are gone, too. The view messages is all of them, with
 * the number of the table; segments has its number and its first position, or NULL.
 *
 * receipts: of attempts that ended, in the order in which they came: see
 * receipts.h. at in ms since 1970, took in us.
 *
 * idempotency_keys: SHA-256, the first half, of the key; and of the message,
 * see stg_key. In the order of the log, so that the oldest go first; what is
 * looked for is found by an index in memory, for random places in a tree of
 * this size would be written with each message.
 *
 * partitions: the number of each (log, topic, partition, epoch) of a log that is
 * not the queue, which has 0; never given to another. epoch: 16 hex digits, all 0
 * at first, random when the topic was truncated or made again; stale: what the
 * group had committed then.
 *
 * fingerprints: records that were read of a partition's log
 * (store/fingerprint.h), which tell it from a topic that was made again under
 * the same name.
 *
 * claims: who writes a number for a shard: the generation rises with each who
 * takes it, and what comes with an older one is refused.
 *
 * cursors: STG_SLICE lanes a row, as JSON for people: see lanes.h. A lane that went
 * from one shard to another is in the rows of both: the furthest counts.
 *
 * parked: what was tried and waits, with its body. Times in ns since 1970. The
 * outcome is there twice: as the words of a dead letter, and as numbers.
 * attempts: of the series that is under way, which began at began_at;
 * attempts_before: requests of earlier series and replays. created_at: the
 * message's.
 *
 * rewinds: see rewinds.h, a row for each partition. since in ms since 1970; NULL:
 * from a position. first: where it began; NULL: it has not. position: what is
 * below is parked or passed over; until: where it ends. Rows that it parks have
 * the replay number * 256, and those of their dead letters rise from there.
 *
 * failed_broadcast_logs: what ended badly. A row with last_position stands for
 * what its lane got from position to last_position, `count` of them; their
 * bodies are in messages as long as these are kept. Of such a row last_attempt_at
 * is when the newest of them came into it, and range_first is
 * the name that flow has for it; `eaten` were replayed out of it, and position
 * has moved behind them; `taken` are those that flow counts under this name and
 * that went into earlier rows. version: a number that rises with each change
 * that the file of dead letters is to have; copied: count at that time. A row
 * with the replay 2147483646 (STG_REPLAY_EVICTED) counts letters of its lane
 * and cause that were evicted: it has no place in a log.
 *
 * letter_totals: one row, about failed_broadcast_logs, kept by triggers: rows;
 * rows that wait as dead letters; bytes of the file that all of them fill, about.
 *
 * deleted_letters: messages of rows of failed_broadcast_logs that were deleted:
 * the books count them still. dead: of rows in state dead, dropped or expired.
 *
 * source_key, source_headers: what a record of Kafka had, as in stg_parcel, for
 * the copy of its dead letter: bytes of the key where `key` is not these, and
 * all of its headers (see kafka/headers.c). NULL: not kept.
 *
 * In rows of dead letters what is long stands last: what comes behind it is found
 * only by going over its pages. */
#include "store/sqlite.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/refuse.h"
#include "store/eviction.h"
#include "store/queue.h"

/* 1 or 0. */
#define IS_DEAD(row) \
    "(" row ".state = 'dead' AND " row ".replay <> " STG_EVICTED ")"

/* The bytes that a row takes in the file, as cost_of() of queue.c says it; in
 * the indexes, too. */
#define BYTES(row)                                                      \
    "(SELECT CASE WHEN size <= 16349 THEN 16384 / (16376 / size)"       \
    " WHEN kept <= 16349"                                               \
    " THEN (size - kept) / 16380 * 16384 + 16384 / (16376 / kept)"      \
    " ELSE ((size - 2031) / 16380 + 1) * 16384 + 2048 END"              \
    " FROM (SELECT size, 2031 + (size - 2031) % 16380 AS kept"          \
    " FROM (SELECT 300 + length(" row ".message_id) + 2 * length(" row  \
    ".target)"                                                          \
    " + length(" row ".target_url) + coalesce(length(" row              \
    ".detail), 0)"                                                      \
    " + coalesce(length(" row ".key), 0) + coalesce(length(" row        \
    ".headers), 0)"                                                     \
    " + coalesce(length(" row ".source_key), 0) + coalesce(length(" row \
    ".source_headers), 0)"                                              \
    " + coalesce(length(" row ".answer), 0) + coalesce(length(" row     \
    ".payload), 0) AS size)))"

static const char tables[] =
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;"

    "CREATE TABLE epochs (first INTEGER PRIMARY KEY, epoch TEXT NOT NULL);"

    "CREATE TABLE lanes ("
    " number INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " url TEXT NOT NULL,"
    " is_forgotten INTEGER NOT NULL DEFAULT 0,"
    " pause INTEGER NOT NULL DEFAULT 0," // of stg_pause
    " failing_since INTEGER,"
    " rewinds INTEGER NOT NULL DEFAULT 0,"
    " begins INTEGER);"

    "CREATE TABLE targets ("
    " name TEXT PRIMARY KEY,"
    " settings TEXT NOT NULL,"
    " version INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX targets_version ON targets (version);" // for the newest

    "CREATE TABLE receipts ("
    " id INTEGER PRIMARY KEY,"
    " partition INTEGER NOT NULL,"
    " position INTEGER NOT NULL,"
    " lane INTEGER NOT NULL,"
    " number INTEGER NOT NULL,"
    " at INTEGER NOT NULL,"
    " took INTEGER NOT NULL,"
    " fault INTEGER NOT NULL,"
    " code_kind INTEGER NOT NULL,"
    " code INTEGER NOT NULL);"
    "CREATE INDEX receipts_message ON receipts (partition, position);"

    "CREATE TABLE idempotency_keys ("
    " position INTEGER PRIMARY KEY,"
    " key BLOB NOT NULL,"
    " body BLOB NOT NULL,"
    " at INTEGER NOT NULL);"

    "CREATE TABLE partitions ("
    " number INTEGER PRIMARY KEY,"
    " log TEXT NOT NULL,"
    " topic TEXT NOT NULL,"
    " partition INTEGER NOT NULL,"
    " epoch TEXT NOT NULL,"
    " stale INTEGER);"
    "CREATE UNIQUE INDEX partitions_name"
    " ON partitions (log, topic, partition, epoch);"

    "CREATE TABLE fingerprints ("
    " number INTEGER PRIMARY KEY,"
    " log_begin INTEGER NOT NULL,"
    " first_position INTEGER NOT NULL,"
    " first_at INTEGER NOT NULL,"
    " first_hash INTEGER NOT NULL,"
    " last_position INTEGER NOT NULL,"
    " last_at INTEGER NOT NULL,"
    " last_hash INTEGER NOT NULL);"

    "CREATE TABLE claims ("
    " number INTEGER NOT NULL,"
    " shard INTEGER NOT NULL,"
    " generation INTEGER NOT NULL,"
    " PRIMARY KEY (number, shard));"

    "CREATE TABLE cursors ("
    " partition INTEGER NOT NULL,"
    " shard INTEGER NOT NULL,"
    " slice INTEGER NOT NULL,"
    " lanes TEXT NOT NULL,"
    " PRIMARY KEY (partition, shard, slice));"

    "CREATE TABLE parked ("
    " lane INTEGER NOT NULL,"
    " partition INTEGER NOT NULL,"
    " position INTEGER NOT NULL,"
    " replay INTEGER NOT NULL,"
    " due_at INTEGER NOT NULL,"
    " wait INTEGER NOT NULL,"
    " attempts INTEGER NOT NULL,"
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
    " attempts_before INTEGER NOT NULL DEFAULT 0,"
    " began_at INTEGER NOT NULL DEFAULT 0,"
    " created_at INTEGER NOT NULL DEFAULT 0,"
    " key_hash INTEGER NOT NULL,"
    " content_type TEXT,"
    " headers TEXT,"
    " key TEXT,"
    " source_key BLOB,"
    " source_headers BLOB,"
    " body BLOB NOT NULL,"
    " PRIMARY KEY (lane, partition, position, replay));"
    "CREATE INDEX parked_due ON parked"
    " (lane, due_at, position, partition, replay, wait) WHERE replay = 0;"
    "CREATE INDEX parked_replays ON parked"
    " (lane, due_at, position, partition, replay, wait) WHERE replay > 0;"

    "CREATE TABLE rewinds ("
    " lane INTEGER NOT NULL,"
    " number INTEGER NOT NULL,"
    " partition INTEGER NOT NULL,"
    " state TEXT NOT NULL," // new, running, done, cancelled
    " since INTEGER,"
    " first INTEGER,"
    " position INTEGER NOT NULL,"
    " until INTEGER NOT NULL,"
    " sent INTEGER NOT NULL DEFAULT 0,"
    " began_at INTEGER NOT NULL,"
    " ended_at INTEGER,"
    " PRIMARY KEY (lane, number, partition)) WITHOUT ROWID;"

    "CREATE TABLE failed_broadcast_logs ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " message_id TEXT NOT NULL,"
    " target TEXT NOT NULL,"
    " target_url TEXT NOT NULL,"
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
    " attempts INTEGER NOT NULL,"
    " first_attempt_at TEXT,"
    " last_attempt_at TEXT,"
    " created_at TEXT NOT NULL,"
    " changed_at TEXT,"
    " range_first INTEGER,"
    " taken INTEGER NOT NULL DEFAULT 0,"
    " eaten INTEGER NOT NULL DEFAULT 0,"
    " version INTEGER NOT NULL DEFAULT 0,"
    " copied INTEGER NOT NULL DEFAULT 1,"
    " content_type TEXT,"
    " key TEXT,"
    " source_key BLOB,"
    " headers TEXT,"
    " source_headers BLOB,"
    " answer BLOB,"
    " payload BLOB);" // NULL: a bulk row's are in messages; or it is gone
    "CREATE UNIQUE INDEX failed_broadcast_logs_delivery"
    " ON failed_broadcast_logs (lane, partition, position, replay);"
    "CREATE INDEX failed_broadcast_logs_ranges"
    " ON failed_broadcast_logs (partition, position)"
    " WHERE last_position IS NOT NULL AND state = 'dead';"
    "CREATE INDEX failed_broadcast_logs_version"
    " ON failed_broadcast_logs (version);"
    "CREATE INDEX failed_broadcast_logs_target"
    " ON failed_broadcast_logs (target);"
    "CREATE INDEX failed_broadcast_logs_lane_ranges"
    " ON failed_broadcast_logs (lane, partition, position)"
    " WHERE last_position IS NOT NULL;"
    "CREATE INDEX failed_broadcast_logs_range_names"
    " ON failed_broadcast_logs (lane, partition, range_first)"
    " WHERE range_first IS NOT NULL;"
    STG_EVICTION_INDEXES

    "CREATE TABLE letter_totals ("
    " letters INTEGER NOT NULL,"
    " dead INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL);"
    "INSERT INTO letter_totals VALUES (0, 0, 0);"

    "CREATE TRIGGER letters_inserted AFTER INSERT ON failed_broadcast_logs"
    " BEGIN UPDATE letter_totals SET letters = letters + 1,"
    " dead = dead + " IS_DEAD("new") ", bytes = bytes + " BYTES("new") "; END;"

    "CREATE TRIGGER letters_deleted AFTER DELETE ON failed_broadcast_logs"
    " BEGIN UPDATE letter_totals SET letters = letters - 1,"
    " dead = dead - " IS_DEAD("old") ", bytes = bytes - " BYTES("old") "; END;"

    "CREATE TRIGGER letters_updated"
    " AFTER UPDATE OF state, headers, answer, payload"
    " ON failed_broadcast_logs"
    " BEGIN UPDATE letter_totals SET"
    " dead = dead + " IS_DEAD("new") " - " IS_DEAD("old") ","
    " bytes = bytes + " BYTES("new") " - " BYTES("old") "; END;"

    "CREATE TABLE deleted_letters ("
    " lane INTEGER NOT NULL,"
    " partition INTEGER NOT NULL,"
    " dead INTEGER NOT NULL,"
    " cancelled INTEGER NOT NULL,"
    " PRIMARY KEY (lane, partition)) WITHOUT ROWID;";

int stg_schema_look(stg_db *db, stg_schema_kind *kind, uint64_t *version)
{
    uint64_t application = 0, tables_there = 0;
    int rc =
        stg_sql_ask(db, "SELECT count(*) FROM sqlite_master", &tables_there);

    if (rc == SQLITE_OK)
        rc = stg_sql_ask(db, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = stg_sql_ask(db, "PRAGMA user_version", version);
    if (application == STG_SCHEMA_APPLICATION)
        *kind = *version == STG_SCHEMA_VERSION ? STG_SCHEMA_OURS
                                               : STG_SCHEMA_OTHER_VERSION;
    else
        *kind = application == 0 && *version == 0 && tables_there == 0
                    ? STG_SCHEMA_EMPTY
                    : STG_SCHEMA_FOREIGN;
    return rc;
}

/* A view of all tables of the queue: SELECT `columns` FROM each. */
static int make_view(stg_db *db, const char *head, const char *columns)
{
    char text[2048];
    size_t at = (size_t)snprintf(text, sizeof text, "CREATE VIEW %s AS", head);

    for (unsigned i = 0; i < STG_SEGMENTS; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "%s SELECT %s, %u AS number FROM messages_%u",
                               i == 0 ? "" : " UNION ALL", columns, i, i);
    assert(at < sizeof text);
    return stg_sql_exec(db, text);
}

static int make_queue(stg_db *db)
{
    char text[512];
    int rc = SQLITE_OK;

    for (unsigned i = 0; i < STG_SEGMENTS && rc == SQLITE_OK; i++) {
        snprintf(text, sizeof text,
                 "CREATE TABLE messages_%u ("
                 " position INTEGER PRIMARY KEY,"
                 " key_hash INTEGER NOT NULL,"
                 " created_at INTEGER NOT NULL,"
                 " filled_before INTEGER NOT NULL,"
                 " content_type TEXT,"
                 " headers TEXT,"
                 " key TEXT,"
                 " body BLOB NOT NULL);",
                 i);
        rc = stg_sql_exec(db, text);
    }
    if (rc == SQLITE_OK)
        rc = make_view(db, "messages", "*");
    return rc == SQLITE_OK ? make_view(db, "segments", "min(position) AS first")
                           : rc;
}

int stg_schema_make(stg_db *db)
{
    char text[96];
    int rc = stg_sql_exec(db, tables);

    if (rc == SQLITE_OK)
        rc = make_queue(db);
    if (rc != SQLITE_OK)
        return rc;
    snprintf(text, sizeof text,
             "PRAGMA application_id = %d; PRAGMA user_version = %d;",
             STG_SCHEMA_APPLICATION, STG_SCHEMA_VERSION);
    return stg_sql_exec(db, text);
}

/* -- the fingerprint ------------------------------------------------------- */

/* FNV-1a; a zero ends each text. */
static uint32_t schema_hash(uint32_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * 16777619;
    while (*text++ != '\0');
    return hash;
}

/* Adds what a database has under a name of ours; nothing is a text, too. */
static int schema_add(stg_stmt *find, const char *name, uint32_t *hash)
{
    const char *sql;
    int rc = stg_sql_bind(find, "s", name);

    if (rc == SQLITE_OK)
        rc = stg_sql_step(find);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    sql = rc == SQLITE_ROW ? stg_sql_text(find, 0) : NULL;
    *hash = schema_hash(*hash, sql == NULL ? "" : sql);
    return stg_sql_reset(find);
}

/* Hashes the statements of all names that `ours` has, there and in db. Tables,
 * indexes and triggers that somebody added are not compared. */
static int schema_compare(stg_db *ours, stg_db *db, uint32_t *expected,
                          uint32_t *found)
{
    stg_stmt *all = NULL, *find = NULL;
    int rc = stg_sql_prepare_once(ours, &all,
                                  "SELECT name, sql FROM sqlite_master"
                                  " WHERE sql IS NOT NULL ORDER BY name");

    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(
            db, &find, "SELECT sql FROM sqlite_master WHERE name = ?");
    *expected = *found = 2166136261;
    while (rc == SQLITE_OK && (rc = stg_sql_step(all)) == SQLITE_ROW) {
        *expected = schema_hash(*expected, stg_sql_text(all, 1));
        rc = schema_add(find, stg_sql_text(all, 0), found);
    }
    stg_sql_finalize(all);
    stg_sql_finalize(find);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The tables that this stagger makes are made in memory: so their fingerprint is
 * never an old one. */
static int schema_read_prints(stg_db *db, uint32_t *expected, uint32_t *found)
{
    stg_db *ours = NULL;
    int rc = stg_sqlite_open(
        &ours, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);

    if (rc == SQLITE_OK)
        rc = stg_schema_make(ours);
    if (rc == SQLITE_OK)
        rc = schema_compare(ours, db, expected, found);
    stg_sql_close(ours);
    return rc;
}

/* A version had other tables before it was released, or a build of somebody else
 * has them. */
static stg_status schema_check_print(stg_db *db, const char *path,
                                     stg_error *err)
{
    uint32_t expected = 0, found = 0;
    int rc = schema_read_prints(db, &expected, &found);

    if (rc != SQLITE_OK) {
        stg_sql_words(err, path, "cannot be read", db, rc);
        return STG_IO;
    }
    if (expected == found)
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID,
        "%s: is a store of version %d with other tables (%d-%08" PRIx32
        "), this stagger reads %d-%08" PRIx32
        ": use the stagger that wrote it; nothing was changed",
        path, STG_SCHEMA_VERSION, STG_SCHEMA_VERSION, found, STG_SCHEMA_VERSION,
        expected);
}

stg_status stg_schema_check(stg_db *db, const char *path, bool may_be_empty,
                            stg_error *err)
{
    stg_schema_kind kind = STG_SCHEMA_FOREIGN;
    uint64_t version = 0;
    int rc = stg_schema_look(db, &kind, &version);

    if (rc != SQLITE_OK) {
        stg_sql_words(err, path, "cannot be read", db, rc);
        // Another try does not make a store of it.
        return (rc & 0xff) == SQLITE_NOTADB ? STG_INVALID : STG_IO;
    }
    if (kind == STG_SCHEMA_OTHER_VERSION) {
        return stg_hub_refuse(
            err, STG_INVALID,
            "%s: is a store of version %" PRIu64
            ", this stagger reads version %d: use the stagger that wrote it",
            path, version, STG_SCHEMA_VERSION);
    }
    if (kind == STG_SCHEMA_FOREIGN ||
        (kind == STG_SCHEMA_EMPTY && !may_be_empty)) {
        return stg_hub_refuse(
            err, STG_INVALID,
            "%s: is a database, but no store of stagger; name another "
            "file",
            path);
    }
    return kind == STG_SCHEMA_OURS ? schema_check_print(db, path, err) : STG_OK;
}

int stg_meta_read(stg_db *db, const char *name, uint64_t *number)
{
    stg_stmt *st = NULL;
    int rc =
        stg_sql_prepare_once(db, &st, "SELECT value FROM meta WHERE name = ?");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "s", name);
    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, number);
    stg_sql_finalize(st);
    return rc;
}

int stg_meta_write(stg_db *db, const char *name, uint64_t number)
{
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(
        db, &st, "INSERT OR REPLACE INTO meta (value, name) VALUES (?, ?)");

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "us", number, name);
    stg_sql_finalize(st);
    return rc;
}
