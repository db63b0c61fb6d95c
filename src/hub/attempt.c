/* One attempt: makes a request of a message, sends it by the target's
 * endpoint, and reports its end to flow, metrics, alerts and log.
 *
 * All on the loop's thread. Flow owns the delivery and the attempt only
 * borrows it: flow hears of the end exactly once by stg_flow_ended(), or never
 * again after stg_attempts_drop(), which sets the delivery to NULL. Called by
 * hub/shell.c for flow's actions.
 *
 * A signature that takes long is made on another thread. Until it is there the
 * attempt has no exchange: one that is cancelled or dropped meanwhile ends when the
 * signature comes. */
#include "hub/attempt.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "http/header.h"
#include "hub/hub_internal.h"
#include "store/parcel.h"

/* Parent ids need not be secret, only others than those of the last run. */
static stg_rng make_rng(uint64_t epoch)
{
    uint64_t seed = 0;

    if (uv_random(NULL, NULL, &seed, sizeof seed, 0, NULL) != 0)
        seed = epoch ^ uv_hrtime();
    return stg_rng_seed(seed);
}

void stg_attempts_init(stg_attempts *a, stg_hub *hub, uint64_t epoch,
                       stg_trace_mode trace)
{
    *a = (stg_attempts){
        .hub = hub,
        .epoch = epoch,
        .trace = trace,
        .share = hub->fixed == NULL ? 0 : stg_spans_share(hub->fixed),
        .rng = make_rng(epoch)};
    stg_list_init(&a->under_way);
    stg_list_init(&a->batches);
    stg_signings_init(&a->signings, hub->loop);
    stg_id_print(epoch, 0, a->prefix);
    a->prefix_size = strlen(a->prefix) - 1; // without the position
}

static stg_attempt *take(stg_attempts *all)
{
    stg_attempt *a = stg_pool_take(&all->free);

    return a != NULL ? a : malloc(sizeof *a);
}

/* Out of the list of those under way. */
static void give_back(stg_attempts *all, stg_attempt *a)
{
    stg_list_remove(&a->link);
    free(a->converted);
    stg_filled_free(a->filled);
    if (!stg_pool_give(&all->free, a))
        free(a);
}

/* -- the end --------------------------------------------------------------- */

/* Counts the end for `stagger status`: latencies of successes only, and the
 * cause of the last failure. */
static void note(stg_target *t, const stg_outcome *outcome, stg_ns took,
                 stg_ns now)
{
    t->attempts++;
    if (outcome->fault == STG_FAULT_NONE) {
        t->failing_since = 0;
        if (t->latency == NULL)
            t->latency = calloc(1, sizeof *t->latency);
        if (t->latency != NULL)
            stg_latency_add(t->latency, took);
        return;
    }
    t->failures++;
    t->last = *outcome;
    t->failed_at = now;
    if (t->failing_since == 0)
        t->failing_since = now;
}

/* A target that says that it is gone, and takes messages again one day. */
static void note_gone(stg_hub *h, stg_target *t, const stg_outcome *outcome,
                      stg_ns now)
{
    enum { GONE = 410 };

    if (outcome->code_kind == STG_CODE_STATUS && outcome->code == GONE)
        stg_watch_gone(&h->watch, t, now);
    else if (t->is_gone && outcome->fault == STG_FAULT_NONE)
        stg_watch_back(&h->watch, t, now);
}

