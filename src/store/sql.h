/* sql.h - connections and statements of a database, SQLite's or PostgreSQL's,
 * and what their errors mean.
 *
 * A connection belongs to one thread at a time. Functions return SQLite's
 * result codes, SQLITE_OK (0) for success, whatever the database; PostgreSQL's
 * errors are told by the nearest of them, and STG_SQL_AWAY is its own: the
 * connection is gone, or never was, and begins anew by stg_sql_begin() or
 * stg_sql_revive(). Only stg_sql_words() makes sentences of them. Numbers above
 * INT64_MAX are stored as that.
 *
 * Texts of statements are what both understand. With PostgreSQL a statement that
 * is run, and gives no rows, is only sent: its error is that of a later call, at
 * the latest of stg_sql_end(). */
#ifndef STAGGER_STORE_SQL_H
#define STAGGER_STORE_SQL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include <stagger/ns.h>
#include <stagger/status.h>

#include "base/list.h"
#include "base/span.h"
#include "host/wall.h"

#define STG_SQL_AWAY 1000

typedef struct stg_db stg_db;
typedef struct stg_stmt stg_stmt;

/* Its statements, too. NULL: nothing. */
void stg_sql_close(stg_db *db);

/* Nanoseconds since 1970 as all who use it have them: by the wall clock; of a
 * server, by its clock, whatever this machine's shows. */
stg_ns stg_sql_now(const stg_db *db);

/* Whether other hubs may be at work in it. */
bool stg_sql_is_shared(const stg_db *db);

/* One or more commands without parameters (PostgreSQL: one). */
int stg_sql_exec(stg_db *db, const char *text);

/* To be used again and again, until the connection closes. */
int stg_sql_prepare(stg_db *db, stg_stmt **st, const char *text);

/* Prepares a write that is run for many rows, with "?1", "?2" for a row's
 * values. SQLite runs head and tail, once a row. PostgreSQL gathers the rows
 * of many runs and sends them as one command: head, joint (FROM, USING or a
 * comma), a table of the rows, tail. They are sent before any other command,
 * or by stg_sql_flush(); one command must not have the same row twice. The
 * texts are kept. */
int stg_sql_prepare_many(stg_db *db, stg_stmt **st, const char *head,
                         const char *joint, const char *tail);
int stg_sql_flush(stg_db *db);

/* To be used once. *st is NULL on an error. */
int stg_sql_prepare_once(stg_db *db, stg_stmt **st, const char *text);
void stg_sql_finalize(stg_stmt *st); /* NULL: nothing */

/* The same of a text with a list of numbers in it, "1,7": head, numbers, tail. */
int stg_sql_prepare_list(stg_db *db, stg_stmt **st, const char *head,
                         const char *numbers, const char *tail);

/* "1,7", for that. Of malloc(); NULL: no memory. No number: "NULL", which is
 * equal to none. */
char *stg_sql_list(const uint32_t *numbers, size_t count);

/* Binds the parameters from the first on, a letter each:
 *
 *   u  uint64_t, a number       h  uint64_t, 64 bits as they are
 *   o  uint64_t, 0: NULL        d  int
 *   s  const char *, or NULL    j  stg_span as text
 *   t  stg_span as it came by the wire, empty: NULL (a text of any bytes)
 *   b  stg_span as a blob       v  stg_span as a blob, empty: NULL
 *                               n  stg_span as a blob, at is NULL: NULL
 *
 * Texts and blobs are lent until the statement ends. Each parameter has the
 * same letter each time. */
#define stg_sql_bind(st, ...) stg_sql_bind_from((st), 1, __VA_ARGS__)

/* From the parameter `first` on. */
int stg_sql_bind_from(stg_stmt *st, int first, const char *letters, ...);

/* Binds, runs it to its end, and makes it ready for the next time. */
int stg_sql_run(stg_stmt *st, const char *letters, ...);

/* How many rows the last run has changed; *rc is its error. */
uint64_t stg_sql_changes(stg_stmt *st, int *rc);

/* The next row: SQLITE_ROW, or SQLITE_DONE, or an error. After anything but a
 * row the statement is reset. */
int stg_sql_step(stg_stmt *st);
int stg_sql_reset(stg_stmt *st); /* NULL: nothing */

/* The first column of the only row. SQLITE_DONE: there is none. */
int stg_sql_number(stg_stmt *st, uint64_t *number);

/* The same of a question that is asked once. */
int stg_sql_ask(stg_db *db, const char *question, uint64_t *number);

/* A column of a row; negative numbers read as 0. */
uint64_t stg_sql_column(stg_stmt *st, int column);
uint64_t stg_sql_bits(stg_stmt *st, int column); /* of what 'h' has bound */
stg_span stg_sql_column_span(stg_stmt *st, int column);

/* With a zero behind it; a number as digits, which the next call may reuse. NULL
 * for NULL. */
