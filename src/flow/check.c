/* The invariants that hold between any two calls.
 *
 * stg_flow_check() recounts from the lists what flow keeps as counters, and
 * returns the first claim that does not hold, as its source text;
 * stg_flow_check_cursor() has the claims of one cursor that need no recount. The
 * simulator's worlds call them; the hub never does, for they read everything. */
#include "core/options.h"
#include "flow/state.h"

#define HOLDS(claim)       \
    do {                   \
        if (!(claim))      \
            return #claim; \
    } while (0)

/* What its own numbers say. */
static const char *check_numbers(const stg_flow *f, const stg_lane *l,
                                 const stg_partition *p)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const stg_window *w = &p->window;
    uint64_t settled = cursor->delivered + cursor->dead + cursor->cancelled;

    // I17 The books balance.
    HOLDS(cursor->routed ==
          settled + cursor->rows + cursor->waiting + cursor->in_flight);
    if (p->phase == STG_PHASE_LOST)
        return NULL;
    // I2 Nothing is called settled that is not.
    HOLDS(!f->is_started || cursor->durable <= stg_lane_cursor_base(l, p));
    HOLDS(!f->is_started || p->phase == STG_PHASE_ROWS || p->is_foreign ||
          p->committed <= stg_ns_max(cursor->durable, p->floor));
    HOLDS(cursor->replays <= cursor->rows);
    HOLDS(cursor->ring.count <= cursor->ring.capacity);
    HOLDS(!f->is_started || cursor->is_catching_up ||
          !stg_partition_is_assigned(p) || cursor->number <= w->end);
    HOLDS(!cursor->is_catching_up || stg_list_has(&l->catch_up_link));
    // A lane that does not follow a partition holds nothing of it back.
    HOLDS(!f->is_started || !stg_lane_cursor_may_pass(l, p) ||
          cursor->restored_at < cursor->restored_count ||
          (!cursor->is_catching_up && stg_lane_cursor_next(l, p) == w->next));
    return NULL;
}

static const char *check_cursor(const stg_flow *f, const stg_lane *l,
                                const stg_partition *p)
{
    const stg_lane_cursor *cursor = stg_lane_cursor_in(l, p);
    const char *flaw = check_numbers(f, l, p);
    uint64_t next, unsettled = 0, settled = 0, last = 0;

    if (flaw != NULL || p->phase == STG_PHASE_LOST)
        return flaw;
    next = stg_lane_cursor_next(l, p);
    for (uint32_t i = 0; i < cursor->ring.count; i++) {
        const stg_slot *slot =
            stg_ring_at(&cursor->ring, cursor->ring.first + i);

        HOLDS(i == 0 || slot->position > last);
        last = slot->position;
        HOLDS(slot->position < next);
        HOLDS(slot->delivery == NULL || slot->delivery->in_ring);
        HOLDS(slot->delivery == NULL || slot->delivery->lane == l);
        unsettled += slot->delivery != NULL && !slot->delivery->is_stored;
        settled += slot->delivery == NULL;
    }
    HOLDS(settled == cursor->ring.settled);
    HOLDS(unsettled == cursor->waiting + cursor->in_flight);
    return NULL;
}

/* I18 Of one key one at most is under way. */
static const char *check_order(const stg_lane *l)
{
    if (l->o.order == STG_ORDER_NONE)
        return NULL;
    for (stg_link *a = stg_list_first(&l->busy); a != NULL;
         a = stg_list_next(&l->busy, a))
        for (stg_link *b = stg_list_first(&l->busy); b != a;
             b = stg_list_next(&l->busy, b)) {
            const stg_delivery *one = STG_HOLDER(a, stg_delivery, busy);
            const stg_delivery *other = STG_HOLDER(b, stg_delivery, busy);

            if (!one->in_ring || !other->in_ring || // loose rows
                one->replay > 0 || other->replay > 0 ||
                one->state != STG_DELIVERY_IN_FLIGHT ||
                other->state != STG_DELIVERY_IN_FLIGHT ||
                one->message->partition != other->message->partition)
                continue;
            HOLDS(l->o.order != STG_ORDER_STRICT);
            HOLDS(one->message->key == 0 ||
                  one->message->key != other->message->key);
        }
    return NULL;
}

