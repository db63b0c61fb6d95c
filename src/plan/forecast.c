/* Sums of waits in closed form, because a policy may allow billions of retries.
 *
 * Windows grow up to a cap and then all are the same, so a sum is a few listed
 * rows, a growing part and a multiple of the last. A growing part of polynomial
 * growth is itself a polynomial in the number of retries, found by its
 * differences. Means of decorrelated and of Polly's jitter have no closed form:
 * they are means of the library's own waits over fixed draws, and marked as
 * estimates. */
#include "plan/plan.h"

#include "core/backoff_draw.h"
#include "core/rule.h"

enum { DRAWS = 1 << 16, DRAWS_ROOT = 1 << 8, SEED = 1 };

static stg_wait_range add(stg_wait_range a, stg_wait_range b)
{
    return (stg_wait_range){stg_ns_add(a.least, b.least),
                            stg_ns_add(a.mean, b.mean),
                            stg_ns_add(a.most, b.most)};
}

static stg_wait_range times(stg_wait_range a, uint64_t count)
{
    return (stg_wait_range){stg_ns_mul(a.least, count),
                            stg_ns_mul(a.mean, count),
                            stg_ns_mul(a.most, count)};
}

/* The most that wait n of decorrelated jitter can be: min(c, b 3^n), from the
 * floor on. Returns whether cap, floor or the end of time cut one of the draws
 * up to it. */
static bool decorrelated_most(const stg_backoff *b, uint32_t n, stg_ns *most)
{
    stg_ns reached = b->base;
    bool is_cut = false, is_raised = b->floor > b->base;

    for (uint32_t i = 0; i < n && (reached > 0 || is_raised) && !is_cut; i++) {
        stg_ns next = stg_ns_max(b->floor, stg_ns_mul(reached, 3));

        is_cut = next > b->cap || next == STG_NEVER;
        reached = is_cut ? b->cap : next;
    }
    *most = reached;
    return is_cut || is_raised;
}

/* Uncut, the means obey e(n) = (b + 3 e(n-1)) / 2, so e(n) + b grows by 3/2:
 * e(n) = 2 b (3/2)^n - b. */
static stg_wait_range decorrelated(const stg_backoff *b, uint32_t n)
{
    stg_wait_range s = {.least = stg_ns_max(b->base, b->floor)};

    if (!decorrelated_most(b, n, &s.most) && s.most > 0)
        s.mean = (s.most >> (n - 1)) - b->base;
    return s;
}

/* The bounds: after the longest u, and after the shortest. */
static stg_wait_range polly(const stg_backoff *b, uint32_t n)
{
    stg_interval low = stg_backoff_interval(b, b->base, n, STG_POLLY_U_MAX);
    stg_interval high = stg_backoff_interval(b, b->base, n, 0);

    return (stg_wait_range){.least = stg_ns_min(b->cap, low.low),
                            .most = stg_backoff_longest(b, high)};
}

static stg_wait_range span_of(const stg_backoff *b, uint32_t n)
{
    stg_interval i;

    if (b->jitter == STG_JITTER_DECORRELATED)
        return decorrelated(b, n);
    if (b->jitter == STG_JITTER_POLLY)
        return polly(b, n);
    i = stg_backoff_interval(b, b->base, n, 0);
    return (stg_wait_range){i.low, i.low + (i.high - i.low) / 2, i.high};
}

/* The first wait from which on all are the same. What grows never shrinks, and
 * no two middles have the same most, so it is found by halving. */
