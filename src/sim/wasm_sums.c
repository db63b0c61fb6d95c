/* What a policy's repetitions came to, in numbers. */
#include "sim/contention_result.h"
#include "sim/wasm_internal.h"

static void put(stg_wasm *w, stg_wasm_sum sum, stg_estimate e)
{
    w->sums[sum] = e.mean;
    w->sums[sum + 1] = e.se;
}

static void put_quantile(stg_wasm *w, stg_wasm_sum sum,
                         const stg_sim_tally *done, double share)
{
    w->sums[sum] = (double)stg_sim_tally_quantile(done, share) / (double)STG_MS;
}

const double *stg_wasm_sums(stg_wasm *w, uint32_t i)
{
    const stg_wasm_side *side = &w->sides[i];
    stg_contention_result r;

    if (i >= w->count ||
        !stg_contention_judge(side->runs, side->count, &w->memory, &r))
        return NULL;
    w->sums[STG_WASM_REPETITIONS] = r.reps;
    put(w, STG_WASM_CALLS, r.calls);
    put(w, STG_WASM_WASTED, r.wasted);
    put(w, STG_WASM_COMPLETION, r.completion_ms);
    put(w, STG_WASM_PEAK, r.peak);
    put(w, STG_WASM_SUCCESSES, r.successes);
    put(w, STG_WASM_GIVEN_UP, r.given_up);
    put_quantile(w, STG_WASM_P50, &side->totals.done, 0.5);
    put_quantile(w, STG_WASM_P95, &side->totals.done, 0.95);
    put_quantile(w, STG_WASM_MOST, &side->totals.done, 1);
    return w->sums;
}
