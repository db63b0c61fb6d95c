#include "tests/flow/world_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "flow/lane.h"
#include "flow/state.h"

/* -- memory that is counted, and may run out ------------------------------- */

static bool fails(world *w)
{
    if (++w->allocations == w->fail_at)
        return true;
    return w->fail_one_in > 0 && stg_rng_upto(&w->rng, w->fail_one_in - 1) == 0;
}

static void *allocate(void *ctx, size_t size)
{
    world *w = ctx;

    if (fails(w))
        return NULL;
    w->allocated++;
    return malloc(size);
}

static void release(void *ctx, void *bytes)
{
    world *w = ctx;

    w->allocated--;
    free(bytes);
}

void world_fail_at(world *w, uint64_t n)
{
    w->fail_at = n == 0 ? 0 : w->allocations + n;
}

void world_fail_one_in(world *w, uint32_t n)
{
    w->fail_one_in = n;
}

/* -- making a world -------------------------------------------------------- */

world *world_new(uint64_t seed)
{
    world *w = calloc(1, sizeof *w);

    w->o = stg_flow_options_default();
    w->seed = seed;
    w->rng = stg_rng_seed(seed);
    w->now = w->origin_at = STG_S;
    w->wall_at = 1000000 * STG_S;
    w->lanes = calloc(WORLD_LANES, sizeof *w->lanes);
    w->log = calloc(WORLD_MESSAGES, sizeof *w->log);
    w->trace = calloc(1, TRACE_MAX);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        w->of_partition[p] = calloc(WORLD_MESSAGES, sizeof(uint64_t));
    w->partition_count = 1;
    w->size = 100;
    w->store_room = UINT64_MAX;
    w->store_delay = 5 * STG_MS;
    w->fetch_delay = STG_NEVER;
    w->is_traced = true;
    w->ask_events = w->ask_ends = 1;
    return w;
}

static void drop_events(world *w)
{
    while (w->events != NULL) {
        event *e = w->events;

        w->events = e->next;
        free(e->fetched.rows);
        free(e);
    }
}

static void free_lane(lane *l)
{
    for (uint32_t p = 0; p < PARTITIONS; p++)
        free(l->cursors[p].settled);
    for (uint32_t s = 0; s < l->script_count; s++)
        free(l->script[s]);
    free(l->receipts);
}

void world_free(world *w)
{
    if (w->flow != NULL)
        stg_flow_free(w->flow);
    CHECK_U64(w->allocated, 0);
    drop_events(w);
    for (uint32_t i = 0; i < w->lane_count; i++)
        free_lane(&w->lanes[i]);
    for (size_t i = 0; i < w->policy_count; i++)
        free(w->policies[i]);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        free(w->of_partition[p]);
    free(w->policies);
    free(w->lanes);
    free(w->log);
    free(w->rows);
    free(w->dead);
    free(w->replayed);
    free(w->trace);
    free(w);
}

stg_flow_options *world_options(world *w)
{
    return &w->o;
}

