/* delivery.h - one message for one target, from the moment a lane takes it
 * until it is settled. */
#ifndef STAGGER_FLOW_DELIVERY_H
#define STAGGER_FLOW_DELIVERY_H

#include <stdbool.h>

#include "base/list.h"
#include "flow/flow.h"

typedef enum stg_delivery_state {
    STG_DELIVERY_UNTRIED,   /* taken, and waits for its turn */
    STG_DELIVERY_IN_FLIGHT, /* an attempt is under way */
    STG_DELIVERY_SETTLING,  /* its change waits for the store */
    STG_DELIVERY_PARKED,    /* its row is durable, and it waits */
    STG_DELIVERY_GONE,      /* over; kept until a fetch has been answered */
} stg_delivery_state;

/* What a delivery needs that succeeds comes first. */
struct stg_delivery {
    struct stg_lane *lane;
    stg_message *message; /* holds a reference */
    void *attempt;        /* the shell's */
    stg_link link;        /* untried or parked, of the lane */
    stg_link busy;        /* in flight, settling or gone, of the lane */
    stg_delivery_state state;
    uint32_t replay;
    uint32_t slot; /* of the ring, if in_ring */
    bool in_ring;
    bool is_released; /* was, and the lane is removed */
    bool is_stored;   /* the store has a parked row of it */
    bool is_in_group;
    bool after_hole; /* the log had lost what came before it */
    bool is_blocked; /* an earlier one of its key is not settled */
    bool is_probe;
    bool is_cut;   /* cancelled, since the hub stops or its partition goes */
    bool is_going; /* its partition waits for its end */
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
    stg_failure failure; /* its times are of the wall clock */
};

#endif
