/* lint_rules.h - the part of lint that looks at rules on faults. Private. */
#ifndef STAGGER_CLI_PLAN_LINT_RULES_H
#define STAGGER_CLI_PLAN_LINT_RULES_H

#include "cli/plan/lint.h"

/* A new warning, its text printed; when there are too many, a spare one. */
__attribute__((format(printf, 3, 4))) stg_warning *
stg_lint_add(stg_lint *lint, const char *code, const char *format, ...);

/* Prints its fix. */
__attribute__((format(printf, 2, 3))) void
stg_lint_fix(stg_warning *w, const char *format, ...);

/* Rules that retry too much, too little, or nothing at all. */
void stg_lint_check_rules(stg_lint *lint, const stg_lint_facts *facts);

#endif
