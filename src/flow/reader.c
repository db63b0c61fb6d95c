/* Decides what is read from the log, when and from where: the main reader of
 * each partition just ahead of its furthest lane, and one catch-up reader for
 * the lanes that catch up, in turn. */
#include <assert.h>

#include "flow/state.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t greatest(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The bytes that one read may bring: a message comes however large it is. */
static size_t reserve_for(const stg_flow *f, size_t bytes_max)
{
    return greatest(bytes_max, f->message_max);
}

/* -- the main readers ------------------------------------------------------ */

static bool is_driver(const stg_lane *l)
{
    return !l->is_shedding && !l->is_paused && !l->is_removing;
}

/* Where all lanes that follow the partition shed, the quickest of them leads. */
static void let_shedders_lead(stg_flow *f, stg_partition *p)
{
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && is_driver(f->lanes[i]) &&
            stg_lane_follows(f->lanes[i], p))
            return;
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && f->lanes[i]->is_shedding &&
            !stg_lane_cursor_in(f->lanes[i], p)->is_catching_up)
            stg_lane_cursor_lead(f, f->lanes[i], p);
}

static void lead_otherwise(stg_flow *f, stg_partition *p)
{
    if (f->shedding_count > 0)
        let_shedders_lead(f, p);
    while (p->followers == 0 && p->furthest < p->window.end)
        stg_partition_lead(f, p);
}

static bool wants_more(stg_flow *f, stg_partition *p)
{
    size_t ahead_max = least(4 << 20, f->o.memory_max / 8);

    if (p->is_reading || p->is_merged || !stg_partition_is_assigned(p) ||
        f->lane_count == 0 || f->now < f->read_at)
        return false;
    if (p->ahead >= ahead_max)
        lead_otherwise(f, p);
    return p->ahead < ahead_max;
}

static size_t chunk_of(const stg_flow *f)
{
    return least(1 << 20, f->o.memory_max / 16);
}

static bool read_on(stg_flow *f, stg_partition *p, stg_action *action)
{
    size_t reserved = reserve_for(f, chunk_of(f));

    if (!wants_more(f, p) || !stg_flow_make_room(f, reserved))
        return false;
    f->held += reserved;
    p->reserved = reserved;
    p->is_reading = true;
    *action = (stg_action){.kind = STG_ACTION_READ, .partition = p->number};
    action->read.assignment = p->assignment;
    action->read.from = p->window.next;
    action->read.bytes_max = chunk_of(f);
    return true;
}

/* -- the reader of those that are merged ----------------------------------- */

static stg_partition *find_most_ahead(const stg_flow *f)
{
    stg_partition *most = NULL;

    for (uint32_t i = 0; i < f->partition_count; i++) {
        stg_partition *p = f->partitions[i];

        if (p->is_merged && p->ahead > (most == NULL ? 0 : most->ahead))
            most = p;
    }
    return most;
}

/* Out of the window, though no lane may have taken it. */
static void drop_first(stg_flow *f, stg_partition *p)
{
    if (p->window.first == p->furthest)
        stg_partition_lead(f, p);
    stg_flow_drop(f, stg_window_shift(&p->window));
}

/* All that is read comes by one way: where lanes of some partitions do not go
 * on, others would wait for ever. So what there is no room for leaves the
 * window, when a lane has nothing left to do; who stood there reads alone. */
static bool make_way(stg_flow *f, size_t ahead_max)
{
    while (f->merged.ahead >= ahead_max) {
        stg_partition *p = find_most_ahead(f);

        if (f->awaiting_read == 0)
            return false;
        assert(p != NULL); // so much is ahead in one of them
        drop_first(f, p);
    }
    return true;
}

/* Room is reserved for what the read may bring, in the budget of memory. Where enough
 * was read ahead, lanes that only shed lead their partitions first: they need no
 * time. */
static bool read_merged(stg_flow *f, stg_action *action)
{
    stg_merged *m = &f->merged;
    size_t reserved = reserve_for(f, chunk_of(f));
    size_t ahead_max = least(16 << 20, f->o.memory_max / 8);

    if (m->is_reading || m->count == 0 || f->lane_count == 0)
        return false;
    for (uint32_t i = 0; m->ahead >= ahead_max && i < f->partition_count; i++)
        if (f->partitions[i]->is_merged &&
            stg_partition_is_assigned(f->partitions[i]))
            lead_otherwise(f, f->partitions[i]);
    if (!make_way(f, ahead_max) || !stg_flow_make_room(f, reserved))
        return false;
    f->held += reserved;
    m->reserved = reserved;
    m->is_reading = true;
    *action =
        (stg_action){.kind = STG_ACTION_READ, .partition = STG_ANY_PARTITION};
    action->read.bytes_max = chunk_of(f);
    return true;
}

