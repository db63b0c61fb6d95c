/* A policy's plan for a page: its waits, what it comes to, what it says of each
 * fault, and known mistakes; by what `stagger plan` has. */
#include <stagger/text.h>

#include "plan/plan.h"
#include "sim/wasm_internal.h"

/* 0 stands for no limit: no number here is 0 else, but times, where never is no
 * limit either. */
static void put_number(stg_text_buffer *b, uint64_t number)
{
    stg_text_buffer_put_char(b, ' ');
    stg_text_buffer_put_count(b, number == UINT64_MAX ? 0 : number);
}

static void put_range(stg_text_buffer *b, const stg_wait_range *range)
{
    put_number(b, range->least);
    put_number(b, range->mean);
    put_number(b, range->most);
}

static void put_waits(stg_text_buffer *b, const stg_forecast *f)
{
    for (uint32_t i = 0; i < f->wait_count; i++) {
        const stg_forecast_wait *row = &f->waits[i];

        stg_text_buffer_put(b, "wait");
        put_number(b, row->retry);
        put_number(b, row->window);
        put_range(b, &row->wait);
        put_range(b, &row->total);
        stg_text_buffer_put(b, row->is_past_deadline ? " 1\n" : " 0\n");
    }
}

/* The callback of stg_answers_write(). As in the command, faults that the library
 * makes itself are named only where they are retried. */
static bool is_listed(const stg_forecast_answer *row, const void *ctx)
{
    const bool *is_retried = ctx;

    if (row->retries_max > 0)
        return *is_retried;
    return !*is_retried &&
           stg_fault_about(row->outcome.fault)->category != STG_CATEGORY_OWN;
}

static void put_faults(stg_text_buffer *b, const char *key,
                       const stg_answers *answers, bool wanted)
{
    char names[2048];

    (void)stg_answers_write(answers, is_listed, &wanted, names, sizeof names);
    for (char *at = names; *at != '\0'; at++)
        *at = *at == STG_HELD ? '_' : *at;
    stg_text_buffer_form(b, "%s %s\n", key, names);
}

static void put_fact(stg_text_buffer *b, const char *key, uint64_t number)
{
    stg_text_buffer_put(b, key);
    put_number(b, number);
    stg_text_buffer_put_char(b, '\n');
}

const char *stg_wasm_plan(stg_wasm *w, const char *text, uint32_t clients)
{
    stg_text_buffer *b = &w->buffer;
    stg_plan *plan = &w->plan;
    stg_error err;

    *plan = (stg_plan){0};
    if (stg_policy_parse(&plan->policy, text, &err) != STG_OK)
        return stg_wasm_refuse(w, &err);
    stg_plan_work_out(plan, clients);
    stg_text_buffer_clear(b);
    put_waits(b, &plan->forecast);
    put_fact(b, "attempts", plan->forecast.attempts_max);
    put_fact(b, "requests", plan->forecast.requests_max);
    put_fact(b, "time", plan->forecast.time_total_most);
    put_fact(b, "deadline", plan->policy.deadline);
    put_fact(b, "arrivals", stg_plan_arrivals(plan, clients));
    put_fact(b, "more", plan->forecast.is_truncated);
    put_faults(b, "retried", &plan->answers, true);
    put_faults(b, "given-up", &plan->answers, false);
    for (size_t i = 0; i < plan->lint.count; i++)
        stg_text_buffer_form(
            b, "warning %s\t%s\t%s\n", plan->lint.warnings[i].code,
            plan->lint.warnings[i].text, plan->lint.warnings[i].fix);
    return b->text == NULL || b->is_short ? "" : b->text;
}
