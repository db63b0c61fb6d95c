#include "base/text_table.h"

#include <stdio.h>
#include <stdlib.h>

#include <stagger/rng.h>

#include "tests/harness.h"

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
