#include "sim/wasm.h"

#include <stdio.h>
#include <string.h>

#include <stagger/text.h>

#include "sim/contention.h"
#include "sim/overload.h"
#include "sim/statistics.h"
#include "tests/harness.h"
#include "tests/sim/memory.h"

static const char full[] =
    "exponential base=10ms cap=2s jitter=full attempts=unlimited deadline=none";

enum { REPETITIONS = 8 };

/* A page's handle, and what it took. */
typedef struct page {
    test_memory counts;
    stg_memory memory;
    stg_wasm *w;
} page;

static void open_page(page *p)
{
    p->memory = test_memory_of(&p->counts);
    p->w = stg_wasm_new(&p->memory);
    CHECK(p->w != NULL);
}

static void close_page(page *p)
{
    stg_wasm_free(p->w);
    CHECK_INT(p->counts.held, 0);
}

static void begin(page *p, uint32_t clients)
{
    CHECK_STR(stg_wasm_begin(p->w, clients, REPETITIONS, 1, "optimistic",
                             "normal:10ms:2ms"),
              "");
}

/* All repetitions of all policies, by turns. */
static void run(page *p, uint32_t policies)
{
    for (int i = 0; i < REPETITIONS; i++)
        for (uint32_t policy = 0; policy < policies; policy++)
            CHECK(stg_wasm_repeat(p->w, policy));
}

/* -- what texts mean */

TEST(wasm, says_what_a_policy_means)
{
    page p;

    open_page(&p);
    CHECK_STR(stg_wasm_policy(p.w, "fixed base=1s jitter=20% attempts=4"),
              "growth fixed\n"
              "jitter 20%\n"
              "factor 2000\n"
              "base 1000000000\n"
              "cap 30000000000\n"
              "attempts 4\n"
              "windows 1000000000 1000000000 1000000000 1000000000 1000000000 "
              "1000000000 1000000000 1000000000 1000000000 1000000000\n"
              "text fixed base=1s jitter=20% attempts=4 deadline=2m "
              "retry=default\n");
    CHECK(strstr(stg_wasm_policy(p.w, full), "windows 10000000 20000000 "));
    CHECK(strstr(stg_wasm_policy(p.w, full), "attempts 0\n"));
    close_page(&p);
}

TEST(wasm, says_what_is_wrong_with_a_policy_and_where)
{
    page p;
    stg_policy policy;
    stg_error err;
    const char *answer;

    open_page(&p);
    answer = stg_wasm_policy(p.w, "exponential bse=10ms");
    CHECK_INT(strncmp(answer, "error 13 policy:1:13: bse=10ms: ", 32), 0);
    CHECK_INT(stg_policy_parse(&policy, "exponential bse=10ms", &err),
              STG_INVALID);
    CHECK_STR(answer + strlen("error 13 "), err.text);
    close_page(&p);
}

TEST(wasm, reads_resources_and_laws)
{
    page p;

    open_page(&p);
    CHECK_STR(stg_wasm_resource(p.w, "workers=8 queue=9 service=5ms"),
              "text workers=8 service=5ms queue=9\n");
    CHECK_INT(strncmp(stg_wasm_resource(p.w, "worker"), "error resource:", 15),
              0);
    CHECK_STR(stg_wasm_distribution(p.w, "uniform:5ms:1s"),
              "text uniform:5ms:1s\n");
    CHECK_INT(strncmp(stg_wasm_distribution(p.w, "5"), "error ", 6), 0);
    close_page(&p);
}

TEST(wasm, says_what_a_policy_will_do)
{
    page p;
    const char *plan;

    open_page(&p);
    plan = stg_wasm_plan(
        p.w, "exponential base=1s cap=3s jitter=none attempts=4 deadline=8s",
        100);
    CHECK_INT(strncmp(plan,
                      "wait 1 1000000000 1000000000 1000000000 1000000000 "
                      "1000000000 1000000000 1000000000 0\n"
                      "wait 2 2000000000 ",
                      88),
              0);
    CHECK(strstr(plan,
                 "\nattempts 4\nrequests 4\ntime 8000000000\n"
                 "deadline 8000000000\narrivals 100000\nmore 0\n"));
    CHECK(strstr(plan, "\nretried refused ") != NULL);
    CHECK(strstr(plan, "_4xx") != NULL);
    CHECK(strstr(plan, "\nwarning no-jitter\t") != NULL);
    plan =
        stg_wasm_plan(p.w, "exponential attempts=unlimited deadline=none", 0);
    CHECK(strstr(plan, "\nattempts 0\n") && strstr(plan, "\nmore 1\n"));
    CHECK_INT(strncmp(stg_wasm_plan(p.w, "bas=1", 0), "error 1 ", 8), 0);
    close_page(&p);
}

