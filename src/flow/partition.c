/* Partitions: assigned at the start or later, with what the store knows of the
 * lanes in them.
 *
 * A partition has a slot, a small number that is used again: each lane has an
 * array of cursors by slot. Room for one more is made in all lanes before anything
 * changes, so that a lack of memory refuses the assignment and nothing else.
 *
 * An assignment has a number of its own. Reads that were asked for under an
 * earlier one are told by it, and dropped. */
#include <assert.h>
#include <string.h>

#include "flow/state.h"

/* -- a window -------------------------------------------------------------- */

uint64_t stg_window_find(const stg_window *w, uint64_t position)
{
    uint64_t low = w->first, high = w->end;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (stg_window_at(w, middle)->position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow(stg_window *w, uint32_t capacity, const stg_memory *memory)
{
    stg_message **messages =
        memory->allocate(memory->ctx, capacity * sizeof(stg_message *));

    if (messages == NULL)
        return false;
    for (uint64_t n = w->first; n < w->end; n++)
        messages[n & (capacity - 1)] = stg_window_at(w, n);
    if (w->messages != NULL)
        memory->release(memory->ctx, w->messages);
    w->messages = messages;
    w->capacity = capacity;
    return true;
}

/* A capacity is a power of two: the number of a message is masked, and keeps
 * its meaning when the window grows. More than 2^30 messages are refused. */
bool stg_window_reserve(stg_window *w, size_t count, const stg_memory *memory)
{
    uint64_t needed = w->end - w->first + count;
    uint32_t capacity = w->capacity == 0 ? 64 : w->capacity;

    if (needed > UINT32_C(1) << 30)
        return false;
    while (capacity < needed)
        capacity *= 2;
    return capacity == w->capacity || grow(w, capacity, memory);
}

void stg_window_push(stg_window *w, stg_message *m)
{
    assert(w->end - w->first < w->capacity);
    w->messages[w->end++ & (w->capacity - 1)] = m;
}

stg_message *stg_window_shift(stg_window *w)
{
    stg_message *m = stg_window_at(w, w->first++);

    w->start = m->position + 1;
    return m;
}

/* -- a partition ----------------------------------------------------------- */

/* The first whose number is not below. */
static uint32_t find(const stg_flow *f, uint32_t number)
{
    uint32_t low = 0, high = f->partition_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (f->partitions[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

stg_partition *stg_flow_partition(const stg_flow *f, uint32_t number)
{
    uint32_t i = find(f, number);

    if (i == f->partition_count || f->partitions[i]->number != number)
        return NULL;
    return f->partitions[i];
}

uint64_t stg_flow_assignment(const stg_flow *f, uint32_t partition)
{
    const stg_partition *p = stg_flow_partition(f, partition);

    return p == NULL || !stg_partition_is_assigned(p) ? 0 : p->assignment;
}

/* -- room for it ----------------------------------------------------------- */

/* Moves the lane's cursors: a pointer to one of them is not good any more. */
bool stg_partition_fit(stg_flow *f, stg_lane *l, uint32_t count)
{
    stg_lane_cursor *cursors;

    if (count <= l->cursor_count)
        return true;
    cursors = stg_flow_allocate(f, count * sizeof *cursors);
    if (cursors == NULL)
        return false;
    memset(cursors, 0, count * sizeof *cursors);
    if (l->cursor_count > 0)
        memcpy(cursors, l->cursors, l->cursor_count * sizeof *cursors);
    stg_flow_release(f, l->cursors);
    l->cursors = cursors;
    l->cursor_count = count;
    return true;
}

static bool grow_table(stg_flow *f, stg_partition ***table, uint32_t count)
{
    stg_partition **wider = stg_flow_allocate(f, count * sizeof(*table));

    if (wider == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++)
        wider[i] = i < f->slot_count ? (*table)[i] : NULL;
    stg_flow_release(f, *table);
    *table = wider;
    return true;
}

/* Slots are few, and used again: a lane has a cursor for each. */
static bool make_slot(stg_flow *f)
{
    uint32_t count = f->slot_count == 0 ? 1 : 2 * f->slot_count;

    if (f->partition_count < f->slot_count)
        return true;
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && !stg_partition_fit(f, f->lanes[i], count))
            return false;
    if (!grow_table(f, &f->partitions, count) ||
        !grow_table(f, &f->slots, count))
        return false;
    f->slot_count = count;
    return true;
}

/* In the first free slot, so that the cursors of each lane stay a short array. */
static stg_partition *make(stg_flow *f, const stg_assignment *g)
{
    stg_partition *p = stg_flow_allocate(f, sizeof *p);
    uint32_t slices = f->lane_capacity / STG_SLICE;

    if (p == NULL)
        return NULL;
    *p = (stg_partition){.number = g->partition};
    while (f->slots[p->slot] != NULL)
        p->slot++;
    if (slices > 0 && (p->slices = stg_flow_allocate(f, slices)) == NULL) {
        stg_flow_release(f, p);
        return NULL;
    }
    if (slices > 0)
        memset(p->slices, 0, slices);
    return p;
}

/* The table is sorted by number, for find(). The slot may have been another
 * partition's: its cursor starts from zero in every lane. */
static void put_in(stg_flow *f, stg_partition *p)
{
    uint32_t i = find(f, p->number);

    for (uint32_t k = f->partition_count++; k > i; k--)
        f->partitions[k] = f->partitions[k - 1];
    f->partitions[i] = p;
    f->slots[p->slot] = p;
    for (uint32_t k = 0; k < f->lane_capacity; k++)
        if (f->lanes[k] != NULL)
            *stg_lane_cursor_in(f->lanes[k], p) = (stg_lane_cursor){.next = 0};
}

void stg_partition_clear(stg_flow *f, stg_partition *p)
{
    while (p->window.first < p->window.end)
        stg_flow_drop(f, stg_window_shift(&p->window));
    stg_flow_release(f, p->window.messages);
    stg_window_init(&p->window, p->window.next);
    if (p->is_merged)
        f->merged.ahead -= p->ahead;
    p->ahead = 0;
    p->furthest = 0;
}

void stg_partition_free(stg_flow *f, stg_partition *p)
{
    uint32_t i = find(f, p->number);

    stg_partition_clear(f, p);
    f->partition_count--;
    for (; i < f->partition_count; i++)
        f->partitions[i] = f->partitions[i + 1];
    f->slots[p->slot] = NULL;
    stg_flow_release(f, p->slices);
    stg_flow_release(f, p);
}

/* -- what the store knows -------------------------------------------------- */

/* Of rows that have no slot in the ring, as they settle, positions are noted
 * among those that are settled: there is room for them. */
static bool restore_settled(stg_flow *f, stg_lane_cursor *cursor,
                            const stg_cursor *c)
{
    size_t rows = c->is_ordered ? (size_t)(c->parked - c->replays) : 0;

    if (c->settled_count + rows == 0)
        return true;
    cursor->restored = stg_flow_allocate(f, (c->settled_count + rows) *
                                                sizeof *cursor->restored);
    if (cursor->restored == NULL)
        return false;
    if (c->settled_count > 0)
        memcpy(cursor->restored, c->settled,
               c->settled_count * sizeof *c->settled);
    cursor->restored_count = c->settled_count;
    cursor->restored_capacity = c->settled_count + rows;
    return true;
}

/* Reading goes on from what was committed at least, also where the base is below it. */
static bool restore(stg_flow *f, stg_lane *l, stg_partition *p,
                    const stg_cursor *c)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);

    assert(cursor->stored == STG_CURSOR_NEW);
    if (!restore_settled(f, cursor, c))
        return false;
    cursor->durable = c->base;
    cursor->next = cursor->loose_below = stg_ns_max(c->base, p->committed);
    cursor->stored = STG_CURSOR_DURABLE;
    cursor->routed = c->routed;
    cursor->delivered = c->delivered;
    cursor->dead = c->dead;
    cursor->cancelled = c->cancelled;
    cursor->rows = c->parked;
    cursor->replays = c->replays;
    cursor->lagging_at = c->oldest_at;
    return true;
}

/* All of it is there: STG_ACTION_ADDED. */
static void note_rows(stg_flow *f, stg_lane *l, stg_partition *p,
                      const stg_cursor *c)
{
    stg_order_restore(f, l, stg_lane_cursor_in(l, p), c);
    if (c->parked > c->replays)
        stg_parking_reset(f, &l->caches[STG_PARKED_RETRIES]);
    if (c->replays > 0)
        stg_parking_reset(f, &l->caches[STG_PARKED_REPLAYS]);
}

stg_status stg_flow_restore(stg_flow *f, const stg_cursor *c)
{
    stg_lane *l = stg_flow_lane(f, c->lane);
    stg_partition *p = stg_flow_partition(f, c->partition);

    if (l == NULL || p == NULL || f->is_started ||
        stg_lane_cursor_in(l, p)->stored != STG_CURSOR_NEW)
        return STG_INVALID;
    if (!restore(f, l, p, c))
        return STG_IO;
    note_rows(f, l, p, c);
    return STG_OK;
}

/* -- a beginning ----------------------------------------------------------- */

/* A lane that was added while the partition had its rows only began there: a group
 * that is out may have told the store. */
static bool has_begun(const stg_lane *l, const stg_partition *p)
{
    return stg_lane_cursor_in(l, p)->stored != STG_CURSOR_NEW || p->is_in_group;
}

/* The furthest of those that have begun; what the log has lost nobody reads. */
static uint64_t find_start(const stg_flow *f, const stg_partition *p)
{
    uint64_t furthest = stg_ns_max(p->begin, p->committed);

    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && has_begun(f->lanes[i], p))
            furthest =
                stg_ns_max(furthest, stg_lane_cursor_in(f->lanes[i], p)->next);
    return furthest;
}

/* A fetch that is under way does not know of the partition. */
static void begin_lane(stg_flow *f, stg_lane *l, stg_partition *p)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);

    cursor->is_following = false;
    stg_lane_cursor_follow(l, p);
    if (l->is_ending) // nor is it removed before it is forgotten here, too
        stg_lane_move(f, l, STG_IN_NONE);
    if (!has_begun(l, p))
        stg_lane_cursor_begin(l, p);
    if (cursor->stored == STG_CURSOR_NEW || l->is_ending)
        stg_lane_cursor_mark(f, l, p, STG_SLICE_MUST);
    else if (cursor->next > cursor->durable)
        stg_lane_cursor_mark(f, l, p,
                             STG_SLICE_DIRTY); // it begins at the floor
    if (stg_partition_is_assigned(p))
        stg_lane_cursor_join(f, l, p);
    else
        cursor->loose_below = UINT64_MAX;
    for (int i = 0; i < STG_PARKED_CACHES; i++)
        stg_parking_invalidate(&l->caches[i]);
    stg_lane_wake(f, l);
}

