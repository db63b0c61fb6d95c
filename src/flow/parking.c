/* A lane's parked rows: the earliest are in memory, the store has all. */
#include "flow/state.h"

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int stg_mark_compare(const stg_mark *a, const stg_mark *b)
{
    int c = compare(a->due_at, b->due_at);

    if (c == 0)
        c = compare(a->position, b->position);
    if (c == 0)
        c = compare(a->partition, b->partition);
    return c == 0 ? compare(a->replay, b->replay) : c;
}

/* The greatest mark below m. */
static stg_mark before(stg_mark m)
{
    if (m.replay-- > 0)
        return m;
    if (m.partition-- > 0)
        return m;
    if (m.position-- > 0)
        return m;
    m.due_at = stg_ns_sub(m.due_at, 1);
    return m;
}

uint64_t stg_parking_rows(const stg_flow *f, const stg_lane *l)
{
    uint64_t rows = 0;

    for (uint32_t p = 0; p < f->partition_count; p++)
        rows += l->places[p].rows;
    return rows;
}

static stg_delivery *last(const stg_lane *l)
{
    return STG_HOLDER(stg_list_last(&l->parked), stg_delivery, link);
}

static void insert(stg_flow *f, stg_lane *l, stg_delivery *d)
{
    stg_mark mark = stg_delivery_mark(d);
    stg_link *at = l->parked.ends.prev;

    while (at != &l->parked.ends) {
        stg_mark other = stg_delivery_mark(STG_HOLDER(at, stg_delivery, link));

        if (stg_mark_compare(&other, &mark) <= 0)
            break;
        at = at->prev;
    }
    stg_list_insert(at, &d->link);
    l->parked_count++;
    f->parked_count++;
    d->state = STG_DELIVERY_PARKED;
}

void stg_parking_take(stg_flow *f, stg_delivery *d)
{
    stg_list_remove(&d->link);
    d->lane->parked_count--;
    f->parked_count--;
}

/* Out of memory goes the last; it stays in the store. */
static void evict_last(stg_flow *f, stg_lane *l)
{
    stg_delivery *d = last(l);

    l->mark = before(stg_delivery_mark(d));
    l->is_all = false;
    stg_parking_take(f, d);
    stg_delivery_free(f, d);
}

/* Not an ordered lane's: they come before what is read. */
bool stg_parking_evict(stg_flow *f, stg_lane *l)
{
    if (l->is_fetching || l->o.order != STG_ORDER_NONE || l->parked_count == 0)
        return false;
    while (l->parked_count > 0)
        evict_last(f, l);
    return true;
}

static void keep_earliest(stg_flow *f, stg_lane *l)
{
    while (l->o.order == STG_ORDER_NONE && l->parked_count > STG_PARKED_HELD)
        evict_last(f, l);
}

void stg_parking_put(stg_flow *f, stg_delivery *d)
{
    stg_lane *l = d->lane;
    stg_mark mark = stg_delivery_mark(d);

    // While rows are fetched all that is new stays: what the store answers may
    // be older than it.
    if (!l->is_all && !l->is_fetching && l->o.order == STG_ORDER_NONE &&
        stg_mark_compare(&mark, &l->mark) > 0) {
        stg_delivery_free(f, d);
        return;
    }
    insert(f, l, d);
    if (!l->is_fetching)
        keep_earliest(f, l);
}

/* A row of before the restart whose place in an ordered lane was not reached
 * yet. What is replayed has none. */
static bool is_early(const stg_delivery *d)
{
    return d->lane->o.order != STG_ORDER_NONE && !d->in_ring && d->replay == 0;
}

stg_delivery *stg_parking_due(const stg_lane *l, stg_ns now, stg_ns *due_at)
{
    for (stg_link *at = stg_list_first(&l->parked); at != NULL;
         at = stg_list_next(&l->parked, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);

        if (d->is_blocked || is_early(d))
            continue;
        if (d->due_at > now) {
            *due_at = stg_ns_min(*due_at, d->due_at);
            return NULL;
        }
        return d;
    }
    return NULL;
}

bool stg_parking_wants_fetch(const stg_flow *f, const stg_lane *l, stg_ns now,
                             stg_ns *at)
{
    const uint32_t few = STG_PARKED_HELD / 4;
    stg_ns from_at = stg_ns_sub(stg_flow_from_wall(f, l->mark.due_at), STG_S);

    if (l->is_all || l->is_fetching ||
        (l->is_removing && l->o.order == STG_ORDER_NONE))
        return false;
    if (l->o.order != STG_ORDER_NONE)
        from_at = 0; // it begins when it has them all
    else if (l->parked_count > few)
        return false;
    from_at = stg_ns_max(from_at, l->fetch_at);
    if (from_at <= now)
        return true;
    *at = stg_ns_min(*at, from_at);
    return false;
}

