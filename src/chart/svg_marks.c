#include "chart/svg_internal.h"

/* The points of a series as SVG, a way of drawing for each mark.
 *
 * The size of the file is bounded by the picture, not by the points. Points of
 * a line, step, band or bin that fall into one pixel are drawn as one or as
 * their extremes (column_end()), and dots of one square of 2 pixels as one. So
 * x must not fall from point to point in these, dots apart. Spots and ranges
 * are few, and all are drawn.
 *
 * A point for which stg_plot_has() is false is left out and interrupts a line:
 * the loops go from run to run of the others. The end of a band or an error bar
 * may lie off a logarithmic axis even where its point does not: x_of() and
 * y_of() put that on the edge. */

/* -- the shape of a colour */

/* Each colour has a shape, so that series can be told apart without colours.
 * The factors give every shape about the area of the circle. */
void stg_svg_marker(stg_text_buffer *buffer, unsigned colour, double x,
                    double y, double size)
{
    double r = size;

    switch (colour % 8) {
    case 0:
        stg_text_buffer_form(buffer,
                             "M%f %fa%f %f 0 1 0 %f 0a%f %f 0 1 0 %f 0z", x - r,
                             y, r, r, 2 * r, r, r, -2 * r);
        break;
    case 1:
        r *= 0.9; // a square
        stg_text_buffer_form(buffer, "M%f %fh%fv%fh%fz", x - r, y - r, 2 * r,
                             2 * r, -2 * r);
        break;
    case 2:
        r *= 1.2; // up
        stg_text_buffer_form(buffer, "M%f %fl%f %fh%fz", x, y - r, r, 1.8 * r,
                             -2 * r);
        break;
    case 3:
        r *= 1.3; // a diamond
        stg_text_buffer_form(buffer, "M%f %fl%f %fl%f %fl%f %fz", x, y - r, r,
                             r, -r, r, -r, -r);
        break;
    case 4:
        r *= 1.2; // down
        stg_text_buffer_form(buffer, "M%f %fl%f %fh%fz", x, y + r, r, -1.8 * r,
                             -2 * r);
        break;
    case 5: // a flat bar
        stg_text_buffer_form(buffer, "M%f %fh%fv%fh%fz", x - 1.3 * r, y - r / 2,
                             2.6 * r, r, -2.6 * r);
        break;
    case 6: // an upright bar
        stg_text_buffer_form(buffer, "M%f %fh%fv%fh%fz", x - r / 2, y - 1.3 * r,
                             r, 2.6 * r, -r);
        break;
    default: // a plus
        r *= 1.2;
        stg_text_buffer_form(buffer, "M%f %fh%fv%fh%fv%fh%fv%fh%f", x - r / 3,
                             y - r, 2 * r / 3, 2 * r / 3, 2 * r / 3, 2 * r / 3,
                             -2 * r / 3, 2 * r / 3, -2 * r / 3);
        stg_text_buffer_form(buffer, "v%fh%fv%fh%fz", -2 * r / 3, -2 * r / 3,
                             -2 * r / 3, 2 * r / 3);
    }
}

/* -- one series */

typedef struct brush {
    const stg_picture *pic;
    const stg_plot *plot;
    const stg_chart_series *s;
    stg_text_buffer *buffer;
} brush;

static double x_of(const brush *pen, double x)
{
    if (pen->pic->x.is_log && !(x > 0))
        return pen->pic->left;
    return stg_scale_place(&pen->pic->x, x);
}

static double y_of(const brush *pen, double y)
{
    if (pen->plot->y.is_log && !(y > 0))
        return pen->plot->bottom;
    return stg_scale_place(&pen->plot->y, y);
}

static bool has(const brush *pen, size_t i)
{
    return i < pen->s->count &&
           stg_plot_has(pen->pic, pen->plot, &pen->s->points[i]);
}

/* The points from i up to the first that is left out. */
static size_t run_end(const brush *pen, size_t i)
{
    while (has(pen, i))
        i++;
    return i;
}

/* Classes c0 to c7 are of the style, which has 8 colours. */
static void open_path(const brush *pen, const char *kind)
{
    stg_text_buffer_form(pen->buffer, "<path class=\"%s c%d\" d=\"", kind,
                         (int)(pen->s->colour % 8));
}

static void close_path(const brush *pen)
{
    stg_text_buffer_put(pen->buffer, "\"/>\n");
}

