/* ingress_inside.h - what the files of the ingress share. Private to them.
 *
 *     ingress.c          open, stop, close; the daemon in the loop
 *     ingress_options.c  options, and which of them may change
 *     ingress_caller.c   connections: who calls, how many, how long
 *     ingress_request.c  a request, from its header to its end
 *     ingress_check.c    whether it may be asked at all
 *     ingress_zero.c     zeros in its header
 *     ingress_message.c  a request's bytes as messages
 *     ingress_publish.c  messages to the store, and what came of it
 *     ingress_ask.c      any other request, to its handler
 *     ingress_answer.c   answers
 *
 * A caller is a connection, and carries one request at a time. A publication
 * is what waits for its commit; it outlives its caller if the
 * ingress is closed. */
#ifndef STAGGER_HUB_OPS_INGRESS_INSIDE_H
#define STAGGER_HUB_OPS_INGRESS_INSIDE_H

#include <microhttpd.h>

#include "base/hash.h"
#include "base/list.h"
#include "hub/deadlines.h"
#include "hub/ops/ask.h"
#include "hub/ops/batch.h"
#include "hub/ops/ingress.h"
#include "hub/ops/ingress_address.h"
#include "hub/ops/problem.h"
#include "hub/ops/route.h"
#include "hub/ops/token.h"

typedef struct stg_caller stg_caller;
typedef struct stg_origin stg_origin;
typedef struct stg_publication stg_publication;

enum {
    STG_ORIGIN_SLOTS = 1024,          /* a power of two */
    STG_CONNECTION_BYTES = 32 * 1024, /* of libmicrohttpd, for each */
    STG_TABLES_MAX = 8,               /* of routes */
};

struct stg_ingress {
    uv_loop_t *loop;
    stg_ingress_options options;
    char **headers; /* the rules, copied */
    stg_tokens *tokens;
    stg_address address;
    char address_text[STG_ADDRESS_TEXT_MAX];
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    stg_deadlines deadlines;
    stg_deadline turn; /* when the daemon is to run again */
    stg_list callers;
    stg_list origins[STG_ORIGIN_SLOTS];
    stg_hash_seed origin_seed;
    stg_routes tables[STG_TABLES_MAX];
    size_t table_count;
    stg_refused_fn *refused; /* NULL: nobody wants to know */
    void *refused_ctx;
    uint32_t busy;    /* callers that wait, or for their answer to go out */
    uint32_t asks;    /* that wait for their handler */
    bool is_short;    /* of files: there was none for a connection */
    bool is_resting;  /* nothing is accepted, for want of a first file */
    stg_files *files; /* that connections may have */
    stg_files own_files;
    size_t answering; /* bytes of answers of handlers that go out */
    stg_ingress_view view;
    unsigned handles; /* that are not closed */
    void (*stopped)(void *ctx);
    void *stopped_ctx;
    stg_deadline stopping;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* -- ingress_options.c --------------------------------------------------------- */

/* Checks g->options, and reads what they name. */
stg_status stg_ingress_read_options(stg_ingress *g, stg_error *err);

void stg_ingress_free_headers(char **headers); /* NULL is none */

/* -- ingress_caller.c: connections ------------------------------------------- */

/* Where connections come from: an IPv4 address, or an IPv6 /64. */
struct stg_origin {
    stg_link link;
    unsigned char prefix[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint32_t callers, waiting;
};

typedef enum stg_phase {
    STG_PHASE_HEADER, /* between requests, or in a header */
    STG_PHASE_BODY,
    STG_PHASE_WAIT, /* suspended: for a commit, or for a handler */
    STG_PHASE_ANSWER,
} stg_phase;

/* An answer that is no problem document. */
typedef struct stg_reply {
    int status;
    const char *type;
    char *text; /* of malloc(), until it is sent */
    size_t size;
    bool is_repeat;
} stg_reply;

struct stg_caller {
    stg_link link;
    stg_ingress *ingress;
    stg_origin *origin;
    struct MHD_Connection *connection;
    int fd;
    stg_phase phase;
    stg_deadline deadline; /* the next look at the time, */
    stg_ns due_at;         /* which is up then */
    const char *uri;       /* where the first line of a request has it */
    size_t uri_size;       /* up to its first zero, before it is decoded */
    bool has_odd_uri;      /* it has a blank; or decoded, a zero */
    bool has_begun;        /* the first line is there */
    bool is_first;         /* no request was answered yet */
    bool is_last;          /* the connection closes behind the answer */
    bool is_cut;           /* it was; no answer any more */
    bool has_length;       /* or the body is in chunks, and ends by itself */

