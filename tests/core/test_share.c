/* A budget by what is under way: share:20%+3. */
#include <stagger/cancel.h>
#include <stagger/retry.h>
#include <stagger/text.h>

#include <stdio.h>

#include "core/options.h"
#include "tests/harness.h"

static stg_budget share(uint32_t ratio, uint32_t floor)
{
    stg_budget_options o = {
        .kind = STG_BUDGET_SHARE, .ratio = ratio, .capacity = floor};
    stg_budget b;

    CHECK_INT(stg_budget_init(&b, &o), STG_OK);
    return b;
}

static bool take(stg_budget *b)
{
    return stg_budget_take(b, STG_CHARGE_RETRY, 0).granted;
}

static unsigned drain(stg_budget *b)
{
    unsigned count = 0;

    while (count < 1000 && take(b))
        count++;
    return count;
}

static void begin(stg_budget *b, unsigned attempts)
{
    while (attempts-- > 0)
        stg_budget_begin(b);
}

/* -- the budget by itself -------------------------------------------------- */

TEST(share, allows_a_share_of_the_attempts_under_way)
{
    stg_budget b = share(200, 1);

    CHECK(take(&b));
    begin(&b, 9);
    CHECK(!take(&b));
    CHECK_U64(stg_budget_left(&b, 0), 0);
    begin(&b, 1);
    CHECK_U64(stg_budget_left(&b, 0), 1000);
    CHECK_INT(drain(&b), 1);
    begin(&b, 90);
    CHECK_U64(stg_budget_left(&b, STG_DAY), 18000); // whatever the time
    CHECK_INT(drain(&b), 18);
    CHECK(stg_budget_counts(&b, 100, 20));
}

/* The larger of the two, not their sum. */
TEST(share, has_a_floor_of_retries_at_once)
{
    stg_budget b = share(200, 3);

    CHECK_INT(drain(&b), 3);
    begin(&b, 19);
    CHECK_INT(drain(&b), 0);
    begin(&b, 1);
    CHECK_INT(drain(&b), 1);
    b = share(0, 2);
    begin(&b, 1000);
    CHECK_INT(drain(&b), 2);
    b = share(1000, 1);
    begin(&b, 7);
    CHECK_INT(drain(&b), 7);
}

TEST(share, frees_a_retrys_place_when_its_attempt_ends)
{
    stg_budget b = share(0, 1);

    CHECK(take(&b));
    stg_budget_begin(&b);
    CHECK(!take(&b));
    stg_budget_begin(&b); // a first one, whose end frees no place
    stg_budget_end(&b, STG_CHARGE_NONE);
    CHECK(!take(&b));
    stg_budget_end(&b, STG_CHARGE_TIMEOUT);
    CHECK(stg_budget_counts(&b, 0, 0));
    CHECK(take(&b));
    stg_budget_give_back(&b, STG_CHARGE_RETRY, 0, 0); // it did not begin
    CHECK(take(&b));
}

/* A share counts only what is under way: what has ended cannot be withdrawn. */
TEST(share, has_nothing_to_withdraw_after_the_end)
{
    stg_budget b = share(500, 1);

    begin(&b, 4);
    CHECK_INT(drain(&b), 2);
    stg_budget_end(&b, STG_CHARGE_RETRY);
    stg_budget_withdraw(&b, STG_CHARGE_RETRY, 0, 0);
    stg_budget_withdraw(&b, STG_CHARGE_NONE, 0, 0);
    stg_budget_attempt(&b, 0);
    stg_budget_fail(&b);
    stg_budget_succeed(&b, STG_CHARGE_RETRY);
    CHECK(stg_budget_counts(&b, 3, 1));
}

TEST(share, ends_no_more_than_has_begun)
{
    stg_budget b = share(500, 1);

    stg_budget_end(&b, STG_CHARGE_RETRY);
    stg_budget_give_back(&b, STG_CHARGE_RETRY, 0, 0);
    CHECK(stg_budget_counts(&b, 0, 0));
    CHECK(take(&b));
    stg_budget_end(&b, STG_CHARGE_RETRY); // the attempt never began
    CHECK(stg_budget_counts(&b, 0, 0));
    stg_budget_begin(&b);
    stg_budget_end(&b, STG_CHARGE_RETRY); // of a retry that took no place
    CHECK(stg_budget_counts(&b, 0, 0));
    b.level = UINT64_MAX << 32;
    stg_budget_begin(&b);
    CHECK(stg_budget_counts(&b, UINT32_MAX, 0));
    b.level = UINT32_MAX;
    stg_budget_adopt(&b, STG_CHARGE_RETRY);
    CHECK(stg_budget_counts(&b, 1, UINT32_MAX));
    CHECK_U64(stg_budget_left(&b, 0), 0);
}

