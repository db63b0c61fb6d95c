#include "sim/parallel.h"

#include <stdatomic.h>
#include <stdbool.h>

#include <stagger/text.h>

#include "sim/contention.h"
#include "tests/harness.h"
#include "tests/sim/memory.h"

enum { JOBS = 1000, THREADS = 5 };

typedef struct work {
    atomic_int times[JOBS];
    atomic_int busy[THREADS]; /* jobs of a worker at once */
} work;

static void do_job(void *ctx, size_t number, unsigned worker)
{
    work *w = ctx;

    CHECK(number < JOBS && worker < THREADS);
    CHECK_INT(atomic_fetch_add(&w->busy[worker], 1), 0);
    atomic_fetch_add(&w->times[number], 1);
    atomic_fetch_sub(&w->busy[worker], 1);
}

TEST(parallel, does_each_job_once_and_a_worker_one_at_a_time)
{
    for (unsigned threads = 1; threads <= THREADS; threads++) {
        static work w;

        memset(&w, 0, sizeof w);
        stg_parallel_run(JOBS, threads, do_job, &w);
        for (size_t i = 0; i < JOBS; i++)
            CHECK_INT(atomic_load(&w.times[i]), 1);
    }
}

TEST(parallel, has_nothing_to_do_where_there_are_no_jobs)
{
    stg_parallel_run(0, 4, do_job, NULL);
    CHECK(stg_parallel_cores() >= 1);
}

/* -- repetitions of contention, whoever does them */

enum { REPETITIONS = 24 };

typedef struct runs {
    stg_contention_options options;
    stg_contention_run at[REPETITIONS];
} runs;

static void repeat(void *ctx, size_t number, unsigned worker)
{
    runs *r = ctx;
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    stg_contention *c;

    (void)worker;
    CHECK_INT(stg_contention_new(&c, &memory, &r->options, NULL), STG_OK);
    CHECK(stg_contention_repeat(c, number, &r->at[number], NULL));
    stg_contention_free(c);
}

TEST(parallel, of_contention_is_the_same_with_any_number_of_threads)
{
    static runs one, many;
    stg_policy policy;

    CHECK_INT(stg_policy_parse(&policy, "client attempts=9", NULL), STG_OK);
    one.options = stg_contention_options_default();
    one.options.policy = &policy;
    many.options = one.options;
    stg_parallel_run(REPETITIONS, 1, repeat, &one);
    stg_parallel_run(REPETITIONS, 4, repeat, &many);
    for (size_t i = 0; i < REPETITIONS; i++) {
        CHECK_U64(many.at[i].calls, one.at[i].calls);
        CHECK_U64(many.at[i].completion, one.at[i].completion);
        CHECK_U64(many.at[i].peak, one.at[i].peak);
        CHECK(i == 0 || one.at[i].completion != one.at[i - 1].completion);
    }
}
