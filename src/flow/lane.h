/* lane.h - one target's queue: its cursors in the partitions, the deliveries
 * that it has taken, what is parked, and what keeps it from starting more. */
#ifndef STAGGER_FLOW_LANE_H
#define STAGGER_FLOW_LANE_H

#include <stdbool.h>

#include <stagger/outcome.h>
#include <stagger/policy.h>

#include "base/heap.h"
#include "base/list.h"
#include "flow/flow.h"
#include "flow/limit.h"

/* -- uplinks ------------------------------------------------------------- */

/* Is it our own network that fails, or the targets'?
 *
 * Pure. A name server, a network or a proxy of ours that is away makes all
 * dials fail alike, which is no fault of the targets: nothing of it is counted.
 * Lanes that go through a proxy have that for their uplink, those of one proxy the
 * same; all others have the one of this machine.
 *
 * The uplink is down when all dials of the last 2 s ended so (dns-temporary,
 * ENETUNREACH, ENETDOWN, no-ports), to three lanes or more (or to all, where
 * there are fewer), and none otherwise.
 *
 * The first dial that ends so may be the first of many, or the one of a target
 * with an address that cannot be reached. So its lane is a suspect: it waits,
 * uncounted, until another lane's dial connects, which makes such faults of it
 * its own; until the uplink is down; or for 2 s, after which they are its own,
 * too, for nothing speaks for the uplink.
 *
 * While the uplink is down, the lanes that have met it wait, by turns one of
 * them dials once a second, and the first dial that ends otherwise ends it.
 * Lanes whose connections work do not notice.
 *
 * Of a proxy, one lane is enough where the fault is `proxy`: nobody else can have
 * caused it, and no lane has it for its own. A connect-timeout, where the proxy has
 * said nothing, may be the target's: there the rule above decides. */

typedef struct stg_uplink {
    stg_link link;  /* flow.proxies; of this machine's: in no list */
    stg_link down;  /* flow.uplinks_down */
    uint64_t proxy; /* its number; 0: this machine's */
    uint32_t users; /* lanes */
    stg_list lanes; /* suspects; while it is down, those that wait for it: the
                       one that dialed last is the last */
    uint32_t count; /* of lanes */
    stg_ns reached_at; /* the last dial that ended otherwise; 0: none */
    stg_ns down_at;    /* is_down: since then */
    stg_ns suspect_at; /* and the first dial that failed so */
    stg_ns probe_at;   /* is_down: when the next one may dial */
    bool is_down;
    bool may_probe; /* is_down: one of the lanes may dial now */
} stg_uplink;

/* Of a lane. */
typedef struct stg_uplink_mark {
    stg_uplink *of;
    stg_link link;   /* uplink.lanes */
    stg_ns since_at; /* in the list: since then */
    bool is_sure;    /* in the list: by a fault that is the proxy's */
    bool is_own;     /* such faults are the target's own */
} stg_uplink_mark;

/* -- delivery.c: a delivery, and why a breaker opened ---------------------- */

typedef enum stg_delivery_state {
    STG_DELIVERY_UNTRIED,   /* taken, and waits for its turn */
    STG_DELIVERY_IN_FLIGHT, /* an attempt is under way */
    STG_DELIVERY_SETTLING,  /* its change waits for the store */
    STG_DELIVERY_PARKED,    /* its row is durable, and it waits */
    STG_DELIVERY_ENDED,     /* ended; kept until a fetch has been answered */
} stg_delivery_state;

/* One message for one target, from the moment a lane takes it until it is
 * settled. What a delivery needs that succeeds comes first. The flags are facts
 * of their own beside the state: most hold in several of them. */
struct stg_delivery {
    struct stg_lane *lane;
    stg_message *message; /* holds a reference */
    void *attempt;        /* the shell's */
    stg_link link;        /* untried or parked, of the lane */
    stg_link busy;        /* in flight, settling or ended, of the lane */
    stg_delivery_state state;
    uint32_t replay;
    uint32_t slot; /* of the ring, if in_ring */
    bool in_ring;
    /* The lane is removed: this parked delivery was taken out of the ring, and
     * its row will be cancelled. */
    bool is_released;
    bool is_stored; /* the store has a parked row of it */
    bool is_in_group;
    bool after_hole; /* what came before it is settled, shed or lost */
    bool is_blocked; /* an earlier one of its key is not settled */
    bool is_probe;
    bool
        is_cut; /* cancelled, since the hub stops or its partition is revoked */
    bool is_awaited;       /* its partition waits for its end */
    bool was_unauthorized; /* its last attempt was put back for that */
    bool has_failure;
    stg_charge paid;          /* of the lane's budget and the global one */
    stg_change_kind kind;     /* settling: what is to be stored */
    uint64_t attempts_before; /* of earlier series and replays */
    stg_progress progress;
    stg_ns attempt_at; /* this or the last attempt: flow's clock */
    stg_ns began_at;   /* its series, by the wall clock: it may be older than
                          flow's clock; 0: it has not begun */
    stg_link change;   /* of what waits for the store */
    size_t texts_size;
    char *texts; /* the bytes that failure points to; NULL: none */
    stg_ns due_at, wait;
    stg_ns due_wall;     /* due_at by the wall clock, as it is stored */
    stg_failure failure; /* the last one; times by the wall clock */
};

