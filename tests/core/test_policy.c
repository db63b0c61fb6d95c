/* A policy as a struct: what is refused, and what is the same. */
#include <stagger/policy.h>

#include <stddef.h>

#include "tests/harness.h"
#include "tests/policy_of.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* -- any field, by its place and size */

typedef struct field {
    size_t at, size;
} field;

#define FIELD(name)                                                 \
    {                                                               \
        offsetof(stg_policy, name), sizeof(((stg_policy *)0)->name) \
    }

/* The size of an enum is the compiler's choice. */
static uint64_t get(const stg_policy *p, field f)
{
    const char *at = (const char *)p + f.at;
    uint64_t n64;
    uint32_t n32;
    uint16_t n16;
    uint8_t n8;

    switch (f.size) {
    case sizeof n64:
        memcpy(&n64, at, sizeof n64);
        return n64;
    case sizeof n32:
        memcpy(&n32, at, sizeof n32);
        return n32;
    case sizeof n16:
        memcpy(&n16, at, sizeof n16);
        return n16;
    default:
        memcpy(&n8, at, sizeof n8);
        return n8;
    }
}

static void set(stg_policy *p, field f, uint64_t value)
{
    char *at = (char *)p + f.at;
    uint32_t n32 = (uint32_t)value;
    uint16_t n16 = (uint16_t)value;
    uint8_t n8 = (uint8_t)value;

    switch (f.size) {
    case sizeof value:
        memcpy(at, &value, sizeof value);
        break;
    case sizeof n32:
        memcpy(at, &n32, sizeof n32);
        break;
    case sizeof n16:
        memcpy(at, &n16, sizeof n16);
        break;
    default:
        memcpy(at, &n8, sizeof n8);
    }
}

static const field fields[] = {
    FIELD(attempts_max),
    FIELD(deadline),
    FIELD(attempt_timeout),
    FIELD(reset_after),
    FIELD(retry_after_max),
    FIELD(backoff.growth),
    FIELD(backoff.jitter),
    FIELD(backoff.below),
    FIELD(backoff.above),
    FIELD(backoff.up),
    FIELD(backoff.factor),
    FIELD(backoff.base),
    FIELD(backoff.cap),
    FIELD(backoff.floor),
    FIELD(backoff.offset),
    FIELD(backoff.power),
    FIELD(backoff.counts_from_0),
    FIELD(backoff.list_count),
    FIELD(base_for[STG_CATEGORY_CONNECT]),
    FIELD(base_for[STG_CATEGORY_LOCAL]),
    FIELD(rate),
    FIELD(bulkhead.max),
    FIELD(bulkhead.wait),
    FIELD(throttle.kind),
    FIELD(throttle.k),
    FIELD(hedge.max),
    FIELD(hedge.percentile),
    FIELD(hedge.delay),
    FIELD(budget.kind),
    FIELD(budget.capacity),
    FIELD(budget.rate),
    FIELD(budget.ratio),
    FIELD(budget.cost),
    FIELD(budget.timeout_cost),
    FIELD(budget.throttle_cost),
    FIELD(breaker.rule),
    FIELD(breaker.failures),
    FIELD(breaker.percent),
    FIELD(breaker.calls),
    FIELD(breaker.connects),
    FIELD(breaker.probes),
    FIELD(breaker.probes_good),
    FIELD(breaker.slow_percent),
    FIELD(breaker.slow_after),
    FIELD(breaker.window),
    FIELD(breaker.open),
    FIELD(breaker.open_max),
    FIELD(budget_waits),
    FIELD(breaks_retries_only),
    FIELD(unsafe),
    FIELD(default_rules),
    FIELD(nested),
    FIELD(retry_after),
    FIELD(rule_count),
    FIELD(rules[0].link),
    FIELD(rules[0].code_kind),
    FIELD(rules[0].retries_max),
    FIELD(rules[0].value),
    FIELD(rules[1].value),
};

/* -- the default */

