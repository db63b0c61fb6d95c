/* internal.h - what the files of the ingress share. Private to them.
 *
 *     ingress.c          open, stop, close; its own routes
 *     options.c  options, and which of them may change
 *     request.c  a request, from its header to its end
 *     check.c    whether it may be asked at all
 *     message.c  a request's bytes as messages
 *     webhook.c  requests that are signed
 *     publish.c  messages to the store, and what came of it
 *     ask.c      any other request, to its handler
 *     stream.c   a request that is answered with events, as they happen
 *     answer.c   answers
 *
 * A caller is a connection of http/server.h, and carries one request at a time. A
 * publication is what waits for its commit; it outlives its caller. */
#ifndef STAGGER_INGRESS_INTERNAL_H
#define STAGGER_INGRESS_INTERNAL_H

#include "base/list.h"
#include "http/server.h"
#include "ingress/address.h"
#include "ingress/ask.h"
#include "ingress/batch.h"
#include "ingress/ingress.h"
#include "ingress/token.h"
#include "ingress/webhook.h"

typedef struct stg_caller stg_caller;
typedef struct stg_publication stg_publication;

enum {
    STG_TABLES_MAX = 8, /* of routes */
    STG_HEADER_MAX = 24 * 1024,
    STG_SMALL_MAX = 64 * 1024, /* a request for which room is kept */
};

struct stg_ingress {
    uv_loop_t *loop;
    stg_ingress_options
        options;    /* numbers and functions: of its texts and lists
                                    only `elsewhere` and `files` outlive the start */
    char **headers; /* the rules, copied */
    const stg_webhook *webhooks; /* see stg_ingress_options */
    size_t webhook_count;
    stg_tokens *tokens; /* the ingress's */
    stg_listen_address address;
    char address_text[STG_ADDRESS_TEXT_MAX];
    stg_httpd server;
    stg_routes tables[STG_TABLES_MAX];
    size_t table_count;
    uint32_t connections_requested; /* in all, when that was told last */
    stg_refused_fn *refused;        /* NULL: nobody wants to know */
    void *refused_ctx;
    uint32_t asks; /* that wait for their handler */
    uint32_t streams;
    stg_list publications; /* all that the store has */
    size_t answering;      /* bytes of answers of handlers that go out */
    size_t unverified;     /* bytes of webhooks whose signature is not known */
    stg_ingress_view view;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
    stg_deadline stopping;
    void (*closed)(void *ctx);
    void *closed_ctx;
    char path[STG_HEADER_MAX +
              1]; /* of the request that is looked at, decoded */
};

/* -- ingress.c --------------------------------------------------------------- */

/* Nothing waits any more, perhaps: what waits for a stop is told. */
void stg_ingress_settle(stg_ingress *g);

void stg_ingress_end_streams(stg_ingress *g);

/* -- options.c ------------------------------------------------------- */

/* Checks g->options, and reads what they name. */
stg_status stg_ingress_read_options(stg_ingress *g, stg_error *err);

void stg_ingress_free_headers(char **headers); /* NULL is none */

/* Sets how many connections there may be in all, and of a client: as requested, or
 * fewer where files are short, and then a client's share of them is the same. */
void stg_ingress_limit(stg_ingress *g, uint32_t in_all, uint32_t of_client);

/* -- request.c ------------------------------------------------------- */

/* An answer that is no problem document. */
typedef struct stg_ingress_reply {
    int status;
    const char *type;
    char *text; /* of malloc(), until it is sent */
    size_t size;
} stg_ingress_reply;

struct stg_caller {
    stg_inbound in; /* its first field */

    /* -- the request: of no meaning between two */
    stg_match match;
    char who[STG_TOKEN_NAME_MAX]; /* the token's name */
    unsigned roles;               /* that it has; all, where none is needed */
    unsigned hops;                /* hubs that it has come through */
    stg_problem problem;          /* status 0: none so far */
    const stg_webhook *webhook;   /* in the turn in which it was found */
    stg_span lent;                /* a body that came at once */
    char *body;                   /* or one in pieces */
    size_t unverified; /* of its room, before its signature is known */
    size_t size, room; /* room counts as pending */
    size_t discarded;
    stg_publication *publication; /* one of the two, until its answer */
    stg_ask *ask;
    stg_stream *stream; /* its answer, which goes on */
    stg_ingress_reply reply;
    char tag[STG_TAG_MAX]; /* of what is answered, its ETag; "": it has none */
    size_t answering;      /* bytes of the answer, which count in the ingress */
};

extern const stg_httpd_hooks stg_caller_hooks;

static inline stg_ingress *stg_ingress_of(const stg_caller *c)
{
    return c->in.server->ctx;
}

