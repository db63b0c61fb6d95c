/* samples.h - a chart of each kind, of points made up by arithmetic. */
#ifndef TESTS_SIM_SAMPLES_H
#define TESTS_SIM_SAMPLES_H

#include "chart/chart.h"

enum { SAMPLES = 8 };

/* Sample i, from 0. The chart points into static memory. */
const stg_chart *test_sample(int i);

#endif