stg_policy *world_make_policy(world *w, const char *text)
{
    stg_policy *p = calloc(1, sizeof *p);
    stg_error err = {0};

    w->policies =
        realloc(w->policies, (w->policy_count + 1) * sizeof *w->policies);
    w->policies[w->policy_count++] = p;
    if (stg_policy_parse(p, text, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
    return p;
}

static world_answer answer_ok(world *w, uint32_t l, uint64_t position,
                              uint64_t attempt)
{
    (void)w;
    (void)l;
    (void)position;
    (void)attempt;
    return (world_answer){stg_ok(), 10 * STG_MS, true};
}

stg_lane_options *world_lane(world *w, const char *policy)
{
    lane *l = &w->lanes[w->lane_count++];

    CHECK(w->lane_count <= WORLD_LANES);
    l->policy = world_make_policy(w, policy);
    l->o = stg_lane_options_default(l->policy);
    l->leaf = answer_ok;
    l->receipts = calloc(WORLD_MESSAGES, sizeof *l->receipts);
    return &l->o;
}

void world_partitions(world *w, uint32_t count)
{
    CHECK(count >= 1 && count <= PARTITIONS);
    w->partition_count = count;
}

static bool is_followed(const lane *l, uint32_t partition)
{
    return (l->others >> partition & 1) == 0;
}

bool world_is_wanted(const lane *l, uint32_t partition, uint64_t position)
{
    return is_followed(l, partition) &&
           (l->filter == 0 || position % l->filter != 0);
}

static bool accepts(void *ctx, const stg_message *m)
{
    return world_is_wanted(ctx, m->partition, m->position);
}

static bool follows(void *ctx, uint32_t partition)
{
    return is_followed(ctx, partition);
}

void world_follow(world *w, uint32_t l, uint32_t mask)
{
    w->lanes[l].others = ~mask;
    w->lanes[l].o.accepts = accepts;
    w->lanes[l].o.follows = follows;
    w->lanes[l].o.ctx = &w->lanes[l];
}

void world_filter(world *w, uint32_t l, uint64_t n)
{
    w->lanes[l].filter = n;
    w->lanes[l].o.accepts = accepts;
    w->lanes[l].o.ctx = &w->lanes[l];
}

void world_keys(world *w, uint64_t key_count)
{
    w->key_count = key_count;
}

void world_size(world *w, size_t bytes)
{
    CHECK(bytes >= 12);
    w->size = bytes;
}

void world_asks(world *w, uint32_t events, uint32_t ends, stg_ns turn)
{
    w->ask_events = events;
    w->ask_ends = ends;
    w->turn = turn;
}

void world_publish_to(world *w, uint32_t partition, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        logged *m = &w->log[w->log_count];

        CHECK(w->log_count < WORLD_MESSAGES);
        // Positions have gaps: they order, and do not count.
        w->next_position[partition] += stg_rng_upto(&w->rng, 9) == 0 ? 3 : 1;
        m->position = w->next_position[partition];
        m->partition = partition;
        m->key = w->key_count == 0 ? 0 : w->log_count % w->key_count + 1;
        m->size = w->size;
        if (w->large > 0 && w->log_count % w->large == w->large - 1) {
            m->size = 12;
            m->true_size = 5000000;
        }
        m->created_at = w->wall_at + (w->now - w->origin_at);
        w->of_partition[partition][w->partition_logged[partition]++] =
            w->log_count++;
    }
}

void world_publish(world *w, uint64_t count)
{
    world_publish_to(w, 0, count);
}

uint64_t world_index(const world *w, uint32_t partition, uint64_t position)
{
    const uint64_t *of = w->of_partition[partition];
    uint64_t low = 0, high = w->partition_logged[partition];

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (w->log[of[middle]].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == w->partition_logged[partition] ||
        w->log[of[low]].position != position)
        harness_fail(__FILE__, __LINE__, "no message at %ju",
                     (uintmax_t)position);
    return of[low];
}

void world_write_bytes(unsigned char *bytes, uint32_t p, uint64_t position)
{
    memcpy(bytes, &position, sizeof position);
    memcpy(bytes + sizeof position, &p, sizeof p);
}

world_receipt *world_receipt_at(world *w, uint32_t l, uint32_t partition,
                                uint64_t position)
{
    return &w->lanes[l].receipts[world_index(w, partition, position)];
}

/* -- events ---------------------------------------------------------------- */

event *world_post(world *w, what kind, stg_ns after)
{
    event *e = calloc(1, sizeof *e);

    e->what = kind;
    e->at = stg_ns_add(w->now, after);
    e->order = w->order++;
    e->next = w->events;
    w->events = e;
    return e;
}

/* A read that waits for messages has no time yet. */
static bool is_ready(const world *w, const event *e)
{
    if (e->what == POLL)
        return world_is_pollable(w);
    return e->what == MESSAGES ? world_is_readable(w, e) : e->at != STG_NEVER;
}

static event *take_first(world *w, stg_ns until_at)
{
    event **first = NULL, *found;

    for (event **e = &w->events; *e != NULL; e = &(*e)->next)
        if ((*e)->at <= until_at &&
            (first == NULL || (*e)->at < (*first)->at ||
             ((*e)->at == (*first)->at && (*e)->order < (*first)->order)) &&
            is_ready(w, *e))
            first = e;
    if (first == NULL)
        return NULL;
    found = *first;
    *first = found->next;
    return found;
}

void world_note(world *w, const char *format, ...)
{
    va_list args;

    if (!w->is_traced || w->trace_size > TRACE_MAX - 250)
        return;
    w->trace_size +=
        (size_t)snprintf(w->trace + w->trace_size, 100, "%7ju ms  ",
                         (uintmax_t)((w->now - w->origin_at) / STG_MS));
    va_start(args, format);
    w->trace_size +=
        (size_t)vsnprintf(w->trace + w->trace_size, 100, format, args);
    va_end(args);
    w->trace[w->trace_size++] = '\n';
    w->trace[w->trace_size] = '\0';
}

/* -- the loop -------------------------------------------------------------- */

static const char *const tells[] = {
    [STG_TELL_OPENED] = "opened",
    [STG_TELL_CLOSED] = "closed",
    [STG_TELL_SHEDDING] = "shedding",
    [STG_TELL_SHED] = "shed",
    [STG_TELL_PARKED_MAX] = "parked-max",
    [STG_TELL_LAGGARD] = "laggard",
    [STG_TELL_STORE_FULL] = "store-full",
    [STG_TELL_UPLINK_DOWN] = "uplink down",
    [STG_TELL_UPLINK_UP] = "uplink up",
    [STG_TELL_STORE_ROOM] = "store-space-ok",
    [STG_TELL_EXPIRING] = "expiring",
    [STG_TELL_PARKED_ROOM] = "parked-below-max",
    [STG_TELL_JOINED] = "joined",
    [STG_TELL_LOST] = "lost",
};

static void tell(world *w, const stg_action *a)
{
    if (a->tell.what == STG_TELL_SHEDDING || a->tell.what == STG_TELL_EXPIRING)
        w->lanes[a->lane].has_shed = true;
    if (a->tell.what == STG_TELL_SHED)
        world_note(w, "%u: shed %ju", a->lane, (uintmax_t)a->tell.count);
    else
        world_note(w, "%u: %s", a->lane, tells[a->tell.what]);
}

/* Wherever it began is durable, and it is told of once. */
static void add_lane(world *w, uint32_t number)
{
    lane *l = &w->lanes[number];

    CHECK(!l->was_added);
    l->was_added = true;
    for (uint32_t p = 0; p < w->partition_count; p++)
        CHECK(l->cursors[p].is_known || w->parts[p].where != HERE);
}

static void remove_lane(world *w, uint32_t number)
{
    w->lanes[number].is_removing = false;
    w->lanes[number].was_removed = true;
    world_note(w, "%u: removed", number);
    // What was never stored is no lane: the next one of the name is new.
    if (w->is_merged)
        world_forget_elsewhere(w, number);
    if (w->lanes[number].was_known)
        world_check_removed(w, number);
}

static void carry_out(world *w, const stg_action *a)
{
    switch (a->kind) {
    case STG_ACTION_READ:
        world_read_log(w, a);
        break;
    case STG_ACTION_FETCH:
        world_fetch(w, a);
        break;
    case STG_ACTION_START:
        world_begin_attempt(w, a);
        break;
    case STG_ACTION_CANCEL:
        world_cancel_attempt(w, a);
        break;
    case STG_ACTION_STORE:
        world_store(w, a);
        break;
    case STG_ACTION_COMMIT:
        world_note_commit(w, a);
        break;
    case STG_ACTION_TELL:
        tell(w, a);
        break;
    case STG_ACTION_ADDED:
        add_lane(w, a->lane);
        break;
    case STG_ACTION_REMOVED:
        remove_lane(w, a->lane);
        break;
    case STG_ACTION_REVOKED:
        world_note_taken(w, a->partition);
        break;
    case STG_ACTION_STOPPED:
        w->is_stopped = true;
        w->is_clean = a->is_clean;
        break;
    }
}

static void check(world *w)
{
    const char *flaw = stg_flow_check(w->flow);

    if (flaw != NULL)
        harness_fail(__FILE__, __LINE__, "seed %ju at %ju ms: %s",
                     (uintmax_t)w->seed,
                     (uintmax_t)((w->now - w->origin_at) / STG_MS), flaw);
    world_check_views(w);
}

static void act(world *w)
{
    stg_action a;
    uint32_t count = 0;

    w->events_since = w->ends_since = 0;
    while (!w->is_stopped && stg_flow_next(w->flow, &a, w->now)) {
        carry_out(w, &a);
        if (++count % 64 == 0)
            check(w);
        if (count > 1000000)
            harness_fail(__FILE__, __LINE__,
                         "seed %ju: flow never comes to rest",
                         (uintmax_t)w->seed);
    }
    check(w);
}

static void handle(world *w, event *e)
{
    switch (e->what) {
    case MESSAGES:
    case CATCH_UP:
        world_answer_read(w, e);
        break;
    case POLL:
        world_answer_poll(w, e->bytes_max);
        break;
    case MERGED:
        world_answer_merged(w, e);
        break;
    case LOOK:
        world_look_rows(w, e);
        break;
    case ROWS:
        world_answer_fetch(w, e);
        break;
    case ENDED:
        world_end_attempt(w, e);
        break;
    case STORED:
        world_end_store(w);
        break;
    }
    free(e->fetched.rows);
    free(e);
}

/* Attempts have ended in this turn: others start in their places. */
static void start_more(world *w)
{
    stg_action a;

    w->ends_since = 0;
    while (stg_flow_next_start(w->flow, &a, w->now)) {
        CHECK(a.kind == STG_ACTION_START);
        world_begin_attempt(w, &a);
    }
    check(w);
}

/* An event within a turn of the shell, which may go on. */
static void note_event(world *w, bool is_end)
{
    if (w->events_since++ == 0)
        w->turn_at = w->now;
    w->ends_since += is_end;
    if (w->events_since >= w->ask_events)
        act(w);
    else if (w->ends_since >= w->ask_ends)
        start_more(w);
    else
        check(w);
}

/* One event, or flow's own time. False: nothing is under way before until. */
static bool step(world *w, stg_ns until_at)
{
    stg_ns wake_at = stg_flow_wake_at(w->flow), last_at = until_at;
    event *e;

    if (w->is_stopped)
        return false;
    if (w->events_since > 0)
        last_at = stg_ns_min(last_at, stg_ns_add(w->turn_at, w->turn));
    e = take_first(w, stg_ns_min(wake_at, last_at));
    if (e == NULL && w->events_since == 0 &&
        (wake_at > until_at || wake_at == STG_NEVER))
        return false;
    if (e != NULL) {
        bool is_end = e->what == ENDED;

        w->now = stg_ns_max(w->now, e->at);
        handle(w, e);
        note_event(w, is_end);
        return true;
    }
    if (w->events_since == 0)
        w->now = stg_ns_max(w->now, wake_at);
    act(w);
    return true;
}

void world_run(world *w, stg_ns until_at)
{
    uint64_t steps = 0;

    act(w);
    while (step(w, until_at))
        if (++steps > 1000000)
            harness_fail(__FILE__, __LINE__,
                         "seed %ju: the world never comes to rest",
                         (uintmax_t)w->seed);
    if (until_at != STG_NEVER && !w->is_stopped)
        w->now = stg_ns_max(w->now, until_at);
}

void world_steps(world *w, uint64_t count)
{
    act(w);
    for (uint64_t i = 0; i < count && step(w, STG_NEVER); i++)
        ;
}

/* -- beginnings and ends --------------------------------------------------- */

/* Where flow lets a lane begin that the store does not know. */
void world_note_begin(world *w, uint32_t number)
{
    for (uint32_t p = 0; p < w->partition_count; p++)
        if (!w->lanes[number].cursors[p].is_known &&
            stg_flow_partition(w->flow, p) != NULL)
            w->lanes[number].cursors[p].begin =
                world_begin_of(w, p,
                               stg_place_next(stg_flow_lane(w->flow, number),
                                              stg_flow_partition(w->flow, p)));
}

/* All that a reader has read, or the lane had come to before a crash. Where rows
 * of another order are to end first, it was handed nothing: all is lag. */
static uint64_t find_end(const world *w, uint32_t number, uint32_t p)
{
    const stg_cursor *c = &w->lanes[number].cursors[p].c;
    uint64_t end = stg_flow_partition(w->flow, p)->window.next;

    if (stg_place_is_draining(stg_lane_place(stg_flow_lane(w->flow, number),
                                             stg_flow_partition(w->flow, p))))
        return 0;
    if (w->lanes[number].cursors[p].is_known && c->settled_count > 0)
        end = stg_ns_max(end, c->settled[c->settled_count - 1] + 1);
    for (size_t i = 0; i < w->row_count; i++)
        if (w->rows[i].lane == number && w->rows[i].partition == p)
            end = stg_ns_max(end, w->rows[i].position + 1);
    return end;
}

void world_end_lane(world *w, uint32_t number)
{
    if (stg_flow_lane(w->flow, number)->is_removing)
        return;
    for (uint32_t p = 0; p < w->partition_count; p++)
        w->lanes[number].cursors[p].end =
            w->parts[p].where == HERE ? find_end(w, number, p) : 0;
    stg_flow_remove(w->flow, number, w->now);
}

void world_add_lane(world *w, uint32_t number)
{
    stg_error err = {0};

    if (stg_flow_add_lane(w->flow, number, &w->lanes[number].o, w->now, &err) !=
        STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
}

/* I21 The store sees to it when it is opened. */
static void cap_waits(world *w)
{
    for (size_t i = 0; i < w->row_count; i++) {
        row *r = &w->rows[i];

        r->due_at = stg_ns_min(r->due_at, w->o.wall_at + r->wait);
    }
}

static void give_queue(world *w)
{
    for (uint32_t p = 0; p < w->partition_count; p++) {
        stg_assignment g = {.partition = p,
                            .begin =
                                stg_ns_max(w->committed[p], w->trimmed[p])};

        CHECK(stg_flow_assign(w->flow, &g, w->now, NULL) == STG_OK);
    }
}

static void restore(world *w)
{
    for (uint32_t i = 0; i < w->lane_count; i++)
        for (uint32_t p = 0; p < w->partition_count; p++)
            if (w->lanes[i].cursors[p].is_known)
                CHECK(stg_flow_restore(w->flow, &w->lanes[i].cursors[p].c) ==
                      STG_OK);
}

static void begin(world *w)
{
    stg_memory memory = {allocate, release, w};
    stg_error err = {0};
    uint32_t one_in = w->fail_one_in;

    w->fail_one_in = 0;
    w->o.wall_at = w->wall_at + (w->now - w->origin_at);
    cap_waits(w);
    w->o.seed = stg_rng_next(&w->rng);
    if (stg_flow_new(&w->flow, &memory, &w->o, w->now, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
    if (!w->is_merged)
        give_queue(w);
    for (uint32_t i = 0; i < w->lane_count; i++) {
        if (!w->lanes[i].was_removed)
            world_add_lane(w, i);
    }
    if (w->is_merged)
        world_begin_parts(w);
    else
        restore(w);
    w->is_stopped = false;
    stg_flow_start(w->flow, w->now);
    if (w->is_merged)
        world_give_parts(w);
    w->fail_one_in = one_in;
    for (uint32_t i = 0; i < w->lane_count; i++)
        if (!w->lanes[i].was_removed)
            world_note_begin(w, i);
}

void world_start(world *w)
{
    begin(w);
    act(w);
}

world *world_begin(uint64_t seed, const char *policy, const char *answers,
                   uint64_t count)
{
    world *w = world_new(seed);

    world_lane(w, policy);
    world_script(w, 0, answers);
    world_publish(w, count);
    world_start(w);
    return w;
}

/* What was on its way may have arrived. */
static void lose(world *w)
{
    for (event *e = w->events; e != NULL; e = e->next)
        if (e->what == ENDED && stg_rng_upto(&w->rng, 1) == 1)
            world_count_processed(w, e);
    world_lose_store(w);
    drop_events(w);
}

/* I21: what is left of a row's wait, by the wall clock. */
static stg_ns find_wait(const world *w, const row *r)
{
    stg_ns wall = w->wall_at + (w->now - w->origin_at);

    return stg_ns_min(stg_ns_sub(r->due_at, wall), r->wait);
}

/* What was not durable is forgotten: the wait is the stored row's, or none. */
void world_forget_part(world *w, uint32_t l, uint32_t p)
{
    lane *at = &w->lanes[l];

    for (uint64_t i = 0; i < w->log_count; i++) {
        const logged *m = &w->log[i];
        world_receipt *r = &at->receipts[i];
        const row *parked = NULL;

        if (m->partition != p)
            continue;
        r->is_over = world_is_settled(&at->cursors[m->partition], m->position);
        if (r->not_before == 0)
            continue;
        for (uint32_t replay = 0; replay <= r->replays && !parked; replay++)
            parked = world_find_row(w, l, m->partition, m->position, replay);
        r->not_before =
            parked == NULL
                ? 0
                : stg_ns_min(r->not_before, w->now + find_wait(w, parked));
    }
}

/* A lane that was to go, and that the store does not know any more, has gone,
 * whether or not flow came to say so. */
static bool has_gone(const lane *l)
{
    for (uint32_t p = 0; p < PARTITIONS; p++)
        if (l->cursors[p].is_known)
            return false;
    return l->is_removing;
}

void world_restart(world *w, stg_ns after)
{
    stg_flow_free(w->flow);
    w->flow = NULL;
    w->now += after;
    for (uint32_t l = 0; l < w->lane_count; l++) {
        w->lanes[l].in_flight = 0;
        if (has_gone(&w->lanes[l]))
            remove_lane(w, l);
        else
            for (uint32_t p = 0; p < w->partition_count; p++)
                world_forget_part(w, l, p);
    }
    begin(w);
    for (uint32_t l = 0; l < w->lane_count; l++) {
        // The settings know what is to be removed.
        if (w->lanes[l].is_removing)
            world_end_lane(w, l);
    }
    act(w);
}

void world_crash(world *w, stg_ns after)
{
    w->crashes++;
    lose(w);
    world_restart(w, after);
}

bool world_stop(world *w)
{
    stg_flow_stop(w->flow, w->now);
    world_run(w, STG_NEVER);
    CHECK(w->is_stopped);
    world_lose_store(w);
    drop_events(w);
    w->crashes += !w->is_clean; // as good as one, for what was not stored
    return w->is_clean;
}

void world_wall_forward(world *w, stg_ns by)
{
    w->wall_at += by;
}

void world_wall_back(world *w, stg_ns by)
{
    w->wall_at -= by;
}
