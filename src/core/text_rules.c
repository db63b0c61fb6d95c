/* The lists of faults in a policy's text (retry=, once=, at-most=, never=) as
 * rules, with the place of each, so that an error can point at it. Rules on
 * the same link replace those of a preset, and are refused where the text
 * itself has two. */
#include <string.h>

#include "base/suggest.h"
#include "core/codes.h"
#include "core/rule.h"
#include "core/text_internal.h"
#include "core/writer.h"

static const char expected_fault[] =
    "expected a fault: any, a category (connect, server, request, overload, "
    "database, rpc, local), 3xx, 4xx, 5xx, grpc, a name like timeout, a status, "
    "sqlstate:40001, mysql:1213, grpc:14, curl:28, redis:LOADING, amqp:320, "
    "kafka:7";

/* The nearest word that policies may have: "own" is none. Whether one is read
 * takes as long as all distances, so only a word that is nearer is asked. */
static stg_suggestion suggest_fault(const char *at, const char *end)
{
    stg_suggestion s = stg_suggestion_begin(at, (size_t)(end - at));
    const char *word;

    for (size_t i = 0; (word = stg_spelling_word(i)) != NULL; i++) {
        stg_reader r = {word, word + strlen(word)};
        stg_suggestion nearer = s;
        stg_rule rule;

        stg_suggestion_try(&nearer, word);
        if (nearer.slips_max < s.slips_max && stg_spelling_read(r, &rule))
            s = nearer;
    }
    return s;
}

/* may_default: the words of retry= may stand there, too. */
static bool refuse_fault(const stg_parser *p, const stg_reader *piece,
                         bool may_default)
{
    static const char *const prefixes[] = {
        "sqlstate:", "mysql:", "grpc:",  "curl:",
        "redis:",    "amqp:",  "kafka:", NULL};
    stg_reader rest = *piece;
    stg_suggestion s;

    (void)stg_read_until(&rest, ':');
    s = suggest_fault(piece->at, rest.at);
    for (size_t i = 0; prefixes[i] != NULL; i++)
        stg_suggestion_try(&s, prefixes[i]);
    if (may_default) {
        stg_suggestion_try(&s, "default");
        stg_suggestion_try(&s, "none");
    }
    if (s.name == NULL && !stg_reader_is_empty(&rest)) // "amqp:resource-lockd"
        s = suggest_fault(piece->at, piece->end);
    if (s.name == NULL) // "redis:LODING"
        s = suggest_fault(rest.at, rest.end);
    return stg_parser_refuse_word(p, piece, s.name, expected_fault);
}

static bool refuse_twice(const stg_parser *p, const char *at, const char *end,
                         const char *other)
{
    char expected[64];
    stg_writer w = stg_writer_on(expected, sizeof expected);

    stg_write_text(&w, "a second rule on it, the first is at ");
    stg_write_number(&w, p->line);
    stg_write_char(&w, ':');
    stg_write_number(&w, p->column + (uint64_t)(other - p->text));
    return stg_parser_refuse(p, at, end, expected);
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
                                 "one rule too many, expected at most 64");
    if (stg_rule_is_limited(rule) &&
        count_limited(policy, i) == STG_LIMITED_MAX)
        return stg_parser_refuse(
            p, piece->at, piece->end,
            "one limited rule too many, expected at most 8 "
            "of once= and at-most=");
    if (i == policy->rule_count)
        policy->rule_count++;
    policy->rules[i] = *rule;
    p->places[i] = p->is_preset ? NULL : piece->at;
    return true;
}

static bool add_fault(stg_parser *p, const stg_reader *piece,
                      uint16_t retries_max, bool may_default)
{
    stg_rule rule;
    stg_error err;

    // Exit codes are sorted by `stagger run --on`, and here have one name.
    if (!stg_spelling_read(*piece, &rule) || rule.code_kind == STG_CODE_EXIT)
        return refuse_fault(p, piece, may_default);
    rule.retries_max = retries_max;
    if (stg_rule_check(&rule, &err) != STG_OK)
        return stg_parser_refuse(
            p, piece->at, piece->end,
            rule.link == STG_LINK_CODE
                ? "a code out of range, expected a status from 100 to 599, "
                  "mysql:1 to 999999, grpc:1 to 16, curl:1 to 999, amqp:300 to "
                  "599 or kafka:-999 to 999"
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
        } else if (!add_fault(p, &piece, retries_max, may_default)) {
            return false;
        }
        if (is_last)
            return true;
    } while (true);
}