static uint32_t find_steady(const stg_backoff *b)
{
    uint32_t low = 1, high = UINT32_MAX;
    stg_ns final = span_of(b, UINT32_MAX).most;

    if (b->growth == STG_LIST && b->jitter != STG_JITTER_DECORRELATED)
        return b->list_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (span_of(b, middle).most == final)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static stg_wait_range sum_rows(const stg_backoff *b, uint32_t first,
                               uint32_t last)
{
    stg_wait_range sum = {0};

    for (uint32_t n = first; n <= last; n++)
        sum = add(sum, span_of(b, n));
    return sum;
}

/* Wait n, where each u is the longest there is. */
static stg_ns polly_step(const stg_backoff *b, uint32_t n)
{
    return stg_backoff_longest(
        b, stg_backoff_interval(b, b->base, n, STG_POLLY_U_MAX));
}

/* The first n waits of Polly's jitter, of which wait number `steady` may be as
 * long as any. The most is of the longest u each. A wait that is short because of
 * its u makes the next one longer: two in a row are no shorter than the step of
 * the first, and up to the cap all are no shorter than the steps before the last.
 */
static stg_wait_range sum_polly(const stg_backoff *b, uint64_t n,
                                uint32_t steady)
{
    uint64_t listed = steady + 2U;
    stg_wait_range sum = {0};
    stg_ns before = 0, step = 0; // the least without the last; the last step

    if (n < listed)
        listed = n;
    else
        listed += (n - listed) % 2;
    for (uint32_t i = 1; i <= listed; i++) {
        stg_ns least = stg_ns_max(sum.least, stg_ns_add(before, step));

        if (stg_backoff_interval(b, b->base, i, 0).high <= b->cap)
            least = sum.most;
        before = sum.least;
        sum.least = least;
        step = polly_step(b, i);
        sum.most = stg_ns_add(sum.most, step);
    }
    n -= listed;
    return add(sum, (stg_wait_range){.least = stg_ns_mul(step, n / 2),
                                     .most = stg_ns_mul(step, n)});
}

/* Whether the windows below the cap are a polynomial in n. */
static bool is_polynomial(const stg_backoff *b)
{
    return !stg_backoff_keeps_last(b) &&
           (b->growth == STG_LINEAR || b->growth == STG_POLYNOMIAL);
}

/* C(n, j) from C(n, j - 1), saturating. */
static uint64_t next_binomial(uint64_t c, uint64_t n, uint64_t j)
{
    uint64_t left = n + 1 - j;

    return c == STG_NEVER ? c
                          : stg_ns_add(stg_ns_mul(c / j, left),
                                       stg_ns_mul(c % j, left) / j);
}

/* The sum of f(0) ... f(count - 1), from the first `terms` values of f, a
 * polynomial of lower degree: Newton's series of its differences, none of which
 * is negative. Changes f. */
static uint64_t sum_series(uint64_t f[], uint32_t terms, uint64_t count)
{
    uint64_t choose = 1, total = 0;

    for (uint32_t i = 0; i < terms; i++)
        if (f[i] == STG_NEVER)
            return STG_NEVER;
    for (uint32_t i = 0; i < terms; i++) {
        choose = next_binomial(choose, count, i + 1);
        total = stg_ns_add(total, stg_ns_mul(f[0], choose));
        for (uint32_t j = 0; j + 1 < terms - i; j++)
            f[j] = f[j + 1] - f[j];
    }
    return total;
}

/* Waits first to last of a polynomial, which may be billions, below the cap and
 * on one side of the floor. A wait is a share of o + b k^p in halves, quarters or
 * hundredths, so it is rounded the same way every 200 waits: sums of blocks of
 * them are a polynomial of degree p in the block's number. */
static stg_wait_range sum_blocks(const stg_backoff *b, uint32_t first,
                                 uint32_t last)
{
    enum { BLOCK = 200, TERMS = STG_POWER_MAX + 1 };
    uint32_t terms = b->growth == STG_LINEAR ? 2 : b->power + 1U;
    uint64_t count = (uint64_t)last + 1 - first, blocks = count / BLOCK;
    uint64_t least[TERMS], mean[TERMS], most[TERMS];

    if (blocks <= terms)
        return sum_rows(b, first, last);
    for (uint32_t i = 0; i < terms; i++) {
        uint32_t from = first + i * BLOCK;
        stg_wait_range block = sum_rows(b, from, from + BLOCK - 1);

        least[i] = block.least;
        mean[i] = block.mean;
        most[i] = block.most;
    }
    return add((stg_wait_range){sum_series(least, terms, blocks),
                                sum_series(mean, terms, blocks),
                                sum_series(most, terms, blocks)},
               sum_rows(b, first + (uint32_t)blocks * BLOCK, last));
}

/* How many of the first `count` waits are at the floor: at most by their
 * longest, or by their shortest, draw. */
static uint32_t count_floored(const stg_backoff *b, uint32_t count,
                              bool is_longest)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        stg_wait_range s = span_of(b, middle);

        if ((is_longest ? s.most : s.least) <= b->floor)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The first `count` waits of a polynomial below the cap: the floor bends it
 * twice. */
static stg_wait_range sum_polynomial(const stg_backoff *b, uint32_t count)
{
    uint32_t whole = count_floored(b, count, true);
    uint32_t part = count_floored(b, count, false);
    stg_wait_range sum = times(span_of(b, 1), whole);

    if (part > whole)
        sum = add(sum, sum_blocks(b, whole + 1, part));
    if (count > part)
        sum = add(sum, sum_blocks(b, part + 1, count));
    return sum;
}

/* The first n waits, when the windows stop growing at `steady`. */
static stg_wait_range sum(const stg_backoff *b, uint64_t n, uint32_t steady)
{
    uint32_t growing = (uint32_t)stg_ns_min(n, steady - 1);
    stg_wait_range total;

    if (b->jitter == STG_JITTER_POLLY)
        return sum_polly(b, n, steady);
    total =
        is_polynomial(b) ? sum_polynomial(b, growing) : sum_rows(b, 1, growing);
    return add(total, times(span_of(b, steady), n - growing));
}

static stg_forecast_wait wait_at(const stg_backoff *b, uint32_t n)
{
    stg_forecast_wait row = {
        .retry = n,
        .wait = span_of(b, n),
        .total = sum(b, n, find_steady(b)),
    };

    row.window =
        stg_backoff_keeps_last(b) ? row.wait.most : stg_backoff_window(b, n);
    return row;
}

/* By the last row that is listed, waits that depend on those before them have
 * long settled: later means are taken to be the same. */
stg_forecast_wait stg_forecast_row(const stg_forecast *f, const stg_policy *p,
                                   uint64_t n)
{
    const stg_forecast_wait *known;
    stg_forecast_wait row;

    if (n <= f->wait_count)
        return f->waits[n - 1];
    row = wait_at(&p->backoff, (uint32_t)stg_ns_min(n, UINT32_MAX));
    row.is_past_deadline =
        p->deadline != STG_NEVER && row.total.least >= p->deadline;
    if (!stg_backoff_keeps_last(&p->backoff))
        return row;
    known = &f->waits[f->wait_count - 1];
    row.is_mean_estimate = true;
    row.wait.mean = known->wait.mean;
    row.total.mean =
        stg_ns_add(known->total.mean,
                   stg_ns_mul(known->wait.mean, row.retry - known->retry));
    return row;
}

/* The wait before retry n; the listed rows have the means of all jitters. */
static stg_wait_range wait_of(const stg_forecast *f, const stg_policy *p,
                              uint64_t n)
{
    if (n <= f->wait_count)
        return f->waits[n - 1].wait;
    return span_of(&p->backoff, (uint32_t)n);
}

static stg_ns part_of(stg_wait_range s, bool is_mean)
{
    return is_mean ? s.mean : s.least;
}

/* Of the first `most` retries of a polynomial below the cap, which may be
 * billions. */
static uint64_t count_polynomial(const stg_policy *p, uint64_t most,
                                 bool is_mean)
{
    uint64_t low = 0, high = most;

    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        stg_wait_range total = sum_polynomial(&p->backoff, (uint32_t)middle);

        if (part_of(total, is_mean) < p->deadline)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The same of Polly's jitter, by its least waits. */
static uint64_t count_polly(const stg_policy *p, uint64_t most)
{
    const stg_backoff *b = &p->backoff;
    uint32_t steady = find_steady(b);
    uint64_t low = 0, high = most;

    if (sum_polly(b, most, steady).least < p->deadline)
        return most;
    while (high - low > 1) { // low begins in time, and high does not
        uint64_t middle = low + (high - low) / 2;

        if (sum_polly(b, middle, steady).least < p->deadline)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* How many of the retries begin before the deadline: one by one as long as
 * they differ, and the others at once. */
static uint64_t count_in_time(const stg_forecast *f, const stg_policy *p,
                              bool is_mean)
{
    const stg_backoff *b = &p->backoff;
    uint64_t settled =
        stg_backoff_keeps_last(b) ? f->wait_count : find_steady(b);
    uint64_t most = f->retries_max, n = 0;
    stg_ns total = 0, next;

    if (most == 0 || p->deadline == STG_NEVER)
        return most;
    if (b->jitter == STG_JITTER_POLLY && !is_mean)
        return count_polly(p, most);
    if (is_polynomial(b)) {
        n = count_polynomial(p, stg_ns_min(most, settled - 1), is_mean);
        total = part_of(sum_polynomial(b, (uint32_t)n), is_mean);
    }
    for (; n < most && n + 1 < settled; n++) {
        next = part_of(wait_of(f, p, n + 1), is_mean);
        if (stg_ns_add(total, next) >= p->deadline)
            return n;
        total += next;
    }
    next = part_of(wait_of(f, p, settled), is_mean);
    if (next == 0)
        return most;
    return stg_ns_min(most, n + (p->deadline - total - 1) / next);
}

/* Means that have no closed form: those of the library's own waits, over fixed
 * draws. High and low halves are summed apart, for the sum may pass 2^64. */
static void estimate_means(stg_forecast *f, const stg_backoff *b)
{
    stg_rng rng = stg_rng_seed(SEED);
    uint64_t high[STG_FORECAST_ROWS] = {0}, low[STG_FORECAST_ROWS] = {0};

    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        stg_ns last = b->base;

        for (uint32_t i = 0; i < f->wait_count; i++) {
            stg_ns wait = stg_backoff_wait(b, i + 1, &last, &rng);

            high[i] += wait / DRAWS;
            low[i] += wait % DRAWS;
        }
    }
    for (uint32_t i = 0; i < f->wait_count; i++) {
        stg_ns most;

        if (!decorrelated_most(b, i + 1, &most))
            continue;
        f->waits[i].wait.mean = high[i] + low[i] / DRAWS;
        f->waits[i].is_mean_estimate = true;
    }
}

/* Of wait n of Polly's jitter, over DRAWS pairs of u and v: as many of each,
 * evenly apart. */
static stg_ns polly_mean(const stg_backoff *b, uint32_t n)
{
    const uint64_t apart = (STG_POLLY_U_MAX + 1) / DRAWS_ROOT;
    stg_ns after[DRAWS_ROOT];
    uint64_t high = 0, low = 0;

    for (uint64_t i = 0; i < DRAWS_ROOT; i++)
        after[i] =
            n == 1 ? 0 : stg_polly_sum(b->base, n - 2, i * apart + apart / 2);
    for (uint64_t i = 0; i < DRAWS_ROOT; i++) {
        stg_ns sum = stg_polly_sum(b->base, n - 1, i * apart + apart / 2);

        for (uint64_t j = 0; j < DRAWS_ROOT; j++) {
            stg_ns wait = sum == STG_NEVER ? sum : stg_ns_sub(sum, after[j]);

            wait = stg_ns_min(b->cap, wait);
            high += wait / DRAWS;
            low += wait % DRAWS;
        }
    }
    return high + low / DRAWS;
}

/* A base of 0 makes all waits 0, which is exact. */
static void fill_polly(stg_forecast *f, const stg_backoff *b)
{
    for (uint32_t i = 0; i < f->wait_count; i++) {
        f->waits[i].wait.mean = polly_mean(b, i + 1);
        f->waits[i].is_mean_estimate = b->base > 0;
    }
}

static void fill_waits(stg_forecast *f, const stg_policy *p)
{
    const stg_backoff *b = &p->backoff;
    uint64_t most = f->retries_max;
    stg_wait_range total = {0};
    stg_ns unused;

    if (most == STG_UNLIMITED)
        most = (uint64_t)find_steady(b) + 2;
    f->wait_count = (uint32_t)stg_ns_min(most, STG_FORECAST_ROWS);
    f->is_truncated = f->retries_max > f->wait_count;
    for (uint32_t i = 0; i < f->wait_count; i++)
        f->waits[i] = wait_at(b, i + 1);
    if (b->jitter == STG_JITTER_DECORRELATED &&
        decorrelated_most(b, f->wait_count, &unused))
        estimate_means(f, b);
    if (b->jitter == STG_JITTER_POLLY)
        fill_polly(f, b);
    for (uint32_t i = 0; i < f->wait_count; i++) {
        total = add(total, f->waits[i].wait);
        if (b->jitter == STG_JITTER_POLLY) // its waits depend on each other
            total = (stg_wait_range){f->waits[i].total.least, total.mean,
                                     f->waits[i].total.most};
        f->waits[i].total = total;
        f->waits[i].is_past_deadline =
            p->deadline != STG_NEVER && total.least >= p->deadline;
    }
}

/* An attempt can run so long that all starts anew when it fails. */
static bool can_reset(const stg_policy *p)
{
    return p->reset_after != STG_NEVER &&
           p->reset_after <= stg_ns_min(p->attempt_timeout, p->deadline);
}

/* The longest that one attempt with its hedges can take: each hedge begins a
 * delay later. A percentile has no number here, so the timeout stands for
 * it. */
stg_ns stg_forecast_round(const stg_policy *p)
{
    const stg_hedge_options *o = &p->hedge;
    stg_ns delay = o->percentile != 0
                       ? p->attempt_timeout
                       : stg_ns_min(o->delay, p->attempt_timeout);

    return stg_ns_add(p->attempt_timeout, stg_ns_mul(delay, o->max));
}

/* Nothing bounds the wait for an empty budget, or for a place of the rate, but
 * the deadline, nor anything an attempt that hangs. */
static stg_ns find_time(const stg_forecast *f, const stg_policy *p)
{
    bool waits_for_others =
        p->rate != 0 || p->throttle.kind == STG_THROTTLE_AWS ||
        (p->budget_waits && p->budget.kind != STG_BUDGET_NONE);
    stg_ns attempts = STG_NEVER;

    if (can_reset(p))
        return STG_NEVER;
    if (!waits_for_others && f->attempts_max != STG_UNLIMITED)
        attempts =
            stg_ns_mul(stg_ns_add(stg_forecast_round(p), p->bulkhead.wait),
                       f->attempts_max);
    if (attempts != STG_NEVER && f->attempts_max > 1)
        attempts = stg_ns_add(attempts, sum(&p->backoff, f->attempts_max - 1,
                                            find_steady(&p->backoff))
                                            .most);
    return stg_ns_min(attempts, p->deadline);
}

static void fill_load(stg_forecast *f, const stg_policy *p, uint64_t rules_max)
{
    uint64_t retries = stg_ns_min(f->retries_in_time, rules_max);

    f->attempts_max = stg_ns_add(retries, 1);
    f->requests_max = stg_ns_mul(f->attempts_max, 1 + (uint64_t)p->hedge.max);
    f->sustained = stg_ns_mul(f->requests_max, 1000);
    f->per_second = STG_UNLIMITED;
    if (p->budget.kind == STG_BUDGET_TOKENS)
        f->per_second = p->budget.rate;
    if (p->budget.kind == STG_BUDGET_RATIO) {
        f->sustained = stg_ns_min(f->sustained, 1000 + p->budget.ratio);
        // A share of the first attempts is a rate only if it is none of them.
        if (p->budget.ratio == 0)
            f->per_second = p->budget.rate;
    }
    if (p->rate != 0)
        f->per_second = stg_ns_min(f->per_second, p->rate);
}

/* With one base for all faults. */
static void make(stg_forecast *f, const stg_policy *p, uint64_t rules_max)
{
    *f = (stg_forecast){
        .retries_max = p->attempts_max == STG_UNLIMITED ? STG_UNLIMITED
                                                        : p->attempts_max - 1,
    };
    fill_waits(f, p);
    if (f->retries_max != 0 && f->retries_max != STG_UNLIMITED)
        f->last = stg_forecast_row(f, p, f->retries_max);
    f->wait_total_most =
        f->retries_max == STG_UNLIMITED ? STG_NEVER : f->last.total.most;
    f->retries_in_time = count_in_time(f, p, false);
    f->retries_usual = count_in_time(f, p, true);
    fill_load(f, p, rules_max);
    f->time_total_most = find_time(f, p);
}

/* The bounds of an operation all of whose faults have this base. A wait grows
 * with its base, so no mixture of bases goes beyond those of one. */
static void widen(stg_forecast *f, const stg_policy *p, stg_ns base,
                  uint64_t rules_max)
{
    stg_policy other = *p;
    stg_forecast g;

    other.backoff.base = base;
    make(&g, &other, rules_max);
    f->wait_total_most = stg_ns_max(f->wait_total_most, g.wait_total_most);
    f->retries_in_time = stg_ns_max(f->retries_in_time, g.retries_in_time);
    f->attempts_max = stg_ns_max(f->attempts_max, g.attempts_max);
    f->requests_max = stg_ns_max(f->requests_max, g.requests_max);
    f->sustained = stg_ns_max(f->sustained, g.sustained);
    f->time_total_most = stg_ns_max(f->time_total_most, g.time_total_most);
}

/* The listed waits are those of the usual base; only the bounds take the others
 * in. */
void stg_forecast_make(stg_forecast *f, const stg_policy *p, uint64_t rules_max)
{
    make(f, p, rules_max);
    for (unsigned i = 0; i < STG_BASES; i++)
        if (p->base_for[i] != 0)
            widen(f, p, p->base_for[i], rules_max);
}
