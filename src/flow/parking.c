/* A lane's parked rows: the earliest are in memory, the store has all.
 *
 * A cache holds the rows up to its mark, sorted by (due, position, partition,
 * replay); what stands behind the mark is in the store only and is fetched when
 * few are left. Retries and replays have a cache each, so that neither hides the
 * other's due rows.
 *
 * The trap is a fetch under way: its answer is older than what happens meanwhile.
 * Until it has come, new rows stay in memory wherever they stand, and a delivery
 * that ends stays in `busy` as ENDED, so that its row is not taken for a new one.
 *
 * An ordered lane needs all its rows or none (is_whole): they stand before what is
 * read from the log. */
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
    if (m.replay-- > 0 || m.partition-- > 0 || m.position-- > 0)
        return m;
    m.due_at = stg_ns_sub(m.due_at, 1);
    return m;
}

void stg_parking_init(stg_lane *l)
{
    for (int i = 0; i < STG_PARKED_CACHES; i++) {
        l->caches[i] = (stg_parked_cache){.lane = l, .is_all = true};
        stg_list_init(&l->caches[i].rows);
    }
}

stg_parked_cache *stg_parking_cache(const stg_delivery *d)
{
    return &d->lane->caches[d->replay > 0 ? STG_PARKED_REPLAYS
                                          : STG_PARKED_RETRIES];
}

/* Whether all of its rows are in memory, always: an ordered lane's own, for
 * they come before what is read. */
static bool is_whole(const stg_parked_cache *cache)
{
    const stg_lane *l = cache->lane;

    return l->o.order != STG_ORDER_NONE &&
           cache == &l->caches[STG_PARKED_RETRIES];
}

uint64_t stg_parking_rows(const stg_flow *f, const stg_lane *l)
{
    uint64_t rows = 0;

    for (uint32_t i = 0; i < f->partition_count; i++) {
        const stg_lane_cursor *cursor = stg_lane_cursor_in(l, f->partitions[i]);

        rows += cursor->rows - cursor->replays;
    }
    return rows;
}

uint64_t stg_parking_replays(const stg_flow *f, const stg_lane *l)
{
    uint64_t rows = 0;

    for (uint32_t i = 0; i < f->partition_count; i++)
        rows += stg_lane_cursor_in(l, f->partitions[i])->replays;
    return rows;
}

bool stg_parking_is_fetching(const stg_lane *l)
{
    return l->caches[STG_PARKED_RETRIES].is_fetching ||
           l->caches[STG_PARKED_REPLAYS].is_fetching;
}

/* -- in memory ------------------------------------------------------------- */

/* Whether one of the cache's rows stays in memory for the next probe. */
static bool keeps_one(const stg_parked_cache *cache)
{
    const stg_delivery *kept = cache->lane->kept;

    return kept != NULL && stg_parking_cache(kept) == cache;
}

/* The last row but the one that is kept for the next probe. */
static stg_delivery *last(const stg_parked_cache *cache)
{
    const stg_link *at = stg_list_last(&cache->rows);

    if (keeps_one(cache) && at == &cache->lane->kept->link)
        at = stg_list_prev(&cache->rows, at);
    return STG_HOLDER((stg_link *)at, stg_delivery, link);
}

/* From the end: a delivery that is parked now is due later than most. */
static void insert(stg_flow *f, stg_parked_cache *cache, stg_delivery *d)
{
    stg_mark mark = stg_delivery_mark(d);
    stg_link *at = cache->rows.ends.prev;

    while (at != &cache->rows.ends) {
        stg_mark other = stg_delivery_mark(STG_HOLDER(at, stg_delivery, link));

        if (stg_mark_compare(&other, &mark) <= 0)
            break;
        at = at->prev;
    }
    stg_list_insert(at, &d->link);
    cache->count++;
    f->parked_count++;
    d->state = STG_DELIVERY_PARKED;
}

void stg_parking_take(stg_flow *f, stg_delivery *d)
{
    stg_list_remove(&d->link);
    stg_parking_cache(d)->count--;
    f->parked_count--;
    if (d->lane->kept == d)
        d->lane->kept = NULL;
}

/* Out of memory: the row stays in the store. */
static void leave_to_store(stg_flow *f, stg_delivery *d)
{
    stg_parking_take(f, d);
    stg_delivery_free(f, d);
}

/* Whether the row stands after those that are in memory. */
static bool is_behind(const stg_parked_cache *cache, const stg_delivery *d)
{
    stg_mark mark = stg_delivery_mark(d);

    return !cache->is_all && !is_whole(cache) &&
           stg_mark_compare(&mark, &cache->mark) > 0;
}

static void evict_last(stg_flow *f, stg_parked_cache *cache)
{
    stg_delivery *d = last(cache);

    if (!is_behind(cache, d))
        cache->mark = before(stg_delivery_mark(d));
    cache->is_all = false;
    leave_to_store(f, d);
}

