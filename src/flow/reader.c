/* What is read from the log, when and from where: the main reader of each
 * partition just ahead of its furthest lane, and one catch-up reader for the
 * laggards, in turn. */
#include "flow/state.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t greatest(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What one read may bring at most: a message is given however large it is. */
static size_t reserve_for(const stg_flow *f, size_t bytes_max)
{
    return greatest(bytes_max, f->message_max);
}

/* -- the main readers ------------------------------------------------------ */

static bool is_driver(const stg_lane *l)
{
    return l != NULL && !l->is_shedding && !l->is_paused && !l->is_removing;
}

/* Where all lanes shed, the quickest of them leads. */
static void let_shedders_lead(stg_flow *f, uint32_t p)
{
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (is_driver(f->lanes[i]))
            return;
    for (uint32_t i = 0; i < f->lane_capacity; i++)
        if (f->lanes[i] != NULL && f->lanes[i]->is_shedding &&
            !f->lanes[i]->places[p].is_laggard)
            stg_place_lead(f, f->lanes[i], p);
}

static bool wants_more(stg_flow *f, uint32_t p)
{
    stg_partition *partition = &f->partitions[p];
    size_t ahead_max = least(4 << 20, f->o.memory_max / 8);

    if (partition->is_reading || f->lane_count == 0)
        return false;
    if (partition->ahead >= ahead_max && f->shedding_count > 0)
        let_shedders_lead(f, p);
    return partition->ahead < ahead_max;
}

