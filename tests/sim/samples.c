#include "tests/sim/samples.h"

enum { POLICIES = 5, SIZES = 19, BINS = 120, CALLS = 400 };

static const char *const policies[POLICIES] = {"none", "exponential", "equal",
                                               "full", "decorrelated"};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* -- completion and calls against the number of clients */

static stg_chart_point by_clients[POLICIES][SIZES];
static stg_chart_series lines[POLICIES];

static void fill_lines(double curve, double base)
{
    static const double factors[POLICIES] = {4, 2.2, 1.2, 1, 0.7};

    for (unsigned p = 0; p < POLICIES; p++) {
        for (int i = 0; i < SIZES; i++) {
            double n = 10 * (i + 1), y = base + factors[p] * n;

            if (p < 2)
                y += factors[p] * n * n * curve;
            by_clients[p][i] =
                (stg_chart_point){.x = n, .y = y, .y_se = 0.02 * y};
        }
        lines[p] = (stg_chart_series){.name = policies[p],
                                      .mark = STG_MARK_LINE,
                                      .colour = p,
                                      .points = by_clients[p],
                                      .count = SIZES};
    }
}

static const stg_chart *calls(void)
{
    static const stg_chart_panel panel = {
        .y = {.label = "calls", .unit = "calls", .is_from_zero = true}};
    static const stg_chart chart = {
        .name = "calls-by-clients",
        .title = "With jitter, 190 clients make a quarter of the calls",
        .note = "Mean of 100 repetitions. The bands are 2 standard errors.",
        .x = {.label = "clients", .unit = "clients"},
        .panels = &panel,
        .panel_count = 1,
        .series = lines,
        .series_count = POLICIES};

    fill_lines(0.02, 0);
    return &chart;
}

static const stg_chart *completion(void)
{
    static const stg_chart_panel panel = {
        .y = {.label = "completion", .is_time = true, .is_log = true}};
    static const stg_chart chart = {
        .name = "completion-by-clients",
        .title =
            "Without jitter the last of 190 clients waits eight times as "
            "long",
        .x = {.label = "clients", .unit = "clients"},
        .panels = &panel,
        .panel_count = 1,
        .series = lines,
        .series_count = POLICIES};

    fill_lines(0.2, 40);
    return &chart;
}

/* -- calls over time, a panel a policy */

static const stg_chart *over_time(void)
{
    static stg_chart_point bins[3][BINS];
    static stg_chart_series series[3];
    static stg_chart_panel panels[3];
    static const stg_chart chart = {
        .name = "calls-over-time",
        .title =
            "Exponential backoff alone calls in clusters; jitter spreads "
            "the calls out",
        .note = "Calls in each 10 ms, mean of 100 repetitions.",
        .x = {.label = "time", .is_time = true},
        .panels = panels,
        .panel_count = 3,
        .series = series,
        .series_count = 3,
        .is_y_shared = true};

    for (unsigned p = 0; p < 3; p++) {
        for (int i = 0; i < BINS; i++) {
            double x = 10 * i, y = 90.0 * (i < 3) + 3 + (i * 7 % 5);

            if (p == 0)
                y = i % 4 < 2 ? 100.0 - i * 0.3 : 2;
            if (p == 1)
                y = i % 40 < 4 ? 95.0 - i % 40 * 20 : 0;
            bins[p][i] = (stg_chart_point){.x = x, .y = y, .y_se = 0.5};
        }
        series[p] = (stg_chart_series){.name = policies[p],
                                       .mark = STG_MARK_AREA,
                                       .colour = p,
                                       .panel = p,
                                       .points = bins[p],
                                       .count = BINS};
        panels[p] = (stg_chart_panel){
            .name = policies[p],
            .y = {.label = "calls in 10 ms", .unit = "calls"}};
    }
    return &chart;
}

/* -- work against time */

static const stg_chart *work(void)
{
    static const stg_chart_point at[POLICIES] = {{9000, 18000, 120, 300, 0, 0},
                                                 {9300, 6900, 90, 50, 0, 0},
                                                 {2600, 1950, 20, 9, 0, 0},
                                                 {2500, 1800, 20, 8, 0, 0},
                                                 {2200, 1990, 18, 9, 0, 0}};
    static stg_chart_series series[POLICIES];
    static const stg_chart_panel panel = {
        .y = {.label = "work", .unit = "calls", .is_log = true}};
    static const stg_chart chart = {
        .name = "work-against-time",
        .title = "Full jitter is done as soon with the least work",
        .note = "190 clients. Below and to the left is better.",
        .x = {.label = "completion", .is_time = true, .is_from_zero = true},
        .panels = &panel,
        .panel_count = 1,
        .series = series,
        .series_count = POLICIES};

    for (unsigned p = 0; p < POLICIES; p++)
        series[p] = (stg_chart_series){.name = policies[p],
                                       .mark = STG_MARK_SPOT,
                                       .colour = p,
                                       .points = &at[p],
                                       .count = 1};
    return &chart;
}

/* -- client x time */

