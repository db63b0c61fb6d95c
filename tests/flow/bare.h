/* bare.h - flow without a world: a test says what log, store and targets answer, also
 * late, twice or unasked, and sees each action.
 *
 *     bare b;
 *     begin(&b, ONCE);
 *     read_one(&b, 1, (stg_record){.size = 0});
 *     end_one(&b, 0, &(stg_end){.outcome = stg_ok()});
 *     stg_flow_free(b.flow); */
#ifndef TESTS_FLOW_BARE_H
#define TESTS_FLOW_BARE_H

#include <stagger/text.h>
#include <stdio.h>
#include <stdlib.h>

#include "flow/flow.h"
#include "tests/harness.h"

/* How many more allocations flow has; there is no end to them unless a test says so. */
static size_t allocations_left = SIZE_MAX;
static size_t allocations_held;

static inline void *bare_allocate(void *ctx, size_t size)
{
    (void)ctx;
    if (allocations_left == 0)
        return NULL;
    allocations_left -= allocations_left < SIZE_MAX;
    allocations_held++;
    return malloc(size);
}

static inline void bare_release(void *ctx, void *memory)
{
    (void)ctx;
    allocations_held -= memory != NULL;
    free(memory);
}

static const stg_memory memory = {bare_allocate, bare_release, NULL};
static const stg_ns now = STG_S;

/* Each message has one attempt; or as many as it needs. */
#define ONCE "fixed base=1s jitter=none attempts=1 deadline=none"
#define OFTEN "fixed base=1s jitter=none attempts=9 deadline=none"

/* A flow, and what came out of it so far. */
typedef struct bare {
    stg_flow *flow;
    stg_policy policy;
    stg_ns later; /* than `now` it is */
    stg_delivery *started[16];
    stg_action starts[16];
    uint64_t positions[16]; /* of their messages */
    size_t start_count, cancel_count, commit_count;
    stg_change_kind kind; /* of the last row with a failure */
    stg_outcome outcome;
    char detail[400], answer[2048];
    size_t answer_size;
    uint32_t true_size;
    size_t read_count;
    stg_action main_read, catch_up, fetch; /* the last one */
    size_t fetch_count;
    bool is_stopped, is_clean;
    bool is_unsound;       /* the store is: its books do not balance */
    stg_stored store_says; /* to each group */
    bool holds_groups;     /* nothing, until answer_group() */
    size_t group_count, last_changes;
    stg_change changes[16]; /* of the last group */
    stg_cursor cursors[8];
    stg_positions settled[8]; /* ranges of cursors[0] */
    size_t last_cursors;
    size_t removed, revoked, tells[STG_TELL_LOST + 1], lost;
} bare;

static inline void note(bare *b, const stg_change *c)
{
    const stg_failure *f = c->failure;

    if (c->kind == STG_CHANGE_DEAD)
        b->true_size = c->message->true_size;
    if (f == NULL)
        return;
    b->kind = c->kind;
    b->outcome = f->outcome;
    (void)snprintf(b->detail, sizeof b->detail, "%s", f->detail);
    CHECK(f->answer_size <= sizeof b->answer);
    if (f->answer_size > 0)
        memcpy(b->answer, f->answer, f->answer_size);
    b->answer_size = f->answer_size;
}

static inline void note_group(bare *b, const stg_group *g)
{
    CHECK(g->change_count <= 16 && g->cursor_count <= 8);
    b->group_count++;
    b->last_changes = g->change_count;
    b->last_cursors = g->cursor_count;
    for (size_t i = 0; i < g->change_count; i++) {
        note(b, &g->changes[i]);
        b->changes[i] = g->changes[i];
    }
    for (size_t i = 0; i < g->cursor_count; i++)
        b->cursors[i] = g->cursors[i];
    for (size_t i = 0; g->cursor_count > 0 && i < g->cursors[0].settled_count;
         i++)
        b->settled[i] = g->cursors[0].settled[i];
}

static inline void note_action(bare *b, const stg_action *a)
{
    b->cancel_count += a->kind == STG_ACTION_CANCEL;
    b->commit_count += a->kind == STG_ACTION_COMMIT;
    b->removed += a->kind == STG_ACTION_REMOVED;
    b->revoked += a->kind == STG_ACTION_REVOKED;
    b->read_count += a->kind == STG_ACTION_READ;
    if (a->kind == STG_ACTION_START) {
        CHECK(b->start_count < sizeof b->started / sizeof *b->started);
        b->starts[b->start_count] = *a;
        b->positions[b->start_count] = a->start.message->position;
        b->started[b->start_count++] = a->start.delivery;
    } else if (a->kind == STG_ACTION_READ && a->read.is_catch_up) {
        b->catch_up = *a;
    } else if (a->kind == STG_ACTION_READ) {
        b->main_read = *a;
    } else if (a->kind == STG_ACTION_FETCH) {
        b->fetch = *a;
        b->fetch_count++;
    } else if (a->kind == STG_ACTION_TELL) {
        b->tells[a->tell.what]++;
        b->lost += a->tell.what == STG_TELL_LOST ? a->tell.count : 0;
    } else if (a->kind == STG_ACTION_STOPPED) {
        CHECK(!b->is_stopped);
        b->is_stopped = true;
        b->is_clean = a->is_clean;
    }
}

