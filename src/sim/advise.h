/* advise.h - which policy: candidates for a service that may fail, and how they
 * are judged by simulation.
 *
 * Each candidate is tried where the service is down (outage) and where it hangs
 * (stall), with the load as it is and with more of it: advice that holds only
 * on the day that was described is none. One answer in a hundred is an error
 * that passes, for which retries are good on any day. What counts, in this
 * order: that the service recovers, in every run; that few operations are lost;
 * that the load is low. Pure. */
#ifndef STAGGER_SIM_ADVISE_H
#define STAGGER_SIM_ADVISE_H

#include <stagger/text.h>

#include "chart/text_buffer.h"
#include "sim/overload_summary.h"

typedef struct stg_question {
    uint32_t clients;   /* that call the service, 1 to 10000000 */
    uint32_t processes; /* that they live in: each has one budget and one
                           breaker; 1 to clients */
    uint64_t capacity;  /* requests a second that the service can do, in
                           thousandths: 1000 to 4 * 10^9 */
    uint32_t load;      /* the share of it that is wanted when all is well, in
                           thousandths: 10 to 950 */
    stg_ns outage;      /* to be survived, 100 ms to 1 h */
    stg_ns patience;    /* how long a client may wait, 10 ms to 1 h */
    stg_ns service; /* what a request takes when nobody waits, 1 us to 1 min;
                           less than patience */
    uint32_t queue; /* places to wait in; UINT32_MAX: twice
                           what comes in an attempt's timeout */
} stg_question;

/* 5000 clients in as many processes, 800 requests a second of which 70 % are
 * wanted, 30 s of outage, 10 s of patience, requests of 20 ms. */
stg_question stg_question_default(void);

/* Checks the ranges above. */
stg_status stg_question_check(const stg_question *q, stg_error *err);

/* How a candidate is tried. */
typedef enum stg_scenario {
    STG_SCENARIO_OUTAGE,
    STG_SCENARIO_STALL,
    STG_SCENARIO_OUTAGE_MORE, /* with more load */
    STG_SCENARIO_STALL_MORE,
    STG_SCENARIO_COUNT
} stg_scenario;

/* The load of a scenario, as a share of the capacity in thousandths. */
uint32_t stg_scenario_load(const stg_question *q, stg_scenario scenario);

/* By how much the model is smaller than what was asked, clients and capacity
 * alike, so that a run takes a moment: 1 or more. */
uint32_t stg_question_scale(const stg_question *q);

/* The model of a scenario, but for its policy. */
stg_overload_options stg_scenario_options(const stg_question *q,
                                          stg_scenario scenario);

/* The policy for a process of the model: where there are fewer of them than the
 * scale would have, each has more to do, and its budget as much more. */
stg_policy stg_question_policy(const stg_question *q, const stg_policy *policy);

/* What is counted of a run. */
stg_ns stg_question_run(const stg_question *q);

#define STG_CANDIDATE_NAME_MAX 96

typedef struct stg_candidate {
    char name[STG_CANDIDATE_NAME_MAX]; /* what tells it from the others */
    uint32_t family;                   /* same budget and breaker; 0: none */
    stg_policy policy;
} stg_candidate;

/* The candidate number i from 0; false after the last. The first two are for
 * comparison: no retries at all, and retries without a budget or breaker. */
bool stg_candidate_make(const stg_question *q, size_t i, stg_candidate *c);

/* What a candidate came to, over all scenarios that it was tried in. */
typedef struct stg_advice_verdict {
    uint32_t runs, failed; /* those that did not recover, or were not well */
    uint32_t unwell;       /* those that were not well before the trouble */
    double recovery_ms[STG_SCENARIO_COUNT]; /* mean; -1: never, or not tried */
    double lost; /* share of the operations of a run, mean over scenarios */
    double load; /* requests for each operation, mean */
    double peak; /* of the load, over the capacity: the highest mean */
} stg_advice_verdict;

/* A verdict that knows of nothing yet. */
stg_advice_verdict stg_verdict_begin(void);

void stg_verdict_add(stg_advice_verdict *v, const stg_question *q,
                     stg_scenario scenario, const stg_overload_summary *s);

/* Below 0: a is better; 0: as good. */
int stg_verdict_compare(const stg_advice_verdict *a,
                        const stg_advice_verdict *b);

/* Whether they came to the very same: what tells the two policies apart made no
 * difference. */
bool stg_verdict_equal(const stg_advice_verdict *a,
                       const stg_advice_verdict *b);

/* How much less of the operations was lost in one than in the other, in the same
 * runs of each scenario: the mean of their differences, run by run, and its
 * standard error; of one run each the error is that over the scenarios. Both
 * have `scenarios` of them in the same order, each with the same number of runs,
 * one at least. */
stg_estimate stg_verdict_gain(const stg_overload_summary *const *with,
                              const stg_overload_summary *const *without,
                              size_t scenarios);

/* Whether a gain is more than what chance makes: two standard errors. */
bool stg_verdict_is_gain(stg_estimate gain);

/* The share of a run's operations that no policy can save: those that began in
 * the outage so early that their client's patience ends before it does. */
double stg_question_hopeless(const stg_question *q);

#endif
