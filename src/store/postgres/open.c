/* Opening connections to a store in PostgreSQL.
 *
 * The writer's is the first, and does what only one has to: it makes or checks
 * the tables, agrees on the number of shards, asks for rights and reads the
 * server's clock. All of that happens again whenever it connects anew
 * (reopen_session()), for the server may be another one by then: a standby, or
 * a restored copy. */
#include "store/postgres/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "store/postgres/link.h"

void stg_pg_say_trouble(const stg_db *db, bool is_hanging, stg_error *err)
{
    const stg_pg *pg = (const stg_pg *)db;

    if (is_hanging)
        (void)stg_hub_refuse(err, STG_IO, "%s: does not answer", pg->name);
    else
        (void)stg_hub_refuse(
            err, STG_IO, "%s: %s: %s", pg->name,
            pg->is_refused ? "refuses what is stored" : "is away", pg->trouble);
}

/* -- opening --------------------------------------------------------------- */

/* What it does first is told by an error of its own. */
typedef struct opening {
    uint32_t shard_of;
    bool is_looking; /* it makes nothing */
    bool
        is_answered; /* the server itself refuses, in a connection that holds */
    stg_status status;
    stg_error err;
} opening;

/* The order matters: tables first, for the rights are those of the tables. What
 * a step refuses is kept in o->err; a connection that broke meanwhile is AWAY,
 * whatever was asked. */
static int open_session(stg_pg *pg, void *ctx)
{
    opening *o = ctx;

    o->status = o->is_looking ? stg_pg_schema_check(pg->conn, pg->name, &o->err)
                              : stg_pg_schema_make(pg->conn, pg->name, &o->err);
    if (o->status == STG_OK && !o->is_looking)
        o->status =
            stg_pg_schema_agree(pg->conn, pg->name, o->shard_of, &o->err);
    if (o->status == STG_OK && !o->is_looking)
        o->status = stg_pg_schema_may_write(pg->conn, pg->name, &o->err);
    if (o->status == STG_OK && !o->is_looking)
        o->status = stg_pg_schema_plan(pg->conn, pg->name, &o->err);
    if (o->status == STG_OK)
        return o->is_looking ? SQLITE_OK : stg_pg_read_clock(pg);
    // A connection that broke meanwhile is another thing.
    if (PQstatus(pg->conn) != CONNECTION_OK)
        return STG_SQL_AWAY;
    o->is_answered = true;
    snprintf(pg->words, sizeof pg->words, "%.*s", (int)sizeof pg->words - 1,
             o->err.text);
    return o->status == STG_IO ? STG_SQL_AWAY : SQLITE_MISUSE;
}

/* Connects once, and says why it failed: at the start an operator waits for the
 * words. Later tries are stg_pg_revive()'s. */
static stg_status connect_first(stg_pg *pg, opening *o, stg_error *err)
{
    stg_status status = stg_pg_url_check(pg->url, err);
    int rc;

    if (status != STG_OK)
        return status;
    pg->open_session = open_session;
    pg->session_ctx = o;
    rc = stg_pg_connect(pg);
    pg->rc = SQLITE_OK;
    pg->open_session = NULL;
    if (rc == SQLITE_OK)
        return STG_OK;
    if (o->is_answered) {
        *err = o->err;
        return o->status;
    }
    return stg_pg_refuse(pg, err);
}

/* Of the shards, it says it again by itself: the link keeps how many. */
static int reopen_session(stg_pg *pg, void *ctx)
{
    opening o = {.shard_of = (uint32_t)(uintptr_t)ctx};

    return open_session(pg, &o);
}

/* NULL: no memory. */
static stg_pg *make(stg_db **db, const char *url, stg_error *err)
{
    stg_pg *pg = stg_pg_new(url);

    *db = pg == NULL ? NULL : &pg->db;
    if (pg == NULL)
        (void)stg_hub_refuse(err, STG_IO, "there is no memory left");
    return pg;
}

stg_status stg_pg_open_writer(stg_db **db, const char *url, uint32_t shard_of,
                              stg_error *err)
{
    opening o = {.shard_of = shard_of};
    stg_pg *pg = make(db, url, err);
    stg_status status;

    if (pg == NULL)
        return STG_IO;
    status = connect_first(pg, &o, err);
    pg->open_session = reopen_session;
    pg->session_ctx = (void *)(uintptr_t)shard_of;
    return status;
}

stg_status stg_pg_open_to_look(stg_db **db, const char *url, stg_error *err)
{
    opening o = {.is_looking = true};
    stg_pg *pg = make(db, url, err);

    return pg == NULL ? STG_IO : connect_first(pg, &o, err);
}

/* A connection beside the writer's: it relies on the tables that the writer has
 * checked. */
int stg_pg_open_another(stg_db **db, const char *url)
{
    stg_pg *pg = stg_pg_new(url);

    *db = NULL;
    if (pg == NULL)
        return SQLITE_NOMEM;
    *db = &pg->db;
    stg_pg_connect(pg);
    // If it is away, it is revived when it is needed.
    pg->rc = SQLITE_OK;
    return SQLITE_OK;
}

void stg_pg_watch(stg_db *db, bool (*is_over)(void *ctx), void *ctx)
{
    stg_pg *pg = (stg_pg *)db;

    pg->is_over = is_over;
    pg->is_over_ctx = ctx;
}