static const stg_chart *scatter(void)
{
    static stg_chart_point dots[2][CALLS];
    static stg_chart_series series[2];
    static const stg_chart_panel panels[2] = {
        {"exponential", {.label = "client", .unit = "number"}},
        {"full", {.label = "client", .unit = "number"}}};
    static const stg_chart chart = {
        .name = "clients-by-time",
        .title = "Clients that fail together come back together",
        .note = "A dot is a call.",
        .x = {.label = "time", .is_time = true},
        .panels = panels,
        .panel_count = 2,
        .series = series,
        .series_count = 2,
        .is_y_shared = true};

    for (unsigned p = 0; p < 2; p++) {
        for (int i = 0; i < CALLS; i++)
            dots[p][i] = (stg_chart_point){
                .x = p == 0 ? i / 100 * 250 + i % 7 * 5 : i * 2477 % 2250,
                .y = i % 100 + 1};
        series[p] = (stg_chart_series){.name = policies[p == 0 ? 1 : 3],
                                       .mark = STG_MARK_DOTS,
                                       .colour = p == 0 ? 1 : 3,
                                       .panel = p,
                                       .points = dots[p],
                                       .count = CALLS};
    }
    return &chart;
}

/* -- how many are done by when */

static const stg_chart *ecdf(void)
{
    static stg_chart_point steps[POLICIES][101];
    static stg_chart_series series[POLICIES];
    static const stg_chart_panel panel = {
        .y = {.label = "clients done", .unit = "%", .from = 0, .to = 100}};
    static const stg_chart chart = {
        .name = "completion-share",
        .title = "Half of the clients are done after 0.6 s with full jitter",
        .x = {.label = "time", .is_time = true},
        .panels = &panel,
        .panel_count = 1,
        .series = series,
        .series_count = POLICIES};

    for (unsigned p = 0; p < POLICIES; p++) {
        for (int i = 0; i <= 100; i++)
            steps[p][i] = (stg_chart_point){.x = i * (9.0 - p) +
                                                 i * i * 0.04 * (POLICIES - p),
                                            .y = i,
                                            .y_se = i * (100 - i) / 1000.0};
        series[p] = (stg_chart_series){.name = policies[p],
                                       .mark = STG_MARK_STEP,
                                       .colour = p,
                                       .points = steps[p],
                                       .count = 101};
    }
    return &chart;
}

/* -- an outage: goodput, offered load, queue */

static const stg_chart *storm(void)
{
    static stg_chart_point rates[2][90], queue[90];
    static const stg_chart_series series[] = {
        {"offered", STG_MARK_LINE, 1, 0, rates[0], 90},
        {"goodput", STG_MARK_LINE, 2, 0, rates[1], 90},
        {"queue", STG_MARK_LINE, 3, 1, queue, 90}};
    static const stg_chart_panel panels[] = {
        {"rates", {.label = "requests a second", .unit = "/s"}},
        {"queue", {.label = "waiting", .unit = "requests"}}};
    static const stg_chart_span outage = {"outage", 30e3, 46e3};
    static const stg_chart chart = {
        .name = "overload",
        .title = "Naive retries keep the service down after the outage",
        .note = "The outage is shaded.",
        .x = {.label = "time", .is_time = true},
        .panels = panels,
        .panel_count = 2,
        .series = series,
        .series_count = COUNT(series),
        .spans = &outage,
        .span_count = 1};

    for (int i = 0; i < 90; i++) {
        double x = i * 2000;
        int is_out = i >= 15 && i < 23;

        rates[0][i] = (stg_chart_point){
            .x = x, .y = i < 15 ? 700 : 2000 - 300.0 / (i - 14), .y_se = 10};
        rates[1][i] = (stg_chart_point){.x = x,
                                        .y = is_out   ? 0
                                             : i < 15 ? 690
                                                      : 80,
                                        .y_se = 5};
        queue[i] = (stg_chart_point){.x = x, .y = i < 15 ? 3 : 500};
    }
    return &chart;
}

/* -- waits by retry */

static const stg_chart *waits(void)
{
    static stg_chart_point ranges[8];
    static const stg_chart_series series = {"full", STG_MARK_RANGE, 3,
                                            0,      ranges,         8};
    static const stg_chart_panel panel = {
        "full", {.label = "wait", .is_time = true, .is_log = true}};
    static const stg_chart chart = {
        .name = "waits-by-retry",
        .title = "The wait doubles with each retry, up to the cap of 2 s",
        .note =
            "A bar is from the 5th to the 95th percentile, the mark in it "
            "the median. Labels of <axes> are \"escaped\" & safe.",
        .x = {.label = "retry", .unit = ""},
        .panels = &panel,
        .panel_count = 1,
        .series = &series,
        .series_count = 1};

    for (int i = 0; i < 8; i++) {
        double window = 10.0 * (1 << i);

        ranges[i] = (stg_chart_point){.x = i + 1,
                                      .y = window / 2,
                                      .y_se = window / 20,
                                      .low = window * 0.05,
                                      .high = window * 0.95};
    }
    return &chart;
}

const stg_chart *test_sample(int i)
{
    switch (i) {
    case 0:
        return calls();
    case 1:
        return completion();
    case 2:
        return over_time();
    case 3:
        return work();
    case 4:
        return scatter();
    case 5:
        return ecdf();
    case 6:
        return storm();
    default:
        return waits();
    }
}
