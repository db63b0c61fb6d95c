/* Many deliveries in one request, for targets that take them so: gathers what
 * flow starts, sends it, and tells flow the end of each.
 *
 * Flow knows nothing of batches: it starts a delivery, and hears how it ended.
 * A batch is open until it is full or its linger is over; then it is sent, as
 * soon as the target takes another request. How many it takes at once is found
 * out here, by requests (flow/limit.h), while flow's own limit is fixed. With an
 * order there is one at a time.
 *
 * A request at fault (docs/retry.md, category C) says nothing about any one delivery
 * of several: each is sent again, by itself, within the same attempt.
 *
 * All on the loop's thread. A batch whose deliveries were all cancelled, or
 * dropped, has no batcher any more, and goes with the end of its request. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/fault.h>

#include "http/header.h"
#include "hub/batch.h"

static void pump(stg_batcher *b);

/* -- one batch ------------------------------------------------------------- */

/* NULL: no memory. */
static stg_bundle *make_batch(stg_batcher *b)
{
    stg_bundle *g = calloc(1, sizeof *g);

    if (g == NULL)
        return NULL;
    g->all = &b->hub->attempts;
    g->of = b;
    stg_list_init(&g->members);
    stg_list_push(&g->all->batches, &g->link);
    return g;
}

static void put_in(stg_bundle *g, stg_member *m)
{
    m->batch = g;
    stg_list_push(&g->members, &m->attempt.link);
    g->count++;
    g->events += m->is_event;
    g->size += m->body.size + STG_BATCH_EACH;
}

static void take_out(stg_member *m)
{
    stg_bundle *g = m->batch;

    stg_list_remove(&m->attempt.link);
    g->count--;
    g->events -= m->is_event;
    g->size -= m->body.size + STG_BATCH_EACH;
}

static void free_member(stg_member *m)
{
    free(m->attempt.converted);
    free(m);
}

/* It has no members. */
static void free_batch(stg_bundle *g)
{
    stg_list_remove(&g->turn);
    stg_list_remove(&g->link);
    stg_batch_unmake(g);
    free(g);
}

/* Ends all of its deliveries, and the batch. CANCELLED: as if they had not been
 * started. */
static void end_all_unsent(stg_bundle *g, stg_fault fault, const char *detail)
{
    stg_hub *h = g->all->hub;
    stg_end how = {.outcome = stg_failed(fault), .detail = detail};
    stg_member *m;

    how.outcome.unsent = true;
    while ((m = stg_batch_first(g)) != NULL) {
        take_out(m);
        if (fault == STG_FAULT_CANCELLED)
            stg_attempt_put_back(h, &m->attempt, &how, 0);
        else
            stg_attempt_end_unsent(h, &m->attempt, fault, detail);
        free_member(m);
    }
    free_batch(g);
}

/* -- its end --------------------------------------------------------------- */

/* Into batches of their own, which go before all others, in their order. */
static void split(stg_batcher *b, stg_bundle *g)
{
    stg_member *m;

    while ((m = stg_batch_last(g)) != NULL) {
        stg_bundle *alone = make_batch(b);

        take_out(m);
        if (alone == NULL) {
            stg_attempt_end_unsent(b->hub, &m->attempt, STG_FAULT_NO_BUFFERS,
                                   "there was no memory for the request");
            free_member(m);
            continue;
        }
        put_in(alone, m);
        stg_list_unshift(&b->ready, &alone->turn);
    }
}

/* An outcome for each that was sent; NULL: all have that of the answer. */
static stg_outcome *read_results(const stg_bundle *g, const stg_reply *reply)
{
    const stg_target_settings *s = g->of->target->settings;
    stg_outcome *results;

    if (s == NULL || !s->common->batch.has_results ||
        reply->outcome.fault != STG_FAULT_NONE)
        return NULL;
    results = calloc(g->sent_count, sizeof *results);
    if (results == NULL ||
        stg_batch_results(reply->answer, results, g->sent_count))
        return results;
    free(results);
    return NULL;
}

/* A target may answer for each message (results), or once for all. An answer's
 * excerpt is cut here, since the endpoint kept more of it to read the results. */
