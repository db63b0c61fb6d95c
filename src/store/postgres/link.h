/* link.h - a connection to PostgreSQL, in libpq's pipeline mode: commands are
 * sent one after the other, and their results are read when one of them is
 * waited for.
 *
 * Whatever goes wrong with the connection, or with the server as a whole, is
 * STG_SQL_AWAY: then it is closed, and begins anew by stg_pg_revive().
 * The password of the URL is in no text that comes from here. */
#ifndef STAGGER_STORE_POSTGRES_LINK_H
#define STAGGER_STORE_POSTGRES_LINK_H

#include <libpq-fe.h>

#include <stagger/rng.h>

#include "store/sql.h"

typedef struct stg_pg_stmt stg_pg_stmt;

/* The kind of answer that is awaited for a command that was sent. */
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
    uint32_t tries; /* in a row that ended without a commit, or an answer: to
                       connect, too */
    uint64_t statements; /* that had a name */
    _Atomic uint64_t
        clock; /* the server's, less uv_hrtime(); 0: not known yet */
    stg_rng rng;

    stg_pg_wait waits[2 * STG_PG_WAITS];
    size_t wait_count;
    stg_pg_stmt *gathering; /* has rows that are not sent yet; NULL: none has */
    PGresult *result;       /* of the last STG_PG_QUERY */
    int rc;          /* of the first that failed since the transaction began */
    char words[300]; /* of it, or of the last try to connect */
    char trouble[300]; /* of the last that is counted in tries */
    bool is_refused;   /* that was an answer of the server */
    bool is_begun;     /* a transaction */
    bool is_unknown;   /* its COMMIT was sent, and not answered */
    char xid[24];      /* of it; "": not asked for */

    /* Called first on the next connection; NULL: nothing is. STG_SQL_AWAY with
     * words: it is tried again. */
    int (*open_session)(struct stg_pg *pg, void *ctx);
    void *session_ctx;
    /* Asked about once a second while an answer is waited for: whether it is no
     * use any more. NULL: never. */
    bool (*is_over)(void *ctx);
    void *is_over_ctx;
} stg_pg;

/* Makes a connection object for the URL, which is copied; it is not connected
 * yet. NULL: no memory. */
stg_pg *stg_pg_new(const char *url);
void stg_pg_free(stg_pg *pg);

/* Connects once. */
int stg_pg_connect(stg_pg *pg);
void stg_pg_disconnect(stg_pg *pg);

/* Connects until it is there; waits longer with each try since the last that
 * did what it was for, as the core says: a server may let everybody in, and
 * refuse all that is written. The second one comes at once. */
int stg_pg_revive(stg_pg *pg, bool (*is_over)(void *ctx), void *ctx);

/* What was asked was done. */
void stg_pg_succeed(stg_pg *pg);

/* The nearest of SQLite's codes, STG_SQL_AWAY for what the server may get over
 * by itself, or another one that takes its place. state: of an error; NULL:
 * none. */
int stg_pg_code(const char *state);

/* The server's clock, as a new session has it: half of the way there is the
 * moment of its answer. Of a connection that is not in pipeline mode yet. */
int stg_pg_read_clock(stg_pg *pg);
stg_ns stg_pg_now(const stg_pg *pg);

/* The next command; its result is waited for by stg_pg_settle(). Texts go out
 * by the call. */
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

/* -- types: as in pg_type.dat, the same in every server -------------------- */

enum {
    STG_PG_BYTEA = 17,
    STG_PG_INT8 = 20,
    STG_PG_INT2 = 21,
    STG_PG_INT4 = 23,
    STG_PG_TEXT = 25,
    STG_PG_BYTEAS = 1001, /* arrays */
    STG_PG_TEXTS = 1009,
    STG_PG_INT8S = 1016,
};

/* -- the tables, and who may use them -------------------------------------- */

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

/* -- why a server does not let a hub in ------------------------------------ */

/* The first connection has failed: pg->words say with what. Asks the server
 * again, which may take some seconds. STG_INVALID: what only a change of the
 * settings or of the database mends (a password, a role, a database, a right,
 * TLS); STG_IO: whatever else. */
stg_status stg_pg_refuse(const stg_pg *pg, stg_error *err);

/* -- statements -------------------------------------------------------------- */

/* A statement of PostgreSQL: see sql.h.
 *
 * It is prepared on a connection when it is first sent there, when the letters of
 * its parameters are known; one that is kept by a name of its own. */

enum { STG_PG_PARAMS = 40 };

struct stg_pg_stmt {
    stg_stmt st;
    char *text; /* with $1, $2 */
    char name[24];
    uint64_t prepared_on; /* connection; 0: on none */
    int count;            /* of parameters */
    Oid types[STG_PG_PARAMS];
    const char *values[STG_PG_PARAMS];
    int sizes[STG_PG_PARAMS], formats[STG_PG_PARAMS];
    char numbers[STG_PG_PARAMS][8]; /* the highest byte first */
    char *clean[STG_PG_PARAMS];     /* texts that were no UTF-8 */
    PGresult *result;               /* of the rows that are stepped through */
    int row;
    uint64_t changed;         /* rows */
    char shown[24];           /* a number, as text */
    struct stg_pg_rows *rows; /* that are gathered; NULL: each run is sent */
};

/* Sends it, behind its text if the connection has not heard that yet. */
int stg_pg_stmt_send(stg_pg_stmt *one, const char *const *values,
                     const int *sizes, stg_pg_kind kind);

extern const stg_sql_calls stg_pg_calls;

/* -- rows that are gathered ------------------------------------------------ */

typedef struct stg_pg_rows stg_pg_rows;

/* The texts are kept, see stg_sql_prepare_many(). NULL: no memory. */
stg_pg_rows *stg_pg_rows_new(const char *head, const char *joint,
                             const char *tail);
void stg_pg_rows_free(stg_pg_rows *r); /* NULL: nothing */

/* What is bound, copied; sends them when they are many. */
int stg_pg_rows_add(stg_pg_stmt *one);

/* Sends what is gathered. Returns pg->rc, as all that sends. */
int stg_pg_rows_flush(stg_pg *pg);

/* Nobody hears of them. */
void stg_pg_rows_drop(stg_pg *pg);

#endif
