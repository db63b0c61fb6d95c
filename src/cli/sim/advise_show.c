/* What `stagger sim advise` prints: the policy to paste, why it is the best,
 * what the others cost, and the command that simulates the same case alone.
 *
 * The best is the first of the finalists. After an interruption there is no
 * best: the same table is printed without conclusions. Numbers are rounded, so
 * singular and plural are chosen by what is printed (is_one). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/advise.h"
#include "cli/sim/sim.h"
#include "core/writer.h"
#include "sim/overload_report.h"

enum { COLUMNS = 13, AFTER_TEXT = 40 };

static const stg_table_column columns[COLUMNS] = {
    {"policy", "policy", false, 0},
    {"text", NULL, false, 0},
    {NULL, "after outage", false, 1},
    {NULL, "after stall", false, 0},
    {"recovery_outage_ms", NULL, true, 0},
    {"recovery_stall_ms", NULL, true, 0},
    {"recovery_outage_more_ms", NULL, true, 0},
    {"recovery_stall_more_ms", NULL, true, 0},
    {"lost_percent", "lost %", false, 0},
    {"amplification", "requests each", false, 2},
    {"peak_of_capacity", "peak/capacity", false, 3},
    {"runs", NULL, false, 0},
    {"not_recovered", "not recovered", false, 4},
};

typedef struct row {
    stg_cell cells[COLUMNS];
    char text[STG_POLICY_TEXT_MAX];
    char words[2][AFTER_TEXT];
} row;

/* -- in words -------------------------------------------------------------- */

/* In ms, of the usual load and of more of it: what takes longer. -1: in one of
 * them some run did not recover. */
static double worst_of(const stg_advice_verdict *v, stg_scenario scenario)
{
    double usual = v->recovery_ms[scenario];
    double more = v->recovery_ms[scenario == STG_SCENARIO_OUTAGE
                                     ? STG_SCENARIO_OUTAGE_MORE
                                     : STG_SCENARIO_STALL_MORE];

    if (usual < 0 || more < 0)
        return -1;
    return usual > more ? usual : more;
}

static const char *say_after(const stg_advice *a, const stg_advice_verdict *v,
                             stg_scenario scenario, char text[AFTER_TEXT])
{
    double ms = worst_of(v, scenario);

    if (ms < 0) {
        stg_overload_options o = stg_scenario_options(&a->question, scenario);

        snprintf(text, AFTER_TEXT, "not within %ju s",
                 (uintmax_t)((o.end_at - o.trigger.until_at) / STG_S));
    } else if (ms < 1)
        snprintf(text, AFTER_TEXT, "at once");
    else
        (void)stg_ns_text((stg_ns)(ms * 1e6), text);
    return text;
}

/* As it is printed. */
static bool is_one(double number)
{
    return number > 0.995 && number < 1.005;
}

static void say_question(const stg_advice *a, stg_text_buffer *p)
{
    const stg_question *q = &a->question;
    char text[STG_NS_TEXT_MAX];

    stg_text_buffer_put_rounded(p, q->clients);
    stg_text_buffer_put(p, q->clients == 1 ? " client" : " clients");
    if (q->processes != q->clients) {
        stg_text_buffer_put(p, " in ");
        stg_text_buffer_put_rounded(p, q->processes);
        stg_text_buffer_put(p, q->processes == 1 ? " process" : " processes");
    }
    stg_text_buffer_put(p, ", ");
    stg_text_buffer_put_rounded(p, (double)q->capacity / 1000);
    stg_text_buffer_put(p, is_one((double)q->capacity / 1000)
                               ? " request a second, of which "
                               : " requests a second, of which ");
    stg_text_buffer_put_rounded(p, (double)q->load / 10);
    stg_text_buffer_form(p, " %% are wanted; %s of outage",
                         stg_ns_text(q->outage, text));
    stg_text_buffer_form(p, ", %s of patience", stg_ns_text(q->patience, text));
    if (stg_question_scale(q) > 1)
        stg_text_buffer_form(p, "; simulated 1 : %d",
                             (int)stg_question_scale(q));
    stg_text_buffer_put(p, ".\n");
}

static void say_title(const stg_advice *a, stg_text_buffer *p)
{
    if (a->is_partial) {
        stg_text_buffer_put(p, "Advice: interrupted, no conclusion");
        return;
    }
    stg_text_buffer_put(p, "The policy for ");
    stg_text_buffer_put_rounded(p, a->question.clients);
    stg_text_buffer_put(p, a->question.clients == 1 ? " client" : " clients");
    stg_text_buffer_put(p, " and a service that can do ");
    stg_text_buffer_put_rounded(p, (double)a->question.capacity / 1000);
    stg_text_buffer_put(p, is_one((double)a->question.capacity / 1000)
                               ? " request a second"
                               : " requests a second");
}

