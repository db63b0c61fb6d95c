/* The pictures of a run, with titles that say what they show. */
#include <string.h>

#include "sim/palette.h"
#include "sim/svg.h"
#include "sim/svg_inside.h"
#include "sim/wasm_inside.h"

enum {
    SHARES = 100, /* steps of a distribution */
    RETRIES = 12, /* waits that are shown */
};

/* A chart while it is made; all of it is the handle's memory. */
typedef struct sketch {
    stg_wasm *w;
    const double *sums[STG_WASM_POLICIES_MAX];
    stg_chart chart;
    stg_chart_panel panels[STG_WASM_POLICIES_MAX];
    stg_chart_series series[STG_WASM_POLICIES_MAX];
    stg_chart_point *points; /* for all series */
    size_t count;
    stg_paper title, note, label;
} sketch;

/* -- findings */

/* The policy with the least (or most) of a sum, among those that brought the
 * most clients to a success: who gives up early has little else to show. */
static uint32_t find_extreme(const sketch *k, stg_wasm_sum sum, bool is_most)
{
    double most = 0;
    uint32_t best = 0;
    bool is_found = false;

    for (uint32_t i = 0; i < k->w->count; i++)
        if (k->sums[i][STG_WASM_SUCCESSES] > most)
            most = k->sums[i][STG_WASM_SUCCESSES];
    for (uint32_t i = 0; i < k->w->count; i++) {
        double x = k->sums[i][sum], y = k->sums[best][sum];

        if (k->sums[i][STG_WASM_SUCCESSES] < most)
            continue;
        if (!is_found || (is_most ? x > y : x < y))
            best = i;
        is_found = true;
    }
    return best;
}

static void put_name(sketch *k, uint32_t i)
{
    stg_paper_put(&k->title, k->w->sides[i].name);
}

static void put_calls(sketch *k, uint32_t i)
{
    stg_paper_put_people(&k->title, k->sums[i][STG_WASM_CALLS]);
}

static void put_time(sketch *k, uint32_t i, stg_wasm_sum sum)
{
    stg_paper_put_time(&k->title, k->sums[i][sum]);
}

static void put_clients(stg_paper *paper, const stg_wasm *w)
{
    stg_paper_put_people(paper, (double)w->options.clients);
    stg_paper_put(paper, w->options.clients == 1 ? " client" : " clients");
}

/* "20 repetitions"; they may differ by one while they run. */
static void put_repetitions(stg_paper *paper, const stg_wasm *w)
{
    uint32_t count = w->sides[w->count - 1].count;

    stg_paper_put_people(paper, (double)count);
    stg_paper_put(paper, count == 1 ? " repetition" : " repetitions");
}

/* Whether all brought equally many clients to a success, or some gave up. */
static bool is_fair(const sketch *k)
{
    for (uint32_t i = 1; i < k->w->count; i++)
        if (k->sums[i][STG_WASM_SUCCESSES] != k->sums[0][STG_WASM_SUCCESSES])
            return false;
    return true;
}

/* -- series */

/* Room for the points of a chart. */
static bool has_points(sketch *k, size_t count)
{
    stg_memory *memory = &k->w->memory;

    k->points = memory->allocate(memory->ctx,
                                 (count > 0 ? count : 1) * sizeof *k->points);
    if (k->points == NULL)
        return false;
    memset(k->points, 0, count * sizeof *k->points);
    return true;
}

/* A series of policy i, whose points are the next ones. */
static stg_chart_series *begin_series(sketch *k, uint32_t i,
                                      stg_chart_mark mark)
{
    k->series[i] = (stg_chart_series){.name = k->w->sides[i].name,
                                      .mark = mark,
                                      .colour = i,
                                      .points = k->points + k->count};
    return &k->series[i];
}

static stg_chart_point *add_point(sketch *k, stg_chart_series *s)
{
    s->count++;
    return &k->points[k->count++];
}

/* -- calls over time */

static double width_of(const stg_wasm *w)
{
    return (double)w->sides[0].book.calls.width / (double)STG_MS;
}

static void say_over_time(sketch *k)
{
    uint32_t least = find_extreme(k, STG_WASM_CALLS, false);
    uint32_t most = find_extreme(k, STG_WASM_CALLS, true);

    put_name(k, least);
    stg_paper_put(&k->title, " needs ");
    put_calls(k, least);
    stg_paper_put(&k->title, " calls");
    if (most != least && is_fair(k)) {
        stg_paper_put(&k->title, ", ");
        put_name(k, most);
        stg_paper_put_char(&k->title, ' ');
        put_calls(k, most);
    }
    stg_paper_put(&k->note, "Calls in each ");
    stg_paper_put_time(&k->note, width_of(k->w));
    stg_paper_put(&k->note, ", mean of ");
    put_repetitions(&k->note, k->w);
    stg_paper_put(&k->note, " with ");
    put_clients(&k->note, k->w);
    stg_paper_put_char(&k->note, '.');
}

