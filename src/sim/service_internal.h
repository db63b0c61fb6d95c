/* service_internal.h - what service.c and service_queue.c do for each other.
 * Private. */
#ifndef STAGGER_SIM_SERVICE_INTERNAL_H
#define STAGGER_SIM_SERVICE_INTERNAL_H

#include "sim/service.h"

/* -- service.c -------------------------------------------------------------- */

/* The part of a request's stay that lies in the time that is counted. */
void stg_sim_service_count_stay(stg_sim_service *s, const stg_sim_request *q,
                                stg_ns now);

/* -- the queue --------------------------------------------------------------- */

/* To the end. */
static inline void stg_sim_queue_append(stg_sim_service *s, uint32_t id,
                                        stg_ns now)
{
    stg_sim_request *q = &s->requests[id];

    q->place = STG_REQUEST_QUEUED;
    q->prev = s->last;
    q->next = STG_SIM_NONE;
    if (s->last == STG_SIM_NONE) {
        s->first = id;
        s->stands_from = now;
    } else {
        s->requests[s->last].next = id;
    }
    s->last = id;
    s->queued++;
    if (s->queued > s->counts.queued_most)
        s->counts.queued_most = s->queued;
}

/* From any place; it is away. */
static inline void stg_sim_queue_take_out(stg_sim_service *s, uint32_t id)
{
    stg_sim_request *q = &s->requests[id];

    if (q->prev == STG_SIM_NONE)
        s->first = q->next;
    else
        s->requests[q->prev].next = q->next;
    if (q->next == STG_SIM_NONE)
        s->last = q->prev;
    else
        s->requests[q->next].prev = q->prev;
    q->place = STG_REQUEST_AWAY;
    s->queued--;
}

/* -- service_queue.c -------------------------------------------------------- */

/* Takes out the next one to be served, when those whose turn came before it and
 * that had waited too long were shed. STG_SIM_NONE: none is left. */
uint32_t stg_sim_queue_next(stg_sim_service *s, stg_ns now);

/* A request did not have to wait. */
void stg_sim_queue_pass(stg_sim_service *s);

#endif
