/* Feeds the alerts: events are passed on when they happen, and slow quantities
 * (lag, retention, certificates) are read from some targets a turn, in rounds.
 *
 * A round visits every target once and begins STG_WATCH_PAUSE after the one
 * before it began, at the earliest; sooner after a change of targets or of the
 * settings. It says anew what holds of each, so that no alert depends on an event
 * that nobody heard: a target that has left has no alerts, and a receiver that
 * came hears of what holds. The deadline is set only while something happens or
 * waits, so an idle hub sleeps. All on the loop's thread. */
#include "hub/parts.h"

#include <string.h>

#include "base/hash.h"
#include "host/wall.h"
#include "hub/hub_internal.h"

enum { LOOKS_MAX = 1000 }; /* targets a turn: some 100 us */

static const stg_ns TURN_PAUSE = 10 * STG_MS;
static const stg_ns RENEW_PAUSE = STG_S; /* between rounds, if targets change */

/* -- what alerts ask ------------------------------------------------------- */

static void describe(void *ctx, uint32_t lane, stg_alert_target *target)
{
    const stg_watch *w = ctx;
    const stg_target *t = stg_targets_at(&w->hub->targets, lane);
    stg_ns now = stg_deadlines_now();
    stg_lane_view v;

    *target = (stg_alert_target){.name = t != NULL ? t->name : NULL,
                                 .is_replaying =
                                     t != NULL && stg_recovery_is_wanted(t)};
    if (stg_flow_view_lane(w->hub->flow, lane, &v, now) != STG_OK)
        return;
    target->has_lane = true;
    target->state = v.state;
    target->waiting = stg_ns_add(v.waiting, v.lag);
    target->parked = v.parked;
    if (v.state == STG_LANE_CIRCUIT_OPEN && v.probe_at > now)
        target->gate_until = stg_wall_now() + (v.probe_at - now);
}

static bool has_tag(void *ctx, uint32_t lane, const char *name,
                    const char *value)
{
    const stg_watch *w = ctx;
    const stg_target *t = stg_targets_at(&w->hub->targets, lane);

    if (t == NULL || t->settings == NULL)
        return false;
    for (size_t i = 0; i < t->settings->tag_count; i++) {
        const stg_tag_setting *tag = &t->settings->tags[i];

        if (strcmp(tag->name, name) == 0 && strcmp(tag->value, value) == 0)
            return true;
    }
    return false;
}

/* -- what is looked at ----------------------------------------------------- */

/* How much of what the log may keep is kept for a lane: of the time, or of the
 * half of the quota, which its messages fill as far as positions tell. */
static uint64_t percent_kept(const stg_watch *w, const stg_lane_view *v,
                             const stg_store_view *store, stg_ns age)
{
    const stg_settings *s = w->hub->settings;
    uint64_t of_time = age / (s->store.retention / 100);
    uint64_t all = stg_ns_sub(store->next, store->first), bytes;

    if (all == 0 || store->next <= v->base)
        return of_time;
    // In mebibytes and thousandths nothing overflows.
    bytes = (store->message_bytes >> 20) *
            (stg_ns_min(store->next - v->base, all) * 1000 / all) / 1000;
    return stg_ns_max(of_time, bytes * 100 / stg_ns_max(store->quota >> 21, 1));
}

/* What shows none any more, since a reload, has none to run out. */
static void look_at_certificate(stg_watch *w, const stg_target *t, uint64_t utc,
                                stg_ns now)
{
    stg_endpoint_view e = {.is_tls = false};
    int64_t until;

    if (t->endpoint != NULL)
        stg_endpoint_look(t->endpoint, &e);
    until = e.certificate_until;
    // Our own runs out as well.
    if (e.own_certificate_until > 0 &&
        (until == 0 || e.own_certificate_until < until))
        until = e.own_certificate_until;
    if (until > 0 || !e.is_tls)
        stg_alerts_certificate(w->alerts, t->lane, (uint64_t)until * STG_S, utc,
                               now);
}

/* The cause of the last failure is the one that opened a breaker, or disabled a
 * target. t may be NULL. */
static stg_alert_detail find_cause(const stg_target *t)
{
    stg_alert_detail d = {.has_cause = false};

    if (t != NULL && t->last.fault != STG_FAULT_NONE) {
        d.has_cause = true;
        d.cause = stg_alert_cause_of(&t->last);
    }
    return d;
}

