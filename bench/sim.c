/* sim.c - how fast the simulator is: calls of contention a second on one core,
 * through stg_retry_step() as programs run it; bytes a client; and repetitions
 * on all cores. `make bench` runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include <stagger/text.h>

#include "sim/contention.h"
#include "sim/spread.h"

/* -- memory that is counted */

enum { HEAD = 64, HUGE = 1 << 21 };

static size_t held, most_held;

static void *allocate(void *ctx, size_t size)
{
    size_t whole = (HEAD + size + HUGE - 1) / HUGE * HUGE;
    size_t *head;

    (void)ctx;
    if (size < HUGE) {
        head = malloc(HEAD + size);
    } else {
        head = aligned_alloc(HUGE, whole);
        if (head != NULL)
            (void)madvise(head, whole, MADV_HUGEPAGE);
    }
    if (head == NULL)
        return NULL;
    *head = size;
    held += size;
    if (held > most_held)
        most_held = held;
    return (char *)head + HEAD;
}

static void release(void *ctx, void *bytes)
{
    size_t *head = (size_t *)(void *)((char *)bytes - HEAD);

    (void)ctx;
    held -= *head;
    free(head);
}

/* That of any thread. */
static void *take(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void give_back(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

/* -- one core */

static const char text[] =
    "exponential base=10ms cap=2s jitter=full "
    "attempts=unlimited deadline=none";

static double seconds(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct speed {
    double calls_a_second, bytes_a_client;
} speed;

/* About so many calls, over repetitions as short as there are. */
static speed measure(uint32_t clients, uint64_t calls, stg_sim_queue_kind queue)
{
    stg_memory memory = {allocate, release, NULL};
    stg_contention_options o = stg_contention_options_default();
    stg_contention_run run;
    stg_policy policy;
    stg_contention *c;
    uint64_t done = 0;
    double begun;

    if (stg_policy_parse(&policy, text, NULL) != STG_OK)
        return (speed){0};
    o.clients = clients;
    o.policy = &policy;
    o.calls_max = calls;
    o.queue = queue;
    most_held = 0;
    if (stg_contention_new(&c, &memory, &o, NULL) != STG_OK)
        return (speed){0};
    begun = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (uint64_t i = 0; done < calls; i++) {
        if (!stg_contention_repeat(c, i, &run, NULL))
            return (speed){0};
        done += run.calls;
    }
    begun = seconds(CLOCK_PROCESS_CPUTIME_ID) - begun;
    stg_contention_free(c);
    return (speed){(double)done / begun, (double)most_held / clients};
}

/* The best and the median of some rounds: what else the machine does only makes
 * it slower. */
static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void show(const char *name, uint32_t clients, uint64_t calls,
                 stg_sim_queue_kind queue, double goal)
{
    enum { ROUNDS = 7 };
    double rounds[ROUNDS];
    speed s = {0};

    for (int i = 0; i < ROUNDS; i++) {
        s = measure(clients, calls, queue);
        rounds[i] = s.calls_a_second / 1e6;
    }
    qsort(rounds, ROUNDS, sizeof *rounds, compare);
    printf("%9u  %-7s %8.1f %8.1f %8.1f  %6.1f%s\n", clients, name,
           rounds[ROUNDS / 2], rounds[ROUNDS - 1], goal, s.bytes_a_client,
           goal > 0 && rounds[ROUNDS / 2] < goal ? "  below the goal" : "");
}

/* -- all cores */

enum { REPETITIONS = 64 };

static void repeat(void *ctx, size_t number, unsigned worker)
{
    const stg_contention_options *o = ctx;
    stg_memory memory = {take, give_back, NULL};
    stg_contention_run run;
    stg_contention *c;

    (void)worker;
    if (stg_contention_new(&c, &memory, o, NULL) != STG_OK)
        return;
    (void)stg_contention_repeat(c, number, &run, NULL);
    stg_contention_free(c);
}

static void show_cores(void)
{
    stg_contention_options o = stg_contention_options_default();
    unsigned cores = stg_spread_cores();
    stg_policy policy;
    double one, all;

    if (stg_policy_parse(&policy, text, NULL) != STG_OK)
        return;
    o.clients = 1000;
    o.policy = &policy;
    one = seconds(CLOCK_MONOTONIC);
    stg_spread_run(REPETITIONS, 1, repeat, &o);
    all = seconds(CLOCK_MONOTONIC);
    one = all - one;
    stg_spread_run(REPETITIONS, cores, repeat, &o);
    all = seconds(CLOCK_MONOTONIC) - all;
    printf(
        "\n%d repetitions: %.2f s on one core, %.2f s on %u: %.2f times as "
        "fast\n",
        REPETITIONS, one, all, cores, one / all);
}

int main(void)
{
    printf(
        "contention, optimistic, %s\n\n"
        "  clients  queue   M calls/s     best     goal  bytes a client\n",
        text);
    show("", 100, 2000000, STG_SIM_QUEUE_AUTO, 8);
    show("", 1000, 2000000, STG_SIM_QUEUE_AUTO, 8);
    show("", 10000, 4000000, STG_SIM_QUEUE_AUTO, 8);
    show("", 1000000, 8000000, STG_SIM_QUEUE_AUTO, 4);
    show("heap", 10000, 4000000, STG_SIM_QUEUE_HEAP, 0);
    show("heap", 1000000, 3000000, STG_SIM_QUEUE_HEAP, 0);
    show_cores();
    return 0;
}
