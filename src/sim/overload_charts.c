#include "sim/overload_charts.h"

#include <string.h>

enum { POINTS_MAX = 180 }; // a line, so that a page stays small

/* -- points ---------------------------------------------------------------- */

/* How many bins make a point. */
static uint32_t find_step(const stg_overload_summary *s)
{
    uint32_t step = (s->bin_count + POINTS_MAX - 1) / POINTS_MAX;

    return step > 0 ? step : 1;
}

static double middle_of(const stg_overload_summary *s, uint32_t bin,
                        uint32_t bins)
{
    return ((double)bin + bins / 2.0) * (double)s->options->bin / 1e6;
}

static stg_chart_point rate_of(const stg_overload_summary *s, uint32_t from,
                               uint32_t bins, stg_overload_series series)
{
    double sum = 0, squares = 0;

    for (uint32_t i = from; i < from + bins; i++) {
        stg_estimate e = stg_overload_summary_point(s, i, series);

        sum += e.mean;
        squares += e.se * e.se;
    }
    return (stg_chart_point){
        .x = middle_of(s, from, bins),
        .y = sum / bins,
        .y_se = stg_estimate_root(squares) / bins,
    };
}

/* Nothing succeeded, so there is no latency: 0, which a logarithmic axis leaves
 * out. */
static stg_chart_point latency_of(const stg_overload_summary *s, uint32_t from,
                                  uint32_t bins, uint32_t share)
{
    stg_sim_histogram h = {0};

    for (uint32_t i = from; i < from + bins; i++)
        stg_sim_histogram_merge(&h, &s->points[i].latency);
    return (stg_chart_point){
        .x = middle_of(s, from, bins),
        .y = (double)stg_sim_histogram_at(&h, share) / 1e6,
    };
}

typedef stg_chart_point point_of(const stg_overload_summary *s, uint32_t from,
                                 uint32_t bins, uint32_t what);

static stg_chart_point point_of_rate(const stg_overload_summary *s,
                                     uint32_t from, uint32_t bins,
                                     uint32_t what)
{
    return rate_of(s, from, bins, (stg_overload_series)what);
}

/* A line for a case, over time. */
static void draw(stg_album *a, stg_chart_series *series,
                 const stg_overload_case *c, point_of *find, uint32_t what)
{
    const stg_overload_summary *s = c->summary;
    uint32_t step = find_step(s);
    stg_chart_point *points = stg_album_points(a, series, s->bin_count / step);

    for (uint32_t i = 0; points != NULL && i < s->bin_count / step; i++)
        points[i] = find(s, i * step, step, what);
}

/* -- charts ---------------------------------------------------------------- */

static void shade(stg_album *a, stg_chart *chart, const stg_trigger *t)
{
    static const char *const names[] = {NULL,        "outage", "stall",
                                        "slow-down", "spike",  "errors"};
    stg_chart_span *span = stg_album_take(a, sizeof *span);

    chart->x = (stg_chart_axis){
        .label = "time", .is_time = true, .is_from_zero = true};
    if (span == NULL || t->kind == STG_TRIGGER_NONE)
        return;
    *span = (stg_chart_span){.name = names[t->kind],
                             .from = (double)t->from_at / 1e6,
                             .to = (double)t->until_at / 1e6};
    chart->spans = span;
    chart->span_count = 1;
}

/* What a panel shows of each case. */
typedef struct content {
    stg_chart_panel panel;
    point_of *find;
    uint32_t what;
} content;

static void draw_over_time(stg_album *a, const char *name, const char *title,
                           const char *note, const content *contents,
                           size_t panels, const stg_overload_case *cases,
                           size_t count)
{
    stg_sheet sheet;

    if (!stg_album_add(a, name, panels, panels * count, &sheet))
        return;
    sheet.chart->title = title;
    sheet.chart->note = note;
    shade(a, sheet.chart, &cases[0].summary->options->trigger);
    for (size_t p = 0; p < panels; p++) {
        sheet.panels[p] = contents[p].panel;
        for (size_t i = 0; i < count; i++) {
            stg_chart_series *s = &sheet.series[p * count + i];

            s->name = cases[i].name;
            s->colour = (unsigned)i;
            s->panel = (unsigned)p;
            draw(a, s, &cases[i], contents[p].find, contents[p].what);
        }
    }
}

