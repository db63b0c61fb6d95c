/* pq_words.h - what libpq says as outcomes, and what is said to the server.
 * Private, and without a connection: pq.c asks and tells. */
#ifndef STAGGER_ADAPTERS_PQ_WORDS_H
#define STAGGER_ADAPTERS_PQ_WORDS_H

#include <stagger/pq.h>

/* A result, and what is known around it. */
typedef struct stg_pq_facts {
    ExecStatusType status;
    const char *sqlstate; /* NULL: there is none */
    bool is_fatal;        /* its severity: the session is over */
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

#endif