TEST(policy, has_a_default_that_is_bounded_and_jittered)
{
    stg_policy p = stg_policy_default();

    CHECK_INT(stg_policy_check(&p, NULL), STG_OK);
    CHECK_U64(p.attempts_max, 3);
    CHECK_U64(p.deadline, 2 * STG_MIN);
    CHECK_U64(p.attempt_timeout, STG_NEVER);
    CHECK_U64(p.reset_after, STG_NEVER);
    CHECK_U64(p.retry_after_max, STG_HOUR);
    CHECK_INT(p.backoff.growth, STG_EXPONENTIAL);
    CHECK_INT(p.backoff.jitter, STG_JITTER_FULL);
    CHECK_U64(p.backoff.base, 200 * STG_MS);
    CHECK_U64(p.backoff.cap, 30 * STG_S);
    CHECK_U64(p.backoff.factor, 2000);
    CHECK_INT(p.budget.kind, STG_BUDGET_NONE);
    CHECK_INT(p.breaker.rule, STG_BREAKER_NONE);
    CHECK(p.default_rules && p.rule_count == 0);
    CHECK(!p.budget_waits && !p.unsafe && p.nested == STG_NESTED_ONCE);
}

/* -- the check */

static void check_refused(const stg_policy *p, const char *words)
{
    stg_error err = {.line = 7, .column = 7, .text = ""};
    stg_status status = stg_policy_check(p, &err);

    CHECK_STR(err.text, words == NULL ? "" : words);
    CHECK_INT(status, words == NULL ? STG_OK : STG_INVALID);
    CHECK_INT(stg_policy_check(p, NULL), status);
    if (words != NULL)
        CHECK(err.line == 0 && err.column == 0);
}

/* One field of a good policy gets a value; words are NULL where it may. */
typedef struct row {
    field at;
    uint64_t value;
    const char *words;
} row;

static void check_rows(const char *text, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        stg_policy p = policy_of(text);

        set(&p, rows[i].at, rows[i].value);
        check_refused(&p, rows[i].words);
    }
}

TEST(policy, is_refused_zeroed_or_null)
{
    static const stg_policy zeroed;

    check_refused(&zeroed,
                  "attempts=0 is out of range, expected 1 to "
                  "4294967295, or unlimited");
    check_refused(NULL, "policy is NULL");
}

TEST(policy, is_refused_with_attempts_and_times_out_of_range)
{
    static const row rows[] = {
        {FIELD(attempts_max), 1, NULL},
        {FIELD(attempts_max), UINT32_MAX, NULL},
        {FIELD(attempts_max), STG_UNLIMITED, NULL},
        {FIELD(attempts_max), UINT64_C(1) << 32,
         "attempts=4294967296 is out of range, expected 1 to 4294967295, or "
         "unlimited"},
        {FIELD(attempts_max), STG_UNLIMITED - 1,
         "attempts=18446744073709551614 is out of range, expected 1 to "
         "4294967295, or unlimited"},
        {FIELD(deadline), 1, NULL},
        {FIELD(deadline), 365 * STG_DAY, NULL},
        {FIELD(deadline), STG_NEVER, NULL},
        {FIELD(deadline), 0,
         "deadline=0 is out of range, expected more than 0, to 365d, or none"},
        {FIELD(deadline), 366 * STG_DAY,
         "deadline=366d is out of range, expected more than 0, to 365d, or none"},
        {FIELD(deadline), STG_NEVER - 1,
         "deadline=18446744073709551614ns is out of range, expected more than 0, "
         "to 365d, or none"},
        {FIELD(attempt_timeout), 1, NULL},
        {FIELD(attempt_timeout), 365 * STG_DAY, NULL},
        {FIELD(attempt_timeout), 0,
         "attempt-timeout=0 is out of range, expected more than 0, to 365d, or "
         "none"},
        {FIELD(attempt_timeout), 365 * STG_DAY + STG_HOUR,
         "attempt-timeout=8761h is out of range, expected more than 0, to 365d, "
         "or none"},
        {FIELD(reset_after), 1, NULL},
        {FIELD(reset_after), 365 * STG_DAY, NULL},
        {FIELD(reset_after), 0,
         "reset-after=0 is out of range, expected more than 0, to 365d, or none"},
        {FIELD(reset_after), 365 * STG_DAY + 1,
         "reset-after=31536000000000001ns is out of range, expected more than 0, "
         "to 365d, or none"},
        {FIELD(retry_after_max), 0, NULL},
        {FIELD(retry_after_max), 365 * STG_DAY, NULL},
        {FIELD(retry_after_max), 365 * STG_DAY + 1,
         "retry-after-max=31536000000000001ns is out of range, expected 0 to "
         "365d"},
        {FIELD(retry_after_max), STG_NEVER,
         "retry-after-max=none is out of range, expected 0 to 365d"},
        {FIELD(nested), STG_NESTED_FULL, NULL},
        {FIELD(nested), STG_NESTED_FULL + 1,
         "nested=2 is out of range, expected one of stg_nested"},
        {FIELD(nested), UINT32_MAX,
         "nested=4294967295 is out of range, expected one of stg_nested"},
        {FIELD(retry_after), STG_RETRY_AFTER_IGNORE, NULL},
        {FIELD(retry_after), STG_RETRY_AFTER_IGNORE + 1,
         "retry-after=3 is out of range, expected one of stg_retry_after"},
        {FIELD(default_rules), false, NULL},
    };

    check_rows("attempts=3", rows, COUNT(rows));
}

