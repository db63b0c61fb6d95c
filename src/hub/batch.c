/* Many deliveries in one request, for targets that take them so: gathers what
 * flow starts, sends it, and tells flow the end of each.
 *
 * Flow knows nothing of batches: it starts a delivery, and hears how it ended.
 * A batch is open until it is full or its linger is over; then it is sent, as
 * soon as the target takes another request. How many it takes at once is found
 * out here, by requests (flow/limit.h), while flow's own limit is fixed. With an
 * order there is one at a time.
 *
 * A request at fault (RETRY.md's category C) says nothing about any one delivery
 * of several: each is sent again, by itself, within the same attempt.
 *
 * All on the loop's thread. A batch whose deliveries were all cancelled, or
 * dropped, has no batcher any more, and goes with the end of its request. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/fault.h>

#include "base/digits.h"
#include "flow/limit.h"
#include "http/header.h"
#include "hub/attempt.h"
#include "hub/batch_text.h"

/* An attempt in a batch. */
typedef struct member {
    stg_attempt attempt; /* its link is in the batch */
    struct batch *batch;
    stg_span body; /* the message's, there until flow hears of its end */
    bool is_event; /* of CloudEvents, in structured mode */
    stg_ns timeout;
} member;

typedef struct batch {
    stg_link link; /* of all, in stg_attempts */
    stg_link turn; /* of those that are ready, in their batcher */
    stg_attempts *all;
    struct stg_batcher *of; /* NULL: nobody waits for its end */
    stg_list members;
    size_t count, size;     /* of the bodies */
    size_t events;          /* of them: structured CloudEvents */
    uint64_t token;         /* the number of the access token that it carries */
    stg_exchange *exchange; /* NULL: not sent */
    char *body;
    stg_ns sent_at;
    bool is_limit_used; /* as many were under way as the limit allows */
} batch;

typedef struct stg_batcher {
    stg_hub *hub;
    stg_target *target;
    batch *open;        /* NULL: none */
    stg_deadline due;   /* of its linger; not set: it is over */
    stg_list ready;     /* to be sent, in this order */
    uint32_t under_way; /* requests */
    stg_limit limit;    /* of requests */
} stg_batcher;

static void pump(stg_batcher *b);

/* -- one batch ------------------------------------------------------------- */

static member *first_of(const batch *g)
{
    return STG_HOLDER(stg_list_first(&g->members), member, attempt.link);
}

static member *next_of(const batch *g, member *m)
{
    return STG_HOLDER(stg_list_next(&g->members, &m->attempt.link), member,
                      attempt.link);
}

/* NULL: no memory. */
static batch *make_batch(stg_batcher *b)
{
    batch *g = calloc(1, sizeof *g);

    if (g == NULL)
        return NULL;
    g->all = &b->hub->attempts;
    g->of = b;
    stg_list_init(&g->members);
    stg_list_push(&g->all->batches, &g->link);
    return g;
}

static void put_in(batch *g, member *m)
{
    m->batch = g;
    stg_list_push(&g->members, &m->attempt.link);
    g->count++;
    g->events += m->is_event;
    g->size += m->body.size + STG_BATCH_EACH;
}

static void take_out(member *m)
{
    batch *g = m->batch;

    stg_list_remove(&m->attempt.link);
    g->count--;
    g->events -= m->is_event;
    g->size -= m->body.size + STG_BATCH_EACH;
}

static void free_member(member *m)
{
    free(m->attempt.converted);
    free(m);
}

/* It has no members. */
static void free_batch(batch *g)
{
    if (stg_list_has(&g->turn))
        stg_list_remove(&g->turn);
    stg_list_remove(&g->link);
    free(g->body);
    free(g);
}

/* Ends all of its deliveries, and the batch. CANCELLED: as if they had not been
 * started. */
