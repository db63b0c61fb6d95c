/* overload_internal.h - a run in the making: what its files do for each other.
 * Private.
 *
 *   overload.c           the options, and the loop over events
 *   overload_clients.c   operations: what core decides, and how they end; those
 *                        of services that call another, too
 *   overload_load.c      when they begin
 *   overload_rounds.c    their hedges
 *   overload_service.c   requests: on the way, in the service, and the trigger
 *   overload_tally.c     counts and the series
 *   overload_recovery.c  whether goodput came back */
#ifndef STAGGER_SIM_OVERLOAD_INTERNAL_H
#define STAGGER_SIM_OVERLOAD_INTERNAL_H

#include "sim/engine.h"
#include "sim/overload.h"

/* Events: index << 3 | kind. One is heeded only if what it is about still waits
 * for it at that instant; so nothing is ever taken out of the queue. */
typedef enum stg_overload_event {
    STG_EVENT_BEGIN,     /* open load: an operation; index 0 */
    STG_EVENT_OPERATION, /* it is due for what it waits for; index: its slot */
    STG_EVENT_REACH,     /* a request reaches the service; index: its slot */
    STG_EVENT_FINISH,    /* a worker is done; index: the worker */
    STG_EVENT_ANSWER,    /* an answer reaches its client; index: a request */
    STG_EVENT_TRIGGER,   /* it begins (index 0) or ends (1) */
    STG_EVENT_RETURN,    /* more workers are back; index: steps that are done */
} stg_overload_event;

/* What an operation, or its client, waits for. */
typedef enum stg_waiting {
    STG_WAITING_NOT, /* the slot is free */
    STG_WAITING_THOUGHT,
    STG_WAITING_RETRY,
    STG_WAITING_ANSWER,
} stg_waiting;

typedef struct stg_overload_operation {
    stg_retry retry;
    stg_ns begun_at;
    stg_ns due_at; /* of what it waits for; an answer: its timeout */
    uint32_t process;
    uint32_t
        request;   /* under way, or STG_SIM_NONE; with hedges: see its round */
    uint32_t next; /* among the free */
    uint8_t waiting; /* stg_waiting */
    bool has_sent;   /* a request, at least once; or it serves one that would
                        not be there without retries */
    bool is_other;   /* its process has the others' policy */
    uint8_t layer;   /* 0: a client's; else of the service that calls */
    uint32_t serves; /* of a service: the request that it is for */
} stg_overload_operation;

enum { STG_ROUND_ATTEMPTS = 1 + STG_HEDGES_MAX };

/* An attempt of an operation and its hedges; the first one is number 0. */
typedef struct stg_overload_round {
    stg_hedge hedge;
    uint32_t requests[STG_ROUND_ATTEMPTS]; /* under way, or STG_SIM_NONE */
    stg_ns timeouts_at[STG_ROUND_ATTEMPTS];
} stg_overload_round;

/* How an attempt was answered: stg_sim_request.answer. */
typedef enum stg_answer_kind {
    STG_ANSWER_OK,
    STG_ANSWER_ERROR,   /* 500 */
    STG_ANSWER_FULL,    /* 503 */
    STG_ANSWER_REFUSED, /* nobody listens */
    STG_ANSWER_RESET,   /* lost in an outage */
    STG_ANSWER_FAILED,  /* 503: the service that it called did not help */
} stg_answer_kind;

typedef struct stg_overload_world {
    const stg_overload_options *options;
    const stg_memory *memory;
    stg_overload_result *result;
    stg_engine engine;
    stg_sim_service service;
    stg_peer *peers; /* one a process, as are: */
    stg_with *withs;
    stg_throttle *throttles; /* NULL: none */
    stg_overload_operation *operations;
    stg_overload_round *rounds; /* of operations; NULL: the policy makes none */
    uint32_t operation_count, operation_free;
    uint32_t layers; /* 1: the clients call the service */
    stg_ns now;      /* the engine's */
    stg_ns begin_at; /* open load: the next operation */
    size_t traced;   /* of the trace: those that have begun, or are next */
    bool is_in_trigger;
    /* A generator a concern, so that a change in one leaves the others. */
    stg_rng of_load, of_process, of_think, of_jitter, of_network, of_errors,
        of_throttle;
    /* The series. */
    stg_overload_bin *bin; /* the one of now */
    stg_ns bin_end_at;
    bool is_counting;                     /* the warm-up is over */
    double queued_before, present_before; /* when the bin began */
} stg_overload_world;

/* The policy by which service number layer, from 1, calls the next. */
static inline const stg_policy *
stg_overload_inner(const stg_overload_options *o, uint32_t layer)
{
    uint32_t last = o->inner_count;

    if (last == 0)
        return &o->policy;
    return &o->inner[layer < last ? layer - 1 : last - 1];
}

