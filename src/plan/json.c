/* The fields of `plan --json`, and of a target's plan by API. They are only ever added to, because programs
 * read them; null is unlimited, or never. Times are exact: milliseconds with as
 * many digits as they need.
 *
 * The trap is a 0 of the policy that means "none": it must become null, or 1
 * for the probes of a breaker, as a program would take 0 for a limit of
 * nothing. */
#include "plan/plan.h"

#include "core/rule.h"
#include "core/text_internal.h"

/* wait_mean_estimated is there only where it is true. */
static void show_wait(stg_json *j, const stg_forecast_wait *row)
{
    stg_json_open_row(j, NULL);
    stg_json_number(j, "retry", row->retry);
    stg_json_ms(j, "window_ms", row->window);
    stg_json_ms(j, "wait_min_ms", row->wait.least);
    stg_json_ms(j, "wait_mean_ms", row->wait.mean);
    if (row->is_mean_estimate)
        stg_json_bool(j, "wait_mean_estimated", true);
    stg_json_ms(j, "wait_max_ms", row->wait.most);
    stg_json_ms(j, "total_min_ms", row->total.least);
    stg_json_ms(j, "total_mean_ms", row->total.mean);
    stg_json_ms(j, "total_max_ms", row->total.most);
    stg_json_bool(j, "past_deadline", row->is_past_deadline);
    stg_json_close(j, '}');
}

/* Each kind has its own fields; those of other kinds are left out, not null. */
static void show_budget(stg_json *j, const stg_policy *p)
{
    static const char *const kinds[] = {
        [STG_BUDGET_NONE] = "none",   [STG_BUDGET_TOKENS] = "tokens",
        [STG_BUDGET_RATIO] = "ratio", [STG_BUDGET_SHARE] = "share",
        [STG_BUDGET_AWS] = "aws",     [STG_BUDGET_GRPC] = "grpc",
    };
    const stg_budget_options *o = &p->budget;

    stg_json_open_row(j, "budget");
    stg_json_string(j, "kind", kinds[o->kind]);
    if (o->kind == STG_BUDGET_TOKENS || o->kind == STG_BUDGET_GRPC ||
        o->kind == STG_BUDGET_AWS)
        stg_json_number(j, "capacity", o->capacity);
    if (o->kind == STG_BUDGET_AWS) {
        stg_json_number(j, "retry_cost", o->cost);
        stg_json_number(j, "timeout_cost", o->timeout_cost);
        stg_json_number(j, "throttle_cost", o->throttle_cost);
    }
    if (o->kind == STG_BUDGET_SHARE)
        stg_json_number(j, "floor", o->capacity);
    if (o->kind == STG_BUDGET_RATIO || o->kind == STG_BUDGET_GRPC ||
        o->kind == STG_BUDGET_SHARE)
        stg_json_thousandths(j, "ratio", o->ratio);
    if (o->kind == STG_BUDGET_TOKENS || o->kind == STG_BUDGET_RATIO)
        stg_json_thousandths(j, "per_second", o->rate);
    if (o->kind != STG_BUDGET_NONE)
        stg_json_string(j, "when_empty", p->budget_waits ? "wait" : "give-up");
    stg_json_close(j, '}');
}

static void show_bases(stg_json *j, const stg_policy *p)
{
    stg_json_open(j, "base_for", '[');
    for (unsigned i = 0; i < STG_BASES; i++) {
        if (p->base_for[i] == 0)
            continue;
        stg_json_open_row(j, NULL);
        stg_json_string(j, "category", stg_category_name((stg_category)i));
        stg_json_ms(j, "base_ms", p->base_for[i]);
        stg_json_close(j, '}');
    }
    stg_json_close(j, ']');
}

static const char *const throttles[] = {[STG_THROTTLE_NONE] = "none",
                                        [STG_THROTTLE_SRE] = "sre",
                                        [STG_THROTTLE_AWS] = "aws"};

static void show_breaker(stg_json *j, const stg_policy *p)
{
    const stg_breaker_options *o = &p->breaker;
    static const char *const kinds[] = {[STG_BREAKER_NONE] = "none",
                                        [STG_BREAKER_ROW] = "row",
                                        [STG_BREAKER_SHARE] = "share"};

    stg_json_open_row(j, "breaker");
    stg_json_string(j, "kind", kinds[o->rule]);
    if (o->rule == STG_BREAKER_ROW)
        stg_json_number(j, "failures", o->failures);
    if (o->rule == STG_BREAKER_SHARE) {
        stg_json_number(j, "percent", o->percent);
        stg_json_number(j, "calls", o->calls);
        stg_json_ms(j, "window_ms", o->window);
        stg_json_limit(j, "slow_percent",
                       o->slow_percent == 0 ? STG_UNLIMITED : o->slow_percent);
        stg_json_ms(j, "slow_after_ms",
                    o->slow_percent == 0 ? STG_NEVER : o->slow_after);
    }
    if (o->rule != STG_BREAKER_NONE) {
        stg_json_limit(j, "connects",
                       o->connects == 0 ? STG_UNLIMITED : o->connects);
        stg_json_number(j, "probes", o->probes == 0 ? 1 : o->probes);
        stg_json_number(j, "probes_good", o->probes == 0 ? 1 : o->probes_good);
        stg_json_ms(j, "open_ms", o->open);
        stg_json_ms(j, "open_max_ms", o->open_max);
        stg_json_string(j, "scope",
                        p->breaks_retries_only ? "retries" : "attempts");
    }
    stg_json_close(j, '}');
}

