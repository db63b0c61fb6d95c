/* attempt.h - one delivery on its way: a request made of a message, and what
 * came of it told to flow.
 *
 * A request carries
 *
 *     Idempotency-Key, Stagger-Message   the message's id, over all attempts
 *     Stagger-Attempt                    from 1
 *     Stagger-Attempts-Max               left out where there is no limit
 *     Stagger-Key                        the ordering key, if it has one
 *     Stagger-Hops                       hubs that it came through, this one too
 *     Content-Type                       as it was published, if it was
 *     traceparent                        with a parent id of the attempt's own:
 *                                        see http/trace.h
 *
 * and the headers that the intake has kept of the message. */
#ifndef STAGGER_HUB_ATTEMPT_H
#define STAGGER_HUB_ATTEMPT_H

#include <stagger/rng.h>

#include "base/list.h"
#include "base/pool.h"
#include "http/trace.h"
#include "hub/target.h"
#include "store/message_id.h"

typedef struct stg_attempt stg_attempt;

typedef struct stg_attempts {
    stg_hub *hub;
    stg_pool free;
    stg_list under_way;
    stg_trace_mode trace;
    stg_rng rng; /* of parent ids */
    uint64_t epoch;
    char prefix[STG_ID_TEXT_MAX]; /* of the queue's ids: the epoch, a hyphen */
    size_t prefix_size;
    char headers[2048]; /* of the request that is being made, if they fit */
} stg_attempts;

void stg_attempts_init(stg_attempts *a, stg_hub *hub, uint64_t epoch,
                       stg_trace_mode trace);

/* STG_ACTION_START: answered by stg_flow_ended(), at once if there is no
 * memory. */
void stg_attempt_start(stg_attempts *all, const stg_action *action);

/* STG_ACTION_CANCEL. */
void stg_attempt_cancel(stg_attempt *a);

/* Ends all, unasked: flow is not told any more. */
void stg_attempts_drop(stg_attempts *all);

/* Frees what is free; nothing is under way. */
void stg_attempts_close(stg_attempts *all);

/* What the hub logs of an attempt. */
typedef struct stg_attempt_end {
    const stg_target *target;
    uint32_t partition;
    uint64_t position, number, number_max;
    stg_ns took;
    int status;
    const char *detail;
    const stg_verdict *verdict;
    const stg_trace *trace;
} stg_attempt_end;

#endif
