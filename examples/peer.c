/* peer.c - threads that share what their retries may cost.
 *
 * Four threads call one service. While it fails, each operation would make five
 * attempts: five times the load on what is down already. The peer holds the
 * budget and the breaker that all of them share. The budget bounds the retries,
 * and the breaker, open, lets nothing through but a probe now and then. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <stagger/stagger.h>

enum { THREADS = 4, OPERATIONS = 250 };

typedef struct service {
    stg_policy policy;
    stg_peer peer; /* one for each remote, for as long as the program runs */
    atomic_uint requests, successes;
} service;

static stg_outcome request(void *ctx)
{
    service *s = ctx;

    atomic_fetch_add(&s->requests, 1);
    return stg_answered(503); // it is down
}

static void *work(void *ctx)
{
    service *s = ctx;

    for (int i = 0; i < OPERATIONS; i++)
        if (stg_call(&s->policy, &(stg_with){.peer = &s->peer}, request, s,
                     NULL))
            atomic_fetch_add(&s->successes, 1);
    return NULL;
}

static unsigned count_requests(const char *text)
{
    service s = {.requests = 0};
    pthread_t threads[THREADS];

    if (stg_policy_parse(&s.policy, text, NULL) != STG_OK ||
        stg_peer_init(&s.peer, &s.policy) != STG_OK)
        return 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &s);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%5u requests   %s\n", s.requests, text);
    return s.requests;
}

int main(void)
{
    unsigned all, paid, held;

    printf("%d operations on a service that is down:\n", THREADS * OPERATIONS);
    all = count_requests("attempts=5 base=10us");
    paid = count_requests("attempts=5 base=10us budget=tokens:100:10/s");
    held = count_requests(
        "attempts=5 base=10us budget=tokens:100:10/s "
        "breaker=20:30s");
    return all == 5000 && paid < 1200 && held < 200 ? 0 : 1;
}
