/* The parts of a plan in their order, and its times in words. */
#include "plan/plan.h"

#include <stdio.h>

/* In this order: the forecast needs the answers, the lint needs both. */
void stg_plan_work_out(stg_plan *plan, uint32_t clients)
{
    stg_lint_facts facts = {
        .policy = &plan->policy,
        .forecast = &plan->forecast,
        .answers = &plan->answers,
        .clients = clients,
        .is_in_hub = plan->is_of_target,
    };

    (void)stg_policy_print(&plan->policy, plan->text);
    stg_answers_list(&plan->answers, &plan->policy, plan->is_of_target);
    stg_forecast_make(&plan->forecast, &plan->policy,
                      stg_answers_retries_max(&plan->answers));
    stg_lint_check(&plan->lint, &facts);
}

/* Thousandths of clients in 100 ms of retry 1, as if the wait were uniform in
 * its range. A range that is shorter than 100 ms has all of them. */
uint64_t stg_plan_arrivals(const stg_plan *plan, uint32_t clients)
{
    const stg_wait_range *first = &plan->forecast.waits[0].wait;
    const stg_ns moment = 100 * STG_MS;
    stg_ns width = first->most - first->least;

    if (plan->forecast.wait_count == 0)
        return 0;
    if (width <= moment)
        return 1000 * (uint64_t)clients;
    return 1000 * (uint64_t)clients * moment / width;
}

/* -- times ------------------------------------------------------------------ */

/* In tenths of the unit, or hundredths of a second and less, if these are whole
 * and few. */
static bool write_exact(stg_ns ns, stg_ns unit, const char *name,
                        char text[STG_NS_TEXT_MAX])
{
    enum { LONGEST = 8 };
    stg_ns hundredth = unit < 100 ? 1 : unit / 100;
    unsigned whole, part;
    int length = LONGEST + 1;

    if (ns < unit || ns % hundredth != 0 || ns / unit >= 1000)
        return false;
    whole = (unsigned)(ns / unit);
    part = (unsigned)(ns % unit / hundredth);
    if (part == 0)
        length = snprintf(text, STG_NS_TEXT_MAX, "%u %s", whole, name);
    else if (part % 10 == 0)
        length =
            snprintf(text, STG_NS_TEXT_MAX, "%u.%u %s", whole, part / 10, name);
    else if (unit <= STG_S)
        length =
            snprintf(text, STG_NS_TEXT_MAX, "%u.%02u %s", whole, part, name);
    return length <= LONGEST;
}

const char *stg_time_text(stg_ns ns, char text[STG_NS_TEXT_MAX])
{
    static const struct {
        stg_ns length;
        const char *name;
    } units[] = {
        {STG_DAY, "d"}, {STG_HOUR, "h"}, {STG_MIN, "min"}, {STG_S, "s"},
        {STG_MS, "ms"}, {STG_US, "us"},  {1, "ns"},
    };

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (write_exact(ns, units[i].length, units[i].name, text))
            return text;
    return stg_ns_text(ns, text);
}
