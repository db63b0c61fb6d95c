/* Lanes of the targets that a reload brings: made in flow, begun in the store, all
 * of them or none, and placed. */
#include "hub/reload.h"

#include <stdlib.h>

#include "base/refuse.h"

/* The store's note of a pause is known when the lane has its number. */
stg_status stg_reload_lane_make(stg_reload_lane *l, stg_hub *h, stg_error *err)
{
    stg_lane_options o = stg_hub_lane(h, l->target);

    l->target->is_known = stg_store_has_lane(h->store, l->target->name);
    return stg_flow_make_lane(h->flow, &o, stg_deadlines_now(), &l->made, err);
}

void stg_reload_lane_drop(stg_reload_lane *l, stg_hub *h)
{
    if (l->made == NULL)
        return;
    stg_flow_drop_lane(h->flow, l->made);
    l->made = NULL;
    l->target->settings = NULL;
    stg_hub_filter(h, l->target); // gives back the numbers of patterns
}

/* Lanes that are about to begin. */
typedef struct batch {
    stg_hub *hub;
    stg_reload_lane *lanes;
    stg_lane_begin *begins; /* number: count */
    size_t count;
    size_t put; /* lanes that were looked at: new ones are in the hub's table */
} batch;

static stg_status reload_lanes_put(void *ctx, stg_error *err)
{
    batch *b = ctx;
    stg_hub *h = b->hub;

    for (; b->put < b->count; b->put++) {
        uint32_t number = b->begins[b->put].number;
        stg_target *t = b->lanes[b->put].target;
        stg_status status;

        if (b->lanes[b->put].made == NULL)
            continue;
        status = stg_flow_fit_lane(h->flow, number, err);
        if (status != STG_OK)
            return status;
        if (!stg_targets_put(&h->targets, t, number))
            return stg_hub_refuse(err, STG_IO, "out of memory");
    }
    return STG_OK;
}

static void reload_lanes_unput(batch *b)
{
    while (b->put-- > 0)
        if (b->lanes[b->put].made != NULL)
            stg_targets_unput(&b->hub->targets, b->lanes[b->put].target);
}

stg_status stg_reload_lanes_begin(stg_reload_lane *lanes, size_t count,
                                  stg_hub *h, stg_error *err)
{
    batch b = {.hub = h,
               .lanes = lanes,
               .begins = calloc(count + 1, sizeof(stg_lane_begin)),
               .count = count};
    stg_status status;

    if (b.begins == NULL)
        return stg_hub_refuse(err, STG_IO, "out of memory");
    for (size_t i = 0; i < count; i++)
        b.begins[i] = (stg_lane_begin){.name = lanes[i].target->name,
                                       .url = lanes[i].url};
    status = stg_store_begin_lanes(h->store, b.begins, count, reload_lanes_put,
                                   &b, err);
    if (status != STG_OK)
        reload_lanes_unput(&b);
    free(b.begins);
    return status;
}

void stg_reload_lane_place(stg_reload_lane *l, stg_hub *h)
{
    stg_target *t = l->target;
    stg_lane_options o;

    // By another hub, before this one had the target.
    t->pause = stg_store_paused(h->store, t->lane);
    o = stg_hub_lane(h, t);
    stg_flow_place_lane(h->flow, l->made, t->lane, &o);
    l->made = NULL;
}
