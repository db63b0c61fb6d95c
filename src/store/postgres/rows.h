/* rows.h - rows that are gathered, and go to the server as one command: with
 * an array for each parameter, and a table of them in its text.
 *
 * A command a row costs the server ten times as much: it is planned, begun and
 * ended for each. */
#ifndef STAGGER_STORE_POSTGRES_ROWS_H
#define STAGGER_STORE_POSTGRES_ROWS_H

#include "store/postgres/stmt.h"

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
