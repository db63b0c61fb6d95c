/* The defaults and the check of a whole policy: each part checks its own
 * ranges, and what needs two of them (a base above the cap) stands here. A
 * policy that has passed needs no further check while it is used. */
#include <stagger/policy.h>
#include <stagger/text.h>

#include "core/backoff_draw.h"
#include "core/options.h"
#include "core/rule.h"
#include "core/text_internal.h"
#include "core/writer.h"

stg_policy stg_policy_default(void)
{
    return (stg_policy){
        .attempts_max = 3,
        .deadline = 2 * STG_MIN,
        .attempt_timeout = STG_NEVER,
        .reset_after = STG_NEVER,
        .retry_after_max = STG_HOUR,
        .backoff = stg_backoff_default(),
        .default_rules = true,
    };
}

/* A duration that may be none, and is not 0. */
static stg_status check_optional(stg_ns ns, const char *key, stg_error *err)
{
    if (ns == 0 || (ns > STG_BACKOFF_MAX && ns != STG_NEVER))
        return stg_refuse_duration(err, key, ns,
                                   "more than 0, to 365d, or none");
    return STG_OK;
}

static stg_status check_times(const stg_policy *p, stg_error *err)
{
    if (check_optional(p->deadline, "deadline", err) != STG_OK ||
        check_optional(p->attempt_timeout, "attempt-timeout", err) != STG_OK ||
        check_optional(p->reset_after, "reset-after", err) != STG_OK)
        return STG_INVALID;
    if (p->retry_after_max > STG_BACKOFF_MAX)
        return stg_refuse_duration(err, "retry-after-max", p->retry_after_max,
                                   "0 to 365d");
    return STG_OK;
}

/* Of the categories that rules know, where there is a base. */
static stg_status check_bases(const stg_policy *p, stg_error *err)
{
    const stg_backoff *b = &p->backoff;

    for (unsigned i = 0; i < STG_BASES; i++) {
        stg_ns base = p->base_for[i];
        stg_rule rule = {.link = STG_LINK_CATEGORY, .value = i};

        if (base == 0)
            continue;
        if (stg_rule_check(&rule, NULL) != STG_OK)
            return stg_refuse(err,
                              "base-for is set for a category that no rule "
                              "may name");
        if (!stg_backoff_has_base(b))
            return stg_refuse(err,
                              "base-for has no meaning for a list, which has "
                              "no base");
        if (b->jitter == STG_JITTER_POLLY)
            return stg_refuse(err,
                              "base-for has no meaning for jitter=polly, whose "
                              "waits go on from each other");
        if (base > STG_BACKOFF_MAX)
            return stg_refuse_duration(err, "base-for", base,
                                       "more than 0, to 365d");
        if (base > b->cap)
            return stg_refuse_cap(err, b->cap, "base-for", base);
    }
    return STG_OK;
}

static stg_status check_rate(const stg_policy *p, stg_error *err)
{
    if (p->rate > 1000000000)
        return stg_refuse_thousandths(err, "rate", p->rate,
                                      "0.001/s to 1000000/s, or none");
    return STG_OK;
}

static stg_status refuse_twice(const stg_rule *r, stg_error *err)
{
    stg_writer w = stg_writer_on_error(err);

    stg_write_text(&w, "retry has two rules on ");
    stg_rule_write(&w, r);
    return STG_INVALID;
}

/* Compares each pair of at most 64 rules. */
static stg_status check_rules(const stg_policy *p, stg_error *err)
{
    uint32_t limited = 0;

    if (p->rule_count > STG_RULES_MAX)
        return stg_refuse_number(err, "retry rules", p->rule_count, "0 to 64");
    for (uint32_t i = 0; i < p->rule_count; i++) {
        if (stg_rule_check(&p->rules[i], err) != STG_OK)
            return STG_INVALID;
        limited += stg_rule_is_limited(&p->rules[i]);
        for (uint32_t j = 0; j < i; j++)
            if (stg_rule_same_link(&p->rules[i], &p->rules[j]))
                return refuse_twice(&p->rules[i], err);
    }
    if (limited > STG_LIMITED_MAX)
        return stg_refuse_number(err, "at-most and once rules", limited,
                                 "0 to 8");
    return STG_OK;
}