void stg_flow_read_end(stg_flow *f, stg_ns now)
{
    f->now = now;
    f->held -= f->merged.reserved;
    f->merged.reserved = 0;
    f->merged.is_reading = false;
}

/* -- what comes ------------------------------------------------------------ */

static void pass_all(stg_flow *f, stg_partition *p)
{
    for (uint32_t i = 0; p->followers < f->lane_count && i < f->lane_capacity;
         i++)
        if (f->lanes[i] != NULL)
            stg_lane_cursor_pass(f, f->lanes[i], p);
}

static void wake_idle(stg_flow *f)
{
    stg_link *at;

    while ((at = stg_list_first(&f->idle)) != NULL)
        stg_lane_wake(f, STG_HOLDER(at, stg_lane, link));
}

static void note_size(stg_flow *f, size_t size)
{
    f->average = f->average - f->average / 16 + size / 16;
}

/* False: no memory; what was not put in is read again. */
static bool add(stg_flow *f, stg_partition *p, const stg_record *r)
{
    stg_message *m;

    if (r->position < p->window.next)
        return true; // read twice
    if (!stg_window_reserve(&p->window, 1, &f->memory))
        return false;
    m = stg_flow_message(f, p, r);
    if (m == NULL)
        return false;
    m->lost_from = p->lost_from;
    m->lost_end = p->lost_end;
    p->lost_from = p->lost_end = 0;
    stg_window_push(&p->window, m);
    p->window.next = r->position + 1;
    p->ahead += m->size;
    if (p->is_merged)
        f->merged.ahead += m->size;
    note_size(f, m->size);
    return true;
}

/* Returns the room that was reserved for the read; of merged partitions, the
 * part of the batch. */
static bool give_back_room(stg_flow *f, stg_partition *p,
                           const stg_record *records, size_t count)
{
    size_t *reserved = p->is_merged ? &f->merged.reserved : &p->reserved;
    size_t size = *reserved;

    if (!(p->is_merged ? f->merged.is_reading : p->is_reading))
        return false;
    p->is_reading = false;
    if (p->is_merged) {
        size = 0;
        for (size_t i = 0; i < count; i++)
            size += records[i].size;
        size = least(size, *reserved);
    }
    f->held -= size;
    *reserved -= size;
    return true;
}

/* There was no memory, and those that are merged are not read again from here:
 * the window begins after it, and every lane catches up. */
static void skip(stg_flow *f, stg_partition *p, uint64_t next)
{
    while (p->window.first < p->window.end)
        drop_first(f, p);
    p->furthest = p->window.first = ++p->window.end;
    p->window.start = p->window.next = stg_ns_max(next, p->window.next);
}

/* Without memory: of merged partitions the window begins anew at `next`, and lanes
 * catch up; one with a read of its own is asked again, a little later. */
static void take_in(stg_flow *f, stg_partition *p, const stg_record *records,
                    size_t count, uint64_t next)
{
    size_t i = 0;

    if (!give_back_room(f, p, records, count))
        return;
    while (i < count && add(f, p, &records[i]))
        i++;
    if (i < count && p->is_merged)
        skip(f, p, next);
    else if (i < count)
        f->read_at = stg_ns_add(f->now, 100 * STG_MS);
    else if (next > p->window.next)
        stg_checkpoint_note_gap(f, p, next);
    pass_all(f, p);
    wake_idle(f);
}

/* -- the catch-up reader --------------------------------------------------- */

/* How many more messages the lane takes ahead of its attempts, where its ring is not
 * full. One may always be, however large. */
static uint32_t find_room(const stg_flow *f, const stg_lane *l,
                          stg_partition *p)
{
    uint32_t taken = stg_lane_cursor_in(l, p)->ring.count;

    return stg_lane_may_take(f, l) ? stg_lane_ahead(l) - taken : 0;
}

static bool may_send(const stg_lane *l, stg_ns now)
{
    return !l->is_paused && !l->is_gated && !l->is_removing && !l->is_denied &&
           !l->is_store_full && !l->is_parked_max && l->gate_at <= now &&
           stg_lane_is_loaded(l);
}

/* Half of what it may have under way has to have ended first: not a read for each
 * message. */
