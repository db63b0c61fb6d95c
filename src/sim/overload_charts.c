#include "sim/overload_charts.h"

/* -- points ---------------------------------------------------------------- */

typedef stg_estimate estimate_of(const stg_overload_stretch *s, int what);

static stg_estimate rate_of(const stg_overload_stretch *s, int what)
{
    return stg_overload_sum_estimate(&s->series[what]);
}

/* Nothing succeeded, so there is no latency: 0, which a logarithmic axis leaves
 * out. */
static stg_estimate latency_of(const stg_overload_stretch *s, int what)
{
    return stg_overload_sum_estimate(&s->waits[what]);
}

/* A line for a case, over time; a point is in the middle of its stretch. */
static void draw(stg_album *a, stg_chart_series *series,
                 const stg_overload_case *c, estimate_of *find, int what)
{
    const stg_overload_summary *s = c->summary;
    uint32_t count = stg_overload_summary_stretches(s);
    stg_chart_point *points = stg_album_points(a, series, count);

    for (uint32_t i = 0; points != NULL && i < count; i++) {
        stg_estimate e = find(&s->stretches[i], what);

        points[i] =
            (stg_chart_point){.x = (stg_overload_summary_begin(s, i) +
                                    stg_overload_summary_begin(s, i + 1)) /
                                   2,
                              .y = e.mean,
                              .y_se = e.se};
    }
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
    estimate_of *find;
    int what;
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
         .find = rate_of,
         .what = STG_SERIES_GOODPUT},
        {.panel = {.name = "offered load",
                   .y = {.label = "requests sent, retries too, a second",
                         .unit = "a second",
                         .is_from_zero = true}},
         .find = rate_of,
         .what = STG_SERIES_OFFERED},
        {.panel = {.name = "queue",
                   .y = {.label = "requests that wait",
                         .unit = "requests",
                         .is_from_zero = true}},
         .find = rate_of,
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

/* The cases of the least and the most of a figure; false: none has it. */
static bool rank(const stg_overload_case *cases, size_t count,
                 stg_figure figure, const stg_overload_case **least,
                 const stg_overload_case **most)
{
    double low = 0, high = 0;

    *least = *most = NULL;
    for (size_t i = 0; i < count; i++) {
        uint32_t has;
        double mean =
            stg_overload_summary_figure(cases[i].summary, figure, &has).mean;

        if (has == 0)
            continue;
        if (*least == NULL || mean < low) {
            *least = &cases[i];
            low = mean;
        }
        if (*most == NULL || mean > high) {
            *most = &cases[i];
            high = mean;
        }
    }
    return *least != NULL;
}

static double figure_of(const stg_overload_case *c, stg_figure figure)
{
    return stg_overload_summary_figure(c->summary, figure, NULL).mean;
}

/* " with A", where there is more than one. */
static void put_with(stg_paper *p, const stg_overload_case *c, size_t count)
{
    if (count > 1)
        stg_paper_form(p, " with %s", c->name);
}

static const char *keep(stg_album *a, stg_paper *p)
{
    const char *text = stg_album_text(a, p);

    stg_paper_free(p);
    return text;
}

static const char *say_latency(stg_album *a, const stg_overload_case *cases,
                               size_t count)
{
    const stg_overload_case *quick, *slow;
    stg_paper p = stg_paper_on(a->memory);

    if (!rank(cases, count, STG_FIGURE_P99, &quick, &slow)) {
        stg_paper_put(&p, "Nothing succeeds");
        return keep(a, &p);
    }
    stg_paper_put(&p, "99 in 100 of the operations that succeed do so within ");
    stg_paper_put_time(&p, figure_of(quick, STG_FIGURE_P99));
    put_with(&p, quick, count);
    if (quick != slow) {
        stg_paper_put(&p, ", and within ");
        stg_paper_put_time(&p, figure_of(slow, STG_FIGURE_P99));
        put_with(&p, slow, count);
    }
    return keep(a, &p);
}

static const char *
say_amplification(stg_album *a, const stg_overload_case *cases, size_t count)
{
    const stg_overload_case *least, *most;
    stg_paper p = stg_paper_on(a->memory);

    (void)rank(cases, count, STG_FIGURE_AMPLIFICATION, &least, &most);
    if (most == NULL)
        return keep(a, &p);
    stg_paper_put(&p, "An operation becomes ");
    stg_paper_put_people(&p, figure_of(most, STG_FIGURE_AMPLIFICATION));
    stg_paper_put(&p, " requests");
    put_with(&p, most, count);
    if (least != most) {
        stg_paper_put(&p, ", and ");
        stg_paper_put_people(&p, figure_of(least, STG_FIGURE_AMPLIFICATION));
        put_with(&p, least, count);
    }
    return keep(a, &p);
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
         .what = STG_WAIT_MEDIAN},
        {.panel = {.name = "all but one in a hundred",
                   .y = {.label = "latency, p99",
                         .is_time = true,
                         .is_log = true}},
         .find = latency_of,
         .what = STG_WAIT_P99},
    };

    draw_over_time(a, "overload-latency", say_latency(a, cases, count),
                   "From an operation's begin, all its attempts and waits "
                   "included; no line where none succeeds. Bands: two standard "
                   "errors.",
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
         .find = rate_of,
         .what = STG_SERIES_AMPLIFICATION},
    };

    draw_over_time(a, "overload-amplification",
                   say_amplification(a, cases, count),
                   "Amplification: requests sent for each operation that "
                   "begins, retries too. Bands: two standard errors.",
                   contents, 1, cases, count);
}

/* -- success against load -------------------------------------------------- */

static void put_share(stg_paper *p, double share)
{
    stg_paper_put_people(p, 100 * share);
    stg_paper_put(p, "\u00a0%");
}

static const char *say_cost(stg_album *a, const stg_overload_case *cases,
                            size_t count)
{
    const stg_overload_case *worst, *best;
    stg_paper p = stg_paper_on(a->memory);

    if (rank(cases, count, STG_FIGURE_SUCCESS, &worst, &best)) {
        put_share(&p, figure_of(best, STG_FIGURE_SUCCESS));
        stg_paper_put(&p, " of the operations succeed");
        put_with(&p, best, count);
        stg_paper_put(&p, ", for ");
        stg_paper_put_people(&p, figure_of(best, STG_FIGURE_AMPLIFICATION));
        stg_paper_put(&p, " requests each");
        if (worst != best) {
            stg_paper_put(&p, "; ");
            put_share(&p, figure_of(worst, STG_FIGURE_SUCCESS));
            put_with(&p, worst, count);
            stg_paper_put(&p, ", for ");
            stg_paper_put_people(&p,
                                 figure_of(worst, STG_FIGURE_AMPLIFICATION));
        }
    }
    return keep(a, &p);
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
