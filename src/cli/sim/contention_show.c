/* What `stagger sim contention` prints: a table of all cases, and charts of
 * calls, of time and of how the calls fall over time. Single calls are not kept
 * while a study runs: for their chart the first repetition is run again with
 * its own seed, which gives the same calls. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/options.h"
#include "cli/sim/contention.h"
#include "cli/sim/output.h"
#include "cli/sim/sim.h"
#include "core/writer.h"
#include "sim/contention_report.h"

static const char who[] = "stagger sim contention";

/* -- single calls ----------------------------------------------------------- */

/* Runs the first repetition of a cell again, and tells each call. Returns false if
 * there is no memory. */
static bool retrace(const stg_study *study, const stg_study_cell *cell,
                    void (*on_call)(void *, const stg_contention_call *),
                    void *ctx)
{
    stg_contention_options options = stg_study_options_of(study, cell);
    stg_contention_run run;
    stg_contention *contention;
    bool is_ok;

    options.on_call = on_call;
    options.ctx = ctx;
    if (stg_contention_new(&contention, &study->memory, &options, NULL) !=
        STG_OK)
        return false;
    is_ok = stg_contention_repeat(contention, 0, &run, NULL);
    stg_contention_free(contention);
    return is_ok;
}

/* -- charts ----------------------------------------------------------------- */

/* The calls of one repetition, while it runs. */
typedef struct trace {
    stg_chart_point *points;
    size_t count, room;
} trace;

/* x is in ms; clients are numbered from 1 for people. */
static void take_call(void *ctx, const stg_contention_call *call)
{
    trace *t = ctx;

    if (t->count < t->room)
        t->points[t->count++] = (stg_chart_point){
            .x = (double)call->at / 1e6, .y = (double)call->client + 1};
}

/* A picture shows a crowd, but not any crowd: of more calls than that, those of
 * a repetition are not shown one by one. */
enum { CALLS_MAX = 200000 };

/* `last` is a group of cells of one number of clients. One policy with too many
 * calls leaves the whole chart out. */
static bool draw_traces(stg_chart_set *charts, const stg_study *study,
                        const stg_study_cell *last, size_t policies,
                        const char *note)
{
    stg_contention_trace *traces =
        stg_chart_set_take(charts, policies * sizeof *traces);

    if (traces == NULL)
        return false;
    for (size_t p = 0; p < policies; p++) {
        trace t = {0};

        if (last[p].runs[0].calls > CALLS_MAX)
            return true;
        t.room = (size_t)last[p].runs[0].calls;
        t.points = stg_chart_set_take(charts, t.room * sizeof *t.points);
        if (t.points == NULL || !retrace(study, &last[p], take_call, &t))
            return false;
        traces[p] = (stg_contention_trace){
            .policy = last[p].policy->name,
            .colour = (unsigned)p,
            .clients = last[p].clients,
            .calls = t.points,
            .count = t.count,
        };
    }
    return stg_contention_chart_traces(charts, traces, policies, note);
}

/* -- events ----------------------------------------------------------------- */

static void tell_call(void *ctx, const stg_contention_call *call)
{
    stg_sim_events_attempt(ctx, call->client, call->attempt, call->begun_at,
                           call->ended_at, call->outcome);
}

/* Writes the events of each policy with the most clients. */
static int write_events(const stg_study *study, const char *path)
{
    size_t policies = study->options.policies.count;
    stg_sim_events e;
    int code = stg_sim_events_open(&e, path, policies, who);

    if (code != 0)
        return code;
    for (size_t p = 0; p < policies && code == 0; p++) {
        const stg_study_cell *cell = &study->cells[study->count - policies + p];

        stg_sim_events_begin(&e, cell->policy->name);
        if (!retrace(study, cell, tell_call, &e)) {
            stg_options_complain(who, "out of memory");
            code = STG_EXIT_USAGE;
        }
    }
    return code != 0 ? (fclose(e.file), code)
                     : stg_sim_events_close(&e, path, who);
}

