/* overload.h - clients, retries and a service that is overloaded. Pure. */
#ifndef STAGGER_SIM_OVERLOAD_H
#define STAGGER_SIM_OVERLOAD_H

#include <stdatomic.h>

#include <stagger/retry.h>

#include "sim/service.h"
#include "sim/statistics.h"

/* -- an overload ----------------------------------------------------------- */

/* A service, its load, trouble for a while, and clients that
 * retry and hedge: does it recover when the trouble is over?
 *
 * Operations begin by themselves (open load) or when a client has thought
 * (closed load). Each belongs to a process of clients, which has one stg_peer:
 * its operations share budget and breaker, as they would in a program. What
 * they do is what core decides: stg_retry_admit() and stg_retry_step(), and of a
 * policy with hedges stg_hedge_admit() and stg_hedge_step().
 *
 * Between them and the service there may be others, which call it for them by
 * policies of their own, and retry, too.
 *
 * An attempt is a request: over the network to the service, which takes,
 * queues or refuses it; and an answer, over the network. After the attempt's
 * timeout the client waits no longer, and the service mostly does not know: it
 * serves a request for nobody. That is what keeps a retry storm going when its
 * trigger has ended (a metastable failure). So it is with the requests of a round
 * that another one has won.
 *
 * Pure, in integer nanoseconds from 0: the same options, the same result, on
 * every machine. Memory comes from the caller. */

/* What goes wrong, from one instant until another. */
typedef enum stg_trigger_kind {
    STG_TRIGGER_NONE,
    STG_TRIGGER_OUTAGE, /* the service is down: what is inside is lost (reset),
                           what comes is refused at once (refused) */
    STG_TRIGGER_STALL,  /* it takes requests and serves none */
    STG_TRIGGER_SLOW,   /* it takes `factor` times as long */
    STG_TRIGGER_SPIKE,  /* `factor` times as many operations begin */
    STG_TRIGGER_ERRORS, /* a share of its answers, `factor`, is a 500 */
} stg_trigger_kind;

typedef struct stg_trigger {
    stg_trigger_kind kind;
    uint32_t factor; /* thousandths. slow, spike: 1 to 1000000; errors: 1 to
                        1000; else 0 */
    stg_ns from_at, until_at; /* from_at < until_at < end_at; kind none: 0 */
} stg_trigger;

/* Of a load that changes: a rate at an instant. */
typedef struct stg_load_point {
    stg_ns at;
    uint32_t rate; /* thousandths of an operation a second, 0 to 4 * 10^9 */
} stg_load_point;

enum { STG_LOAD_POINTS_MAX = 10000 };

/* What has happened somewhere: when operations began, in order from 0, and what
 * the service took for requests, in any order. */
typedef struct stg_sim_trace {
    stg_ns *at;
    size_t count;
    stg_ns *times;
    size_t time_count;
} stg_sim_trace;

typedef struct stg_overload_load {
    bool is_closed;
    bool is_regular;   /* open: at even distances, not as a Poisson process */
    uint64_t rate;     /* open: thousandths of an operation a second, 1 to
                         4 * 10^9; closed: 0 */
    uint64_t rate_end; /* open: what it becomes until the end of the run, in a
                          straight line; 0: it stays */
    const stg_load_point *points; /* open: the rates in place of both, each in a
                                     straight line to the next, with a later
                                     instant or the same, one of them above 0;
                                     NULL: none; kept */
    uint32_t point_count;
    uint32_t clients; /* closed: 1 to 10000000, each with one operation at a
                         time; open: 0 */
    stg_distribution think; /* closed: from an operation's end to the next */
    const stg_sim_trace *trace; /* open: operations begin as here, and `rate` is
                                   the mean; NULL: by chance. Kept */
} stg_overload_load;

enum { STG_LAYERS_MAX = 4 };

/* An attempt that has come to its end. */
typedef struct stg_overload_attempt {
    uint32_t client;  /* of a closed load; else a place that operations take
                         one after the other */
    uint32_t attempt; /* from 1 */
    stg_ns begun_at, ended_at;
    const stg_outcome *outcome; /* borrowed */
} stg_overload_attempt;

