/* When a token is asked for, and which one is used, in virtual time. */
#include "http/oauth_state.h"
#include "tests/harness.h"

static const stg_ns begin_at = 5 * STG_S;

static stg_oauth_state begin(uint64_t seed)
{
    stg_oauth_state s;

    stg_oauth_state_init(&s, begin_at, seed);
    return s;
}

/* One with a token, that it asked for at begin_at and got at once. */
static stg_oauth_state with_token(uint64_t seed, stg_ns lifetime)
{
    stg_oauth_state s = begin(seed);

    CHECK(stg_oauth_state_ask(&s, begin_at));
    stg_oauth_state_take(&s, lifetime, begin_at);
    return s;
}

TEST(oauth_state, asks_at_once_and_one_at_a_time)
{
    stg_oauth_state s = begin(1);

    CHECK(!stg_oauth_state_is_usable(&s, begin_at));
    CHECK_U64(stg_oauth_state_wake_at(&s, begin_at), begin_at);
    CHECK(stg_oauth_state_ask(&s, begin_at));
    CHECK(!stg_oauth_state_ask(&s, begin_at + STG_MIN));
    CHECK_U64(stg_oauth_state_wake_at(&s, begin_at), STG_NEVER);
    stg_oauth_state_take(&s, STG_HOUR, begin_at + STG_S);
    CHECK(stg_oauth_state_is_usable(&s, begin_at + STG_S));
    CHECK_U64(s.number, 1 + 1);
}

/* Ahead of its end, at another time each; and it is used until shortly before. */
TEST(oauth_state, asks_ahead_of_the_end)
{
    stg_ns least = STG_NEVER, most = 0;

    for (uint64_t seed = 0; seed < seeds(1000); seed++) {
        stg_oauth_state s = with_token(seed, 100 * STG_S);
        stg_ns at = stg_oauth_state_wake_at(&s, begin_at) - begin_at;

        CHECK_FROM(seed, at >= 63 * STG_S && at <= 72 * STG_S);
        CHECK_FROM(seed, !stg_oauth_state_ask(&s, begin_at + at - 1));
        CHECK_FROM(seed, stg_oauth_state_ask(&s, begin_at + at));
        CHECK_FROM(seed,
                   stg_oauth_state_is_usable(&s, begin_at + 90 * STG_S - 1));
        CHECK_FROM(seed, !stg_oauth_state_is_usable(&s, begin_at + 90 * STG_S));
        least = at < least ? at : least;
        most = at > most ? at : most;
    }
    CHECK(most - least > 8 * STG_S);
}

/* A tenth of its life; of a long one ten seconds are enough, of a short one there
 * are two, and of a very short one the half. */
TEST(oauth_state, uses_no_token_at_its_very_end)
{
    static const struct {
        stg_ns life, use;
    } times[] = {{STG_DAY, STG_DAY - 10 * STG_S}, {50 * STG_S, 45 * STG_S},
                 {10 * STG_S, 8 * STG_S},         {4 * STG_S, 2 * STG_S},
                 {STG_S, 500 * STG_MS},           {STG_MS, 500 * STG_US}};

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        CHECK_U64(with_token(1, times[i].life).until_at,
                  begin_at + times[i].use);
}

/* A slow answer has used up a part of it. */
TEST(oauth_state, counts_the_life_from_the_question)
{
    stg_oauth_state s = begin(1);

    CHECK(stg_oauth_state_ask(&s, begin_at));
    stg_oauth_state_take(&s, 10 * STG_S, begin_at + 5 * STG_S);
    CHECK_U64(s.until_at, begin_at + 8 * STG_S);
    CHECK(stg_oauth_state_wake_at(&s, begin_at + 5 * STG_S) <=
          begin_at + 7 * STG_S);
}

/* Not in a circle: with the backoff of a failure. */
TEST(oauth_state, waits_after_a_token_that_came_too_late)
{
    stg_oauth_state s = begin(1);
    stg_ns late_at = begin_at + 20 * STG_S;

    CHECK(stg_oauth_state_ask(&s, begin_at));
    stg_oauth_state_take(&s, 10 * STG_S, late_at);
    CHECK(!stg_oauth_state_is_usable(&s, late_at));
    CHECK(stg_oauth_state_wake_at(&s, late_at) >= late_at + 500 * STG_MS);
}

TEST(oauth_state, keeps_a_token_without_an_end_and_replaces_it_within_an_hour)
{
    stg_oauth_state s = with_token(3, 0);

    CHECK(stg_oauth_state_is_usable(&s, STG_NEVER - 1));
    CHECK(stg_oauth_state_wake_at(&s, begin_at) >= begin_at + 42 * STG_MIN);
    CHECK(stg_oauth_state_wake_at(&s, begin_at) <= begin_at + 48 * STG_MIN);
}

