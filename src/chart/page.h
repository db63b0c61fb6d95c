/* page.h - charts and tables on one self-contained page of HTML.
 *
 * No script, nothing that is loaded from elsewhere, light and dark, for wide
 * and narrow windows and for paper: each chart is there in two widths, and the
 * style shows one. The numbers of a chart that has few are in a table below
 * it. */
#ifndef STAGGER_CHART_PAGE_H
#define STAGGER_CHART_PAGE_H

#include "chart/chart.h"
#include "chart/table.h"

typedef struct stg_page {
    const char *title;   /* a sentence */
    const char *lead;    /* what was simulated, a paragraph a line; lines that
                            are set in are code; NULL: nothing to say */
    const char *command; /* that makes this page again; NULL: not known */
    const char *warning; /* "interrupted: ..."; NULL: none */
    const stg_table *tables;
    size_t table_count;
    const stg_chart *const *charts;
    size_t chart_count;
} stg_page;

void stg_page_html(const stg_page *page, stg_text_buffer *buffer);

#endif
