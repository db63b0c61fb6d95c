#include "sim/throttle.h"

static void move_on(stg_sim_throttle *t, stg_ns now)
{
    uint64_t slice = now / (10 * STG_S);

    if (slice >= t->slice + STG_THROTTLE_SLICES) {
        *t = (stg_sim_throttle){.slice = slice};
        return;
    }
    while (t->slice < slice) {
        t->slice++;
        t->requests[t->slice % STG_THROTTLE_SLICES] = 0;
        t->accepts[t->slice % STG_THROTTLE_SLICES] = 0;
    }
}

static uint64_t sum_up(const uint32_t counts[STG_THROTTLE_SLICES])
{
    uint64_t sum = 0;

    for (int i = 0; i < STG_THROTTLE_SLICES; i++)
        sum += counts[i];
    return sum;
}

bool stg_sim_throttle_pass(stg_sim_throttle *t, uint32_t k, stg_ns now,
                           stg_rng *rng)
{
    uint64_t requests, accepts, excess;

    move_on(t, now);
    requests = sum_up(t->requests);
    accepts = sum_up(t->accepts) * k / 1000;
    excess = requests > accepts ? requests - accepts : 0;
    t->requests[t->slice % STG_THROTTLE_SLICES]++;
    return excess == 0 || stg_rng_upto(rng, requests) >= excess;
}

void stg_sim_throttle_accept(stg_sim_throttle *t, stg_ns now)
{
    move_on(t, now);
    t->accepts[t->slice % STG_THROTTLE_SLICES]++;
}
