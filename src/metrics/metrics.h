/* metrics.h - what is counted of targets, and the page that says it: GET
 * /metrics. The hub tells the facts, and this room knows no hub.
 *
 * Counting is a few increments an attempt. The page is made in three steps: the
 * loop takes a snapshot, some targets a turn, so that ten thousand of them do not
 * make it late; a thread prints it; the loop gives the text away. So the
 * numbers of one target are of one moment, and those of two may not be.
 *
 * All on the loop's thread but the printing, which sees only the snapshot. */
#ifndef STAGGER_METRICS_METRICS_H
#define STAGGER_METRICS_METRICS_H

#include <uv.h>

#include "base/list.h"
#include "host/deadlines.h"
#include "metrics/snapshot.h"

/* Where the facts come from that are not counted here. All are called on the
 * loop, with ctx. */
typedef struct stg_metrics_facts {
    /* How many targets there are; *changes differs whenever one came, went or
     * moved. */
    size_t (*count)(void *ctx, uint64_t *changes);

    /* The target number i from 0: its meter, and its row if that is not NULL,
     * all but the counters. wall_at: when the snapshot was begun. */
    stg_meter *(*look)(void *ctx, size_t i, stg_snapshot_row *row,
                       stg_ns wall_at);

    /* The meter of the lane's target; NULL: there is none. */
    stg_meter *(*meter)(void *ctx, uint32_t lane);

    /* All that is not of one target; the rows are complete. */
    void (*complete)(void *ctx, stg_snapshot *p);

    uv_loop_t *loop;
    stg_deadlines *deadlines;
    uint32_t labelled_max; /* targets with a label of their own */
    void *ctx;
} stg_metrics_facts;

typedef struct stg_metrics {
    stg_metrics_facts facts;
    uint32_t labelled;
    stg_counters gone; /* of targets that are no more: among the others */
    stg_ns started_at; /* wall clock */

    /* -- flow's group that is with the store */
    const stg_group *group;
    stg_ns group_at;
    stg_histogram groups;

    /* -- the page that is being made */
    stg_list waiting; /* for it */
    stg_deadline next;
    stg_snapshot snapshot;
    size_t rows_max, at; /* the target that is next */
    uint64_t changes;    /* of the targets, when it was begun */
    stg_ns wall_at;      /* and the wall clock */
    stg_exposition page;
    uv_work_t work;
    bool is_printing;
    void (*closed)(void *ctx);
    void *closed_ctx;
} stg_metrics;

/* The targets that have a label of their own are the first ones; the others are
 * told together. Zeroed before. */
void stg_metrics_open(stg_metrics *m, const stg_metrics_facts *facts);

/* Those who wait are told no more. closed is called when nothing is under way:
 * perhaps at once. */
void stg_metrics_close(stg_metrics *m, void (*closed)(void *ctx), void *ctx);

/* -- the page -------------------------------------------------------------- */

/* text is given, to be freed by free(); NULL: there was no memory. */
typedef void stg_metrics_fn(void *ctx, char *text, size_t size);

/* Calls done once, not from within this call. Who asks while a page is being
 * made gets that one. False: there was no memory, and done is not called. */
bool stg_metrics_ask(stg_metrics *m, stg_metrics_fn *done, void *ctx);

/* GET /metrics of an ingress, for those who may view. */
void stg_metrics_serve(stg_metrics *m, stg_ingress *g);

/* -- counting -------------------------------------------------------------- */

/* An attempt starts. */
void stg_metrics_start(stg_meter *t, bool is_retry);

/* It has ended. accepted_at: when its message was, wall clock; 0: unknown. */
void stg_metrics_end(stg_meter *t, const stg_outcome *o, const stg_verdict *v,
                     stg_ns took, stg_ns accepted_at);

/* The breaker of a target has opened. */
void stg_metrics_opened(stg_metrics *m, uint32_t lane);

/* A group goes to the store; and it is durable, while flow still keeps it: what
 * is dead is counted then. */
void stg_metrics_store(stg_metrics *m, const stg_group *g, stg_ns now);
void stg_metrics_stored(stg_metrics *m, stg_ns now);

/* Rows of dead letters of the lane were parked, to be sent again. */
void stg_metrics_replayed(stg_metrics *m, uint32_t lane, uint64_t count);

/* The target goes, and its counters: what they said of one without a label stays
 * with the others, whose sums never fall. */
void stg_metrics_forget(stg_metrics *m, stg_meter *t);

#endif
