/* advise.h - which policy: candidates for a service that may fail, and how they
 * are judged by simulation.
 *
 * Advice that holds only on the day that was described is none. So each candidate
 * is tried where the service is down (outage) and where it hangs (stall), for
 * half to four times as long as was asked, with 80 % to 120 % of the load. One
 * answer in a hundred is an error that passes, for which retries are good on any
 * day. What counts, in this order: that the service recovers, in every run; that
 * few operations are lost; that the load is low. Pure. */
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
    stg_ns service;     /* time of a request that does not wait, 1 us to 1 min;
                           less than patience */
    uint32_t queue;     /* places to wait in; UINT32_MAX: twice
                           what comes in an attempt's timeout */
} stg_question;

/* 5000 clients in as many processes, 800 requests a second of which 70 % are
 * wanted, 30 s of outage, 10 s of patience, requests of 20 ms. */
stg_question stg_question_default(void);

/* Checks the ranges above. */
stg_status stg_question_check(const stg_question *q, stg_error *err);

/* -- scenarios ------------------------------------------------------------- */

/* How a candidate is tried, by what was asked. */
typedef struct stg_scenario {
    stg_trigger_kind kind; /* outage or stall */
    uint32_t outage;       /* how long, in thousandths of what was asked */
    uint32_t load;         /* in thousandths of what was asked */
} stg_scenario;

enum {
    STG_SCENARIOS = 14,
    STG_SCENARIOS_ASKED = 2, /* the first: an outage and a stall as asked */
    STG_SCENARIOS_FIRST = 3, /* what tells most apart for what it takes */
};

/* The scenario number i, below STG_SCENARIOS. */
stg_scenario stg_scenario_at(size_t i);

/* Its load, as a share of the capacity in thousandths, 950 at most; how long
 * its trouble is; what is counted of a run. */
uint32_t stg_scenario_load(const stg_question *q, stg_scenario s);
stg_ns stg_scenario_outage(const stg_question *q, stg_scenario s);
stg_ns stg_scenario_run(const stg_question *q, stg_scenario s);

/* The share of a run's operations that no policy can save: those that began in
 * the outage so early that their client's patience ends before it does. */
double stg_scenario_hopeless(const stg_question *q, stg_scenario s);

/* The mean of it over all scenarios. */
double stg_question_hopeless(const stg_question *q);

/* -- the model ------------------------------------------------------------- */

/* By how much the model is smaller than what was asked, clients and capacity
 * alike, so that a run takes a moment: 1 or more. */
uint32_t stg_question_scale(const stg_question *q);

/* Operations a second that are asked for when all is well. */
double stg_question_rate(const stg_question *q);

/* How long a client waits for one attempt, at most. */
stg_ns stg_question_timeout(const stg_question *q);

/* Millionths of the answers that are an error, whatever the load. */
enum { STG_QUESTION_ERRORS = 10000 };

/* The model of a scenario, but for its policy. */
stg_overload_options stg_scenario_options(const stg_question *q,
                                          stg_scenario s);

/* The policy for a process of the model: where there are fewer of them than the
 * scale would have, each has more to do, and its budget as much more. */
stg_policy stg_question_policy(const stg_question *q, const stg_policy *policy);

/* -- candidates ------------------------------------------------------------ */

/* What a candidate is made of: numbers of choices, each from 0. Neighbours differ
 * in one of them, by one. */
enum {
    STG_GENE_WAIT,     /* from short to long */
    STG_GENE_ATTEMPTS, /* from one on */
    STG_GENE_TIMEOUT,  /* timeout of an attempt: from long to short */
    STG_GENE_BUDGET,   /* none, then from tight to wide */
    STG_GENE_EMPTY,    /* give up, or wait for the budget */
    STG_GENE_BREAKER,  /* none, then from quick to slow */
    STG_GENE_OPEN,     /* for how long: from short to long */
    STG_GENE_DENIED,   /* give up, or wait for the breaker */
    STG_GENES
};

typedef struct stg_candidate {
    uint8_t genes[STG_GENES];
    stg_policy policy;
} stg_candidate;

enum { STG_CANDIDATE_NAME_MAX = 96 };

/* The candidate number i of the first round, from 0; false after the last. The
 * first two are for comparison: no retries at all, and retries without a budget
 * or breaker. */
bool stg_candidate_make(const stg_question *q, size_t i, stg_candidate *c);

/* The neighbour number i of another candidate; false: there is none of this
 * number, below STG_NEIGHBOURS. A gene that does nothing in it has none. */