/* The policy of a process of clients. Others are spread evenly: process i is one where the
 * number of others goes up. */
static inline const stg_policy *
stg_overload_policy(const stg_overload_options *o, uint32_t process)
{
    uint64_t i = process;

    if (!o->has_others)
        return &o->policy;
    return (i + 1) * o->share / 1000000 > i * o->share / 1000000 ? &o->others
                                                                 : &o->policy;
}

/* Puts an event into the queue, unless it comes after the end. */
void stg_overload_push(stg_overload_world *w, stg_ns at,
                       stg_overload_event kind, uint32_t index);

/* -- overload_clients.c ---------------------------------------------------- */

/* Puts every client to its first thought; or the first operation to come. */
void stg_overload_begin_load(stg_overload_world *w);

/* The open load's next operation begins. */
void stg_overload_begin(stg_overload_world *w);

/* A request has reached a service that calls the next for it. */
void stg_overload_serve(stg_overload_world *w, uint32_t request);

/* An operation's wait is over. */
void stg_overload_wake(stg_overload_world *w, uint32_t id);

/* The attempt that this request was came to this. */
void stg_overload_report(stg_overload_world *w, uint32_t id, uint32_t request,
                         const stg_outcome *o);

/* The same of an attempt that has no answer in time. */
void stg_overload_time_out(stg_overload_world *w, uint32_t id,
                           uint32_t request);

/* The operation waits for what is due then. */
void stg_overload_wait_until(stg_overload_world *w, uint32_t id,
                             stg_waiting waiting, stg_ns due_at);

/* When an attempt that begins now is too late. */
stg_ns stg_overload_timeout(const stg_overload_world *w, uint32_t id);

/* -- overload_load.c -------------------------------------------------------- */

/* When the next operation of an open load begins is drawn, or drawn anew. */
void stg_overload_redraw_load(stg_overload_world *w);

/* -- overload_rounds.c: of a policy with hedges ----------------------------- */

/* The first attempt of a round was sent. */
void stg_overload_begin_round(stg_overload_world *w, uint32_t id,
                              uint32_t request);

/* A timeout is over, or a hedge is due. */
void stg_overload_wake_round(stg_overload_world *w, uint32_t id);

/* STG_GO: others are under way. Else the round has ended, and its losers are
 * left to the service. */
stg_decision stg_overload_step_round(stg_overload_world *w, uint32_t id,
                                     uint32_t request, const stg_outcome *o);

/* -- overload_service.c ---------------------------------------------------- */

/* Sends a request for an operation: STG_SIM_NONE if it cannot. */
uint32_t stg_overload_send(stg_overload_world *w, uint32_t operation);

void stg_overload_reach(stg_overload_world *w, uint32_t request);

/* Answers a request whose call to the next service has ended. */
void stg_overload_serve_end(stg_overload_world *w, uint32_t request,
                            bool is_ok);

/* Answers 503: there is no place, or it was shed. */
void stg_overload_refuse(stg_overload_world *w, uint32_t request);

void stg_overload_finish(stg_overload_world *w, uint32_t worker);
void stg_overload_answer(stg_overload_world *w, uint32_t request);

/* The client waits no longer. */
void stg_overload_leave(stg_overload_world *w, uint32_t request);

void stg_overload_change(stg_overload_world *w, bool begins);

/* So many steps of the workers' return are done. */
void stg_overload_return(stg_overload_world *w, uint32_t steps);

/* -- overload_tally.c ------------------------------------------------------ */

/* Time goes on to at: closes the bins before it. */
void stg_overload_pass(stg_overload_world *w, stg_ns at);

void stg_overload_count_begun(stg_overload_world *w, bool is_other);
void stg_overload_count_sent(stg_overload_world *w,
                             const stg_overload_operation *op, bool is_retry);
void stg_overload_count_hedge(stg_overload_world *w,
                              const stg_overload_operation *op, bool is_sent);
void stg_overload_count_win(stg_overload_world *w);
void stg_overload_count_held(stg_overload_world *w);
void stg_overload_count_refused(stg_overload_world *w);
void stg_overload_count_timeout(stg_overload_world *w);
void stg_overload_count_for_nobody(stg_overload_world *w);
void stg_overload_count_end(stg_overload_world *w,
                            const stg_overload_operation *op, stg_why why);

/* -- overload_recovery.c --------------------------------------------------- */

stg_recovery stg_overload_recover(const stg_overload_options *o,
                                  const stg_overload_bin *bins,
                                  uint32_t bin_count);

#endif
