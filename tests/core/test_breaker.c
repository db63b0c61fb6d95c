#include <stagger/breaker.h>
#include <stagger/rng.h>

#include "core/options.h"
#include "tests/harness.h"

static stg_breaker closed(stg_breaker_options options)
{
    stg_breaker b;

    CHECK_INT(stg_breaker_init(&b, &options), STG_OK);
    return b;
}

/* 3 in a row, open for 10 s, doubling to 60 s. */
static stg_breaker row(void)
{
    return closed((stg_breaker_options){.rule = STG_BREAKER_ROW,
                                        .failures = 3,
                                        .open = 10 * STG_S,
                                        .open_max = 60 * STG_S});
}

/* Half of at least 10 calls in 10 s, open for 10 s. */
static stg_breaker share(void)
{
    return closed((stg_breaker_options){.rule = STG_BREAKER_SHARE,
                                        .percent = 50,
                                        .calls = 10,
                                        .window = 10 * STG_S,
                                        .open = 10 * STG_S,
                                        .open_max = 10 * STG_S});
}

static void fail(stg_breaker *b, int times, stg_ns now)
{
    while (times-- > 0)
        stg_breaker_report(b, false, STG_BREAKER_FAILURE, now);
}

static void succeed(stg_breaker *b, int times, stg_ns now)
{
    while (times-- > 0)
        stg_breaker_report(b, false, STG_BREAKER_SUCCESS, now);
}

static stg_passage enter(stg_breaker *b, stg_ns now)
{
    stg_ns reopen_at = 0;

    return stg_breaker_enter(b, now, &reopen_at);
}

static stg_ns reopening(stg_breaker *b, stg_ns now)
{
    stg_ns reopen_at = 0;

    CHECK_INT(stg_breaker_enter(b, now, &reopen_at), STG_PASSAGE_CLOSED);
    return reopen_at;
}

/* A unit of its clock is 1024 ns; instants are rounded up to one. */
static void check_near(stg_ns at, stg_ns expected)
{
    CHECK(at >= expected);
    CHECK(at < expected + 1024);
}

TEST(breaker, passes_everything_without_a_rule)
{
    stg_breaker b = closed((stg_breaker_options){.rule = STG_BREAKER_NONE});

    fail(&b, 1000, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_OPEN);
    CHECK_INT(stg_breaker_look(&b, 0, NULL), STG_BREAKER_CLOSED);
}

TEST(breaker, opens_after_failures_in_a_row)
{
    stg_breaker b = row();
    stg_ns reopen_at = 0;

    fail(&b, 2, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_OPEN);
    fail(&b, 1, STG_S);
    check_near(reopening(&b, STG_S), 11 * STG_S);
    CHECK_INT(stg_breaker_look(&b, STG_S, &reopen_at), STG_BREAKER_OPEN);
    check_near(reopen_at, 11 * STG_S);
    CHECK_INT(stg_breaker_look(&b, STG_S, NULL), STG_BREAKER_OPEN);
    CHECK_INT(stg_breaker_look(&b, reopen_at - 1, NULL), STG_BREAKER_OPEN);
    CHECK_INT(stg_breaker_look(&b, reopen_at, NULL), STG_BREAKER_HALF_OPEN);
}

TEST(breaker, starts_the_row_anew_after_a_success)
{
    stg_breaker b = row();

    for (int i = 0; i < 10; i++) {
        fail(&b, 2, 0);
        succeed(&b, 1, 0);
    }
    CHECK_INT(enter(&b, 0), STG_PASSAGE_OPEN);
    fail(&b, 1, 0);
    stg_breaker_report(&b, false, STG_BREAKER_NEITHER, 0);
    fail(&b, 1, 0);
    stg_breaker_report(&b, false, STG_BREAKER_NEITHER, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_OPEN);
    fail(&b, 1, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_CLOSED);
}

