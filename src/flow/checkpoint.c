/* Groups for the store: the rows that wait, and the cursors that rely on them.
 *
 * A snapshot is taken of each lane of a slice as it will be when the rows of
 * the group are durable. */
#include "flow/state.h"

/* -- a cursor's snapshot --------------------------------------------------- */

/* Settled once the group is durable. In an ordered lane what is parked keeps
 * its place. */
static bool is_settled(const stg_slot *slot)
{
    const stg_delivery *d = slot->delivery;

    if (d == NULL)
        return true;
    return d->is_in_group &&
           (d->kind != STG_CHANGE_PARK || d->lane->o.order == STG_ORDER_NONE);
}

/* Writes the settled positions above the base to `settled`, which has room, and
 * returns their number. */
static size_t find_settled(const stg_flow *f, const stg_lane *l, uint32_t p,
                           uint64_t *base, uint64_t *settled)
{
    const stg_place *place = &l->places[p];
    size_t count = 0;
    bool is_above = false;

    *base = stg_place_next(f, l, p);
    for (uint32_t i = 0; i < place->ring.count; i++) {
        const stg_slot *slot = stg_ring_at(&place->ring, place->ring.first + i);

        if (!is_settled(slot)) {
            if (!is_above)
                *base = slot->position;
            is_above = true;
        } else if (is_above) {
            settled[count++] = slot->position;
        }
    }
    for (size_t i = place->restored_at; i < place->restored_count; i++) {
        if (place->restored[i] < stg_place_next(f, l, p))
            continue;
        settled[count++] = place->restored[i];
    }
    return count;
}

/* Only of those that are behind: for most it changes all the time. */
static stg_ns find_oldest(const stg_flow *f, const stg_lane *l, uint32_t p,
                          stg_ns wall_at)
{
    stg_ns oldest_at = stg_place_oldest(f, l, p);

    return stg_ns_add(oldest_at, STG_MIN) <= wall_at ? oldest_at : 0;
}

static void snapshot(const stg_flow *f, const stg_lane *l, uint32_t p,
                     stg_ns wall_at, stg_cursor *c, uint64_t *settled)
{
    const stg_place *place = &l->places[p];
    const stg_books_change *g = &place->in_group;

    *c = (stg_cursor){
        .lane = l->number,
        .partition = p,
        .routed = place->routed - place->waiting - place->in_flight + g->fresh,
        .delivered = place->delivered + g->delivered,
        .dead = place->dead + g->dead,
        .cancelled = place->cancelled,
        .parked = (uint64_t)((int64_t)place->rows + g->rows),
        .replays = (uint64_t)((int64_t)place->replays + g->replays),
        .is_ordered = l->o.order != STG_ORDER_NONE,
        .oldest_at = find_oldest(f, l, p, wall_at),
        .settled = settled,
    };
    c->settled_count = find_settled(f, l, p, &c->base, settled);
}

/* -- which rows ------------------------------------------------------------ */

static void describe(const stg_delivery *d, stg_change *c)
{
    *c = (stg_change){
        .kind = d->kind,
        .lane = d->lane->number,
        .partition = d->message->partition,
        .position = d->message->position,
        .replay = d->replay,
        .message = d->message,
        .failure = d->has_failure ? &d->failure : NULL,
        .progress = d->progress,
        .wait = d->wait,
        .due_at = d->due_wall,
    };
}

static void foresee(stg_books_change *g, const stg_delivery *d)
{
    g->fresh += !d->is_stored;
    g->delivered += d->kind == STG_CHANGE_DELIVERED;
    g->dead += d->kind == STG_CHANGE_DEAD;
    if (d->kind == STG_CHANGE_PARK)
        g->rows += !d->is_stored;
    else
        g->rows -= d->is_stored;
    if (d->kind != STG_CHANGE_PARK)
        g->replays -= d->replay > 0;
}