void stg_parking_forget(stg_flow *f, stg_lane *l)
{
    stg_link *at = stg_list_first(&l->busy);

    while (at != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        at = stg_list_next(&l->busy, at);
        if (d->state == STG_DELIVERY_GONE)
            stg_delivery_free(f, d);
    }
}

void stg_parking_reset(stg_flow *f, stg_lane *l)
{
    stg_parking_evict(f, l);
    l->is_all = false;
    l->mark = (stg_mark){.due_at = 0};
}

/* The row is here already, or was while it was fetched. */
static bool is_known(const stg_lane *l, const stg_parked_row *row)
{
    const stg_list *lists[] = {&l->busy, &l->parked};

    for (size_t i = 0; i < 2; i++)
        for (stg_link *at = stg_list_first(lists[i]); at != NULL;
             at = stg_list_next(lists[i], at)) {
            const stg_delivery *d = i == 0 ? STG_HOLDER(at, stg_delivery, busy)
                                           : STG_HOLDER(at, stg_delivery, link);

            if (d->message->position == row->record.position &&
                d->message->partition == row->partition &&
                d->replay == row->replay)
                return true;
        }
    return false;
}

static bool add_row(stg_flow *f, stg_lane *l, const stg_parked_row *row)
{
    stg_message *m = NULL;
    stg_delivery *d = NULL;

    if (stg_flow_make_room(f, row->record.size))
        m = stg_flow_message(f, row->partition, &row->record);
    if (m != NULL)
        d = stg_delivery_new(l, f, m);
    if (d == NULL) {
        stg_flow_drop(f, m);
        return false;
    }
    d->replay = row->replay;
    d->attempts_before = row->attempts_before;
    // What was never tried since begins with the lane's policy, which the
    // store does not know.
    if (row->progress.attempts > 0 || row->has_failure)
        d->progress = row->progress;
    d->is_stored = true;
    d->wait = row->wait;
    d->due_wall = row->due_at;
    d->due_at = stg_flow_from_wall(f, row->due_at);
    d->began_at = stg_flow_from_wall(
        f, row->has_failure ? row->failure.first_attempt_at : row->due_at);
    if (row->has_failure)
        stg_delivery_note(f, d, &row->failure);
    insert(f, l, d);
    return true;
}

static stg_mark mark_of(const stg_parked_row *row)
{
    return (stg_mark){.due_at = row->due_at,
                      .position = row->record.position,
                      .partition = row->partition,
                      .replay = row->replay};
}

/* What stands behind the mark and came while rows were fetched. */
static void evict_behind(stg_flow *f, stg_lane *l)
{
    while (l->parked_count > 0 && !l->is_all && l->o.order == STG_ORDER_NONE) {
        stg_delivery *d = last(l);
        stg_mark mark = stg_delivery_mark(d);

        if (stg_mark_compare(&mark, &l->mark) <= 0)
            return;
        stg_parking_take(f, d);
        stg_delivery_free(f, d);
    }
}

/* There is no memory for all of them. An ordered lane needs them all, and with
 * some of them would only be in the way of others; they take turns. */
static void retry_load(stg_flow *f, stg_lane *l, stg_ns now)
{
    stg_link *at = stg_list_first(&l->parked);
    stg_ns turn = (1 + l->number % 16) * 100 * STG_MS;

    l->fetch_at = stg_ns_add(now, turn);
    if (l->o.order == STG_ORDER_NONE)
        return;
    while (at != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);

        at = stg_list_next(&l->parked, at);
        if (d->in_ring)
            continue;
        stg_parking_take(f, d);
        stg_delivery_free(f, d);
    }
    l->mark = (stg_mark){.due_at = 0};
}

void stg_flow_rows(stg_flow *f, uint32_t lane, const stg_parked_row *rows,
                   size_t count, bool is_all, stg_ns now)
{
    stg_lane *l = stg_flow_lane(f, lane);
    size_t i = 0;

    if (l == NULL || !l->is_fetching)
        return;
    if (l->has_stale_fetch ||
        (l->is_removing && l->o.order == STG_ORDER_NONE)) {
        l->has_stale_fetch = l->is_fetching = false;
        stg_parking_forget(f, l);
        stg_parking_reset(f, l);
        stg_lane_wake(f, l);
        return;
    }
    for (; i < count; i++) {
        if (!is_known(l, &rows[i]) && !add_row(f, l, &rows[i]))
            break;
        l->mark = mark_of(&rows[i]);
    }
    l->is_all = is_all && i == count;
    l->is_fetching = false; // until here none of its rows were evicted
    if (i < count)
        retry_load(f, l, now);
    if (l->is_removing)
        stg_lane_note_end(l);
    stg_parking_forget(f, l);
    evict_behind(f, l);
    keep_earliest(f, l);
    stg_lane_wake(f, l);
}