/* Nobody else has ever had it. What others have had, they may have again, and
 * have put rows there that a fetch brings before flow hears of it. */
static bool is_own(const stg_flow *f, const stg_delivery *d)
{
    return stg_flow_home(f, d->message)->generation == 0;
}

/* Rows in memory are in order of their time, as many as were counted, and none is due
 * later than the mark from which the store is asked for more. */
static const char *check_cache(const stg_flow *f, const stg_lane *l,
                               const stg_parked_cache *cache, uint64_t rows)
{
    bool is_whole =
        l->o.order != STG_ORDER_NONE && cache == &l->caches[STG_PARKED_RETRIES];
    uint32_t count = 0, own = 0, kept = 0;
    stg_mark last = {.due_at = 0}, early = {.due_at = 0};

    for (stg_link *at = stg_list_first(&cache->rows); at != NULL;
         at = stg_list_next(&cache->rows, at)) {
        const stg_delivery *d = STG_HOLDER(at, stg_delivery, link);
        stg_mark mark = stg_delivery_mark(d);

        HOLDS(count == 0 || stg_mark_compare(&last, &mark) < 0);
        HOLDS(d->state == STG_DELIVERY_PARKED && d->is_stored);
        HOLDS(stg_parking_cache(d) == cache);
        last = mark;
        if (d == l->kept)
            kept++;
        else
            early = mark;
        count++;
        own += is_own(f, d);
    }
    HOLDS(count == cache->count);
    HOLDS(own <= rows);
    HOLDS(kept == 0 || l->is_open);
    HOLDS(is_whole || cache->is_fetching || count <= STG_PARKED_HELD + kept);
    HOLDS(count == kept || cache->is_all || cache->is_fetching || is_whole ||
          stg_mark_compare(&early, &cache->mark) <= 0);
    return NULL;
}

static const char *check_parked(const stg_flow *f, const stg_lane *l)
{
    const char *flaw = check_cache(f, l, &l->caches[STG_PARKED_RETRIES],
                                   stg_parking_rows(f, l));

    if (flaw != NULL)
        return flaw;
    return check_cache(f, l, &l->caches[STG_PARKED_REPLAYS],
                       stg_parking_replays(f, l));
}

/* I34 An attempt began within its message's own times. */
static bool is_in_time(const stg_flow *f, const stg_delivery *d)
{
    const stg_message *m = d->message;
    stg_ns began_at = stg_flow_wall(f, d->attempt_at);

    return began_at >= m->not_before && !stg_schedule_ends_before(m, began_at);
}

