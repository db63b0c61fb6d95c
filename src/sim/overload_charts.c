#include "sim/overload_report.h"

/* Overloads as charts. A case has the same colour in all of them, the number of
 * its place in the list.
 *
 * The title of a chart is its finding. Each title asks stg_overload_say_once()
 * first: nothing follows from a single run. A title that compares two cases
 * must ask ends.is_apart; without that it would report chance as a difference.
 *
 * Texts that are made here belong to the chart set. Names of cases are
 * borrowed, and outlive it. Times are ms in charts, ns in options. */

/* -- points ---------------------------------------------------------------- */

typedef stg_estimate estimate_of(const stg_overload_interval *s, int what);

static stg_estimate rate_of(const stg_overload_interval *s, int what)
{
    return stg_overload_sum_estimate(&s->series[what]);
}

/* Nothing succeeded, so there is no latency: 0, which a logarithmic axis leaves
 * out. */
static stg_estimate latency_of(const stg_overload_interval *s, int what)
{
    return stg_overload_sum_estimate(&s->waits[what]);
}

/* A line for a case, over time; a point is in the middle of its interval. */
static void draw(stg_chart_set *a, stg_chart_series *series,
                 const stg_overload_case *c, estimate_of *find, int what)
{
    const stg_overload_summary *s = c->summary;
    uint32_t count = stg_overload_summary_stretches(s);
    stg_chart_point *points = stg_chart_set_points(a, series, count);

    for (uint32_t i = 0; points != NULL && i < count; i++) {
        stg_estimate e = find(&s->intervals[i], what);

        points[i] =
            (stg_chart_point){.x = (stg_overload_summary_begin(s, i) +
                                    stg_overload_summary_begin(s, i + 1)) /
                                   2,
                              .y = e.mean,
                              .y_se = e.se};
    }
}

/* -- charts ---------------------------------------------------------------- */

/* By stg_trigger_kind. */
static const char *const trouble_names[] = {NULL,        "outage", "stall",
                                            "slow-down", "spike",  "errors"};

/* The factor does not matter: it is no part of a span's name, and two spans
 * that look alike are drawn as one. */
static bool is_same_span(const stg_trigger *a, const stg_trigger *b)
{
    return a->kind == b->kind && a->from_at == b->from_at &&
           a->until_at == b->until_at;
}

/* "outage", or where there are several "outage 20 s to 30 s". */
static const char *name_span(stg_chart_set *a, const stg_trigger *t,
                             bool is_only)
{
    stg_text_buffer p = stg_text_buffer_on(a->memory);
    const char *text;

    if (is_only)
        return trouble_names[t->kind];
    stg_text_buffer_form(&p, "%s ", trouble_names[t->kind]);
    stg_text_buffer_put_time(&p, (double)t->from_at / 1e6);
    stg_text_buffer_put(&p, " to ");
    stg_text_buffer_put_time(&p, (double)t->until_at / 1e6);
    text = stg_chart_set_text(a, &p);
    stg_text_buffer_free(&p);
    return text;
}

/* Whether it is a trouble, and no case before has it. */
static bool is_new(const stg_overload_case *cases, size_t i)
{
    const stg_trigger *t = &cases[i].summary->options->trigger;

    for (size_t k = 0; k < i; k++)
        if (is_same_span(&cases[k].summary->options->trigger, t))
            return false;
    return t->kind != STG_TRIGGER_NONE;
}