/* The cells that have results, as cases: all policies of a number of clients or
 * none, so that an interrupted study has whole columns. */
static size_t collect(const stg_study *study, stg_contention_case *cases)
{
    size_t policies = study->options.policies.count, count = 0;

    for (size_t i = 0; i + policies <= study->count; i += policies) {
        bool is_whole = true;

        for (size_t p = 0; p < policies; p++) {
            const stg_study_cell *cell = &study->cells[i + p];
            stg_contention_result r;

            is_whole = is_whole && cell->reps > 0 &&
                       stg_study_evaluate(study, cell, &r);
            if (!is_whole)
                break;
            cases[count + p] = (stg_contention_case){
                .policy = cell->policy->name,
                .colour = (unsigned)p,
                .clients = cell->clients,
                .calls = r.calls,
                .completion_ms = r.completion_ms,
                .successes = r.successes,
                .reps = r.reps,
                .totals = &cell->totals,
            };
        }
        if (is_whole)
            count += policies;
    }
    return count;
}

/* 0 also where a sweep makes the resource another one for each policy. */
static double capacity_of(const stg_study *study)
{
    const stg_study_model *models = study->options.models;
    char first[STG_RESOURCE_TEXT_MAX], other[STG_RESOURCE_TEXT_MAX];

    stg_resource_print(&models[0].resource, first);
    for (size_t i = 1; i < study->options.policies.count; i++)
        if (strcmp(stg_resource_print(&models[i].resource, other), first) != 0)
            return 0;
    return stg_resource_capacity(&models[0].resource);
}

/* An interrupted study without a whole group has no charts, which is no
 * failure. */
static bool draw(stg_chart_set *charts, const stg_study *study,
                 const char *note)
{
    size_t policies = study->options.policies.count;
    stg_contention_case *cases =
        stg_chart_set_take(charts, study->count * sizeof *cases);
    stg_contention_found found = {.cases = cases,
                                  .policies = policies,
                                  .capacity = capacity_of(study),
                                  .note = note};

    if (cases == NULL)
        return false;
    found.count = collect(study, cases);
    if (found.count == 0)
        return true;
    return draw_traces(charts, study, &study->cells[found.count - policies],
                       policies, note) &&
           stg_contention_chart_calls(charts, &found) &&
           stg_contention_chart_time(charts, &found) &&
           stg_contention_chart_completion(charts, &found) &&
           stg_contention_chart_work(charts, &found) &&
           stg_contention_chart_done(charts, &found) &&
           stg_contention_chart_waits(charts, &found);
}

/* -- all of it -------------------------------------------------------------- */

/* Rows of single cells, also of an interrupted study, whereas charts need whole
 * groups (collect). The memory is the charts': all goes at once. NULL: there is
 * none. */
static stg_contention_row *make_rows(stg_chart_set *charts,
                                     const stg_study *study, size_t *count)
{
    stg_contention_row *rows =
        stg_chart_set_take(charts, study->count * sizeof *rows);

    *count = 0;
    for (size_t i = 0; rows != NULL && i < study->count; i++) {
        const stg_study_cell *cell = &study->cells[i];
        stg_contention_row *row = &rows[*count];

        if (cell->reps == 0)
            continue;
        *row = (stg_contention_row){
            .policy = cell->policy->name,
            .text = cell->policy->text,
            .clients = cell->clients,
            .seed = study->options.each.seed,
            .totals = &cell->totals,
        };
        if (!stg_study_evaluate(study, cell, &row->result))
            return NULL;
        ++*count;
    }
    return rows;
}

enum { TILES_MAX = 8 };

/* A tile each policy, with the most clients: its calls, and when all have
 * stopped. Of more policies the table has them. */
