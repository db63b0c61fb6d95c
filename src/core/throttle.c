/* A client that holds itself back: Google's by chance, Amazon's by a rate.
 * Neither takes a lock.
 *
 * sre: a request is dropped with the chance (requests - k accepts) / (requests
 * + 1), over the last slices of 10 s. aws: answers are counted by half
 * seconds; throttling cuts the rate to 0.7 of what it was, other answers let
 * it grow by a cubic curve, to twice the measured rate at most. throttle.h has
 * the sources. */
#include <stagger/throttle.h>

#include <stagger/breaker.h>
#include <stagger/budget.h>

#include "core/word.h"
#include "core/writer.h"

stg_status stg_throttle_check(const stg_throttle_options *o, stg_error *err)
{
    if (o == NULL)
        return stg_refuse(err, "throttle options are NULL");
    if ((unsigned)o->kind > STG_THROTTLE_AWS)
        return stg_refuse_number(err, "throttle", (unsigned)o->kind,
                                 "one of stg_throttle_kind");
    if (o->kind != STG_THROTTLE_SRE && o->k != 0)
        return stg_refuse_thousandths(err, "throttle k", o->k,
                                      "0 for this kind");
    if (o->kind == STG_THROTTLE_SRE && (o->k < 1000 || o->k > 100000))
        return stg_refuse_thousandths(err, "throttle k", o->k, "1 to 100");
    return STG_OK;
}

stg_status stg_throttle_init(stg_throttle *t, const stg_throttle_options *o)
{
    if (t == NULL || stg_throttle_check(o, NULL) != STG_OK)
        return STG_INVALID;
    *t = (stg_throttle){.options = *o};
    return STG_OK;
}

/* -- sre ------------------------------------------------------------------- */

static uint64_t slice_of(stg_ns now)
{
    return now / (10 * STG_S);
}

/* By how much the requests are too many, of *requests. */
static uint64_t find_excess(const stg_throttle *t, uint64_t slice,
                            uint64_t *requests)
{
    uint64_t accepts = stg_slices_sum(t->accepts, STG_THROTTLE_SLICES, slice);

    *requests = stg_slices_sum(t->requests, STG_THROTTLE_SLICES, slice);
    return stg_ns_sub(*requests, accepts * t->options.k / 1000);
}

static bool enter_by_chance(stg_throttle *t, stg_ns now, stg_rng *rng,
                            stg_ns *due_at)
{
    uint64_t slice = stg_slices_now(&t->newest, slice_of(now));
    uint64_t requests, excess = find_excess(t, slice, &requests);

    stg_slices_count(t->requests, STG_THROTTLE_SLICES, slice);
    *due_at = STG_NEVER;
    return excess == 0 || stg_rng_upto(rng, requests) >= excess;
}

/* -- aws: rates in thousandths a second ------------------------------------ */

enum { HALVES = 2, RATE_BITS = 28, RATE_LEAST = 500 };
static const uint64_t rate_mask = (UINT64_C(1) << RATE_BITS) - 1;

static bool put(uint64_t seen, uint64_t *next, void *value)
{
    *next = *(uint64_t *)value;
    return seen != *next;
}

static void write(stg_word *word, uint64_t value)
{
    stg_word_change(word, put, &value);
}

/* The answers of the half seconds that have ended. */
typedef struct answers {
    uint64_t half, count, halves; /* halves 0: none has ended */
} answers;

/* The answer that comes in a new half second is counted in the one that it
 * ends: a->count is the number of that one. */
static bool count_answer(uint64_t seen, uint64_t *next, void *arg)
{
    answers *a = arg;
    uint64_t half = seen >> RATE_BITS;

    a->count = (seen & rate_mask) + 1;
    a->halves = seen == 0 ? 0 : stg_ns_sub(a->half, half);
    *next = a->halves > 0 ? a->half << RATE_BITS
            : seen == 0   ? a->half << RATE_BITS | 1
                          : seen + 1;
    return a->count <= rate_mask || a->halves > 0;
}

/* An exponential average: 4/5 of it is the newest rate. */
static bool smooth(uint64_t seen, uint64_t *next, void *rate)
{
    *next = (4 * *(uint64_t *)rate + seen) / 5;
    return true;
}

static void measure(stg_throttle *t, stg_ns now)
{
    answers a = {.half = now / (STG_S / HALVES)};
    uint64_t rate;

    if (!stg_word_change(&t->counted, count_answer, &a) || a.halves == 0)
        return;
    rate = a.count * HALVES * 1000 / a.halves;
    stg_word_change(&t->measured, smooth, &rate);
}

/* Rounded down. n is less than 2^62. */
static uint64_t cube_root(uint64_t n)
{
    uint64_t root = 0;

    for (uint64_t bit = UINT64_C(1) << 20; bit != 0; bit >>= 1)
        if ((root + bit) * (root + bit) * (root + bit) <= n)
            root += bit;
    return root;
}

