#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* SipHash-2-4 (Aumasson and Bernstein, 2012): who does not know the seed cannot
 * choose names that fall together. The table on top of it has open addressing
 * and linear probing; a removal moves those behind it up, so that there are no
 * tombstones. */

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void mix(uint64_t v[4], unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

/* Little-endian, 8 bytes at most. */
static uint64_t read_word(const unsigned char *at, size_t size)
{
    uint64_t word = 0;

    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)at[i] << 8 * i;
    return word;
}

static void add_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v, 2);
    v[0] ^= word;
}

stg_hash_seed stg_hash_seed_draw(const stg_env *env)
{
    stg_hash_seed seed;

    seed.at[0] = env->random(env->ctx);
    seed.at[1] = env->random(env->ctx);
    return seed;
}

uint64_t stg_hash(const stg_hash_seed *seed, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    size_t left = size;
    // "somepseudorandomlygeneratedbytes"
    uint64_t v[4] = {seed->at[0] ^ UINT64_C(0x736f6d6570736575),
                     seed->at[1] ^ UINT64_C(0x646f72616e646f6d),
                     seed->at[0] ^ UINT64_C(0x6c7967656e657261),
                     seed->at[1] ^ UINT64_C(0x7465646279746573)};

    for (; left >= 8; left -= 8, at += 8)
        add_word(v, read_word(at, 8));
    add_word(v, read_word(at, left) | (uint64_t)size << 56);
    v[2] ^= 0xff;
    mix(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* -- a table of texts --------------------------------------------------------- */

/* The place of text, or the free one that it would get. There is one. */
static stg_text_place *place_of(const stg_text_table *t, const char *text)
{
    size_t at = (size_t)stg_hash(&t->seed, text, strlen(text)) & (t->room - 1);

    while (t->at[at].text != NULL && strcmp(t->at[at].text, text) != 0)
        at = (at + 1) & (t->room - 1);
    return &t->at[at];
}

/* A quarter of the places at least is free. So a search ends at a free place after
 * few steps. */
static bool make_room(stg_text_table *t)
{
    stg_text_table grown = {.room = t->room > 0 ? 2 * t->room : 16,
                            .count = t->count,
                            .seed = t->seed};

    if (4 * t->count < 3 * t->room)
        return true;
    if (t->seed.at[0] == 0)
        grown.seed = stg_hash_seed_draw(stg_env_system());
    grown.at = calloc(grown.room, sizeof *grown.at);
    if (grown.at == NULL)
        return false;
    for (size_t i = 0; i < t->room; i++)
        if (t->at[i].text != NULL)
            *place_of(&grown, t->at[i].text) = t->at[i];
    free(t->at);
    *t = grown;
    return true;
}

bool stg_text_table_add(stg_text_table *t, const char *text, size_t number,
                        size_t *found)
{
    stg_text_place *place;

    if (!make_room(t))
        return false;
    place = place_of(t, text);
    if (place->text == NULL) {
        *place = (stg_text_place){text, number};
        t->count++;
    }
    if (found != NULL)
        *found = place->number;
    return true;
}

bool stg_text_table_find(const stg_text_table *t, const char *text,
                         size_t *number)
{
    const stg_text_place *place;

    if (t->count == 0)
        return false;
    place = place_of(t, text);
    if (place->text == NULL)
        return false;
    *number = place->number;
    return true;
}

void stg_text_table_remove(stg_text_table *t, const char *text)
{
    stg_text_place *place = t->count == 0 ? NULL : place_of(t, text);

    if (place == NULL || place->text == NULL)
        return;
    place->text = NULL;
    t->count--;
    // Those behind it may have come there for want of its place.
    for (size_t at = (size_t)(place - t->at + 1) & (t->room - 1);
         t->at[at].text != NULL; at = (at + 1) & (t->room - 1)) {
        stg_text_place moved = t->at[at];

        t->at[at].text = NULL;
        *place_of(t, moved.text) = moved;
    }
}

void stg_text_table_free(stg_text_table *t)
{
    free(t->at);
    *t = (stg_text_table){.at = NULL};
}
