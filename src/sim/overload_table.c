#include "sim/overload_report.h"

#include <stagger/text.h>

#include <string.h>

/* The results of overloads as a table, and their series as JSON. One list of
 * columns serves terminal, CSV and JSON: a column without a key is for people
 * only, one without a title for programs only. The figures are the columns from
 * COLUMN_FIGURES on, in the order of stg_figure, so a new figure needs a row
 * here. A figure that no run has is an empty cell, not 0.
 *
 * Cells, rows and words of a table share one allocation, in this order; cells
 * point into rows and words, so it must not move. */

enum {
    COLUMN_POLICY,
    COLUMN_TEXT,
    COLUMN_REPS,
    COLUMN_SEED,
    COLUMN_RECOVERS, /* in words */
    COLUMN_SPARK,
    COLUMN_RECOVERED, /* runs that did */
    COLUMN_CUT,
    COLUMN_FIGURES, /* and those after it: in the order of stg_figure */
    COLUMNS = COLUMN_FIGURES + STG_FIGURE_COUNT,
    CURVE = 30, /* points of a spark */
};

static const stg_table_column columns[COLUMNS] = {
    [COLUMN_POLICY] = {"policy", "policy", false, 0},
    [COLUMN_TEXT] = {"text", NULL, false, 0},
    [COLUMN_REPS] = {"reps", NULL, false, 0},
    [COLUMN_SEED] = {"seed", NULL, false, 0},
    [COLUMN_RECOVERS] = {NULL, "recovers", false, 0},
    [COLUMN_SPARK] = {NULL, "goodput over time", false, 1},
    [COLUMN_RECOVERED] = {"recovered", NULL, false, 0},
    [COLUMN_CUT] = {"cut", NULL, false, 0},
#define FIGURE(name) [COLUMN_FIGURES + STG_FIGURE_##name]
    FIGURE(GOODPUT) = {"goodput_per_s", "goodput/s", false, 0},
    FIGURE(BEGUN) = {"begun_per_s", NULL, false, 0},
    FIGURE(OFFERED) = {"offered_per_s", "requests/s", false, 2},
    FIGURE(RETRIED) = {"retried_per_s", NULL, false, 0},
    FIGURE(HEDGED) = {"hedges_per_s", "hedges/s", false, 2},
    FIGURE(HEDGES_WON) = {"hedges_won_per_s", "hedges won/s", false, 5},
    FIGURE(HEDGES_REFUSED) = {"hedges_refused_per_s", NULL, false, 0},
    FIGURE(AMPLIFICATION) = {"amplification", "amplification", false, 4},
    FIGURE(SUCCESS) = {"success", "success", false, 2},
    FIGURE(SAVED) = {"success_in_trigger", NULL, false, 0},
    FIGURE(PEAK) = {"offered_peak_per_s", NULL, false, 0},
    FIGURE(QUEUE) = {"queue", "queue", false, 4},
    FIGURE(QUEUE_MOST) = {"queue_max", NULL, false, 0},
    FIGURE(BUSY) = {"busy", NULL, false, 0},
    FIGURE(REFUSED) = {"refused_per_s", NULL, false, 0},
    FIGURE(TIMEOUTS) = {"timeouts_per_s", NULL, false, 0},
    FIGURE(FOR_NOBODY) = {"served_for_nobody", "in vain", false, 5},
    FIGURE(HELD) = {"held_per_s", NULL, false, 0},
    FIGURE(LATENCY) = {"latency_ms", NULL, true, 0},
    FIGURE(P50) = {"latency_p50_ms", "p50", true, 8},
    FIGURE(P95) = {"latency_p95_ms", NULL, true, 0},
    FIGURE(P99) = {"latency_p99_ms", "p99", true, 3},
    FIGURE(BEFORE) = {"goodput_before_per_s", NULL, false, 0},
    FIGURE(RECOVERY) = {"recovery_ms", NULL, true, 0},
    FIGURE(BEFORE_GOODPUT) = {"before.goodput_per_s", "before", false, 3},
    FIGURE(BEFORE_P50) = {"before.latency_p50_ms", "p50 before", true, 7},
    FIGURE(BEFORE_P99) = {"before.latency_p99_ms", NULL, true, 0},
    FIGURE(IN_GOODPUT) = {"in_trigger.goodput_per_s", "in", false, 5},
    FIGURE(IN_P50) = {"in_trigger.latency_p50_ms", NULL, true, 0},
    FIGURE(IN_P99) = {"in_trigger.latency_p99_ms", NULL, true, 0},
    FIGURE(AFTER_GOODPUT) = {"after.goodput_per_s", "after", false, 1},
    FIGURE(AFTER_P50) = {"after.latency_p50_ms", "p50 after", true, 6},
    FIGURE(AFTER_P99) = {"after.latency_p99_ms", "p99 after", true, 4},
    FIGURE(OWN_SUCCESS) = {"own.success", "own success", false, 1},
    FIGURE(OWN_AMPLIFICATION) = {"own.amplification", NULL, false, 0},
    FIGURE(OTHERS_SUCCESS) = {"others.success", "others' success", false, 1},
    FIGURE(OTHERS_AMPLIFICATION) = {"others.amplification", NULL, false, 0},
    FIGURE(TO_1) = {"to_service.1", "to 1st", false, 1},
    FIGURE(TO_2) = {"to_service.2", "to 2nd", false, 1},
    FIGURE(TO_3) = {"to_service.3", "to 3rd", false, 1},
    FIGURE(TO_4) = {"to_service.4", "to 4th", false, 1},
#undef FIGURE
};

