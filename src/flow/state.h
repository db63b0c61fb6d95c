/* state.h - all that a flow holds, and what its files do for each other. */
#ifndef STAGGER_FLOW_STATE_H
#define STAGGER_FLOW_STATE_H

#include <stagger/rng.h>

#include "base/memory.h"
#include "flow/lane.h"

/* -- partition.c: recent messages ------------------------------------------ */

/* The recent messages of a partition, in memory for all lanes. They have a number
 * here, counted from the first that was ever put in: numbers count, positions
 * only order. The window covers the positions from start to next: whatever the
 * log has in there is in it. */
typedef struct stg_window {
    stg_message **messages; /* number n is at n & (capacity - 1) */
    uint32_t capacity;      /* 0 or a power of two */
    uint64_t first, end;    /* numbers of the oldest, and of the next to come */
    uint64_t start, next;   /* positions */
} stg_window;

/* Covers nothing yet, and begins at a position. */
static inline void stg_window_init(stg_window *w, uint64_t position)
{
    *w = (stg_window){.start = position, .next = position};
}

static inline stg_message *stg_window_at(const stg_window *w, uint64_t number)
{
    return w->messages[number & (w->capacity - 1)];
}

/* The position that number n stands for: of its message, or where the next one
 * will come from. */
static inline uint64_t stg_window_position(const stg_window *w, uint64_t n)
{
    return n == w->end ? w->next : stg_window_at(w, n)->position;
}

/* The first number whose message is at position or above. */
uint64_t stg_window_find(const stg_window *w, uint64_t position);

/* Makes room for so many more. False: there is no memory. */
bool stg_window_reserve(stg_window *w, size_t count, const stg_memory *memory);

/* Puts in a message (kept), for which there is room. */
void stg_window_push(stg_window *w, stg_message *m);

/* Takes the oldest out; its reference is the caller's. */
stg_message *stg_window_shift(stg_window *w);

/* -- a flow ---------------------------------------------------------------- */

/* Where a partition is in its life here. */
typedef enum stg_phase {
    STG_PHASE_ASSIGNED,
    STG_PHASE_REVOKING, /* in order: nothing begins, and what is under way ends */
    STG_PHASE_LOST,     /* nothing of it is stored any more */
    STG_PHASE_ROWS,     /* there for its rows only */
} stg_phase;

/* The last checkpoint of a revoked partition. */
typedef enum stg_last {
    STG_LAST_NONE, /* some of it is under way */
    STG_LAST_DUE,  /* the last cursors go into the next group */
    STG_LAST_OUT,  /* the group with them is with the store, unanswered */
    STG_LAST_DONE, /* the last cursors are durable */
} stg_last;

/* One partition of a log. Beside the phase, the flags are what is due or under
 * way: facts of their own. */
typedef struct stg_partition {
    stg_window window;
    uint32_t number; /* the store's number */
    uint32_t slot;   /* its index among the cursors of each lane */
    stg_phase phase;
    bool is_merged;
    uint64_t generation, assignment;
    uint32_t followers;  /* lanes that follow it, and are not removed */
    uint64_t begin;      /* the log's oldest message is not below */
    uint64_t lost_below; /* and there were some, which lanes may have missed */
    uint64_t lost_from,
        lost_end;      /* lost after the end of the window, where nothing was
                                     read since; 0, 0: nothing */
    uint64_t furthest; /* the number that the furthest live lane takes next */
    size_t ahead;      /* bytes of messages from there on */
    bool is_reading;
    size_t reserved;       /* bytes that the read may bring */
    bool is_committed_new; /* committed has risen: STG_ACTION_COMMIT is due */
    bool is_raised;        /* durable cursors have risen */
    bool is_in_group;      /* the group that is out has something of it */
    uint64_t committed, floor;
    uint8_t *slices; /* STG_SLICE_ marks of each slice of cursors */

    /* Of one that is revoked or lost. */
    bool keeps_rows, is_foreign; /* nothing of it is committed any more */
    bool is_cut;
    stg_last last;
    uint32_t under_way; /* deliveries that have to end first: is_awaited */
    stg_ns cut_at;      /* attempts are cut; then: tried again, for memory */
} stg_partition;

/* Whether a slice of cursors is to be written. */
enum {
    STG_SLICE_DIRTY = 1, /* when it is time */
    STG_SLICE_MUST = 2,  /* with the rows of this group */
    STG_SLICE_GAP = 4,   /* lanes passed a gap: written within a second */
};