/* The fault that opened a lane's breaker, for what is shed while it is open: a
 * lane has one note of its last opening, with what was last seen of the same
 * fault. Groups that are out keep the notes that their bulk rows name. Its
 * words are cut, so it is not among what memory_max counts. */
typedef struct stg_note {
    uint32_t refs;
    uint64_t opening;    /* of the lane's openings, which one */
    stg_failure failure; /* first_attempt_at: when the breaker opened */
    char texts[];
} stg_note;

/* The breaker is open, and an attempt has failed: it opened it, or is one more
 * since. Without memory the note stays as it was. */
void stg_note_failure(stg_flow *f, struct stg_lane *l, const stg_end *end,
                      stg_ns attempt_at);

stg_note *stg_note_hold(stg_note *note);
void stg_note_drop(stg_flow *f, stg_note *note); /* NULL: nothing */

/* -- delivery.c: a ring of them -------------------------------------------- */

typedef struct stg_slot {
    uint64_t position;
    stg_delivery *delivery; /* NULL: settled */
} stg_slot;

/* The deliveries that a lane has taken above its base, in the log's order, each
 * settled or not. A ring grows as it fills up; one that is empty has no
 * memory. */
typedef struct stg_ring {
    stg_slot *slots;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t first;    /* slots are numbered on and on, and wrap */
    uint32_t count;
    uint32_t settled; /* of count: those without a delivery */
} stg_ring;

static inline stg_slot *stg_ring_at(const stg_ring *r, uint32_t slot)
{
    return &r->slots[slot & (r->capacity - 1)];
}

/* Whether its last slot is of this position. */
static inline bool stg_ring_ends_at(const stg_ring *r, uint64_t position)
{
    return r->count > 0 &&
           stg_ring_at(r, r->first + r->count - 1)->position == position;
}

/* Room for one more; false: no memory. */
bool stg_ring_reserve(stg_ring *r, const stg_memory *memory);

/* Puts in after the last, above its position; there is room. Returns the
 * slot. */
uint32_t stg_ring_push(stg_ring *r, uint64_t position, stg_delivery *d);

/* The slot is settled. What is settled at the front leaves, and an empty ring
 * gives its memory back. */
void stg_ring_settle(stg_ring *r, uint32_t slot, const stg_memory *memory);

void stg_ring_free(stg_ring *r, const stg_memory *memory);

/* -- a lane ---------------------------------------------------------------- */

/* A bulk row: what a lane settled without an attempt. Of what the lane was to
 * get from first to last nothing is missing in it (unless it is cancelled, for
 * that is not replayed). */
typedef struct stg_bulk_row {
    uint64_t first, last; /* positions */
    uint64_t count;       /* 0: there is none open */
    uint64_t opening;     /* of OPEN and DOWN: which of the breaker's it was */
    uint64_t stored;      /* of count, as far as the store knows */
    stg_shed_reason reason; /* unless it is cancelled */
    bool is_cancelled;      /* the lane is removed; else it sheds */
    bool is_dirty;          /* the store does not know this state of it */
    bool is_in_group;       /* a state of it is on its way to the store */
    bool is_closed;         /* what comes next goes into another one */
} stg_bulk_row;

/* Changes of the books by a group, to be counted when it is durable. */
typedef struct stg_books_change {
    uint64_t delivered, dead;
    uint64_t fresh; /* of them, those that had no row before */
    int64_t rows, replays;
} stg_books_change;

/* What the store knows of a cursor. */
typedef enum stg_cursor_stored {
    STG_CURSOR_NEW,       /* nothing */
    STG_CURSOR_DURABLE,   /* one, as it was at some time */
    STG_CURSOR_FORGOTTEN, /* nothing any more: the lane is removed */
} stg_cursor_stored;

