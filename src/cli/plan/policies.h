/* policies.h - the policies that the arguments of `plan` name. Private. */
#ifndef STAGGER_CLI_PLAN_POLICIES_H
#define STAGGER_CLI_PLAN_POLICIES_H

#include "cli/plan/plan.h"

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

#endif
