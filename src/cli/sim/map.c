/* --map KEY=RANGE,KEY=RANGE: where it recovers, over two settings: the plane in
 * which a metastable failure has a vulnerable region (Bronson et al., "Metastable
 * failures in distributed systems", HotOS 2021). A row of places is run at a
 * time, since all of their summaries at once would take gigabytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/overload.h"

enum {
    SIDE_MAX = 32, // places
    USUAL_PARTS = 10,
    OWN_COLUMNS = 4,
    COLUMNS = OWN_COLUMNS + SIDE_MAX,
    KEY_MAX = 16 + STG_RANGE_TEXT_MAX,
};

/* -- reading --------------------------------------------------------------- */

static uint32_t count_of(const stg_range *r)
{
    uint64_t count = (r->to - r->from) / r->step + 1;

    return count > SIDE_MAX ? SIDE_MAX + 1 : (uint32_t)count;
}

static int read_axis(stg_edge *axis, const char *who, const char *text)
{
    int code = stg_edge_read(axis, who, "--map", text);

    if (code != 0)
        return code;
    if (axis->range.step == 0)
        axis->range.step = stg_range_divide(&axis->range, USUAL_PARTS);
    if (count_of(&axis->range) <= SIDE_MAX)
        return 0;
    stg_options_complain(who, "--map=%.60s: more than %d values", text,
                         SIDE_MAX);
    return STG_EXIT_USAGE;
}

int stg_map_read(stg_map *map, const char *who, const char *text)
{
    char first[STG_SWEEP_TEXT_MAX];
    const char *comma = strchr(text, ',');
    int code;

    if (comma == NULL || (size_t)(comma - text) >= sizeof first) {
        stg_options_complain(who,
                             "--map=%.60s: expected two settings with a range "
                             "each, such as rate=500..950/50,to=21s..40s/1s",
                             text);
        return STG_EXIT_USAGE;
    }
    snprintf(first, sizeof first, "%.*s", (int)(comma - text), text);
    code = read_axis(&map->x, who, first);
    return code != 0 ? code : read_axis(&map->y, who, comma + 1);
}

/* -- running --------------------------------------------------------------- */

/* A policy's map, the first row the lowest: runs that recovered. */
typedef struct plane {
    const stg_trial *trial;
    uint32_t recovered[SIDE_MAX][SIDE_MAX];
} plane;

typedef struct drawing {
    const stg_overload_ask *ask;
    const char *who;
    plane *all;
    size_t count;
    uint32_t width, height;
    bool is_cut;
} drawing;

static uint64_t value_at(const stg_edge *axis, uint32_t place)
{
    return axis->range.from + place * axis->range.step;
}

static int vary(const drawing *d, stg_trial *trial, const stg_edge *axis,
                uint32_t place)
{
    char text[STG_RANGE_TEXT_MAX];

    stg_range_print(&axis->range, value_at(axis, place), text);
    return stg_trial_vary(trial, axis->key, text, d->who, "--map");
}

static int make_row(const drawing *d, const plane *p, uint32_t row,
                    stg_trial *trials)
{
    int code = 0;

    for (uint32_t i = 0; i < d->width && code == 0; i++) {
        trials[i] = *p->trial;
        code = vary(d, &trials[i], &d->ask->map.x, i);
        if (code == 0)
            code = vary(d, &trials[i], &d->ask->map.y, row);
        if (code == 0)
            code = stg_trial_settle(&trials[i], d->who, "--map");
    }
    return code;
}

/* Returns STG_EXIT_INTERRUPTED with words, too. */
static int run_row(drawing *d, plane *p, uint32_t row, stg_trial *trials)
{
    stg_trials t = {.all = trials, .count = d->width, .reps = d->ask->reps};
    stg_error err;
    int code = make_row(d, p, row, trials);

    if (code != 0)
        return code;
    stg_trials_prepare(&t, &d->ask->run, NULL);
    if (stg_trials_run(&t, &err) != STG_OK) {
        stg_options_complain(d->who, "%s", err.text);
        code = STG_EXIT_USAGE;
    } else if (t.is_partial) {
        stg_options_complain(d->who, "interrupted before the map was whole");
        code = STG_EXIT_INTERRUPTED;
    }
    for (uint32_t i = 0; i < d->width && code == 0; i++) {
        p->recovered[row][i] = trials[i].summary.recovered;
        d->is_cut |= trials[i].summary.is_cut;
    }
    stg_trials_close(&t);
    return code;
}

