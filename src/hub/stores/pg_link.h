/* pg_link.h - a connection to PostgreSQL, in libpq's pipeline mode: commands are
 * sent one after the other, and their results are read when one of them is
 * waited for.
 *
 * Whatever goes wrong with the connection, or with the server as a whole, is
 * STG_SQL_AWAY: then it is closed, and begins anew by stg_pg_link_revive().
 * The password of the URL is in no text that comes from here. */
#ifndef STAGGER_HUB_STORES_PG_LINK_H
#define STAGGER_HUB_STORES_PG_LINK_H

#include <libpq-fe.h>

#include <stagger/rng.h>

#include "hub/stores/sql.h"

typedef struct stg_pg_stmt stg_pg_stmt;

/* What is to come back for a command that was sent. */
typedef enum stg_pg_kind {
    STG_PG_PREPARE,
    STG_PG_RUN,
    STG_PG_QUERY,
    STG_PG_COMMIT,
} stg_pg_kind;

typedef struct stg_pg_wait {
    stg_pg_kind kind;
    stg_pg_stmt *st; /* NULL: none, or it is no more */
} stg_pg_wait;

enum { STG_PG_WAITS = 256 }; /* commands between two looks at their results */

typedef struct stg_pg {
    stg_db db;
    char *url;           /* with the password */
    char *name;          /* without */
    PGconn *conn;        /* NULL: away */
    uint64_t connection; /* its number; they rise from 1 */
    uint32_t tries;      /* to connect, in a row, that failed */
    uint64_t statements; /* that had a name */
    stg_rng rng;

    stg_pg_wait waits[2 * STG_PG_WAITS];
    size_t wait_count;
    stg_pg_stmt *gathering; /* has rows that are not sent yet; NULL: none has */
    PGresult *result;       /* of the last STG_PG_QUERY */
    int rc;          /* of the first that failed since the transaction began */
    char words[300]; /* of it, or of the last try to connect */
    bool is_begun;   /* a transaction */
    bool is_unknown; /* its COMMIT was sent, and not answered */
    char xid[24];    /* of it; "": not asked for */

    /* What the next connection is to do first; NULL: nothing. */
    int (*greet)(struct stg_pg *pg, void *ctx);
    void *greet_ctx;
    /* Asked about once a second while an answer is waited for: whether it is no
     * use any more. NULL: never. */
    bool (*is_over)(void *ctx);
    void *is_over_ctx;
} stg_pg;

/* Of a URL; not connected. NULL: no memory. name: see stg_pg_name(). */
stg_pg *stg_pg_new(const char *url);
void stg_pg_free(stg_pg *pg);

/* Connects once. */
int stg_pg_connect(stg_pg *pg);
void stg_pg_disconnect(stg_pg *pg);

/* Connects until it is there; waits longer with each try, as the core says. */
int stg_pg_revive(stg_pg *pg, bool (*is_over)(void *ctx), void *ctx);

/* The next command; its result is waited for by stg_pg_settle(). Texts go out by
 * the call. */
int stg_pg_send(stg_pg *pg, const char *command, stg_pg_kind kind);

/* A place for what PQsend...() has just sent; is_sent: what it said. */
int stg_pg_sent(stg_pg *pg, int is_sent, stg_pg_kind kind, stg_pg_stmt *st);

/* Waits for the results of all that was sent. */
int stg_pg_settle(stg_pg *pg);

/* The statement is no more: its results are of nobody. */
void stg_pg_forget(stg_pg *pg, const stg_pg_stmt *st);

/* One command, at once; NULL: it failed, see pg->rc. The caller clears it. */
PGresult *stg_pg_ask(stg_pg *pg, const char *command, int count,
                     const char *const *values);

/* "postgres://hub@db.example:5432/stagger": a URL without its password and its
 * options. Of malloc(); NULL: no memory. */
char *stg_pg_name(const char *url);

#endif
