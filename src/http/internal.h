/* internal.h - what the files of the client share. Private to them.
 *
 *     client.c      one a loop: deadlines, buffers, what is open
 *     endpoint.c    a target: its request's head, its pool
 *     endpoint_common.c  what many of them have in common
 *     connection.c  the phases of an exchange, and how it ends
 *     connection_words.c  what people read of one that failed
 *     names.c       names, who waits for them, and answers that are kept
 *     resolve.c     how they are asked about
 *     dial.c        from a name to a connection
 *     tunnel.c      from a connection to a proxy to one to the target
 *     wire.c        bytes out and in, plain or through tls.c
 *     answer.c      the bytes of an answer
 *
 * A connection is made for an exchange and has room for one at a time, so that
 * neither a phase nor the next exchange allocates. It is freed when its handle
 * is closed and its exchange told, whichever is later. */
#ifndef STAGGER_HTTP_INTERNAL_H
#define STAGGER_HTTP_INTERNAL_H

#include "base/list.h"
#include "host/deadlines.h"
#include "http/answer.h"
#include "http/client.h"
#include "http/names.h"
#include "http/tls.h"

typedef struct stg_connection stg_connection;
typedef struct stg_addresses stg_addresses;

enum {
    STG_READ_MAX = 64 * 1024,  /* what is read at a time */
    STG_PLAIN_MAX = 16 * 1024, /* a record of TLS */
    STG_DETAIL_MAX = 512,
    STG_DIALS_MAX = 64 /* in a turn of the loop */
};

struct stg_client {
    uv_loop_t *loop;
    stg_deadlines deadlines;
    stg_names names;
    stg_list contexts; /* stg_tls_context each, shared by equal options */
    stg_list commons;  /* of stg_endpoint_common, likewise */
    size_t open;       /* handles, questions and the timer */
    bool is_closing;
    stg_egress egress;     /* points into rule */
    stg_egress_rule *rule; /* held; NULL: what is allowed by itself */
    uint32_t rule_number;  /* counts what egress was */
    uv_idle_t turn;        /* there while something was dialed, or is to be */
    stg_list dials;        /* of connections, for the turns to come */
    uint32_t dialed;       /* in this turn */
    stg_list idle; /* connections of all pools, the longest idle first */
    stg_files files;
    stg_ns rest_until; /* nothing is dialed before: the system had no file */
    stg_deadline rest; /* while dials wait for a file */
    bool has_waited;   /* one did, and it was not told yet */
    void (*closed)(void *ctx);
    void *closed_ctx;
    stg_answer answer;           /* that is being read, and came in one piece */
    char detail[STG_DETAIL_MAX]; /* of the reply that is being told */
    char plain[STG_PLAIN_MAX];   /* what TLS takes or gives */
    char read[STG_READ_MAX];
};

/* What endpoints of the same options have in common: one for all of them, since hubs
 * have thousands. */
typedef struct stg_endpoint_common {
    stg_link link; /* client.commons */
    uint32_t users;
    uint32_t idle_count_max;
    stg_ns resolve_timeout, connect_timeout, tls_timeout, write_timeout,
        first_byte_timeout;
    stg_ns idle_max, age_max;
    size_t answer_max, excerpt_max;
    stg_address source; /* to connect from; family 0: any */
} stg_endpoint_common;

/* The proxy that is dialed in a target's place. */
typedef struct stg_endpoint_proxy {
    stg_address target; /* of a target's host that is an address */
    bool has_target;    /* it is one */
    char *peer;         /* the proxy's "host:port" */
    char *tunnel;       /* the request for a connection to the target */
    size_t tunnel_size;
} stg_endpoint_proxy;

/* In one block of memory with its texts and its proxy, which are behind it. Its flags
 * are facts about the settings that it was made of, but for is_retired. */