typedef struct stg_overload_options {
    stg_policy policy;
    bool has_others;
    stg_policy others; /* policy of a share of the processes, such as those that
                          were not updated yet; zeros without has_others */
    uint32_t share;    /* of the processes, millionths, 0 to 1000000;
                          STG_SHARE_OPEN: stg_overload_settle() says. As many whole
                          processes as that makes; without others: 0 or open */
    /* Services in a row, of which each calls the next; the last one is the one
     * that is described below, and has the trouble. 2 to 4; 0 or 1: that one
     * alone; 0 is left open, and stg_overload_settle() says. */
    uint32_t layers;
    stg_policy
        inner[STG_LAYERS_MAX - 1]; /* by which they call: the first of the
                                            first; the last of all others, too */
    uint32_t inner_count;          /* 0: by the clients' policy */
    bool propagates; /* a service is told how long its caller waits, and neither
                        waits nor begins beyond that */
    stg_overload_load load;
    uint32_t processes; /* that the clients live in, and each of the services
                           that call, 1 to 1000000 */
    uint32_t throttle;  /* K of a throttle beside the policy's,
                           thousandths; 0: none */
    stg_ns timeout;     /* of an attempt, 1 us to 1 d or STG_NEVER; the policy's
                           own holds if it is less */
    stg_distribution network; /* of a request, and of an answer */
    stg_sim_service_options service;
    uint32_t errors;    /* millionths of answers that are a 500, whatever the
                           load: 0 to 1000000 */
    stg_ns retry_after; /* what a refusal for want of a place asks for; 0:
                           nothing; up to 1 d */
    stg_trigger trigger;
    /* After an outage or a stall the workers are back in so many steps, 2 to
     * 1000, the first of them at once; 0: all at once. */
    uint32_t return_steps;
    stg_ns return_step; /* from one to the next, 1 us to 1 d; else 0 */
    stg_sim_cold cold;  /* after an outage; factor 0: nothing */
    stg_ns warmup; /* what begins before is not counted in totals, < end_at */
    stg_ns end_at; /* 1 ms to 30 d */
    stg_ns bin;    /* width of the series: it divides end_at, 1000 at most */
    uint32_t live_max;   /* operations, and requests, at once; 1 to 50000000 */
    uint64_t events_max; /* of a run; 0: no limit */
    /* Told of each attempt when it ends; or NULL. */
    void (*on_attempt)(void *ctx, const stg_overload_attempt *attempt);
    void *ctx;
} stg_overload_options;

#define STG_SHARE_OPEN UINT32_MAX

#define STG_OVERLOAD_BINS_MAX 1000
#define STG_OVERLOAD_WHYS (STG_WHY_INVALID + 1) /* how operations end */

/* What began, or happened, in a bin. */
typedef struct stg_overload_bin {
    uint32_t begun;          /* operations */
    uint32_t saved;          /* of those: succeeded, then or later */
    uint32_t lost;           /* of those: given up, then or later */
    uint32_t sent;           /* requests */
    uint32_t retried;        /* of those: not an operation's first attempt */
    uint32_t hedged;         /* of those: hedges, which are no retries */
    uint32_t hedges_won;     /* of operations that a hedge ended well */
    uint32_t hedges_refused; /* that were due, and that core did not admit */
    uint32_t held;      /* attempts that breaker or throttle did not let out */
    uint32_t succeeded; /* operations that succeeded then: goodput */
    uint32_t given_up;
    uint32_t refused;          /* requests, for want of a place */
    uint32_t timeouts;         /* of attempts */
    uint32_t for_nobody;       /* served in vain */
    double queue;              /* mean length */
    double busy;               /* mean of workers at work */
    stg_sim_histogram latency; /* of the operations that succeeded then, ns */
} stg_overload_bin;

/* Whether and when, see overload_recovery.c. */
typedef struct stg_recovery {
    double before;    /* goodput before the trigger, a second */
    bool was_healthy; /* then nine in ten of the operations succeeded */
    bool is_recovered;
    stg_ns after; /* the trigger's end; 0 if it is not */
} stg_recovery;

