/* stmt.h - a statement of PostgreSQL: see store/sql.h.
 *
 * It is prepared on a connection when it is first sent there, when the letters of
 * its parameters are known; one that is kept by a name of its own. */
#ifndef STAGGER_STORE_POSTGRES_STMT_H
#define STAGGER_STORE_POSTGRES_STMT_H

#include "store/postgres/link.h"

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
