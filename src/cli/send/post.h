/* post.h - one request of `stagger send`: a message or a batch, retried by
 * the policy until the hub has answered for good. All on the loop's thread. */
#ifndef STAGGER_CLI_SEND_POST_H
#define STAGGER_CLI_SEND_POST_H

#include <stagger/uv.h>

#include "cli/send/batch.h"
#include "http/client.h"

enum { SEND_ID_TEXT = 64, SEND_DETAIL_MAX = 512 };

/* What all posts of a run share; kept. */
typedef struct send_line {
    uv_loop_t *loop;
    stg_endpoint *endpoint;
    const stg_policy *policy;
    stg_peer *peer;
    const stg_hook *hook;
} send_line;

typedef struct send_post send_post;

/* The end; the post may be used again. */
typedef void send_post_fn(send_post *p);

struct send_post {
    void *ctx;                    /* the caller's */
    send_batch batch;             /* the caller's, where the body is one */
    stg_span headers, body;       /* kept by the caller until the end */
    size_t messages;              /* how many ids the answer is to have */
    stg_report report;            /* at the end: how it went, */
    bool is_accepted;             /* all messages were, */
    int status;                   /* of the last answer, 0: none, */
    char detail[SEND_DETAIL_MAX]; /* what it or the system said, or "", */
    size_t line; /* of the batch it speaks of, from 1; 0: none, */
    char first[SEND_ID_TEXT], last[SEND_ID_TEXT]; /* and the ids */
    /* The rest is private. */
    stg_uv op;
    const send_line *to;
    send_post_fn *done;
    stg_exchange *exchange; /* of the attempt under way */
    uint32_t attempt;
    uint32_t exchanges; /* those that were given up are among them */
    bool has_ended;
};

/* Begins. done is called from the loop. Returns STG_INVALID, and calls nothing,
 * for a policy that cannot be used; p->report then has the reason. */
stg_status stg_send_post_start(send_post *p, const send_line *to,
                               send_post_fn *done);

/* Ends it soon; nothing for a post that is not under way, or all zeros. */
void stg_send_post_cancel(send_post *p);

#endif
