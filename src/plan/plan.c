#include "plan/plan.h"

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