TEST(policy, is_refused_with_a_backoff_out_of_range)
{
    static const row plain[] = {
        {FIELD(backoff.growth), STG_FIXED, NULL},
        {FIELD(backoff.growth), STG_LIST,
         "list_count=0 is out of range, expected 1 to 64"},
        {FIELD(backoff.growth), STG_POLYNOMIAL,
         "power=0 is out of range, expected 2 to 10"},
        {FIELD(backoff.growth), STG_POLYNOMIAL + 1,
         "growth=5 is out of range, expected one of stg_growth"},
        {FIELD(backoff.jitter), STG_JITTER_DECORRELATED, NULL},
        {FIELD(backoff.jitter), STG_JITTER_PERCENT,
         "jitter=0% is out of range, expected 1% to 100%"},
        {FIELD(backoff.jitter), STG_JITTER_POLLY, NULL},
        {FIELD(backoff.jitter), STG_JITTER_POLLY + 1,
         "jitter=7 is out of range, expected one of stg_jitter"},
        {FIELD(backoff.below), 1,
         "jitter=1% is out of range, expected no percentage with another jitter"},
        {FIELD(backoff.factor), 1000, NULL},
        {FIELD(backoff.factor), 100000, NULL},
        {FIELD(backoff.factor), 999,
         "factor=0.999 is out of range, expected 1 to 100"},
        {FIELD(backoff.factor), 100001,
         "factor=100.001 is out of range, expected 1 to 100"},
        {FIELD(backoff.base), 0, NULL},
        {FIELD(backoff.base), 30 * STG_S, NULL},
        {FIELD(backoff.base), 30 * STG_S + 1,
         "cap=30s is below base=30000000001ns"},
        {FIELD(backoff.base), 366 * STG_DAY,
         "base=366d is out of range, expected 0 to 365d"},
        {FIELD(backoff.base), STG_NEVER,
         "base=none is out of range, expected 0 to 365d"},
        {FIELD(backoff.cap), 200 * STG_MS, NULL},
        {FIELD(backoff.cap), 365 * STG_DAY, NULL},
        {FIELD(backoff.cap), STG_NEVER, NULL},
        {FIELD(backoff.cap), 200 * STG_MS - 1,
         "cap=199999999ns is below base=200ms"},
        {FIELD(backoff.cap), 0,
         "cap=0 is out of range, expected more than 0, to 365d, or none"},
        {FIELD(backoff.cap), 366 * STG_DAY,
         "cap=366d is out of range, expected more than 0, to 365d, or none"},
        {FIELD(backoff.floor), 30 * STG_S, NULL},
        {FIELD(backoff.floor), 30 * STG_S + 1,
         "cap=30s is below floor=30000000001ns"},
        {FIELD(backoff.floor), 365 * STG_DAY + 1,
         "floor=31536000000000001ns is out of range, expected 0 to 365d"},
        {FIELD(backoff.list_count), 1,
         "list_count=1 is out of range, expected 0 where there is no list"},
        {FIELD(backoff.list[0]), 1,
         "list=1ns is out of range, expected 0 behind the end of the list"},
        {FIELD(backoff.list[STG_LIST_MAX - 1]), 1,
         "list=1ns is out of range, expected 0 behind the end of the list"},
    };
    static const row percent[] = {
        {FIELD(backoff.below), 1, NULL},
        {FIELD(backoff.below), 100, NULL},
        {FIELD(backoff.below), 0, NULL},
        {FIELD(backoff.above), 0, NULL},
        {FIELD(backoff.below), 101,
         "jitter=101% is out of range, expected 1% to 100%"},
        {FIELD(backoff.above), 101,
         "jitter=101% is out of range, expected 1% to 100%"},
    };
    static const row list[] = {
        {FIELD(backoff.list_count), 0,
         "list_count=0 is out of range, expected 1 to 64"},
        {FIELD(backoff.list_count), 1,
         "list=2s is out of range, expected 0 behind the end of the list"},
        {FIELD(backoff.list_count), 3, NULL},
        {FIELD(backoff.list_count), 32, NULL},
        {FIELD(backoff.list_count), STG_LIST_MAX + 1,
         "list_count=65 is out of range, expected 1 to 64"},
        {FIELD(backoff.list_count), UINT32_MAX,
         "list_count=4294967295 is out of range, expected 1 to 64"},
        {FIELD(backoff.list[1]), 0, NULL},
        {FIELD(backoff.list[1]), 365 * STG_DAY, NULL},
        {FIELD(backoff.list[1]), 365 * STG_DAY + 1,
         "list=31536000000000001ns is out of range, expected 0 to 365d"},
        {FIELD(backoff.list[2]), 1,
         "list=1ns is out of range, expected 0 behind the end of the list"},
        {FIELD(backoff.growth), STG_LINEAR,
         "list_count=2 is out of range, expected 0 where there is no list"},
    };

    static const row bases[] = {
        {FIELD(base_for[STG_CATEGORY_OVERLOAD]), 1, NULL},
        {FIELD(base_for[STG_CATEGORY_CONNECT]), 30 * STG_S, NULL},
        {FIELD(base_for[STG_CATEGORY_LOCAL]), 30 * STG_S + 1,
         "cap=30s is below base-for=30000000001ns"},
        {FIELD(base_for[STG_CATEGORY_RPC]), 366 * STG_DAY,
         "base-for=366d is out of range, expected more than 0, to 365d"},
        {FIELD(base_for[STG_CATEGORY_NONE]), 1,
         "base-for is set for a category that no rule may name"},
        {FIELD(base_for[STG_CATEGORY_OWN]), 1,
         "base-for is set for a category that no rule may name"},
        {FIELD(base_for[STG_CATEGORY_OTHER]), 1,
         "base-for is set for a category that no rule may name"},
    };
    static const row based_list[] = {
        {FIELD(base_for[STG_CATEGORY_SERVER]), 1,
         "base-for has no meaning for a list, which has no base"},
    };
    static const row going_on[] = {
        {FIELD(base_for[STG_CATEGORY_SERVER]), 1,
         "base-for has no meaning for jitter=polly, whose waits go on from "
         "each other"},
    };
    static const row uncapped[] = {
        {FIELD(base_for[STG_CATEGORY_SERVER]), 365 * STG_DAY, NULL},
        {FIELD(base_for[STG_CATEGORY_SERVER]), 365 * STG_DAY + 1,
         "base-for=31536000000000001ns is out of range, expected more than 0, "
         "to 365d"},
    };

    check_rows("attempts=3", bases, COUNT(bases));
    check_rows("list=1s", based_list, COUNT(based_list));
    check_rows("jitter=polly", going_on, COUNT(going_on));
    check_rows("list=1s jitter=decorrelated", bases, 1);
    check_rows("cap=none", uncapped, COUNT(uncapped));
    check_rows("attempts=3", plain, COUNT(plain));
    check_rows("jitter=50%", percent, COUNT(percent));
    check_rows("list=1s,2s", list, COUNT(list));
}