/* Says whether a condition of a target holds; what was said already is not said
 * again, so that its details stay. */
static void watch_set(stg_watch *w, stg_alert alert, const stg_target *t,
                      bool holds, const stg_alert_detail *d, stg_ns now)
{
    if (!holds)
        stg_alerts_clear(w->alerts, alert, t->lane, now);
    else if (!stg_alerts_is_raised(w->alerts, alert, t->lane))
        stg_alerts_raise(w->alerts, alert, t->lane, d, now);
}

static uint64_t watch_hash_url(const stg_target *t)
{
    static const stg_hash_seed seed = {{0, 0}};

    return stg_hash(&seed, t->url, strlen(t->url));
}

/* The answer of another URL says nothing about this one. */
static bool watch_is_gone(const stg_target *t)
{
    return t->is_gone && t->gone_url == watch_hash_url(t);
}

/* Says what holds of a target by what it is now, whatever was heard of it before.
 * What only attempts can find out is not known of a paused target. */
static void watch_judge(stg_watch *w, const stg_target *t, stg_lane_state state,
                        stg_ns now)
{
    bool is_tried = state != STG_LANE_PAUSED && state != STG_LANE_REMOVING;
    const char *why = stg_oauth_why(t);
    stg_alert_detail by_cause = find_cause(t), token = {.text = why},
                     none = {.number = 0};

    watch_set(w, STG_ALERT_BREAKER, t,
              state == STG_LANE_CIRCUIT_OPEN || state == STG_LANE_SHEDDING,
              &by_cause, now);
    watch_set(w, STG_ALERT_DISABLED, t, t->pause == STG_PAUSE_DISABLED,
              &by_cause, now);
    watch_set(w, STG_ALERT_GONE, t, is_tried && watch_is_gone(t), &none, now);
    watch_set(w, STG_ALERT_TOKEN, t, is_tried && why != NULL, &token, now);
}

static void look_at(stg_watch *w, stg_target *t, const stg_store_view *store,
                    uint64_t utc, stg_ns now)
{
    stg_lane_view v;
    uint64_t behind;
    stg_ns age;

    if (stg_hub_look_lane(w->hub, t->lane, &v, now) != STG_OK)
        return;
    if (t->settings == NULL) {
        t->is_gone = false;
        stg_alerts_leave(w->alerts, t->lane, now);
        return;
    }
    watch_judge(w, t, v.state, now);
    if (v.state != STG_LANE_PAUSED && v.state != STG_LANE_REMOVING) {
        w->is_direct = w->is_direct || t->settings->common->proxy == NULL;
        stg_proxies_see(w->hub, t);
    }
    age = v.oldest_at > 0 ? stg_ns_sub(utc, v.oldest_at) : 0;
    behind = stg_ns_add(v.waiting, v.lag);
    w->is_busy = w->is_busy || behind > 0 || v.in_flight > 0;
    stg_alerts_lag(w->alerts, t->lane, behind, age, now);
    stg_alerts_retention(w->alerts, t->lane, percent_kept(w, &v, store, age),
                         now);
    look_at_certificate(w, t, utc, now);
}

/* Whether targets or settings are others than at the last round. */
static bool watch_is_renewed(const stg_watch *w)
{
    return w->settings != w->hub->settings ||
           w->changes != w->hub->targets.changes;
}

/* Says whether our network, or a proxy, is down. Where all targets of it are paused
 * or have left nobody finds out that it is back. */
static void watch_judge_ways(stg_watch *w, stg_ns now)
{
    uint32_t uplink = STG_ALERT_LANE_OF(STG_TROUBLE_UPLINK);
    stg_flow_view v;

    stg_flow_view_all(w->hub->flow, &v, now);
    if (!v.is_uplink_down || !w->is_direct)
        stg_watch_store(w, STG_TROUBLE_UPLINK, NULL, now);
    else if (!stg_alerts_is_raised(w->alerts, STG_ALERT_STORE, uplink))
        stg_watch_store(w, STG_TROUBLE_UPLINK, "", now);
    stg_proxies_end_round(w->hub, now);
}

