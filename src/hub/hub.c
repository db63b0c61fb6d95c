/* A hub's life: opens its parts in order of dependence, starts flow from the
 * stored cursors, and closes the parts with users before what they use.
 *
 * Opening blocks; everything else is on the loop's thread. `handles` counts
 * the parts whose close callback is still to come, and the hub has ended at 0.
 * The end begins in stg_hub_finish(), once flow has stopped, or the store
 * broke, and no attempt is under way. */
#include "hub/hub.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "config/load.h"
#include "config/targets.h"
#include "host/wall.h"
#include "hub/hub_internal.h"
#include "store/rewinds.h"

static const uint64_t MEMORY_LEAST = UINT64_C(8) << 20,
                      MEMORY_MOST = UINT64_C(1) << 40;

static stg_status check(const stg_hub_options *hub, stg_error *err)
{
    const stg_settings *o = hub->settings;

    if (o->target_count == 0 && o->targets_elsewhere > 0 &&
        o->shard.mode == STG_SHARD_TARGETS)
        return stg_hub_refuse(err, STG_INVALID,
                              "there is no target whose name falls to shard "
                              "%" PRIu32 " of %" PRIu32
                              "; expected fewer shards",
                              o->shard.index, o->shard.count);
    if (o->memory_max < MEMORY_LEAST || o->memory_max > MEMORY_MOST)
        return stg_hub_refuse(err, STG_INVALID,
                              "memory: expected 8 MiB to 1 TiB");
    if (o->drain > STG_DAY)
        return stg_hub_refuse(err, STG_INVALID, "drain: expected 1d at most");
    return STG_OK;
}

/* -- flow ------------------------------------------------------------------ */

