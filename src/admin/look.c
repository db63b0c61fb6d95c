/* The hub and its targets as JSON: status, targets in pages, one target, and
 * what the caller's token may do.
 *
 * Everything is read on the loop and belongs to one moment, except across
 * pages. Names of members are an interface: docs/openapi.yaml has them, and a
 * test compares it with answers.
 *
 * Times inside the hub are of the loop's clock and go out as wall clock by
 * wall_of(). URLs are masked, for they may have passwords and tokens in
 * them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/stagger.h>

#include "admin/internal.h"
#include "host/wall.h"
#include "http/url.h"
#include "hub/control.h"
#include "ingress/token.h"

/* -- pages ------------------------------------------------------------------- */

/* 0: it was wrong, and the request is answered. Digits only: no sign, no blank,
 * nothing after the number. */
uint32_t stg_admin_limit(stg_ask *a)
{
    enum { USUAL = 100, MOST = 1000 };
    const char *text = stg_ask_option(a, "limit");
    uint32_t limit = 0;

    if (text == NULL)
        return USUAL;
    for (const char *at = text; *at >= '0' && *at <= '9' && limit <= MOST; at++)
        limit = at[1] == '\0' || (at[1] >= '0' && at[1] <= '9')
                    ? limit * 10 + (uint32_t)(*at - '0')
                    : MOST + 1;
    if (limit >= 1 && limit <= MOST)
        return limit;
    stg_ask_refuse(a, 400, "?limit: expected 1 to %d", MOST);
    return 0;
}

stg_ns stg_admin_wall_of(stg_ns at)
{
    stg_ns now = stg_deadlines_now(), wall = stg_wall_now();

    if (at == 0 || at == STG_NEVER)
        return 0;
    return at < now ? stg_ns_sub(wall, now - at) : stg_ns_add(wall, at - now);
}

/* -- the hub ----------------------------------------------------------------- */

enum { STATES = STG_TARGET_STATES };

static json_t *print_target_counts(const stg_hub *h)
{
    uint64_t counts[STATES] = {0};
    json_t *json = json_object();
    stg_lane_view lane;

    for (size_t i = 0; i < h->targets.count; i++) {
        const stg_target *t = h->targets.all[i];
        if (stg_flow_view_lane(h->flow, t->lane, &lane, stg_deadlines_now()) ==
            STG_OK)
            counts[stg_target_state(t, lane.state)]++;
    }
    json_object_set_new(json, "count", stg_json_count(h->targets.count));
    for (size_t i = 0; i < STATES; i++)
        json_object_set_new(json, stg_target_state_name((unsigned)i),
                            stg_json_count(counts[i]));
    return json;
}

static json_t *print_store(const stg_hub *h)
{
    stg_store_view v;

    if (h->store == NULL)
        return json_null();
    stg_store_look(h->store, &v);
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "used_bytes",
                     stg_json_count(v.used), "quota_bytes",
                     stg_json_count(v.quota), "wal_bytes",
                     stg_json_count(v.wal), "message_bytes",
                     stg_json_count(v.message_bytes), "dead_letter_bytes",
                     stg_json_count(v.letter_bytes), "first_position",
                     stg_json_count(v.first), "next_position",
                     stg_json_count(v.next), "keys", stg_json_count(v.keys));
}

static json_t *print_ingress(const stg_hub *h)
{
    stg_ingress_view v;

    stg_ingress_look(h->intake.ingress, &v);
    return json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "connections",
        stg_json_count(v.connections), "requests", stg_json_count(v.requests),
        "accepted", stg_json_count(v.accepted), "repeats",
        stg_json_count(v.repeats), "refused_4xx", stg_json_count(v.refused_4xx),
        "refused_5xx", stg_json_count(v.refused_5xx), "cut",
        stg_json_count(v.cut), "waiting", stg_json_count(v.waiting),
        "pending_bytes", stg_json_count(v.pending));
}

static json_t *print_partition(const stg_source_view *v)
{
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o}", "topic", v->topic,
                     "partition", stg_json_count(v->partition), "next_position",
                     stg_json_count(v->next), "end_position",
                     stg_json_count(v->end), "committed_position",
                     stg_json_count(v->committed), "lag_messages",
                     stg_json_count(stg_ns_sub(v->end, v->next)));
}

static json_t *print_source(const stg_hub *h)
{
    const stg_source *s = h->source;
    json_t *partitions = s->ops->look == NULL ? json_null() : json_array();
    stg_source_view v;

    for (size_t i = 0; s->ops->look != NULL && s->ops->look(s, i, &v); i++)
        json_array_append_new(partitions, print_partition(&v));
    return json_pack("{s:s,s:b,s:o}", "kind", s->ops->name, "is_away",
                     (int)s->is_away, "partitions", partitions);
}