/* Every row that waits goes into the group. */
static size_t take_rows(stg_flow *f, stg_change *changes)
{
    stg_checkpoint *c = &f->checkpoint;
    size_t count = 0;
    stg_link *at;

    while ((at = stg_list_shift(&c->pending)) != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, change);

        stg_list_push(&c->in_group, at);
        d->is_in_group = true;
        foresee(&stg_delivery_place(d)->in_group, d);
        describe(d, &changes[count++]);
    }
    c->pending_count = 0;
    return count;
}

static size_t add_range(const stg_lane *l, uint32_t p, stg_change *change)
{
    stg_range *r = &l->places[p].range;

    if (!r->is_dirty)
        return 0;
    *change = (stg_change){.kind = STG_CHANGE_RANGE,
                           .lane = l->number,
                           .partition = p,
                           .position = r->first,
                           .last_position = r->last,
                           .count = r->count,
                           .added = r->count - r->stored,
                           .is_cancelled = r->is_cancelled};
    r->is_dirty = false;
    r->is_in_group = true;
    return 1;
}

static size_t add_end(const stg_lane *l, uint32_t p, stg_change *changes)
{
    changes[0] = (stg_change){
        .kind = STG_CHANGE_CANCEL, .lane = l->number, .partition = p};
    changes[1] = (stg_change){
        .kind = STG_CHANGE_FORGET, .lane = l->number, .partition = p};
    return 2;
}

/* -- the group ------------------------------------------------------------- */

typedef void each_fn(stg_flow *f, stg_lane *l, uint32_t p, void *ctx);

/* Every lane of every slice that is to be written. */
static void visit(stg_flow *f, uint8_t wanted, each_fn *each, void *ctx)
{
    for (uint32_t p = 0; p < f->partition_count; p++)
        for (uint32_t s = 0; s < f->lane_capacity / STG_SLICE; s++) {
            if ((f->partitions[p].slices[s] & wanted) == 0)
                continue;
            for (uint32_t i = 0; i < STG_SLICE; i++) {
                stg_lane *l = f->lanes[s * STG_SLICE + i];

                if (l != NULL)
                    each(f, l, p, ctx);
            }
        }
}

typedef struct need {
    size_t cursors, settled, changes;
} need;

static void measure(stg_flow *f, stg_lane *l, uint32_t p, void *ctx)
{
    need *n = ctx;

    n->cursors++;
    n->settled += l->places[p].ring.count + l->places[p].restored_count;
    n->changes += l->places[p].range.is_dirty;
    n->changes += l->is_ending ? 2 : 0;
    l->places[p].in_group = (stg_books_change){.fresh = 0};
    (void)f;
}

typedef struct filling {
    stg_checkpoint *c;
    size_t cursors, settled, changes;
    stg_ns wall_at;
} filling;

static void add_cursor(stg_flow *f, stg_lane *l, uint32_t p, void *ctx)
{
    filling *to = ctx;
    stg_checkpoint *c = to->c;

    if (l->is_ending) {
        to->changes += add_end(l, p, &c->changes[to->changes]);
        return;
    }
    to->changes += add_range(l, p, &c->changes[to->changes]);
    snapshot(f, l, p, to->wall_at, &c->cursors[to->cursors],
             &c->settled[to->settled]);
    to->settled += c->cursors[to->cursors++].settled_count;
}

static void clear_marks(stg_flow *f, uint8_t wanted)
{
    for (uint32_t p = 0; p < f->partition_count; p++)
        for (uint32_t s = 0; s < f->lane_capacity / STG_SLICE; s++)
            if (f->partitions[p].slices[s] & wanted)
                f->partitions[p].slices[s] = 0;
}

static bool allocate_group(stg_flow *f, const need *n)
{
    stg_checkpoint *c = &f->checkpoint;

    c->changes = stg_flow_allocate(f, (n->changes + 1) * sizeof *c->changes);
    c->cursors = stg_flow_allocate(f, (n->cursors + 1) * sizeof *c->cursors);
    c->settled = stg_flow_allocate(f, (n->settled + 1) * sizeof *c->settled);
    return c->changes != NULL && c->cursors != NULL && c->settled != NULL;
}

