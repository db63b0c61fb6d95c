/* ingress.h - where producers publish, by HTTP: docs/ingress.md is its contract;
 * and where others ask: docs/api.md.
 *
 *     POST /v1/messages         one message      202 {"id": ..}
 *     POST /v1/messages/batch   NDJSON           202 {"ids": [..]}
 *                               ?topic=NAME      of a log of several topics
 *     POST /v1/in/NAME          webhook.h        202 {"id": ..}
 *     GET  /healthz, /readyz    for probes
 *     ...                       what stg_ingress_serve() was given
 *
 * A 202 is sent after the append was called durable and never before; an append
 * that may have happened, or not, is a 503. What is refused is answered with a
 * problem document (RFC 9457).
 *
 * On http/server.h; everything happens on the loop's thread. Bytes of requests
 * that are being read or wait for their commit are bounded by pending_max. A
 * request that is slow is cut. */
#ifndef STAGGER_INGRESS_INGRESS_H
#define STAGGER_INGRESS_INGRESS_H

#include <uv.h>

#include "host/files.h"
#include "host/log.h"
#include "http/tls.h"
#include "ingress/token.h"
#include "ingress/webhook.h"
#include "store/store.h"

typedef struct stg_ingress stg_ingress;

typedef struct stg_ingress_options {
    const char *listen; /* 127.0.0.1:8080; [::1]:8080; port 0: any;
                           unix:/path */
    const char
        *token_file;     /* NULL: none, and only loopback may be listened on */
    stg_tls_options tls; /* certificate_file NULL: it speaks plain HTTP */
    const char *const
        *headers; /* those kept of a message, ended by NULL: names,
                                   or "X-*"; see http/header.h */
    const stg_webhook *webhooks; /* the caller's: kept until other ones are in
                                    use, or the ingress is closed */
    size_t webhook_count;
    bool is_keyless; /* no idempotency keys are kept: webhooks have none */
    uint64_t epoch;  /* the first half of the ids of new messages */

    /* Why nothing can be published here, for producers: they get a 404. NULL: it
     * can. Static. */
    const char *elsewhere;

    size_t message_max; /* bytes of a body: 1 MiB */
    size_t batch_max;   /* bytes of a batch: 16 MiB */
    size_t lines_max;   /* messages of a batch: 10000 */
    size_t header_max;  /* bytes of a request's header: 1 to 24 KiB, 16 KiB */
    size_t pending_max; /* bytes read or waiting, in all: 64 MiB */
    uint32_t waiting_max, address_waiting_max; /* messages that wait for their
                                                  commit: 100000 and 50000 */
    uint32_t connections_max, address_connections_max; /* 1024, 512 */
    uint32_t asks_max;    /* requests that wait for their handlers: 64 */
    size_t answers_max;   /* bytes of their answers on their way: 64 MiB */
    uint32_t streams_max; /* answers that go on: 16 */
    stg_ns stream_pause;  /* the longest time in which one says nothing: 15 s */

    stg_ns header_timeout; /* a header: 10 s */
    stg_ns idle_timeout;   /* between requests, and for an answer to be taken:
                               30 s; the limit of the two beside it, too */
    stg_ns body_grace;     /* a body may be slow: 10 s; from then on it comes */
    uint32_t body_rate;    /* with so many bytes a second: 1024 */
    stg_ns request_timeout; /* a whole body: 2 m */
    stg_ns retry_after;     /* what a 503 and a 429 advise, in seconds: 5 s */

    /* Appends to the log, as stg_store_append() does: see `publish` in
     * sources/source.h. topic: of the query, lent for the call; NULL: it has
     * none. */
    void (*append)(void *ctx, const char *topic, const stg_append *messages,
                   size_t count, stg_append_fn *done, void *done_ctx);
    /* What keeps the hub from taking messages, for people: "the store is not
     * open". NULL: nothing. May itself be NULL. */
    const char *(*missing)(void *ctx);
    /* The same of /readyz alone: what is published is tried. May be NULL. */
    const char *(*unready)(void *ctx);
    /* The same of what is published alone: the hub is ready. May be NULL. */
    const char *(*unwanted)(void *ctx);
    stg_files
        *files;   /* shared with the connections to targets; kept. NULL: they
                         are the ingress's alone */
    void *ctx;    /* of these four */
    stg_log *log; /* kept; may be NULL */
} stg_ingress_options;

