/* What a policy's repetitions came to, in numbers. */
#include "sim/estimate.h"
#include "sim/wasm_inside.h"

typedef double (*figure)(const stg_contention_run *run);

static double calls(const stg_contention_run *run)
{
    return (double)run->calls;
}

static double wasted(const stg_contention_run *run)
{
    return (double)stg_contention_wasted(run);
}

static double in_ms(stg_ns ns)
{
    return (double)ns / (double)STG_MS;
}

static double completion(const stg_contention_run *run)
{
    return in_ms(run->completion);
}

static double peak(const stg_contention_run *run)
{
    return (double)run->peak;
}

static double successes(const stg_contention_run *run)
{
    return (double)run->successes;
}

static double given_up(const stg_contention_run *run)
{
    return (double)run->given_up;
}

const double *stg_wasm_sums(stg_wasm *w, uint32_t i)
{
    static const struct {
        stg_wasm_sum sum;
        figure of;
    } means[] = {
        {STG_WASM_CALLS, calls},           {STG_WASM_WASTED, wasted},
        {STG_WASM_COMPLETION, completion}, {STG_WASM_PEAK, peak},
        {STG_WASM_SUCCESSES, successes},   {STG_WASM_GIVEN_UP, given_up},
    };
    const stg_wasm_side *side = &w->sides[i];
    const stg_sim_tally *done = &side->book.done;
    double values[STG_WASM_REPETITIONS_MAX];

    if (i >= w->count)
        return NULL;
    w->sums[STG_WASM_REPETITIONS] = side->count;
    for (size_t k = 0; k < sizeof means / sizeof *means; k++) {
        stg_estimate e;

        for (uint32_t run = 0; run < side->count; run++)
            values[run] = means[k].of(&side->runs[run]);
        e = stg_estimate_make(values, side->count);
        w->sums[means[k].sum] = e.mean;
        w->sums[means[k].sum + 1] = e.se;
    }
    w->sums[STG_WASM_P50] = in_ms(stg_sim_tally_quantile(done, 0.5));
    w->sums[STG_WASM_P95] = in_ms(stg_sim_tally_quantile(done, 0.95));
    w->sums[STG_WASM_MOST] = in_ms(stg_sim_tally_quantile(done, 1));
    return w->sums;
}