static void end_each(stg_bundle *g, const stg_reply *reply, bool is_again)
{
    stg_hub *h = g->all->hub;
    const stg_target_settings *s = g->of->target->settings;
    stg_outcome *results = read_results(g, reply);
    size_t shown = s == NULL ? 0 : s->common->excerpt_max;
    stg_end how = {.outcome = reply->outcome,
                   .detail = reply->detail,
                   .answer = reply->answer.at,
                   .answer_size =
                       reply->answer.size < shown ? reply->answer.size : shown,
                   .dialed_at = reply->dialed_at,
                   .is_unauthorized = is_again};
    stg_member *m;

    while ((m = stg_batch_first(g)) != NULL) {
        int status = reply->status;

        if (results != NULL) {
            how.outcome = results[m->index];
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

static void note_load(const stg_bundle *g, const stg_outcome *o)
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

/* A request that failed as a whole by what is in it is split, so that one message
 * does not take its neighbours along. Flow hears of the ends first; only then others
 * start. */
static void answered(void *ctx, const stg_reply *reply)
{
    stg_bundle *g = ctx;
    stg_hub *h = g->all->hub;
    stg_batcher *b = g->of;
    size_t ended = 0;

    if (b != NULL) {
        bool is_again = stg_oauth_refuses(b->target, g->token, reply->status);

        b->under_way--;
        note_load(g, &reply->outcome);
        if (g->sent_count > 1 && is_requests_fault(&reply->outcome) &&
            !is_again) {
            split(b, g);
        } else {
            ended = g->count;
            end_each(g, reply, is_again);
        }
    }
    free_batch(g);
    if (b == NULL || h->is_broken) {
        stg_hub_finish(h);
        return;
    }
    pump(b);
    while (ended-- > 0)
        stg_shell_ended(h);
}

/* -- a target's batches ---------------------------------------------------- */

static uint32_t requests_max(stg_batcher *b)
{
    const stg_target_settings *s = b->target->settings;

    if (s == NULL || s->common->order != STG_ORDER_NONE)
        return 1;
    b->limit.max = s->common->in_flight_max;
    if (b->limit.value > b->limit.max)
        b->limit.value = b->limit.max;
    return b->limit.value;
}

/* Why nothing can be sent: the target may have lost its settings while the batch
 * waited, or its token, or have others than it was signed for. Then it is as if its
 * deliveries had not been started. NULL: it can. */
static const char *find_reason(const stg_batcher *b, uint64_t version)
{
    const stg_target *t = b->target;

    if (t->settings == NULL || t->endpoint == NULL)
        return "the target is no longer in the settings";
    if (t->version != version)
        return "the target has other settings";
    return stg_oauth_is_gated(t) ? "there is no access token" : NULL;
}

static void end_short(stg_bundle *g)
{
    end_all_unsent(g, STG_FAULT_NO_BUFFERS,
                   "there was no memory for the request");
}

static void note_sent(stg_batcher *b, stg_bundle *g)
{
    g->sent_at = stg_deadlines_now();
    stg_attempt_tell_waiting(b->hub);
}

/* It is signed; its slot is taken. */
static void send_signed(void *ctx, stg_span lines)
{
    stg_bundle *g = ctx;
    stg_batcher *b = g->of;
    stg_hub *h = g->all->hub;
    const char *why;

    g->is_signing = false;
    if (b == NULL) {
        free_batch(g);
        stg_hub_finish(h);
        return;
    }
    why = find_reason(b, g->version);
    if (why == NULL && lines.at != NULL && stg_batch_send(g, lines, answered)) {
        note_sent(b, g);
        return;
    }
    b->under_way--;
    if (why != NULL)
        end_all_unsent(g, STG_FAULT_CANCELLED, why);
    else
        end_short(g);
    pump(b);
}

/* False: no memory. */
static bool sign_first(stg_bundle *g)
{
    const stg_target *t = g->of->target;
    stg_sign_request r = stg_batch_sign_request(g);

    g->version = t->version;
    g->is_signing = stg_signings_ask(&g->all->signings, t->settings->signer, &r,
                                     send_signed, g);
    return g->is_signing;
}

/* The target may have changed while the batch was filled: then its deliveries go
 * back, not tried. */
static void launch(stg_batcher *b, stg_bundle *g)
{
    const char *why = find_reason(b, b->target->version);
    const stg_signer *signer = why == NULL ? b->target->settings->signer : NULL;

    if (why != NULL) {
        end_all_unsent(g, STG_FAULT_CANCELLED, why);
        return;
    }
    if (!stg_batch_make(g) ||
        !(signer != NULL && stg_signer_is_slow(signer)
              ? sign_first(g)
              : stg_batch_send(g, (stg_span){NULL, 0}, answered))) {
        end_short(g);
        return;
    }
    b->under_way++;
    g->is_limit_used = b->under_way >= requests_max(b);
    note_sent(b, g);
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

/* Full batches first; one that is still filled goes when its time has come. */
static void pump(stg_batcher *b)
{
    while (b->under_way < requests_max(b)) {
        stg_bundle *g;

        if (stg_list_is_empty(&b->ready) && is_due(b))
            close_open(b);
        g = STG_HOLDER(stg_list_first(&b->ready), stg_bundle, turn);
        if (g == NULL)
            break;
        stg_list_remove(&g->turn);
        launch(b, g);
    }
    stg_attempts_flush(&b->hub->attempts);
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
    stg_limit_start(&b->limit, t->settings->common->in_flight_max,
                    stg_deadlines_now());
    return b;
}

void stg_batcher_free(stg_batcher *b)
{
    assert(b == NULL || (b->open == NULL && stg_list_is_empty(&b->ready)));
    free(b);
}

/* -- for flow -------------------------------------------------------------- */

/* A batch with room for it. NULL: no memory. */
static stg_bundle *find_open(stg_batcher *b, size_t size)
{
    const stg_batch_settings *s = &b->target->settings->common->batch;

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
static bool add(stg_batcher *b, stg_member *m, bool is_probe)
{
    stg_bundle *g = find_open(b, m->body.size + STG_BATCH_EACH);

    if (g == NULL)
        return false;
    put_in(g, m);
    if (g->count >= b->target->settings->common->batch.max || is_probe)
        close_open(b);
    pump(b);
    return true;
}

/* NONE; or it cannot be sent, and why not is in `detail`. */
static stg_fault unpack(stg_member *m, const stg_message *message,
                        char detail[128])
{
    stg_parcel p;
    const char *why = "there was no memory for the batch";

    if (!stg_parcel_unpack(&p, message->bytes, message->size)) {
        snprintf(detail, 128, "the message in the log is none of the hub's");
        return STG_FAULT_INVALID;
    }
    m->attempt.hops = stg_header_take_hops(&p.headers);
    stg_attempt_trace(&m->attempt, &p);
    if (!stg_attempt_convert(&m->attempt, &p))
        return snprintf(detail, 128, "%s", why), STG_FAULT_NO_BUFFERS;
    m->body = p.body;
    m->is_event = stg_cloud_event_is_structured(p.content_type);
    if (stg_batch_takes(p.body, &why))
        return STG_FAULT_NONE;
    snprintf(detail, 128, "the body is not JSON, as a batch needs: %s", why);
    return STG_FAULT_INVALID;
}

/* The delivery belongs to flow until its attempt ends, in the batch or before it:
 * what cannot be added ends here, unsent. */
void stg_batch_start(stg_attempts *all, const stg_action *action)
{
    stg_hub *h = all->hub;
    stg_batcher *b = find_batcher(h, stg_targets_at(&h->targets, action->lane));
    stg_member *m = b == NULL ? NULL : malloc(sizeof *m);
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
static void abandon(stg_bundle *g)
{
    stg_batcher *b = g->of;

    g->of = NULL;
    if (b->open == g) {
        stg_deadline_clear(&b->hub->deadlines, &b->due);
        b->open = NULL;
    }
    if (g->exchange == NULL && !g->is_signing) {
        free_batch(g);
        return;
    }
    b->under_way--;
    if (g->exchange != NULL) // else it ends with its signature
        stg_exchange_cancel(g->exchange);
}

/* The others of the batch go on. */
void stg_batch_cancel(stg_attempt *a)
{
    stg_member *m = (stg_member *)a; // it is the first in it
    stg_bundle *g = m->batch;
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

/* Flow has forgotten these deliveries. A request under way goes on without members. */
void stg_batches_drop(stg_attempts *all)
{
    stg_link *at = stg_list_first(&all->batches), *next;

    for (; at != NULL; at = next) {
        stg_bundle *g = STG_HOLDER(at, stg_bundle, link);
        stg_member *m;

        next = stg_list_next(&all->batches, at);
        while ((m = stg_batch_first(g)) != NULL) {
            take_out(m);
            free_member(m);
        }
        if (g->of != NULL)
            abandon(g);
    }
}
