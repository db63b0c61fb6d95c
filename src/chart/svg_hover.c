/* The numbers under the pointer: a column of the plot for each x, or for as
 * many as fall into a few pixels, says what all series have there.
 *
 * A column is a path with a title, which browsers show without a script. Spots
 * and ranges have titles of their own (svg_marks.c). Dots are counted, in
 * columns of their own.
 *
 * Points are found by bisection, so x must not fall from point to point in the
 * series that is_listed() has, dots apart. */
#include "chart/svg_internal.h"

enum {
    COLUMN_LEAST = 8,
    COLUMN_LEAST_OF_MANY = 16, // in a chart of more panels than two
};

static void put_errors(const stg_chart_axis *axis, double error,
                       stg_text_buffer *buffer)
{
    if (!(error > 0))
        return;
    stg_text_buffer_put(buffer, " \u00b1 ");
    stg_axis_put(axis, error, buffer);
}

void stg_svg_say(const stg_chart *chart, const stg_plot *plot,
                 const stg_chart_point *point, stg_text_buffer *buffer)
{
    const stg_chart_axis *y = &plot->panel->y;

    stg_axis_put(&chart->x, point->x, buffer);
    put_errors(&chart->x, point->x_se, buffer);
    stg_text_buffer_put(buffer, ": ");
    stg_axis_put(y, point->y, buffer);
    put_errors(y, point->y_se, buffer);
    if (point->low != 0 || point->high != 0) {
        stg_text_buffer_put(buffer, ", from ");
        stg_axis_put(y, point->low, buffer);
        stg_text_buffer_put(buffer, " to ");
        stg_axis_put(y, point->high, buffer);
    }
}

static bool is_listed(const stg_plot *plot, const stg_chart_series *s)
{
    return s->panel == plot->index && s->mark != STG_MARK_SPOT &&
           s->mark != STG_MARK_RANGE && s->mark != STG_MARK_CELL;
}

