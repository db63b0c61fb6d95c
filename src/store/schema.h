/* schema.h - the tables of a store in a file: made once, and of one version. */
#ifndef STAGGER_STORE_SCHEMA_H
#define STAGGER_STORE_SCHEMA_H

#include "store/sql.h"

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

/* The epoch: 16 hex digits, so that people find it in message ids. */
int stg_meta_write_epoch(stg_db *db, uint64_t epoch);

#endif
