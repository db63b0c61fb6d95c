/* overload_charts.h - overloads as charts: rates and the queue over time with
 * the trigger shaded, latency, amplification, and what success costs. Pure. */
#ifndef STAGGER_SIM_OVERLOAD_CHARTS_H
#define STAGGER_SIM_OVERLOAD_CHARTS_H

#include "chart/chart_set.h"
#include "sim/overload_words.h"

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

#endif
