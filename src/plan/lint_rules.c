/* Mistakes in the rules of a policy: rules that retry nothing or everything, and
 * rules that decide nothing because a more exact one does. Whether a rule has an
 * effect is not reasoned about but tried: the policy is asked with and without
 * it, for each row of answers. */
#include "plan/plan.h"

#include "core/rule.h"
#include "core/writer.h"

/* Not with attempts=1, which says itself that nothing is to be retried. */
static void check_nothing(stg_lint *lint, const stg_lint_facts *facts)
{
    uint64_t attempts = facts->policy->attempts_max;
    stg_warning *w;

    if (attempts == 1 || stg_answers_retries_max(facts->answers) > 0)
        return;
    w = stg_lint_add(lint, "retries-nothing",
                     "no fault is retried, so there is one attempt only");
    stg_lint_fix(w, "retry=default");
}

/* p with one rule only. */
static stg_policy only(const stg_policy *p, uint32_t index)
{
    stg_policy one = stg_policy_default();

    one.default_rules = false;
    one.rules[0] = p->rules[index];
    one.rules[0].retries_max = STG_ALWAYS;
    one.rule_count = 1;
    return one;
}

static stg_policy without(const stg_policy *p, uint32_t index)
{
    stg_policy rest = *p;

    rest.rule_count--;
    rest.rules[index] = rest.rules[rest.rule_count];
    rest.rules[rest.rule_count] = (stg_rule){0};
    return rest;
}

/* The policy's own rule that decides about the row, or NULL. */
static const stg_rule *find_rule(const stg_policy *p,
                                 const stg_forecast_answer *row)
{
    const stg_rule *best = NULL;
    int limited;

    for (uint32_t i = 0; i < p->rule_count; i++) {
        stg_policy alone = only(p, i);

        if (stg_answers_ask(&alone, row, &limited) > 0 &&
            (best == NULL || p->rules[i].link < best->link))
            best = &p->rules[i];
    }
    return best;
}

static const stg_forecast_answer *find_rest(const stg_answers *answers,
                                            stg_fault fault)
{
    for (size_t i = 0; i < answers->count; i++)
        if (answers->rows[i].is_rest && answers->rows[i].outcome.fault == fault)
            return &answers->rows[i];
    return NULL;
}

/* Who has thought of 410 Gone has thought of errors that stay. */
static void check_everything(stg_lint *lint, const stg_lint_facts *facts)
{
    const stg_policy *p = facts->policy;
    const stg_forecast_answer *row = find_rest(facts->answers, STG_FAULT_4XX);
    stg_outcome gone = stg_answered(410);
    const stg_rule *rule;
    char text[80];
    stg_writer writer = stg_writer_on(text, sizeof text);
    stg_warning *w;

    if (p->attempts_max == 1 || row == NULL || row->retries_max == 0 ||
        stg_policy_retries(p, &gone, NULL) == 0)
        return;
    rule = find_rule(p, row);
    w = stg_lint_add(lint, "retries-everything",
                     "errors that no retry mends are retried: 400, 401, 404, "
                     "410 among them");
    if (rule == NULL || rule->retries_max == STG_ALWAYS) {
        stg_lint_fix(w, "retry=default");
    } else if (rule->link == STG_LINK_ANY) {
        stg_lint_fix(w, "never=request");
    } else {
        stg_rule_write(&writer, rule);
        stg_lint_fix(w, "leave out %s", text);
    }
}

/* Among the limited rules, as stg_policy_retries() counts them. */
static int limited_index(const stg_policy *p, uint32_t index)
{
    int limited = 0;

    if (!stg_rule_is_limited(&p->rules[index]))
        return -1;
    for (uint32_t i = 0; i < index; i++)
        limited += stg_rule_is_limited(&p->rules[i]);
    return limited;
}

/* Whether any answer would be another one without the rule. */
static bool has_effect(const stg_lint_facts *facts, uint32_t index)
{
    stg_policy rest = without(facts->policy, index);
    int own = limited_index(facts->policy, index), limited;

    for (size_t i = 0; i < facts->answers->count; i++) {
        const stg_forecast_answer *row = &facts->answers->rows[i];

        if (own >= 0 && row->limited == own)
            return true;
        if (stg_answers_ask(&rest, row, &limited) != row->retries_max)
            return true;
    }
    return false;
}

