/* svg_internal.h - a picture while it is drawn. Private to sim/svg*.c.
 *
 * A picture is drawn twice: first into a buffer that takes nothing, to learn
 * how high it becomes, and then for good. So no part of it is laid out in two
 * places. */
#ifndef STAGGER_CHART_SVG_INTERNAL_H
#define STAGGER_CHART_SVG_INTERNAL_H

#include "chart/scale.h"
#include "chart/svg.h"

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
    double left, right; /* of all plots */
    double y;           /* where the next part begins */
    stg_scale x;
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

/* All texts of a picture that are not in a plot are written by this one. */
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

/* Whether the series of a panel are named beside the ends of their lines. */
bool stg_svg_names_beside(const stg_chart *chart, unsigned panel, double width);

/* The room that takes. */
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
