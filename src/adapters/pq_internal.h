/* pq_internal.h - what the parts of the adapter of libpq share. Private.
 *
 * pq.c asks and tells, pq_words.c knows what libpq's words mean (without a
 * connection), pq_wait.c waits no longer than the attempt may take. */
#ifndef STAGGER_ADAPTERS_PQ_INTERNAL_H
#define STAGGER_ADAPTERS_PQ_INTERNAL_H

#include <string.h>

#include <stagger/operation.h>
#include <stagger/pq.h>

/* -- SQLSTATEs in libpq's words
 *
 * libpq keeps the code of a connection that was refused to itself, but has it in
 * its words where it is asked to be verbose (PQERRORS_VERBOSE), which a
 * connection can be asked that is not made yet. */

/* The next code in such words, "FATAL:  28P01: password ..."; NULL: there is
 * none. It is not terminated. */
static inline const char *stg_pq_next_state(const char *words)
{
    static const char signs[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    while ((words = strstr(words, ":  ")) != NULL) {
        words += 3;
        if (strspn(words, signs) == 5 && words[5] == ':')
            return words;
    }
    return NULL;
}

/* -- what libpq says as outcomes, and what is said to the server */

/* A result, and what is known around it: facts of their own, each may hold with
 * any other. */
typedef struct stg_pq_facts {
    ExecStatusType status;
    const char *sqlstate; /* NULL: there is none */
    bool is_fatal;        /* severity above ERROR: the session is over */
    bool is_broken;       /* the connection */
    bool is_standby;      /* the server */
    bool is_late;         /* the attempt's time is over */
    bool is_cancelled;
} stg_pq_facts;

/* The outcome of any statement. */
stg_outcome stg_pq_sort(const stg_pq_facts *f);

/* The outcome of COMMIT: success; or its fault, marked as unsent, where it is
 * surely rolled back; else outcome-unknown. */
stg_outcome stg_pq_sort_commit(const stg_pq_facts *f);

/* Why no connection was made: PQerrorMessage(), verbose. Each host has its say:
 * one that may yet let us in is enough. */
stg_outcome stg_pq_sort_connect(const char *words);

/* A setting in time as SHOW prints it ("0", "250ms", "90s", "2min"), in ms.
 * 0: none, or not understood. */
uint64_t stg_pq_read_ms(const char *text);

/* How many addresses a list of hosts has. NULL: one. */
size_t stg_pq_count_hosts(const char *hosts);

#define STG_PQ_BEGIN_MAX 96

/* BEGIN with its modes. The isolation is one. Returns text. */
const char *stg_pq_begin_text(const stg_pq_options *options,
                              char text[STG_PQ_BEGIN_MAX]);

/* -- statements and sockets within the time of an attempt */

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
 * wait for a server that reads nothing. A connection that breaks stays so until
 * it is reset. */
PGresult *stg_pq_ask(PGconn *conn, const char *sql, const stg_pq_limit *l);

#endif
