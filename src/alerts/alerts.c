/* The alerts of a hub: facts go to the engine, and what the engine has gathered
 * goes as a digest to each receiver that wants it.
 *
 * What fires is known without receivers, too: a receiver that comes by a reload is
 * told of it (stg_alerts_catch_up()). After every fact the deadline `wake` is set to
 * what the engine asks for, since one fact may bring the next digest forward.
 *
 * The trap is the end: finish() frees everything, and is called from callbacks
 * of receivers and of the trial, so that nothing may be touched after a call
 * that could be the last one. */
#include "alerts/alerts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alerts/receiver.h"
#include "alerts/text.h"
#include "base/refuse.h"
#include "host/wall.h"

struct stg_alerts {
    stg_alerts_place place;
    stg_alert_options o;
    stg_alert_world world;
    stg_alert_engine *engine; /* knows all alerts, whoever wants them */
    stg_alert_receivers receivers;
    stg_alert_owners owners;
    char hub[STG_DIGEST_NAME_MAX];
    stg_deadline wake;  /* when the engine may have something */
    stg_deadline last;  /* when receivers have had their time */
    stg_ns catch_up_at; /* when receivers are told of what they have missed;
                            STG_NEVER: they have missed nothing */
    bool has_stranger;  /* a receiver is at a new destination */
    uint64_t digests, unkept;
    stg_alert_trial *trial; /* NULL: none is under way */
    stg_alert_trial_fn *tried;
    void *tried_ctx;
    bool is_closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

bool stg_alerts_are_on(const stg_alerts *a)
{
    return a != NULL && !a->is_closing;
}

static stg_status fail_memory(stg_error *err)
{
    return stg_hub_refuse(err, STG_IO, "alerts: there is no memory for them");
}

/* -- the end --------------------------------------------------------------- */

static void free_all(stg_alerts *a)
{
    stg_deadline_clear(a->place.deadlines, &a->wake);
    stg_deadline_clear(a->place.deadlines, &a->last);
    stg_alert_receivers_free(&a->receivers);
    stg_mailer_free(a->world.mailer);
    stg_alert_engine_free(a->engine);
    free(a);
}

/* Frees all and reports the end, once no receiver has anything under way and no
 * trial runs. Only called while is_closing is true; a is gone afterwards. */
static void finish(stg_alerts *a)
{
    void (*closed)(void *ctx) = a->closed;
    void *ctx = a->closed_ctx;

    if (!stg_alert_receivers_are_idle(&a->receivers) || a->trial != NULL ||
        a->owners.count > 0)
        return;
    free_all(a);
    if (closed != NULL)
        closed(ctx);
}

/* For stg_alert_world: s may be freed here, and so may all alerts. */
static void receiver_is_idle(void *ctx, stg_alert_receiver *s)
{
    stg_alerts *a = ctx;

    stg_alert_receivers_note_idle(&a->receivers, s);
    if (a->is_closing)
        finish(a);
}

static void owners_are_idle(void *ctx)
{
    stg_alerts *a = ctx;

    if (a->is_closing)
        finish(a);
}

/* -- telling --------------------------------------------------------------- */

static void describe(void *ctx, uint32_t lane, stg_alert_target *target)
{
    const stg_alert_audience *r = ctx;

    r->place->describe(r->place->ctx, lane, target);
}

static void log_digest(const stg_alerts *a, const stg_digest *d,
                       const char *receiver)
{
    char subject[STG_ALERT_SUBJECT_MAX];

    stg_alert_subject(d, subject);
    STG_LOG(a->place.log, STG_LOG_INFO, "alert",
            stg_field_text("receiver", receiver),
            stg_field_text("subject", subject),
            stg_field_number("alerts", stg_digest_total(d)));
}

/* Makes the digest of receiver number i, which is its reader: each has its own,
 * for they want different alerts. One that is told of events gets as many as it
 * takes for all. unkept: events without a key since the digest before this
 * one. */
static void tell_one(stg_alerts *a, size_t i, uint64_t unkept, stg_ns now)
{
    stg_alert_receiver *s = a->receivers.all[i];
    stg_alert_audience r = {&a->place, a->o.alerts,
                            stg_alert_receiver_options_of(s)};
    stg_digest_source source = {.wants = stg_alert_audience_wants,
                                .describe = describe,
                                .ctx = &r,
                                .now = now,
                                .utc = stg_wall_now(),
                                .reader = (unsigned)i};
    stg_digest d;

    source.is_part = stg_receiver_is_of_events(r.receiver->type);
    do {
        if (!stg_digest_make(&d, a->engine, &source))
            break;
        memcpy(d.hub, a->hub, sizeof d.hub);
        d.unkept = unkept;
        log_digest(a, &d, r.receiver->name);
        stg_alert_receiver_push(s, &d);
        source.from += d.item_count;
    } while (source.is_part);
    stg_alert_engine_hear(a->engine, (unsigned)i, stg_alert_audience_wants, &r);
}

/* Sends what is due, to all receivers at once. It counts as told even where no
 * receiver wants it, or where there is none: the engine knows which of them has
 * heard of it. is_last: nothing waits for `group-wait` or `min-interval`. */
static void tell(stg_alerts *a, bool is_last)
{
    stg_ns now = stg_deadlines_now();
    stg_alert_engine_view v;

    if (!stg_alert_engine_gather(a->engine, is_last, now))
        return;
    stg_alert_engine_look(a->engine, &v);
    for (size_t i = 0; i < a->receivers.count; i++)
        tell_one(a, i, v.unkept - a->unkept, now);
    a->unkept = v.unkept;
    a->digests += a->receivers.count > 0;
    stg_alert_engine_settle(a->engine, now);
}

/* Tells each receiver of what fires and was told before the receiver wanted it. */
static void alerts_tell_unheard(stg_alerts *a, stg_ns now)
{
    a->catch_up_at = STG_NEVER;
    for (size_t i = 0; i < a->receivers.count; i++)
        if (stg_alert_engine_gather_unheard(a->engine, (unsigned)i))
            tell_one(a, i, 0, now);
    stg_alert_engine_release(a->engine);
}

static bool wants_all(void *ctx, stg_alert alert, uint32_t lane)
{
    (void)ctx;
    (void)alert;
    (void)lane;
    return true;
}

/* The digest of an engine that knows this alone. False: no memory. */
static bool make_digest_of(const stg_alerts *a, stg_alert alert, uint32_t lane,
                           const stg_alert_detail *detail, stg_ns now,
                           stg_digest *d)
{
    stg_alert_options o = stg_alert_options_default();
    stg_alert_engine *e = stg_alert_engine_new(&o);
    stg_alert_audience r = {.place = &a->place};
    stg_digest_source source = {.wants = wants_all,
                                .describe = describe,
                                .ctx = &r,
                                .now = now,
                                .utc = stg_wall_now()};
    bool is_made = false;

    if (e != NULL) {
        stg_alert_engine_raise(e, alert, lane, detail, now);
        is_made = stg_alert_engine_gather(e, true, now) &&
                  stg_digest_make(d, e, &source);
    }
    stg_alert_engine_free(e);
    return is_made;
}

void stg_alerts_tell_owner(stg_alerts *a, const char *owner, stg_alert alert,
                           uint32_t lane, const stg_alert_detail *detail,
                           stg_ns now)
{
    stg_alert_target target = {.name = NULL};
    stg_digest d;

    if (a == NULL || a->is_closing ||
        !make_digest_of(a, alert, lane, detail, now, &d))
        return;
    a->place.describe(a->place.ctx, lane, &target);
    memcpy(d.hub, a->hub, sizeof d.hub);
    stg_alert_owners_tell(&a->owners, &a->o, owner,
                          target.name == NULL ? "" : target.name, &d);
}

static void set_wake(stg_alerts *a)
{
    stg_ns at = stg_ns_min(stg_alert_engine_wake_at(a->engine), a->catch_up_at);

    if (at != stg_deadline_at(&a->wake))
        stg_deadline_set(a->place.deadlines, &a->wake, at);
}

static void wake_up(stg_deadline *d)
{
    stg_alerts *a = STG_HEAP_HOLDER(d, stg_alerts, wake);

    stg_ns now = stg_deadlines_now();

    tell(a, false);
    if (now >= a->catch_up_at)
        alerts_tell_unheard(a, now);
    set_wake(a);
}

/* -- facts ----------------------------------------------------------------- */

/* A target that came again under its name goes on with what was told of the old
 * one. */
static void alerts_return(stg_alerts *a, uint32_t lane, stg_ns now)
{
    stg_alert_target t = {.name = NULL};

    if (!stg_alert_engine_has_gone(a->engine) || !stg_alert_is_lane(lane))
        return;
    a->place.describe(a->place.ctx, lane, &t);
    if (t.name != NULL)
        stg_alert_engine_return(a->engine, lane, t.name, now);
}

void stg_alerts_stored(stg_alerts *a, const stg_change *c, stg_ns now)
{
    if (!stg_alerts_are_on(a))
        return;
    alerts_return(a, c->lane, now);
    if (stg_alert_engine_stored(a->engine, c, now))
        set_wake(a);
}

void stg_alerts_raise(stg_alerts *a, stg_alert alert, uint32_t lane,
                      const stg_alert_detail *detail, stg_ns now)
{
    if (!stg_alerts_are_on(a))
        return;
    alerts_return(a, lane, now);
    stg_alert_engine_raise(a->engine, alert, lane, detail, now);
    set_wake(a);
}

void stg_alerts_clear(stg_alerts *a, stg_alert alert, uint32_t lane, stg_ns now)
{
    if (!stg_alerts_are_on(a))
        return;
    stg_alert_engine_clear(a->engine, alert, lane, now);
    set_wake(a);
}

bool stg_alerts_is_raised(const stg_alerts *a, stg_alert alert, uint32_t lane)
{
    return stg_alerts_are_on(a) &&
           stg_alert_engine_is_raised(a->engine, alert, lane);
}

void stg_alerts_leave(stg_alerts *a, uint32_t lane, stg_ns now)
{
    if (!stg_alerts_are_on(a))
        return;
    stg_alert_engine_leave(a->engine, lane, now);
    set_wake(a);
}

void stg_alerts_forget(stg_alerts *a, uint32_t lane, const char *name,
                       stg_ns now)
{
    if (!stg_alerts_are_on(a))
        return;
    stg_alert_engine_forget(a->engine, lane, name, now);
    set_wake(a);
}

void stg_alerts_lag(stg_alerts *a, uint32_t lane, uint64_t messages, stg_ns age,
                    stg_ns now)
{
    if (!stg_alerts_are_on(a))
        return;
    stg_alert_engine_lag(a->engine, &a->o, lane, messages, age, now);
    set_wake(a);
}

/* until 0: the endpoint shows no certificate (any more), so that none can run
 * out. */
void stg_alerts_certificate(stg_alerts *a, uint32_t lane, uint64_t until,
                            uint64_t utc, stg_ns now)
{
    stg_alert_detail d = {.time = until};

    if (!stg_alerts_are_on(a))
        return;
    if (until > 0 && stg_ns_sub(until, utc) < a->o.certificate)
        stg_alerts_raise(a, STG_ALERT_CERTIFICATE, lane, &d, now);
    else
        stg_alerts_clear(a, STG_ALERT_CERTIFICATE, lane, now);
}

/* Two limits, for the same reason as in stg_alerts_lag(). */
void stg_alerts_retention(stg_alerts *a, uint32_t lane, uint64_t percent,
                          stg_ns now)
{
    enum { HALF = 50, LESS = 40 };
    stg_alert_detail d = {.number = percent};

    if (percent >= HALF)
        stg_alerts_raise(a, STG_ALERT_RETENTION, lane, &d, now);
    else if (percent < LESS)
        stg_alerts_clear(a, STG_ALERT_RETENTION, lane, now);
}

/* -- a trial --------------------------------------------------------------- */

static void tried(void *ctx, const stg_alert_result *results, size_t count)
{
    stg_alerts *a = ctx;

    a->trial = NULL;
    a->tried(a->tried_ctx, results, count);
    if (a->is_closing)
        finish(a);
}

stg_status stg_alerts_try(stg_alerts *a, const char *receiver,
                          stg_alert_trial_fn *done, void *ctx)
{
    stg_alert_trial_options o = {
        .alerts = &a->o, .receiver = receiver, .world = &a->world};

    if (a->trial != NULL || a->is_closing)
        return STG_INVALID;
    a->tried = done;
    a->tried_ctx = ctx;
    return stg_alert_trial_start(&a->trial, &o, tried, a);
}

/* -- other options --------------------------------------------------------- */

void stg_alerts_hub_name(const stg_alert_options *o,
                         char name[STG_DIGEST_NAME_MAX])
{
    char host[256] = "";

    if (o->hub_name == NULL && gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    stg_digest_take_text(name, STG_DIGEST_NAME_MAX,
                         o->hub_name != NULL ? o->hub_name : host);
}

struct stg_alerts_next {
    stg_alert_options o;
    stg_alert_receiver **receivers; /* number: o.receiver_count */
};

/* All that can fail: the new receivers with their secrets. */
stg_status stg_alerts_prepare(stg_alerts *a, const stg_alert_options *o,
                              stg_alerts_next **next, stg_error *err)
{
    stg_alerts_next *n = calloc(1, sizeof *n);
    stg_status status;

    if (n == NULL)
        return fail_memory(err);
    n->o = *o;
    status = stg_alert_receivers_make(&a->receivers, &a->world, o,
                                      &n->receivers, err);
    if (status == STG_OK)
        *next = n;
    else
        stg_alerts_drop(n);
    return status;
}

void stg_alerts_drop(stg_alerts_next *next)
{
    if (next == NULL)
        return;
    if (next->receivers != NULL)
        stg_alert_receivers_drop(next->receivers, next->o.receiver_count);
    free(next);
}

/* Which receivers of the new options were told what, by their destinations. Once
 * receivers are changed the old ones may be gone. */
static void alerts_change_readers(stg_alerts *a, stg_alert_receiver **next,
                                  size_t count)
{
    stg_alert_successor from[STG_ALERT_READERS_MAX];

    if (stg_alert_audience_change(&a->receivers, next, count, from))
        a->has_stranger = true;
    stg_alert_engine_change_readers(a->engine, from, count);
}

void stg_alerts_use(stg_alerts *a, stg_alerts_next *next)
{
    if (a->trial != NULL) // of receivers that are no more
        stg_alert_trial_cancel(a->trial);
    a->world.interval = next->o.interval;
    a->o = next->o;
    alerts_change_readers(a, next->receivers, next->o.receiver_count);
    stg_alert_receivers_replace(&a->receivers, next->receivers,
                                next->o.receiver_count);
    stg_alerts_hub_name(&a->o, a->hub);
    stg_alert_engine_change(a->engine, &a->o, stg_deadlines_now());
    set_wake(a);
    free(next);
}

stg_status stg_alerts_change(stg_alerts *a, const stg_alert_options *o,
                             stg_error *err)
{
    stg_alerts_next *next = NULL;
    stg_status status = stg_alerts_prepare(a, o, &next, err);

    if (next != NULL)
        stg_alerts_use(a, next);
    return status;
}

/* A receiver at a new destination has had no message that `min-interval` could
 * count from. */
void stg_alerts_catch_up(stg_alerts *a, stg_ns now)
{
    stg_ns at;

    if (!stg_alerts_are_on(a) || a->receivers.count == 0)
        return;
    at = stg_ns_add(now, a->o.group_wait);
    if (!a->has_stranger)
        at = stg_ns_max(at, stg_alert_engine_free_at(a->engine));
    a->has_stranger = false;
    a->catch_up_at = stg_ns_min(a->catch_up_at, at);
    set_wake(a);
}

/* -- open and close -------------------------------------------------------- */

static stg_alerts *make(const stg_alerts_place *place)
{
    const stg_alert_options o = stg_alert_options_default();
    stg_alerts *a = calloc(1, sizeof *a);
    uint64_t seed = 0;

    if (a == NULL)
        return NULL;
    a->place = *place;
    a->place.egress = NULL; // lent
    a->catch_up_at = STG_NEVER;
    a->engine = stg_alert_engine_new(&o);
    a->wake.passed = wake_up;
    (void)uv_random(NULL, NULL, &seed, sizeof seed, 0, NULL);
    a->world = (stg_alert_world){
        .loop = place->loop,
        .client = place->client,
        .deadlines = place->deadlines,
        .log = place->log,
        .policy = stg_alert_policy(),
        .rng = stg_rng_seed(seed),
        .idle = receiver_is_idle,
        .ctx = a,
        .mailer = stg_mailer_new(place->loop, place->egress),
    };
    stg_alert_owners_init(&a->owners, &a->world, owners_are_idle, a);
    if (a->world.mailer != NULL && a->engine != NULL)
        return a;
    free_all(a);
    return NULL;
}

stg_status stg_alerts_open(stg_alerts **alerts, const stg_alert_options *o,
                           const stg_alerts_place *place, stg_error *err)
{
    stg_alerts *a = make(place);
    stg_status status;

    if (a == NULL)
        return fail_memory(err);
    status = stg_alerts_change(a, o, err);
    if (status != STG_OK) {
        free_all(a);
        return status;
    }
    *alerts = a;
    return STG_OK;
}

void stg_alerts_use_egress(stg_alerts *a, stg_egress_rule *egress)
{
    stg_mailer_use_egress(a->world.mailer, egress);
}

/* The receivers have had STG_ALERTS_LAST: what is still under way is
 * cancelled. */
static void last_passed(stg_deadline *d)
{
    stg_alerts *a = STG_HEAP_HOLDER(d, stg_alerts, last);

    a->is_closing = false; // all is cancelled before one of them ends it
    stg_alert_receivers_cancel(&a->receivers);
    stg_alert_owners_cancel(&a->owners);
    if (a->trial != NULL)
        stg_alert_trial_cancel(a->trial);
    a->is_closing = true;
    finish(a);
}

/* Sends a last digest and ends the receivers soon: no retry waits, and nothing is
 * put off. a may be gone when this returns. */
void stg_alerts_close(stg_alerts *a, void (*closed)(void *ctx), void *ctx)
{
    if (a == NULL) {
        closed(ctx);
        return;
    }
    stg_deadline_clear(a->place.deadlines, &a->wake);
    tell(a, true);
    if (a->catch_up_at != STG_NEVER)
        alerts_tell_unheard(a, stg_deadlines_now());
    for (size_t i = 0; i < a->receivers.count; i++)
        stg_alert_receiver_end_soon(a->receivers.all[i]);
    stg_alert_owners_end_soon(&a->owners);
    a->is_closing = true;
    a->closed = closed;
    a->closed_ctx = ctx;
    a->last.passed = last_passed;
    stg_deadline_set(a->place.deadlines, &a->last,
                     stg_ns_add(stg_deadlines_now(), STG_ALERTS_LAST));
    finish(a);
}

/* -- a look ---------------------------------------------------------------- */

/* Walks all keys of the engine: for metrics and status, not for every event. */
void stg_alerts_look(const stg_alerts *a, stg_alerts_view *view)
{
    stg_alert_engine_view v = {.keys = 0};
    stg_alert_receiver_view all;

    *view = (stg_alerts_view){.receivers = 0};
    if (a == NULL)
        return;
    stg_alert_receivers_look(&a->receivers, &all);
    stg_alert_engine_look(a->engine, &v);
    for (size_t i = 0; i < STG_ALERT_COUNT; i++)
        if ((a->o.alerts & STG_ALERT_BIT(i)) != 0)
            view->firing[i] = v.firing[i];
    view->digests = a->digests;
    view->sent = all.sent;
    view->failed = all.failed;
    view->given_up = all.given_up;
    view->merged = all.merged;
    view->waiting = all.waiting;
    view->receivers = a->receivers.count;
}

stg_status stg_alerts_look_receiver(const stg_alerts *a, size_t i,
                                    stg_alert_receiver_view *view)
{
    if (a == NULL || i >= a->receivers.count)
        return STG_NOT_FOUND;
    stg_alert_receiver_look(a->receivers.all[i], view);
    return STG_OK;
}