struct stg_endpoint {
    stg_client *client;
    stg_endpoint_common *common;
    stg_tls_context *tls; /* NULL: http */
    stg_list idle;        /* of connections, the last used first */
    stg_list dials;       /* those of client.dials that try no address now */
    uint32_t idle_count, busy;
    char *head;       /* from the method to the endpoint's headers */
    size_t head_size; /* 0: each request has a head of its own, made of it */
    uint32_t path_at, path_size; /* of its path, in head */
    uint16_t port;
    bool is_retired; /* it goes with its last exchange */
    bool is_to_head;
    bool is_address;      /* host is one */
    bool is_name_address; /* server_name is one */

    /* -- of its connections */
    stg_name *name; /* of the host; NULL: it is an address */
    uint64_t connects;
    int64_t certificate_until;
    char *host;        /* that is dialed: the target's, or the proxy's; as the
                        resolver takes it */
    char *peer;        /* the target's "host:port" */
    char *server_name; /* for TLS; perhaps host */
    stg_endpoint_proxy *proxy; /* NULL: none */
};

/* -- endpoint_common.c ----------------------------------------------------- */

/* NULL is of no family. */
stg_status stg_endpoint_source_read(const char *text, stg_address *source,
                                    stg_error *err);

stg_endpoint_common stg_endpoint_common_of(const stg_endpoint_options *o);
bool stg_endpoint_common_matches(const stg_endpoint_common *a,
                                 const stg_endpoint_common *b);

/* One of those there are, or a new one. NULL: no memory. */
stg_endpoint_common *stg_endpoint_common_take(stg_list *commons,
                                              const stg_endpoint_options *o);
void stg_endpoint_common_give_back(stg_endpoint_common *c);

/* Beside the errors of libuv: the address is not one that egress allows; or none
 * of the addresses is of the source's family. */
enum { STG_ERROR_EGRESS = -1000000, STG_ERROR_FAMILY };

typedef enum stg_exchange_phase {
    STG_PHASE_RESOLVE,
    STG_PHASE_CONNECT,
    STG_PHASE_TUNNEL, /* the proxy's answer to CONNECT is awaited */
    STG_PHASE_TLS,
    STG_PHASE_WRITE,
    STG_PHASE_WAIT, /* the answer's first byte is awaited */
    STG_PHASE_READ,
    STG_PHASE_IDLE,
    STG_PHASE_ENDED, /* the connection is closed, or about to be */
} stg_exchange_phase;

/* A socket of a connection, or of one that is being made: of several, where the
 * name has several addresses. Closed by libuv, and then freed. */
typedef struct stg_socket {
    uv_tcp_t tcp;
    stg_link link; /* in connection.dials */
    int family;    /* of its address */
    bool is_open;  /* has a file descriptor, counted in client.files */
} stg_socket;

struct stg_exchange {
    stg_span headers, body;
    char *kept; /* a copy of headers, where they are sent later; else NULL */
    stg_reply_fn *done;
    void *ctx;
    stg_ns begun_at, whole_at;
    stg_ns dialed_at; /* see stg_reply */
    size_t sent;      /* of head, headers, length and body together */
    int error;        /* of libuv: it ends in the loop's next turn */
    stg_exchange_phase ended_in;
    uint8_t length_size;
    bool is_reused, is_cancelled;
    char length[38]; /* "Content-Length: ...\r\n\r\n" */
};

struct stg_connection {
    stg_deadline deadline; /* its first field; set lazily, see due_at() */
    stg_client *client;
    stg_endpoint *endpoint; /* NULL: it is closing, and has no exchange */
    stg_link link;          /* idle, or waiting for a lookup, or to be dialed */
    stg_link waiting;       /* in client.idle, or in endpoint.dials */
    stg_exchange_phase phase;
    bool has_exchange; /* busy */
    bool has_carried;  /* an exchange before this one */
    bool is_waiting;   /* for something of ours: its time does not run */
    uint8_t handles;   /* of sockets that are open, or closing */
    uint8_t address;   /* the next one */
    uint32_t rule;     /* client.rule_number by which its address was judged */
    int dial_error;    /* what the addresses came to so far; 0: nothing */
    uint64_t read_ms;  /* when all that was there was read, by the loop's
                          clock; 0: not all was */
    stg_ns made_at;
    stg_ns phase_at; /* when the phase, or its idleness, is out of time */
    stg_ns dial_at;  /* when all of the addresses are; 0: none was tried */
    stg_ns wait_at;  /* since when it waits for something of ours */
    stg_addresses *addresses;
    stg_socket *socket; /* that is connected */
    stg_list dials;     /* sockets that may be */
    stg_tls *tls;
    stg_answer
        *answer; /* the client's, or one of its own while there is more to
                           come; NULL: nothing came */
    stg_exchange exchange;
};

