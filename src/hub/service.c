/* What the service manager is told of a hub; see host/notify.h. It is alive
 * when its loop turns and the store's writer answers. */
#include <inttypes.h>
#include <stdio.h>

#include "hub/hub_internal.h"

/* Beyond the drain: the last group, and the WAL that goes into the file. */
static const stg_ns CLOSING = STG_MIN;

static void answered(void *ctx)
{
    stg_hub *h = ctx;

    stg_notify_alive(&h->notify);
}

static void ask(void *ctx)
{
    stg_hub *h = ctx;

    stg_store_ping(h->store, answered, h);
}

/* How many targets are not sent to, as nothing of them works. */
static size_t count_down(const stg_hub *h)
{
    size_t down = 0;
    stg_lane_view v;

    for (size_t i = 0; i < h->targets.known; i++)
        if (stg_flow_view_lane(h->flow, h->targets.all[i]->lane, &v,
                               stg_deadlines_now()) == STG_OK)
            down += v.state == STG_LANE_CIRCUIT_OPEN ||
                    v.state == STG_LANE_SHEDDING;
    return down;
}

static void write_status(void *ctx, char text[STG_NOTIFY_STATUS_MAX])
{
    const stg_hub *h = ctx;
    stg_hub_view v;

    stg_hub_look(h, &v);
    snprintf(text, STG_NOTIFY_STATUS_MAX,
             "%s: targets %zu, down %zu, messages accepted %" PRIu64
             ", attempts in flight %u",
             v.is_stopping ? "stopping" : "serving", h->targets.known,
             count_down(h), v.accepted, (unsigned)v.flow.in_flight);
}

void stg_service_open(stg_hub *h)
{
    stg_notify_options o = {.ask = ask, .status = write_status, .ctx = h};

    stg_notify_open(&h->notify, &h->deadlines, &o);
    stg_notify_ready(&h->notify);
}

void stg_service_stop(stg_hub *h)
{
    stg_notify_stopping(&h->notify, stg_ns_add(h->settings->drain, CLOSING));
}
