/* pq_proxy.h - stands between libpq and a server, and loses what it is told to
 * lose around a COMMIT. */
#ifndef TESTS_ADAPTERS_PQ_PROXY_H
#define TESTS_ADAPTERS_PQ_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef enum pq_loss {
    PQ_LOSE_NOTHING,
    PQ_LOSE_COMMIT, /* closes, and the server never sees the COMMIT */
    PQ_LOSE_ANSWER, /* closes when the server has answered it */
    PQ_CUT_ANSWER,  /* closes behind the first message of the answer */
    PQ_HOLD_ANSWER, /* says nothing more, and closes nothing */
} pq_loss;

typedef struct pq_proxy {
    char folder[64];     /* the host to connect to */
    _Atomic int loss;    /* a pq_loss */
    _Atomic int commits; /* to lose; then it loses nothing */
    char server[256];
    int listener;
    pthread_t thread;
} pq_proxy;

/* Before the server's socket in this folder. */
void pq_proxy_begin(pq_proxy *p, const char *folder);
void pq_proxy_end(pq_proxy *p);

#endif
