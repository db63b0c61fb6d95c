/* A breaker by share that counts slow calls, too: 80 % of at least 10 calls in
 * 10 s that took 2 s or longer. */
#include <stagger/retry.h>
#include <stagger/rng.h>
#include <stagger/text.h>

#include "core/options.h"
#include "tests/harness.h"

/* What several probes may start later than said. */
#define ROUGH (UINT64_C(1) << 28)

static const stg_breaker_options share = {.rule = STG_BREAKER_SHARE,
                                          .percent = 50,
                                          .calls = 10,
                                          .window = 10 * STG_S,
                                          .open = 10 * STG_S,
                                          .open_max = 60 * STG_S,
                                          .slow_percent = 80,
                                          .slow_after = 2 * STG_S};

static stg_breaker closed(stg_breaker_options o)
{
    stg_breaker b;

    CHECK_INT(stg_breaker_init(&b, &o), STG_OK);
    return b;
}

/* Ends that took so long. */
static void end(stg_breaker *b, bool is_probe, stg_breaker_verdict verdict,
                int times, stg_ns took, stg_ns now)
{
    while (times-- > 0)
        stg_breaker_report(b, is_probe, verdict, now - took, now);
}

static void calls(stg_breaker *b, int times, stg_ns took, stg_ns now)
{
    end(b, false, STG_BREAKER_SUCCESS, times, took, now);
}

static void probes(stg_breaker *b, int times, stg_ns took, stg_ns now)
{
    end(b, true, STG_BREAKER_SUCCESS, times, took, now);
}

static stg_breaker_state state(const stg_breaker *b, stg_ns now)
{
    return stg_breaker_look(b, now, NULL);
}

/* How many probes it lets pass now. */
static unsigned drain(stg_breaker *b, stg_ns now)
{
    unsigned count = 0;

    while (count < 100 && stg_breaker_enter(b, now, NULL) == STG_PERMIT_PROBE)
        count++;
    return count;
}

static const stg_ns hour = STG_HOUR;

TEST(slow, opens_when_enough_of_enough_calls_were_slow)
{
    stg_breaker b = closed(share);

    calls(&b, 9, 2 * STG_S, hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_CLOSED); // 9 calls are too few
    calls(&b, 1, 2 * STG_S, hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_OPEN);

    b = closed(share);
    calls(&b, 3, 0, hour);
    calls(&b, 11, 2 * STG_S, hour + STG_S);
    CHECK_INT(state(&b, hour + STG_S), STG_BREAKER_CLOSED); // 11 of 14: 79 %
    calls(&b, 1, 2 * STG_S, hour + STG_S);
    CHECK_INT(state(&b, hour + STG_S), STG_BREAKER_OPEN); // 12 of 15: 80 %
}

TEST(slow, counts_what_took_the_time_or_longer)
{
    stg_breaker b = closed(share);

    calls(&b, 1000, 2 * STG_S - 1, hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_CLOSED);
    b = closed(share);
    calls(&b, 10, STG_MIN, hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_OPEN);
    // A clock that stepped back took no time.
    b = closed(share);
    for (int i = 0; i < 100; i++)
        stg_breaker_report(&b, false, STG_BREAKER_SUCCESS, hour + STG_MIN,
                           hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_CLOSED);
}

/* As in resilience4j a call may be both. */
TEST(slow, counts_failures_that_were_slow_for_both)
{
    stg_breaker b = closed(share);

    calls(&b, 5, 2 * STG_S, hour);
    end(&b, false, STG_BREAKER_FAILURE, 4, 2 * STG_S, hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_CLOSED);
    end(&b, false, STG_BREAKER_FAILURE, 1, 2 * STG_S, hour); // 5 of 10 failed
    CHECK_INT(state(&b, hour), STG_BREAKER_OPEN);

    b = closed(share);
    calls(&b, 6, 2 * STG_S, hour);
    end(&b, false, STG_BREAKER_UNREACHED, 2, 2 * STG_S, hour);
    calls(&b, 1, 0, hour);
    end(&b, false, STG_BREAKER_FAILURE, 1, 2 * STG_S, hour); // 9 of 10 slow
    CHECK_INT(state(&b, hour), STG_BREAKER_OPEN);
}