stg_status stg_policy_check(const stg_policy *p, stg_error *err)
{
    if (p == NULL)
        return stg_refuse(err, "policy is NULL");
    if (p->attempts_max == 0 ||
        (p->attempts_max > UINT32_MAX && p->attempts_max != STG_UNLIMITED))
        return stg_refuse_number(err, "attempts", p->attempts_max,
                                 "1 to 4294967295, or unlimited");
    if ((unsigned)p->nested > STG_NESTED_FULL)
        return stg_refuse_number(err, "nested", (unsigned)p->nested,
                                 "one of stg_nested");
    if ((unsigned)p->retry_after > STG_RETRY_AFTER_IGNORE)
        return stg_refuse_number(err, "retry-after", (unsigned)p->retry_after,
                                 "one of stg_retry_after");
    if (stg_backoff_check(&p->backoff, err) != STG_OK ||
        check_bases(p, err) != STG_OK || check_times(p, err) != STG_OK ||
        stg_budget_check(&p->budget, err) != STG_OK ||
        check_rate(p, err) != STG_OK ||
        stg_bulkhead_check(&p->bulkhead, err) != STG_OK ||
        stg_throttle_check(&p->throttle, err) != STG_OK ||
        stg_hedge_check(&p->hedge, err) != STG_OK ||
        stg_breaker_check(&p->breaker, err) != STG_OK ||
        check_rules(p, err) != STG_OK)
        return STG_INVALID;
    // So that stg_policy_print() cannot fail for a policy that was checked.
    if (stg_policy_write(p, NULL, 0) >= STG_POLICY_TEXT_MAX)
        return stg_refuse(err,
                          "the policy is too long, expected at most 1023 "
                          "bytes when written out");
    return STG_OK;
}

/* Field by field: memcmp() would compare padding. */
static bool equal_backoffs(const stg_backoff *a, const stg_backoff *b)
{
    if (a->growth != b->growth || a->jitter != b->jitter ||
        a->below != b->below || a->above != b->above || a->up != b->up ||
        a->factor != b->factor || a->base != b->base || a->cap != b->cap ||
        a->floor != b->floor || a->offset != b->offset ||
        a->power != b->power || a->counts_from_0 != b->counts_from_0 ||
        a->list_count != b->list_count)
        return false;
    for (uint32_t i = 0; i < STG_LIST_MAX; i++)
        if (a->list[i] != b->list[i])
            return false;
    return true;
}

static bool equal_bases(const stg_policy *a, const stg_policy *b)
{
    for (unsigned i = 0; i < STG_BASES; i++)
        if (a->base_for[i] != b->base_for[i])
            return false;
    return true;
}

bool stg_breaker_options_equal(const stg_breaker_options *a,
                               const stg_breaker_options *b)
{
    return a->rule == b->rule && a->failures == b->failures &&
           a->percent == b->percent && a->calls == b->calls &&
           a->connects == b->connects && a->window == b->window &&
           a->open == b->open && a->open_max == b->open_max &&
           a->probes == b->probes && a->probes_good == b->probes_good &&
           a->slow_percent == b->slow_percent && a->slow_after == b->slow_after;
}

static bool has_rule(const stg_policy *p, const stg_rule *r)
{
    for (uint32_t i = 0; i < p->rule_count; i++)
        if (stg_rule_same_link(&p->rules[i], r) &&
            p->rules[i].retries_max == r->retries_max)
            return true;
    return false;
}

/* The order of rules has no meaning. */
static bool equal_rules(const stg_policy *a, const stg_policy *b)
{
    if (a->default_rules != b->default_rules || a->rule_count != b->rule_count)
        return false;
    for (uint32_t i = 0; i < a->rule_count; i++)
        if (!has_rule(b, &a->rules[i]))
            return false;
    return true;
}

/* A new field of stg_policy needs a line here: nothing else notices that it is
 * missing. */
bool stg_policy_equal(const stg_policy *a, const stg_policy *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->attempts_max == b->attempts_max && a->deadline == b->deadline &&
           a->attempt_timeout == b->attempt_timeout &&
           a->reset_after == b->reset_after &&
           a->retry_after_max == b->retry_after_max &&
           a->budget_waits == b->budget_waits &&
           a->breaks_retries_only == b->breaks_retries_only &&
           a->unsafe == b->unsafe && a->nested == b->nested &&
           a->retry_after == b->retry_after &&
           equal_backoffs(&a->backoff, &b->backoff) && equal_bases(a, b) &&
           stg_budget_options_equal(&a->budget, &b->budget) &&
           a->rate == b->rate &&
           stg_bulkhead_options_equal(&a->bulkhead, &b->bulkhead) &&
           stg_throttle_options_equal(&a->throttle, &b->throttle) &&
           stg_hedge_options_equal(&a->hedge, &b->hedge) &&
           stg_breaker_options_equal(&a->breaker, &b->breaker) &&
           equal_rules(a, b);
}