/* When the next round may begin. */
static stg_ns watch_next_at(const stg_watch *w)
{
    return stg_ns_add(w->looked_at,
                      watch_is_renewed(w) ? RENEW_PAUSE : STG_WATCH_PAUSE);
}

/* Begins the next round only if a target of this one had something that waits;
 * else stg_watch_note() does, at the next event. After a change of targets or
 * settings all is said now that holds, and receivers hear what is new to them. */
static void end_round(stg_watch *w, stg_ns now)
{
    w->at = 0;
    watch_judge_ways(w, now);
    if (w->is_renewing)
        stg_alerts_catch_up(w->alerts, now);
    if (w->is_busy || watch_is_renewed(w))
        stg_deadline_set(&w->hub->deadlines, &w->look, watch_next_at(w));
}

static void watch_begin_round(stg_watch *w, stg_ns now)
{
    w->looked_at = now;
    w->is_busy = w->is_direct = false;
    stg_proxies_begin_round(w->hub);
    w->is_renewing = watch_is_renewed(w);
    w->settings = w->hub->settings;
    w->changes = w->hub->targets.changes;
}

/* Reads at most LOOKS_MAX targets, so that a turn of the loop stays short with
 * many thousands of them. */
static void look(stg_deadline *d)
{
    stg_watch *w = STG_HEAP_HOLDER(d, stg_watch, look);
    const stg_targets *all = &w->hub->targets;
    stg_ns now = stg_deadlines_now();
    uint64_t utc = stg_wall_now();
    stg_store_view store;

    if (stg_hub_is_closing(w->hub) || w->hub->is_broken)
        return;
    if (w->at == 0)
        watch_begin_round(w, now);
    stg_store_look(w->hub->store, &store);
    for (size_t i = 0; i < LOOKS_MAX && w->at < all->count; i++)
        look_at(w, all->all[w->at++], &store, utc, now);
    if (w->at < all->count)
        stg_deadline_set(&w->hub->deadlines, d, stg_ns_add(now, TURN_PAUSE));
    else
        end_round(w, now);
}

void stg_watch_renew(stg_watch *w)
{
    w->settings = NULL;
}

void stg_watch_note(stg_watch *w, stg_ns now)
{
    bool is_waiting = stg_deadline_at(&w->look) != STG_NEVER;

    // A round that is under way ends first, and begins the next one.
    if (!stg_alerts_are_on(w->alerts) || w->at > 0 ||
        (is_waiting && !watch_is_renewed(w)))
        return;
    stg_deadline_set(&w->hub->deadlines, &w->look,
                     stg_ns_max(now, watch_next_at(w)));
}

/* -- facts ----------------------------------------------------------------- */

/* Whether the settings, or a call, have the target of the lane: nobody is told of
 * another one. */
static bool watch_knows(const stg_watch *w, uint32_t lane)
{
    const stg_target *t = stg_targets_at(&w->hub->targets, lane);

    return t != NULL && t->settings != NULL;
}

void stg_watch_stored(stg_watch *w, const stg_group *g, stg_ns now)
{
    if (g == NULL || !stg_alerts_are_on(w->alerts))
        return;
    for (size_t i = 0; i < g->change_count; i++)
        if (watch_knows(w, g->changes[i].lane))
            stg_alerts_stored(w->alerts, &g->changes[i], now);
}

static void raise_by_cause(stg_watch *w, stg_alert alert, uint32_t lane,
                           const stg_target *t, stg_ns now)
{
    stg_alert_detail d = find_cause(t);

    stg_alerts_raise(w->alerts, alert, lane, &d, now);
}

/* An attempt that was under way may open the breaker of a target that was paused, or
 * has left. */
static void watch_opened(stg_watch *w, const stg_target *t, stg_ns now)
{
    stg_lane_view v;

    if (t != NULL && t->settings != NULL &&
        stg_flow_view_lane(w->hub->flow, t->lane, &v, now) == STG_OK &&
        v.state != STG_LANE_PAUSED && v.state != STG_LANE_REMOVING)
        raise_by_cause(w, STG_ALERT_BREAKER, t->lane, t, now);
}

