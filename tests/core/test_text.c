/* A policy as a line of text. L6: text and struct are inverse, and a bad text
 * is refused with the place and the reason. */

#include <stagger/text.h>

#include <stdio.h>

#include "core/options.h"
#include "core/rule.h"
#include "core/text_internal.h"
#include "tests/harness.h"
#include "tests/policy_of.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void check_canonical(const char *text, const char *canonical)
{
    stg_policy p = policy_of(text);
    char printed[STG_POLICY_TEXT_MAX] = "";

    CHECK_INT(stg_policy_print(&p, printed), STG_OK);
    CHECK_STR(printed, canonical);
}

/* -- L6, forward: what is printed is read as it was */

static void check_inverse(uint64_t seed, const stg_policy *p)
{
    char text[STG_POLICY_TEXT_MAX], again[STG_POLICY_TEXT_MAX];
    stg_policy read;
    stg_error err = {.text = ""};

    CHECK_FROM(seed, stg_policy_print(p, text) == STG_OK);
    CHECK_FROM(seed, strlen(text) < STG_POLICY_TEXT_MAX);
    stg_policy_parse(&read, text, &err);
    CHECK_STR(err.text, "");
    CHECK_FROM(seed, stg_policy_equal(p, &read));
    CHECK_FROM(seed, stg_policy_print(&read, again) == STG_OK);
    CHECK_STR(again, text);
}

static bool one_in(stg_rng *rng, uint64_t n)
{
    return stg_rng_upto(rng, n - 1) == 0;
}

static uint32_t between(stg_rng *rng, uint32_t least, uint32_t most)
{
    // The ends more often than chance would have them.
    if (one_in(rng, 6))
        return one_in(rng, 2) ? least : most;
    return least + (uint32_t)stg_rng_upto(rng, most - least);
}

/* From least to 365 d, often of whole units. */
static stg_ns any_time(stg_rng *rng, stg_ns least)
{
    static const stg_ns units[] = {1,       STG_US,   STG_MS, STG_S,
                                   STG_MIN, STG_HOUR, STG_DAY};
    stg_ns unit = units[stg_rng_upto(rng, COUNT(units) - 1)];
    stg_ns ns = stg_rng_upto(rng, STG_BACKOFF_MAX) >> stg_rng_upto(rng, 50);

    if (one_in(rng, 8))
        return one_in(rng, 2) ? least : STG_BACKOFF_MAX;
    if (ns / unit > 0)
        ns -= ns % unit;
    return stg_ns_max(ns, least);
}

static stg_ns any_optional(stg_rng *rng)
{
    return one_in(rng, 4) ? STG_NEVER : any_time(rng, 1);
}

static stg_backoff any_backoff(stg_rng *rng)
{
    stg_backoff b = {
        .growth = (stg_growth)stg_rng_upto(rng, STG_POLYNOMIAL),
        .jitter = (stg_jitter)stg_rng_upto(rng, STG_JITTER_UP),
        .factor = one_in(rng, 3) ? 2000 : between(rng, 1000, 100000),
        .base = one_in(rng, 3) ? 200 * STG_MS : any_time(rng, 0),
    };

    if (b.jitter == STG_JITTER_PERCENT) {
        b.below = between(rng, 0, 100);
        b.above = one_in(rng, 2) && b.below != 0
                      ? b.below
                      : between(rng, b.below == 0, 100);
    }
    if (b.jitter == STG_JITTER_UP)
        b.up = any_time(rng, 1);
    b.floor = one_in(rng, 2) ? 0 : any_time(rng, 0);
    if (b.growth == STG_POLYNOMIAL)
        b.power = (uint16_t)between(rng, 2, STG_POWER_MAX);
    if (b.growth == STG_POLYNOMIAL || b.growth == STG_LINEAR) {
        b.counts_from_0 = one_in(rng, 2);
        b.offset = one_in(rng, 2) ? 0 : any_time(rng, 0);
    }
    b.cap = stg_ns_max(stg_ns_max(b.base, b.floor), b.offset);
    b.cap = one_in(rng, 3)   ? stg_ns_max(b.cap, 30 * STG_S)
            : one_in(rng, 3) ? STG_NEVER
                             : any_time(rng, stg_ns_max(b.cap, 1));
    if (b.growth == STG_LIST)
        b.list_count =
            between(rng, 1, one_in(rng, 4) ? STG_LIST_MAX : STG_LIST_MAX / 2);
    for (uint32_t i = 0; i < b.list_count; i++)
        b.list[i] = any_time(rng, 0);
    if (one_in(rng, 12))
        b = (stg_backoff){.growth = STG_EXPONENTIAL,
                          .jitter = STG_JITTER_POLLY,
                          .factor = 2000,
                          .base = b.base,
                          .cap = b.cap};
    return b;
}

static stg_budget_options any_budget(stg_rng *rng)
{
    stg_budget_options o = {
        .kind = (stg_budget_kind)stg_rng_upto(rng, STG_BUDGET_GRPC)};

    if (o.kind == STG_BUDGET_TOKENS) {
        o.capacity = between(rng, 1, 1000000);
        o.rate = between(rng, 1, 1000000000);
    } else if (o.kind == STG_BUDGET_RATIO) {
        o.ratio = between(rng, 0, 10000);
        o.rate = between(rng, o.ratio == 0, 1000000000);
    } else if (o.kind == STG_BUDGET_AWS && one_in(rng, 4)) {
        o = stg_budget_aws;
    } else if (o.kind == STG_BUDGET_AWS) {
        o.capacity = between(rng, 1, 1000000);
        o.cost = between(rng, 1, o.capacity);
        o.timeout_cost = between(rng, 1, o.capacity);
        o.throttle_cost = between(rng, 1, o.capacity);
    } else if (o.kind == STG_BUDGET_GRPC) {
        o.capacity = between(rng, 1, 1000);
        o.ratio = between(rng, 1, 1000000);
    } else if (o.kind == STG_BUDGET_SHARE) {
        o.ratio = between(rng, 0, 1000);
        o.capacity = between(rng, 1, 1000000);
    }
    return o;
}

static stg_breaker_options any_breaker(stg_rng *rng)
{
    stg_breaker_options o = {
        .rule = (stg_breaker_rule)stg_rng_upto(rng, STG_BREAKER_SHARE)};

    if (o.rule == STG_BREAKER_NONE)
        return o;
    if (o.rule == STG_BREAKER_ROW) {
        o.failures = between(rng, 1, 1000000);
    } else {
        o.percent = between(rng, 1, 100);
        o.calls = between(rng, 1, 10000);
        o.window = stg_ns_min(any_time(rng, 10 * STG_MS), STG_DAY);
    }
    o.open = any_time(rng, STG_MS);
    o.open_max = one_in(rng, 3) ? o.open : any_time(rng, o.open);
    o.connects = one_in(rng, 2) ? 0 : between(rng, 1, 1000000);
    if (o.rule == STG_BREAKER_SHARE && one_in(rng, 2)) {
        o.slow_percent = between(rng, 1, 100);
        o.slow_after = any_time(rng, STG_US);
    }
    if (one_in(rng, 2))
        return o;
    o.probes = (uint16_t)between(rng, 2, STG_PROBES_MAX);
    o.probes_good = (uint16_t)between(rng, 1, o.probes);
    return o;
}

static stg_rule any_code(stg_rng *rng)
{
    static const struct {
        stg_code_kind kind;
        uint32_t least, most;
    } kinds[] = {
        {STG_CODE_STATUS, 100, 599}, {STG_CODE_SQLSTATE, 0, 60466175},
        {STG_CODE_MYSQL, 1, 999999}, {STG_CODE_GRPC, 1, 16},
        {STG_CODE_CURL, 1, 999},     {STG_CODE_REDIS, 1, 28},
        {STG_CODE_AMQP, 300, 599},   {STG_CODE_AMQP1, 1, 30},
        {STG_CODE_KAFKA, 1, 999},    {STG_CODE_KAFKA, 0u - 999, 0u - 1},
    };
    uint64_t i = stg_rng_upto(rng, COUNT(kinds) - 1);

    return (stg_rule){.link = STG_LINK_CODE,
                      .code_kind = (uint8_t)kinds[i].kind,
                      .value = between(rng, kinds[i].least, kinds[i].most)};
}

/* Whatever passes the check. */
static stg_rule any_rule(stg_rng *rng)
{
    stg_rule r;

    do {
        r = (stg_rule){
            .link = (uint8_t)stg_rng_upto(rng, STG_LINK_ANY),
            .value = (uint32_t)stg_rng_upto(rng, STG_FAULT_COUNT),
        };
        if (one_in(rng, 3))
            r = any_code(rng);
        r.retries_max = one_in(rng, 2) ? STG_ALWAYS : 0;
    } while (stg_rule_check(&r, NULL) != STG_OK);
    return r;
}

static void add_rule(stg_policy *p, stg_rule r, stg_rng *rng)
{
    uint32_t limited = 0;

    for (uint32_t i = 0; i < p->rule_count; i++) {
        if (stg_rule_same_link(&p->rules[i], &r))
            return;
        limited += stg_rule_is_limited(&p->rules[i]);
    }
    if (limited < STG_LIMITED_MAX && one_in(rng, 3)) {
        r.retries_max = (uint16_t)between(rng, 1, STG_RETRIES_MAX);
        if (stg_rule_check(&r, NULL) != STG_OK)
            r.retries_max = 0;
    }
    p->rules[p->rule_count++] = r;
}

static stg_throttle_options any_throttle(stg_rng *rng)
{
    if (one_in(rng, 2))
        return (stg_throttle_options){STG_THROTTLE_SRE,
                                      between(rng, 1000, 100000)};
    return (stg_throttle_options){
        one_in(rng, 2) ? STG_THROTTLE_NONE : STG_THROTTLE_AWS, 0};
}

static stg_hedge_options any_hedge(stg_rng *rng)
{
    uint32_t max = between(rng, 0, STG_HEDGES_MAX);

    if (max == 0 || one_in(rng, 2))
        return (stg_hedge_options){max, max == 0 ? 0 : between(rng, 50, 99), 0};
    return (stg_hedge_options){max, 0, any_time(rng, STG_MS)};
}

/* Any policy that may be; but one that says very much has no text. */
static stg_policy any_policy(stg_rng *rng)
{
    stg_policy p = {
        .attempts_max =
            one_in(rng, 6) ? STG_UNLIMITED : between(rng, 1, UINT32_MAX),
        .deadline = any_optional(rng),
        .attempt_timeout = any_optional(rng),
        .reset_after = any_optional(rng),
        .retry_after_max = one_in(rng, 3) ? STG_HOUR : any_time(rng, 0),
        .backoff = any_backoff(rng),
        .budget = any_budget(rng),
        .rate = one_in(rng, 2) ? 0 : between(rng, 1, 1000000000),
        .bulkhead = {.max = between(rng, 0, 1) * between(rng, 1, 1000000)},
        .throttle = any_throttle(rng),
        .hedge = any_hedge(rng),
        .breaker = any_breaker(rng),
        .budget_waits = one_in(rng, 2),
        .breaks_retries_only = one_in(rng, 2),
        .unsafe = one_in(rng, 2),
        .default_rules = one_in(rng, 2),
        .nested = one_in(rng, 2) ? STG_NESTED_ONCE : STG_NESTED_FULL,
        .retry_after = (stg_retry_after)stg_rng_upto(rng, 2),
    };
    bool has_base = p.backoff.growth != STG_LIST ||
                    p.backoff.jitter == STG_JITTER_DECORRELATED;
    uint64_t rules = stg_rng_upto(rng, STG_RULES_MAX) >> stg_rng_upto(rng, 6);

    if (p.bulkhead.max != 0 && one_in(rng, 2))
        p.bulkhead.wait = any_time(rng, 0);
    for (unsigned i = STG_CATEGORY_CONNECT; i <= STG_CATEGORY_LOCAL; i++)
        if (has_base && p.backoff.jitter != STG_JITTER_POLLY &&
            i != STG_CATEGORY_OWN && one_in(rng, 8))
            p.base_for[i] = stg_ns_min(any_time(rng, 1), p.backoff.cap);
    while (rules-- > 0)
        add_rule(&p, any_rule(rng), rng);
    return p;
}

