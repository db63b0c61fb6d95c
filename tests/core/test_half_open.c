/* A breaker that is half open lets several probes pass. */
#include <stagger/retry.h>
#include <stagger/rng.h>
#include <stagger/text.h>

#include "core/options.h"
#include "tests/harness.h"

/* What a probe may start later than said. */
#define ROUGH (UINT64_C(1) << 23)

static stg_breaker closed(uint16_t good, uint16_t probes)
{
    stg_breaker_options o = {.rule = STG_BREAKER_ROW,
                             .failures = 1,
                             .open = 10 * STG_S,
                             .open_max = 60 * STG_S,
                             .probes = probes,
                             .probes_good = good};
    stg_breaker b;

    CHECK_INT(stg_breaker_init(&b, &o), STG_OK);
    return b;
}

/* Opened at 0: the first probe may start at 10 s. */
static stg_breaker opened(uint16_t good, uint16_t probes)
{
    stg_breaker b = closed(good, probes);

    stg_breaker_report(&b, false, STG_BREAKER_FAILURE, 0, 0);
    return b;
}

static stg_permit enter(stg_breaker *b, stg_ns now)
{
    return stg_breaker_enter(b, now, NULL);
}

/* How many probes it lets pass now. */
static unsigned drain(stg_breaker *b, stg_ns now)
{
    unsigned count = 0;

    while (count < 100 && enter(b, now) == STG_PERMIT_PROBE)
        count++;
    return count;
}

static void report(stg_breaker *b, stg_breaker_verdict verdict, int times,
                   stg_ns now)
{
    while (times-- > 0)
        stg_breaker_report(b, true, verdict, now, now);
}

static stg_breaker_state state(const stg_breaker *b, stg_ns now)
{
    return stg_breaker_look(b, now, NULL);
}

static const stg_ns later = 10 * STG_S + STG_MS;

TEST(half_open, lets_so_many_probes_pass)
{
    static const uint16_t probes[] = {2, 3, 10, 31};

    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        stg_breaker b = opened(1, probes[i]);

        CHECK_INT(enter(&b, 10 * STG_S - 1), STG_PERMIT_DENIED);
        CHECK_INT(drain(&b, later), probes[i]);
        CHECK_INT(state(&b, later), STG_BREAKER_HALF_OPEN);
        CHECK_INT(enter(&b, later), STG_PERMIT_DENIED);
    }
}

TEST(half_open, closes_when_enough_are_good)
{
    stg_breaker b = opened(6, 10);

    CHECK_INT(drain(&b, later), 10);
    report(&b, STG_BREAKER_FAILURE, 4, later);
    report(&b, STG_BREAKER_SUCCESS, 5, later);
    CHECK_INT(state(&b, later), STG_BREAKER_HALF_OPEN);
    report(&b, STG_BREAKER_SUCCESS, 1, later);
    CHECK_INT(state(&b, later), STG_BREAKER_CLOSED);
    CHECK_INT(enter(&b, later), STG_PERMIT_GRANTED);
    report(&b, STG_BREAKER_SUCCESS, 1, later); // late, as any attempt's
    CHECK_U64(b.state, 0);
}

TEST(half_open, opens_again_when_they_cannot_be_enough)
{
    stg_breaker b = opened(6, 10);
    stg_ns reopen_at = 0;

    CHECK_INT(drain(&b, later), 10);
    report(&b, STG_BREAKER_UNREACHED, 4, later);
    CHECK_INT(state(&b, later), STG_BREAKER_HALF_OPEN);
    report(&b, STG_BREAKER_FAILURE, 1, later);
    CHECK_INT(stg_breaker_look(&b, later, &reopen_at), STG_BREAKER_OPEN);
    // Twice the time, once for all of them.
    CHECK(reopen_at >= later + 20 * STG_S &&
          reopen_at <= later + 20 * STG_S + STG_US * 2);
    report(&b, STG_BREAKER_FAILURE, 3, later);
    CHECK_INT(enter(&b, reopen_at - 1), STG_PERMIT_DENIED);
    // All must be good: the first bad one is enough.
    b = opened(3, 3);
    CHECK_INT(drain(&b, later), 3);
    report(&b, STG_BREAKER_SUCCESS, 2, later);
    report(&b, STG_BREAKER_FAILURE, 1, later);
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);
    // A good one that comes late is not enough.
    report(&b, STG_BREAKER_SUCCESS, 1, later);
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);
    b = opened(1, 3);
    CHECK_INT(drain(&b, later), 3);
    report(&b, STG_BREAKER_FAILURE, 3, later);
    CHECK_INT(state(&b, later), STG_BREAKER_OPEN);
    report(&b, STG_BREAKER_SUCCESS, 1, later);
    CHECK_INT(state(&b, later), STG_BREAKER_CLOSED);
}

