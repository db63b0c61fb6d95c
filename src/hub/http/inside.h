/* inside.h - what the files of the client share. Private to them.
 *
 *     client.c      one a loop: deadlines, buffers, what is open
 *     endpoint.c    a target: its request's head, its pool
 *     connection.c  the phases of an exchange, and how it ends
 *     dial.c        resolve and connect
 *     wire.c        bytes out and in, plain or through tls.c
 *     answer.c      the bytes of an answer
 *
 * A connection is made for an exchange and has room for one at a time, so that
 * neither a phase nor the next exchange allocates. It is freed when its handle
 * is closed and its exchange told, whichever is later. */
#ifndef STAGGER_HUB_HTTP_INSIDE_H
#define STAGGER_HUB_HTTP_INSIDE_H

#include "base/list.h"
#include "hub/deadlines.h"
#include "hub/http/answer.h"
#include "hub/http/client.h"
#include "hub/http/tls.h"

typedef struct stg_connection stg_connection;
typedef struct stg_lookup stg_lookup;
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
    stg_list contexts; /* of stg_tls_context, shared by equal options */
    size_t open;       /* handles, lookups and the timer */
    bool is_closing;
    stg_egress egress;
    stg_cidr *networks; /* its lists; NULL: there are none */
    uint32_t rule;      /* counts what egress was */
    uv_idle_t turn;     /* there while something was dialed, or is to be */
    stg_list dials;     /* of connections, for the turns to come */
    uint32_t dialed;    /* in this turn */
    stg_list idle;      /* connections of all pools, the longest idle first */
    uint64_t sockets, sockets_max; /* open; from where on they are scarce */
    void (*closed)(void *ctx);
    void *closed_ctx;
    char detail[STG_DETAIL_MAX]; /* of the reply that is being told */
    char plain[STG_PLAIN_MAX];   /* what TLS takes or gives */
    char read[STG_READ_MAX];
};

struct stg_endpoint {
    stg_client *client;
    stg_tls_context *tls; /* NULL: http */
    stg_lookup *lookup;   /* under way */
    stg_list idle;        /* of connections, the last used first */
    uint32_t idle_count, busy;
    uint64_t connects;
    stg_ns resolve_timeout, connect_timeout, tls_timeout, write_timeout,
        first_byte_timeout, idle_max, age_max;
    size_t answer_max, excerpt_max;
    uint32_t idle_count_max;
    int64_t certificate_until;
    uint16_t port;
    bool is_retired; /* it goes with its last exchange */
    bool is_to_head;
    bool is_address;      /* host is one */
    bool is_name_address; /* server_name is one */
    char *host;           /* as the resolver takes it; in text */
    char *peer;           /* "host:port", for people; in text */
    char *server_name;    /* for TLS; in text */
    char *head; /* from the method to the endpoint's headers; in text */
    size_t head_size;
    char text[];
};

/* Beside the errors of libuv: the address is not one that egress allows. */
enum { STG_ERROR_EGRESS = -1000000 };

typedef enum stg_phase {
    STG_PHASE_RESOLVE,
    STG_PHASE_CONNECT,
    STG_PHASE_TLS,
    STG_PHASE_WRITE,
    STG_PHASE_WAIT, /* for the answer's first byte */
    STG_PHASE_READ,
    STG_PHASE_IDLE,
    STG_PHASE_ENDED, /* the connection is closed, or about to be */
} stg_phase;

struct stg_exchange {
    stg_span headers, body;
    stg_reply_fn *done;
    void *ctx;
    stg_ns begun_at, whole_at;
    size_t sent; /* of head, headers, length and body together */
    int error;   /* of libuv: it ends in the loop's next turn */
    stg_phase ended_in;
    uint8_t length_size;
    bool is_reused, is_cancelled;
    char length[38]; /* "Content-Length: ...\r\n\r\n" */
};