TEST(wasm, lists_the_presets)
{
    page p;
    uint32_t i;

    open_page(&p);
    for (i = 0; stg_preset_at(i) != NULL; i++) {
        const char *answer = stg_wasm_preset(p.w, i);
        size_t length = strlen(stg_preset_at(i)->name);

        CHECK_INT(strncmp(answer, "name ", 5), 0);
        CHECK_INT(strncmp(answer + 5, stg_preset_at(i)->name, length), 0);
        CHECK(strstr(answer, stg_preset_at(i)->use) != NULL);
    }
    CHECK(i > 0);
    CHECK_STR(stg_wasm_preset(p.w, i), "");
    close_page(&p);
}

/* -- runs */

TEST(wasm, refuses_what_is_out_of_range)
{
    static const struct {
        uint32_t clients, repetitions;
        const char *resource, *network, *answer;
    } wrong[] = {
        {0, 1, "optimistic", "1ms",
         "error clients=0 is out of range, expected 1 to 100000"},
        {100001, 1, "optimistic", "1ms",
         "error clients=100001 is out of range, expected 1 to 100000"},
        {1, 0, "optimistic", "1ms",
         "error reps=0 is out of range, expected 1 to 1000"},
        {1, 1001, "optimistic", "1ms",
         "error reps=1001 is out of range, expected 1 to 1000"},
        {1, 1, "pessimistic", "1ms", "error resource: pessimistic: expected "},
        {1, 1, "optimistic", "soon", "error "},
    };
    page p;

    open_page(&p);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *answer =
            stg_wasm_begin(p.w, wrong[i].clients, wrong[i].repetitions, 1,
                           wrong[i].resource, wrong[i].network);

        CHECK_INT(strncmp(answer, wrong[i].answer, strlen(wrong[i].answer)), 0);
        CHECK_INT(strncmp(stg_wasm_add(p.w, "full", full), "error ", 6), 0);
    }
    close_page(&p);
}

TEST(wasm, takes_eight_policies_that_are_right)
{
    page p;

    open_page(&p);
    begin(&p, 2);
    CHECK_INT(strncmp(stg_wasm_add(p.w, "bad", "bas=1"), "error 1 policy", 14),
              0);
    for (int i = 0; i < STG_WASM_POLICIES_MAX; i++)
        CHECK_STR(stg_wasm_add(p.w, "full", full), "");
    CHECK_INT(strncmp(stg_wasm_add(p.w, "full", full), "error ", 6), 0);
    run(&p, STG_WASM_POLICIES_MAX);
    CHECK(!stg_wasm_repeat(p.w, 0));
    CHECK(!stg_wasm_repeat(p.w, STG_WASM_POLICIES_MAX));
    close_page(&p);
}

TEST(wasm, comes_to_what_contention_comes_to)
{
    page p;
    stg_policy policy;
    stg_contention_options o = stg_contention_options_default();
    stg_contention *c;
    stg_contention_run each;
    double calls[REPETITIONS], completion[REPETITIONS];
    const double *sums;
    stg_estimate e;

    open_page(&p);
    begin(&p, 50);
    CHECK_STR(stg_wasm_add(p.w, "none", "none"), "");
    CHECK_STR(stg_wasm_add(p.w, "full", full), "");
    run(&p, 2);

    CHECK_INT(stg_policy_parse(&policy, full, NULL), STG_OK);
    o.clients = 50;
    o.policy = &policy;
    CHECK_INT(stg_contention_new(&c, &p.memory, &o, NULL), STG_OK);
    for (uint32_t i = 0; i < REPETITIONS; i++) {
        CHECK(stg_contention_repeat(c, i, &each, NULL));
        calls[i] = (double)each.calls;
        completion[i] = (double)each.completion / (double)STG_MS;
    }
    stg_contention_free(c);

    sums = stg_wasm_sums(p.w, 1);
    CHECK(sums[STG_WASM_REPETITIONS] == REPETITIONS);
    e = stg_estimate_make(calls, REPETITIONS);
    CHECK(sums[STG_WASM_CALLS] == e.mean && sums[STG_WASM_CALLS_SE] == e.se);
    CHECK(sums[STG_WASM_WASTED] == e.mean - 50);
    e = stg_estimate_make(completion, REPETITIONS);
    CHECK(sums[STG_WASM_COMPLETION] == e.mean);
    CHECK(sums[STG_WASM_COMPLETION_SE] == e.se);
    CHECK(sums[STG_WASM_SUCCESSES] == 50);
    CHECK(sums[STG_WASM_P50] < sums[STG_WASM_P95]);
    CHECK(sums[STG_WASM_P95] < sums[STG_WASM_MOST]);

    sums = stg_wasm_sums(p.w, 0);
    CHECK(sums[STG_WASM_CALLS] == 50);
    CHECK(sums[STG_WASM_GIVEN_UP] == 50 - sums[STG_WASM_SUCCESSES]);
    CHECK(stg_wasm_sums(p.w, 2) == NULL);
    close_page(&p);
}