static void put_point(const brush *pen, bool is_first, double x, double y)
{
    stg_text_buffer_form(pen->buffer, is_first ? "M%f %f" : "L%f %f", x, y);
}

/* The last of the points that fall into one pixel with point i, up to end. */
static size_t column_end(const brush *pen, size_t i, size_t end)
{
    double x = x_of(pen, pen->s->points[i].x);

    while (i + 1 < end && x_of(pen, pen->s->points[i + 1].x) < x + 1)
        i++;
    return i;
}

/* A line has for each pixel its first, lowest, highest and last point, where
 * there are so many. The last point begins the next column: it is drawn by that
 * turn of the loop, and its neighbours may join it. */
static void put_line(const brush *pen, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++) {
        size_t last = column_end(pen, i, end), low = i, high = i;
        double x = x_of(pen, pen->s->points[i].x);

        for (size_t k = i; k <= last; k++) {
            low = pen->s->points[k].y < pen->s->points[low].y ? k : low;
            high = pen->s->points[k].y > pen->s->points[high].y ? k : high;
        }
        put_point(pen, i == from, x, y_of(pen, pen->s->points[i].y));
        if (last > i + 2) {
            put_point(pen, false, x, y_of(pen, pen->s->points[low].y));
            put_point(pen, false, x, y_of(pen, pen->s->points[high].y));
        }
        i = last > i + 2 ? last - 1 : i;
    }
    if (end == from + 1)
        stg_text_buffer_put(pen->buffer, "h0"); // alone, it is a dot
}

/* Two standard errors: out along the upper edge, and back along the lower. */
static void put_band(const brush *pen, size_t from, size_t end)
{
    const stg_chart_point *p = pen->s->points;

    for (size_t i = from; i < end; i = column_end(pen, i, end) + 1)
        put_point(pen, i == from, x_of(pen, p[i].x),
                  y_of(pen, p[i].y + 2 * p[i].y_se));
    for (size_t i = end; i-- > from;) {
        if (i > from && x_of(pen, p[i].x) < x_of(pen, p[i - 1].x) + 1)
            continue;
        put_point(pen, false, x_of(pen, p[i].x),
                  y_of(pen, p[i].y - 2 * p[i].y_se));
    }
    stg_text_buffer_put_char(pen->buffer, 'Z');
}

static bool has_errors(const brush *pen)
{
    for (size_t i = 0; i < pen->s->count; i++)
        if (pen->s->points[i].y_se > 0)
            return true;
    return false;
}

/* The band about a bin: a box from 2 errors below to 2 above. */
static void put_bin_band(const brush *pen, double left, double right,
                         const stg_chart_point *p)
{
    double low = y_of(pen, p->y - 2 * p->y_se),
           high = y_of(pen, p->y + 2 * p->y_se);

    // Nobody sees it, or the line lies over it.
    if (!(p->y_se > 0) ||
        low - high < (pen->s->mark == STG_MARK_STEP ? 2 : 0.8))
        return;
    stg_text_buffer_form(pen->buffer, "M%f %fH%fV%fH%fZ", left, low, right,
                         high, left);
}

static void draw_points(const brush *pen, double size)
{
    open_path(pen, "m");
    for (size_t i = 0; i < pen->s->count; i++)
        if (has(pen, i))
            stg_svg_marker(pen->buffer, pen->s->colour,
                           x_of(pen, pen->s->points[i].x),
                           y_of(pen, pen->s->points[i].y), size);
    close_path(pen);
}

/* Whether half of another line, or more of steps (many lie in their flat ends),
 * is under this one: then this one has gaps, and both are seen. */
static bool is_over_another(const brush *pen)
{
    const stg_chart *chart = pen->pic->chart;

    for (const stg_chart_series *other = pen->s + 1;
         other < chart->series + chart->series_count; other++) {
        size_t same = 0, at = 0;

        if (other->panel != pen->s->panel || other->mark != pen->s->mark ||
            other->count == 0)
            continue;
        for (size_t i = 0; i < pen->s->count; i++) {
            const stg_chart_point *p = &pen->s->points[i], *q;
            double off;

            while (at + 1 < other->count && other->points[at + 1].x <= p->x)
                at++;
            q = &other->points[at];
            off = y_of(pen, q->y) - y_of(pen, p->y);
            same += (q->x == p->x ||
                     (p->x > q->x && other->mark == STG_MARK_STEP)) &&
                    off < 2.5 && off > -2.5;
        }
        if (4 * same > (other->mark == STG_MARK_STEP ? 3 : 2) * pen->s->count)
            return true;
    }
    return false;
}

