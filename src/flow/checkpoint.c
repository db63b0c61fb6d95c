/* Groups for the store: the rows that wait, and the cursors that rely on them.
 *
 * A snapshot is taken of each lane of a slice as it will be when the rows of
 * the group are durable. */
#include <assert.h>
#include <string.h>

#include "flow/state.h"

/* Cursors that have only passed gaps are written once in this time: a topic in
 * which nothing is for the lanes costs no more groups than that. */
#define GAP_WAIT STG_S

/* -- a cursor's snapshot --------------------------------------------------- */

/* A row without a slot in the ring that ends with this group: from then on
 * its message is passed over, as note_row() of lane_cursor.c has it later. */
static bool is_noted(const stg_delivery *d, const stg_partition *p)
{
    return d->message->slot == p->slot && d->is_in_group && !d->in_ring &&
           d->replay == 0 && d->kind != STG_CHANGE_PARK;
}

/* Among what was restored there is room for those that are not in it yet. */
static size_t add_noted(const stg_lane *l, const stg_partition *p,
                        uint64_t next, stg_positions *settled, size_t count)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    size_t most = count + cursor->restored_capacity -
                  (cursor->restored_count - cursor->restored_at);

    for (stg_link *at = stg_list_first(&l->busy); at != NULL && count < most;
         at = stg_list_next(&l->busy, at)) {
        const stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        if (is_noted(d, p) && d->message->position >= next)
            count = stg_positions_insert(settled, count, d->message->position);
    }
    return count;
}

/* Writes what is settled above the base to `settled`, which has room, and
 * returns how many ranges it is. */
static size_t find_settled(const stg_lane *l, const stg_partition *p,
                           uint64_t *base, stg_positions *settled)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_books_change *g = &cursor->in_group;
    bool with_group = g->fresh + g->delivered + g->dead > 0;
    uint64_t next = stg_lane_cursor_next(l, p);
    size_t count =
        stg_lane_cursor_settled(cursor, with_group, next, base, settled);

    return cursor->restored == NULL ? count
                                    : add_noted(l, p, next, settled, count);
}

/* Only of those that are behind: for most it changes all the time. Of a lane
 * that catches up that does not read it does not. */
static stg_ns find_oldest(const stg_lane *l, const stg_partition *p,
                          stg_ns wall_at)
{
    stg_ns oldest_at = stg_lane_cursor_oldest(l, p);

    if (stg_lane_cursor_in(l, p)->is_catching_up)
        return oldest_at;
    return stg_ns_add(oldest_at, STG_MIN) <= wall_at ? oldest_at : 0;
}

/* Each field has its value here: a compiler clears what lacks some as a whole
 * first, and there is one of these for each lane of a slice. */
static void snapshot(const stg_lane *l, const stg_partition *p, stg_ns wall_at,
                     stg_cursor *c, stg_positions *settled)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_books_change *g = &cursor->in_group;
    uint64_t base;
    size_t count = find_settled(l, p, &base, settled);

    *c = (stg_cursor){
        .lane = l->number,
        .partition = p->number,
        .base = base,
        .routed =
            cursor->routed - cursor->waiting - cursor->in_flight + g->fresh,
        .delivered = cursor->delivered + g->delivered,
        .dead = cursor->dead + g->dead,
        .cancelled = cursor->cancelled,
        .parked = (uint64_t)((int64_t)cursor->rows + g->rows),
        .replays = (uint64_t)((int64_t)cursor->replays + g->replays),
        // As its rows stand, which were parked under another order.
        .is_ordered = (l->o.order != STG_ORDER_NONE) != cursor->is_draining,
        .oldest_at = find_oldest(l, p, wall_at),
        .settled = settled,
        .settled_count = count,
    };
    // A row below is one that the log has lost: it gets no slot any more.
    cursor->loose_below = stg_ns_max(cursor->loose_below, base);
}

/* -- which rows ------------------------------------------------------------ */

/* A change points into the delivery: both stay until the store has answered. */
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
        .attempts_before = d->attempts_before,
        .began_at = d->began_at,
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
        foresee(&stg_delivery_cursor(d)->in_group, d);
        describe(d, &changes[count++]);
    }
    c->pending_count = 0;
    return count;
}

/* What opened the breaker, if that is why it was shed; kept with the group. */
static const stg_failure *find_fault(stg_checkpoint *c, const stg_lane *l,
                                     const stg_bulk_row *r)
{
    if (r->is_cancelled || l->note == NULL ||
        (r->reason != STG_SHED_OPEN && r->reason != STG_SHED_DOWN) ||
        l->note->opening != r->opening)
        return NULL;
    c->notes[c->note_count++] = stg_note_hold(l->note);
    return &l->note->failure;
}

/* The change of a lane's bulk row, if it has grown since the last group. Returns
 * how many changes. */