TEST(share, keeps_what_is_under_way_when_its_numbers_change)
{
    stg_budget old = share(500, 1), same = share(100, 4);
    stg_budget late = share(100, 4), other;

    begin(&old, 10);
    CHECK_INT(drain(&old), 5);
    stg_budget_keep(&same, &old, 0);
    CHECK(stg_budget_counts(&same, 10, 5));
    CHECK(!take(&same));
    // One that begins amid attempts is told of each.
    stg_budget_adopt(&late, STG_CHARGE_NONE);
    stg_budget_adopt(&late, STG_CHARGE_THROTTLE);
    CHECK(stg_budget_counts(&late, 2, 1));
    CHECK(!stg_budget_counts(&late, 2, 0));
    CHECK(!stg_budget_counts(&late, 1, 1));
    // Other kinds do not count what is under way.
    other = (stg_budget){.options = {.kind = STG_BUDGET_NONE}};
    stg_budget_adopt(&other, STG_CHARGE_RETRY);
    stg_budget_begin(&other);
    stg_budget_end(&other, STG_CHARGE_RETRY);
    CHECK_U64(other.level, 0);
    CHECK(stg_budget_counts(&other, 7, 7));
    stg_budget_begin(NULL);
    stg_budget_end(NULL, STG_CHARGE_NONE);
}

/* -- operations ------------------------------------------------------------ */

static stg_policy parse(const char *text)
{
    stg_policy p;

    CHECK_INT(stg_policy_parse(&p, text, NULL), STG_OK);
    return p;
}

static stg_peer peer_of(const stg_policy *p)
{
    stg_peer peer;

    CHECK_INT(stg_peer_init(&peer, p), STG_OK);
    return peer;
}

static stg_decision start(stg_retry *r, const stg_policy *p,
                          const stg_with *with)
{
    CHECK_INT(stg_retry_start(r, p, with, 0), STG_OK);
    return stg_retry_admit(r, 0, NULL);
}

TEST(share, is_held_through_the_wait_and_the_retry)
{
    stg_policy p =
        parse("fixed base=1s jitter=none attempts=9 budget=share:0%+1");
    const stg_outcome bad = stg_answered(503), good = stg_ok();
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_retry first, second;

    CHECK_INT(start(&first, &p, &with).next, STG_GO);
    CHECK_INT(start(&second, &p, &with).next, STG_GO);
    CHECK(stg_budget_counts(&peer.budget, 2, 0));
    CHECK_INT(stg_retry_step(&first, &bad, 0, NULL).next, STG_WAIT);
    CHECK(stg_budget_counts(&peer.budget, 1, 1));
    CHECK_INT(stg_retry_step(&second, &bad, 0, NULL).why, STG_WHY_BUDGET);
    CHECK(stg_budget_counts(&peer.budget, 0, 1));
    CHECK_INT(stg_retry_admit(&first, STG_S, NULL).next, STG_GO);
    CHECK(stg_budget_counts(&peer.budget, 1, 1));
    // It frees its place before it asks for the next.
    CHECK_INT(stg_retry_step(&first, &bad, STG_S, NULL).next, STG_WAIT);
    CHECK(stg_budget_counts(&peer.budget, 0, 1));
    CHECK_INT(stg_retry_admit(&first, 2 * STG_S, NULL).next, STG_GO);
    CHECK_INT(stg_retry_step(&first, &good, 2 * STG_S, NULL).next, STG_DONE);
    CHECK(stg_budget_counts(&peer.budget, 0, 0));
}

TEST(share, is_given_back_by_what_is_cancelled)
{
    stg_policy p =
        parse("fixed base=1s jitter=none attempts=9 budget=share:50%+1");
    const stg_outcome bad = stg_answered(503);
    stg_peer peer = peer_of(&p);
    stg_budget all = share(1000, 1);
    stg_with with = {.peer = &peer, .shared_budget = &all};
    stg_retry r;

    start(&r, &p, &with);
    CHECK(stg_budget_counts(&peer.budget, 1, 0));
    stg_retry_cancel(&r, 0);
    CHECK(stg_budget_counts(&peer.budget, 0, 0));
    start(&r, &p, &with);
    stg_retry_step(&r, &bad, 0, NULL);
    CHECK(stg_budget_counts(&all, 0, 1));
    stg_retry_cancel(&r, 0);
    CHECK(stg_budget_counts(&all, 0, 0));
    start(&r, &p, &with);
    stg_retry_step(&r, &bad, 0, NULL);
    CHECK_INT(stg_retry_admit(&r, STG_S, NULL).next, STG_GO);
    CHECK(stg_budget_counts(&peer.budget, 1, 1));
    CHECK(stg_budget_counts(&all, 1, 1));
    stg_retry_cancel(&r, STG_S);
    CHECK(stg_budget_counts(&peer.budget, 0, 0));
    CHECK(stg_budget_counts(&all, 0, 0));
}