static bool is_eager(const stg_flow *f, const stg_lane *l, stg_ns now)
{
    return may_send(l, now) && stg_lane_may_take(f, l) &&
           l->untried_count <= stg_lane_limit(l) / 2;
}

static bool awaits_read(stg_lane *l, stg_partition *p, bool is_eager)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);

    if (!cursor->is_catching_up || cursor->ring.count >= stg_lane_ahead(l) ||
        stg_lane_cursor_is_draining(cursor))
        return false;
    return is_eager || stg_shed_wants(l, cursor, cursor->next);
}

static int compare_cursor(const stg_catch_up *a, const stg_catch_up *b)
{
    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    return (a->from > b->from) - (a->from < b->from);
}

typedef struct choice {
    stg_catch_up at;
    stg_partition *partition;
    stg_lane *lane;
} choice;

static void consider(choice *best, const choice *c)
{
    if (best->lane == NULL || compare_cursor(&c->at, &best->at) < 0)
        *best = *c;
}

/* The lowest cursor above the last one, else the lowest of all. */
static choice choose(const stg_flow *f, stg_ns now)
{
    choice first = {.lane = NULL}, next = first;

    for (stg_link *at = stg_list_first(&f->catching_up); at != NULL;
         at = stg_list_next(&f->catching_up, at)) {
        choice c = {.lane = STG_HOLDER(at, stg_lane, catch_up_link)};
        bool eager = is_eager(f, c.lane, now);
        bool sheds =
            c.lane->is_shedding || c.lane->is_removing || c.lane->is_expiring;

        for (uint32_t i = 0; (eager || sheds) && i < f->partition_count; i++) {
            c.partition = f->partitions[i];
            if (!awaits_read(c.lane, c.partition, eager))
                continue;
            c.at.partition = c.partition->number;
            c.at.from = stg_lane_cursor_in(c.lane, c.partition)->next;
            consider(&first, &c);
            if (compare_cursor(&c.at, &f->catch_up) > 0)
                consider(&next, &c);
        }
    }
    return next.lane != NULL ? next : first;
}

static size_t chunk_for(const stg_flow *f, const stg_lane *l, stg_partition *p)
{
    size_t most = least(4 << 20, f->o.memory_max / 16);
    size_t needed = find_room(f, l, p) * greatest(f->average, 1);

    if (stg_shed_wants(l, stg_lane_cursor_in(l, p),
                       stg_lane_cursor_in(l, p)->next))
        return most;
    return least(most, greatest(needed, 64 << 10));
}

/* One read at a time, for the lane whose turn it is; other lanes at the same place
 * share what it brings. */
static bool catch_up(stg_flow *f, stg_action *action, stg_ns now)
{
    stg_catch_up *c = &f->catch_up;
    size_t chunk;
    choice to;

    if (c->is_reading || stg_list_is_empty(&f->catching_up))
        return false;
    to = choose(f, now);
    if (to.lane == NULL)
        return false;
    chunk = chunk_for(f, to.lane, to.partition);
    if (!stg_flow_make_room(f, reserve_for(f, chunk)))
        return false;
    *c = (stg_catch_up){.is_reading = true,
                        .partition = to.at.partition,
                        .assignment = to.partition->assignment,
                        .from = to.at.from,
                        .reserved = reserve_for(f, chunk)};
    f->held += c->reserved;
    *action = (stg_action){.kind = STG_ACTION_READ, .partition = c->partition};
    action->read.is_catch_up = true;
    action->read.assignment = c->assignment;
    action->read.from = c->from;
    action->read.bytes_max = chunk;
    return true;
}

/* A chunk that was read, shared by the lanes that stand in it; messages are made
 * when the first lane looks at one. */
typedef struct chunk {
    stg_partition *partition;
    const stg_record *records;
    size_t count;
    uint64_t next;
    stg_message **messages;
} chunk;

static stg_message *message_of(stg_flow *f, chunk *c, size_t i)
{
    if (c->messages[i] == NULL)
        c->messages[i] = stg_flow_message(f, c->partition, &c->records[i]);
    return c->messages[i];
}

static size_t find_record(const chunk *c, uint64_t position)
{
    size_t low = 0, high = c->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (c->records[middle].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One message for one lane that catches up; false: it stops before it. */
static bool serve(stg_flow *f, stg_lane *l, chunk *c, size_t i, stg_ns now)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, c->partition);
    stg_message *m;

    if (cursor->ring.count >= stg_lane_ahead(l))
        return false;
    m = message_of(f, c, i);
    if (m == NULL)
        return false;
    if (stg_shed_wants(l, cursor, m->position))
        return stg_shed_pass(f, l, m);
    if (!may_send(l, now) || find_room(f, l, c->partition) == 0)
        return false;
    return stg_lane_cursor_take(f, l, m);
}