/* What a hub waits for without counting has no limit, and says why. */
static void show_fault(stg_json *j, const stg_forecast_answer *row)
{
    stg_category category = stg_fault_about(row->outcome.fault)->category;

    stg_json_open_row(j, NULL);
    stg_json_string(j, "fault", row->name);
    stg_json_string(j, "category", stg_category_name(category));
    stg_json_string(j, "cause", row->cause);
    stg_json_limit(j, "retries_max",
                   row->is_uncounted || row->retries_max == STG_ALWAYS
                       ? STG_UNLIMITED
                       : row->retries_max);
    if (row->is_uncounted)
        stg_json_bool(j, "uncounted", true);
    stg_json_close(j, '}');
}

static void show_warning(stg_json *j, const stg_warning *w)
{
    stg_json_open(j, NULL, '{');
    stg_json_string(j, "code", w->code);
    stg_json_string(j, "text", w->text);
    stg_json_string(j, "fix", w->fix);
    stg_json_close(j, '}');
}

/* waits has the listed rows only; waits_truncated says that there are more. */
static void show_numbers(stg_json *j, const stg_plan *plan)
{
    const stg_forecast *f = &plan->forecast;

    stg_json_open(j, "waits", '[');
    for (uint32_t i = 0; i < f->wait_count; i++)
        show_wait(j, &f->waits[i]);
    stg_json_close(j, ']');
    stg_json_bool(j, "waits_truncated", f->is_truncated);
    stg_json_ms(j, "wait_total_max_ms", f->wait_total_most);
    stg_json_ms(j, "time_total_max_ms", f->time_total_most);
    stg_json_limit(j, "amplification_max", f->requests_max);
    stg_json_limit_thousandths(j, "amplification_sustained", f->sustained);
    stg_json_limit_thousandths(j, "retries_per_second_max", f->per_second);
}

/* arrivals_mean_100ms is there only with --clients, as without it there is no
 * number. */
void stg_plan_write(const stg_plan *plan, uint32_t clients, stg_json *j)
{
    const stg_policy *p = &plan->policy;

    stg_json_open(j, NULL, '{');
    stg_json_string(j, "name", plan->name);
    stg_json_string(j, "text", plan->text);
    stg_json_limit(j, "attempts_max", p->attempts_max);
    stg_json_ms(j, "deadline_ms", p->deadline);
    stg_json_ms(j, "attempt_timeout_ms", p->attempt_timeout);
    stg_json_ms(j, "retry_after_max_ms", p->retry_after_max);
    stg_json_string(j, "retry_after", stg_retry_after_name(p->retry_after));
    stg_json_ms(j, "reset_after_ms", p->reset_after);
    show_bases(j, p);
    show_numbers(j, plan);
    if (clients > 0)
        stg_json_thousandths(j, "arrivals_mean_100ms",
                             stg_plan_arrivals(plan, clients));
    show_budget(j, p);
    stg_json_limit_thousandths(j, "rate_per_second",
                               p->rate == 0 ? STG_UNLIMITED : p->rate);
    stg_json_limit(j, "bulkhead_max",
                   p->bulkhead.max == 0 ? STG_UNLIMITED : p->bulkhead.max);
    stg_json_ms(j, "bulkhead_wait_ms", p->bulkhead.wait);
    stg_json_string(j, "throttle", throttles[p->throttle.kind]);
    stg_json_limit_thousandths(
        j, "throttle_k",
        p->throttle.kind == STG_THROTTLE_SRE ? p->throttle.k : STG_UNLIMITED);
    stg_json_number(j, "hedges_max", p->hedge.max);
    stg_json_ms(j, "hedge_delay_ms",
                p->hedge.delay == 0 ? STG_NEVER : p->hedge.delay);
    stg_json_limit(j, "hedge_percentile",
                   p->hedge.percentile == 0 ? STG_UNLIMITED
                                            : p->hedge.percentile);
    show_breaker(j, p);

    stg_json_open(j, "faults", '[');
    for (size_t i = 0; i < plan->answers.count; i++)
        show_fault(j, &plan->answers.rows[i]);
    stg_json_close(j, ']');
    stg_json_open(j, "warnings", '[');
    for (size_t i = 0; i < plan->lint.count; i++)
        show_warning(j, &plan->lint.warnings[i]);
    stg_json_close(j, ']');
    stg_json_close(j, '}');
}
