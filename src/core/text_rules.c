#include "core/parser.h"
#include "core/rule.h"
#include "core/writer.h"

static const char wanted_fault[] =
    "wanted a fault: any, a category (connect, server, request, overload, "
    "database, rpc), 3xx, 4xx, 5xx, grpc, a name like timeout, a status, "
    "sqlstate:40001, mysql:1213, grpc:14, curl:28";

static bool read_code(stg_reader *r, stg_rule *rule)
{
    static const struct {
        const char *prefix;
        stg_code_kind kind;
    } kinds[] = {{"mysql:", STG_CODE_MYSQL},
                 {"grpc:", STG_CODE_GRPC},
                 {"curl:", STG_CODE_CURL},
                 {"", STG_CODE_STATUS}};
    size_t i = 0;

    while (!stg_read_text(r, kinds[i].prefix))
        i++;
    rule->link = STG_LINK_CODE;
    rule->code_kind = (uint8_t)kinds[i].kind;
    return stg_read_int(r, &rule->value) && stg_reader_is_empty(r);
}

static bool read_sqlstate(stg_reader *r, stg_rule *rule)
{
    char letters[6] = "";

    for (size_t i = 0; i < 5 && !stg_reader_is_empty(r); i++)
        letters[i] = *r->at++;
    rule->link = STG_LINK_CODE;
    rule->code_kind = STG_CODE_SQLSTATE;
    rule->value = stg_sqlstate_pack(letters);
    return rule->value != UINT32_MAX && stg_reader_is_empty(r);
}

static bool find_name(const stg_reader *r, stg_rule *rule)
{
    rule->link = STG_LINK_NAME;
    for (unsigned i = 1; i < STG_FAULT_COUNT; i++) {
        rule->value = i;
        if (stg_fault_has_name((stg_fault)i) &&
            stg_reader_equals(r, stg_fault_about((stg_fault)i)->name))
            return true;
    }
    rule->link = STG_LINK_FAMILY;
    for (unsigned i = STG_FAMILY_3XX; i <= STG_FAMILY_GRPC; i++) {
        rule->value = i;
        if (stg_reader_equals(r, stg_family_name((stg_family)i)))
            return true;
    }
    rule->link = STG_LINK_CATEGORY;
    for (unsigned i = STG_CATEGORY_CONNECT; i <= STG_CATEGORY_RPC; i++) {
        rule->value = i;
        if (i != STG_CATEGORY_OWN &&
            stg_reader_equals(r, stg_category_name((stg_category)i)))
            return true;
    }
    rule->link = STG_LINK_ANY;
    rule->value = 0;
    return stg_reader_equals(r, "any");
}

/* One fault as a rule without its limit. */
static bool read_fault(stg_reader piece, stg_rule *rule)
{
    *rule = (stg_rule){0};
    if (find_name(&piece, rule))
        return true;
    if (stg_read_text(&piece, "sqlstate:"))
        return read_sqlstate(&piece, rule);
    return read_code(&piece, rule);
}

static bool refuse_twice(const stg_parser *p, const char *at, const char *end,
                         const char *other)
{
    char wanted[64];
    stg_writer w = stg_writer_on(wanted, sizeof wanted);

    stg_write_text(&w, "a second rule on it, the first is at ");
    stg_write_number(&w, p->line);
    stg_write_char(&w, ':');
    stg_write_number(&w, p->column + (uint64_t)(other - p->text));
    return stg_parser_refuse(p, at, end, wanted);
}

/* How many rules but number `but` are limited. */
static uint32_t count_limited(const stg_policy *policy, uint32_t but)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < policy->rule_count; i++)
        count += i != but && stg_rule_is_limited(&policy->rules[i]);
    return count;
}

/* A rule of the text replaces the preset's on the same link; two of the text
 * on one link contradict each other, or repeat. */
static bool add_rule(stg_parser *p, const stg_reader *piece,
                     const stg_rule *rule)
{
    stg_policy *policy = &p->policy;
    uint32_t i = 0;

    while (i < policy->rule_count &&
           !stg_rule_same_link(&policy->rules[i], rule))
        i++;
    if (i < policy->rule_count && p->places[i] != NULL)
        return refuse_twice(p, piece->at, piece->end, p->places[i]);
    if (i == STG_RULES_MAX)
        return stg_parser_refuse(p, piece->at, piece->end,
                                 "one rule too many, wanted at most 64");
    if (stg_rule_is_limited(rule) &&
        count_limited(policy, i) == STG_LIMITED_MAX)
        return stg_parser_refuse(p, piece->at, piece->end,
                                 "one limited rule too many, wanted at most 8 "
                                 "of once= and at-most=");
    if (i == policy->rule_count)
        policy->rule_count++;
    policy->rules[i] = *rule;
    p->places[i] = p->is_preset ? NULL : piece->at;
    return true;
}

static bool add_fault(stg_parser *p, const stg_reader *piece,
                      uint16_t retries_max)
{
    stg_rule rule;
    stg_error err;

    if (!read_fault(*piece, &rule))
        return stg_parser_refuse(p, piece->at, piece->end, wanted_fault);
    rule.retries_max = retries_max;
    if (stg_rule_check(&rule, &err) != STG_OK)
        return stg_parser_refuse(
            p, piece->at, piece->end,
            rule.link == STG_LINK_CODE
                ? "a code out of range, wanted a status from 100 to 599, "
                  "mysql:1 to 999999, grpc:1 to 16 or curl:1 to 999"
                : "what was cancelled is never retried");
    return add_rule(p, piece, &rule);
}

bool stg_parser_add_rules(stg_parser *p, stg_reader list, uint16_t retries_max,
                          bool may_default)
{
    if (may_default && stg_reader_equals(&list, "none"))
        return true;
    do {
        bool is_last;
        stg_reader piece = stg_read_until(&list, ',');

        is_last = piece.end == list.end;
        if (may_default && stg_reader_equals(&piece, "default")) {
            if (p->policy.default_rules)
                return stg_parser_refuse(p, piece.at, piece.end,
                                         "stands here twice");
            p->policy.default_rules = true;
        } else if (!add_fault(p, &piece, retries_max)) {
            return false;
        }
        if (is_last)
            return true;
    } while (true);
}