/* Either may be another kind, and the other be missing. */
TEST(share, counts_beside_a_budget_of_another_kind)
{
    stg_policy p = parse("fixed base=0 jitter=none attempts=2 budget=5:1/s");
    stg_policy none = parse("fixed base=0 jitter=none attempts=2");
    const stg_outcome bad = stg_answered(503);
    stg_peer peer = peer_of(&p);
    stg_budget all = share(0, 1);
    stg_with both = {.peer = &peer, .shared_budget = &all};
    stg_with one = {.shared_budget = &all};
    stg_retry r;

    start(&r, &p, &both);
    stg_retry_step(&r, &bad, 0, NULL);
    stg_retry_admit(&r, 0, NULL);
    CHECK(stg_budget_counts(&all, 1, 1));
    CHECK_U64(stg_budget_left(&peer.budget, 0), 4000);
    CHECK_INT(stg_retry_step(&r, &bad, 0, NULL).why, STG_WHY_ATTEMPTS);
    CHECK(stg_budget_counts(&all, 0, 0));
    CHECK_U64(stg_budget_left(&peer.budget, 0), 4000);
    start(&r, &none, &one);
    CHECK(stg_budget_counts(&all, 1, 0));
    stg_retry_step(&r, &bad, 0, NULL);
    CHECK(stg_budget_counts(&all, 0, 1));
    stg_retry_cancel(&r, 0);
    CHECK(stg_budget_counts(&all, 0, 0));
}

/* An attempt of which only the caller knows was counted by nobody. */
TEST(share, does_not_end_an_attempt_that_was_resumed)
{
    stg_policy p =
        parse("fixed base=0 jitter=none attempts=9 budget=share:0%+1");
    const stg_outcome bad = stg_answered(503);
    stg_progress progress = {.attempts = 2};
    stg_peer peer = peer_of(&p);
    stg_with with = {.peer = &peer};
    stg_retry other, r;

    start(&other, &p, &with);
    CHECK_INT(stg_retry_resume(&r, &p, &with, &progress, 0, 0), STG_OK);
    CHECK_INT(stg_retry_step(&r, &bad, 0, NULL).next, STG_WAIT);
    CHECK(stg_budget_counts(&peer.budget, 1, 1));
    stg_retry_cancel(&r, 0);
    CHECK(stg_budget_counts(&peer.budget, 1, 0));
    stg_retry_cancel(&other, 0);
    CHECK(stg_budget_counts(&peer.budget, 0, 0));
}

/* -- whatever happens ------------------------------------------------------ */

enum { OPERATIONS = 40, EVENTS = 3000 };

typedef struct crowd {
    stg_policy policy;
    stg_peer peer;
    stg_budget all;
    stg_cancel cancels[OPERATIONS];
    stg_with with[OPERATIONS];
    stg_retry retries[OPERATIONS];
    stg_decision last[OPERATIONS]; /* STG_DONE: there is none */
    stg_rng rng;
    stg_ns now;
} crowd;

static uint32_t attempts_of(const stg_budget *b)
{
    return (uint32_t)(b->level >> 32);
}

static uint32_t retries_of(const stg_budget *b)
{
    return (uint32_t)b->level;
}

static bool chance(crowd *c, uint64_t percent)
{
    return stg_rng_upto(&c->rng, 99) < percent;
}

static stg_outcome any_outcome(crowd *c)
{
    switch (stg_rng_upto(&c->rng, 9)) {
    case 0:
        return stg_ok();
    case 1:
        return stg_answered(404);
    case 2:
        return stg_failed(STG_FAULT_CANCELLED);
    case 3:
        return stg_failed(STG_FAULT_REFUSED);
    case 4:
        return stg_answered_after(429, stg_rng_upto(&c->rng, STG_S));
    default:
        return stg_answered(503);
    }
}

