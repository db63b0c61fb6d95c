#include "bench/meter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 401, WARM_UP = 20 };
static const double round_ns = 100e3;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* ns for one of n. */
static double time_one(meter_work *work, size_t n)
{
    double began_at = now();

    if (work == NULL)
        return 0;
    work(n);
    return (now() - began_at) / (double)n;
}

/* How often it is done in a round. */
static size_t find_times(meter_work *work)
{
    size_t n = 16;

    while (time_one(work, n) * (double)n < round_ns)
        n *= 2;
    return n;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void meter_begin(const char *title)
{
    printf("\n%-46s %6s  %-15s %6s  %s\n", title, "ns", "half of rounds",
           "bare", "goal");
}

static const char *mark(bool is_met)
{
    return is_met ? "ok" : "missed";
}

void meter_compare(const char *name, unsigned goal, meter_work *bare,
                   meter_work *work)
{
    static double bares[ROUNDS], costs[ROUNDS];
    size_t n = find_times(work);
    double cost;

    for (int i = -WARM_UP; i < ROUNDS; i++) {
        double first = time_one(bare, n), second = time_one(work, n);

        if (i < 0)
            continue;
        bares[i] = first;
        costs[i] = second - first;
    }
    qsort(bares, ROUNDS, sizeof *bares, compare);
    qsort(costs, ROUNDS, sizeof *costs, compare);
    cost = costs[ROUNDS / 2];
    printf("%-46s %6.1f  %6.1f - %-6.1f %6.1f", name, cost, costs[ROUNDS / 4],
           costs[3 * ROUNDS / 4], bares[ROUNDS / 2]);
    if (goal > 0)
        printf("  %u %s", goal, mark(cost <= goal));
    printf("\n");
    fflush(stdout);
}

void meter_number(const char *name, unsigned long number, const char *unit,
                  unsigned long goal)
{
    printf("%-46s %6lu %-24s", name, number, unit);
    if (goal > 0)
        printf("  %lu %s", goal, mark(number <= goal));
    printf("\n");
}

/* -- two threads. They wait for each other by spinning: a sleep and a wake
 * would take longer than what is measured. */

static pthread_t other;
static meter_work *shared_work;
static size_t shared_times;
static atomic_uint asked, answered;

/* A round is number 1, 2, ...; without work it is the last. */
static void *work_along(void *arg)
{
    (void)arg;
    for (unsigned round = 1;; round++) {
        while (atomic_load(&asked) != round)
            ;
        if (shared_work == NULL)
            return NULL;
        shared_work(shared_times);
        atomic_store(&answered, round);
    }
}

void meter_pair_begin(void)
{
    atomic_store(&asked, 0);
    atomic_store(&answered, 0);
    if (pthread_create(&other, NULL, work_along, NULL) != 0)
        abort();
}

void meter_pair(meter_work *work, size_t n)
{
    shared_work = work;
    shared_times = n;
    atomic_fetch_add(&asked, 1);
    if (work == NULL)
        return;
    work(n);
    while (atomic_load(&answered) != atomic_load(&asked))
        ;
}

void meter_pair_end(void)
{
    meter_pair(NULL, 0);
    pthread_join(other, NULL);
}
