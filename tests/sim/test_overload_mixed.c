/* A fleet in which a part of the clients has another policy. */
#include "tests/sim/overload_help.h"

/* Whatever a request is answered, it has failed with that probability: without
 * a queue, and with time for all. */
static stg_overload_options failing(const char *own, const char *others)
{
    stg_overload_options o = stg_overload_default();
    stg_error err;

    o.policy = help_policy(own);
    o.trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
    if (stg_overload_set(&o, "others", others, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
    o.errors = 500000;
    o.service.workers = 100;
    o.end_at = 60 * STG_S;
    o.bin = STG_S;
    stg_overload_settle(&o);
    return o;
}

#define FIXED "fixed base=10ms jitter=none deadline=none "

/* With failure probability p and k retries: success 1 - p^(k + 1), load
 * 1 + p + ... + p^k; of each part on its own. */
TEST(overload_mixed, has_the_success_and_load_of_each_policy)
{
    help_sample own = {0}, others = {0}, sent = {0}, sent_by_others = {0};
    help_sample share = {0};
    stg_overload_options o = failing(FIXED "attempts=1", FIXED "attempts=3");

    o.share = 300000;
    for (uint64_t n = 0; n < 20; n++) {
        stg_overload_result r = help_run(&o, n);
        double begun = (double)(r.begun - r.others_begun);

        help_add(&share, (double)r.others_begun / (double)r.begun);
        help_add(&own, (double)(r.saved - r.others_saved) / begun);
        help_add(&sent, (double)(r.sent - r.others_sent) / begun);
        begun = (double)r.others_begun;
        help_add(&others, (double)r.others_saved / begun);
        help_add(&sent_by_others, (double)r.others_sent / begun);
        stg_overload_free(&r, &help_memory);
    }
    CHECK_NEAR(share, 0.3, 0.01);
    CHECK_NEAR(own, 0.5, 0.01);
    CHECK_NEAR(others, 1 - 0.125, 0.01);
    CHECK(fabs(help_mean(&sent) - 1) < 1e-9);
    CHECK_NEAR(sent_by_others, 1 + 0.5 + 0.25, 0.01);
}

/* All or none of them are as one policy alone, to the last number. */
TEST(overload_mixed, is_one_policy_at_either_end)
{
    static const uint32_t shares[] = {0, 1000000};
    static const char *const policies[] = {FIXED "attempts=3 budget=ratio:0.1",
                                           FIXED "attempts=3"};

    for (size_t i = 0; i < 2; i++) {
        stg_overload_options mixed = failing(policies[0], policies[1]);
        stg_overload_options plain = failing(policies[i], "none");
        stg_overload_result a, b;

        mixed.share = shares[i];
        a = help_run(&mixed, 0);
        b = help_run(&plain, 0);
        CHECK(a.begun == b.begun && a.sent == b.sent && a.saved == b.saved &&
              a.events == b.events && a.latency_sum == b.latency_sum);
        CHECK_U64(a.others_begun, i == 0 ? 0 : a.begun);
        CHECK_U64(a.others_lost, i == 0 ? 0 : a.lost);
        stg_overload_free(&a, &help_memory);
        stg_overload_free(&b, &help_memory);
    }
}

/* A few that storm take the service from all, also from those that do not. */
TEST(overload_mixed, shows_how_many_old_clients_are_too_many)
{
    static const uint32_t shares[] = {0, 100000, 600000};

    for (size_t i = 0; i < 3; i++) {
        stg_overload_options o = stg_overload_default();
        stg_overload_result r;

        o.policy = help_policy("attempts=6 base=500ms budget=ratio:0.1");
        CHECK(stg_overload_set(&o, "others", "attempts=6 base=500ms", NULL) ==
              STG_OK);
        o.share = shares[i];
        r = help_run(&o, 0);
        CHECK_FROM(i, r.recovery.is_recovered == (i < 2));
        if (i == 2) // those with a budget have no more of it
            CHECK((r.saved - r.others_saved) * 2 < r.begun - r.others_begun);
        stg_overload_free(&r, &help_memory);
    }
}

TEST(overload_mixed, makes_hedges_where_a_part_does)
{
    stg_overload_options o =
        failing(FIXED "attempts=1", FIXED "attempts=1 hedge=2ms");
    stg_overload_result r = help_run(&o, 0);

    CHECK(stg_overload_hedges(&o));
    CHECK(r.hedged > 1000);
    CHECK_U64(r.sent, r.begun + r.hedged);
    CHECK_U64(r.others_sent, r.others_begun + r.hedged);
    stg_overload_free(&r, &help_memory);
}

TEST(overload_mixed, takes_half_unless_it_is_told_a_share)
{
    stg_overload_options o = stg_overload_default();
    stg_error err;

    stg_overload_settle(&o);
    CHECK(o.share == 0 && stg_overload_check(&o, NULL) == STG_OK);
    o.share = 1;
    CHECK(stg_overload_check(&o, &err) == STG_INVALID);
    CHECK_STR(err.text,
              "share is of the clients that have another policy: "
              "expected others=POLICY, too");
    o.share = STG_SHARE_OPEN;
    CHECK(stg_overload_set(&o, "others", "client", NULL) == STG_OK);
    stg_overload_settle(&o);
    CHECK_INT(o.share, 500000);
    CHECK(stg_overload_check(&o, NULL) == STG_OK);
    CHECK(stg_overload_set(&o, "others", "none", NULL) == STG_OK);
    CHECK(!o.has_others);
    CHECK(stg_overload_set(&o, "others", "attempst=3", &err) == STG_INVALID);
    CHECK(strstr(err.text, "did you mean attempts=?") != NULL);
    CHECK(stg_overload_set(&o, "others", "attempst=3", NULL) == STG_INVALID);
}
