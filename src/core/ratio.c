/* Ten slices of a second each, of first attempts and of retries. */
#include "core/ratio.h"

#include "core/slices.h"

enum { SECONDS = STG_BUDGET_SECONDS };

static uint64_t second_of(stg_budget *b, stg_ns now)
{
    return stg_slices_now(&b->level, now / STG_S);
}

static uint64_t sum(const stg_word *slices, uint64_t second)
{
    return stg_slices_sum(slices, SECONDS, second);
}

/* What the last ten seconds allow, in thousandths of a retry. */
static uint64_t allowed(const stg_budget *b, uint64_t second)
{
    return sum(b->attempts, second) * b->options.ratio +
           (uint64_t)b->options.rate * SECONDS;
}

void stg_ratio_attempt(stg_budget *b, stg_ns now)
{
    stg_slices_count(b->attempts, SECONDS, second_of(b, now));
}

bool stg_ratio_take(stg_budget *b, stg_ns now)
{
    uint64_t second = second_of(b, now);

    // Count first, weigh then: of two threads at the last place, at least one
    // sees the other.
    if (!stg_slices_count(b->retries, SECONDS, second))
        return false;
    if (1000 * sum(b->retries, second) <= allowed(b, second))
        return true;
    stg_slices_uncount(b->retries, SECONDS, second);
    return false;
}

void stg_ratio_withdraw(stg_budget *b, stg_ns started_at)
{
    stg_slices_uncount(b->attempts, SECONDS, started_at / STG_S);
}

void stg_ratio_give_back(stg_budget *b, stg_ns paid_at)
{
    stg_slices_uncount(b->retries, SECONDS, paid_at / STG_S);
}

uint64_t stg_ratio_left(const stg_budget *b, stg_ns now)
{
    uint64_t second = stg_ns_max(now / STG_S, stg_word_read(&b->level));

    return stg_ns_sub(allowed(b, second), 1000 * sum(b->retries, second));
}
