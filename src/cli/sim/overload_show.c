/* What `stagger sim overload` prints: lead, table, charts and series of all
 * trials that have a run. Nothing is concluded from an interrupted simulation:
 * some policies would have more runs than others. */
#include <stdlib.h>

#include "cli/options.h"
#include "cli/sim/output.h"
#include "cli/sim/overload.h"
#include "cli/sim/sim.h"
#include "sim/overload_report.h"

/* A trial without a run has no means and would be a row of zeros. */
size_t stg_trials_cases(const stg_trials *t, stg_overload_case *cases)
{
    size_t count = 0;

    for (size_t i = 0; i < t->count; i++)
        if (t->all[i].summary.runs > 0)
            cases[count++] = (stg_overload_case){.name = t->all[i].name,
                                                 .summary = &t->all[i].summary};
    return count;
}

static void draw(stg_chart_set *charts, const stg_overload_case *cases,
                 size_t count)
{
    stg_overload_chart_rates(charts, cases, count, NULL);
    stg_overload_chart_latency(charts, cases, count);
    stg_overload_chart_amplification(charts, cases, count);
    stg_overload_chart_cost(charts, cases, count);
}

static void say_title(const stg_trials *t, const stg_overload_case *cases,
                      size_t count, stg_text_buffer *title)
{
    if (t->is_partial)
        stg_text_buffer_put(title, "Overload: interrupted, no conclusion");
    else
        stg_overload_say_finding(cases, count, title);
}

/* Without a trigger there is nothing to recover from, so nothing is found. */
static void say_lead(const stg_trials *t, const stg_overload_case *cases,
                     size_t count, stg_text_buffer *lead)
{
    const stg_overload_options *o = cases[0].summary->options;

    stg_overload_say_setting(cases, count, lead);
    stg_text_buffer_put(lead, ".");
    if (o->trigger.kind == STG_TRIGGER_NONE && !t->is_partial)
        return;
    stg_text_buffer_put(lead, "\n");
    if (t->is_partial)
        stg_text_buffer_put(lead,
                            "Interrupted: nothing is concluded from this part");
    else
        stg_overload_say_finding(cases, count, lead);
    stg_text_buffer_put(lead, ".");
}

enum { TILES_MAX = 8 };

/* A tile each policy: what succeeds, when it recovers, and what that takes. Of
 * more policies the table has them. */
static void make_tiles(stg_chart_set *charts, const stg_overload_case *cases,
                       size_t count, stg_page_tile *tiles,
                       stg_sim_report *report)
{
    stg_text_buffer p = stg_text_buffer_on(charts->memory);

    if (report->is_partial || count > TILES_MAX)
        return;
    for (size_t i = 0; i < count; i++) {
        const stg_overload_summary *s = cases[i].summary;

        tiles[i].name = cases[i].name;
        stg_overload_put_success(&cases[i], &p);
        stg_text_buffer_put(&p, " succeed");
        tiles[i].first = stg_chart_set_text(charts, &p);
        if (s->options->trigger.kind != STG_TRIGGER_NONE) {
            stg_text_buffer_put(&p, "recovery: ");
            stg_overload_say_recovery(s, &p);
            stg_text_buffer_put(&p, "; ");
        }
        stg_text_buffer_put_rounded(
            &p, stg_overload_summary_figure(s, STG_FIGURE_AMPLIFICATION, NULL)
                    .mean);
        stg_text_buffer_put(&p, " requests an operation");
        tiles[i].second = stg_chart_set_text(charts, &p);
    }
    report->tiles_title = "Of all operations, means of the runs.";
    report->tiles = tiles;
    report->tile_count = count;
    stg_text_buffer_free(&p);
}

/* Series are formed for --json only, and charts only if a page or pictures are
 * asked for. */
static int show(const stg_overload_ask *ask, const char *who,
                const stg_trials *t, const stg_overload_case *cases,
                size_t count)
{
    stg_memory memory = stg_sim_memory();
    stg_chart_set charts = stg_chart_set_on(&memory);
    stg_text_buffer title = stg_text_buffer_on(&memory),
                    lead = stg_text_buffer_on(&memory),
                    series = stg_text_buffer_on(&memory);
    stg_page_tile tiles[TILES_MAX];
    stg_overload_table table;
    int code = STG_EXIT_USAGE;

    say_lead(t, cases, count, &lead);
    say_title(t, cases, count, &title);
    if (ask->output.is_json)
        stg_overload_put_series(cases, count, &series);
    if (stg_sim_output_has_pictures(&ask->output))
        draw(&charts, cases, count);
    if (t->is_partial)
        stg_chart_set_conclude_nothing(&charts);
    if (stg_overload_table_make(&table, cases, count, t->seed, &memory) ==
            STG_OK &&
        !title.is_short && !lead.is_short && !series.is_short) {
        stg_sim_report report = {.title = title.text,
                                 .lead = lead.text,
                                 .table = &table.table,
                                 .series = series.text,
                                 .charts = &charts,
                                 .is_partial = t->is_partial};

        make_tiles(&charts, cases, count, tiles, &report);
        code = stg_sim_output_write(&ask->output, who, &report, ask->argc,
                                    ask->argv);
    } else {
        stg_options_complain(who, "out of memory");
    }
    stg_overload_table_free(&table);
    stg_text_buffer_free(&title);
    stg_text_buffer_free(&lead);
    stg_text_buffer_free(&series);
    stg_chart_set_free(&charts);
    return code;
}

/* Not where it was interrupted: that is said once. */
static void warn_of_cuts(const char *who, const stg_trials *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->all[i].summary.is_cut && !t->is_partial)
            stg_options_complain(
                who,
                "%s: cut where more than %u operations were under way, or "
                "nothing took any time, or memory had an end; what stands here "
                "is up to then",
                t->all[i].name, t->all[i].options.live_max);
}

static void tell_attempt(void *ctx, const stg_overload_attempt *attempt)
{
    stg_sim_events_attempt(ctx, attempt->client, attempt->attempt,
                           attempt->begun_at, attempt->ended_at,
                           attempt->outcome);
}

/* Runs the first repetition of each trial again. */
static int write_events(const char *path, const char *who, const stg_trials *t)
{
    stg_sim_events e;
    int code = stg_sim_events_open(&e, path, t->count, who);

    if (code != 0)
        return code;
    for (size_t i = 0; i < t->count && code == 0; i++) {
        stg_overload_options o = t->all[i].options;
        stg_overload_result r;

        o.on_attempt = tell_attempt;
        o.ctx = &e;
        stg_sim_events_begin(&e, t->all[i].name);
        if (stg_overload_run(&o, t->seed, 0, t->stop, &t->memory, &r) ==
            STG_OK) {
            stg_overload_free(&r, &t->memory);
        } else {
            stg_options_complain(who, "out of memory");
            code = STG_EXIT_USAGE;
        }
    }
    return code != 0 ? (fclose(e.file), code)
                     : stg_sim_events_close(&e, path, who);
}

int stg_overload_show(const stg_overload_ask *ask, const char *who,
                      const stg_trials *t)
{
    stg_overload_case *cases = calloc(t->count, sizeof *cases);
    size_t count;
    int code = 0;

    if (cases == NULL) {
        stg_options_complain(who, "out of memory");
        return STG_EXIT_USAGE;
    }
    count = stg_trials_cases(t, cases);
    if (ask->output.events != NULL && !t->is_partial)
        code = write_events(ask->output.events, who, t);
    if (count > 0 &&
        code == 0) // else it was interrupted before there was anything
        code = show(ask, who, t, cases, count);
    warn_of_cuts(who, t);
    free(cases);
    return code;
}
