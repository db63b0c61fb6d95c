#include "sim/delivery/internal.h"

#include <string.h>

/* Where a row or a dead letter is in its array, by its key: open addressing, at
 * most half full. What follows a place that becomes free moves up to it, so that
 * there are no marks of what was deleted. The keys are the world's own, and
 * nobody chooses them: a plain hash will do. */

enum { ROOM_MIN = 64 };

static bool is_equal(const stg_world_key *a, const stg_world_key *b)
{
    return a->position == b->position && a->lane == b->lane &&
           a->partition == b->partition && a->replay == b->replay &&
           a->life == b->life;
}

/* The multiplier is 2^64 divided by the golden ratio. */
static size_t home_of(const stg_world_keys *t, const stg_world_key *key)
{
    static const uint64_t golden = 0x9e3779b97f4a7c15;
    uint64_t hash = key->position * golden;

    hash = (hash ^ key->lane ^ (uint64_t)key->partition << 32) * golden;
    hash = (hash ^ key->replay ^ (uint64_t)key->life << 32) * golden;
    return (size_t)(hash >> 32) & (t->room - 1);
}

/* The key's place, or the free one where it would be. There is room. */
static stg_world_place *find_place(const stg_world_keys *t,
                                   const stg_world_key *key)
{
    size_t at = home_of(t, key);

    while (t->places[at].number > 0 && !is_equal(&t->places[at].key, key))
        at = (at + 1) & (t->room - 1);
    return &t->places[at];
}

static bool grow(stg_world *w, stg_world_keys *t)
{
    stg_world_keys larger = {.room = t->room == 0 ? ROOM_MIN : 2 * t->room,
                             .count = t->count};

    larger.places = stg_world_allocate(w, larger.room, sizeof *larger.places);
    if (larger.places == NULL)
        return false;
    for (size_t i = 0; i < t->room; i++)
        if (t->places[i].number > 0)
            *find_place(&larger, &t->places[i].key) = t->places[i];
    stg_world_release(w, t->places);
    *t = larger;
    return true;
}

bool stg_world_keys_put(stg_world *w, stg_world_keys *t,
                        const stg_world_key *key, size_t i)
{
    stg_world_place *at;

    if (2 * (t->count + 1) > t->room && !grow(w, t))
        return false;
    at = find_place(t, key);
    t->count += at->number == 0;
    at->key = *key;
    at->number = i + 1;
    return true;
}

size_t stg_world_keys_find(const stg_world_keys *t, const stg_world_key *key)
{
    return t->count == 0 ? SIZE_MAX : find_place(t, key)->number - 1;
}

void stg_world_keys_remove(stg_world_keys *t, const stg_world_key *key)
{
    size_t free_at, at;

    if (t->count == 0)
        return;
    free_at = at = (size_t)(find_place(t, key) - t->places);
    if (t->places[at].number == 0)
        return;
    t->count--;
    for (;;) {
        size_t home;

        at = (at + 1) & (t->room - 1);
        if (t->places[at].number == 0)
            break;
        home = home_of(t, &t->places[at].key);
        // Only what is found from the free place on may stand there.
        if (((at - home) & (t->room - 1)) >= ((at - free_at) & (t->room - 1))) {
            t->places[free_at] = t->places[at];
            free_at = at;
        }
    }
    t->places[free_at].number = 0;
}
