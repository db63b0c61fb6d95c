/* distribution.h - how long something takes: a time that is drawn.
 *
 * As a text, the same in every command of the simulator:
 *
 *     10ms                      always
 *     uniform:5ms:15ms          anywhere from 5 to 15 ms
 *     normal:10ms:2ms           mean and standard deviation, and its absolute
 *                               value: no message arrives before it was sent
 *     exponential:10ms          mean; many short ones and a few long
 *     erlang:4:10ms             the sum of 4 exponential ones: steadier
 *     mix:5%:200ms:8ms          5 % take 200 ms and the others 8 ms on average,
 *                               each exponential: a few are slow
 *
 * Pure, no allocation. A distribution is plain data. */
#ifndef STAGGER_SIM_DISTRIBUTION_H
#define STAGGER_SIM_DISTRIBUTION_H

#include <stagger/ns.h>
#include <stagger/rng.h>
#include <stagger/status.h>

#include "sim/random.h"

typedef enum stg_distribution_kind {
    STG_DISTRIBUTION_FIXED,       /* a */
    STG_DISTRIBUTION_UNIFORM,     /* a to b, whole ns */
    STG_DISTRIBUTION_NORMAL,      /* |a + b z| */
    STG_DISTRIBUTION_EXPONENTIAL, /* mean a */
    STG_DISTRIBUTION_ERLANG,      /* mean a, in `count` stages */
    STG_DISTRIBUTION_MIX, /* `count` in a thousand have mean a, the others b */
} stg_distribution_kind;

typedef struct stg_distribution {
    stg_distribution_kind kind;
    stg_ns a, b;    /* 0 to 365 d each; of uniform a <= b; unused ones 0 */
    uint32_t count; /* erlang: 1 to 1000; mix: 1 to 999; else 0 */
} stg_distribution;

/* Any distribution but a normal one. */
stg_ns stg_distribution_draw_other(const stg_distribution *distribution,
                                   stg_rng *rng);

/* Draws from rng as often as the distribution needs: never for a fixed time. At
 * most 2^62 ns. */
static inline stg_ns stg_distribution_draw(const stg_distribution *distribution,
                                           stg_rng *rng)
{
    double x;

    if (distribution->kind != STG_DISTRIBUTION_NORMAL)
        return stg_distribution_draw_other(distribution, rng);
    x = (double)(int64_t)distribution->a;
    x += (double)(int64_t)distribution->b * stg_random_normal(rng);
    return (stg_ns)(int64_t)(__builtin_fabs(x) + 0.5); // below 2^59
}

/* So many draws, one after the other: the same times. */
void stg_distribution_draw_many(const stg_distribution *distribution,
                                stg_rng *rng, stg_ns *times, size_t count);

enum { STG_DISTRIBUTION_AHEAD = 64 };

/* Times that are drawn ahead of their use, for one who draws from a generator
 * by one distribution only. The same times in the same order as by single
 * draws, and faster. */
typedef struct stg_distribution_ahead {
    const stg_distribution *distribution; /* kept */
    stg_rng rng;
    size_t used; /* of times, from the first on */
    stg_ns times[STG_DISTRIBUTION_AHEAD];
} stg_distribution_ahead;

/* Without any yet. */
static inline void
stg_distribution_ahead_init(stg_distribution_ahead *a,
                            const stg_distribution *distribution, stg_rng rng)
{
    a->distribution = distribution;
    a->rng = rng;
    a->used = STG_DISTRIBUTION_AHEAD;
}

static inline stg_ns stg_distribution_ahead_draw(stg_distribution_ahead *a)
{
    if (a->used == STG_DISTRIBUTION_AHEAD) {
        stg_distribution_draw_many(a->distribution, &a->rng, a->times,
                                   STG_DISTRIBUTION_AHEAD);
        a->used = 0;
    }
    return a->times[a->used++];
}

/* The mean, for |a + b z| that of a + b z. */
stg_ns stg_distribution_mean(const stg_distribution *distribution);

/* What the texts above begin with, but for a bare time. Ends with NULL. */
extern const char *const stg_distribution_words[];

/* Reads a text as above into *distribution. Returns STG_OK, or STG_INVALID with
 * words in err, and leaves *distribution. */
stg_status stg_distribution_parse(stg_distribution *distribution,
                                  const char *text, stg_error *err);

#define STG_DISTRIBUTION_TEXT_MAX 80

/* Writes the text that reads as this distribution. Returns text. */
const char *stg_distribution_print(const stg_distribution *distribution,
                                   char text[STG_DISTRIBUTION_TEXT_MAX]);

#endif
