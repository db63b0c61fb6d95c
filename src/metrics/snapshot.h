/* snapshot.h - all that the metrics say, as it was at one moment: taken on the
 * loop, printed anywhere.
 *
 * Labels are bounded. So many targets have a row each, by their name; all the
 * others are one row together, "(other)", which no target can be called. */
#ifndef STAGGER_METRICS_SNAPSHOT_H
#define STAGGER_METRICS_SNAPSHOT_H

#include <stagger/ns.h>

#include "alerts/alerts.h"
#include "config/targets.h"
#include "filter/verdicts.h"
#include "host/process.h"
#include "http/client.h"
#include "ingress/ingress.h"
#include "metrics/counters.h"
#include "metrics/exposition.h"
#include "sources/source.h"
#include "store/store.h"

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