/* The share of failures is what it was. */
TEST(slow, opens_by_failures_as_without)
{
    stg_breaker b = closed(share);

    calls(&b, 5, 0, hour);
    end(&b, false, STG_BREAKER_FAILURE, 4, 0, hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_CLOSED);
    end(&b, false, STG_BREAKER_FAILURE, 1, 0, hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_OPEN);
    // Slow ones are of no account among them, nor failures among slow ones.
    b = closed(share);
    calls(&b, 7, STG_MIN, hour);
    end(&b, false, STG_BREAKER_FAILURE, 3, 0, hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_CLOSED);
}

TEST(slow, counts_no_call_that_is_neither)
{
    stg_breaker b = closed(share);

    end(&b, false, STG_BREAKER_NEITHER, 100, STG_MIN, hour);
    end(&b, false, STG_BREAKER_BUSY, 100, STG_MIN, hour);
    calls(&b, 9, STG_MIN, hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_CLOSED);
    calls(&b, 1, STG_MIN, hour);
    CHECK_INT(state(&b, hour), STG_BREAKER_OPEN);
}

TEST(slow, is_counted_only_where_it_is_wanted)
{
    stg_breaker_options o = share;
    stg_breaker b;

    o.slow_percent = 0;
    o.slow_after = 0;
    b = closed(o);
    calls(&b, 1000, STG_DAY, 2 * STG_DAY);
    CHECK_INT(state(&b, 2 * STG_DAY), STG_BREAKER_CLOSED);
    for (int i = 0; i < STG_BREAKER_SLICES; i++)
        CHECK_U64(b.slow_slices[i], 0);
}

TEST(slow, forgets_calls_that_left_the_window)
{
    stg_breaker b = closed(share);

    calls(&b, 9, STG_MIN, hour);
    calls(&b, 1, STG_MIN, hour + 10 * STG_S); // ten slices later
    CHECK_INT(state(&b, hour + 10 * STG_S), STG_BREAKER_CLOSED);
    calls(&b, 9, STG_MIN, hour + 19 * STG_S);
    CHECK_INT(state(&b, hour + 19 * STG_S), STG_BREAKER_OPEN);
}

TEST(slow, counts_anew_after_it_has_closed)
{
    stg_breaker b = closed(share);
    stg_ns at = hour + 10 * STG_S + STG_MS;

    calls(&b, 10, STG_MIN, hour);
    CHECK_INT(drain(&b, at), 1);
    calls(&b, 20, STG_MIN, at); // of late attempts: not counted
    probes(&b, 1, 0, at);
    CHECK_INT(state(&b, at), STG_BREAKER_CLOSED);
    calls(&b, 9, STG_MIN, at + STG_S);
    CHECK_INT(state(&b, at + STG_S), STG_BREAKER_CLOSED);
    calls(&b, 1, STG_MIN, at + STG_S);
    CHECK_INT(state(&b, at + STG_S), STG_BREAKER_OPEN);
}

/* -- half open --------------------------------------------------------------- */

/* Opened at an hour: the first probe may start 10 s later. */
static stg_breaker opened(uint32_t percent, uint16_t good, uint16_t of)
{
    stg_breaker_options o = share;
    stg_breaker b;

    o.slow_percent = percent;
    o.probes_good = good;
    o.probes = of;
    b = closed(o);
    end(&b, false, STG_BREAKER_FAILURE, 10, 0, hour);
    return b;
}

static const stg_ns later = 3610 * STG_S + STG_MS;

TEST(slow, probe_opens_it_again)
{
    stg_breaker b = opened(100, 0, 0);
    stg_ns reopen_at = 0;

    CHECK_INT(drain(&b, later), 1);
    probes(&b, 1, 2 * STG_S, later);
    CHECK_INT(stg_breaker_look(&b, later, &reopen_at), STG_BREAKER_OPEN);
    CHECK(reopen_at >= later + 20 * STG_S && // twice the time
          reopen_at <= later + 20 * STG_S + 1024);
    // Late, it closes nothing, and a quick one does.
    probes(&b, 1, STG_MIN, later);
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);
    probes(&b, 1, 0, later);
    CHECK_INT(state(&b, later), STG_BREAKER_CLOSED);

    b = opened(100, 0, 0);
    CHECK_INT(drain(&b, later), 1);
    probes(&b, 1, 2 * STG_S - 1, later);
    CHECK_INT(state(&b, later), STG_BREAKER_CLOSED);
}