TEST(breaker, i22_lets_one_probe_pass_an_interval)
{
    stg_breaker b = row();

    fail(&b, 3, 0);
    CHECK_INT(enter(&b, 10 * STG_S - 1), STG_PASSAGE_CLOSED);
    CHECK_INT(enter(&b, 10 * STG_S + 1024), STG_PASSAGE_PROBE);
    CHECK_INT(stg_breaker_look(&b, 11 * STG_S, NULL), STG_BREAKER_HALF_OPEN);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PASSAGE_CLOSED);
    check_near(reopening(&b, 11 * STG_S), 20 * STG_S + 1024);
    // The probe is never heard of again: an interval later the next one goes.
    CHECK_INT(enter(&b, 20 * STG_S + 4096), STG_PASSAGE_PROBE);
    CHECK_INT(enter(&b, 20 * STG_S + 4096), STG_PASSAGE_CLOSED);
}

TEST(breaker, closes_when_the_probe_succeeds)
{
    stg_breaker b = row();

    fail(&b, 3, 0);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PASSAGE_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_SUCCESS, 12 * STG_S);
    CHECK_INT(stg_breaker_look(&b, 12 * STG_S, NULL), STG_BREAKER_CLOSED);
    CHECK_INT(enter(&b, 12 * STG_S), STG_PASSAGE_OPEN);
    fail(&b, 2, 12 * STG_S); // a row from the start
    CHECK_INT(enter(&b, 12 * STG_S), STG_PASSAGE_OPEN);
    fail(&b, 1, 12 * STG_S);
    check_near(reopening(&b, 12 * STG_S), 22 * STG_S); // not doubled
}

TEST(breaker, doubles_its_time_after_each_failed_probe_up_to_a_limit)
{
    static const stg_ns opens[] = {20, 40, 60, 60, 60};
    stg_breaker b = row();
    stg_ns now = 0, reopen_at;

    fail(&b, 3, 0);
    reopen_at = reopening(&b, now);
    for (size_t i = 0; i < sizeof opens / sizeof *opens; i++) {
        now = reopen_at;
        CHECK_INT(enter(&b, now), STG_PASSAGE_PROBE);
        stg_breaker_report(&b, true, STG_BREAKER_FAILURE, now + STG_S);
        reopen_at = reopening(&b, now + STG_S);
        check_near(reopen_at, now + STG_S + opens[i] * STG_S);
    }
}

TEST(breaker, l2_doubles_for_ever_without_overflow)
{
    stg_breaker b = closed((stg_breaker_options){.rule = STG_BREAKER_ROW,
                                                 .failures = 1,
                                                 .open = STG_MS,
                                                 .open_max = 365 * STG_DAY});
    stg_ns now = 0;

    fail(&b, 1, 0);
    for (int i = 0; i < 100; i++) {
        now = reopening(&b, now);
        CHECK_INT(enter(&b, now), STG_PASSAGE_PROBE);
        stg_breaker_report(&b, true, STG_BREAKER_FAILURE, now);
        check_near(reopening(&b, now) - now,
                   i < 34 ? STG_MS << (i + 1) : 365 * STG_DAY);
    }
    fail(&b, 1, STG_NEVER);
    CHECK_INT(enter(&b, STG_NEVER), STG_PASSAGE_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_FAILURE, STG_NEVER);
    CHECK_INT(enter(&b, STG_NEVER - 1024), STG_PASSAGE_CLOSED);
}

TEST(breaker, listens_to_the_probe_alone_once_it_is_open)
{
    stg_breaker b = row();
    stg_ns reopen_at;

    fail(&b, 3, 0);
    reopen_at = reopening(&b, 0);
    succeed(&b, 5, STG_S); // late answers of attempts that began before
    fail(&b, 5, STG_S);
    CHECK_U64(reopening(&b, STG_S), reopen_at);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PASSAGE_PROBE);
    succeed(&b, 5, 11 * STG_S);
    fail(&b, 5, 11 * STG_S);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PASSAGE_CLOSED);
}

