/* --edge KEY=FROM..TO: the value at which recovery ends.
 *
 * A value holds if every run with it recovers. Each case is tried at both ends;
 * where they differ, the edge lies between, and the span is cut into PARTS,
 * round after round, until it is one step. What is found is an edge on the way,
 * and the only one if whatever is worse for a service stays worse. Values are
 * whole steps, of a two-hundredth of the range about, so that they can be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/overload.h"
#include "sim/overload_report.h"

enum { PARTS = 5, STEPS_MIN = 200, COLUMNS = 7 };

int stg_edge_read(stg_edge *edge, const char *who, const char *option,
                  const char *text)
{
    const char *between = strchr(text, '=');
    size_t length = between == NULL ? 0 : (size_t)(between - text);

    if (length > 0 && length < sizeof edge->key &&
        stg_range_read(&edge->range, between + 1)) {
        memcpy(edge->key, text, length);
        edge->key[length] = '\0';
        return 0;
    }
    stg_options_complain(who,
                         "%s=%.60s: expected a setting and a range, such "
                         "as to=21s..80s or rate=500..950",
                         option, text);
    return STG_EXIT_USAGE;
}

/* -- what is tried --------------------------------------------------------- */

/* A case, and what is known of it: values are numbers of steps. */
typedef struct found {
    const stg_trial *trial;
    uint64_t low, high; /* tried, and nothing between them */
    bool low_holds, high_holds;
    bool is_cut; /* a run ended early: nobody knows */
} found;

typedef struct search {
    const stg_overload_ask *ask;
    const char *who;
    uint64_t step, steps; /* of the range */
    found *all;
    size_t count;
    bool is_partial;
} search;

static uint64_t value_of(const search *s, uint64_t step)
{
    const stg_range *r = &s->ask->edge.range;
    uint64_t value = r->from + step * s->step;

    return value < r->to ? value : r->to;
}

static int make(const search *s, const stg_trial *from, uint64_t step,
                stg_trial *trial)
{
    const stg_edge *edge = &s->ask->edge;
    char text[STG_RANGE_TEXT_MAX];
    int code;

    *trial = *from;
    stg_range_print(&edge->range, value_of(s, step), text);
    code = stg_trial_vary(trial, edge->key, text, s->who, "--edge");
    return code != 0 ? code : stg_trial_settle(trial, s->who, "--edge");
}

static bool holds(const stg_trial *t)
{
    return t->summary.recovered == t->summary.runs && t->summary.runs > 0;
}

/* Runs trials that are made. Returns 0, or complains. They are to be closed in
 * either case. */
static int run(search *s, stg_trials *t)
{
    stg_error err;

    t->reps = s->ask->reps;
    stg_trials_prepare(t, &s->ask->run, NULL);
    if (stg_trials_run(t, &err) != STG_OK) {
        stg_options_complain(s->who, "%s", err.text);
        return STG_EXIT_USAGE;
    }
    s->is_partial |= t->is_partial;
    return 0;
}

/* -- rounds ---------------------------------------------------------------- */

/* The steps to try of a case in this round, PARTS at most, all of them new. */
static size_t choose(const found *f, bool is_first, uint64_t steps,
                     uint64_t at[PARTS])
{
    uint64_t span = f->high - f->low;
    size_t count = 0;

    if (is_first) {
        at[0] = 0;
        at[1] = steps;
        return 2;
    }
    if (f->low_holds == f->high_holds || f->is_cut)
        return 0;
    for (uint64_t i = 1; i < PARTS; i++) {
        uint64_t step = f->low + span * i / PARTS;

        if (step > f->low && step < f->high &&
            (count == 0 || step > at[count - 1]))
            at[count++] = step;
    }
    return count;
}

