/* client.h - one POST on the wire, and what came of it.
 *
 * HTTP/1.1 on libuv streams: an endpoint is a target's URL with a pool of
 * connections that are kept alive; an exchange is one request and its answer.
 * An exchange puts at most one request on the wire: a connection that dies is
 * reported (`reset`, and whether it had been used before), never papered over.
 * Redirects are not followed; proxies in the environment are ignored. Through an
 * endpoint's own proxy each connection is made by CONNECT (proxy.h): from then on it
 * is as one to the target.
 *
 * Each phase has its own timeout and its own fault: resolve, connect, TLS,
 * write, first byte, whole. An answer is read up to a cap and then cut. What is
 * no strict HTTP/1.1 is `protocol`; nothing left over on a connection is given
 * to the next exchange. What is connected to, by whatever name, is an address
 * that egress.h allows. All on the loop's thread. */
#ifndef STAGGER_HTTP_CLIENT_H
#define STAGGER_HTTP_CLIENT_H

#include <uv.h>

#include <stagger/outcome.h>
#include <stagger/status.h>

#include <stdint.h>

#include "base/span.h"
#include "host/files.h"
#include "http/egress.h"

typedef struct stg_client stg_client;     /* one a loop */
typedef struct stg_endpoint stg_endpoint; /* one a target */
typedef struct stg_exchange stg_exchange; /* one attempt */

/* Broken pipes are ignored from here on, where the process let them kill it:
 * a write to a connection that was closed is an error like any other. */
stg_status stg_client_new(stg_client **client, uv_loop_t *loop, stg_error *err);

/* After all its endpoints: `done` is called when every handle is closed. */
void stg_client_close(stg_client *c, void (*done)(void *ctx), void *ctx);

/* What all endpoints may connect to from now on; connections that wait in their
 * pools are judged again before they are used. Until it is called: what
 * egress.h allows by itself. The lists are copied. Returns STG_IO when there is
 * no memory; then the rule is what it was. */
stg_status stg_client_set_egress(stg_client *c, const stg_egress *e,
                                 stg_error *err);

/* The same with a copy that was made before, which the client holds. */
void stg_client_use_egress(stg_client *c, stg_egress_rule *rule);

typedef enum stg_resolver {
    STG_RESOLVER_DNS,    /* /etc/hosts, then the name servers of
                            /etc/resolv.conf: all names at once */
    STG_RESOLVER_SYSTEM, /* getaddrinfo(): a few names at a time */
} stg_resolver;

/* By whom names are resolved from now on; until it is called: by the system. See
 * names.h. */
void stg_client_set_resolver(stg_client *c, stg_resolver by);

/* The files that connections may have, to be shared with those of producers:
 * lent, as long as c is there. Where there are no more, what is to be dialed
 * waits, and idle connections make room. */
stg_files *stg_client_files(stg_client *c);

/* Whether any had to wait for a file, or for memory, since the last call. */
bool stg_client_has_waited(stg_client *c);

typedef struct stg_endpoint_options {
    const char *url;     /* http:// or https://, with a path and a query */
    const char *method;  /* "POST" */
    bool is_open_path;   /* each request has a path of its own: they are sent by
                          stg_endpoint_send_to() alone */
    const char *headers; /* the target's own, "Name: value\r\n" lines; may be
                            NULL. Host and framing are not among them. Without
                            a User-Agent it is stagger's. */
    const char *ca_file; /* PEM; NULL: the system's */
    const char *certificate_file, *key_file; /* of the client; NULL: none */
    const struct stg_tls_names *tls_names; /* of these files; see tls.h; NULL: a
                                              target's */
    const char *proxy;  /* http://[user:password@]host:port, see proxy.h; NULL:
                           none */
    const char *source; /* an IP address to connect from; NULL: any */
    const char *server_name; /* for SNI and the check; NULL: the URL's host */
    bool is_unverified;      /* do not check the server's certificate */
    stg_ns resolve_timeout, connect_timeout, tls_timeout, write_timeout,
        first_byte_timeout; /* 1 ms to 1 d; STG_NEVER: only the whole's */
    stg_ns idle_max;        /* a connection waits for use: 1 m */
    stg_ns age_max; /* and lives: 10 m; then the name is resolved again */
    uint32_t idle_count_max; /* connections that wait: 64 */
    size_t answer_max;       /* bytes of a body that are read on: 64 KiB */
    size_t excerpt_max;      /* and shown: 1 KiB */
} stg_endpoint_options;