typedef enum stg_group_state {
    STG_GROUP_NONE,
    STG_GROUP_MADE, /* to be given out, perhaps once more */
    STG_GROUP_OUT,  /* with the store: STG_ACTION_STORE was given out */
} stg_group_state;

/* The group that is with the store, and all that it needs. */
typedef struct stg_checkpoint {
    stg_list pending; /* deliveries whose change waits */
    uint32_t pending_count;
    stg_group group;
    uint64_t made; /* groups so far */
    stg_change *changes;
    stg_cursor *cursors;
    stg_positions *settled;
    stg_claim *claims;
    stg_note **notes; /* that its changes name */
    size_t note_count;
    stg_list in_group; /* deliveries, in the order of their changes */
    stg_group_state state;
    bool is_unknown; /* this one may have been stored already */
    bool is_full; /* the store has refused one, and taken no whole one since */
    bool is_bare; /* this one is cursors only */
    bool is_bare_due;  /* and so shall the next be: it makes room */
    stg_ns cursors_at; /* cursors alone are not written before */
    stg_ns retry_at;   /* nor anything, when the store or memory is full */
    uint8_t marks;     /* STG_SLICE_ marks of all slices together */
    stg_ns gap_at;     /* with STG_SLICE_GAP: when it is written */
} stg_checkpoint;

/* The catch-up reader: one cursor at a time, in turn. */
typedef struct stg_catch_up {
    bool is_reading;
    uint32_t partition; /* its number: where it was last */
    uint64_t assignment;
    uint64_t from;
    size_t reserved;
} stg_catch_up;

/* The reader of all partitions that are merged. */
typedef struct stg_merged {
    bool is_reading;
    size_t reserved; /* of what it may bring, what it has not yet */
    size_t ahead;    /* of all of them */
    uint32_t count;  /* of them, those that are assigned */
} stg_merged;

typedef struct stg_notice {
    stg_link link;
    uint32_t lane, partition;
    stg_tell what;
    uint64_t count;
    stg_ns until_at;
    uint64_t proxy;
} stg_notice;

/* How far a stop has come. */
typedef enum stg_stop {
    STG_STOP_NOT,
    STG_STOP_DRAINING, /* attempts under way may go on until drain_at */
    STG_STOP_CUT,      /* and those that did were cancelled */
    STG_STOP_DONE,     /* STG_ACTION_STOPPED was given out */
} stg_stop;

struct stg_flow {
    stg_flow_options o;
    stg_memory memory;
    stg_budget budget;
    stg_rng rng;
    stg_ns origin_at; /* now, when wall_at was what the wall clock showed */
    stg_ns now;       /* of this or the last event that takes messages */

    stg_partition **partitions; /* by rising numbers */
    stg_partition **slots;      /* partition of each slot; NULL: none */
    uint32_t partition_count, slot_count;
    uint32_t revoking;    /* of them, those that go */
    uint64_t assignments; /* so far */
    stg_lane **lanes;     /* by number; NULL: none */
    uint32_t lane_capacity, lane_count;

    stg_list ready, idle, no_memory; /* lanes */
    stg_list catching_up;            /* lanes */
    stg_list fetches;                /* caches that want rows */
    stg_heap timers;                 /* lanes */
    stg_pool deliveries;             /* that are over */
    stg_list cancels;                /* deliveries, through change */
    stg_list notices;
    stg_list added; /* lanes, through added */
    stg_uplink uplink;
    stg_list proxies;      /* stg_uplink of each */
    stg_list uplinks_down; /* of all that are down */
    stg_list removed;      /* lanes, through link */

    stg_ns read_at;     /* for want of memory nothing is read before */
    size_t held;        /* bytes: messages, texts, and what reads may bring */
    size_t message_max; /* bytes of the largest message */
    size_t average;     /* bytes of a message, of late */
    uint32_t in_flight;
    size_t flying;           /* bytes of the messages in flight, each once */
    uint64_t budget_refused; /* retries, by the global budget */
    uint32_t shedding_count; /* lanes */
    uint32_t shared;         /* slots in use */
    /* A reload has lowered in_flight_max below shared; false again when enough
     * attempts have ended. */
    bool is_lowered;
    uint32_t parked_count; /* rows in memory */
    uint32_t evicted;      /* the lane whose rows went last */