static const char too_long[] =
    "the policy is too long, expected at most "
    "1023 bytes when written out";

TEST(text, prints_any_policy_so_that_it_reads_the_same)
{
    uint64_t count = seeds(20000), skipped = 0;

    for (uint64_t seed = 0; seed < count; seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_policy p = any_policy(&rng);
        stg_error err = {.text = ""};

        if (stg_policy_check(&p, &err) == STG_OK) {
            check_inverse(seed, &p);
            continue;
        }
        CHECK_STR(err.text, too_long);
        skipped++;
    }
    CHECK(skipped <= count / 20);
}

/* The longest list and the most rules there may be, of short words. */
TEST(text, prints_a_full_policy_so_that_it_reads_the_same)
{
    uint64_t count = seeds(300), skipped = 0;

    for (uint64_t seed = 0; seed < count; seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_policy p = any_policy(&rng);
        stg_error err = {.text = ""};

        p.backoff.growth = STG_LIST;
        if (p.backoff.jitter == STG_JITTER_POLLY)
            p.backoff.jitter = STG_JITTER_FULL;
        p.backoff.power = p.backoff.counts_from_0 = 0;
        p.backoff.offset = 0;
        memset(p.base_for, 0, sizeof p.base_for);
        p.breaks_retries_only = false;
        p.breaker.probes = p.breaker.probes_good = 0;
        p.breaker.slow_percent = 0;
        p.breaker.slow_after = 0;
        p.bulkhead = (stg_bulkhead_options){.max = 0};
        p.hedge.max = p.hedge.percentile = 0;
        p.hedge.delay = 0;
        p.backoff.list_count = STG_LIST_MAX;
        for (uint32_t i = 0; i < STG_LIST_MAX; i++)
            p.backoff.list[i] = stg_rng_upto(&rng, 364) * STG_DAY;
        memset(p.rules, 0, sizeof p.rules);
        p.rule_count = 0;
        while (p.rule_count < STG_RULES_MAX) {
            stg_rule r = {STG_LINK_CODE, STG_CODE_STATUS, STG_ALWAYS,
                          between(&rng, 100, 599)};

            add_rule(&p, r, &rng);
        }
        if (stg_policy_check(&p, &err) == STG_OK) {
            check_inverse(seed, &p);
            continue;
        }
        CHECK_STR(err.text, too_long);
        skipped++;
    }
    CHECK(skipped <= count / 20);
}

/* A policy with a text of so many bytes. */
static stg_policy policy_of_length(size_t length)
{
    stg_policy p = stg_policy_default();

    // "mysql:1001," and on, eleven bytes each; then a digit at a time.
    while (p.rule_count < STG_RULES_MAX)
        p.rules[p.rule_count++] = (stg_rule){STG_LINK_CODE, STG_CODE_MYSQL,
                                             STG_ALWAYS, 1000 + p.rule_count};
    p.backoff.growth = STG_LIST;
    for (uint32_t i = 0; i < STG_LIST_MAX; i++) {
        size_t left = length - stg_policy_write(&p, NULL, 0);

        if (left < 8)
            break;
        p.backoff.list[p.backoff.list_count++] = 999 * STG_S; // "999s,"
    }
    for (uint32_t i = 0; i < STG_RULES_MAX; i++)
        while (stg_policy_write(&p, NULL, 0) < length &&
               p.rules[i].value < 100000)
            p.rules[i].value *= 10;
    CHECK_U64(stg_policy_write(&p, NULL, 0), length);
    return p;
}

TEST(text, prints_up_to_1023_bytes)
{
    stg_policy p = policy_of_length(1023);
    char text[STG_POLICY_TEXT_MAX];
    stg_error err;

    check_inverse(0, &p);
    stg_policy_print(&p, text);
    CHECK_U64(strlen(text), 1023);

    p = policy_of_length(1024);
    CHECK_INT(stg_policy_check(&p, &err), STG_INVALID);
    CHECK_STR(err.text,
              "the policy is too long, expected at most 1023 bytes "
              "when written out");
    CHECK_INT(stg_policy_print(&p, text), STG_INVALID);
}

TEST(text, reads_up_to_1023_bytes)
{
    char text[1025];
    stg_policy p = {0};
    stg_error err = {.text = ""};

    memset(text, ' ', sizeof text);
    memcpy(text, "attempts=7", 10);
    text[1023] = '\0';
    CHECK_INT(stg_policy_parse(&p, text, &err), STG_OK);
    CHECK_U64(p.attempts_max, 7);

    text[1023] = ' ';
    text[1024] = '\0';
    CHECK_INT(stg_policy_parse(&p, text, &err), STG_INVALID);
    CHECK_STR(err.text,
              "policy:1:1: attempts=7                              "
              "...: too long, expected at most 1023 bytes");
}

/* Short as it is, some texts are long when they are written out. */
TEST(text, refuses_what_is_too_long_when_written_out)
{
    char text[1024];
    size_t at = (size_t)snprintf(text, sizeof text, "webhook retry=");
    stg_policy p;
    stg_error err;

    for (int i = 0; i < 64; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%ssqlstate:%05d",
                               i > 0 ? "," : "", i);
    CHECK_INT(stg_policy_parse(&p, text, &err), STG_INVALID);
    CHECK_STR(err.text,
              "policy:1:1: the policy is too long, expected at most "
              "1023 bytes when written out");
}

/* -- presets */

TEST(text, knows_each_preset_by_its_name)
{
    static const struct {
        const char *name, *canonical;
    } rows[] = {
        {"broadcast",
         "fixed base=1s jitter=none attempts=3 deadline=none "
         "attempt-timeout=10s retry=500,502,503,504,timeout,reset,protocol,"
         "429,408,425,pushback,grpc:4,grpc:10,grpc:14,transient once=connect-timeout,"
         "tls-timeout "
         "breaker=20:200ms-30s breaker-connect=3"},
        {"broadcast-wide",
         "fixed base=1s jitter=50% attempts=3 deadline=none "
         "attempt-timeout=10s retry=500,502,503,504,timeout,reset,protocol,"
         "429,408,425,pushback,grpc:4,grpc:10,grpc:14,transient once=connect-timeout,"
         "tls-timeout "
         "breaker=20:200ms-30s breaker-connect=3"},
        {"backend",
         "exponential base=200ms cap=30s jitter=full attempts=5 "
         "deadline=2m retry=default budget=tokens:100:10/s"},
        {"client",
         "exponential base=1s cap=10s jitter=full attempts=4 "
         "deadline=2m retry=default"},
        {"interactive",
         "exponential base=100ms cap=10s jitter=full attempts=6 "
         "deadline=2m retry=default"},
        {"unjittered",
         "exponential base=500ms cap=30s jitter=none attempts=4 "
         "deadline=2m retry=default"},
        {"webhook",
         "list=5s,5m,30m,2h,5h,10h,10h jitter=20% attempts=8 "
         "deadline=none attempt-timeout=30s retry=any never=410 "
         "breaker=20:200ms-30s breaker-connect=3"},
        {"aws",
         "exponential base=1s cap=20s jitter=full attempts=3 "
         "deadline=2m retry=default budget=aws"},
        {"none",
         "exponential base=200ms cap=30s jitter=full attempts=1 "
         "deadline=2m retry=default"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const stg_preset *preset = stg_preset_at(i);
        stg_policy by_name = policy_of(preset->name);
        stg_policy by_text = policy_of(preset->text);

        CHECK_STR(preset->name, rows[i].name);
        CHECK_FROM(i, strlen(preset->use) > 5);
        check_canonical(rows[i].name, rows[i].canonical);
        CHECK_FROM(i, stg_policy_equal(&by_name, &by_text));
        check_inverse(i, &by_name);
    }
    CHECK(stg_preset_at(COUNT(rows)) == NULL);
    CHECK(stg_preset_at(SIZE_MAX) == NULL);
}

TEST(text, knows_the_words_of_growths)
{
    static const char *const words[] = {"fixed",      "linear", "exponential",
                                        "polynomial", "list=",  "list=1s,2s"};
    static const char *const others[] = {"", "list", "fixe", "linearly",
                                         "base=1s"};

    for (size_t i = 0; i < COUNT(words); i++)
        CHECK(stg_growth_is_word(words[i], strlen(words[i])));
    for (size_t i = 0; i < COUNT(others); i++)
        CHECK(!stg_growth_is_word(others[i], strlen(others[i])));
    CHECK(stg_growth_is_word("linear base=1s", 6));
    CHECK(stg_growth_name(STG_POLYNOMIAL + 1) == NULL);
}

/* Each of its words may be said again. */
TEST(text, goes_on_from_a_preset)
{
    static const char *const words[] = {"attempts=9",
                                        "base=7s",
                                        "cap=1d",
                                        "floor=1s",
                                        "factor=3",
                                        "jitter=equal",
                                        "deadline=9m",
                                        "attempt-timeout=9s",
                                        "reset-after=9m",
                                        "retry-after-max=9m",
                                        "retry-after=exact",
                                        "budget=ratio:0.1",
                                        "rate=7/s",
                                        "bulkhead=7:7s",
                                        "throttle=sre:7",
                                        "hedge=7ms:2",
                                        "breaker=7:7s-7m",
                                        "budget-empty=wait",
                                        "breaker-scope=retries",
                                        "unsafe=yes",
                                        "nested=full",
                                        "fixed",
                                        "linear",
                                        "exponential",
                                        "list=1s,2s",
                                        "retry=404",
                                        "once=404",
                                        "at-most=2:404",
                                        "never=404"};
    const stg_preset *preset;

    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++)
        for (size_t j = 0; j < COUNT(words); j++) {
            char text[64], printed[STG_POLICY_TEXT_MAX];
            stg_policy p;

            snprintf(text, sizeof text, "%s %s", preset->name, words[j]);
            p = policy_of(text);
            check_inverse(i, &p);
            CHECK_INT(stg_policy_print(&p, printed), STG_OK);
            // A rule may stand behind others of its limit.
            if (strstr(printed, words[j]) == NULL)
                CHECK_STR(strstr(words[j], "404") ? "404" : printed, "404");
        }
}

TEST(text, is_the_default_where_nothing_is_set)
{
    stg_policy unset = stg_policy_default();
    stg_policy p = policy_of("exponential");

    CHECK(stg_policy_equal(&p, &unset));
    p = policy_of("attempts=3");
    CHECK(stg_policy_equal(&p, &unset));
    p = policy_of(
        "exponential base=200ms cap=30s factor=2 jitter=full "
        "attempts=3 deadline=2m attempt-timeout=none "
        "retry-after-max=1h reset-after=none retry=default "
        "budget=none budget-empty=give-up rate=none bulkhead=none throttle=none hedge=none breaker=none "
        "breaker-scope=attempts unsafe=no "
        "nested=once");
    CHECK(stg_policy_equal(&p, &unset));
    CHECK_U64(p.attempts_max, 3);
    CHECK_U64(p.deadline, 2 * STG_MIN);
    CHECK_U64(p.attempt_timeout, STG_NEVER);
    CHECK_U64(p.retry_after_max, STG_HOUR);
    CHECK_U64(p.reset_after, STG_NEVER);
    CHECK_U64(p.backoff.base, 200 * STG_MS);
    CHECK_U64(p.backoff.cap, 30 * STG_S);
    CHECK_U64(p.backoff.factor, 2000);
    CHECK(p.default_rules && p.rule_count == 0 && !p.unsafe && !p.budget_waits);
}

/* -- the grammar, each production */

/* What each row adds to these, or puts in their place. */
#define BASE "exponential base=200ms cap=30s jitter=full "
#define REST "attempts=3 deadline=2m retry=default"