/* A lane's cursor in one partition. There may be a million, so it has no gaps. */
typedef struct stg_lane_cursor {
    uint64_t
        next; /* the position where the lane reads on, if it is catching up */
    uint64_t number; /* in the window, if not */
    stg_cursor_stored stored;
    bool is_catching_up;
    bool is_following; /* the lane may want messages of it */
    /* Its rows were parked when the lane had another order, by another hub:
     * they have no slot in the ring, and nothing is taken before they end. */
    bool is_draining;
    bool has_hole; /* it has passed over some that are settled, shed or lost,
                      and taken none since */
    stg_ring ring;

    /* Above the base, what the store knew to be settled: passed over. */
    stg_positions *restored;
    size_t restored_count, restored_at, restored_capacity;
    /* Rows below it have no slot in the ring: the base has passed them. */
    uint64_t loose_below;

    /* The books. rows: parked rows that are durable; waiting: taken, without a
     * row, and not in flight; in_flight: without a row, too. */
    uint64_t routed, delivered, dead, cancelled, rows, waiting, in_flight;
    uint64_t replays; /* of rows, those of replays */
    stg_books_change in_group;

    stg_bulk_row bulk;
    stg_bulk_row expired; /* what the log had lost */
    uint64_t taken;       /* the highest position that is not in the open row */
    uint64_t passed;      /* the highest that is settled and has no slot */
    uint64_t lost;        /* the highest that the log had lost */
    uint64_t shed_below;  /* past retention: what is below is shed */
    uint64_t durable;     /* the base that the store knows */
    stg_ns lagging_at;    /* when the message was accepted at which a lane
                            stands, or the one before it; or when it was found
                            to be one; 0: not known */
} stg_lane_cursor;

static inline bool stg_bulk_row_is_unsaved(const stg_lane_cursor *p)
{
    return p->bulk.is_dirty || p->bulk.is_in_group || p->expired.is_dirty ||
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
    bool has_stale_fetch; /* the fetch under way must be repeated */
    bool is_ahead;        /* a row that was read was due by a clock ahead of
                             flow's: those after the mark may be due at once */
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
 * has to come from memory. The flags are facts of their own: a lane may be open,
 * paused and shedding at a time. */
typedef struct stg_lane {
    uint32_t number;
    stg_lane_list where;
    stg_link link;             /* where */
    size_t flying;             /* bytes of the messages in flight */
    stg_order order_requested; /* o.order becomes it when it can */
    uint32_t in_flight;
    uint32_t starts;    /* every fourth is for what waits longer */
    uint32_t replaying; /* of in_flight, replays */
    uint32_t settling;
    uint32_t parking; /* of settling, those that become new rows */
    uint32_t untried_count;
    uint32_t probe_depth; /* most attempts of a row to be preferred as probe */
    uint32_t probing;     /* probes under way */
    uint32_t cursor_count;
    bool is_failing; /* its last outcome was the target's trouble */
    bool is_open;
    bool is_denied;       /* it is open, and no probe may start */
    bool is_limit_used;   /* the last start left no room below the limit */
    bool has_probed_most; /* the last probe was a parked one */
    bool is_shedding;
    bool is_expiring;   /* somewhere below shed_below */
    bool is_store_full; /* a row did not fit: it is throttled */
    bool is_parked_max; /* STG_TELL_PARKED_MAX was given out */
    bool is_paused;
    bool is_gated; /* stg_flow_gate() */
    bool is_removing;
    bool is_new;    /* the store does not know it */
    bool is_ending; /* and all of it is settled: it is to be forgotten */
    bool
        awaits_read; /* may start, and waits for what the merged reader reads */
    stg_ns gate_at;  /* Retry-After: nothing starts before */
    stg_ns trying_at; /* since when there was no success, if in flight */
    stg_list untried; /* deliveries taken and not tried, in order */
    stg_list busy;    /* in flight, settling and ended */
    size_t pinned;    /* bytes of untried messages */
    size_t in_ring;   /* bytes of all that is unsettled in its rings */
    stg_lane_cursor *cursors; /* by the slot of a partition */
    stg_uplink_mark uplink;
    stg_lane_options o;
    stg_lane_peer *peer; /* NULL: nothing has started yet */
    stg_parked_cache caches[STG_PARKED_CACHES]; /* of parked rows */

    struct stg_delivery *kept; /* parked; as a probe it failed, and it stays in
                                  memory for the next one */
    stg_ns rate_at;            /* the rate limit: nothing starts before */
    stg_ns budget_at;          /* no retry before */
    stg_ns opened_at;          /* since when the breaker is open */
    stg_ns probed_from;        /* before then it had nothing to probe with */
    stg_note *note;            /* what opened it; NULL: it never did */
    uint64_t shed_count;
    uint64_t retries, budget_refused, openings;
    stg_link catch_up_link; /* of the lanes that catch up */
    stg_link added;         /* of those that are durable now */
    stg_node timer;
} stg_lane;

#endif
