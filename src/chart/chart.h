/* chart.h - charts: their data, sets of them, and how they are drawn. Pure. */
#ifndef STAGGER_CHART_CHART_H
#define STAGGER_CHART_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "chart/table.h"
#include "chart/text_buffer.h"

/* -- a chart --------------------------------------------------------------- */

/* The content of a chart: the finding, the axes, and series of points.
 *
 * Plain data that the caller brings and owns; nothing here is kept longer than
 * the call that draws it, below. A chart has one x axis and one or more panels,
 * one above the other, each with its own y axis: a panel for each policy, or
 * the rates in one panel and the queue in another.
 *
 * Times are milliseconds; an axis of times chooses its own unit (ms, s, min, h)
 * by what it shows. A point that is not finite, or not above 0 on a logarithmic
 * axis, is left out and interrupts its line. */

/* How the points of a series are shown. Lines, areas and steps have a band of 2
 * standard errors about them, spots and ranges are crossed by as much. Series
 * of different marks may share a panel. x does not fall from point to point but
 * in dots and spots. */
typedef enum stg_chart_mark {
    STG_MARK_LINE,  /* joined */
    STG_MARK_AREA,  /* bins: filled from 0; x is a bin's start */
    STG_MARK_STEP,  /* level from each point to the next: an eCDF */
    STG_MARK_DOTS,  /* many, unconnected */
    STG_MARK_SPOT,  /* few, each large */
    STG_MARK_RANGE, /* a bar from low to high, and y marked in it */
    STG_MARK_CELL, /* a rectangle about x and y, the fuller the nearer `high` is
                       to 1: a heat map */
} stg_chart_mark;

typedef struct stg_chart_point {
    double x, y;
    double x_se, y_se; /* standard errors; 0: none is known */
    double low, high;  /* of a range; high of a cell: 0 to 1 */
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
    const char *unit;  /* after a number that is read: "calls"; shown behind
                          the label where the label does not have it */
    bool is_time;      /* milliseconds, whatever the unit says */
    bool is_log;
    bool
        is_root; /* places are the square roots of the way from `from`: more room
                     for the beginning */
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
    const char *name;  /* file name: "calls-by-clients"; letters, digits, - */
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
    double cell_width, cell_height; /* of cells, in the axes' units */
} stg_chart;

/* -- a set of charts ------------------------------------------------------- */

/* Charts while they are made, with the memory of all they point
 * to.
 *
 * Memory that a chart set gives out is there until the set is freed. If memory
 * runs out, is_short stays true and the call returns NULL: such a set is of no
 * use but to be freed. Pure; a set belongs to one thread. */

enum { STG_CHART_SET_MAX = 24 };

typedef struct stg_chart_set_piece stg_chart_set_piece;

typedef struct stg_chart_set {
    const stg_memory *memory; /* kept */
    stg_chart_set_piece *pieces;
    const stg_chart *charts[STG_CHART_SET_MAX];
    size_t count;
    bool is_short;
} stg_chart_set;

/* A chart that is being made: what it points to, writable. */
typedef struct stg_chart_draft {
    stg_chart *chart;
    stg_chart_panel *panels;
    stg_chart_series *series;
} stg_chart_draft;

stg_chart_set stg_chart_set_on(const stg_memory *memory);
void stg_chart_set_free(stg_chart_set *a);

/* Zeroed memory, aligned for anything here; NULL: there is none. */
void *stg_chart_set_take(stg_chart_set *a, size_t size);

/* The text of the buffer, which is cleared; "" if there is no memory. */
const char *stg_chart_set_text(stg_chart_set *a, stg_text_buffer *buffer);

/* Makes a chart of so many panels and series, all zeroed, and adds it; false
 * if there is no memory or no place. name: as in chart/chart.h; borrowed, as
 * long as the set. */
bool stg_chart_set_add(stg_chart_set *a, const char *name, size_t panels,
                       size_t series, stg_chart_draft *draft);

/* The charts' titles, which are findings, become what they show, and that they
 * were interrupted: "Calls by clients: ...", after the charts' names. */
void stg_chart_set_conclude_nothing(stg_chart_set *a);

/* The points of a series; NULL: no memory, and it has none. */
stg_chart_point *stg_chart_set_points(stg_chart_set *a, stg_chart_series *s,
                                      size_t count);

/* A candidate in a picture in which left is better, and down. */
typedef struct stg_chart_spot {
    const char *name;
    unsigned colour;
    stg_chart_point point;
} stg_chart_spot;

/* Fills series[0] to series[count] of a panel: the spots, and a line, of `colour`,
 * through those that no other one beats in both directions. Names are borrowed,
 * as long as the set. */
void stg_chart_set_frontier(stg_chart_set *a, const stg_chart_spot *spots,
                            size_t count, unsigned panel, unsigned colour,
                            stg_chart_series *series);

/* -- colours --------------------------------------------------------------- */

/* The colours of the charts, light and dark.
 *
 * Eight colours that readers with each kind of colour-blindness tell apart, each
 * with a contrast of 3 or more against the ground (WCAG 2.2, 1.4.11). Their
 * measure is tests/sim/pages.py. */

/* The style of <svg class="stg">: by what the reader prefers, and light when
 * printed. */
void stg_palette_css(stg_text_buffer *buffer);

/* The same for the rest of a page. */
void stg_palette_page_css(stg_text_buffer *buffer);

/* -- as SVG ---------------------------------------------------------------- */

/* A chart as SVG.
 *
 * Colours, light and dark, are those of the palette. Each number shows when
 * the pointer is over it: a <title>, no script. Lines differ by colour,
 * by the shape of their points, and by their names beside them. */

typedef struct stg_svg_options {
    int width;     /* 280 to 2000 pixels; the height follows from the chart */
    bool is_still; /* no numbers under the pointer */
    bool is_alone; /* a file of its own: with the title, the note, its own
                      style and a background; else what a page puts between
                      its own words and style */
} stg_svg_options;

/* Alone, 760 wide. */
stg_svg_options stg_svg_options_default(void);

/* Adds the <svg> element to the buffer. */
void stg_chart_svg(const stg_chart *chart, const stg_svg_options *options,
                   stg_text_buffer *buffer);

/* -- as a page ------------------------------------------------------------- */

/* Charts and tables on one self-contained page of HTML.
 *
 * No script, nothing that is loaded from elsewhere, light and dark, for wide
 * and narrow windows and for paper: each chart is there in two widths, and the
 * style shows one. The numbers of a chart that has few are in a table below
 * it. */

/* A key number or two of what a page is about: "full", "1,760 calls", "7.3 s". */
typedef struct stg_page_tile {
    const char *name, *first, *second;
} stg_page_tile;

typedef struct stg_page {
    const char *title;   /* a sentence */
    const char *lead;    /* what was simulated, a paragraph a line; lines that
                            are set in are code; NULL: nothing to say */
    const char *command; /* that makes this page again; NULL: not known */
    const char *warning; /* "interrupted: ..."; NULL: none */
    const char *tiles_title; /* what the tiles are of */
    const stg_page_tile *tiles;
    size_t tile_count;
    const stg_table *tables;
    size_t table_count;
    const stg_chart *const *charts;
    size_t chart_count;
} stg_page;

void stg_page_html(const stg_page *page, stg_text_buffer *buffer);

#endif