TEST(text, sets_the_backoff)
{
    static const struct {
        const char *text, *canonical;
    } rows[] = {
        {"fixed", "fixed base=200ms jitter=full " REST},
        {"linear", "linear base=200ms cap=30s jitter=full " REST},
        {"exponential", BASE REST},
        {"list=0", "list=0 jitter=full " REST},
        {"list=5s", "list=5s jitter=full " REST},
        {"list=5s,1.5m,0,365d", "list=5s,90s,0,365d jitter=full " REST},
        {"list=1s,2s,3s,4s,5s,6s,7s,8s,1s,2s,3s,4s,5s,6s,7s,8s,1s,2s,3s,4s,5s,"
         "6s,7s,8s,1s,2s,3s,4s,5s,6s,7s,8s",
         "list=1s,2s,3s,4s,5s,6s,7s,8s,1s,2s,3s,4s,5s,6s,7s,8s,1s,2s,3s,4s,5s,"
         "6s,7s,8s,1s,2s,3s,4s,5s,6s,7s,8s jitter=full " REST},
        // The kind stands anywhere.
        {"attempts=3 fixed", "fixed base=200ms jitter=full " REST},
        {"attempts=3 list=1s,2s", "list=1s,2s jitter=full " REST},
        {"base=0", "exponential base=0 cap=30s jitter=full " REST},
        {"base=1ns", "exponential base=1ns cap=30s jitter=full " REST},
        {"base=0.5us", "exponential base=500ns cap=30s jitter=full " REST},
        {"base=1.5ms", "exponential base=1500us cap=30s jitter=full " REST},
        {"base=1.125s", "exponential base=1125ms cap=30s jitter=full " REST},
        {"base=0.5m", "exponential base=30s cap=30s jitter=full " REST},
        // The cap that is not set follows the base.
        {"base=1m", "exponential base=1m cap=1m jitter=full " REST},
        {"base=1h", "exponential base=1h cap=1h jitter=full " REST},
        {"base=365d", "exponential base=365d cap=365d jitter=full " REST},
        {"cap=0.5d base=2h", "exponential base=2h cap=12h jitter=full " REST},
        {"cap=200ms", "exponential base=200ms cap=200ms jitter=full " REST},
        {"cap=none", "exponential base=200ms cap=none jitter=full " REST},
        {"cap=none base=1h", "exponential base=1h cap=none jitter=full " REST},
        {"fixed cap=1m", "fixed base=200ms cap=1m jitter=full " REST},
        {"fixed base=1m", "fixed base=1m jitter=full " REST},
        {"list=1s base=1s", "list=1s base=1s jitter=full " REST},
        {"list=1s jitter=decorrelated",
         "list=1s base=200ms cap=30s jitter=decorrelated " REST},
        {"fixed jitter=decorrelated",
         "fixed base=200ms cap=30s jitter=decorrelated " REST},
        {"base-for=1s:overload",
         "exponential base=200ms base-for=1s:overload cap=30s jitter=full " REST},
        {"base-for=1s:D base-for=50ms:local,CONNECT",
         "exponential base=200ms base-for=50ms:connect base-for=1s:overload "
         "base-for=50ms:local cap=30s jitter=full " REST},
        {"base-for=1m:server",
         "exponential base=200ms base-for=1m:server cap=1m jitter=full " REST},
        {"fixed base-for=1m:rpc",
         "fixed base=200ms base-for=1m:rpc jitter=full " REST},
        {"list=1s jitter=decorrelated base-for=1s:database",
         "list=1s base=200ms base-for=1s:database cap=30s "
         "jitter=decorrelated " REST},
        {"polynomial",
         "polynomial power=2 base=200ms cap=30s jitter=full " REST},
        {"cap=none base=1s polynomial power=4 offset=15s count-from=0",
         "polynomial power=4 offset=15s count-from=0 base=1s cap=none "
         "jitter=full " REST},
        {"polynomial power=10 offset=1m count-from=1",
         "polynomial power=10 offset=1m base=200ms cap=1m jitter=full " REST},
        {"linear offset=1s count-from=0",
         "linear offset=1s count-from=0 base=200ms cap=30s jitter=full " REST},
        {"linear offset=0", "linear base=200ms cap=30s jitter=full " REST},
        {"floor=0", BASE REST},
        {"floor=50ms",
         "exponential base=200ms cap=30s floor=50ms jitter=full " REST},
        {"floor=1m",
         "exponential base=200ms cap=1m floor=1m jitter=full " REST},
        {"fixed floor=1m", "fixed base=200ms floor=1m jitter=full " REST},
        {"factor=1",
         "exponential base=200ms factor=1 cap=30s jitter=full " REST},
        {"factor=2.000", BASE REST},
        {"factor=1.005",
         "exponential base=200ms factor=1.005 cap=30s jitter=full " REST},
        {"factor=100",
         "exponential base=200ms factor=100 cap=30s jitter=full " REST},
        {"fixed factor=3", "fixed base=200ms factor=3 jitter=full " REST},
        {"jitter=none", "exponential base=200ms cap=30s jitter=none " REST},
        {"jitter=full", BASE REST},
        {"jitter=equal", "exponential base=200ms cap=30s jitter=equal " REST},
        {"jitter=1%", "exponential base=200ms cap=30s jitter=1% " REST},
        {"jitter=100%", "exponential base=200ms cap=30s jitter=100% " REST},
        {"jitter=-25%:50%",
         "exponential base=200ms cap=30s jitter=-25%:50% " REST},
        {"jitter=-0%:1%", "exponential base=200ms cap=30s jitter=-0%:1% " REST},
        {"jitter=-20%:20%", "exponential base=200ms cap=30s jitter=20% " REST},
        {"jitter=up:1s", "exponential base=200ms cap=30s jitter=up:1s " REST},
        {"jitter=polly", "exponential base=200ms cap=30s jitter=polly " REST},
        {"client jitter=polly cap=none",
         "exponential base=1s cap=none jitter=polly attempts=4 deadline=2m "
         "retry=default"},
        {"fixed jitter=up:60s", "fixed base=200ms jitter=up:1m " REST},
        {"webhook list=1s jitter=up:1s retry=503 breaker=none",
         "list=1s jitter=up:1s attempts=8 deadline=none attempt-timeout=30s "
         "retry=503"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_canonical(rows[i].text, rows[i].canonical);
}

TEST(text, sets_limits_and_times)
{
    static const struct {
        const char *text, *canonical;
    } rows[] = {
        {"attempts=1", BASE "attempts=1 deadline=2m retry=default"},
        {"attempts=007", BASE "attempts=7 deadline=2m retry=default"},
        {"attempts=4294967295",
         BASE "attempts=4294967295 deadline=2m retry=default"},
        {"attempts=unlimited",
         BASE "attempts=unlimited deadline=2m retry=default"},
        {"deadline=none", BASE "attempts=3 deadline=none retry=default"},
        {"deadline=1ns", BASE "attempts=3 deadline=1ns retry=default"},
        {"deadline=365d", BASE "attempts=3 deadline=365d retry=default"},
        {"attempt-timeout=10s",
         BASE "attempts=3 deadline=2m attempt-timeout=10s retry=default"},
        {"attempt-timeout=none", BASE REST},
        {"reset-after=1m",
         BASE "attempts=3 deadline=2m reset-after=1m retry=default"},
        {"reset-after=none", BASE REST},
        {"retry-after-max=0",
         BASE "attempts=3 deadline=2m retry-after-max=0 retry=default"},
        {"retry-after-max=365d",
         BASE "attempts=3 deadline=2m retry-after-max=365d retry=default"},
        {"retry-after-max=60m", BASE REST},
        {"retry-after=floor", BASE REST},
        {"retry-after=exact",
         BASE "attempts=3 deadline=2m retry-after=exact retry=default"},
        {"retry-after=ignore retry-after-max=0",
         BASE "attempts=3 deadline=2m retry-after-max=0 retry-after=ignore "
              "retry=default"},
        {"unsafe=yes", BASE REST " unsafe=yes"},
        {"unsafe=no", BASE REST},
        {"nested=full", BASE REST " nested=full"},
        {"nested=once", BASE REST},
        {"breaker-scope=attempts", BASE REST},
        {"breaker-scope=retries", BASE REST " breaker-scope=retries"},
        {"unsafe=yes breaker-scope=retries breaker=5",
         BASE REST " breaker=5:30s-10m breaker-scope=retries unsafe=yes"},
        {"nested=full unsafe=yes breaker=5 budget-empty=wait budget=aws "
         "reset-after=1m retry-after-max=2h attempt-timeout=1s",
         BASE "attempts=3 deadline=2m attempt-timeout=1s retry-after-max=2h "
              "reset-after=1m retry=default budget=aws budget-empty=wait "
              "breaker=5:30s-10m unsafe=yes nested=full"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_canonical(rows[i].text, rows[i].canonical);
}

TEST(text, sets_budgets_and_breakers)
{
    static const struct {
        const char *text, *canonical;
    } rows[] = {
        {"budget=none", BASE REST},
        {"budget=aws", BASE REST " budget=aws"},
        {"budget=aws:500:5:10:5", BASE REST " budget=aws"},
        {"budget=aws:500:14:14:5", BASE REST " budget=aws:500:14:14:5"},
        {"budget=aws:501:5:10:5", BASE REST " budget=aws:501:5:10:5"},
        {"budget=aws:1:1:1:1", BASE REST " budget=aws:1:1:1:1"},
        {"budget=aws:1000000:1:1000000:2",
         BASE REST " budget=aws:1000000:1:1000000:2"},
        {"budget=100:10/s", BASE REST " budget=tokens:100:10/s"},
        {"budget=tokens:1:0.001/s", BASE REST " budget=tokens:1:0.001/s"},
        {"budget=tokens:1000000:1000000/s",
         BASE REST " budget=tokens:1000000:1000000/s"},
        {"budget=ratio:0.2", BASE REST " budget=ratio:0.2"},
        {"budget=ratio:0.2+10/s", BASE REST " budget=ratio:0.2+10/s"},
        {"budget=ratio:0.2+0/s", BASE REST " budget=ratio:0.2"},
        {"budget=ratio:0+0.5/s", BASE REST " budget=ratio:0+0.5/s"},
        {"budget=ratio:10+1000000/s", BASE REST " budget=ratio:10+1000000/s"},
        {"budget=grpc:10:0.1", BASE REST " budget=grpc:10:0.1"},
        {"budget=share:20%+3", BASE REST " budget=share:20%+3"},
        {"budget=share:20%", BASE REST " budget=share:20%+3"},
        {"budget=share:0.1%+1", BASE REST " budget=share:0.1%+1"},
        {"budget=share:100%+1000000", BASE REST " budget=share:100%+1000000"},
        {"budget=share:0%+1", BASE REST " budget=share:0%+1"},
        {"budget=grpc:1:0.001", BASE REST " budget=grpc:1:0.001"},
        {"budget=grpc:1000:1000", BASE REST " budget=grpc:1000:1000"},
        {"budget-empty=give-up", BASE REST},
        {"budget-empty=wait", BASE REST " budget-empty=wait"},
        {"rate=none", BASE REST},
        {"rate=50/s", BASE REST " rate=50/s"},
        {"rate=0.001/s", BASE REST " rate=0.001/s"},
        {"rate=1000000/s", BASE REST " rate=1000000/s"},
        {"bulkhead=none", BASE REST},
        {"bulkhead=1", BASE REST " bulkhead=1"},
        {"bulkhead=1000000:0", BASE REST " bulkhead=1000000"},
        {"breaker=5:1s bulkhead=20:1500ms rate=2/s",
         BASE REST " rate=2/s bulkhead=20:1500ms breaker=5:1s"},
        {"throttle=none", BASE REST},
        {"throttle=sre", BASE REST " throttle=sre:2"},
        {"throttle=sre:1.1", BASE REST " throttle=sre:1.1"},
        {"throttle=aws bulkhead=2", BASE REST " bulkhead=2 throttle=aws"},
        {"hedge=none", BASE REST},
        {"hedge=100ms", BASE REST " hedge=100ms"},
        {"hedge=1500ms:1", BASE REST " hedge=1500ms"},
        {"hedge=1ms:3", BASE REST " hedge=1ms:3"},
        {"hedge=p95", BASE REST " hedge=p95"},
        {"breaker=5:1s hedge=p50:2 throttle=aws",
         BASE REST " throttle=aws hedge=p50:2 breaker=5:1s"},
        {"breaker=5:1s rate=2.5/s budget=100:10/s",
         BASE REST " budget=tokens:100:10/s rate=2.5/s breaker=5:1s"},
        {"breaker=none", BASE REST},
        {"breaker=5", BASE REST " breaker=5:30s-10m"},
        {"breaker=5:30s", BASE REST " breaker=5:30s"},
        {"breaker=5:30s-30s", BASE REST " breaker=5:30s"},
        {"breaker=5:30s-10m", BASE REST " breaker=5:30s-10m"},
        {"breaker=1:1ms-365d", BASE REST " breaker=1:1ms-365d"},
        {"breaker=1000000:365d", BASE REST " breaker=1000000:365d"},
        {"breaker=50%/20/10s", BASE REST " breaker=50%/20/10s:30s-10m"},
        {"breaker=50%/20/10s:1s", BASE REST " breaker=50%/20/10s:1s"},
        {"breaker=1%/1/10ms:1s-2s", BASE REST " breaker=1%/1/10ms:1s-2s"},
        {"breaker=100%/10000/24h:1s", BASE REST " breaker=100%/10000/1d:1s"},
        {"breaker=5:1s breaker-connect=3",
         BASE REST " breaker=5:1s breaker-connect=3"},
        {"breaker-connect=1000000 breaker=5:1s-2s",
         BASE REST " breaker=5:1s-2s breaker-connect=1000000"},
        {"breaker=50%/20/10s:1s breaker-connect=1",
         BASE REST " breaker=50%/20/10s:1s breaker-connect=1"},
        {"breaker=5:1s breaker-probes=3",
         BASE REST " breaker=5:1s breaker-probes=3"},
        {"breaker-probes=6/10 breaker=5:1s breaker-connect=3",
         BASE REST " breaker=5:1s breaker-connect=3 breaker-probes=6/10"},
        {"breaker=5:1s breaker-probes=31/31",
         BASE REST " breaker=5:1s breaker-probes=31"},
        {"breaker=5:1s breaker-probes=1/2",
         BASE REST " breaker=5:1s breaker-probes=1/2"},
        {"breaker=5:1s breaker-probes=1", BASE REST " breaker=5:1s"},
        {"breaker=5:1s breaker-probes=1/1", BASE REST " breaker=5:1s"},
        {"breaker-probes=1", BASE REST},
        {"breaker=50%/20/10s:1s breaker-slow=80%/2s",
         BASE REST " breaker=50%/20/10s:1s breaker-slow=80%/2s"},
        {"breaker-slow=1%/1us breaker-scope=retries breaker=50%/20/10s:1s "
         "breaker-probes=3",
         BASE REST " breaker=50%/20/10s:1s breaker-probes=3 "
                   "breaker-slow=1%/1us breaker-scope=retries"},
        {"breaker=50%/20/10s:1s breaker-slow=100%/365d",
         BASE REST " breaker=50%/20/10s:1s breaker-slow=100%/365d"},
        {"breaker=50%/20/10s:1s breaker-slow=none",
         BASE REST " breaker=50%/20/10s:1s"},
        {"breaker-slow=none", BASE REST},
        {"breaker=5:1s breaker-connect=none", BASE REST " breaker=5:1s"},
        {"breaker-connect=none", BASE REST},
        {"aws budget=none",
         "exponential base=1s cap=20s jitter=full attempts=3 deadline=2m "
         "retry=default"},
        {"broadcast breaker=none retry=503",
         "fixed base=1s jitter=none attempts=3 deadline=none "
         "attempt-timeout=10s retry=503"},
        // Nothing stays of the one before.
        {"aws budget=aws:500:14:14:5",
         "exponential base=1s cap=20s jitter=full attempts=3 deadline=2m "
         "retry=default budget=aws:500:14:14:5"},
        {"aws budget=ratio:0.1",
         "exponential base=1s cap=20s jitter=full attempts=3 deadline=2m "
         "retry=default budget=ratio:0.1"},
        {"broadcast retry=503 breaker=50%/20/10s:5s",
         "fixed base=1s jitter=none attempts=3 deadline=none "
         "attempt-timeout=10s retry=503 breaker=50%/20/10s:5s "
         "breaker-connect=3"},
        {"broadcast retry=503 breaker-connect=none",
         "fixed base=1s jitter=none attempts=3 deadline=none "
         "attempt-timeout=10s retry=503 breaker=20:200ms-30s"},
        // With the breaker goes what it counts besides, where a preset said so.
        {"webhook list=1s retry=503 breaker=none",
         "list=1s jitter=20% attempts=8 deadline=none attempt-timeout=30s "
         "retry=503"},
        {"webhook fixed jitter=full",
         "fixed base=200ms jitter=full attempts=8 deadline=none "
         "attempt-timeout=30s retry=any never=410 "
         "breaker=20:200ms-30s breaker-connect=3"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_canonical(rows[i].text, rows[i].canonical);
}

TEST(text, sets_rules)
{
    static const char start[] = BASE "attempts=3 deadline=2m ";
    static const struct {
        const char *text, *canonical; /* behind the start; NULL: the same */
    } rows[] = {
        {"retry=default", NULL},
        {"retry=none", NULL},
        {"retry=any", NULL},
        {"retry=connect,server,request,overload,database,rpc,local", NULL},
        {"retry=3xx,4xx,5xx,grpc", NULL},
        {"retry=refused,unreachable,dns,dns-temporary,connect-timeout,tls,"
         "tls-timeout,timeout,reset,protocol,invalid,circuit-open,nested,deadlock,"
         "serialization,lock-timeout,too-many-connections,connection-lost,sql,"
         "pushback,exit,error,egress,no-files,no-ports,no-buffers,interrupted,"
         "tls-handshake,outcome-unknown,transient,rejected,proxy",
         NULL},
        {"retry=100,599,503", NULL},
        {"retry=sqlstate:40P01,sqlstate:00000,sqlstate:ZZZZZ", NULL},
        {"retry=sqlstate:40p01", "retry=sqlstate:40P01"},
        {"retry=mysql:1,mysql:999999", NULL},
        {"retry=grpc:1,grpc:16", NULL},
        {"retry=curl:1,curl:999", NULL},
        {"retry=default,404", NULL},
        {"retry=404,default", "retry=default,404"},
        {"once=404", "retry=default once=404"},
        {"never=503", "retry=default never=503"},
        {"never=cancelled", "retry=default never=cancelled"},
        {"at-most=2:404", "retry=default at-most=2:404"},
        {"at-most=255:404,409", "retry=default at-most=255:404,409"},
        {"at-most=1:404", "retry=default once=404"},
        {"at-most=1:404 once=409", "retry=default once=404,409"},
        // Again, with another number.
        {"at-most=2:404 at-most=3:409 at-most=4:410",
         "retry=default at-most=2:404 at-most=3:409 at-most=4:410"},
        {"never=410 at-most=2:409 once=408 retry=any",
         "retry=any once=408 at-most=2:409 never=410"},
        // Eight limited ones, and no more.
        {"once=400,401,402,403 at-most=2:404,405,406,407",
         "retry=default once=400,401,402,403 at-most=2:404,405,406,407"},
        // The same fault by different links.
        {"retry=503 once=5xx never=server at-most=2:any",
         "retry=503 once=5xx "
         "at-most=2:any "
         "never=server"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char canonical[STG_POLICY_TEXT_MAX];

        snprintf(canonical, sizeof canonical, "%s%s", start,
                 rows[i].canonical ? rows[i].canonical : rows[i].text);
        check_canonical(rows[i].text, canonical);
    }
}

/* retry= says all; the others add to what is there. */
TEST(text, replaces_or_adds_to_the_rules_of_a_preset)
{
    static const char start[] =
        "list=5s,5m,30m,2h,5h,10h,10h jitter=20% "
        "attempts=8 deadline=none "
        "attempt-timeout=30s ";
    static const char end[] = " breaker=20:200ms-30s breaker-connect=3";
    static const struct {
        const char *words, *rules;
    } rows[] = {
        {"", "retry=any never=410"},
        {"retry=5xx", "retry=5xx"},
        {"retry=none", "retry=none"},
        {"retry=default", "retry=default"},
        {"retry=default,404", "retry=default,404"},
        {"once=404", "retry=any once=404 never=410"},
        {"never=404", "retry=any never=410,404"},
        {"at-most=3:404", "retry=any at-most=3:404 never=410"},
        // On the same link, in its place.
        {"once=410", "retry=any once=410"},
        {"at-most=3:410", "retry=any at-most=3:410"},
        {"never=any", "retry=none never=any,410"},
        {"once=any", "retry=none once=any never=410"},
        // In any order of words.
        {"once=404 retry=5xx", "retry=5xx once=404"},
        {"retry=5xx once=404", "retry=5xx once=404"},
        {"never=410 retry=5xx", "retry=5xx never=410"},
        {"retry=410", "retry=410"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[256], canonical[STG_POLICY_TEXT_MAX];

        snprintf(text, sizeof text, "webhook %s", rows[i].words);
        snprintf(canonical, sizeof canonical, "%s%s%s", start, rows[i].rules,
                 end);
        check_canonical(text, canonical);
    }
}

/* Those of the preset that retry= puts away, before or after, do not count. */
TEST(text, counts_the_rules_that_are_left)
{
    stg_policy p = policy_of(
        "broadcast once=400,401,402,403,404,405,406,407 "
        "retry=any");

    CHECK_INT(p.rule_count, 9);
    p = policy_of(
        "broadcast once=400,401,402,403,404,405 "
        "at-most=2:connect-timeout");
    CHECK_INT(p.rule_count, 15 + 8);
}

/* 60 of its own, where a preset has 16. */
TEST(text, has_room_for_64_rules_in_any_order_of_words)
{
    char list[512] = "", text[600];
    size_t at = 0;

    for (int i = 0; i < 60; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, ",%d", 300 + i);
    snprintf(text, sizeof text, "broadcast retry=any never=%s", list + 1);
    CHECK_INT(policy_of(text).rule_count, 61);
    snprintf(text, sizeof text, "broadcast never=%s retry=any", list + 1);
    CHECK_INT(policy_of(text).rule_count, 61);
}

TEST(text, leaves_no_trace_of_rules_it_replaces)
{
    static const stg_rule unused;
    stg_policy p = policy_of("broadcast retry=503 once=404");

    CHECK_INT(p.rule_count, 2);
    for (uint32_t i = p.rule_count; i < STG_RULES_MAX; i++)
        CHECK(memcmp(&p.rules[i], &unused, sizeof unused) == 0);
    p = policy_of("webhook fixed");
    for (uint32_t i = 0; i < STG_LIST_MAX; i++)
        CHECK_U64(p.backoff.list[i], 0);
}

TEST(text, writes_no_rule_behind_the_last)
{
    stg_policy p = policy_of("retry=503 once=404");
    char text[STG_POLICY_TEXT_MAX], other[STG_POLICY_TEXT_MAX];

    stg_policy_write(&p, text, sizeof text);
    p.rules[p.rule_count] = (stg_rule){STG_LINK_CODE, STG_CODE_STATUS, 2, 500};
    stg_policy_write(&p, other, sizeof other);
    CHECK_STR(other, text);
}

TEST(text, stands_between_blanks)
{
    check_canonical("  \tattempts=1\t \tdeadline=1m ",
                    BASE "attempts=1 deadline=1m retry=default");
    check_canonical("attempts=1\r\n   deadline=1m\n",
                    BASE "attempts=1 deadline=1m retry=default");
    check_canonical("\tnone", BASE "attempts=1 deadline=2m retry=default");
}

TEST(text, may_have_64_rules)
{
    char text[512] = "retry=";
    size_t at = strlen(text);
    stg_policy p;
    stg_error err;

    for (int i = 0; i < 64; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%d",
                               i > 0 ? "," : "", 300 + i);
    CHECK_INT(policy_of(text).rule_count, 64);
    snprintf(text + at, sizeof text - at, ",599");
    CHECK_INT(stg_policy_parse(&p, text, &err), STG_INVALID);
    CHECK_STR(err.text,
              "policy:1:263: 599: one rule too many, expected at most 64");
}

/* -- L6, backward: bad texts, each with its place and its reason */

#define WORD                                                                          \
    ": expected a preset as the first word, fixed, linear, exponential, polynomial, " \
    "list=, or a setting such as attempts= base= cap= jitter= deadline= "             \
    "attempt-timeout= retry= never= budget= breaker= rate= hedge="
#define FAULT                                                                     \
    ": expected a fault: any, a category (connect, server, request, overload, "   \
    "database, rpc, local), 3xx, 4xx, 5xx, grpc, a name like timeout, a status, " \
    "sqlstate:40001, mysql:1213, grpc:14, curl:28, redis:LOADING, amqp:320, "     \
    "kafka:7"
#define CODE                                                                \
    ": a code out of range, expected a status from 100 to 599, mysql:1 to " \
    "999999, grpc:1 to 16, curl:1 to 999, amqp:300 to 599 or kafka:-999 "   \
    "to 999"
#define TIME \
    ": expected a duration up to 365d in whole ns, like 200ms, 1.5s or 2h"
#define JITTER                                                                 \
    ": expected none, full, equal, decorrelated, polly, 1% to 100%, -25%:50% " \
    "(below and above) or up:1s"
#define BASE_FOR                                                                 \
    ": expected a duration above 0 and categories, each once (connect, server, " \
    "request, overload, database, rpc, local), like 1s:overload"
#define BUDGET                                                                 \
    ": expected none, aws, aws:500:14:14:5, tokens:100:10/s, ratio:0.2+10/s, " \
    "share:20%+3 or grpc:10:0.1"
#define PROBES                                                                   \
    ": expected 1 to 31 probes, all of which must be good, or so many of them, " \
    "like 3 or 6/10"
#define SLOW                                                                \
    ": expected none, or 1% to 100% of the calls and a duration of 1us to " \
    "365d from which on one is slow, like 80%/2s"
#define NOT_SLOW                                                               \
    "breaker-slow counts calls in the window of a breaker by share: expected " \
    "none, or one such as breaker=50%/20/10s:30s"
#define RATE ": expected none, or 0.001/s to 1000000/s, like 50/s"
#define THROTTLE ": expected none, aws, or sre:1 to sre:100"
#define HEDGE                                                               \
    ": expected none, or a delay of 1ms to 365d or p50 to p99, and 1 to 3 " \
    "hedges, like 100ms, p95 or p95:2"
#define BULKHEAD                                                                    \
    ": expected none, or 1 to 1000000 attempts at once and the longest wait for a " \
    "place, like 20 or 20:500ms"
#define BREAKER                                                                  \
    ": expected none, 5:30s-10m (in a row, open for) or 50%/20/10s:30s (share, " \
    "calls, window, open for)"
#define CONNECT \
    ": expected none, or 1 to 1000000 faults of category connect in a row"
#define LIMITED \
    ": one limited rule too many, expected at most 8 of once= and at-most="
#define EIGHT "1s,1s,1s,1s,1s,1s,1s,1s,"
#define AGAIN ": stands here a second time, expected once"

typedef struct bad {
    const char *text;
    uint32_t column;
    const char *message; /* behind "policy:1:COLUMN: " */
} bad;

/* Refuses with exactly these words, and touches nothing else. */
static void check_bad(const bad *b)
{
    stg_policy p, before;
    stg_error err = {.line = 77, .column = 77, .text = "not written"};
    char message[2 * sizeof err.text]; // so that no sentence of ours is cut

    memset(&p, 0x5a, sizeof p);
    memset(&before, 0x5a, sizeof before);
    snprintf(message, sizeof message, "policy:1:%u: %s", (unsigned)b->column,
             b->message);
    if (stg_policy_parse(&p, b->text, &err) != STG_INVALID)
        CHECK_STR(b->text, "refused");
    CHECK_STR(err.text, message);
    CHECK_INT(err.line, 1);
    CHECK_INT(err.column, b->column);
    CHECK(memcmp(&p, &before, sizeof p) == 0);
    CHECK_INT(stg_policy_parse(&p, b->text, NULL), STG_INVALID);
    CHECK(memcmp(&p, &before, sizeof p) == 0);
}

TEST(text, refuses_words_it_does_not_know)
{
    static const bad rows[] = {
        {"", 1, "nothing" WORD},
        {"   ", 4, "nothing" WORD},
        {"bogus", 1, "bogus" WORD},
        {"bogusbogusbogusbogusbogusbogusbogusbogusbogus", 1,
         "bogusbogusbogusbogusbogusbogusbogusbogus..." WORD},
        {"attempts=2 bogus", 12, "bogus" WORD},
        {"attempts=2 bogus=1", 12, "bogus=1" WORD},
        {"attempts", 1, "attempts: did you mean attempts=?"},
        {"attempts =2", 1, "attempts: did you mean attempts=?"},
        {"Attempts=2", 1, "Attempts=2: did you mean attempts=?"},
        {"=", 1, "=" WORD},
        {"fixed=1s", 1, "fixed=1s: did you mean fixed?"},
        {"fixedd", 1, "fixedd: did you mean fixed?"},
        {"attempts=2,base=1s", 1,
         "attempts=2,base=1s: expected 1 to 4294967295, or unlimited"},
        // A preset is the first word.
        {"attempts=3 backend", 12, "backend" WORD},
        {"attempts=3 none", 12, "none" WORD},
        {"none backend", 6, "backend" WORD},
        {"none none", 6, "none" WORD},
        {"Backend", 1, "Backend: did you mean backend?"},
        {"back", 1, "back" WORD},
        {"backends", 1, "backends: did you mean backend?"},
        {"attempts=2\f", 1,
         "attempts=2?: expected 1 to 4294967295, or unlimited"},
        {"caf\xc3\xa9", 1, "caf??" WORD},
        {"\x01\x7f\x80\xff", 1, "????" WORD},
        {"attempts=2 \t bogus", 14, "bogus" WORD},
        // A long word is cut, and so is what is said of it.
        {"thiswordhasmorelettersthanfortyandsoitiscut", 1,
         "thiswordhasmorelettersthanfortyandsoitis..." WORD},
        {"thiswordhasexactlyfortylettersandisallok", 1,
         "thiswordhasexactlyfortylettersandisallok" WORD},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_bad(&rows[i]);
}

TEST(text, refuses_values_that_it_cannot_read)
{
    static const bad rows[] = {
        {"attempts=", 1, "attempts=: expected 1 to 4294967295, or unlimited"},
        {"attempts=x", 1, "attempts=x: expected 1 to 4294967295, or unlimited"},
        {"attempts=-1", 1,
         "attempts=-1: expected 1 to 4294967295, or unlimited"},
        {"attempts=1.5", 1,
         "attempts=1.5: expected 1 to 4294967295, or unlimited"},
        {"attempts=3x", 1,
         "attempts=3x: expected 1 to 4294967295, or unlimited"},
        {"attempts=4294967296", 1,
         "attempts=4294967296: expected 1 to 4294967295, or unlimited"},
        {"attempts=none", 1,
         "attempts=none: expected 1 to 4294967295, or unlimited"},
        {"base=", 1, "base=" TIME},
        {"base=1", 1, "base=1" TIME},
        {"base=1m30s", 1, "base=1m30s" TIME},
        {"base=none", 1, "base=none" TIME},
        {"base=-1s", 1, "base=-1s" TIME},
        {"base=1.5ns", 1, "base=1.5ns" TIME},
        {"base=365.001d", 1, "base=365.001d" TIME},
        {"fixed base=366d", 7, "base=366d" TIME},
        {"base=1sx", 1, "base=1sx" TIME},
        {"base-for=", 1, "base-for=" BASE_FOR},
        {"base-for=1s", 1, "base-for=1s" BASE_FOR},
        {"base-for=1s:", 1, "base-for=1s:" BASE_FOR},
        {"base-for=0:overload", 1, "base-for=0:overload" BASE_FOR},
        {"base-for=x:overload", 1, "base-for=x:overload" BASE_FOR},
        {"base-for=1s:own", 1, "base-for=1s:own" BASE_FOR},
        {"base-for=1s:503", 1, "base-for=1s:503" BASE_FOR},
        {"base-for=1s:rpc,", 1, "base-for=1s:rpc," BASE_FOR},
        {"base-for=1s:rpc,overlaod", 1,
         "base-for=1s:rpc,overlaod: did you mean overload?"},
        {"base-for=1s:rpc base-for=2s:local,rpc", 17,
         "base-for=2s:local,rpc" BASE_FOR},
        {"base-fro=1s:rpc", 1, "base-fro=1s:rpc: did you mean base-for=?"},
        {"retry-after-max=none", 1, "retry-after-max=none" TIME},
        {"power=1", 1, "power=1: expected 2 to 10, like 4"},
        {"power=11", 1, "power=11: expected 2 to 10, like 4"},
        {"power=2.5", 1, "power=2.5: expected 2 to 10, like 4"},
        {"power=x", 1, "power=x: expected 2 to 10, like 4"},
        {"offset=", 1, "offset=" TIME},
        {"count-from=2", 1, "count-from=2: expected 0 or 1"},
        {"retry-after=", 1, "retry-after=: expected floor, exact or ignore"},
        {"retry-after=1h", 1,
         "retry-after=1h: expected floor, exact or ignore"},
        {"retry-after=exakt", 1, "retry-after=exakt: did you mean exact?"},
        {"cap=x", 1,
         "cap=x: expected none, or a duration up to 365d, like 30s"},
        {"cap=nonesuch", 1,
         "cap=nonesuch: expected none, or a duration up to 365d, like 30s"},
        {"factor=", 1, "factor=: expected 1 to 100, like 2 or 1.5"},
        {"factor=2x", 1, "factor=2x: expected 1 to 100, like 2 or 1.5"},
        {"factor=1e3", 1, "factor=1e3: expected 1 to 100, like 2 or 1.5"},
        {"factor=1.", 1, "factor=1.: expected 1 to 100, like 2 or 1.5"},
        {"factor=1.0001", 1, "factor=1.0001: expected 1 to 100, like 2 or 1.5"},
        {"factor=4294968", 1,
         "factor=4294968: expected 1 to 100, like 2 or 1.5"},
        {"jitter=", 1, "jitter=" JITTER},
        {"jitter=half", 1, "jitter=half" JITTER},
        {"jitter=50", 1, "jitter=50" JITTER},
        {"jitter=50%%", 1, "jitter=50%%" JITTER},
        {"jitter=1.5%", 1, "jitter=1.5%" JITTER},
        {"jitter=-5%", 1, "jitter=-5%" JITTER},
        {"jitter=-5%:", 1, "jitter=-5%:" JITTER},
        {"jitter=-x%:5%", 1, "jitter=-x%:5%" JITTER},
        {"jitter=-5%:5", 1, "jitter=-5%:5" JITTER},
        {"jitter=-5%:5%%", 1, "jitter=-5%:5%%" JITTER},
        {"jitter=up", 1, "jitter=up: did you mean up:?"},
        {"jitter=up:", 1, "jitter=up:" JITTER},
        {"jitter=up:1", 1, "jitter=up:1" JITTER},
        {"jitter=up:1sx", 1, "jitter=up:1sx" JITTER},
        {"deadline=1x", 1,
         "deadline=1x: expected none, or a duration up to 365d, like 2m"},
        {"attempt-timeout=", 1,
         "attempt-timeout=: expected none, or a duration up to 365d, like 10s"},
        {"reset-after=1", 1,
         "reset-after=1: expected none, or a duration up to 365d, like 1m"},
        {"budget=", 1, "budget=" BUDGET},
        {"budget=x", 1, "budget=x" BUDGET},
        {"budget=nonesuch", 1, "budget=nonesuch" BUDGET},
        {"budget=aws2", 1, "budget=aws2: did you mean aws?"},
        {"budget=aws:", 1, "budget=aws:" BUDGET},
        {"budget=aws:500", 1, "budget=aws:500" BUDGET},
        {"budget=aws:500:14:14", 1, "budget=aws:500:14:14" BUDGET},
        {"budget=aws:500:14:14:", 1, "budget=aws:500:14:14:" BUDGET},
        {"budget=aws:500:14:14:5x", 1, "budget=aws:500:14:14:5x" BUDGET},
        {"budget=aws:500:14:14:5:5", 1, "budget=aws:500:14:14:5:5" BUDGET},
        {"budget=aws:500:14.5:14:5", 1, "budget=aws:500:14.5:14:5" BUDGET},
        {"budget=tokens:", 1, "budget=tokens:" BUDGET},
        {"budget=tokens:100", 1, "budget=tokens:100" BUDGET},
        {"budget=100", 1, "budget=100" BUDGET},
        {"budget=100:", 1, "budget=100:" BUDGET},
        {"budget=100:10", 1, "budget=100:10" BUDGET},
        {"budget=100:10/m", 1, "budget=100:10/m" BUDGET},
        {"budget=100:10/sx", 1, "budget=100:10/sx" BUDGET},
        {"budget=ratio:", 1, "budget=ratio:" BUDGET},
        {"rate=", 1, "rate=" RATE},
        {"rate=0/s", 1, "rate=0/s" RATE},
        {"rate=50", 1, "rate=50" RATE},
        {"rate=50/m", 1, "rate=50/m" RATE},
        {"rate=50/sx", 1, "rate=50/sx" RATE},
        {"rate=-1/s", 1, "rate=-1/s" RATE},
        {"bulkhead=", 1, "bulkhead=" BULKHEAD},
        {"bulkhead=0", 1, "bulkhead=0" BULKHEAD},
        {"bulkhead=0:1s", 1, "bulkhead=0:1s" BULKHEAD},
        {"bulkhead=5:", 1, "bulkhead=5:" BULKHEAD},
        {"bulkhead=5/1s", 1, "bulkhead=5/1s" BULKHEAD},
        {"bulkhead=5:1sx", 1, "bulkhead=5:1sx" BULKHEAD},
        {"bulkhead=x", 1, "bulkhead=x" BULKHEAD},
        {"bulkheda=5", 1, "bulkheda=5: did you mean bulkhead=?"},
        {"throttle=", 1, "throttle=" THROTTLE},
        {"throttle=sre:", 1, "throttle=sre:" THROTTLE},
        {"throttle=sre2", 1, "throttle=sre2: did you mean sre?"},
        {"throttle=sre:2x", 1, "throttle=sre:2x" THROTTLE},
        {"throttle=aws:2", 1, "throttle=aws:2: did you mean aws?"},
        {"hedge=", 1, "hedge=" HEDGE},
        {"hedge=p", 1, "hedge=p" HEDGE},
        {"hedge=p0", 1, "hedge=p0" HEDGE},
        {"hedge=p95x", 1, "hedge=p95x" HEDGE},
        {"hedge=x", 1, "hedge=x" HEDGE},
        {"hedge=1s:", 1, "hedge=1s:" HEDGE},
        {"hedge=1s:0", 1, "hedge=1s:0" HEDGE},
        {"hedge=1s:2x", 1, "hedge=1s:2x" HEDGE},
        {"hedge=1s/2", 1, "hedge=1s/2" HEDGE},
        {"hegde=1s", 1, "hegde=1s: did you mean hedge=?"},
        {"rate=50/s rate=50/s", 11, "rate=50/s" AGAIN},
        {"budget=ratio:x", 1, "budget=ratio:x" BUDGET},
        {"budget=ratio:0.2x", 1, "budget=ratio:0.2x" BUDGET},
        {"budget=ratio:0.2+", 1, "budget=ratio:0.2+" BUDGET},
        {"budget=ratio:0.2+10", 1, "budget=ratio:0.2+10" BUDGET},
        {"budget=ratio:0.2+10/sx", 1, "budget=ratio:0.2+10/sx" BUDGET},
        {"budget=share:", 1, "budget=share:" BUDGET},
        {"budget=share:20", 1, "budget=share:20" BUDGET},
        {"budget=share:20.01%", 1, "budget=share:20.01%" BUDGET},
        {"budget=share:20%x", 1, "budget=share:20%x" BUDGET},
        {"budget=share:20%+", 1, "budget=share:20%+" BUDGET},
        {"budget=share:20%+3x", 1, "budget=share:20%+3x" BUDGET},
        {"budget=share:20%+1/s", 1, "budget=share:20%+1/s" BUDGET},
        {"budget=grpc:", 1, "budget=grpc:" BUDGET},
        {"budget=grpc:10", 1, "budget=grpc:10" BUDGET},
        {"budget=grpc:10:", 1, "budget=grpc:10:" BUDGET},
        {"budget=grpc:10:0.1x", 1, "budget=grpc:10:0.1x" BUDGET},
        {"budget-empty=", 1, "budget-empty=: expected give-up or wait"},
        {"budget-empty=waits", 1, "budget-empty=waits: did you mean wait?"},
        {"breaker-scope=", 1, "breaker-scope=: expected attempts or retries"},
        {"breaker-scope=retrie", 1,
         "breaker-scope=retrie: did you mean retries?"},
        {"breaker=", 1, "breaker=" BREAKER},
        {"breaker=x", 1, "breaker=x" BREAKER},
        {"breaker=nonesuch", 1, "breaker=nonesuch" BREAKER},
        {"breaker=none:1s", 1, "breaker=none:1s: did you mean none?"},
        {"breaker=4294967296", 1, "breaker=4294967296" BREAKER},
        {"breaker=5x", 1, "breaker=5x" BREAKER},
        {"breaker=5:", 1, "breaker=5:" BREAKER},
        {"breaker=5:x", 1, "breaker=5:x" BREAKER},
        {"breaker=5:30s-", 1, "breaker=5:30s-" BREAKER},
        {"breaker=5:-30s", 1, "breaker=5:-30s" BREAKER},
        {"breaker=5:30s-x", 1, "breaker=5:30s-x" BREAKER},
        {"breaker=5:30s-10m-1h", 1, "breaker=5:30s-10m-1h" BREAKER},
        {"breaker=5:30s:10m", 1, "breaker=5:30s:10m" BREAKER},
        {"breaker=50%", 1, "breaker=50%" BREAKER},
        {"breaker=50%/", 1, "breaker=50%/" BREAKER},
        {"breaker=50%20/10s", 1, "breaker=50%20/10s" BREAKER},
        {"breaker=50%/20", 1, "breaker=50%/20" BREAKER},
        {"breaker=50%/20x10s", 1, "breaker=50%/20x10s" BREAKER},
        {"breaker=50%/20/", 1, "breaker=50%/20/" BREAKER},
        {"breaker=50%/20/x", 1, "breaker=50%/20/x" BREAKER},
        {"breaker=50%/20/:30s", 1, "breaker=50%/20/:30s" BREAKER},
        {"breaker=5 breaker-probes=", 11, "breaker-probes=" PROBES},
        {"breaker=5 breaker-probes=0", 11, "breaker-probes=0" PROBES},
        {"breaker=5 breaker-probes=0/3", 11, "breaker-probes=0/3" PROBES},
        {"breaker=5 breaker-probes=3/", 11, "breaker-probes=3/" PROBES},
        {"breaker=5 breaker-probes=4/3", 11, "breaker-probes=4/3" PROBES},
        {"breaker=5 breaker-probes=3/32", 11, "breaker-probes=3/32" PROBES},
        {"breaker=5 breaker-probes=32", 11, "breaker-probes=32" PROBES},
        {"breaker=5 breaker-probes=3x", 11, "breaker-probes=3x" PROBES},
        {"breaker=5 breaker-probes=3/4x", 11, "breaker-probes=3/4x" PROBES},
        {"breaker=5 breaker-probes=x", 11, "breaker-probes=x" PROBES},
        {"breaker-slow=", 1, "breaker-slow=" SLOW},
        {"breaker-slow=80", 1, "breaker-slow=80" SLOW},
        {"breaker-slow=80%", 1, "breaker-slow=80%" SLOW},
        {"breaker-slow=80%/", 1, "breaker-slow=80%/" SLOW},
        {"breaker-slow=0%/2s", 1, "breaker-slow=0%/2s" SLOW},
        {"breaker-slow=80/2s", 1, "breaker-slow=80/2s" SLOW},
        {"breaker-slow=80%/2", 1, "breaker-slow=80%/2" SLOW},
        {"breaker-slow=80%/2s:", 1, "breaker-slow=80%/2s:" SLOW},
        {"breaker-slow=80%/366d", 1, "breaker-slow=80%/366d" SLOW},
        {"breaker-slow=2s", 1, "breaker-slow=2s" SLOW},
        {"breaker-slow=non", 1, "breaker-slow=non: did you mean none?"},
        {"breaker=5 breaker-connect=", 11, "breaker-connect=" CONNECT},
        {"breaker=5 breaker-connect=0", 11, "breaker-connect=0" CONNECT},
        {"breaker=5 breaker-connect=x", 11, "breaker-connect=x" CONNECT},
        {"breaker=5 breaker-connect=3x", 11, "breaker-connect=3x" CONNECT},
        {"breaker=50%/20/10s:", 1, "breaker=50%/20/10s:" BREAKER},
        {"unsafe=", 1, "unsafe=: expected yes or no"},
        {"unsafe=maybe", 1, "unsafe=maybe: expected yes or no"},
        {"nested=", 1, "nested=: expected once or full"},
        {"nested=twice", 1, "nested=twice: expected once or full"},
        {"list=", 1, "list=: expected 1 to 64 durations, like 5s,5m,30m"},
        {"list=5x", 1, "list=5x: expected 1 to 64 durations, like 5s,5m,30m"},
        {"list=5s,", 1, "list=5s,: expected 1 to 64 durations, like 5s,5m,30m"},
        {"list=,5s", 1, "list=,5s: expected 1 to 64 durations, like 5s,5m,30m"},
        {"list=1s,,2s", 1,
         "list=1s,,2s: expected 1 to 64 durations, like 5s,5m,30m"},
        {"list=366d", 1,
         "list=366d: expected 1 to 64 durations, like 5s,5m,30m"},
        {"fixed attempts=2 list=", 18,
         "list=: stands here a second time, expected once"},
        {"list=" EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT "1s", 1,
         "list=1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s...: expected 1 to 64 "
         "durations, like 5s,5m,30m"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_bad(&rows[i]);
}

TEST(text, refuses_values_that_are_out_of_range)
{
    static const bad rows[] = {
        {"attempts=0", 1,
         "attempts=0 is out of range, expected 1 to 4294967295, or unlimited"},
        {"base=1s attempts=0", 9,
         "attempts=0 is out of range, expected 1 to 4294967295, or unlimited"},
        {"cap=0", 1,
         "cap=0 is out of range, expected more than 0, to 365d, or none"},
        {"cap=100ms", 1, "cap=100ms is below base=200ms"},
        {"cap=1s base=2s", 1, "cap=1s is below base=2s"},
        {"base=2s cap=1s", 9, "cap=1s is below base=2s"},
        // The cap is the preset's: what the text says is the base.
        {"aws base=30s", 5, "cap=20s is below base=30s"},
        {"aws attempts=2 base=30s", 16, "cap=20s is below base=30s"},
        {"factor=0.999", 1, "factor=0.999 is out of range, expected 1 to 100"},
        {"factor=0", 1, "factor=0 is out of range, expected 1 to 100"},
        {"fixed factor=100.001", 7,
         "factor=100.001 is out of range, expected 1 to 100"},
        {"jitter=0%", 1, "jitter=0% is out of range, expected 1% to 100%"},
        {"jitter=101%", 1, "jitter=101% is out of range, expected 1% to 100%"},
        {"jitter=-0%:0%", 1, "jitter=0% is out of range, expected 1% to 100%"},
        {"jitter=-5%:101%", 1,
         "jitter=101% is out of range, expected 1% to 100%"},
        {"jitter=pollyx", 1, "jitter=pollyx: did you mean polly?"},
        {"jitter=Polly", 1, "jitter=Polly: did you mean polly?"},
        {"jitter=up:0", 1,
         "jitter=0 is out of range, expected up: and more than 0, to 365d"},
        {"deadline=0", 1,
         "deadline=0 is out of range, expected more than 0, to 365d, or none"},
        {"attempts=2 attempt-timeout=0", 12,
         "attempt-timeout=0 is out of range, expected more than 0, to 365d, or "
         "none"},
        {"attempts=2 power=4", 12,
         "power=4 is out of range, expected none but for polynomial"},
        {"offset=1s fixed", 1,
         "offset=1s is out of range, expected none but for linear and "
         "polynomial"},
        {"attempts=2 linear jitter=polly", 19,
         "jitter=polly is for exponential with factor=2"},
        {"jitter=polly factor=3", 1,
         "jitter=polly is for exponential with factor=2"},
        {"jitter=polly floor=1s", 14, "floor has no meaning for jitter=polly"},
        {"jitter=polly base-for=1s:server", 14,
         "base-for has no meaning for jitter=polly, whose waits go on from "
         "each other"},
        {"list=1s count-from=0", 9, "count-from is for linear and polynomial"},
        {"linear offset=5m cap=2m", 18, "cap=2m is below offset=5m"},
        {"attempts=2 reset-after=0", 12,
         "reset-after=0 is out of range, expected more than 0, to 365d, or none"},
        {"cap=1m budget=tokens:0:10/s", 8,
         "budget capacity=0 is out of range, expected 1 to 1000000 tokens"},
        {"budget=1000001:10/s", 1,
         "budget capacity=1000001 is out of range, expected 1 to 1000000 tokens"},
        {"budget=100:0/s", 1,
         "budget rate=0 is out of range, expected 0.001/s to 1000000/s"},
        {"budget=100:1000000.001/s", 1,
         "budget rate=1000000.001 is out of range, expected 0.001/s to "
         "1000000/s"},
        {"attempts=3 budget=ratio:0", 12,
         "budget ratio and floor are both 0, and would refuse every retry; "
         "expected attempts=1 for that"},
        {"attempts=3 bulkhead=1000001", 12,
         "bulkhead=1000001 is out of range, expected 1 to 1000000 attempts at "
         "once, or none"},
        {"attempts=3 throttle=sre:0.999", 12,
         "throttle k=0.999 is out of range, expected 1 to 100"},
        {"attempts=3 hedge=1s:4", 12,
         "hedge=4 is out of range, expected 1 to 3 further attempts, or none"},
        {"attempts=3 hedge=p49", 12,
         "hedge percentile=49 is out of range, expected 50 to 99"},
        {"attempts=3 hedge=0", 12,
         "hedge delay=0 is out of range, expected 1ms to 365d"},
        {"attempts=3 rate=1000000.001/s", 12,
         "rate=1000000.001 is out of range, expected 0.001/s to 1000000/s, or "
         "none"},
        {"budget=ratio:10.001", 1,
         "budget ratio=10.001 is out of range, expected 0 to 10"},
        {"budget=ratio:1+1000000.001/s", 1,
         "budget rate=1000000.001 is out of range, expected 0/s to 1000000/s"},
        {"budget=share:100.1%", 1,
         "budget share=1.001 is out of range, expected 0 to 1, which is 0% to "
         "100%"},
        {"budget=share:20%+1000001", 1,
         "budget floor=1000001 is out of range, expected 1 to 1000000 retries at "
         "once"},
        {"budget=grpc:0:1", 1,
         "budget capacity=0 is out of range, expected 1 to 1000 tokens"},
        {"budget=grpc:1001:1", 1,
         "budget capacity=1001 is out of range, expected 1 to 1000 tokens"},
        {"budget=grpc:10:0", 1,
         "budget ratio=0 is out of range, expected 0.001 to 1000"},
        {"budget=grpc:10:1000.001", 1,
         "budget ratio=1000.001 is out of range, expected 0.001 to 1000"},
        {"nested=once breaker=0", 13,
         "breaker failures=0 is out of range, expected 1 to 1000000"},
        {"breaker=1000001", 1,
         "breaker failures=1000001 is out of range, expected 1 to 1000000"},
        {"breaker=5:0", 1,
         "breaker open=0 is out of range, expected 1ms to 365d"},
        {"breaker=5:999us", 1,
         "breaker open=999us is out of range, expected 1ms to 365d"},
        {"breaker=5:30s-29s", 1,
         "breaker open_max=29s is out of range, expected its first opening to "
         "365d"},
        {"breaker=0%/20/10s", 1,
         "breaker percent=0 is out of range, expected 1 to 100"},
        {"breaker=101%/20/10s", 1,
         "breaker percent=101 is out of range, expected 1 to 100"},
        {"breaker=50%/0/10s", 1,
         "breaker calls=0 is out of range, expected 1 to 10000"},
        {"breaker=50%/10001/10s", 1,
         "breaker calls=10001 is out of range, expected 1 to 10000"},
        {"breaker=50%/20/9ms", 1,
         "breaker window=9ms is out of range, expected 10ms to 1d"},
        {"breaker=5 breaker-connect=1000001", 11,
         "breaker-connect=1000001 is out of range, expected none, or 1 to "
         "1000000"},
        {"breaker=50%/20/10s breaker-slow=101%/2s", 20,
         "breaker-slow percent=101 is out of range, expected 1 to 100"},
        {"breaker=50%/20/10s breaker-slow=80%/0", 20,
         "breaker-slow duration=0 is out of range, expected 1us to 365d"},
        {"breaker=50%/20/10s breaker-slow=80%/999ns", 20,
         "breaker-slow duration=999ns is out of range, expected 1us to 365d"},
        {"breaker=5 breaker-slow=80%/2s", 11, NOT_SLOW},
        {"attempts=3 breaker-slow=80%/2s", 12, NOT_SLOW},
        {"breaker=none breaker-slow=80%/2s", 14, NOT_SLOW},
        {"attempts=3 breaker-probes=3", 12,
         "breaker-probes=3 is out of range, expected 1 where breaker=none"},
        {"breaker-connect=3", 1,
         "breaker-connect=3 is out of range, expected none where breaker=none"},
        {"broadcast breaker-connect=3 breaker=none", 11,
         "breaker-connect=3 is out of range, expected none where breaker=none"},
        {"breaker=50%/20/25h", 1,
         "breaker window=25h is out of range, expected 10ms to 1d"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_bad(&rows[i]);
}

/* A letter of the middle left out, and two of them swapped: each leads to the
 * word, wherever the text has it, or to another that is as near. */
static void check_slips(const char *before, const char *word, const char *tail)
{
    size_t length = strlen(word), at = length / 2;
    char text[2][96], expected[64];
    stg_policy p;
    stg_error err;

    snprintf(expected, sizeof expected, "did you mean %s%s?", word, tail);
    snprintf(text[0], sizeof *text, "%s%.*s%s%s", before, (int)at, word,
             word + at + 1, tail);
    snprintf(text[1], sizeof *text, "%s%.*s%c%c%s%s", before, (int)at - 1, word,
             word[at], word[at - 1], word + at + 1, tail);
    for (int i = 0; i < (word[at] == word[at - 1] ? 1 : 2); i++)
        if (stg_policy_parse(&p, text[i], &err) != STG_OK)
            if (strstr(err.text, expected) == NULL)
                CHECK_STR(err.text, text[i]);
}

TEST(text, suggests_the_word_that_was_meant)
{
    static const char *const keys[] = {
        "attempts",      "base",           "cap",
        "factor",        "jitter",         "deadline",
        "reset-after",   "budget-empty",   "attempt-timeout",
        "budget",        "breaker",        "retry-after-max",
        "unsafe",        "nested",         "breaker-connect",
        "breaker-scope", "breaker-probes", "breaker-slow",
        "list",          "retry",          "once",
        "never",         "at-most"};
    const stg_preset *preset;

    for (size_t i = 0; i < COUNT(keys); i++) {
        check_slips("", keys[i], "=");
        check_slips("fixed ", keys[i], "=");
    }
    check_slips("", "fixed", "");
    check_slips("base=1s ", "linear", "");
    check_slips("base=1s ", "exponential", "");
    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++)
        check_slips("", preset->name, "");
}

TEST(text, suggests_the_value_that_was_meant)
{
    static const char *const rows[][2] = {{"attempts=", "unlimited"},
                                          {"cap=", "none"},
                                          {"deadline=", "none"},
                                          {"attempt-timeout=", "none"},
                                          {"reset-after=", "none"},
                                          {"jitter=", "none"},
                                          {"jitter=", "full"},
                                          {"jitter=", "equal"},
                                          {"jitter=", "decorrelated"},
                                          {"budget=", "none"},
                                          {"budget=", "aws"},
                                          {"budget-empty=", "give-up"},
                                          {"budget-empty=", "wait"},
                                          {"breaker=", "none"},
                                          {"breaker-connect=", "none"},
                                          {"unsafe=", "yes"},
                                          {"breaker-scope=", "attempts"},
                                          {"breaker-scope=", "retries"},
                                          {"nested=", "once"},
                                          {"nested=", "full"},
                                          {"retry-after=", "floor"},
                                          {"retry-after=", "exact"},
                                          {"retry-after=", "ignore"},
                                          {"rate=", "none"},
                                          {"base-for=1s:", "connect"},
                                          {"base-for=1s:server,", "overload"},
                                          {"base-for=x:", "database"}};
    static const bad others[] = {
        {"budget=tokens", 1, "budget=tokens: did you mean tokens:?"},
        {"jitter=up", 1, "jitter=up: did you mean up:?"},
        {"base-for=1s:locl", 1, "base-for=1s:locl: did you mean local?"},
        {"base-for=1s:overlod,x", 1,
         "base-for=1s:overlod,x: did you mean overload?"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_slips(rows[i][0], rows[i][1], "");
    check_slips("budget=", "tokens", ":");
    check_slips("budget=", "ratio", ":");
    check_slips("budget=", "grpc", ":");
    check_slips("budget=", "share", ":");
    check_slips("budget=", "aws", ":");
    for (size_t i = 0; i < COUNT(others); i++)
        check_bad(&others[i]);
}

/* What is said of a fault that lacks its second letter. */
static const char *fault_slip(stg_fault fault)
{
    const char *name = stg_fault_about(fault)->name;
    static stg_error err;
    stg_policy p;
    char text[64];

    snprintf(text, sizeof text, "never=%c%s", *name, name + 2);
    if (strlen(name) == 3) // would be like others
        return name;
    CHECK_INT(stg_policy_parse(&p, text, &err), STG_INVALID);
    return err.text;
}

TEST(text, suggests_the_fault_that_was_meant)
{
    static const bad rows[] = {
        {"retry=timeuot", 7, "timeuot: did you mean timeout?"},
        {"never=connetc", 7, "connetc: did you mean connect?"},
        {"never=5x", 7, "5x: did you mean 5xx?"},
        {"never=3x", 7, "3x: did you mean 3xx?"},
        {"never=gpc", 7, "gpc: did you mean grpc?"},
        {"never=loacl", 7, "loacl: did you mean local?"},
        {"never=ay", 7, "ay: did you mean any?"},
        {"never=sqlsate:40001", 7, "sqlsate:40001: did you mean sqlstate:?"},
        {"never=mysq:1213", 7, "mysq:1213: did you mean mysql:?"},
        {"never=gpc:14", 7, "gpc:14: did you mean grpc:?"},
        {"never=crul:28", 7, "crul:28: did you mean curl:?"},
        {"never=curl", 7, "curl: did you mean curl:?"},
        {"never=redis:LODING", 7, "redis:LODING: did you mean LOADING?"},
        {"never=grpc:UNAVAILBLE", 7,
         "grpc:UNAVAILBLE: did you mean UNAVAILABLE?"},
        {"never=amqp:resource-lockd", 7,
         "amqp:resource-lockd: did you mean amqp:resource-locked?"},
        {"retry=defalt", 7, "defalt: did you mean default?"},
        {"retry=noen", 7, "noen: did you mean none?"},
        {"never=defalt", 7, "defalt" FAULT},
        {"never=onw", 7, "onw" FAULT}, // the category own is no word of it
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_bad(&rows[i]);
    for (unsigned i = 1; i < STG_FAULT_COUNT; i++)
        if (stg_fault_has_name((stg_fault)i) && i != STG_FAULT_CANCELLED)
            CHECK(strstr(fault_slip((stg_fault)i),
                         stg_fault_about((stg_fault)i)->name) != NULL);
}

TEST(text, refuses_faults_it_does_not_know)
{
    static const bad rows[] = {
        {"retry=", 7, "nothing" FAULT},
        {"retry=bogus", 7, "bogus" FAULT},
        {"retry=503,", 11, "nothing" FAULT},
        {"retry=,503", 7, "nothing" FAULT},
        {"retry=503,,504", 11, "nothing" FAULT},
        {"retry=6xx", 7, "6xx: did you mean 5xx?"},
        {"retry=ok", 7, "ok" FAULT},
        {"retry=other", 7, "other" FAULT},
        {"retry=timeouts", 7, "timeouts: did you mean timeout?"},
        {"retry=503x", 7, "503x" FAULT},
        {"retry=-503", 7, "-503" FAULT},
        {"retry=5 03", 7, "5" CODE},
        {"retry=tls:42", 7, "tls:42: did you mean tls?"},
        {"retry=mysql:", 7, "mysql:" FAULT},
        {"retry=mysql:x", 7, "mysql:x" FAULT},
        {"retry=grpc:", 7, "grpc:" FAULT},
        {"retry=curl:28x", 7, "curl:28x" FAULT},
        {"retry=exit:3", 7, "exit:3: did you mean exit?"},
        {"retry=sqlstate:", 7, "sqlstate:" FAULT},
        {"retry=sqlstate:4000", 7, "sqlstate:4000" FAULT},
        {"retry=sqlstate:400011", 7, "sqlstate:400011" FAULT},
        {"retry=sqlstate:40001123", 7, "sqlstate:40001123" FAULT},
        {"retry=sqlstate:40-01", 7, "sqlstate:40-01" FAULT},
        {"attempts=3 once=x", 17, "x" FAULT},
        {"never=x", 7, "x" FAULT},
        {"once=", 6, "nothing" FAULT},
        {"never=", 7, "nothing" FAULT},
        {"at-most=2:", 11, "nothing" FAULT},
        {"at-most=2:503,x", 15, "x" FAULT},
        // Sets, which stand in retry= alone.
        {"once=default", 6, "default" FAULT},
        {"never=default", 7, "default" FAULT},
        {"at-most=2:default", 11, "default" FAULT},
        {"once=none", 6, "none" FAULT},
        {"never=none", 7, "none" FAULT},
        {"retry=none,503", 7, "none" FAULT},
        {"retry=503,none", 11, "none" FAULT},
        {"retry=default,none", 15, "none" FAULT},
        // Codes out of range.
        {"retry=0", 7, "0" CODE},
        {"retry=99", 7, "99" CODE},
        {"retry=600", 7, "600" CODE},
        {"retry=503100", 7, "503100" CODE},
        {"retry=amqp:299", 7, "amqp:299" CODE},
        {"retry=amqp:600", 7, "amqp:600" CODE},
        {"retry=kafka:0", 7, "kafka:0" CODE},
        {"retry=kafka:1000", 7, "kafka:1000" CODE},
        {"retry=kafka:-1000", 7, "kafka:-1000" CODE},
        {"retry=redis:29", 7, "redis:29" CODE},
        {"retry=mysql:0", 7, "mysql:0" CODE},
        {"retry=mysql:1000000", 7, "mysql:1000000" CODE},
        {"retry=grpc:0", 7, "grpc:0" CODE},
        {"retry=grpc:17", 7, "grpc:17" CODE},
        {"retry=curl:0", 7, "curl:0" CODE},
        {"retry=curl:1000", 7, "curl:1000" CODE},
        // A cancelled operation is never retried.
        {"retry=cancelled", 7,
         "cancelled: what was cancelled is never retried"},
        {"once=503,cancelled", 10,
         "cancelled: what was cancelled is never retried"},
        {"at-most=2:cancelled", 11,
         "cancelled: what was cancelled is never retried"},
        // Limits.
        {"at-most=", 1,
         "at-most=: expected 1 to 255 and faults, like at-most=2:timeout,reset"},
        {"at-most=2", 1,
         "at-most=2: expected 1 to 255 and faults, like at-most=2:timeout,reset"},
        {"at-most=0:503", 1,
         "at-most=0:503: expected 1 to 255 and faults, like "
         "at-most=2:timeout,reset"},
        {"fixed at-most=256:503", 7,
         "at-most=256:503: expected 1 to 255 and faults, like "
         "at-most=2:timeout,reset"},
        {"at-most=x:503", 1,
         "at-most=x:503: expected 1 to 255 and faults, like "
         "at-most=2:timeout,reset"},
        {"once=500,501,502,503,504,505,506,507,508", 38, "508" LIMITED},
        {"fixed once=500,501,502,503,504,505,506,507,508,x", 44, "508" LIMITED},
        {"at-most=2:500,501,502,503 once=504,505,506,507 at-most=3:508", 58,
         "508" LIMITED},
        // One of them is the preset's.
        {"broadcast once=500,501,502,503,504,505,506", 40, "506" LIMITED},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_bad(&rows[i]);
}

/* No policy can name our own doing as a whole, nor what is left over. */
TEST(text, does_not_take_a_category_of_our_own_for_cancelled)
{
    static const bad rows[] = {
        {"retry=own", 7, "own" FAULT},
        {"never=own", 7, "own" FAULT},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_bad(&rows[i]);
}

TEST(text, refuses_what_stands_there_twice)
{
    static const bad rows[] = {
        {"attempts=3 attempts=4", 12, "attempts=4" AGAIN},
        {"attempts=3 attempts=3", 12, "attempts=3" AGAIN},
        {"base=1s base=2s", 9, "base=2s" AGAIN},
        {"cap=40s cap=50s", 9, "cap=50s" AGAIN},
        {"factor=2 factor=3", 10, "factor=3" AGAIN},
        {"jitter=none jitter=50%", 13, "jitter=50%" AGAIN},
        {"deadline=1s deadline=2s", 13, "deadline=2s" AGAIN},
        {"attempt-timeout=1s attempt-timeout=2s", 20,
         "attempt-timeout=2s" AGAIN},
        {"retry-after-max=1s retry-after-max=2s", 20,
         "retry-after-max=2s" AGAIN},
        {"reset-after=1s reset-after=2s", 16, "reset-after=2s" AGAIN},
        {"budget=none budget=aws", 13, "budget=aws" AGAIN},
        {"budget-empty=wait budget-empty=wait", 19, "budget-empty=wait" AGAIN},
        {"breaker=5 breaker=6", 11, "breaker=6" AGAIN},
        {"unsafe=yes unsafe=no", 12, "unsafe=no" AGAIN},
        {"nested=full nested=once", 13, "nested=once" AGAIN},
        {"retry=503 retry=504", 11, "retry=504" AGAIN},
        {"once=503 once=504", 10, "once=504" AGAIN},
        {"never=503 never=504", 11, "never=504" AGAIN},
        // One kind, whichever.
        {"fixed fixed", 7, "fixed" AGAIN},
        {"fixed linear", 7, "linear" AGAIN},
        {"linear attempts=2 exponential", 19, "exponential" AGAIN},
        {"list=1s fixed", 9, "fixed" AGAIN},
        {"exponential list=1s", 13, "list=1s" AGAIN},
        {"list=1s list=2s", 9, "list=2s" AGAIN},
        {"webhook list=1s fixed", 17, "fixed" AGAIN},
        {"backend attempts=2 attempts=3", 20, "attempts=3" AGAIN},
        {"retry=default,default", 15, "default: stands here twice"},
        {"retry=default,503,default", 19, "default: stands here twice"},
        // A fault: both places are told.
        {"retry=503,503", 11, "503: a second rule on it, the first is at 1:7"},
        {"once=503 never=503", 16,
         "503: a second rule on it, the first is at 1:6"},
        {"never=503 retry=5xx,503", 21,
         "503: a second rule on it, the first is at 1:7"},
        {"at-most=2:timeout at-most=3:timeout", 29,
         "timeout: a second rule on it, the first is at 1:11"},
        {"retry=any,any", 11, "any: a second rule on it, the first is at 1:7"},
        {"retry=sqlstate:40P01 once=sqlstate:40p01", 27,
         "sqlstate:40p01: a second rule on it, the first is at 1:7"},
        {"webhook once=410 never=410", 24,
         "410: a second rule on it, the first is at 1:14"},
        {"backend once=404 retry=404", 24,
         "404: a second rule on it, the first is at 1:14"},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_bad(&rows[i]);
}

/* Whatever the bytes: a policy that can be printed, or a place in the text. */
TEST(text, refuses_any_bytes_with_a_place_within_them)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_policy p = any_policy(&rng), read;
        char text[STG_POLICY_TEXT_MAX] = "broadcast";
        stg_error err;
        size_t length;

        (void)stg_policy_print(&p, text);
        length = strlen(text);
        for (uint64_t i = stg_rng_upto(&rng, 2); i < 3; i++)
            text[stg_rng_upto(&rng, length - 1)] =
                one_in(&rng, 4) ? (char)stg_rng_next(&rng)
                                : text[stg_rng_upto(&rng, length - 1)];
        length = strlen(text);
        if (stg_policy_parse(&read, text, &err) == STG_OK) {
            check_inverse(seed, &read);
            continue;
        }
        CHECK_FROM(seed, err.line == 1);
        CHECK_FROM(seed, err.column >= 1 && err.column <= length + 1);
        CHECK_FROM(seed, strncmp(err.text, "policy:1:", 9) == 0);
        CHECK_FROM(seed, strlen(err.text) < sizeof err.text);
    }
}

TEST(text, needs_a_text_and_a_place)
{
    stg_policy p = stg_policy_default();
    stg_error err;
    char text[STG_POLICY_TEXT_MAX] = "as it was";

    CHECK_INT(stg_policy_parse(NULL, "none", &err), STG_INVALID);
    CHECK_STR(err.text, "policy is NULL, expected a place for it");
    CHECK_INT(err.line, 0);
    CHECK_INT(err.column, 0);
    CHECK_INT(stg_policy_parse(&p, NULL, &err), STG_INVALID);
    CHECK_STR(err.text, "policy text is NULL");
    CHECK_INT(stg_policy_parse(NULL, NULL, NULL), STG_INVALID);
    CHECK_INT(stg_policy_print(&p, NULL), STG_INVALID);
    CHECK_INT(stg_policy_print(NULL, text), STG_INVALID);
    p.attempts_max = 0;
    CHECK_INT(stg_policy_print(&p, text), STG_INVALID);
    CHECK_STR(text, "as it was");
}

TEST(text, leaves_the_error_alone_where_there_is_none)
{
    stg_policy p;
    stg_error err = {.line = 7, .column = 9, .text = "as it was"};

    CHECK_INT(stg_policy_parse(&p, "backend", &err), STG_OK);
    CHECK_STR(err.text, "as it was");
    CHECK(err.line == 7 && err.column == 9);
}
