/* One request, retried by the policy, with the same body and keys each time.
 *
 * An attempt that timed out is cancelled, but its exchange may still report a
 * turn later, while the next attempt runs; each report therefore carries the
 * number of its attempt, and the post ends when the last exchange has
 * reported. */
#include "cli/send/send.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/visible.h"

/* An exchange may outlive its attempt by a turn of the loop, while the next one
 * has begun: each knows its own. */
typedef struct
try {
    send_post *post;
    uint32_t attempt;
}
try;

/* -- answers --------------------------------------------------------------- */

static void copy_id(char to[SEND_ID_TEXT], const json_t *id)
{
    const char *text = json_string_value(id);

    snprintf(to, SEND_ID_TEXT, "%s", text == NULL ? "" : text);
}

/* {"id": ".."} or {"ids": [..]}, with as many as there were messages. */
static bool read_ids(send_post *p, const json_t *answer)
{
    const json_t *ids = json_object_get(answer, "ids");
    size_t count = json_array_size(ids);

    if (ids == NULL) {
        copy_id(p->first, json_object_get(answer, "id"));
        memcpy(p->last, p->first, sizeof p->last);
        return p->first[0] != '\0' && p->messages == 1;
    }
    copy_id(p->first, json_array_get(ids, 0));
    copy_id(p->last, json_array_get(ids, count - 1));
    return count == p->messages && p->first[0] != '\0' && p->last[0] != '\0';
}

/* Reads a problem document: the line that it is about, and its title and
 * detail, or the one that it has. */
static void read_problem(send_post *p, const json_t *answer)
{
    const char *title = json_string_value(json_object_get(answer, "title"));
    const char *detail = json_string_value(json_object_get(answer, "detail"));
    const json_t *line = json_object_get(answer, "line");

    if (json_is_integer(line) && json_integer_value(line) > 0)
        p->line = (size_t)json_integer_value(line);
    if (title == NULL || detail == NULL)
        snprintf(p->detail, sizeof p->detail, "%s",
                 detail != NULL  ? detail
                 : title != NULL ? title
                                 : "");
    else
        snprintf(p->detail, sizeof p->detail, "%s: %s", title, detail);
}

static void read_answer(send_post *p, const stg_reply *reply)
{
    json_t *answer = json_loadb(reply->answer.at, reply->answer.size, 0, NULL);

    p->status = reply->status;
    p->line = 0;
    p->detail[0] = '\0';
    if (reply->outcome.fault == STG_FAULT_NONE) {
        p->is_accepted = read_ids(p, answer);
        if (!p->is_accepted)
            snprintf(p->detail, sizeof p->detail,
                     "the answer has not the ids of %zu messages; is this a "
                     "hub?",
                     p->messages);
    } else if (reply->status != 0) {
        read_problem(p, answer);
    } else {
        snprintf(p->detail, sizeof p->detail, "%s", reply->detail);
    }
    stg_visible_string(p->detail, STG_VISIBLE_IN_LINE);
    json_decref(answer);
}

/* -- attempts -------------------------------------------------------------- */

static void finish(send_post *p)
{
    if (p->has_ended && p->exchanges == 0)
        p->done(p);
}

static void on_reply(void *ctx, const stg_reply *reply)
{
    try *t = ctx;
    send_post *p = t->post;
    uint32_t attempt = t->attempt;
    bool is_current = p->exchange != NULL && attempt == p->attempt;

    free(t);
    p->exchanges--;
    if (is_current) {
        p->exchange = NULL;
        read_answer(p, reply);
        stg_uv_report(&p->op, attempt, reply->outcome);
    }
    finish(p);
}

/* An attempt without memory fails as any other does, and the policy decides
 * about the next. */
static void on_start(stg_uv *op, uint32_t attempt)
{
    send_post *p = op->data;
    try *t = malloc(sizeof *t);

    p->attempt = attempt;
    p->exchange = NULL;
    if (t != NULL) {
        *t = (try){.post = p, .attempt = attempt};
        p->exchange = stg_endpoint_send(p->to->endpoint, p->headers, p->body,
                                        STG_NEVER, on_reply, t);
    }
    if (p->exchange == NULL) {
        free(t);
        snprintf(p->detail, sizeof p->detail, "there is no memory");
        stg_uv_report(op, attempt, stg_failed(STG_FAULT_ERROR));
        return;
    }
    p->exchanges++;
}

/* Its time is over: what it says from now on is of no interest. */
static void on_abandon(stg_uv *op, uint32_t attempt)
{
    send_post *p = op->data;
    stg_exchange *x = p->exchange;

    (void)attempt;
    p->exchange = NULL;
    p->status = 0;
    p->detail[0] = '\0';
    if (x != NULL)
        stg_exchange_cancel(x);
}

static void on_done(stg_uv *op, const stg_report *report)
{
    send_post *p = op->data;

    p->report = *report;
    p->has_ended = true;
    finish(p);
}

stg_status stg_send_post_start(send_post *p, const send_line *to,
                               send_post_fn *done)
{
    stg_with with = {.peer = to->peer,
                     .hook = to->hook,
                     .method = "POST",
                     .has_key = to->has_keys};
    stg_status status;

    p->to = to;
    p->done = done;
    p->exchange = NULL;
    p->has_ended = p->is_accepted = false;
    p->status = 0;
    p->line = 0;
    p->detail[0] = '\0';
    p->op.data = p;
    p->op.abandon = on_abandon;
    status =
        stg_uv_retry(to->loop, &p->op, to->policy, &with, on_start, on_done);
    if (status != STG_OK)
        p->report = p->op.report;
    return status;
}

void stg_send_post_cancel(send_post *p)
{
    stg_uv_cancel(&p->op);
}