/* Each trouble that the cases have, once. */
static void shade(stg_chart_set *a, stg_chart *chart,
                  const stg_overload_case *cases, size_t count)
{
    stg_chart_span *spans = stg_chart_set_take(a, count * sizeof *spans);
    size_t distinct = 0, next = 0;

    chart->x = (stg_chart_axis){
        .label = "time", .is_time = true, .is_from_zero = true};
    if (spans == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        distinct += is_new(cases, i);
    for (size_t i = 0; i < count; i++) {
        const stg_trigger *t = &cases[i].summary->options->trigger;

        if (is_new(cases, i))
            spans[next++] =
                (stg_chart_span){.name = name_span(a, t, distinct == 1),
                                 .from = (double)t->from_at / 1e6,
                                 .to = (double)t->until_at / 1e6};
    }
    chart->spans = spans;
    chart->span_count = distinct;
}

/* Requests a second that the service can do, where that is one number and the
 * same in all cases; else 0. Of services in a row it is the last one, whose
 * requests are the ones that are counted. */
static double capacity_of(const stg_overload_case *cases, size_t count)
{
    double capacity = 0;

    for (size_t i = 0; i < count; i++) {
        const stg_overload_options *o = cases[i].summary->options;
        const stg_sim_service_options *s = &o->service;
        double time = (double)stg_distribution_mean(&s->time) / 1e9;
        double one = time > 0 ? s->workers / time : 0;

        if (s->times != NULL || s->drag > 0 || (i > 0 && one != capacity))
            return 0;
        capacity = one;
    }
    return capacity;
}

/* A level line below all others, with a point where the first case has them. */
static void draw_capacity(stg_chart_set *a, const stg_chart_series *first,
                          double capacity, stg_chart_series *s)
{
    stg_chart_point *points = stg_chart_set_points(a, s, first->count);

    s->name = "capacity";
    s->colour = 7;
    s->panel = first->panel;
    for (size_t i = 0; points != NULL && i < first->count; i++)
        points[i] = (stg_chart_point){.x = first->points[i].x, .y = capacity};
}

/* What a panel shows of each case. */
typedef struct content {
    stg_chart_panel panel;
    estimate_of *find;
    int what;
    bool has_capacity;
} content;

/* A panel for each content, and in it a line for each case. The series of all
 * panels are in one array, panel by panel. */
static void draw_over_time(stg_chart_set *a, const char *name,
                           const char *title, const char *note,
                           const content *contents, size_t panels,
                           const stg_overload_case *cases, size_t count)
{
    stg_chart_draft draft;
    double capacity = 0;

    for (size_t p = 0; p < panels; p++)
        if (contents[p].has_capacity)
            capacity = capacity_of(cases, count);
    if (!stg_chart_set_add(a, name, panels, panels * count + (capacity > 0),
                           &draft))
        return;
    draft.chart->title = title;
    draft.chart->note = note;
    shade(a, draft.chart, cases, count);
    for (size_t p = 0; p < panels; p++) {
        draft.panels[p] = contents[p].panel;
        for (size_t i = 0; i < count; i++) {
            stg_chart_series *s = &draft.series[p * count + i];

            s->name = cases[i].name;
            s->colour = (unsigned)i;
            s->panel = (unsigned)p;
            draw(a, s, &cases[i], contents[p].find, contents[p].what);
        }
        if (capacity > 0 && contents[p].has_capacity)
            draw_capacity(a, &draft.series[p * count], capacity,
                          &draft.series[panels * count]);
    }
}

void stg_overload_chart_rates(stg_chart_set *a, const stg_overload_case *cases,
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
         .what = STG_SERIES_OFFERED,
         .has_capacity = true},
        {.panel = {.name = "queue",
                   .y = {.label = "requests that wait",
                         .unit = "requests",
                         .is_from_zero = true}},
         .find = rate_of,
         .what = STG_SERIES_QUEUE},
    };
    stg_text_buffer buffer = stg_text_buffer_on(a->memory);

    if (title == NULL) {
        stg_overload_say_finding(cases, count, &buffer);
        title = stg_chart_set_text(a, &buffer);
    }
    draw_over_time(a, "overload-rates", title,
                   "Shaded: the trouble. A goodput that stays below what it "
                   "was before has not recovered. Bands: two standard errors.",
                   contents, 3, cases, count);
    stg_text_buffer_free(&buffer);
}

typedef void sentence(const stg_overload_case *cases, size_t count,
                      stg_text_buffer *p);

/* The sentence, as a title. */
static const char *say(stg_chart_set *a, sentence *put,
                       const stg_overload_case *cases, size_t count)
{
    stg_text_buffer p = stg_text_buffer_on(a->memory);
    const char *text;

    if (!stg_overload_say_once(cases, count, &p))
        put(cases, count, &p);
    text = stg_chart_set_text(a, &p);
    stg_text_buffer_free(&p);
    return text;
}

static double figure_of(const stg_overload_case *c, stg_figure figure)
{
    return stg_overload_summary_figure(c->summary, figure, NULL).mean;
}

/* p99 is of the operations that succeed only: a policy that gives up early
 * looks fast here. So the sentence says of which operations it speaks. */
static void say_latency(const stg_overload_case *cases, size_t count,
                        stg_text_buffer *p)
{
    stg_overload_ends ends;

    if (!stg_overload_rank(cases, count, STG_FIGURE_P99, &ends)) {
        stg_text_buffer_put(p, "Nothing succeeds");
        return;
    }
    stg_text_buffer_put(
        p, "99 in 100 of the operations that succeed do so within ");
    stg_text_buffer_put_time(p, figure_of(ends.least, STG_FIGURE_P99));
    stg_overload_put_end(&ends, ends.least, p);
    if (!ends.is_apart)
        return;
    stg_text_buffer_put(p, ", and within ");
    stg_text_buffer_put_time(p, figure_of(ends.most, STG_FIGURE_P99));
    stg_overload_put_end(&ends, ends.most, p);
}

