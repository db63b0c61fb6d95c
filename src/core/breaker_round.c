#include "core/breaker_round.h"

/* The count of slow probes takes its bits from the time, whose unit grows by as
 * many, so that every instant fits. */
enum { COUNT_BITS = 5, COUNT_MAX = STG_PROBES_MAX, UNIT_BITS = 23 };

static unsigned slow_bits(const stg_breaker_options *o)
{
    return o->slow_percent == 0 ? 0 : COUNT_BITS;
}

static unsigned unit_bits(const stg_breaker_options *o)
{
    return UNIT_BITS + slow_bits(o);
}

bool stg_breaker_round_is_alike(const stg_breaker_options *o,
                                const stg_breaker_options *other)
{
    if (o->probes == 0 || other->probes == 0)
        return o->probes == other->probes;
    return slow_bits(o) == slow_bits(other);
}

uint64_t stg_breaker_round_pack(const stg_breaker_options *o,
                                stg_breaker_round r)
{
    uint64_t upper = r.until << slow_bits(o) | r.slow;

    return upper << 3 * COUNT_BITS | (uint64_t)r.begun << 2 * COUNT_BITS |
           (uint64_t)r.good << COUNT_BITS | r.bad;
}

stg_breaker_round stg_breaker_round_read(const stg_breaker_options *o,
                                         uint64_t value)
{
    uint64_t upper = value >> 3 * COUNT_BITS;

    return (stg_breaker_round){
        .until = upper >> slow_bits(o),
        .begun = value >> 2 * COUNT_BITS & COUNT_MAX,
        .good = value >> COUNT_BITS & COUNT_MAX,
        .bad = value & COUNT_MAX,
        .slow = (unsigned)upper & ((1U << slow_bits(o)) - 1),
    };
}

stg_ns stg_breaker_round_until(const stg_breaker_options *o,
                               stg_breaker_round r)
{
    return r.until << unit_bits(o);
}

/* The last unit stands for all that is later. */
uint64_t stg_breaker_round_unit(const stg_breaker_options *o, stg_ns at)
{
    return stg_ns_min(((at - 1) >> unit_bits(o)) + 1,
                      UINT64_MAX >> unit_bits(o));
}

void stg_breaker_round_count(stg_breaker_round *r, stg_breaker_ending probe)
{
    r->bad += probe.is_failure;
    r->good += !probe.is_failure;
    r->slow += probe.is_slow;
}

/* By so many. One that is slow is all of one. */
static bool is_slow_share(const stg_breaker_options *o, uint64_t slow)
{
    return slow > 0 && o->slow_percent > 0 &&
           100 * slow >= (uint64_t)o->slow_percent * o->probes;
}

bool stg_breaker_round_is_bad(const stg_breaker_options *o, stg_breaker_round r)
{
    return r.bad + o->probes_good > o->probes || is_slow_share(o, r.slow);
}

bool stg_breaker_round_is_good(const stg_breaker_options *o,
                               stg_breaker_round r)
{
    uint64_t left = stg_ns_sub(o->probes, r.good + r.bad);

    return r.good >= o->probes_good && !is_slow_share(o, r.slow + left);
}
