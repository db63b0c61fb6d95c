#include "store/claimed.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(stg_taken *t)
{
    size_t room = t->room == 0 ? 64 : 2 * t->room;
    stg_cursor *cursors;

    if (t->count < t->room)
        return true;
    cursors = realloc(t->cursors, room * sizeof *cursors);
    if (cursors == NULL)
        return false;
    t->cursors = cursors;
    t->room = room;
    return true;
}

static void keep_cursor(stg_taken *t, const stg_cursor *c)
{
    size_t size = c->settled_count * sizeof *c->settled;
    uint64_t *settled = stg_arena_bytes(&t->texts, size + 1);

    t->furthest = stg_ns_max(t->furthest, c->base);
    t->is_short |= settled == NULL || !make_room(t);
    if (t->is_short)
        return;
    if (size > 0)
        memcpy(settled, c->settled, size);
    t->cursors[t->count] = *c;
    t->cursors[t->count++].settled = settled;
}

void stg_taken_clear(stg_taken *t)
{
    t->count = 0;
    t->furthest = 0;
}

/* Numbers that are taken together. */
typedef struct handful {
    stg_taken **by_number; /* NULL: not of them */
    uint32_t *numbers;
    size_t count, room; /* of by_number */
    char *list;         /* see stg_sql_list() */
} handful;

static stg_taken *find_taken(const handful *h, uint32_t number)
{
    return number < h->room ? h->by_number[number] : NULL;
}

static void note_generation(void *ctx, uint32_t number, uint64_t generation)
{
    stg_taken *t = find_taken(ctx, number);

    if (t != NULL)
        t->p.generation = generation;
}

static void note_cursor(void *ctx, const stg_cursor *c)
{
    stg_taken *t = find_taken(ctx, c->partition);

    if (t != NULL)
        keep_cursor(t, c);
}

static void drop_handful(handful *h)
{
    free(h->by_number);
    free(h->numbers);
    free(h->list);
}

static int gather(handful *h, stg_taken *const *all, size_t count)
{
    *h = (handful){.count = count};
    for (size_t i = 0; i < count; i++)
        if (all[i]->p.number >= h->room)
            h->room = all[i]->p.number + 1;
    h->by_number = calloc(h->room, sizeof(stg_taken *));
    h->numbers = calloc(count, sizeof *h->numbers);
    if (h->by_number == NULL || h->numbers == NULL)
        return SQLITE_NOMEM;
    for (size_t i = 0; i < count; i++) {
        stg_taken_clear(all[i]);
        h->by_number[all[i]->p.number] = all[i];
        h->numbers[i] = all[i]->p.number;
    }
    h->list = stg_sql_list(h->numbers, count);
    return h->list == NULL ? SQLITE_NOMEM : SQLITE_OK;
}

/* From the first command on nobody else writes them; so what is read then
 * stays. */
static int take_handful(handful *h, stg_store_writer *w)
{
    bool is_shared = stg_sql_is_shared(w->db);
    int rc =
        stg_partitions_raise(w->db, h->list, w->o->shard, note_generation, h);

    if (rc == SQLITE_OK && is_shared)
        rc = stg_rows_pull_in_of(w->db, h->list, stg_sql_now(w->db));
    if (rc == SQLITE_OK && is_shared)
        rc = stg_cursors_reload(&w->cursors, w->db, h->numbers, h->count);
    return rc == SQLITE_OK
               ? stg_cursors_read(w->db, h->list, true, note_cursor, h)
               : rc;
}

int stg_taken_take(stg_taken *const *all, size_t count, stg_store_writer *w)
{
    handful h;
    int rc;

    if (count == 0)
        return SQLITE_OK;
    rc = gather(&h, all, count);
    if (rc == SQLITE_OK)
        rc = take_handful(&h, w);
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
        if (all[i]->is_short ||
            stg_partitions_set(&w->partitions, &all[i]->p) == NULL)
            rc = SQLITE_NOMEM;
    drop_handful(&h);
    return rc;
}

void stg_taken_free(stg_taken *t)
{
    stg_arena_free(&t->texts);
    free(t->cursors);
}
