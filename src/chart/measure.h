/* measure.h - how wide a text will be, before anybody has drawn it.
 *
 * The widths are those of Helvetica and its likes, with room for the sans-serif
 * fonts that are wider: what is laid out by them does not overlap in any. */
#ifndef STAGGER_CHART_MEASURE_H
#define STAGGER_CHART_MEASURE_H

#include <stddef.h>

/* Pixels, at a size in pixels. text is UTF-8. */
double stg_measure(const char *text, double size);

/* How many bytes of a text, from its start, fit in a width: all, or whole
 * characters. */
size_t stg_measure_fit(const char *text, double size, double width);

/* The same, up to a blank where there is one: where to break a line. */
size_t stg_measure_break(const char *text, double size, double width);

#endif
