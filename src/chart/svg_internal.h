/* svg_internal.h - how the files that draw an SVG share the work. */
#ifndef STAGGER_CHART_SVG_INTERNAL_H
#define STAGGER_CHART_SVG_INTERNAL_H

#include <stddef.h>

#include "chart/chart.h"
#include "chart/text_buffer.h"

/* -- widths of text -------------------------------------------------------- */

/* How wide a text will be, before anybody has drawn it.
 *
 * The widths are those of Helvetica and its likes, with room for the sans-serif
 * fonts that are wider: what is laid out by them does not overlap in any. */

/* Pixels, at a size in pixels. text is UTF-8. */
double stg_measure(const char *text, double size);

/* How many bytes of a text, from its start, fit in a width: all, or whole
 * characters. */
size_t stg_measure_fit(const char *text, double size, double width);

/* The same, up to a blank where there is one: where to break a line. */
size_t stg_measure_break(const char *text, double size, double width);

/* -- scales ---------------------------------------------------------------- */

/* Where a number falls on an axis, and which ticks are read with ease.
 *
 * The logarithm is our own (no libm), so a chart is the same bytes with
 * every compiler. */

enum { STG_TICKS_MAX = 16 };

typedef struct stg_scale {
    bool is_log, is_root;
    bool is_time;
    double from, to; /* of the data's unit; to > from, from > 0 in a log */
    double at_from, at_to; /* pixels */
    double unit;           /* of a linear axis of times, in ms; else 1 */
    const char *unit_name; /* "ms", or the axis's own */
    double ticks[STG_TICKS_MAX];
    int tick_count;
} stg_scale;

/* What the points of an axis take; starts as {.is_empty = true}. */
typedef struct stg_extent {
    bool is_empty;
    double from, to;
} stg_extent;

/* Whether an axis can show a number. */
bool stg_axis_shows(const stg_chart_axis *axis, double number);

void stg_extent_include(stg_extent *e, const stg_chart_axis *axis, double x);

/* Rounded out to whole ticks where that is near. ticks: how many there is room
 * for, 2 to STG_TICKS_MAX; is_tight: the range stays as it is. */
stg_scale stg_scale_make(const stg_chart_axis *axis, const stg_extent *extent,
                         int ticks, bool is_tight);

/* Pixels of a number that the axis shows, kept within the axis. */
double stg_scale_place(const stg_scale *s, double number);

/* A tick's number in the unit of the axis. */
void stg_scale_put_tick(const stg_scale *s, double number,
                        stg_text_buffer *buffer);

/* A number with its unit, as one says it. */
void stg_axis_put(const stg_chart_axis *axis, double number,
                  stg_text_buffer *buffer);

/* The decimal logarithm of a number above 0, within 1e-12 (and 1e-12 of it). */
double stg_log10(double number);

/* -- an SVG ---------------------------------------------------------------- */

/* A chart while it is drawn. Private to chart/svg*.c.
 *
 * A chart is drawn twice: first into a buffer that takes nothing, to learn
 * how high it becomes, and then for good. So no part of it is laid out in two
 * places. */

enum {
    TEXT_SIZE = 12,
    LINE_HEIGHT = 16,
    TITLE_SIZE = 17,
    TITLE_HEIGHT = 23,
    NAMES_MAX = 32, /* series of a panel that are named beside their lines */
    GAP = 8,
};

/* How much wider than others bold letters are. */
#define BOLD 1.3

typedef struct stg_picture {
    const stg_chart *chart;
    stg_text_buffer *buffer;
    stg_text_buffer *scratch; /* for a label while it is measured */
    double width;
    double edge;        /* left free on both sides */
    double left, right; /* edges of all plots, x in pixels */
    double y;           /* where the next part begins */
    stg_scale x;
    bool is_still;
} stg_picture;

/* A panel in its place. */
typedef struct stg_plot {
    unsigned index;
    const stg_chart_panel *panel;
    double top, bottom;
    stg_scale y;
} stg_plot;

/* Whether a point is shown, and where. */
bool stg_plot_has(const stg_picture *pic, const stg_plot *plot,
                  const stg_chart_point *point);

/* -- svg_frame.c: what is about the points */

/* All texts of a chart that are not in a plot are written by this one. */
void stg_svg_text(const stg_picture *pic, double x, double y,
                  const char *anchor, const char *class_names,
                  const char *text);

/* As much of a name as fits into the room, and dots. */
void stg_svg_name(const stg_picture *pic, double x, double y,
                  const char *class_names, const char *name, double room);

/* A text of several lines; moves pic->y. */
void stg_svg_lines(stg_picture *pic, const char *class_names, double size,
                   double line_height, const char *text);

void stg_svg_frame(const stg_picture *pic, const stg_plot *plot);
void stg_svg_x_axis(stg_picture *pic);
void stg_svg_spans(const stg_picture *pic, const stg_plot *plot);

/* "completion (ms)"; lent until the next label. */
const char *stg_svg_axis_title(const stg_picture *pic,
                               const stg_chart_axis *axis,
                               const stg_scale *scale);

/* A tick's label; lent until the next one. */
const char *stg_svg_tick(const stg_picture *pic, const stg_scale *scale,
                         int tick);

/* -- svg_marks.c: the points */
void stg_svg_marks(const stg_picture *pic, const stg_plot *plot,
                   const stg_chart_series *s);

/* The shape that goes with a colour. */
void stg_svg_marker(stg_text_buffer *buffer, unsigned colour, double x,
                    double y, double size);

/* -- svg_names.c: which is which */

/* The room that names beside the ends of lines take. */
double stg_svg_names_width(const stg_chart *chart, double width);

void stg_svg_names(const stg_picture *pic, const stg_plot *plot);
void stg_svg_spot_names(const stg_picture *pic, const stg_plot *plot);

/* The names in rows above a plot that has them neither beside its lines or
 * spots nor as its own name; moves pic->y. The plot may be where the rows will
 * be. */
void stg_svg_legend(stg_picture *pic, const stg_plot *plot);

/* -- svg_hover.c: the numbers under the pointer */
void stg_svg_hover(const stg_picture *pic, const stg_plot *plot);

/* "190 clients: 1,802 calls, standard error 3" */
void stg_svg_say(const stg_chart *chart, const stg_plot *plot,
                 const stg_chart_point *point, stg_text_buffer *buffer);

#endif