TEST(breaker, leaves_a_probe_that_says_neither_to_the_next_interval)
{
    stg_breaker b = row();

    fail(&b, 3, 0);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PASSAGE_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_NEITHER, 12 * STG_S); // a 429
    CHECK_INT(enter(&b, 12 * STG_S), STG_PASSAGE_CLOSED);
    CHECK_INT(enter(&b, 22 * STG_S), STG_PASSAGE_PROBE);
}

TEST(breaker, frees_the_place_of_a_cancelled_probe)
{
    stg_breaker b = row();

    fail(&b, 3, 0);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PASSAGE_PROBE);
    stg_breaker_abandon(&b, 12 * STG_S);
    CHECK_INT(enter(&b, 12 * STG_S), STG_PASSAGE_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_FAILURE, 12 * STG_S);
    check_near(reopening(&b, 12 * STG_S), 32 * STG_S); // still one doubling
    stg_breaker_abandon(&b, 12 * STG_S); // no probe is out: nothing happens
    check_near(reopening(&b, 12 * STG_S), 32 * STG_S);
    b = row();
    stg_breaker_abandon(&b, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_OPEN);
}

TEST(breaker, takes_late_words_of_a_probe_as_they_fit)
{
    stg_breaker b = row();

    // Two probes out, the first being late: its failure counts once.
    fail(&b, 3, 0);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PASSAGE_PROBE);
    CHECK_INT(enter(&b, 30 * STG_S), STG_PASSAGE_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_FAILURE, 31 * STG_S);
    check_near(reopening(&b, 31 * STG_S), 51 * STG_S);
    stg_breaker_report(&b, true, STG_BREAKER_FAILURE, 32 * STG_S);
    check_near(reopening(&b, 32 * STG_S), 51 * STG_S);
    // A success shows that the remote is back, whoever brings it.
    stg_breaker_report(&b, true, STG_BREAKER_SUCCESS, 33 * STG_S);
    CHECK_INT(enter(&b, 33 * STG_S), STG_PASSAGE_OPEN);
    // Closed again, the second one's word is that of any attempt.
    stg_breaker_report(&b, true, STG_BREAKER_FAILURE, 33 * STG_S);
    fail(&b, 2, 33 * STG_S);
    CHECK_INT(enter(&b, 33 * STG_S), STG_PASSAGE_CLOSED);
}

TEST(breaker, opens_when_enough_of_enough_calls_failed)
{
    stg_breaker b = share();

    fail(&b, 9, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_OPEN); // 9 calls are too few
    fail(&b, 1, 0);
    check_near(reopening(&b, 0), 10 * STG_S);

    b = share();
    succeed(&b, 11, 0);
    fail(&b, 10, STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PASSAGE_OPEN); // 10 of 21
    fail(&b, 1, STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PASSAGE_CLOSED); // 11 of 22
}

TEST(breaker, opens_on_a_share_for_its_first_time)
{
    stg_breaker b = closed((stg_breaker_options){.rule = STG_BREAKER_SHARE,
                                                 .percent = 50,
                                                 .calls = 2,
                                                 .window = STG_S,
                                                 .open = STG_S,
                                                 .open_max = STG_MIN});

    fail(&b, 2, 0);
    check_near(reopening(&b, 0), STG_S);
}

TEST(breaker, forgets_calls_that_left_the_window)
{
    stg_breaker b = share();

    fail(&b, 9, 0);
    fail(&b, 1, 10 * STG_S); // ten slices later the first are gone
    CHECK_INT(enter(&b, 10 * STG_S), STG_PASSAGE_OPEN);
    fail(&b, 9, 19 * STG_S);
    CHECK_INT(enter(&b, 19 * STG_S), STG_PASSAGE_CLOSED);
}

