/* What contention does over time: calls in each slice of time, call by call,
 * and who is done by when.
 *
 * A policy that takes much longer than the others is cut off (window_of()), and
 * the note says so: a chart that cuts must pass is_cut on to time_note(). The
 * title of calls over time is made from the same window, so that it says what
 * is seen.
 *
 * Series are sums over all repetitions; stg_sim_series_mean() makes means of
 * them. */
#include "sim/contention_report.h"

static const stg_contention_case *last_of(const stg_contention_found *f)
{
    return &f->cases[f->count - f->policies];
}

static double ms_of(stg_ns ns)
{
    return (double)ns / 1e6;
}

/* -- how long a time to show */

/* One slow policy must not press the others into a corner: at most half as
 * much again as the median of the policies takes. */
static double window_of(const stg_contention_found *f, bool *is_cut)
{
    const double more = 1.5;
    const stg_contention_case *last = last_of(f);
    double longest = 0, median = 0;

    for (size_t i = 0; i < f->policies; i++) {
        double mine = last[i].completion_ms.mean;
        size_t below = 0, same = 0;

        longest = mine > longest ? mine : longest;
        for (size_t k = 0; k < f->policies; k++) {
            below += last[k].completion_ms.mean < mine;
            same += last[k].completion_ms.mean == mine;
        }
        if (below <= f->policies / 2 && below + same > f->policies / 2)
            median = mine;
    }
    *is_cut = longest > more * median;
    return *is_cut ? more * median : longest;
}

/* -- calls in each slice */

/* The share of the calls until `end` that fall into the busiest tenth of the
 * slices: sorted by counting down from the top. The same span for all policies,
 * or one that ends soon is crowded, and one that goes on is not. */
static stg_estimate crowding(const stg_contention_case *c, double end)
{
    const stg_sim_series *s = &c->totals->calls;
    size_t slices = (size_t)(end / ms_of(s->width)) + 1, tenth;
    size_t count = slices < s->used ? slices : s->used, left;
    double busiest = 0, all = 0, squares = 0;
    uint64_t low = 0, high = 0;
    stg_estimate e = {0};

    tenth = left = (slices + 9) / 10;
    for (size_t i = 0; i < count; i++) {
        all += (double)s->sums[i];
        high = s->sums[i] > high ? s->sums[i] : high;
    }
    while (low < high) { // the tenth-largest sum
        uint64_t middle = low + (high - low) / 2;
        size_t larger = 0;

        for (size_t i = 0; i < count; i++)
            larger += s->sums[i] > middle;
        if (larger < tenth)
            high = middle;
        else
            low = middle + 1;
    }
    for (int is_equal = 0; is_equal < 2; is_equal++)
        for (size_t i = 0; i < count && left > 0; i++) {
            double se;

            if (is_equal ? s->sums[i] != low : s->sums[i] <= low)
                continue;
            (void)stg_sim_series_mean(s, i, &se);
            busiest += (double)s->sums[i];
            squares += se * se;
            left--;
        }
    if (all > 0) {
        e.mean = busiest / all;
        e.se = stg_estimate_root(squares) * (double)s->runs / all;
    }
    return e;
}

/* From 99.5 % on, "nearly all": rounding to 100 % would claim more than it
 * is. */
static void put_percent(stg_text_buffer *p, double share)
{
    const double nearly_all = 0.995;

    if (share >= nearly_all) {
        stg_text_buffer_put(p, share < 1 ? "nearly all" : "all");
        return;
    }
    stg_text_buffer_put_fixed(p, 100 * share, 0);
    stg_text_buffer_put(p, "\u00a0%");
}

static void say_times(const stg_contention_found *f, stg_text_buffer *p)
{
    const stg_contention_case *last = last_of(f), *crowded = last, *even = last;
    stg_estimate most, least;
    bool is_cut;
    double end = window_of(f, &is_cut);

    most = least = crowding(last, end);
    for (size_t i = 1; i < f->policies; i++) {
        stg_estimate e = crowding(&last[i], end);

        if (e.mean > most.mean) {
            most = e;
            crowded = &last[i];
        }
        if (e.mean < least.mean) {
            least = e;
            even = &last[i];
        }
    }
    if (crowded != even && !stg_estimate_is_apart(most, least))
        stg_text_buffer_put(p, "With each policy, about ");
    else
        stg_text_buffer_form(p, "With \"%s\", ", crowded->policy);
    put_percent(p, most.mean);
    stg_text_buffer_put(p, " of the calls fall into a tenth of the time");
    if (!stg_estimate_is_apart(most, least))
        return;
    stg_text_buffer_form(p, "; with \"%s\", ", even->policy);
    put_percent(p, least.mean);
}

