#include "sim/delivery/internal.h"

#include <assert.h>
#include <string.h>

#include <stagger/text.h>

/* A world is made of what the other files act on: its own memory, and flow's,
 * which is counted and may fail on purpose; its settings; and its totals.
 *
 * Memory has two sides. What fails for flow is a fault that it must bear; what
 * fails for the world itself ends the test (stg_world_allocate()). Lanes and
 * policies live until stg_world_free(), as flow keeps pointers to them. */

/* -- memory ---------------------------------------------------------------- */

/* size is never 0. */
void *stg_world_allocate(stg_world *w, size_t count, size_t size)
{
    void *bytes = NULL;

    if (count <= SIZE_MAX / size)
        bytes = w->hooks.memory.allocate(w->hooks.memory.ctx, count * size);
    if (bytes != NULL)
        memset(bytes, 0, count * size);
    (void)stg_world_require(w, bytes != NULL, "memory", stg_about_all(),
                            "there is none left for the world");
    return bytes;
}

void stg_world_release(stg_world *w, void *bytes)
{
    if (bytes != NULL)
        w->hooks.memory.release(w->hooks.memory.ctx, bytes);
}

/* array: the address of a pointer of any type, read and written as bytes, since
 * a void ** to it would break the aliasing rules. New room is zeroed. */
bool stg_world_grow(stg_world *w, void *array, size_t *capacity, size_t count,
                    size_t size)
{
    void *old, *bytes;
    size_t needed = *capacity == 0 ? 16 : 2 * *capacity;

    if (count <= *capacity)
        return true;
    if (needed < count)
        needed = count;
    bytes = stg_world_allocate(w, needed, size);
    if (bytes == NULL)
        return false;
    memcpy(&old, array, sizeof old);
    if (old != NULL)
        memcpy(bytes, old, *capacity * size);
    stg_world_release(w, old);
    memcpy(array, &bytes, sizeof bytes);
    *capacity = needed;
    return true;
}

void stg_world_fail_allocation_at(stg_world *w, uint64_t n)
{
    w->fail_at = n == 0 ? 0 : w->allocations + n;
}

void stg_world_fail_allocations(stg_world *w, uint32_t one_in)
{
    w->fail_one_in = one_in;
}

/* -- a world --------------------------------------------------------------- */

/* The clock begins above 0, as an instant of 0 means none in receipts; it is
 * far from the wall clock, so that a mix-up of the two shows. */
stg_status stg_world_new(stg_world **world, const stg_world_hooks *hooks,
                         uint64_t seed)
{
    stg_world *w = hooks->memory.allocate(hooks->memory.ctx, sizeof *w);

    *world = w;
    if (w == NULL)
        return STG_IO;
    memset(w, 0, sizeof *w);
    w->hooks = *hooks;
    w->o = stg_flow_options_default();
    w->seed = seed;
    w->rng = stg_rng_seed(seed);
    w->now = w->origin_at = STG_S;
    w->wall_at = 1000000 * STG_S;
    w->partition_count = 1;
    w->size = 100;
    w->store_room = UINT64_MAX;
    w->store_delay = 5 * STG_MS;
    w->fetch_delay = STG_NEVER;
    w->ask_events = w->ask_ends = 1;
    w->check_every = 1;
    return STG_OK;
}

static void free_lane(stg_world *w, stg_world_lane *l)
{
    for (uint32_t p = 0; p < STG_WORLD_PARTITIONS_MAX; p++)
        stg_world_release(w, l->cursors[p].settled);
    stg_world_release(w, l->script);
    stg_world_release(w, l->receipts);
    stg_world_release(w, l);
}

/* Flow goes first: its memory is counted, and what is left then is a leak
 * (I6). */
