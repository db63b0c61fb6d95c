/* lint.h - known mistakes in a policy, each with what to change.
 *
 * Few and precise: a warning says what goes wrong, in numbers where there are
 * some, and its fix can be pasted into the text. Presets have none, but those
 * without jitter. Codes are for programs, and do not change. */
#ifndef STAGGER_PLAN_LINT_H
#define STAGGER_PLAN_LINT_H

#include "plan/answers.h"
#include "plan/forecast.h"

typedef struct stg_warning {
    const char *code; /* "no-jitter" */
    char text[200];
    char fix[200];
} stg_warning;

#define STG_WARNINGS_MAX 32

typedef struct stg_lint {
    size_t count;
    stg_warning warnings[STG_WARNINGS_MAX + 1]; /* the last one is a spare */
} stg_lint;

/* What lint is told. clients: how many use the policy at once; 0: unknown. */
typedef struct stg_lint_facts {
    const stg_policy *policy;
    const stg_forecast *forecast;
    const stg_answers *answers;
    uint32_t clients;
    bool is_in_hub; /* of a target: the budget is the hub's, and fills up */
} stg_lint_facts;

void stg_lint_check(stg_lint *lint, const stg_lint_facts *facts);

/* -- rules ------------------------------------------------------------------ */

/* A new warning, its text printed; when there are too many, a spare one. */
__attribute__((format(printf, 3, 4))) stg_warning *
stg_lint_add(stg_lint *lint, const char *code, const char *format, ...);

/* Prints its fix. */
__attribute__((format(printf, 2, 3))) void
stg_lint_fix(stg_warning *w, const char *format, ...);

/* Rules that retry too much, too little, or nothing at all. */
void stg_lint_check_rules(stg_lint *lint, const stg_lint_facts *facts);

#endif