TEST(slow, probes_open_it_again_when_their_share_is_reached)
{
    stg_breaker b = opened(30, 6, 10);

    CHECK_INT(drain(&b, later), 10);
    probes(&b, 2, STG_MIN, later);
    CHECK_INT(state(&b, later), STG_BREAKER_HALF_OPEN);
    end(&b, true, STG_BREAKER_FAILURE, 1, STG_MIN, later); // the third slow one
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);

    // As many as bad ones may be.
    b = opened(100, 6, 10);
    CHECK_INT(drain(&b, later), 10);
    end(&b, true, STG_BREAKER_FAILURE, 4, STG_MIN, later);
    CHECK_INT(state(&b, later), STG_BREAKER_HALF_OPEN);
    end(&b, true, STG_BREAKER_FAILURE, 1, 0, later);
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);
}

/* Enough good ones are not enough while those under way may be slow. */
TEST(slow, probes_are_waited_for_until_their_share_is_certain)
{
    stg_breaker b = opened(50, 6, 10);

    CHECK_INT(drain(&b, later), 10);
    probes(&b, 2, STG_MIN, later);
    probes(&b, 5, 0, later);
    CHECK_INT(state(&b, later), STG_BREAKER_HALF_OPEN); // 2 + 3 of 10
    probes(&b, 1, 0, later);
    CHECK_INT(state(&b, later), STG_BREAKER_CLOSED);
    // And a bad one may make it certain.
    b = opened(50, 6, 10);
    CHECK_INT(drain(&b, later), 10);
    probes(&b, 2, STG_MIN, later);
    probes(&b, 5, 0, later);
    end(&b, true, STG_BREAKER_FAILURE, 1, 0, later);
    CHECK_INT(state(&b, later), STG_BREAKER_CLOSED);
    // They are slow.
    b = opened(50, 6, 10);
    CHECK_INT(drain(&b, later), 10);
    probes(&b, 5, 0, later);
    probes(&b, 4, STG_MIN, later);
    CHECK_INT(state(&b, later), STG_BREAKER_HALF_OPEN);
    probes(&b, 1, STG_MIN, later);
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);
    // A late one is not certain, where two are wanted; but is of its last word.
    probes(&b, 1, 0, later);
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);
    b = opened(100, 1, 2);
    CHECK_INT(drain(&b, later), 2);
    end(&b, true, STG_BREAKER_FAILURE, 2, 0, later);
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);
    probes(&b, 1, STG_MIN, later);
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);
    probes(&b, 1, 0, later);
    CHECK_INT(state(&b, later), STG_BREAKER_CLOSED);
}

TEST(slow, probes_have_their_places_as_others)
{
    stg_breaker b = opened(50, 3, 3);
    stg_ns reopen_at = 0;

    CHECK_INT(drain(&b, later), 3);
    CHECK_INT(stg_breaker_enter(&b, later, &reopen_at), STG_PERMIT_DENIED);
    CHECK(reopen_at >= later + 10 * STG_S &&
          reopen_at < later + 10 * STG_S + ROUGH);
    probes(&b, 1, STG_MIN, later);
    stg_breaker_abandon(&b, later);
    CHECK_INT(drain(&b, later), 1);
    // Lost, and their round is forgotten, with what was slow.
    CHECK_INT(drain(&b, reopen_at - 1), 0);
    CHECK_INT(drain(&b, reopen_at), 3);
    probes(&b, 1, STG_MIN, reopen_at);
    CHECK_INT(state(&b, reopen_at), STG_BREAKER_HALF_OPEN);
    probes(&b, 2, 0, reopen_at);
    CHECK_INT(state(&b, reopen_at), STG_BREAKER_CLOSED);
}

