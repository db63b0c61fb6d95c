/* A target that the settings do not have must not hold the group's offset for
 * ever: what it has waited for longer than store.retention is shed. (What the
 * queue keeps ends by itself.) */
#include "host/wall.h"
#include "hub/hub_internal.h"

static const stg_ns PAUSE = 5 * STG_S;

static void look_at(stg_hub *h, const stg_target *t, stg_ns utc, stg_ns now)
{
    stg_lane_view v;

    if (t->settings != NULL ||
        stg_flow_view_lane(h->flow, t->lane, &v, now) != STG_OK ||
        v.oldest_at == 0 ||
        stg_ns_sub(utc, v.oldest_at) < h->settings->store.retention ||
        !stg_flow_retain_lane(h->flow, t->lane, now))
        return;
    stg_tell_released(h, t);
    stg_shell_note(h);
}

static void look(stg_deadline *d)
{
    stg_source *s = STG_HEAP_HOLDER(d, stg_source, release);
    stg_hub *h = s->hub;
    stg_ns now = stg_deadlines_now(), utc = stg_wall_now();

    if (h->is_closing || h->is_broken || s->kafka == NULL)
        return;
    for (size_t i = 0; i < h->targets.count; i++)
        look_at(h, h->targets.all[i], utc, now);
    stg_source_watch_release(s);
}

void stg_source_watch_release(stg_source *s)
{
    s->release.passed = look;
    stg_deadline_set(&s->hub->deadlines, &s->release,
                     stg_ns_add(stg_deadlines_now(), PAUSE));
}
