/* Calls and completion against the number of clients and against one another,
 * and the waits. What happens over time is in contention_times.c.
 *
 * Titles speak of the largest number of clients only: its cases are the last
 * ones, one a policy (last_of()). A difference is named only if it is more than
 * two standard errors; until then policies are equally good (is_least()).
 *
 * A client that gives up makes few calls and is done soon, which looks like a
 * good policy. So titles that rank calls or completion ask is_success_alike()
 * first, and say something else if it is not so. */
#include "sim/contention_report.h"

/* The cases of the largest number of clients. */
static const stg_contention_case *last_of(const stg_contention_found *f)
{
    return &f->cases[f->count - f->policies];
}

typedef stg_estimate reading(const stg_contention_case *c);

static stg_estimate calls_of(const stg_contention_case *c)
{
    return c->calls;
}

static stg_estimate completion_of(const stg_contention_case *c)
{
    return c->completion_ms;
}

/* The least and the most of a number, at the largest number of clients. */
static void rank(const stg_contention_found *f, reading *read,
                 const stg_contention_case **least,
                 const stg_contention_case **most)
{
    const stg_contention_case *last = last_of(f);

    *least = *most = last;
    for (size_t i = 1; i < f->policies; i++) {
        if (read(&last[i]).mean < read(*least).mean)
            *least = &last[i];
        if (read(&last[i]).mean > read(*most).mean)
            *most = &last[i];
    }
}

/* Whether nothing says that c is not as good as the least. */
static bool is_least(const stg_contention_case *c,
                     const stg_contention_case *least, reading *read)
{
    return !stg_estimate_is_apart(read(c), read(least));
}

static stg_estimate successes_of(const stg_contention_case *c)
{
    return c->successes;
}

/* Whether as many clients succeed with each policy. */
static bool is_success_alike(const stg_contention_found *f)
{
    const stg_contention_case *least, *most;

    rank(f, successes_of, &least, &most);
    return is_least(most, least, successes_of);
}

/* Calls for each success; all of them where there is none. The error is that
 * of a ratio, to the first order, with calls and successes taken as
 * independent. */
static stg_estimate each_of(const stg_contention_case *c)
{
    double n = c->successes.mean > 0 ? c->successes.mean : 1;
    double each = c->calls.mean / n;
    double calls = c->calls.se / n, successes = each * c->successes.se / n;

    return (stg_estimate){
        each, stg_estimate_root(calls * calls + successes * successes)};
}

static void put_clients(stg_text_buffer *p, uint32_t clients)
{
    stg_text_buffer_put_counted(p, clients, " client", " clients");
}

static void put_calls(stg_text_buffer *p, const stg_contention_case *c)
{
    stg_text_buffer_put_rounded(p, c->calls.mean);
    stg_text_buffer_put(p, " calls");
}

/* "3.5 times", "12 times" */
static void put_times(stg_text_buffer *p, double ratio)
{
    stg_text_buffer_put_fixed(p, ratio, ratio < 10 ? 1 : 0);
    stg_text_buffer_put(p, " times");
}

/* One digit after the point for shares below 10 %, and none above. */
void stg_contention_put_policy(stg_text_buffer *buffer,
                               const stg_contention_case *c)
{
    uint64_t all = c->totals->attempts.count, done = c->totals->done.count;
    double lost = all > done ? (double)(all - done) / (double)all : 0;

    stg_text_buffer_form(buffer, "\"%s\"", c->policy);
    if (lost <= 0)
        return;
    stg_text_buffer_put(buffer, " (");
    stg_text_buffer_put_rounded(buffer, lost < 0.1
                                            ? 0.1 * (int)(1000 * lost + 0.5)
                                            : (int)(100 * lost + 0.5));
    stg_text_buffer_put(buffer, "\u00a0% give up)");
}

