/* What a policy does about each kind of failure: a row for each fault and for
 * each code that the policy or the default names, and one for the rest of a
 * family. The library itself is asked (stg_policy_retries), so that a row
 * cannot differ from what happens. */
#include "plan/plan.h"

#include <stdio.h>

#include "core/codes.h"
#include "core/rule.h"
#include "core/writer.h"

_Static_assert(STG_RULES_MAX + STG_FAULT_COUNT + 16 <= STG_ANSWERS_MAX,
               "a row for each name, each code of the policy, and ours");

uint16_t stg_answers_ask(const stg_policy *p, const stg_forecast_answer *row,
                         int *limited)
{
    *limited = -1;
    // The step asks about this one before it asks the policy.
    if (row->outcome.fault == STG_FAULT_CANCELLED)
        return 0;
    return stg_policy_retries(p, &row->outcome, limited);
}

/* In a hub these are no attempts: the breaker is open, or this machine was
 * short of something. The delivery waits, whatever the rules say. */
bool stg_answers_is_uncounted(const stg_policy *p,
                              const stg_forecast_answer *row)
{
    stg_fault fault = row->outcome.fault;

    if (fault == STG_FAULT_CIRCUIT_OPEN)
        return p->breaker.rule != STG_BREAKER_NONE;
    return stg_fault_about(fault)->category == STG_CATEGORY_LOCAL;
}

/* There is no check for room: the assertion above is the bound, and a new kind
 * of row has to be counted in it. */
static stg_forecast_answer *add(stg_answers *a, stg_outcome o, const char *name)
{
    stg_forecast_answer *row = &a->rows[a->count++];

    *row = (stg_forecast_answer){.outcome = o};
    snprintf(row->name, sizeof row->name, "%s", name);
    stg_outcome_cause(&o, row->cause);
    return row;
}

/* A row whose name and cause are the fault's own, whatever code stands for
 * it. */
static stg_forecast_answer *add_fault(stg_answers *a, stg_outcome o,
                                      const char *name)
{
    stg_forecast_answer *row = add(a, o, name);

    snprintf(row->cause, sizeof row->cause, "%s",
             stg_fault_about(o.fault)->cause);
    return row;
}

/* A fault that no policy can name has no row. */
static void add_names(stg_answers *a)
{
    for (unsigned i = STG_FAULT_NONE + 1; i < STG_FAULT_COUNT; i++) {
        stg_outcome o = stg_failed((stg_fault)i);

        if (o.fault == STG_FAULT_PUSHBACK)
            o = stg_failed_grpc(8, "0"); // a rule on grpc:8 is for it, too
        if (stg_fault_has_name(o.fault))
            add_fault(a, o, stg_fault_about(o.fault)->name);
    }
}

static bool has_code(const stg_answers *a, const stg_rule *r)
{
    for (size_t i = 0; i < a->count; i++) {
        const stg_forecast_answer *row = &a->rows[i];

        if (row->outcome.code_kind == (stg_code_kind)r->code_kind &&
            row->outcome.code == r->value &&
            row->outcome.fault != STG_FAULT_PUSHBACK)
            return true;
    }
    return false;
}

/* A code that is none of a failure has no row, nor has one that is there. */
static void add_code(stg_answers *a, const stg_rule *r, bool is_by_policy)
{
    stg_outcome o = stg_spelling_outcome(r);
    char name[STG_CAUSE_MAX];
    stg_writer w = stg_writer_on(name, sizeof name);

    if (o.fault == STG_FAULT_NONE || o.code_kind == STG_CODE_NONE ||
        has_code(a, r))
        return;
    stg_rule_write(&w, r);
    add(a, o, name)->is_by_policy = is_by_policy;
}

