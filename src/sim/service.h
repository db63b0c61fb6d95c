/* service.h - workers, and a queue before them, in virtual time.
 *
 * A request reaches the service; a free worker takes it, or it waits in the
 * queue, or there is no place and it is refused. First come, first served, or
 * last come; and a service may shed load: what waits too long is refused when
 * its turn comes, and so is what comes beyond a limit that adapts. Requests are
 * slots of one array, numbered from 0, and wait in a list through them.
 *
 * When a request is started the service says when it will end, by a hook; the
 * owner calls stg_sim_service_finish() then. Pure; memory comes from the
 * owner. */
#ifndef STAGGER_SIM_SERVICE_H
#define STAGGER_SIM_SERVICE_H

#include <stdbool.h>

#include "base/memory.h"
#include "core/reader.h"
#include "sim/distribution.h"

#define STG_SIM_NONE UINT32_MAX

/* Who is served next. */
typedef enum stg_sim_order {
    STG_SIM_ORDER_FIFO,
    STG_SIM_ORDER_LIFO,     /* the last to come */
    STG_SIM_ORDER_ADAPTIVE, /* fifo, and lifo where the queue has not been empty for
                           `stands_after` */
} stg_sim_order;

/* What is refused when its turn comes. */
typedef enum stg_sim_shed {
    STG_SIM_SHED_NONE,
    STG_SIM_SHED_WAIT,  /* what has waited longer than `shed_target`; with an
                       interval: than that, and than `shed_target` where the
                       queue has not been empty for the interval */
    STG_SIM_SHED_CODEL, /* RFC 8289: as few as keep the shortest wait of
                       `shed_interval` below `shed_target` */
} stg_sim_shed;

typedef struct stg_sim_service_options {
    uint32_t workers;      /* 1 to 100000 */
    uint32_t queue_max;    /* places to wait in, 0 to 10000000 */
    stg_distribution time; /* what a worker takes for a request */
    const stg_ns
        *times;        /* it takes one of these instead, drawn by chance; NULL:
                              by the distribution. Kept */
    size_t time_count; /* length of `times`, 1 at least */
    stg_sim_order order;
    stg_ns stands_after; /* adaptive: 1 us to 1 d; else 0 */
    stg_sim_shed shed;
    stg_ns shed_target, shed_interval; /* 1 us to 1 d; what is not used 0 */
    stg_ns limit;    /* adapts how many may be inside, by additive increase and
                     multiplicative decrease, to stays of this: 1 us to 1 d; 0:
                     as many as have a place */
    uint32_t drag;   /* millionths: each other request inside makes one that is
                      started take so much longer, 0 to 1000000 */
    bool skips_gone; /* a request whose caller has given up leaves the queue;
                           else it is served for nobody */
} stg_sim_service_options;

/* Where a request is. */
typedef enum stg_request_place {
    STG_REQUEST_FREE, /* the slot is not used */
    STG_REQUEST_AWAY, /* on its way to the service or back */
    STG_REQUEST_QUEUED,
    STG_REQUEST_SERVED, /* a worker has it */
} stg_request_place;

typedef struct stg_sim_request {
    stg_ns reached_at;
    uint32_t caller;     /* the owner's */
    uint32_t next, prev; /* in the queue, or among the free */
    uint8_t place;       /* stg_request_place */
    uint8_t answer;      /* the owner's, as are: */
    uint8_t layer;       /* of what sent it */
    bool is_again;       /* there would be none without retries */
    bool is_gone;        /* nobody waits for the answer */
} stg_sim_request;

typedef struct stg_sim_worker {
    uint32_t request;  /* STG_SIM_NONE: it is free */
    uint32_t next;     /* among the free */
    stg_ns due_at;     /* when it ends */
    stg_ns left;       /* of a stalled service: what it still takes */
    stg_ns started_at; /* for the owner */
} stg_sim_worker;

/* What has been counted since stg_sim_service_count_from(). */
typedef struct stg_sim_service_counts {
    uint64_t reached; /* requests that came, refused ones included */
    uint64_t refused; /* for want of a place, or beyond the limit */
    uint64_t shed;    /* refused when their turn came */
    uint64_t waited;  /* of those that were taken, how many had to wait; known
                         when a worker starts them */
    uint64_t started;
    uint64_t served;
    uint64_t served_for_nobody;
    uint64_t lost;  /* thrown away by stg_sim_service_clear(), or given up */
    uint64_t timed; /* served ones that came since, whose times these are: */
    double wait;    /* sum of their time in the queue, ns */
    double stay;    /* sum of their time in the service, ns */
    double stay_inside; /* of all requests, the part that lies in the time that
                           was counted: Little's law says it is `present` */
    double present;     /* integral of requests in the service, ns */
    double queued;      /* integral of requests in the queue, ns */
    uint32_t queued_most;
} stg_sim_service_counts;

/* Caches that are empty: what is started takes 1 + (factor - 1) exp(-x) times as
 * long, where x is how many were started since, in `starts`, or how much time has
 * passed, in `time`. One of them is 0. */
typedef struct stg_sim_cold {
    uint32_t
        factor; /* thousandths, 1000 to 1000000; 0: there is nothing cold */
    uint32_t starts; /* 1 to 1000000000 */
    stg_ns time;     /* 1 us to 1 d */
} stg_sim_cold;

