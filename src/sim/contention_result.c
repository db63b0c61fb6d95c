#include "sim/contention_report.h"

#include <string.h>

/* The repetitions of a contention as estimates, and as rows of a table.
 *
 * Only runs that have ended count: one that was stopped has figures of a part
 * of its time, which would pull every mean down. A run that a limit ended does
 * count, and is reported in `cut`.
 *
 * fill_row() gives its cells in the order of `columns`; nothing checks that the
 * two agree but their length. A column with a NULL key is for readers only, one
 * with a NULL title for programs only. */

/* -- estimates */

typedef double measure(const stg_contention_run *run);

static double calls_of(const stg_contention_run *run)
{
    return (double)run->calls;
}

static double wasted_of(const stg_contention_run *run)
{
    return (double)stg_contention_wasted(run);
}

static double successes_of(const stg_contention_run *run)
{
    return (double)run->successes;
}

static double given_up_of(const stg_contention_run *run)
{
    return (double)run->given_up;
}

/* In ms; a run has ns. */
static double completion_of(const stg_contention_run *run)
{
    return (double)run->completion / 1e6;
}

static double peak_of(const stg_contention_run *run)
{
    return (double)run->peak;
}

/* A limit ends a run, too; only one that still runs or was stopped has not. */
static bool has_ended(const stg_contention_run *run)
{
    return run->end != STG_END_NONE && run->end != STG_END_STOPPED;
}

bool stg_contention_estimate(const stg_contention_run *runs, uint32_t count,
                             const stg_memory *memory,
                             stg_contention_result *result)
{
    const struct {
        measure *of;
        stg_estimate *to;
    } measures[] = {
        {calls_of, &result->calls},
        {wasted_of, &result->wasted},
        {successes_of, &result->successes},
        {given_up_of, &result->given_up},
        {completion_of, &result->completion_ms},
        {peak_of, &result->peak},
    };
    double *values =
        memory->allocate(memory->ctx, ((size_t)count + 1) * sizeof *values);

    if (values == NULL)
        return false;
    *result = (stg_contention_result){0};
    for (size_t m = 0; m < sizeof measures / sizeof *measures; m++) {
        size_t ended = 0;

        for (uint32_t i = 0; i < count; i++)
            if (has_ended(&runs[i]))
                values[ended++] = measures[m].of(&runs[i]);
        *measures[m].to = stg_estimate_make(values, ended);
        result->reps = (uint32_t)ended;
    }
    for (uint32_t i = 0; i < count; i++)
        if (has_ended(&runs[i]) && runs[i].end != STG_END_EMPTY)
            result->cut++;
    memory->release(memory->ctx, values);
    return true;
}

/* -- rows */

static const stg_table_column columns[] = {
    {"policy", NULL, .rank = 0},
    {"text", NULL, .rank = 0},
    {"clients", "clients", .rank = 0},
    {NULL, "policy", .rank = 0},
    {"reps", NULL, .rank = 0},
    {"seed", NULL, .rank = 0},
    {"calls", "calls", .rank = 0},
    {"wasted", "wasted", .rank = 5},
    {"successes", NULL, .rank = 0},
    {"given_up", "gave up", .rank = 6},
    {"completion_ms", "completion", .is_time = true},
    {"peak_100ms", "in 100 ms", .rank = 2},
    {"client_ms.p50", "p50", .is_time = true, .rank = 4},
    {"client_ms.p95", "p95", .is_time = true, .rank = 1},
    {"client_ms.max", "max", .is_time = true, .rank = 3},
    {"client_calls.p50", NULL, .rank = 0},
    {"client_calls.p95", NULL, .rank = 0},
    {"client_calls.max", NULL, .rank = 0},
    {"cut", NULL, .rank = 0},
    {NULL, "calls over time", .rank = 0},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

static stg_cell estimate(stg_estimate e)
{
    return stg_cell_estimate(e.mean, e.se);
}

/* When a share of the clients was done, in ms, over the clients of all
 * repetitions together: no mean of quantiles, so it has no standard error. */
static stg_cell quantile(const stg_contention_row *row, double share)
{
    return stg_cell_number(
        (double)stg_sim_tally_quantile(&row->totals->done, share) / 1e6);
}

/* How many calls a client made; a quantile over all clients, as above. */
static stg_cell attempts(const stg_contention_row *row, double share)
{
    return stg_cell_number(
        (double)stg_sim_tally_quantile(&row->totals->attempts, share));
}

/* Calls in each slice until the mean completion. The series goes on to the end
 * of the slowest run, and would be mostly flat. */
static stg_cell spark(stg_chart_set *a, const stg_contention_row *row)
{
    const stg_sim_series *s = &row->totals->calls;
    double slices = row->result.completion_ms.mean * 1e6 / (double)s->width + 1;
    size_t count = slices < (double)s->used ? (size_t)slices : s->used;
    double *curve = stg_chart_set_take(a, count * sizeof *curve);

    for (size_t i = 0; curve != NULL && i < count; i++)
        curve[i] = (double)s->sums[i];
    return stg_cell_spark(curve, curve == NULL ? 0 : count);
}

static void fill_row(stg_chart_set *a, const stg_contention_row *row,
                     stg_cell *cells)
{
    const stg_contention_result *r = &row->result;
    const stg_cell filled[COLUMNS] = {
        stg_cell_text(row->policy),
        stg_cell_text(row->text),
        stg_cell_number(row->clients),
        stg_cell_text(row->policy),
        stg_cell_number(r->reps),
        stg_cell_number((double)row->seed),
        estimate(r->calls),
        estimate(r->wasted),
        estimate(r->successes),
        estimate(r->given_up),
        estimate(r->completion_ms),
        estimate(r->peak),
        quantile(row, 0.5),
        quantile(row, 0.95),
        quantile(row, 1),
        attempts(row, 0.5),
        attempts(row, 0.95),
        attempts(row, 1),
        stg_cell_number(r->cut),
        spark(a, row),
    };

    memcpy(cells, filled, sizeof filled);
}

bool stg_contention_table(stg_chart_set *a, const stg_contention_row *rows,
                          size_t count, stg_table *table)
{
    stg_cell *cells = stg_chart_set_take(a, count * COLUMNS * sizeof *cells);

    *table = (stg_table){.columns = columns,
                         .column_count = COLUMNS,
                         .cells = cells,
                         .row_count = cells == NULL ? 0 : count};
    for (size_t i = 0; cells != NULL && i < count; i++)
        fill_row(a, &rows[i], &cells[COLUMNS * i]);
    return !a->is_short;
}
