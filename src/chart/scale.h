/* scale.h - where a number falls on an axis, and which ticks people read.
 *
 * The logarithm is our own (no libm), so a picture is the same bytes with
 * every compiler. */
#ifndef STAGGER_CHART_SCALE_H
#define STAGGER_CHART_SCALE_H

#include "chart/chart.h"
#include "chart/text_buffer.h"

enum { STG_TICKS_MAX = 16 };

typedef struct stg_scale {
    bool is_log;
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

/* A number with its unit, as people say it. */
void stg_axis_put(const stg_chart_axis *axis, double number,
                  stg_text_buffer *buffer);

/* The decimal logarithm of a number above 0, within 1e-12 (and 1e-12 of it). */
double stg_log10(double number);

#endif