/* Bins up to the end of the window, each with its standard error. */
static bool draw_bins(stg_chart_set *a, const stg_contention_case *c,
                      double end, stg_chart_series *s)
{
    const stg_sim_series *calls = &c->totals->calls;
    double width = ms_of(calls->width);
    size_t count = (size_t)(end / width) + 1;
    stg_chart_point *points;

    count = count < calls->used ? count : calls->used;
    points = stg_chart_set_points(a, s, count);
    s->name = c->policy;
    s->colour = c->colour;
    s->mark = STG_MARK_AREA;
    for (size_t i = 0; points != NULL && i < count; i++) {
        points[i].x = (double)i * width;
        points[i].y = stg_sim_series_mean(calls, i, &points[i].y_se);
    }
    return points != NULL;
}

/* A level line over the whole time. */
static bool draw_capacity(stg_chart_set *a, double calls, double end,
                          stg_chart_series *s)
{
    stg_chart_point *points = stg_chart_set_points(a, s, 2);

    s->name = "capacity";
    s->colour = 7;
    s->mark = STG_MARK_LINE;
    if (points == NULL)
        return false;
    points[0] = (stg_chart_point){.y = calls};
    points[1] = (stg_chart_point){.x = end, .y = calls};
    return true;
}

static const char *label_of(stg_chart_set *a, const stg_sim_series *s)
{
    stg_text_buffer p = stg_text_buffer_on(a->memory);
    const char *text;

    stg_text_buffer_put(&p, "calls in ");
    stg_text_buffer_put_time(&p, ms_of(s->width));
    text = stg_chart_set_text(a, &p);
    stg_text_buffer_free(&p);
    return text;
}

/* What the axis leaves out is said. */
static const char *time_note(stg_chart_set *a, const char *more, double end,
                             bool is_cut, const char *note)
{
    stg_text_buffer p = stg_text_buffer_on(a->memory);
    const char *text;

    stg_text_buffer_put(&p, more);
    if (is_cut) {
        stg_text_buffer_put(&p, "The axis ends at ");
        stg_text_buffer_put_time(&p, end);
        stg_text_buffer_put(&p, ", and some go on. ");
    }
    stg_text_buffer_put(&p, note == NULL ? "" : note);
    text = stg_chart_set_text(a, &p);
    stg_text_buffer_free(&p);
    return text;
}

bool stg_contention_chart_time(stg_chart_set *a, const stg_contention_found *f)
{
    const stg_contention_case *last = last_of(f);
    stg_chart_draft draft;
    double end;
    bool is_cut;

    if (last->totals->calls.used == 0)
        return true;
    if (!stg_chart_set_add(a, "calls-over-time", f->policies,
                           f->capacity > 0 ? 2 * f->policies : f->policies,
                           &draft))
        return false;
    end = window_of(f, &is_cut);
    draft.chart->title = stg_contention_title(a, f, say_times);
    draft.chart->note = time_note(
        a,
        "Mean over the repetitions, at the largest number of clients, with a "
        "band of 2 standard errors. ",
        end, is_cut, f->note);
    draft.chart->is_y_shared = true;
    draft.chart->x =
        (stg_chart_axis){.label = "time", .is_time = true, .to = end};
    for (size_t p = 0; p < f->policies; p++) {
        stg_chart_series *bins =
            &draft.series[f->capacity > 0 ? f->policies + p : p];

        draft.panels[p] = (stg_chart_panel){
            .name = last[p].policy,
            .y = {.label = label_of(a, &last[p].totals->calls),
                  .unit = "calls"}};
        bins->panel = (unsigned)p;
        if (!draw_bins(a, &last[p], end, bins))
            return false;
        if (f->capacity > 0) { // before the bins: it lies over them
            draft.series[p].panel = (unsigned)p;
            if (!draw_capacity(
                    a, f->capacity * ms_of(last[p].totals->calls.width) / 1000,
                    end, &draft.series[p]))
                return false;
        }
    }
    return !a->is_short;
}

/* -- who is done by when */

static void put_half(stg_text_buffer *p, const stg_contention_case *c)
{
    stg_text_buffer_put_time(p, stg_contention_half(c).mean);
    stg_text_buffer_put(p, " with ");
    stg_contention_put_policy(p, c);
}

/* Of those who succeed: how many do not is said behind the policy's name. */
static void say_done(const stg_contention_found *f, stg_text_buffer *p)
{
    const stg_contention_case *last = last_of(f), *quick = NULL, *slow = NULL;

    for (size_t i = 0; i < f->policies; i++) {
        double half = stg_contention_half(&last[i]).mean;

        if (last[i].totals->done.count == 0)
            continue;
        if (quick == NULL || half < stg_contention_half(quick).mean)
            quick = &last[i];
        if (slow == NULL || half > stg_contention_half(slow).mean)
            slow = &last[i];
    }
    if (quick == NULL || slow == NULL) {
        stg_text_buffer_put(p, "No client succeeds");
        return;
    }
    stg_text_buffer_put(p, "Half of those who succeed are done after ");
    if (quick != slow && !stg_estimate_is_apart(stg_contention_half(quick),
                                                stg_contention_half(slow))) {
        stg_text_buffer_put(p, "about ");
        stg_text_buffer_put_time(p, stg_contention_half(quick).mean);
        stg_text_buffer_put(p, " with each policy");
        return;
    }
    put_half(p, quick);
    if (quick == slow)
        return;
    stg_text_buffer_put(p, ", and after ");
    put_half(p, slow);
}

