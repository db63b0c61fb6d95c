/* What is said of an overload, and when it counts as over. */
#include "tests/sim/overload_help.h"

#include "sim/overload.h"
#include "sim/overload_internal.h"
#include "sim/overload_report.h"

enum { BINS = 90, BEFORE = 20, AFTER = 30 }; // of a second each

/* 700 succeed a second; from the trigger's end on as `after` says. */
static stg_recovery judge(double (*after)(int second))
{
    static stg_overload_bin bins[BINS];
    stg_overload_options o = stg_overload_default();

    o.bin = STG_S;
    memset(bins, 0, sizeof bins);
    for (int i = 0; i < BINS; i++) {
        double share = i < BEFORE ? 1 : i < AFTER ? 0 : after(i - AFTER);

        bins[i].begun = 700;
        bins[i].succeeded = (uint32_t)(700 * share);
        bins[i].given_up = 700 - bins[i].succeeded;
    }
    return stg_overload_recover(&o, bins, BINS);
}

static double at_once(int second)
{
    (void)second;
    return 1;
}

static double never(int second)
{
    (void)second;
    return 0;
}

static double after_five(int second)
{
    return second < 5 ? 0.1 : 1;
}

static double again_and_again(int second)
{
    return second % 20 == 15 ? 0.5 : 1;
}

static double nearly(int second)
{
    return second % 2 == 0 ? 0.89 : 0.95;
}

static double half(int second)
{
    (void)second;
    return 0.5;
}

TEST(recovery, is_the_moment_from_which_goodput_stays)
{
    stg_recovery r = judge(at_once);

    CHECK(r.was_healthy && r.is_recovered && r.after == 0);
    CHECK(r.before > 699 && r.before < 701);
    r = judge(after_five);
    CHECK(r.is_recovered && r.after == 5 * STG_S);
    r = judge(again_and_again); // the last time in second 55
    CHECK(r.is_recovered && r.after == 56 * STG_S);
    r = judge(nearly);
    CHECK(r.is_recovered && r.after == 0);
    CHECK(!judge(never).is_recovered);
    CHECK(!judge(half).is_recovered);
}

/* Runs the policies, and leaves cases that are to be given back. */
typedef struct studied {
    stg_overload_options options[3];
    stg_overload_summary summaries[3];
    stg_overload_case cases[3];
} studied;

/* Runs first, first + 1 ..., so many. */
static void add_runs(stg_overload_summary *s, const stg_overload_options *o,
                     uint64_t first, uint32_t runs)
{
    CHECK(stg_overload_summary_init(s, o, runs, &help_memory) == STG_OK);
    for (uint32_t i = 0; i < runs; i++) {
        stg_overload_result r = help_run(o, first + i);

        stg_overload_summary_add(s, &r);
        stg_overload_free(&r, &help_memory);
    }
}

static void study(studied *s, const char *const texts[3])
{
    for (int i = 0; i < 3; i++) {
        s->options[i] = stg_overload_default();
        s->options[i].policy = help_policy(texts[i]);
        add_runs(&s->summaries[i], &s->options[i], 0, 2);
        s->cases[i] = (stg_overload_case){texts[i], &s->summaries[i]};
    }
}

static void give_back(studied *s)
{
    for (int i = 0; i < 3; i++)
        stg_overload_summary_close(&s->summaries[i]);
}

static void check_said(stg_text_buffer *p, const char *text)
{
    CHECK_STR(p->text, text);
    stg_text_buffer_free(p);
}

