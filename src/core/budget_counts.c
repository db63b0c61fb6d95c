/* The two kinds of retry budgets that count: a ratio of the first attempts of
 * the last ten seconds, and a share of the attempts under way.
 *
 * Both live in atomic words. A ratio is counted first and weighed then, and
 * taken back if it was too much: two threads at the last place may both be
 * refused, but never both pass. */
#include "core/counts.h"

#include "core/options.h"
#include "core/word.h"

/* -- a ratio: ten slices of a second each, of first attempts and of retries */

enum { SECONDS = STG_BUDGET_SECONDS };

static uint64_t second_of(stg_budget *b, stg_ns now)
{
    return stg_slices_now(&b->level, now / STG_S);
}

static uint64_t sum_of(const stg_word *slices, uint64_t second)
{
    return stg_slices_sum(slices, SECONDS, second);
}

/* What the last ten seconds allow, in thousandths of a retry. */
static uint64_t allowed_lately(const stg_budget *b, uint64_t second)
{
    return sum_of(b->attempts, second) * b->options.ratio +
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
    if (1000 * sum_of(b->retries, second) <= allowed_lately(b, second))
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

/* now may lag behind what another thread has seen: the newer second counts. */
uint64_t stg_ratio_left(const stg_budget *b, stg_ns now)
{
    uint64_t second = stg_ns_max(now / STG_S, stg_word_read(&b->level));

    return stg_ns_sub(allowed_lately(b, second),
                      1000 * sum_of(b->retries, second));
}

/* -- a share: attempts under way in the upper half of the level, retries in the
 * lower. A retry has its place from the decision to the end of its attempt. */

static const uint64_t one_attempt = UINT64_C(1) << 32, one_retry = 1;

static uint32_t attempts_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint32_t retries_of(uint64_t word)
{
    return (uint32_t)word;
}

/* Retries at once, for so many attempts. */
static uint64_t allowed_at_once(const stg_budget_options *o, uint64_t word)
{
    return stg_ns_max((uint64_t)attempts_of(word) * o->ratio / 1000,
                      o->capacity);
}

/* The upper half saturates, and never carries out of the word. */
static bool add_attempt(uint64_t seen, uint64_t *next, void *arg)
{
    (void)arg;
    *next = seen + one_attempt;
    return attempts_of(seen) != UINT32_MAX;
}

static bool add_retry_if_allowed(uint64_t seen, uint64_t *next, void *options)
{
    *next = seen + one_retry;
    return retries_of(seen) < allowed_at_once(options, seen);
}

static bool add_retry(uint64_t seen, uint64_t *next, void *arg)
{
    (void)arg;
    *next = seen + one_retry;
    return retries_of(seen) != UINT32_MAX;
}

static uint64_t without_retry(uint64_t word)
{
    return retries_of(word) == 0 ? word : word - one_retry;
}

/* Neither half goes below 0: an end too many would make 2^32 attempts of
 * none. */
static bool end_attempt(uint64_t seen, uint64_t *next, void *is_retry)
{
    *next = *(bool *)is_retry ? without_retry(seen) : seen;
    if (attempts_of(seen) != 0)
        *next -= one_attempt;
    return *next != seen;
}

static bool end_retry(uint64_t seen, uint64_t *next, void *arg)
{
    (void)arg;
    *next = without_retry(seen);
    return *next != seen;
}

void stg_share_begin(stg_budget *b)
{
    stg_word_change(&b->level, add_attempt, NULL);
}

void stg_share_end(stg_budget *b, bool is_retry)
{
    stg_word_change(&b->level, end_attempt, &is_retry);
}

bool stg_share_take(stg_budget *b)
{
    return stg_word_change(&b->level, add_retry_if_allowed, &b->options);
}

void stg_share_give_back(stg_budget *b)
{
    stg_word_change(&b->level, end_retry, NULL);
}

/* The attempt is under way already, so it is counted even above the limit. */
void stg_share_adopt(stg_budget *b, bool is_retry)
{
    stg_share_begin(b);
    if (is_retry)
        stg_word_change(&b->level, add_retry, NULL);
}

/* Whether a share budget counts exactly these. Other kinds do not count what
 * is under way, and agree with any number. */
bool stg_budget_counts(const stg_budget *b, uint32_t attempts, uint32_t retries)
{
    uint64_t counted = attempts * one_attempt + retries * one_retry;

    return b->options.kind != STG_BUDGET_SHARE ||
           stg_word_read(&b->level) == counted;
}

uint64_t stg_share_left(const stg_budget *b)
{
    uint64_t word = stg_word_read(&b->level);

    return 1000 *
           stg_ns_sub(allowed_at_once(&b->options, word), retries_of(word));
}
