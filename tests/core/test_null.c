/* NULL for what a call reads or writes is harmless, and has one meaning. */
#include <stagger/stagger.h>

#include "tests/harness.h"

TEST(null, is_no_backoff)
{
    stg_backoff b = stg_backoff_default();
    stg_rng rng = {{0, 1, 1, UINT64_MAX}}; // all ones

    CHECK_U64(stg_backoff_window(NULL, 3), 0);
    CHECK_U64(stg_backoff_wait_after(NULL, 3, NULL, 7, NULL), 7);
    b.jitter = STG_JITTER_NONE;
    CHECK_U64(stg_backoff_wait_after(&b, 1, NULL, 0, NULL), b.base);
    // Without a last wait, the last one was the base.
    b.jitter = STG_JITTER_DECORRELATED;
    CHECK_U64(stg_backoff_wait(&b, 1, NULL, &rng), 3 * b.base);
}

TEST(null, is_no_breaker_that_lets_all_pass)
{
    stg_breaker b = {0};

    CHECK_INT(stg_breaker_classify(NULL), STG_BREAKER_NEITHER);
    CHECK_INT(stg_breaker_enter(NULL, 0, NULL), STG_PERMIT_GRANTED);
    stg_breaker_report(NULL, false, STG_BREAKER_FAILURE, 0, 0);
    stg_breaker_abandon(NULL, 0);
    CHECK_INT(stg_breaker_look(NULL, 0, NULL), STG_BREAKER_CLOSED);

    // Nor is the instant that it opens again wanted.
    CHECK_INT(
        stg_breaker_init(&b, &(stg_breaker_options){.rule = STG_BREAKER_ROW,
                                                    .failures = 1,
                                                    .open = STG_S,
                                                    .open_max = STG_S}),
        STG_OK);
    stg_breaker_report(&b, false, STG_BREAKER_FAILURE, 0, 0);
    CHECK_INT(stg_breaker_enter(&b, 0, NULL), STG_PERMIT_DENIED);
}

TEST(null, is_no_budget_and_no_limit)
{
    stg_ns due_at = 0;
    stg_grant g = stg_budget_take(NULL, STG_CHARGE_TIMEOUT, 5);

    CHECK_U64(stg_budget_left(NULL, 0), UINT64_MAX);
    CHECK(g.granted);
    CHECK_U64(g.from_at, 5);
    CHECK(stg_limiter_take(NULL, 5, &due_at));
    CHECK_U64(due_at, 5);
    CHECK_U64(stg_limiter_reserve(NULL, 5, 6), 5);
    stg_limiter_give_back(NULL, 0, 0);
    CHECK(!stg_cancel_is_set(NULL));
}

TEST(null, is_an_unclassified_error)
{
    char name[STG_CAUSE_MAX], cause[STG_CAUSE_MAX];
    stg_policy p = stg_policy_default();
    stg_outcome o = stg_answered(503);
    int limited = 0;

    CHECK_STR(stg_outcome_name(NULL, name),
              stg_fault_about(STG_FAULT_ERROR)->name);
    CHECK_STR(stg_outcome_cause(NULL, cause),
              stg_fault_about(STG_FAULT_ERROR)->cause);
    CHECK_INT(stg_outcome_family(NULL), STG_FAMILY_NONE);
    CHECK_INT(stg_policy_retries(NULL, &o, &limited), 0);
    CHECK_INT(limited, -1);
    CHECK_INT(stg_policy_retries(&p, NULL, NULL), 0);
    stg_sqlstate_unpack(0, NULL);
}

TEST(null, is_equal_to_itself_alone)
{
    stg_policy p = stg_policy_default();

    CHECK(stg_policy_equal(NULL, NULL));
    CHECK(!stg_policy_equal(&p, NULL));
    CHECK(!stg_policy_equal(NULL, &p));
}

TEST(null, is_no_peer_and_fits_nothing)
{
    stg_policy p = stg_policy_default();
    stg_peer peer;

    CHECK_INT(stg_peer_init(&peer, &p), STG_OK);
    CHECK(!stg_peer_fits(NULL, &p));
    CHECK(!stg_peer_fits(&peer, NULL));
}

TEST(null, makes_no_key)
{
    char text[STG_KEY_MAX] = "x";

    CHECK_STR(stg_key_make(text, 0, NULL), "");
    CHECK_STR(stg_key_make(NULL, 0, (const uint8_t[10]){0}), NULL);
}

TEST(null, saves_and_tells_nothing)
{
    stg_policy p = stg_policy_default();
    char text[STG_REPORT_TEXT_MAX] = "x";
    stg_progress progress = {.attempts = 3, .last = 7};
    stg_retry r;

    CHECK_STR(stg_report_text(NULL, text), "");
    CHECK_U64(stg_progress_begin(NULL).last, 0);
    stg_retry_save(NULL, &progress);
    CHECK_INT(progress.attempts, 0);
    CHECK_U64(progress.last, 0);
    CHECK_INT(stg_retry_start(&r, &p, NULL, 0), STG_OK);
    stg_retry_save(&r, NULL);
    CHECK_INT(stg_retry_resume(&r, &p, NULL, NULL, 0, 0), STG_INVALID);
}