static void end_all_unsent(batch *g, stg_fault fault, const char *detail)
{
    stg_hub *h = g->all->hub;
    stg_end how = {.outcome = stg_failed(fault), .detail = detail};
    member *m;

    how.outcome.unsent = true;
    while ((m = first_of(g)) != NULL) {
        take_out(m);
        if (fault == STG_FAULT_CANCELLED)
            stg_attempt_put_back(h, &m->attempt, &how, 0);
        else
            stg_attempt_end_unsent(h, &m->attempt, fault, detail);
        free_member(m);
    }
    free_batch(g);
}

/* -- its request ----------------------------------------------------------- */

enum { IDS_SHOWN_MAX = 4096 };

/* "ID, ID", to be freed; at is NULL: no memory. */
static stg_span join_ids(const batch *g)
{
    char *ids = malloc(g->count * (STG_MESSAGE_ID_MAX + 2)), *to = ids;

    for (member *m = first_of(g); ids != NULL && m != NULL; m = next_of(g, m)) {
        char text[STG_MESSAGE_ID_MAX];
        stg_span id = stg_attempt_id(g->all, &m->attempt, text);

        if (to != ids)
            to = memcpy(to, ", ", 2), to += 2;
        to = (char *)memcpy(to, id.at, id.size) + id.size;
    }
    return (stg_span){ids, ids == NULL ? 0 : (size_t)(to - ids)};
}

/* NULL: no memory. *size: of it. */
static char *make_body(const batch *g, size_t *size)
{
    stg_batch_format format = g->of->target->settings->batch.format;
    char *body = malloc(g->size + STG_BATCH_ENDS), *to = body;

    for (member *m = first_of(g); body != NULL && m != NULL; m = next_of(g, m))
        to = stg_batch_put(format, to, m->body, m == first_of(g));
    if (body != NULL)
        *size = (size_t)(stg_batch_end(format, to) - body);
    return body;
}

static unsigned hops_of(const batch *g)
{
    unsigned hops = 0;

    for (member *m = first_of(g); m != NULL; m = next_of(g, m))
        if (m->attempt.hops > hops)
            hops = m->attempt.hops;
    return hops;
}

static char *put(char *to, const char *text, size_t size)
{
    return (char *)memcpy(to, text, size) + size;
}

static char *put_text(char *to, const char *text)
{
    return put(to, text, strlen(text));
}

/* Returns their end; NULL: no memory. */
static char *put_headers(batch *g, char *to, stg_span ids, stg_span id,
                         stg_span body)
{
    const stg_target *t = g->of->target;
    const char *type = stg_batch_content_type(t->settings->batch.format,
                                              g->events == g->count);
    char *given;

    to = put(put_text(to, "Idempotency-Key: "), id.at, id.size);
    to = stg_digits_put(put_text(to, "\r\nStagger-Batch: "), g->count);
    if (ids.size <= IDS_SHOWN_MAX)
        to = put(put_text(to, "\r\nStagger-Messages: "), ids.at, ids.size);
    to = stg_digits_put(put_text(to, "\r\nStagger-Hops: "), hops_of(g) + 1);
    given = put_text(to, "\r\n");
    to = put_text(given, "Content-Type: ");
    to = put_text(to, type);
    to = stg_attempt_drop_targets(t, given, put_text(to, "\r\n"));
    if (t->token != NULL)
        to = stg_oauth_put(t->token, to, &g->token);
    return stg_attempt_put_signature(to, t->settings, id,
                                     (stg_span){type, strlen(type)}, body);
}

/* To be freed; at is NULL: no memory. */
static stg_span make_headers(batch *g, stg_span body)
{
    enum { OWN_MAX = 256 };
    const stg_signer *signer = g->of->target->settings->signer;
    stg_span ids = join_ids(g), headers = {.at = NULL};
    char id[STG_BATCH_ID_MAX], *made, *end = NULL;
    size_t room = OWN_MAX + STG_BATCH_ID_MAX + IDS_SHOWN_MAX;

    if (ids.at == NULL || !stg_batch_id(ids, id)) {
        free((char *)(uintptr_t)ids.at);
        return headers;
    }
    if (signer != NULL)
        room += stg_signer_room(signer, strlen(id));
    if (g->of->target->token != NULL)
        room += stg_oauth_room(g->of->target->token);
    made = malloc(room);
    if (made != NULL)
        end = put_headers(g, made, ids, (stg_span){id, strlen(id)}, body);
    free((char *)(uintptr_t)ids.at);
    if (end == NULL) {
        free(made);
        return headers;
    }
    return (stg_span){made, (size_t)(end - made)};
}