const char *stg_sql_text(stg_stmt *st, int column);

bool stg_sql_is_null(stg_stmt *st, int column);

/* Begins a transaction that writes, tried until it is our turn, and the
 * connection is there, or is_over() (NULL: never), which is asked once a second
 * about. */
int stg_sql_begin(stg_db *db, bool (*is_over)(void *ctx), void *ctx);

/* Ends the transaction: COMMIT, or, if rc is an error, ROLLBACK. Returns rc, or
 * the error of the commit, and then the transaction was rolled back; but with
 * STG_SQL_AWAY it may have been committed: stg_sql_has_committed(). Words for
 * an error go to err, before the rollback makes the database forget them. */
int stg_sql_end(stg_db *db, int rc, const char *path, stg_error *err);

/* Of the last transaction, whose end was STG_SQL_AWAY; in a connection that is
 * there again. False, too, where the server does not know any more. */
bool stg_sql_has_committed(stg_db *db);

/* A connection that is gone begins anew: SQLITE_OK when it is there. */
int stg_sql_revive(stg_db *db, bool (*is_over)(void *ctx), void *ctx);

/* Takes one advisory lock for this transaction: others that call this wait
 * until it ends. SQLite has one writer, and does nothing. */
int stg_sql_serialize(stg_db *db);

bool stg_sql_is_full(int rc);

/* "stagger.db: what: reason (advice)" */
void stg_sql_words(stg_error *err, const char *path, const char *what,
                   stg_db *db, int rc);

/* "2026-03-01T12:00:00.250Z". Returns text. */
#define STG_SQL_TIME_MAX STG_UTC_TEXT_MAX
#define stg_sql_time stg_utc_text

/* -- for the two of them --------------------------------------------------- */

/* A parameter. */
typedef struct stg_sql_value {
    enum { STG_SQL_NUMBER, STG_SQL_TEXT, STG_SQL_WIRE, STG_SQL_BLOB } kind;
    bool is_null;
    sqlite3_int64 number;
    stg_span span; /* of the others */
} stg_sql_value;

typedef enum stg_sql_type {
    STG_SQL_IS_NULL,
    STG_SQL_IS_NUMBER,
    STG_SQL_IS_TEXT,
    STG_SQL_IS_BLOB,
} stg_sql_type;

typedef struct stg_sql_calls {
    bool is_shared;
    void (*close)(stg_db *db);
    stg_ns (*now)(const stg_db *db); /* NULL: the wall clock's */
    int (*exec)(stg_db *db, const char *text);
    int (*prepare)(stg_db *db, stg_stmt **st, const char *text, bool is_kept);
    /* Both NULL: each run is a command. */
    int (*prepare_many)(stg_db *db, stg_stmt **st, const char *head,
                        const char *joint, const char *tail);
    int (*flush)(stg_db *db);
    void (*finalize)(stg_stmt *st);
    int (*bind)(stg_stmt *st, int at, const stg_sql_value *value);
    int (*run)(stg_stmt *st);
    uint64_t (*changes)(stg_stmt *st, int *rc);
    int (*step)(stg_stmt *st);
    int (*reset)(stg_stmt *st);
    stg_sql_type (*type)(stg_stmt *st, int column);
    sqlite3_int64 (*number)(stg_stmt *st, int column);
    const char *(*text)(stg_stmt *st, int column);
    stg_span (*span)(stg_stmt *st, int column);
    int (*begin)(stg_db *db, bool (*is_over)(void *ctx), void *ctx);
    int (*end)(stg_db *db, int rc, const char *path, stg_error *err);
    bool (*has_committed)(stg_db *db);
    int (*revive)(stg_db *db, bool (*is_over)(void *ctx), void *ctx);
    int (*serialize)(stg_db *db);
    void (*words)(stg_error *err, const char *path, const char *what,
                  stg_db *db, int rc);
} stg_sql_calls;

/* The first field of theirs. */
struct stg_db {
    const stg_sql_calls *calls;
    stg_list statements;
};

struct stg_stmt {
    stg_db *db;
    stg_link link;
};

/* -- arenas ------------------------------------------------------------------ */

/* Copies of texts that go at once, all together. */

/* Zeroed: empty. */
typedef struct stg_arena {
    struct stg_arena_piece *pieces;
    bool is_short; /* there was no memory: what is there is no use */
} stg_arena;

void stg_arena_free(stg_arena *a);

/* NULL: no memory. */
void *stg_arena_bytes(stg_arena *a, size_t size);
/* Copies text. NULL if text is, or where there is no memory: then is_short is
 * set. */
const char *stg_arena_text(stg_arena *a, const char *text);

/* A column, with a zero behind it; at is NULL for NULL. */
stg_span stg_arena_column(stg_arena *a, stg_stmt *st, int column);

#endif
