/* Which rule of a policy decides about an outcome. */
#include "core/rule.h"

#include <stagger/rng.h>
#include <stagger/text.h>

#include "core/writer.h"
#include "tests/harness.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

enum { LINKS = STG_LINK_ANY + 1, NONE = 0 };

/* -- the chains: code, name, family, category, any */

static stg_rule on_code(stg_code_kind kind, uint32_t code)
{
    return (stg_rule){
        .link = STG_LINK_CODE, .code_kind = (uint8_t)kind, .value = code};
}

static stg_rule on(stg_link_kind link, uint32_t value)
{
    return (stg_rule){.link = (uint8_t)link, .value = value};
}

typedef struct chain {
    stg_outcome outcome;
    uint32_t code, name, family, category; /* of a rule on it; NONE: no link */
    int by_default; /* the link on which the default has a rule, or -1 */
} chain;

/* Writes the rules that can decide about the outcome, from the most specific;
 * each allows one retry more than its place. Returns how many there are. */
static int write_chain(const chain *c, stg_rule rules[LINKS])
{
    int count = 0;

    if (c->code != NONE)
        rules[count++] = on_code(c->outcome.code_kind, c->code);
    if (c->name != NONE)
        rules[count++] = on(STG_LINK_NAME, c->name);
    if (c->family != NONE)
        rules[count++] = on(STG_LINK_FAMILY, c->family);
    rules[count++] = on(STG_LINK_CATEGORY, c->category);
    rules[count++] = on(STG_LINK_ANY, 0);
    for (int i = 0; i < count; i++)
        rules[i].retries_max = (uint16_t)(i + 1);
    return count;
}

enum { CHAINS = 14 };

static void write_chains(chain chains[CHAINS])
{
    const chain all[CHAINS] = {
        {stg_answered(503), 503, NONE, STG_FAMILY_5XX, STG_CATEGORY_SERVER,
         STG_LINK_FAMILY},
        {stg_answered(404), 404, NONE, STG_FAMILY_4XX, STG_CATEGORY_REQUEST,
         -1},
        {stg_answered(429), 429, NONE, STG_FAMILY_4XX, STG_CATEGORY_OVERLOAD,
         STG_LINK_CODE},
        {stg_answered(302), 302, NONE, STG_FAMILY_3XX, STG_CATEGORY_REQUEST,
         -1},
        {stg_failed_sqlstate("40P01"), stg_sqlstate_pack("40P01"),
         STG_FAULT_DEADLOCK, NONE, STG_CATEGORY_DATABASE, STG_LINK_NAME},
        {stg_failed_sqlstate("23505"), stg_sqlstate_pack("23505"),
         STG_FAULT_SQL, NONE, STG_CATEGORY_DATABASE, -1},
        {stg_failed_mysql(1205), 1205, STG_FAULT_LOCK_TIMEOUT, NONE,
         STG_CATEGORY_DATABASE, STG_LINK_NAME},
        {stg_failed_grpc(14, NULL), 14, NONE, STG_FAMILY_GRPC, STG_CATEGORY_RPC,
         STG_LINK_CODE},
        {stg_failed_grpc(5, NULL), 5, NONE, STG_FAMILY_GRPC, STG_CATEGORY_RPC,
         -1},
        {stg_failed_grpc(8, "9"), 8, STG_FAULT_PUSHBACK, STG_FAMILY_GRPC,
         STG_CATEGORY_RPC, STG_LINK_NAME},
        {stg_failed_curl(28), 28, STG_FAULT_TIMEOUT, NONE, STG_CATEGORY_SERVER,
         STG_LINK_NAME},
        {stg_failed_curl(60), 60, STG_FAULT_TLS, NONE, STG_CATEGORY_CONNECT,
         -1},
        // No rule can name an errno.
        {stg_failed_errno(111), NONE, STG_FAULT_REFUSED, NONE,
         STG_CATEGORY_CONNECT, STG_LINK_NAME},
        {stg_failed(STG_FAULT_5XX), NONE, NONE, STG_FAMILY_5XX,
         STG_CATEGORY_SERVER, STG_LINK_FAMILY},
    };

    memcpy(chains, all, sizeof all);
}