/* An attempt that is made again with another token is not told of. */
void stg_attempt_end_by(stg_hub *h, const stg_attempt *a, const stg_end *how,
                        int status, stg_ns took)
{
    stg_ns now = stg_deadlines_now();
    stg_verdict v;
    stg_attempt_end told = {.target = a->target,
                            .partition = a->partition,
                            .position = a->position,
                            .number = a->number,
                            .number_max = a->number_max,
                            .took = took,
                            .status = status,
                            .detail = how->detail,
                            .verdict = &v,
                            .trace = &a->trace};

    if (how->outcome.fault != STG_FAULT_NONE)
        stg_proxies_note(h, a->target, &how->outcome, how->detail);
    v = stg_flow_ended(h->flow, a->delivery, how, now);
    if (how->is_unauthorized && v.decision.why == STG_WHY_GATE) {
        stg_metrics_end(&a->target->meter, &how->outcome, &v, took,
                        a->accepted_at);
        stg_shell_note(h);
        return;
    }
    note(a->target, &how->outcome, took, now);
    // Put back for our own network: see flow/lane.h.
    a->target->ours += v.decision.why == STG_WHY_GATE && v.failure == NULL;
    if (how->outcome.fault == STG_FAULT_NONE &&
        a->target->recovery == STG_RECOVERY_DUE)
        stg_recovery_note(h, a->target);
    stg_recent_add(a->target, &told, how, now);
    if (h->receipts.is_on)
        stg_hub_receipts_add(&h->receipts, &told, &how->outcome);
    if (h->spans.is_on)
        stg_spans_add(&h->spans, &told, &how->outcome);
    note_gone(h, a->target, &how->outcome, now);
    stg_metrics_end(&a->target->meter, &how->outcome, &v, took, a->accepted_at);
    if (v.decision.next != STG_DONE || h->settings->log.least == STG_LOG_DEBUG)
        stg_tell_attempt(h, &told, now);
    stg_shell_note(h);
}

void stg_attempt_put_back(stg_hub *h, const stg_attempt *a, const stg_end *how,
                          stg_ns took)
{
    stg_verdict v =
        stg_flow_ended(h->flow, a->delivery, how, stg_deadlines_now());

    stg_metrics_end(&a->target->meter, &how->outcome, &v, took, a->accepted_at);
    stg_shell_note(h);
}

/* The last one under way lets a broken hub go on to close. */
static void over(stg_hub *h, stg_attempt *a)
{
    give_back(&h->attempts, a);
    if (h->is_broken)
        stg_hub_finish(h);
    else
        stg_shell_ended(h);
}

/* Ends the attempt, however it ended. */
static void answered(void *ctx, const stg_reply *reply)
{
    stg_attempt *a = ctx;
    stg_hub *h = a->hub;
    stg_end how = {.outcome = reply->outcome,
                   .detail = reply->detail,
                   .answer = reply->answer.at,
                   .answer_size = reply->answer.size,
                   .dialed_at = reply->dialed_at};

    if (a->delivery != NULL && reply->is_put_back) {
        stg_attempt_put_back(h, a, &how, reply->took);
    } else if (a->delivery != NULL) {
        how.is_unauthorized =
            stg_oauth_refuses(a->target, a->token, reply->status);
        stg_attempt_end_by(h, a, &how, reply->status, reply->took);
    }
    over(h, a);
}

void stg_attempt_end_unsent(stg_hub *h, const stg_attempt *a, stg_fault fault,
                            const char *detail)
{
    stg_end how = {.outcome = stg_failed(fault), .detail = detail};

    how.outcome.unsent = true;
    how.outcome.permanent =
        stg_fault_about(fault)->category == STG_CATEGORY_OWN;
    stg_attempt_end_by(h, a, &how, 0, 0);
}

/* -- the start ------------------------------------------------------------- */

void stg_attempt_tell_waiting(stg_hub *h)
{
    if (stg_client_has_waited(h->client))
        STG_LOG_REPEAT(
            h->log, STG_LOG_WARN, "fd-limit", 1,
            stg_field_text("detail",
                           "no file, or no memory for one, is left "
                           "for a connection to a target"),
            stg_field_number("connections",
                             stg_client_files(h->client)->targets),
            stg_field_bool("has_evicted", false),
            stg_field_text("next",
                           "raise the limit of open files (LimitNOFILE=, "
                           "ulimit -n), or of memory"));
}

bool stg_attempt_convert(stg_attempt *a, stg_parcel *p)
{
    stg_cloud_events mode = a->target->settings->common->cloud_events;

    return mode == STG_CLOUD_EVENTS_AS_IS ||
           stg_cloud_event_convert(mode, p, &a->converted);
}

