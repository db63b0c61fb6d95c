/* counters.h - what is counted of a target, from the start of the process.
 *
 * A few increments an attempt: causes are counted by their number, and have
 * names only where they are read. Plain data; zeroed, nothing was counted. */
#ifndef STAGGER_METRICS_COUNTERS_H
#define STAGGER_METRICS_COUNTERS_H

#include <stagger/event.h>

#include "base/histogram.h"
#include "flow/group.h"
#include "store/cause.h"

enum {
    STG_STATUSES = 8 /* of HTTP that are told apart, for each target */
};

/* How often there was each cause. Statuses of HTTP have a place each, first
 * come, first served; one that found none is counted with its family, as
 * HTTP_4XX: what a leaf answers cannot make the page longer than that. */
typedef struct stg_causes {
    uint64_t faults[STG_FAULT_COUNT]; /* NONE: without a failure */
    struct {
        stg_fault fault;
        uint32_t status; /* 0: no place is taken from here on */
        uint64_t count;
    } statuses[STG_STATUSES];
} stg_causes;

void stg_causes_add(stg_causes *c, const stg_outcome *o, uint64_t count);
void stg_causes_merge(stg_causes *c, const stg_causes *other);

/* Each cause that was counted, as records name it. */
typedef void stg_cause_fn(void *ctx, const char *cause, stg_category category,
                          uint64_t count);
void stg_causes_each(const stg_causes *c, stg_cause_fn *each, void *ctx);

/* Of all causes, successes included. */
uint64_t stg_causes_sum(const stg_causes *c);

/* What a delivery counts that succeeds comes first. */
typedef struct stg_counters {
    uint64_t started; /* attempts */
    uint64_t retries; /* of them: not the first of their delivery */
    uint64_t delivered;
    stg_causes ended; /* attempts, by what they came to */
    stg_histogram took;
    stg_histogram latency; /* from accepted to delivered */

    /* -- other decisions, and why */
    uint64_t parked[STG_WHY_COUNT];
    uint64_t put_back; /* as it was before the attempt */
    uint64_t dead[STG_WHY_COUNT];
    /* of bulk rows: settled without an attempt, */
    uint64_t shed[STG_SHED_HOWS];          /* how, */
    uint64_t shed_causes[STG_SHED_CAUSES]; /* and why, where it was no fault */
    stg_causes letters;                    /* all others */
    uint64_t replayed; /* messages of dead letters that are sent again */
    uint64_t openings; /* of the breaker */

    /* -- what others count, and may begin to count anew */
    uint64_t budget_refused, connects;
    uint64_t connects_seen; /* as its endpoint said it last */
} stg_counters;

/* An attempt that has ended. */
void stg_counters_attempt(stg_counters *c, const stg_outcome *o, stg_ns took);

/* What the policy made of it. The dead are counted when they are durable. */
void stg_counters_decision(stg_counters *c, const stg_decision *d,
                           bool is_put_back);

/* A dead letter is durable. failure: NULL if nothing had failed. */
void stg_counters_dead(stg_counters *c, const stg_failure *failure);

/* A bulk row of messages that were never tried has grown. */
void stg_counters_shed(stg_counters *c, const stg_change *change);

/* What others count, as it is now. */
void stg_counters_note(stg_counters *c, uint64_t budget_refused,
                       uint64_t connects);

void stg_counters_merge(stg_counters *c, const stg_counters *other);

/* Whether the metrics tell of a target by its name. */
typedef enum stg_target_label {
    STG_LABEL_NONE, /* they have not told of it yet */
    STG_LABEL_OWN,
    STG_LABEL_OTHERS, /* together with others */
} stg_target_label;

/* A target as the metrics know it. Zeroed, nothing was counted. */
typedef struct stg_meter {
    stg_counters *counters; /* NULL: it had no attempt yet */
    stg_target_label label;
} stg_meter;

#endif
