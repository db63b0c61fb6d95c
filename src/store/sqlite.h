/* sqlite.h - a file as a database: see sql.h. A connection has no mutex. */
#ifndef STAGGER_STORE_SQLITE_H
#define STAGGER_STORE_SQLITE_H

#include "store/sql.h"

/* How long another process' lock is waited for; and where commits would wait,
 * too. */
enum { STG_SQL_BUSY_MS = 1000, STG_SQL_SHORT_MS = 20 };

/* Of a file that is there; *db is made whatever comes back, but for
 * SQLITE_NOMEM, and closed by stg_sql_close(). The one that writes also sets
 * WAL, synchronous=FULL and the largest number of pages. */
int stg_sql_open_writer(stg_db **db, const char *path);
int stg_sql_open_reader(stg_db **db, const char *path);

/* With flags of sqlite3_open_v2(). */
int stg_sqlite_open(stg_db **db, const char *path, int flags);

/* The handles of SQLite, for calls that it alone has. */
sqlite3 *stg_sqlite_of(const stg_db *db);
sqlite3_stmt *stg_sqlite_statement(const stg_stmt *st);

#endif