/* The first change from the low end on is the edge. */
static void learn(found *f, bool is_first, const uint64_t at[PARTS],
                  const stg_trial *trials, size_t count)
{
    for (size_t i = 0; i < count; i++)
        f->is_cut |= trials[i].summary.is_cut;
    if (is_first) {
        f->low = at[0];
        f->high = at[1];
        f->low_holds = holds(&trials[0]);
        f->high_holds = holds(&trials[1]);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (holds(&trials[i]) != f->low_holds) {
            f->high = at[i];
            return;
        }
        f->low = at[i];
    }
}

typedef struct round_plan {
    uint64_t at[PARTS];
    size_t first, count;
} round_plan;

static int make_round(search *s, bool is_first, round_plan *plans,
                      stg_trials *t)
{
    for (size_t i = 0; i < s->count; i++) {
        plans[i].first = t->count;
        plans[i].count = choose(&s->all[i], is_first, s->steps, plans[i].at);
        for (size_t k = 0; k < plans[i].count; k++) {
            int code =
                make(s, s->all[i].trial, plans[i].at[k], &t->all[t->count]);

            if (code != 0)
                return code;
            t->count++;
        }
    }
    return 0;
}

/* *is_over: there was nothing left to try. */
static int hold_round(search *s, bool is_first, bool *is_over)
{
    round_plan *plans = calloc(s->count, sizeof *plans);
    stg_trials t = {.all = calloc(s->count * PARTS, sizeof *t.all)};
    int code = STG_EXIT_USAGE;

    if (plans == NULL || t.all == NULL)
        stg_options_complain(s->who, "out of memory");
    else
        code = make_round(s, is_first, plans, &t);
    *is_over = t.count == 0;
    if (code == 0 && t.count > 0)
        code = run(s, &t);
    for (size_t i = 0; i < s->count && code == 0 && !s->is_partial; i++)
        learn(&s->all[i], is_first, plans[i].at, &t.all[plans[i].first],
              plans[i].count);
    stg_trials_close(&t);
    free(t.all);
    free(plans);
    return code;
}

static int hold_rounds(search *s)
{
    bool is_over = false;
    int code = hold_round(s, true, &is_over);

    while (code == 0 && !is_over && !s->is_partial)
        code = hold_round(s, false, &is_over);
    return code;
}

/* -- what was found -------------------------------------------------------- */

enum { WORDS_MAX = 2 * STG_RANGE_TEXT_MAX + 32 };

/* "up to 41s, not with 41.5s" */
static void say(const search *s, const found *f, char words[WORDS_MAX])
{
    const stg_range *r = &s->ask->edge.range;
    char low[STG_RANGE_TEXT_MAX], high[STG_RANGE_TEXT_MAX];

    stg_range_print(r, value_of(s, f->low), low);
    stg_range_print(r, value_of(s, f->high), high);
    if (f->is_cut)
        snprintf(words, WORDS_MAX, "not known: a run was cut");
    else if (f->low_holds && f->high_holds)
        snprintf(words, WORDS_MAX, "with %s and with %s", low, high);
    else if (!f->low_holds && !f->high_holds)
        snprintf(words, WORDS_MAX, "neither with %s nor with %s", low, high);
    else if (f->low_holds)
        snprintf(words, WORDS_MAX, "up to %s, not with %s", low, high);
    else
        snprintf(words, WORDS_MAX, "from %s on, not with %s", high, low);
}

/* Times in milliseconds, as in all tables; else the number itself. */
static stg_cell cell_of(const search *s, const found *f, uint64_t step)
{
    double value = (double)value_of(s, step);

    if (f->is_cut || f->low_holds == f->high_holds)
        return (stg_cell){.kind = STG_CELL_NONE};
    return stg_cell_number(value / (s->ask->edge.range.is_time ? 1e6 : 1e3));
}

static void fill(const search *s, const found *f, char words[WORDS_MAX],
                 stg_cell cells[COLUMNS])
{
    say(s, f, words);
    cells[0] = stg_cell_text(f->trial->name);
    cells[1] = stg_cell_text(s->ask->edge.key);
    cells[2] = stg_cell_text(words);
    cells[3] = cell_of(s, f, f->low_holds ? f->low : f->high);
    cells[4] = cell_of(s, f, f->low_holds ? f->high : f->low);
    cells[5] = stg_cell_number(s->ask->reps);
    cells[6] = f->is_cut ? (stg_cell){.kind = STG_CELL_NONE}
                         : stg_cell_fact(f->low_holds && f->high_holds);
}

