/* threads.c - a pool of threads through an outage of the service that all call.
 *
 * They share a policy, which nobody writes, a peer (budget and breaker, without a
 * lock), and a flag that ends them all. The service fails at first. The breaker
 * opens, lets one thread in a while through to probe, and closes for all when a
 * probe succeeds; no thread gives up, for retry=circuit-open waits for that.
 * Then the flag is set, and what waits ends at once.
 *
 * peer.c shows what the budget and the breaker save. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <stagger/stagger.h>

enum { THREADS = 8, OPERATIONS = 100, OUTAGE = 30, WHYS = STG_WHY_COUNT };

typedef struct pool {
    stg_policy policy;
    stg_peer peer; /* one for each remote, for as long as the program runs */
    stg_cancel stop;
    atomic_uint requests, refused;
    atomic_uint ends[WHYS]; /* by reason */
} pool;

/* One for each thread, on its stack. */
typedef struct worker {
    pool *pool;
    pthread_t thread;
    unsigned attempts;
} worker;

static stg_outcome request(void *ctx)
{
    pool *p = ctx;

    return stg_answered(atomic_fetch_add(&p->requests, 1) < OUTAGE ? 503 : 200);
}

/* A hook is called by the thread whose operation it is. */
static void on_event(void *ctx, const stg_event *e)
{
    worker *w = ctx;

    w->attempts += e->kind == STG_EVENT_ATTEMPT;
    if (e->outcome != NULL && e->outcome->fault == STG_FAULT_CIRCUIT_OPEN)
        atomic_fetch_add(&w->pool->refused, 1);
}

static void *work(void *ctx)
{
    worker *w = ctx;
    pool *p = w->pool;
    stg_hook hook = {.on = on_event, .ctx = w};
    stg_with with = {.peer = &p->peer, .cancel = &p->stop, .hook = &hook};
    stg_report report;

    for (int i = 0; i < OPERATIONS; i++) {
        stg_call(&p->policy, &with, request, p, &report);
        atomic_fetch_add(&p->ends[report.why], 1);
    }
    return NULL;
}

/* Runs all threads to their end; returns the attempts that they made. */
static unsigned run(pool *p)
{
    worker workers[THREADS];
    unsigned attempts = 0;

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.pool = p};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        attempts += workers[i].attempts;
    }
    return attempts;
}

int main(void)
{
    static pool p;
    stg_error err;
    unsigned attempts;
    bool is_closed;

    if (stg_policy_parse(&p.policy,
                         "fixed base=1ms attempts=unlimited deadline=10s "
                         "retry=default,circuit-open budget=tokens:500:100/s "
                         "breaker=20:10ms",
                         &err) != STG_OK ||
        stg_peer_init(&p.peer, &p.policy) != STG_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    attempts = run(&p);
    is_closed = stg_breaker_look(&p.peer.breaker, stg_env_system()->now(NULL),
                                 NULL) == STG_BREAKER_CLOSED;
    printf(
        "%u of %d done: %u requests, %u refused by the breaker, which is "
        "%s\n",
        p.ends[STG_WHY_DONE], THREADS * OPERATIONS, p.requests, p.refused,
        is_closed ? "closed" : "open");

    stg_cancel_set(&p.stop); // from any thread, or from a signal handler
    run(&p);
    printf("%u cancelled\n", p.ends[STG_WHY_CANCELLED]);
    return p.ends[STG_WHY_DONE] == THREADS * OPERATIONS && is_closed &&
                   p.requests == THREADS * OPERATIONS + OUTAGE &&
                   attempts >= p.requests &&
                   p.ends[STG_WHY_CANCELLED] == THREADS * OPERATIONS
               ? 0
               : 1;
}
