#include "sim/delivery/internal.h"

/* Time passes from event to event: a world handles the earliest that is ready,
 * asks flow what to do about it, and carries that out, until nothing is under
 * way or flow's own wake-up comes first. Two events of one instant happen in
 * the order in which they were made, so that a seed replays. */

enum { ACTIONS_MAX = 1000000, STEPS_MAX = 10000000, CHECK_EVERY = 64 };

/* -- events ---------------------------------------------------------------- */

static bool is_before(const stg_world_event *a, const stg_world_event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

/* -- attempts under way: a binary heap -- */

static void put_at(stg_world *w, size_t place, stg_world_event *e)
{
    w->due[place] = e;
    e->place = place;
}

static void rise(stg_world *w, stg_world_event *e)
{
    size_t at = e->place;

    for (; at > 0 && is_before(e, w->due[(at - 1) / 2]); at = (at - 1) / 2)
        put_at(w, at, w->due[(at - 1) / 2]);
    put_at(w, at, e);
}

static void sink(stg_world *w, stg_world_event *e)
{
    size_t at = e->place, below;

    for (; (below = 2 * at + 1) < w->due_count; at = below) {
        if (below + 1 < w->due_count &&
            is_before(w->due[below + 1], w->due[below]))
            below++;
        if (!is_before(w->due[below], e))
            break;
        put_at(w, at, w->due[below]);
    }
    put_at(w, at, e);
}

void stg_world_moved(stg_world *w, stg_world_event *e)
{
    rise(w, e);
    sink(w, e);
}

/* False: no memory. */
static bool add_attempt(stg_world *w, stg_world_event *e)
{
    if (!stg_world_grow(w, &w->due, &w->due_capacity, w->due_count + 1,
                        sizeof(void *)))
        return false;
    e->next = w->attempts;
    if (e->next != NULL)
        e->next->prev = e;
    w->attempts = e;
    put_at(w, w->due_count++, e);
    rise(w, e);
    return true;
}

static void remove_attempt(stg_world *w, stg_world_event *e)
{
    stg_world_event *last = w->due[--w->due_count];

    *(e->prev != NULL ? &e->prev->next : &w->attempts) = e->next;
    if (e->next != NULL)
        e->next->prev = e->prev;
    if (last == e)
        return;
    put_at(w, e->place, last);
    stg_world_moved(w, last);
}

/* -- all events -- */

static void spare(stg_world *w, stg_world_event *e)
{
    e->next = w->spare;
    w->spare = e;
}

stg_world_event *stg_world_post(stg_world *w, stg_world_event_kind kind,
                                stg_ns after)
{
    stg_world_event *e = w->spare;

    if (e != NULL)
        w->spare = e->next;
    else
        e = stg_world_allocate(w, 1, sizeof *e);
    if (e == NULL)
        return NULL;
    *e = (stg_world_event){.next = NULL};
    e->kind = kind;
    e->at = stg_ns_add(w->now, after);
    e->order = w->order++;
    if (kind != STG_WORLD_ENDED) {
        e->next = w->events;
        w->events = e;
    } else if (!add_attempt(w, e)) {
        spare(w, e);
        return NULL;
    }
    return e;
}

static void free_event(stg_world *w, stg_world_event *e)
{
    if (e->kind == STG_WORLD_POLLED)
        stg_world_release(w, e->batches);
    else if (e->kind == STG_WORLD_ROWS)
        stg_world_release(w, e->fetch.rows);
    spare(w, e);
}

static void free_list(stg_world *w, stg_world_event *first)
{
    while (first != NULL) {
        stg_world_event *e = first;

        first = e->next;
        free_event(w, e);
    }
}

void stg_world_free_events(stg_world *w)
{
    free_list(w, w->events);
    free_list(w, w->attempts);
    stg_world_release(w, w->due);
    w->events = w->attempts = NULL;
    w->due = NULL;
    w->due_count = w->due_capacity = 0;
}

/* The earliest that is ready. A read that waits for messages may be older than
 * others and not be ready: what is no attempt is searched, for it is little. */
static stg_world_event *take_first(stg_world *w, stg_ns until_at)
{
    stg_world_event **first = NULL;
    stg_world_event *found = w->due_count > 0 ? w->due[0] : NULL;

    if (found != NULL && (found->at > until_at || found->at == STG_NEVER))
        found = NULL;
    for (stg_world_event **e = &w->events; *e != NULL; e = &(*e)->next)
        if ((*e)->at <= until_at && (found == NULL || is_before(*e, found)) &&
            stg_world_is_readable(w, *e)) {
            first = e;
            found = *e;
        }
    if (first != NULL)
        *first = found->next;
    else if (found != NULL)
        remove_attempt(w, found);
    return found;
}

/* -- what flow wants ------------------------------------------------------- */

/* From the first notice of shedding or expiring on, the order of the lane has
 * holes. */
static void note_notice(stg_world *w, const stg_action *a)
{
    if (a->tell.what == STG_TELL_SHEDDING || a->tell.what == STG_TELL_EXPIRING)
        w->lanes[a->lane]->has_shed = true;
    stg_world_trace_notice(w, a);
    if (w->hooks.told != NULL)
        w->hooks.told(w->hooks.ctx, a);
}

/* Wherever the lane began is durable, and flow says so once. Partitions that
 * are not here have their cursors from other hubs. */
static void note_added(stg_world *w, uint32_t lane)
{
    stg_world_lane *l = w->lanes[lane];
    bool is_durable = true;

    for (uint32_t p = 0; p < w->partition_count; p++)
        is_durable &= l->cursors[p].is_known ||
                      w->partitions[p].where != STG_WORLD_ASSIGNED;
    stg_world_require(w, !l->was_added, "I1", stg_about_lane(lane),
                      "a lane is added once");
    stg_world_require(w, is_durable, "I1", stg_about_lane(lane),
                      "a lane is added when its cursors are durable");
    l->was_added = true;
}

void stg_world_note_removed(stg_world *w, uint32_t lane)
{
    w->lanes[lane]->is_removing = false;
    w->lanes[lane]->was_removed = true;
    stg_world_trace_removed(w, lane);
    // What was never stored is no lane: the next one of the name is new.
    if (w->is_group)
        stg_world_forget_elsewhere(w, lane);
    if (w->lanes[lane]->was_known)
        stg_world_check_removed(w, lane);
}

static void carry_out(stg_world *w, const stg_action *a)
{
    switch (a->kind) {
    case STG_ACTION_READ:
        stg_world_read(w, a);
        break;
    case STG_ACTION_FETCH:
        stg_world_fetch(w, a);
        break;
    case STG_ACTION_START:
        stg_world_begin_attempt(w, a);
        break;
    case STG_ACTION_CANCEL:
        stg_world_cancel_attempt(w, a);
        break;
    case STG_ACTION_STORE:
        stg_world_store(w, a);
        break;
    case STG_ACTION_COMMIT:
        stg_world_note_commit(w, a);
        break;
    case STG_ACTION_TELL:
        note_notice(w, a);
        break;
    case STG_ACTION_ADDED:
        note_added(w, a->lane);
        break;
    case STG_ACTION_REMOVED:
        stg_world_note_removed(w, a->lane);
        break;
    case STG_ACTION_REVOKED:
        stg_world_note_revoked(w, a->partition);
        break;
    case STG_ACTION_STOPPED:
        w->is_stopped = true;
        w->is_clean = a->is_clean;
        break;
    }
}

static bool goes_on(const stg_world *w)
{
    return !w->is_stopped && !w->has_failed && !w->is_cut;
}

/* The check of flow is dear and is made every so many actions, and at the end.
 * ACTIONS_MAX turns a flow that asks for ever into a failure. */
void stg_world_act(stg_world *w)
{
    stg_action a;
    uint32_t count = 0;

    w->events_since = w->ends_since = 0;
    while (goes_on(w) && stg_flow_next(w->flow, &a, w->now)) {
        w->actions++;
        carry_out(w, &a);
        if (++count % CHECK_EVERY == 0)
            stg_world_check_sometimes(w);
        w->is_cut = w->actions_left > 0 && --w->actions_left == 0;
        stg_world_require(w, count <= ACTIONS_MAX, "rest", stg_about_all(),
                          "flow comes to rest");
    }
    stg_world_check_sometimes(w);
}

/* Attempts have ended in this turn: others start in their places. */
static void start_more(stg_world *w)
{
    stg_action a;

    w->ends_since = 0;
    while (goes_on(w) && stg_flow_next_start(w->flow, &a, w->now)) {
        w->actions++;
        if (stg_world_require(w, a.kind == STG_ACTION_START, "check",
                              stg_about_all(), "only starts are asked for"))
            stg_world_begin_attempt(w, &a);
    }
    stg_world_check_sometimes(w);
}

/* -- a step ---------------------------------------------------------------- */

static void handle(stg_world *w, stg_world_event *e)
{
    switch (e->kind) {
    case STG_WORLD_READ:
    case STG_WORLD_CATCH_UP:
        stg_world_answer_read(w, e);
        break;
    case STG_WORLD_POLL:
        stg_world_answer_poll(w, e->read.bytes_max);
        break;
    case STG_WORLD_POLLED:
        stg_world_answer_polled(w, e);
        break;
    case STG_WORLD_LOOK:
        stg_world_look_rows(w, e);
        break;
    case STG_WORLD_ROWS:
        stg_world_answer_fetch(w, e);
        break;
    case STG_WORLD_ENDED:
        stg_world_end_attempt(w, e);
        break;
    case STG_WORLD_STORED:
        stg_world_end_store(w);
        break;
    }
    free_event(w, e);
}

/* After an event the shell may go on with its turn, or ask flow. */
static void end_event(stg_world *w, bool is_end)
{
    if (w->events_since++ == 0)
        w->turn_at = w->now;
    w->ends_since += is_end;
    if (w->events_since >= w->ask_events)
        stg_world_act(w);
    else if (w->ends_since >= w->ask_ends)
        start_more(w);
    else
        stg_world_check_sometimes(w);
}

/* One event, or flow's own time. False: nothing is under way before then. Time
 * never goes back: a read that waited for messages has a time in the past. */
static bool step(stg_world *w, stg_ns until_at)
{
    stg_ns wake_at, last_at = until_at;
    stg_world_event *e;

    if (!goes_on(w))
        return false;
    wake_at = stg_flow_wake_at(w->flow);
    if (w->events_since > 0)
        last_at = stg_ns_min(last_at, stg_ns_add(w->turn_at, w->turn));
    e = take_first(w, stg_ns_min(wake_at, last_at));
    if (e == NULL && w->events_since == 0 &&
        (wake_at > until_at || wake_at == STG_NEVER))
        return false;
    if (e != NULL) {
        bool is_end = e->kind == STG_WORLD_ENDED;

        w->now = stg_ns_max(w->now, e->at);
        w->handled++;
        handle(w, e);
        end_event(w, is_end);
        return true;
    }
    if (w->events_since == 0)
        w->now = stg_ns_max(w->now, wake_at);
    stg_world_act(w);
    return true;
}

/* With STG_NEVER the clock stays at the last event: a world that is at rest has
 * no later time. */
void stg_world_run(stg_world *w, stg_ns until_at)
{
    uint64_t steps = 0;

    stg_world_act(w);
    while (step(w, until_at))
        stg_world_require(w, ++steps <= STEPS_MAX, "rest", stg_about_all(),
                          "the world comes to rest");
    if (until_at != STG_NEVER && goes_on(w))
        w->now = stg_ns_max(w->now, until_at);
}

void stg_world_steps(stg_world *w, uint64_t count)
{
    stg_world_act(w);
    for (uint64_t i = 0; i < count && step(w, STG_NEVER); i++)
        ;
}

/* What flow still wants in this turn waits: it is asked in the next one, if the
 * hub lives. */
void stg_world_actions(stg_world *w, uint64_t count)
{
    w->actions_left = count;
    stg_world_act(w);
    while (step(w, STG_NEVER))
        ;
    w->actions_left = 0;
    w->is_cut = false;
}
