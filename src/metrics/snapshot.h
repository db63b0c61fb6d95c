/* snapshot.h - all that the metrics say, as it was at one moment: taken on the
 * loop, printed anywhere.
 *
 * Labels are bounded. So many targets have a row each, by their name; all the
 * others are one row together, "(other)", which no target can be called. */
#ifndef STAGGER_METRICS_SNAPSHOT_H
#define STAGGER_METRICS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/event.h>
#include <stagger/ns.h>

#include "alerts/alerts.h"
#include "base/histogram.h"
#include "base/text.h"
#include "config/targets.h"
#include "filter/verdicts.h"
#include "flow/group.h"
#include "host/process.h"
#include "http/client.h"
#include "ingress/ingress.h"
#include "sources/source.h"
#include "store/cause.h"
#include "store/store.h"

/* -- exposition.c: the text ---------------------------------------------- */

/* A page of metrics in Prometheus' text format, version 0.0.4.
 *
 *     stg_page_family(&p, "stagger_retries_total", "counter", "...");
 *     stg_page_sample(&p, "", labels, 1, 42);
 *
 * A family is begun, then come its samples. Without memory the page is NULL in
 * the end, and nothing in between fails. */

#define STG_PAGE_TYPE "text/plain; version=0.0.4; charset=utf-8"

typedef struct stg_exposition {
    stg_text text;
    const char *family; /* the name of the one that is under way */
} stg_exposition;

typedef struct stg_label {
    const char *name;
    const char *value; /* any text: it is escaped here */
} stg_label;

/* Begins a family; name and type (counter, gauge, histogram) are lent until the
 * next one begins. */
void stg_page_family(stg_exposition *p, const char *name, const char *type,
                     const char *help);

/* A sample; suffix is "" but for the parts of a histogram. */
void stg_page_sample(stg_exposition *p, const char *suffix,
                     const stg_label *labels, size_t count, uint64_t value);

/* A sample of a time, in seconds. */
void stg_page_seconds(stg_exposition *p, const char *suffix,
                      const stg_label *labels, size_t count, stg_ns value);

/* A sample in thousandths. */
void stg_page_thousandths(stg_exposition *p, const stg_label *labels,
                          size_t count, uint64_t value);

/* A histogram: its buckets, sum and count. labels: 3 at most. */
void stg_page_histogram(stg_exposition *p, const stg_label *labels,
                        size_t count, const stg_histogram *h);

/* The whole page, given to the caller, to be freed by free(); NULL: there was
 * no memory. */
char *stg_page_take(stg_exposition *p, size_t *size);

/* -- counters ------------------------------------------------------------ */

/* What is counted of a target, from the start of the process.
 *
 * A few increments an attempt: causes are counted by their number, and have
 * names only where they are read. Plain data; zeroed, nothing was counted. */

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

#define STG_OTHER_TARGETS "(other)"

/* A target; or many, whose numbers are added up. */
typedef struct stg_snapshot_row {
    char name[STG_TARGET_NAME_MAX];
    uint32_t lane_number;               /* of a target by itself */
    uint32_t targets;                   /* that it is of */
    stg_lane_view lane;                 /* what can be added up is */
    uint32_t states[STG_TARGET_STATES]; /* targets in each */
    uint32_t catching_up;
    uint32_t breakers_open;
    stg_endpoint_view sockets;
    stg_ns lag_time; /* age of the oldest message that it has not settled */
    stg_counters counters;
} stg_snapshot_row;

/* What the source says of itself. */
typedef struct stg_snapshot_source {
    const char *name; /* static */
    stg_source_fact facts[STG_SOURCE_FACTS_MAX];
    size_t fact_count;
    stg_source_view *partitions; /* NULL: it has none to show */
    size_t count;
    uint64_t *lags; /* of each row but that of the others, in each partition;
                       NULL: they were too many */
} stg_snapshot_source;

/* A receiver of alerts, whose name may go with a reload. */
typedef struct stg_snapshot_receiver {
    char name[STG_TARGET_NAME_MAX];
    stg_alert_receiver_view view; /* but its name */
} stg_snapshot_receiver;

typedef struct stg_snapshot {
    stg_snapshot_row *rows; /* the last: the others, if there are any */
    size_t count;
    bool has_others;
    size_t known, unknown; /* targets of the settings, and of the store alone */

    struct {
        uint64_t stored, dropped;
        uint64_t copied, uncopied;
    } receipts;
    struct {
        uint64_t exported, full, refused, unsent, waiting;
    } spans;

    struct {
        uint64_t fetches, failures, refused;
        uint64_t gated; /* targets without one */
    } tokens;           /* of `oauth2` */

    stg_snapshot_source source;
    stg_flow_view flow;
    uint64_t accepted; /* messages, by all intakes */
    stg_verdicts_view filtered;
    bool is_stopping;
    stg_store_view store;
    bool has_ingress;
    stg_ingress_view ingress;
    stg_histogram groups; /* of flow, until they were durable */
    stg_alerts_view alerts;
    stg_snapshot_receiver receivers[STG_ALERT_RECEIVERS_MAX];
    size_t receiver_count;
    uint64_t log_dropped; /* lines */
    stg_ns started_at;    /* since 1970 */
    uint64_t memory_max;  /* what the settings say, bytes */
} stg_snapshot;

/* Rows that are of one target each. */
static inline size_t stg_snapshot_own_rows(const stg_snapshot *p)
{
    return p->count - p->has_others;
}

/* Adds one target more to a row. counters may be NULL: nothing was counted. */
void stg_snapshot_add(stg_snapshot_row *row, const stg_snapshot_row *one,
                      const stg_counters *counters);

/* What was taken of the source. */
void stg_snapshot_free_source(stg_snapshot *p);

void stg_snapshot_print(const stg_snapshot *p, const stg_process_view *process,
                        stg_exposition *page);

/* -- between the files that print ------------------------------------------ */

void stg_snapshot_print_targets(const stg_snapshot *p, stg_exposition *page);
void stg_snapshot_print_source(const stg_snapshot *p, stg_exposition *page);

#endif