TEST(breaker, counts_anew_after_it_has_closed)
{
    stg_breaker b = share();

    fail(&b, 10, 0);
    CHECK_INT(enter(&b, 10 * STG_S + 1024), STG_PASSAGE_PROBE);
    succeed(&b, 20, 10 * STG_S); // of late attempts: not counted
    fail(&b, 20, 10 * STG_S);
    stg_breaker_report(&b, true, STG_BREAKER_SUCCESS, 12 * STG_S);
    CHECK_INT(enter(&b, 12 * STG_S), STG_PASSAGE_OPEN);
    fail(&b, 9, 13 * STG_S);
    CHECK_INT(enter(&b, 13 * STG_S), STG_PASSAGE_OPEN);
    fail(&b, 1, 13 * STG_S);
    CHECK_INT(enter(&b, 13 * STG_S), STG_PASSAGE_CLOSED);
}

TEST(breaker, does_not_count_what_failed_before_it_closed)
{
    stg_breaker b = closed((stg_breaker_options){.rule = STG_BREAKER_SHARE,
                                                 .percent = 50,
                                                 .calls = 10,
                                                 .window = 10 * STG_S,
                                                 .open = STG_MS,
                                                 .open_max = STG_MS});

    fail(&b, 10, STG_S); // opens for a millisecond, within the same slice
    CHECK_INT(enter(&b, STG_S + 2 * STG_MS), STG_PASSAGE_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_SUCCESS, STG_S + 3 * STG_MS);
    fail(&b, 1, STG_S + 4 * STG_MS);
    CHECK_INT(enter(&b, STG_S + 4 * STG_MS), STG_PASSAGE_OPEN);
    fail(&b, 9, 2 * STG_S);
    CHECK_INT(enter(&b, 2 * STG_S), STG_PASSAGE_OPEN);
    fail(&b, 1, 2 * STG_S);
    CHECK_INT(enter(&b, 2 * STG_S), STG_PASSAGE_CLOSED);
}

TEST(breaker, keeps_the_share_when_a_slice_is_full)
{
    stg_breaker b = closed((stg_breaker_options){.rule = STG_BREAKER_SHARE,
                                                 .percent = 60,
                                                 .calls = 10,
                                                 .window = 10 * STG_S,
                                                 .open = STG_S,
                                                 .open_max = STG_S});

    // Half of them fail, over 600,000 calls: never 60 %.
    for (int i = 0; i < 300000; i++) {
        succeed(&b, 1, 0);
        fail(&b, 1, 0);
        CHECK_INT(enter(&b, 0), STG_PASSAGE_OPEN);
    }
    for (int i = 0; i < 262144 && enter(&b, 0) == STG_PASSAGE_OPEN; i++)
        fail(&b, 1, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_CLOSED);
}

/* The number of a slice is kept in 28 bits. */
/* 262,143 calls are as many as it counts; the next one halves them. */
TEST(breaker, halves_calls_and_failures_alike)
{
    stg_breaker b = share();

    for (int i = 0; i < 262143; i++) {
        if (i % 20 < 11)
            succeed(&b, 1, 0);
        else
            fail(&b, 1, 0);
    }
    CHECK_INT(enter(&b, 0), STG_PASSAGE_OPEN); // 45 %
    fail(&b, 13090, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_OPEN);
    fail(&b, 40, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_CLOSED);
}

TEST(breaker, counts_on_when_the_number_of_its_slice_wraps)
{
    stg_breaker b = closed((stg_breaker_options){.rule = STG_BREAKER_SHARE,
                                                 .percent = 50,
                                                 .calls = 10,
                                                 .window = 10 * STG_MS,
                                                 .open = STG_MS,
                                                 .open_max = STG_MS});
    const stg_ns wrap = (STG_MS << 28) - 5 * STG_MS;

    fail(&b, 5, wrap);
    CHECK_INT(enter(&b, wrap), STG_PASSAGE_OPEN);
    fail(&b, 5, wrap + 9 * STG_MS);
    CHECK_INT(enter(&b, wrap + 9 * STG_MS), STG_PASSAGE_CLOSED);
}

