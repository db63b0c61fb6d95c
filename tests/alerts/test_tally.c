/* A sliding window in slices, and the list of causes. */
#include "alerts/tally.h"

#include <stdio.h>

#include <stagger/rng.h>

#include "tests/harness.h"

/* -- the window ------------------------------------------------------------ */

TEST(tally, counts_what_came_within_the_window)
{
    stg_tally t = {.total = 0};

    stg_tally_add(&t, 20 * STG_S, 3, 100 * STG_S);
    stg_tally_add(&t, 20 * STG_S, 2, 110 * STG_S);
    CHECK_U64(t.total, 5);
    CHECK_U64(stg_tally_pass(&t, 20 * STG_S, 120 * STG_S), 0);
    CHECK_U64(stg_tally_next(&t, 20 * STG_S), 121 * STG_S);
    CHECK_U64(stg_tally_since(&t, 20 * STG_S), 100 * STG_S);
    CHECK_U64(stg_tally_pass(&t, 20 * STG_S, 121 * STG_S), 3);
    CHECK_U64(t.total, 2);
    CHECK_U64(stg_tally_since(&t, 20 * STG_S), 110 * STG_S);
    CHECK_U64(stg_tally_pass(&t, 20 * STG_S, 1000 * STG_S), 2);
    CHECK_U64(t.total, 0);
    CHECK_U64(stg_tally_next(&t, 20 * STG_S), STG_NEVER);
}

TEST(tally, takes_the_newest_first)
{
    stg_tally t = {.total = 0};

    stg_tally_add(&t, 20 * STG_S, 3, 100 * STG_S);
    stg_tally_add(&t, 20 * STG_S, 2, 110 * STG_S);
    stg_tally_take(&t, 4);
    CHECK_U64(t.total, 1);
    CHECK_U64(stg_tally_pass(&t, 20 * STG_S, 121 * STG_S), 1);
    stg_tally_take(&t, 4);
    CHECK_U64(t.total, 0);
}

TEST(tally, bears_a_clock_that_steps_back)
{
    stg_tally t = {.total = 0};

    stg_tally_add(&t, 20 * STG_S, 3, 100 * STG_S);
    stg_tally_add(&t, 20 * STG_S, 2, 90 * STG_S);
    CHECK_U64(t.total, 5);
    CHECK_U64(stg_tally_since(&t, 20 * STG_S), 100 * STG_S);
}

TEST(tally, stops_counting_in_a_slice_at_its_most)
{
    stg_tally t = {.total = 0};

    stg_tally_add(&t, STG_S, UINT64_MAX, 0);
    stg_tally_add(&t, STG_S, 1, 0);
    CHECK_U64(t.total, UINT32_MAX);
    CHECK_U64(stg_tally_pass(&t, STG_S, 2 * STG_S), UINT32_MAX);
}

/* Whatever comes when: of what is in the window none is missed, and nothing
 * counts that is a slice older. */
TEST(tally, is_right_to_a_slice)
{
    enum { EVENTS = 200 };
    for (uint64_t seed = 0; seed < seeds(300); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_ns window = STG_S * (1 + stg_rng_upto(&rng, 100)), at[EVENTS];
        stg_ns now = stg_rng_upto(&rng, 1000 * STG_S);
        stg_tally t = {.total = 0};

        for (size_t i = 0; i < EVENTS; i++) {
            uint64_t least = 0, most = 0;

            now += stg_rng_upto(&rng, window / 10);
            at[i] = now;
            stg_tally_add(&t, window, 1, now);
            for (size_t j = 0; j <= i; j++) {
                least += at[j] + window > now;
                most += at[j] + window + window / STG_TALLY_SLICES >= now;
            }
            CHECK_FROM(seed, least <= t.total && t.total <= most);
            CHECK_FROM(seed, stg_tally_next(&t, window) > now);
        }
    }
}

/* -- causes ---------------------------------------------------------------- */

static stg_alert_cause http(int status)
{
    stg_outcome o = stg_answered(status);

    return stg_alert_cause_of(&o);
}

static const char *text_of(const stg_alert_causes *c)
{
    static char text[512];
    size_t size = 0;
    char cause[STG_CAUSE_MAX];

    text[0] = '\0';
    for (size_t i = 0; i < STG_ALERT_CAUSES_MAX && c->list[i].count > 0; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%ju %s ",
                                 (uintmax_t)c->list[i].count,
                                 stg_alert_cause_text(c->list[i].cause, cause));
    snprintf(text + size, sizeof text - size, "+%ju", (uintmax_t)c->others);
    return text;
}

TEST(causes, count_each_cause_and_the_others_together)
{
    stg_alert_causes c = {.others = 0};

    for (int status = 500; status < 508; status++)
        stg_alert_causes_add(&c, http(status), (uint64_t)(status - 499));
    stg_alert_causes_add(&c, http(500), 10);
    CHECK_STR(text_of(&c),
              "11 HTTP_500 2 HTTP_501 3 HTTP_502 4 HTTP_503 "
              "5 HTTP_504 6 HTTP_505 +15");
    stg_alert_causes_sort(&c);
    CHECK_STR(text_of(&c),
              "11 HTTP_500 6 HTTP_505 5 HTTP_504 4 HTTP_503 "
              "3 HTTP_502 2 HTTP_501 +15");
}

TEST(causes, are_taken_the_most_frequent_first)
{
    stg_alert_causes c = {.others = 0};

    stg_alert_causes_add(&c, http(500), 1);
    stg_alert_causes_add(&c, http(503), 5);
    stg_alert_causes_add(&c, http(504), 2);
    stg_alert_causes_take(&c, 6);
    CHECK_STR(text_of(&c), "1 HTTP_500 1 HTTP_504 +0");
    stg_alert_causes_take(&c, 100);
    CHECK_STR(text_of(&c), "+0");
}

TEST(causes, are_removed_and_merged_by_their_names)
{
    stg_alert_causes a = {.others = 0}, b = {.others = 0};

    stg_alert_causes_add(&a, http(500), 4);
    stg_alert_causes_add(&a, http(503), 5);
    stg_alert_causes_add(&b, http(503), 5);
    stg_alert_causes_add(&b, http(504), 1);
    stg_alert_causes_remove(&a, &b);
    CHECK_STR(text_of(&a), "3 HTTP_500 +0");
    stg_alert_causes_merge(&a, &b);
    CHECK_STR(text_of(&a), "3 HTTP_500 5 HTTP_503 1 HTTP_504 +0");
}
