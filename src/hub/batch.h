/* batch.h - what batch.c, which gathers deliveries and tells of their ends, and
 * batch_request.c, which makes a request of them, share. Private to them. */
#ifndef STAGGER_HUB_BATCH_H
#define STAGGER_HUB_BATCH_H

#include <stagger/outcome.h>

#include "base/span.h"
#include "config/settings.h"
#include "flow/limit.h"
#include "hub/attempt.h"

/* -- batch_text.c -------------------------------------------------------- */

/* The bytes of a request that several deliveries share, and the
 * results in its answer. Pure.
 *
 *     json-array  [BODY,BODY]
 *     ndjson      BODY LF BODY LF; an end of line within a body becomes a blank,
 *                 which JSON takes for the same
 *
 * Bodies go on as they are, so that numbers stay what they were. */

/* Whether a batch can have the body, which has to be one value in JSON. Else
 * *why are words. */
bool stg_batch_takes(stg_span body, const char **why);

/* How many bytes it adds to a body, and how many every body has besides. */
enum { STG_BATCH_EACH = 1, STG_BATCH_ENDS = 1 };

/* Writes the next of the bodies, and then the end, to where there is room.
 * Returns its end. */
char *stg_batch_put(stg_batch_format format, char *to, stg_span body,
                    bool is_first);
char *stg_batch_end(stg_batch_format format, char *to);

/* are_events: each body is a CloudEvent in structured mode. */
const char *stg_batch_content_type(stg_batch_format format, bool are_events);

enum { STG_BATCH_ID_MAX = 48 };

/* The batch's id, which is the same as long as it is of the same messages: made
 * of their ids, as Stagger-Messages has them. False: no memory. */
bool stg_batch_id(stg_span ids, char id[STG_BATCH_ID_MAX]);

/* Reads {"results": [{"status": 200}, {"status": 429, "retry-after": 5}, ...]},
 * with the seconds of a wait by choice. False: it is anything else, or not of so
 * many; outcomes are not to be used then. */
bool stg_batch_results(stg_span answer, stg_outcome *outcomes, size_t count);

/* An attempt in a batch. */
typedef struct stg_member {
    stg_attempt attempt; /* its link is in the stg_bundle */
    struct stg_bundle *batch;
    size_t index;  /* in the request, once that is made */
    stg_span body; /* the message's, there until flow hears of its end */
    bool is_event; /* of CloudEvents, in structured mode */
    stg_ns timeout;
} stg_member;

typedef struct stg_bundle {
    stg_link link; /* of all, in stg_attempts */
    stg_link turn; /* of those that are ready, in their batcher */
    stg_attempts *all;
    struct stg_batcher *of; /* NULL: nobody waits for its end */
    stg_list members;
    size_t count, size;     /* of the bodies */
    size_t events;          /* of them: structured CloudEvents */
    uint64_t token;         /* the number of the access token that it carries */
    stg_exchange *exchange; /* NULL: not sent */
    bool is_signing;        /* on another thread, and is sent then */
    uint64_t version;       /* the target's, for which it is signed */
    stg_ns sent_at;
    bool is_limit_used; /* as many were under way as the limit allows */

    /* -- the request, of the members that there were when it was made: those that
     * are cancelled meanwhile are in it all the same */
    size_t sent_count;
    unsigned hops; /* the most of them */
    const char *type;
    char id[STG_BATCH_ID_MAX];
    stg_span ids; /* "ID, ID", until it is sent */
    char *body;
    size_t body_size;
} stg_bundle;

typedef struct stg_batcher {
    stg_hub *hub;
    stg_target *target;
    stg_bundle *open;   /* NULL: none */
    stg_deadline due;   /* of its linger; not set: it is over */
    stg_list ready;     /* to be sent, in this order */
    uint32_t under_way; /* requests */
    stg_limit limit;    /* of requests */
} stg_batcher;

static inline stg_member *stg_batch_first(const stg_bundle *g)
{
    return STG_HOLDER(stg_list_first(&g->members), stg_member, attempt.link);
}

static inline stg_member *stg_batch_last(const stg_bundle *g)
{
    return STG_HOLDER(stg_list_last(&g->members), stg_member, attempt.link);
}

static inline stg_member *stg_batch_next(const stg_bundle *g, stg_member *m)
{
    return STG_HOLDER(stg_list_next(&g->members, &m->attempt.link), stg_member,
                      attempt.link);
}

/* -- batch_request.c ---------------------------------------------------------- */

/* Makes the request, but for its headers. False: no memory. */
bool stg_batch_make(stg_bundle *g);

/* Frees what the above has made. */
void stg_batch_unmake(stg_bundle *g);

/* What is signed, with the time of now. */
stg_sign_request stg_batch_sign_request(const stg_bundle *g);

/* Sends it; it is made. signature: its lines, if they are there already. False: no
 * memory. */
bool stg_batch_send(stg_bundle *g, stg_span signature, stg_reply_fn *done);

#endif