static bool evict(stg_flow *f, stg_parked_cache *cache)
{
    if (cache->is_fetching || is_whole(cache) || cache->count == 0)
        return false;
    if (keeps_one(cache))
        cache->lane->kept = NULL;
    while (cache->count > 0)
        evict_last(f, cache);
    return true;
}

/* Lanes whose rows do not fit at once take turns. */
static stg_ns find_turn(const stg_lane *l)
{
    return (1 + l->number % 16) * 100 * STG_MS;
}

/* All rows of an ordered lane, or none; they come again when there is room. Not
 * those of a lane that has taken something: they have slots in its ring. */
static bool evict_whole(stg_flow *f, stg_parked_cache *cache)
{
    stg_lane *l = cache->lane;

    if (!is_whole(cache) || cache->is_fetching || cache->count == 0 ||
        l->in_flight + l->settling + l->untried_count > 0 ||
        stg_order_is_any_taken(f, l))
        return false;
    if (keeps_one(cache))
        l->kept = NULL;
    while (cache->count > 0)
        leave_to_store(f, last(cache));
    cache->mark = (stg_mark){.due_at = 0};
    cache->is_all = false;
    cache->fetch_at = stg_ns_add(f->now, find_turn(l));
    return true;
}

bool stg_parking_evict(stg_flow *f, stg_lane *l)
{
    stg_parked_cache *cache = &l->caches[STG_PARKED_REPLAYS];

    if (!evict(f, cache)) {
        cache = &l->caches[STG_PARKED_RETRIES];
        if (!evict(f, cache) && !evict_whole(f, cache))
            return false;
    }
    cache->was_evicted = true;
    return true;
}

void stg_parking_trim(stg_flow *f, stg_parked_cache *cache)
{
    while (!is_whole(cache) &&
           cache->count > STG_PARKED_HELD + (uint32_t)keeps_one(cache))
        evict_last(f, cache);
}

void stg_parking_release(stg_flow *f, stg_lane *l)
{
    stg_delivery *d = l->kept;
    stg_parked_cache *cache;

    l->kept = NULL;
    if (d == NULL)
        return;
    cache = stg_parking_cache(d);
    if (cache->is_fetching)
        return; // the end of the fetch sees to it
    if (is_behind(cache, d))
        leave_to_store(f, d);
    stg_parking_trim(f, cache);
}

/* A probe that failed comes back in order of its due time, after thousands of
 * others perhaps. It stays in memory, unless that is so for one that was tried
 * more: a target that wants several attempts a message must get them. */
static bool keep_for_probe(stg_flow *f, stg_lane *l, stg_delivery *d)
{
    const stg_delivery *kept = l->kept;

    if (!l->is_open || !d->is_probe || d->progress.attempts >= l->probe_depth)
        return false;
    if (kept != NULL && kept->progress.attempts >= d->progress.attempts)
        return false;
    stg_parking_release(f, l);
    l->kept = d;
    return true;
}

void stg_parking_invalidate(stg_parked_cache *cache)
{
    cache->has_stale_fetch |= cache->is_fetching;
}

void stg_parking_put(stg_flow *f, stg_delivery *d)
{
    stg_parked_cache *cache = stg_parking_cache(d);

    // While rows are fetched all that is new stays: what the store answers may
    // be older than it.
    if (!keep_for_probe(f, d->lane, d) && is_behind(cache, d) &&
        !cache->is_fetching) {
        stg_delivery_free(f, d);
        return;
    }
    insert(f, cache, d);
    if (!cache->is_fetching)
        stg_parking_trim(f, cache);
}

/* A row of before the restart whose slot in an ordered lane was not reached
 * yet. What is replayed has none, nor what the base has passed. */
static bool is_early(const stg_delivery *d)
{
    const stg_lane_cursor *cursor = stg_delivery_cursor(d);

    return d->lane->o.order != STG_ORDER_NONE && !d->in_ring &&
           d->replay == 0 && !cursor->is_draining &&
           d->message->position >= cursor->loose_below;
}

/* A row that was never tried since its replay needs no budget. */
static stg_ns find_start(const stg_lane *l, const stg_delivery *d)
{
    return d->progress.attempts == 0 ? d->due_at
                                     : stg_ns_max(d->due_at, l->budget_at);
}

stg_delivery *stg_parking_due(const stg_lane *l, const stg_parked_cache *cache,
                              stg_ns now, stg_ns *due_at)
{
    for (stg_link *at = stg_list_first(&cache->rows); at != NULL;
         at = stg_list_next(&cache->rows, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);
        stg_ns start_at;

        if (d->is_blocked || is_early(d))
            continue;
        start_at = find_start(l, d);
        if (start_at <= now)
            return d;
        *due_at = stg_ns_min(*due_at, start_at);
        if (d->due_at > now) // ordered by due_at: the rest is not due
            return NULL;
    }
    return NULL;
}