/* The body, as far as it came. */
stg_span stg_caller_body(const stg_caller *c);

/* -- check.c --------------------------------------------------------- */

/* Finds the route, and the problem of a request that is refused by its header. */
void stg_request_check(stg_caller *c);

/* Refuses what may not be asked during a stop. */
bool stg_request_check_stop(stg_caller *c);

/* Decodes the path, to ingress.path. False: it has a wrong escape. */
bool stg_request_read_path(const stg_caller *c);

/* Takes the first name=value off a query; without a '=' value.at is NULL. False:
 * there are no more. */
bool stg_query_take(stg_span *query, stg_span *name, stg_span *value);

/* The route's; STG_BODY_NONE where there is no route. */
stg_body stg_request_body(const stg_caller *c);
size_t stg_request_body_max(const stg_caller *c);
bool stg_request_is_published(const stg_caller *c);

/* -- message.c ------------------------------------------------------- */

/* Messages of a call, and where they lie. Given to the store until its answer. */
struct stg_publication {
    stg_link link;
    stg_ingress *ingress; /* NULL: it is gone */
    stg_caller *caller;   /* NULL: it is gone */
    stg_origin *client;   /* held, while there is an ingress */
    stg_append *messages;
    size_t count;
    stg_append one;  /* a message's, in messages */
    stg_batch batch; /* or a batch's */
    char *body;      /* NULL: it lies in text */
    size_t held;     /* bytes that count as pending */
    char text[];
};

/* The caller's body and headers as a publication, which takes the body. NULL:
 * the caller has a problem. */
stg_publication *stg_publication_new(stg_caller *c);
void stg_publication_free(stg_publication *p);

/* Reserves more bytes of a request that holds some already. False: there is no
 * room for them, or they are not in the client's share; the caller has the
 * problem. */
bool stg_caller_reserve(stg_caller *c, size_t held, size_t bytes);

/* The same for the body of a webhook, which has a smaller share until it is verified;
 * and takes what the caller has of that share off, when it is, or was dropped. */
bool stg_caller_reserve_unverified(stg_caller *c, size_t bytes);
void stg_caller_verified(stg_caller *c);

void stg_ingress_release(stg_ingress *g, stg_origin *client, size_t bytes);

/* What the client of a call is, for people: "address" or "token". */
const char *stg_caller_kind(const stg_caller *c);

/* -- webhook.c ------------------------------------------------------- */

enum { STG_WEBHOOK_KEY_MAX = STG_KEY_SIZE_MAX + 72 }; /* with in/NAME/ */

/* Finds c->webhook and verifies the request: its headers, or all of it. False: the
 * caller has the problem. */
bool stg_webhook_check(stg_caller *c, bool is_whole);

/* Whether the header is of the signature, or the hub's own, and so not kept. */
bool stg_webhook_drops(const stg_webhook *w, stg_span name);

/* The header of a delivery's id; NULL: it is in the body. */
const char *stg_webhook_id_header(const stg_webhook *w);

/* The idempotency key of a request that was verified, with the value of that
 * header, in key. Empty: it has none. */
stg_span stg_webhook_key(const stg_caller *c, stg_span header,
                         char key[STG_WEBHOOK_KEY_MAX]);

/* -- publish.c ------------------------------------------------------- */

/* Appends; the caller is answered when that is durable. */
void stg_publish(stg_publication *p);

/* Its ingress goes: what is left is for the store to answer. */
void stg_publication_leave(stg_publication *p);

/* -- ask.c ----------------------------------------------------------- */

/* Calls the handler; then there is an answer, or there will be one. */
void stg_ask_begin(stg_caller *c);

/* Nobody waits for its answer any more. */
void stg_ask_leave(stg_caller *c);

/* -- stream.c -------------------------------------------------------- */

/* The answer to this call is a stream: when its time comes to be answered, it
 * begins, with further lines in its head. NULL: no memory. */
stg_stream *stg_stream_new(stg_caller *c, void (*left)(void *ctx), void *ctx);
void stg_stream_begin(stg_caller *c, const char *more);

/* What waits is sent, and then its end; nobody waits for one who is behind. */
void stg_stream_end(stg_caller *c);

/* Its request has ended. */
void stg_stream_free(stg_caller *c);

/* -- answer.c -------------------------------------------------------- */

/* Sends the answer, the problem's or the reply. */
void stg_answer_caller(stg_caller *c);

/* Sends {"id": ..} or {"ids": [..]} of what was appended. False: no memory. */
bool stg_answer_ids(stg_caller *c, const stg_publication *p,
                    const stg_append_answer *answers);

/* Frees the rest of an answer when its request ends. */
void stg_answer_drop(stg_caller *c);

#endif