/* "a", "b" and "c": all that are as good as the least. */
static void put_least(stg_text_buffer *p, const stg_contention_found *f,
                      reading *read)
{
    const stg_contention_case *last = last_of(f), *least, *most;
    size_t left = 0;

    rank(f, read, &least, &most);
    for (size_t i = 0; i < f->policies; i++)
        left += is_least(&last[i], least, read);
    for (size_t i = 0; i < f->policies; i++) {
        if (!is_least(&last[i], least, read))
            continue;
        stg_contention_put_policy(p, &last[i]);
        left--;
        stg_text_buffer_put(p, left > 1 ? ", " : left == 1 ? " and " : "");
    }
}

/* With unlike success it is calls for each success that are ranked. */
static void say_calls(const stg_contention_found *f, stg_text_buffer *p)
{
    reading *read = is_success_alike(f) ? calls_of : each_of;
    const stg_contention_case *least, *most;

    rank(f, read, &least, &most);
    put_clients(p, least->clients);
    stg_text_buffer_put(p, " make ");
    if (f->policies > 1 && is_least(most, least, read))
        stg_text_buffer_put(p, "about ");
    stg_text_buffer_put_rounded(p, read(least).mean);
    stg_text_buffer_put(p, read == calls_of ? " calls"
                                            : " calls for each success");
    if (f->policies == 1)
        return;
    if (is_least(most, least, read)) {
        stg_text_buffer_put(p, " with each policy");
        return;
    }
    stg_text_buffer_put(p, " with ");
    put_least(p, f, read);
    stg_text_buffer_put(p, ", and ");
    put_times(p, read(most).mean / read(least).mean);
    stg_text_buffer_put(p, " as many with ");
    stg_contention_put_policy(p, most);
}

/* Where success is unlike the clients "have stopped", for many were not
 * done. */
static void say_completion(const stg_contention_found *f, stg_text_buffer *p)
{
    const stg_contention_case *least, *most;

    rank(f, completion_of, &least, &most);
    put_clients(p, least->clients);
    stg_text_buffer_put(p, is_success_alike(f) ? " are done after "
                                               : " have stopped after ");
    stg_text_buffer_put_time(p, least->completion_ms.mean);
    stg_text_buffer_put(p, " with ");
    put_least(p, f, completion_of);
    if (is_least(most, least, completion_of))
        return;
    stg_text_buffer_put(p, ", and after ");
    stg_text_buffer_put_time(p, most->completion_ms.mean);
    stg_text_buffer_put(p, " with ");
    stg_contention_put_policy(p, most);
}

/* -- against the number of clients */

typedef stg_chart_point plotting(const stg_contention_case *c);

static stg_chart_point plot_calls(const stg_contention_case *c)
{
    return (stg_chart_point){
        .x = c->clients, .y = c->calls.mean, .y_se = c->calls.se};
}

static stg_chart_point plot_completion(const stg_contention_case *c)
{
    return (stg_chart_point){.x = c->clients,
                             .y = c->completion_ms.mean,
                             .y_se = c->completion_ms.se};
}

/* Cases stand by number of clients and within it by policy, so a policy's
 * points are `policies` apart. */
static bool draw_by_clients(stg_chart_set *a, const stg_contention_found *f,
                            const stg_chart_draft *draft, plotting *plot)
{
    size_t sizes = f->count / f->policies;

    draft->chart->x = (stg_chart_axis){.label = "clients", .unit = "clients"};
    for (size_t p = 0; p < f->policies; p++) {
        stg_chart_series *s = &draft->series[p];
        stg_chart_point *points = stg_chart_set_points(a, s, sizes);

        s->name = f->cases[p].policy;
        s->colour = f->cases[p].colour;
        s->mark = STG_MARK_LINE;
        for (size_t i = 0; points != NULL && i < sizes; i++)
            points[i] = plot(&f->cases[i * f->policies + p]);
    }
    return !a->is_short;
}

/* What was simulated, and how to read it. */
static const char *note_of(stg_chart_set *a, const char *note, const char *more)
{
    stg_text_buffer p = stg_text_buffer_on(a->memory);
    const char *text;

    stg_text_buffer_form(&p, "%s%s", more, note == NULL ? "" : note);
    text = stg_chart_set_text(a, &p);
    stg_text_buffer_free(&p);
    return text;
}

