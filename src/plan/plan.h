/* plan.h - what a retry policy will do, worked out before anybody waits: its waits
 * and bounds (forecast.h), what it says of each fault (answers.h), and known
 * mistakes (lint.h).
 *
 * For `stagger plan` and for the hub's API, which show the same. Pure: no clock,
 * and nothing is simulated. */
#ifndef STAGGER_PLAN_PLAN_H
#define STAGGER_PLAN_PLAN_H

#include <stdbool.h>

#include <stagger/policy.h>
#include <stagger/text.h>

#include "base/json.h"
#include "plan/answers.h"
#include "plan/forecast.h"
#include "plan/lint.h"

typedef struct stg_plan {
    char *name;    /* a preset's, one of a file, "default", or the text given */
    bool is_named; /* it is a name, and no text */
    bool
        is_of_target; /* of a hub, which waits for an open breaker, and for what
                          its machine lacks */
    char text[STG_POLICY_TEXT_MAX]; /* canonical */
    stg_policy policy;
    stg_answers answers;
    stg_forecast forecast;
    stg_lint lint;
} stg_plan;

/* Fills in text, answers, forecast and lint, of policy and is_of_target. clients:
 * how many use the policy at once; 0: not said. */
void stg_plan_work_out(stg_plan *plan, uint32_t clients);

/* How many arrive in 100 ms on average at retry 1, in thousandths, when all
 * clients failed at once: their number over the width of the first wait. All
 * of them, where that is shorter. */
uint64_t stg_plan_arrivals(const stg_plan *plan, uint32_t clients);

/* An object with every number. */
void stg_plan_write(const stg_plan *plan, uint32_t clients, stg_json *j);

#endif