static void add_codes(stg_answers *a, const stg_policy *p)
{
    static const stg_rule known[] = {
        {STG_LINK_CODE, STG_CODE_STATUS, 0, 408},
        {STG_LINK_CODE, STG_CODE_STATUS, 0, 425},
        {STG_LINK_CODE, STG_CODE_STATUS, 0, 429},
        {STG_LINK_CODE, STG_CODE_STATUS, 0, 500},
        {STG_LINK_CODE, STG_CODE_STATUS, 0, 502},
        {STG_LINK_CODE, STG_CODE_STATUS, 0, 503},
        {STG_LINK_CODE, STG_CODE_STATUS, 0, 504},
        {STG_LINK_CODE, STG_CODE_GRPC, 0, 4},  // DEADLINE_EXCEEDED
        {STG_LINK_CODE, STG_CODE_GRPC, 0, 8},  // RESOURCE_EXHAUSTED
        {STG_LINK_CODE, STG_CODE_GRPC, 0, 10}, // ABORTED
        {STG_LINK_CODE, STG_CODE_GRPC, 0, 14}, // UNAVAILABLE
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        add_code(a, &known[i], false);
    for (uint32_t i = 0; i < p->rule_count; i++)
        if (p->rules[i].link == STG_LINK_CODE)
            add_code(a, &p->rules[i], true);
}

/* What no row names yet stands for the rest of its family. */
static void add_rest(stg_answers *a, stg_code_kind kind, uint32_t first,
                     uint32_t last, const char *name)
{
    stg_rule r = {
        .link = STG_LINK_CODE, .code_kind = (uint8_t)kind, .value = first};

    while (r.value < last && has_code(a, &r))
        r.value++;
    if (!has_code(a, &r))
        add_fault(a, stg_spelling_outcome(&r), name)->is_rest = true;
}

static unsigned category_of(const stg_forecast_answer *row)
{
    return (unsigned)stg_fault_about(row->outcome.fault)->category;
}

/* By category; equal ones keep their order. */
static void sort(stg_answers *a)
{
    for (size_t i = 1; i < a->count; i++) {
        stg_forecast_answer row = a->rows[i];
        size_t j = i;

        for (; j > 0 && category_of(&a->rows[j - 1]) > category_of(&row); j--)
            a->rows[j] = a->rows[j - 1];
        a->rows[j] = row;
    }
}

/* The rest of a family comes last, since it is a code that no row has yet. */
void stg_answers_list(stg_answers *answers, const stg_policy *p, bool is_in_hub)
{
    answers->count = 0;
    add_names(answers);
    add_codes(answers, p);
    add_rest(answers, STG_CODE_STATUS, 500, 599, "other 5xx");
    add_rest(answers, STG_CODE_STATUS, 300, 399, "3xx");
    add_rest(answers, STG_CODE_STATUS, 400, 499, "4xx");
    add_rest(answers, STG_CODE_GRPC, 1, 16, "other grpc");
    sort(answers);
    for (size_t i = 0; i < answers->count; i++) {
        stg_forecast_answer *row = &answers->rows[i];

        row->retries_max = stg_answers_ask(p, row, &row->limited);
        row->is_uncounted = is_in_hub && stg_answers_is_uncounted(p, row);
    }
}

/* The most retries that one operation can have: faults that share a limit count
 * once, and limits of different rules add up. */
uint64_t stg_answers_retries_max(const stg_answers *answers)
{
    uint64_t sum = 0;
    bool is_counted[STG_LIMITED_MAX] = {false};

    for (size_t i = 0; i < answers->count; i++) {
        const stg_forecast_answer *row = &answers->rows[i];

        if (row->is_uncounted)
            continue;
        if (row->retries_max == STG_ALWAYS)
            return STG_UNLIMITED;
        if (row->limited < 0 || is_counted[row->limited])
            continue;
        is_counted[row->limited] = true;
        sum += row->retries_max;
    }
    return sum;
}

/* Whether every row of the family is taken; the overload of HTTP is in 4xx. */
static bool takes_family(const stg_answers *a, stg_family family,
                         stg_answers_take *take, const void *ctx)
{
    if (family == STG_FAMILY_NONE)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (stg_outcome_family(&a->rows[i].outcome) == family &&
            !take(&a->rows[i], ctx))
            return false;
    return true;
}

/* A family all of whose rows are taken is written by its name, once. */
size_t stg_answers_write(const stg_answers *answers, stg_answers_take *take,
                         const void *ctx, char *text, size_t size)
{
    stg_writer w = stg_writer_on(text, size);
    static const char other[] = {'o', 't', 'h', 'e', 'r', STG_HELD, '\0'};
    bool is_named[STG_FAMILY_GRPC + 1] = {false};
    size_t names = 0;

    for (size_t i = 0; i < answers->count; i++) {
        const stg_forecast_answer *row = &answers->rows[i];
        stg_family family = stg_outcome_family(&row->outcome);
        bool is_whole = takes_family(answers, family, take, ctx);

        if (!take(row, ctx) || (is_whole && is_named[family]))
            continue;
        is_named[family] = is_whole;
        stg_write_text(&w, names++ > 0 ? " " : "");
        stg_write_text(&w, row->is_rest && !is_whole ? other : "");
        stg_write_text(&w, is_whole || row->is_rest ? stg_family_name(family)
                                                    : row->name);
    }
    return names;
}

/* -- exit codes ------------------------------------------------------------- */

/* A rule on any fault is one on exit codes, too. */
bool stg_exit_rule_stands(const stg_policy *p)
{
    for (uint32_t i = 0; i < p->rule_count; i++) {
        const stg_rule *r = &p->rules[i];

        if (r->link == STG_LINK_ANY ||
            (r->link == STG_LINK_NAME && r->value == STG_FAULT_EXIT))
            return true;
    }
    return false;
}

bool stg_exit_rule_add(stg_policy *p)
{
    if (stg_exit_rule_stands(p))
        return true;
    if (p->rule_count == STG_RULES_MAX)
        return false;
    p->rules[p->rule_count++] = (stg_rule){.link = STG_LINK_NAME,
                                           .value = STG_FAULT_EXIT,
                                           .retries_max = STG_ALWAYS};
    return true;
}