TEST(breaker, counts_a_clock_that_lags_into_the_newer_slice)
{
    stg_breaker b = share();

    fail(&b, 5, 15 * STG_S);
    fail(&b, 4, 5 * STG_S); // the same place in the ring, ten slices ago
    CHECK_INT(enter(&b, 15 * STG_S), STG_PASSAGE_OPEN);
    fail(&b, 1, 15 * STG_S);
    CHECK_INT(enter(&b, 15 * STG_S), STG_PASSAGE_CLOSED);
}

TEST(breaker, judges_outcomes_by_what_they_say_of_the_remote)
{
    static const struct {
        stg_fault fault;
        stg_breaker_verdict verdict;
    } rows[] = {
        {STG_FAULT_NONE, STG_BREAKER_SUCCESS},
        {STG_FAULT_REFUSED, STG_BREAKER_FAILURE},
        {STG_FAULT_UNREACHABLE, STG_BREAKER_FAILURE},
        {STG_FAULT_DNS, STG_BREAKER_FAILURE},
        {STG_FAULT_DNS_TEMPORARY, STG_BREAKER_FAILURE},
        {STG_FAULT_CONNECT_TIMEOUT, STG_BREAKER_FAILURE},
        {STG_FAULT_TLS, STG_BREAKER_FAILURE},
        {STG_FAULT_EGRESS, STG_BREAKER_FAILURE},
        {STG_FAULT_TIMEOUT, STG_BREAKER_FAILURE},
        {STG_FAULT_RESET, STG_BREAKER_FAILURE},
        {STG_FAULT_PROTOCOL, STG_BREAKER_FAILURE},
        {STG_FAULT_5XX, STG_BREAKER_FAILURE},
        {STG_FAULT_3XX, STG_BREAKER_SUCCESS},
        {STG_FAULT_4XX, STG_BREAKER_SUCCESS},
        {STG_FAULT_OVERLOAD, STG_BREAKER_NEITHER},
        {STG_FAULT_CANCELLED, STG_BREAKER_NEITHER},
        {STG_FAULT_INVALID, STG_BREAKER_NEITHER},
        {STG_FAULT_CIRCUIT_OPEN, STG_BREAKER_NEITHER},
        {STG_FAULT_NESTED, STG_BREAKER_NEITHER},
        {STG_FAULT_TOO_LARGE, STG_BREAKER_NEITHER},
        {STG_FAULT_DEADLOCK, STG_BREAKER_SUCCESS},
        {STG_FAULT_SERIALIZATION, STG_BREAKER_SUCCESS},
        {STG_FAULT_LOCK_TIMEOUT, STG_BREAKER_SUCCESS},
        {STG_FAULT_TOO_MANY_CONNECTIONS, STG_BREAKER_FAILURE},
        {STG_FAULT_CONNECTION_LOST, STG_BREAKER_FAILURE},
        {STG_FAULT_SQL, STG_BREAKER_SUCCESS},
        {STG_FAULT_PUSHBACK, STG_BREAKER_SUCCESS},
        {STG_FAULT_EXIT, STG_BREAKER_NEITHER},
        {STG_FAULT_ERROR, STG_BREAKER_NEITHER},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_outcome o = {.fault = rows[i].fault};

        CHECK_INT(stg_breaker_judge(&o), rows[i].verdict);
    }
    for (int code = 1; code <= 16; code++) {
        stg_outcome o = stg_failed_grpc(code, NULL);

        CHECK_INT(stg_breaker_judge(&o), code == 14  ? STG_BREAKER_FAILURE
                                         : code == 1 ? STG_BREAKER_NEITHER
                                                     : STG_BREAKER_SUCCESS);
    }
}