    stg_checkpoint checkpoint;
    stg_catch_up catch_up;
    stg_merged merged;
    uint32_t awaiting_read; /* lanes */
    bool is_started;
    stg_stop stop;
    bool is_last_bare; /* the store is full: cursors are tried once more */
    stg_ns drain_at;
};

/* -- flow.c: memory and time ----------------------------------------------- */

void *stg_flow_allocate(stg_flow *f, size_t size);
void stg_flow_release(stg_flow *f, void *bytes); /* NULL: nothing */
/* Words of ours for err, which may be NULL. Returns status. */
stg_status stg_flow_refuse(stg_error *err, stg_status status, const char *why);
stg_ns stg_flow_wall(const stg_flow *f, stg_ns at);
stg_ns stg_flow_from_wall(const stg_flow *f, stg_ns wall_at);
stg_notice *stg_flow_tell(stg_flow *f, uint32_t lane, uint32_t partition,
                          stg_tell what, uint64_t count, stg_ns until_at);

/* A message of its own, with one reference; NULL: no memory. */
stg_message *stg_flow_message(stg_flow *f, const stg_partition *p,
                              const stg_record *r);
void stg_flow_drop(stg_flow *f, stg_message *m); /* a reference; NULL: none */

/* Room for so many more bytes; gives up what it can: rows that are parked, then
 * the oldest of the windows. */
bool stg_flow_make_room(stg_flow *f, size_t bytes);

/* -- partition.c ------------------------------------------------------------
 * */

stg_partition *stg_flow_partition(const stg_flow *f, uint32_t number);
/* Room in each lane for one more cursor, and for as many as there are slots. */
bool stg_partition_fit(stg_flow *f, stg_lane *l, uint32_t count);
/* Messages, and what is kept of them; no lane is in the window any more. */
void stg_partition_clear(stg_flow *f, stg_partition *p);
void stg_partition_free(stg_flow *f, stg_partition *p);

static inline stg_lane_cursor *stg_lane_cursor_in(const stg_lane *l,
                                                  const stg_partition *p)
{
    return &l->cursors[p->slot];
}

static inline stg_partition *stg_flow_home(const stg_flow *f,
                                           const stg_message *m)
{
    return f->slots[m->slot];
}

/* The furthest lane has taken the next message of the window. */
static inline void stg_partition_lead(stg_flow *f, stg_partition *p)
{
    size_t size = stg_window_at(&p->window, p->furthest++)->size;

    p->ahead -= size;
    if (p->is_merged)
        f->merged.ahead -= size;
}

/* Its messages are read, and taken by lanes. */
static inline bool stg_partition_is_assigned(const stg_partition *p)
{
    return p->phase == STG_PHASE_ASSIGNED;
}

/* -- delivery.c ------------------------------------------------------------ */

/* Takes over a reference to m. NULL: no memory. */
stg_delivery *stg_delivery_new(stg_lane *lane, stg_flow *f, stg_message *m);
void stg_delivery_free(stg_flow *f, stg_delivery *d);
void stg_delivery_note(stg_flow *f, stg_delivery *d, const stg_failure *why);
stg_mark stg_delivery_mark(const stg_delivery *d);
static inline stg_lane_cursor *stg_delivery_cursor(const stg_delivery *d)
{
    return &d->lane->cursors[d->message->slot];
}

/* -- lane.c ---------------------------------------------------------------- */

stg_lane *stg_flow_lane(const stg_flow *f, uint32_t number); /* NULL: none */
void stg_lane_move(stg_flow *f, stg_lane *l, stg_lane_list where);
void stg_lane_wake(stg_flow *f, stg_lane *l); /* unless it is ready already */

/* Asks the budgets anew, which may be other ones, for retries that wait for one. */
void stg_lane_ask_budget(stg_flow *f, stg_lane *l);
void stg_lane_free(stg_flow *f, stg_lane *l);
/* Whether it may want anything of the partition. */
static inline bool stg_lane_follows(const stg_lane *l, const stg_partition *p)
{
    return stg_lane_cursor_in(l, p)->is_following;
}

/* All of an ordered lane's rows are in memory before it goes on, for they come
 * before what is read; replays have no slot there. */
