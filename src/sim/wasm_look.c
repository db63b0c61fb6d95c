/* What a text means, in lines that a page can read; and what a policy's
 * repetitions came to, in numbers.
 *
 * An answer is "key value" in each line, or one line that begins with "error".
 * All answers share one buffer: it is good until the next call, and a page
 * copies it. Times are whole ns, and 0 stands for no limit. */
#include "core/text_internal.h"

#include "sim/contention_report.h"
#include "sim/wasm_internal.h"

/* -- texts ----------------------------------------------------------------- */

enum { WINDOWS = 10 };

static const char *const growths[] = {
    [STG_FIXED] = "fixed",
    [STG_LINEAR] = "linear",
    [STG_EXPONENTIAL] = "exponential",
    [STG_LIST] = "list",
    [STG_POLYNOMIAL] = "polynomial",
};

stg_writer stg_wasm_answer(stg_wasm *w)
{
    return stg_writer_on(w->answer, sizeof w->answer);
}

const char *stg_wasm_refuse(stg_wasm *w, const stg_error *err)
{
    stg_writer out = stg_wasm_answer(w);

    stg_write_text(&out, "error ");
    if (err->column > 0) {
        stg_write_number(&out, err->column);
        stg_write_char(&out, ' ');
    }
    stg_write_text(&out, err->text);
    return w->answer;
}

void stg_wasm_put_text(stg_writer *out, const char *key, const char *value)
{
    stg_write_text(out, key);
    stg_write_char(out, ' ');
    stg_write_text(out, value);
    stg_write_char(out, '\n');
}

void stg_wasm_put_number(stg_writer *out, const char *key, uint64_t value)
{
    stg_write_text(out, key);
    stg_write_char(out, ' ');
    stg_write_number(out, value);
    stg_write_char(out, '\n');
}

const char *stg_wasm_preset(stg_wasm *w, uint32_t i)
{
    stg_writer out = stg_wasm_answer(w);
    const stg_preset *preset = stg_preset_at(i);

    if (preset != NULL) {
        stg_wasm_put_text(&out, "name", preset->name);
        stg_wasm_put_text(&out, "text", preset->text);
        stg_wasm_put_text(&out, "use", preset->use);
    }
    return w->answer;
}

static void put_windows(stg_writer *out, const stg_backoff *backoff)
{
    stg_write_text(out, "windows");
    for (uint32_t n = 1; n <= WINDOWS; n++) {
        stg_write_char(out, ' ');
        stg_write_number(out, stg_backoff_window(backoff, n));
    }
    stg_write_char(out, '\n');
}

/* The canonical text comes last, and is missing where a policy has none. */
const char *stg_wasm_policy(stg_wasm *w, const char *text)
{
    stg_writer out;
    stg_policy policy;
    stg_error err;
    char canonical[STG_POLICY_TEXT_MAX];
    const stg_backoff *b = &policy.backoff;

    if (stg_policy_parse(&policy, text, &err) != STG_OK)
        return stg_wasm_refuse(w, &err);
    out = stg_wasm_answer(w);
    stg_wasm_put_text(&out, "growth", growths[b->growth]);
    stg_write_text(&out, "jitter ");
    stg_jitter_write(&out, b);
    stg_write_char(&out, '\n');
    stg_wasm_put_number(&out, "factor", b->factor);
    stg_wasm_put_number(&out, "base", b->base);
    stg_wasm_put_number(&out, "cap", b->cap == STG_NEVER ? 0 : b->cap);
    stg_wasm_put_number(
        &out, "attempts",
        policy.attempts_max == STG_UNLIMITED ? 0 : policy.attempts_max);
    put_windows(&out, b);
    if (stg_policy_print(&policy, canonical) == STG_OK)
        stg_wasm_put_text(&out, "text", canonical);
    return w->answer;
}

const char *stg_wasm_resource(stg_wasm *w, const char *text)
{
    stg_writer out;
    stg_resource resource;
    stg_error err = {0};
    char canonical[STG_RESOURCE_TEXT_MAX];

    if (stg_resource_parse(&resource, text, &err) != STG_OK)
        return stg_wasm_refuse(w, &err);
    out = stg_wasm_answer(w);
    stg_wasm_put_text(&out, "text", stg_resource_print(&resource, canonical));
    return w->answer;
}

const char *stg_wasm_distribution(stg_wasm *w, const char *text)
{
    stg_writer out;
    stg_distribution distribution;
    stg_error err = {0};
    char canonical[STG_DISTRIBUTION_TEXT_MAX];

    if (stg_distribution_parse(&distribution, text, &err) != STG_OK)
        return stg_wasm_refuse(w, &err);
    out = stg_wasm_answer(w);
    stg_wasm_put_text(&out, "text",
                      stg_distribution_print(&distribution, canonical));
    return w->answer;
}

/* -- numbers --------------------------------------------------------------- */

/* What a policy's repetitions came to, in numbers. */

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

/* NULL: no such policy, or no memory. The numbers are lent until the next
 * call. */
const double *stg_wasm_sums(stg_wasm *w, uint32_t i)
{
    const stg_wasm_side *side = &w->sides[i];
    stg_contention_result r;

    if (i >= w->count ||
        !stg_contention_estimate(side->runs, side->count, &w->memory, &r))
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
