#include <stagger/report.h>

#include "tests/harness.h"

static const char *text_of(stg_report r)
{
    static char text[STG_REPORT_TEXT_MAX];

    return stg_report_text(&r, text);
}

TEST(report, names_the_hedges)
{
    char text[STG_REPORT_TEXT_MAX];
    stg_report r = {.next = STG_DONE, .attempts = 1, .hedges = 1};

    CHECK_STR(stg_report_text(&r, text), "done after 1 attempt and 1 hedge");
    r = (stg_report){.next = STG_GIVE_UP,
                     .why = STG_WHY_DEADLINE,
                     .attempts = 2,
                     .hedges = 3};
    CHECK_STR(stg_report_text(&r, text),
              "gave up after 2 attempts and 3 hedges: the next attempt would "
              "come too late (deadline)");
}

TEST(report, says_how_it_went_in_a_sentence)
{
    stg_report r = {.next = STG_GIVE_UP,
                    .why = STG_WHY_ATTEMPTS,
                    .attempts = 5,
                    .took = 3100 * STG_MS,
                    .last = stg_failed(STG_FAULT_REFUSED)};

    CHECK_STR(text_of(r),
              "gave up after 5 attempts in 3.1 s: refused "
              "(attempts)");
    r.attempts = 1;
    r.took = 0;
    r.why = STG_WHY_PERMANENT;
    r.last = stg_answered(404);
    CHECK_STR(text_of(r), "gave up after 1 attempt: 404 (permanent)");
    r.next = STG_DONE;
    r.why = STG_WHY_DONE;
    CHECK_STR(text_of(r), "done after 1 attempt");
    r.attempts = 3;
    r.took = 1200 * STG_MS;
    CHECK_STR(text_of(r), "done after 3 attempts in 1.2 s");
    r.took = 1;
    CHECK_STR(text_of(r), "done after 3 attempts in 1 ns");
    r.took = 1200 * STG_MS;
    r.next = STG_WAIT;
    CHECK_STR(text_of(r), "not ended after 3 attempts in 1.2 s");
    r.next = STG_GO;
    CHECK_STR(text_of(r), "not ended after 3 attempts in 1.2 s");
}

TEST(report, says_why_nothing_was_tried)
{
    stg_report r = {.next = STG_GIVE_UP, .why = STG_WHY_CANCELLED};

    CHECK_STR(text_of(r),
              "gave up before the first attempt: it was cancelled (cancelled)");
    r.why = STG_WHY_DEADLINE;
    CHECK_STR(text_of(r),
              "gave up before the first attempt: the next attempt "
              "would come too late (deadline)");
    r.why = STG_WHY_INVALID;
    CHECK_STR(text_of(r),
              "refused before the first attempt: the call is wrong "
              "(invalid)");
    r.attempts = 1;
    CHECK_STR(text_of(r),
              "gave up after 1 attempt: the call is wrong (invalid)");
    r.attempts = 0;
    r.flaw = "the policy is NULL";
    CHECK_STR(text_of(r),
              "refused before the first attempt: the policy is NULL "
              "(invalid)");
}

TEST(report, names_a_cancel_without_a_failure)
{
    stg_report r = {.next = STG_GIVE_UP,
                    .why = STG_WHY_CANCELLED,
                    .attempts = 2,
                    .took = STG_S};

    CHECK_STR(text_of(r),
              "gave up after 2 attempts in 1 s: it was cancelled (cancelled)");
}

TEST(report, has_a_name_and_a_sentence_for_each_reason)
{
    static const char *const names[] = {
        "done",           "cancelled", "circuit-open", "permanent",
        "not-idempotent", "nested",    "fault-limit",  "attempts",
        "deadline",       "budget",    "throttle",     "bulkhead",
        "invalid",        "backoff",   "server-delay", "gate"};

    for (unsigned why = 0; why < STG_WHY_COUNT; why++) {
        CHECK_STR(stg_why_name((stg_why)why), names[why]);
        CHECK(strlen(stg_why_sentence((stg_why)why)) > 10);
    }
    CHECK_STR(stg_why_name(STG_WHY_COUNT), "unknown");
    CHECK_STR(stg_why_sentence(STG_WHY_COUNT), "for an unknown reason");
}

TEST(report, says_that_the_fallback_answered)
{
    stg_report r = {
        .next = STG_GIVE_UP, .why = STG_WHY_BULKHEAD, .fell_back = true};

    CHECK_STR(text_of(r),
              "gave up before the first attempt: as many attempts as may be "
              "are under way (bulkhead); the fallback answered");
    r.attempts = 1;
    r.last = stg_answered(503);
    CHECK_STR(text_of(r),
              "gave up after 1 attempt: 503 (bulkhead); the "
              "fallback answered");
}
