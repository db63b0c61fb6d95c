/* The tables of the store, step by step.
 *
 * meta: epoch (16 hex digits, of messages that are appended now), next_position
 * (of the queue: stored, and never made from the largest row, for a position is
 * never used twice), incarnations, message_bytes (pages that the queue fills,
 * about), letters_version (the last one copied to the file of dead letters).
 *
 * epochs: a row a restore: messages below the position have this epoch, those
 * from there on the next row's, or meta's.
 *
 * lanes: a number is never given to another name, nor to the same name once it
 * was forgotten; its row stays. The url has no values of a query, which may be
 * secrets. begins: the first position that the lane was to see.
 *
 * messages: the queue. created_at in ms since 1970.
 *
 * idempotency_keys: SHA-256, the first half, of the key; and of content type
 * and body. In the order of the log, so that the oldest go first; what is
 * looked for is found by an index in memory, for random places in a tree of
 * this size would be written with each message.
 *
 * partitions: the number of each (log, topic, partition, epoch) of a log that is
 * not the queue, which has 0; never given to another. epoch: 16 hex digits, all 0
 * at first, random when the topic was truncated or made again; stale: what the
 * group had committed then.
 *
 * claims: who writes a number for a shard: the generation rises with each who
 * takes it, and what comes with an older one is refused.
 *
 * cursors: 256 lanes a row, as JSON for people: see cursors.h. A lane that went
 * from one shard to another is in the rows of both: the furthest counts.
 *
 * parked: what was tried and waits, with its body. Times in ns since 1970. The
 * outcome is there twice: as the words of a dead letter, and as numbers.
 * attempts_before: requests of earlier replays. created_at: the message's.
 *
 * failed_broadcast_logs: what ended badly. A row with last_position stands for
 * what its lane got from position to last_position, `count` of them; their
 * bodies are in messages as long as these are kept. Of such a row last_attempt_at
 * is when the newest of them came into it, and range_first is
 * the name that flow has for it; `eaten` were replayed out of it, and position
 * has moved behind them; `taken` are those that flow counts under this name and
 * that went into earlier rows. version: a number that rises with each change
 * that the file of dead letters is to have; copied: count at that time. */
#include "hub/stores/steps.h"

#include <stdlib.h>

#include "hub/stores/sqlite.h"
#include "hub/url_mask.h"

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

/* URLs turn into what may be shown of them. In the rows of dead letters what is
 * long stands last: what comes behind it is found only by going over its
 * pages. */
static const char version_2[] =
    "CREATE TABLE epochs (below INTEGER PRIMARY KEY, epoch TEXT NOT NULL);"

    "CREATE TABLE lanes_2 ("
    " number INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL,"
    " url TEXT NOT NULL,"
    " is_forgotten INTEGER NOT NULL DEFAULT 0,"
    " is_paused INTEGER NOT NULL DEFAULT 0," // by a call
    " begins INTEGER);"
    "INSERT INTO lanes_2 (number, name, url, is_forgotten)"
    " SELECT number, name, mask_url(url), is_forgotten FROM lanes;"
    "DROP TABLE lanes;"
    "ALTER TABLE lanes_2 RENAME TO lanes;"

    "ALTER TABLE parked"
    " ADD COLUMN attempts_before INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE parked ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;"
    "DROP INDEX parked_due;"
    "CREATE INDEX parked_due ON parked"
    " (lane, due_at, position, partition, replay, wait) WHERE replay = 0;"
    "CREATE INDEX parked_replays ON parked"
    " (lane, due_at, position, partition, replay, wait) WHERE replay > 0;"

    "CREATE TABLE letters_2 ("
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
    " headers TEXT,"
    " answer BLOB,"
    " payload BLOB);" // NULL: a range row's are in messages; or it is gone
    "INSERT INTO letters_2 (id, message_id, target, target_url, lane,"
    " partition, position, replay, last_position, count, state, why, category,"
    " cause, http_status, detail, attempts, first_attempt_at, last_attempt_at,"
    " created_at, range_first, version, copied, content_type, key, headers,"
    " answer, payload)"
    " SELECT id, message_id, target, mask_url(target_url), lane,"
    " partition, position, replay, last_position, count, state, why, category,"
    " cause, http_status, detail, attempts, first_attempt_at, last_attempt_at,"
    " created_at, CASE WHEN last_position IS NOT NULL THEN position END, id,"
    " count, content_type, key, headers, answer, payload"
    " FROM failed_broadcast_logs ORDER BY id;"
    "DROP TABLE failed_broadcast_logs;"
    "ALTER TABLE letters_2 RENAME TO failed_broadcast_logs;"
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

    "UPDATE meta SET name = 'letters_version' WHERE name = 'letters_row';";

/* Cursors are found by shard, too: in a file there is the one of its hub. */
static const char version_3[] =
    "CREATE TABLE partitions ("
    " number INTEGER PRIMARY KEY,"
    " log TEXT NOT NULL,"
    " topic TEXT NOT NULL,"
    " partition INTEGER NOT NULL,"
    " epoch TEXT NOT NULL,"
    " stale INTEGER);"
    "CREATE UNIQUE INDEX partitions_name"
    " ON partitions (log, topic, partition, epoch);"

    "CREATE TABLE claims ("
    " number INTEGER NOT NULL,"
    " shard INTEGER NOT NULL,"
    " generation INTEGER NOT NULL,"
    " PRIMARY KEY (number, shard));"

    "CREATE TABLE cursors_3 ("
    " partition INTEGER NOT NULL,"
    " shard INTEGER NOT NULL,"
    " slice INTEGER NOT NULL,"
    " lanes TEXT NOT NULL,"
    " PRIMARY KEY (partition, shard, slice));"
    "INSERT INTO cursors_3 SELECT partition, 0, slice, lanes FROM cursors;"
    "DROP TABLE cursors;"
    "ALTER TABLE cursors_3 RENAME TO cursors;";

/* steps[n] leads from version n to n + 1; one that was published does not
 * change any more. */
static const char *const steps[] = {version_1, version_2, version_3};

uint64_t stg_steps_count(void)
{
    return sizeof steps / sizeof *steps;
}

static void mask_url(sqlite3_context *context, int count, sqlite3_value **args)
{
    const char *url = (const char *)sqlite3_value_text(args[0]);
    char *masked = url == NULL ? NULL : stg_url_mask(url);

    (void)count;
    if (url == NULL)
        sqlite3_result_null(context);
    else if (masked == NULL)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_text(context, masked, -1, SQLITE_TRANSIENT);
    free(masked);
}

int stg_steps_take(stg_db *db, uint64_t version)
{
    int rc = sqlite3_create_function(stg_sqlite_of(db), "mask_url", 1,
                                     SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                     mask_url, NULL, NULL);

    for (uint64_t at = version; at < stg_steps_count() && rc == SQLITE_OK; at++)
        rc = stg_sql_exec(db, steps[at]);
    return rc;
}