/* By the target's URL, or the one that was made of the message. */
static stg_exchange *send_request(stg_attempt *a, stg_span headers,
                                  stg_span body, stg_ns timeout)
{
    const stg_filled *f = a->filled;

    return f == NULL
               ? stg_endpoint_send(a->target->endpoint, headers, body, timeout,
                                   answered, a)
               : stg_endpoint_send_to(
                     a->target->endpoint, (stg_span){f->path.at, f->path.size},
                     headers, (stg_span){f->headers.at, f->headers.size}, body,
                     timeout, answered, a);
}

/* False: there was no memory. */
static bool send_out(stg_attempts *all, stg_attempt *a, stg_ns timeout,
                     const stg_parcel *p, stg_span signature)
{
    stg_span headers;
    char *more;

    if (stg_attempt_headers(all, a, p, signature, &headers, &more))
        a->exchange = send_request(a, headers, p->body, timeout);
    free(more);
    if (a->exchange != NULL)
        stg_attempt_tell_waiting(all->hub);
    return a->exchange != NULL;
}

static void end_short(stg_hub *h, const stg_attempt *a)
{
    stg_attempt_end_unsent(h, a, STG_FAULT_NO_BUFFERS,
                           "there was no memory for the request");
}

/* Whether the target is still the one that the signature was made for: a reload
 * may have changed it. */
static bool is_wanted(const stg_attempt *a)
{
    return !a->signing->is_cancelled && a->target->endpoint != NULL &&
           a->target->settings != NULL &&
           a->target->version == a->signing->version;
}

/* What was cancelled, or is for another target by now, was not tried. */
static void send_signed(void *ctx, stg_span lines)
{
    stg_attempt *a = ctx;
    stg_hub *h = a->hub;
    stg_attempt_signing *signing = a->signing;
    bool has_wanted = a->delivery != NULL && is_wanted(a), is_sent = false;
    stg_end how = {.outcome = stg_failed(STG_FAULT_CANCELLED),
                   .detail = "not tried: it was being signed"};

    how.outcome.unsent = true;
    a->signing = NULL;
    if (a->delivery != NULL && !has_wanted)
        stg_attempt_put_back(h, a, &how, 0);
    else if (a->delivery != NULL)
        is_sent =
            lines.at != NULL && send_out(&h->attempts, a, signing->timeout,
                                         &signing->parcel, lines);
    free(signing);
    if (is_sent)
        return;
    if (a->delivery != NULL && has_wanted)
        end_short(h, a);
    over(h, a);
}

/* False: there was no memory. */
static bool sign_first(stg_attempts *all, stg_attempt *a, stg_ns timeout,
                       const stg_parcel *p)
{
    char text[STG_MESSAGE_ID_MAX] STG_UNINITIALIZED;
    const stg_target_settings *t = a->target->settings;
    stg_sign_request r = stg_attempt_sign_request(
        t, stg_attempt_id(all, a, text), p->content_type, p->body);

    a->signing = malloc(sizeof *a->signing);
    if (a->signing == NULL)
        return false;
    *a->signing = (stg_attempt_signing){
        .version = a->target->version, .parcel = *p, .timeout = timeout};
    if (stg_signings_ask(&all->signings, t->signer, &r, send_signed, a))
        return true;
    free(a->signing);
    a->signing = NULL;
    return false;
}

/* False: there was no memory. */
static bool sign_or_send(stg_attempts *all, stg_attempt *a, stg_ns timeout,
                         const stg_parcel *p)
{
    const stg_signer *s = a->target->settings->signer;

    return s != NULL && stg_signer_is_slow(s)
               ? sign_first(all, a, timeout, p)
               : send_out(all, a, timeout, p, (stg_span){NULL, 0});
}

/* False: its URL or headers cannot be made of the message; it has ended. */
static bool fill(stg_attempts *all, stg_attempt *a, const stg_parcel *p)
{
    char id[STG_MESSAGE_ID_MAX], flaw[STG_TEMPLATE_FLAW_MAX] = "";

    a->filled = calloc(1, sizeof *a->filled);
    if (a->filled != NULL && stg_fill(a->filled, a->target->settings,
                                      stg_attempt_id(all, a, id), p, flaw))
        return true;
    if (flaw[0] == '\0')
        end_short(all->hub, a);
    else
        stg_attempt_end_unsent(all->hub, a, STG_FAULT_TEMPLATE, flaw);
    give_back(all, a);
    return false;
}

