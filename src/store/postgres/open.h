/* open.h - a store in PostgreSQL is opened: by a hub, or to be looked at.
 *
 * Where stagger is built without PostgreSQL, all of them refuse, with words. */
#ifndef STAGGER_STORE_POSTGRES_OPEN_H
#define STAGGER_STORE_POSTGRES_OPEN_H

#include <stdbool.h>

#include <stagger/status.h>

#include "store/lanes.h"
#include "store/sql.h"
#include "store/store.h"

/* Connects, makes the tables where there are none, and agrees on the shards;
 * again with each new connection. STG_IO: the server does not answer, or
 * refuses for now; STG_INVALID: all that does not end by itself. */
stg_status stg_pg_open_writer(stg_db **db, const char *url, uint32_t shard_of,
                              stg_error *err);

/* The writer's connection asks this about once a second while it waits. */
void stg_pg_watch(stg_db *db, bool (*is_over)(void *ctx), void *ctx);

/* Why the writer's connection cannot store: "NAME: does not answer" (while
 * it waits, is_hanging), "is away: ..." or "refuses what is stored: ...", in the
 * server's words. */
void stg_pg_say_trouble(const stg_db *db, bool is_hanging, stg_error *err);

/* Another connection to it, for reading or for writing. *db is made whatever
 * comes back but for SQLITE_NOMEM. */
int stg_pg_open_another(stg_db **db, const char *url);

/* One that is there, and of this version; by somebody who only looks. */
stg_status stg_pg_open_to_look(stg_db **db, const char *url, stg_error *err);

/* -- lanes ----------------------------------------------------------------- */

/* One transaction for numbers of lanes, which ask() asks for, perhaps a second time
 * where the connection was gone. have_asked() follows before the commit: false, and
 * nothing is written (SQLITE_ABORT). `count` lanes: how long it may take. */
int stg_shared_lanes_transact(stg_db *db, size_t count,
                              int (*ask)(void *ctx, stg_db *db),
                              bool (*have_asked)(void *ctx), void *ctx);

/* The number of a name, new if there is none, within that; notes the url. The row
 * is durable before what anybody commits later. pause: by any hub. */
int stg_shared_lanes_find(stg_db *db, const char *name, const char *url,
                          uint32_t *number, stg_pause *pause);

/* -- its URL ------------------------------------------------------------- */

/* The URL of a store in PostgreSQL: what of it may be shown.
 *
 * libpq reads it, and says which of its parts are secret. */

/* "postgres://hub@db.example:5432/stagger": without its options and whatever
 * may be a secret; "postgres" for what libpq cannot read. Of malloc(); NULL: no
 * memory. */
char *stg_pg_url_name(const char *url);

/* Whether a part of it is a secret: a password, however it is written. False for
 * what libpq cannot read. */
bool stg_pg_url_has_secret(const char *url);

/* STG_INVALID with words, in which nothing of the URL is that may be a secret. */
stg_status stg_pg_url_check(const char *url, stg_error *err);

/* The file that the password is to be in, by the URL, the environment, or where
 * it is in one's home. Of malloc(); NULL: none, or no memory. */
char *stg_pg_url_passfile(const char *url);

#endif