static int write_out(const search *s, const stg_cell *cells)
{
    const stg_table_column columns[COLUMNS] = {
        {"policy", "policy", .rank = 0},
        {"key", NULL, .rank = 0},
        {"words", "recovers, in every run", .rank = 0},
        {"recovers_at", NULL, .rank = 0},
        {"fails_at", NULL, .rank = 0},
        {"reps", NULL, .rank = 0},
        {"recovers_everywhere", NULL, .rank = 0},
    };
    const stg_table table = {.columns = columns,
                             .column_count = COLUMNS,
                             .cells = cells,
                             .row_count = s->count};
    stg_memory memory = stg_sim_memory();
    stg_text_buffer lead = stg_text_buffer_on(&memory);
    stg_chart_set none = stg_chart_set_on(&memory);
    char from[STG_RANGE_TEXT_MAX], to[STG_RANGE_TEXT_MAX];
    const stg_range *r = &s->ask->edge.range;
    int code;

    stg_text_buffer_form(&lead, "Where recovery ends: %s from %s to %s, ",
                         s->ask->edge.key, stg_range_print(r, r->from, from),
                         stg_range_print(r, r->to, to));
    if (s->ask->reps == 1)
        stg_text_buffer_put(&lead, "one run of each value that was tried.");
    else
        stg_text_buffer_form(&lead, "%d runs of each value that was tried.",
                             (int)s->ask->reps);
    if (lead.is_short) {
        stg_options_complain(s->who, "out of memory");
        code = STG_EXIT_USAGE;
    } else {
        stg_sim_report report = {.title = "Overload: where recovery ends",
                                 .lead = lead.text,
                                 .table = &table,
                                 .charts = &none};

        code = stg_sim_output_write(&s->ask->output, s->who, &report,
                                    s->ask->argc, s->ask->argv);
    }
    stg_chart_set_free(&none);
    stg_text_buffer_free(&lead);
    return code;
}

static int show(const search *s)
{
    stg_cell *cells = calloc(s->count * COLUMNS, sizeof *cells);
    char(*words)[WORDS_MAX] = calloc(s->count, sizeof *words);
    int code = STG_EXIT_USAGE;

    if (cells != NULL && words != NULL) {
        for (size_t i = 0; i < s->count; i++)
            fill(s, &s->all[i], words[i], &cells[i * COLUMNS]);
        code = write_out(s, cells);
    } else {
        stg_options_complain(s->who, "out of memory");
    }
    free(words);
    free(cells);
    return code;
}

int stg_edge_find(const stg_overload_ask *ask, const char *who,
                  const stg_trial *trials, size_t count)
{
    search s = {.ask = ask, .who = who, .count = count};
    const stg_range *r = &ask->edge.range;
    int code;

    if (ask->options.trigger.kind == STG_TRIGGER_NONE) {
        stg_options_complain(who,
                             "--edge: without trouble there is nothing to "
                             "recover from; expected another --trigger");
        return STG_EXIT_USAGE;
    }
    s.step = stg_range_divide(r, STEPS_MIN);
    s.steps = (r->to - r->from + s.step - 1) / s.step;
    s.all = calloc(count, sizeof *s.all);
    if (s.all == NULL) {
        stg_options_complain(who, "out of memory");
        return STG_EXIT_USAGE;
    }
    for (size_t i = 0; i < count; i++)
        s.all[i].trial = &trials[i];
    code = hold_rounds(&s);
    if (code == 0 && s.is_partial) {
        stg_options_complain(who, "interrupted before the edge was found");
        code = STG_EXIT_INTERRUPTED;
    } else if (code == 0) {
        code = show(&s);
    }
    free(s.all);
    return code;
}