static inline void run(bare *b)
{
    stg_action a;

    while (stg_flow_next(b->flow, &a, now + b->later)) {
        note_action(b, &a);
        if (a.kind == STG_ACTION_STORE)
            note_group(b, a.group);
        if (a.kind == STG_ACTION_STORE && !b->holds_groups)
            stg_flow_stored(b->flow, b->store_says, now + b->later);
        if (!b->is_unsound)
            CHECK_STR(stg_flow_check(b->flow), NULL);
    }
}

/* The group that was held. */
static inline void answer_group(bare *b, stg_stored how)
{
    stg_flow_stored(b->flow, how, now + b->later);
    run(b);
}

/* Options of its lanes: the breaker opens after one failure, where the policy has one,
 * and it sheds at once. */
static inline stg_lane_options prepare(bare *b, const char *policy)
{
    stg_flow_options fo = stg_flow_options_default();
    stg_lane_options o;

    *b = (bare){.flow = NULL};
    CHECK(stg_policy_parse(&b->policy, policy, NULL) == STG_OK);
    o = stg_lane_options_default(&b->policy);
    o.is_from_earliest = true;
    o.shed_after = 0;
    o.in_flight_max = 4;
    o.is_limit_fixed = true;
    CHECK(stg_flow_new(&b->flow, &memory, &fo, now, NULL) == STG_OK);
    return o;
}

/* The same with memory for 1 MiB of messages. */
static inline stg_lane_options prepare_small(bare *b, const char *policy)
{
    stg_flow_options fo = stg_flow_options_default();
    stg_lane_options o = prepare(b, policy);

    stg_flow_free(b->flow);
    fo.memory_max = 1 << 20;
    CHECK(stg_flow_new(&b->flow, &memory, &fo, now, NULL) == STG_OK);
    return o;
}

static inline void add_lane(bare *b, uint32_t lane, const stg_lane_options *o)
{
    CHECK_INT(stg_flow_add_lane(b->flow, lane, o, now, NULL), STG_OK);
}

/* With these cursors. */
static inline void assign(bare *b, uint32_t partition,
                          const stg_cursor *cursors, size_t count)
{
    stg_assignment g = {.partition = partition,
                        .begin = 1,
                        .cursors = cursors,
                        .cursor_count = count};

    CHECK_INT(stg_flow_assign(b->flow, &g, now, NULL), STG_OK);
}

/* One lane, in partition 0. */
static inline void begin_with(bare *b, const stg_lane_options *o)
{
    assign(b, 0, NULL, 0);
    add_lane(b, 0, o);
    run(b); // nothing comes before the start
    CHECK(stg_flow_change_lane(b->flow, 0, o, now, NULL) == STG_OK);
    CHECK_U64(b->read_count, 0);
    stg_flow_start(b->flow, now);
    run(b);
    CHECK_U64(b->read_count, 1);
}

static inline void begin(bare *b, const char *policy)
{
    stg_lane_options o = prepare(b, policy);

    begin_with(b, &o);
}

/* The next of the log: `r`, at the position. */
static inline void read_of(bare *b, uint32_t partition, uint64_t position,
                           stg_record r)
{
    r.position = position;
    stg_flow_messages(b->flow, false, partition, 0, &r, 1, position + 1,
                      now + b->later);
}

static inline void read_one(bare *b, uint64_t position, stg_record r)
{
    read_of(b, 0, position, r);
    run(b);
}

static inline void end_one(bare *b, size_t i, const stg_end *end)
{
    (void)stg_flow_ended(b->flow, b->started[i], end, now + b->later);
    run(b);
}

static inline stg_end failed_with(const char *detail, const char *answer)
{
    return (stg_end){.outcome = stg_answered(503),
                     .detail = detail,
                     .answer = answer,
                     .answer_size = answer == NULL ? 0 : strlen(answer)};
}

static inline stg_lane_cursor_view look_in(const bare *b, uint32_t lane,
                                           uint32_t partition)
{
    stg_lane_cursor_view view;

    CHECK_INT(stg_flow_view_cursor(b->flow, lane, partition, &view), STG_OK);
    return view;
}

static inline stg_lane_cursor_view look(const bare *b, uint32_t lane)
{
    return look_in(b, lane, 0);
}

static inline stg_lane_view look_at(const bare *b, uint32_t lane)
{
    stg_lane_view view = {.limit = 0};

    CHECK_INT(stg_flow_view_lane(b->flow, lane, &view, now + b->later), STG_OK);
    return view;
}

#endif
