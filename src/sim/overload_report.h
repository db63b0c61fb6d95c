/* overload_report.h - what overloads came to, for readers: in words, as charts,
 * as tables. Pure. */
#ifndef STAGGER_SIM_OVERLOAD_REPORT_H
#define STAGGER_SIM_OVERLOAD_REPORT_H

#include "chart/chart.h"
#include "chart/table.h"
#include "chart/text_buffer.h"
#include "sim/overload_summary.h"

/* -- in words -------------------------------------------------------------- */

/* What overloads came to, in words. Pure. */

/* One of several that stand side by side. */
typedef struct stg_overload_case {
    const char *name;                    /* borrowed, as is: */
    const stg_overload_summary *summary; /* of one run at least */
} stg_overload_case;

/* "at once", "after 3.8 s", "in 7 of 10, after 12 s", "not within 60 s", "was
 * not well before", "was cut", "" without a trigger. */
void stg_overload_say_recovery(const stg_overload_summary *s,
                               stg_text_buffer *buffer);

/* The finding: which recover and which do not; of those that were cut, just
 * that; nothing of one run. */
void stg_overload_say_finding(const stg_overload_case *cases, size_t count,
                              stg_text_buffer *buffer);

/* What was simulated, as far as it is the same in all: service, load, trigger.
 * */
void stg_overload_say_setting(const stg_overload_case *cases, size_t count,
                              stg_text_buffer *buffer);

/* The cases that have the least and the most of a figure. */
typedef struct stg_overload_ends {
    const stg_overload_case *least, *most;
    bool is_single; /* there is one case */
    bool is_apart;  /* by more than chance makes: two standard errors */
} stg_overload_ends;

/* False: no case has the figure, and least and most are NULL. */
bool stg_overload_rank(const stg_overload_case *cases, size_t count,
                       stg_figure figure, stg_overload_ends *ends);

/* " with A"; where chance alone tells them apart " in each case"; nothing of a
 * single one. */
void stg_overload_put_end(const stg_overload_ends *ends,
                          const stg_overload_case *end,
                          stg_text_buffer *buffer);

/* "12.5 %": the operations that succeed. */
void stg_overload_put_success(const stg_overload_case *c,
                              stg_text_buffer *buffer);

/* Says that there was no more than one run of a case, from which nothing
 * follows. False: there were more, and nothing is said. */
bool stg_overload_say_once(const stg_overload_case *cases, size_t count,
                           stg_text_buffer *buffer);

/* -- charts ---------------------------------------------------------------- */

/* Overloads as charts: rates and the queue over time with
 * the trigger shaded, latency, amplification, and what success costs. Pure. */

/* Each adds a chart to the set; the cases' names must outlive it. title NULL:
 * what there is to find. Without memory the set is short. */

/* Goodput, offered load and queue over time, a panel each. */
void stg_overload_chart_rates(stg_chart_set *a, const stg_overload_case *cases,
                              size_t count, const char *title);

/* Median and p99 of what succeeds, over time. */
void stg_overload_chart_latency(stg_chart_set *a,
                                const stg_overload_case *cases, size_t count);

/* Requests for each operation that begins, over time. */
void stg_overload_chart_amplification(stg_chart_set *a,
                                      const stg_overload_case *cases,
                                      size_t count);

/* Success against load, a spot a case. */
void stg_overload_chart_cost(stg_chart_set *a, const stg_overload_case *cases,
                             size_t count);

/* -- tables ---------------------------------------------------------------- */

/* What overloads came to, as numbers: a table for readers and
 * programs, and the series for programs. Pure. */

typedef struct stg_overload_table {
    stg_table table;
    const stg_memory *memory; /* kept */
    void *bytes;              /* of all that the table points to */
    stg_text_buffer *words;   /* a text a row: when it recovers */
    size_t count;
} stg_overload_table;

/* A row a case; the cases and their names must outlive it. Returns STG_IO if
 * there is no memory, and there is nothing to free. */
stg_status stg_overload_table_make(stg_overload_table *t,
                                   const stg_overload_case *cases, size_t count,
                                   uint64_t seed, const stg_memory *memory);
void stg_overload_table_free(stg_overload_table *t);

/* The series as a list in JSON, an object a case: {"policy", "bin_ms",
 * "goodput_per_s": [...], ...}. */
void stg_overload_put_series(const stg_overload_case *cases, size_t count,
                             stg_text_buffer *p);

#endif
