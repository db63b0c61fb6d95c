/* Calls and successes over time, for programs: as JSON, and as a table for CSV. A
 * bin is some slices of the totals, as many as make 200 bins at most. */
#include "sim/contention_report.h"

enum { BINS = 200, COLUMNS = 5 };

static const stg_table_column columns[COLUMNS] = {
    {"policy", NULL, .rank = 0},    {"clients", NULL, .rank = 0},
    {"at_ms", NULL, .rank = 0},     {"calls", NULL, .rank = 0},
    {"successes", NULL, .rank = 0},
};

/* Slices of a bin: 1, 2 or 5 and zeros. */
static size_t slices_of(const stg_contention_row *row)
{
    static const size_t steps[] = {1, 2, 5};
    const stg_contention_totals *t = row->totals;
    size_t used =
        t->calls.used > t->successes.used ? t->calls.used : t->successes.used;

    for (size_t unit = 1;; unit *= 10)
        for (size_t i = 0; i < 3; i++)
            if (used <= BINS * unit * steps[i])
                return unit * steps[i];
}

static size_t bins_of(const stg_contention_row *row)
{
    const stg_contention_totals *t = row->totals;
    size_t used =
        t->calls.used > t->successes.used ? t->calls.used : t->successes.used;
    size_t of = slices_of(row);

    return (used + of - 1) / of;
}

/* The mean number in a bin. */
static double mean_in(const stg_sim_series *s, size_t bin, size_t of)
{
    double sum = 0;

    for (size_t i = bin * of; i < (bin + 1) * of && i < s->used; i++)
        sum += (double)s->sums[i];
    return s->runs > 0 ? sum / (double)s->runs : 0;
}

static void put_line(const stg_contention_row *row, const stg_sim_series *s,
                     const char *name, stg_text_buffer *p)
{
    stg_text_buffer_form(p, ",\n   \"%s\": [", name);
    for (size_t i = 0; i < bins_of(row); i++) {
        stg_text_buffer_put(p, i > 0 ? ", " : "");
        stg_text_buffer_put_number(p, mean_in(s, i, slices_of(row)), 6);
    }
    stg_text_buffer_put_char(p, ']');
}

static double width_of(const stg_contention_row *row)
{
    return (double)row->totals->calls.width * (double)slices_of(row) / 1e6;
}

void stg_contention_put_series(const stg_contention_row *rows, size_t count,
                               stg_text_buffer *p)
{
    stg_text_buffer_put(p, "[\n");
    for (size_t i = 0; i < count; i++) {
        stg_text_buffer_put(p, "  {\"policy\": ");
        stg_text_buffer_put_json(p, rows[i].policy);
        stg_text_buffer_put(p, ", \"clients\": ");
        stg_text_buffer_put_count(p, rows[i].clients);
        stg_text_buffer_put(p, ", \"bin_ms\": ");
        stg_text_buffer_put_number(p, width_of(&rows[i]), 9);
        put_line(&rows[i], &rows[i].totals->calls, "calls", p);
        put_line(&rows[i], &rows[i].totals->successes, "successes", p);
        stg_text_buffer_put(p, i + 1 < count ? "},\n" : "}\n");
    }
    stg_text_buffer_put(p, " ]");
}

bool stg_contention_series_table(stg_chart_set *a,
                                 const stg_contention_row *rows, size_t count,
                                 stg_table *table)
{
    size_t all = 0;
    stg_cell *cell;

    for (size_t i = 0; i < count; i++)
        all += bins_of(&rows[i]);
    *table = (stg_table){
        .columns = columns,
        .column_count = COLUMNS,
        .row_count = all,
        .cells = stg_chart_set_take(a, (all + 1) * COLUMNS * sizeof *cell)};
    cell = (stg_cell *)table->cells;
    for (size_t i = 0; cell != NULL && i < count; i++) {
        const stg_contention_totals *t = rows[i].totals;

        for (size_t k = 0; k < bins_of(&rows[i]); k++) {
            *cell++ = stg_cell_text(rows[i].policy);
            *cell++ = stg_cell_number(rows[i].clients);
            *cell++ = stg_cell_number((double)k * width_of(&rows[i]));
            *cell++ =
                stg_cell_number(mean_in(&t->calls, k, slices_of(&rows[i])));
            *cell++ =
                stg_cell_number(mean_in(&t->successes, k, slices_of(&rows[i])));
        }
    }
    return !a->is_short;
}
