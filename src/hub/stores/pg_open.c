#include "hub/stores/pg_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/refuse.h"
#include "hub/stores/pg_schema.h"

char *stg_pg_name_of(const char *url)
{
    return stg_pg_name(url);
}

/* -- what is wrong with a URL ---------------------------------------------- */

/* A host would begin behind the first of them, and be told to everybody. */
static bool has_stray_at(const char *url)
{
    const char *from = strstr(url, "://") + 3;
    const char *end = from + strcspn(from, "/?#");
    int count = 0;

    for (; from < end; from++)
        count += *from == '@';
    return count > 1;
}

/* libpq's words would say what it stumbled on. */
static stg_status check_url(const stg_pg *pg, stg_error *err)
{
    char *words = NULL;
    PQconninfoOption *parsed;

    if (has_stray_at(pg->url))
        return stg_hub_refuse(err, STG_INVALID,
                              "the store's URL: has several '@' before the "
                              "host; write one that is part of the user or "
                              "the password as %%40");
    parsed = PQconninfoParse(pg->url, &words);
    PQfreemem(words);
    if (parsed == NULL)
        return stg_hub_refuse(
            err, STG_INVALID,
            "%s: is no URL of a database, or one of its options is unknown; "
            "wanted postgres://USER:PASSWORD@HOST:PORT/DATABASE, with other "
            "characters in them as %%40",
            pg->name);
    PQconninfoFree(parsed);
    return STG_OK;
}

/* It may hang. What the URL says counts, but for sslmode (NULL: as there). */
static PGPing ping_server(const stg_pg *pg, const char *sslmode)
{
    const char *names[] = {"connect_timeout", "dbname", "sslmode", NULL};
    const char *values[] = {"5", pg->url, sslmode, NULL};

    return PQpingParams(names, values, true);
}

/* It would answer who asks without TLS, if only to send him away: a certificate
 * that is not believed looks like no answer at all. */
static bool answers_plainly(const stg_pg *pg)
{
    return ping_server(pg, "disable") == PQPING_OK;
}

/* Nothing that is wrong with who we are ends by itself; but a server that does
 * not answer, or is just starting. */
static stg_status refuse(const stg_pg *pg, stg_error *err)
{
    PGPing ping = ping_server(pg, NULL);

    if (ping == PQPING_NO_RESPONSE && answers_plainly(pg))
        return stg_hub_refuse(err, STG_INVALID,
                              "%s: there is no TLS with the server: %s; see to "
                              "its certificate, and to sslmode and sslrootcert "
                              "of the URL",
                              pg->name, pg->words);
    if (ping == PQPING_OK)
        return stg_hub_refuse(err, STG_INVALID,
                              "%s: the server refuses: %s; see to the "
                              "database, the user and the password",
                              pg->name, pg->words);
    if (ping == PQPING_NO_ATTEMPT)
        return stg_hub_refuse(err, STG_INVALID,
                              "%s: cannot be connected to: %s; see to the "
                              "options of the URL",
                              pg->name, pg->words);
    return stg_hub_refuse(err, STG_IO,
                          "%s: the server does not answer: %s; start it, or "
                          "name another one",
                          pg->name, pg->words);
}

/* -- opening --------------------------------------------------------------- */

/* What it does first is told by an error of its own. */
typedef struct opening {
    uint32_t shard_of;
    bool is_looking; /* it makes nothing */
    stg_status status;
    stg_error err;
} opening;

static int greet(stg_pg *pg, void *ctx)
{
    opening *o = ctx;

    o->status = o->is_looking
                    ? stg_pg_schema_check(pg->conn, pg->name, &o->err)
                    : stg_pg_schema_bring_up(pg->conn, pg->name, &o->err);
    if (o->status == STG_OK && !o->is_looking)
        o->status =
            stg_pg_schema_agree(pg->conn, pg->name, o->shard_of, &o->err);
    if (o->status == STG_OK && !o->is_looking)
        o->status = stg_pg_schema_plan(pg->conn, pg->name, &o->err);
    if (o->status == STG_OK)
        return SQLITE_OK;
    // A connection that broke meanwhile is another thing.
    if (PQstatus(pg->conn) != CONNECTION_OK)
        return STG_SQL_AWAY;
    snprintf(pg->words, sizeof pg->words, "%.*s", (int)sizeof pg->words - 1,
             o->err.text);
    return SQLITE_MISUSE;
}

static stg_status connect_first(stg_pg *pg, opening *o, stg_error *err)
{
    stg_status status = check_url(pg, err);
    int rc;

    if (status != STG_OK)
        return status;
    pg->greet = greet;
    pg->greet_ctx = o;
    rc = stg_pg_connect(pg);
    pg->rc = SQLITE_OK;
    pg->greet = NULL;
    if (rc == SQLITE_OK)
        return STG_OK;
    if (o->status != STG_OK && rc != STG_SQL_AWAY) {
        *err = o->err;
        return o->status;
    }
    return refuse(pg, err);
}

/* Of the shards, it says it again by itself: the link keeps how many. */
static int greet_again(stg_pg *pg, void *ctx)
{
    opening o = {.shard_of = (uint32_t)(uintptr_t)ctx};

    return greet(pg, &o);
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
    pg->greet = greet_again;
    pg->greet_ctx = (void *)(uintptr_t)shard_of;
    return status;
}

stg_status stg_pg_open_to_look(stg_db **db, const char *url, stg_error *err)
{
    opening o = {.is_looking = true};
    stg_pg *pg = make(db, url, err);

    return pg == NULL ? STG_IO : connect_first(pg, &o, err);
}

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
