/* Ranges of positions, against a plain array of what is in them. */
#include <string.h>

#include "flow/positions.h"
#include "tests/harness.h"

#include <stagger/rng.h>

enum { ALL = 40 };

/* They rise, do not touch, and have what they should. */
static void compare(const stg_positions *list, size_t count, const bool *in)
{
    for (size_t i = 0; i < count; i++) {
        CHECK(list[i].first <= list[i].last);
        CHECK(i == 0 || list[i].first > list[i - 1].last + 1);
    }
    for (uint64_t p = 0; p < ALL; p++)
        CHECK_INT(stg_positions_have(list, count, p), in[p]);
}

TEST(positions, has_what_was_inserted_in_any_order)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_positions list[ALL];
        bool in[ALL] = {false};
        size_t count = 0;

        for (int i = 0; i < ALL; i++) {
            uint64_t p = stg_rng_upto(&rng, ALL - 1);

            count = stg_positions_insert(list, count, p);
            in[p] = true;
            compare(list, count, in);
        }
    }
}

TEST(positions, grows_by_what_touches_the_last_one)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_positions list[ALL];
        bool in[ALL] = {false};
        uint64_t first = 0;
        size_t count = 0;

        while (first < ALL) {
            uint64_t end = first + stg_rng_upto(&rng, ALL - first);

            count = stg_positions_append(list, count, first, end);
            for (uint64_t p = first; p < end; p++)
                in[p] = true;
            compare(list, count, in);
            first += stg_rng_upto(&rng, 6);
            if (stg_rng_upto(&rng, 9) == 0)
                break;
        }
    }
}

TEST(positions, tells_how_many_are_missing_and_the_first)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t from = stg_rng_upto(&rng, ALL), end = stg_rng_upto(&rng, ALL);
        uint64_t first = 99, expected = 99, missing = 0;
        stg_positions list[ALL];
        bool in[ALL] = {false};
        size_t count = 0;

        for (uint64_t i = stg_rng_upto(&rng, ALL); i > 0; i--) {
            uint64_t p = stg_rng_upto(&rng, ALL - 1);

            count = stg_positions_insert(list, count, p);
            in[p] = true;
        }
        for (uint64_t p = from; p < end; p++) {
            if (!in[p] && missing++ == 0)
                expected = p;
        }
        CHECK_U64(stg_positions_missing(list, count, from, end, &first),
                  missing);
        CHECK_U64(first, expected);
    }
}

TEST(positions, are_sound_if_they_rise_and_do_not_touch)
{
    static const struct {
        stg_positions list[2];
        bool is_sound;
    } cases[] = {
        {{{5, 6}, {8, 8}}, true},  {{{6, 6}, {9, 12}}, true},
        {{{4, 6}, {8, 8}}, false}, {{{5, 6}, {7, 8}}, false},
        {{{5, 6}, {6, 8}}, false}, {{{8, 8}, {5, 6}}, false},
        {{{6, 5}, {8, 8}}, false}, {{{5, 6}, {9, 8}}, false},
    };

    CHECK(stg_positions_are_sound(NULL, 0, 5));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_INT(stg_positions_are_sound(cases[i].list, 2, 5),
                  cases[i].is_sound);
}