/* The rules that `chosen` has bits for, and others between them that say
 * nothing about the outcome, in an order by chance. */
static stg_policy policy_of(const stg_rule *rules, int count, unsigned chosen,
                            stg_rng *rng)
{
    static const stg_rule others[] = {
        {STG_LINK_CODE, STG_CODE_STATUS, 9, 555},
        {STG_LINK_CODE, STG_CODE_MYSQL, 0, 14},
        {STG_LINK_CODE, STG_CODE_GRPC, STG_ALWAYS, 16},
        {STG_LINK_NAME, 0, STG_ALWAYS, STG_FAULT_NESTED},
    };
    stg_policy p = stg_policy_default();

    for (int i = 0; i < count; i++)
        if (chosen >> i & 1)
            p.rules[p.rule_count++] = rules[i];
    for (size_t i = 0; i < COUNT(others); i++)
        p.rules[p.rule_count++] = others[i];
    for (uint32_t i = p.rule_count; i > 1; i--) {
        uint64_t j = stg_rng_upto(rng, i - 1);
        stg_rule moved = p.rules[i - 1];

        p.rules[i - 1] = p.rules[j];
        p.rules[j] = moved;
    }
    return p;
}

/* How many limited rules stand before the one with this limit. */
static int limited_index(const stg_policy *p, uint16_t retries_max)
{
    int index = 0;

    for (uint32_t i = 0; i < p->rule_count; i++) {
        if (p->rules[i].retries_max == retries_max)
            return index;
        index += stg_rule_is_limited(&p->rules[i]);
    }
    return -1;
}

static void check_decision(uint64_t seed, const stg_policy *p, const chain *c,
                           const stg_rule *rules, int count, unsigned chosen)
{
    uint16_t expected = 0;
    int index = -1, limited = -2, first = 0;

    while (first < count && !(chosen >> first & 1))
        first++;
    if (p->default_rules && c->by_default >= 0)
        expected = STG_ALWAYS;
    if (first < count &&
        (expected == 0 || rules[first].link <= (unsigned)c->by_default)) {
        expected = rules[first].retries_max;
        index = limited_index(p, expected);
    }
    CHECK_FROM(seed, stg_policy_retries(p, &c->outcome, &limited) == expected);
    CHECK_FROM(seed, limited == index);
}

/* In all combinations of links, in any order, with and without the default's
 * rules under them. */
TEST(rule, decides_by_the_most_specific_link_in_any_order)
{
    chain chains[CHAINS];

    write_chains(chains);
    for (uint64_t seed = 0; seed < seeds(100); seed++) {
        stg_rng rng = stg_rng_seed(seed);

        for (size_t i = 0; i < CHAINS; i++) {
            const chain *c = &chains[i];
            stg_rule rules[LINKS];
            int count = write_chain(c, rules);

            for (unsigned chosen = 0; chosen < 1u << count; chosen++) {
                stg_policy p = policy_of(rules, count, chosen, &rng);

                check_decision(seed, &p, c, rules, count, chosen);
                p.default_rules = false;
                check_decision(seed, &p, c, rules, count, chosen);
            }
        }
    }
}

TEST(rule, decides_in_any_order_of_words)
{
    static const char *const texts[] = {
        "retry=503,any never=5xx once=server at-most=3:database",
        "at-most=3:database once=server never=5xx retry=any,503",
        "never=5xx retry=503,any at-most=3:database once=server",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        const stg_outcome outcomes[] = {
            stg_answered(503), stg_answered(500), stg_failed(STG_FAULT_RESET),
            stg_failed(STG_FAULT_DEADLOCK), stg_answered(404)};
        static const uint16_t retries[] = {STG_ALWAYS, 0, 1, 3, STG_ALWAYS};
        stg_policy p;

        CHECK(stg_policy_parse(&p, texts[i], NULL) == STG_OK);
        for (size_t j = 0; j < COUNT(outcomes); j++)
            CHECK_INT(stg_policy_retries(&p, &outcomes[j], NULL), retries[j]);
    }
}