/* Our own network; see flow/lane.h. */
static json_t *print_uplink(const stg_flow_view *v)
{
    return json_pack("{s:b,s:o,s:o}", "is_down", (int)v->is_uplink_down,
                     "down_since",
                     stg_json_time(stg_admin_wall_of(v->uplink_down_at)),
                     "waiting_targets", stg_json_count(v->uplink_lanes));
}

/* Proxies that are away, or refuse the hub. */
static json_t *print_proxies(const stg_hub *h)
{
    json_t *all = json_array();

    for (const stg_hub_proxy *p = NULL; (p = stg_proxies_next(h, p)) != NULL;)
        json_array_append_new(
            all, json_pack(
                     "{s:o,s:o,s:o,s:o}", "proxy", stg_json_text(p->name),
                     "down_since", stg_json_time(stg_admin_wall_of(p->down_at)),
                     "waiting_targets",
                     stg_json_count(stg_flow_view_proxy(h->flow, p->number)),
                     "detail", stg_json_text(p->why)));
    return all;
}

/* Prints the alerts that hold now, by name; they are known without receivers,
 * too. */
static json_t *print_alerts(const stg_hub *h)
{
    json_t *firing = json_object();
    stg_alerts_view v;

    stg_alerts_look(h->watch.alerts, &v);
    for (int i = 0; i < STG_ALERT_COUNT; i++)
        if (v.firing[i] > 0)
            json_object_set_new(firing, stg_alert_name((stg_alert)i),
                                stg_json_count(v.firing[i]));
    return json_pack("{s:o,s:o}", "receivers", stg_json_count(v.receivers),
                     "firing", firing);
}

json_t *stg_admin_print_status(const stg_admin *a)
{
    const stg_hub *h = a->hub;
    const char *state = h->is_broken             ? "broken"
                        : stg_hub_is_stopping(h) ? "stopping"
                                                 : "ready";
    char epoch[24];
    stg_hub_view v;

    stg_hub_look(h, &v);
    snprintf(epoch, sizeof epoch, "%016" PRIx64, h->attempts.epoch);
    return json_pack(
        "{s:s,s:s,s:o,s:o,s:s,s:o,s:o,s:o,s:o,s:{s:o,s:o},s:o,s:o,s:o,s:o,"
        "s:i,s:o,s:o,s:o}",
        "version", STG_VERSION, "epoch", epoch, "started_at",
        stg_json_time(a->started_at), "now", stg_json_time(stg_wall_now()),
        "state", state, "missing", stg_json_text(stg_intake_missing(h)),
        "accepted", stg_json_count(v.accepted), "in_flight",
        stg_json_count(v.flow.in_flight), "window_messages",
        stg_json_count(v.flow.window), "memory", "held_bytes",
        stg_json_count(v.flow.held), "max_bytes",
        stg_json_count(h->settings->memory_max), "targets",
        print_target_counts(h), "store", print_store(h), "ingress",
        print_ingress(h), "source", print_source(h), "replays_running",
        (int)a->replays_running, "uplink", print_uplink(&v.flow),
        "proxies_down", print_proxies(h), "alerts", print_alerts(h));
}

void stg_admin_status(void *admin, stg_ask *ask)
{
    stg_ask_answer_json(ask, 200, stg_admin_print_status(admin));
}

/* Who asks, and what it may: a page has no other way to know which buttons
 * would work. */
void stg_admin_token(void *admin, stg_ask *ask)
{
    static const unsigned all[] = {STG_ROLE_PUBLISH, STG_ROLE_VIEW,
                                   STG_ROLE_OPERATE};
    json_t *roles = json_array();
    const char *who = stg_ask_who(ask);

    (void)admin;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[STG_ROLES_TEXT_MAX];
        if ((stg_ask_roles(ask) & all[i]) != 0)
            json_array_append_new(roles,
                                  json_string(stg_roles_print(all[i], text)));
    }
    stg_ask_answer_json(ask, 200,
                        json_pack("{s:o,s:o}", "name",
                                  stg_json_text(*who == '\0' ? NULL : who),
                                  "roles", roles));
}

/* -- targets ----------------------------------------------------------------- */

static json_t *print_tags(const stg_target *t)
{
    json_t *tags = json_object();

    for (size_t i = 0; t->settings != NULL && i < t->settings->tag_count; i++)
        json_object_set_new(tags, t->settings->tags[i].name,
                            stg_json_text(t->settings->tags[i].value));
    return tags;
}

