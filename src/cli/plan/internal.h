/* internal.h - policies with all that is known of them, and ways to show them.
 *
 * Each show function prints to stdout. */
#ifndef STAGGER_CLI_PLAN_INTERNAL_H
#define STAGGER_CLI_PLAN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/ns.h>
#include <stagger/policy.h>
#include <stagger/text.h>

#include "cli/terminal.h"
#include "plan/plan.h"

/* -- policies and what they do ---------------------------------------------- */

typedef struct stg_plans {
    size_t count;
    stg_plan *at;
    uint32_t clients; /* how many use a policy at once; 0: not said */
} stg_plans;

/* One policy, at length; `plans` has one. */
void stg_plan_show_table(const stg_plans *plans, const stg_terminal *t);

/* Several, side by side. */
void stg_plan_show_columns(const stg_plans *plans, const stg_terminal *t);

/* A picture of the waits. */
void stg_plan_show_plot(const stg_plans *plans, const stg_terminal *t);

/* -- what the first three share: words.c */

/* "2 backend: exponential base=..."; number 0: none. */
void stg_plan_show_text(const stg_plan *plan, size_t number,
                        const stg_terminal *t);

/* The warnings, each with what to change; by policy if there are several. */
void stg_plan_show_warnings(const stg_plans *plans, const stg_terminal *t);

/* A line for what goes wrong, its label beginning with `before`, and one for the
 * fix. */
void stg_plan_show_warning(const stg_warning *w, const char *before,
                           const stg_terminal *t);

/* How many of the waits are made, the deadline being what it is; and how many
 * of these are worth a row each: the last of them stands for the rest, which
 * are all the same. */
uint32_t stg_plan_made(const stg_plan *plan);
uint32_t stg_plan_listed(const stg_plan *plan);

/* In place of a number of retries: the fault is waited for, uncounted. */
enum { STG_PLAN_WAITED = STG_RETRIES_MAX + 1 };

/* Whether a row is worth room in a table: faults of our own doing are, if they
 * are retried. */
bool stg_plan_is_shown(const stg_forecast_answer *row, uint16_t retries_max);

/* Whether it hears no server that says when to come back. */
bool stg_plan_is_deaf(const stg_policy *p);

#define STG_PLAN_WORDS_MAX 400

/* Sentences and numbers for people: static, or written to words, which has room
 * for STG_PLAN_WORDS_MAX bytes. */
const char *stg_plan_budget(const stg_policy *p, char *words);
const char *stg_plan_bases(const stg_policy *p, char *words);
const char *stg_plan_rate(const stg_policy *p, char *words);
const char *stg_plan_bulkhead(const stg_policy *p, char *words);
const char *stg_plan_throttle(const stg_policy *p, char *words);
const char *stg_plan_hedge(const stg_policy *p, char *words);
const char *stg_plan_breaker(const stg_plan *plan, char *words);
const char *stg_plan_thousandths(uint64_t number, char *words);
const char *stg_plan_answer(uint16_t retries_max, char *words);

/* -- reading them ----------------------------------------------------------- */

/* Fills in name and policy of a plan for each word, for all of the file where
 * there is none, or for the default where there is no file either. file is NULL
 * or a path. Returns 0, or complains and returns an exit code. plans is freed
 * by stg_plan_free() in any case. */
int stg_plan_read(stg_plans *plans, const char *file, int count, char **words);

/* Likewise for targets of a hub's settings: their policies as the hub applies
 * them. */
int stg_plan_read_targets(stg_plans *plans, const char *config,
                          const char *const *targets, size_t count);

void stg_plan_free(stg_plans *plans);

/* -- of a hub's settings ---------------------------------------------------- */

typedef int stg_plan_take(void *ctx, const char *name,
                          const stg_policy *policy);

/* Reads the hub's settings file and gives the policy of each of the targets to
 * take, which returns 0 or an exit code. The policy is lent. Returns 0, the
 * code of take, or complains of the file or of a name and returns one. */
int stg_plan_targets_walk(const char *config, const char *const *names,
                          size_t count, stg_plan_take *take, void *ctx);

#endif
