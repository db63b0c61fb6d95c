/* drain.h - how should many clients retry that begin together and want one success
 * of one resource each: candidates, and how they are judged by simulation.
 *
 * A candidate is a policy and a spread of the starts. Each is tried with as many
 * clients as were asked for, and with half to twice as many. What counts, in this
 * order: that all clients succeed; the time until the last one is done; the calls
 * for each success. Times within 2 % are taken for the same. Pure. */
#ifndef STAGGER_SIM_DRAIN_H
#define STAGGER_SIM_DRAIN_H

#include <stagger/text.h>

#include "chart/text_buffer.h"
#include "sim/contention.h"

typedef struct stg_drain_question {
    uint32_t clients; /* 1 to STG_DRAIN_CLIENTS_MAX; where the model cannot be
                         smaller, to STG_DRAIN_CLIENTS_WHOLE */
    stg_resource resource;
    stg_distribution network; /* of each message */
    stg_ns timeout;   /* of an attempt; STG_NEVER: none; 0: 2 s, or ten times
                         what a call takes */
    stg_ns patience;  /* how long a client may wait; STG_NEVER: any time */
    stg_ns start_max; /* over how long the starts may be spread; STG_NEVER:
                         twice the time at best */
} stg_drain_question;

enum {
    STG_DRAIN_CLIENTS_MAX = 10000000,
    STG_DRAIN_CLIENTS_WHOLE = 100000,
    STG_DRAIN_CALLS_MAX = 64, /* for each client; then a run ends */
};

/* 100 clients of an optimistic resource, a network of |normal(10 ms, 2 ms)|. */
stg_drain_question stg_drain_question_default(void);

/* Checks the ranges above. */
stg_status stg_drain_question_check(const stg_drain_question *q,
                                    stg_error *err);

/* How long an attempt waits at most; STG_NEVER. */
stg_ns stg_drain_timeout(const stg_drain_question *q);

/* -- scenarios ------------------------------------------------------------- */

enum {
    STG_DRAIN_SCENARIOS = 5,
    STG_DRAIN_SCENARIOS_FIRST = 2, /* as asked, and with twice the clients */
};

/* The clients of scenario number i; number 0 is what was asked. */
uint32_t stg_drain_clients(const stg_drain_question *q, size_t i);

/* What no policy can be faster than, on average, in ns: the work of all successes
 * over what works at once. 0: not known. */
double stg_drain_least(const stg_drain_question *q, uint32_t clients);

/* The same, and where it is not known a time of that kind: what candidates are
 * made by. */
double stg_drain_usual(const stg_drain_question *q, uint32_t clients);

/* By how much the model is smaller than what was asked: 1 or more. Workers (or
 * calls of a window) and clients are divided by the same number. */
double stg_drain_scale(const stg_drain_question *q);

/* The model of scenario number i, but for policy, spread of the starts, and seed. */
stg_contention_options stg_drain_options(const stg_drain_question *q, size_t i);

/* -- candidates ------------------------------------------------------------ */

enum {
    STG_DRAIN_WAIT,     /* the first one: from short to long */
    STG_DRAIN_CAP,      /* how many times that */
    STG_DRAIN_JITTER,   /* none, equal, full, decorrelated */
    STG_DRAIN_ATTEMPTS, /* from unlimited to few */
    STG_DRAIN_START,    /* at once, then from a short spread to a long one */
    STG_DRAIN_GENES
};

enum { STG_DRAIN_NAME_MAX = 96 };

typedef struct stg_drain_candidate {
    uint8_t genes[STG_DRAIN_GENES];
    stg_policy policy;
    stg_ns start;
} stg_drain_candidate;

/* The candidate number i of the first round; false after the last. The first
 * STG_DRAIN_PLAIN are for comparison: the library's own backoff, without jitter and
 * as it is. */
enum { STG_DRAIN_PLAIN = 2 };
bool stg_drain_make(const stg_drain_question *q, size_t i,
                    stg_drain_candidate *c);

/* The neighbour number i, below STG_DRAIN_NEIGHBOURS, of one that is not for
 * comparison; false: there is none. */
enum { STG_DRAIN_NEIGHBOURS = 2 * STG_DRAIN_GENES };
bool stg_drain_near(const stg_drain_question *q,
                    const stg_drain_candidate *from, size_t i,
                    stg_drain_candidate *c);

/* "base=2s cap=20s full attempts=10 start=20s". Returns text. */
const char *stg_drain_name(const stg_drain_candidate *c,
                           char text[STG_DRAIN_NAME_MAX]);

/* -- verdicts -------------------------------------------------------------- */

/* What a candidate came to, over the scenarios that it was tried in, the first
 * ones of all. Scenarios weigh the same. */
typedef struct stg_drain_verdict {
    uint32_t runs, unfinished; /* those in which some client did not succeed */
    uint32_t cut;              /* those that a limit ended */
    double missed;             /* share of the clients without success, mean */
    double time;  /* until the last client stopped, over the usual time: mean */
    double calls; /* for each success: mean */
    double peak_ms100;                         /* calls in 100 ms, as asked */
    stg_estimate done_ms[STG_DRAIN_SCENARIOS]; /* when the last one stopped */
    double each[STG_DRAIN_SCENARIOS];          /* calls for each success */
} stg_drain_verdict;

/* Of `reps` runs in each of so many scenarios, by scenario. */
stg_drain_verdict stg_drain_judge(const stg_drain_question *q,
                                  const stg_contention_run *runs,
                                  size_t scenarios, uint32_t reps);

/* Below 0: a is better; 0: as good. */
int stg_drain_compare(const stg_drain_verdict *a, const stg_drain_verdict *b);

/* How much more one has than another, run by run, in all scenarios: of clients
 * without success (a share), of time (in usual times), of calls for each success.
 */
typedef struct stg_drain_difference {
    stg_estimate missed, time, calls;
} stg_drain_difference;

stg_drain_difference stg_drain_compare_runs(const stg_drain_question *q,
                                            const stg_contention_run *more,
                                            const stg_contention_run *less,
                                            uint32_t reps);

/* -- in words -------------------------------------------------------------- */

/* One of the last round. */
typedef struct stg_drain_case {
    const char *name; /* borrowed */
    bool is_plain;    /* there for comparison */
    stg_ns start;     /* the spread */
    const stg_drain_verdict *verdict;
    stg_drain_difference more; /* than the advised one has */
} stg_drain_case;

typedef struct stg_drain_report {
    const stg_drain_question *question;
    const stg_drain_case *cases; /* the advised one first, then by rank */
    size_t count;
    size_t tried; /* candidates */
    uint32_t reps;
} stg_drain_report;

/* The question, in a line. */
void stg_drain_say_question(const stg_drain_question *q, stg_text_buffer *p);

/* Lines, each a claim that the runs support. */
void stg_drain_say(const stg_drain_report *r, stg_text_buffer *p);

#endif
