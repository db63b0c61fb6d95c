/* schema.h - the tables of a store in PostgreSQL, and who may use it.
 *
 * They are in the first schema of the connection's search_path; nothing else of
 * that schema is touched. Made by whoever comes first: the others wait for its
 * advisory lock. */
#ifndef STAGGER_STORE_POSTGRES_SCHEMA_H
#define STAGGER_STORE_POSTGRES_SCHEMA_H

#include "store/postgres/link.h"

/* Makes the tables where there are none. Of a new connection that is not in
 * pipeline mode yet. STG_INVALID with words: of another version, or not ours to
 * make. STG_IO from here and all others: for now, as the server is. */
stg_status stg_pg_schema_make(PGconn *conn, const char *name, stg_error *err);

/* All tables are there, and may be read and written: else STG_INVALID with words
 * that name what lacks. */
stg_status stg_pg_schema_may_write(PGconn *conn, const char *name,
                                   stg_error *err);

/* Changes nothing: STG_INVALID with words where there is no store, or one of
 * another version. */
stg_status stg_pg_schema_check(PGconn *conn, const char *name, stg_error *err);

/* The connection is one that writes rows by their keys: its plans are for that,
 * whatever the server thinks that the tables have. */
stg_status stg_pg_schema_plan(PGconn *conn, const char *name, stg_error *err);

/* All who are there at a time agree on how many shards there are: holds that for
 * the time of the connection. STG_INVALID with words: others say otherwise. */
stg_status stg_pg_schema_agree(PGconn *conn, const char *name,
                               uint32_t shard_of, stg_error *err);

#endif
