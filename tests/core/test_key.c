/* Idempotency keys: UUIDs of version 7. */
#include <stagger/key.h>

#include <inttypes.h>
#include <stdio.h>

#include <stagger/rng.h>

#include "tests/harness.h"

/* RFC 9562, appendix A.6: 2022-02-22 14:22:22 in New York, random parts 0xcc3
 * and 0x18c4dc0c0c07398f. The bits in the places of version and variant are
 * not taken, whatever they are. */
TEST(key, is_the_example_of_the_standard)
{
    static const uint8_t clear[10] = {0x0c, 0xc3, 0x18, 0xc4, 0xdc,
                                      0x0c, 0x0c, 0x07, 0x39, 0x8f};
    static const uint8_t set[10] = {0xfc, 0xc3, 0xd8, 0xc4, 0xdc,
                                    0x0c, 0x0c, 0x07, 0x39, 0x8f};
    char text[STG_KEY_MAX];

    memset(text, '#', sizeof text);
    CHECK_STR(stg_key_make(text, 0x017f22e279b0, clear),
              "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    CHECK(stg_key_make(text, 0x017f22e279b0, set) == text);
    CHECK_STR(text, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

TEST(key, has_version_and_variant_whatever_the_bytes)
{
    static const uint8_t zeros[10];
    uint8_t ones[10];
    char text[STG_KEY_MAX];

    memset(ones, 0xff, sizeof ones);
    CHECK_STR(stg_key_make(text, 0, zeros),
              "00000000-0000-7000-8000-000000000000");
    CHECK_STR(stg_key_make(text, (UINT64_C(1) << 48) - 1, ones),
              "ffffffff-ffff-7fff-bfff-ffffffffffff");
}

TEST(key, keeps_the_low_48_bits_of_the_time)
{
    static const uint8_t zeros[10];
    char text[STG_KEY_MAX];

    CHECK_STR(stg_key_make(text, UINT64_C(1) << 48, zeros),
              "00000000-0000-7000-8000-000000000000");
    CHECK_STR(stg_key_make(text, UINT64_C(0xabcd123456789abc), zeros),
              "12345678-9abc-7000-8000-000000000000");
}

static void draw(stg_rng *rng, uint8_t random[10])
{
    for (int i = 0; i < 10; i++)
        random[i] = (uint8_t)stg_rng_next(rng);
}

/* Time and all 74 bits are found in the text, in their places. */
TEST(key, holds_the_time_and_the_random_bits)
{
    for (uint64_t seed = 0; seed < seeds(5000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t ms = stg_rng_next(&rng) >> 16;
        uint8_t r[10];
        char text[STG_KEY_MAX], expected[STG_KEY_MAX + 8];

        draw(&rng, r);
        snprintf(expected, sizeof expected,
                 "%08" PRIx64 "-%04" PRIx64
                 "-7%x%02x-%02x%02x-"
                 "%02x%02x%02x%02x%02x%02x",
                 ms >> 16, ms & 0xffff, r[0] & 0xfu, r[1],
                 0x80u + (r[2] & 0x3fu), r[3], r[4], r[5], r[6], r[7], r[8],
                 r[9]);
        stg_key_make(text, ms, r);
        CHECK_FROM(seed, strcmp(text, expected) == 0);
    }
}

TEST(key, sorts_later_of_a_later_millisecond)
{
    for (uint64_t seed = 0; seed < seeds(5000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t last = (UINT64_C(1) << 48) - 1;
        uint64_t ms = stg_rng_upto(&rng, last - 1);
        uint64_t later = ms + 1 + stg_rng_upto(&rng, last - ms - 1);
        char text[STG_KEY_MAX], other[STG_KEY_MAX];
        uint8_t random[10];

        draw(&rng, random);
        stg_key_make(text, ms, random);
        draw(&rng, random);
        stg_key_make(other, later, random);
        CHECK_FROM(seed, strcmp(text, other) < 0);
    }
}