/* Singular or plural by the digits that were printed: 1.002 is printed as 1. */
static void put_requests(const stg_overload_case *c, stg_text_buffer *p)
{
    size_t begin = p->length;

    stg_text_buffer_put_rounded(p, figure_of(c, STG_FIGURE_AMPLIFICATION));
    stg_text_buffer_put(p, p->length - begin == 1 && p->text[begin] == '1'
                               ? " request"
                               : " requests");
}

/* The most comes first: it is what the service has to bear. */
static void say_amplification(const stg_overload_case *cases, size_t count,
                              stg_text_buffer *p)
{
    stg_overload_ends ends;

    if (!stg_overload_rank(cases, count, STG_FIGURE_AMPLIFICATION, &ends))
        return;
    stg_text_buffer_put(p, "An operation becomes ");
    put_requests(ends.most, p);
    stg_overload_put_end(&ends, ends.most, p);
    if (!ends.is_apart)
        return;
    stg_text_buffer_put(p, ", and ");
    put_requests(ends.least, p);
    stg_overload_put_end(&ends, ends.least, p);
}

void stg_overload_chart_latency(stg_chart_set *a,
                                const stg_overload_case *cases, size_t count)
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

    draw_over_time(a, "overload-latency", say(a, say_latency, cases, count),
                   "From an operation's begin, all its attempts and waits "
                   "included; no line where none succeeds. Bands: two standard "
                   "errors.",
                   contents, 2, cases, count);
}

void stg_overload_chart_amplification(stg_chart_set *a,
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

    draw_over_time(
        a, "overload-amplification", say(a, say_amplification, cases, count),
        "Amplification: requests sent for each operation that "
        "begins, retries and hedges too. Bands: two standard errors.",
        contents, 1, cases, count);
}

/* -- success against load -------------------------------------------------- */

static void put_cost(const stg_overload_ends *ends,
                     const stg_overload_case *end, stg_text_buffer *p)
{
    stg_overload_put_success(end, p);
    stg_text_buffer_put(p, " of the operations succeed");
    stg_overload_put_end(ends, end, p);
    stg_text_buffer_put(p, ", for ");
    put_requests(end, p);
    stg_text_buffer_put(p, " each");
}

static void say_cost(const stg_overload_case *cases, size_t count,
                     stg_text_buffer *p)
{
    stg_overload_ends ends;

    if (!stg_overload_rank(cases, count, STG_FIGURE_SUCCESS, &ends))
        return;
    put_cost(&ends, ends.most, p);
    if (!ends.is_apart)
        return;
    stg_text_buffer_put(p, "; ");
    put_cost(&ends, ends.least, p);
}

/* Success is a share from 0 to 1, and its axis is in percent; so are errors. */
static stg_chart_point spot_of(const stg_overload_summary *s)
{
    stg_estimate x =
        stg_overload_summary_figure(s, STG_FIGURE_AMPLIFICATION, NULL);
    stg_estimate y = stg_overload_summary_figure(s, STG_FIGURE_SUCCESS, NULL);

    return (stg_chart_point){
        .x = x.mean, .x_se = x.se, .y = 100 * y.mean, .y_se = 100 * y.se};
}

void stg_overload_chart_cost(stg_chart_set *a, const stg_overload_case *cases,
                             size_t count)
{
    stg_chart_draft draft;

    if (!stg_chart_set_add(a, "overload-cost", 1, count, &draft))
        return;
    draft.chart->title = say(a, say_cost, cases, count);
    draft.chart->note = "Up is better, and left. Crosses: two standard errors.";
    draft.chart->x = (stg_chart_axis){.label = "requests for each operation",
                                      .unit = "requests"};
    draft.panels[0].y = (stg_chart_axis){
        .label = "operations that succeed", .unit = "%", .is_from_zero = true};
    for (size_t i = 0; i < count; i++) {
        stg_chart_series *s = &draft.series[i];
        stg_chart_point *point = stg_chart_set_points(a, s, 1);

        s->name = cases[i].name;
        s->mark = STG_MARK_SPOT;
        s->colour = (unsigned)i;
        if (point != NULL)
            *point = spot_of(cases[i].summary);
    }
}