static size_t add_range(stg_checkpoint *c, const stg_lane *l,
                        const stg_partition *p, stg_bulk_row *r,
                        stg_change *change)
{
    if (!r->is_dirty)
        return 0;
    *change =
        (stg_change){.kind = STG_CHANGE_RANGE,
                     .lane = l->number,
                     .partition = p->number,
                     .position = r->first,
                     .last_position = r->last,
                     .count = r->count,
                     .added = r->count - r->stored,
                     .is_cancelled = r->is_cancelled,
                     .reason = r->reason,
                     .is_expired = r == &stg_lane_cursor_in(l, p)->expired};
    if (change->is_expired)
        change->replay = STG_REPLAY_LOST;
    else
        change->failure = find_fault(c, l, r);
    r->is_dirty = false;
    r->is_in_group = true;
    return 1;
}

static size_t add_end(const stg_lane *l, const stg_partition *p,
                      stg_change *changes)
{
    changes[0] = (stg_change){
        .kind = STG_CHANGE_CANCEL, .lane = l->number, .partition = p->number};
    changes[1] = (stg_change){
        .kind = STG_CHANGE_FORGET, .lane = l->number, .partition = p->number};
    return 2;
}

/* -- the group ------------------------------------------------------------- */

typedef void each_fn(stg_flow *f, stg_lane *l, stg_partition *p, void *ctx);

/* Every lane of every slice that is to be written. Few lanes do not fill theirs:
 * behind the last of all there is nothing to look for. */
static inline void visit(stg_flow *f, uint8_t due, each_fn *each, void *ctx)
{
    for (uint32_t k = 0; k < f->partition_count; k++) {
        uint32_t left = f->lane_count;

        for (uint32_t s = 0; s < f->lane_capacity / STG_SLICE; s++) {
            if ((f->partitions[k]->slices[s] & due) == 0)
                continue;
            for (uint32_t i = 0; i < STG_SLICE && left > 0; i++) {
                stg_lane *l = f->lanes[s * STG_SLICE + i];

                if (l == NULL)
                    continue;
                left--;
                each(f, l, f->partitions[k], ctx);
            }
        }
    }
}

typedef struct need {
    size_t cursors, settled, changes, ranges;
} need;

static void measure(stg_flow *f, stg_lane *l, stg_partition *p, void *ctx)
{
    need *n = ctx;

    n->cursors++;
    n->settled += stg_lane_cursor_in(l, p)->ring.count +
                  stg_lane_cursor_in(l, p)->restored_capacity;
    n->ranges += stg_lane_cursor_in(l, p)->bulk.is_dirty;
    n->changes += stg_lane_cursor_in(l, p)->bulk.is_dirty;
    n->changes += stg_lane_cursor_in(l, p)->expired.is_dirty;
    n->changes += l->is_ending ? 2 : 0;
    stg_lane_cursor_in(l, p)->in_group = (stg_books_change){.fresh = 0};
    (void)f;
}

typedef struct filling {
    stg_checkpoint *c;
    size_t cursors, settled, changes;
    stg_ns wall_at;
} filling;

/* A cursor goes with the bulk rows that it relies on; of a lane that ends it is
 * forgotten instead. */
static void add_cursor(stg_flow *f, stg_lane *l, stg_partition *p, void *ctx)
{
    filling *to = ctx;
    stg_checkpoint *c = to->c;

    (void)f;
    if (l->is_ending) {
        to->changes += add_end(l, p, &c->changes[to->changes]);
        return;
    }
    to->changes += add_range(c, l, p, &stg_lane_cursor_in(l, p)->bulk,
                             &c->changes[to->changes]);
    to->changes += add_range(c, l, p, &stg_lane_cursor_in(l, p)->expired,
                             &c->changes[to->changes]);
    snapshot(l, p, to->wall_at, &c->cursors[to->cursors],
             &c->settled[to->settled]);
    to->settled += c->cursors[to->cursors++].settled_count;
}

static bool clear_slices(const stg_flow *f, stg_partition *p, uint8_t due)
{
    bool is_any = false;

    for (uint32_t s = 0; s < f->lane_capacity / STG_SLICE; s++)
        if (p->slices[s] & due) {
            p->slices[s] = 0;
            is_any = true;
        }
    return is_any;
}

/* All that is in the group of a partition has its claim. Of one that is revoked
 * the last group has all that was marked. */
static size_t clear_marks(stg_flow *f, uint8_t due, stg_claim *claims)
{
    size_t count = 0;

    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];

        p->is_in_group = clear_slices(f, p, due);
        if (!p->is_in_group)
            continue;
        claims[count++] = (stg_claim){p->number, p->generation};
        if (p->last == STG_LAST_DUE)
            p->last = STG_LAST_OUT;
    }
    return count;
}

static bool allocate_group(stg_flow *f, const need *n)
{
    stg_checkpoint *c = &f->checkpoint;

    c->changes = stg_flow_allocate(f, (n->changes + 1) * sizeof *c->changes);
    c->cursors = stg_flow_allocate(f, (n->cursors + 1) * sizeof *c->cursors);
    c->settled = stg_flow_allocate(f, (n->settled + 1) * sizeof *c->settled);
    c->claims =
        stg_flow_allocate(f, (f->partition_count + 1) * sizeof *c->claims);
    c->notes = stg_flow_allocate(f, (n->ranges + 1) * sizeof(stg_note *));
    return c->changes != NULL && c->cursors != NULL && c->settled != NULL &&
           c->claims != NULL && c->notes != NULL;
}

