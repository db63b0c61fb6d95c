/* sqlite.h - connections and statements, and what SQLite's errors mean.
 *
 * A connection has no mutex and belongs to one thread at a time. Functions
 * return SQLite's result code, SQLITE_OK (0) for success; only stg_sql_words()
 * makes sentences of them. Numbers above INT64_MAX are stored as that. */
#ifndef STAGGER_HUB_STORES_SQLITE_H
#define STAGGER_HUB_STORES_SQLITE_H

#include <stdbool.h>

#include <sqlite3.h>

#include <stagger/ns.h>
#include <stagger/status.h>

#include "hub/log_line.h"
#include "hub/parcel.h"

/* How long another process' lock is waited for; and where commits would wait,
 * too. */
enum { STG_SQL_BUSY_MS = 1000, STG_SQL_SHORT_MS = 20 };

/* Of a file that is there. The one that writes also sets WAL, synchronous=FULL
 * and the largest number of pages. */
int stg_sql_open_writer(sqlite3 **db, const char *path);
int stg_sql_open_reader(sqlite3 **db, const char *path);

/* Its statements, too. NULL: nothing. */
void stg_sql_close(sqlite3 *db);

int stg_sql_exec(sqlite3 *db, const char *text);

/* To be used again and again, until the connection closes. */
int stg_sql_prepare(sqlite3 *db, sqlite3_stmt **st, const char *text);

/* Binds the parameters from the first on, a letter each:
 *
 *   u  uint64_t, a number       h  uint64_t, 64 bits as they are
 *   o  uint64_t, 0: NULL        d  int
 *   s  const char *, or NULL    t  stg_span as text, empty: NULL
 *   b  stg_span as a blob       v  stg_span as a blob, empty: NULL
 *
 * Texts and blobs are lent until the statement ends. */
#define stg_sql_bind(st, ...) stg_sql_bind_from((st), 1, __VA_ARGS__)

/* From the parameter `first` on. */
int stg_sql_bind_from(sqlite3_stmt *st, int first, const char *letters, ...);

/* Binds, runs it to its end, and makes it ready for the next time. */
int stg_sql_run(sqlite3_stmt *st, const char *letters, ...);

/* The next row: SQLITE_ROW, or SQLITE_DONE, or an error. After anything but a
 * row the statement is reset. */
int stg_sql_step(sqlite3_stmt *st);

/* The first column of the only row. SQLITE_DONE: there is none. */
int stg_sql_number(sqlite3_stmt *st, uint64_t *number);

/* The same of a question that is asked once. */
int stg_sql_ask(sqlite3 *db, const char *question, uint64_t *number);

/* A column; negative numbers read as 0. */
uint64_t stg_sql_column(sqlite3_stmt *st, int column);
stg_span stg_sql_column_span(sqlite3_stmt *st, int column);

/* BEGIN IMMEDIATE, tried until it is our turn or *is_over (NULL: never). */
int stg_sql_begin(sqlite3 *db, bool (*is_over)(void *ctx), void *ctx);

/* Ends the transaction: COMMIT, or, if rc is an error, ROLLBACK. Returns rc, or
 * the error of the commit, and then the transaction was rolled back. Words for
 * an error go to err, before the rollback makes SQLite forget them. */
int stg_sql_end(sqlite3 *db, int rc, const char *path, stg_error *err);

bool stg_sql_is_full(int rc);

/* "stagger.db: what: reason (advice)" */
void stg_sql_words(stg_error *err, const char *path, const char *what,
                   sqlite3 *db, int rc);

/* "2026-03-01T12:00:00.250Z". Returns text. */
#define STG_SQL_TIME_MAX STG_UTC_TEXT_MAX
#define stg_sql_time stg_utc_text

#endif
