/* lane.h - one target's line: its cursors, what it has taken, what is parked,
 * and what holds it back. */
#ifndef STAGGER_FLOW_LANE_H
#define STAGGER_FLOW_LANE_H

#include <stdbool.h>

#include <stagger/policy.h>

#include "base/heap.h"
#include "base/list.h"
#include "flow/flow.h"
#include "flow/limit.h"
#include "flow/note.h"
#include "flow/ring.h"
#include "flow/uplink.h"

/* A bulk row: what a lane settled without an attempt. Of what the lane was to
 * get from first to last nothing is missing in it (unless it is cancelled, for
 * that is not replayed). */
typedef struct stg_range {
    uint64_t first, last;   /* positions */
    uint64_t count;         /* 0: there is none open */
    bool is_cancelled;      /* the lane is removed; else it sheds */
    stg_shed_reason reason; /* then */
    uint64_t opening; /* of OPEN and DOWN: which of the breaker's it was */
    uint64_t stored;  /* of count, as far as the store knows */
    bool is_dirty;    /* the store does not know this state of it */
    bool is_in_group; /* a state of it is on its way to the store */
    bool is_closed;   /* what comes next goes into another one */
} stg_range;

/* Changes of the books by a group, to be counted when it is durable. */
typedef struct stg_books_change {
    uint64_t delivered, dead;
    uint64_t fresh; /* of them, those that had no row before */
    int64_t rows, replays;
} stg_books_change;

/* A lane's cursor in one partition. */
typedef struct stg_place {
    uint64_t next;   /* the position where the lane reads on, if a laggard */
    uint64_t number; /* in the window, if not */
    bool is_laggard;
    bool is_following; /* the lane may want messages of it */
    bool is_restored;  /* the store knew it */
    stg_ring ring;

    /* Positions above the base that the store knew to be settled: skipped. */
    uint64_t *restored;
    size_t restored_count, restored_at, restored_capacity;
    /* Rows below it have no place in the ring: the base has passed them. */
    uint64_t loose_below;
    /* Its rows were parked when the lane had another order, by another hub:
     * they have no place in the ring, and nothing is taken before they end. */
    bool is_draining;
    bool is_forgotten; /* the lane is removed, durably, in this partition */

    /* The books. rows: parked rows that are durable; waiting: taken, without a
     * row, and not in flight; in_flight: without a row, too. */
    uint64_t routed, delivered, dead, cancelled, rows, waiting, in_flight;
    uint64_t replays; /* of rows, those of replays */
    stg_books_change in_group;

    stg_range range;
    stg_range expired;   /* what the log had lost */
    uint64_t taken;      /* the highest position that is not in a range */
    uint64_t lost;       /* the highest that the log had lost */
    bool has_hole;       /* it has passed over some, and taken none since */
    uint64_t shed_below; /* past retention: what is below is shed */
    uint64_t durable;    /* the base that the store knows */
    stg_ns behind_at;    /* when the message was accepted at which a laggard
                            stands, or the one before it; or when it was found
                            to be one; 0: not known */
} stg_place;

static inline bool stg_range_is_unsaved(const stg_place *p)
{
    return p->range.is_dirty || p->range.is_in_group || p->expired.is_dirty ||
           p->expired.is_in_group;
}

#define STG_PARKED_HELD 64 /* rows in memory, of each kind */
#define STG_PROBE_DEPTH 8  /* see stg_lane.probe_depth */

/* Parked rows of one kind: the earliest are in memory. Replays are apart, for
 * thousands of them must not come before the lane's own retries. */
typedef struct stg_parked_cache {
    stg_list rows; /* deliveries by mark; the earliest of all */
    uint32_t count;
    bool is_all;    /* and so are those after the mark */
    bool is_unread; /* none was fetched yet, and one may close the gate */
    bool is_fetching;
    bool has_stale_fetch; /* what is being fetched is to be fetched again */
    bool was_evicted;     /* for want of memory: not at once again */
    stg_mark mark;        /* every row up to it is in memory */
    stg_ns fetch_at;      /* not before */
    stg_link fetch;       /* of the flow's caches that want rows */
    struct stg_lane *lane;
} stg_parked_cache;

enum {
    STG_PARKED_RETRIES, /* replay = 0 */
    STG_PARKED_REPLAYS, /* replay > 0 */
    STG_PARKED_CACHES,
};

typedef enum stg_lane_list {
    STG_IN_NONE,      /* something will wake it */
    STG_IN_READY,     /* may be able to start an attempt */
    STG_IN_IDLE,      /* wants messages */
    STG_IN_NO_MEMORY, /* wants a shared slot */
} stg_lane_list;

/* The levels of its policy and of its limit; the other parts of a peer the hub
 * does not have. Most of many thousand lanes may have nothing to do for a long
 * time, so it is made for the first start. */
typedef struct stg_lane_peer {
    stg_limit limit;
    stg_limiter limiter;
    stg_breaker breaker;
    stg_budget budget;
} stg_lane_peer;

/* What each start and each end looks at comes first: with thousands of lanes it
 * has to come from memory. */
typedef struct stg_lane {
    uint32_t number;
    stg_lane_list where;
    stg_link link;          /* where */
    stg_order order_wanted; /* o.order becomes it when it can */
    uint32_t in_flight;
    uint32_t starts;    /* every fourth is for what waits longer */
    uint32_t replaying; /* of in_flight, replays */
    uint32_t settling;
    uint32_t parking; /* of settling, those that become new rows */
    uint32_t untried_count;
    uint32_t probe_depth; /* most attempts of a row to be preferred as probe */
    uint32_t probing;     /* probes under way */
    bool is_failing;      /* its last outcome was the target's trouble */
    bool is_open;
    bool is_held;         /* it is open, and no probe may start */
    bool has_probed_most; /* the last probe was a parked one */
    bool is_shedding;
    bool is_expiring;   /* somewhere below shed_below */
    bool is_store_full; /* a row did not fit: it gates */
    bool is_parked_max; /* people were told */
    bool is_paused;
    bool is_removing;
    bool is_new;    /* the store does not know it */
    bool is_ending; /* and all of it is settled: it is to be forgotten */
    bool is_hungry; /* may start, and waits for what the merged reader reads */
    stg_ns gate_at; /* Retry-After: nothing starts before */
    stg_ns trying_at;  /* since when there was no success, if in flight */
    stg_list untried;  /* deliveries taken and not tried, in order */
    stg_list busy;     /* in flight, settling and gone */
    size_t pinned;     /* bytes of untried messages */
    size_t in_ring;    /* bytes of all that is unsettled in its rings */
    stg_place *places; /* by the slot of a partition */
    stg_uplink_mark uplink;
    stg_lane_options o;
    stg_lane_peer *peer; /* NULL: nothing has started yet */
    stg_parked_cache caches[STG_PARKED_CACHES]; /* of parked rows */

    uint32_t place_count;
    struct stg_delivery *kept; /* parked; as a probe it failed, and it stays in
                                  memory for the next one */
    stg_ns rate_at;            /* the rate limit: nothing starts before */
    stg_ns budget_at;          /* no retry before */
    stg_ns opened_at;          /* since when the breaker is open */
    stg_note *note;            /* what opened it; NULL: it never did */
    uint64_t shed_count;
    uint64_t retries, budget_refused, openings;
    stg_link laggard; /* of the flow's laggards */
    stg_link added;   /* of those that are durable now */
    stg_node timer;
} stg_lane;

#endif