/* The first point is (0, 0): the curve begins with nobody done. It is a share
 * of all clients, so a policy with which many give up ends below 100 %. */
static bool draw_done(stg_chart_set *a, const stg_contention_case *c,
                      stg_chart_series *s)
{
    const stg_sim_curve *curve = &c->totals->by_then;
    size_t count = stg_sim_curve_read(curve, NULL);
    stg_sim_curve_point *read =
        stg_chart_set_take(a, (count + 1) * sizeof *read);
    stg_chart_point *points = stg_chart_set_points(a, s, count + 1);

    s->name = c->policy;
    s->colour = c->colour;
    s->mark = STG_MARK_STEP;
    if (read == NULL || points == NULL)
        return false;
    (void)stg_sim_curve_read(curve, read);
    for (size_t i = 0; i < count; i++)
        points[i + 1] = (stg_chart_point){
            .x = ms_of(read[i].at),
            .y = 100 * read[i].count.mean / c->clients,
            .y_se = 100 * read[i].count.se / c->clients,
        };
    return true;
}

bool stg_contention_chart_done(stg_chart_set *a, const stg_contention_found *f)
{
    const stg_contention_case *last = last_of(f);
    stg_chart_draft draft;

    if (!stg_chart_set_add(a, "done-by-time", 1, f->policies, &draft))
        return false;
    draft.chart->title = stg_contention_title(a, f, say_done);
    draft.chart->note = time_note(
        a,
        "Share of all clients that have succeeded, at the largest number of "
        "clients; mean over the repetitions, with a band of 2 standard "
        "errors. ",
        0, false, f->note);
    draft.chart->x = (stg_chart_axis){.label = "time", .is_time = true};
    draft.panels[0].y =
        (stg_chart_axis){.label = "clients done", .unit = "%", .to = 100};
    for (size_t p = 0; p < f->policies; p++)
        if (!draw_done(a, &last[p], &draft.series[p]))
            return false;
    // Slow ones make the axis logarithmic, or the quick ones are all one.
    for (size_t p = 0; p < f->policies; p++)
        for (size_t k = 0; k < f->policies; k++)
            if (last[p].totals->done.most > 8 * last[k].totals->done.most)
                draft.chart->x.is_log = true;
    return !a->is_short;
}

/* -- call by call */

/* As window_of(), by the last calls. With equal ones there may be no median
 * here; then nothing is cut. */
static double trace_window(const stg_contention_trace *traces, size_t count,
                           bool *is_cut)
{
    const double more = 1.5;
    double longest = 0, median = 0;

    for (size_t i = 0; i < count; i++) {
        double mine =
            traces[i].count > 0 ? traces[i].calls[traces[i].count - 1].x : 0;
        size_t below = 0;

        longest = mine > longest ? mine : longest;
        for (size_t k = 0; k < count; k++)
            below += k != i && traces[k].count > 0 &&
                     traces[k].calls[traces[k].count - 1].x < mine;
        if (below == count / 2)
            median = mine;
    }
    *is_cut = median > 0 && longest > more * median;
    return *is_cut ? more * median : longest;
}

bool stg_contention_chart_traces(stg_chart_set *a,
                                 const stg_contention_trace *traces,
                                 size_t count, const char *note)
{
    stg_chart_draft draft;
    double end;
    bool is_cut;

    if (count == 0)
        return true;
    if (!stg_chart_set_add(a, "clients-by-time", count, count, &draft))
        return false;
    end = trace_window(traces, count, &is_cut);
    draft.chart->title = "One repetition, call by call";
    draft.chart->note =
        time_note(a, "A dot is a call of a client. ", end, is_cut, note);
    draft.chart->is_y_shared = true;
    draft.chart->x = (stg_chart_axis){
        .label = "time", .is_time = true, .is_root = true, .to = end};
    for (size_t i = 0; i < count; i++) {
        const stg_contention_trace *t = &traces[i];
        size_t shown = t->count;

        while (shown > 0 && t->calls[shown - 1].x > end)
            shown--;
        draft.panels[i] = (stg_chart_panel){
            .name = t->policy, .y = {.label = "client", .unit = "number"}};
        draft.series[i] = (stg_chart_series){.name = t->policy,
                                             .mark = STG_MARK_DOTS,
                                             .colour = t->colour,
                                             .panel = (unsigned)i,
                                             .points = t->calls,
                                             .count = shown};
    }
    return !a->is_short;
}