/* The first point of a series with x of at least that; its count: none. */
static size_t find(const stg_chart_series *s, double x)
{
    size_t from = 0, to = s->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (s->points[middle].x < x)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The least x of at least (beyond: above) that, of lines, bins and steps. */
static bool next_x(const stg_chart *chart, const stg_plot *plot, double *x,
                   bool is_beyond)
{
    bool is_found = false;
    double next = 0;

    for (size_t i = 0; i < chart->series_count; i++) {
        const stg_chart_series *s = &chart->series[i];
        size_t at;

        if (!is_listed(plot, s) || s->mark == STG_MARK_DOTS)
            continue;
        at = find(s, *x);
        while (at < s->count &&
               !(is_beyond ? s->points[at].x > *x : s->points[at].x >= *x))
            at++; // so is what is no number
        if (at < s->count && (!is_found || s->points[at].x < next)) {
            next = s->points[at].x;
            is_found = true;
        }
    }
    *x = is_found ? next : *x;
    return is_found;
}

/* Returns the point that a series shows for x from `from` to `to`: the highest
 * of its bins, the last point of a line, or the level of steps; NULL: none. */
static const stg_chart_point *look(const stg_chart_series *s, double from,
                                   double to)
{
    size_t first = find(s, from), end = first, best;

    while (end < s->count && s->points[end].x <= to)
        end++;
    if (s->mark == STG_MARK_STEP)
        return end > 0 ? &s->points[end - 1] : NULL;
    if (end == first)
        return NULL;
    best = end - 1;
    for (size_t i = first; s->mark == STG_MARK_AREA && i < end; i++)
        best = s->points[i].y > s->points[best].y ? i : best;
    return &s->points[best];
}

/* A column of several points names the span that they take. */
static void put_x(const stg_picture *pic, double from, double to)
{
    stg_axis_put(&pic->chart->x, from, pic->buffer);
    if (to > from) {
        stg_text_buffer_put(pic->buffer, " to ");
        stg_axis_put(&pic->chart->x, to, pic->buffer);
    }
}

/* A series that has nothing in the column is left out. Of bins that share one
 * the highest is shown, and "at most" says so. */
static void put_series(const stg_picture *pic, const stg_plot *plot,
                       double from, double to)
{
    for (size_t i = 0; i < pic->chart->series_count; i++) {
        const stg_chart_series *s = &pic->chart->series[i];
        const stg_chart_point *point;

        if (!is_listed(plot, s) || s->mark == STG_MARK_DOTS)
            continue;
        point = look(s, from, to);
        if (point == NULL || !stg_axis_shows(&plot->panel->y, point->y))
            continue;
        stg_text_buffer_form(pic->buffer, "\n%e: %s", s->name,
                             s->mark == STG_MARK_AREA && to > from ? "at most "
                                                                   : "");
        stg_axis_put(&plot->panel->y, point->y, pic->buffer);
        put_errors(&plot->panel->y, point->y_se, pic->buffer);
    }
}

static void open_column(const stg_picture *pic, const stg_plot *plot,
                        double left, double right)
{
    stg_text_buffer_form(pic->buffer,
                         "<path class=\"h\" d=\"M%f %fH%fV%fH%fz\"><title>",
                         left, plot->top, right, plot->bottom, left);
}

/* Whether x begins a bin rather than being the middle of its column. */
static bool has_bins(const stg_chart *chart, const stg_plot *plot)
{
    for (size_t i = 0; i < chart->series_count; i++)
        if (is_listed(plot, &chart->series[i]) &&
            (chart->series[i].mark == STG_MARK_AREA ||
             chart->series[i].mark == STG_MARK_STEP))
            return true;
    return false;
}

/* Columns cover the plot without gaps, the last one up to its right edge. A
 * column of bins begins at its x; one of lines reaches half-way to its
 * neighbours. */
static void draw_columns(const stg_picture *pic, const stg_plot *plot)
{
    bool is_bins = has_bins(pic->chart, plot), is_more;
    double least =
        pic->chart->panel_count > 2 ? COLUMN_LEAST_OF_MANY : COLUMN_LEAST;
    double from = pic->x.from, left = pic->left;

    is_more = next_x(pic->chart, plot, &from, false);
    while (is_more) {
        double to = from, next = from, edge, start, end;

        start = stg_scale_place(&pic->x, from);
        while ((is_more = next_x(pic->chart, plot, &next, true)) &&
               stg_scale_place(&pic->x, next) < start + least)
            to = next;
        end = is_more ? stg_scale_place(&pic->x, next) : pic->right;
        edge = stg_scale_place(&pic->x, to);
        edge = is_bins || !is_more ? end : (edge + end) / 2;
        if (edge > left) {
            open_column(pic, plot, left, edge);
            put_x(pic, from, to);
            put_series(pic, plot, from, to);
            stg_text_buffer_put(pic->buffer, "</title></path>\n");
        }
        left = edge;
        from = next;
    }
}

/* Of a crowd of dots, a column says how many. */
static void draw_counts(const stg_picture *pic, const stg_plot *plot,
                        const stg_chart_series *s)
{
    enum { COLUMNS = 40 };
    double step = (pic->x.to - pic->x.from) / COLUMNS;

    for (int c = 0; c < COLUMNS && !pic->x.is_log; c++) {
        double from = pic->x.from + c * step, to = from + step;
        size_t count = 0;

        for (size_t i = 0; i < s->count; i++)
            count += s->points[i].x >= from && s->points[i].x < to;
        if (count == 0)
            continue;
        open_column(pic, plot, stg_scale_place(&pic->x, from),
                    stg_scale_place(&pic->x, to));
        put_x(pic, from, to);
        stg_text_buffer_form(pic->buffer, "\n%e: ", s->name);
        stg_text_buffer_put_rounded(pic->buffer, (double)count);
        stg_text_buffer_put(pic->buffer, " dots</title></path>\n");
    }
}

void stg_svg_hover(const stg_picture *pic, const stg_plot *plot)
{
    draw_columns(pic, plot);
    for (size_t i = 0; i < pic->chart->series_count; i++) {
        const stg_chart_series *s = &pic->chart->series[i];

        if (s->panel == plot->index && s->mark == STG_MARK_DOTS)
            draw_counts(pic, plot, s);
    }
}