/* 1 s, 2 s, 4 s ... up to a minute, each at least half as long. */
TEST(oauth_state, backs_off_after_failures)
{
    for (uint64_t seed = 0; seed < seeds(100); seed++) {
        stg_oauth_state s = begin(seed);
        stg_ns now = begin_at, window = STG_S;

        for (int i = 0; i < 20; i++) {
            stg_ns wait;

            CHECK_FROM(seed, stg_oauth_state_ask(&s, now));
            stg_oauth_state_fail(&s, 0, now);
            CHECK_FROM(seed, !stg_oauth_state_is_usable(&s, now));
            wait = stg_oauth_state_wake_at(&s, now) - now;
            CHECK_FROM(seed, wait >= window / 2 && wait <= window);
            now += wait;
            window = window * 2 < STG_MIN ? window * 2 : STG_MIN;
        }
        CHECK_FROM(seed, stg_oauth_state_ask(&s, now));
        stg_oauth_state_take(&s, STG_HOUR, now);
        CHECK_FROM(seed, s.failures == 0);
    }
}

TEST(oauth_state, asks_no_earlier_than_retry_after)
{
    stg_oauth_state s = begin(1);

    CHECK(stg_oauth_state_ask(&s, begin_at));
    stg_oauth_state_fail(&s, 2 * STG_MIN, begin_at);
    CHECK(stg_oauth_state_wake_at(&s, begin_at) >= begin_at + 2 * STG_MIN);
    // An hour at most, whatever it says.
    s = begin(1);
    CHECK(stg_oauth_state_ask(&s, begin_at));
    stg_oauth_state_fail(&s, 30 * STG_DAY, begin_at);
    CHECK(stg_oauth_state_wake_at(&s, begin_at) <= begin_at + 2 * STG_HOUR);
}

/* The server is away while the next one is asked for: that which there is goes
 * on, to its end. */
TEST(oauth_state, uses_a_token_while_the_next_one_fails)
{
    stg_oauth_state s = with_token(1, 100 * STG_S);
    stg_ns at = stg_oauth_state_wake_at(&s, begin_at);

    CHECK(stg_oauth_state_ask(&s, at));
    stg_oauth_state_fail(&s, STG_HOUR, at);
    CHECK(stg_oauth_state_is_usable(&s, at));
    CHECK_U64(stg_oauth_state_wake_at(&s, at), begin_at + 90 * STG_S);
    CHECK(!stg_oauth_state_is_usable(&s, begin_at + 90 * STG_S));
}

/* -- a 401 ------------------------------------------------------------------- */

TEST(oauth_state, replaces_a_token_that_was_refused)
{
    stg_oauth_state s = with_token(0, STG_HOUR);
    stg_ns at = begin_at + STG_MIN;

    CHECK(stg_oauth_state_refuse(&s, 1, at));
    CHECK(!stg_oauth_state_is_usable(&s, at));
    CHECK_U64(stg_oauth_state_wake_at(&s, at), at);
    CHECK(stg_oauth_state_refuse(&s, 1, at)); // others that were under way
    CHECK(stg_oauth_state_ask(&s, at));
    CHECK(stg_oauth_state_refuse(&s, 1, at));
    stg_oauth_state_take(&s, STG_HOUR, at);
    CHECK(stg_oauth_state_refuse(&s, 1, at)); // an answer that comes late
    CHECK(stg_oauth_state_is_usable(&s, at));
    CHECK_U64(s.number, 2);
}

/* No storm: of a target that refuses each of them, one in 10 s. */
TEST(oauth_state, replaces_one_in_ten_seconds_at_most)
{
    stg_oauth_state s = with_token(1, STG_HOUR);
    uint32_t asked = 0;

    for (stg_ns at = begin_at; at < begin_at + STG_MIN; at += 10 * STG_MS) {
        (void)stg_oauth_state_refuse(&s, s.number, at);
        if (!stg_oauth_state_ask(&s, at))
            continue;
        stg_oauth_state_take(&s, STG_HOUR, at);
        asked++;
        CHECK(!stg_oauth_state_refuse(&s, s.number, at));
    }
    CHECK_INT(asked, 6);
}

/* A server that fails has its backoff, also then. */
TEST(oauth_state, does_not_ask_a_failing_server_earlier_for_a_401)
{
    stg_oauth_state s = with_token(1, 100 * STG_S);
    stg_ns at = stg_oauth_state_wake_at(&s, begin_at);

    CHECK(stg_oauth_state_ask(&s, at));
    stg_oauth_state_fail(&s, STG_MIN, at);
    CHECK(stg_oauth_state_refuse(&s, s.number, at));
    CHECK(!stg_oauth_state_is_usable(&s, at));
    CHECK(stg_oauth_state_wake_at(&s, at) >= at + STG_MIN);
}
