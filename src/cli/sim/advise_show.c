/* The output of `stagger sim advise`: the policy to paste, why it is the best,
 * what the others cost, and the command that simulates the same case alone.
 *
 * The best is the first of the finalists. After an interruption there is no
 * best: the same table is printed without conclusions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/advise.h"
#include "cli/sim/sim.h"
#include "core/writer.h"
#include "sim/overload_report.h"

enum { COLUMNS = 15 };

static const stg_table_column columns[COLUMNS] = {
    {"policy", "policy", false, 0},
    {"text", NULL, false, 0},
    {NULL, "after outage", false, 1},
    {NULL, "after stall", false, 0},
    {"recovery_outage_ms", NULL, true, 0},
    {"recovery_stall_ms", NULL, true, 0},
    {"recovery_outage_most_ms", NULL, true, 0},
    {"recovery_stall_most_ms", NULL, true, 0},
    {"lost_percent", "lost %", false, 0},
    {"lost_asked_percent", NULL, false, 0},
    {"amplification", "requests each", false, 2},
    {"peak_of_capacity", "peak/capacity", false, 3},
    {"p99_ms", "p99", true, 3},
    {"runs", NULL, false, 0},
    {"not_recovered", "not recovered", false, 4},
};

typedef struct row {
    stg_cell cells[COLUMNS];
    char text[STG_POLICY_TEXT_MAX];
    char words[2][STG_ADVICE_AFTER_MAX];
} row;

/* -- in words -------------------------------------------------------------- */

static void say_title(const stg_advice *a, stg_text_buffer *p)
{
    if (a->is_partial) {
        stg_text_buffer_put(p, "Advice: interrupted, no conclusion");
        return;
    }
    stg_text_buffer_put(p, "The policy for ");
    stg_text_buffer_put_counted(p, a->question.clients, " client", " clients");
    stg_text_buffer_put(p, " and a service that can do ");
    stg_text_buffer_put_counted(p, (double)a->question.capacity / 1000,
                                " request a second", " requests a second");
}

/* Prints the command that runs the best policy through the first scenario, as
 * it was run here. Errors and trigger are constants of stg_scenario_options(),
 * repeated here: a change there must be made here, too. */
static void say_command(const stg_advice *a, const stg_advise_ask *ask,
                        stg_text_buffer *p)
{
    const stg_question *q = &a->question;
    stg_overload_options o = stg_scenario_options(q, stg_scenario_at(0));
    char policy[STG_POLICY_TEXT_MAX], text[512],
        distribution[STG_DISTRIBUTION_TEXT_MAX];
    stg_writer w = stg_writer_on(text, sizeof text);

    o.policy = stg_question_policy(q, &a->finalists[0].candidate.policy);
    (void)stg_policy_print(&o.policy, policy);
    stg_write_text(&w, "--rate ");
    stg_write_thousandths(&w, o.load.rate);
    stg_write_text(&w, " --processes ");
    stg_write_number(&w, o.processes);
    stg_write_text(&w, " --workers ");
    stg_write_number(&w, o.service.workers);
    stg_write_text(&w, " --service ");
    stg_write_text(&w, stg_distribution_print(&o.service.time, distribution));
    stg_write_text(&w, " --queue ");
    stg_write_number(&w, o.service.queue_max);
    stg_write_text(&w, " --timeout ");
    stg_write_duration(&w, o.timeout);
    stg_write_text(&w, " --errors 1% --trigger outage --from ");
    stg_write_duration(&w, o.trigger.from_at);
    stg_write_text(&w, " --to ");
    stg_write_duration(&w, o.trigger.until_at);
    stg_write_text(&w, " --warmup ");
    stg_write_duration(&w, o.warmup);
    stg_write_text(&w, " --duration ");
    stg_write_duration(&w, o.end_at);
    stg_text_buffer_form(p, "    stagger sim overload %s", text);
    stg_text_buffer_form(p, " --reps %d --seed ", (int)ask->reps);
    stg_text_buffer_put_count(p, ask->run.seed);
    stg_text_buffer_form(p, " -p '%s'\n", policy);
}