static void serve_lane(stg_flow *f, stg_lane *l, chunk *c, stg_ns now)
{
    stg_lane_cursor *cursor = stg_lane_cursor_in(l, c->partition);
    size_t i = find_record(c, cursor->next);

    while (i < c->count && serve(f, l, c, i, now)) {
        cursor->lagging_at = c->records[i].created_at;
        cursor->next = c->records[i++].position + 1;
    }
    if (i < c->count)
        cursor->lagging_at = c->records[i].created_at;
    // What it stopped at is the next that there is: the gap before it is read.
    cursor->next = stg_ns_max(cursor->next,
                              i < c->count ? c->records[i].position : c->next);
    stg_lane_cursor_mark(f, l, c->partition, STG_SLICE_DIRTY);
    stg_lane_cursor_join(f, l, c->partition);
    stg_lane_wake(f, l);
}

static void serve_all(stg_flow *f, chunk *c, uint64_t from, stg_ns now)
{
    stg_link *at = stg_list_first(&f->catching_up);

    while (at != NULL) {
        stg_lane *l = STG_HOLDER(at, stg_lane, catch_up_link);
        stg_lane_cursor *cursor = stg_lane_cursor_in(l, c->partition);

        at = stg_list_next(&f->catching_up, at);
        if (cursor->is_catching_up && cursor->next >= from &&
            cursor->next < c->next && !stg_lane_cursor_is_draining(cursor))
            serve_lane(f, l, c, now);
    }
}

/* The read is over, whatever came of it. False: it is not the one that is
 * waited for, or the partition was revoked since. */
static bool end_catch_up(stg_flow *f, uint32_t partition, uint64_t assignment)
{
    stg_catch_up *c = &f->catch_up;

    if (!c->is_reading || c->partition != partition ||
        (assignment != 0 && assignment != c->assignment))
        return false;
    c->is_reading = false;
    f->held -= c->reserved;
    return stg_flow_assignment(f, partition) == c->assignment;
}

static void share(stg_flow *f, chunk *c, stg_ns now)
{
    stg_catch_up *reader = &f->catch_up;
    const stg_window *w = &c->partition->window;

    // Nothing up to the end: what the window begins with comes next.
    if (c->count == 0 && c->next <= reader->from)
        c->next = w->start;
    // No lane passes the main reader.
    c->next = stg_ns_min(c->next, w->next);
    while (c->count > 0 && c->records[c->count - 1].position >= w->next)
        c->count--;
    c->messages = stg_flow_allocate(f, (c->count + 1) * sizeof(stg_message *));
    if (c->messages == NULL)
        return;
    for (size_t i = 0; i < c->count; i++)
        c->messages[i] = NULL;
    serve_all(f, c, reader->from, now);
    reader->from = c->next; // who stands there has had its turn
    for (size_t i = 0; i < c->count; i++)
        stg_flow_drop(f, c->messages[i]);
    stg_flow_release(f, c->messages);
}

/* An answer of an earlier assignment is no news: the partition may have gone and come
 * back since it was asked for. */
void stg_flow_messages(stg_flow *f, bool is_catch_up, uint32_t partition,
                       uint64_t assignment, const stg_record *records,
                       size_t count, uint64_t next, stg_ns now)
{
    stg_partition *p = stg_flow_partition(f, partition);
    chunk c = {
        .partition = p, .records = records, .count = count, .next = next};

    f->now = now;
    if (is_catch_up) {
        if (end_catch_up(f, partition, assignment))
            share(f, &c, now);
        return;
    }
    if (p == NULL || !stg_partition_is_assigned(p) ||
        (assignment != 0 && assignment != p->assignment))
        return;
    take_in(f, p, records, count, next);
}

void stg_flow_unread(stg_flow *f, uint32_t partition, uint64_t assignment,
                     stg_ns now)
{
    f->now = now;
    (void)end_catch_up(f, partition, assignment); // others have their turn
}

bool stg_reader_next(stg_flow *f, stg_action *action, stg_ns now)
{
    if (!f->is_started || f->stop != STG_STOP_NOT)
        return false;
    if (stg_parking_next(f, action) || catch_up(f, action, now) ||
        read_merged(f, action))
        return true;
    for (uint32_t i = 0; i < f->partition_count; i++)
        if (read_on(f, f->partitions[i], action))
            return true;
    return false;
}
