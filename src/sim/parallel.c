#include "sim/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

/* Jobs by number, on several threads. A thread takes the next number when it is
 * free, so which thread has which job, and in which order they end, is by
 * chance: a job must write to places of its own number or its worker's alone,
 * and the caller adds up afterwards, in order. */

enum { THREADS_MAX = 1024 };

typedef struct parallel_for {
    size_t count;
    atomic_size_t next;
    void (*job)(void *ctx, size_t number, unsigned worker);
    void *ctx;
} parallel_for;

typedef struct worker {
    parallel_for *all;
    unsigned number;
    pthread_t thread;
} worker;

unsigned stg_parallel_cores(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (cores < 1)
        return 1;
    return cores < THREADS_MAX ? (unsigned)cores : THREADS_MAX;
}

static void *work(void *of)
{
    const worker *w = of;
    parallel_for *s = w->all;
    size_t number;

    while ((number = atomic_fetch_add(&s->next, 1)) < s->count)
        s->job(s->ctx, number, w->number);
    return NULL;
}

void stg_parallel_run(size_t count, unsigned threads,
                      void (*job)(void *ctx, size_t number, unsigned worker),
                      void *ctx)
{
    worker workers[THREADS_MAX];
    parallel_for s = {.count = count, .job = job, .ctx = ctx};
    unsigned started = 1; // this thread is one of them

    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    workers[0] = (worker){.all = &s};
    for (; started < threads && started < count; started++) {
        worker *w = &workers[started];

        *w = (worker){.all = &s, .number = started};
        if (pthread_create(&w->thread, NULL, work, w) != 0)
            break;
    }
    (void)work(&workers[0]);
    for (unsigned i = 1; i < started; i++)
        (void)pthread_join(workers[i].thread, NULL);
}
