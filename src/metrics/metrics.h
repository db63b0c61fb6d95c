/* metrics.h - what the hub counts, and the page that says it: GET /metrics.
 *
 * Counting is a few increments an attempt. The page is made in three steps: the
 * loop takes a picture, some targets a turn, so that ten thousand of them do not
 * make it late; a thread prints it; the loop gives the text away. So the
 * numbers of one target are of one moment, and those of two may not be.
 *
 * All on the loop's thread but the printing, which sees only the picture. */
#ifndef STAGGER_METRICS_METRICS_H
#define STAGGER_METRICS_METRICS_H

#include <uv.h>

#include "base/list.h"
#include "host/deadlines.h"
#include "hub/target.h"
#include "metrics/snapshot.h"

typedef struct stg_metrics {
    stg_hub *hub;
    uint32_t labelled_max; /* targets with a label of their own */
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
    stg_snapshot picture;
    size_t rows_max, at; /* the target that is next */
    uint64_t changes;    /* of the targets, when it was begun */
    stg_ns wall_at;      /* and the wall clock */
    stg_exposition page;
    uv_work_t work;
    bool is_printing;
    void (*closed)(void *ctx);
    void *closed_ctx;
} stg_metrics;

/* labelled_max: the targets that have a label of their own, the first ones
 * first; the others are told together. Zeroed before. */
void stg_metrics_open(stg_metrics *m, stg_hub *hub, uint32_t labelled_max);

/* Those who wait are told no more. closed is called when nothing is under way:
 * perhaps at once. */
void stg_metrics_close(stg_metrics *m, void (*closed)(void *ctx), void *ctx);

/* -- the page -------------------------------------------------------------- */

/* text is given, to be freed by free(); NULL: there was no memory. */
typedef void stg_metrics_fn(void *ctx, char *text, size_t size);

/* Calls done once, not from within this call. Who asks while a page is being made gets that one. False: there was no
 * memory, and done is not called. */
bool stg_metrics_ask(stg_metrics *m, stg_metrics_fn *done, void *ctx);

/* GET /metrics of an ingress, for those who may view. */
void stg_metrics_serve(stg_metrics *m, stg_ingress *g);

/* -- what is counted ------------------------------------------------------- */

/* An attempt starts. */
void stg_metrics_start(stg_target *t, bool is_retry);

/* It has ended. accepted_at: when its message was, wall clock; 0: unknown. */
void stg_metrics_end(stg_target *t, const stg_outcome *o, const stg_verdict *v,
                     stg_ns took, stg_ns accepted_at);

/* The breaker of a target has opened; t may be NULL. */
void stg_metrics_opened(stg_target *t);

/* A group goes to the store; and it is durable, while flow still keeps it: what
 * is dead is counted then. */
void stg_metrics_store(stg_metrics *m, const stg_group *g, stg_ns now);
void stg_metrics_stored(stg_metrics *m, stg_ns now);

/* Rows of dead letters were parked, to be sent again; t may be NULL. */
void stg_metrics_replayed(stg_target *t, uint64_t count);

/* The target goes, and its counters: what they said of one without a label stays
 * with the others, whose sums never fall. */
void stg_metrics_forget(stg_metrics *m, stg_target *t);

#endif
