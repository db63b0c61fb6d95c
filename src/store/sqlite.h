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

/* Opens a file that nobody writes meanwhile, and changes nothing beside it, which
 * a reader does: SQLite makes a WAL and its shared memory where there is none.
 * What a WAL has is read, too. */
int stg_sql_open_still(stg_db **db, const char *path);

/* With flags of sqlite3_open_v2(). */
int stg_sqlite_open(stg_db **db, const char *path, int flags);

/* The handle of SQLite, for calls that it alone has. */
sqlite3 *stg_sqlite_of(const stg_db *db);

/* Returns the code of a call to a file: SQLite has one for a full disk and for
 * its own limit of pages, and one for all other errors of a write. */
int stg_sqlite_code(stg_db *db, int rc, bool is_commit);

/* -- the schema ---------------------------------------------------------- */

/* The tables of a store in a file: made once, and of one version. */

/* In the file's header: "stgr". */
#define STG_SCHEMA_APPLICATION 0x73746772
#define STG_SCHEMA_VERSION 1

/* The kind of a file. */
typedef enum stg_schema_kind {
    STG_SCHEMA_EMPTY, /* no tables, of nobody */
    STG_SCHEMA_OURS,
    STG_SCHEMA_OTHER_VERSION, /* of another version of stagger */
    STG_SCHEMA_FOREIGN,       /* of another program */
} stg_schema_kind;

/* Changes nothing. */
int stg_schema_look(stg_db *db, stg_schema_kind *kind, uint64_t *version);

/* Makes the tables, in the caller's transaction. SQLITE_ERROR: they are there
 * already. */
int stg_schema_make(stg_db *db);

/* Refuses what is not ours, with words. */
stg_status stg_schema_check(stg_db *db, const char *path, bool may_be_empty,
                            stg_error *err);

/* -- the table meta: a value a name ---------------------------------------- */

/* SQLITE_DONE: there is no such name. */
int stg_meta_read(stg_db *db, const char *name, uint64_t *number);
int stg_meta_write(stg_db *db, const char *name, uint64_t number);

#endif
