/* answers.h - what a policy says of each fault, as the library answers it.
 *
 * A row is a fault with a name, an HTTP status, a code that the policy names,
 * or the rest of a family ("other 5xx"). Together they cover every outcome that
 * any rule can tell from another. */
#ifndef STAGGER_PLAN_ANSWERS_H
#define STAGGER_PLAN_ANSWERS_H

#include <stddef.h>

#include <stagger/policy.h>

typedef struct stg_forecast_answer {
    char name[STG_CAUSE_MAX];  /* as policies write it */
    char cause[STG_CAUSE_MAX]; /* as records write it */
    bool is_rest;         /* of its family: all that stands in no other row */
    bool is_by_policy;    /* a code that only the policy names */
    stg_outcome outcome;  /* one of those that the row stands for */
    uint16_t retries_max; /* 0, 1 to 255, STG_ALWAYS */
    int limited;          /* as stg_policy_retries() says */
    bool is_uncounted;    /* whatever the policy says, the hub waits until the
                             fault is over, and counts no attempt */
} stg_forecast_answer;

#define STG_ANSWERS_MAX 128

typedef struct stg_answers {
    size_t count;
    stg_forecast_answer rows[STG_ANSWERS_MAX]; /* by category */
} stg_answers;

/* is_in_hub: of a target's policy, as a hub applies it. */
void stg_answers_list(stg_answers *answers, const stg_policy *p,
                      bool is_in_hub);

/* What p says of a row's outcome. */
uint16_t stg_answers_ask(const stg_policy *p, const stg_forecast_answer *row,
                         int *limited);

/* Whether a hub puts the delivery of a target with this policy back as it was:
 * after what this machine lacks, which says nothing about the target, and while
 * the breaker is open. */
bool stg_answers_is_uncounted(const stg_policy *p,
                              const stg_forecast_answer *row);

/* The most retries that rules allow one operation: STG_UNLIMITED if any fault
 * is always retried, else the sum of the limits; without what is not counted. */
uint64_t stg_answers_retries_max(const stg_answers *answers);

/* The names of rows that `take` chooses, blanks between; a family that is
 * taken whole is named once ("5xx"), and in "other 5xx" the blank is held, as
 * plan/duration.h means it. Cut to size. Returns how many names. */
typedef bool stg_answers_take(const stg_forecast_answer *row, const void *ctx);
size_t stg_answers_write(const stg_answers *answers, stg_answers_take *take,
                         const void *ctx, char *text, size_t size);

/* -- exit codes, as stagger run has them ------------------------------------ */

/* Whether the policy itself has a word on exit codes: a rule on exit or any. */
bool stg_exit_rule_stands(const stg_policy *p);

/* Adds the rule where none stands. Returns false if there is no room for it. */
bool stg_exit_rule_add(stg_policy *p);

#endif