bool stg_lane_is_loaded(const stg_lane *l);
uint32_t stg_lane_ahead(const stg_lane *l); /* entries of a ring */
/* No success for a timeout's length, though it tries: it has one slot. */
bool stg_lane_is_unresponsive(const stg_lane *l, stg_ns now);
/* The peer, which its first start needs; false: no memory. */
bool stg_lane_make_peer(stg_flow *f, stg_lane *l, stg_ns now);
/* Attempts that may be under way, as adapted; and those of a lane that is new,
 * or whose target has come back. */
uint32_t stg_lane_limit(const stg_lane *l);
void stg_lane_start_limit(stg_lane *l, stg_ns now);
/* Replays that may be under way: they leave three quarters to live traffic,
 * which so need not wait for one of them to end. */
uint32_t stg_lane_replays_max(const stg_lane *l);
/* Probes of an open breaker that may be under way. */
uint32_t stg_lane_probes_max(const stg_lane *l);
/* It may take one more message, and hold it in memory. */
bool stg_lane_may_take(const stg_flow *f, const stg_lane *l);
/* Counts the attempts that are under way, for a budget that has begun since. */
void stg_lane_adopt(const stg_lane *l, stg_budget *b);

/* -- removal.c ------------------------------------------------------------- */

/* Of a lane that is removed: raises shed_below above each parked row in
 * memory, so that all messages up to these rows are cancelled. */
void stg_lane_note_end(stg_lane *l);
/* A removed lane has settled all that can be settled one by one. */
bool stg_lane_is_settled(const stg_flow *f, const stg_lane *l);
/* The store has a cursor of it in each partition. */
bool stg_lane_is_durable(const stg_flow *f, const stg_lane *l);
/* It is forgotten, or new and durable, in each partition that there is. */
void stg_lane_note(stg_flow *f, stg_lane *l);

/* -- lane_cursor.c ----------------------------------------------------- */

uint64_t stg_lane_cursor_next(const stg_lane *l, const stg_partition *p);
uint64_t stg_lane_cursor_base(const stg_lane *l, const stg_partition *p);
/* The base, and what is settled above it, of what was read up to next and of what
 * was restored; with_group: once the group that is made is durable. There is room
 * for as many ranges as the ring has slots and restored_capacity says. Returns how
 * many they are. */
size_t stg_lane_cursor_settled(const stg_lane_cursor *cursor, bool with_group,
                               uint64_t next, uint64_t *base,
                               stg_positions *settled);
bool stg_lane_cursor_is_in_window(const stg_lane *l, const stg_partition *p);
/* When the oldest message was accepted that is not settled, by the wall clock;
 * 0: there is none, or it is not known. */
stg_ns stg_lane_cursor_oldest(const stg_lane *l, const stg_partition *p);
void stg_lane_cursor_mark(stg_flow *f, const stg_lane *l, stg_partition *p,
                          uint8_t mark);
void stg_lane_cursor_mark_all(stg_flow *f, const stg_lane *l, uint8_t mark);
/* Where a lane begins that the store does not know. */
void stg_lane_cursor_begin(stg_lane *l, const stg_partition *p);
/* The cursor no longer catches up. */
void stg_lane_cursor_catch_up(stg_flow *f, stg_lane *l, const stg_partition *p);
/* Asks the lane whether it follows the partition. */
void stg_lane_cursor_follow(stg_lane *l, stg_partition *p);
/* A lane that does not follow the partition passes all that was read of
 * it, whatever holds the lane back: it holds neither the committed offset nor
 * the window. What it took while it followed the partition keeps its slots. */
bool stg_lane_cursor_may_pass(const stg_lane *l, const stg_partition *p);
void stg_lane_cursor_pass(stg_flow *f, stg_lane *l, stg_partition *p);
/* Puts the lane in the window if it can be, else among the lanes that catch
 * up. */
void stg_lane_cursor_join(stg_flow *f, stg_lane *l, stg_partition *p);
/* Positions up to last are passed over, for they are lost, or were settled
 * otherwise: no bulk row reaches over them. */
void stg_lane_cursor_note_hole(stg_lane_cursor *cursor, uint64_t last);
/* Passes m if the lane has no business with it: filtered out, settled before the
 * restart, or parked already, and then its row has the slot. True: it is not to
 * be taken. */