static int run_all(drawing *d, stg_trial *trials)
{
    int code = 0;

    for (size_t i = 0; i < d->count; i++)
        for (uint32_t row = 0; row < d->height && code == 0; row++)
            code = run_row(d, &d->all[i], row, trials);
    return code;
}

/* -- the table ------------------------------------------------------------- */

/* A row for people is a line of places; for programs each place is a column. */
typedef struct row {
    char value[STG_RANGE_TEXT_MAX], line[SIDE_MAX + 1];
} row;

static double number_at(const stg_edge *axis, uint32_t place)
{
    return (double)value_at(axis, place) / (axis->range.is_time ? 1e6 : 1e3);
}

static char sign_of(const drawing *d, uint32_t recovered)
{
    return recovered == d->ask->reps ? '#' : recovered > 0 ? '+' : '.';
}

static void fill(const drawing *d, const plane *p, uint32_t y, row *r,
                 stg_cell cells[COLUMNS])
{
    stg_range_print(&d->ask->map.y.range, value_at(&d->ask->map.y, y),
                    r->value);
    for (uint32_t x = 0; x < d->width; x++)
        r->line[x] = sign_of(d, p->recovered[y][x]);
    cells[0] = stg_cell_text(p->trial->name);
    cells[1] = stg_cell_text(r->value);
    cells[2] = stg_cell_text(r->line);
    cells[3] = stg_cell_number(number_at(&d->ask->map.y, y));
    for (uint32_t x = 0; x < d->width; x++)
        cells[OWN_COLUMNS + x] = stg_cell_number(p->recovered[y][x]);
}

/* -- the picture ----------------------------------------------------------- */

static stg_chart_axis axis_of(const stg_edge *axis)
{
    return (stg_chart_axis){.label = axis->key,
                            .unit = axis->range.unit,
                            .is_time = axis->range.is_time};
}

static double step_of(const stg_edge *axis)
{
    return number_at(axis, 1) - number_at(axis, 0);
}

static void draw_plane(const drawing *d, const plane *p, unsigned panel,
                       stg_chart_set *charts, stg_chart_draft *draft)
{
    const stg_map *map = &d->ask->map;
    stg_chart_series *s = &draft->series[panel];
    stg_chart_point *points =
        stg_chart_set_points(charts, s, (size_t)d->width * d->height);

    draft->panels[panel] =
        (stg_chart_panel){.name = p->trial->name, .y = axis_of(&map->y)};
    s->name = p->trial->name;
    s->mark = STG_MARK_CELL;
    s->colour = 2;
    s->panel = panel;
    for (uint32_t y = 0; points != NULL && y < d->height; y++)
        for (uint32_t x = 0; x < d->width; x++)
            *points++ = (stg_chart_point){.x = number_at(&map->x, x),
                                          .y = number_at(&map->y, y),
                                          .high = (double)p->recovered[y][x] /
                                                  d->ask->reps};
}

static void draw(const drawing *d, const char *title, stg_chart_set *charts)
{
    stg_chart_draft draft;

    if (!stg_chart_set_add(charts, "map", d->count, d->count, &draft))
        return;
    draft.chart->title = title;
    draft.chart->note = "The fuller a place is, the more of its runs recover.";
    draft.chart->x = axis_of(&d->ask->map.x);
    draft.chart->cell_width = step_of(&d->ask->map.x);
    draft.chart->cell_height = step_of(&d->ask->map.y);
    for (unsigned i = 0; i < d->count; i++)
        draw_plane(d, &d->all[i], i, charts, &draft);
}

/* -- all of it ------------------------------------------------------------- */

