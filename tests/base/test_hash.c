#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/rng.h>

#include "tests/harness.h"

/* The key is 00 01 ... 0f, and the message of n bytes 00 01 ...; n = 15 is the
 * example of the paper, the others are of its authors' vectors.h. */
TEST(hash, is_siphash)
{
    static const struct {
        size_t size;
        uint64_t hash;
    } vectors[] = {
        {0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
        {2, UINT64_C(0x0d6c8009d9a94f5a)},  {7, UINT64_C(0xab0200f58b01d137)},
        {8, UINT64_C(0x93f5f5799a932462)},  {9, UINT64_C(0x9e0082df0ba9e4b0)},
        {15, UINT64_C(0xa129ca6149be45e5)}, {63, UINT64_C(0x958a324ceb064572)},
    };
    const stg_hash_seed seed = {
        {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    unsigned char bytes[64];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        CHECK_U64(stg_hash(&seed, bytes, vectors[i].size), vectors[i].hash);
    CHECK_U64(stg_hash(&seed, NULL, 0), vectors[0].hash);
}

TEST(hash, depends_on_all_of_its_seed)
{
    stg_hash_seed seed = {{1, 2}};
    uint64_t hash = stg_hash(&seed, "key", 3);

    for (unsigned i = 0; i < 128; i++) {
        seed.at[i / 64] ^= UINT64_C(1) << i % 64;
        CHECK_FROM(i, stg_hash(&seed, "key", 3) != hash);
        seed.at[i / 64] ^= UINT64_C(1) << i % 64;
    }
}

enum { TEXTS = 64 };

static size_t number_of(const stg_text_table *t, const char *text)
{
    size_t number;

    return stg_text_table_find(t, text, &number) ? number : SIZE_MAX;
}

TEST(text_table, keeps_the_first_number_of_a_text)
{
    stg_text_table t = {.at = NULL};
    size_t found = 0;

    CHECK(stg_text_table_add(&t, "a", 7, &found));
    CHECK_U64(found, 7);
    CHECK(stg_text_table_add(&t, "a", 8, &found));
    CHECK_U64(found, 7);
    CHECK_U64(number_of(&t, "a"), 7);
    CHECK_U64(number_of(&t, "b"), SIZE_MAX);
    stg_text_table_free(&t);
}

/* Against an array, in tables that are as full as they get. */
TEST(text_table, finds_what_was_added_and_not_removed)
{
    static char texts[TEXTS][8];

    for (size_t i = 0; i < TEXTS; i++)
        (void)snprintf(texts[i], sizeof texts[i], "t%zu", i);
    for (uint64_t seed = 0; seed < 200; seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_text_table t = {.seed = {{seed + 1, 0}}};
        bool is_in[TEXTS] = {false};

        for (int step = 0; step < 500; step++) {
            size_t i = (size_t)stg_rng_upto(&rng, TEXTS - 1);

            is_in[i] = stg_rng_upto(&rng, 2) > 0;
            if (is_in[i])
                CHECK_FROM(seed, stg_text_table_add(&t, texts[i], i, NULL));
            else
                stg_text_table_remove(&t, texts[i]);
        }
        for (size_t i = 0; i < TEXTS; i++)
            CHECK_FROM(seed,
                       number_of(&t, texts[i]) == (is_in[i] ? i : SIZE_MAX));
        stg_text_table_free(&t);
    }
}
