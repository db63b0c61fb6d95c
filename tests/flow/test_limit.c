/* How many attempts at once: slow start, growth while it goes well, and down
 * when more than chance explains say "too much" (I27). */
#include "flow/limit.h"
#include "tests/harness.h"

#include <stagger/rng.h>

static const stg_ns usual = 100 * STG_MS;

/* Ends `times` attempts, each of which took so long. */
static void end(stg_limit *l, stg_load load, uint32_t times, stg_ns took,
                stg_ns *now)
{
    while (times-- > 0) {
        *now += STG_MS;
        stg_limit_end(l, load, true, *now - took, *now);
    }
}

static uint32_t serve(stg_limit *l, uint32_t times, stg_ns *now)
{
    end(l, STG_LOAD_SERVED, times, usual, now);
    return l->value;
}

static stg_limit start(uint32_t max, stg_ns *now)
{
    stg_limit l;

    *now = 10 * STG_S;
    stg_limit_start(&l, max, *now);
    *now += STG_S;
    return l;
}

/* One that has grown to its most, at the end of a round. */
static stg_limit grown(uint32_t max, stg_ns *now)
{
    stg_limit l = start(max, now);

    do
        serve(&l, 1, now);
    while (l.value < max || l.ended > 0);
    return l;
}

TEST(limit, doubles_each_round_up_to_its_most)
{
    stg_ns now;
    stg_limit l = start(100, &now);
    uint32_t value = 1;

    CHECK_U64(l.value, 1);
    for (; value < 16; value *= 2)
        CHECK_U64(serve(&l, value, &now), 2 * value);
    CHECK_U64(serve(&l, 1000, &now), 100);
}

/* At 16 it waits until it is known how long a success usually takes, and how
 * many are late. */
TEST(limit, rests_at_sixteen_until_it_knows_what_is_usual)
{
    stg_ns now;
    stg_limit l = start(100, &now);

    CHECK_U64(serve(&l, 63, &now), 16);
    CHECK_U64(serve(&l, 1, &now), 16);
    CHECK_U64(serve(&l, 1, &now), 17);
    CHECK_U64(serve(&l, 17, &now), 34);
}

TEST(limit, does_not_fall_by_one_of_many)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    for (uint32_t i = 0; i < 100; i++) {
        end(&l, STG_LOAD_TOO_MUCH, 1, usual, &now);
        CHECK_U64(serve(&l, 31, &now), 64);
    }
}

/* Seven of 64 are what chance explains; an eighth is not waited for. */
TEST(limit, falls_by_a_fifth_when_chance_does_not_explain_it)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    end(&l, STG_LOAD_TOO_MUCH, 7, usual, &now);
    CHECK_U64(l.value, 64);
    end(&l, STG_LOAD_TOO_MUCH, 1, usual, &now);
    CHECK(l.value < 64);
}

/* All of the time of the slots was lost, and so half of them go; or little of
 * it, for these faults come at once. */
TEST(limit, falls_by_the_share_of_time_that_was_lost)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    end(&l, STG_LOAD_TOO_MUCH, 8, usual, &now);
    CHECK_U64(l.value, 32);
    l = grown(64, &now);
    serve(&l, 40, &now);
    end(&l, STG_LOAD_TOO_MUCH, 8, STG_MS, &now);
    CHECK_U64(l.value, 51);
    l = grown(64, &now);
    serve(&l, 20, &now);
    end(&l, STG_LOAD_TOO_MUCH, 8, usual, &now);
    CHECK_U64(l.value, 45);
}

/* What was under way together is one trouble, however late it ends. */
TEST(limit, falls_once_for_those_under_way)
{
    stg_ns now, begun_at;
    stg_limit l = grown(64, &now);

    begun_at = now;
    now += 10 * STG_S;
    for (uint32_t i = 0; i < 64; i++) {
        now += 100 * STG_MS;
        stg_limit_end(&l, STG_LOAD_TOO_MUCH, true, begun_at, now);
    }
    CHECK_U64(l.value, 32);
}

TEST(limit, grows_by_one_in_two_rounds_after_a_fall)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    end(&l, STG_LOAD_TOO_MUCH, 8, usual, &now);
    CHECK_U64(l.value, 32);
    now += 2 * usual;
    CHECK_U64(serve(&l, 64, &now), 32); // a round without trouble first
    CHECK_U64(serve(&l, 63, &now), 32);
    CHECK_U64(serve(&l, 1, &now), 33);
    CHECK_U64(serve(&l, 66, &now), 34);
}