/* Counts all of a lane's deliveries anew, and compares that with its counters. */
static const char *check_lane(const stg_flow *f, const stg_lane *l,
                              uint32_t *shared, uint32_t *all_retries)
{
    size_t flying = 0;
    uint32_t in_flight = 0, settling = 0, untried = 0, probes = 0;
    uint32_t replaying = 0, retries = 0;
    const char *flaw = NULL;

    for (stg_link *at = stg_list_first(&l->busy); at != NULL;
         at = stg_list_next(&l->busy, at)) {
        const stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        in_flight += d->state == STG_DELIVERY_IN_FLIGHT;
        if (d->state == STG_DELIVERY_IN_FLIGHT)
            flying += d->message->size;
        retries +=
            d->state == STG_DELIVERY_IN_FLIGHT && d->paid != STG_CHARGE_NONE;
        settling += d->state == STG_DELIVERY_SETTLING;
        probes += d->state == STG_DELIVERY_IN_FLIGHT && d->is_probe;
        HOLDS(d->state != STG_DELIVERY_ENDED ||
              stg_parking_cache(d)->is_fetching);
        HOLDS(d->state != STG_DELIVERY_IN_FLIGHT || is_in_time(f, d));
        replaying += d->state == STG_DELIVERY_IN_FLIGHT && d->replay > 0;
    }
    for (stg_link *at = stg_list_first(&l->untried); at != NULL;
         at = stg_list_next(&l->untried, at))
        untried++;
    *shared += in_flight > 1 ? in_flight - 1 : 0;
    *all_retries += retries;
    HOLDS(in_flight == l->in_flight && settling == l->settling);
    HOLDS(replaying == l->replaying && flying == l->flying);
    HOLDS(l->peer != NULL || (in_flight == 0 && l->starts == 0));
    HOLDS(l->peer == NULL ||
          stg_budget_counts(&l->peer->budget, in_flight, retries));
    HOLDS(untried <= l->untried_count);
    HOLDS(l->untried_count > 0 || l->pinned == 0);
    HOLDS(probes == l->probing);
    HOLDS(l->peer == NULL || (l->peer->limit.value >= 1 &&
                              l->peer->limit.value <= l->peer->limit.max));
    for (uint32_t i = 0; i < f->partition_count && flaw == NULL; i++)
        flaw = check_cursor(f, l, f->partitions[i]);
    if (flaw == NULL)
        flaw = check_order(l);
    return flaw == NULL ? check_parked(f, l) : flaw;
}

static const char *check_followers(const stg_flow *f)
{
    for (uint32_t i = 0; f->is_started && i < f->partition_count; i++) {
        const stg_partition *p = f->partitions[i];
        uint32_t followers = 0;

        for (uint32_t k = 0; k < f->lane_capacity; k++)
            followers += f->lanes[k] != NULL && !f->lanes[k]->is_removing &&
                         stg_lane_follows(f->lanes[k], p);
        HOLDS(followers == p->followers);
    }
    return NULL;
}

/* I5, I6 */
static const char *check_bounds(const stg_flow *f)
{
    HOLDS(f->shared <= f->o.in_flight_max || f->is_lowered);
    HOLDS(f->held <= f->o.memory_max);
    return NULL;
}

const char *stg_flow_check_cursor(const stg_flow *f, uint32_t lane,
                                  uint32_t partition)
{
    const stg_lane *l = stg_flow_lane(f, lane);
    const stg_partition *p = stg_flow_partition(f, partition);
    const char *flaw = check_bounds(f);

    if (flaw != NULL || l == NULL || p == NULL)
        return flaw;
    HOLDS(l->in_flight <= f->in_flight && l->replaying <= l->in_flight);
    HOLDS(l->peer != NULL || (l->in_flight == 0 && l->starts == 0));
    HOLDS(l->peer == NULL || (l->peer->limit.value >= 1 &&
                              l->peer->limit.value <= l->peer->limit.max));
    HOLDS(l->untried_count > 0 || l->pinned == 0);
    return check_numbers(f, l, p);
}

const char *stg_flow_check(const stg_flow *f)
{
    uint32_t shared = 0, in_flight = 0, lanes = 0, parked = 0, retries = 0;
    size_t flying = 0;

    for (uint32_t i = 0; i < f->lane_capacity; i++) {
        const char *flaw;

        if (f->lanes[i] == NULL)
            continue;
        flaw = check_lane(f, f->lanes[i], &shared, &retries);
        if (flaw != NULL)
            return flaw;
        in_flight += f->lanes[i]->in_flight;
        flying += f->lanes[i]->flying;
        parked += f->lanes[i]->caches[STG_PARKED_RETRIES].count;
        parked += f->lanes[i]->caches[STG_PARKED_REPLAYS].count;
        lanes++;
    }
    HOLDS(lanes == f->lane_count && parked == f->parked_count);
    HOLDS(in_flight == f->in_flight && shared == f->shared);
    HOLDS(f->flying <= flying && (f->flying > 0) == (flying > 0));
    HOLDS(stg_budget_counts(&f->budget, in_flight, retries));
    return check_bounds(f) != NULL ? check_bounds(f) : check_followers(f);
}
