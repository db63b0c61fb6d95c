#include "sim/contention_report.h"

#include <string.h>

#include "tests/harness.h"
#include "tests/sim/memory.h"

enum { POLICIES = 2, SIZES = 2, CASES = POLICIES * SIZES };

static test_memory told;
static stg_memory memory;
static stg_contention_totals books[CASES];
static stg_contention_case cases[CASES];

/* "crowd" calls at three moments and never between, "even" each 10 ms; at 20
 * clients they make 300 and 100 calls, and are done after 2 s and 1 s. */
static void fill(stg_contention_totals *b, bool is_crowd, uint32_t clients)
{
    stg_contention_totals_init(b, 10 * STG_MS, 1000, &memory);
    for (uint32_t i = 0; i < 10 * clients; i++) {
        stg_ns at = (is_crowd ? i % 3 * 300 : i % 100 * 10) * STG_MS;

        CHECK(stg_sim_series_add(&b->calls, at));
        CHECK(stg_sim_tally_add(&b->waits[0],
                                is_crowd ? 5 * STG_MS : i * STG_MS));
    }
    for (uint32_t i = 1; i <= clients; i++) {
        CHECK(stg_contention_totals_succeed(b, (is_crowd ? 2 : 1) * i * STG_S));
        CHECK(stg_sim_tally_add(&b->attempts, 5));
    }
    stg_contention_totals_finish(b, true);
}

static stg_contention_found make(void)
{
    memory = test_memory_of(&told);
    for (uint32_t i = 0; i < CASES; i++) {
        bool is_crowd = i % 2 == 0;
        uint32_t clients = i < POLICIES ? 10 : 20;
        double more = is_crowd ? 1 : 0;

        fill(&books[i], is_crowd, clients);
        cases[i] = (stg_contention_case){
            .policy = is_crowd ? "crowd" : "even",
            .colour = i % 2,
            .clients = clients,
            .reps = 100,
            .successes = {clients, 0},
            .calls = {5.0 * clients * (1 + 2 * more), 2},
            .completion_ms = {1000 * (1 + more), 5},
            .totals = &books[i],
        };
    }
    return (stg_contention_found){.cases = cases,
                                  .count = CASES,
                                  .policies = POLICIES,
                                  .note = "Made up."};
}

static void free_all(stg_chart_set *a)
{
    stg_chart_set_free(a);
    for (int i = 0; i < CASES; i++)
        stg_contention_totals_close(&books[i]);
    CHECK_INT(told.held, 0);
}

TEST(contention_charts, say_what_was_found)
{
    stg_contention_found f = make();
    stg_chart_set a = stg_chart_set_on(&memory);

    CHECK(stg_contention_chart_calls(&a, &f));
    CHECK(stg_contention_chart_completion(&a, &f));
    CHECK(stg_contention_chart_work(&a, &f));
    CHECK(stg_contention_chart_time(&a, &f));
    CHECK(stg_contention_chart_done(&a, &f));
    CHECK(stg_contention_chart_waits(&a, &f));
    CHECK_INT(a.count, 6);
    CHECK_STR(a.charts[0]->title,
              "20 clients make 100 calls with \"even\", "
              "and 3 times as many with \"crowd\"");
    CHECK_STR(a.charts[1]->title,
              "20 clients are done after 1 s with "
              "\"even\", and after 2 s with \"crowd\"");
    CHECK_STR(a.charts[2]->title,
              "With \"even\" the clients are done first, "
              "and with the fewest calls");
    CHECK_STR(a.charts[3]->title,
              "With \"crowd\", all of the calls fall into a tenth of the time; "
              "with \"even\", 21\u00a0%"); // of the same 2 s
    CHECK(strstr(a.charts[4]->title, "are done after about ") != NULL);
    CHECK(strstr(a.charts[5]->title, "with \"crowd\" over 0 ms") != NULL);
    for (size_t i = 0; i < a.count; i++)
        CHECK(strstr(a.charts[i]->note, "Made up.") != NULL);
    free_all(&a);
}

/* To be done first by giving up is no merit. */
TEST(contention_charts, say_who_gives_up)
{
    stg_contention_found f = make();
    stg_chart_set a = stg_chart_set_on(&memory);

    for (int i = 0; i < 20; i++)
        CHECK(stg_sim_tally_add(&books[3].attempts, 5));
    cases[3].successes = (stg_estimate){10, 0.5};
    CHECK(stg_contention_chart_work(&a, &f));
    CHECK_STR(a.charts[0]->title,
              "Most clients succeed with \"crowd\", for 15 calls each; the "
              "fewest with \"even\" (50\u00a0% give up), for 10 calls each");
    CHECK(stg_contention_chart_calls(&a, &f));
    CHECK_STR(a.charts[1]->title,
              "20 clients make 10 calls for each success with \"even\" "
              "(50\u00a0% give up), and 1.5 times as many with \"crowd\"");
    CHECK(stg_contention_chart_completion(&a, &f));
    CHECK_STR(a.charts[2]->title,
              "20 clients have stopped after 1 s with \"even\" (50\u00a0% give "
              "up), and after 2 s with \"crowd\"");
    // By chance as many: then who is done first is a finding.
    cases[3].successes = (stg_estimate){19, 0.6};
    CHECK(stg_contention_chart_work(&a, &f));
    CHECK(strstr(a.charts[3]->title, "the clients are done first") != NULL);
    free_all(&a);
}