TEST(overload_words, say_who_recovers_and_what_was_simulated)
{
    static const char *const texts[3] = {
        "attempts=6 base=500ms cap=5s",
        "attempts=6 base=500ms cap=5s budget=ratio:0.1", "attempts=1"};
    static studied s;
    stg_text_buffer p = stg_text_buffer_on(&help_memory);
    stg_overload_table table;
    stg_estimate e;
    uint32_t has;

    study(&s, texts);
    stg_overload_say_finding(s.cases, 3, &p);
    check_said(&p,
               "After the outage attempts=6 base=500ms cap=5s budget=ratio:0.1 "
               "and attempts=1 recover, attempts=6 base=500ms cap=5s does not "
               "within the 60 s that were simulated");
    stg_overload_say_finding(&s.cases[1], 2, &p);
    check_said(&p, "All recover from the outage");
    stg_overload_say_finding(s.cases, 1, &p);
    check_said(&p,
               "It does not recover from the outage within the 60 s that "
               "were simulated");
    stg_overload_say_recovery(&s.summaries[0], &p);
    check_said(&p, "not within 60 s");
    stg_overload_say_recovery(&s.summaries[1], &p);
    check_said(&p, "at once");
    s.options[1].service.queue_max = 5; // is not the same in all, then
    s.options[2].trigger.kind = STG_TRIGGER_STALL;
    stg_overload_say_setting(s.cases, 3, &p);
    check_said(&p,
               "10 workers of exponential:10ms, 700 operations a second, "
               "timeout 500 ms");
    stg_overload_say_finding(&s.cases[1], 2, &p);
    check_said(&p, "All recover from the trouble");

    e = stg_overload_summary_figure(&s.summaries[0], STG_FIGURE_RECOVERY, &has);
    CHECK(has == 0 && e.mean == 0);
    e = stg_overload_summary_figure(&s.summaries[0], STG_FIGURE_SUCCESS, &has);
    CHECK(has == 2 && e.mean > 0.1 && e.mean < 0.2 && e.se > 0);
    // Half of what succeeds, most of it before, is no word about after.
    e = stg_overload_summary_figure(&s.summaries[0], STG_FIGURE_P50, &has);
    CHECK(has == 2 && e.mean < 50);
    e = stg_overload_summary_figure(&s.summaries[0], STG_FIGURE_BEFORE_P50,
                                    &has);
    CHECK(has == 2 && e.mean < 15);
    e = stg_overload_summary_figure(&s.summaries[0], STG_FIGURE_AFTER_P50,
                                    &has);
    CHECK(has == 2 && e.mean > 500);
    e = stg_overload_summary_figure(&s.summaries[0], STG_FIGURE_IN_GOODPUT,
                                    &has);
    CHECK(has == 2 && e.mean < 5);
    e = stg_overload_summary_figure(&s.summaries[0], STG_FIGURE_AFTER_GOODPUT,
                                    &has);
    CHECK(has == 2 && e.mean < 100);
    CHECK(stg_overload_table_make(&table, s.cases, 3, 7, &help_memory) ==
          STG_OK);
    stg_table_csv(&table.table, &p);
    CHECK(strncmp(p.text, "policy,text,reps,seed,recovered,cut,", 36) == 0);
    CHECK(strstr(p.text, ",2,7,2,") != NULL);
    stg_text_buffer_free(&p);
    stg_overload_table_free(&table);
    give_back(&s);
}

/* A run that was cut may have been about to recover, or not. */
TEST(overload_words, conclude_nothing_from_a_run_that_was_cut)
{
    static const char *const texts[2] = {"attempts=6 base=500ms cap=5s",
                                         "attempts=1"};
    static const char *const found[2] = {
        "After the outage attempts=1 recovers, attempts=6 base=500ms cap=5s was "
        "cut",
        "After the outage, attempts=6 base=500ms cap=5s and attempts=1 were "
        "cut"};
    stg_text_buffer p = stg_text_buffer_on(&help_memory);

    for (int cuts = 1; cuts <= 2; cuts++) {
        static stg_overload_options options[2];
        static stg_overload_summary summaries[2];
        stg_overload_case cases[2];
        uint32_t has;

        for (int i = 0; i < 2; i++) {
            options[i] = stg_overload_default();
            options[i].policy = help_policy(texts[i]);
            options[i].events_max = i < cuts ? 150000 : 0;
            add_runs(&summaries[i], &options[i], 0, 2);
            CHECK(summaries[i].is_cut == (i < cuts));
            cases[i] = (stg_overload_case){texts[i], &summaries[i]};
        }
        stg_overload_say_finding(cases, 2, &p);
        check_said(&p, found[cuts - 1]);
        stg_overload_say_recovery(&summaries[0], &p);
        check_said(&p, "was cut");
        CHECK_INT(summaries[0].recovered, 0);
        (void)stg_overload_summary_figure(&summaries[0], STG_FIGURE_RECOVERY,
                                          &has);
        CHECK_INT(has, 0);
        (void)stg_overload_summary_figure(&summaries[0], STG_FIGURE_BEFORE,
                                          &has);
        CHECK_INT(has, 2); // what it has is there
        for (int i = 0; i < 2; i++)
            stg_overload_summary_close(&summaries[i]);
    }
}

