#include <stagger/peer.h>
#include <stagger/text.h>

#include "tests/harness.h"

static stg_policy parse(const char *text)
{
    stg_policy p;

    CHECK_INT(stg_policy_parse(&p, text, NULL), STG_OK);
    return p;
}

TEST(peer, fits_the_policy_that_it_was_made_of)
{
    stg_policy p = parse("backend breaker=5:30s");
    stg_peer peer;

    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    CHECK(stg_peer_fits(&peer, &p));
    CHECK_U64(stg_budget_left(&peer.budget, 0), 100000);
    CHECK_INT(stg_breaker_look(&peer.breaker, 0, NULL), STG_BREAKER_CLOSED);
    CHECK(stg_limiter_take(&peer.limiter, 0, NULL));
}

TEST(peer, fits_any_policy_with_the_same_budget_and_breaker_or_with_none)
{
    stg_policy p = parse("backend breaker=50%/20/10s:30s-1m");
    stg_peer peer;
    static const char *const others[] = {
        "backend breaker=50%/20/10s:30s-2m",
        "backend breaker=50%/20/10s:29s-1m",
        "backend breaker=50%/20/11s:30s-1m",
        "backend breaker=50%/21/10s:30s-1m",
        "backend breaker=51%/20/10s:30s-1m",
        "backend breaker=5:30s-1m",
        "backend breaker=50%/20/10s:30s-1m budget=100:11/s",
        "backend breaker=50%/20/10s:30s-1m budget=101:10/s",
        "backend breaker=50%/20/10s:30s-1m budget=ratio:0.2",
    };
    static const char *const fitting[] = {
        "fixed base=1s budget=100:10/s breaker=50%/20/10s:30s-1m",
        "backend",
        "backend breaker=50%/20/10s:30s-1m budget=none",
        "client",
    };

    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    for (size_t i = 0; i < sizeof fitting / sizeof *fitting; i++) {
        p = parse(fitting[i]);
        CHECK(stg_peer_fits(&peer, &p));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        p = parse(others[i]);
        CHECK(!stg_peer_fits(&peer, &p));
    }
    p = parse("attempts=2 breaker=5:30s-1m");
    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    p = parse("attempts=2 breaker=6:30s-1m");
    CHECK(!stg_peer_fits(&peer, &p));
}

TEST(peer, tells_budgets_of_one_kind_apart)
{
    stg_policy p = parse("attempts=2 budget=grpc:10:0.1");
    stg_peer peer;

    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    CHECK(stg_peer_fits(&peer, &p));
    p = parse("attempts=2 budget=grpc:10:0.2");
    CHECK(!stg_peer_fits(&peer, &p));
}

TEST(peer, is_refused_until_it_is_made)
{
    stg_policy p = parse("client"), zeroed = {0};
    stg_peer peer = {0};
    stg_error err;

    CHECK(!stg_peer_fits(&peer, &p));
    CHECK_INT(stg_peer_limit(&peer, 1000, 1, &err), STG_INVALID);
    CHECK_STR(err.text, "peer was not made by stg_peer_init()");
    CHECK_INT(stg_peer_limit(NULL, 1000, 1, &err), STG_INVALID);
    CHECK_INT(stg_peer_init(NULL, &p), STG_INVALID);
    CHECK_INT(stg_peer_init(&peer, NULL), STG_INVALID);
    CHECK_INT(stg_peer_init(&peer, &zeroed), STG_INVALID);
    p.budget.capacity = 1;
    CHECK_INT(stg_peer_init(&peer, &p), STG_INVALID);
    p = parse("client");
    p.breaker.calls = 1;
    CHECK_INT(stg_peer_init(&peer, &p), STG_INVALID);
    CHECK(!stg_peer_fits(&peer, &p));
    // Nor is one that was, once it was made anew of what is refused.
    p = parse("client");
    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    CHECK_INT(stg_peer_init(&peer, &zeroed), STG_INVALID);
    CHECK(!stg_peer_fits(&peer, &p));
}