TEST(wasm, forgets_the_last_run)
{
    page p;
    size_t held = 0;

    open_page(&p);
    for (int i = 0; i < 3; i++) {
        begin(&p, 50);
        CHECK_STR(stg_wasm_add(p.w, "full", full), "");
        run(&p, 1);
        CHECK(stg_wasm_charts(p.w, 600, false)[0] != '\0');
        CHECK(held == 0 || held == p.counts.held);
        held = p.counts.held;
    }
    close_page(&p);
}

/* -- storms */

static const char storm[] =
    "exponential base=500ms cap=5s jitter=full attempts=6";
static const char settings[] = "from=8s\nto=13s\nduration=30s\n";

enum { RUNS = 2 };

static void begin_storms(page *p, const char *const *budgets, uint32_t count)
{
    char text[128];

    CHECK_STR(stg_wasm_storm_begin(p->w, RUNS, 1), "");
    for (uint32_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%s budget=%s", storm, budgets[i]);
        CHECK_STR(stg_wasm_storm_add(p->w, budgets[i], text, settings), "");
    }
    for (int run = 0; run < RUNS; run++)
        for (uint32_t i = 0; i < count; i++)
            CHECK(stg_wasm_storm_run(p->w, i));
    CHECK(!stg_wasm_storm_run(p->w, 0));
}

/* What the page tells its readers first. */
TEST(wasm, has_a_storm_that_a_budget_ends)
{
    static const char *const budgets[] = {"none", "ratio:0.1"};
    const double *sums;
    page p;

    open_page(&p);
    begin_storms(&p, budgets, 2);
    sums = stg_wasm_storm_sums(p.w, 0);
    CHECK(sums[0] == RUNS && sums[1] == 0 && sums[2] == RUNS && sums[3] == 0);
    CHECK(sums[5] == -1 && sums[8] < 100);
    sums = stg_wasm_storm_sums(p.w, 1);
    CHECK(sums[1] == RUNS && sums[5] >= 0 && sums[8] > 600);
    CHECK(stg_wasm_storm_sums(p.w, 2) == NULL);
    close_page(&p);
}

/* The series of the page is that of the model's first run. */
TEST(wasm, shows_the_first_run_bin_by_bin)
{
    static const char *const budgets[] = {"none"};
    stg_overload_options o = stg_overload_default();
    stg_overload_result r;
    const double *row;
    page p;

    open_page(&p);
    CHECK_INT(stg_policy_parse(&o.policy, storm, NULL), STG_OK);
    o.trigger.from_at = 8 * STG_S;
    o.trigger.until_at = 13 * STG_S;
    o.end_at = 30 * STG_S;
    o.warmup = STG_NEVER;
    o.bin = 0;
    stg_overload_settle(&o);
    CHECK_INT(stg_overload_run(&o, 1, 0, NULL, &p.memory, &r), STG_OK);
    begin_storms(&p, budgets, 1);
    CHECK_INT(stg_wasm_storm_bins(p.w, 0), r.bin_count);
    CHECK_INT(stg_wasm_storm_bins(p.w, 1), 0);
    CHECK(stg_wasm_storm_series(p.w, 1) == NULL);
    CHECK(stg_wasm_storm_sums(p.w, 0)[4] * (double)STG_MS == (double)o.bin);
    row = stg_wasm_storm_series(p.w, 0);
    for (uint32_t i = 0; i < r.bin_count; i++, row += STG_WASM_BIN_FIELDS) {
        CHECK(row[STG_WASM_BIN_SENT] == r.bins[i].sent);
        CHECK(row[STG_WASM_BIN_RETRIED] == r.bins[i].retried);
        CHECK(row[STG_WASM_BIN_SUCCEEDED] == r.bins[i].succeeded);
        CHECK(row[STG_WASM_BIN_FOR_NOBODY] == r.bins[i].for_nobody);
        CHECK(row[STG_WASM_BIN_QUEUE] == r.bins[i].queue);
    }
    stg_overload_free(&r, &p.memory);
    close_page(&p);
}