/* Two runs of three bins and a rest: an interval has what its bins have. */
TEST(overload_stretch, has_a_value_a_run)
{
    enum { WIDE = 2 };
    stg_overload_bin bins[2][WIDE] = {{{.begun = 10}, {.begun = 30}},
                                      {{.begun = 20}, {.begun = 20}}};
    stg_overload_interval s = {0};
    stg_estimate e;

    bins[0][0].sent = 40;
    bins[0][1].sent = 40;
    bins[1][0].sent = bins[1][1].sent = 20;
    bins[0][0].queue = 6;
    stg_sim_histogram_add(&bins[1][1].latency, 20 * STG_MS);
    for (int run = 0; run < 2; run++)
        stg_overload_interval_add(&s, bins[run], WIDE, 500 * STG_MS);
    e = stg_overload_sum_estimate(&s.series[STG_SERIES_BEGUN]);
    CHECK(e.mean == 40 && e.se == 0); // a second; each run has as many
    e = stg_overload_sum_estimate(&s.series[STG_SERIES_AMPLIFICATION]);
    CHECK(e.mean == 1.5 && e.se == 0.5);
    e = stg_overload_sum_estimate(&s.series[STG_SERIES_QUEUE]);
    CHECK(e.mean == 1.5 && e.se == 1.5);
    e = stg_overload_sum_estimate(&s.waits[STG_WAIT_MEDIAN]);
    CHECK(s.waits[STG_WAIT_MEDIAN].count == 1 && e.se == 0);
    CHECK(e.mean > 18 && e.mean < 22);
    CHECK_INT(stg_overload_interval_bins(0), 1);
    CHECK_INT(stg_overload_interval_bins(STG_INTERVALS_MAX), 1);
    CHECK_INT(stg_overload_interval_bins(STG_INTERVALS_MAX + 1), 2);
}

TEST(overload_charts, have_titles_that_are_true_and_bands)
{
    static const char *const texts[3] = {"attempts=6 base=500ms cap=5s",
                                         "attempts=2 base=500ms cap=5s",
                                         "attempts=1"};
    static studied s;
    const stg_chart_series *capacity;
    stg_chart_set a = stg_chart_set_on(&help_memory);
    stg_text_buffer p = stg_text_buffer_on(&help_memory);

    study(&s, texts);
    stg_overload_chart_rates(&a, s.cases, 3, NULL);
    stg_overload_chart_latency(&a, s.cases, 3);
    stg_overload_chart_amplification(&a, s.cases, 3);
    stg_overload_chart_cost(&a, s.cases, 3);
    CHECK(!a.is_short && a.count == 4);
    for (size_t i = 0; i < a.count; i++) {
        bool has_band = false;

        for (size_t k = 0; k < a.charts[i]->series_count; k++)
            for (size_t n = 0; n < a.charts[i]->series[k].count; n++)
                has_band |= a.charts[i]->series[k].points[n].y_se > 0;
        CHECK(has_band);
        CHECK(a.charts[i]->series[0].count <= STG_INTERVALS_MAX);
    }
    CHECK(strncmp(a.charts[1]->title,
                  "99 in 100 of the operations that succeed do so within ",
                  54) == 0);
    CHECK(strstr(a.charts[2]->title,
                 " requests with attempts=6 base=500ms cap=5s, and 1 request "
                 "with attempts=1") != NULL);
    CHECK(strstr(a.charts[3]->title,
                 "with attempts=6 base=500ms cap=5s, for 5.") != NULL);
    CHECK_INT(a.charts[0]->span_count, 1);
    CHECK_STR(a.charts[0]->spans[0].name, "outage");
    capacity = &a.charts[0]->series[9];
    CHECK_INT(a.charts[0]->series_count, 10);
    CHECK_STR(capacity->name, "capacity");
    CHECK_INT(capacity->panel, 1);
    CHECK_INT(capacity->count, a.charts[0]->series[3].count);
    CHECK(capacity->points[0].y > 999.99 && capacity->points[0].y < 1000.01);
    // Each has its own: of the same, one.
    s.options[1].trigger.until_at = 35 * STG_S;
    stg_overload_chart_rates(&a, s.cases, 3, NULL);
    CHECK_INT(a.charts[4]->span_count, 2);
    CHECK_STR(a.charts[4]->spans[1].name, "outage 20 s to 35 s");
    CHECK(a.charts[4]->spans[0].to == 30000);
    CHECK(a.charts[4]->spans[1].to == 35000);
    s.options[1].layers = 3; // of the last one it is the same
    stg_overload_chart_rates(&a, s.cases, 3, NULL);
    CHECK_INT(a.charts[5]->series_count, 10);
    s.options[1].service.workers = 11; // now it is not one number
    stg_overload_chart_rates(&a, s.cases, 3, NULL);
    CHECK_INT(a.charts[6]->series_count, 9);
    s.options[0].trigger.kind = s.options[2].trigger.kind = STG_TRIGGER_NONE;
    stg_overload_say_finding(s.cases, 1, &p);
    CHECK(strncmp(p.text, "With nothing wrong from outside, 1", 34) == 0);
    stg_text_buffer_free(&p);
    stg_chart_set_free(&a);
    give_back(&s);
}

