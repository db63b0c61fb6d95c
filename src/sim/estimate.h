/* estimate.h - a mean of several runs, and how far it may be off.
 *
 * The values are added in the order in which they are given; + - * / alone, so
 * that it is the same everywhere. Pure. */
#ifndef STAGGER_SIM_ESTIMATE_H
#define STAGGER_SIM_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct stg_estimate {
    double mean;
    double se; /* the standard error of the mean; 0 for a single value */
} stg_estimate;

/* Of `count` values; of none it is 0. */
stg_estimate stg_estimate_make(const double *values, size_t count);

/* Whether they differ by more than two standard errors of their difference. */
bool stg_estimate_is_apart(stg_estimate a, stg_estimate b);

/* The square root of x >= 0, to the last bit or the one before it. */
double stg_estimate_root(double x);

#endif