static stg_decision go_on(crowd *c, unsigned i)
{
    stg_retry *r = &c->retries[i];
    stg_outcome o;

    if (chance(c, 3))
        stg_cancel_set(&c->cancels[i]);
    if (c->last[i].next == STG_DONE) {
        c->cancels[i] = (stg_cancel){0};
        CHECK_INT(stg_retry_start(r, &c->policy, &c->with[i], c->now), STG_OK);
        return stg_retry_admit(r, c->now, &c->rng);
    }
    if (chance(c, 5))
        return stg_retry_cancel(r, c->now);
    if (c->last[i].next == STG_WAIT)
        return stg_retry_admit(r, c->now, &c->rng);
    o = any_outcome(c);
    return stg_retry_step(r, &o, c->now, &c->rng);
}

/* One more retry was allowed when it was admitted: with `attempts` under way. */
static void check_admission(const stg_budget *b, uint32_t before,
                            uint32_t attempts, uint64_t seed)
{
    uint64_t allowed = (uint64_t)attempts * b->options.ratio / 1000;

    if (allowed < b->options.capacity)
        allowed = b->options.capacity;
    CHECK_FROM(seed, retries_of(b) <= before || (retries_of(b) == before + 1 &&
                                                 retries_of(b) <= allowed));
}

static uint32_t count_attempts(const crowd *c)
{
    uint32_t count = 0;

    for (unsigned i = 0; i < OPERATIONS; i++)
        count += c->last[i].next == STG_GO;
    return count;
}

static void check_event(crowd *c, unsigned i, uint64_t seed)
{
    uint32_t own = retries_of(&c->peer.budget), all = retries_of(&c->all);
    bool was_going = c->last[i].next == STG_GO;
    stg_decision d = go_on(c, i);
    uint32_t under_way;

    c->last[i] = d;
    if (d.next != STG_GO && d.next != STG_WAIT)
        c->last[i].next = STG_DONE;
    under_way = count_attempts(c);
    CHECK_FROM(seed, attempts_of(&c->peer.budget) == under_way);
    CHECK_FROM(seed, attempts_of(&c->all) == under_way);
    if (d.next == STG_GO)
        under_way--; // it asked before
    if (was_going) {
        // At the end of an attempt a place may come back and be taken anew.
        own -= own > retries_of(&c->peer.budget);
        all -= all > retries_of(&c->all);
    }
    check_admission(&c->peer.budget, own, under_way, seed);
    check_admission(&c->all, all, under_way, seed);
}

static void gather(crowd *c, uint64_t seed)
{
    static const char *const others[] = {
        "",
        " budget-empty=wait",
        " breaker=3:100ms-1s retry=any",
        " bulkhead=4:20ms",
        " rate=50/s budget-empty=wait",
        " breaker=2:50ms throttle=sre:1.1 retry=any"};
    char text[160];

    *c = (crowd){.rng = stg_rng_seed(seed), .now = STG_HOUR};
    snprintf(text, sizeof text,
             "fixed base=20ms jitter=full attempts=%u deadline=300ms "
             "budget=share:%u%%+%u%s",
             2 + (unsigned)stg_rng_upto(&c->rng, 5),
             (unsigned)stg_rng_upto(&c->rng, 100),
             1 + (unsigned)stg_rng_upto(&c->rng, 5), others[seed % 6]);
    c->policy = parse(text);
    c->peer = peer_of(&c->policy);
    c->all = share((uint32_t)stg_rng_upto(&c->rng, 1000),
                   (uint32_t)stg_rng_upto(&c->rng, 5) + 1);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        c->with[i] = (stg_with){.peer = &c->peer,
                                .shared_budget = &c->all,
                                .cancel = &c->cancels[i]};
        c->last[i].next = STG_DONE;
    }
}

/* However operations end, each admission is given back once. */
TEST(share, is_never_exceeded_and_always_given_back)
{
    crowd c;

    for (uint64_t seed = 0; seed < 60; seed++) {
        gather(&c, seed);
        for (unsigned n = 0; n < EVENTS; n++) {
            c.now += stg_rng_upto(&c.rng, 2 * STG_MS);
            check_event(&c, (unsigned)stg_rng_upto(&c.rng, OPERATIONS - 1),
                        seed);
        }
        for (unsigned i = 0; i < OPERATIONS; i++)
            stg_retry_cancel(&c.retries[i], c.now);
        CHECK_FROM(seed, stg_budget_counts(&c.peer.budget, 0, 0));
        CHECK_FROM(seed, stg_budget_counts(&c.all, 0, 0));
    }
}
