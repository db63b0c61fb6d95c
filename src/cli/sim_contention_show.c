/* What `stagger sim contention` prints, and writes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim_contention.h"
#include "cli/sim_contention_charts.h"
#include "cli/sim_memory.h"
#include "cli/sim_output.h"

static const char who[] = "stagger sim contention";

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
    {"cut", NULL, .rank = 0},
    {NULL, "calls over time", .rank = 0},
};

enum { COLUMNS = sizeof columns / sizeof *columns };

static stg_cell estimate(stg_estimate e)
{
    return stg_cell_estimate(e.mean, e.se);
}

static stg_cell quantile(const stg_study_cell *cell, double share)
{
    return stg_cell_number(
        (double)stg_sim_tally_quantile(&cell->book.done, share) / 1e6);
}

/* Calls in each slice until the mean completion. */
static stg_cell spark(stg_album *album, const stg_study_cell *cell,
                      const stg_study_result *r)
{
    const stg_sim_series *s = &cell->book.calls;
    double slices = r->completion_ms.mean * 1e6 / (double)s->width + 1;
    size_t count = slices < (double)s->used ? (size_t)slices : s->used;
    double *curve = stg_album_take(album, count * sizeof *curve);

    for (size_t i = 0; curve != NULL && i < count; i++)
        curve[i] = (double)s->sums[i];
    return stg_cell_spark(curve, curve == NULL ? 0 : count);
}

static void fill_row(stg_album *album, const stg_study *study,
                     const stg_study_cell *cell, const stg_study_result *r,
                     stg_cell *row)
{
    const stg_cell cells[COLUMNS] = {
        stg_cell_text(cell->policy->name),
        stg_cell_text(cell->policy->text),
        stg_cell_number(cell->clients),
        stg_cell_text(cell->policy->name),
        stg_cell_number(cell->reps),
        stg_cell_number((double)study->options.each.seed),
        estimate(r->calls),
        estimate(r->wasted),
        estimate(r->successes),
        estimate(r->given_up),
        estimate(r->completion_ms),
        estimate(r->peak),
        quantile(cell, 0.5),
        quantile(cell, 0.95),
        quantile(cell, 1),
        stg_cell_number(r->cut),
        spark(album, cell, r),
    };

    memcpy(row, cells, sizeof cells);
}

static bool fill_table(stg_album *album, const stg_study *study, stg_table *t)
{
    stg_cell *cells =
        stg_album_take(album, study->count * COLUMNS * sizeof *cells);

    *t = (stg_table){
        .columns = columns, .column_count = COLUMNS, .cells = cells};
    for (size_t i = 0; cells != NULL && i < study->count; i++) {
        stg_study_result r;

        if (study->cells[i].reps == 0)
            continue;
        if (!stg_study_judge(study, &study->cells[i], &r))
            return false;
        fill_row(album, study, &study->cells[i], &r,
                 &cells[COLUMNS * t->row_count++]);
    }
    return !album->is_short;
}

int stg_contention_show(const stg_contention_settings *s,
                        const stg_study *study)
{
    char resource[STG_RESOURCE_TEXT_MAX], lead[STG_RESOURCE_TEXT_MAX + 80];
    stg_memory memory = stg_sim_memory();
    stg_album album = stg_album_on(&memory);
    stg_table table;
    stg_sim_report report = {
        .title = "Contention: what retries cost, and how long they take",
        .lead = lead,
        .table = &table,
        .album = &album,
        .is_partial = study->is_partial,
    };
    int code;

    snprintf(lead, sizeof lead,
             "Resource: %s; %" PRIu32 " repetition%s, seed %ju.",
             stg_resource_print(&study->options.each.resource, resource),
             study->options.reps, study->options.reps == 1 ? "" : "s",
             (uintmax_t)study->options.each.seed);
    if (fill_table(&album, study, &table) &&
        (!stg_sim_output_has_pictures(&s->output) ||
         stg_contention_draw(&album, study, lead))) {
        code = stg_sim_output_write(&s->output, who, &report, s->argc, s->argv);
    } else {
        stg_options_complain(who, "there is no memory left");
        code = STG_EXIT_USAGE;
    }
    stg_album_free(&album);
    return code;
}