/* -- client.c -------------------------------------------------------------- */

/* Something that must be gone before the client is: counted in and out. */
void stg_client_hold(stg_client *c);
void stg_client_release(stg_client *c);

/* -- endpoint.c ------------------------------------------------------------ */

/* The connection being whole and quiet, its socket goes to an exchange that waits
 * to dial, or it goes into the pool; or it is closed. */
void stg_endpoint_keep(stg_endpoint *e, stg_connection *c, stg_ns now);

/* An exchange is over, and nothing points from it to e any more. */
void stg_endpoint_leave(stg_endpoint *e);

/* -- connection.c ---------------------------------------------------------- */

/* Returns NULL when there is no memory. */
stg_connection *stg_connection_new(stg_endpoint *e, stg_ns now);

/* Puts an exchange on it, new or from the pool. */
void stg_connection_start(stg_connection *c, stg_span headers, stg_span body,
                          stg_ns timeout, stg_reply_fn *done, void *ctx,
                          stg_ns now);

/* It begins to wait for something of ours, or goes on: what it waited for is
 * taken off its times. */
void stg_connection_wait(stg_connection *c);
void stg_connection_go_on(stg_connection *c);

/* One of its sockets is closed; with the last one c may be freed. */
void stg_connection_closed(stg_connection *c);

/* The next phase, which has time until `at`. */
void stg_connection_enter(stg_connection *c, stg_exchange_phase phase,
                          stg_ns at);

/* The name is resolved, the socket connected, the target reached, TLS up: on
 * with the next. */
void stg_connection_connected(stg_connection *c);
void stg_connection_reached(stg_connection *c);
void stg_connection_secured(stg_connection *c);

/* Its exchange's request goes out, for there is nothing more to wait for. */
void stg_connection_begin_request(stg_connection *c);

/* The whole request is with the system. */
void stg_connection_written(stg_connection *c);

/* What it hears of the answer, or of the proxy's, goes into this one. */
stg_answer *stg_connection_answer(stg_connection *c);

/* It is over, or there is more of it to come. */
void stg_connection_forget_answer(stg_connection *c);
void stg_connection_await_more(stg_connection *c);

/* Bytes came in, all of them fed; or the end did. */
void stg_connection_settle(stg_connection *c);

/* Some of the request is sent later: keeps its headers. False: no memory. */
bool stg_connection_keep_headers(stg_connection *c);

/* There is nothing more to come: error is UV_EOF, or what reading failed with.
 * is_in_order: the end can be told from one that a third party made. */
void stg_connection_lost(stg_connection *c, int error, bool is_in_order);

/* Closes the socket at once; nothing more is read or written. */
void stg_connection_close(stg_connection *c);

/* Ends the exchange: the connection is closed, and then it is told, with
 * client.detail or a static text. Not from within send. */
void stg_connection_fail(stg_connection *c, stg_outcome outcome,
                         const char *detail);

/* Closes now, and ends the exchange in the loop's next turn: from anywhere. */
void stg_connection_fail_later(stg_connection *c, int error);

/* Bytes that came of the answer. */
static inline uint64_t stg_connection_heard(const stg_connection *c)
{
    return c->answer == NULL ? 0 : c->answer->size;
}

/* Whether it fails before the proxy has connected it. */
static inline bool stg_connection_is_at_proxy(const stg_connection *c,
                                              stg_exchange_phase phase)
{
    return c->endpoint->proxy != NULL && phase <= STG_PHASE_TUNNEL;
}

/* -- connection_words.c ---------------------------------------------------- */