const char *stg_contention_title(stg_chart_set *a,
                                 const stg_contention_found *f,
                                 void (*say)(const stg_contention_found *f,
                                             stg_text_buffer *p))
{
    const stg_contention_case *last = last_of(f);
    stg_text_buffer p = stg_text_buffer_on(a->memory);
    bool is_once = false;
    const char *text;

    for (size_t i = 0; i < f->policies; i++)
        is_once |= last[i].reps < 2;
    if (is_once) {
        stg_text_buffer_put(&p, "One repetition of ");
        put_clients(&p, last->clients);
        stg_text_buffer_put(&p, ": no conclusion");
    } else {
        say(f, &p);
    }
    text = stg_chart_set_text(a, &p);
    stg_text_buffer_free(&p);
    return text;
}

bool stg_contention_chart_calls(stg_chart_set *a, const stg_contention_found *f)
{
    stg_chart_draft draft;

    if (f->count <= f->policies)
        return true;
    if (!stg_chart_set_add(a, "calls-by-clients", 1, f->policies, &draft))
        return false;
    draft.chart->title = stg_contention_title(a, f, say_calls);
    draft.chart->note =
        note_of(a, f->note,
                "Calls at the resource until all clients have stopped; mean, "
                "with a band of 2 standard errors. ");
    draft.panels[0].y = (stg_chart_axis){
        .label = "calls", .unit = "calls", .is_from_zero = true};
    return draw_by_clients(a, f, &draft, plot_calls);
}

bool stg_contention_chart_completion(stg_chart_set *a,
                                     const stg_contention_found *f)
{
    stg_chart_draft draft;

    if (f->count <= f->policies)
        return true;
    if (!stg_chart_set_add(a, "completion-by-clients", 1, f->policies, &draft))
        return false;
    draft.chart->title = stg_contention_title(a, f, say_completion);
    draft.chart->note = note_of(
        a, f->note,
        "When the last client has stopped; mean, with a band of 2 standard "
        "errors. ");
    draft.panels[0].y = (stg_chart_axis){
        .label = "completion", .is_time = true, .is_log = true};
    return draw_by_clients(a, f, &draft, plot_completion);
}

/* -- work against time */

/* The first that is among the quickest and makes the fewest calls; NULL: none
 * is both. */
static const stg_contention_case *find_best(const stg_contention_found *f)
{
    const stg_contention_case *last = last_of(f), *cheap, *quick, *most;

    rank(f, calls_of, &cheap, &most);
    rank(f, completion_of, &quick, &most);
    for (size_t i = 0; i < f->policies; i++)
        if (is_least(&last[i], cheap, calls_of) &&
            is_least(&last[i], quick, completion_of))
            return &last[i];
    return NULL;
}

static void put_each(stg_text_buffer *p, const stg_contention_case *c)
{
    stg_contention_put_policy(p, c);
    if (c->successes.mean <= 0)
        return;
    stg_text_buffer_put(p, ", for ");
    stg_text_buffer_put_rounded(p, each_of(c).mean);
    stg_text_buffer_put(p, " calls each");
}

/* Who does not succeed is done soon, with few calls. So where policies differ
 * in that, it comes first; of those that are the best in it, the calls decide.
 * */
static void say_success(const stg_contention_found *f, stg_text_buffer *p)
{
    const stg_contention_case *last = last_of(f), *worst, *most, *best = NULL;

    rank(f, successes_of, &worst, &most);
    for (size_t i = 0; i < f->policies; i++)
        if (is_least(&last[i], most, successes_of) &&
            (best == NULL || each_of(&last[i]).mean < each_of(best).mean))
            best = &last[i];
    stg_text_buffer_put(p, "Most clients succeed with ");
    put_each(p, best == NULL ? most : best);
    stg_text_buffer_put(p, "; the fewest with ");
    put_each(p, worst);
}