void stg_world_free(stg_world *w)
{
    if (w == NULL)
        return;
    if (w->flow != NULL)
        stg_flow_free(w->flow);
    stg_world_require(w, w->allocated == 0, "I6", stg_about_all(),
                      "flow gives all its memory back");
    stg_world_free_events(w);
    while (w->spare != NULL) {
        stg_world_event *e = w->spare;

        w->spare = e->next;
        stg_world_release(w, e);
    }
    for (size_t i = 0; i < w->lane_count; i++)
        free_lane(w, w->lanes[i]);
    for (size_t i = 0; i < w->policy_count; i++)
        stg_world_release(w, w->policies[i]);
    for (uint32_t p = 0; p < STG_WORLD_PARTITIONS_MAX; p++)
        stg_world_release(w, w->partitions[p].messages);
    stg_world_release(w, w->policies);
    stg_world_release(w, w->lanes);
    stg_world_release(w, w->log);
    stg_world_release(w, w->rows);
    stg_world_release(w, w->row_keys.places);
    stg_world_release(w, w->dead);
    stg_world_release(w, w->dead_keys.places);
    stg_world_release(w, w->replayed);
    stg_world_release(w, w->replayed_keys.places);
    stg_world_release(w, w);
}

/* -- lanes ----------------------------------------------------------------- */

/* Kept in the world's list also if it does not parse: the world frees it. */
stg_policy *stg_world_make_policy(stg_world *w, const char *text,
                                  stg_error *err)
{
    stg_policy *p;

    if (!stg_world_grow(w, &w->policies, &w->policy_capacity,
                        w->policy_count + 1, sizeof(void *)))
        return NULL;
    p = stg_world_allocate(w, 1, sizeof *p);
    if (p == NULL)
        return NULL;
    w->policies[w->policy_count++] = p;
    return stg_policy_parse(p, text, err) == STG_OK ? p : NULL;
}

/* Receipts have the log's capacity from the start, as messages may have been
 * published before. */