/* The band comes first, and lies under the line. Markers only where there are
 * few points; they would hide a long line. */
static void draw_line(const brush *pen)
{
    enum { MARKED_MOST = 40 };
    size_t end;

    if (has_errors(pen)) {
        open_path(pen, "b");
        for (size_t i = 0; i < pen->s->count; i = end + 1) {
            end = run_end(pen, i);
            if (end > i)
                put_band(pen, i, end);
        }
        close_path(pen);
    }
    open_path(pen, is_over_another(pen) ? "l k" : "l");
    for (size_t i = 0; i < pen->s->count; i = end + 1) {
        end = run_end(pen, i);
        if (end > i)
            put_line(pen, i, end);
    }
    close_path(pen);
    if (pen->s->count <= MARKED_MOST)
        draw_points(pen, 3.2);
}

/* The width of a bin: to the next, and the last as wide as the one before. */
static double bin_end(const brush *pen, size_t i)
{
    const stg_chart_point *p = pen->s->points;

    if (i + 1 < pen->s->count && p[i + 1].x > p[i].x)
        return p[i + 1].x;
    return i > 0 && p[i - 1].x < p[i].x ? 2 * p[i].x - p[i - 1].x : p[i].x;
}

/* The outline of neighbouring bins. */
typedef struct outline {
    double right, y; /* where it is */
    bool is_open;
} outline;

static void close_outline(const brush *pen, outline *o)
{
    if (o->is_open)
        stg_text_buffer_form(pen->buffer, "H%fV%fZ", o->right,
                             pen->plot->bottom);
    o->is_open = false;
}

/* A bin as high as the one before only makes it longer. */
static void put_bin(const brush *pen, double left, double right, double y,
                    outline *o)
{
    if (o->is_open && o->right < left - 0.05)
        close_outline(pen, o);
    if (!o->is_open)
        stg_text_buffer_form(pen->buffer, "M%f %fV%f", left, pen->plot->bottom,
                             y);
    else if (y - o->y > 0.25 || o->y - y > 0.25)
        stg_text_buffer_form(pen->buffer, "H%fV%f", left, y);
    else
        y = o->y;
    *o = (outline){right, y, true};
}

/* Bins; those that fall into one pixel are one, as high as the highest. */
static void put_bins(const brush *pen, bool is_band)
{
    const stg_chart_point *p = pen->s->points;
    outline o = {.is_open = false};

    for (size_t i = 0, last; i < pen->s->count; i = last + 1) {
        size_t high = i;
        double left, right;

        last = i;
        if (!has(pen, i))
            continue;
        last = column_end(pen, i, run_end(pen, i));
        for (size_t k = i; k <= last; k++)
            high = p[k].y > p[high].y ? k : high;
        left = x_of(pen, p[i].x);
        right = x_of(pen, bin_end(pen, last));
        if (is_band)
            put_bin_band(pen, left, right, &p[high]);
        else if (p[high].y > 0)
            put_bin(pen, left, right, y_of(pen, p[high].y), &o);
    }
    close_outline(pen, &o);
}

static void draw_area(const brush *pen)
{
    open_path(pen, "f");
    put_bins(pen, false);
    close_path(pen);
    if (!has_errors(pen))
        return;
    open_path(pen, "b");
    put_bins(pen, true);
    close_path(pen);
}

/* The next point of a step that has its own pixel; its count: none. */
static size_t next_step(const brush *pen, size_t i)
{
    while (i < pen->s->count && !has(pen, i))
        i++;
    return i < pen->s->count ? column_end(pen, i, run_end(pen, i)) : i;
}

/* A box a step: it is level up to the next. */
static void put_step_band(const brush *pen)
{
    const stg_chart_point *p = pen->s->points;
    size_t count = pen->s->count;

    for (size_t i = next_step(pen, 0), next; i < count; i = next) {
        double left = x_of(pen, p[i].x), right;

        next = next_step(pen, i + 1);
        right = next < count ? x_of(pen, p[next].x) : left;
        put_bin_band(pen, left, right, &p[i]);
    }
}

/* A step interrupts nothing: a point that is left out is passed over, and the
 * level before it goes on. */