static void say_work(const stg_contention_found *f, stg_text_buffer *p)
{
    const stg_contention_case *cheap, *quick, *most, *best = find_best(f);

    rank(f, calls_of, &cheap, &most);
    rank(f, completion_of, &quick, &most);
    if (f->policies == 1) {
        put_clients(p, cheap->clients);
        stg_text_buffer_put(p, " make ");
        put_calls(p, cheap);
        stg_text_buffer_put(p, " and are done after ");
        stg_text_buffer_put_time(p, cheap->completion_ms.mean);
    } else if (!is_success_alike(f)) {
        say_success(f, p);
    } else if (best != NULL) {
        stg_text_buffer_put(p, "With ");
        stg_contention_put_policy(p, best);
        stg_text_buffer_put(p,
                            " the clients are done first, and with the fewest "
                            "calls");
    } else {
        stg_text_buffer_put(p, "The fewest calls are made with ");
        put_least(p, f, calls_of);
        stg_text_buffer_put(p, "; with ");
        put_least(p, f, completion_of);
        stg_text_buffer_put(p, " the clients are done first, for ");
        put_times(p, quick->calls.mean / cheap->calls.mean);
        stg_text_buffer_put(p, " as many calls");
    }
}

bool stg_contention_chart_work(stg_chart_set *a, const stg_contention_found *f)
{
    const stg_contention_case *last = last_of(f);
    stg_chart_draft draft;

    if (!stg_chart_set_add(a, "work-against-time", 1, f->policies, &draft))
        return false;
    draft.chart->title = stg_contention_title(a, f, say_work);
    draft.chart->note =
        note_of(a, f->note,
                "At the largest number of clients; the lower and the further "
                "left, the better. ");
    draft.chart->x = (stg_chart_axis){
        .label = "completion", .is_time = true, .is_log = true};
    draft.panels[0].y = (stg_chart_axis){
        .label = "work", .unit = "calls", .is_from_zero = true};
    for (size_t p = 0; p < f->policies; p++) {
        stg_chart_series *s = &draft.series[p];
        stg_chart_point *point = stg_chart_set_points(a, s, 1);

        s->name = last[p].policy;
        s->colour = last[p].colour;
        s->mark = STG_MARK_SPOT;
        if (point != NULL)
            *point = (stg_chart_point){.x = last[p].completion_ms.mean,
                                       .x_se = last[p].completion_ms.se,
                                       .y = last[p].calls.mean,
                                       .y_se = last[p].calls.se};
    }
    return !a->is_short;
}

/* -- waits by retry */

static double ms_of(const stg_sim_tally *t, double share)
{
    return (double)stg_sim_tally_quantile(t, share) / 1e6;
}

/* Of a quantile, by the order of the values alone: how many of n are below it
 * has the standard deviation sqrt(n share (1 - share)). 0 of too few to tell.
 * */
static double quantile_error(const stg_sim_tally *t, double share)
{
    enum { FEW = 10 };
    double n = (double)t->count, off;

    if (t->count < FEW)
        return 0;
    off = stg_estimate_root(share * (1 - share) / n);
    return (ms_of(t, share + off < 1 ? share + off : 1) -
            ms_of(t, share > off ? share - off : 0)) /
           2;
}

stg_estimate stg_contention_half(const stg_contention_case *c)
{
    return (stg_estimate){ms_of(&c->totals->done, 0.5),
                          quantile_error(&c->totals->done, 0.5)};
}

/* From the 5th to the 95th percentile. */
static stg_estimate spread_of(const stg_sim_tally *t)
{
    double low = quantile_error(t, 0.05), high = quantile_error(t, 0.95);

    return (stg_estimate){ms_of(t, 0.95) - ms_of(t, 0.05),
                          stg_estimate_root(low * low + high * high)};
}