TEST(policy, is_refused_with_a_budget_out_of_range)
{
    static const row none[] = {
        {FIELD(budget.kind), STG_BUDGET_AWS,
         "budget capacity=0 is out of range, expected 1 to 1000000 tokens"},
        {FIELD(budget.kind), STG_BUDGET_GRPC + 1,
         "budget kind=6 is out of range, expected one of stg_budget_kind"},
        {FIELD(budget.capacity), 1,
         "budget capacity=1 is out of range, expected 0 for this kind"},
        {FIELD(budget.rate), 1,
         "budget rate=0.001 is out of range, expected 0 for this kind"},
        {FIELD(budget.ratio), 1,
         "budget ratio=0.001 is out of range, expected 0 for this kind"},
        {FIELD(budget.cost), 1,
         "budget cost=1 is out of range, expected 0 for this kind"},
        {FIELD(budget_waits), true, NULL},
        {FIELD(breaks_retries_only), true, NULL},
    };
    static const row aws[] = {
        {FIELD(budget.capacity), 14, NULL},
        {FIELD(budget.capacity), 1000000, NULL},
        {FIELD(budget.capacity), 13,
         "budget cost=14 is out of range, expected 1 to the capacity"},
        {FIELD(budget.cost), 1, NULL},
        {FIELD(budget.cost), 500, NULL},
        {FIELD(budget.cost), 0,
         "budget cost=0 is out of range, expected 1 to the capacity"},
        {FIELD(budget.timeout_cost), 500, NULL},
        {FIELD(budget.timeout_cost), 501,
         "budget timeout cost=501 is out of range, expected 1 to the capacity"},
        {FIELD(budget.throttle_cost), 500, NULL},
        {FIELD(budget.throttle_cost), 501,
         "budget throttle cost=501 is out of range, expected 1 to the capacity"},
        {FIELD(budget.rate), 1,
         "budget rate=0.001 is out of range, expected 0 for this kind"},
    };
    static const row tokens[] = {
        {FIELD(budget.capacity), 1, NULL},
        {FIELD(budget.capacity), 1000000, NULL},
        {FIELD(budget.capacity), 0,
         "budget capacity=0 is out of range, expected 1 to 1000000 tokens"},
        {FIELD(budget.capacity), 1000001,
         "budget capacity=1000001 is out of range, expected 1 to 1000000 tokens"},
        {FIELD(budget.rate), 1, NULL},
        {FIELD(budget.rate), 1000000000, NULL},
        {FIELD(budget.rate), 0,
         "budget rate=0 is out of range, expected 0.001/s to 1000000/s"},
        {FIELD(budget.rate), 1000000001,
         "budget rate=1000000.001 is out of range, expected 0.001/s to "
         "1000000/s"},
        {FIELD(budget.ratio), 1,
         "budget ratio=0.001 is out of range, expected 0 for this kind"},
    };
    static const row ratio[] = {
        {FIELD(budget.ratio), 0, NULL},
        {FIELD(budget.ratio), 10000, NULL},
        {FIELD(budget.ratio), 10001,
         "budget ratio=10.001 is out of range, expected 0 to 10"},
        {FIELD(budget.rate), 0, NULL},
        {FIELD(budget.rate), 1000000000, NULL},
        {FIELD(budget.rate), 1000000001,
         "budget rate=1000000.001 is out of range, expected 0/s to 1000000/s"},
        {FIELD(budget.capacity), 1,
         "budget capacity=1 is out of range, expected 0 for this kind"},
    };
    static const row floorless[] = {
        {FIELD(budget.ratio), 0,
         "budget ratio and floor are both 0, and would refuse every retry; "
         "expected attempts=1 for that"},
    };
    static const row grpc[] = {
        {FIELD(budget.capacity), 1, NULL},
        {FIELD(budget.capacity), 1000, NULL},
        {FIELD(budget.capacity), 0,
         "budget capacity=0 is out of range, expected 1 to 1000 tokens"},
        {FIELD(budget.capacity), 1001,
         "budget capacity=1001 is out of range, expected 1 to 1000 tokens"},
        {FIELD(budget.ratio), 1, NULL},
        {FIELD(budget.ratio), 1000000, NULL},
        {FIELD(budget.ratio), 0,
         "budget ratio=0 is out of range, expected 0.001 to 1000"},
        {FIELD(budget.ratio), 1000001,
         "budget ratio=1000.001 is out of range, expected 0.001 to 1000"},
        {FIELD(budget.rate), 1,
         "budget rate=0.001 is out of range, expected 0 for this kind"},
    };
    static const row share[] = {
        {FIELD(budget.ratio), 0, NULL},
        {FIELD(budget.ratio), 1000, NULL},
        {FIELD(budget.ratio), 1001,
         "budget share=1.001 is out of range, expected 0 to 1, which is 0% to "
         "100%"},
        {FIELD(budget.capacity), 0,
         "budget floor=0 is out of range, expected 1 to 1000000 retries at once"},
        {FIELD(budget.capacity), 1, NULL},
        {FIELD(budget.capacity), 1000000, NULL},
        {FIELD(budget.capacity), 1000001,
         "budget floor=1000001 is out of range, expected 1 to 1000000 retries at "
         "once"},
        {FIELD(budget.rate), 1,
         "budget rate=0.001 is out of range, expected 0 for this kind"},
    };

    check_rows("attempts=3", none, COUNT(none));
    check_rows("budget=share:20%+3", share, COUNT(share));
    check_rows("budget=tokens:100:10/s", tokens, COUNT(tokens));
    check_rows("budget=ratio:0.2+10/s", ratio, COUNT(ratio));
    check_rows("budget=ratio:0.2", floorless, COUNT(floorless));
    check_rows("budget=grpc:10:0.1", grpc, COUNT(grpc));
    check_rows("budget=aws:500:14:14:5", aws, COUNT(aws));
}

