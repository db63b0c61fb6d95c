/* Rewinds and resends, as the store asks the hub and as calls ask it. */
#include "base/refuse.h"
#include "hub/control.h"
#include "hub/hub_internal.h"

/* -- for stg_store_options ------------------------------------------------- */

stg_order stg_rewind_order(void *hub, uint32_t lane)
{
    const stg_hub *h = hub;
    stg_lane_view v;

    return stg_flow_view_lane(h->flow, lane, &v, stg_deadlines_now()) == STG_OK
               ? v.order
               : STG_ORDER_NONE;
}

uint64_t stg_rewind_next(void *hub, uint32_t lane, uint32_t partition)
{
    const stg_hub *h = hub;
    stg_partition_view p;
    stg_lane_cursor_view c;

    return stg_flow_view_partition(h->flow, partition, &p) == STG_OK &&
                   p.state == STG_PARTITION_ASSIGNED &&
                   stg_flow_view_cursor(h->flow, lane, partition, &c) == STG_OK
               ? c.next
               : 0;
}

/* Partition 0 is the queue's, which has no topic to name. */
void stg_rewind_ended(void *hub, uint32_t lane, uint32_t partition,
                      uint64_t messages)
{
    const stg_hub *h = hub;
    const stg_target *t = stg_targets_at(&h->targets, lane);
    stg_store_partition p = {.topic = NULL};
    bool is_of_topic =
        partition != 0 && stg_store_partition_of(h->store, partition, &p);

    if (t == NULL)
        return;
    if (is_of_topic)
        STG_LOG(h->log, STG_LOG_INFO, "rewind-ended",
                stg_field_text("target", t->name),
                stg_field_number("messages", messages),
                stg_field_text("topic", p.topic),
                stg_field_number("partition", p.partition));
    else
        STG_LOG(h->log, STG_LOG_INFO, "rewind-ended",
                stg_field_text("target", t->name),
                stg_field_number("messages", messages));
}

/* -- calls ----------------------------------------------------------------- */

/* The settings must have the target: they say what it wants. */
stg_status stg_hub_find_sent(const stg_hub *h, const char *name, uint32_t *lane,
                             stg_error *err)
{
    const stg_target *t = stg_targets_named(&h->targets, name);

    if (stg_hub_is_stopping(h) || h->store == NULL || h->is_broken)
        return stg_hub_refuse(err, STG_IO, "the hub is stopping");
    if (t == NULL)
        return stg_hub_refuse_name(h, name, err);
    if (t->settings == NULL)
        return stg_hub_refuse(
            err, STG_INVALID,
            "the settings do not have this target: nothing is "
            "sent to it");
    *lane = t->lane;
    return STG_OK;
}