/* "never=", "at-most=2:". */
static void write_key(stg_writer *w, uint16_t retries_max)
{
    if (retries_max == STG_ALWAYS) {
        stg_write_text(w, "retry=");
    } else if (retries_max == 0) {
        stg_write_text(w, "never=");
    } else if (retries_max == 1) {
        stg_write_text(w, "once=");
    } else {
        stg_write_text(w, "at-most=");
        stg_write_number(w, retries_max);
        stg_write_char(w, ':');
    }
}

/* A row by the narrowest link that is no narrower than the default's: 5xx
 * stands for the statuses that only we name. */
static void write_row(stg_writer *w, const stg_forecast_answer *row)
{
    stg_write_text(w, row->is_rest
                          ? stg_family_name(stg_outcome_family(&row->outcome))
                          : row->name);
}

static bool is_in_rest(const stg_forecast_answer *row)
{
    return row->outcome.fault == STG_FAULT_5XX && !row->is_rest &&
           !row->is_by_policy;
}

/* Whether another rule of the policy, as exact as a new one could be, is about
 * the row: then only the default cannot be the one to blame. */
static bool is_ruled(const stg_policy *p, const stg_forecast_answer *row)
{
    int limited;

    for (uint32_t i = 0; i < p->rule_count; i++) {
        stg_policy alone = only(p, i);

        if (p->rules[i].link <= STG_LINK_FAMILY &&
            stg_answers_ask(&alone, row, &limited) > 0)
            return true;
    }
    return !p->default_rules;
}

/* Numbers of faults (rows of the answers) that a rule is about. */
typedef struct reach {
    size_t about;    /* all these faults */
    size_t missed;   /* faults with another answer than the rule's */
    size_t mendable; /* missed faults that the default decides: in the fix */
} reach;

/* Writes the rule again, on each fault where it can come before the default. */
static reach write_mended(stg_writer *w, const stg_lint_facts *facts,
                          uint32_t index)
{
    uint16_t retries_max = facts->policy->rules[index].retries_max;
    stg_policy alone = only(facts->policy, index);
    stg_policy others = without(facts->policy, index);
    reach found = {0};
    int limited;

    write_key(w, retries_max);
    for (size_t i = 0; i < facts->answers->count; i++) {
        const stg_forecast_answer *row = &facts->answers->rows[i];

        if (stg_answers_ask(&alone, row, &limited) == 0)
            continue;
        found.about++;
        if (row->retries_max == retries_max)
            continue;
        found.missed++;
        if (is_in_rest(row) || is_ruled(&others, row))
            continue;
        stg_write_text(w, found.mendable++ > 0 ? "," : "");
        write_row(w, row);
    }
    return found;
}

/* A rule that says what holds without it is only clear; one that says otherwise
 * is a mistake. */
static void check_effect(stg_lint *lint, const stg_lint_facts *facts,
                         uint32_t index)
{
    const stg_rule *r = &facts->policy->rules[index];
    char rule[80], mended[200];
    stg_writer rule_writer = stg_writer_on(rule, sizeof rule);
    stg_writer mended_writer = stg_writer_on(mended, sizeof mended);
    reach found = write_mended(&mended_writer, facts, index);
    stg_warning *w;

    if (has_effect(facts, index) || (found.about > 0 && found.missed == 0))
        return;
    write_key(&rule_writer, r->retries_max);
    stg_rule_write(&rule_writer, r);
    if (found.about == 0)
        w = stg_lint_add(lint, "no-effect", "%s is about no failure", rule);
    else
        w = stg_lint_add(lint, "no-effect",
                         "%s decides nothing: rules that are more exact, the "
                         "default's among them, come before it",
                         rule);
    if (found.mendable == 0)
        stg_lint_fix(w, "leave it out");
    else if (r->link == STG_LINK_ANY && r->retries_max == 0)
        stg_lint_fix(w, "retry=none");
    else
        stg_lint_fix(w, "%s", mended);
}

void stg_lint_check_rules(stg_lint *lint, const stg_lint_facts *facts)
{
    check_nothing(lint, facts);
    check_everything(lint, facts);
    for (uint32_t i = 0; i < facts->policy->rule_count; i++)
        check_effect(lint, facts, i);
}