TEST(policy, is_refused_with_a_rate_out_of_range)
{
    static const row rows[] = {
        {FIELD(rate), 0, NULL},
        {FIELD(rate), 1, NULL},
        {FIELD(rate), 1000000000, NULL},
        {FIELD(rate), 1000000001,
         "rate=1000000.001 is out of range, expected 0.001/s to 1000000/s, or "
         "none"},
        {FIELD(rate), UINT32_MAX,
         "rate=4294967.295 is out of range, expected 0.001/s to 1000000/s, or "
         "none"},
    };

    check_rows("rate=50/s", rows, COUNT(rows));
}

TEST(policy, is_refused_with_a_bulkhead_out_of_range)
{
    static const row rows[] = {
        {FIELD(bulkhead.max), 1000000, NULL},
        {FIELD(bulkhead.max), 1000001,
         "bulkhead=1000001 is out of range, expected 1 to 1000000 attempts at "
         "once, or none"},
        {FIELD(bulkhead.max), 0,
         "bulkhead wait=1s is out of range, expected 0 without a limit"},
        {FIELD(bulkhead.wait), 366 * STG_DAY,
         "bulkhead wait=366d is out of range, expected 0 to 365d"},
    };

    check_rows("bulkhead=20:1s", rows, COUNT(rows));
}