/* The same policy twice, in runs of its own: chance alone tells them apart. */
TEST(overload_charts, conclude_nothing_below_two_errors_or_from_one_run)
{
    static const char *const none[2] = {"One run: no conclusion",
                                        "One run of each: no conclusion"};

    for (uint32_t runs = 1; runs <= 5; runs += 4) {
        stg_overload_options o = stg_overload_default();
        stg_overload_summary summaries[2];
        stg_overload_case cases[2] = {{"one", &summaries[0]},
                                      {"two", &summaries[1]}};
        stg_chart_set a = stg_chart_set_on(&help_memory);

        o.policy = help_policy("attempts=3 base=100ms");
        for (int i = 0; i < 2; i++)
            add_runs(&summaries[i], &o, (uint64_t)i * runs, runs);
        for (size_t count = 1; count <= 2; count++) {
            size_t at = a.count;

            stg_overload_chart_latency(&a, cases, count);
            stg_overload_chart_amplification(&a, cases, count);
            stg_overload_chart_cost(&a, cases, count);
            stg_overload_chart_rates(&a, cases, count, NULL);
            CHECK(!a.is_short && a.count == at + 4);
            for (size_t i = at; i < a.count; i++) {
                const char *title = a.charts[i]->title;

                CHECK_INT(strcmp(title, none[count - 1]) == 0, runs == 1);
                CHECK(strstr(title, "with one") == NULL);
                CHECK(strstr(title, "with two") == NULL);
                CHECK_INT(strstr(title, " in each case") != NULL,
                          runs > 1 && count > 1 && i < at + 3);
            }
        }
        stg_chart_set_free(&a);
        for (int i = 0; i < 2; i++)
            stg_overload_summary_close(&summaries[i]);
    }
}

TEST(overload_words, says_each_trigger_as_it_is_written)
{
    static const char *const texts[] = {"none",     "outage",  "stall",
                                        "slow:2.5", "spike:3", "errors:12.5%"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stg_overload_options o = stg_overload_default();
        char text[STG_TRIGGER_TEXT_MAX];

        CHECK(stg_overload_set(&o, "trigger", texts[i], NULL) == STG_OK);
        CHECK_STR(stg_trigger_print(&o.trigger, text), texts[i]);
    }
}

TEST(overload_words, sets_all_of_a_value_or_nothing)
{
    stg_overload_options o = stg_overload_default(), before = o;
    const stg_overload_setting *about;
    stg_error err;

    CHECK(stg_overload_set(&o, "colour", "red", &err) == STG_NOT_FOUND);
    for (size_t i = 0; (about = stg_overload_setting_at(i)) != NULL; i++) {
        CHECK(stg_overload_set(&o, about->name, "", &err) == STG_INVALID);
        CHECK(stg_overload_set(&o, about->name, "1 2", &err) == STG_INVALID);
        CHECK(strncmp(err.text, about->name, strlen(about->name)) == 0);
        CHECK(strstr(err.text, about->expected) != NULL);
    }
    CHECK(memcmp(&o, &before, sizeof o) == 0);
    CHECK(stg_overload_set(&o, "clients", "20", &err) == STG_OK);
    CHECK(o.load.is_closed && o.load.clients == 20 && o.load.rate == 0);
    CHECK(stg_overload_set(&o, "rate", "12.5/s", &err) == STG_OK);
    CHECK(!o.load.is_closed && o.load.rate == 12500);
    CHECK(stg_overload_set(&o, "errors", "0.5%", &err) == STG_OK);
    CHECK_INT(o.errors, 5000);
}

TEST(overload_words, chooses_bins_that_divide_the_duration)
{
    static const stg_ns ends[] = {STG_MS,       90 * STG_S,       7 * STG_S,
                                  31 * STG_MIN, 30 * STG_DAY,     STG_HOUR + 1,
                                  997 * STG_MS, 1999 * STG_US + 1};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        stg_overload_options o = stg_overload_default();

        o.end_at = ends[i];
        o.bin = 0;
        o.warmup = STG_NEVER;
        o.trigger.kind = STG_TRIGGER_NONE;
        stg_overload_settle(&o);
        CHECK_FROM(i, ends[i] % o.bin == 0);
        CHECK_FROM(i, ends[i] / o.bin <= 400);
        CHECK_FROM(i, stg_overload_check(&o, NULL) == STG_OK);
    }
}