bool stg_lane_cursor_pass_known(stg_flow *f, stg_lane *l, const stg_message *m);
/* Passes m, or takes it into the ring as untried; its reference is shared. False:
 * no memory. */
bool stg_lane_cursor_take(stg_flow *f, stg_lane *l, stg_message *m);
/* The lane is live at its number: it leads the reader, if it follows the
 * partition. */
void stg_lane_cursor_lead(stg_flow *f, const stg_lane *l, stg_partition *p);
/* Moves the cursor past its number. */
void stg_lane_cursor_advance(stg_flow *f, stg_lane *l, stg_partition *p);
/* Whether there are parked rows that were stored under another order: until
 * they have ended, the lane takes no message of this partition. */
static inline bool stg_lane_cursor_is_draining(stg_lane_cursor *cursor)
{
    if (cursor->is_draining && cursor->rows == cursor->replays)
        cursor->is_draining = false;
    return cursor->is_draining;
}

/* The delivery's slot in the ring is settled. */
void stg_lane_cursor_settle(stg_flow *f, stg_delivery *d);
/* Puts it into the ring, where there is room, after all that is there. */
void stg_lane_cursor_enter(stg_lane *l, stg_delivery *d);

/* -- order.c --------------------------------------------------------------- */

/* Whether d must wait: an earlier delivery of its key (strict: any earlier
 * one) is in the ring. d is in the ring, or about to enter it. */
bool stg_order_is_blocked(const stg_lane *l, const stg_delivery *d);
/* d is settled: the first of those that waited for it may go. */
void stg_order_unblock(stg_flow *f, stg_lane *l, const stg_delivery *d);
/* Puts parked rows of an ordered lane that were read back (after a restart, or
 * with their partition) into the ring, in the log's order: those below a
 * position. A lane passes nothing before that is done. False: no memory. */
bool stg_order_attach(stg_flow *f, stg_lane *l, stg_partition *p,
                      uint64_t below);
/* Whether the lane may read of the partition: all rows of it that come before are in
 * memory. Of others some may be missing while rows of another order end. */
bool stg_order_has_rows(const stg_lane *l, const stg_partition *p);
/* Where the rows stand of a cursor in a partition that was assigned: see
 * stg_lane_cursor.is_draining. */
void stg_order_restore(stg_flow *f, stg_lane *l, stg_lane_cursor *cursor,
                       const stg_cursor *c);
/* Applies l->order_requested, which a reload has set, if that is safe now; it is
 * asked at each turn of the lane. Until then a lane that goes from none to key
 * or strict takes no new message, and one that goes from key to strict starts
 * no attempt. */
void stg_order_change(stg_flow *f, stg_lane *l);
/* In some partition its rows were parked when the lane had another order. */
bool stg_order_has_old_rows(const stg_flow *f, const stg_lane *l);
/* Something in a ring of its cursors is not settled. */
bool stg_order_is_any_taken(const stg_flow *f, const stg_lane *l);
bool stg_order_is_draining(const stg_lane *l);
bool stg_order_is_waiting(const stg_lane *l);

/* -- parking.c ------------------------------------------------------------- */

int stg_mark_compare(const stg_mark *a, const stg_mark *b);
void stg_parking_init(stg_lane *l);
stg_parked_cache *stg_parking_cache(const stg_delivery *d);
/* The row is durable: keep it in memory, or leave it to the store. */
void stg_parking_put(stg_flow *f, stg_delivery *d);
/* Off the list of those that wait in memory. */
void stg_parking_take(stg_flow *f, stg_delivery *d);
/* Rows were added, or deleted: what is being fetched is fetched again. */
void stg_parking_invalidate(stg_parked_cache *cache);
/* Nothing is known of the rows: they are fetched from the first on. */
void stg_parking_reset(stg_flow *f, stg_parked_cache *cache);
/* Gives back the memory of a lane's rows. */
bool stg_parking_evict(stg_flow *f, stg_lane *l);
/* No more in memory than there may be. */
void stg_parking_trim(stg_flow *f, stg_parked_cache *cache);
/* The breaker has closed: no row stays in memory for the next probe. */
void stg_parking_release(stg_flow *f, stg_lane *l);
/* The first that is due; or *due_at, when one will be. */
stg_delivery *stg_parking_due(const stg_lane *l, const stg_parked_cache *cache,
                              stg_ns now, stg_ns *due_at);
