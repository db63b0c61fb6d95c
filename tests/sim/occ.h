/* occ.h - optimistic contention as others measured it: means and standard errors
 * of calls, and of the time until the last client has succeeded.
 *
 * Made with the simulator of Brooker, "Exponential Backoff And Jitter" (AWS
 * Architecture Blog, 2015), with 1000 to 4000 repetitions a row; a base of 5 ms
 * and a cap of 2 s, messages of |normal(10 ms, 2 ms)|. Its first window is twice
 * its base. */
#ifndef TESTS_SIM_OCC_H
#define TESTS_SIM_OCC_H

typedef struct occ_row {
    const char *jitter;
    unsigned clients;
    double calls, calls_se, ms, ms_se;
} occ_row;

static const occ_row occ_rows[] = {
    {"exponential", 10, 50.9117, 0.0650, 3496.225, 20.607},
    {"decorrelated", 10, 37.6620, 0.0355, 436.817, 1.353},
    {"equal", 10, 42.5580, 0.0407, 729.635, 2.961},
    {"full", 10, 39.0547, 0.0365, 467.711, 1.682},
    {"none", 10, 50.8807, 0.0649, 380.148, 0.548},
    {"exponential", 20, 150.3585, 0.3113, 14473.555, 64.230},
    {"decorrelated", 20, 100.8770, 0.1096, 812.349, 3.916},
    {"equal", 20, 108.0100, 0.0911, 1638.039, 10.455},
    {"full", 20, 100.2250, 0.0771, 1001.057, 5.877},
    {"none", 20, 152.2790, 0.2780, 602.870, 1.204},
    {"exponential", 50, 624.0910, 0.6400, 36394.704, 71.790},
    {"decorrelated", 50, 374.4505, 0.2884, 2194.665, 10.908},
    {"equal", 50, 347.2915, 0.1352, 4262.576, 12.454},
    {"full", 50, 332.8055, 0.1075, 2887.933, 12.303},
    {"none", 50, 689.7540, 0.3823, 1141.123, 0.972},
    {"exponential", 100, 1854.7110, 1.8438, 63467.004, 119.136},
    {"decorrelated", 100, 1000.6210, 0.9178, 4595.749, 21.318},
    {"equal", 100, 812.1300, 0.2568, 6650.589, 20.946},
    {"full", 100, 795.8850, 0.2268, 4924.055, 17.193},
    {"none", 100, 2423.2050, 1.0462, 2028.240, 1.401},
};

enum { OCC_ROWS = sizeof occ_rows / sizeof *occ_rows };

#endif
