/* refuse.h - why a server of PostgreSQL does not let a hub in, and whether that
 * may end by itself. */
#ifndef STAGGER_STORE_POSTGRES_REFUSE_H
#define STAGGER_STORE_POSTGRES_REFUSE_H

#include "store/postgres/link.h"

/* The first connection has failed: pg->words say with what. Asks the server again,
 * which may take some seconds. STG_INVALID: what only a change of the settings or
 * of the database mends (a password, a role, a database, a right, TLS); STG_IO:
 * whatever else. */
stg_status stg_pg_refuse(const stg_pg *pg, stg_error *err);

#endif
