/* The number of attempts that a lane may have under way, found by rounds:
 * limit.h has the algorithm and its sources.
 *
 * Integers only. Shares are 16-bit fractions (WHOLE is 1), times are in units
 * of 2^UNIT_BITS ns, about a microsecond. */
#include "flow/limit.h"

#include <stagger/fault.h>

enum {
    UNIT_BITS = 10,
    WHOLE = 1 << 16, /* of a share */
    USUAL_MIN = WHOLE / 32,
    USUAL_MAX = WHOLE / 2,
    ROUND_MIN = 64,
    FIRST_VALUE = 16, /* until it is known what is usual */
    FIRST_ROUND = 32,
    FORGET_ROUNDS = 128,
    TRIAL_ROUNDS = 256,
};

static const uint64_t late_min = (5 * STG_MS) >> UNIT_BITS;
static const stg_ns late_for = 100 * STG_MS;

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t within(uint64_t x, uint64_t from, uint64_t to)
{
    return larger(from, smaller(x, to));
}

static uint32_t share_of(uint64_t part, uint64_t all)
{
    return all == 0 ? 0 : (uint32_t)(part * WHOLE / all);
}

static uint32_t usual_share(uint64_t share)
{
    return (uint32_t)within(share, USUAL_MIN, USUAL_MAX);
}

/* The connection was not made, and not for want of time. */
static bool is_unreached(const stg_outcome *o)
{
    return stg_fault_about(o->fault)->category == STG_CATEGORY_CONNECT &&
           o->fault != STG_FAULT_CONNECT_TIMEOUT &&
           o->fault != STG_FAULT_TLS_TIMEOUT;
}

/* The faults that ask for fewer attempts at once. A connection that is refused
 * does not: where nobody listens there is no load, and behind a balancer that
 * is one backend of several. (A queue of connections that is full drops them,
 * which ends in a timeout.) The breaker sees to a target that is away, if it
 * counts connects. */
stg_load stg_load_of(const stg_outcome *o, bool counts_connects)
{
    stg_category category = stg_fault_about(o->fault)->category;

    if (o->fault == STG_FAULT_NONE)
        return STG_LOAD_SERVED;
    if (is_unreached(o) && counts_connects)
        return STG_LOAD_OTHER;
    if (category == STG_CATEGORY_CONNECT || o->fault == STG_FAULT_TIMEOUT ||
        o->code == 429 || o->code == 503)
        return STG_LOAD_TOO_MUCH;
    return STG_LOAD_OTHER;
}

void stg_limit_start(stg_limit *l, uint32_t max, stg_ns now)
{
    *l = (stg_limit){
        .value = 1,
        .max = max,
        .threshold = max,
        .set_at = now,
        .usual_faults = 2 * USUAL_MIN,
        .quiet = 1,
    };
}

/* -- a round --------------------------------------------------------------- */

static bool is_usual_known(const stg_limit *l)
{
    return l->usual_time > 0 && l->usual_late > 0;
}

static uint32_t round_size(const stg_limit *l)
{
    if (!is_usual_known(l))
        return FIRST_ROUND;
    return l->value > ROUND_MIN ? l->value : ROUND_MIN;
}

static void begin_round(stg_limit *l)
{
    l->ended = l->served = l->faults = l->late = 0;
    l->served_time = l->fault_time = 0;
}

static uint32_t fault_share(const stg_limit *l)
{
    return share_of(l->faults, l->ended);
}

static uint64_t mean_time(const stg_limit *l)
{
    return l->served == 0 ? 0 : larger(l->served_time / l->served, 1);
}

static bool is_late(const stg_limit *l, uint64_t took)
{
    return l->usual_time > 0 &&
           took > l->usual_time + larger(l->usual_time / 8, late_min);
}

static void count(stg_limit *l, stg_load load, uint64_t took)
{
    l->ended++;
    if (load == STG_LOAD_SERVED) {
        l->served++;
        l->served_time += took;
        l->late += is_late(l, took);
    } else if (load == STG_LOAD_TOO_MUCH) {
        l->faults++;
        l->fault_time += took;
    }
}