static void free_group(stg_flow *f)
{
    stg_checkpoint *c = &f->checkpoint;

    stg_flow_release(f, c->changes);
    stg_flow_release(f, c->cursors);
    stg_flow_release(f, c->settled);
    c->changes = NULL;
    c->cursors = NULL;
    c->settled = NULL;
    c->group = (stg_group){.changes = NULL};
}

/* Which slices: those that rows rely on, and all that have changed when it is
 * time for them. */
static uint8_t find_wanted(const stg_flow *f, stg_ns now)
{
    const stg_checkpoint *c = &f->checkpoint;

    if (c->is_bare_due || now >= c->cursors_at || f->is_stopping)
        return STG_SLICE_DIRTY | STG_SLICE_MUST;
    return STG_SLICE_MUST;
}

static bool build(stg_flow *f, stg_ns now)
{
    stg_checkpoint *c = &f->checkpoint;
    uint8_t wanted = find_wanted(f, now);
    need n = {.changes = 0};
    filling to = {.c = c, .wall_at = stg_flow_wall(f, now)};

    visit(f, wanted, measure, &n);
    n.changes += c->is_bare_due ? 0 : c->pending_count;
    if (n.changes + n.cursors == 0) {
        c->is_dirty = c->is_must = c->is_bare_due = false;
        return false;
    }
    if (!allocate_group(f, &n)) {
        free_group(f);
        c->retry_at = stg_ns_add(now, 100 * STG_MS);
        return false;
    }
    c->is_bare = c->is_bare_due;
    c->is_bare_due = false;
    if (!c->is_bare)
        to.changes = take_rows(f, c->changes);
    visit(f, wanted, add_cursor, &to);
    clear_marks(f, wanted);
    if (wanted & STG_SLICE_DIRTY) {
        c->is_dirty = false;
        c->cursors_at = stg_ns_add(
            now, stg_ns_max(50 * STG_MS, (128 * to.cursors + 8 * to.settled) *
                                             (STG_S / (4 << 20))));
    }
    c->is_must = false;
    c->group = (stg_group){.changes = c->changes,
                           .change_count = to.changes,
                           .cursors = c->cursors,
                           .cursor_count = to.cursors};
    c->is_out = true;
    c->is_told = false;
    return true;
}

stg_ns stg_checkpoint_at(const stg_flow *f)
{
    const stg_checkpoint *c = &f->checkpoint;

    if (c->is_out || !f->is_started)
        return STG_NEVER;
    if (c->pending_count > 0 || c->is_must || c->is_bare_due ||
        (c->is_dirty && f->is_stopping))
        return c->retry_at;
    return c->is_dirty ? stg_ns_max(c->cursors_at, c->retry_at) : STG_NEVER;
}

bool stg_checkpoint_next(stg_flow *f, stg_action *action, stg_ns now)
{
    stg_checkpoint *c = &f->checkpoint;

    if (!c->is_out && stg_checkpoint_at(f) <= now)
        build(f, now);
    if (!c->is_out || c->is_told)
        return false;
    c->is_told = true;
    *action = (stg_action){.kind = STG_ACTION_STORE};
    action->group = &c->group;
    return true;
}

/* -- the answer ------------------------------------------------------------ */

/* All of a lane that was new is durable now. */
static void note_added(stg_flow *f, stg_lane *l)
{
    if (!l->is_new)
        return;
    for (uint32_t p = 0; p < f->partition_count; p++)
        if (!l->places[p].is_restored)
            return;
    l->is_new = false;
    stg_list_push(&f->added, &l->added);
}

static void note_cursors(stg_flow *f)
{
    const stg_group *g = &f->checkpoint.group;

    for (size_t i = 0; i < g->cursor_count; i++) {
        const stg_cursor *c = &g->cursors[i];
        stg_lane *l = stg_flow_lane(f, c->lane);
        stg_place *place;

        if (l == NULL)
            continue;
        place = &l->places[c->partition];
        place->durable = c->base;
        place->is_restored = true;
        note_added(f, l);
        // A gap that the window has seen is not read again.
        place->next = stg_ns_max(place->next, c->base);
    }
}