/* Rows are in order of their time, so that the search ends at the first that is not
 * due. */
stg_delivery *stg_parking_most_tried(const stg_lane *l,
                                     const stg_parked_cache *cache,
                                     uint32_t below, stg_ns now)
{
    stg_delivery *most = NULL;

    for (stg_link *at = stg_list_first(&cache->rows); at != NULL;
         at = stg_list_next(&cache->rows, at)) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);

        if (d->due_at > now)
            break;
        if (d->is_blocked || is_early(d) || find_start(l, d) > now ||
            d->progress.attempts >= below)
            continue;
        if (most == NULL || d->progress.attempts > most->progress.attempts)
            most = d;
    }
    return most;
}

/* -- from the store -------------------------------------------------------- */

static bool wants_fetch(const stg_flow *f, stg_parked_cache *cache, stg_ns now,
                        stg_ns *at)
{
    const uint32_t few = STG_PARKED_HELD / 4;
    stg_ns from_at;

    if (cache->is_all || cache->is_fetching)
        return false;
    from_at = stg_ns_sub(stg_flow_from_wall(f, cache->mark.due_at), STG_S);
    if ((cache->lane->is_removing || cache->lane->is_paused ||
         cache->lane->is_gated) &&
        !is_whole(cache))
        return false;
    if (is_whole(cache) || cache->is_ahead)
        from_at = 0; // it begins when it has them all, or may be due at once
    if (!is_whole(cache) && cache->count > few)
        return false;
    // Else lanes whose rows do not fit at once would fetch in circles.
    if (cache->was_evicted)
        cache->fetch_at = stg_ns_add(now, 100 * STG_MS);
    cache->was_evicted = false;
    from_at = stg_ns_max(from_at, cache->fetch_at);
    if (from_at <= now)
        return true;
    *at = stg_ns_min(*at, from_at);
    return false;
}

void stg_parking_want(stg_flow *f, stg_lane *l, stg_ns now, stg_ns *at)
{
    for (int i = 0; i < STG_PARKED_CACHES; i++) {
        stg_parked_cache *cache = &l->caches[i];

        if (wants_fetch(f, cache, now, at) && !stg_list_has(&cache->fetch))
            stg_list_push(&f->fetches, &cache->fetch);
    }
}

/* Asks for what is behind the mark: an ordered lane for all that its ring can hold,
 * others for what is missing to a full cache. */
bool stg_parking_next(stg_flow *f, stg_action *action)
{
    stg_parked_cache *cache =
        STG_HOLDER(stg_list_shift(&f->fetches), stg_parked_cache, fetch);
    stg_lane *l;

    if (cache == NULL)
        return false;
    l = cache->lane;
    cache->is_fetching = true;
    *action = (stg_action){.kind = STG_ACTION_FETCH, .lane = l->number};
    action->fetch.is_replay = cache == &l->caches[STG_PARKED_REPLAYS];
    action->fetch.after = cache->mark;
    action->fetch.rows_max =
        is_whole(cache) ? stg_lane_ahead(l) : STG_PARKED_HELD - cache->count;
    return true;
}

/* Frees those that ended during the fetch, now that its rows are here. */
static void forget_gone(stg_flow *f, const stg_parked_cache *cache)
{
    stg_lane *l = cache->lane;
    stg_link *at = stg_list_first(&l->busy);

    while (at != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        at = stg_list_next(&l->busy, at);
        if (d->state == STG_DELIVERY_ENDED && stg_parking_cache(d) == cache)
            stg_delivery_free(f, d);
    }
}

void stg_parking_reset(stg_flow *f, stg_parked_cache *cache)
{
    stg_parking_invalidate(cache);
    evict(f, cache);
    cache->is_all = false;
    cache->is_unread = true;
    cache->is_ahead = false;
    cache->mark = (stg_mark){.due_at = 0};
}

static bool is_row(const stg_delivery *d, const stg_parked_row *row)
{
    return d->message->position == row->record.position &&
           d->message->partition == row->partition && d->replay == row->replay;
}

/* The row is here already, or was while it was fetched. */
static bool is_known(const stg_parked_cache *cache, const stg_parked_row *row)
{
    const stg_list *busy = &cache->lane->busy, *rows = &cache->rows;

    for (stg_link *at = stg_list_first(busy); at != NULL;
         at = stg_list_next(busy, at))
        if (is_row(STG_HOLDER(at, stg_delivery, busy), row))
            return true;
    for (stg_link *at = stg_list_first(rows); at != NULL;
         at = stg_list_next(rows, at))
        if (is_row(STG_HOLDER(at, stg_delivery, link), row))
            return true;
    return false;
}