/* The window starts at the furthest cursor: lanes below it catch up from the
 * log. */
static void begin(stg_flow *f, stg_partition *p)
{
    stg_window_init(&p->window, find_start(f, p));
    p->is_raised = true;
    p->followers = 0;
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            begin_lane(f, f->lanes[i], p);
    stg_watermark_raise(f);
}

void stg_flow_start(stg_flow *f, stg_ns now)
{
    f->now = now;
    f->is_started = true;
    for (uint32_t i = 0; i < f->partition_count; i++)
        begin(f, f->partitions[i]);
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            f->lanes[i]->is_new = !stg_lane_is_durable(f, f->lanes[i]);
}

/* -- an assignment --------------------------------------------------------- */

static void set_gift(stg_flow *f, stg_partition *p, const stg_assignment *g)
{
    p->phase = g->is_rows_only ? STG_PHASE_ROWS : STG_PHASE_ASSIGNED;
    p->is_merged = g->is_merged;
    p->generation = g->generation;
    p->assignment = ++f->assignments;
    p->begin = g->begin;
    p->lost_below = p->lost_from = p->lost_end = 0;
    p->committed = p->floor = g->floor;
    p->keeps_rows = p->is_foreign = p->is_cut = false;
    p->last = STG_LAST_NONE;
    f->merged.count += p->is_merged && stg_partition_is_assigned(p);
}