TEST(policy, is_refused_with_a_throttle_out_of_range)
{
    static const row rows[] = {
        {FIELD(throttle.k), 1000, NULL},
        {FIELD(throttle.k), 100001,
         "throttle k=100.001 is out of range, expected 1 to 100"},
        {FIELD(throttle.kind), 3,
         "throttle=3 is out of range, expected one of stg_throttle_kind"},
    };

    check_rows("throttle=sre", rows, COUNT(rows));
}

TEST(policy, is_refused_with_a_hedge_out_of_range)
{
    static const row rows[] = {
        {FIELD(hedge.max), 3, NULL},
        {FIELD(hedge.max), 4,
         "hedge=4 is out of range, expected 1 to 3 further attempts, or none"},
    };

    check_rows("hedge=p95", rows, COUNT(rows));
}

TEST(policy, is_refused_with_a_breaker_out_of_range)
{
    static const char rest[] = "breaker has no rule: expected 0 for the rest";
    static const char in_a_row[] =
        "breaker counts failures in a row: percent, "
        "calls and window are expected to be 0";
    static const row none[] = {
        {FIELD(breaker.rule), STG_BREAKER_ROW,
         "breaker failures=0 is out of range, expected 1 to 1000000"},
        {FIELD(breaker.rule), STG_BREAKER_SHARE + 1,
         "breaker rule=3 is out of range, expected one of stg_breaker_rule"},
        {FIELD(breaker.failures), 1, rest},
        {FIELD(breaker.percent), 1, rest},
        {FIELD(breaker.calls), 1, rest},
        {FIELD(breaker.window), 1, rest},
        {FIELD(breaker.open), 1, rest},
        {FIELD(breaker.open_max), 1, rest},
    };
    static const row by_row[] = {
        {FIELD(breaker.failures), 1, NULL},
        {FIELD(breaker.failures), 1000000, NULL},
        {FIELD(breaker.failures), 1000001,
         "breaker failures=1000001 is out of range, expected 1 to 1000000"},
        {FIELD(breaker.percent), 1, in_a_row},
        {FIELD(breaker.calls), 1, in_a_row},
        {FIELD(breaker.window), 1, in_a_row},
        {FIELD(breaker.open), STG_MS, NULL},
        {FIELD(breaker.open), 10 * STG_MIN, NULL},
        {FIELD(breaker.open), STG_MS - 1,
         "breaker open=999999ns is out of range, expected 1ms to 365d"},
        {FIELD(breaker.open), 366 * STG_DAY,
         "breaker open=366d is out of range, expected 1ms to 365d"},
        {FIELD(breaker.open_max), 365 * STG_DAY, NULL},
        {FIELD(breaker.open_max), 30 * STG_S, NULL},
        {FIELD(breaker.open_max), 30 * STG_S - STG_MS,
         "breaker open_max=29999ms is out of range, expected its first opening "
         "to 365d"},
        {FIELD(breaker.open_max), STG_NEVER,
         "breaker open_max=none is out of range, expected its first opening to "
         "365d"},
    };
    static const row by_share[] = {
        {FIELD(breaker.percent), 1, NULL},
        {FIELD(breaker.percent), 100, NULL},
        {FIELD(breaker.percent), 0,
         "breaker percent=0 is out of range, expected 1 to 100"},
        {FIELD(breaker.percent), 101,
         "breaker percent=101 is out of range, expected 1 to 100"},
        {FIELD(breaker.calls), 1, NULL},
        {FIELD(breaker.calls), 10000, NULL},
        {FIELD(breaker.calls), 0,
         "breaker calls=0 is out of range, expected 1 to 10000"},
        {FIELD(breaker.calls), 10001,
         "breaker calls=10001 is out of range, expected 1 to 10000"},
        {FIELD(breaker.window), 10 * STG_MS, NULL},
        {FIELD(breaker.window), STG_DAY, NULL},
        {FIELD(breaker.window), 10 * STG_MS - 1,
         "breaker window=9999999ns is out of range, expected 10ms to 1d"},
        {FIELD(breaker.window), STG_DAY + STG_S,
         "breaker window=86401s is out of range, expected 10ms to 1d"},
        {FIELD(breaker.failures), 1,
         "breaker failures=1 is out of range, expected 0 where a share counts"},
        {FIELD(breaker.open), 0,
         "breaker open=0 is out of range, expected 1ms to 365d"},
    };

    check_rows("attempts=3", none, COUNT(none));
    check_rows("breaker=5:30s-10m", by_row, COUNT(by_row));
    check_rows("breaker=50%/20/10s:30s-10m", by_share, COUNT(by_share));
}