static stg_ns timeout_of(const batch *g)
{
    stg_ns timeout = 0;

    for (member *m = first_of(g); m != NULL; m = next_of(g, m))
        if (m->timeout > timeout)
            timeout = m->timeout;
    return timeout;
}

/* -- its end --------------------------------------------------------------- */

/* Into batches of their own, which go before all others. */
static void split(stg_batcher *b, batch *g)
{
    member *m;

    while ((m = first_of(g)) != NULL) {
        batch *alone = make_batch(b);

        take_out(m);
        if (alone == NULL) {
            stg_attempt_end_unsent(b->hub, &m->attempt, STG_FAULT_NO_BUFFERS,
                                   "there was no memory for the request");
            free_member(m);
            continue;
        }
        put_in(alone, m);
        stg_list_push(&b->ready, &alone->turn);
    }
}

/* An outcome for each; NULL: all have that of the answer. */
static stg_outcome *read_results(const batch *g, const stg_reply *reply)
{
    const stg_target_settings *s = g->of->target->settings;
    stg_outcome *results;

    if (s == NULL || !s->batch.has_results ||
        reply->outcome.fault != STG_FAULT_NONE)
        return NULL;
    results = calloc(g->count, sizeof *results);
    if (results == NULL || stg_batch_results(reply->answer, results, g->count))
        return results;
    free(results);
    return NULL;
}

static void end_each(batch *g, const stg_reply *reply, bool is_again)
{
    stg_hub *h = g->all->hub;
    const stg_target_settings *s = g->of->target->settings;
    stg_outcome *results = read_results(g, reply), *result = results;
    size_t shown = s == NULL ? 0 : s->excerpt_max;
    stg_end how = {.outcome = reply->outcome,
                   .detail = reply->detail,
                   .answer = reply->answer.at,
                   .answer_size =
                       reply->answer.size < shown ? reply->answer.size : shown,
                   .dialed_at = reply->dialed_at,
                   .is_unauthorized = is_again};
    member *m;

    while ((m = first_of(g)) != NULL) {
        int status = reply->status;

        if (result != NULL) {
            how.outcome = *result++;
            status = (int)how.outcome.code;
        }
        take_out(m);
        if (reply->is_put_back)
            stg_attempt_put_back(h, &m->attempt, &how, reply->took);
        else
            stg_attempt_end_by(h, &m->attempt, &how, status, reply->took);
        free_member(m);
    }
    free(results);
}

static void note_load(const batch *g, const stg_outcome *o)
{
    stg_batcher *b = g->of;

    if (o->fault != STG_FAULT_CANCELLED)
        stg_limit_end(&b->limit, stg_load_of(o, false), g->is_limit_used,
                      g->sent_at, stg_deadlines_now());
}

static bool is_requests_fault(const stg_outcome *o)
{
    return stg_fault_about(o->fault)->category == STG_CATEGORY_REQUEST;
}

static void answered(void *ctx, const stg_reply *reply)
{
    batch *g = ctx;
    stg_hub *h = g->all->hub;
    stg_batcher *b = g->of;
    size_t ended = g->count;

    if (b != NULL) {
        bool is_again = stg_oauth_refuses(b->target, g->token, reply->status);

        b->under_way--;
        note_load(g, &reply->outcome);
        if (g->count > 1 && is_requests_fault(&reply->outcome) && !is_again)
            split(b, g);
        else
            end_each(g, reply, is_again);
    }
    free_batch(g);
    if (h->is_broken) {
        stg_hub_finish(h);
        return;
    }
    if (b != NULL)
        pump(b);
    while (ended-- > 0)
        stg_shell_ended(h);
}