TEST(breaker, refuses_options_out_of_range_and_names_them)
{
    static const stg_ns s = STG_S, too_long = 366 * STG_DAY;
    const struct {
        stg_breaker_options o;
        const char *text;
    } refusals[] = {
        {{.rule = (stg_breaker_rule)3},
         "breaker rule=3 is out of range, wanted one of stg_breaker_rule"},
        {{.failures = 1}, "breaker has no rule: the rest is wanted 0"},
        {{.percent = 1}, "breaker has no rule: the rest is wanted 0"},
        {{.calls = 1}, "breaker has no rule: the rest is wanted 0"},
        {{.window = 1}, "breaker has no rule: the rest is wanted 0"},
        {{.open = 1}, "breaker has no rule: the rest is wanted 0"},
        {{.open_max = 1}, "breaker has no rule: the rest is wanted 0"},
        {{.rule = STG_BREAKER_ROW, .open = s, .open_max = s},
         "breaker failures=0 is out of range, wanted 1 to 1000000"},
        {{.rule = STG_BREAKER_ROW, .failures = 1000001, .open = s},
         "breaker failures=1000001 is out of range, wanted 1 to 1000000"},
        {{.rule = STG_BREAKER_ROW, .failures = 1, .percent = 1, .open = s},
         "breaker counts failures in a row: percent, calls and window are "
         "wanted 0"},
        {{.rule = STG_BREAKER_ROW, .failures = 1, .calls = 1, .open = s},
         "breaker counts failures in a row: percent, calls and window are "
         "wanted 0"},
        {{.rule = STG_BREAKER_ROW, .failures = 1, .window = 1, .open = s},
         "breaker counts failures in a row: percent, calls and window are "
         "wanted 0"},
        {{.rule = STG_BREAKER_ROW, .failures = 1},
         "breaker open=0 is out of range, wanted 1ms to 365d"},
        {{.rule = STG_BREAKER_ROW, .failures = 1, .open = too_long},
         "breaker open=366d is out of range, wanted 1ms to 365d"},
        {{.rule = STG_BREAKER_ROW, .failures = 1, .open = s, .open_max = 1},
         "breaker open_max=1ns is out of range, wanted its first opening to "
         "365d"},
        {{.rule = STG_BREAKER_ROW,
          .failures = 1,
          .open = s,
          .open_max = too_long},
         "breaker open_max=366d is out of range, wanted its first opening to "
         "365d"},
        {{.rule = STG_BREAKER_SHARE},
         "breaker percent=0 is out of range, wanted 1 to 100"},
        {{.rule = STG_BREAKER_SHARE, .percent = 101},
         "breaker percent=101 is out of range, wanted 1 to 100"},
        {{.rule = STG_BREAKER_SHARE, .percent = 1},
         "breaker calls=0 is out of range, wanted 1 to 10000"},
        {{.rule = STG_BREAKER_SHARE, .percent = 1, .calls = 10001},
         "breaker calls=10001 is out of range, wanted 1 to 10000"},
        {{.rule = STG_BREAKER_SHARE, .percent = 1, .calls = 1},
         "breaker window=0 is out of range, wanted 10ms to 1d"},
        {{.rule = STG_BREAKER_SHARE,
          .percent = 1,
          .calls = 1,
          .window = STG_DAY + 1},
         "breaker window=86400000000001ns is out of range, wanted 10ms to 1d"},
        {{.rule = STG_BREAKER_SHARE,
          .percent = 1,
          .calls = 1,
          .window = s,
          .failures = 2},
         "breaker failures=2 is out of range, wanted 0 where a share counts"},
        {{.rule = STG_BREAKER_SHARE, .percent = 1, .calls = 1, .window = s},
         "breaker open=0 is out of range, wanted 1ms to 365d"},
    };
    stg_error err;
    stg_breaker b;

    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        CHECK_INT(stg_breaker_check(&refusals[i].o, &err), STG_INVALID);
        CHECK_STR(err.text, refusals[i].text);
        CHECK_INT(stg_breaker_init(&b, &refusals[i].o), STG_INVALID);
    }
    CHECK_INT(stg_breaker_check(NULL, &err), STG_INVALID);
    CHECK_STR(err.text, "breaker is NULL");
    CHECK_INT(stg_breaker_init(&b, NULL), STG_INVALID);
    CHECK_INT(stg_breaker_init(NULL, &refusals[0].o), STG_INVALID);
}

