/* resource.h - what clients compete for: a server that says yes or no to a call
 * when it arrives, and when the answer leaves.
 *
 *   optimistic   a version number. A client reads it, and writes with what it
 *                read; the write is refused if another was first.
 *   lock         held by one client for a time; refused while it is held.
 *   rate         k calls in each window of time, counted from 0; the others are
 *                refused, and may learn when the window ends.
 *   workers      c of them, and one queue in the order of arrival; refused when
 *                the queue is full.
 *   round        time is cut into rounds; the first call of each succeeds, and
 *                all learn of it at its end.
 *
 * As a text, a kind and settings in any order:
 *
 *     optimistic
 *     lock hold=10ms
 *     rate=100/1s retry-after=yes
 *     workers=8 service=exponential:50ms queue=100
 *     round=40ms
 *
 * and fault=NAME, which says what a refusal is to the policy: an HTTP status or
 * a fault's name, else the usual one of the kind. Pure. */
#ifndef STAGGER_SIM_RESOURCE_H
#define STAGGER_SIM_RESOURCE_H

#include <stdbool.h>

#include <stagger/outcome.h>

#include "sim/distribution.h"
#include "sim/queue.h"

typedef enum stg_resource_kind {
    STG_RESOURCE_OPTIMISTIC,
    STG_RESOURCE_LOCK,
    STG_RESOURCE_RATE,
    STG_RESOURCE_WORKERS,
    STG_RESOURCE_ROUND,
} stg_resource_kind;

/* Fields that a kind does not use are 0. */
typedef struct stg_resource {
    stg_resource_kind kind;
    uint32_t count; /* rate: calls in a window; workers: how many; 1 to
                          1000000 */
    stg_ns width;   /* rate: the window; round: of one; 1 ns to 365 d */
    stg_distribution service; /* lock: how long it is held; workers: a call */
    uint32_t queue;           /* workers: how many wait at most; UINT32_MAX: any
                          number; else 0 to 1000000 */
    bool says_when;           /* rate: a refusal says when the window ends */
    stg_outcome fault;        /* outcome of a refused call */
} stg_resource;

/* The text's resource. Returns STG_OK, or STG_INVALID with words in err that
 * name the setting and the range, and leaves *resource. */
stg_status stg_resource_parse(stg_resource *resource, const char *text,
                              stg_error *err);

/* The optimistic one. */
stg_resource stg_resource_default(void);

/* Calls that it can say yes to in a second; 0: that depends on who calls. */
double stg_resource_capacity(const stg_resource *resource);

#define STG_RESOURCE_TEXT_MAX 200

/* The text that reads as this resource. Returns text. */
const char *stg_resource_print(const stg_resource *resource,
                               char text[STG_RESOURCE_TEXT_MAX]);

/* -- its state in a run ---------------------------------------------------- */

typedef struct stg_server {
    stg_resource resource; /* as it was made */
    stg_outcome late;      /* rate: a refusal that says when */
    stg_rng rng;           /* of how long things take */
    stg_ns changed_at;     /* optimistic: the last success; lock: when it is
                              free again */
    uint64_t window;       /* rate, round: the number of the last one used */
    uint32_t used;         /* rate: calls in it */
    stg_sim_heap free_at;  /* workers: when each one is free */
    stg_ns *starts;        /* workers: of those that wait, in order; a ring */
    uint32_t first, waiting;
    const stg_memory *memory;
} stg_server;

typedef struct stg_resource_answer {
    bool is_success;
    stg_ns at;                  /* when it leaves the server */
    const stg_outcome *outcome; /* what the client hears: lent until the next
                                   call */
} stg_resource_answer;

/* Returns false if there is no memory. memory is kept. */
bool stg_server_init(stg_server *s, const stg_resource *resource,
                     const stg_memory *memory);
void stg_server_close(stg_server *s);

/* As it was at time 0. */
void stg_server_clear(stg_server *s, stg_rng rng);

extern const stg_outcome stg_server_success;

/* Any resource but an optimistic one. */
stg_resource_answer stg_server_call_other(stg_server *s, stg_ns at);

/* A call arrives at `at`, not before the last one; read_at is when the client
 * read, for an optimistic resource: a read in the instant of a change sees the
 * new version. */
static inline stg_resource_answer stg_server_call(stg_server *s, stg_ns at,
                                                  stg_ns read_at)
{
    if (s->resource.kind != STG_RESOURCE_OPTIMISTIC)
        return stg_server_call_other(s, at);
    if (read_at < s->changed_at)
        return (stg_resource_answer){.at = at, .outcome = &s->resource.fault};
    s->changed_at = at;
    return (stg_resource_answer){true, at, &stg_server_success};
}

#endif