/* Of the rows that are in memory, due, and tried less than `below` times: the
 * one tried most, and of these the one that is due longest. NULL: none. */
stg_delivery *stg_parking_most_tried(const stg_lane *l,
                                     const stg_parked_cache *cache,
                                     uint32_t below, stg_ns now);
bool stg_parking_next(stg_flow *f, stg_action *action);
/* Asks for rows where some are missing; or *at, when to do so. */
void stg_parking_want(stg_flow *f, stg_lane *l, stg_ns now, stg_ns *at);
/* The lane's own rows, and those of replays. */
uint64_t stg_parking_rows(const stg_flow *f, const stg_lane *l);
uint64_t stg_parking_replays(const stg_flow *f, const stg_lane *l);
bool stg_parking_is_fetching(const stg_lane *l);

/* -- shed.c ---------------------------------------------------------------- */

/* Whether the lane settles what is at position into its bulk row. */
bool stg_shed_wants(const stg_lane *l, stg_lane_cursor *p, uint64_t position);
/* Settles a message that the lane has not taken, unless it has no business with
 * it. False: not now. */
bool stg_shed_pass(stg_flow *f, stg_lane *l, const stg_message *m);
/* The message at position is not part of the open bulk row. If it lies above
 * the row, the row is closed: what is shed next begins a new one. */
void stg_shed_break(const stg_lane *l, stg_lane_cursor *p, uint64_t position);
/* Sheds, in every partition, what stg_shed_wants() says: untried deliveries in
 * the ring, then messages of the window. */
void stg_shed_all(stg_flow *f, stg_lane *l);
/* The lane begins to shed, or ends: at the end it closes its bulk rows. */
void stg_shed_begin(stg_flow *f, stg_lane *l);
void stg_shed_end(stg_flow *f, stg_lane *l);

/* Whether a lane whose circuit is open should shed by now; *at: from when on. */
bool stg_shed_is_due(const stg_lane *l, stg_ns now, stg_ns *at);

/* Ends the shedding of a lane that has another shed-after, and is not due. */
void stg_shed_reconsider(stg_flow *f, stg_lane *l, stg_ns now);

/* -- dispatch.c ------------------------------------------------------------ */

bool stg_dispatch_next(stg_flow *f, stg_action *action, stg_ns now);
/* Puts a delivery that has ended or was put back where it waits again. */
void stg_dispatch_untried(stg_delivery *d, bool is_first);

/* A delivery that waits, untried or parked, leaves its list. */
void stg_dispatch_leave(stg_flow *f, stg_lane *l, stg_delivery *d);

/* -- schedule.c ------------------------------------------------------------ */

/* Whether the message's own times hold d back: then it is on its way to the
 * store, parked until its time or dead. */
bool stg_schedule_holds(stg_flow *f, stg_lane *l, stg_delivery *d, stg_ns now);
/* Whether the message expires before the delivery's next attempt. */
static inline bool stg_schedule_ends_before(const stg_message *m,
                                            stg_ns wall_at)
{
    return m->expires_at != 0 && wall_at >= m->expires_at;
}

/* -- settle.c -------------------------------------------------------------- */

/* Queues d's change (parked, delivered, dead) for the next group; d is
 * SETTLING until stg_settle_durable(). */
void stg_settle(stg_flow *f, stg_delivery *d, stg_change_kind kind);
/* A parked row came from the store: if its target asked for a wait, in an
 * earlier incarnation or of another hub, the lane's gate is closed again. */
void stg_settle_reclose(stg_lane *l, const stg_delivery *d);
/* Gives out STG_TELL_OPENED or _CLOSED where the breaker is, and was not. */
void stg_settle_note_open(stg_flow *f, stg_lane *l, stg_ns now);
/* The group with d's change was committed: counts it in the books. A parked
 * delivery joins the parked rows, any other is freed. A success without a
 * parked row never comes here: nothing of it is stored. */
void stg_settle_durable(stg_flow *f, stg_delivery *d);

/* -- flight.c -------------------------------------------------------------- */

/* Whether the lane may have one more body in flight. Its first always may. */
bool stg_flight_has_memory(const stg_flow *f, const stg_lane *l);
/* An attempt of d, which is in no list of those that wait any more. */
void stg_flight_begin(stg_flow *f, stg_lane *l, stg_delivery *d, stg_ns now);
/* The attempt has ended, or is taken back. */
void stg_flight_leave(stg_flow *f, stg_lane *l, stg_delivery *d);