static void say(const drawing *d, stg_text_buffer *lead)
{
    const stg_map *map = &d->ask->map;
    char from[STG_RANGE_TEXT_MAX], to[STG_RANGE_TEXT_MAX];

    stg_text_buffer_form(
        lead, "Where it recovers: %s from %s to %s from left to right, ",
        map->x.key, stg_range_print(&map->x.range, map->x.range.from, from),
        stg_range_print(&map->x.range, value_at(&map->x, d->width - 1), to));
    stg_text_buffer_form(lead, "%s with its highest value on top.\n",
                         map->y.key);
    stg_text_buffer_form(lead, "# in every run (%d), + in some, . in none.",
                         (int)d->ask->reps);
}

/* The highest value of y stands at the top, as in the picture. */
static int write_out(const drawing *d, stg_cell *cells, row *rows,
                     char (*keys)[KEY_MAX])
{
    stg_table_column columns[COLUMNS] = {
        {"policy", "policy", .rank = 0},
        {NULL, d->ask->map.y.key, .rank = 0},
        {NULL, d->ask->map.x.key, .rank = 0},
        {d->ask->map.y.key, NULL, .rank = 0},
    };
    stg_table table = {.columns = columns,
                       .column_count = OWN_COLUMNS + d->width,
                       .cells = cells,
                       .row_count = d->count * d->height};
    stg_memory memory = stg_sim_memory();
    stg_chart_set charts = stg_chart_set_on(&memory);
    stg_text_buffer lead = stg_text_buffer_on(&memory);
    int code = STG_EXIT_USAGE;

    for (uint32_t x = 0; x < d->width; x++) {
        char value[STG_RANGE_TEXT_MAX];

        stg_range_print(&d->ask->map.x.range, value_at(&d->ask->map.x, x),
                        value);
        for (char *at = value; *at != '\0'; at++)
            *at = *at == '.' ? '_' : *at; // a point would make an object
        snprintf(keys[x], KEY_MAX, "recovered.%s", value);
        columns[OWN_COLUMNS + x] = (stg_table_column){.key = keys[x]};
    }
    for (size_t i = 0; i < table.row_count; i++)
        fill(d, &d->all[i / d->height],
             d->height - 1 - (uint32_t)(i % d->height), &rows[i],
             &cells[i * table.column_count]);
    say(d, &lead);
    if (stg_sim_output_has_pictures(&d->ask->output))
        draw(d, "Where it recovers", &charts);
    if (lead.is_short || charts.is_short) {
        stg_options_complain(d->who, "out of memory");
    } else {
        stg_sim_report report = {.title = "Overload: where it recovers",
                                 .lead = lead.text,
                                 .table = &table,
                                 .charts = &charts};

        code = stg_sim_output_write(&d->ask->output, d->who, &report,
                                    d->ask->argc, d->ask->argv);
    }
    if (code == 0 && d->is_cut)
        stg_options_complain(d->who,
                             "some runs were cut, with too many "
                             "operations under way: they count as not "
                             "recovered");
    stg_text_buffer_free(&lead);
    stg_chart_set_free(&charts);
    return code;
}

int stg_map_draw(const stg_overload_ask *ask, const char *who,
                 const stg_trial *trials, size_t count)
{
    drawing d = {.ask = ask,
                 .who = who,
                 .count = count,
                 .width = count_of(&ask->map.x.range),
                 .height = count_of(&ask->map.y.range)};
    size_t row_count = count * d.height;
    stg_trial *row_of = calloc(d.width, sizeof *row_of);
    stg_cell *cells = calloc(row_count * COLUMNS, sizeof *cells);
    row *rows = calloc(row_count, sizeof *rows);
    char(*keys)[KEY_MAX] = calloc(SIDE_MAX, sizeof *keys);
    int code = STG_EXIT_USAGE;

    d.all = calloc(count, sizeof *d.all);
    if (row_of == NULL || cells == NULL || rows == NULL || keys == NULL ||
        d.all == NULL) {
        stg_options_complain(who, "out of memory");
    } else {
        for (size_t i = 0; i < count; i++)
            d.all[i].trial = &trials[i];
        code = run_all(&d, row_of);
        if (code == 0)
            code = write_out(&d, cells, rows, keys);
    }
    free(d.all);
    free(keys);
    free(rows);
    free(cells);
    free(row_of);
    return code;
}
