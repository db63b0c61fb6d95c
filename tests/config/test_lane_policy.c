#include "config/targets.h"

#include <stdlib.h>

#include <stagger/text.h>

#include "tests/harness.h"

/* What the hub makes of a text, against what text it should be. */
static void check_same(const char *text, size_t targets, const char *expected)
{
    static char is[STG_POLICY_TEXT_MAX], same[STG_POLICY_TEXT_MAX];
    stg_policy policy;

    CHECK_INT(stg_lane_policy_read(&policy, text, targets, 0, 0, NULL), STG_OK);
    stg_policy_print(&policy, is);
    CHECK_INT(stg_policy_parse(&policy, expected, NULL), STG_OK);
    stg_policy_print(&policy, same);
    CHECK_STR(is, same);
}

#define OWN " budget=ratio:0.2+10/s budget-empty=wait"

TEST(lane_policy, is_broadcast_and_spreads_its_waits_from_fifty_targets_on)
{
    check_same(NULL, 1, "broadcast" OWN);
    check_same(NULL, 49, "broadcast" OWN);
    check_same(NULL, 50, "broadcast-wide" OWN);
}

TEST(lane_policy, has_a_budget_unless_the_text_says_otherwise)
{
    check_same("attempts=7 fixed", 50, "attempts=7 fixed" OWN);
    check_same("attempts=7 budget=none", 1, "attempts=7");
    check_same("attempts=7 budget=5:1/s", 1, "attempts=7 budget=5:1/s");
    check_same("backend", 1, "backend");
    check_same("broadcast budget-empty=give-up", 1,
               "broadcast budget=ratio:0.2+10/s budget-empty=give-up");
}

TEST(lane_policy, has_the_timeout_of_the_target)
{
    stg_policy policy;

    CHECK_INT(stg_lane_policy_read(&policy, NULL, 1, 7 * STG_S, 0, NULL),
              STG_OK);
    CHECK_U64(policy.attempt_timeout, 7 * STG_S);
    CHECK_INT(stg_lane_policy_read(&policy, NULL, 1, 0, 0, NULL), STG_OK);
    CHECK_U64(policy.attempt_timeout, 10 * STG_S);
}

TEST(lane_policy, has_the_rate_of_the_target_or_else_its_own)
{
    stg_policy policy;

    CHECK_INT(
        stg_lane_policy_read(&policy, "fixed rate=50/s", 1, 0, 7000, NULL),
        STG_OK);
    CHECK_U64(policy.rate, 7000);
    CHECK_INT(stg_lane_policy_read(&policy, "fixed rate=50/s", 1, 0, 0, NULL),
              STG_OK);
    CHECK_U64(policy.rate, 50000);
    CHECK_INT(stg_lane_policy_read(&policy, NULL, 1, 0, 7000, NULL), STG_OK);
    CHECK_U64(policy.rate, 7000);
    CHECK_INT(stg_lane_policy_read(&policy, NULL, 1, 0, 0, NULL), STG_OK);
    CHECK_U64(policy.rate, 0);
}

TEST(lane_policy, says_what_is_wrong_with_a_text)
{
    stg_policy policy;
    stg_error err;

    CHECK_INT(
        stg_lane_policy_read(&policy, "broadcast attempts=0", 1, 0, 0, &err),
        STG_INVALID);
    CHECK(strstr(err.text, "attempts=0") != NULL);
    CHECK_INT(err.column, 11);
}

TEST(lane_policy, has_no_part_that_is_for_programs)
{
    stg_policy policy;
    stg_error err;

    CHECK_INT(
        stg_lane_policy_read(&policy, "broadcast bulkhead=20", 1, 0, 0, &err),
        STG_INVALID);
    CHECK_STR(err.text,
              "bulkhead= is for programs: a target of a hub has "
              "`in-flight`");
    CHECK_INT(err.column, 11);
    CHECK_INT(stg_lane_policy_read(&policy, "throttle=sre", 1, 0, 0, &err),
              STG_INVALID);
    CHECK(strstr(err.text, "throttle= is for programs") != NULL);
    CHECK_INT(err.column, 1);
    CHECK_INT(stg_lane_policy_read(&policy, "hedge=100ms", 1, 0, 0, &err),
              STG_INVALID);
    CHECK(strstr(err.text, "hedge= is for programs") != NULL);
    CHECK_INT(err.column, 1);
    CHECK_INT(
        stg_lane_policy_read(&policy, "breaker-scope=retries", 1, 0, 0, &err),
        STG_INVALID);
    CHECK(strstr(err.text, "breaker-scope=retries is for programs") != NULL);
    CHECK_INT(err.column, 1);
    CHECK_INT(stg_lane_policy_read(&policy, "bulkhead=20", 1, 0, 0, NULL),
              STG_INVALID);
}
