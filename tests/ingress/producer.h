/* producer.h - an ingress over a store that is told what to answer, and those
 * who call it by real sockets, all in one loop. */
#ifndef TESTS_INGRESS_PRODUCER_H
#define TESTS_INGRESS_PRODUCER_H

#include <openssl/ssl.h>
#include <uv.h>

#include "ingress/ingress.h"

enum { STORED_MAX = 256, WAITING_MAX = 2048 };

/* A message as it was appended: texts of their own. */
typedef struct stored {
    char *content_type, *headers, *key, *body, *idempotency_key;
    size_t body_size;
} stored;

/* An append that was not answered yet. */
typedef struct waiting {
    const stg_append *messages;
    size_t count;
    stg_append_fn *done;
    void *done_ctx;
} waiting;

typedef struct market {
    uv_loop_t loop;
    stg_ingress *ingress;
    stg_ingress_options options;
    stg_error err;

    /* -- the store: answers at once, or holds */
    bool holds;
    stg_appended answer;
    size_t wrong; /* of a conflict */
    bool is_repeat;
    const char *id; /* of each message; NULL: the queue's own */
    char topic[64]; /* of the last append; "-": none */
    uint64_t next;
    size_t appends, stored_count, waiting_count;
    stored stored[STORED_MAX]; /* the first ones */
    waiting waiting[WAITING_MAX];

    SSL_CTX *tls; /* of callers; NULL: they speak plain HTTP */
    const char *missing;
    bool is_stopped, is_closed;
} market;

/* Options with port 0 and the store; to be changed before market_open(). */
void market_begin(market *m);
void market_open(market *m);

/* Reads m->options again, and puts them in use where nothing is wrong. */
stg_status market_change(market *m);
/* Closes the ingress and checks that nothing is left of it. */
void market_end(market *m);

/* Runs the loop until *what; fails the test after 20 s. */
void market_run_until(market *m, const bool *what);
void market_run(market *m); /* what is ready now */
void market_run_for(market *m, stg_ns time);
void market_run_until_waiting(market *m, size_t appends);

/* Answers the oldest append that waits. */
void market_settle(market *m);
void market_stop(market *m);

/* -- a caller: what it sends goes out as fast as it can; what it gets is kept */

typedef struct caller {
    market *market;
    int fd;
    SSL *tls;
    char *out;
    size_t out_size, sent;
    char in[1 << 20];
    size_t in_size;
    bool is_closed; /* by the other side */
} caller;

caller *caller_new(market *m);
void caller_free(caller *c);
void caller_send(caller *c, const char *bytes, size_t size);
void caller_say(caller *c, const char *text);
void caller_flush(caller *c); /* runs until all of it is sent */

/* Runs until there is a whole answer, takes it out of `in`, and returns it
 * (until the next one). Fails the test if the connection ends before. */
const char *caller_answer(caller *c);
void caller_run_until_closed(caller *c);

/* Runs until these words have come; all of `in` is a text then. */
void caller_run_until(caller *c, const char *words);

/* The status of an answer, its body, and the value of a header (NULL: none). */
int status_of(const char *answer);
const char *body_of(const char *answer);
const char *header_of(const char *answer, const char *name);

/* One request on a connection of its own: "POST /v1/messages", lines of
 * headers ("" or "A: b\r\n"...), a body. Content-Length and Host are added. */
const char *ask(market *m, const char *line, const char *headers,
                const char *body);

#endif