/* Of an exchange that ended in this phase, until the next one of the client's:
 * "connect 10.0.0.1:80: no connection within 5 s" */
const char *stg_connection_print_timeout(stg_connection *c,
                                         stg_exchange_phase phase);

/* "connect 10.0.0.1:80: 10.0.0.1 may not be connected to: ..." */
const char *stg_connection_print_refusal(stg_connection *c, bool is_proxy,
                                         int error);

/* "answer of h:80: connection reset by peer, before an answer, on a reused
 * connection". error: of libuv. */
const char *stg_connection_print_error(stg_connection *c,
                                       stg_exchange_phase phase, int error);

/* -- dial.c ---------------------------------------------------------------- */

/* From the name, or the address, to stg_connection_connected(),
 * stg_connection_fail() or stg_connection_fail_later(). */
void stg_dial_begin(stg_connection *c);

/* The next address has its turn, besides those that are being tried: now, or in
 * a turn of the loop to come, where many are dialed. However many targets
 * connect at once, others get their turn. */
void stg_dial_next(stg_connection *c);

/* A file may be free: those that wait for one have their turn. */
void stg_dial_rested(stg_deadline *rest);

/* Whether there is an address that was not tried. */
bool stg_dial_has_next(const stg_connection *c);

/* Whose turn it is to go on with a connection of e's that is free; or NULL. */
stg_connection *stg_dial_find_waiting(const stg_endpoint *e);

/* All that is open of it is closed, the connection being over. */
void stg_dial_close(stg_connection *c);

/* There may be a file for those that wait for one: they have a turn. */
void stg_dial_wake(stg_client *c);

/* A turn of the loop has begun: those that wait for it. */
void stg_dial_turn(uv_idle_t *turn);

/* Whether the address that c is connected to is allowed now. */
bool stg_dial_is_allowed(stg_connection *c);

/* The reason for STG_ERROR_EGRESS or STG_ERROR_FAMILY: "169.254.1.1 may not be
 * ..." */
const char *stg_dial_why(const stg_connection *c);

/* Whether it is the target's own address that is refused, and not the proxy's. */
bool stg_dial_is_target_refused(const stg_connection *c);

/* Frees the addresses of a connection that no longer needs them. */
void stg_dial_end(stg_connection *c);

/* "127.0.0.1:80": the address tried last; or the endpoint's name. */
void stg_dial_print(const stg_connection *c, char *text, size_t size);

/* Hooks that names call: see names.h. */
void stg_dial_asked(stg_link *waiting, bool is_under_way);
void stg_dial_told(stg_link *waiting, stg_name *n);

/* -- tunnel.c -------------------------------------------------------------- */

/* From a connection to the proxy to stg_connection_reached(), or a failure. */
void stg_tunnel_open(stg_connection *c);

/* The proxy has said this. */
void stg_tunnel_read(stg_connection *c, const char *bytes, size_t size);

/* -- wire.c ---------------------------------------------------------------- */

/* Reads from now on, until the connection is closed. Returns an error of
 * libuv, or 0. */
int stg_wire_open(stg_connection *c);

/* Nothing came that the loop has not seen: no end, and no bytes that would be
 * taken for the answer to a request that is still to be sent. */
bool stg_wire_is_quiet(const stg_connection *c);

/* Sends what is left of the request, as far as the system takes it now. */
void stg_wire_write(stg_connection *c);

/* Sends bytes that no request has: now, or in a copy later. Returns an error of
 * libuv, or 0. */
int stg_wire_send(stg_connection *c, const char *bytes, size_t size);

/* Goes on with the handshake. */
void stg_wire_shake_hands(stg_connection *c);

/* Of files or memory, of this process or of the system: it passes, and is no
 * fault of a target. */
static inline bool stg_is_shortage(int error)
{
    return error == UV_EMFILE || error == UV_ENFILE || error == UV_ENOBUFS ||
           error == UV_ENOMEM;
}

static inline stg_ns stg_from_now(stg_ns timeout)
{
    return timeout == STG_NEVER ? STG_NEVER
                                : stg_ns_add(stg_deadlines_now(), timeout);
}

#endif