/* Everything above but append, ctx, epoch and log. */
stg_ingress_options stg_ingress_options_default(void);

/* Listens. Strings are copied. Returns STG_INVALID for options that cannot be
 * used (an address that is none, or not loopback without a token file; a token
 * file that others may read, or without a token), STG_IO for what the system
 * refuses (a port in use), with words that say what to do. */
stg_status stg_ingress_open(stg_ingress **ingress, uv_loop_t *loop,
                            const stg_ingress_options *o, stg_error *err);

/* Answers more paths: see token.h; 7 tables at most. The tables are kept. */
void stg_ingress_serve(stg_ingress *g, const stg_route *routes, size_t count,
                       void *ctx);

/* A call that was refused for its token; all are lent. */
typedef struct stg_refused_call {
    int status;      /* 401: no token, or none of the hub's; 403: a role that it
                        has not */
    const char *who; /* the token's name; "": it has none */
    const char *from, *method, *path, *why;
} stg_refused_call;

/* Told of each such call, before it is answered; on the loop's thread. */
typedef void stg_refused_fn(void *ctx, const stg_refused_call *call);
void stg_ingress_watch(stg_ingress *g, stg_refused_fn *refused, void *ctx);

/* Options of an ingress that listens, read and not in use yet: its token file and
 * certificate, headers, webhooks, and numbers of connections. The rest of the
 * options does not change. */
typedef struct stg_ingress_next stg_ingress_next;

/* Does everything that can fail, and changes nothing: errors are those of
 * stg_ingress_open(). *next is for one of the two calls below, before the
 * ingress is closed. */
stg_status stg_ingress_prepare(stg_ingress *g, const stg_ingress_options *o,
                               stg_ingress_next **next, stg_error *err);

/* Puts next in use and takes it: tokens, headers and webhooks from the next request
 * on, the certificate from the next connection on. Streams end, for their clients to
 * come again with a token that holds. Webhooks of before may go after the call. */
void stg_ingress_use(stg_ingress *g, stg_ingress_next *next);

/* Frees what is not put in use; NULL is none. */
void stg_ingress_drop(stg_ingress_next *next);

/* The port that it listens on; and the address in full: "127.0.0.1:8080". */
uint16_t stg_ingress_port(const stg_ingress *g);
const char *stg_ingress_address(const stg_ingress *g);

/* From now on every message is refused with 503 and its connection closed.
 * Those that wait for their commit are answered as it comes out; when all were,
 * stopped is called, once, not from within this call. */
void stg_ingress_stop(stg_ingress *g, void (*stopped)(void *ctx), void *ctx);

/* Closes all connections and frees the ingress; then done is called. Appends
 * whose callback has not come are let go: their producers get no answer. What
 * they point to is kept until it comes, so the loop has to go on until then. */
void stg_ingress_close(stg_ingress *g, void (*done)(void *ctx), void *ctx);

/* For people and metrics; counts are since the start. */
typedef struct stg_ingress_view {
    uint64_t requests;    /* answered, whatever the path */
    uint64_t accepted;    /* messages, repeats not among them */
    uint64_t repeats;     /* messages that were there before, by their key */
    uint64_t refused_4xx; /* requests */
    uint64_t refused_5xx;
    uint64_t signatures[STG_SIGNATURE_WRONG + 1]; /* of webhooks */
    uint64_t cut;               /* requests that were too slow */
    uint64_t handshakes_failed; /* of TLS */
    int64_t certificate_until;  /* seconds since 1970; 0: there is none */
    uint32_t connections;       /* open now */
    uint32_t connections_max;   /* fewer than asked for, where half of the open
                                 files that are allowed are fewer */
    uint32_t waiting;           /* messages that wait for their commit now */
    size_t pending;             /* bytes, now */
    bool is_stopping;
} stg_ingress_view;
void stg_ingress_look(const stg_ingress *g, stg_ingress_view *view);

#endif
