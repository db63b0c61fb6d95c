/* The results of a run, as charts and as a file, made by the command's own
 * code. All answers share the buffer of the run, and are valid until the next
 * of these calls. An answer is empty if out of memory. */
#include "chart/chart.h"
#include "chart/svg_internal.h"
#include "sim/contention_report.h"
#include "sim/wasm_internal.h"

enum { ROOM = 160 };

/* -- charts */

static const char *put_note(const stg_wasm *w, char *text, size_t size)
{
    stg_writer out = stg_writer_on(text, size);
    uint32_t reps = w->sides[w->count - 1].count;

    stg_write_number(&out, w->options.clients);
    stg_write_text(&out, w->options.clients == 1 ? " client, " : " clients, ");
    stg_write_number(&out, reps);
    stg_write_text(&out, reps == 1 ? " repetition." : " repetitions.");
    return text;
}

static bool draw_contention(stg_wasm *w, stg_chart_set *a)
{
    char note[ROOM];
    stg_contention_case cases[STG_WASM_POLICIES_MAX];
    stg_contention_found found = {
        .cases = cases,
        .count = w->count,
        .policies = w->count,
        .capacity = stg_resource_capacity(&w->options.resource),
        .note = put_note(w, note, sizeof note)};

    for (uint32_t i = 0; i < w->count; i++) {
        const stg_wasm_side *side = &w->sides[i];
        stg_contention_result r;

        if (!stg_contention_estimate(side->runs, side->count, &w->memory, &r))
            return false;
        cases[i] = (stg_contention_case){
            .policy = side->name,
            .colour = i,
            .clients = w->options.clients,
            .calls = r.calls,
            .completion_ms = r.completion_ms,
            .successes = r.successes,
            .reps = r.reps,
            .totals = &side->totals,
        };
    }
    return stg_contention_chart_time(a, &found) &&
           stg_contention_chart_done(a, &found) &&
           stg_contention_chart_work(a, &found) &&
           stg_contention_chart_waits(a, &found);
}

/* The order of a storm's charts is how they are read: what happens, and why. */
static bool draw(stg_wasm *w, stg_chart_set *a)
{
    stg_overload_case cases[STG_WASM_STORMS_MAX];
    uint32_t count = stg_wasm_storm_cases(w, cases);

    if (w->count > 0)
        return draw_contention(w, a);
    if (count == 0)
        return false;
    stg_overload_chart_rates(a, cases, count, NULL);
    stg_overload_chart_latency(a, cases, count);
    stg_overload_chart_amplification(a, cases, count);
    return true;
}

/* A title and a note in a line each, and the chart; a form feed ends it. Title
 * and note are not escaped: a page sets them as text, not as HTML. */
static void put_chart(stg_text_buffer *buffer, const stg_chart *chart,
                      int width, bool is_alone)
{
    stg_svg_options options = {.width = width, .is_alone = is_alone};
    const char *note = chart->note == NULL ? "" : chart->note;

    stg_text_buffer_form(buffer, "%s\n%s\n", chart->title, note);
    stg_chart_svg(chart, &options, buffer);
    stg_text_buffer_put_char(buffer, '\f');
}

static const char *answer_of(const stg_wasm *w)
{
    return w->buffer.text == NULL || w->buffer.is_short ? "" : w->buffer.text;
}

const char *stg_wasm_charts(stg_wasm *w, int width, bool is_alone)
{
    stg_chart_set charts = stg_chart_set_on(&w->memory);

    stg_text_buffer_clear(&w->buffer);
    if (draw(w, &charts) && !charts.is_short)
        for (size_t i = 0; i < charts.count; i++)
            put_chart(&w->buffer, charts.charts[i], width, is_alone);
    stg_chart_set_free(&charts);
    return answer_of(w);
}

const char *stg_wasm_style(stg_wasm *w)
{
    stg_text_buffer_clear(&w->buffer);
    stg_palette_css(&w->buffer);
    return answer_of(w);
}

const char *stg_wasm_marker(stg_wasm *w, uint32_t colour)
{
    enum { MIDDLE = 8, SIZE = 5 };

    stg_text_buffer_clear(&w->buffer);
    stg_svg_marker(&w->buffer, colour, MIDDLE, MIDDLE, SIZE);
    return answer_of(w);
}

/* -- a file */

static bool make_rows(stg_wasm *w, stg_chart_set *a, stg_contention_row *rows)
{
    for (uint32_t i = 0; i < w->count; i++) {
        const stg_wasm_side *side = &w->sides[i];
        char *text = stg_chart_set_take(a, STG_POLICY_TEXT_MAX);

        if (text == NULL)
            return false;
        (void)stg_policy_print(&side->policy, text);
        rows[i] = (stg_contention_row){
            .policy = side->name,
            .text = text,
            .clients = w->options.clients,
            .seed = w->options.seed,
            .totals = &side->totals,
        };
        if (!stg_contention_estimate(side->runs, side->count, &w->memory,
                                     &rows[i].result))
            return false;
    }
    return true;
}

static void put_storms(stg_wasm *w, const stg_overload_case *cases,
                       uint32_t count)
{
    stg_overload_table table;

    if (stg_overload_table_make(&table, cases, count, w->options.seed,
                                &w->memory) != STG_OK)
        return;
    stg_table_csv(&table.table, &w->buffer);
    stg_overload_table_free(&table);
}

const char *stg_wasm_csv(stg_wasm *w)
{
    stg_chart_set charts = stg_chart_set_on(&w->memory);
    stg_contention_row rows[STG_WASM_POLICIES_MAX];
    stg_overload_case storms[STG_WASM_STORMS_MAX];
    uint32_t count = stg_wasm_storm_cases(w, storms);
    stg_table table;

    stg_text_buffer_clear(&w->buffer);
    if (count > 0)
        put_storms(w, storms, count);
    else if (make_rows(w, &charts, rows) &&
             stg_contention_table(&charts, rows, w->count, &table))
        stg_table_csv(&table, &w->buffer);
    stg_chart_set_free(&charts);
    return answer_of(w);
}
