/* What `stagger sim contention` prints, and writes. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/options.h"
#include "cli/sim/contention.h"
#include "cli/sim/contention_charts.h"
#include "cli/sim/memory.h"
#include "cli/sim/output.h"

static const char who[] = "stagger sim contention";

static bool fill_table(stg_chart_set *charts, const stg_study *study,
                       stg_table *t)
{
    stg_contention_row *rows =
        stg_chart_set_take(charts, study->count * sizeof *rows);
    size_t count = 0;

    for (size_t i = 0; rows != NULL && i < study->count; i++) {
        const stg_study_cell *cell = &study->cells[i];
        stg_contention_row *row = &rows[count];

        if (cell->reps == 0)
            continue;
        *row = (stg_contention_row){
            .policy = cell->policy->name,
            .text = cell->policy->text,
            .clients = cell->clients,
            .seed = study->options.each.seed,
            .totals = &cell->totals,
        };
        if (!stg_study_judge(study, cell, &row->result))
            return false;
        count++;
    }
    return rows != NULL && stg_contention_table(charts, rows, count, t);
}

int stg_contention_show(const stg_contention_settings *s,
                        const stg_study *study)
{
    char resource[STG_RESOURCE_TEXT_MAX], lead[STG_RESOURCE_TEXT_MAX + 80];
    stg_memory memory = stg_sim_memory();
    stg_chart_set charts = stg_chart_set_on(&memory);
    stg_table table;
    stg_sim_report report = {
        .title = "Contention: what retries cost, and how long they take",
        .lead = lead,
        .table = &table,
        .charts = &charts,
        .is_partial = study->is_partial,
    };
    int code;

    snprintf(lead, sizeof lead,
             "Resource: %s; %" PRIu32 " repetition%s, seed %ju.",
             stg_resource_print(&study->options.each.resource, resource),
             study->options.reps, study->options.reps == 1 ? "" : "s",
             (uintmax_t)study->options.each.seed);
    if (fill_table(&charts, study, &table) &&
        (!stg_sim_output_has_pictures(&s->output) ||
         stg_contention_draw(&charts, study, lead))) {
        if (study->is_partial)
            stg_chart_set_conclude_nothing(&charts);
        code = stg_sim_output_write(&s->output, who, &report, s->argc, s->argv);
    } else {
        stg_options_complain(who, "there is no memory left");
        code = STG_EXIT_USAGE;
    }
    stg_chart_set_free(&charts);
    return code;
}