/* What the best of them did not do. */
static void say_defeat(const stg_advice_verdict *v, stg_text_buffer *p)
{
    bool is_unwell = v->unwell == v->failed;

    stg_text_buffer_form(p,
                         is_unwell
                             ? "No policy helps: with the best one the service "
                               "is not well even before the trouble, in %d of "
                               "%d runs. "
                             : "No policy survives: the best one does not "
                               "recover in %d of %d runs. ",
                         (int)v->failed, (int)v->runs);
    stg_text_buffer_put(
        p, is_unwell ? "It needs less load, more capacity, or clients "
                       "with more patience.\n"
                     : "The service needs more capacity, or a shorter "
                       "queue.\n");
}

static void say_recovery(const stg_advice *a, const stg_advised *best,
                         stg_text_buffer *p)
{
    char text[AFTER_TEXT];
    double outage = worst_of(&best->verdict, STG_SCENARIO_OUTAGE);
    double stall = worst_of(&best->verdict, STG_SCENARIO_STALL);

    if (best->verdict.failed > 0) {
        say_defeat(&best->verdict, p);
        return;
    }
    stg_text_buffer_put(p, "The service is back ");
    stg_text_buffer_put(p, outage < 1 ? "" : "within ");
    stg_text_buffer_put(
        p, say_after(a, &best->verdict, STG_SCENARIO_OUTAGE, text));
    stg_text_buffer_put(p, outage < 1 ? " after an outage, and "
                                      : " of an outage's end, and ");
    stg_text_buffer_put(p, stall < 1 ? "" : "within ");
    stg_text_buffer_put(p,
                        say_after(a, &best->verdict, STG_SCENARIO_STALL, text));
    stg_text_buffer_put(p, stall < 1 ? " after a stall; in all "
                                     : " of a stall's end; in all ");
    stg_text_buffer_form(p, "%d runs, with ", (int)best->verdict.runs);
}

static void put_percent(stg_text_buffer *p, double share)
{
    const double least = 0.0001;

    if (share > 0 && share < least)
        stg_text_buffer_put(p, "less than 0.01");
    else
        stg_text_buffer_put_rounded(p, 100 * share);
    stg_text_buffer_put(p, " %");
}

/* "Hopeless" operations end in the outage whatever the policy is: they are a
 * lower bound of the loss. */
static void say_cost(const stg_advice *a, const stg_advised *best,
                     stg_text_buffer *p)
{
    const stg_advice_verdict *v = &best->verdict;
    char text[STG_NS_TEXT_MAX];

    if (v->failed == 0) {
        stg_text_buffer_put_rounded(
            p, stg_scenario_load(&a->question, STG_SCENARIO_STALL_MORE) / 10.0);
        stg_text_buffer_put(p, " % of the capacity wanted, too.\n");
    }
    stg_text_buffer_put(p, "Lost: ");
    put_percent(p, v->lost);
    stg_text_buffer_form(p, " of the operations of a run of %s; ",
                         stg_ns_text(stg_question_run(&a->question), text));
    put_percent(p, stg_question_hopeless(&a->question));
    stg_text_buffer_put(p,
                        " no policy can save, for their clients lose patience "
                        "before the outage ends.\nLoad: ");
    stg_text_buffer_put_rounded(p, v->load);
    stg_text_buffer_put(p, is_one(v->load)
                               ? " request for each operation, and "
                               : " requests for each operation, and ");
    stg_text_buffer_put_rounded(p, v->peak);
    stg_text_buffer_put(p, " times the capacity at the peak.\n");
}

/* What the ones for comparison show: why a policy is needed, and a budget. */
static void say_others(const stg_advice *a, stg_text_buffer *p)
{
    const stg_advised *best = &a->finalists[0];

    for (size_t i = 1; i < a->count; i++) {
        const stg_advised *other = &a->finalists[i];

        if (!other->is_plain)
            continue;
        stg_text_buffer_form(p, "With %s ", other->candidate.name);
        if (other->verdict.failed > best->verdict.failed) {
            stg_text_buffer_form(p, "%d of %d runs do not recover.\n",
                                 (int)other->verdict.failed,
                                 (int)other->verdict.runs);
            continue;
        }
        put_percent(p, other->verdict.lost);
        stg_text_buffer_put(p, " would be lost, at ");
        stg_text_buffer_put_rounded(p, other->verdict.load);
        stg_text_buffer_put(p, is_one(other->verdict.load)
                                   ? " request for each operation.\n"
                                   : " requests for each operation.\n");
    }
}

/* What runs the best one through a scenario, as it was done here. Errors and
 * trigger are written as they are in stg_scenario_options(), and must follow
 * it. */
static void say_command(const stg_advice *a, stg_text_buffer *p)
{
    const stg_question *q = &a->question;
    stg_overload_options o = stg_scenario_options(q, STG_SCENARIO_OUTAGE);
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
    stg_text_buffer_form(p, " --reps %d --seed ", (int)a->reps);
    stg_text_buffer_put_count(p, a->run.seed);
    stg_text_buffer_form(p, " -p '%s'\n", policy);
}

