/* The loop and the switch: what happens goes to flow, once a turn of the loop
 * flow is asked what to do about it, and that is carried out here.
 *
 * Callbacks only note what has happened; actions are carried out in one place,
 * just before the loop waits. So no action runs inside of another, and what one
 * turn brought is decided about at once. Starts alone are asked for within a
 * turn, too, after every STG_ENDS_MAX ends. */
#include <stdio.h>

#include "config/targets.h"
#include "hub/hub_internal.h"

enum { TICK_MS = 1000 };

/* -- what the store answers ------------------------------------------------ */

static void take_rows(void *ctx, uint32_t lane, bool is_replay,
                      const stg_parked_row *rows, size_t count, bool is_all)
{
    stg_hub *h = ctx;

    stg_flow_rows(h->flow, lane, is_replay, rows, count, is_all,
                  stg_deadlines_now());
    stg_shell_note(h);
}

/* What is dead is counted when it is durable. */
static void note_stored(stg_hub *h, stg_ns now)
{
    stg_watch_stored(&h->watch, h->metrics.group, now);
    stg_metrics_stored(&h->metrics, now);
}

/* A group was stored, or fenced: partitions of this hub now belong to another
 * one, which must not be written for. */
static void take_stored(void *ctx, stg_stored how, const uint32_t *fenced,
                        size_t count)
{
    stg_hub *h = ctx;

    stg_ns now = stg_deadlines_now();

    (void)fenced;
    (void)count;
    if (how == STG_STORED) {
        note_stored(h, now);
        stg_recovery_stored(h);
    }
    if (how == STG_STORED_FENCED && h->source->ops->fenced != NULL)
        h->source->ops->fenced(h->source, fenced, count);
    stg_flow_stored(h->flow, how, now);
    stg_shell_note(h);
}

void stg_shell_retain(void *hub, uint64_t position)
{
    stg_hub *h = hub;

    if (h->flow == NULL) // it was opened just now
        return;
    stg_flow_retain(h->flow, 0, position, stg_deadlines_now());
    stg_shell_note(h);
}

void stg_shell_replay(void *hub, uint32_t lane, uint32_t partition,
                      uint64_t count, bool is_again)
{
    stg_hub *h = hub;

    stg_flow_replayed(h->flow, lane, partition, count, is_again,
                      stg_deadlines_now());
    stg_metrics_replayed(&h->metrics, lane, count);
    stg_shell_note(h);
}

/* How many rows of a replay are sent at once; the others stay dead letters
 * until there is room. */
uint64_t stg_shell_room(void *hub, uint32_t lane)
{
    enum { REPLAYS_MAX = 500 };
    const stg_hub *h = hub;
    stg_lane_view v;

    if (stg_flow_view_lane(h->flow, lane, &v, stg_deadlines_now()) != STG_OK)
        return 0;
    return stg_ns_sub(REPLAYS_MAX, v.replays);
}

bool stg_shell_knows(void *hub, uint32_t lane)
{
    const stg_hub *h = hub;
    const stg_target *t = stg_targets_at(&h->targets, lane);

    return t != NULL && t->settings != NULL;
}

bool stg_shell_is_paused(void *hub, uint32_t lane)
{
    const stg_hub *h = hub;
    const stg_target *t = stg_targets_at(&h->targets, lane);

    return t != NULL && t->settings != NULL &&
           (t->pause != STG_PAUSE_NONE || t->settings->is_paused);
}

bool stg_shell_wants(void *hub, uint32_t lane, const stg_parcel *message)
{
    const stg_hub *h = hub;
    const stg_target *t = stg_targets_at(&h->targets, lane);

    return t == NULL || t->settings == NULL ||
           stg_match_wants(t->settings, message);
}

bool stg_shell_wants_body(void *hub, uint32_t lane)
{
    const stg_hub *h = hub;
    const stg_target *t = stg_targets_at(&h->targets, lane);

    return t != NULL && t->settings != NULL &&
           (stg_match_body(t->settings) != NULL ||
            stg_match_event(t->settings) != NULL);
}

/* The copy of the dead letters lacks something for good. */
static void tell_cut(const stg_hub *h, const char *detail)
{
    STG_LOG(h->log, STG_LOG_WARN, "letters-cut",
            stg_field_text("detail", detail));
}

