#include <stagger/backoff.h>

#include <stdbool.h>

#include "core/backoff_draw.h"
#include "core/writer.h"

stg_backoff stg_backoff_default(void)
{
    return (stg_backoff){
        .growth = STG_EXPONENTIAL,
        .jitter = STG_JITTER_FULL,
        .factor = 2000,
        .base = 200 * STG_MS,
        .cap = 30 * STG_S,
    };
}

static stg_status check_list(const stg_backoff *b, stg_error *err)
{
    bool is_list = b->growth == STG_LIST;

    if (is_list && (b->list_count < 1 || b->list_count > STG_LIST_MAX))
        return stg_refuse_number(err, "list_count", b->list_count, "1 to 32");
    if (!is_list && b->list_count != 0)
        return stg_refuse_number(err, "list_count", b->list_count,
                                 "0 where there is no list");
    for (uint32_t i = 0; i < STG_LIST_MAX; i++) {
        if (b->list[i] > STG_BACKOFF_MAX)
            return stg_refuse_duration(err, "list", b->list[i], "0 to 365d");
        if (i >= b->list_count && b->list[i] != 0)
            return stg_refuse_duration(err, "list", b->list[i],
                                       "0 behind the end of the list");
    }
    return STG_OK;
}

stg_status stg_backoff_check(const stg_backoff *b, stg_error *err)
{
    bool has_percent;

    if (b == NULL)
        return stg_refuse(err, "backoff is NULL");
    if ((unsigned)b->growth > STG_LIST)
        return stg_refuse_number(err, "growth", (unsigned)b->growth,
                                 "one of stg_growth");
    if ((unsigned)b->jitter > STG_JITTER_PERCENT)
        return stg_refuse_number(err, "jitter", (unsigned)b->jitter,
                                 "one of stg_jitter");
    has_percent = b->jitter == STG_JITTER_PERCENT;
    if (has_percent && (b->percent < 1 || b->percent > 100))
        return stg_refuse_percent(err, "jitter", b->percent, "1% to 100%");
    if (!has_percent && b->percent != 0)
        return stg_refuse_percent(err, "jitter", b->percent,
                                  "no percentage with another jitter");
    if (b->factor < 1000 || b->factor > 100000)
        return stg_refuse_thousandths(err, "factor", b->factor, "1 to 100");
    if (b->base > STG_BACKOFF_MAX)
        return stg_refuse_duration(err, "base", b->base, "0 to 365d");
    if (b->cap == 0 || (b->cap > STG_BACKOFF_MAX && b->cap != STG_NEVER))
        return stg_refuse_duration(err, "cap", b->cap,
                                   "more than 0, to 365d, or none");
    if (b->cap < b->base) {
        stg_writer w = stg_writer_on_error(err);

        stg_write_text(&w, "cap=");
        stg_write_duration(&w, b->cap);
        stg_write_text(&w, " is below base=");
        stg_write_duration(&w, b->base);
        return STG_INVALID;
    }
    return check_list(b, err);
}

stg_ns stg_backoff_listed(const stg_backoff *b, uint32_t n)
{
    uint32_t last = b->list_count > STG_LIST_MAX ? STG_LIST_MAX : b->list_count;

    if (last == 0)
        return 0;
    return b->list[n < last ? n - 1 : last - 1];
}

/* m (1 - p + 2 p u): the spread is d = m p to either side of m. */
stg_ns stg_backoff_spread(const stg_backoff *b, stg_ns window, stg_rng *rng)
{
    uint64_t percent = b->percent < 100 ? b->percent : 100;
    bool has_cap = b->growth == STG_LINEAR || b->growth == STG_EXPONENTIAL;
    stg_ns middle = window, d;

    if (has_cap)
        middle = stg_ns_min(window, stg_wide_share(b->cap, 100, 100 + percent));
    d = stg_wide_share(middle, percent, 100);
    return middle - d + stg_rng_upto(rng, 2 * d);
}

stg_ns stg_backoff_window(const stg_backoff *b, uint32_t n)
{
    return stg_backoff_reach(b, n);
}

stg_ns stg_backoff_wait(const stg_backoff *b, uint32_t n, stg_ns *last,
                        stg_rng *rng)
{
    return stg_backoff_draw(b, n, last, rng);
}

stg_ns stg_backoff_wait_after(const stg_backoff *b, uint32_t n, stg_ns floor,
                              stg_rng *rng)
{
    stg_ns window = stg_backoff_window(b, n);

    if (b->jitter == STG_JITTER_NONE)
        return stg_ns_max(window, floor);
    return stg_ns_add(floor, stg_rng_upto(rng, window));
}