/* The variables of RFC 8289, section 5. */
typedef struct stg_codel {
    stg_ns first_above_at, drop_next;
    uint32_t count, last_count;
    bool is_dropping;
} stg_codel;

typedef struct stg_sim_service {
    stg_sim_service_options options;
    const stg_memory *memory; /* kept */
    stg_rng rng;              /* of service times: the owner seeds it */
    void (*on_start)(void *ctx, uint32_t worker, stg_ns due_at);
    /* A request was shed, and is away again. It must not reach, finish or leave
     * a request. */
    void (*on_shed)(void *ctx, uint32_t request);
    void *ctx;
    stg_sim_request *requests;
    uint32_t request_count, request_free, request_max;
    stg_sim_worker *workers;
    uint32_t worker_free; /* the first of the free */
    uint32_t first, last; /* of the queue */
    uint32_t queued, busy;
    uint32_t inside_max; /* of those: the limit */
    stg_ns stands_from;  /* since when the queue has not been empty */
    stg_codel codel;
    uint32_t staffed;  /* workers that take requests */
    uint32_t slowness; /* thousandths: what is started takes so many times */
    bool is_uneven;    /* so many times and more, by drag or cold */
    stg_sim_cold cold;
    stg_ns cold_from_at;
    uint32_t cold_starts; /* since */
    bool is_stalled;
    stg_ns counted_from_at, counted_at;
    stg_sim_service_counts counts;
} stg_sim_service;

/* Makes an idle service at instant 0. o has passed the check; memory is kept;
 * request_max bounds the slots. rng, on_start, on_shed and ctx are the owner's to
 * set.
 * Returns STG_IO if there is no memory, and there is nothing to close. */
stg_status stg_sim_service_init(stg_sim_service *s,
                                const stg_sim_service_options *o,
                                uint32_t request_max, const stg_memory *memory);
void stg_sim_service_close(stg_sim_service *s);

/* Checks the ranges above. */
stg_status stg_sim_service_check(const stg_sim_service_options *o,
                                 stg_error *err);

/* A slot for a request, on its way; STG_SIM_NONE if there is no memory, or
 * as many as there may be. */
uint32_t stg_sim_service_take(stg_sim_service *s, uint32_t caller);

/* The slot of a request that is away is free again. */
void stg_sim_service_drop(stg_sim_service *s, uint32_t request);

typedef enum stg_reception {
    STG_RECEPTION_STARTED,
    STG_RECEPTION_QUEUED,
    STG_RECEPTION_REFUSED, /* it is away again */
} stg_reception;

/* A request has reached the service. */
stg_reception stg_sim_service_reach(stg_sim_service *s, uint32_t request,
                                    stg_ns now);

/* A worker is done, at its due_at. Returns the request, away again; the worker
 * has the next one, if one waits. */
uint32_t stg_sim_service_finish(stg_sim_service *s, uint32_t worker,
                                stg_ns now);

/* Whether what on_start said of this worker still holds. */
bool stg_sim_service_is_due(const stg_sim_service *s, uint32_t worker,
                            stg_ns now);

/* Nobody waits for the answer any more. True: the request waited, was taken out
 * of the queue, and is away again. */
bool stg_sim_service_leave(stg_sim_service *s, uint32_t request, stg_ns now);

/* No worker moves, and nothing is started, until the stall ends. */
void stg_sim_service_stall(stg_sim_service *s, stg_ns now);
void stg_sim_service_resume(stg_sim_service *s, stg_ns now);

/* So many of the workers take requests from now on, 1 to all; the others end what
 * they have. */
void stg_sim_service_staff(stg_sim_service *s, uint32_t workers, stg_ns now);

/* Its caches are empty now. */
void stg_sim_service_chill(stg_sim_service *s, const stg_sim_cold *cold,
                           stg_ns now);

/* A request of those that are inside, thrown away: it is away again, and its
 * worker free. STG_SIM_NONE when none is left. Starts nothing. */
uint32_t stg_sim_service_clear(stg_sim_service *s, stg_ns now);

/* Counts anew from now on. */
void stg_sim_service_count_from(stg_sim_service *s, stg_ns now);

/* Brings the integrals up to now. */
void stg_sim_service_count(stg_sim_service *s, stg_ns now);

/* At the end: the stay of those still inside, up to now. */
void stg_sim_service_count_rest(stg_sim_service *s, stg_ns now);

/* -- settings as texts ------------------------------------------------------ */

/* Read what stands there; false for what is none, and then *o may be half
 * changed. */
bool stg_service_read_order(stg_reader *r, stg_sim_service_options *o);
bool stg_service_read_shed(stg_reader *r, stg_sim_service_options *o);
bool stg_service_read_limit(stg_reader *r, stg_sim_service_options *o);

#define STG_SERVICE_TEXT_MAX 64

/* As they are read: "fifo", "wait:1s", "aimd:100ms". Return text. */
const char *stg_service_print_order(const stg_sim_service_options *o,
                                    char text[STG_SERVICE_TEXT_MAX]);
const char *stg_service_print_shed(const stg_sim_service_options *o,
                                   char text[STG_SERVICE_TEXT_MAX]);
const char *stg_service_print_limit(const stg_sim_service_options *o,
                                    char text[STG_SERVICE_TEXT_MAX]);

#endif
