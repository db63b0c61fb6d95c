/* The defaults and the check of a backoff. The arithmetic that every wait needs
 * stands in backoff_draw.h, inline; sources of growths and jitters are in
 * stagger/backoff.h and docs/jitter.md. */
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

/* Places behind the end of the list must be 0: policies are compared by all
 * STG_LIST_MAX of them. */
static stg_status check_list(const stg_backoff *b, stg_error *err)
{
    bool is_list = b->growth == STG_LIST;

    if (is_list && (b->list_count < 1 || b->list_count > STG_LIST_MAX))
        return stg_refuse_number(err, "list_count", b->list_count, "1 to 64");
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

static stg_status check_jitter(const stg_backoff *b, stg_error *err)
{
    bool has_percent = b->jitter == STG_JITTER_PERCENT;
    bool has_up = b->jitter == STG_JITTER_UP;
    uint32_t most = b->below > b->above ? b->below : b->above;

    if ((unsigned)b->jitter > STG_JITTER_POLLY)
        return stg_refuse_number(err, "jitter", (unsigned)b->jitter,
                                 "one of stg_jitter");
    if (has_percent && (most < 1 || most > 100))
        return stg_refuse_percent(err, "jitter", most, "1% to 100%");
    if (!has_percent && most != 0)
        return stg_refuse_percent(err, "jitter", most,
                                  "no percentage with another jitter");
    if (has_up && (b->up == 0 || b->up > STG_BACKOFF_MAX))
        return stg_refuse_duration(err, "jitter", b->up,
                                   "up: and more than 0, to 365d");
    if (!has_up && b->up != 0)
        return stg_refuse_duration(err, "jitter", b->up,
                                   "no time with another jitter");
    return STG_OK;
}

/* What has a meaning for Polly's jitter. The formula (backoff_draw.h) fixes
 * the factor at 2. */
static stg_status check_polly(const stg_backoff *b, stg_error *err)
{
    if (b->jitter != STG_JITTER_POLLY)
        return STG_OK;
    if (b->growth != STG_EXPONENTIAL || b->factor != 2000)
        return stg_refuse(err, "jitter=polly is for exponential with factor=2");
    if (b->floor != 0)
        return stg_refuse(err, "floor has no meaning for jitter=polly");
    return STG_OK;
}

/* What only a line or a polynomial has. */
static stg_status check_polynomial(const stg_backoff *b, stg_error *err)
{
    bool is_polynomial = b->growth == STG_POLYNOMIAL;
    bool has_offset = is_polynomial || b->growth == STG_LINEAR;

    if (is_polynomial && (b->power < 2 || b->power > STG_POWER_MAX))
        return stg_refuse_number(err, "power", b->power, "2 to 10");
    if (!is_polynomial && b->power != 0)
        return stg_refuse_number(err, "power", b->power,
                                 "none but for polynomial");
    if (b->counts_from_0 > has_offset)
        return stg_refuse(err, has_offset
                                   ? "count-from is neither 0 nor 1"
                                   : "count-from is for linear and polynomial");
    if (!has_offset && b->offset != 0)
        return stg_refuse_duration(err, "offset", b->offset,
                                   "none but for linear and polynomial");
    if (b->offset > STG_BACKOFF_MAX)
        return stg_refuse_duration(err, "offset", b->offset, "0 to 365d");
    return STG_OK;
}

/* Single fields are checked before pairs of them (cap and base), so a pair is
 * compared only when both are in range. */
stg_status stg_backoff_check(const stg_backoff *b, stg_error *err)
{
    if (b == NULL)
        return stg_refuse(err, "backoff is NULL");
    if ((unsigned)b->growth > STG_POLYNOMIAL)
        return stg_refuse_number(err, "growth", (unsigned)b->growth,
                                 "one of stg_growth");
    if (check_jitter(b, err) != STG_OK)
        return STG_INVALID;
    if (b->factor < 1000 || b->factor > 100000)
        return stg_refuse_thousandths(err, "factor", b->factor, "1 to 100");
    if (b->base > STG_BACKOFF_MAX)
        return stg_refuse_duration(err, "base", b->base, "0 to 365d");
    if (b->cap == 0 || (b->cap > STG_BACKOFF_MAX && b->cap != STG_NEVER))
        return stg_refuse_duration(err, "cap", b->cap,
                                   "more than 0, to 365d, or none");
    if (b->floor > STG_BACKOFF_MAX)
        return stg_refuse_duration(err, "floor", b->floor, "0 to 365d");
    if (b->cap < b->base)
        return stg_refuse_cap(err, b->cap, "base", b->base);
    if (b->cap < b->floor)
        return stg_refuse_cap(err, b->cap, "floor", b->floor);
    if (check_polly(b, err) != STG_OK || check_polynomial(b, err) != STG_OK)
        return STG_INVALID;
    if (b->cap < b->offset)
        return stg_refuse_cap(err, b->cap, "offset", b->offset);
    return check_list(b, err);
}

stg_ns stg_backoff_listed(const stg_backoff *b, uint32_t n)
{
    uint32_t last = b->list_count > STG_LIST_MAX ? STG_LIST_MAX : b->list_count;

    if (last == 0)
        return 0;
    return b->list[(n < last ? n : last) - 1];
}

/* n is the number of the retry, from 1. Each product saturates, so that a
 * large n ends at the cap. Counted from 0, the first retry waits for the
 * offset alone. */
stg_ns stg_backoff_polynomial(const stg_backoff *b, stg_ns base, uint32_t power,
                              uint32_t n)
{
    uint32_t k = b->counts_from_0 ? n - 1 : n;
    stg_ns window = base;

    while (power-- > 0)
        window = stg_ns_mul(window, k);
    return stg_ns_min(b->cap, stg_ns_add(b->offset, window));
}

/* Windows that grow are lowered until their upper end is the cap. Cutting the
 * drawn wait instead would pile up waits at the cap. */
stg_interval stg_backoff_spread(const stg_backoff *b, stg_ns window)
{
    uint64_t below = stg_ns_min(b->below, 100),
             above = stg_ns_min(b->above, 100);
    stg_ns middle = window;

    if (stg_backoff_grows(b))
        middle = stg_ns_min(window, stg_wide_share(b->cap, 100, 100 + above));
    return (stg_interval){
        middle - stg_wide_share(middle, below, 100),
        stg_ns_add(middle, stg_wide_share(middle, above, 100))};
}

/* Windows that grow are lowered until their upper end is the cap; the range
 * keeps its width, as far as the cap has room for it. */
stg_interval stg_backoff_raise(const stg_backoff *b, stg_ns window)
{
    stg_ns low = window, up = b->up;

    if (stg_backoff_grows(b)) {
        up = stg_ns_min(up, b->cap);
        low = stg_ns_min(window, b->cap - up);
    }
    return (stg_interval){low, stg_ns_add(low, up)};
}

stg_ns stg_backoff_window(const stg_backoff *b, uint32_t n)
{
    return b == NULL ? 0 : stg_backoff_reach(b, b->base, n);
}

stg_ns stg_backoff_wait(const stg_backoff *b, uint32_t n, stg_ns *last,
                        stg_rng *rng)
{
    return stg_backoff_wait_after(b, n, last, 0, rng);
}

stg_ns stg_backoff_wait_after(const stg_backoff *b, uint32_t n, stg_ns *last,
                              stg_ns floor, stg_rng *rng)
{
    stg_ns first;

    if (b == NULL)
        return floor;
    first = b->base;
    if (last == NULL)
        // Without a place to keep it, each wait is drawn as if it were the
        // first.
        last = &first;
    return stg_backoff_draw(b, n, stg_backoff_interval(b, b->base, n, *last),
                            last, floor, rng);
}
