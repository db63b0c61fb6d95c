/* pq_wait.h - statements and sockets of libpq within the time of an attempt.
 * Private. */
#ifndef STAGGER_ADAPTERS_PQ_WAIT_H
#define STAGGER_ADAPTERS_PQ_WAIT_H

#include <stagger/operation.h>
#include <stagger/pq.h>

typedef struct stg_pq_limit {
    const stg_env *env;
    const stg_cancel *cancel; /* may be NULL */
    stg_ns at;                /* on the clock of env; STG_NEVER: none */
} stg_pq_limit;

stg_ns stg_pq_now(const stg_env *env);

/* Of the attempt that this thread makes. */
stg_pq_limit stg_pq_limit_of_attempt(void);

stg_ns stg_pq_time_left(const stg_pq_limit *l);
bool stg_pq_is_cancelled(const stg_pq_limit *l);
bool stg_pq_is_over(const stg_pq_limit *l);

/* Until the socket is ready, or of no use. False: the time is over. */
bool stg_pq_wait_for(const PGconn *conn, short events, const stg_pq_limit *l);

/* The same, and a little more: the server is to end the statement itself, so that
 * the session can go on. */
stg_pq_limit stg_pq_limit_of_wait(void);

/* Ends the session: the server rolls back what is open. */
void stg_pq_cut(PGconn *conn);

/* Sends what is to be sent, and waits for the next result. False: the time was
 * over first. */
bool stg_pq_take(PGconn *conn, const stg_pq_limit *l, PGresult **res);

/* Whether libpq waits for its caller: in a COPY, or a pipeline. */
bool stg_pq_is_pause(const PGresult *res);

/* The last result of a statement, or NULL. Not blocking, or a long command would
 * wait for a server that reads nothing. A connection that breaks stays so until it
 * is reset. */
PGresult *stg_pq_ask(PGconn *conn, const char *sql, const stg_pq_limit *l);

#endif
