/* The events that wait for one receiver, one of a key, the oldest first. What
 * was put off stays in its place and is passed over until its time: an event
 * that a service refuses is in nobody's way. */
#include "alerts/event.h"

#include <stdlib.h>
#include <string.h>

typedef struct waiting {
    stg_link link;
    bool is_put_off;
    bool is_test;
    uint64_t at;
    char hub[STG_DIGEST_NAME_MAX];
    stg_digest_item item;
} waiting;

void stg_events_init(stg_events *e)
{
    *e = (stg_events){.count = 0};
    stg_list_init(&e->all);
}

void stg_events_clear(stg_events *e)
{
    stg_link *link;

    while ((link = stg_list_shift(&e->all)) != NULL)
        free(STG_HOLDER(link, waiting, link));
    e->count = 0;
}

/* -- in -------------------------------------------------------------------- */

static waiting *find(const stg_events *e, const stg_digest *d,
                     const stg_digest_item *item)
{
    stg_link *link = stg_list_first(&e->all);

    for (; link != NULL; link = stg_list_next(&e->all, link)) {
        waiting *w = STG_HOLDER(link, waiting, link);

        if (w->is_test == d->is_test && stg_digest_item_is_same(&w->item, item))
            return w;
    }
    return NULL;
}

static waiting *add(stg_events *e, const stg_digest *d,
                    const stg_digest_item *item)
{
    waiting *w = e->count < STG_EVENTS_MAX ? calloc(1, sizeof *w) : NULL;

    if (w == NULL)
        return NULL;
    w->is_test = d->is_test;
    w->at = d->at;
    memcpy(w->hub, d->hub, sizeof w->hub);
    w->item = *item;
    stg_list_push(&e->all, &w->link);
    e->count++;
    return w;
}

/* item is newer than what waits. */
static bool add_newer(stg_events *e, const stg_digest *d,
                      const stg_digest_item *item)
{
    waiting *w = find(e, d, item);
    stg_digest_item newer = *item;

    if (w == NULL)
        return add(e, d, item) != NULL;
    stg_digest_merge_item(&newer, &w->item);
    w->item = newer;
    w->at = d->at;
    w->is_put_off = false;
    return true;
}

size_t stg_events_add(stg_events *e, const stg_digest *d)
{
    // A test closes again what it has opened.
    const stg_digest_item test = {.phase = STG_ALERT_WAS,
                                  .first_at = d->at,
                                  .last_at = d->at,
                                  .ended_at = d->at};
    size_t lost = 0;

    if (d->is_test)
        lost += !add_newer(e, d, &test);
    for (size_t i = 0; i < d->item_count; i++)
        lost += !add_newer(e, d, &d->items[i]);
    return lost;
}

bool stg_events_put_off(stg_events *e, const stg_digest *d)
{
    waiting *w = find(e, d, &d->items[0]);

    if (w != NULL) {
        stg_digest_merge_item(&w->item, &d->items[0]);
        return true;
    }
    w = add(e, d, &d->items[0]);
    if (w != NULL)
        w->is_put_off = true;
    return w != NULL;
}

/* Where the alert is in the list already, it stays as it is: it is newer than this
 * end. */
bool stg_events_add_end(stg_events *e, const stg_digest *d)
{
    stg_digest_item item = d->items[0];

    item.phase = STG_ALERT_ENDED;
    return find(e, d, &item) != NULL || add(e, d, &item) != NULL;
}

/* -- out ------------------------------------------------------------------- */

static waiting *first(const stg_events *e, stg_ns now)
{
    stg_link *link = stg_list_first(&e->all);

    for (; link != NULL; link = stg_list_next(&e->all, link)) {
        waiting *w = STG_HOLDER(link, waiting, link);

        if (!w->is_put_off || now >= e->again_at)
            return w;
    }
    return NULL;
}

stg_digest *stg_events_take(stg_events *e, stg_ns now)
{
    waiting *w = first(e, now);
    stg_digest *d = w != NULL ? calloc(1, sizeof *d) : NULL;

    if (d == NULL)
        return NULL;
    *d = (stg_digest){.is_test = w->is_test, .at = w->at, .item_count = 1};
    memcpy(d->hub, w->hub, sizeof d->hub);
    d->items[0] = w->item;
    stg_list_remove(&w->link);
    e->count--;
    free(w);
    return d;
}