static void say_lead(const stg_advice *a, const char *text, stg_text_buffer *p)
{
    const stg_advised *best = &a->finalists[0];

    say_question(a, p);
    if (a->is_partial) {
        stg_text_buffer_put(
            p,
            "\nInterrupted: nothing is advised. The table has what "
            "was simulated until then, in no order.");
        return;
    }
    stg_text_buffer_form(p, "\n    %s\n\n", text);
    if (best->candidate.policy.attempts_max == 1 && best->verdict.failed == 0)
        stg_text_buffer_put(
            p,
            "Do not retry here: no policy that was tried is better "
            "than that by more than its error.\n");
    say_recovery(a, best, p);
    say_cost(a, best, p);
    say_others(a, p);
    stg_text_buffer_put(p, "\nThe outage in full:\n\n");
    say_command(a, p);
    stg_text_buffer_put(
        p,
        "\nThe table has the best first, and what the others cost; of "
        "the two loads, the longer recovery.");
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

    (void)stg_policy_print(&advised->candidate.policy, r->text);
    r->cells[0] = stg_cell_text(advised->candidate.name);
    r->cells[1] = stg_cell_text(r->text);
    if (!a->is_partial) {
        r->cells[2] =
            stg_cell_text(say_after(a, v, STG_SCENARIO_OUTAGE, r->words[0]));
        r->cells[3] =
            stg_cell_text(say_after(a, v, STG_SCENARIO_STALL, r->words[1]));
        r->cells[12] = stg_cell_number(v->failed);
    }
    r->cells[4] = time_cell(v->recovery_ms[STG_SCENARIO_OUTAGE]);
    r->cells[5] = time_cell(v->recovery_ms[STG_SCENARIO_STALL]);
    r->cells[6] = time_cell(v->recovery_ms[STG_SCENARIO_OUTAGE_MORE]);
    r->cells[7] = time_cell(v->recovery_ms[STG_SCENARIO_STALL_MORE]);
    r->cells[11] = stg_cell_number(v->runs);
    r->cells[8] = stg_cell_number(100 * v->lost);
    r->cells[9] = stg_cell_number(v->load);
    r->cells[10] = stg_cell_number(v->peak);
}

/* -- the picture ----------------------------------------------------------- */

/* The scenario in which those for comparison do worst: it shows why. */
static stg_scenario find_scenario(const stg_advice *a)
{
    static const stg_scenario order[] = {
        STG_SCENARIO_OUTAGE, STG_SCENARIO_STALL, STG_SCENARIO_OUTAGE_MORE,
        STG_SCENARIO_STALL_MORE};

    for (size_t k = 0; k < a->scenarios; k++)
        for (size_t i = 0; i < a->count; i++)
            if (a->finalists[i].is_plain &&
                a->finalists[i].verdict.recovery_ms[order[k]] < 0)
                return order[k];
    return STG_SCENARIO_OUTAGE;
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
static void draw(const stg_advice *a, stg_chart_set *charts)
{
    stg_overload_case cases[4];
    stg_scenario scenario = find_scenario(a);
    size_t count = 0, next = find_next(a);

    for (size_t i = 0; i < a->count; i++) {
        const stg_advised *f = &a->finalists[i];

        if ((i == 0 || i == next || f->is_plain) &&
            f->trials[scenario].summary.runs > 0)
            cases[count++] =
                (stg_overload_case){.name = f->candidate.name,
                                    .summary = &f->trials[scenario].summary};
    }
    if (count > 0)
        stg_overload_chart_rates(charts, cases, count, NULL);
}

/* -- all of it ------------------------------------------------------------- */

static int write_out(const stg_advice *a, const char *who, const row *rows,
                     const stg_table *table)
{
    stg_memory memory = stg_sim_memory();
    stg_chart_set charts = stg_chart_set_on(&memory);
    stg_text_buffer lead = stg_text_buffer_on(&memory),
                    title = stg_text_buffer_on(&memory);
    int code = STG_EXIT_USAGE;

    say_lead(a, rows[0].text, &lead);
    say_title(a, &title);
    if (stg_sim_output_has_pictures(&a->output))
        draw(a, &charts);
    if (a->is_partial)
        stg_chart_set_conclude_nothing(&charts);
    if (!lead.is_short && !title.is_short) {
        stg_sim_report report = {.title = title.text,
                                 .lead = lead.text,
                                 .table = table,
                                 .charts = &charts,
                                 .is_partial = a->is_partial};

        code = stg_sim_output_write(&a->output, who, &report, a->argc, a->argv);
    } else {
        stg_options_complain(who, "out of memory");
    }
    stg_text_buffer_free(&lead);
    stg_text_buffer_free(&title);
    stg_chart_set_free(&charts);
    return code;
}

/* Cells point into their rows, which live until all is written. */
int stg_advice_show(const stg_advice *a, const char *who)
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
        code = write_out(a, who, rows, &table);
    } else {
        stg_options_complain(who, "out of memory");
    }
    free(cells);
    free(rows);
    return code;
}
