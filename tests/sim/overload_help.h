/* overload_help.h - what tests of the overload model share. */
#ifndef TESTS_SIM_OVERLOAD_HELP_H
#define TESTS_SIM_OVERLOAD_HELP_H

#include <math.h>
#include <stdlib.h>

#include "tests/harness.h"

#include <stagger/text.h>

#include "sim/overload.h"

static inline void *help_allocate(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static inline void help_release(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

static const stg_memory help_memory = {help_allocate, help_release, NULL};

static inline stg_policy help_policy(const char *text)
{
    stg_policy policy;
    stg_error err;

    if (stg_policy_parse(&policy, text, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
    return policy;
}

/* The result is the caller's, to be freed. */
static inline stg_overload_result help_run(const stg_overload_options *o,
                                           uint64_t repetition)
{
    stg_overload_result r;
    stg_error err;

    if (stg_overload_check(o, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK(stg_overload_run(o, 7, repetition, NULL, &help_memory, &r) == STG_OK);
    return r;
}

/* Mean and standard error over repetitions. */
typedef struct help_sample {
    double count, sum, squares;
} help_sample;

static inline void help_add(help_sample *s, double x)
{
    s->count++;
    s->sum += x;
    s->squares += x * x;
}

static inline double help_mean(const help_sample *s)
{
    return s->sum / s->count;
}

static inline double help_se(const help_sample *s)
{
    double mean = help_mean(s);
    double variance =
        (s->squares / s->count - mean * mean) * s->count / (s->count - 1);

    return sqrt(variance > 0 ? variance / s->count : 0);
}

/* Within 3.5 standard errors, of which a fixed seed has its say once and for
 * all; and these are small, so that it could fail. */
#define CHECK_NEAR(sample, expected, precision) \
    help_near(__LINE__, #sample, &(sample), expected, precision)

static inline void help_near(int line, const char *what, const help_sample *s,
                             double expected, double precision)
{
    double mean = help_mean(s), se = help_se(s);

    if (se > precision * expected)
        harness_fail(__FILE__, line, "%s: standard error %g, expected %g", what,
                     se, precision * expected);
    if (fabs(mean - expected) > 3.5 * se)
        harness_fail(__FILE__, line, "%s is %g +- %g, not %g", what, mean, se,
                     expected);
}

#endif