static void make_tiles(stg_chart_set *charts, const stg_study *study,
                       const stg_contention_row *rows, size_t count,
                       stg_page_tile *tiles, stg_sim_report *report)
{
    size_t policies = study->options.policies.count;
    const stg_contention_row *last = &rows[count - policies];
    stg_text_buffer p = stg_text_buffer_on(charts->memory);

    if (count != study->count || policies > TILES_MAX)
        return; // it was interrupted, or nobody would read them
    for (size_t i = 0; i < policies; i++) {
        stg_text_buffer_put_rounded(&p, last[i].result.calls.mean);
        stg_text_buffer_put(&p, " calls");
        tiles[i].name = last[i].policy;
        tiles[i].first = stg_chart_set_text(charts, &p);
        stg_text_buffer_put_time(&p, last[i].result.completion_ms.mean);
        stg_text_buffer_put(&p, " until all have stopped");
        tiles[i].second = stg_chart_set_text(charts, &p);
    }
    stg_text_buffer_put_counted(&p, last->clients, " client", " clients");
    stg_text_buffer_put(&p, last->result.reps == 1 ? ", one repetition."
                                                   : ", means of the "
                                                     "repetitions.");
    report->tiles_title = stg_chart_set_text(charts, &p);
    report->tiles = tiles;
    report->tile_count = policies;
    stg_text_buffer_free(&p);
}

/* Makes all that is asked for, and writes it. */
static int show(const stg_contention_settings *s, const stg_study *study,
                stg_chart_set *charts, stg_text_buffer *series,
                const char *lead)
{
    stg_page_tile tiles[TILES_MAX];
    stg_table table, series_table;
    size_t count;
    stg_contention_row *rows = make_rows(charts, study, &count);
    stg_sim_report report = {
        .title = "Contention: what retries cost, and how long they take",
        .lead = lead,
        .table = &table,
        .series_table = &series_table,
        .charts = charts,
        .is_partial = study->is_partial,
    };

    if (rows == NULL || !stg_contention_table(charts, rows, count, &table) ||
        (s->output.series != NULL &&
         !stg_contention_series_table(charts, rows, count, &series_table)) ||
        (stg_sim_output_has_pictures(&s->output) &&
         !draw(charts, study, lead))) {
        stg_options_complain(who, "out of memory");
        return STG_EXIT_USAGE;
    }
    make_tiles(charts, study, rows, count, tiles, &report);
    if (s->output.is_json) {
        stg_contention_put_series(rows, count, series);
        report.series = series->text;
    }
    if (study->is_partial)
        stg_chart_set_conclude_nothing(charts);
    return stg_sim_output_write(&s->output, who, &report, s->argc, s->argv);
}

int stg_contention_show(const stg_contention_settings *s,
                        const stg_study *study)
{
    char resource[STG_RESOURCE_TEXT_MAX], lead[STG_RESOURCE_TEXT_MAX + 128];
    char starts[STG_DURATION_TEXT_MAX + 20] = "", spread[STG_DURATION_TEXT_MAX];
    stg_memory memory = stg_sim_memory();
    stg_chart_set charts = stg_chart_set_on(&memory);
    stg_text_buffer series = stg_text_buffer_on(&memory);
    int code;

    if (study->options.each.start_spread > 0)
        snprintf(starts, sizeof starts, "starts within %s; ",
                 stg_duration_text(study->options.each.start_spread, spread));
    snprintf(lead, sizeof lead,
             "Resource: %s; %s%" PRIu32 " repetition%s, seed %ju.",
             stg_resource_print(&study->options.each.resource, resource),
             starts, study->options.reps, stg_plural(study->options.reps),
             (uintmax_t)study->options.each.seed);
    code = s->output.events == NULL || study->is_partial
               ? 0
               : write_events(study, s->output.events);
    if (code == 0)
        code = show(s, study, &charts, &series, lead);
    stg_text_buffer_free(&series);
    stg_chart_set_free(&charts);
    return code;
}
