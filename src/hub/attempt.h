/* attempt.h - what an attempt has, and how it ends: for attempt.c, where it is a
 * request, and for batch.c, where many are one. Private to them.
 *
 * All on the loop's thread. */
#ifndef STAGGER_HUB_ATTEMPT_H
#define STAGGER_HUB_ATTEMPT_H

#include "hub/hub_internal.h"

/* What an attempt has while it is signed on another thread. */
typedef struct stg_attempt_signing {
    uint64_t version;  /* the target's */
    stg_parcel parcel; /* its message, lent by flow until the end */
    stg_ns timeout;
    bool is_cancelled;
} stg_attempt_signing;

struct stg_attempt {
    stg_link link;
    stg_hub *hub;
    stg_target *target;
    stg_delivery *delivery; /* NULL: flow is not told any more */
    stg_exchange *exchange; /* NULL: it is one of a batch, or being signed */
    uint32_t partition;
    unsigned hops; /* hubs that the message came through before this one */
    uint64_t position, number, number_max;
    uint64_t token;     /* the number of the access token that it carries */
    stg_ns accepted_at; /* the message, wall clock; 0: unknown */
    char *converted;    /* the message in another mode of CloudEvents; NULL: as
                           it came */
    struct stg_filled *filled; /* NULL: the target has no templates */
    stg_trace trace;
    struct stg_attempt_signing *signing; /* NULL: it is not being signed */
};

/* -- the start ------------------------------------------------------------- */

/* Fills it in, and counts it. */
void stg_attempt_begin(stg_attempts *all, stg_attempt *a,
                       const stg_action *action);

/* The message as the target gets CloudEvents; its memory is a->converted. False:
 * there is none. */
bool stg_attempt_convert(stg_attempt *a, stg_parcel *p);

/* For its span alone, where spans are exported: nothing is sent of it. */
void stg_attempt_trace(stg_attempt *a, const stg_parcel *p);

/* The message's id, in text. */
stg_span stg_attempt_id(const stg_attempts *all, const stg_attempt *a,
                        char text[STG_MESSAGE_ID_MAX]);

/* Drops the lines between from and to that the target's settings say
 * otherwise, and those that its signature has. Returns the new end. */
char *stg_attempt_drop_targets(const stg_target *t, char *from, char *to);

/* What is signed, with the time of now. */
stg_sign_request stg_attempt_sign_request(const stg_target_settings *s,
                                          stg_span id, stg_span content_type,
                                          stg_span body);

/* Signed for each attempt, if the target has it signed. NULL: no memory. */
char *stg_attempt_put_signature(char *to, const stg_target_settings *s,
                                stg_span id, stg_span content_type,
                                stg_span body);

/* All headers of its request. Most fit into a buffer that all attempts share, since a
 * request copies them before the next one is made. *more: memory for those that are
 * longer, to be freed; else NULL. signature: its lines, if they are there. False:
 * there was no memory. */
bool stg_attempt_headers(stg_attempts *all, stg_attempt *a, const stg_parcel *p,
                         stg_span signature, stg_span *headers, char **more);

/* A delivery waits, and its time does not run: only the log shows why. */
void stg_attempt_tell_waiting(stg_hub *h);

/* -- fill.c: templates -------------------------------------------------------- */

typedef struct stg_filled {
    stg_text path;    /* and query; size 0: as the URL has it */
    stg_text headers; /* "Name: value\r\n" each */
} stg_filled;

/* The URL and the headers of the target that are made of a message. False: they
 * cannot be, and why is in flaw: "" for want of memory. f is zeroed before. */
bool stg_fill(stg_filled *f, const stg_target_settings *s, stg_span id,
              const stg_parcel *p, char flaw[STG_TEMPLATE_FLAW_MAX]);
void stg_filled_free(stg_filled *f); /* and f itself; NULL: nothing */

/* -- the end --------------------------------------------------------------- */

/* Tells flow, and then people. */
void stg_attempt_end_by(stg_hub *h, const stg_attempt *a, const stg_end *how,
                        int status, stg_ns took);

/* Tells flow alone: nothing was asked of the target. */
void stg_attempt_put_back(stg_hub *h, const stg_attempt *a, const stg_end *how,
                          stg_ns took);

/* Nothing was sent. For want of memory it waits, uncounted: with less going on
 * there will be some. */
void stg_attempt_end_unsent(stg_hub *h, const stg_attempt *a, stg_fault fault,
                            const char *detail);

/* Reports an attempt for which there was no memory. */
void stg_attempt_end_unmade(stg_attempts *all, const stg_action *action);

/* -- batches --------------------------------------------------------------- */

/* STG_ACTION_START, STG_ACTION_CANCEL and stg_attempts_drop() of a target that
 * gets batches. */
void stg_batch_start(stg_attempts *all, const stg_action *action);
void stg_batch_cancel(stg_attempt *a);
void stg_batches_drop(stg_attempts *all);

#endif