/* One run. From the warm-up on: */
typedef struct stg_overload_result {
    uint64_t begun, saved, lost; /* operations; the rest was under way */
    uint64_t sent, retried, held, refused, timeouts, for_nobody;
    uint64_t hedged, hedges_won, hedges_refused;
    uint64_t
        sent_to[STG_LAYERS_MAX]; /* requests to each service of a row; of the
                                         last one `sent` */
    uint64_t others_begun, others_saved, others_lost,
        others_sent;                  /* of these */
    uint64_t whys[STG_OVERLOAD_WHYS]; /* of those that ended, by stg_why */
    stg_sim_histogram latency;        /* of those that succeeded */
    double latency_sum;               /* ns */
    stg_sim_service_counts service;
    stg_ns counted; /* how long */
    /* In the trigger: operations that began then, and what became of them. */
    uint64_t trigger_begun, trigger_saved;
    stg_recovery recovery;
    /* The whole run. */
    stg_overload_bin *bins; /* bin_count of them, each whole */
    uint32_t bin_count;
    uint64_t events;
    bool is_cut; /* stopped, or live_max or events_max was reached, or memory
                    had an end, or time stood still: all counts are up to then */
} stg_overload_result;

/* Whether the load of itself is not the same all the time; the most of it, a
 * second; and how many operations begin in a run. An open load. */
bool stg_load_changes(const stg_overload_load *l);
double stg_load_most(const stg_overload_load *l);
double stg_load_total(const stg_overload_options *o);

/* Reads points, a line each: a time and a rate, as "90s,700" or, in seconds,
 * "90,700". Returns STG_INVALID with words in err. */
stg_status stg_load_parse(const char *text, size_t size,
                          stg_load_point points[STG_LOAD_POINTS_MAX],
                          uint32_t *count, stg_error *err);

/* A service of ten workers and 1000 requests a second, under 700 a second that
 * wait half a second at most; ten seconds of outage. */
stg_overload_options stg_overload_default(void);

/* Checks the ranges above. STG_INVALID with the setting, what it is and the
 * range. */
stg_status stg_overload_check(const stg_overload_options *o, stg_error *err);

/* Whether a policy of it makes hedges. */
bool stg_overload_hedges(const stg_overload_options *o);

/* What a run takes at most, in bytes. */
uint64_t stg_overload_memory(const stg_overload_options *o);

/* Runs once. o has passed the check, and is borrowed. stop, if not NULL, is
 * looked at now and then, and ends the run as cut. Returns STG_IO if there was
 * no memory to begin with; the result is to be freed only after STG_OK. */
stg_status stg_overload_run(const stg_overload_options *o, uint64_t seed,
                            uint64_t repetition, const atomic_bool *stop,
                            const stg_memory *memory, stg_overload_result *r);
void stg_overload_free(stg_overload_result *r, const stg_memory *memory);

/* -- settings by name ------------------------------------------------------ */

/* The settings of an overload by name, as command lines and
 * sweeps write them. Pure. */

/* A setting: what it is called, and what it takes. */
typedef struct stg_overload_setting {
    const char *name;     /* "queue" */
    const char *expected; /* "a whole number, 0 to 10000000" */
} stg_overload_setting;

/* The setting number i from 0, or NULL after the last. Static. */
const stg_overload_setting *stg_overload_setting_at(size_t i);

/* Sets one. Returns STG_OK; STG_NOT_FOUND if no setting has that name; or
 * STG_INVALID with "name=value: expected ..." in err, and *o is as it was.
 * clients= makes the load closed, rate= open. What fits together is for
 * stg_overload_check() to say. */
stg_status stg_overload_set(stg_overload_options *o, const char *name,
                            const char *value, stg_error *err);

/* Chooses what was left open: as many layers as the inner policies need; a share of half of the processes, where there are
 * others; a warm-up of STG_NEVER becomes half of what comes
 * before the trigger, or a tenth of the duration; a bin of 0 a width that
 * one can read, for 200 to 400 of them. */
void stg_overload_settle(stg_overload_options *o);

#define STG_TRIGGER_TEXT_MAX 48

/* "outage", "slow:3", "errors:50%". Returns text. */
const char *stg_trigger_print(const stg_trigger *t,
                              char text[STG_TRIGGER_TEXT_MAX]);

/* The trigger in words: "an outage", "three times slower" ... as in "after ...".
 * Returns text. */
const char *stg_trigger_say(const stg_trigger *t,
                            char text[STG_TRIGGER_TEXT_MAX]);

#endif