void stg_checkpoint_free(stg_flow *f)
{
    stg_checkpoint *c = &f->checkpoint;

    stg_flow_release(f, c->changes);
    stg_flow_release(f, c->cursors);
    stg_flow_release(f, c->settled);
    stg_flow_release(f, c->claims);
    for (size_t i = 0; i < c->note_count; i++)
        stg_note_drop(f, c->notes[i]);
    stg_flow_release(f, c->notes);
    c->notes = NULL;
    c->note_count = 0;
    c->claims = NULL;
    c->changes = NULL;
    c->cursors = NULL;
    c->settled = NULL;
    c->group = (stg_group){.changes = NULL};
}

/* Which slices: those that rows rely on, and all that have changed when it is
 * time for them. */
static uint8_t find_due(const stg_flow *f, stg_ns now)
{
    const stg_checkpoint *c = &f->checkpoint;
    uint8_t gaps = (c->marks & STG_SLICE_GAP) != 0 &&
                           (now >= c->gap_at || f->stop != STG_STOP_NOT)
                       ? STG_SLICE_GAP
                       : 0;

    if (c->is_bare_due || now >= c->cursors_at || f->stop != STG_STOP_NOT)
        return STG_SLICE_DIRTY | STG_SLICE_MUST | gaps;
    return STG_SLICE_MUST;
}

void stg_checkpoint_note_gap(stg_flow *f, stg_partition *p, uint64_t next)
{
    stg_checkpoint *c = &f->checkpoint;

    p->window.next = next;
    for (uint32_t s = 0; s < f->lane_capacity / STG_SLICE; s++)
        p->slices[s] |= STG_SLICE_GAP;
    if ((c->marks & STG_SLICE_GAP) != 0)
        return;
    c->marks |= STG_SLICE_GAP;
    c->gap_at = stg_ns_add(f->now, GAP_WAIT);
}

static bool build(stg_flow *f, stg_ns now)
{
    stg_checkpoint *c = &f->checkpoint;
    uint8_t due = find_due(f, now);
    need n = {.changes = 0};
    filling to = {.c = c, .wall_at = stg_flow_wall(f, now)};
    size_t claims;

    visit(f, due, measure, &n);
    n.changes += c->is_bare_due ? 0 : c->pending_count;
    if (n.changes + n.cursors == 0) {
        c->is_bare_due = false;
        c->marks &= (uint8_t) ~(due | STG_SLICE_MUST); // written, or none
        stg_checkpoint_resume(f);
        return false;
    }
    if (!allocate_group(f, &n)) {
        stg_checkpoint_free(f);
        c->retry_at = stg_ns_add(now, 100 * STG_MS);
        return false;
    }
    c->is_bare = c->is_bare_due;
    c->is_bare_due = false;
    if (!c->is_bare)
        to.changes = take_rows(f, c->changes);
    visit(f, due, add_cursor, &to);
    claims = clear_marks(f, due, c->claims);
    if (due & STG_SLICE_DIRTY)
        c->cursors_at = stg_ns_add(
            now, stg_ns_max(50 * STG_MS, (128 * to.cursors + 24 * to.settled) *
                                             (STG_S / (4 << 20))));
    c->marks &= (uint8_t) ~(due | STG_SLICE_MUST); // written, or none
    c->group = (stg_group){.changes = c->changes,
                           .change_count = to.changes,
                           .cursors = c->cursors,
                           .cursor_count = to.cursors,
                           .claims = c->claims,
                           .claim_count = claims,
                           .number = ++c->made};
    c->is_unknown = false;
    c->state = STG_GROUP_MADE;
    return true;
}

/* Rows and what they rely on are due at once; cursors alone at cursors_at, and those
 * that only passed a gap later. Where a stop waits for it, nothing is put off. */
stg_ns stg_checkpoint_at(const stg_flow *f)
{
    const stg_checkpoint *c = &f->checkpoint;
    stg_ns at;

    if (c->state != STG_GROUP_NONE || !f->is_started)
        return STG_NEVER;
    assert(!c->is_bare_due || c->pending_count > 0); // else there is room
    if (c->pending_count > 0 || (c->marks & STG_SLICE_MUST) != 0 ||
        (c->marks != 0 && f->stop != STG_STOP_NOT))
        return c->retry_at;
    if (c->marks == 0)
        return STG_NEVER;
    at = (c->marks & STG_SLICE_DIRTY) != 0
             ? c->cursors_at
             : stg_ns_max(c->gap_at, c->cursors_at);
    return stg_ns_max(at, c->retry_at);
}

bool stg_checkpoint_next(stg_flow *f, stg_action *action, stg_ns now)
{
    stg_checkpoint *c = &f->checkpoint;

    if (c->state == STG_GROUP_NONE && stg_checkpoint_at(f) <= now)
        build(f, now);
    if (c->state != STG_GROUP_MADE)
        return false;
    c->state = STG_GROUP_OUT;
    *action = (stg_action){.kind = STG_ACTION_STORE};
    action->group = &c->group;
    return true;
}