static bool draw_over_time(sketch *k)
{
    stg_wasm *w = k->w;
    size_t count = 0;

    for (uint32_t i = 0; i < w->count; i++)
        count += w->sides[i].book.calls.used;
    if (!has_points(k, count))
        return false;
    stg_paper_put(&k->label, "calls in ");
    stg_paper_put_time(&k->label, width_of(w));
    for (uint32_t i = 0; i < w->count; i++) {
        const stg_sim_series *calls = &w->sides[i].book.calls;
        stg_chart_series *s = begin_series(k, i, STG_MARK_AREA);

        s->panel = i;
        k->panels[i] = (stg_chart_panel){.name = s->name,
                                         .y = {.label = k->label.text,
                                               .unit = "calls",
                                               .is_from_zero = true}};
        for (size_t slice = 0; slice < calls->used; slice++) {
            stg_chart_point *point = add_point(k, s);

            point->x = (double)slice * width_of(w);
            point->y = stg_sim_series_mean(calls, slice, &point->y_se);
        }
    }
    k->chart.name = "calls-over-time";
    k->chart.x = (stg_chart_axis){
        .label = "time", .is_time = true, .is_from_zero = true};
    k->chart.panel_count = w->count;
    k->chart.is_y_shared = true;
    say_over_time(k);
    return true;
}

/* -- the share of clients that are done */

static void say_done(sketch *k)
{
    uint32_t first = find_extreme(k, STG_WASM_P50, false);
    uint32_t last = find_extreme(k, STG_WASM_P50, true);

    stg_paper_put(&k->title,
                  "Half of the clients that succeed have done so in ");
    put_time(k, first, STG_WASM_P50);
    stg_paper_put(&k->title, " with ");
    put_name(k, first);
    if (last != first && is_fair(k)) {
        stg_paper_put(&k->title, ", in ");
        put_time(k, last, STG_WASM_P50);
        stg_paper_put(&k->title, " with ");
        put_name(k, last);
    }
    stg_paper_put(&k->note,
                  "The share of all clients that have succeeded by a "
                  "time. The later of two lines is worse; one that "
                  "stays below 100 % gave up.");
}

/* The last moment of any. */
static stg_ns latest(const stg_wasm *w)
{
    stg_ns most = 0;

    for (uint32_t i = 0; i < w->count; i++)
        if (w->sides[i].book.done.most > most)
            most = w->sides[i].book.done.most;
    return most;
}

static bool draw_done(sketch *k)
{
    stg_wasm *w = k->w;

    if (!has_points(k, (size_t)w->count * (SHARES + 2)))
        return false;
    for (uint32_t i = 0; i < w->count; i++) {
        const stg_wasm_side *side = &w->sides[i];
        const stg_sim_tally *done = &side->book.done;
        double of = (double)side->count * (double)w->options.clients;
        double share = of > 0 ? (double)done->count / of : 0;
        stg_chart_series *s = begin_series(k, i, STG_MARK_STEP);

        (void)add_point(k, s); // at 0 nobody is
        for (int step = 1; step <= SHARES && done->count > 0; step++) {
            stg_chart_point *point = add_point(k, s);
            double part = (double)step / SHARES;

            point->x =
                (double)stg_sim_tally_quantile(done, part) / (double)STG_MS;
            point->y = 100 * part * share;
        }
        *add_point(k, s) = (stg_chart_point){
            .x = (double)latest(w) / (double)STG_MS, .y = 100 * share};
    }
    k->panels[0].y = (stg_chart_axis){
        .label = "clients that are done", .unit = "%", .from = 0, .to = 100};
    k->chart.name = "completion-share";
    k->chart.x = (stg_chart_axis){
        .label = "time", .is_time = true, .is_from_zero = true};
    k->chart.panel_count = 1;
    say_done(k);
    return true;
}

/* -- work against time */

static void say_work(sketch *k)
{
    uint32_t cheap = find_extreme(k, STG_WASM_CALLS, false);
    uint32_t quick = find_extreme(k, STG_WASM_COMPLETION, false);

    put_name(k, quick);
    stg_paper_put(&k->title, " is done first, in ");
    put_time(k, quick, STG_WASM_COMPLETION);
    if (k->w->count > 1) {
        stg_paper_put(&k->title, quick == cheap ? ", and costs the fewest calls"
                                                : "; the fewest calls has ");
        if (quick != cheap)
            put_name(k, cheap);
    }
    stg_paper_put(&k->note,
                  "All calls until the last client has stopped, and "
                  "when that is. Below and to the left is better. The "
                  "crosses are 2 standard errors.");
}