/* A rule on 429 wins over one on 4xx, which it belongs to as well. */
TEST(rule, means_408_425_and_429_too_by_4xx)
{
    stg_policy p;
    const stg_outcome overload = stg_answered(429), timeout = stg_answered(408);

    CHECK(stg_policy_parse(&p, "retry=none never=4xx", NULL) == STG_OK);
    CHECK_INT(stg_policy_retries(&p, &overload, NULL), 0);
    CHECK(stg_policy_parse(&p, "retry=4xx", NULL) == STG_OK);
    CHECK_INT(stg_policy_retries(&p, &overload, NULL), STG_ALWAYS);
    CHECK(stg_policy_parse(&p, "retry=4xx once=429", NULL) == STG_OK);
    CHECK_INT(stg_policy_retries(&p, &overload, NULL), 1);
    CHECK_INT(stg_policy_retries(&p, &timeout, NULL), STG_ALWAYS);
    // The default speaks of the codes, and so goes before a family's rule.
    CHECK(stg_policy_parse(&p, "never=4xx", NULL) == STG_OK);
    CHECK_INT(stg_policy_retries(&p, &overload, NULL), STG_ALWAYS);
    CHECK(stg_policy_parse(&p, "never=429", NULL) == STG_OK);
    CHECK_INT(stg_policy_retries(&p, &overload, NULL), 0);
}

/* A code means something together with its kind only. */
TEST(rule, matches_a_code_of_its_own_kind_only)
{
    static const stg_code_kind kinds[] = {
        STG_CODE_STATUS, STG_CODE_SQLSTATE, STG_CODE_MYSQL,
        STG_CODE_GRPC,   STG_CODE_CURL,     STG_CODE_REDIS,
        STG_CODE_AMQP,   STG_CODE_AMQP1,    STG_CODE_KAFKA};

    for (size_t i = 0; i < COUNT(kinds); i++)
        for (unsigned kind = STG_CODE_NONE; kind <= STG_CODE_KAFKA; kind++) {
            stg_policy p = stg_policy_default();
            stg_outcome o = {.fault = STG_FAULT_ERROR,
                             .code_kind = (stg_code_kind)kind,
                             .code = 14};

            p.rule_count = 1;
            p.rules[0] = on_code(kinds[i], 14);
            p.rules[0].retries_max = 5;
            CHECK_INT(stg_policy_retries(&p, &o, NULL),
                      kind == kinds[i] ? 5 : 0);
        }
}

TEST(rule, reads_no_more_rules_than_a_policy_holds)
{
    stg_policy p = stg_policy_default();
    const stg_outcome o = stg_answered(404);

    p.rule_count = UINT32_MAX;
    CHECK_INT(stg_policy_retries(&p, &o, NULL), 0);
}

/* -- one rule by itself */

TEST(rule, has_no_index_where_the_closer_rule_is_not_limited)
{
    stg_policy p;
    stg_outcome o = stg_answered(503);
    int limited = 7;

    CHECK_INT(stg_policy_parse(&p, "at-most=2:5xx never=503", NULL), STG_OK);
    CHECK_INT(stg_policy_retries(&p, &o, &limited), 0);
    CHECK_INT(limited, -1);
}

/* A policy that has passed no check does no harm. */
TEST(rule, is_sought_among_64_at_most)
{
    stg_policy p = stg_policy_default();
    stg_outcome o = stg_answered(503);
    int limited = 7;

    p.default_rules = false;
    p.rule_count = UINT32_MAX;
    for (uint32_t i = 0; i < STG_RULES_MAX; i++)
        p.rules[i] = (stg_rule){STG_LINK_CODE, STG_CODE_STATUS, 1, 100 + i};
    CHECK_INT(stg_policy_retries(&p, &o, &limited), 0);
    CHECK_INT(limited, -1);
}