static void *allocate(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void release(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

const stg_memory stg_hub_memory = {.allocate = allocate, .release = release};

/* Who reads times in the store and in this machine's log side by side is to
 * know how far they are apart. */
static void tell_clock(const stg_hub *h, stg_ns store, stg_ns wall)
{
    bool is_ahead = wall > store;
    stg_ns apart = is_ahead ? wall - store : store - wall;

    if (apart < STG_S)
        return;
    STG_LOG(h->log, STG_LOG_WARN, "store-clock",
            stg_field_number("seconds", apart / STG_S),
            stg_field_text("detail",
                           is_ahead ? "this machine's clock is ahead of the "
                                      "database's, whose times are stored"
                                    : "this machine's clock is behind the "
                                      "database's, whose times are stored"));
}

/* Flow has its wall clock from the store, which is the database's where hubs
 * share one: their due times must agree. */
static stg_status make_flow(stg_hub *h, const stg_settings *o, stg_error *err)
{
    stg_flow_options f = stg_settings_flow(o);
    int error = uv_random(NULL, NULL, &f.seed, sizeof f.seed, 0, NULL);

    if (error != 0)
        return stg_hub_refuse(err, STG_IO, "the system has no random numbers");
    f.wall_at = stg_store_now(h->store);
    tell_clock(h, f.wall_at, stg_wall_now());
    return stg_flow_new(&h->flow, &stg_hub_memory, &f, stg_deadlines_now(),
                        err);
}

stg_lane_options stg_hub_lane(const stg_hub *h, stg_target *t)
{
    stg_lane_options l;

    t->hub = h;
    t->known_count = 0; // of other settings
    stg_hub_filter(h, t);
    if (t->settings != NULL) {
        l = stg_settings_lane(t->settings);
        stg_hub_filter_lane(t, &l);
        l.is_paused = l.is_paused || t->pause != STG_PAUSE_NONE;
    } else {
        l = stg_lane_options_default(&h->policy);
        l.is_paused = true;
    }
    l.is_known = t->is_known;
    l.is_gated = stg_oauth_is_gated(t);
    return l;
}

stg_status stg_target_refuse_memory(stg_error *err)
{
    return stg_hub_refuse(err, STG_IO,
                          "there is no memory for one more target");
}

stg_status stg_hub_begin_lane(stg_hub *h, stg_target *t, stg_error *err)
{
    bool is_known = stg_store_has_lane(h->store, t->name);
    stg_lane_options l;
    uint32_t lane;
    stg_status status = stg_store_lane(h->store, t->name, t->url, &lane, err);

    if (status != STG_OK)
        return status;
    t->is_known = is_known;
    // By another hub, before this one had the target.
    t->pause = stg_store_paused(h->store, lane);
    l = stg_hub_lane(h, t);
    if (!stg_targets_put(&h->targets, t, lane))
        return stg_target_refuse_memory(err);
    status = stg_flow_add_lane(h->flow, lane, &l, stg_deadlines_now(), err);
    if (status != STG_OK)
        stg_targets_unput(&h->targets, t);
    return status;
}

static stg_status add_lanes(stg_hub *h, stg_error *err)
{
    stg_status status = STG_OK;

    for (size_t i = 0; i < h->targets.count && status == STG_OK; i++) {
        stg_target *t = h->targets.all[i];
        stg_lane_options l = stg_hub_lane(h, t);

        if (t->settings == NULL)
            stg_tell_unknown(h, t);
        if (l.is_paused) // from before the hub started
            t->state = stg_target_state(t, STG_LANE_PAUSED);
        status =
            stg_flow_add_lane(h->flow, t->lane, &l, stg_deadlines_now(), err);
    }
    return status;
}

typedef struct restoring {
    stg_hub *hub;
    stg_status status;
} restoring;

/* Keeps the first error: the store calls this for every cursor and cannot be
 * stopped. */
static void restore(void *ctx, const stg_cursor *c)
{
    restoring *r = ctx;

    if (stg_targets_at(&r->hub->targets, c->lane) == NULL)
        return; // it was forgotten
    r->hub->dead_before += c->dead;
    if (r->status == STG_OK)
        r->status = stg_flow_restore(r->hub->flow, c);
}

/* The order matters: the source's partitions and the lanes must exist before
 * cursors are restored into them. */
static stg_status start_flow(stg_hub *h, stg_error *err)
{
    restoring r = {.hub = h};
    stg_status status = make_flow(h, h->settings, err);

    if (status != STG_OK)
        return status;
    status = stg_hub_source_restore(h, err);
    if (status == STG_OK)
        status = add_lanes(h, err);
    // Those of a database come with the partitions that are claimed.
    if (status == STG_OK && h->source_part.host.keeps_rows)
        status = stg_store_cursors(h->store, restore, &r, err);
    if (status == STG_OK && r.status != STG_OK)
        return stg_hub_refuse(err, r.status,
                              "the stored cursors cannot be used");
    if (status == STG_OK)
        stg_flow_start(h->flow, stg_deadlines_now());
    if (status == STG_OK)
        stg_store_start_rewinds(h->store);
    return status;
}

/* -- close ----------------------------------------------------------------- */

/* One part is closed. The operator's calls close last, because their audit log
 * records what the other parts ended with. */
static void part_closed(void *ctx)
{
    stg_hub *h = ctx;

    if (--h->handles > 0)
        return;
    // What others ended with may have been a line for its log.
    if (h->calls_part != NULL && h->phase < STG_HUB_CLOSING_CALLS) {
        h->phase = STG_HUB_CLOSING_CALLS;
        h->handles = 1;
        h->calls->close(h->calls_part, part_closed, h);
        return;
    }
    if (!h->is_open)
        return;
    stg_tell_end(h);
    if (h->ended != NULL)
        h->ended(h->ctx, &h->end);
}

/* What became a dead letter in the time of this hub. */
static uint64_t count_dead(const stg_hub *h)
{
    uint64_t dead = 0;
    stg_lane_view v;

    for (size_t i = 0; i < h->targets.count; i++)
        if (stg_flow_view_lane(h->flow, h->targets.all[i]->lane, &v,
                               stg_deadlines_now()) == STG_OK)
            dead += v.dead;
    return dead > h->dead_before ? dead - h->dead_before : 0;
}

/* Users before what they use: intake and source stop giving work, then metrics
 * and client, then the store. part_closed() counts them. */
static void close_all(void *hub)
{
    stg_hub *h = hub;

    h->phase = STG_HUB_CLOSING;
    stg_reload_close(h);
    stg_target_control_close(h);
    stg_target_changes_close(h);
    stg_notify_close(&h->notify);
    stg_recorder_close(&h->recorder);
    stg_hub_receipts_close(&h->receipts, part_closed, h);
    stg_deadline_clear(&h->deadlines, &h->failing);
    if (h->is_open)
        h->end.dead = count_dead(h);
    stg_intake_close(&h->intake, part_closed, h);
    stg_hub_source_close(h, part_closed, h);
    stg_targets_close(&h->targets);
    stg_metrics_close(&h->metrics, part_closed, h);
    if (h->client != NULL)
        stg_client_close(h->client, part_closed, h);
    if (h->store != NULL)
        stg_store_close(h->store, part_closed, h);
    h->client = NULL;
    h->store = NULL;
    stg_shell_close(h, part_closed, h);
}

static void close_tokens(void *hub)
{
    stg_oauth_close(hub, close_all, hub);
}

/* They need the client. */
static void close_spans(void *hub)
{
    stg_hub *h = hub;

    stg_spans_close(&h->spans, close_tokens, h);
}

/* Safe to call after every event that may be the last one: it begins the end
 * only once, and only when nothing is under way. */
void stg_hub_finish(stg_hub *h)
{
    bool is_idle = stg_attempts_are_over(&h->attempts);
    bool is_over = h->phase == STG_HUB_STOPPED && !h->intake.is_stopping;

    if (h->phase >= STG_HUB_ALERTING || !is_idle || !(is_over || h->is_broken))
        return;
    // What has happened is still told to people, within a few seconds.
    h->phase = STG_HUB_ALERTING;
    stg_watch_close(&h->watch, close_spans, h);
}

/* -- open ------------------------------------------------------------------ */

/* The store may call back before there is a flow: stg_shell_retain() and the
 * calls of other hubs check for that. */
static stg_status open_store(stg_hub *h, const stg_settings *o, stg_error *err)
{
    stg_store_options s = stg_store_options_default(o->store.path);
    stg_status status;

    s.quota = o->store.quota;
    s.retention = o->store.retention;
    s.keep = o->store.keep == STG_NEVER ? 0 : o->store.keep;
    s.is_refusing = o->store.full == STG_FULL_REFUSE;
    s.keys_kept = o->store.keys_kept;
    s.keys_max = o->store.keys_max;
    s.letters = o->letters.path;
    s.dead = o->dead;
    s.receipts.keep = o->receipts.keep == STG_NEVER ? 0 : o->receipts.keep;
    s.receipts.quota = o->receipts.quota;
    s.shard_of = o->shard.count;
    s.shard = o->shard.index - 1;
    s.broken = stg_shell_break;
    s.retaining = stg_shell_retain;
    s.troubled = stg_shell_trouble;
    s.replayed = stg_shell_replay;
    s.room = stg_shell_room;
    s.knows = stg_shell_knows;
    s.is_paused = stg_shell_is_paused;
    s.wants = stg_shell_wants;
    s.wants_body = stg_shell_wants_body;
    s.order = stg_rewind_order;
    s.next = stg_rewind_next;
    s.rewound = stg_rewind_ended;
    s.paused = stg_target_control_paused;
    s.forgotten = stg_target_control_forgotten;
    s.targets = stg_target_changes_seen;
    s.ctx = h;
    status = stg_hub_source_make(h, o, &s, err);
    if (status == STG_OK)
        status = stg_store_open(&h->store, h->loop, &s, err);
    h->handles += h->store != NULL;
    return status == STG_OK ? stg_hub_receipts_open(&h->receipts, h, err)
                            : status;
}

/* Of those of the settings. */
static stg_status open_tokens(stg_hub *h, stg_error *err)
{
    stg_status status = STG_OK;

    for (size_t i = 0; i < h->targets.known && status == STG_OK; i++)
        status = stg_oauth_give(h, h->targets.all[i], err);
    return status;
}

/* What can be wrong with the settings is found before a file is made. */
static stg_status open_parts(stg_hub *h, stg_settings *o, stg_error *err)
{
    stg_status status = stg_settings_complete(o, err);

    if (status == STG_OK)
        status =
            stg_lane_policy_read(&h->policy, NULL, o->target_count, 0, 0, err);
    if (status == STG_OK)
        status = stg_target_keys_open(h, err);
    if (status == STG_OK)
        status = stg_client_new(&h->client, h->loop, err);
    h->handles += h->client != NULL;
    if (status == STG_OK)
        stg_client_set_resolver(h->client, o->resolver);
    if (status == STG_OK)
        status = stg_client_set_egress(h->client, &o->egress, err);
    if (status == STG_OK)
        status = stg_targets_open(&h->targets, h->client, o, err);
    if (status == STG_OK)
        status = open_tokens(h, err);
    if (status == STG_OK)
        status = stg_watch_open(&h->watch, h, &o->alerts, err);
    if (status == STG_OK)
        status = stg_spans_open(&h->spans, h, err);
    if (status != STG_OK || h->is_rehearsed)
        return status;
    status = open_store(h, h->fixed, err);
    if (status == STG_OK)
        stg_attempts_init(&h->attempts, h, stg_store_epoch(h->store),
                          h->fixed->trace);
    if (status == STG_OK)
        status = stg_target_changes_open(h, err);
    if (status == STG_OK)
        status = stg_targets_find_lanes(&h->targets, h->store, &o->shard, err);
    if (status == STG_OK)
        status = start_flow(h, err);
    if (status == STG_OK && h->calls != NULL)
        status = h->calls->open(&h->calls_part, h, h->fixed->audit, err);
    if (status == STG_OK)
        status = stg_intake_open(&h->intake, h, o, &h->handles, err);
    if (status == STG_OK && h->calls != NULL && h->intake.ingress != NULL)
        h->calls->serve(h->calls_part, h->intake.ingress);
    if (status == STG_OK)
        status = stg_hub_source_open(h, &h->handles, err);
    return status;
}

static stg_hub *make(uv_loop_t *loop, const stg_hub_options *o)
{
    stg_hub *h = calloc(1, sizeof *h);

    if (h == NULL)
        return NULL;
    h->verdicts = stg_verdicts_new();
    if (h->verdicts == NULL) {
        free(h);
        return NULL;
    }
    h->loop = loop;
    h->log = o->log;
    h->settings = o->settings;
    h->calls = o->calls;
    h->source = o->source;
    stg_list_init(&h->oauth.tokens);
    stg_list_init(&h->proxies);
    stg_attempts_init(&h->attempts, h, 0, STG_TRACE_OFF);
    stg_shell_open(h);
    stg_measure_open(h);
    stg_recorder_open(&h->recorder, h);
    h->handles = 2; // the shell and the metrics
    return h;
}

/* Opens all parts. What only a restart changes is copied first, so that texts which
 * parts keep stay over a reload. On an error the settings have their own again. */
static stg_status hub_open_settings(stg_hub *h, stg_error *err)
{
    const stg_settings given = *h->settings;
    stg_status status;

    h->fixed = stg_settings_copy_fixed(h->settings);
    if (h->fixed == NULL)
        return stg_hub_refuse(err, STG_IO, "out of memory");
    stg_settings_use_fixed(h->settings, h->fixed);
    status = open_parts(h, h->settings, err);
    if (status != STG_OK)
        stg_settings_use_fixed(h->settings, &given);
    return status;
}

/* Closes all that was opened, by running the loop; a store file that was made just
 * now is removed, and the settings stay the caller's. */
static void hub_give_up(stg_hub *h)
{
    if (h->store != NULL)
        stg_store_discard(h->store);
    stg_watch_close(&h->watch, close_spans, h); // at once: nothing happened
    while (h->handles > 0)
        uv_run(h->loop, UV_RUN_ONCE);
    h->settings = NULL; // the caller has them still
    stg_hub_free(h);
}

stg_status stg_hub_rehearse(uv_loop_t *loop, const stg_hub_options *o,
                            stg_error *err)
{
    const stg_settings given = *o->settings;
    stg_status status = check(o, err);
    stg_hub *h = status == STG_OK ? make(loop, o) : NULL;

    if (status != STG_OK)
        return status;
    if (h == NULL)
        return stg_hub_refuse(err, STG_IO, "out of memory");
    h->is_rehearsed = true;
    status = hub_open_settings(h, err);
    if (status == STG_OK)
        status = stg_hub_source_check(h, o->settings, err);
    if (status == STG_OK)
        status = stg_intake_check(o->settings, err);
    stg_settings_use_fixed(o->settings, &given);
    hub_give_up(h);
    return status;
}

/* On an error everything that was opened is closed before this returns. */
stg_status stg_hub_open(stg_hub **hub, uv_loop_t *loop,
                        const stg_hub_options *o, stg_error *err)
{
    stg_status status = check(o, err);
    stg_hub *h;

    if (status != STG_OK)
        return status;
    h = make(loop, o);
    if (h == NULL)
        return stg_hub_refuse(err, STG_IO, "there is no memory for a hub");
    status = hub_open_settings(h, err);
    if (status != STG_OK) {
        hub_give_up(h);
        return status;
    }
    h->is_open = true;
    h->phase = STG_HUB_SERVING;
    h->ended = o->ended;
    h->ctx = o->ctx;
    stg_target_changes_start(h);
    stg_disable_open(h);
    stg_tell_ready(h, stg_store_name(h->store));
    if (o->is_service)
        stg_service_open(h);
    stg_shell_note(h);
    *hub = h;
    return STG_OK;
}

/* Nothing new comes in, and flow begins to drain; the end follows by itself
 * (stg_hub_finish). */
void stg_hub_stop(stg_hub *h)
{
    stg_flow_view all;

    if (stg_hub_is_stopping(h))
        return;
    h->phase = STG_HUB_STOPPING;
    stg_flow_view_all(h->flow, &all, stg_deadlines_now());
    STG_LOG_ALWAYS(h->log, STG_LOG_INFO, "stopping",
                   stg_field_number("in_flight", all.in_flight));
    stg_service_stop(h);
    stg_intake_stop(&h->intake);
    stg_store_end_soon(h->store);
    stg_flow_stop(h->flow, stg_deadlines_now());
    stg_shell_note(h);
}

/* Flow first: its messages and deliveries point to nothing else. */
void stg_hub_free(stg_hub *h)
{
    if (h->flow != NULL)
        stg_flow_free(h->flow);
    stg_attempts_close(&h->attempts);
    stg_hub_source_free(h);
    stg_target_changes_free(h);
    stg_targets_free(&h->targets);
    stg_verdicts_free(h->verdicts);
    stg_proxies_close(h);
    stg_seal_keys_free(h->keys);
    if (h->calls_part != NULL)
        h->calls->free(h->calls_part);
    stg_settings_free(h->settings);
    stg_settings_free(h->fixed);
    free(h);
}

/* -- a look ---------------------------------------------------------------- */

/* What is posted to a log that is not the store's own is read from it, as
 * messages of others are, and counts then. */
static uint64_t count_accepted(const stg_hub *h)
{
    return h->source->ops->is_trimmed ? stg_intake_accepted(&h->intake)
                                      : h->source->messages;
}

void stg_hub_look(const stg_hub *h, stg_hub_view *view)
{
    *view = (stg_hub_view){
        .address = h->intake.address[0] != '\0' ? h->intake.address : NULL,
        .port = h->intake.port,
        .accepted = count_accepted(h),
        .targets = h->targets.count,
        .is_stopping = stg_hub_is_stopping(h)};
    stg_flow_view_all(h->flow, &view->flow, stg_deadlines_now());
}

/* Flow knows of its lag only what was read; the log knows the rest. */
stg_status stg_hub_look_lane(const stg_hub *h, uint32_t lane,
                             stg_lane_view *view, stg_ns now)
{
    stg_status status = stg_flow_view_lane(h->flow, lane, view, now);

    if (status != STG_OK || h->store == NULL)
        return status;
    view->lag = h->source->ops->lag(h->source, lane, view);
    view->is_lag_exact = true;
    return STG_OK;
}

stg_status stg_hub_look_target(const stg_hub *h, size_t i,
                               stg_target_view *view)
{
    const stg_target *t;

    if (i >= h->targets.count)
        return STG_NOT_FOUND;
    t = h->targets.all[i];
    *view = (stg_target_view){.name = t->name,
                              .url = t->url,
                              .lane_number = t->lane,
                              .is_known = i < h->targets.known,
                              .attempts = t->attempts,
                              .failures = t->failures,
                              .p50 = stg_latency_quantile(t->latency, 500),
                              .p99 = stg_latency_quantile(t->latency, 990),
                              .last = t->last,
                              .failed_at = t->failed_at};
    return stg_hub_look_lane(h, t->lane, &view->lane, stg_deadlines_now());
}
