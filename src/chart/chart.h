/* chart.h - what a picture shows: the finding, axes, and series of points.
 *
 * Plain data that the caller brings and owns; nothing here is kept longer than
 * the call that draws it (chart/svg.h, chart/page.h). A chart has one x axis and
 * one panel or more above one another, each with a y axis: a panel a policy, or
 * the rates in one and the queue in another.
 *
 * Times are milliseconds; an axis of times chooses its own unit (ms, s, min,
 * h) by what it shows. A point that is not finite, or not above 0 on a
 * logarithmic axis, is left out and interrupts its line. */
#ifndef STAGGER_CHART_CHART_H
#define STAGGER_CHART_CHART_H

#include <stdbool.h>
#include <stddef.h>

/* How the points of a series are shown. Lines, areas and steps have a band of 2
 * standard errors about them, spots and ranges are crossed by as much. Series of different marks may share a
 * panel. x does not fall from point to point but in dots and spots. */
typedef enum stg_chart_mark {
    STG_MARK_LINE,  /* joined */
    STG_MARK_AREA,  /* bins: filled from 0; x is a bin's start */
    STG_MARK_STEP,  /* level from each point to the next: an eCDF */
    STG_MARK_DOTS,  /* many, unconnected */
    STG_MARK_SPOT,  /* few, each large */
    STG_MARK_RANGE, /* a bar from low to high, and y marked in it */
} stg_chart_mark;

typedef struct stg_chart_point {
    double x, y;
    double x_se, y_se; /* standard errors; 0: none is known */
    double low, high;  /* of a range */
} stg_chart_point;

typedef struct stg_chart_series {
    const char *name;
    stg_chart_mark mark;
    unsigned colour; /* 0 to 7, repeated from 8 on: one a policy, the same on
                        all charts of a page */
    unsigned panel;  /* whose it is, from 0 */
    const stg_chart_point *points;
    size_t count;
} stg_chart_series;

typedef struct stg_chart_axis {
    const char *label; /* "clients", "calls in 10 ms" */
    const char *unit;  /* behind a number that is read: "calls"; shown behind
                          the label where the label does not have it */
    bool is_time;      /* milliseconds, whatever the unit says */
    bool is_log;
    bool is_from_zero; /* 0 is shown, even where no point is near */
    double from, to; /* at least this is shown; both 0: what the points take */
} stg_chart_axis;

typedef struct stg_chart_panel {
    const char *name; /* above it; NULL: none */
    stg_chart_axis y;
} stg_chart_panel;

/* A part of the x axis that is shaded in all panels: an outage. */
typedef struct stg_chart_span {
    const char *name;
    double from, to;
} stg_chart_span;

typedef struct stg_chart {
    const char *name;  /* of a file: "calls-by-clients"; letters, digits, - */
    const char *title; /* the finding, in a sentence */
    const char *note;  /* how to read it; NULL: nothing to say */
    stg_chart_axis x;
    const stg_chart_panel *panels;
    size_t panel_count; /* 1 at least */
    const stg_chart_series *series;
    size_t series_count;
    const stg_chart_span *spans;
    size_t span_count;
    bool is_y_shared; /* all panels have the y range of all points */
} stg_chart;

#endif
