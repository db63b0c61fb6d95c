#include "sim/estimate.h"

double stg_estimate_root(double x)
{
    double root = x > 1 ? x : 1, next;

    if (!(x > 0))
        return 0;
    // Newton's steps fall from above until they cannot.
    while ((next = (root + x / root) / 2) < root)
        root = next;
    return root;
}

stg_estimate stg_estimate_make(const double *values, size_t count)
{
    double n = (double)count, sum = 0, spread = 0;
    stg_estimate e = {0};

    if (count == 0)
        return e;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    e.mean = sum / n;
    for (size_t i = 0; i < count; i++)
        spread += (values[i] - e.mean) * (values[i] - e.mean);
    if (count > 1)
        e.se = stg_estimate_root(spread / (n - 1) / n);
    return e;
}

bool stg_estimate_is_apart(stg_estimate a, stg_estimate b)
{
    double apart = a.mean - b.mean;

    return apart * apart > 4 * (a.se * a.se + b.se * b.se);
}