stg_lane_options *stg_world_add_lane(stg_world *w, const char *policy)
{
    stg_policy *p = stg_world_make_policy(w, policy, NULL);
    stg_world_lane *l;

    if (p == NULL || !stg_world_grow(w, &w->lanes, &w->lane_capacity,
                                     w->lane_count + 1, sizeof(void *)))
        return NULL;
    l = stg_world_allocate(w, 1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->receipts =
        stg_world_allocate(w, w->log_capacity + 1, sizeof *l->receipts);
    if (l->receipts == NULL) {
        stg_world_release(w, l);
        return NULL;
    }
    l->world = w;
    l->number = (uint32_t)w->lane_count;
    l->policy = p;
    l->o = stg_lane_options_default(p);
    l->target = stg_world_answer_ok;
    w->lanes[w->lane_count++] = l;
    return &l->o;
}

static bool follows(void *ctx, uint32_t partition)
{
    const stg_world_lane *l = ctx;

    return (l->unfollowed >> partition & 1) == 0;
}

static bool accepts(void *ctx, const stg_message *m)
{
    return stg_world_is_routed(ctx, m->partition, m->position);
}

bool stg_world_is_routed(const stg_world_lane *l, uint32_t partition,
                         uint64_t position)
{
    return (l->unfollowed >> partition & 1) == 0 &&
           (l->filter == 0 || position % l->filter != 0);
}

void stg_world_set_followed(stg_world *w, uint32_t lane, uint32_t mask)
{
    stg_world_lane *l = w->lanes[lane];

    l->unfollowed = ~mask;
    l->o.accepts = accepts;
    l->o.follows = follows;
    l->o.ctx = l;
}

void stg_world_set_filter(stg_world *w, uint32_t lane, uint64_t n)
{
    stg_world_lane *l = w->lanes[lane];

    l->filter = n;
    l->o.accepts = accepts;
    l->o.ctx = l;
}

/* -- settings -------------------------------------------------------------- */

stg_flow_options *stg_world_options(stg_world *w)
{
    return &w->o;
}

void stg_world_set_partitions(stg_world *w, uint32_t count)
{
    assert(count >= 1 && count <= STG_WORLD_PARTITIONS_MAX);
    w->partition_count = count;
}

void stg_world_set_keys(stg_world *w, uint64_t key_count)
{
    w->key_count = key_count;
}

void stg_world_set_size(stg_world *w, size_t bytes)
{
    assert(bytes >= STG_WORLD_SIZE_MIN);
    w->size = bytes;
}

void stg_world_set_too_large(stg_world *w, uint64_t n)
{
    w->too_large = n;
}

void stg_world_set_times(stg_world *w, stg_ns not_before, stg_ns expires)
{
    w->not_before = not_before;
    w->expires = expires;
}

void stg_world_set_some_times(stg_world *w, stg_ns most)
{
    w->times_most = most;
}

void stg_world_set_delays(stg_world *w, bool has_delays)
{
    w->has_delays = has_delays;
}

void stg_world_join_group(stg_world *w, bool keeps_rows)
{
    w->is_group = true;
    w->keeps_rows = keeps_rows;
}

void stg_world_set_turn(stg_world *w, uint32_t events, uint32_t ends,
                        stg_ns turn)
{
    w->ask_events = events;
    w->ask_ends = ends;
    w->turn = turn;
}

void stg_world_set_checks(stg_world *w, uint32_t every)
{
    w->check_every = every;
}

void stg_world_fill_store(stg_world *w, bool is_full)
{
    w->is_store_full = is_full;
}

void stg_world_set_store_room(stg_world *w, uint64_t rows)
{
    w->store_room = rows;
}

void stg_world_lose_answers(stg_world *w, uint32_t answers)
{
    w->lost_answers = answers;
}

void stg_world_set_store_delay(stg_world *w, stg_ns delay)
{
    w->store_delay = delay;
}

void stg_world_set_fetch_delay(stg_world *w, stg_ns delay)
{
    w->fetch_delay = delay;
}

void stg_world_fail_reads(stg_world *w, uint32_t count)
{
    w->failing_reads = count;
}

/* -- what came of it ------------------------------------------------------- */

const stg_world_failure *stg_world_failed(const stg_world *w)
{
    return w->has_failed ? &w->failure : NULL;
}

void *stg_world_ctx(const stg_world *w)
{
    return w->hooks.ctx;
}

stg_rng *stg_world_rng(stg_world *w)
{
    return &w->rng;
}

stg_flow *stg_world_flow(stg_world *w)
{
    return w->flow;
}

stg_ns stg_world_now(const stg_world *w)
{
    return w->now;
}

stg_world_totals stg_world_sum(const stg_world *w)
{
    uint64_t starts = 0;

    for (size_t i = 0; i < w->lane_count; i++)
        starts += w->lanes[i]->starts;
    return (stg_world_totals){.lanes = (uint32_t)w->lane_count,
                              .crashes = w->crashes,
                              .messages = w->log_count,
                              .reads = w->reads,
                              .catch_ups = w->catch_ups,
                              .fetches = w->fetches,
                              .groups = w->groups,
                              .allocations = w->allocations,
                              .events = w->handled,
                              .actions = w->actions,
                              .starts = starts,
                              .delivered = w->delivered,
                              .parked = w->row_count,
                              .dead = w->dead_count,
                              .is_stopped = w->is_stopped};
}

/* Counts the dead letters of all lives of the lane. */
stg_world_lane_totals stg_world_sum_lane(const stg_world *w, uint32_t lane)
{
    const stg_world_lane *l = w->lanes[lane];
    stg_world_lane_totals sum = {.starts = l->starts,
                                 .peak = l->peak,
                                 .was_added = l->was_added,
                                 .was_removed = l->was_removed};

    for (size_t i = 0; i < w->dead_count; i++) {
        const stg_world_dead *d = &w->dead[i];

        if (d->lane != lane)
            continue;
        sum.dead += d->count == 0 ? 1 : d->count;
        sum.bulk_dead += d->count > 0;
    }
    return sum;
}

uint64_t stg_world_committed(const stg_world *w, uint32_t partition)
{
    return w->partitions[partition].committed;
}

uint64_t stg_world_position_at(const stg_world *w, uint64_t i)
{
    return w->log[i].position;
}

uint32_t stg_world_partition_at(const stg_world *w, uint64_t i)
{
    return w->log[i].partition;
}

const stg_world_dead *stg_world_dead_at(const stg_world *w, size_t i)
{
    return &w->dead[i];
}

const stg_world_receipt *stg_world_receipt_of(stg_world *w, uint32_t lane,
                                              uint32_t partition,
                                              uint64_t position)
{
    uint64_t i = stg_world_index(w, partition, position);

    return i == w->log_count ? NULL : &w->lanes[lane]->receipts[i];
}
