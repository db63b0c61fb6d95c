/* plan.h - what a retry policy will do, worked out before anybody waits: its waits
 * and bounds (forecast.c), what it says of each fault (answers.c), and known
 * mistakes (lint.c).
 *
 * For `stagger plan` and for the hub's API, which show the same. Pure: no clock,
 * and nothing is simulated. */
#ifndef STAGGER_PLAN_PLAN_H
#define STAGGER_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/ns.h>
#include <stagger/policy.h>
#include <stagger/text.h>

#include "base/json.h"

/* -- times ---------------------------------------------------------- */

/* Times for people, short and exact where they can be. */

/* Stands for a blank at which no line is broken. */
#define STG_HELD '\037'

/* Returns text, of 8 letters at most but for the longest times: "213503 d". */
const char *stg_time_text(stg_ns ns, char text[STG_NS_TEXT_MAX]);

/* -- answers.c ----------------------------------------------------------- */

/* What a policy says of each fault, as the library answers it.
 *
 * A row is a fault with a name, an HTTP status, a code that the policy names,
 * or the rest of a family ("other 5xx"). Together they cover every outcome that
 * any rule can tell from another. */

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
 * STG_HELD says it. Cut to size. Returns how many names. */
typedef bool stg_answers_take(const stg_forecast_answer *row, const void *ctx);
size_t stg_answers_write(const stg_answers *answers, stg_answers_take *take,
                         const void *ctx, char *text, size_t size);

/* -- exit codes, as stagger run has them ------------------------------------ */

/* Whether the policy itself has a word on exit codes: a rule on exit or any. */
bool stg_exit_rule_stands(const stg_policy *p);

/* Adds the rule where none stands. Returns false if there is no room for it. */
bool stg_exit_rule_add(stg_policy *p);

/* -- forecast.c ---------------------------------------------------------- */

/* A forecast of a policy's waits.
 *
 * Pure integer arithmetic on a checked policy; saturating, so that STG_NEVER
 * reads as "never ends". A mean is rounded down to the ns. Waits are the
 * policy's own: a server's Retry-After comes on top. Rows hold for the
 * backoff's base; the bounds below them, for every base that the policy has. */

typedef struct stg_wait_range {
    stg_ns least;
    stg_ns mean;
    stg_ns most;
} stg_wait_range;

typedef struct stg_forecast_wait {
    uint64_t retry; /* from 1 */
    stg_ns window;  /* w(n); of jitters that have none, the most */
    stg_wait_range wait;
    stg_wait_range total;  /* of this wait and those before it */
    bool is_mean_estimate; /* decorrelated past its cap; Polly's */
    bool is_past_deadline; /* never made: the least total is too much */
} stg_forecast_wait;

#define STG_FORECAST_ROWS 32

/* Numbers without a bound are STG_UNLIMITED, times STG_NEVER. */
typedef struct stg_forecast {
    uint32_t wait_count; /* each retry up to 32; of unlimited ones, until the
                            windows stop growing, and two more */
    stg_forecast_wait waits[STG_FORECAST_ROWS];
    stg_forecast_wait last; /* the last retry of all; zeros if there is none */
    bool is_truncated;      /* there are more than wait_count */
    uint64_t retries_max;   /* by attempts alone */
    uint64_t retries_in_time; /* of them, with the least waits, in the deadline;
                                 by then attempts have taken no time */
    uint64_t retries_usual;   /* the same with mean waits */
    stg_ns wait_total_most;   /* of retries_max */
    stg_ns time_total_most;   /* waits and attempts, within the deadline */
    uint64_t attempts_max; /* that one operation can come to: by attempts, the
                              deadline, and the limits of faults */
    uint64_t requests_max; /* the same with its hedges */
    uint64_t sustained;    /* attempts an operation while everything fails, in
                              thousandths; without a ratio as requests_max */
    uint64_t per_second; /* retries a second that the budget allows for good, in
                            thousandths; STG_UNLIMITED: none, or it depends */
} stg_forecast;

/* rules_max: stg_answers_retries_max(). */
void stg_forecast_make(stg_forecast *f, const stg_policy *p,
                       uint64_t rules_max);

/* Retry n from 1: a row that is listed, or one behind them. */
stg_forecast_wait stg_forecast_row(const stg_forecast *f, const stg_policy *p,
                                   uint64_t n);

/* How long an attempt and its hedges may take; STG_NEVER: no bound. A hedge
 * starts only while another one is under way. */
stg_ns stg_forecast_round(const stg_policy *p);

/* -- lint.c -------------------------------------------------------------- */

/* Known mistakes in a policy, each with what to change.
 *
 * Few and precise: a warning says what goes wrong, in numbers where there are
 * some, and its fix can be pasted into the text. Presets have none, but those
 * without jitter. Codes are for programs, and do not change. */

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
    bool is_in_hub; /* a target's policy: the hub's budget fills up again */
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

/* -- all of it -------------------------------------------------------------- */

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
