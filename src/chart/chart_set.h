/* chart_set.h - charts while they are made, with the memory of all they point
 * to.
 *
 * Memory that a chart set gives out is there until the set is freed. If memory
 * runs out, is_short stays true and the call returns NULL: such a set is of no
 * use but to be freed. Pure; a set belongs to one thread. */
#ifndef STAGGER_CHART_CHART_SET_H
#define STAGGER_CHART_CHART_SET_H

#include "chart/chart.h"
#include "chart/text_buffer.h"

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

#endif