struct stg_connection {
    stg_deadline deadline; /* its first field; set lazily, see due_at() */
    stg_client *client;
    stg_endpoint *endpoint; /* NULL: it is closing, and has no exchange */
    stg_link link;          /* idle, or waiting for a lookup, or to be dialed */
    stg_link waiting;       /* in client.idle */
    stg_phase phase;
    bool has_handle;   /* tcp is open, or closing */
    bool has_exchange; /* busy */
    bool has_carried;  /* an exchange before this one */
    bool is_redialing; /* tcp closes to be opened for the next address */
    uint8_t address;   /* the next one */
    uint32_t rule;     /* client.rule by which its address was judged */
    stg_ns made_at;
    stg_ns phase_at; /* when the phase, or its idleness, is out of time */
    stg_ns dial_at;  /* when all of the addresses are */
    stg_addresses *addresses;
    stg_tls *tls;
    stg_exchange exchange;
    stg_answer answer;
    union {
        uv_connect_t connect;
        uv_write_t write;
    } request;
    uv_tcp_t tcp;
};

/* -- client.c -------------------------------------------------------------- */

/* Something that must be gone before the client is: counted in and out. */
void stg_client_hold(stg_client *c);
void stg_client_release(stg_client *c);

/* -- endpoint.c ------------------------------------------------------------ */

/* Into the pool, the connection being whole and quiet; or closes it. */
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

/* The socket is closed: what waits for that goes on, or c is freed. */
void stg_connection_closed(uv_handle_t *handle);

/* The next phase, which has time until `at`. */
void stg_connection_enter(stg_connection *c, stg_phase phase, stg_ns at);

/* The name is resolved, the socket connected, TLS up: on with the next. */
void stg_connection_connected(stg_connection *c);
void stg_connection_secured(stg_connection *c);

/* The whole request is with the system. */
void stg_connection_written(stg_connection *c);

/* Bytes came in, all of them fed; or the end did. */
void stg_connection_settle(stg_connection *c);

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

/* -- dial.c ---------------------------------------------------------------- */

/* From the name, or the address, to stg_connection_connected(),
 * stg_connection_fail() or stg_connection_fail_later(). */
void stg_dial_begin(stg_connection *c);

/* Gives the address up that is being tried. False if it was the last. */
bool stg_dial_skip(stg_connection *c);

/* Tries the next one, the socket of the last being closed: now, or in a turn of
 * the loop to come, where many are dialed. However many targets connect at
 * once, others get their turn. */
void stg_dial_next(stg_connection *c);

/* A turn of the loop has begun: those that wait for it. */
void stg_dial_turn(uv_idle_t *turn);

/* Whether the address that c is connected to is allowed now. */
bool stg_dial_is_allowed(stg_connection *c);

/* What is wrong with STG_ERROR_EGRESS: "169.254.1.1 may not be ..." */
const char *stg_dial_why(const stg_connection *c);

/* The connection leaves the lookup it waits for, and its addresses. */
void stg_dial_end(stg_connection *c);

/* "127.0.0.1:80": the address tried last; or the endpoint's name. */
void stg_dial_print(const stg_connection *c, char *text, size_t size);

/* The endpoint goes; its lookup may not be over. */
void stg_dial_forget(stg_endpoint *e);

/* -- wire.c ---------------------------------------------------------------- */

/* Reads from now on, until the connection is closed. Returns an error of
 * libuv, or 0. */
int stg_wire_open(stg_connection *c);

/* Nothing came that the loop has not seen: no end, and no bytes that would be
 * taken for the answer to a request that is still to be sent. */
bool stg_wire_is_quiet(const stg_connection *c);

/* Sends what is left of the request, as far as the system takes it now. */
void stg_wire_write(stg_connection *c);

/* Goes on with the handshake. */
void stg_wire_shake_hands(stg_connection *c);

static inline stg_ns stg_from_now(stg_ns timeout)
{
    return timeout == STG_NEVER ? STG_NEVER
                                : stg_ns_add(stg_deadlines_now(), timeout);
}

#endif