/* The store's troubles as alerts and log lines. why NULL: it is over. */
void stg_shell_trouble(void *hub, stg_store_trouble what, const stg_error *why)
{
    static const struct {
        stg_alert_trouble alert;
        const char *what;
    } troubles[] = {
        [STG_STORE_LETTERS] = {STG_TROUBLE_LETTERS, "dead letters file"},
        [STG_STORE_BUSY] = {STG_TROUBLE_BUSY, "another process"},
        [STG_STORE_AWAY] = {STG_TROUBLE_AWAY, "database"},
        [STG_STORE_DEAD_HALF] = {STG_TROUBLE_HALF, NULL},
        [STG_STORE_DEAD_NEARLY] = {STG_TROUBLE_NEARLY, NULL},
        [STG_STORE_UNCOPIED] = {STG_TROUBLE_UNCOPIED, NULL},
        [STG_STORE_HELD] = {STG_TROUBLE_HELD, "a reader"},
        [STG_STORE_SHORT] = {STG_TROUBLE_FULL, NULL},
    };
    stg_hub *h = hub;

    if (what == STG_STORE_LETTERS_CUT) {
        tell_cut(h, why->text);
        return;
    }
    if (what == STG_STORE_AWAY)
        h->is_store_away = why != NULL;
    stg_watch_store(&h->watch, troubles[what].alert,
                    why == NULL ? NULL : why->text, stg_deadlines_now());
    if (what == STG_STORE_SHORT)
        stg_tell_shortage(h, why);
    else if (troubles[what].what == NULL)
        stg_tell_dead_room(h, what, why);
    else if (why == NULL)
        STG_LOG(h->log, STG_LOG_INFO, "store-trouble-over",
                stg_field_text("what", troubles[what].what));
    else
        STG_LOG(h->log, STG_LOG_ERROR, "store-trouble",
                stg_field_text("detail", why->text),
                stg_field_text("next", "tried again; nothing is lost"));
}

/* What flow decides from here on could not be kept. What is under way is
 * dropped, too: a restart finds where it was. */
void stg_shell_break(void *hub, const stg_error *why)
{
    stg_hub *h = hub;

    h->is_broken = h->end.is_broken = true;
    STG_LOG_ALWAYS(
        h->log, STG_LOG_ERROR, "store-broken",
        stg_field_text("detail", why->text),
        stg_field_text("next",
                       "the hub ends; it finds what it could not store when "
                       "it is started again"));
    stg_watch_store(&h->watch, STG_TROUBLE_BROKEN, why->text,
                    stg_deadlines_now());
    stg_attempts_drop(&h->attempts);
    stg_hub_finish(h);
}

/* -- the switch ------------------------------------------------------------ */

static void read_source(stg_source *s, const stg_action *a)
{
    if (a->read.is_catch_up)
        s->ops->catch_up(s, a);
    else
        s->ops->read(s, a);
}

static void release_partition(stg_source *s, uint32_t number)
{
    if (s->ops->release != NULL)
        s->ops->release(s, number);
}

static void note_breaker(stg_hub *h, const stg_action *a)
{
    stg_target *t = stg_targets_at(&h->targets, a->lane);

    if (a->tell.what == STG_TELL_OPENED)
        stg_metrics_opened(&h->metrics, a->lane);
    if (t != NULL && a->tell.what == STG_TELL_OPENED)
        stg_recovery_opened(t);
    if (t != NULL && a->tell.what == STG_TELL_CLOSED)
        stg_recovery_note(h, t);
}

/* Flow's actions, each by the part that can do it; the counterpart of the events that
 * the rest of this file takes to flow. */
static void act(stg_hub *h, const stg_action *a, stg_ns now)
{
    switch (a->kind) {
    case STG_ACTION_READ:
        read_source(h->source, a);
        break;
    case STG_ACTION_FETCH:
        stg_store_fetch(h->store, a->lane, a->fetch.is_replay, &a->fetch.after,
                        a->fetch.rows_max, take_rows, h);
        break;
    case STG_ACTION_START:
        stg_attempt_start(&h->attempts, a);
        break;
    case STG_ACTION_CANCEL:
        stg_attempt_cancel(a->cancel.attempt);
        break;
    case STG_ACTION_STORE:
        stg_metrics_store(&h->metrics, a->group, now);
        stg_store_group(h->store, a->group, take_stored, h);
        break;
    case STG_ACTION_COMMIT:
        h->source->ops->commit(h->source, a->partition, a->position);
        break;
    case STG_ACTION_REVOKED:
        release_partition(h->source, a->partition);
        break;
    case STG_ACTION_TELL:
        note_breaker(h, a);
        stg_watch_tell(&h->watch, a, now);
        stg_tell_action(h, a, now);
        stg_proxies_tell(h, a, now);
        break;
    case STG_ACTION_ADDED:
        stg_reload_lane_begun(h, a->lane);
        break;
    case STG_ACTION_REMOVED:
        stg_watch_forget(&h->watch, a->lane, now);
        stg_target_control_removed(h, a->lane);
        break;
    case STG_ACTION_STOPPED:
        h->phase = STG_HUB_STOPPED;
        h->end.is_clean = a->is_clean;
        stg_hub_finish(h);
        break;
    }
}