TEST(breaker, accepts_the_ends_of_its_ranges)
{
    static const stg_breaker_options ends[] = {
        {.rule = STG_BREAKER_ROW,
         .failures = 1,
         .open = STG_MS,
         .open_max = STG_MS},
        {.rule = STG_BREAKER_ROW,
         .failures = 1000000,
         .open = 365 * STG_DAY,
         .open_max = 365 * STG_DAY},
        {.rule = STG_BREAKER_SHARE,
         .percent = 1,
         .calls = 1,
         .window = 10 * STG_MS,
         .open = STG_MS,
         .open_max = STG_S},
        {.rule = STG_BREAKER_SHARE,
         .percent = 100,
         .calls = 10000,
         .window = STG_DAY,
         .open = STG_MS,
         .open_max = STG_S},
    };

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        closed(ends[i]);
}

TEST(breaker, counts_a_row_of_a_million)
{
    stg_breaker b = closed((stg_breaker_options){.rule = STG_BREAKER_ROW,
                                                 .failures = 1000000,
                                                 .open = STG_S,
                                                 .open_max = STG_S});

    fail(&b, 999999, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_OPEN);
    fail(&b, 1, 0);
    CHECK_INT(enter(&b, 0), STG_PASSAGE_CLOSED);
}

/* -- other options --------------------------------------------------------- */

TEST(breaker, stays_open_under_other_numbers_and_another_rule)
{
    stg_breaker old = row(), other = share(), none;
    stg_ns at = 0;

    for (int i = 0; i < 3; i++)
        stg_breaker_report(&old, false, STG_BREAKER_FAILURE, STG_S);
    CHECK_INT(stg_breaker_look(&old, STG_S, &at), STG_BREAKER_OPEN);
    stg_breaker_keep(&other, &old);
    at = 0;
    CHECK_INT(stg_breaker_look(&other, STG_S, &at), STG_BREAKER_OPEN);
    CHECK(at >= 11 * STG_S && at < 11 * STG_S + 2 * STG_MS);
    none = closed((stg_breaker_options){.rule = STG_BREAKER_NONE});
    stg_breaker_keep(&none, &old);
    CHECK_INT(stg_breaker_look(&none, STG_S, NULL), STG_BREAKER_CLOSED);
}

TEST(breaker, goes_on_counting_what_both_count)
{
    stg_breaker old = row(), other = row(), third = share();

    other.options.failures = 4;
    stg_breaker_report(&old, false, STG_BREAKER_FAILURE, STG_S);
    stg_breaker_report(&old, false, STG_BREAKER_FAILURE, STG_S);
    stg_breaker_keep(&other, &old);
    stg_breaker_report(&other, false, STG_BREAKER_FAILURE, STG_S);
    CHECK_INT(stg_breaker_look(&other, STG_S, NULL), STG_BREAKER_CLOSED);
    stg_breaker_report(&other, false, STG_BREAKER_FAILURE, STG_S);
    CHECK(stg_breaker_look(&other, STG_S, NULL) != STG_BREAKER_CLOSED);
    stg_breaker_keep(&third, &old); // failures in a row are no share
    CHECK_U64(stg_breaker_look(&third, STG_S, NULL), STG_BREAKER_CLOSED);
    stg_breaker_report(&third, false, STG_BREAKER_FAILURE, STG_S);
    CHECK_INT(stg_breaker_look(&third, STG_S, NULL), STG_BREAKER_CLOSED);
}

TEST(breaker, goes_on_with_its_share)
{
    stg_breaker old = share(), other = share();

    other.options.percent = 60;
    for (int i = 0; i < 9; i++)
        stg_breaker_report(&old, false,
                           i < 6 ? STG_BREAKER_FAILURE : STG_BREAKER_SUCCESS,
                           STG_S);
    stg_breaker_keep(&other, &old);
    stg_breaker_report(&other, false, STG_BREAKER_FAILURE, STG_S);
    CHECK(stg_breaker_look(&other, STG_S, NULL) != STG_BREAKER_CLOSED);
}