void stg_watch_tell(stg_watch *w, const stg_action *a, stg_ns now)
{
    switch (a->tell.what) {
    case STG_TELL_OPENED:
        watch_opened(w, stg_targets_at(&w->hub->targets, a->lane), now);
        break;
    case STG_TELL_CLOSED:
        stg_alerts_clear(w->alerts, STG_ALERT_BREAKER, a->lane, now);
        break;
    case STG_TELL_UPLINK_DOWN:
        stg_watch_store(w, STG_TROUBLE_UPLINK, "", now);
        break;
    case STG_TELL_UPLINK_UP:
        stg_watch_store(w, STG_TROUBLE_UPLINK, NULL, now);
        break;
    default:
        break; // no alert of its own
    }
}

void stg_watch_store(stg_watch *w, stg_alert_trouble what, const char *why,
                     stg_ns now)
{
    stg_alert_detail d = {.text = why};

    if (why != NULL)
        stg_alerts_raise(w->alerts, STG_ALERT_STORE, STG_ALERT_LANE_OF(what),
                         &d, now);
    else
        stg_alerts_clear(w->alerts, STG_ALERT_STORE, STG_ALERT_LANE_OF(what),
                         now);
}

/* Raised once, however many answers of 410 follow. The answer may be of a target
 * that has left meanwhile. */
void stg_watch_gone(stg_watch *w, stg_target *t, stg_ns now)
{
    static const stg_alert_detail none = {.number = 0};

    if (watch_is_gone(t) || t->settings == NULL)
        return;
    t->is_gone = true;
    t->gone_url = watch_hash_url(t);
    stg_alerts_raise(w->alerts, STG_ALERT_GONE, t->lane, &none, now);
}

void stg_watch_back(stg_watch *w, stg_target *t, stg_ns now)
{
    t->is_gone = false;
    stg_alerts_clear(w->alerts, STG_ALERT_GONE, t->lane, now);
}

/* At once, and not with the next round. Flow is not there yet as the hub starts. */
void stg_watch_paused(stg_watch *w, const stg_target *t, stg_ns now)
{
    stg_lane_view v;

    if (t->settings != NULL && stg_alerts_are_on(w->alerts) &&
        stg_flow_view_lane(w->hub->flow, t->lane, &v, now) == STG_OK)
        watch_judge(w, t, v.state, now);
}

void stg_watch_token(stg_watch *w, const stg_target *t, const char *why,
                     stg_ns now)
{
    stg_alert_detail d = {.text = why};
    bool is_paused = t->settings == NULL || t->settings->is_paused ||
                     t->pause != STG_PAUSE_NONE;

    if (why != NULL && !is_paused)
        stg_alerts_raise(w->alerts, STG_ALERT_TOKEN, t->lane, &d, now);
    else
        stg_alerts_clear(w->alerts, STG_ALERT_TOKEN, t->lane, now);
}

void stg_watch_tell_owner(stg_watch *w, const stg_target *t, stg_ns now)
{
    stg_alert_detail d = find_cause(t);

    if (t->settings->owner != NULL)
        stg_alerts_tell_owner(w->alerts, t->settings->owner, STG_ALERT_DISABLED,
                              t->lane, &d, now);
}

void stg_watch_forget(stg_watch *w, uint32_t lane, stg_ns now)
{
    const stg_target *t = stg_targets_at(&w->hub->targets, lane);

    stg_alerts_forget(w->alerts, lane, t != NULL ? t->name : "?", now);
}

/* -- open and close -------------------------------------------------------- */

stg_status stg_watch_open(stg_watch *w, stg_hub *hub,
                          const stg_alert_options *o, stg_error *err)
{
    stg_alerts_place place = {.loop = hub->loop,
                              .client = hub->client,
                              .deadlines = &hub->deadlines,
                              .log = hub->log,
                              .egress = &hub->settings->egress,
                              .describe = describe,
                              .has_tag = has_tag,
                              .ctx = w};

    w->hub = hub;
    w->look.passed = look;
    return stg_alerts_open(&w->alerts, o, &place, err);
}

void stg_watch_close(stg_watch *w, void (*closed)(void *ctx), void *ctx)
{
    stg_alerts *alerts = w->alerts;

    w->alerts = NULL;
    if (w->hub != NULL)
        stg_deadline_clear(&w->hub->deadlines, &w->look);
    stg_alerts_close(alerts, closed, ctx);
}