    /* -- the request: of no meaning in STG_PHASE_HEADER */
    stg_match match;
    char who[STG_TOKEN_NAME_MAX]; /* the token's name */
    unsigned hops;                /* hubs that it has come through */
    stg_problem problem;          /* status 0: none so far */
    stg_ns whole_at;              /* when its body must be there */
    uint64_t length; /* of the body, as announced; UINT64_MAX: it was not */
    char *body;
    size_t size, room; /* room counts as pending */
    size_t discarded;
    stg_publication
        *publication; /* in STG_PHASE_WAIT, one of both, until its */
    stg_ask *ask;     /* answer */
    stg_reply reply;
    size_t answering; /* bytes of the answer, which count in the ingress */
};

/* For libmicrohttpd: whether a connection may be; it began or ended; its
 * request's first line is there; its request ended. */
enum MHD_Result stg_caller_admit(void *ingress, const struct sockaddr *from,
                                 socklen_t size);
void stg_caller_notice(void *ingress, struct MHD_Connection *connection,
                       void **socket_context,
                       enum MHD_ConnectionNotificationCode code);
void *stg_caller_begin(void *ingress, const char *uri,
                       struct MHD_Connection *connection);
void stg_caller_complete(void *ingress, struct MHD_Connection *connection,
                         void **caller, enum MHD_RequestTerminationCode how);

/* Into another phase, with its deadline. */
void stg_caller_enter(stg_caller *c, stg_phase phase);

/* Whether the other end has sent its last byte, and all of them were read. */
bool stg_caller_is_half_closed(const stg_caller *c);

/* A connection could not be accepted for want of a file, or a target needs one:
 * who has been idle for longest makes room. False: nobody is idle. */
bool stg_callers_relieve(stg_ingress *g);

/* Ends the connection at once; libmicrohttpd finds out in its next run. */
void stg_caller_cut(stg_caller *c);

/* The address for people. Returns text. */
const char *stg_origin_print(const stg_origin *o, char text[INET6_ADDRSTRLEN]);

/* -- ingress_request.c, ingress_check.c -------------------------------------- */

/* libmicrohttpd's handler. */
enum MHD_Result stg_request_handle(void *ingress,
                                   struct MHD_Connection *connection,
                                   const char *url, const char *method,
                                   const char *version, const char *piece,
                                   size_t *piece_size, void **caller);

/* Drops the body. */
void stg_request_drop(stg_caller *c);

/* Finds the route, and the problem of a request that is refused by its header. */
void stg_request_check(stg_caller *c, const char *url, const char *method,
                       const char *version);

/* -- ingress_zero.c ---------------------------------------------------------- */

/* Whether a line of the header has a zero byte, which libmicrohttpd takes for
 * its end; or goes on in the next line. */
bool stg_request_has_zero(const stg_caller *c, const char *method,
                          const char *version);

/* Refuses what may not be asked during a stop. */
bool stg_request_check_stop(stg_caller *c);

/* The value of a header, NULL: there is none. */
const char *stg_request_header(const stg_caller *c, const char *name);

/* The route's; STG_BODY_NONE where there is no route. */
stg_body stg_request_body(const stg_caller *c);
size_t stg_request_body_max(const stg_caller *c);
bool stg_request_is_published(const stg_caller *c);

/* -- ingress_message.c ------------------------------------------------------- */

/* Messages of a call, and where they lie. Given to the store until its answer. */
struct stg_publication {
    stg_ingress *ingress;
    stg_caller *caller; /* NULL, with ingress: they are gone */
    stg_append *messages;
    size_t count;
    stg_append one;  /* a message's, in messages */
    stg_batch batch; /* or a batch's */
    char *meta, *body;
    size_t held; /* bytes that count as pending */
};

/* The caller's body and headers as a publication, which takes the body. NULL:
 * the caller has a problem. */
stg_publication *stg_publication_new(stg_caller *c);
void stg_publication_free(stg_publication *p);

/* Whether that many more bytes may be pending; then they are. */
bool stg_ingress_reserve(stg_ingress *g, size_t bytes);
void stg_ingress_release(stg_ingress *g, size_t bytes);

/* -- ingress_publish.c ------------------------------------------------------- */

/* Suspends the caller and appends; it is resumed with its answer. */
void stg_publish(stg_publication *p);

/* Its ingress goes: what is left is for the store to answer. */
void stg_publication_leave(stg_publication *p);

/* -- ingress_ask.c ----------------------------------------------------------- */

/* Calls the handler; then there is an answer, or the caller is suspended. */
enum MHD_Result stg_ask_begin(stg_caller *c, const char *path);

/* Nobody waits for its answer any more. */
void stg_ask_leave(stg_caller *c);

/* -- ingress_answer.c -------------------------------------------------------- */

/* Queues the answer, the problem's or the reply. MHD_NO: no memory. */
enum MHD_Result stg_answer(stg_caller *c);

/* Makes {"id": ..} or {"ids": [..]} of what was appended the reply. False: no
 * memory. */
bool stg_answer_ids(const stg_publication *p, const stg_append_answer *answers);

/* Frees the rest of an answer when its request ends. */
void stg_answer_drop(stg_caller *c);

/* Goes on with a suspended caller, which has its answer now. */
void stg_answer_resume(stg_caller *c);

/* Writes a whole answer past libmicrohttpd, which answers no request that it has
 * not read to its end, and none to one who has closed his end. The connection is
 * cut next. */
void stg_answer_raw(const stg_caller *c, const stg_problem *p);

#endif