enum { STG_NEIGHBOURS = 2 * STG_GENES };
bool stg_candidate_near(const stg_question *q, const stg_candidate *from,
                        size_t i, stg_candidate *c);

/* What tells it from the others: "list=8s attempts=2 breaker=1:5s waits".
 * Returns text. */
const char *stg_candidate_name(const stg_candidate *c,
                               char text[STG_CANDIDATE_NAME_MAX]);

/* Of candidates of one kind, which differ in numbers only: the same. */
uint32_t stg_candidate_kind(const stg_candidate *c);

/* -- verdicts -------------------------------------------------------------- */

/* What a candidate came to, over the scenarios that it was tried in, the first
 * ones of all. Means weigh each run the same. */
typedef struct stg_advice_verdict {
    uint32_t runs, failed; /* those that did not recover, or were not well */
    uint32_t unwell;       /* those that were not well before the trouble */
    uint32_t failed_in[STG_SCENARIOS]; /* those of `failed`, by scenario */
    double recovery_ms[STG_SCENARIOS]; /* mean; -1: never, or not tried */
    double longest_ms[STG_SCENARIOS];  /* of any run; likewise */
    double lost;       /* share of the operations of a run, mean */
    double lost_asked; /* the same in the scenarios that were asked */
    double load;       /* requests for each operation, mean */
    double p99_ms;     /* latency of operations that succeeded, mean of those
                          runs that have one */
    uint32_t p99_runs;
    double peak; /* of the load, over the capacity: the highest mean */
} stg_advice_verdict;

/* A verdict that knows of nothing yet. */
stg_advice_verdict stg_verdict_begin(void);

/* Adds the runs of scenario number i. */
void stg_verdict_add(stg_advice_verdict *v, const stg_question *q, size_t i,
                     const stg_overload_summary *s);

/* The longest recovery, in ms, from trouble of a kind in any of the first
 * `scenarios`; -1: in one of them some run did not recover. */
double stg_verdict_worst(const stg_advice_verdict *v, size_t scenarios,
                         stg_trigger_kind kind);

/* Below 0: a is better; 0: as good. Recovery, then loss, then load. */
int stg_verdict_compare(const stg_advice_verdict *a,
                        const stg_advice_verdict *b);

/* Whether they came to the very same: what tells the two policies apart made no
 * difference. */
bool stg_verdict_equal(const stg_advice_verdict *a,
                       const stg_advice_verdict *b);

/* How much less of the operations was lost in one than in the other, in the same
 * runs of each scenario: the mean of their differences, run by run, and its
 * standard error. Both have `scenarios` of them in the same order, each with the
 * same number of runs, two at least. */
stg_estimate stg_verdict_gain(const stg_overload_summary *const *with,
                              const stg_overload_summary *const *without,
                              size_t scenarios);

/* Whether a gain is more than what chance makes. Three standard errors: the best
 * of ten candidates was chosen for being ahead. */
bool stg_verdict_is_gain(stg_estimate gain);

/* -- in words --------------------------------------------------------------- */

/* A finalist. */
typedef struct stg_advice_case {
    const char *name; /* borrowed */
    bool retries;
    bool is_plain;                     /* there for comparison */
    const stg_advice_verdict *verdict; /* of all scenarios */
    stg_estimate gain; /* how much less the first case lost than this one */
} stg_advice_case;

/* Where recovery ends, at a load: in thousandths of the outage that was asked, the
 * longest that was tried where every run recovers, and the shortest where one does
 * not. */
typedef struct stg_cliff {
    uint32_t load;  /* thousandths of what was asked; 0: not looked for */
    uint32_t holds; /* 0: none */
    uint32_t fails; /* 0: none */
} stg_cliff;

enum { STG_CLIFFS = 2 };

typedef struct stg_advice_report {
    const stg_question *question;
    const stg_advice_case *cases; /* the advised one first, then by rank */
    size_t count;
    size_t tried; /* candidates, at least */
    stg_cliff cliffs[STG_CLIFFS];
} stg_advice_report;

/* Lines, of the recovery, the loss, the cost, and the other candidates. */
void stg_advice_say(const stg_advice_report *r, stg_text_buffer *p);

/* The question, in a line. */
void stg_advice_say_question(const stg_question *q, stg_text_buffer *p);

/* "12 s", "at once"; "not always" below 0. Returns text. */
enum { STG_ADVICE_AFTER_MAX = 40 };
const char *stg_advice_say_after(double ms, char text[STG_ADVICE_AFTER_MAX]);

#endif
