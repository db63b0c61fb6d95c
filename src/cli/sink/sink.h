/* sink.h - what the parts of `stagger sink` share: its settings and its state.
 *
 * The server is the hub's (http/server.h), with no limits of time or number.
 *
 *   replies     what a receipt is answered with
 *   seen        how often each delivery came
 *   tally       the counts, and what is shown of them
 *   log         a line of JSON a receipt
 *   connection  what is done with a request
 *   server      where it listens, and how long */
#ifndef STAGGER_CLI_SINK_SINK_H
#define STAGGER_CLI_SINK_SINK_H

#include "cli/sink/log.h"
#include "cli/sink/replies.h"
#include "cli/sink/seen.h"
#include "cli/sink/tally.h"
#include "host/signals.h"
#include "http/server.h"
#include "ingress/address.h"

typedef struct sink_options {
    const char *listen; /* [ADDRESS:]PORT */
    stg_ns delay_min, delay_max;
    const char *tls_cert, *tls_key; /* both, or NULL: plain HTTP */
    uint64_t count; /* receipts before the end; UINT64_MAX: none */
    const char *log;
    bool is_closing; /* the connection, after each answer */
    bool is_quiet;
} sink_options;

enum { SINK_HEADER_MAX = 1024 * 1024 };

typedef struct sink {
    sink_options *o;
    sink_replies replies;
    sink_seen seen;
    sink_tally tally;
    sink_log log;
    stg_rng rng;
    uv_loop_t loop;
    uv_timer_t timer; /* of the live line */
    stg_signals signals;
    stg_listen_address address;
    stg_files files;
    stg_httpd http;
} sink;

/* Whether the receipts that were asked for are here. */
static inline bool stg_sink_is_done(const sink *s)
{
    return s->tally.receipts >= s->o->count;
}

#endif