static void draw_step(const brush *pen)
{
    const stg_chart_point *p = pen->s->points;
    double drawn = -1; // the level that was drawn last
    bool is_first = true;

    if (has_errors(pen)) {
        open_path(pen, "b");
        put_step_band(pen);
        close_path(pen);
    }
    open_path(pen, is_over_another(pen) ? "l k" : "l");
    for (size_t i = next_step(pen, 0); i < pen->s->count;
         i = next_step(pen, i + 1)) {
        double y = y_of(pen, p[i].y);
        bool is_last = next_step(pen, i + 1) >= pen->s->count;

        if (!is_first && !is_last && y - drawn < 1 && drawn - y < 1)
            continue; // it will be a part of a later step
        if (is_first)
            put_point(pen, true, x_of(pen, p[i].x), y);
        else
            stg_text_buffer_form(pen->buffer, "H%fV%f", x_of(pen, p[i].x), y);
        is_first = false;
        drawn = y;
    }
    close_path(pen);
}

/* A dot a square of 2 pixels at most: a crowd of a million is no larger than
 * the chart. The squares that have one are bits, row by row. */
typedef struct crowd {
    unsigned char *taken;
    size_t columns, rows;
} crowd;

static bool is_taken(const crowd *c, size_t column, size_t row)
{
    size_t at = row * c->columns + column;

    return column < c->columns && (c->taken[at / 8] >> at % 8 & 1) != 0;
}

static void take_square(crowd *c, size_t column, size_t row)
{
    size_t at = row * c->columns + column;

    c->taken[at / 8] = (unsigned char)(c->taken[at / 8] | 1 << at % 8);
}

/* Neighbours of a row are one stroke. Places are whole pixels, and relative but
 * for the first of a row, which is short. */
static void put_row(const brush *pen, const crowd *c, size_t row)
{
    int left = (int)pen->pic->left + 1, at = -1;

    for (size_t column = 0; column < c->columns; column++) {
        int x = left + 2 * (int)column, length = 0;

        if (!is_taken(c, column, row))
            continue;
        for (; is_taken(c, column + 1, row); column++)
            length += 2;
        if (at < 0)
            stg_text_buffer_form(pen->buffer, "M%d %d", x,
                                 (int)pen->plot->top + 1 + 2 * (int)row);
        else
            stg_text_buffer_form(pen->buffer, "m%d 0", x - at);
        stg_text_buffer_form(pen->buffer, "h%d", length);
        at = x + length;
    }
}

/* Without memory for the squares none is drawn: the whole page is short then. */
static void draw_dots(const brush *pen)
{
    const stg_memory *memory = pen->buffer->memory;
    double left = pen->pic->left, top = pen->plot->top;
    crowd c = {.columns = (size_t)((pen->pic->right - left) / 2) + 1,
               .rows = (size_t)((pen->plot->bottom - top) / 2) + 1};
    size_t size = c.columns * c.rows / 8 + 1;

    c.taken = memory->allocate(memory->ctx, size);
    if (c.taken == NULL) {
        pen->buffer->is_short = true;
        return;
    }
    for (size_t i = 0; i < size; i++)
        c.taken[i] = 0;
    for (size_t i = 0; i < pen->s->count; i++)
        if (has(pen, i))
            take_square(&c,
                        (size_t)((x_of(pen, pen->s->points[i].x) - left) / 2),
                        (size_t)((y_of(pen, pen->s->points[i].y) - top) / 2));
    open_path(pen, "d");
    for (size_t row = 0; row < c.rows; row++)
        put_row(pen, &c, row);
    close_path(pen);
    memory->release(memory->ctx, c.taken);
}

/* With what shows under the pointer, after a name. */
static void open_group(const brush *pen, const stg_chart_point *p,
                       const char *name)
{
    stg_text_buffer_put(pen->buffer, "<g>");
    if (pen->pic->is_still)
        return;
    stg_text_buffer_put(pen->buffer, "<title>");
    if (name != NULL)
        stg_text_buffer_form(pen->buffer, "%e\n", name);
    stg_svg_say(pen->pic->chart, pen->plot, p, pen->buffer);
    stg_text_buffer_put(pen->buffer, "</title>");
}