/* A third less, and as many faults: it was chance. */
TEST(limit, goes_back_when_less_does_not_help)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    for (uint32_t i = 0; i < 200; i++) {
        end(&l, STG_LOAD_TOO_MUCH, 1, usual, &now);
        serve(&l, 4, &now);
    }
    CHECK(l.value >= 45);
    CHECK(l.usual_faults > 65536 / 7 && l.usual_faults < 65536 / 4);
}

/* Until it tries a third less: rounds with so many faults in five. */
static void serve_until_trial(stg_limit *l, uint32_t faults, stg_ns *now)
{
    for (uint32_t i = 0; i < 100000 && !l->is_trial; i++) {
        end(l, STG_LOAD_TOO_MUCH, faults, usual, now);
        serve(l, 5 - faults, now);
    }
    CHECK(l->is_trial);
    CHECK_U64(l->value, 42);
    *now += STG_S; // those of before have ended
}

/* Now and then it tries less; as quick as before, it goes back. */
TEST(limit, goes_back_when_a_trial_of_less_does_not_help)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    serve_until_trial(&l, 0, &now);
    CHECK_U64(serve(&l, 64, &now), 64);
    CHECK(!l.is_trial);
}

/* What was thought usual was load: fewer are served sooner. */
TEST(limit, stays_when_a_trial_of_less_is_sooner)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    serve_until_trial(&l, 0, &now);
    end(&l, STG_LOAD_SERVED, 64, usual / 2, &now);
    CHECK_U64(l.value, 42);
    CHECK(!l.is_trial);
    CHECK_U64(l.usual_time, (usual / 2) >> 10);
}

/* Or without the faults that seemed to be chance. */
TEST(limit, stays_when_a_trial_of_less_has_fewer_faults)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    for (uint32_t i = 0; i < 200; i++) { // one in five becomes usual
        end(&l, STG_LOAD_TOO_MUCH, 1, usual, &now);
        serve(&l, 4, &now);
    }
    serve(&l, 64, &now);
    l.value = l.threshold = 64;
    serve_until_trial(&l, 1, &now);
    serve(&l, 64, &now);
    CHECK_U64(l.value, 42);
    CHECK(!l.is_trial);
    CHECK_U64(l.usual_faults, 65536 / 32);
}

TEST(limit, of_two_is_not_tried_for_less)
{
    stg_ns now;
    stg_limit l = grown(2, &now);

    CHECK_U64(serve(&l, 300 * 64, &now), 2);
    CHECK(!l.is_trial && l.quiet > 256);
}

/* A handshake that takes too long is load, as a connect that does. */
TEST(limit, knows_which_faults_are_load)
{
    static const struct {
        stg_fault fault;
        stg_load load, where_connects_count;
    } rows[] = {
        {STG_FAULT_TLS_TIMEOUT, STG_LOAD_TOO_MUCH, STG_LOAD_TOO_MUCH},
        {STG_FAULT_CONNECT_TIMEOUT, STG_LOAD_TOO_MUCH, STG_LOAD_TOO_MUCH},
        {STG_FAULT_REFUSED, STG_LOAD_TOO_MUCH, STG_LOAD_OTHER},
        {STG_FAULT_TIMEOUT, STG_LOAD_TOO_MUCH, STG_LOAD_TOO_MUCH},
        {STG_FAULT_PROTOCOL, STG_LOAD_OTHER, STG_LOAD_OTHER},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_outcome o = stg_failed(rows[i].fault);

        CHECK_FROM(i, stg_load_of(&o, false) == rows[i].load);
        CHECK_FROM(i, stg_load_of(&o, true) == rows[i].where_connects_count);
    }
}

TEST(limit, falls_when_answers_are_late_for_long)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    end(&l, STG_LOAD_SERVED, 64, 2 * usual, &now);
    CHECK_U64(l.value, 64); // not 100 ms yet
    end(&l, STG_LOAD_SERVED, 128, 2 * usual, &now);
    CHECK_U64(l.value, 32);
}

TEST(limit, does_not_fall_by_a_pause)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    for (uint32_t i = 0; i < 20; i++) {
        end(&l, STG_LOAD_SERVED, 64, 3 * usual, &now);
        CHECK_U64(serve(&l, 640, &now), 64);
    }
}