TEST(rule, is_limited_between_never_and_always)
{
    static const uint16_t limits[] = {0, 1, 2, 254, 255, STG_ALWAYS};

    for (size_t i = 0; i < COUNT(limits); i++) {
        stg_rule r = {.link = STG_LINK_ANY, .retries_max = limits[i]};

        CHECK_INT(stg_rule_is_limited(&r),
                  limits[i] != 0 && limits[i] != STG_ALWAYS);
        CHECK_INT(stg_rule_check(&r, NULL), STG_OK);
    }
}

TEST(rule, knows_its_link_by_kind_and_value)
{
    const stg_rule r = on_code(STG_CODE_GRPC, 14);
    stg_rule other = r;

    other.retries_max = 77;
    CHECK(stg_rule_same_link(&r, &other));
    other.value = 15;
    CHECK(!stg_rule_same_link(&r, &other));
    other = r;
    other.code_kind = STG_CODE_CURL;
    CHECK(!stg_rule_same_link(&r, &other));
    other = r;
    other.link = STG_LINK_NAME;
    CHECK(!stg_rule_same_link(&r, &other));
}

/* Each link's first and last value, and what lies behind them. */
TEST(rule, is_checked_against_the_range_of_its_link)
{
    static const struct {
        stg_rule rule;
        bool is_good;
    } rows[] = {
        {{STG_LINK_CODE, STG_CODE_STATUS, 1, 99}, false},
        {{STG_LINK_CODE, STG_CODE_STATUS, 1, 100}, true},
        {{STG_LINK_CODE, STG_CODE_STATUS, 1, 599}, true},
        {{STG_LINK_CODE, STG_CODE_STATUS, 1, 600}, false},
        {{STG_LINK_CODE, STG_CODE_SQLSTATE, 1, 0}, true},
        {{STG_LINK_CODE, STG_CODE_SQLSTATE, 1, 60466175}, true},
        {{STG_LINK_CODE, STG_CODE_SQLSTATE, 1, 60466176}, false},
        {{STG_LINK_CODE, STG_CODE_SQLSTATE, 1, UINT32_MAX}, false},
        {{STG_LINK_CODE, STG_CODE_MYSQL, 1, 0}, false},
        {{STG_LINK_CODE, STG_CODE_MYSQL, 1, 1}, true},
        {{STG_LINK_CODE, STG_CODE_MYSQL, 1, 999999}, true},
        {{STG_LINK_CODE, STG_CODE_MYSQL, 1, 1000000}, false},
        {{STG_LINK_CODE, STG_CODE_GRPC, 1, 0}, false},
        {{STG_LINK_CODE, STG_CODE_GRPC, 1, 1}, true},
        {{STG_LINK_CODE, STG_CODE_GRPC, 1, 16}, true},
        {{STG_LINK_CODE, STG_CODE_GRPC, 1, 17}, false},
        {{STG_LINK_CODE, STG_CODE_CURL, 1, 0}, false},
        {{STG_LINK_CODE, STG_CODE_CURL, 1, 1}, true},
        {{STG_LINK_CODE, STG_CODE_CURL, 1, 999}, true},
        {{STG_LINK_CODE, STG_CODE_CURL, 1, 1000}, false},
        {{STG_LINK_CODE, STG_CODE_NONE, 1, 100}, false},
        {{STG_LINK_CODE, STG_CODE_ERRNO, 1, 1}, false},
        {{STG_LINK_CODE, STG_CODE_RESOLVER, 1, 1}, false},
        {{STG_LINK_CODE, STG_CODE_TLS, 1, 1}, false},
        {{STG_LINK_CODE, STG_CODE_EXIT, 1, 1}, false},
        {{STG_LINK_CODE, STG_CODE_REDIS, 1, 0}, false},
        {{STG_LINK_CODE, STG_CODE_REDIS, 1, 1}, true},
        {{STG_LINK_CODE, STG_CODE_REDIS, 1, 28}, true},
        {{STG_LINK_CODE, STG_CODE_REDIS, 1, 29}, false},
        {{STG_LINK_CODE, STG_CODE_AMQP, 1, 299}, false},
        {{STG_LINK_CODE, STG_CODE_AMQP, 1, 300}, true},
        {{STG_LINK_CODE, STG_CODE_AMQP, 1, 599}, true},
        {{STG_LINK_CODE, STG_CODE_AMQP, 1, 600}, false},
        {{STG_LINK_CODE, STG_CODE_AMQP1, 1, 0}, false},
        {{STG_LINK_CODE, STG_CODE_AMQP1, 1, 1}, true},
        {{STG_LINK_CODE, STG_CODE_AMQP1, 1, 30}, true},
        {{STG_LINK_CODE, STG_CODE_AMQP1, 1, 31}, false},
        {{STG_LINK_CODE, STG_CODE_KAFKA, 1, 0}, false},
        {{STG_LINK_CODE, STG_CODE_KAFKA, 1, 1}, true},
        {{STG_LINK_CODE, STG_CODE_KAFKA, 1, 999}, true},
        {{STG_LINK_CODE, STG_CODE_KAFKA, 1, 1000}, false},
        {{STG_LINK_CODE, STG_CODE_KAFKA, 1, UINT32_MAX}, true},
        {{STG_LINK_CODE, STG_CODE_KAFKA, 1, UINT32_MAX - 998}, true},
        {{STG_LINK_CODE, STG_CODE_KAFKA, 1, UINT32_MAX - 999}, false},
        {{STG_LINK_CODE, 255, 1, 1}, false},
        {{STG_LINK_NAME, 0, 1, STG_FAULT_NONE}, false},
        {{STG_LINK_NAME, 0, 1, STG_FAULT_REFUSED}, true},
        {{STG_LINK_NAME, 0, 1, STG_FAULT_ERROR}, true},
        {{STG_LINK_NAME, 0, 1, STG_FAULT_COUNT}, false},
        {{STG_LINK_NAME, 0, 1, UINT32_MAX}, false},
        {{STG_LINK_NAME, 1, 1, STG_FAULT_REFUSED}, false},
        {{STG_LINK_NAME, 0, 1, STG_FAULT_CANCELLED}, false},
        {{STG_LINK_NAME, 0, STG_ALWAYS, STG_FAULT_CANCELLED}, false},
        {{STG_LINK_NAME, 0, 0, STG_FAULT_CANCELLED}, true},
        {{STG_LINK_FAMILY, 0, 1, STG_FAMILY_NONE}, false},
        {{STG_LINK_FAMILY, 0, 1, STG_FAMILY_3XX}, true},
        {{STG_LINK_FAMILY, 0, 1, STG_FAMILY_GRPC}, true},
        {{STG_LINK_FAMILY, 0, 1, STG_FAMILY_GRPC + 1}, false},
        {{STG_LINK_FAMILY, 1, 1, STG_FAMILY_3XX}, false},
        {{STG_LINK_CATEGORY, 0, 1, STG_CATEGORY_NONE}, false},
        {{STG_LINK_CATEGORY, 0, 1, STG_CATEGORY_CONNECT}, true},
        {{STG_LINK_CATEGORY, 0, 1, STG_CATEGORY_OVERLOAD}, true},
        {{STG_LINK_CATEGORY, 0, 1, STG_CATEGORY_OWN}, false},
        {{STG_LINK_CATEGORY, 0, 1, STG_CATEGORY_DATABASE}, true},
        {{STG_LINK_CATEGORY, 0, 1, STG_CATEGORY_RPC}, true},
        {{STG_LINK_CATEGORY, 0, 1, STG_CATEGORY_OTHER}, false},
        {{STG_LINK_CATEGORY, 1, 1, STG_CATEGORY_RPC}, false},
        {{STG_LINK_ANY, 0, 1, 0}, true},
        {{STG_LINK_ANY, 0, 1, 1}, false},
        {{STG_LINK_ANY, 1, 1, 0}, false},
        {{STG_LINK_ANY, 0, 256, 0}, false},
        {{STG_LINK_ANY, 0, UINT16_MAX - 1, 0}, false},
        {{STG_LINK_ANY + 1, 0, 1, 0}, false},
        {{255, 0, 1, 0}, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        stg_error err = {.text = ""};

        CHECK_FROM(i, (stg_rule_check(&rows[i].rule, &err) == STG_OK) ==
                          rows[i].is_good);
        CHECK_FROM(i, (err.text[0] == '\0') == rows[i].is_good);
    }
}

TEST(rule, names_every_fault_but_those_of_families)
{
    for (unsigned fault = 0; fault <= STG_FAULT_COUNT; fault++) {
        bool has_name = fault > STG_FAULT_NONE && fault < STG_FAULT_COUNT &&
                        fault != STG_FAULT_5XX && fault != STG_FAULT_3XX &&
                        fault != STG_FAULT_4XX && fault != STG_FAULT_OVERLOAD &&
                        fault != STG_FAULT_GRPC;

        CHECK_FROM(fault, stg_fault_has_name((stg_fault)fault) == has_name);
    }
    CHECK(!stg_fault_has_name((stg_fault)-1));
}

TEST(rule, is_written_as_policies_write_it)
{
    static const struct {
        stg_rule rule;
        const char *text;
    } rows[] = {
        {{STG_LINK_CODE, STG_CODE_STATUS, 0, 503}, "503"},
        {{STG_LINK_CODE, STG_CODE_SQLSTATE, 0, 0}, "sqlstate:00000"},
        {{STG_LINK_CODE, STG_CODE_SQLSTATE, 0, 60466175}, "sqlstate:ZZZZZ"},
        {{STG_LINK_CODE, STG_CODE_MYSQL, 0, 1213}, "mysql:1213"},
        {{STG_LINK_CODE, STG_CODE_GRPC, 0, 14}, "grpc:14"},
        {{STG_LINK_CODE, STG_CODE_CURL, 0, 28}, "curl:28"},
        {{STG_LINK_CODE, STG_CODE_REDIS, 0, 2}, "redis:LOADING"},
        {{STG_LINK_CODE, STG_CODE_AMQP, 0, 320}, "amqp:320"},
        {{STG_LINK_CODE, STG_CODE_AMQP1, 0, 14}, "amqp:connection:forced"},
        {{STG_LINK_CODE, STG_CODE_KAFKA, 0, 7}, "kafka:7"},
        {{STG_LINK_CODE, STG_CODE_KAFKA, 0, UINT32_MAX - 194}, "kafka:-195"},
        {{STG_LINK_NAME, 0, 0, STG_FAULT_CONNECT_TIMEOUT}, "connect-timeout"},
        {{STG_LINK_FAMILY, 0, 0, STG_FAMILY_3XX}, "3xx"},
        {{STG_LINK_FAMILY, 0, 0, STG_FAMILY_4XX}, "4xx"},
        {{STG_LINK_FAMILY, 0, 0, STG_FAMILY_5XX}, "5xx"},
        {{STG_LINK_FAMILY, 0, 0, STG_FAMILY_GRPC}, "grpc"},
        {{STG_LINK_CATEGORY, 0, 0, STG_CATEGORY_OVERLOAD}, "overload"},
        {{STG_LINK_ANY, 0, 0, 0}, "any"},
        {{STG_LINK_ANY + 1, 0, 0, 0}, ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[32];
        stg_writer w = stg_writer_on(text, sizeof text);

        stg_rule_write(&w, &rows[i].rule);
        CHECK_STR(text, rows[i].text);
    }
    CHECK_STR(stg_family_name(STG_FAMILY_NONE), "");
}

TEST(rule, knows_the_family_of_an_outcome)
{
    for (unsigned fault = 0; fault < STG_FAULT_COUNT; fault++) {
        const stg_outcome o = {.fault = (stg_fault)fault};
        stg_family family = STG_FAMILY_NONE;

        if (fault == STG_FAULT_3XX)
            family = STG_FAMILY_3XX;
        if (fault == STG_FAULT_4XX || fault == STG_FAULT_OVERLOAD)
            family = STG_FAMILY_4XX;
        if (fault == STG_FAULT_5XX)
            family = STG_FAMILY_5XX;
        if (fault == STG_FAULT_GRPC || fault == STG_FAULT_PUSHBACK)
            family = STG_FAMILY_GRPC;
        CHECK_FROM(fault, stg_outcome_family(&o) == family);
    }
}
