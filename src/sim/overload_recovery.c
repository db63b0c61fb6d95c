/* Whether goodput came back when the trigger had ended, and when.
 *
 * Before is the mean from the warm-up to the trigger. Goodput is back when,
 * from then on until the end, each interval of a second or more holds nine
 * tenths of that, less four standard errors of a count that size: what chance
 * takes. The interval is long enough for 400 operations, so that this is not
 * much. Where the load changes of itself, goodput is back when so much of what
 * began succeeds as did before. */
#include "sim/overload_internal.h"

typedef struct interval {
    uint32_t bins;
    double expected; /* successes in it, but for chance */
} interval;

/* What a bin would have if all were well. */
typedef struct wellness {
    double per_bin; /* successes before the trigger */
    double share;   /* of a load that changes: of what began; else 0 */
} wellness;

static double expected_in(const wellness *w, const stg_overload_bin *bin)
{
    return w->share > 0 ? w->share * bin->begun : w->per_bin;
}

/* The mean of successes in a bin before the trigger. A warm-up that ends after
 * the trigger began is not left out: there would be nothing to count. */
static wellness count_before(const stg_overload_options *o,
                             const stg_overload_bin *bins, stg_recovery *r)
{
    wellness w = {0};
    uint64_t begun = 0, lost = 0, succeeded = 0, counted = 0;
    uint32_t until = (uint32_t)(o->trigger.from_at / o->bin);
    uint32_t from = (uint32_t)((o->warmup + o->bin - 1) / o->bin);

    if (from >= until)
        from = 0;
    for (uint32_t i = from; i < until; i++, counted++) {
        begun += bins[i].begun;
        succeeded += bins[i].succeeded;
        lost += bins[i].given_up; // not what the trigger was to make of them
    }
    r->was_healthy = begun > 0 && lost * 10 <= begun;
    if (counted > 0)
        w.per_bin = (double)succeeded / (double)counted;
    if (stg_load_changes(&o->load) && begun > 0)
        w.share = (double)succeeded / (double)begun;
    return w;
}

/* Fewer than expected, by more than four standard errors. */
static bool is_bad(const interval *s, uint64_t succeeded)
{
    double missing = s->expected - (double)succeeded;

    return missing > 0 && missing * missing > 16 * s->expected;
}

/* A second at least, then wider until 400 successes are expected in it, but no
 * more than half of the bins that are left. */
static interval find_interval(const stg_overload_options *o, double per_bin,
                              uint32_t bins_left)
{
    interval s = {.bins = (uint32_t)((STG_S + o->bin - 1) / o->bin)};

    while (s.bins * per_bin < 400 && s.bins < bins_left / 2)
        s.bins++;
    if (s.bins > bins_left)
        s.bins = bins_left;
    s.expected = s.bins * per_bin * 0.9;
    return s;
}

/* The bin after the last interval that was bad; `from` if none was, `count` if
 * the last one is. */
static uint32_t find_good(const stg_overload_bin *bins, uint32_t from,
                          uint32_t count, interval *s, const wellness *w)
{
    uint32_t good = from;
    uint64_t sum = 0, begun = 0;

    for (uint32_t i = from; i < count; i++) {
        sum += bins[i].succeeded;
        begun += bins[i].begun;
        if (i >= from + s->bins) {
            sum -= bins[i - s->bins].succeeded;
            begun -= bins[i - s->bins].begun;
        }
        if (w->share > 0)
            s->expected = 0.9 * w->share * (double)begun;
        if (i + 1 >= from + s->bins && is_bad(s, sum))
            good = i + 1 == count ? count : i + 2 - s->bins;
    }
    // The interval is good as a whole; the bins at its front may not be.
    while (good > from && good < count &&
           2.0 * bins[good].succeeded < expected_in(w, &bins[good]))
        good++;
    return good;
}

stg_recovery stg_overload_recover(const stg_overload_options *o,
                                  const stg_overload_bin *bins,
                                  uint32_t bin_count)
{
    stg_recovery r = {.is_recovered = true};
    uint32_t from = (uint32_t)((o->trigger.until_at + o->bin - 1) / o->bin);
    wellness w;
    interval s;

    if (o->trigger.kind == STG_TRIGGER_NONE)
        return r;
    w = count_before(o, bins, &r);
    r.before = w.per_bin * 1e9 / (double)o->bin;
    if (w.per_bin <= 0 || from >= bin_count) {
        r.is_recovered = false;
        return r;
    }
    s = find_interval(o, w.per_bin, bin_count - from);
    from = find_good(bins, from, bin_count, &s, &w);
    r.is_recovered = from < bin_count;
    if (r.is_recovered)
        r.after = stg_ns_sub(from * o->bin, o->trigger.until_at);
    return r;
}