static bool read_on(stg_flow *f, uint32_t p, stg_action *action)
{
    stg_partition *partition = &f->partitions[p];
    size_t bytes_max = least(1 << 20, f->o.memory_max / 16);
    size_t reserved = reserve_for(f, bytes_max);

    if (!wants_more(f, p) || !stg_flow_make_room(f, reserved))
        return false;
    f->held += reserved;
    partition->reserved = reserved;
    partition->is_reading = true;
    *action = (stg_action){.kind = STG_ACTION_READ, .partition = p};
    action->read.from = partition->window.next;
    action->read.bytes_max = bytes_max;
    return true;
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
static bool add(stg_flow *f, uint32_t p, const stg_record *r)
{
    stg_partition *partition = &f->partitions[p];
    stg_message *m;

    if (r->position < partition->window.next)
        return true; // read twice
    if (!stg_window_reserve(&partition->window, 1, &f->memory))
        return false;
    m = stg_flow_message(f, p, r);
    if (m == NULL)
        return false;
    stg_window_push(&partition->window, m);
    partition->window.next = r->position + 1;
    partition->ahead += m->size;
    note_size(f, m->size);
    return true;
}

static void take_in(stg_flow *f, uint32_t p, const stg_record *records,
                    size_t count, uint64_t next)
{
    stg_partition *partition = &f->partitions[p];
    size_t i = 0;

    if (!partition->is_reading)
        return;
    partition->is_reading = false;
    f->held -= partition->reserved;
    partition->reserved = 0;
    while (i < count && add(f, p, &records[i]))
        i++;
    if (i == count && next > partition->window.next)
        partition->window.next = next;
    wake_idle(f);
}

/* -- the catch-up reader --------------------------------------------------- */

/* How many more messages the lane takes ahead of its attempts. One may always
 * be, however large. */
static uint32_t find_room(const stg_flow *f, const stg_lane *l, uint32_t p)
{
    uint32_t ahead = stg_lane_ahead(l), taken = l->places[p].ring.count;

    if (taken >= ahead || !stg_lane_may_take(f, l))
        return 0;
    return ahead - taken;
}

static bool may_send(const stg_lane *l, stg_ns now)
{
    return !l->is_paused && !l->is_removing && !l->is_held &&
           !l->is_store_full && !l->is_parked_max && l->gate_at <= now &&
           stg_lane_is_loaded(l);
}

/* Half of what it may have under way has to be gone first: not a read for each
 * message. */
static bool is_hungry(const stg_flow *f, stg_lane *l, uint32_t p, stg_ns now)
{
    stg_place *place = &l->places[p];

    if (!place->is_laggard || place->ring.count >= stg_lane_ahead(l))
        return false;
    if (stg_shed_wants(l, place, place->next))
        return true;
    return may_send(l, now) && find_room(f, l, p) > 0 &&
           l->untried_count <= l->limit.value / 2;
}

static int compare_place(uint32_t p, uint64_t from, const stg_catch_up *last)
{
    if (p != last->partition)
        return p < last->partition ? -1 : 1;
    return (from > last->from) - (from < last->from);
}

/* The lowest place above the last one, else the lowest of all. */
static stg_lane *choose(const stg_flow *f, uint32_t *partition, stg_ns now)
{
    stg_catch_up first = {.partition = UINT32_MAX}, next = first;
    stg_lane *first_lane = NULL, *next_lane = NULL;

    for (stg_link *at = stg_list_first(&f->laggards); at != NULL;
         at = stg_list_next(&f->laggards, at)) {
        stg_lane *l = STG_HOLDER(at, stg_lane, laggard);

        for (uint32_t p = 0; p < f->partition_count; p++) {
            uint64_t from = l->places[p].next;

            if (!is_hungry(f, l, p, now))
                continue;
            if (compare_place(p, from, &first) < 0) {
                first = (stg_catch_up){.partition = p, .from = from};
                first_lane = l;
            }
            if (compare_place(p, from, &f->catch_up) > 0 &&
                compare_place(p, from, &next) < 0) {
                next = (stg_catch_up){.partition = p, .from = from};
                next_lane = l;
            }
        }
    }
    *partition = next_lane != NULL ? next.partition : first.partition;
    return next_lane != NULL ? next_lane : first_lane;
}

static size_t chunk_for(const stg_flow *f, const stg_lane *l, uint32_t p)
{
    size_t most = least(4 << 20, f->o.memory_max / 16);
    size_t wanted = find_room(f, l, p) * greatest(f->average, 1);

    if (stg_shed_wants(l, &l->places[p], l->places[p].next))
        return most;
    return least(most, greatest(wanted, 64 << 10));
}

static bool catch_up(stg_flow *f, stg_action *action, stg_ns now)
{
    stg_catch_up *c = &f->catch_up;
    uint32_t p = 0;
    stg_lane *l;
    size_t chunk;

    if (c->is_reading || stg_list_is_empty(&f->laggards))
        return false;
    l = choose(f, &p, now);
    if (l == NULL)
        return false;
    chunk = chunk_for(f, l, p);
    if (!stg_flow_make_room(f, reserve_for(f, chunk)))
        return false;
    *c = (stg_catch_up){.is_reading = true,
                        .partition = p,
                        .from = l->places[p].next,
                        .reserved = reserve_for(f, chunk)};
    f->held += c->reserved;
    *action = (stg_action){.kind = STG_ACTION_READ, .partition = p};
    action->read.is_catch_up = true;
    action->read.from = c->from;
    action->read.bytes_max = chunk;
    return true;
}

/* What was read, shared by the lanes that stand in it; messages are made when
 * the first lane looks at one. */
typedef struct chunk {
    uint32_t partition;
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

/* One message for one laggard; false: it stops before it. */
static bool serve(stg_flow *f, stg_lane *l, chunk *c, size_t i, stg_ns now)
{
    stg_place *place = &l->places[c->partition];
    stg_message *m;

    if (place->ring.count >= stg_lane_ahead(l) ||
        !stg_ring_reserve(&place->ring, &f->memory))
        return false;
    m = message_of(f, c, i);
    if (m == NULL)
        return false;
    if (stg_shed_wants(l, place, m->position)) {
        return stg_place_skips(f, l, m) || stg_shed_pass(f, l, m);
    }
    if (!may_send(l, now) || find_room(f, l, c->partition) == 0)
        return false;
    return stg_place_skips(f, l, m) || stg_place_take(f, l, m);
}

static void serve_lane(stg_flow *f, stg_lane *l, chunk *c, stg_ns now)
{
    stg_place *place = &l->places[c->partition];
    size_t i = find_record(c, place->next);

    while (i < c->count && serve(f, l, c, i, now)) {
        place->behind_at = c->records[i].created_at;
        place->next = c->records[i++].position + 1;
    }
    if (i < c->count)
        place->behind_at = c->records[i].created_at;
    // What it stopped at is the next that there is: the gap before it is read.
    place->next = stg_ns_max(place->next,
                             i < c->count ? c->records[i].position : c->next);
    stg_place_mark(f, l, c->partition, STG_SLICE_DIRTY);
    stg_place_join(f, l, c->partition);
    stg_lane_wake(f, l);
}

static void serve_all(stg_flow *f, chunk *c, uint64_t from, stg_ns now)
{
    stg_link *at = stg_list_first(&f->laggards);

    while (at != NULL) {
        stg_lane *l = STG_HOLDER(at, stg_lane, laggard);
        const stg_place *place = &l->places[c->partition];

        at = stg_list_next(&f->laggards, at);
        if (place->is_laggard && place->next >= from && place->next < c->next)
            serve_lane(f, l, c, now);
    }
}

static void share(stg_flow *f, chunk *c, stg_ns now)
{
    stg_catch_up *reader = &f->catch_up;
    const stg_window *w = &f->partitions[c->partition].window;

    if (!reader->is_reading || reader->partition != c->partition)
        return;
    reader->is_reading = false;
    f->held -= reader->reserved;
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

void stg_flow_messages(stg_flow *f, bool is_catch_up, uint32_t partition,
                       uint64_t assignment, const stg_record *records,
                       size_t count, uint64_t next, stg_ns now)
{
    if (partition >= f->partition_count)
        return;
    if (assignment != 0 && assignment != stg_flow_assignment(f, partition))
        return;
    if (is_catch_up) {
        chunk c = {.partition = partition,
                   .records = records,
                   .count = count,
                   .next = next};

        share(f, &c, now);
    } else {
        take_in(f, partition, records, count, next);
    }
}

bool stg_reader_next(stg_flow *f, stg_action *action, stg_ns now)
{
    if (!f->is_started || f->is_stopping)
        return false;
    if (stg_parking_next(f, action) || catch_up(f, action, now))
        return true;
    for (uint32_t p = 0; p < f->partition_count; p++)
        if (read_on(f, p, action))
            return true;
    return false;
}