/* -- a target's batches ---------------------------------------------------- */

static bool send_out(stg_batcher *b, batch *g)
{
    stg_span headers, body;

    g->body = make_body(g, &body.size);
    body.at = g->body;
    if (g->body == NULL)
        return false;
    headers = make_headers(g, body);
    if (headers.at != NULL)
        g->exchange = stg_endpoint_send(b->target->endpoint, headers, body,
                                        timeout_of(g), answered, g);
    free((char *)(uintptr_t)headers.at);
    return g->exchange != NULL;
}

static uint32_t requests_max(stg_batcher *b)
{
    const stg_target_settings *s = b->target->settings;

    if (s == NULL || s->order != STG_ORDER_NONE)
        return 1;
    b->limit.max = s->in_flight_max;
    if (b->limit.value > b->limit.max)
        b->limit.value = b->limit.max;
    return b->limit.value;
}

/* The target may have lost its settings while the batch waited, or its token: then
 * it is as if its deliveries had not been started. */
static void launch(stg_batcher *b, batch *g)
{
    bool is_away = b->target->settings == NULL || b->target->endpoint == NULL;

    if (is_away || stg_oauth_is_gated(b->target)) {
        end_all_unsent(g, STG_FAULT_CANCELLED,
                       is_away ? "the target is no longer in the settings"
                               : "there is no access token");
        return;
    }
    if (!send_out(b, g)) {
        end_all_unsent(g, STG_FAULT_NO_BUFFERS,
                       "there was no memory for the request");
        return;
    }
    g->sent_at = stg_deadlines_now();
    b->under_way++;
    g->is_limit_used = b->under_way >= requests_max(b);
    stg_attempt_tell_waiting(b->hub);
}

/* The open one is ready; after its linger it stays open until it can be sent. */
static void close_open(stg_batcher *b)
{
    stg_list_push(&b->ready, &b->open->turn);
    stg_deadline_clear(&b->hub->deadlines, &b->due);
    b->open = NULL;
}

static bool is_due(const stg_batcher *b)
{
    return b->open != NULL && stg_deadline_at(&b->due) == STG_NEVER;
}

static void pump(stg_batcher *b)
{
    while (b->under_way < requests_max(b)) {
        batch *g;

        if (stg_list_is_empty(&b->ready) && is_due(b))
            close_open(b);
        g = STG_HOLDER(stg_list_first(&b->ready), batch, turn);
        if (g == NULL)
            return;
        stg_list_remove(&g->turn);
        launch(b, g);
    }
}

static void linger_over(stg_deadline *d)
{
    stg_batcher *b = STG_HEAP_HOLDER(d, stg_batcher, due);

    pump(b);
}

/* NULL: no memory. */
static stg_batcher *find_batcher(stg_hub *h, stg_target *t)
{
    stg_batcher *b = t->batcher;

    if (b != NULL)
        return b;
    b = t->batcher = calloc(1, sizeof *b);
    if (b == NULL)
        return NULL;
    b->hub = h;
    b->target = t;
    b->due.passed = linger_over;
    stg_list_init(&b->ready);
    stg_limit_start(&b->limit, t->settings->in_flight_max, stg_deadlines_now());
    return b;
}

void stg_batcher_free(stg_batcher *b)
{
    assert(b == NULL || (b->open == NULL && stg_list_is_empty(&b->ready)));
    free(b);
}

/* -- for flow -------------------------------------------------------------- */

/* A batch with room for it. NULL: no memory. */
static batch *find_open(stg_batcher *b, size_t size)
{
    const stg_batch_settings *s = &b->target->settings->batch;

    if (b->open != NULL &&
        (b->open->count >= s->max || b->open->size + size > s->bytes_max))
        close_open(b);
    if (b->open != NULL)
        return b->open;
    b->open = make_batch(b);
    if (b->open != NULL)
        stg_deadline_set(&b->hub->deadlines, &b->due,
                         stg_ns_add(stg_deadlines_now(), s->linger));
    return b->open;
}