TEST(wasm, says_what_is_wrong_with_a_storm)
{
    static const struct {
        const char *policy, *settings, *answer;
    } wrong[] = {
        {"bas=1", "", "error 1 policy"},
        {storm, "rate=0", "error rate=0: expected "},
        {storm, "rates=1", "error there is no such setting"},
        {storm, "rate", "error a setting has no value"},
        {storm, "to=1s", "error "},
        {storm,
         "network=a-text-that-is-longer-than-any-setting-of-a-page-may-be-at-"
         "all",
         "error a setting is too long"},
    };
    page p;

    open_page(&p);
    CHECK_INT(strncmp(stg_wasm_storm_add(p.w, "x", storm, ""), "error ", 6), 0);
    CHECK_INT(strncmp(stg_wasm_storm_begin(p.w, 0, 1), "error reps=0", 12), 0);
    CHECK_STR(stg_wasm_storm_begin(p.w, 1, 1), "");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_INT(strncmp(stg_wasm_storm_add(p.w, "x", wrong[i].policy,
                                             wrong[i].settings),
                          wrong[i].answer, strlen(wrong[i].answer)),
                  0);
    for (int i = 0; i < STG_WASM_STORMS_MAX; i++)
        CHECK_STR(stg_wasm_storm_add(p.w, "x", storm, settings), "");
    CHECK_INT(strncmp(stg_wasm_storm_add(p.w, "x", storm, ""), "error ", 6), 0);
    CHECK_STR(stg_wasm_charts(p.w, 600, false), ""); // none has run
    CHECK(stg_wasm_storm_sums(p.w, 0) == NULL);
    close_page(&p);
}

TEST(wasm, draws_storms_for_a_page_and_as_files)
{
    static const char *const budgets[] = {"none", "ratio:0.1"};
    page p;

    open_page(&p);
    begin_storms(&p, budgets, 2);
    CHECK(strstr(stg_wasm_charts(p.w, 600, false),
                 "ratio:0.1 recovers, none "
                 "does not"));
    CHECK(strstr(stg_wasm_charts(p.w, 600, false), "<style>") == NULL);
    CHECK(strstr(stg_wasm_charts(p.w, 600, true), "<style>") != NULL);
    CHECK_INT(strncmp(stg_wasm_csv(p.w), "policy,text,reps,seed,", 22), 0);
    begin(&p, 2); // and contention is drawn again
    CHECK_STR(stg_wasm_add(p.w, "full", full), "");
    run(&p, 1);
    CHECK(strstr(stg_wasm_charts(p.w, 600, false), "recovers") == NULL);
    close_page(&p);
}

/* -- charts */

TEST(wasm, draws_with_titles_and_notes)
{
    page p;
    const char *at, *end;
    int charts = 0;

    open_page(&p);
    CHECK_STR(stg_wasm_charts(p.w, 600, false), "");
    begin(&p, 50);
    CHECK_STR(stg_wasm_add(p.w, "<full>", full), "");
    CHECK_STR(stg_wasm_add(p.w, "none", "none"), "");
    run(&p, 2);
    for (at = stg_wasm_charts(p.w, 600, false); *at != '\0';
         at = end + 1, charts++) {
        const char *note = strchr(at, '\n'), *svg, *tag;

        end = strchr(at, '\f');
        CHECK(note != NULL && note > at);
        svg = strchr(note + 1, '\n');
        CHECK(svg != NULL && svg > note + 1 && end > svg);
        CHECK_INT(strncmp(svg, "\n<svg ", 6), 0);
        tag = strstr(svg, "<full>"); // of a title behind it, at most
        CHECK(tag == NULL || tag > end);
    }
    CHECK(charts >= 3);
    close_page(&p);
}