/* Who was lucky once is no better. */
TEST(contention_charts, say_nothing_of_one_repetition)
{
    stg_contention_found f = make();
    stg_chart_set a = stg_chart_set_on(&memory);

    cases[3].reps = 1;
    CHECK(stg_contention_chart_calls(&a, &f));
    CHECK(stg_contention_chart_completion(&a, &f));
    CHECK(stg_contention_chart_work(&a, &f));
    CHECK(stg_contention_chart_time(&a, &f));
    CHECK(stg_contention_chart_done(&a, &f));
    CHECK(stg_contention_chart_waits(&a, &f));
    for (size_t i = 0; i < a.count; i++)
        CHECK_STR(a.charts[i]->title,
                  "One repetition of 20 clients: no conclusion");
    free_all(&a);
}

/* Ten clients each, done 1 s and 2 s apart: their medians are 5 s and 10 s. */
TEST(contention_charts, call_nothing_different_that_chance_may_have_made)
{
    stg_contention_found f = make();
    stg_chart_set a = stg_chart_set_on(&memory);

    f.count = POLICIES;
    CHECK(stg_contention_chart_done(&a, &f));
    CHECK_STR(a.charts[0]->title,
              "Half of those who succeed are done after about 5.01 s with each "
              "policy");
    free_all(&a);
}

/* Of one number of clients there is nothing to see against it. */
TEST(contention_charts, show_what_there_is)
{
    stg_contention_found f = make();
    stg_chart_set a = stg_chart_set_on(&memory);

    f.count = POLICIES;
    CHECK(stg_contention_chart_calls(&a, &f));
    CHECK(stg_contention_chart_completion(&a, &f));
    CHECK(stg_contention_chart_traces(&a, NULL, 0, NULL));
    CHECK_INT(a.count, 0);
    CHECK(stg_contention_chart_work(&a, &f));
    CHECK_INT(a.count, 1);
    free_all(&a);
}

TEST(contention_charts, have_standard_errors)
{
    stg_contention_found f = make();
    stg_chart_set a = stg_chart_set_on(&memory);
    const stg_chart_point *p;

    CHECK(stg_contention_chart_calls(&a, &f));
    p = &a.charts[0]->series[0].points[1];
    CHECK(p->x == 20 && p->y == 300 && p->y_se == 2);
    // Half of a second repetition never succeed.
    for (uint32_t i = 1; i <= 10; i++)
        CHECK(stg_contention_totals_succeed(&books[2], 2 * i * STG_S));
    stg_contention_totals_finish(&books[2], true);
    CHECK(stg_contention_chart_done(&a, &f));
    CHECK_INT(a.charts[1]->series[0].count, 21);
    p = &a.charts[1]->series[0].points[10];
    CHECK(p->y == 50 && p->y_se == 0);
    p = &a.charts[1]->series[0].points[20];
    CHECK(p->y == 75 && p->y_se == 25);
    CHECK(stg_contention_chart_waits(&a, &f));
    p = &a.charts[2]->series[1].points[0]; // of 200, 0 to 199 ms
    CHECK(p->y > 96 && p->y < 106 && p->y_se > 4 && p->y_se < 10);
    free_all(&a);
}

/* Where chance may be the reason, nobody is called the best alone. */
TEST(contention_charts, name_all_that_are_as_good)
{
    stg_contention_found f = make();
    stg_chart_set a = stg_chart_set_on(&memory);

    cases[2].calls = (stg_estimate){104, 2};
    CHECK(stg_contention_chart_work(&a, &f));
    CHECK_STR(a.charts[0]->title,
              "With \"even\" the clients are done first, and with the fewest "
              "calls");
    cases[2].completion_ms = (stg_estimate){900, 5};
    CHECK(stg_contention_chart_work(&a, &f));
    CHECK_STR(a.charts[1]->title,
              "With \"crowd\" the clients are done first, and with the fewest "
              "calls");
    cases[2].calls = (stg_estimate){106, 2};
    CHECK(stg_contention_chart_work(&a, &f));
    CHECK_STR(a.charts[2]->title,
              "The fewest calls are made with \"even\"; with \"crowd\" the "
              "clients are done first, for 1.1 times as many calls");
    cases[2].completion_ms = (stg_estimate){1010, 5};
    CHECK(stg_contention_chart_completion(&a, &f));
    CHECK_STR(a.charts[3]->title,
              "20 clients are done after 1 s with \"crowd\" and \"even\"");
    free_all(&a);
}

TEST(contention_charts, end_without_memory)
{
    for (size_t left = 0; left < 40; left++) {
        stg_contention_found f = make();
        stg_chart_set a = stg_chart_set_on(&memory);
        bool is_done;

        told.left = left;
        is_done = stg_contention_chart_time(&a, &f) &&
                  stg_contention_chart_done(&a, &f) &&
                  stg_contention_chart_waits(&a, &f);
        CHECK(is_done == !a.is_short);
        CHECK(left > 0 || !is_done);
        CHECK(left < 39 || is_done);
        free_all(&a);
    }
}