/* False: no memory. */
static bool add(stg_batcher *b, member *m, bool is_probe)
{
    batch *g = find_open(b, m->body.size + STG_BATCH_EACH);

    if (g == NULL)
        return false;
    put_in(g, m);
    if (g->count >= b->target->settings->batch.max || is_probe)
        close_open(b);
    pump(b);
    return true;
}

/* NONE; or it cannot be sent, and why not is in `detail`. */
static stg_fault unpack(member *m, const stg_message *message, char detail[128])
{
    stg_parcel p;
    const char *why = "there was no memory for the batch";

    if (!stg_parcel_unpack(&p, message->bytes, message->size)) {
        snprintf(detail, 128, "the message in the log is none of the hub's");
        return STG_FAULT_INVALID;
    }
    m->attempt.hops = stg_header_take_hops(&p.headers);
    if (!stg_attempt_convert(&m->attempt, &p))
        return snprintf(detail, 128, "%s", why), STG_FAULT_NO_BUFFERS;
    m->body = p.body;
    m->is_event = stg_cloud_event_is_structured(p.content_type);
    if (stg_batch_takes(p.body, &why))
        return STG_FAULT_NONE;
    snprintf(detail, 128, "the body is not JSON, as a batch needs: %s", why);
    return STG_FAULT_INVALID;
}

void stg_batch_start(stg_attempts *all, const stg_action *action)
{
    stg_hub *h = all->hub;
    stg_batcher *b = find_batcher(h, stg_targets_at(&h->targets, action->lane));
    member *m = b == NULL ? NULL : malloc(sizeof *m);
    char detail[128];
    stg_fault fault;

    if (m == NULL) {
        stg_attempt_end_unmade(all, action);
        return;
    }
    stg_attempt_begin(all, &m->attempt, action);
    m->timeout = action->start.timeout;
    stg_delivery_attach(m->attempt.delivery, &m->attempt);
    fault = unpack(m, action->start.message, detail);
    if (fault != STG_FAULT_NONE)
        stg_attempt_end_unsent(h, &m->attempt, fault, detail);
    else if (!add(b, m, action->start.is_probe))
        stg_attempt_end_unsent(h, &m->attempt, STG_FAULT_NO_BUFFERS,
                               "there was no memory for the batch");
    else
        return;
    free_member(m);
}

/* Nobody waits for its request any more, if it has one. */
static void abandon(batch *g)
{
    stg_batcher *b = g->of;

    g->of = NULL;
    if (b->open == g) {
        stg_deadline_clear(&b->hub->deadlines, &b->due);
        b->open = NULL;
    }
    if (g->exchange == NULL) {
        free_batch(g);
        return;
    }
    b->under_way--;
    stg_exchange_cancel(g->exchange);
}

/* The others of the batch go on. */
void stg_batch_cancel(stg_attempt *a)
{
    member *m = (member *)a; // it is the first in it
    batch *g = m->batch;
    stg_batcher *b = g->of;
    stg_end how = {.outcome = stg_failed(STG_FAULT_CANCELLED),
                   .detail = "cancelled"};

    how.outcome.unsent = g->exchange == NULL;
    take_out(m);
    stg_attempt_end_by(b->hub, &m->attempt, &how, 0, 0);
    free_member(m);
    if (g->count > 0)
        return;
    abandon(g);
    pump(b);
}

void stg_batches_drop(stg_attempts *all)
{
    stg_link *at = stg_list_first(&all->batches), *next;

    for (; at != NULL; at = next) {
        batch *g = STG_HOLDER(at, batch, link);
        member *m;

        next = stg_list_next(&all->batches, at);
        while ((m = first_of(g)) != NULL) {
            take_out(m);
            free_member(m);
        }
        if (g->of != NULL)
            abandon(g);
    }
}
