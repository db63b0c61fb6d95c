/* overload_internal.h - a run in the making: what its files do for each other.
 * Private.
 *
 *   overload.c           the options, and the loop over events
 *   overload_clients.c   operations: what core decides, and how they end
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
    uint32_t request; /* under way, or STG_SIM_NONE */
    uint32_t next;    /* among the free */
    uint8_t waiting;  /* stg_waiting */
    bool has_sent;    /* a request, at least once */
} stg_overload_operation;

/* How an attempt was answered: stg_sim_request.answer. */
typedef enum stg_answer_kind {
    STG_ANSWER_OK,
    STG_ANSWER_ERROR,   /* 500 */
    STG_ANSWER_FULL,    /* 503 */
    STG_ANSWER_REFUSED, /* nobody listens */
    STG_ANSWER_RESET,   /* lost in an outage */
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
    uint32_t operation_count, operation_free;
    stg_ns now;      /* the engine's */
    stg_ns begin_at; /* open load: the next operation */
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

/* Puts an event into the queue, unless it comes after the end. */
void stg_overload_push(stg_overload_world *w, stg_ns at,
                       stg_overload_event kind, uint32_t index);

/* -- overload_clients.c ---------------------------------------------------- */

/* Puts every client to its first thought; or the first operation to come. */
void stg_overload_begin_load(stg_overload_world *w);

/* The open load's next operation begins. */
void stg_overload_begin(stg_overload_world *w);

/* The rate has changed: when the next one begins is drawn anew. */
void stg_overload_redraw_load(stg_overload_world *w);

/* An operation's wait is over. */
void stg_overload_wake(stg_overload_world *w, uint32_t id);

/* Its attempt came to this. */
void stg_overload_report(stg_overload_world *w, uint32_t id,
                         const stg_outcome *o);

/* -- overload_service.c ---------------------------------------------------- */

/* Sends a request for an operation: STG_SIM_NONE if it cannot. */
uint32_t stg_overload_send(stg_overload_world *w, uint32_t operation);

void stg_overload_reach(stg_overload_world *w, uint32_t request);
void stg_overload_finish(stg_overload_world *w, uint32_t worker);
void stg_overload_answer(stg_overload_world *w, uint32_t request);

/* The client waits no longer. */
void stg_overload_leave(stg_overload_world *w, uint32_t request);

void stg_overload_change(stg_overload_world *w, bool begins);

/* -- overload_tally.c ------------------------------------------------------ */

/* Time goes on to at: closes the bins before it. */
void stg_overload_pass(stg_overload_world *w, stg_ns at);

void stg_overload_count_begun(stg_overload_world *w);
void stg_overload_count_sent(stg_overload_world *w, bool is_retry);
void stg_overload_count_held(stg_overload_world *w);
void stg_overload_count_refused(stg_overload_world *w);
void stg_overload_count_timeout(stg_overload_world *w);
void stg_overload_count_for_nobody(stg_overload_world *w);
void stg_overload_count_end(stg_overload_world *w, stg_ns begun_at,
                            stg_why why);

/* -- overload_recovery.c --------------------------------------------------- */

stg_recovery stg_overload_recover(const stg_overload_options *o,
                                  const stg_overload_bin *bins,
                                  uint32_t bin_count);

#endif