TEST(slow, l2_has_no_overflow_at_the_end_of_time)
{
    stg_breaker b = opened(100, 31, 31);
    stg_ns reopen_at = 0;

    b = closed(b.options);
    end(&b, false, STG_BREAKER_FAILURE, 10, 0, STG_NEVER - 12 * STG_S);
    CHECK_INT(drain(&b, STG_NEVER - STG_S), 31);
    CHECK_INT(stg_breaker_enter(&b, STG_NEVER - STG_S, &reopen_at),
              STG_PERMIT_DENIED);
    CHECK_U64(reopen_at, STG_NEVER - (ROUGH - 1));
    probes(&b, 30, STG_NEVER, STG_NEVER);
    CHECK_INT(state(&b, STG_NEVER), STG_BREAKER_HALF_OPEN);
    probes(&b, 1, STG_NEVER, STG_NEVER);
    CHECK_INT(state(&b, 0), STG_BREAKER_OPEN);
}

/* -- whatever happens -------------------------------------------------------- */

typedef struct crowd {
    unsigned under_way, good, bad, slow;
} crowd;

static void end_one(stg_breaker *b, crowd *c, stg_rng *rng, stg_ns now)
{
    bool is_bad = stg_rng_upto(rng, 4) == 0, is_slow = stg_rng_upto(rng, 2) > 0;

    c->under_way--;
    c->bad += is_bad;
    c->good += !is_bad;
    c->slow += is_slow;
    end(b, true, is_bad ? STG_BREAKER_FAILURE : STG_BREAKER_SUCCESS, 1,
        is_slow ? 2 * STG_S : STG_S, now);
}

/* The verdict is that of resilience4j when all of them have reported, and comes
 * as soon as it is certain. */
TEST(slow, probes_come_to_what_all_of_them_would)
{
    for (uint64_t seed = 0; seed < seeds(3000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint16_t of = (uint16_t)(2 + stg_rng_upto(&rng, 29));
        uint16_t good = (uint16_t)(1 + stg_rng_upto(&rng, of - 1U));
        uint32_t percent = (uint32_t)(1 + stg_rng_upto(&rng, 99));
        stg_breaker b = opened(percent, good, of);
        stg_ns now = later;
        crowd c = {.under_way = 0};
        bool is_bad, is_sure;

        do {
            if (stg_breaker_enter(&b, now, NULL) == STG_PERMIT_PROBE)
                c.under_way++;
            if (stg_rng_upto(&rng, 1) == 0 && c.under_way > 0)
                end_one(&b, &c, &rng, now);
            is_bad = of - c.bad < good || 100 * c.slow >= percent * of;
            is_sure = c.good >= good &&
                      100 * (c.slow + of - c.good - c.bad) < percent * of;
            CHECK_FROM(seed,
                       state(&b, now) == (is_bad    ? STG_BREAKER_OPEN
                                          : is_sure ? STG_BREAKER_CLOSED
                                                    : STG_BREAKER_HALF_OPEN));
            CHECK_FROM(seed, c.good + c.bad < of || is_bad || is_sure);
        } while (!is_bad && !is_sure);
    }
}

/* -- other options ----------------------------------------------------------- */

TEST(slow, goes_on_counting_where_the_time_is_the_same)
{
    for (stg_ns s = 0; s < STG_BREAKER_SLICES; s++) {
        stg_breaker_options o = share;
        stg_breaker old = closed(share), same, other;
        stg_ns at = hour + s * STG_S;

        calls(&old, 9, 2 * STG_S, at);
        o.slow_percent = 70;
        same = closed(o);
        stg_breaker_keep(&same, &old);
        calls(&same, 1, 2 * STG_S, at);
        CHECK_FROM(s, state(&same, at) == STG_BREAKER_OPEN);
        o.slow_after = STG_S; // of which nothing is known
        other = closed(o);
        stg_breaker_keep(&other, &old);
        calls(&other, 9, 2 * STG_S, at);
        CHECK_FROM(s, state(&other, at) == STG_BREAKER_CLOSED);
        calls(&other, 1, 2 * STG_S, at);
        CHECK_FROM(s, state(&other, at) == STG_BREAKER_OPEN);
    }
}

static stg_breaker keep(const stg_breaker *old, uint32_t percent,
                        uint16_t probes_max)
{
    stg_breaker_options o = share;
    stg_breaker b;

    o.slow_percent = percent;
    o.slow_after = percent == 0 ? 0 : 2 * STG_S;
    o.probes = o.probes_good = probes_max;
    b = closed(o);
    stg_breaker_keep(&b, old);
    return b;
}

TEST(slow, keeps_its_probes_where_their_words_are_alike)
{
    stg_breaker old = opened(50, 0, 0), b;

    CHECK_INT(drain(&old, later), 1);
    b = keep(&old, 0, 0); // one probe is one
    CHECK_INT(state(&b, later), STG_BREAKER_HALF_OPEN);
    probes(&b, 1, STG_MIN, later);
    CHECK_INT(state(&b, later), STG_BREAKER_CLOSED);

    old = opened(90, 4, 4);
    CHECK_INT(drain(&old, later), 4);
    probes(&old, 1, STG_MIN, later);
    b = keep(&old, 50, 4);
    probes(&b, 1, STG_MIN, later);
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);
    // Otherwise it is open until the next may start.
    b = keep(&old, 0, 4);
    CHECK_INT(drain(&b, later + 9 * STG_S), 0);
    CHECK_INT(drain(&b, later + 10 * STG_S + ROUGH), 4);
    old = b;
    b = keep(&old, 50, 4);
    CHECK_INT(drain(&b, later + 20 * STG_S), 0);
    CHECK_INT(drain(&b, later + 20 * STG_S + 2 * ROUGH), 4);
}