/* What the table points to, in one piece. */
typedef struct row {
    stg_cell cells[COLUMNS];
    double curve[CURVE];
    char text[STG_POLICY_TEXT_MAX];
} row;

/* The mean goodput of the bins, in CURVE parts. A part without a bin stays 0,
 * as it does where there are fewer bins than parts. */
static void draw_curve(const stg_overload_summary *s, row *r)
{
    for (uint32_t i = 0; i < CURVE; i++) {
        uint32_t from = s->bin_count * i / CURVE;
        uint32_t until = s->bin_count * (i + 1) / CURVE;

        for (uint32_t k = from; k < until; k++)
            r->curve[i] +=
                stg_overload_summary_point(s, k, STG_SERIES_GOODPUT).mean /
                (until - from);
    }
}

static stg_cell figure_of(const stg_overload_summary *s, stg_figure figure)
{
    uint32_t has;
    stg_estimate e = stg_overload_summary_figure(s, figure, &has);

    return has == 0 ? (stg_cell){.kind = STG_CELL_NONE}
                    : stg_cell_estimate(e.mean, e.se);
}

static void fill_row(stg_cell *cells, row *r, const stg_overload_case *c,
                     uint64_t seed, stg_text_buffer *words)
{
    const stg_overload_summary *s = c->summary;
    bool has_trigger = s->options->trigger.kind != STG_TRIGGER_NONE;

    (void)stg_policy_print(&s->options->policy, r->text);
    stg_overload_say_recovery(s, words);
    draw_curve(s, r);
    cells[COLUMN_POLICY] = stg_cell_text(c->name);
    cells[COLUMN_TEXT] = stg_cell_text(r->text);
    cells[COLUMN_REPS] = stg_cell_number(s->runs);
    cells[COLUMN_SEED] = stg_cell_number((double)seed);
    if (words->text != NULL)
        cells[COLUMN_RECOVERS] = stg_cell_text(words->text);
    cells[COLUMN_SPARK] = stg_cell_spark(r->curve, CURVE);
    if (has_trigger && !s->is_cut)
        cells[COLUMN_RECOVERED] = stg_cell_number(s->recovered);
    cells[COLUMN_CUT] = stg_cell_fact(s->is_cut);
    for (int i = 0; i < STG_FIGURE_COUNT; i++)
        cells[COLUMN_FIGURES + i] = figure_of(s, (stg_figure)i);
}

