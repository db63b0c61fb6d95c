/* What `stagger sim advise --resource` prints: the policy to paste and the spread
 * of the starts, why, what the others cost, and the command that simulates the
 * same case alone. */
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/advise.h"
#include "core/writer.h"

static const stg_table_column columns[] = {
    {"policy", "policy", false, 0},
    {"text", NULL, false, 0},
    {"start_ms", NULL, true, 0},
    {"completion_ms", "done", true, 0},
    {"completion_half_ms", "half of them", true, 2},
    {"completion_twice_ms", "twice as many", true, 1},
    {"calls_each", "calls each", false, 0},
    {"missed_percent", "without success %", false, 0},
    {"peak_100ms", "in 100 ms", false, 3},
    {"runs", NULL, false, 0},
    {"unfinished", NULL, false, 0},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

static stg_cell cell_of(stg_estimate e)
{
    return stg_cell_estimate(e.mean, e.se);
}

static void fill(stg_cell *cells, char *text, const stg_drained *each)
{
    const stg_drain_verdict *v = &each->verdict;
    const stg_cell filled[COLUMNS] = {
        stg_cell_text(each->name),
        stg_cell_text(text),
        stg_cell_number((double)each->candidate.start / 1e6),
        cell_of(v->done_ms[0]),
        cell_of(v->done_ms[2]),
        cell_of(v->done_ms[1]),
        stg_cell_number(v->each[0]),
        stg_cell_number(100 * v->missed),
        stg_cell_number(v->peak_ms100),
        stg_cell_number(v->runs),
        stg_cell_number(v->unfinished),
    };

    (void)stg_policy_print(&each->candidate.policy, text);
    memcpy(cells, filled, sizeof filled);
}

/* -- in words -------------------------------------------------------------- */

static void say_cases(const stg_drain *d, stg_text_buffer *p)
{
    stg_drain_case cases[STG_DRAIN_FIELD_MAX];
    stg_drain_report r = {.question = &d->question,
                          .cases = cases,
                          .count = d->count,
                          .tried = d->tried,
                          .reps = d->ask->reps};

    for (size_t i = 0; i < d->count; i++) {
        const stg_drained *each = &d->field[i];

        cases[i] = (stg_drain_case){
            .name = each->name,
            .is_plain = each->is_plain,
            .start = each->candidate.start,
            .verdict = &each->verdict,
            .more = stg_drain_compare_runs(&d->question, each->runs,
                                           d->field[0].runs, d->ask->reps)};
    }
    stg_drain_say(&r, p);
}

/* What runs the best one as it was done here; it must follow
 * stg_drain_options(). */
static void say_command(const stg_drain *d, const char *policy,
                        stg_text_buffer *p)
{
    stg_contention_options o = stg_drain_options(&d->question, 0);
    char resource[STG_RESOURCE_TEXT_MAX], network[STG_DISTRIBUTION_TEXT_MAX],
        start[STG_DURATION_TEXT_MAX];

    stg_text_buffer_put(p, "    stagger sim contention -n ");
    stg_text_buffer_put_count(p, o.clients);
    stg_text_buffer_form(p, " -r '%s' --network %s",
                         stg_resource_print(&o.resource, resource),
                         stg_distribution_print(&o.network, network));
    if (d->field[0].candidate.start > 0)
        stg_text_buffer_form(
            p, " --start %s",
            stg_duration_text(d->field[0].candidate.start, start));
    stg_text_buffer_form(p, " --reps %d --seed ", (int)d->ask->reps);
    stg_text_buffer_put_count(p, d->ask->run.seed);
    stg_text_buffer_form(p, " -p '%s'\n", policy);
}

static void say_lead(const stg_drain *d, const char *policy, stg_text_buffer *p)
{
    char start[STG_DURATION_TEXT_MAX];

    stg_drain_say_question(&d->question, p);
    stg_text_buffer_form(p, "\n    %s\n", policy);
    if (d->field[0].candidate.start > 0)
        stg_text_buffer_form(
            p, "    --start %s\n",
            stg_duration_text(d->field[0].candidate.start, start));
    stg_text_buffer_put(p, "\n");
    say_cases(d, p);
    stg_text_buffer_put(p, "\nThe same with all numbers and pictures:\n\n");
    say_command(d, policy, p);
    stg_text_buffer_put(p,
                        "\nThe table has the best first, and what the others "
                        "cost: means over the runs.");
}

/* -- the picture ----------------------------------------------------------- */

/* Finalists with which no fewer clients succeed than with the best. Returns how many. */
static size_t find_spots(const stg_drain *d,
                         stg_chart_spot spots[STG_DRAIN_FIELD_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < d->count; i++) {
        const stg_drain_verdict *v = &d->field[i].verdict;

        if (v->missed <= d->field[0].verdict.missed)
            spots[count++] =
                (stg_chart_spot){.name = d->field[i].name,
                                 .colour = (unsigned)i,
                                 .point = {.x = v->each[0],
                                           .y = v->done_ms[0].mean,
                                           .y_se = v->done_ms[0].se}};
    }
    return count;
}

/* Draws the cost of each finalist: calls for each success, against the time
 * until the last client is done. */
static void draw(const stg_drain *d, stg_chart_set *charts)
{
    stg_chart_spot spots[STG_DRAIN_FIELD_MAX];
    size_t count = find_spots(d, spots);
    stg_chart_draft draft;

    if (!stg_chart_set_add(charts, "advice-frontier", 1, count + 1, &draft))
        return;
    draft.chart->title = "What the candidates of the last round take and cost";
    draft.chart->note =
        "Means of the runs with as many clients as asked, of those with which no "
        "fewer succeed than with the best; left is better, and down. The line "
        "joins those that no other one beats in both.";
    draft.chart->x =
        (stg_chart_axis){.label = "calls for each success", .unit = "calls"};
    draft.panels[0].y = (stg_chart_axis){
        .label = "until the last client is done", .is_time = true};
    stg_chart_set_frontier(charts, spots, count, 0, STG_DRAINED_MAX,
                           draft.series);
}

/* -- all of it ------------------------------------------------------------- */

static int write_out(const stg_drain *d, const char *who, const char *policy,
                     const stg_table *table)
{
    stg_memory memory = stg_sim_memory();
    stg_chart_set charts = stg_chart_set_on(&memory);
    stg_text_buffer lead = stg_text_buffer_on(&memory);
    int code = STG_EXIT_USAGE;

    say_lead(d, policy, &lead);
    if (stg_sim_output_has_pictures(&d->ask->output))
        draw(d, &charts);
    if (!lead.is_short && !charts.is_short) {
        stg_sim_report report = {
            .title = "The policy for clients that begin together",
            .lead = lead.text,
            .table = table,
            .charts = &charts};

        code = stg_sim_output_write(&d->ask->output, who, &report, d->ask->argc,
                                    d->ask->argv);
    } else {
        stg_options_complain(who, "out of memory");
    }
    stg_text_buffer_free(&lead);
    stg_chart_set_free(&charts);
    return code;
}

/* Cells point into their texts, which live until all is written. */
int stg_drain_show(const stg_drain *d, const char *who)
{
    char(*texts)[STG_POLICY_TEXT_MAX] = calloc(d->count, sizeof *texts);
    stg_cell *cells = calloc(d->count * COLUMNS, sizeof *cells);
    stg_table table = {.columns = columns,
                       .column_count = COLUMNS,
                       .cells = cells,
                       .row_count = d->count};
    int code = STG_EXIT_USAGE;

    if (texts != NULL && cells != NULL) {
        for (size_t i = 0; i < d->count; i++)
            fill(&cells[i * COLUMNS], texts[i], &d->field[i]);
        code = write_out(d, who, texts[0], &table);
    } else {
        stg_options_complain(who, "out of memory");
    }
    free(cells);
    free(texts);
    return code;
}