void stg_overload_chart_rates(stg_album *a, const stg_overload_case *cases,
                              size_t count, const char *title)
{
    static const content contents[] = {
        {.panel = {.name = "goodput",
                   .y = {.label = "operations that succeed, a second",
                         .unit = "a second",
                         .is_from_zero = true}},
         .find = point_of_rate,
         .what = STG_SERIES_GOODPUT},
        {.panel = {.name = "offered load",
                   .y = {.label = "requests sent, retries too, a second",
                         .unit = "a second",
                         .is_from_zero = true}},
         .find = point_of_rate,
         .what = STG_SERIES_OFFERED},
        {.panel = {.name = "queue",
                   .y = {.label = "requests that wait",
                         .unit = "requests",
                         .is_from_zero = true}},
         .find = point_of_rate,
         .what = STG_SERIES_QUEUE},
    };
    stg_paper paper = stg_paper_on(a->memory);

    if (title == NULL) {
        stg_overload_say_finding(cases, count, &paper);
        title = stg_album_text(a, &paper);
    }
    draw_over_time(a, "overload-rates", title,
                   "Shaded: the trouble. A goodput that stays below what it "
                   "was before has not recovered. Bands: two standard errors.",
                   contents, 3, cases, count);
    stg_paper_free(&paper);
}

void stg_overload_chart_latency(stg_album *a, const stg_overload_case *cases,
                                size_t count)
{
    static const content contents[] = {
        {.panel = {.name = "half of them",
                   .y = {.label = "latency, median",
                         .is_time = true,
                         .is_log = true}},
         .find = latency_of,
         .what = 500},
        {.panel = {.name = "all but one in a hundred",
                   .y = {.label = "latency, p99",
                         .is_time = true,
                         .is_log = true}},
         .find = latency_of,
         .what = 990},
    };

    draw_over_time(a, "overload-latency",
                   "Latency of the operations that succeed; no line where "
                   "none does",
                   "From an operation's begin, all its attempts and waits "
                   "included.",
                   contents, 2, cases, count);
}

void stg_overload_chart_amplification(stg_album *a,
                                      const stg_overload_case *cases,
                                      size_t count)
{
    static const content contents[] = {
        {.panel = {.y = {.label = "requests for each operation that begins",
                         .unit = "requests",
                         .is_from_zero = true}},
         .find = point_of_rate,
         .what = STG_SERIES_AMPLIFICATION},
    };

    draw_over_time(a, "overload-amplification",
                   "Amplification: how many requests each operation becomes",
                   NULL, contents, 1, cases, count);
}

/* -- success against load -------------------------------------------------- */

static const char *say_cost(stg_album *a, const stg_overload_case *cases,
                            size_t count)
{
    stg_paper p = stg_paper_on(a->memory);
    size_t best = 0, most = 0;
    double success = -1, load = -1;
    const char *text;

    for (size_t i = 0; i < count; i++) {
        const stg_overload_summary *s = cases[i].summary;
        double good =
            stg_overload_summary_figure(s, STG_FIGURE_SUCCESS, NULL).mean;
        double sent =
            stg_overload_summary_figure(s, STG_FIGURE_AMPLIFICATION, NULL).mean;

        best = good > success ? i : best;
        success = good > success ? good : success;
        most = sent > load ? i : most;
        load = sent > load ? sent : load;
    }
    if (best == most)
        stg_paper_form(&p, "Most success and most load: %s", cases[best].name);
    else
        stg_paper_form(&p, "Most success: %s. Most load: %s", cases[best].name,
                       cases[most].name);
    text = stg_album_text(a, &p);
    stg_paper_free(&p);
    return text;
}

static stg_chart_point spot_of(const stg_overload_summary *s)
{
    stg_estimate x =
        stg_overload_summary_figure(s, STG_FIGURE_AMPLIFICATION, NULL);
    stg_estimate y = stg_overload_summary_figure(s, STG_FIGURE_SUCCESS, NULL);

    return (stg_chart_point){
        .x = x.mean, .x_se = x.se, .y = 100 * y.mean, .y_se = 100 * y.se};
}

void stg_overload_chart_cost(stg_album *a, const stg_overload_case *cases,
                             size_t count)
{
    stg_sheet sheet;

    if (!stg_album_add(a, "overload-cost", 1, count, &sheet))
        return;
    sheet.chart->title = say_cost(a, cases, count);
    sheet.chart->note = "Up is better, and left. Crosses: two standard errors.";
    sheet.chart->x = (stg_chart_axis){.label = "requests for each operation",
                                      .unit = "requests"};
    sheet.panels[0].y = (stg_chart_axis){
        .label = "operations that succeed", .unit = "%", .is_from_zero = true};
    for (size_t i = 0; i < count; i++) {
        stg_chart_series *s = &sheet.series[i];
        stg_chart_point *point = stg_album_points(a, s, 1);

        s->name = cases[i].name;
        s->mark = STG_MARK_SPOT;
        s->colour = (unsigned)i;
        if (point != NULL)
            *point = spot_of(cases[i].summary);
    }
}