TEST(half_open, takes_back_the_place_of_a_cancelled_probe)
{
    stg_breaker b = opened(3, 3);

    CHECK_INT(drain(&b, later), 3);
    stg_breaker_abandon(&b, later);
    CHECK_INT(drain(&b, later), 1);
    stg_breaker_abandon(&b, later);
    stg_breaker_abandon(&b, later);
    stg_breaker_abandon(&b, later);
    stg_breaker_abandon(&b, later); // there were three
    CHECK_INT(drain(&b, later), 3);
    report(&b, STG_BREAKER_SUCCESS, 3, later);
    CHECK_INT(state(&b, later), STG_BREAKER_CLOSED);
    stg_breaker_abandon(&b, later);
    CHECK_U64(b.state, 0);
}

/* Each has its place for as long as the breaker was open. */
TEST(half_open, begins_anew_when_probes_are_lost)
{
    stg_breaker b = opened(2, 3);
    stg_ns last = later + 5 * STG_S, reopen_at = 0;

    CHECK_INT(enter(&b, later), STG_PERMIT_PROBE);
    report(&b, STG_BREAKER_SUCCESS, 1, later);
    report(&b, STG_BREAKER_NEITHER, 1, later);
    report(&b, STG_BREAKER_BUSY, 1, later);
    CHECK_INT(drain(&b, last), 2);
    CHECK_INT(stg_breaker_enter(&b, last, &reopen_at), STG_PERMIT_DENIED);
    CHECK(reopen_at >= last + 10 * STG_S &&
          reopen_at < last + 10 * STG_S + ROUGH);
    CHECK_INT(enter(&b, reopen_at - 1), STG_PERMIT_DENIED);
    CHECK_INT(drain(&b, reopen_at), 3);
    report(&b, STG_BREAKER_SUCCESS, 1, reopen_at); // what was good is forgotten
    CHECK_INT(state(&b, reopen_at), STG_BREAKER_HALF_OPEN);
    report(&b, STG_BREAKER_SUCCESS, 1, reopen_at);
    CHECK_INT(state(&b, reopen_at), STG_BREAKER_CLOSED);
}

TEST(half_open, l2_has_no_overflow_at_the_end_of_time)
{
    stg_breaker b = closed(31, 31);

    stg_breaker_report(&b, false, STG_BREAKER_FAILURE, STG_NEVER - 12 * STG_S,
                       STG_NEVER - 12 * STG_S);
    CHECK_INT(drain(&b, STG_NEVER - STG_S), 31);
    CHECK_INT(drain(&b, STG_NEVER - ROUGH), 0);
    report(&b, STG_BREAKER_SUCCESS, 30, STG_NEVER);
    CHECK_INT(state(&b, STG_NEVER), STG_BREAKER_HALF_OPEN);
    report(&b, STG_BREAKER_FAILURE, 1, STG_NEVER);
    CHECK_INT(state(&b, 0), STG_BREAKER_OPEN);
}

TEST(half_open, doubles_after_each_round)
{
    stg_breaker b = opened(2, 2);
    stg_ns now = later, open = 10 * STG_S;

    for (int round = 0; round < 5; round++) {
        CHECK_INT(drain(&b, now), 2);
        report(&b, STG_BREAKER_FAILURE, 2, now);
        open = stg_ns_min(2 * open, 60 * STG_S);
        CHECK_INT(enter(&b, now + open - 1), STG_PERMIT_DENIED);
        now += open + STG_MS;
    }
    CHECK_INT(drain(&b, now), 2);
}

/* -- other options --------------------------------------------------------- */

static stg_breaker keep(const stg_breaker *old, uint16_t good, uint16_t probes)
{
    stg_breaker b = closed(good, probes);

    stg_breaker_keep(&b, old);
    return b;
}

TEST(half_open, keeps_its_round_under_other_numbers)
{
    stg_breaker old = opened(3, 5), b = keep(&old, 2, 3);

    CHECK_INT(drain(&b, later), 3); // open as before
    CHECK_INT(drain(&old, later), 5);
    report(&old, STG_BREAKER_SUCCESS, 1, later);
    b = keep(&old, 2, 3);
    CHECK_INT(drain(&b, later), 0); // five are under way
    report(&b, STG_BREAKER_SUCCESS, 1, later);
    CHECK_INT(state(&b, later), STG_BREAKER_CLOSED);
}