/* No later than its wait from now: whoever wrote the row (a replay, another hub)
 * may have had a wall clock that is ahead of flow's. */
static stg_ns find_due(const stg_flow *f, stg_parked_cache *cache,
                       const stg_parked_row *row, stg_ns now)
{
    stg_ns due_at = stg_flow_from_wall(f, row->due_at);
    stg_ns latest_at = stg_ns_add(now, row->wait);

    cache->is_ahead |= due_at > latest_at;
    return stg_ns_min(due_at, latest_at);
}

static bool add_row(stg_flow *f, stg_parked_cache *cache,
                    const stg_partition *p, const stg_parked_row *row,
                    stg_ns now)
{
    stg_lane *l = cache->lane;
    stg_message *m = NULL;
    stg_delivery *d = NULL;

    if (stg_flow_make_room(f, row->record.size))
        m = stg_flow_message(f, p, &row->record);
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
    if (row->progress.attempts > 0)
        d->progress = row->progress;
    d->is_stored = true;
    d->wait = row->wait;
    d->due_wall = row->due_at;
    d->due_at = find_due(f, cache, row, now);
    d->began_at = row->began_at;
    if (row->has_failure) {
        stg_delivery_note(f, d, &row->failure);
        stg_settle_reclose(l, d);
    }
    insert(f, stg_parking_cache(d), d);
    return true;
}

/* The row is of a partition that is here with its rows. */
static stg_partition *find_home(const stg_flow *f, const stg_parked_row *row)
{
    stg_partition *p = stg_flow_partition(f, row->partition);
    bool is_gone = p == NULL || p->phase == STG_PHASE_LOST ||
                   (p->phase == STG_PHASE_REVOKING && !p->keeps_rows);

    return is_gone ? NULL : p;
}

static stg_mark mark_of(const stg_parked_row *row)
{
    return (stg_mark){.due_at = row->due_at,
                      .position = row->record.position,
                      .partition = row->partition,
                      .replay = row->replay};
}

/* What stands after the mark and came while rows were fetched. */
static void evict_behind(stg_flow *f, stg_parked_cache *cache)
{
    stg_delivery *d;

    while ((d = last(cache)) != NULL && is_behind(cache, d))
        leave_to_store(f, d);
}

/* There is no memory for all of them. An ordered lane needs them all, and with
 * some of them would only be in the way of others; they take turns. Rows that
 * were parked under another order go as they are there, and make room. */
static void retry_load(stg_flow *f, stg_parked_cache *cache, stg_ns now)
{
    stg_link *at = stg_list_first(&cache->rows);

    cache->fetch_at = stg_ns_add(now, find_turn(cache->lane));
    if (!is_whole(cache) || stg_order_has_old_rows(f, cache->lane))
        return;
    while (at != NULL) {
        stg_delivery *d = STG_HOLDER(at, stg_delivery, link);

        at = stg_list_next(&cache->rows, at);
        if (!d->in_ring)
            leave_to_store(f, d);
    }
    cache->mark = (stg_mark){.due_at = 0};
}

static void take_rows(stg_flow *f, stg_parked_cache *cache,
                      const stg_parked_row *rows, size_t count, bool is_all,
                      stg_ns now)
{
    stg_lane *l = cache->lane;
    size_t i = 0;

    for (; i < count; i++) {
        const stg_partition *p = find_home(f, &rows[i]);

        if (p != NULL && !is_known(cache, &rows[i]) &&
            !add_row(f, cache, p, &rows[i], now))
            break;
        cache->mark = mark_of(&rows[i]);
    }
    cache->is_all = is_all && i == count;
    cache->is_unread = false;
    cache->is_fetching = false; // until here none of its rows were evicted
    if (i < count)
        retry_load(f, cache, now);
    if (l->is_removing)
        stg_lane_note_end(l);
    forget_gone(f, cache);
    evict_behind(f, cache);
    stg_parking_trim(f, cache);
}

/* Rows that were asked for before a replay or a removal may be out of date: they are
 * dropped, and asked for again. */
void stg_flow_rows(stg_flow *f, uint32_t lane, bool is_replay,
                   const stg_parked_row *rows, size_t count, bool is_all,
                   stg_ns now)
{
    stg_lane *l = stg_flow_lane(f, lane);
    stg_parked_cache *cache;

    if (l == NULL)
        return;
    cache = &l->caches[is_replay ? STG_PARKED_REPLAYS : STG_PARKED_RETRIES];
    if (!cache->is_fetching)
        return;
    if (cache->has_stale_fetch || (l->is_removing && !is_whole(cache))) {
        cache->is_fetching = cache->has_stale_fetch = false;
        forget_gone(f, cache);
        stg_parking_reset(f, cache);
    } else {
        take_rows(f, cache, rows, count, is_all, now);
    }
    stg_lane_wake(f, l);
}