/* -- checkpoint.c ---------------------------------------------------------- */

bool stg_checkpoint_next(stg_flow *f, stg_action *action, stg_ns now);
stg_ns stg_checkpoint_at(const stg_flow *f);
/* Rows that had no room were deleted: lanes go on. */
void stg_checkpoint_resume(stg_flow *f);
/* Takes what is of lost partitions out of a group that is to come again. */
void stg_checkpoint_strip(stg_flow *f);
/* The window goes on after a gap (markers of transactions, records that are no
 * messages): lanes that stand at its end pass it without a delivery. */
void stg_checkpoint_note_gap(stg_flow *f, stg_partition *p, uint64_t next);
void stg_checkpoint_free(stg_flow *f); /* what the group is made of */

/* -- watermark.c ----------------------------------------------------------- */

/* After a commit of cursors: raises each partition's position to commit to its
 * lowest durable cursor, and drops the messages of the window that all lanes
 * have passed. */
void stg_watermark_raise(stg_flow *f);
/* The same of all partitions: a lane is no more, which may have been the lowest
 * one. */
void stg_watermark_raise_all(stg_flow *f);
/* The next STG_ACTION_COMMIT that was raised, and not given out yet. False:
 * none. */
bool stg_watermark_next(stg_flow *f, stg_action *action);

/* -- revoke.c ----------------------------------------------------------------
 * */

/* The attempts that have had their time are cancelled. */
void stg_revoke_cut(stg_flow *f, stg_ns now);
bool stg_revoke_next(stg_flow *f, stg_action *action, stg_ns now);
/* When one of these two has something to do again; STG_NEVER. */
stg_ns stg_revoke_at(const stg_flow *f);
/* d has ended, and is neither tried again nor stored: it waits for the end of
 * its partition, or is dropped with it. */
void stg_revoke_leave(stg_flow *f, stg_delivery *d);
/* The group was answered: what a partition that was lost had in it. */
void stg_revoke_drop(stg_flow *f, stg_delivery *d);
/* One that its partition waits for has ended. */
static inline void stg_revoke_note(const stg_flow *f, stg_delivery *d)
{
    if (!d->is_awaited)
        return;
    d->is_awaited = false;
    stg_flow_home(f, d->message)->under_way--;
}

/* -- expire.c ---------------------------------------------------------------
 * */

/* The lane stands in the window: what the log has lost right before its next
 * message is settled. */
void stg_expired_pass_gap(stg_flow *f, stg_lane *l, stg_partition *p);
/* Settles what the log has lost and the lane has not read. */
void stg_expired_pass(stg_flow *f, stg_lane *l, stg_partition *p);

/* -- uplink.c -------------------------------------------------------------- */

/* What the end of an attempt says of our own network. True: it is no fault of
 * the target, and the delivery is as it was. */
bool stg_uplink_ended(stg_flow *f, stg_lane *l, const stg_end *end, stg_ns now);
/* Whether the lane waits for the uplink; or *at, when to ask again. */
bool stg_uplink_holds(stg_flow *f, stg_lane *l, stg_ns now, stg_ns *at);
/* The lane dials: while the uplink is down that is the probe. */
void stg_uplink_start(stg_lane *l, stg_ns now);
/* While an uplink is down: wakes the lanes that wait for it, once a second. The
 * first one that starts is the probe. */
void stg_uplink_probe(stg_flow *f, stg_ns now);
/* When the next probe is due; STG_NEVER. */
stg_ns stg_uplink_at(const stg_flow *f);
/* The lane is removed, or another address is its target's. */
void stg_uplink_leave(stg_lane *l);
/* The uplink of a proxy, with one user more; of 0, of this machine. NULL: no
 * memory. With its last user it is gone. */
stg_uplink *stg_uplink_take(stg_flow *f, uint64_t proxy);
void stg_uplink_give_back(stg_flow *f, stg_uplink *u, uint32_t lane);
/* The lane's proxy is this one from now on; what was known of it is forgotten. */
void stg_uplink_change(stg_flow *f, stg_lane *l, uint64_t proxy);

/* -- reader.c -------------------------------------------------------------- */

bool stg_reader_next(stg_flow *f, stg_action *action, stg_ns now);

#endif