TEST(peer, can_have_a_rate_limit)
{
    stg_policy p = parse("client");
    stg_peer peer;
    stg_error err;

    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    CHECK_INT(stg_peer_limit(&peer, 1000, 1, &err), STG_OK);
    CHECK(stg_limiter_take(&peer.limiter, 0, NULL));
    CHECK(!stg_limiter_take(&peer.limiter, 0, NULL));
    CHECK_INT(stg_peer_limit(&peer, 1000, 1000001, &err), STG_INVALID);
    CHECK_STR(err.text, "burst=1000001 is out of range, expected 0 to 1000000");
}

TEST(peer, has_the_rate_of_its_policy)
{
    stg_policy p = parse("client rate=30/s"), other = parse("client rate=31/s");
    stg_policy none = parse("client");
    stg_peer peer;

    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    CHECK_U64(peer.limiter.rate, 30000);
    CHECK_U64(peer.limiter.burst, 3);
    CHECK(stg_peer_fits(&peer, &p));
    CHECK(stg_peer_fits(&peer, &none));
    CHECK(!stg_peer_fits(&peer, &other));

    // What is said of the peer itself wins.
    CHECK_INT(stg_peer_limit(&peer, 1000, 7, NULL), STG_OK);
    CHECK_U64(peer.limiter.rate, 1000);
    CHECK_U64(peer.limiter.burst, 7);
    CHECK(stg_peer_fits(&peer, &p));
    CHECK(!stg_peer_fits(&peer, &other));
    CHECK_INT(stg_peer_limit(&peer, 0, 0, NULL), STG_OK);
    CHECK(stg_peer_fits(&peer, &p));

    CHECK_INT(stg_peer_init(&peer, &none), STG_OK);
    CHECK_U64(peer.limiter.rate, 0);
    CHECK(!stg_peer_fits(&peer, &p));
    p.rate = 1000000001;
    CHECK_INT(stg_peer_init(&peer, &p), STG_INVALID);
    CHECK(!stg_peer_fits(&peer, &none));
}

TEST(peer, has_the_bulkhead_of_its_policy)
{
    stg_policy p = parse("client bulkhead=2:1s"), none = parse("client");
    stg_policy more = parse("client bulkhead=3:1s");
    stg_policy longer = parse("client bulkhead=2:2s");
    stg_peer peer;

    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    CHECK_U64(peer.bulkhead.options.max, 2);
    CHECK(stg_peer_fits(&peer, &p));
    CHECK(stg_peer_fits(&peer, &none));
    CHECK(!stg_peer_fits(&peer, &more));
    CHECK(!stg_peer_fits(&peer, &longer));
    p.bulkhead.max = 1000001;
    CHECK_INT(stg_peer_init(&peer, &p), STG_INVALID);
    CHECK(!stg_peer_fits(&peer, &none));
}

TEST(peer, is_needed_by_a_policy_that_shares_something)
{
    static const char *const shared[] = {
        "client rate=1/s",  "client bulkhead=1", "client throttle=aws",
        "client hedge=p95", "client breaker=5",  "client budget=100:10/s"};
    stg_policy p = parse("client");

    CHECK(!stg_policy_needs_peer(&p));
    CHECK(!stg_policy_needs_peer(NULL));
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        p = parse(shared[i]);
        CHECK(stg_policy_needs_peer(&p));
    }
}

TEST(peer, has_latencies_for_any_policy)
{
    stg_policy p = parse("client hedge=p95"), none = parse("client");
    stg_policy other = parse("client hedge=p99:2");
    stg_peer peer;

    memset(&peer, 7, sizeof peer);
    CHECK_INT(stg_peer_init(&peer, &none), STG_OK);
    CHECK_U64(stg_latencies_percentile(&peer.latencies, 95), STG_NEVER);
    CHECK(stg_peer_fits(&peer, &p));
    CHECK(stg_peer_fits(&peer, &other));
}

TEST(peer, has_the_throttle_of_its_policy)
{
    stg_policy p = parse("client throttle=sre:2"), none = parse("client");
    stg_policy more = parse("client throttle=sre:3");
    stg_policy other = parse("client throttle=aws");
    stg_peer peer;

    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    CHECK(stg_peer_fits(&peer, &p));
    CHECK(stg_peer_fits(&peer, &none));
    CHECK(!stg_peer_fits(&peer, &more));
    CHECK(!stg_peer_fits(&peer, &other));
    p.throttle.k = 1;
    CHECK_INT(stg_peer_init(&peer, &p), STG_INVALID);
    CHECK(!stg_peer_fits(&peer, &none));
}
