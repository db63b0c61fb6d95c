#include "sim/random.h"

#include "sim/random_tables.h"

enum { LAYER = 255 }; /* the bits that choose one */

static const double unit = 0x1p-53;

/* The finalizer of splitmix64. */
static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

stg_rng stg_random_stream(uint64_t seed, uint64_t repetition,
                          stg_concern concern)
{
    return stg_rng_seed(mix(mix(mix(seed) + repetition) + (uint64_t)concern));
}

double stg_random_uniform(stg_rng *rng)
{
    return (double)(stg_rng_draw(rng) >> 11) * unit;
}

/* e^-x = (e^-(x/256))^256, and the series of so small a number is short. */
double stg_random_exp(double x)
{
    double y = x / 256, sum = 1;

    for (int k = 9; k > 0; k--)
        sum = 1 - sum * y / k;
    for (int i = 0; i < 8; i++)
        sum *= sum;
    return sum;
}

/* Whether a point at random height in the part of a layer that sticks out, at
 * x, is below the density. */
static bool is_below(const double *f, unsigned layer, double density,
                     stg_rng *rng)
{
    double height = stg_random_uniform(rng) * (f[layer + 1] - f[layer]);

    return f[layer] + height < density;
}

double stg_random_exponential(stg_rng *rng)
{
    double beyond = 0;

    for (;;) {
        uint64_t draw = stg_rng_draw(rng);
        unsigned layer = draw & LAYER;
        double x = (double)(draw >> 11) * unit * exponential_x[layer];

        if (x < exponential_x[layer + 1])
            return beyond + x;
        if (layer == 0) // the tail is the same distribution again
            beyond += exponential_x[1];
        else if (is_below(exponential_f, layer, stg_random_exp(x), rng))
            return beyond + x;
    }
}

/* Beyond r. Source: Marsaglia, "Generating a variable from the tail of the
 * normal distribution", Technometrics 6, 1964. */
static double draw_tail(stg_rng *rng)
{
    const double r = stg_random_normal_x[1];
    double x, y;

    do {
        x = stg_random_exponential(rng) / r;
        y = stg_random_exponential(rng);
    } while (2 * y < x * x);
    return r + x;
}

double stg_random_normal_edge(stg_rng *rng, uint64_t draw)
{
    const double *const reach = stg_random_normal_x;

    for (;; draw = stg_rng_draw(rng)) {
        unsigned layer = draw & LAYER;
        bool is_negative = (int64_t)draw < 0;
        double x = (double)((int64_t)draw >> 10) * unit * reach[layer];

        x = is_negative ? -x : x;
        if (x >= reach[layer + 1]) {
            if (layer == 0)
                x = draw_tail(rng);
            else if (!is_below(normal_f, layer, stg_random_exp(x * x / 2), rng))
                continue;
        }
        return is_negative ? -x : x;
    }
}