static const char *const breakers[] = {
    [STG_BREAKER_CLOSED] = "closed",
    [STG_BREAKER_OPEN] = "open",
    [STG_BREAKER_HALF_OPEN] = "half-open",
};

const char *stg_admin_breaker_name(stg_breaker_state state)
{
    return breakers[state];
}

static void add_numbers(json_t *json, const stg_lane_view *l)
{
    const struct {
        const char *name;
        uint64_t number;
    } numbers[] = {
        {"in_flight", l->in_flight},
        {"in_flight_limit", l->limit},
        {"waiting", l->waiting},
        {"parked", l->parked},
        {"replays", l->replays},
        {"routed", l->routed},
        {"delivered", l->delivered},
        {"dead", l->dead},
        {"cancelled", l->cancelled},
        {"base_position", l->base},
        {"next_position", l->next},
        {"lag_messages", l->lag},
        {"retries", l->retries},
        {"openings", l->openings},
        {"budget_refused", l->budget_refused},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(json, numbers[i].name,
                            stg_json_count(numbers[i].number));
}

/* The state of the lane, in flow's words. */
static void add_lane(json_t *json, const stg_lane_view *l)
{
    stg_ns wall = stg_wall_now();

    json_object_set_new(json, "gate_until",
                        stg_json_time(stg_admin_wall_of(l->gate_until)));
    json_object_set_new(json, "is_catching_up",
                        json_boolean(l->is_catching_up));
    json_object_set_new(json, "is_slow_start", json_boolean(l->is_slow_start));
    json_object_set_new(json, "is_lag_exact", json_boolean(l->is_lag_exact));
    json_object_set_new(json, "lag_ms",
                        l->oldest_at == 0 ? json_null()
                                          : stg_json_milliseconds(stg_ns_sub(
                                                wall, l->oldest_at)));
    json_object_set_new(json, "breaker",
                        json_string(stg_admin_breaker_name(l->breaker)));
    json_object_set_new(json, "probe_at",
                        stg_json_time(stg_admin_wall_of(l->probe_at)));
    json_object_set_new(json, "budget_left",
                        l->budget_left == UINT64_MAX
                            ? json_null()
                            : json_real((double)l->budget_left / 1000.0));
    add_numbers(json, l);
}

/* Its access token; null: its requests carry none. */
static json_t *print_token(const stg_target *t)
{
    stg_oauth_view v;

    if (t->token == NULL)
        return json_null();
    stg_oauth_look(t->token, &v);
    return json_pack(
        "{s:b,s:o,s:o}", "is_usable", (int)v.is_usable, "until",
        stg_json_time(v.is_usable ? stg_admin_wall_of(v.until_at) : 0), "cause",
        stg_json_text(*v.cause == '\0' ? NULL : v.cause));
}

/* Both the instant and the age: a client's clock may differ from the hub's. The
 * age is at least a millionth of a millisecond, since 0 is null. */
static void add_failure(json_t *json, const stg_target_view *v)
{
    stg_ns ago = stg_ns_sub(stg_deadlines_now(), v->failed_at);
    char cause[STG_CAUSE_MAX];

    json_object_set_new(json, "last_cause",
                        stg_json_text(stg_target_cause(&v->last, cause)));
    json_object_set_new(json, "last_failure_at",
                        stg_json_time(stg_admin_wall_of(v->failed_at)));
    json_object_set_new(
        json, "last_failure_ms_ago",
        stg_json_milliseconds(v->failed_at == 0 ? 0 : stg_ns_max(ago, 1)));
}

static json_t *print_url(const char *url)
{
    char *masked = stg_url_mask(url);
    json_t *json = masked == NULL ? NULL : stg_json_text(masked);

    free(masked);
    return json;
}

/* As it is applied; null: the settings do not have the target. */
static json_t *print_policy(const stg_target *t)
{
    char text[STG_POLICY_TEXT_MAX];

    if (t->settings == NULL ||
        stg_policy_print(t->settings->common->policy, text) != STG_OK)
        return json_null();
    return json_string(text);
}

/* Looking also notes the state, so that state_since is as exact as the looks are
 * frequent. */
json_t *stg_admin_print_target(const stg_admin *a, size_t i)
{
    stg_target *t = a->hub->targets.all[i];
    stg_target_view v;
    json_t *json;

    if (stg_hub_look_target(a->hub, i, &v) != STG_OK)
        return NULL;
    json = json_pack("{s:s,s:o,s:b,s:b,s:b}", "name", v.name, "url",
                     print_url(v.url), "is_known", (int)v.is_known,
                     "is_paused_by_call", (int)(t->pause != STG_PAUSE_NONE),
                     "is_disabled", (int)(t->pause == STG_PAUSE_DISABLED));
    json_object_set_new(json, "policy", print_policy(t));
    json_object_set_new(json, "state",
                        json_string(stg_target_state_name(stg_target_note_state(
                            t, v.lane.state, stg_deadlines_now()))));
    json_object_set_new(json, "state_since",
                        stg_json_time(stg_admin_wall_of(t->state_since)));
    json_object_set_new(json, "failing_since",
                        stg_json_time(stg_admin_wall_of(t->failing_since)));
    add_lane(json, &v.lane);
    json_object_set_new(json, "token", print_token(t));
    json_object_set_new(json, "attempts", stg_json_count(v.attempts));
    json_object_set_new(json, "failures", stg_json_count(v.failures));
    json_object_set_new(json, "p50_ms", stg_json_milliseconds(v.p50));
    json_object_set_new(json, "p99_ms", stg_json_milliseconds(v.p99));
    add_failure(json, &v);
    json_object_set_new(json, "tags", print_tags(t));
    json_object_set_new(json, "added_by",
                        stg_json_text(stg_target_is_added(t) ? "call"
                                      : t->settings != NULL  ? "settings"
                                                             : NULL));
    return json;
}

/* The state of ?state=; STATES: any; above: there is none. */
static size_t read_state(const stg_ask *ask)
{
    const char *text = stg_ask_option(ask, "state");

    if (text == NULL)
        return STATES;
    for (size_t i = 0; i < STATES; i++)
        if (strcmp(stg_target_state_name((unsigned)i), text) == 0)
            return i;
    return STATES + 1;
}

/* A state of the lane as it is shown: `orphaned` is the target's, and the lane
 * is paused then. */
static bool has_state(const stg_hub *h, size_t i, size_t state)
{
    stg_lane_view lane;

    return state == STATES ||
           (stg_flow_view_lane(h->flow, h->targets.all[i]->lane, &lane,
                               stg_deadlines_now()) == STG_OK &&
            stg_target_state(h->targets.all[i], lane.state) == state);
}

/* `next` is the name of the last target shown. One more is looked for, so that
 * the last page has no `next`. */
static void answer_page(const stg_admin *a, stg_ask *ask, size_t at,
                        size_t state, uint32_t limit)
{
    const stg_hub *h = a->hub;
    json_t *list = json_array();
    const char *next = NULL;

    for (; at < h->targets.count; at++) {
        if (!has_state(h, at, state))
            continue;
        if (json_array_size(list) == limit) {
            json_t *last = json_array_get(list, limit - 1);

            next = json_string_value(json_object_get(last, "name"));
            break;
        }
        if (json_array_append_new(list, stg_admin_print_target(a, at)) != 0)
            break;
    }
    stg_ask_answer_json(ask, 200,
                        json_pack("{s:o,s:s?}", "targets", list, "next", next));
}

bool stg_admin_target_page(const stg_admin *a, stg_ask *ask, size_t *at,
                           uint32_t *limit)
{
    const char *cursor = stg_ask_option(ask, "cursor");

    *at = 0;
    if (cursor != NULL && stg_hub_find_target(a->hub, cursor, at) != STG_OK) {
        stg_ask_refuse(ask, 400,
                       "?cursor: that target is gone; begin with the first "
                       "page again");
        return false;
    }
    *at += cursor != NULL;
    *limit = stg_admin_limit(ask);
    return *limit > 0;
}

void stg_admin_targets(void *admin, stg_ask *ask)
{
    const stg_admin *a = admin;
    size_t state = read_state(ask), at;
    uint32_t limit;

    if (state > STATES) {
        stg_ask_refuse(
            ask, 400,
            "?state: expected live, throttled, circuit-open, shedding, "
            "paused, orphaned or removing");
        return;
    }
    if (stg_admin_target_page(a, ask, &at, &limit))
        answer_page(a, ask, at, state, limit);
}

void stg_admin_refuse_name(const stg_admin *a, stg_ask *ask, const char *name)
{
    stg_error err;

    (void)stg_hub_refuse_name(a->hub, name, &err);
    stg_ask_refuse(ask, 404, "%s", err.text);
}

void stg_admin_target(void *admin, stg_ask *ask)
{
    const stg_admin *a = admin;
    size_t i;

    if (stg_hub_find_target(a->hub, stg_ask_word(ask, 0), &i) == STG_OK)
        stg_ask_answer_json(ask, 200, stg_admin_print_whole_target(a, i, ask));
    else
        stg_admin_refuse_name(a, ask, stg_ask_word(ask, 0));
}