/* Whether `found` of `all` are more than chance explains, where `usual` is the
 * share: more than expected, one more, and three times the root of what is
 * expected, which the standard deviation does not exceed. */
static bool is_above(uint64_t found, uint64_t all, uint32_t usual)
{
    uint64_t expected = all * usual, more = found * WHOLE;

    if (more <= expected + WHOLE)
        return false;
    more -= expected + WHOLE;
    return more * more > 9 * expected * WHOLE;
}

/* A round that is bad already need not be waited for. */
static bool has_faults(const stg_limit *l)
{
    return is_above(l->faults, larger(l->ended, round_size(l)),
                    l->usual_faults);
}

static bool has_late(const stg_limit *l)
{
    return l->usual_late > 0 &&
           is_above(l->late, larger(l->served, round_size(l)), l->usual_late);
}

/* -- what is usual --------------------------------------------------------- */

/* The mean of the first eight rounds; then an eighth of the difference. */
static uint64_t approach(const stg_limit *l, uint64_t from, uint64_t to)
{
    uint64_t rounds = within(l->learned, 1, 8);

    return to > from ? from + (to - from) / rounds
                     : from - (from - to) / rounds;
}

/* Load shows gradually. What rises as the limit grows again after a fall must
 * not become usual, or each ceiling would be higher than the last one. */
static uint64_t follow(const stg_limit *l, uint64_t from, uint64_t to)
{
    bool has_grown = l->value > l->threshold + l->threshold / 16;

    return to > from && has_grown && l->quiet < FORGET_ROUNDS
               ? from
               : approach(l, from, to);
}

static void learn_time(stg_limit *l)
{
    uint64_t time = mean_time(l), late = share_of(l->late, l->served);

    if (l->usual_time == 0) {
        l->usual_time = time;
        return;
    }
    l->usual_late =
        usual_share(l->usual_late == 0 ? late : follow(l, l->usual_late, late));
    l->usual_time = follow(l, l->usual_time, time);
}

static void learn(stg_limit *l)
{
    l->learned++;
    l->usual_faults = usual_share(follow(l, l->usual_faults, fault_share(l)));
    if (l->served > 0)
        learn_time(l);
}

/* -- down, and back -------------------------------------------------------- */

/* Attempts in flight now tell of the old value, until they have ended. */
static void set(stg_limit *l, uint64_t value, stg_ns now)
{
    uint64_t wait = 2 * larger(mean_time(l), l->usual_time);

    l->value = l->threshold = (uint32_t)within(value, 1, l->max);
    l->credit = 0;
    l->set_at = stg_ns_add(now, 1);
    l->counted_at = stg_ns_add(now, wait << UNIT_BITS);
}

static void note_old(stg_limit *l)
{
    l->old_value = l->value;
    l->old_faults = fault_share(l);
    l->old_time = mean_time(l);
}

/* Whether a lower limit brought half at least of what it would bring if the
 * limit were the cause: then as many are served by fewer slots, without the
 * others' faults. Chance does not explain more than a half. */
static bool has_fewer_faults(const stg_limit *l)
{
    uint64_t faults = fault_share(l), served;

    if (faults > USUAL_MAX)
        return l->value > 1;
    served = (uint64_t)(WHOLE - l->old_faults) * l->old_value / l->value;
    return 2 * faults < l->old_faults + (WHOLE - smaller(served, WHOLE));
}

/* Likewise: then they are served sooner. */
static bool is_sooner(const stg_limit *l)
{
    return mean_time(l) * 2 * l->old_value <=
           l->old_time * (l->old_value + l->value);
}

/* The result of the round is usual: the limit is not the cause of it. */
static void accept(stg_limit *l, bool is_by_faults)
{
    if (is_by_faults) {
        l->usual_faults = usual_share(fault_share(l));
    } else {
        l->usual_time = mean_time(l);
        l->usual_late = 0;
        l->late_at = 0;
    }
}

/* The share of the slots' time that was of use. */
static uint32_t find_use(const stg_limit *l, bool is_by_faults)
{
    if (is_by_faults)
        return share_of(l->served_time, l->served_time + l->fault_time);
    return share_of(l->usual_time, larger(mean_time(l), l->usual_time));
}

