/* sink.h - what the parts of `stagger sink` share: its settings and its state.
 *
 * One thread on epoll. A connection reads a request, notes it as a receipt,
 * and answers by the replies; the server owns listener, connections and timers.
 *
 *   sink_replies     what a receipt is answered with
 *   sink_seen        how often each delivery came
 *   sink_tally       the counts, and what is shown of them
 *   sink_log         a line of JSON a receipt
 *   sink_connection  one client
 *   sink_server      all of them */
#ifndef STAGGER_CLI_SINK_SINK_H
#define STAGGER_CLI_SINK_SINK_H

#include "base/heap.h"
#include "base/list.h"
#include "cli/sink/log.h"
#include "cli/sink/replies.h"
#include "cli/sink/seen.h"
#include "cli/sink/tally.h"

typedef struct sink_options {
    const char *listen; /* [ADDRESS:]PORT */
    stg_ns delay_min, delay_max;
    uint64_t count; /* receipts before the end; UINT64_MAX: none */
    const char *log;
    bool is_closing; /* the connection, after each answer */
    bool is_quiet;
} sink_options;

enum {
    SINK_INPUT = 65536,  /* what is read from a connection at once */
    SINK_OUTPUT = 65536, /* and the answers that go out in one write */
};

typedef struct sink {
    sink_options *o;
    sink_replies replies;
    sink_seen seen;
    sink_tally tally;
    sink_log log;
    stg_rng rng;
    stg_ns now;           /* of this turn of the loop, monotonic */
    stg_heap timers;      /* of connections, by sink_connection.timer */
    stg_list connections; /* all of them */
    int epoll, listener, signals;
    bool is_full;           /* no file descriptor is left to accept with */
    uint64_t unanswered;    /* answers that are delayed, or half written */
    char input[SINK_INPUT]; /* of the connection that is served now */
    char output[SINK_OUTPUT];
    size_t output_size;
} sink;

/* Whether the receipts that were asked for are here. */
static inline bool stg_sink_is_done(const sink *s)
{
    return s->tally.receipts >= s->o->count;
}

#endif