/* Sets the deadline only if it changes: most turns leave it. */
static void set_wake(stg_hub *h)
{
    stg_ns at = stg_flow_wake_at(h->flow);

    if (at != stg_deadline_at(&h->wake))
        stg_deadline_set(&h->deadlines, &h->wake, at);
}

static bool is_acting(const stg_hub *h)
{
    return !stg_hub_is_closing(h) && !h->is_broken;
}

static void ask_flow(stg_hub *h)
{
    stg_ns now = stg_deadlines_now();
    stg_action action;

    h->is_due = false;
    h->ends = 0;
    // An action may be the last: the store is gone then.
    while (is_acting(h) && stg_flow_next(h->flow, &action, now))
        act(h, &action, now);
    stg_attempts_flush(&h->attempts);
    if (!is_acting(h))
        return;
    set_wake(h);
    stg_watch_note(&h->watch, now);
    stg_recorder_note(&h->recorder, now);
    stg_disable_note(h, now);
}

/* Starts new attempts within a turn in which many have ended: else a turn with
 * a thousand answers would leave all connections idle until its end. */
void stg_shell_ended(stg_hub *h)
{
    stg_ns now;
    stg_action action;

    if (++h->ends < STG_ENDS_MAX || !is_acting(h))
        return;
    h->ends = 0;
    now = stg_deadlines_now();
    while (is_acting(h) && stg_flow_next_start(h->flow, &action, now))
        act(h, &action, now);
    stg_attempts_flush(&h->attempts);
}

/* Asks the log a second after something has happened at most, so that an idle hub
 * sleeps. */
static void set_tick(stg_hub *h)
{
    if (!h->has_ticked && stg_deadline_at(&h->tick) == STG_NEVER)
        stg_deadline_set(&h->deadlines, &h->tick,
                         stg_deadlines_now() + TICK_MS * STG_MS);
    h->has_ticked = false;
}

static void turn(uv_prepare_t *prepare)
{
    stg_hub *h = prepare->data;

    if (h->is_due && is_acting(h))
        ask_flow(h);
    if (!stg_hub_is_closing(h))
        set_tick(h);
}

static void wake_up(stg_deadline *d)
{
    stg_shell_note(STG_HEAP_HOLDER(d, stg_hub, wake));
}

static void tick(stg_deadline *d)
{
    stg_hub *h = STG_HEAP_HOLDER(d, stg_hub, tick);
    stg_ns wait = stg_log_tick(h->log);

    // A fold that begins before the next tick is due within a second.
    if (wait != STG_NEVER)
        wait = stg_ns_min(wait, TICK_MS * STG_MS);
    h->has_ticked = true;
    stg_deadline_set(&h->deadlines, d, stg_ns_add(stg_deadlines_now(), wait));
}

/* -- open, close ----------------------------------------------------------- */

void stg_shell_open(stg_hub *h)
{
    (void)uv_prepare_init(h->loop, &h->prepare); // these cannot fail
    (void)uv_prepare_start(&h->prepare, turn);
    h->prepare.data = h;
    uv_unref((uv_handle_t *)&h->prepare);
    stg_deadlines_init(&h->deadlines, h->loop);
    h->wake.passed = wake_up;
    h->tick.passed = tick;
}

static void prepare_closed(uv_handle_t *handle)
{
    stg_hub *h = handle->data;

    h->shell_closed(h->shell_ctx);
}

static void deadlines_closed(void *ctx)
{
    stg_hub *h = ctx;

    uv_close((uv_handle_t *)&h->prepare, prepare_closed);
}

void stg_shell_close(stg_hub *h, void (*closed)(void *ctx), void *ctx)
{
    h->shell_closed = closed;
    h->shell_ctx = ctx;
    stg_deadlines_close(&h->deadlines, deadlines_closed, h);
}
