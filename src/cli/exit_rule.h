/* exit_rule.h - what `stagger run` adds to a policy: exit codes are retried. */
#ifndef STAGGER_CLI_EXIT_RULE_H
#define STAGGER_CLI_EXIT_RULE_H

#include <stagger/policy.h>

/* Whether the policy itself has a word on exit codes: a rule on exit or any. */
bool stg_exit_rule_stands(const stg_policy *p);

/* Adds the rule where none stands. Returns false if there is no room for it. */
bool stg_exit_rule_add(stg_policy *p);

#endif
