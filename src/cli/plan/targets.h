/* targets.h - the policies of a hub's targets, as the hub applies them. */
#ifndef STAGGER_CLI_PLAN_TARGETS_H
#define STAGGER_CLI_PLAN_TARGETS_H

#include <stddef.h>

#include <stagger/policy.h>

typedef int stg_plan_take(void *ctx, const char *name,
                          const stg_policy *policy);

/* Reads the hub's settings file and gives the policy of each of the targets to
 * take, which returns 0 or an exit code. The policy is lent. Returns 0, the
 * code of take, or complains of the file or of a name and returns one. */
int stg_plan_targets_walk(const char *config, const char *const *names,
                          size_t count, stg_plan_take *take, void *ctx);

#endif
