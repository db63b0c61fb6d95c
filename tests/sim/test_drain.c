#include "tests/harness.h"

#include "sim/drain.h"
#include "tests/sim/memory.h"

static stg_drain_question question(const char *resource, uint32_t clients)
{
    stg_drain_question q = stg_drain_question_default();
    stg_error err;

    CHECK(stg_resource_parse(&q.resource, resource, &err) == STG_OK);
    q.clients = clients;
    q.network =
        (stg_distribution){.kind = STG_DISTRIBUTION_FIXED, .a = 10 * STG_MS};
    return q;
}

static double least_s(const char *resource, uint32_t clients)
{
    stg_drain_question q = question(resource, clients);

    return stg_drain_least(&q, clients) / 1e9;
}

TEST(drain, knows_what_no_policy_can_be_faster_than)
{
    CHECK(least_s("workers=50 service=100ms", 10000) == 20);
    CHECK(least_s("workers=50 service=100ms", 5) == 0.1);
    CHECK(least_s("lock hold=20ms", 100) == 2);
    CHECK(least_s("rate=100/1s", 1000) == 9);
    CHECK(least_s("rate=100/1s", 100) == 0);
    CHECK(least_s("round=40ms", 10) == 0.4);
    CHECK(least_s("optimistic", 100) == 2);
}

/* One run of a policy that nobody would choose, and one that is good. */
TEST(drain, no_run_is_faster_than_that)
{
    static const char *const resources[] = {"workers=5 service=20ms",
                                            "workers=5 service=20ms queue=10",
                                            "lock hold=10ms",
                                            "rate=20/1s",
                                            "round=20ms",
                                            "optimistic"};

    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
        for (size_t k = 0; k < 60; k += 7) {
            stg_drain_question q = question(resources[i], 60);
            stg_contention_options o = stg_drain_options(&q, 0);
            stg_memory memory = test_memory_of(&(test_memory){0});
            stg_drain_candidate c;
            stg_contention_run run;
            stg_contention *sim;

            CHECK(stg_drain_make(&q, k, &c));
            o.policy = &c.policy;
            o.start_spread = c.start;
            CHECK(stg_contention_new(&sim, &memory, &o, NULL) == STG_OK);
            CHECK(stg_contention_repeat(sim, 0, &run, NULL));
            stg_contention_free(sim);
            if (run.successes == 60)
                CHECK((double)run.completion >= stg_drain_least(&q, 60));
        }
}

/* Workers and clients are divided by one number: the least time stays. */
TEST(drain, makes_a_smaller_model_of_the_same_time)
{
    stg_drain_question q =
        question("workers=500 service=1s queue=5000", 200000);
    stg_contention_options o = stg_drain_options(&q, 0);

    CHECK_INT(o.resource.count, 25);
    CHECK_INT(o.clients, 10000);
    CHECK_INT(o.resource.queue, 250);
    CHECK(stg_drain_scale(&q) == 20);
    CHECK_INT(stg_drain_options(&q, 1).clients, 20000);
    q = question("lock", 20000);
    CHECK(stg_drain_scale(&q) == 1);
    CHECK_INT(stg_drain_options(&q, 2).clients, 10000);
}

TEST(drain, refuses_what_cannot_be_simulated)
{
    stg_drain_question q = question("lock", 100001);
    stg_error err;

    CHECK(stg_drain_question_check(&q, &err) == STG_INVALID);
    q.clients = 100000;
    CHECK(stg_drain_question_check(&q, &err) == STG_OK);
    q.patience = STG_MS;
    CHECK(stg_drain_question_check(&q, &err) == STG_INVALID);
}

static void check_candidate(const stg_drain_question *q,
                            const stg_drain_candidate *c)
{
    char text[STG_POLICY_TEXT_MAX];
    stg_policy again;
    stg_error err;

    CHECK(stg_policy_check(&c->policy, &err) == STG_OK);
    CHECK(stg_policy_print(&c->policy, text) == STG_OK);
    CHECK(stg_policy_parse(&again, text, &err) == STG_OK);
    CHECK(stg_policy_equal(&again, &c->policy));
    CHECK(stg_policy_retries(&c->policy, &q->resource.fault, NULL) ==
          STG_ALWAYS);
    CHECK(c->start <= q->start_max);
}

TEST(drain, makes_candidates_that_are_texts_and_retry_its_refusals)
{
    static const char *const resources[] = {
        "workers=50 service=100ms", "lock hold=1us", "rate=1/1d fault=404",
        "workers=1 service=1h", "optimistic"};

    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        stg_drain_question q = question(resources[i], i % 2 == 0 ? 1 : 10000);
        stg_drain_candidate c, near;

        q.start_max = 10 * STG_S;
        for (size_t k = 0; stg_drain_make(&q, k, &c); k++) {
            check_candidate(&q, &c);
            for (size_t n = 0; k >= STG_DRAIN_PLAIN && n < STG_DRAIN_NEIGHBOURS;
                 n++)
                if (stg_drain_near(&q, &c, n, &near))
                    check_candidate(&q, &near);
        }
    }
}

TEST(drain, puts_success_before_time_and_time_before_calls)
{
    stg_drain_verdict a = {.time = 2, .calls = 9}, b = a;

    CHECK(stg_drain_compare(&a, &b) == 0);
    b.missed = 0.001;
    b.time = b.calls = 1;
    CHECK(stg_drain_compare(&a, &b) < 0);
    b = (stg_drain_verdict){.time = 2.2, .calls = 1};
    CHECK(stg_drain_compare(&a, &b) < 0);
    b = (stg_drain_verdict){.time = 2.001, .calls = 8.9}; // the same time
    CHECK(stg_drain_compare(&a, &b) > 0);
}

/* Runs of one number are compared: what is common to both cancels. */
TEST(drain, compares_run_by_run)
{
    enum { REPS = 3, RUNS = REPS * STG_DRAIN_SCENARIOS };
    stg_drain_question q = question("lock hold=10ms", 100);
    stg_contention_run more[RUNS], less[RUNS];
    stg_drain_difference d;

    for (size_t i = 0; i < RUNS; i++) {
        uint32_t clients = stg_drain_clients(&q, i / REPS);

        less[i] = (stg_contention_run){.calls = clients * (2 + i % REPS),
                                       .successes = clients,
                                       .completion = STG_S,
                                       .end = STG_END_EMPTY};
        more[i] = less[i];
        more[i].calls += clients;
    }
    d = stg_drain_compare_runs(&q, more, less, REPS);
    CHECK(d.calls.mean > 0.999999 && d.calls.mean < 1.000001);
    CHECK(d.calls.se < 1e-9);
    CHECK(d.time.mean == 0 && d.missed.mean == 0);
    more[0].successes = 0; // of 100
    CHECK(stg_drain_judge(&q, more, STG_DRAIN_SCENARIOS, REPS).unfinished == 1);
    CHECK(stg_drain_compare_runs(&q, more, less, REPS).missed.mean > 0.06);
}
