/* Numbers of epochs that are over, whose rows a hub has with a partition: they
 * come with the claim of the partition's own number, and go where that goes. */
#include "hub/hub_internal.h"

/* Which of those before it the number is; before_count: none. */
static size_t find_before(const stg_source_place *p, uint32_t number)
{
    size_t i = 0;

    while (i < p->before_count && p->before[i] != number)
        i++;
    return i;
}

/* The place whose rows of an epoch that is over the number has; or NULL. */
static stg_source_place *find_later(const stg_source *s, uint32_t number)
{
    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        stg_source_place *p = STG_HOLDER(at, stg_source_place, link);

        if (find_before(p, number) < p->before_count)
            return p;
    }
    return NULL;
}

void stg_source_unclaim(stg_source *s, const stg_claimed *c)
{
    stg_store_unclaim(s->hub->store, c->number);
    for (size_t i = 0; i < c->before_count; i++)
        stg_store_unclaim(s->hub->store, c->before[i].number);
}

void stg_source_give_rows(stg_source_place *p, const stg_claimed *c)
{
    stg_hub *h = p->source->hub;

    p->before_count = 0;
    for (size_t i = 0; i < c->before_count; i++) {
        const stg_claimed_before *b = &c->before[i];
        stg_assignment g = {.partition = b->number,
                            .generation = b->generation,
                            .is_merged = true,
                            .is_rows_only = true,
                            .cursors = b->cursors,
                            .cursor_count = b->count};

        // Without memory, or while it stops: the next claim has them, too.
        if (stg_flow_assign(h->flow, &g, stg_deadlines_now(), NULL) == STG_OK)
            p->before[p->before_count++] = b->number;
        else
            stg_store_unclaim(h->store, b->number);
    }
}

void stg_source_lose_rows(stg_source_place *p)
{
    for (size_t i = 0; i < p->before_count; i++)
        stg_flow_lose(p->source->hub->flow, p->before[i], false,
                      stg_deadlines_now());
}

stg_source_place *stg_source_end_rows(stg_source *s, uint32_t number)
{
    stg_source_place *p = find_later(s, number);

    if (p != NULL)
        p->before[find_before(p, number)] = p->before[--p->before_count];
    return p;
}