static void start(stg_attempts *all, stg_attempt *a, const stg_action *action,
                  stg_parcel *p)
{
    if (a->target->settings->is_templated && !fill(all, a, p))
        return;
    if (stg_attempt_convert(a, p) &&
        sign_or_send(all, a, action->start.timeout, p)) {
        stg_delivery_attach(a->delivery, a);
        return;
    }
    end_short(all->hub, a);
    give_back(all, a);
}

/* Fills in all fields, for a piece of the pool has the values of the attempt
 * that used it before. */
void stg_attempt_begin(stg_attempts *all, stg_attempt *a,
                       const stg_action *action)
{
    a->link = (stg_link){.next = NULL};
    a->hub = all->hub;
    a->target = stg_targets_at(&all->hub->targets, action->lane);
    a->delivery = action->start.delivery;
    a->exchange = NULL;
    a->converted = NULL;
    a->filled = NULL;
    a->partition = action->start.message->partition;
    a->position = action->start.message->position;
    a->number = action->start.attempt;
    a->number_max = action->start.attempts_max;
    a->accepted_at = action->start.message->created_at;
    a->token = 0;
    a->trace = (stg_trace){.high = 0};
    a->signing = NULL;
    stg_metrics_start(&a->target->meter, action->start.is_retry);
}

/* One on the stack stands in for it. */
STG_NOINLINE void stg_attempt_end_unmade(stg_attempts *all,
                                         const stg_action *action)
{
    stg_attempt spare;

    stg_attempt_begin(all, &spare, action);
    stg_attempt_end_unsent(all->hub, &spare, STG_FAULT_NO_BUFFERS,
                           "there was no memory for the attempt");
}

/* A message of the log that cannot be unpacked is no reason to stop: it becomes a
 * dead letter of each target. */
static void start_alone(stg_attempts *all, const stg_action *action)
{
    const stg_message *m = action->start.message;
    stg_attempt *a = take(all);
    stg_parcel p STG_UNINITIALIZED;

    if (a == NULL) {
        stg_attempt_end_unmade(all, action);
        return;
    }
    stg_attempt_begin(all, a, action);
    stg_list_push(&all->under_way, &a->link);
    if (stg_parcel_unpack(&p, m->bytes, m->size)) {
        a->hops = stg_header_take_hops(&p.headers);
        stg_times_skip(&p.headers);
        start(all, a, action, &p);
        return;
    }
    stg_attempt_end_unsent(all->hub, a, STG_FAULT_INVALID,
                           "the message in the log is none of the hub's");
    give_back(all, a);
}

void stg_attempt_start(stg_attempts *all, const stg_action *action)
{
    const stg_target *t = stg_targets_at(&all->hub->targets, action->lane);

    if (t->settings->common->batch.max > 1)
        stg_batch_start(all, action);
    else
        start_alone(all, action);
}

void stg_attempt_cancel(stg_attempt *a)
{
    if (a->exchange != NULL)
        stg_exchange_cancel(a->exchange);
    else if (a->signing != NULL)
        a->signing->is_cancelled = true;
    else
        stg_batch_cancel(a);
}

/* Sets the deliveries to NULL first, so that answered() only gives the memory
 * back. */
void stg_attempts_drop(stg_attempts *all)
{
    for (stg_link *at = stg_list_first(&all->under_way); at != NULL;
         at = stg_list_next(&all->under_way, at)) {
        stg_attempt *a = STG_HOLDER(at, stg_attempt, link);

        a->delivery = NULL;
        if (a->exchange != NULL) // else it ends with its signature
            stg_exchange_cancel(a->exchange);
    }
    stg_batches_drop(all);
}

bool stg_attempts_are_over(const stg_attempts *all)
{
    return stg_list_is_empty(&all->under_way) &&
           stg_list_is_empty(&all->batches);
}

void stg_attempts_close(stg_attempts *all)
{
    stg_attempt *a;

    while ((a = stg_pool_take(&all->free)) != NULL)
        free(a);
}