TEST(wasm, writes_the_numbers_as_a_file)
{
    page p;
    const char *csv;

    open_page(&p);
    begin(&p, 50);
    CHECK_STR(stg_wasm_add(p.w, "a, b", full), "");
    run(&p, 1);
    csv = stg_wasm_csv(p.w);
    CHECK_INT(strncmp(csv, "policy,text,clients,reps,seed,calls,calls_se,", 45),
              0);
    CHECK(strstr(csv, "\n\"a, b\",exponential base=10ms ") != NULL);
    CHECK(strstr(csv, ",50,8,1,") != NULL);
    close_page(&p);
}

TEST(wasm, has_styles_and_markers_for_a_page)
{
    page p;

    open_page(&p);
    CHECK(strstr(stg_wasm_style(p.w), ".c0{color:") != NULL);
    for (uint32_t i = 0; i < STG_WASM_POLICIES_MAX; i++)
        CHECK_INT(stg_wasm_marker(p.w, i)[0], 'M');
    close_page(&p);
}

/* The texts of a page are its own until it gives them back. */
TEST(wasm, has_room_for_texts)
{
    page p;
    char *text;

    open_page(&p);
    text = stg_wasm_take(p.w, 10);
    memcpy(text, "123456789", 10);
    stg_wasm_drop(p.w, text);
    close_page(&p);
}

/* Whenever memory ends, it is said, and nothing is lost. */
TEST(wasm, says_when_there_is_no_memory)
{
    page p;
    bool is_done = false;

    for (size_t left = 0; !is_done; left++) {
        CHECK(left < 10000);
        p.memory = test_memory_of(&p.counts);
        p.counts.left = left;
        p.w = stg_wasm_new(&p.memory);
        if (p.w == NULL)
            continue;
        if (stg_wasm_begin(p.w, 20, 1, 1, "optimistic", "10ms")[0] == '\0' &&
            stg_wasm_add(p.w, "full", full)[0] == '\0' &&
            stg_wasm_repeat(p.w, 0))
            is_done = stg_wasm_sums(p.w, 0) != NULL &&
                      stg_wasm_csv(p.w)[0] != '\0' &&
                      stg_wasm_charts(p.w, 600, false)[0] != '\0';
        close_page(&p);
    }
}

TEST(wasm, says_when_there_is_no_memory_for_a_storm)
{
    page p;
    bool is_done = false;

    for (size_t left = 0; !is_done; left++) {
        CHECK(left < 10000);
        p.memory = test_memory_of(&p.counts);
        p.counts.left = left;
        p.w = stg_wasm_new(&p.memory);
        if (p.w == NULL)
            continue;
        if (stg_wasm_storm_begin(p.w, 2, 1)[0] == '\0' &&
            stg_wasm_storm_add(p.w, "x", storm,
                               "rate=10\nfrom=1s\nto=2s\nduration=5s")[0] ==
                '\0' &&
            stg_wasm_storm_run(p.w, 0))
            is_done = stg_wasm_csv(p.w)[0] != '\0' &&
                      stg_wasm_charts(p.w, 600, false)[0] != '\0';
        close_page(&p);
    }
}

TEST(series, joins_slices)
{
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    stg_sim_series s;
    double se;

    stg_sim_series_init(&s, 10, 100, &memory);
    for (stg_ns at = 0; at < 70; at += 5)
        CHECK(stg_sim_series_add(&s, at));
    stg_sim_series_finish(&s);
    stg_sim_series_join(&s, 5);
    CHECK_INT(s.used, 2);
    CHECK_U64(s.width, 50);
    CHECK(stg_sim_series_mean(&s, 0, &se) == 10);
    CHECK(stg_sim_series_mean(&s, 1, &se) == 4);

    // The next repetition counts in the wider ones.
    for (stg_ns at = 0; at < 120; at += 5)
        CHECK(stg_sim_series_add(&s, at));
    stg_sim_series_finish(&s);
    CHECK_INT(s.used, 3);
    CHECK(stg_sim_series_mean(&s, 1, &se) == 7);
    CHECK(se == 3);
    CHECK(stg_sim_series_mean(&s, 2, &se) == 2);
    stg_sim_series_close(&s);
    CHECK_INT(counts.held, 0);
}