stg_endpoint_options stg_endpoint_options_default(const char *url);

/* Returns STG_INVALID with words for a URL that is none (or carries user and
 * password, a fragment, another scheme), a header that is none, a certificate
 * that cannot be read, a proxy or an address that is none. Strings are copied. */
stg_status stg_endpoint_new(stg_endpoint **endpoint, stg_client *c,
                            const stg_endpoint_options *o, stg_error *err);

/* No exchange is under way. Idle connections close. */
void stg_endpoint_free(stg_endpoint *e);

/* Given: exchanges under way go on to their end, and the endpoint ends with the
 * last of them. Idle connections close at once. */
void stg_endpoint_retire(stg_endpoint *e);

/* Whether an endpoint made with these options now would be the same; not if a
 * certificate's file was written since. Options that stg_endpoint_new() would
 * refuse are not. */
bool stg_endpoint_matches(const stg_endpoint *e, const stg_endpoint_options *o);

typedef struct stg_reply {
    stg_outcome outcome; /* the fault, or the status with Retry-After read */
    int status;          /* 0: there was no answer */
    const char *detail;  /* a line for people: "connect 127.0.0.1:81: connection
                            refused"; never NULL */
    stg_span answer;     /* the beginning of the body */
    bool is_reused;      /* the connection had carried another exchange */
    bool is_put_back;    /* it was not tried: something of ours was short for as
                            long as it may take; outcome is cancelled */
    stg_ns dialed_at; /* when the connection was made for it, or could not be;
                         0: it is reused, or was not dialed */
    stg_ns took;
} stg_reply;

typedef void stg_reply_fn(void *ctx, const stg_reply *reply);

/* Sends method and path with Host, the endpoint's headers, `headers` (whole
 * lines: "Name: value\r\n" each), Content-Length and body. body is kept until
 * `done`, which is called once, never from within this call; the exchange is gone
 * then. timeout: of the whole; what it waits for something of
 * ours (its turn to connect, a question about its name) does not count, and may
 * last as long once more. Returns NULL when there is no memory. */
stg_exchange *stg_endpoint_send(stg_endpoint *e, stg_span headers,
                                stg_span body, stg_ns timeout,
                                stg_reply_fn *done, void *ctx);

/* The same with another path, from '/' on, unless it is empty; and more headers
 * behind the others. */
stg_exchange *stg_endpoint_send_to(stg_endpoint *e, stg_span path,
                                   stg_span headers, stg_span more,
                                   stg_span body, stg_ns timeout,
                                   stg_reply_fn *done, void *ctx);

/* Ends it: `done` is called with STG_FAULT_CANCELLED, not from within this
 * call. */
void stg_exchange_cancel(stg_exchange *x);

/* For people and metrics. */
typedef struct stg_endpoint_view {
    uint32_t idle, busy; /* connections */
    uint64_t connects;   /* since the start */
    bool is_tls;         /* its URL is https */
    /* Until when certificates are valid, in seconds since 1970; 0: there is
       none, or none was seen yet. */
    int64_t certificate_until;     /* of the server and of those that vouch for
                                      it, whichever ends first; seen last */
    int64_t own_certificate_until; /* of the client */
} stg_endpoint_view;
void stg_endpoint_look(const stg_endpoint *e, stg_endpoint_view *view);

#endif