/* The time of answers within 5 ms tells nothing: it is as much the hub's own. */
TEST(limit, does_not_fall_by_milliseconds)
{
    stg_ns now;
    stg_limit l = start(64, &now);

    end(&l, STG_LOAD_SERVED, 1000, 200 * STG_US, &now);
    end(&l, STG_LOAD_SERVED, 10000, 5 * STG_MS, &now);
    CHECK_U64(l.value, 64);
}

TEST(limit, never_falls_below_one)
{
    stg_ns now;
    stg_limit l = start(8, &now);

    for (uint32_t i = 0; i < 1000; i++) {
        end(&l, STG_LOAD_TOO_MUCH, 1, usual, &now);
        CHECK(l.value >= 1);
    }
    CHECK_U64(l.value, 1);
}

/* A lane that does not use what it may tells nothing of its target. */
TEST(limit, does_not_grow_unused)
{
    stg_ns now;
    stg_limit l = start(8, &now);

    for (uint32_t i = 0; i < 100; i++)
        stg_limit_end(&l, STG_LOAD_SERVED, false, now, now + STG_MS);
    CHECK_U64(l.value, 1);
}

/* Where fewer at once are served sooner, though still late, it falls on. */
TEST(limit, falls_on_while_that_helps)
{
    stg_ns now;
    stg_limit l = grown(64, &now);
    uint32_t value;

    // The first fall is in the midst of a round: the second one is compared with.
    for (int falls = 0; falls < 2; falls++) {
        value = l.value;
        while (l.value == value)
            end(&l, STG_LOAD_SERVED, 1, 4 * usual, &now);
    }
    value = l.value;
    for (uint32_t i = 0; i < 5000 && l.value == value; i++)
        end(&l, STG_LOAD_SERVED, 1, 2 * usual, &now);
    CHECK(l.value < value);
}

/* As it grows again what takes longer is not usual: not before it has for long. */
TEST(limit, takes_longer_times_for_usual_after_many_rounds)
{
    stg_ns now;
    stg_limit l = grown(64, &now);
    uint64_t usual_time;

    end(&l, STG_LOAD_TOO_MUCH, 64, usual, &now);
    CHECK_U64(l.value, 32);
    now += STG_S;
    while (l.value < 64)
        serve(&l, 1, &now);
    usual_time = l.usual_time;
    CHECK(l.quiet < 100);
    end(&l, STG_LOAD_SERVED, 64, usual + usual / 20, &now);
    CHECK_U64(l.usual_time, usual_time);
    while (l.quiet < 130)
        serve(&l, 1, &now);
    end(&l, STG_LOAD_SERVED, 128, usual + usual / 20, &now);
    CHECK(l.usual_time > usual_time);
}

/* Faults that take no time at all say nothing of the slots' use: the least. */
TEST(limit, falls_to_half_by_faults_that_take_no_time)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    end(&l, STG_LOAD_TOO_MUCH, 64, 0, &now);
    CHECK_U64(l.value, 32);
}

/* Other faults are in no way the number's. */
TEST(limit, does_not_fall_by_other_faults)
{
    stg_ns now;
    stg_limit l = grown(64, &now);

    end(&l, STG_LOAD_OTHER, 1000, usual, &now);
    CHECK_U64(l.value, 64);
}

TEST(limit, stays_within_its_bounds)
{
    for (uint64_t seed = 0; seed < seeds(200); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint32_t max = 1 + (uint32_t)stg_rng_upto(&rng, 9999);
        stg_ns now = stg_rng_upto(&rng, STG_HOUR);
        stg_limit l;

        stg_limit_start(&l, max, now);
        for (uint32_t i = 0; i < 3000; i++) {
            uint32_t before = l.value;
            stg_ns took = stg_rng_upto(&rng, seed % 3 == 0 ? STG_DAY : STG_S);

            now += stg_rng_upto(&rng, 10 * STG_MS);
            stg_limit_end(&l, (stg_load)stg_rng_upto(&rng, seed % 2 + 1),
                          stg_rng_upto(&rng, 3) > 0, stg_ns_sub(now, took),
                          now);
            CHECK_FROM(seed, 1 <= l.value && l.value <= max);
            CHECK_FROM(seed, l.value <= before + 1 || l.old_value == 0);
            CHECK_FROM(seed, l.value >= before / 2);
        }
    }
}