static bool draw_work(sketch *k)
{
    stg_wasm *w = k->w;

    if (!has_points(k, w->count))
        return false;
    for (uint32_t i = 0; i < w->count; i++) {
        const double *sums = k->sums[i];
        stg_chart_series *s = begin_series(k, i, STG_MARK_SPOT);

        *add_point(k, s) =
            (stg_chart_point){.x = sums[STG_WASM_COMPLETION],
                              .y = sums[STG_WASM_CALLS],
                              .x_se = sums[STG_WASM_COMPLETION_SE],
                              .y_se = sums[STG_WASM_CALLS_SE]};
    }
    k->panels[0].y = (stg_chart_axis){
        .label = "work", .unit = "calls", .is_from_zero = true};
    k->chart.name = "work-against-time";
    k->chart.x = (stg_chart_axis){
        .label = "completion", .is_time = true, .is_from_zero = true};
    k->chart.panel_count = 1;
    say_work(k);
    return true;
}

/* -- waits by retry */

static void say_waits(sketch *k)
{
    const stg_wasm *w = k->w;
    uint32_t most = 0;

    for (uint32_t i = 0; i < w->count; i++)
        if (w->sides[i].book.attempts.most > w->sides[most].book.attempts.most)
            most = i;
    stg_paper_put(&k->title, "The unluckiest client makes ");
    stg_paper_put_people(&k->title, (double)w->sides[most].book.attempts.most);
    stg_paper_put(&k->title, w->sides[most].book.attempts.most == 1
                                 ? " attempt"
                                 : " attempts");
    stg_paper_put(&k->title, ", with ");
    put_name(k, most);
    stg_paper_put(&k->note,
                  "The mean of the waits that were drawn before each "
                  "retry; a line ends where nobody retried again.");
}

static bool draw_waits(sketch *k)
{
    stg_wasm *w = k->w;

    if (!has_points(k, (size_t)w->count * RETRIES))
        return false;
    for (uint32_t i = 0; i < w->count; i++) {
        const stg_sim_tally *waits = w->sides[i].book.waits;
        stg_chart_series *s = begin_series(k, i, STG_MARK_LINE);

        for (int retry = 0; retry < RETRIES && waits[retry].count > 0; retry++)
            *add_point(k, s) = (stg_chart_point){
                .x = retry + 1,
                .y = stg_sim_tally_mean(&waits[retry]) / (double)STG_MS};
    }
    k->panels[0].y = (stg_chart_axis){
        .label = "wait", .is_time = true, .is_from_zero = true};
    k->chart.name = "waits-by-retry";
    k->chart.x = (stg_chart_axis){.label = "retry", .unit = "th retry"};
    k->chart.panel_count = 1;
    say_waits(k);
    return true;
}

/* -- the answer */

static bool (*const draws[])(sketch *k) = {
    draw_over_time,
    draw_done,
    draw_work,
    draw_waits,
};

static void close_sketch(sketch *k)
{
    if (k->points != NULL)
        k->w->memory.release(k->w->memory.ctx, k->points);
    stg_paper_free(&k->title);
    stg_paper_free(&k->note);
    stg_paper_free(&k->label);
}

const char *stg_wasm_chart(stg_wasm *w, uint32_t number, int width)
{
    stg_svg_options options = {.width = width};
    sketch k = {.w = w,
                .title = stg_paper_on(&w->memory),
                .note = stg_paper_on(&w->memory),
                .label = stg_paper_on(&w->memory)};
    double sums[STG_WASM_POLICIES_MAX][STG_WASM_SUMS];

    stg_paper_clear(&w->paper);
    if (number >= sizeof draws / sizeof *draws || w->count == 0)
        return "";
    for (uint32_t i = 0; i < w->count; i++) {
        memcpy(sums[i], stg_wasm_sums(w, i), sizeof sums[i]);
        k.sums[i] = sums[i];
    }
    if (draws[number](&k) && !k.title.is_short && !k.note.is_short &&
        !k.label.is_short) {
        k.chart.title = k.title.text;
        k.chart.note = k.note.text;
        k.chart.panels = k.panels;
        k.chart.series = k.series;
        k.chart.series_count = w->count;
        stg_paper_form(&w->paper, "%s\n%s\n", k.title.text, k.note.text);
        stg_chart_svg(&k.chart, &options, &w->paper);
    }
    close_sketch(&k);
    return w->paper.text == NULL || w->paper.is_short ? "" : w->paper.text;
}

const char *stg_wasm_style(stg_wasm *w)
{
    stg_paper_clear(&w->paper);
    stg_palette_css(&w->paper);
    return w->paper.is_short ? "" : w->paper.text;
}

const char *stg_wasm_marker(stg_wasm *w, uint32_t colour)
{
    enum { MIDDLE = 8, SIZE = 5 };

    stg_paper_clear(&w->paper);
    stg_svg_marker(&w->paper, colour, MIDDLE, MIDDLE, SIZE);
    return w->paper.is_short ? "" : w->paper.text;
}
