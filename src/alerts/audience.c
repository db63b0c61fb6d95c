/* Receivers that are told of an alert, and those that were before a reload.
 *
 * A receiver is known by its destination: what was told there stays told,
 * whatever name, password or filter the receiver has now. One of the same name at
 * another destination is told of what fires, and in any case of its end. */
#include "alerts/alerts.h"

#include <string.h>

static const char *audience_name_of(const stg_alert_audience *r, uint32_t lane)
{
    stg_alert_target t = {.name = NULL};

    r->place->describe(r->place->ctx, lane, &t);
    return t.name;
}

/* With `targets`, a lane without a name (its target was forgotten) is not
 * wanted. */
static bool audience_is_named(const stg_alert_audience *r, uint32_t lane)
{
    const stg_alert_receiver_options *s = r->receiver;
    const char *name = s->target_count > 0 ? audience_name_of(r, lane) : NULL;

    for (size_t i = 0; name != NULL && i < s->target_count; i++)
        if (strcmp(s->targets[i], name) == 0)
            return true;
    return s->target_count == 0;
}

static bool audience_is_tagged(const stg_alert_audience *r, uint32_t lane)
{
    const stg_alert_receiver_options *s = r->receiver;

    for (size_t i = 0; i < s->tag_count; i++)
        if (r->place->has_tag(r->place->ctx, lane, s->tags[i].name,
                              s->tags[i].value))
            return true;
    return s->tag_count == 0;
}

/* `targets` and `tags` must both agree; neither applies to what has no target of its
 * own (the store, all targets together). */
bool stg_alert_audience_wants(void *ctx, stg_alert alert, uint32_t lane)
{
    const stg_alert_audience *r = ctx;

    if ((r->alerts & r->receiver->alerts & STG_ALERT_BIT(alert)) == 0)
        return false;
    return !stg_alert_is_lane(lane) ||
           (audience_is_named(r, lane) && audience_is_tagged(r, lane));
}

static stg_alert_successor audience_find(const stg_alert_receivers *all,
                                         const stg_alert_receiver *next)
{
    uint64_t at = stg_alert_receiver_destination(next);
    const char *name = stg_alert_receiver_options_of(next)->name;
    stg_alert_successor found = {0, 0};

    for (size_t i = 0; i < all->count; i++) {
        const stg_alert_receiver *s = all->all[i];

        if (stg_alert_receiver_destination(s) == at)
            found.told |= 1u << i;
        if (strcmp(stg_alert_receiver_options_of(s)->name, name) == 0)
            found.heirs |= 1u << i;
    }
    return found;
}

bool stg_alert_audience_change(const stg_alert_receivers *all,
                               stg_alert_receiver *const *next, size_t count,
                               stg_alert_successor from[STG_ALERT_READERS_MAX])
{
    bool has_stranger = false;

    for (size_t i = 0; i < count; i++) {
        from[i] = audience_find(all, next[i]);
        has_stranger = has_stranger || from[i].told == 0;
    }
    return has_stranger;
}