/* How many retries have waits that a logarithmic axis can show. */
static size_t count_waits(const stg_contention_totals *b)
{
    size_t count = 0;

    while (count < STG_TOTALS_WAITS && b->waits[count].count > 0)
        count++;
    return count > 0 && b->waits[count - 1].most > 0 ? count : 0;
}

static bool draw_waits(stg_chart_set *a, const stg_contention_case *c,
                       stg_chart_series *s)
{
    size_t count = count_waits(c->totals);
    stg_chart_point *points = stg_chart_set_points(a, s, count);

    s->name = c->policy;
    s->colour = c->colour;
    s->mark = STG_MARK_RANGE;
    for (size_t i = 0; points != NULL && i < count; i++)
        points[i] = (stg_chart_point){
            .x = (double)i + 1,
            .y = ms_of(&c->totals->waits[i], 0.5),
            .y_se = quantile_error(&c->totals->waits[i], 0.5),
            .low = ms_of(&c->totals->waits[i], 0.05),
            .high = ms_of(&c->totals->waits[i], 0.95),
        };
    return points != NULL;
}

/* By the widest and the narrowest of one retry that all have. */
static void say_waits(const stg_contention_found *f, stg_text_buffer *p)
{
    const stg_contention_case *last = last_of(f), *wide = NULL, *firm = NULL;
    stg_estimate most = {0}, least = {0};
    size_t retry = 5;

    for (size_t i = 0; i < f->policies; i++) {
        size_t count = count_waits(last[i].totals);

        retry = count > 0 && count < retry ? count : retry;
    }
    for (size_t i = 0; i < f->policies; i++) {
        stg_estimate spread = spread_of(&last[i].totals->waits[retry - 1]);

        if (count_waits(last[i].totals) == 0)
            continue;
        if (wide == NULL || spread.mean > most.mean) {
            most = spread;
            wide = &last[i];
        }
        if (firm == NULL || spread.mean < least.mean) {
            least = spread;
            firm = &last[i];
        }
    }
    if (wide == NULL || firm == NULL)
        return;
    stg_text_buffer_put(p, "Before retry ");
    stg_text_buffer_put_count(p, retry);
    if (wide != firm && !stg_estimate_is_apart(most, least)) {
        stg_text_buffer_put(p, ", waits are spread over about ");
        stg_text_buffer_put_time(p, most.mean);
        stg_text_buffer_put(p, " with each policy");
        return;
    }
    stg_text_buffer_form(p, ", waits with \"%s\" are spread over ",
                         wide->policy);
    stg_text_buffer_put_time(p, most.mean);
    if (wide == firm)
        return;
    stg_text_buffer_form(p, ", with \"%s\" over ", firm->policy);
    stg_text_buffer_put_time(p, least.mean);
}

bool stg_contention_chart_waits(stg_chart_set *a, const stg_contention_found *f)
{
    const stg_contention_case *last = last_of(f);
    size_t panels = 0, at = 0;
    stg_chart_draft draft;

    for (size_t p = 0; p < f->policies; p++)
        panels += count_waits(last[p].totals) > 0;
    if (panels == 0)
        return true;
    if (!stg_chart_set_add(a, "waits-by-retry", panels, panels, &draft))
        return false;
    draft.chart->title = stg_contention_title(a, f, say_waits);
    draft.chart->note = note_of(
        a, f->note,
        "Bars go from the 5th to the 95th percentile, and the median is "
        "marked, with 2 standard errors; the last one has all later "
        "retries. ");
    draft.chart->is_y_shared = true;
    draft.chart->x = (stg_chart_axis){.label = "retry", .unit = ""};
    for (size_t p = 0; p < f->policies; p++) {
        if (count_waits(last[p].totals) == 0)
            continue;
        draft.panels[at] = (stg_chart_panel){
            .name = last[p].policy,
            .y = {.label = "wait", .is_time = true, .is_log = true}};
        draft.series[at].panel = (unsigned)at;
        if (!draw_waits(a, &last[p], &draft.series[at]))
            return false;
        at++;
    }
    return !a->is_short;
}