TEST(policy, is_refused_with_rules_out_of_range)
{
    static const char no_fault[] =
        "retry has a rule on no fault: its link, "
        "code_kind or value is out of range";
    static const row rows[] = {
        {FIELD(rules[0].link), STG_LINK_ANY + 1, no_fault},
        {FIELD(rules[0].code_kind), STG_CODE_ERRNO, no_fault},
        {FIELD(rules[0].value), 600, no_fault},
        {FIELD(rules[0].value), 504, "retry has two rules on 504"},
        {FIELD(rules[0].retries_max), 255, NULL},
        {FIELD(rules[0].retries_max), 256,
         "at-most=256 is out of range, expected 1 to 255"},
        {FIELD(rules[0].retries_max), STG_ALWAYS - 1,
         "at-most=65534 is out of range, expected 1 to 255"},
        {FIELD(rules[1].value), 99, no_fault},
        {FIELD(rule_count), 0, NULL},
        {FIELD(rule_count), 3, no_fault},
        {FIELD(rule_count), 65,
         "retry rules=65 is out of range, expected 0 to 64"},
        {FIELD(rule_count), UINT32_MAX,
         "retry rules=4294967295 is out of range, expected 0 to 64"},
    };
    stg_policy p = policy_of("once=400,401,402,403,404,405,406,407 retry=any");

    check_rows("retry=503,504", rows, COUNT(rows));
    check_refused(&p, NULL);
    p.rules[8].retries_max = 255;
    check_refused(&p,
                  "at-most and once rules=9 is out of range, expected 0 to 8");
    p = stg_policy_default();
    p.rule_count = 1;
    p.rules[0] = (stg_rule){STG_LINK_NAME, 0, 1, STG_FAULT_CANCELLED};
    check_refused(&p,
                  "retry names cancelled, but what was cancelled is never "
                  "retried");
}