static void lower(stg_limit *l, bool is_by_faults, stg_ns now)
{
    uint64_t use = within(find_use(l, is_by_faults), WHOLE / 2, WHOLE / 5 * 4);

    l->quiet = 0;
    set(l, l->value * use / WHOLE, now);
    if (l->late_at != 0)
        l->late_at = now;
}

/* After a bad round. Nothing is compared with one that was cut short, nor with
 * one in slow start, which tells of fewer attempts than the limit is by now. */
static void fall(stg_limit *l, bool is_by_faults, stg_ns now)
{
    bool is_whole = l->ended >= round_size(l);
    bool is_far = 3 * l->value <= 2 * l->old_value || l->value == 1;
    bool has_helped =
        l->old_value > 0 && (is_by_faults ? has_fewer_faults(l) : is_sooner(l));

    if (is_whole && is_far && !has_helped) {
        accept(l, is_by_faults);
        set(l, larger(l->value, l->old_value), now);
        l->old_value = 0;
        l->quiet = 1;
        return;
    }
    if (is_whole && (is_far || l->old_value == 0) && l->value >= l->threshold)
        note_old(l);
    lower(l, is_by_faults, now);
}

/* -- a trial of less ------------------------------------------------------- */

static void begin_trial(stg_limit *l, stg_ns now)
{
    note_old(l);
    l->is_trial = true;
    set(l, (uint64_t)l->value * 2 / 3, now);
}

static void end_trial(stg_limit *l, stg_ns now)
{
    bool has_fewer = has_fewer_faults(l), has_sooner = is_sooner(l);

    if (has_fewer)
        l->usual_faults = usual_share(fault_share(l));
    if (has_sooner)
        l->usual_time = larger(mean_time(l), 1);
    if (has_fewer || has_sooner) {
        l->quiet = 0;
    } else {
        set(l, l->old_value, now);
    }
    l->is_trial = false;
    l->old_value = 0;
}

/* -- the end of a round, and of an attempt --------------------------------- */

static void pass(stg_limit *l, stg_ns now)
{
    l->old_value = 0;
    l->quiet++;
    learn(l);
    if (l->quiet % TRIAL_ROUNDS == 0 && l->value >= l->threshold &&
        l->value > 2)
        begin_trial(l, now);
}

/* A trial is judged first; then faults, which fall at once; late answers only when
 * they have gone on for a while, since one slow round says little. */
static void end_round(stg_limit *l, stg_ns now)
{
    bool is_long_late =
        l->late_at != 0 && stg_ns_sub(now, l->late_at) >= late_for;

    if (!has_late(l))
        l->late_at = 0;
    else if (l->late_at == 0)
        l->late_at = larger(now, 1);
    if (l->is_trial)
        end_trial(l, now);
    else if (has_faults(l))
        fall(l, true, now);
    else if (l->late_at == 0)
        pass(l, now);
    else if (is_long_late)
        fall(l, false, now);
    begin_round(l);
}

static void grow(stg_limit *l)
{
    uint64_t credits = 2 * smaller(l->value, ROUND_MIN);

    if (l->value >= l->max || l->quiet == 0 || l->late_at != 0 || l->is_trial)
        return;
    if (l->value >= FIRST_VALUE && !is_usual_known(l))
        return;
    if (l->value >= l->threshold && ++l->credit < credits)
        return;
    l->credit = 0;
    l->value++;
}

void stg_limit_end(stg_limit *l, stg_load load, bool is_used, stg_ns attempt_at,
                   stg_ns now)
{
    stg_ns took = stg_ns_sub(now, attempt_at) >> UNIT_BITS;
    bool is_bad;

    if (now < l->counted_at ||
        (load != STG_LOAD_SERVED && attempt_at < l->set_at))
        return;
    count(l, load, smaller(took, UINT32_MAX));
    if (load == STG_LOAD_SERVED && is_used)
        grow(l);
    is_bad =
        load == STG_LOAD_SERVED ? l->late > 0 && has_late(l) : has_faults(l);
    // After a fall whole rounds are compared.
    if (l->ended >= round_size(l) || (is_bad && l->quiet > 0))
        end_round(l, now);
}