/* -- operations -------------------------------------------------------------- */

#define POLICY                                                   \
    "fixed base=1s jitter=none attempts=2 breaker=50%/4/1m:10s " \
    "breaker-slow=75%/2s"

static stg_decision call(const stg_policy *p, stg_peer *peer, stg_ns at,
                         stg_ns took, stg_outcome o)
{
    stg_with with = {.peer = peer};
    stg_rng rng = stg_rng_seed(1);
    stg_retry r;

    CHECK_INT(stg_retry_start(&r, p, &with, at - STG_MIN), STG_OK);
    CHECK_INT(stg_retry_admit(&r, at, &rng).next, STG_GO);
    return stg_retry_step(&r, &o, at + took, &rng);
}

/* From its admission on, not from the begin of its operation. */
TEST(slow, is_what_an_attempt_took)
{
    stg_policy p;
    stg_peer peer;

    CHECK_INT(stg_policy_parse(&p, POLICY, NULL), STG_OK);
    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    for (int i = 0; i < 4; i++)
        CHECK_INT(call(&p, &peer, hour, 2 * STG_S - 1, stg_ok()).next,
                  STG_DONE);
    CHECK_INT(state(&peer.breaker, hour), STG_BREAKER_CLOSED);
    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(state(&peer.breaker, hour), STG_BREAKER_CLOSED);
        CHECK_INT(call(&p, &peer, hour, 2 * STG_S, stg_ok()).next, STG_DONE);
    }
    CHECK_INT(state(&peer.breaker, hour), STG_BREAKER_OPEN);
}

TEST(slow, is_what_a_later_attempt_took)
{
    stg_policy p;
    stg_peer peer;
    stg_with with = {.peer = &peer};
    stg_rng rng = stg_rng_seed(1);
    const stg_outcome busy = stg_answered(503), good = stg_ok();
    stg_retry r;

    CHECK_INT(stg_policy_parse(&p, POLICY, NULL), STG_OK);
    p.breaker.percent = 100;
    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(stg_retry_start(&r, &p, &with, hour), STG_OK);
        CHECK_INT(stg_retry_admit(&r, hour, &rng).next, STG_GO);
        CHECK_INT(stg_retry_step(&r, &busy, hour + STG_S, &rng).next, STG_WAIT);
        CHECK_INT(stg_retry_admit(&r, hour + 2 * STG_S, &rng).next, STG_GO);
        CHECK_INT(stg_retry_step(&r, &good, hour + 3 * STG_S, &rng).next,
                  STG_DONE);
    }
    CHECK_INT(state(&peer.breaker, hour), STG_BREAKER_CLOSED);
}