/* The spot itself, its errors, and the number. */
static void draw_spots(const brush *pen)
{
    for (size_t i = 0; i < pen->s->count; i++) {
        const stg_chart_point *p = &pen->s->points[i];

        if (!has(pen, i))
            continue;
        open_group(pen, p, pen->s->name);
        open_path(pen, "e");
        stg_text_buffer_form(pen->buffer, "M%f %fH%f",
                             x_of(pen, p->x - 2 * p->x_se), y_of(pen, p->y),
                             x_of(pen, p->x + 2 * p->x_se));
        stg_text_buffer_form(pen->buffer, "M%f %fV%f", x_of(pen, p->x),
                             y_of(pen, p->y - 2 * p->y_se),
                             y_of(pen, p->y + 2 * p->y_se));
        close_path(pen);
        open_path(pen, "m");
        stg_svg_marker(pen->buffer, pen->s->colour, x_of(pen, p->x),
                       y_of(pen, p->y), 6);
        close_path(pen);
        stg_text_buffer_put(pen->buffer, "</g>\n");
    }
}

/* A bar is one pixel high at least, so that a range without width is seen. */
static void draw_ranges(const brush *pen)
{
    for (size_t i = 0; i < pen->s->count; i++) {
        const stg_chart_point *p = &pen->s->points[i];
        double x, low, high;

        if (!has(pen, i))
            continue;
        x = x_of(pen, p->x);
        low = y_of(pen, p->low);
        high = y_of(pen, p->high);
        open_group(pen, p, NULL);
        stg_text_buffer_form(
            pen->buffer,
            "<rect class=\"r c%d\" x=\"%f\" y=\"%f\" width=\"7\" "
            "height=\"%f\"/>",
            (int)(pen->s->colour % 8), x - 3.5, high,
            low - high > 1 ? low - high : 1);
        if (p->y_se > 0) {
            open_path(pen, "e");
            stg_text_buffer_form(pen->buffer, "M%f %fV%f", x,
                                 y_of(pen, p->y - 2 * p->y_se),
                                 y_of(pen, p->y + 2 * p->y_se));
            close_path(pen);
        }
        open_path(pen, "m");
        stg_svg_marker(pen->buffer, pen->s->colour, x, y_of(pen, p->y), 3.2);
        close_path(pen);
        stg_text_buffer_put(pen->buffer, "</g>\n");
    }
}

/* "700, 41 s: 0.5"; an empty cell has its outline. */
static void draw_cells(const brush *pen)
{
    const stg_chart_series *s = pen->s;

    for (size_t i = 0; i < s->count; i++) {
        const stg_chart_point *p = &s->points[i];
        double left, right, top, bottom;

        if (!has(pen, i))
            continue;
        left = x_of(pen, p->x - pen->pic->chart->cell_width / 2);
        right = x_of(pen, p->x + pen->pic->chart->cell_width / 2);
        top = y_of(pen, p->y + pen->pic->chart->cell_height / 2);
        bottom = y_of(pen, p->y - pen->pic->chart->cell_height / 2);
        stg_text_buffer_form(pen->buffer, "<g><title>%e\n", s->name);
        stg_axis_put(&pen->pic->chart->x, p->x, pen->buffer);
        stg_text_buffer_put(pen->buffer, ", ");
        stg_axis_put(&pen->plot->panel->y, p->y, pen->buffer);
        stg_text_buffer_form(pen->buffer, ": %f</title>", p->high);
        stg_text_buffer_form(
            pen->buffer,
            "<rect class=\"f c%d o\" fill-opacity=\"%f\" x=\"%f\" y=\"%f\" ",
            (int)(s->colour % 8), 0.06 + 0.84 * p->high, left, top);
        stg_text_buffer_form(pen->buffer, "width=\"%f\" height=\"%f\"/></g>\n",
                             right - left, bottom - top);
    }
}

void stg_svg_marks(const stg_picture *pic, const stg_plot *plot,
                   const stg_chart_series *s)
{
    brush pen = {pic, plot, s, pic->buffer};

    switch (s->mark) {
    case STG_MARK_LINE:
        draw_line(&pen);
        break;
    case STG_MARK_AREA:
        draw_area(&pen);
        break;
    case STG_MARK_STEP:
        draw_step(&pen);
        break;
    case STG_MARK_DOTS:
        draw_dots(&pen);
        break;
    case STG_MARK_SPOT:
        draw_spots(&pen);
        break;
    case STG_MARK_RANGE:
        draw_ranges(&pen);
        break;
    case STG_MARK_CELL:
        draw_cells(&pen);
        break;
    }
}
