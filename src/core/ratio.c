/* Ten buckets of a second each, of first attempts and of retries. A bucket is
 * one word, second << 28 | count, so that a count never outlives its second. */
#include "core/ratio.h"

#include "core/word.h"

enum { COUNT_BITS = 28, SECONDS = STG_BUDGET_SECONDS };
static const uint64_t count_max = (UINT64_C(1) << COUNT_BITS) - 1;

static bool raise_to(uint64_t seen, uint64_t *next, void *second)
{
    *next = *(uint64_t *)second;
    return seen < *next;
}

/* The second of now, or the newest that any thread has seen. */
static uint64_t second_of(stg_budget *b, stg_ns now)
{
    uint64_t second = now / STG_S;

    return stg_word_change(&b->level, raise_to, &second)
               ? second
               : stg_word_read(&b->level);
}

static bool count_one(uint64_t seen, uint64_t *next, void *second)
{
    uint64_t start = *(uint64_t *)second << COUNT_BITS;

    if (seen < start)
        seen = start;
    *next = seen + 1;
    return (seen & count_max) < count_max;
}

static bool uncount_one(uint64_t seen, uint64_t *next, void *second)
{
    *next = seen - 1;
    return seen >> COUNT_BITS == *(uint64_t *)second && (seen & count_max) > 0;
}

/* The counts of the ten seconds that end with this one. */
static uint64_t sum(const stg_word *buckets, uint64_t second)
{
    uint64_t total = 0;

    for (int i = 0; i < SECONDS; i++) {
        uint64_t word = stg_word_read(&buckets[i]);

        if ((word >> COUNT_BITS) + SECONDS > second)
            total += word & count_max;
    }
    return total;
}

/* What the last ten seconds allow, in thousandths of a retry. */
static uint64_t allowed(const stg_budget *b, uint64_t second)
{
    return sum(b->attempts, second) * b->options.ratio +
           (uint64_t)b->options.rate * SECONDS;
}

void stg_ratio_attempt(stg_budget *b, stg_ns now)
{
    uint64_t second = second_of(b, now);

    stg_word_change(&b->attempts[second % SECONDS], count_one, &second);
}

bool stg_ratio_take(stg_budget *b, stg_ns now)
{
    uint64_t second = second_of(b, now);
    stg_word *bucket = &b->retries[second % SECONDS];

    // Count first, weigh then: of two threads at the last place, at least one
    // sees the other.
    if (!stg_word_change(bucket, count_one, &second))
        return false;
    if (1000 * sum(b->retries, second) <= allowed(b, second))
        return true;
    stg_word_change(bucket, uncount_one, &second);
    return false;
}

static void uncount(stg_word *buckets, stg_ns at)
{
    uint64_t second = at / STG_S;

    stg_word_change(&buckets[second % SECONDS], uncount_one, &second);
}

void stg_ratio_withdraw(stg_budget *b, stg_ns started_at)
{
    uncount(b->attempts, started_at);
}

void stg_ratio_give_back(stg_budget *b, stg_ns paid_at)
{
    uncount(b->retries, paid_at);
}

uint64_t stg_ratio_left(const stg_budget *b, stg_ns now)
{
    uint64_t second = stg_ns_max(now / STG_S, stg_word_read(&b->level));

    return stg_ns_sub(allowed(b, second), 1000 * sum(b->retries, second));
}