/* It had its rows only. Those that a lane with an order has at its base or
 * above keep their slots. */
static void give_again(stg_flow *f, stg_partition *p, const stg_assignment *g)
{
    set_gift(f, p, g);
    for (uint32_t i = 0; i < f->lane_capacity; i++) {
        stg_lane_cursor *cursor;

        if (f->lanes[i] == NULL)
            continue;
        cursor = stg_lane_cursor_in(f->lanes[i], p);
        if (cursor->next < g->floor)
            cursor->next = g->floor;
        cursor->loose_below = cursor->next;
    }
    if (f->is_started)
        begin(f, p);
}

static bool restore_all(stg_flow *f, stg_partition *p, const stg_assignment *g)
{
    for (size_t i = 0; i < g->cursor_count; i++) {
        stg_lane *l = stg_flow_lane(f, g->cursors[i].lane);

        if (l != NULL && !restore(f, l, p, &g->cursors[i]))
            return false;
    }
    return true;
}

/* Undoes put_in() and what restore_all() allocated. Cursors of the slot are
 * zeroed by the next partition that gets it. */
static void take_back(stg_flow *f, stg_partition *p)
{
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL)
            stg_flow_release(f, stg_lane_cursor_in(f->lanes[i], p)->restored);
    stg_partition_free(f, p);
}

static stg_status refuse(stg_error *err)
{
    return stg_flow_refuse(err, STG_IO,
                           "there is no memory for one more partition");
}

/* Cursors are restored before rows are noted: without memory for one of them
 * the partition is taken out again, and no lane's cache has heard of it. */
static stg_status give_new(stg_flow *f, const stg_assignment *g, stg_error *err)
{
    stg_partition *p;

    if (!make_slot(f) || (p = make(f, g)) == NULL)
        return refuse(err);
    put_in(f, p);
    p->committed = g->floor;
    if (!restore_all(f, p, g)) {
        take_back(f, p);
        return refuse(err);
    }
    set_gift(f, p, g);
    for (size_t i = 0; i < g->cursor_count; i++) {
        stg_lane *l = stg_flow_lane(f, g->cursors[i].lane);

        if (l != NULL)
            note_rows(f, l, p, &g->cursors[i]);
    }
    if (f->is_started)
        begin(f, p);
    return STG_OK;
}

stg_status stg_flow_assign(stg_flow *f, const stg_assignment *g, stg_ns now,
                           stg_error *err)
{
    stg_partition *p = stg_flow_partition(f, g->partition);

    f->now = now;
    if (g->partition >= STG_PARTITIONS_MAX)
        return stg_flow_refuse(err, STG_INVALID,
                               "partition: expected a number below 65536");
    if (f->stop != STG_STOP_NOT)
        return stg_flow_refuse(err, STG_INVALID,
                               "partition: none is taken on while flow stops");
    if (p != NULL && p->phase != STG_PHASE_ROWS)
        return stg_flow_refuse(err, STG_INVALID,
                               "partition: expected one that is not there");
    if (p == NULL)
        return give_new(f, g, err);
    give_again(f, p, g);
    return STG_OK;
}
