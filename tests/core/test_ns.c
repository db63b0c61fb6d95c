/* Time: sums that stop at the ends, and words for people. */
#include <stagger/ns.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <stagger/rng.h>

#include "tests/harness.h"

__extension__ typedef unsigned __int128 u128;

/* Any length is as likely as any other: from nanoseconds to centuries. */
static uint64_t any_size(stg_rng *rng)
{
    return stg_rng_next(rng) >> stg_rng_upto(rng, 63);
}

TEST(ns, stops_at_never_and_at_zero)
{
    static const struct {
        stg_ns a, b, sum, difference, product;
    } rows[] = {
        {0, 0, 0, 0, 0},
        {0, STG_NEVER, STG_NEVER, 0, 0},
        {STG_NEVER, 0, STG_NEVER, STG_NEVER, 0},
        {STG_NEVER, 1, STG_NEVER, STG_NEVER - 1, STG_NEVER},
        {STG_NEVER - 1, 1, STG_NEVER, STG_NEVER - 2, STG_NEVER - 1},
        {STG_NEVER - 2, 1, STG_NEVER - 1, STG_NEVER - 3, STG_NEVER - 2},
        {STG_NEVER, STG_NEVER, STG_NEVER, 0, STG_NEVER},
        {3, 5, 8, 0, 15},
        {5, 3, 8, 2, 15},
        {UINT64_C(1) << 32, UINT64_C(1) << 32, UINT64_C(1) << 33, 0, STG_NEVER},
        {UINT32_MAX, UINT64_C(4294967297), UINT64_C(8589934592), 0, STG_NEVER},
        {STG_NEVER / 3, 3, STG_NEVER / 3 + 3, STG_NEVER / 3 - 3, STG_NEVER},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_U64(stg_ns_add(rows[i].a, rows[i].b), rows[i].sum);
        CHECK_U64(stg_ns_sub(rows[i].a, rows[i].b), rows[i].difference);
        CHECK_U64(stg_ns_mul(rows[i].a, rows[i].b), rows[i].product);
    }
}

TEST(ns, agrees_with_arithmetic_of_twice_the_width)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_ns a = any_size(&rng), b = any_size(&rng);
        u128 sum = (u128)a + b, product = (u128)a * b;

        CHECK_FROM(seed, stg_ns_add(a, b) ==
                             (sum > STG_NEVER ? STG_NEVER : (stg_ns)sum));
        CHECK_FROM(seed, stg_ns_sub(a, b) == (a > b ? a - b : 0));
        CHECK_FROM(seed,
                   stg_ns_mul(a, b) ==
                       (product > STG_NEVER ? STG_NEVER : (stg_ns)product));
        CHECK_FROM(seed, stg_ns_min(a, b) == (a <= b ? a : b));
        CHECK_FROM(seed, stg_ns_max(a, b) == (a >= b ? a : b));
    }
}

TEST(ns, reads_as_people_say_it)
{
    static const struct {
        stg_ns ns;
        const char *text;
    } rows[] = {
        {0, "0"},
        {1, "1 ns"},
        {99, "99 ns"},
        {100, "100 ns"},
        {999, "999 ns"},
        {STG_US, "1 us"},
        {STG_US + 49, "1 us"},
        {STG_US + 50, "1.1 us"},
        {99 * STG_US + 949, "99.9 us"},
        {99 * STG_US + 950, "100 us"},
        {100 * STG_US + 499, "100 us"},
        {100 * STG_US + 500, "101 us"},
        {999 * STG_US + 499, "999 us"},
        {999 * STG_US + 500, "1 ms"},
        {STG_MS, "1 ms"},
        {250 * STG_MS, "250 ms"},
        {999499 * STG_US, "999 ms"},
        {999500 * STG_US, "1 s"},
        {3120 * STG_MS, "3.1 s"},
        {3150 * STG_MS, "3.2 s"},
        {59949 * STG_MS, "59.9 s"},
        {59950 * STG_MS, "1 min"},
        {STG_MIN, "1 min"},
        {90 * STG_S, "1.5 min"},
        {59 * STG_MIN + 56 * STG_S, "59.9 min"},
        {59 * STG_MIN + 57 * STG_S, "1 h"},
        {90 * STG_MIN, "1.5 h"},
        {23 * STG_HOUR + 56 * STG_MIN, "23.9 h"},
        {23 * STG_HOUR + 57 * STG_MIN, "1 d"},
        {36 * STG_HOUR, "1.5 d"},
        {99 * STG_DAY + 22 * STG_HOUR, "99.9 d"},
        {99 * STG_DAY + 23 * STG_HOUR, "100 d"},
        {100 * STG_DAY + 12 * STG_HOUR - 1, "100 d"},
        {100 * STG_DAY + 12 * STG_HOUR, "101 d"},
        {365 * STG_DAY, "365 d"},
        {STG_NEVER - 1, "213504 d"},
        {STG_NEVER, "never"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[STG_NS_TEXT_MAX];

        CHECK_STR(stg_ns_text(rows[i].ns, text), rows[i].text);
        CHECK(stg_ns_text(rows[i].ns, text) == text);
    }
}

/* A text back into tenths of its unit, and the unit. */
static uint64_t read_text(const char *text, stg_ns *unit)
{
    static const struct {
        const char *name;
        stg_ns length;
    } units[] = {{" ns", 1},     {" us", STG_US},   {" ms", STG_MS},
                 {" s", STG_S},  {" min", STG_MIN}, {" h", STG_HOUR},
                 {" d", STG_DAY}};
    char *end;
    uint64_t tenths = 10 * strtoull(text, &end, 10);

    if (*end == '.') {
        tenths += (uint64_t)(end[1] - '0');
        end += 2;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].name) == 0) {
            *unit = units[i].length;
            return tenths;
        }
    *unit = 0;
    return 0;
}

/* The text is never off by more than half of its last digit. */
TEST(ns, rounds_to_the_nearest_digit_it_says)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_ns ns = any_size(&rng) | 1, unit;
        char text[STG_NS_TEXT_MAX];
        uint64_t tenths = read_text(stg_ns_text(ns, text), &unit);
        u128 said, meant = (u128)ns * 10;
        u128 digit;

        if (ns == STG_NEVER)
            continue;
        CHECK_FROM(seed, unit != 0 && tenths >= 10);
        said = (u128)tenths * unit;
        digit = tenths >= 1000 ? 10 * (u128)unit : unit;
        CHECK_FROM(seed,
                   2 * (said > meant ? said - meant : meant - said) <= digit);
        // From 100 units on, tenths are not said.
        CHECK_FROM(seed, tenths < 1000 || tenths % 10 == 0);
    }
}

TEST(ns, keeps_within_its_buffer)
{
    static const stg_ns all[] = {0, 1, STG_NEVER, STG_NEVER - 1, 365 * STG_DAY};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[STG_NS_TEXT_MAX + 1];

        memset(text, '#', sizeof text);
        stg_ns_text(all[i], text);
        CHECK(memchr(text, '\0', STG_NS_TEXT_MAX) != NULL);
        CHECK(text[STG_NS_TEXT_MAX] == '#');
    }
}
