/* Which rule of a policy an outcome meets. A rule links by code, name, family,
 * category or any; the most exact link wins, whatever the order in the text
 * ("Faults" in docs/retry.md). */
#include "core/rule.h"

#include "core/codes.h"

enum { SQLSTATES = 36 * 36 * 36 * 36 * 36 };

static const char *const families[] = {
    [STG_FAMILY_NONE] = "",     [STG_FAMILY_3XX] = "3xx",
    [STG_FAMILY_4XX] = "4xx",   [STG_FAMILY_5XX] = "5xx",
    [STG_FAMILY_GRPC] = "grpc",
};

const char *stg_family_name(stg_family family)
{
    return families[family];
}

stg_family stg_outcome_family(const stg_outcome *o)
{
    if (o == NULL)
        return STG_FAMILY_NONE;
    switch (o->fault) {
    case STG_FAULT_3XX:
        return STG_FAMILY_3XX;
    case STG_FAULT_4XX:
    case STG_FAULT_OVERLOAD:
        return STG_FAMILY_4XX;
    case STG_FAULT_5XX:
        return STG_FAMILY_5XX;
    case STG_FAULT_PUSHBACK:
    case STG_FAULT_GRPC:
        return STG_FAMILY_GRPC;
    default:
        return STG_FAMILY_NONE;
    }
}

bool stg_fault_has_name(stg_fault fault)
{
    stg_outcome o = {.fault = fault};

    if (fault == STG_FAULT_PUSHBACK)
        return true;
    return fault > STG_FAULT_NONE && fault < STG_FAULT_COUNT &&
           stg_outcome_family(&o) == STG_FAMILY_NONE;
}

bool stg_rule_same_link(const stg_rule *a, const stg_rule *b)
{
    return a->link == b->link && a->code_kind == b->code_kind &&
           a->value == b->value;
}

bool stg_rule_is_limited(const stg_rule *r)
{
    return r->retries_max != 0 && r->retries_max != STG_ALWAYS;
}

static bool is_code(const stg_rule *r)
{
    switch ((stg_code_kind)r->code_kind) {
    case STG_CODE_STATUS:
        return r->value >= 100 && r->value <= 599;
    case STG_CODE_SQLSTATE:
        return r->value < SQLSTATES;
    case STG_CODE_MYSQL:
        return r->value >= 1 && r->value <= 999999;
    case STG_CODE_GRPC:
        return r->value >= 1 && r->value <= 16;
    case STG_CODE_CURL:
        return r->value >= 1 && r->value <= 999;
    case STG_CODE_AMQP:
        return r->value >= 300 && r->value <= 599;
    case STG_CODE_REDIS:
    case STG_CODE_AMQP1:
        return stg_code_about((stg_code_kind)r->code_kind, r->value) != NULL;
    case STG_CODE_KAFKA: // -999 to 999
        return r->value != 0 && r->value + 999 <= 2 * 999;
    default:
        return false;
    }
}

/* No rule may name the category `own`: what this side did is not retried by
 * category. */
static bool is_link(const stg_rule *r)
{
    bool has_no_code = r->code_kind == STG_CODE_NONE;

    switch ((stg_link_kind)r->link) {
    case STG_LINK_CODE:
        return is_code(r);
    case STG_LINK_NAME:
        return has_no_code && stg_fault_has_name((stg_fault)r->value);
    case STG_LINK_FAMILY:
        return has_no_code && r->value >= STG_FAMILY_3XX &&
               r->value <= STG_FAMILY_GRPC;
    case STG_LINK_CATEGORY:
        return has_no_code && r->value >= STG_CATEGORY_CONNECT &&
               r->value <= STG_CATEGORY_LOCAL && r->value != STG_CATEGORY_OWN;
    case STG_LINK_ANY:
        return has_no_code && r->value == 0;
    }
    return false;
}

stg_status stg_rule_check(const stg_rule *r, stg_error *err)
{
    if (!is_link(r))
        return stg_refuse(err,
                          "retry has a rule on no fault: its link, "
                          "code_kind or value is out of range");
    if (r->retries_max > STG_RETRIES_MAX && r->retries_max != STG_ALWAYS)
        return stg_refuse_number(err, "at-most", r->retries_max, "1 to 255");
    if (r->link == STG_LINK_NAME && r->value == STG_FAULT_CANCELLED &&
        r->retries_max != 0)
        return stg_refuse(err,
                          "retry names cancelled, but what was cancelled "
                          "is never retried");
    return STG_OK;
}

/* "any" is any fault of the remote: not what was our own doing. */
static bool is_any(stg_fault fault)
{
    stg_category category = stg_fault_category(fault);

    return category != STG_CATEGORY_OWN && category != STG_CATEGORY_LOCAL &&
           fault != STG_FAULT_EGRESS;
}

static bool matches(const stg_rule *r, const stg_outcome *o)
{
    switch ((stg_link_kind)r->link) {
    case STG_LINK_CODE:
        return r->code_kind == o->code_kind && r->value == o->code;
    case STG_LINK_NAME:
        return r->value == o->fault;
    case STG_LINK_FAMILY:
        return r->value == stg_outcome_family(o);
    case STG_LINK_CATEGORY:
        return r->value == stg_fault_category(o->fault);
    case STG_LINK_ANY:
        return is_any(o->fault);
    }
    return false; // gcov-excl: no such link
}

/* `best` is the most exact link so far: less is more exact. */
stg_ruling stg_rule_find_own(const stg_policy *p, const stg_outcome *o,
                             stg_ruling found, unsigned best)
{
    int16_t limited_seen = 0;

    // At most one rule stands on a link, and at equal links a policy's own rule
    // goes before the default's.
    for (uint32_t i = 0; i < p->rule_count && i < STG_RULES_MAX; i++) {
        const stg_rule *r = &p->rules[i];
        bool is_limited = stg_rule_is_limited(r);

        if (r->link <= best && matches(r, o)) {
            best = r->link;
            found.retries_max = r->retries_max;
            found.limited = is_limited ? limited_seen : -1;
        }
        limited_seen = (int16_t)(limited_seen + is_limited);
    }
    return found;
}

uint16_t stg_policy_retries(const stg_policy *p, const stg_outcome *o,
                            int *limited)
{
    stg_ruling found = {.limited = -1};

    if (p != NULL && o != NULL)
        found = stg_rule_find(p, o);
    if (limited != NULL)
        *limited = found.limited;
    return found.retries_max;
}

void stg_rule_write(struct stg_writer *w, const stg_rule *r)
{
    switch ((stg_link_kind)r->link) {
    case STG_LINK_CODE:
        stg_code_write(w, (stg_code_kind)r->code_kind, r->value);
        break;
    case STG_LINK_NAME:
        stg_write_text(w, stg_fault_about((stg_fault)r->value)->name);
        break;
    case STG_LINK_FAMILY:
        stg_write_text(w, stg_family_name((stg_family)r->value));
        break;
    case STG_LINK_CATEGORY:
        stg_write_text(w, stg_category_name((stg_category)r->value));
        break;
    case STG_LINK_ANY:
        stg_write_text(w, "any");
        break;
    }
}
