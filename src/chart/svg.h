/* svg.h - a chart as a picture.
 *
 * Colours, light and dark, are those of chart/palette.h. Each number shows when
 * the pointer is over it: a <title>, no script. Lines are told apart by colour,
 * by the shape of their points, and by their names beside them. */
#ifndef STAGGER_CHART_SVG_H
#define STAGGER_CHART_SVG_H

#include "chart/chart.h"
#include "chart/text_buffer.h"

typedef struct stg_svg_options {
    int width;     /* 280 to 2000 pixels; the height follows from the chart */
    bool is_alone; /* a file of its own: with the title, the note, its own
                      style and a background; else what a page puts between
                      its own words and style */
} stg_svg_options;

/* Alone, 760 wide. */
stg_svg_options stg_svg_options_default(void);

/* Adds the <svg> element to the buffer. */
void stg_chart_svg(const stg_chart *chart, const stg_svg_options *options,
                   stg_text_buffer *buffer);

#endif