static void say_lead(const stg_advice *a, const stg_advise_ask *ask,
                     const char *text, stg_text_buffer *p)
{
    stg_advice_case cases[STG_ADVISED_MAX];
    stg_advice_report report;

    stg_advice_say_question(&a->question, p);
    if (a->is_partial) {
        stg_text_buffer_put(
            p,
            "\nInterrupted: nothing is advised. The table has what "
            "was simulated until then, in no order.");
        return;
    }
    stg_text_buffer_form(p, "\n    %s\n\n", text);
    report = stg_advice_report_on(a, cases);
    stg_advice_say(&report, p);
    stg_text_buffer_put(p, "\nThe outage in full:\n\n");
    say_command(a, ask, p);
    stg_text_buffer_put(
        p,
        "\nThe table has the best first, and what the others cost: means "
        "of all runs, and the longest mean recovery of any scenario.");
}

/* -- the table ------------------------------------------------------------- */

/* Below 0: some run did not recover. */
static stg_cell time_cell(double ms)
{
    return ms < 0 ? (stg_cell){.kind = STG_CELL_NONE} : stg_cell_number(ms);
}

/* After an interruption the words about recovery and the failures are left
 * empty: candidates had different numbers of runs. */
static void fill(row *r, const stg_advice *a, const stg_advised *advised)
{
    const stg_advice_verdict *v = &advised->verdict;
    double outage = stg_verdict_worst(v, a->scenarios, STG_TRIGGER_OUTAGE);
    double stall = stg_verdict_worst(v, a->scenarios, STG_TRIGGER_STALL);

    (void)stg_policy_print(&advised->candidate.policy, r->text);
    r->cells[0] = stg_cell_text(advised->name);
    r->cells[1] = stg_cell_text(r->text);
    if (!a->is_partial) {
        r->cells[2] = stg_cell_text(stg_advice_say_after(outage, r->words[0]));
        r->cells[3] = stg_cell_text(stg_advice_say_after(stall, r->words[1]));
        r->cells[6] = time_cell(outage);
        r->cells[7] = time_cell(stall);
        r->cells[14] = stg_cell_number(v->failed);
    }
    r->cells[4] = time_cell(v->recovery_ms[0]);
    r->cells[5] = time_cell(v->recovery_ms[1]);
    r->cells[8] = stg_cell_number(100 * v->lost);
    r->cells[9] = stg_cell_number(100 * v->lost_asked);
    r->cells[10] = stg_cell_number(v->load);
    r->cells[11] = stg_cell_number(v->peak);
    r->cells[12] = time_cell(v->p99_runs > 0 ? v->p99_ms : -1);
    r->cells[13] = stg_cell_number(v->runs);
}

/* -- the picture ----------------------------------------------------------- */

/* The scenario in which those for comparison do worst: it shows why. */
static size_t find_scenario(const stg_advice *a)
{
    for (size_t k = 0; k < a->scenarios; k++)
        for (size_t i = 0; i < a->count; i++)
            if (a->finalists[i].is_plain &&
                a->finalists[i].verdict.failed_in[k] > 0)
                return k;
    return 0;
}

/* Not one of those that came to just the same as the best. */
static size_t find_next(const stg_advice *a)
{
    for (size_t i = 1; i < a->count; i++)
        if (!a->finalists[i].is_plain &&
            a->finalists[i].verdict.lost != a->finalists[0].verdict.lost)
            return i;
    return 0;
}

/* The best, the next, and those for comparison. */
static void draw_rates(const stg_advice *a, stg_chart_set *charts)
{
    stg_overload_case cases[4];
    size_t count = 0, scenario = find_scenario(a), next = find_next(a);

    for (size_t i = 0; i < a->count; i++) {
        const stg_advised *f = &a->finalists[i];

        if ((i == 0 || i == next || f->is_plain) && f->trials != NULL &&
            f->trials[scenario].summary.runs > 0)
            cases[count++] = (stg_overload_case){
                .name = f->name, .summary = &f->trials[scenario].summary};
    }
    if (count > 0)
        stg_overload_chart_rates(charts, cases, count, NULL);
}

/* What is paid for a lower loss, a panel each. */
enum { PRICES = 2 };

static double price_of(const stg_advised *each, size_t panel)
{
    return panel == 0 ? each->verdict.load : each->verdict.p99_ms;
}

/* Those that do not recover as often as the best are out, and off the scale. */
static bool is_drawn(const stg_advice *a, const stg_advised *each)
{
    return each->verdict.failed == a->finalists[0].verdict.failed;
}

