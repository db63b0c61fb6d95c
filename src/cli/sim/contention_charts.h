/* contention_charts.h - a study of contention in pictures. */
#ifndef STAGGER_CLI_SIM_CONTENTION_CHARTS_H
#define STAGGER_CLI_SIM_CONTENTION_CHARTS_H

#include "chart/chart_set.h"
#include "cli/sim/study.h"

/* Adds all charts of the study; note says what was simulated. The calls of one
 * repetition, which are in one of them, are simulated again. Returns false if
 * there is no memory. Study and note stay as long as the set. */
bool stg_contention_draw(stg_chart_set *charts, const stg_study *study,
                         const char *note);

#endif