stg_status stg_overload_table_make(stg_overload_table *t,
                                   const stg_overload_case *cases, size_t count,
                                   uint64_t seed, const stg_memory *memory)
{
    size_t cells = count * COLUMNS * sizeof(stg_cell);
    size_t rows = count * sizeof(row), words = count * sizeof(stg_text_buffer);
    char *bytes = memory->allocate(memory->ctx, cells + rows + words);
    row *all = (row *)(void *)(bytes + cells);

    *t = (stg_overload_table){.memory = memory, .bytes = bytes, .count = count};
    if (bytes == NULL)
        return STG_IO;
    memset(bytes, 0, cells + rows + words);
    t->words = (stg_text_buffer *)(void *)(bytes + cells + rows);
    t->table = (stg_table){.columns = columns,
                           .column_count = COLUMNS,
                           .cells = (stg_cell *)(void *)bytes,
                           .row_count = count};
    for (size_t i = 0; i < count; i++) {
        t->words[i] = stg_text_buffer_on(memory);
        fill_row((stg_cell *)(void *)bytes + i * COLUMNS, &all[i], &cases[i],
                 seed, &t->words[i]);
    }
    return STG_OK;
}

void stg_overload_table_free(stg_overload_table *t)
{
    for (size_t i = 0; t->bytes != NULL && i < t->count; i++)
        stg_text_buffer_free(&t->words[i]);
    if (t->bytes != NULL)
        t->memory->release(t->memory->ctx, t->bytes);
    t->bytes = NULL;
}

/* -- series ---------------------------------------------------------------- */

static void put_line(const stg_overload_summary *s, stg_overload_series series,
                     const char *name, stg_text_buffer *p)
{
    stg_text_buffer_form(p, ",\n   \"%s\": [", name);
    for (uint32_t i = 0; i < s->bin_count; i++) {
        stg_text_buffer_put(p, i > 0 ? ", " : "");
        stg_text_buffer_put_number(
            p, stg_overload_summary_point(s, i, series).mean, 6);
    }
    stg_text_buffer_put_char(p, ']');
}

/* null where nothing succeeded. */
static void put_latency(const stg_overload_summary *s, uint32_t share,
                        const char *name, stg_text_buffer *p)
{
    stg_text_buffer_form(p, ",\n   \"%s\": [", name);
    for (uint32_t i = 0; i < s->bin_count; i++) {
        const stg_sim_histogram *h = &s->points[i].latency;
        double ms = (double)stg_sim_histogram_at(h, share) / 1e6;

        stg_text_buffer_put(p, i > 0 ? ", " : "");
        if (h->count == 0)
            stg_text_buffer_put(p, "null");
        else
            stg_text_buffer_put_number(p, ms, 6);
    }
    stg_text_buffer_put_char(p, ']');
}

static void put_case(const stg_overload_case *c, stg_text_buffer *p)
{
    const stg_overload_summary *s = c->summary;

    stg_text_buffer_put(p, "  {\"policy\": ");
    stg_text_buffer_put_json(p, c->name);
    stg_text_buffer_put(p, ", \"bin_ms\": ");
    stg_text_buffer_put_number(p, (double)s->options->bin / 1e6, 9);
    put_line(s, STG_SERIES_GOODPUT, "goodput_per_s", p);
    put_line(s, STG_SERIES_BEGUN, "begun_per_s", p);
    put_line(s, STG_SERIES_OFFERED, "offered_per_s", p);
    put_line(s, STG_SERIES_RETRIED, "retried_per_s", p);
    put_line(s, STG_SERIES_AMPLIFICATION, "amplification", p);
    put_line(s, STG_SERIES_QUEUE, "queue", p);
    put_latency(s, 500, "latency_p50_ms", p);
    put_latency(s, 990, "latency_p99_ms", p);
    stg_text_buffer_put_char(p, '}');
}

void stg_overload_put_series(const stg_overload_case *cases, size_t count,
                             stg_text_buffer *p)
{
    stg_text_buffer_put(p, "[\n");
    for (size_t i = 0; i < count; i++) {
        put_case(&cases[i], p);
        stg_text_buffer_put(p, i + 1 < count ? ",\n" : "\n");
    }
    stg_text_buffer_put(p, " ]");
}