/* The time since the peak, whose 36 bits are enough for two years. Of a thread
 * that lags behind the one that saw it, 0. */
static stg_ns find_since(uint64_t peak, stg_ns now)
{
    const uint64_t units = UINT64_C(1) << 36;
    uint64_t since = ((now >> 20) - (peak >> RATE_BITS)) & (units - 1);

    return since < units / 2 ? since << 20 : 0;
}

/* 0.4 (t - K)^3 + max, with t and K in ms. Half an hour away from K it is out of
 * all bounds. */
static uint64_t find_cubic(uint64_t peak, stg_ns now)
{
    const uint64_t far = 2000000, scale = 2500000;
    uint64_t max = peak & rate_mask;
    uint64_t k = cube_root(750000 * max), t = find_since(peak, now) / STG_MS;
    uint64_t x = stg_ns_min(t > k ? t - k : k - t, far);
    uint64_t away = x * x * x / scale;

    return t > k ? max + away : stg_ns_sub(max, away);
}

static bool is_throttled(const stg_outcome *o)
{
    return stg_budget_charge(o) == STG_CHARGE_THROTTLE;
}

/* Two threads may write the peak and the rate in any order: each value is good
 * by itself, and the next answer corrects it. */
static void adjust(stg_throttle *t, const stg_outcome *o, stg_ns now)
{
    uint64_t rate = stg_word_read(&t->rate), measured, next;

    measure(t, now);
    measured = stg_word_read(&t->measured);
    if (is_throttled(o)) {
        rate = rate == 0 ? measured : stg_ns_min(rate, measured);
        rate = stg_ns_min(rate, rate_mask);
        write(&t->peak, (now >> 20) << RATE_BITS | rate);
        next = rate * 7 / 10;
    } else if (rate == 0) {
        return;
    } else {
        next = find_cubic(stg_word_read(&t->peak), now);
    }
    next = stg_ns_min(next, 2 * measured);
    write(&t->rate, stg_ns_min(stg_ns_max(next, RATE_LEAST), 1000000000));
}

/* *due_at is now, unless it has to wait. The bucket's word is `newest`, which
 * only sre uses otherwise. */
static bool enter_at_rate(stg_throttle *t, stg_ns now, stg_ns *due_at)
{
    uint32_t rate = (uint32_t)stg_word_read(&t->rate);
    uint32_t burst = rate < 1000 ? 1 : rate / 1000;

    return rate == 0 || stg_gcra_reserve(&t->newest, rate, burst, now,
                                         stg_ns_add(now, 1), due_at);
}

/* -- both ------------------------------------------------------------------ */

bool stg_throttle_enter(stg_throttle *t, stg_ns now, stg_rng *rng,
                        stg_ns *due_at)
{
    stg_ns at = now;
    bool may = t == NULL || t->options.kind == STG_THROTTLE_NONE;

    if (!may && t->options.kind == STG_THROTTLE_SRE)
        may = enter_by_chance(t, now, rng, &at);
    else if (!may)
        may = enter_at_rate(t, now, &at);
    if (due_at != NULL)
        *due_at = at;
    return may;
}

/* An answer that says nothing of the remote takes its request back. */
void stg_throttle_report(stg_throttle *t, const stg_outcome *o,
                         stg_ns started_at, stg_ns now)
{
    stg_breaker_verdict verdict = stg_breaker_classify(o);

    if (t == NULL || t->options.kind == STG_THROTTLE_NONE)
        return;
    if (verdict == STG_BREAKER_NEITHER)
        stg_throttle_withdraw(t, started_at);
    else if (t->options.kind == STG_THROTTLE_AWS)
        adjust(t, o, now);
    else if (verdict == STG_BREAKER_SUCCESS && !is_throttled(o))
        stg_slices_count(t->accepts, STG_THROTTLE_SLICES,
                         stg_slices_now(&t->newest, slice_of(now)));
}

void stg_throttle_withdraw(stg_throttle *t, stg_ns started_at)
{
    if (t != NULL && t->options.kind == STG_THROTTLE_SRE)
        stg_slices_uncount(t->requests, STG_THROTTLE_SLICES,
                           slice_of(started_at));
}

bool stg_throttle_is_active(const stg_throttle *t, stg_ns now)
{
    uint64_t requests;

    if (t == NULL || t->options.kind != STG_THROTTLE_SRE)
        return stg_throttle_rate(t) != 0;
    return find_excess(t, stg_ns_max(slice_of(now), stg_word_read(&t->newest)),
                       &requests) > 0;
}

uint32_t stg_throttle_rate(const stg_throttle *t)
{
    return t == NULL ? 0 : (uint32_t)stg_word_read(&t->rate);
}