/* Returns how many. */
static size_t find_spots(const stg_advice *a, size_t panel,
                         stg_chart_spot spots[STG_ADVISED_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < a->count; i++) {
        const stg_advised *each = &a->finalists[i];

        if (is_drawn(a, each))
            spots[count++] =
                (stg_chart_spot){.name = each->name,
                                 .colour = (unsigned)i,
                                 .point = {.x = 100 * each->verdict.lost,
                                           .y = price_of(each, panel)}};
    }
    return count;
}

/* What each finalist costs: load and latency, against the loss. */
static void draw_frontier(const stg_advice *a, stg_chart_set *charts)
{
    stg_chart_spot spots[STG_ADVISED_MAX];
    size_t count = find_spots(a, 0, spots), each = count + 1; // and the line
    stg_chart_draft draft;

    if (!stg_chart_set_add(charts, "advice-frontier", PRICES, PRICES * each,
                           &draft))
        return;
    draft.chart->title = "What the candidates of the last round lose and cost";
    draft.chart->note =
        "Means of all scenarios, of those that recover as often as the best; "
        "left is better, and down. The lines join those that no other one "
        "beats in both.";
    draft.chart->x =
        (stg_chart_axis){.label = "operations that are lost", .unit = "%"};
    draft.panels[0].name = "load";
    draft.panels[0].y = (stg_chart_axis){.label = "requests for each operation",
                                         .unit = "requests"};
    draft.panels[1].name = "latency";
    draft.panels[1].y =
        (stg_chart_axis){.label = "p99 of what succeeds", .is_time = true};
    for (size_t panel = 0; panel < PRICES; panel++) {
        (void)find_spots(a, panel, spots);
        stg_chart_set_frontier(charts, spots, count, (unsigned)panel,
                               STG_ADVISED_MAX, &draft.series[panel * each]);
    }
}

/* Where a round was interrupted, its candidates had different runs. */
static void draw(const stg_advice *a, stg_chart_set *charts)
{
    if (!a->is_partial)
        draw_frontier(a, charts);
    draw_rates(a, charts);
}

/* -- all of it ------------------------------------------------------------- */

static int write_out(const stg_advice *a, const stg_advise_ask *ask,
                     const char *who, const row *rows, const stg_table *table)
{
    stg_memory memory = stg_sim_memory();
    stg_chart_set charts = stg_chart_set_on(&memory);
    stg_text_buffer lead = stg_text_buffer_on(&memory),
                    title = stg_text_buffer_on(&memory);
    int code = STG_EXIT_USAGE;

    say_lead(a, ask, rows[0].text, &lead);
    say_title(a, &title);
    if (stg_sim_output_has_pictures(&ask->output))
        draw(a, &charts);
    if (a->is_partial)
        stg_chart_set_conclude_nothing(&charts);
    if (!lead.is_short && !title.is_short) {
        stg_sim_report report = {.title = title.text,
                                 .lead = lead.text,
                                 .table = table,
                                 .charts = &charts,
                                 .is_partial = a->is_partial};

        code = stg_sim_output_write(&ask->output, who, &report, ask->argc,
                                    ask->argv);
    } else {
        stg_options_complain(who, "out of memory");
    }
    stg_text_buffer_free(&lead);
    stg_text_buffer_free(&title);
    stg_chart_set_free(&charts);
    return code;
}

/* Cells point into their rows, which live until all is written. */
int stg_advice_show(const stg_advice *a, const stg_advise_ask *ask,
                    const char *who)
{
    row *rows = calloc(a->count, sizeof *rows);
    stg_cell *cells = calloc(a->count * COLUMNS, sizeof *cells);
    stg_table table = {.columns = columns,
                       .column_count = COLUMNS,
                       .cells = cells,
                       .row_count = a->count};
    int code = STG_EXIT_USAGE;

    if (rows != NULL && cells != NULL) {
        for (size_t i = 0; i < a->count; i++) {
            fill(&rows[i], a, &a->finalists[i]);
            memcpy(&cells[i * COLUMNS], rows[i].cells, sizeof rows[i].cells);
        }
        code = write_out(a, ask, who, rows, &table);
    } else {
        stg_options_complain(who, "out of memory");
    }
    free(cells);
    free(rows);
    return code;
}