TEST(policy, is_refused_where_any_two_rules_are_on_one_fault)
{
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t j = 0; j < i; j++) {
            stg_policy p = policy_of("retry=500,502,503,504");

            check_refused(&p, NULL);
            p.rules[i] = p.rules[j];
            CHECK_FROM(4 * i + j, stg_policy_check(&p, NULL) == STG_INVALID);
        }
}

TEST(policy, is_refused_where_no_text_can_hold_it)
{
    stg_policy p = policy_of("list=0");

    p.backoff.list_count = STG_LIST_MAX / 2;
    for (uint32_t i = 0; i < STG_LIST_MAX / 2; i++)
        p.backoff.list[i] = 365 * STG_DAY - 1;
    check_refused(&p, NULL);
    p.rule_count = STG_RULES_MAX;
    for (uint32_t i = 0; i < STG_RULES_MAX; i++)
        p.rules[i] =
            (stg_rule){STG_LINK_CODE, STG_CODE_MYSQL, STG_ALWAYS, 100000 + i};
    check_refused(&p,
                  "the policy is too long, expected at most 1023 bytes when "
                  "written out");
}

/* -- equality */

TEST(policy, is_equal_only_with_every_field)
{
    stg_policy p = policy_of("attempts=3 retry=503,504");

    for (size_t i = 0; i < COUNT(fields); i++) {
        stg_policy other = p;

        CHECK_FROM(i, stg_policy_equal(&p, &other));
        set(&other, fields[i], get(&p, fields[i]) ^ 1);
        CHECK_FROM(i, !stg_policy_equal(&p, &other));
        CHECK_FROM(i, !stg_policy_equal(&other, &p));
    }
    for (uint32_t i = 0; i < STG_LIST_MAX; i++) {
        stg_policy other = p;

        other.backoff.list[i] = 1;
        CHECK_FROM(i, !stg_policy_equal(&p, &other));
        CHECK_FROM(i, !stg_policy_equal(&other, &p));
    }
}

/* Neither what lies between the fields nor what no rule uses counts. */
TEST(policy, is_equal_by_fields_and_not_by_bytes)
{
    stg_policy p = policy_of("attempts=3 retry=503,504"), other;

    memset(&other, 0xa5, sizeof other);
    for (size_t i = 0; i < COUNT(fields); i++)
        set(&other, fields[i], get(&p, fields[i]));
    memcpy(other.backoff.list, p.backoff.list, sizeof p.backoff.list);
    memcpy(other.base_for, p.base_for, sizeof p.base_for);
    other.rules[1] = p.rules[1];
    CHECK(memcmp(&p, &other, sizeof p) != 0);
    CHECK(stg_policy_equal(&p, &other));
    CHECK(stg_policy_equal(&other, &p));
}

TEST(policy, is_equal_in_any_order_of_rules)
{
    stg_policy a = policy_of("retry=503,404 once=timeout never=any");
    stg_policy b = policy_of("never=any once=timeout retry=404,503");

    CHECK(stg_policy_equal(&a, &b));
    b = policy_of("never=any once=timeout retry=404,502");
    CHECK(!stg_policy_equal(&a, &b));
    CHECK(!stg_policy_equal(&b, &a));
    b.rules[b.rule_count] = (stg_rule){STG_LINK_CODE, STG_CODE_STATUS,
                                       STG_ALWAYS, 503}; // is none of them
    CHECK(!stg_policy_equal(&a, &b));
    b = policy_of("never=any once=timeout retry=404");
    CHECK(!stg_policy_equal(&a, &b));
    CHECK(!stg_policy_equal(&b, &a));
    b = policy_of("never=503,404 once=timeout retry=any");
    CHECK(!stg_policy_equal(&a, &b));
}