static void note_changes(stg_flow *f, bool is_durable)
{
    const stg_group *g = &f->checkpoint.group;

    for (size_t i = 0; i < g->change_count; i++) {
        const stg_change *c = &g->changes[i];
        stg_lane *l = stg_flow_lane(f, c->lane);

        if (l == NULL)
            continue;
        if (c->kind == STG_CHANGE_RANGE) {
            stg_range *r = &l->places[c->partition].range;

            r->is_in_group = false;
            r->is_dirty |= !is_durable;
            if (is_durable)
                r->stored = c->count;
            stg_lane_wake(f, l);
        } else if (c->kind == STG_CHANGE_FORGET && is_durable &&
                   ++l->forgotten == f->partition_count) {
            stg_lane_move(f, l, STG_IN_NONE);
            stg_list_push(&f->removed, &l->link);
        }
        if (!is_durable)
            stg_place_mark(f, l, c->partition, STG_SLICE_MUST);
    }
}

static void succeed(stg_flow *f)
{
    stg_checkpoint *c = &f->checkpoint;
    stg_link *at;

    note_cursors(f);
    note_changes(f, true);
    free_group(f);
    c->is_out = false;
    while ((at = stg_list_shift(&c->in_group)) != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, change);

        d->is_in_group = false;
        stg_settle_durable(f, d);
    }
    stg_watermark_raise(f);
}

static void open_store_gates(stg_flow *f)
{
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && f->lanes[i]->is_store_full) {
            f->lanes[i]->is_store_full = false;
            stg_lane_wake(f, f->lanes[i]);
        }
    stg_flow_tell(f, 0, 0, STG_TELL_STORE_ROOM, 0, 0);
}

/* Nothing of the group was written: all of it waits again, first its rows. */
static void take_back(stg_flow *f)
{
    stg_checkpoint *c = &f->checkpoint;
    stg_link *at;

    note_changes(f, false);
    for (size_t i = 0; i < c->group.cursor_count; i++)
        stg_place_mark(f, stg_flow_lane(f, c->cursors[i].lane),
                       c->cursors[i].partition, STG_SLICE_DIRTY);
    free_group(f);
    c->is_out = false;
    while ((at = stg_list_last(&c->in_group)) != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, change);

        stg_list_remove(at);
        stg_list_unshift(&c->pending, at);
        c->pending_count++;
        d->is_in_group = false;
        d->lane->is_store_full = true;
    }
}

/* What rows rely on is written with them. */
static void mark_pending(stg_flow *f)
{
    stg_list *pending = &f->checkpoint.pending;

    for (stg_link *at = stg_list_first(pending); at != NULL;
         at = stg_list_next(pending, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, change);

        stg_place_mark(f, d->lane, d->message->partition, STG_SLICE_MUST);
    }
}

/* The store is full: first the cursors without the rows, with the room that
 * they make; then the rows, every second. */
static void refuse(stg_flow *f, stg_ns now)
{
    stg_checkpoint *c = &f->checkpoint;
    bool was_bare = c->is_bare;

    take_back(f);
    mark_pending(f);
    if (!c->is_full)
        stg_flow_tell(f, 0, 0, STG_TELL_STORE_FULL, 0, 0);
    c->is_full = true;
    c->is_bare_due = !was_bare;
    c->retry_at = was_bare ? stg_ns_add(now, STG_S) : now;
}

void stg_flow_stored(stg_flow *f, stg_stored how, stg_ns now)
{
    stg_checkpoint *c = &f->checkpoint;

    if (!c->is_out || !c->is_told)
        return;
    if (how == STG_STORED_UNKNOWN || how == STG_STORED_FENCED) {
        c->is_told = false;
        return;
    }
    if (how == STG_STORED_FULL) {
        refuse(f, now);
        return;
    }
    succeed(f);
    if (c->is_bare) {
        mark_pending(f);
        c->retry_at = stg_ns_add(now, STG_S);
    } else if (c->is_full) {
        c->is_full = false;
        open_store_gates(f);
    }
    c->is_bare = false;
}

void stg_checkpoint_free(stg_flow *f)
{
    free_group(f);
}