/* Their words differ: it is open until the next probe may start. */
TEST(half_open, waits_an_interval_when_one_probe_becomes_several)
{
    stg_breaker one = opened(0, 0), five = opened(5, 5), b;

    CHECK_INT(drain(&one, later), 1);
    b = keep(&one, 2, 3);
    CHECK_INT(drain(&b, later + 9 * STG_S), 0);
    CHECK_INT(drain(&b, later + 10 * STG_S + STG_MS), 3);
    CHECK_INT(drain(&five, later), 5);
    b = keep(&five, 0, 0);
    CHECK_INT(drain(&b, later + 9 * STG_S), 0);
    CHECK_INT(drain(&b, later + 10 * STG_S + ROUGH), 1);
    report(&b, STG_BREAKER_SUCCESS, 1, later + 20 * STG_S);
    CHECK_INT(state(&b, later + 20 * STG_S), STG_BREAKER_CLOSED);
}

/* -- whatever happens ------------------------------------------------------ */

typedef struct crowd {
    unsigned under_way, good, bad;
} crowd;

static void end_one(stg_breaker *b, crowd *c, stg_rng *rng, stg_ns now)
{
    c->under_way--;
    switch (stg_rng_upto(rng, 3)) {
    case 0:
        stg_breaker_abandon(b, now);
        break;
    case 1:
        c->bad++;
        stg_breaker_report(b, true, STG_BREAKER_FAILURE, now, now);
        break;
    default:
        c->good++;
        stg_breaker_report(b, true, STG_BREAKER_SUCCESS, now, now);
    }
}

/* Probes that report in time: never more than so many, none is lost, and the
 * verdict is that of the counts. */
TEST(half_open, never_has_more_probes_than_it_may)
{
    for (uint64_t seed = 0; seed < seeds(2000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint16_t probes = (uint16_t)(2 + stg_rng_upto(&rng, 29));
        uint16_t good = (uint16_t)(1 + stg_rng_upto(&rng, probes - 1U));
        stg_breaker b = opened(good, probes);
        stg_ns now = 10 * STG_S + STG_MS;
        crowd c = {.under_way = 0};
        bool is_decided = false;

        while (!is_decided) {
            now += stg_rng_upto(&rng, 100 * STG_MS);
            if (c.under_way > 0 && stg_rng_upto(&rng, 1) == 0)
                end_one(&b, &c, &rng, now);
            else if (enter(&b, now) == STG_PERMIT_PROBE)
                c.under_way++;
            else // none passes but for want of a place
                CHECK_FROM(seed, c.under_way + c.good + c.bad == probes);
            CHECK_FROM(seed, c.under_way + c.good + c.bad <= probes);
            is_decided = state(&b, now) != STG_BREAKER_HALF_OPEN;
            CHECK_FROM(seed,
                       is_decided == (c.good == good || c.bad + good > probes));
        }
        CHECK_FROM(seed,
                   (state(&b, now) == STG_BREAKER_CLOSED) == (c.good == good));
    }
}

/* -- operations ------------------------------------------------------------ */

TEST(half_open, is_what_operations_probe)
{
    stg_policy p;
    stg_peer peer;
    stg_with with = {.peer = &peer};
    stg_retry r[4];
    const stg_outcome good = stg_ok();

    CHECK_INT(stg_policy_parse(
                  &p, "attempts=2 breaker=1:10s breaker-probes=2/3", NULL),
              STG_OK);
    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    stg_breaker_report(&peer.breaker, false, STG_BREAKER_FAILURE, 0, 0);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(stg_retry_start(&r[i], &p, &with, later), STG_OK);
        CHECK_INT(stg_retry_admit(&r[i], later, NULL).next,
                  i < 3 ? STG_GO : STG_GIVE_UP);
    }
    CHECK_INT(stg_retry_cancel(&r[3], later).why, STG_WHY_CIRCUIT_OPEN);
    stg_retry_cancel(&r[2], later); // and another takes its place
    CHECK_INT(stg_retry_start(&r[3], &p, &with, later), STG_OK);
    CHECK_INT(stg_retry_admit(&r[3], later, NULL).next, STG_GO);
    CHECK_INT(stg_retry_step(&r[0], &good, later, NULL).next, STG_DONE);
    CHECK_INT(state(&peer.breaker, later), STG_BREAKER_HALF_OPEN);
    CHECK_INT(stg_retry_step(&r[3], &good, later, NULL).next, STG_DONE);
    CHECK_INT(state(&peer.breaker, later), STG_BREAKER_CLOSED);
}
