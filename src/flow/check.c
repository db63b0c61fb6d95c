/* The invariants that hold between any two calls. */
#include "core/options.h"
#include "flow/state.h"

#define HOLD(claim)        \
    do {                   \
        if (!(claim))      \
            return #claim; \
    } while (0)

static const char *check_place(const stg_flow *f, const stg_lane *l,
                               const stg_partition *p)
{
    const stg_place *place = stg_lane_place(l, p);
    const stg_window *w = &p->window;
    uint64_t settled = place->delivered + place->dead + place->cancelled;
    uint64_t unsettled = 0, last = 0;

    // I17 The books balance.
    HOLD(place->routed ==
         settled + place->rows + place->waiting + place->in_flight);
    if (p->phase == STG_PHASE_LOST)
        return NULL;
    // I2 Nothing is called settled that is not.
    HOLD(!f->is_started || place->durable <= stg_place_base(l, p));
    HOLD(!f->is_started || p->phase == STG_PHASE_ROWS || p->is_foreign ||
         p->committed <= stg_ns_max(place->durable, p->floor));
    HOLD(place->replays <= place->rows);
    HOLD(place->ring.count <= place->ring.capacity);
    for (uint32_t i = 0; i < place->ring.count; i++) {
        const stg_slot *slot = stg_ring_at(&place->ring, place->ring.first + i);

        HOLD(i == 0 || slot->position > last);
        last = slot->position;
        HOLD(slot->position < stg_place_next(l, p));
        HOLD(slot->delivery == NULL || slot->delivery->in_ring);
        HOLD(slot->delivery == NULL || slot->delivery->lane == l);
        unsettled += slot->delivery != NULL && !slot->delivery->is_stored;
    }
    HOLD(unsettled == place->waiting + place->in_flight);
    HOLD(!f->is_started || place->is_laggard || !stg_partition_is_given(p) ||
         place->number <= w->end);
    HOLD(!place->is_laggard || stg_list_has(&l->laggard));
    // Who does not follow a partition holds nothing of it back.
    HOLD(!f->is_started || !stg_place_may_pass(l, p) ||
         place->restored_at < place->restored_count ||
         (!place->is_laggard && stg_place_next(l, p) == w->next));
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
            HOLD(l->o.order != STG_ORDER_STRICT);
            HOLD(one->message->key == 0 ||
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

        HOLD(count == 0 || stg_mark_compare(&last, &mark) < 0);
        HOLD(d->state == STG_DELIVERY_PARKED && d->is_stored);
        HOLD(stg_parking_cache(d) == cache);
        last = mark;
        if (d == l->kept)
            kept++;
        else
            early = mark;
        count++;
        own += is_own(f, d);
    }
    HOLD(count == cache->count);
    HOLD(own <= rows);
    HOLD(kept == 0 || l->is_open);
    HOLD(is_whole || cache->is_fetching || count <= STG_PARKED_HELD + kept);
    HOLD(count == kept || cache->is_all || cache->is_fetching || is_whole ||
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

static const char *check_lane(const stg_flow *f, const stg_lane *l,
                              uint32_t *shared, uint32_t *all_retries)
{
    uint32_t in_flight = 0, settling = 0, untried = 0, probes = 0;
    uint32_t replaying = 0, retries = 0;
    const char *flaw = NULL;

    for (stg_link *at = stg_list_first(&l->busy); at != NULL;
         at = stg_list_next(&l->busy, at)) {
        const stg_delivery *d = STG_HOLDER(at, stg_delivery, busy);

        in_flight += d->state == STG_DELIVERY_IN_FLIGHT;
        retries +=
            d->state == STG_DELIVERY_IN_FLIGHT && d->paid != STG_CHARGE_NONE;
        settling += d->state == STG_DELIVERY_SETTLING;
        probes += d->state == STG_DELIVERY_IN_FLIGHT && d->is_probe;
        HOLD(d->state != STG_DELIVERY_GONE ||
             stg_parking_cache(d)->is_fetching);
        replaying += d->state == STG_DELIVERY_IN_FLIGHT && d->replay > 0;
    }
    for (stg_link *at = stg_list_first(&l->untried); at != NULL;
         at = stg_list_next(&l->untried, at))
        untried++;
    *shared += in_flight > 1 ? in_flight - 1 : 0;
    *all_retries += retries;
    HOLD(in_flight == l->in_flight && settling == l->settling);
    HOLD(replaying == l->replaying);
    HOLD(l->peer != NULL || (in_flight == 0 && l->starts == 0));
    HOLD(l->peer == NULL ||
         stg_budget_counts(&l->peer->budget, in_flight, retries));
    HOLD(untried <= l->untried_count);
    HOLD(l->untried_count > 0 || l->pinned == 0);
    HOLD(probes == l->probing);
    HOLD(l->peer == NULL || (l->peer->limit.value >= 1 &&
                             l->peer->limit.value <= l->peer->limit.max));
    for (uint32_t i = 0; i < f->partition_count && flaw == NULL; i++)
        flaw = check_place(f, l, f->partitions[i]);
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
        HOLD(followers == p->followers);
    }
    return NULL;
}

const char *stg_flow_check(const stg_flow *f)
{
    uint32_t shared = 0, in_flight = 0, lanes = 0, parked = 0, retries = 0;

    for (uint32_t i = 0; i < f->lane_capacity; i++) {
        const char *flaw;

        if (f->lanes[i] == NULL)
            continue;
        flaw = check_lane(f, f->lanes[i], &shared, &retries);
        if (flaw != NULL)
            return flaw;
        in_flight += f->lanes[i]->in_flight;
        parked += f->lanes[i]->caches[STG_PARKED_RETRIES].count;
        parked += f->lanes[i]->caches[STG_PARKED_REPLAYS].count;
        lanes++;
    }
    HOLD(lanes == f->lane_count && parked == f->parked_count);
    HOLD(in_flight == f->in_flight && shared == f->shared);
    HOLD(f->shared <= f->o.in_flight_max || f->is_lowered);
    // I6 Memory.
    HOLD(f->held <= f->o.memory_max);
    HOLD(stg_budget_counts(&f->budget, in_flight, retries));
    return check_followers(f);
}
