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
        stg_breaker_report(b, false, STG_BREAKER_FAILURE, now, now);
}

static void succeed(stg_breaker *b, int times, stg_ns now)
{
    while (times-- > 0)
        stg_breaker_report(b, false, STG_BREAKER_SUCCESS, now, now);
}

static stg_permit enter(stg_breaker *b, stg_ns now)
{
    stg_ns reopen_at = 0;

    return stg_breaker_enter(b, now, &reopen_at);
}

static stg_ns reopening(stg_breaker *b, stg_ns now)
{
    stg_ns reopen_at = 0;

    CHECK_INT(stg_breaker_enter(b, now, &reopen_at), STG_PERMIT_DENIED);
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
    CHECK_INT(enter(&b, 0), STG_PERMIT_GRANTED);
    CHECK_INT(stg_breaker_look(&b, 0, NULL), STG_BREAKER_CLOSED);
}

TEST(breaker, opens_after_failures_in_a_row)
{
    stg_breaker b = row();
    stg_ns reopen_at = 0;

    fail(&b, 2, 0);
    CHECK_INT(enter(&b, 0), STG_PERMIT_GRANTED);
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
    CHECK_INT(enter(&b, 0), STG_PERMIT_GRANTED);
    fail(&b, 1, 0);
    stg_breaker_report(&b, false, STG_BREAKER_NEITHER, 0, 0);
    fail(&b, 1, 0);
    stg_breaker_report(&b, false, STG_BREAKER_NEITHER, 0, 0);
    CHECK_INT(enter(&b, 0), STG_PERMIT_GRANTED);
    fail(&b, 1, 0);
    CHECK_INT(enter(&b, 0), STG_PERMIT_DENIED);
}

TEST(breaker, i22_lets_one_probe_pass_an_interval)
{
    stg_breaker b = row();

    fail(&b, 3, 0);
    CHECK_INT(enter(&b, 10 * STG_S - 1), STG_PERMIT_DENIED);
    CHECK_INT(enter(&b, 10 * STG_S + 1024), STG_PERMIT_PROBE);
    CHECK_INT(stg_breaker_look(&b, 11 * STG_S, NULL), STG_BREAKER_HALF_OPEN);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PERMIT_DENIED);
    check_near(reopening(&b, 11 * STG_S), 20 * STG_S + 1024);
    // The probe is never heard of again: an interval later the next one goes.
    CHECK_INT(enter(&b, 20 * STG_S + 4096), STG_PERMIT_PROBE);
    CHECK_INT(enter(&b, 20 * STG_S + 4096), STG_PERMIT_DENIED);
}

TEST(breaker, closes_when_the_probe_succeeds)
{
    stg_breaker b = row();

    fail(&b, 3, 0);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PERMIT_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_SUCCESS, 12 * STG_S, 12 * STG_S);
    CHECK_INT(stg_breaker_look(&b, 12 * STG_S, NULL), STG_BREAKER_CLOSED);
    CHECK_INT(enter(&b, 12 * STG_S), STG_PERMIT_GRANTED);
    fail(&b, 2, 12 * STG_S); // a row from the start
    CHECK_INT(enter(&b, 12 * STG_S), STG_PERMIT_GRANTED);
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
        CHECK_INT(enter(&b, now), STG_PERMIT_PROBE);
        stg_breaker_report(&b, true, STG_BREAKER_FAILURE, now + STG_S,
                           now + STG_S);
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
        CHECK_INT(enter(&b, now), STG_PERMIT_PROBE);
        stg_breaker_report(&b, true, STG_BREAKER_FAILURE, now, now);
        check_near(reopening(&b, now) - now,
                   i < 34 ? STG_MS << (i + 1) : 365 * STG_DAY);
    }
    fail(&b, 1, STG_NEVER);
    CHECK_INT(enter(&b, STG_NEVER), STG_PERMIT_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_FAILURE, STG_NEVER, STG_NEVER);
    CHECK_INT(enter(&b, STG_NEVER - 1024), STG_PERMIT_DENIED);
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
    CHECK_INT(enter(&b, 11 * STG_S), STG_PERMIT_PROBE);
    succeed(&b, 5, 11 * STG_S);
    fail(&b, 5, 11 * STG_S);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PERMIT_DENIED);
}

TEST(breaker, leaves_a_probe_that_says_neither_to_the_next_interval)
{
    stg_breaker b = row();

    fail(&b, 3, 0);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PERMIT_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_NEITHER, 12 * STG_S,
                       12 * STG_S); // a 429
    CHECK_INT(enter(&b, 12 * STG_S), STG_PERMIT_DENIED);
    CHECK_INT(enter(&b, 22 * STG_S), STG_PERMIT_PROBE);
}

TEST(breaker, frees_the_place_of_a_cancelled_probe)
{
    stg_breaker b = row();

    fail(&b, 3, 0);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PERMIT_PROBE);
    stg_breaker_abandon(&b, 12 * STG_S);
    CHECK_INT(enter(&b, 12 * STG_S), STG_PERMIT_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_FAILURE, 12 * STG_S, 12 * STG_S);
    check_near(reopening(&b, 12 * STG_S), 32 * STG_S); // still one doubling
    stg_breaker_abandon(&b, 12 * STG_S); // no probe is out: nothing happens
    check_near(reopening(&b, 12 * STG_S), 32 * STG_S);
    b = row();
    stg_breaker_abandon(&b, 0);
    CHECK_INT(enter(&b, 0), STG_PERMIT_GRANTED);
}

TEST(breaker, takes_late_words_of_a_probe_as_they_fit)
{
    stg_breaker b = row();

    // Two probes out, the first being late: its failure counts once.
    fail(&b, 3, 0);
    CHECK_INT(enter(&b, 11 * STG_S), STG_PERMIT_PROBE);
    CHECK_INT(enter(&b, 30 * STG_S), STG_PERMIT_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_FAILURE, 31 * STG_S, 31 * STG_S);
    check_near(reopening(&b, 31 * STG_S), 51 * STG_S);
    stg_breaker_report(&b, true, STG_BREAKER_FAILURE, 32 * STG_S, 32 * STG_S);
    check_near(reopening(&b, 32 * STG_S), 51 * STG_S);
    // A success shows that the remote is back, whoever brings it.
    stg_breaker_report(&b, true, STG_BREAKER_SUCCESS, 33 * STG_S, 33 * STG_S);
    CHECK_INT(enter(&b, 33 * STG_S), STG_PERMIT_GRANTED);
    // Closed again, the second one's word is that of any attempt.
    stg_breaker_report(&b, true, STG_BREAKER_FAILURE, 33 * STG_S, 33 * STG_S);
    fail(&b, 2, 33 * STG_S);
    CHECK_INT(enter(&b, 33 * STG_S), STG_PERMIT_DENIED);
}

TEST(breaker, opens_when_enough_of_enough_calls_failed)
{
    stg_breaker b = share();

    fail(&b, 9, 0);
    CHECK_INT(enter(&b, 0), STG_PERMIT_GRANTED); // 9 calls are too few
    fail(&b, 1, 0);
    check_near(reopening(&b, 0), 10 * STG_S);

    b = share();
    succeed(&b, 11, 0);
    fail(&b, 10, STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_GRANTED); // 10 of 21
    fail(&b, 1, STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_DENIED); // 11 of 22
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
    CHECK_INT(enter(&b, 10 * STG_S), STG_PERMIT_GRANTED);
    fail(&b, 9, 19 * STG_S);
    CHECK_INT(enter(&b, 19 * STG_S), STG_PERMIT_DENIED);
}

TEST(breaker, counts_anew_after_it_has_closed)
{
    stg_breaker b = share();

    fail(&b, 10, 0);
    CHECK_INT(enter(&b, 10 * STG_S + 1024), STG_PERMIT_PROBE);
    succeed(&b, 20, 10 * STG_S); // of late attempts: not counted
    fail(&b, 20, 10 * STG_S);
    stg_breaker_report(&b, true, STG_BREAKER_SUCCESS, 12 * STG_S, 12 * STG_S);
    CHECK_INT(enter(&b, 12 * STG_S), STG_PERMIT_GRANTED);
    fail(&b, 9, 13 * STG_S);
    CHECK_INT(enter(&b, 13 * STG_S), STG_PERMIT_GRANTED);
    fail(&b, 1, 13 * STG_S);
    CHECK_INT(enter(&b, 13 * STG_S), STG_PERMIT_DENIED);
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
    CHECK_INT(enter(&b, STG_S + 2 * STG_MS), STG_PERMIT_PROBE);
    stg_breaker_report(&b, true, STG_BREAKER_SUCCESS, STG_S + 3 * STG_MS,
                       STG_S + 3 * STG_MS);
    fail(&b, 1, STG_S + 4 * STG_MS);
    CHECK_INT(enter(&b, STG_S + 4 * STG_MS), STG_PERMIT_GRANTED);
    fail(&b, 9, 2 * STG_S);
    CHECK_INT(enter(&b, 2 * STG_S), STG_PERMIT_GRANTED);
    fail(&b, 1, 2 * STG_S);
    CHECK_INT(enter(&b, 2 * STG_S), STG_PERMIT_DENIED);
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
        CHECK_INT(enter(&b, 0), STG_PERMIT_GRANTED);
    }
    for (int i = 0; i < 262144 && enter(&b, 0) == STG_PERMIT_GRANTED; i++)
        fail(&b, 1, 0);
    CHECK_INT(enter(&b, 0), STG_PERMIT_DENIED);
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
    CHECK_INT(enter(&b, 0), STG_PERMIT_GRANTED); // 45 %
    fail(&b, 13090, 0);
    CHECK_INT(enter(&b, 0), STG_PERMIT_GRANTED);
    fail(&b, 40, 0);
    CHECK_INT(enter(&b, 0), STG_PERMIT_DENIED);
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
    CHECK_INT(enter(&b, wrap), STG_PERMIT_GRANTED);
    fail(&b, 5, wrap + 9 * STG_MS);
    CHECK_INT(enter(&b, wrap + 9 * STG_MS), STG_PERMIT_DENIED);
}

/* However long the machine has been up, when it is made or goes on. */
TEST(breaker, counts_its_first_calls_at_any_time)
{
    for (uint64_t seed = 0; seed < seeds(2000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_ns now = stg_rng_upto(&rng, 1000 * STG_DAY);
        stg_breaker b = share(), last = share();

        b.options.window = last.options.window =
            10 * STG_MS + stg_rng_upto(&rng, STG_S);
        fail(&b, 10, now);
        CHECK_FROM(seed, enter(&b, now) == STG_PERMIT_DENIED);
        fail(&last, 9, now);
        now += STG_MIN + stg_rng_upto(&rng, 1000 * STG_DAY);
        fail(&last, 9, now);
        CHECK_FROM(seed, enter(&last, now) == STG_PERMIT_GRANTED);
        fail(&last, 1, now);
        CHECK_FROM(seed, enter(&last, now) == STG_PERMIT_DENIED);
    }
}

/* The number 0 of a slice that was never begun is five ahead, in their ring. */
TEST(breaker, counts_in_a_slice_that_was_never_begun)
{
    stg_breaker b = share();
    const stg_ns at = (STG_MS << 28) - 5 * STG_MS;

    b.options.window = 10 * STG_MS;
    fail(&b, 9, at);
    fail(&b, 1, at + 11 * STG_MS); // the first are gone
    CHECK_INT(enter(&b, at + 11 * STG_MS), STG_PERMIT_GRANTED);
    fail(&b, 9, at + 11 * STG_MS);
    CHECK_INT(enter(&b, at + 11 * STG_MS), STG_PERMIT_DENIED);
}

TEST(breaker, counts_a_clock_that_lags_into_the_newer_slice)
{
    stg_breaker b = share();

    fail(&b, 5, 15 * STG_S);
    fail(&b, 4, 5 * STG_S); // the same place in the ring, ten slices ago
    CHECK_INT(enter(&b, 15 * STG_S), STG_PERMIT_GRANTED);
    fail(&b, 1, 15 * STG_S);
    CHECK_INT(enter(&b, 15 * STG_S), STG_PERMIT_DENIED);
}

TEST(breaker, judges_outcomes_by_what_they_say_of_the_remote)
{
    static const struct {
        stg_fault fault;
        stg_breaker_verdict verdict;
    } rows[] = {
        {STG_FAULT_NONE, STG_BREAKER_SUCCESS},
        {STG_FAULT_REFUSED, STG_BREAKER_UNREACHED},
        {STG_FAULT_UNREACHABLE, STG_BREAKER_UNREACHED},
        {STG_FAULT_DNS, STG_BREAKER_UNREACHED},
        {STG_FAULT_DNS_TEMPORARY, STG_BREAKER_UNREACHED},
        {STG_FAULT_CONNECT_TIMEOUT, STG_BREAKER_UNREACHED},
        {STG_FAULT_TLS, STG_BREAKER_UNREACHED},
        {STG_FAULT_TLS_TIMEOUT, STG_BREAKER_UNREACHED},
        {STG_FAULT_TLS_HANDSHAKE, STG_BREAKER_UNREACHED},
        {STG_FAULT_EGRESS, STG_BREAKER_UNREACHED},
        {STG_FAULT_TIMEOUT, STG_BREAKER_FAILURE},
        {STG_FAULT_RESET, STG_BREAKER_FAILURE},
        {STG_FAULT_PROTOCOL, STG_BREAKER_FAILURE},
        {STG_FAULT_5XX, STG_BREAKER_FAILURE},
        {STG_FAULT_3XX, STG_BREAKER_SUCCESS},
        {STG_FAULT_4XX, STG_BREAKER_SUCCESS},
        {STG_FAULT_OVERLOAD, STG_BREAKER_BUSY},
        {STG_FAULT_CANCELLED, STG_BREAKER_NEITHER},
        {STG_FAULT_INVALID, STG_BREAKER_NEITHER},
        {STG_FAULT_CIRCUIT_OPEN, STG_BREAKER_NEITHER},
        {STG_FAULT_NESTED, STG_BREAKER_NEITHER},
        {STG_FAULT_TOO_LARGE, STG_BREAKER_NEITHER},
        {STG_FAULT_LOOP, STG_BREAKER_NEITHER},
        {STG_FAULT_MESSAGE_EXPIRED, STG_BREAKER_NEITHER},
        {STG_FAULT_TEMPLATE, STG_BREAKER_NEITHER},
        {STG_FAULT_NO_FILES, STG_BREAKER_NEITHER},
        {STG_FAULT_NO_PORTS, STG_BREAKER_NEITHER},
        {STG_FAULT_NO_BUFFERS, STG_BREAKER_NEITHER},
        {STG_FAULT_INTERRUPTED, STG_BREAKER_NEITHER},
        {STG_FAULT_DEADLOCK, STG_BREAKER_SUCCESS},
        {STG_FAULT_SERIALIZATION, STG_BREAKER_SUCCESS},
        {STG_FAULT_LOCK_TIMEOUT, STG_BREAKER_SUCCESS},
        {STG_FAULT_TOO_MANY_CONNECTIONS, STG_BREAKER_FAILURE},
        {STG_FAULT_CONNECTION_LOST, STG_BREAKER_FAILURE},
        {STG_FAULT_OUTCOME_UNKNOWN, STG_BREAKER_FAILURE},
        {STG_FAULT_SQL, STG_BREAKER_SUCCESS},
        {STG_FAULT_PUSHBACK, STG_BREAKER_SUCCESS},
        {STG_FAULT_TRANSIENT, STG_BREAKER_FAILURE},
        {STG_FAULT_REJECTED, STG_BREAKER_SUCCESS},
        {STG_FAULT_EXIT, STG_BREAKER_NEITHER},
        {STG_FAULT_ERROR, STG_BREAKER_NEITHER},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_outcome o = {.fault = rows[i].fault};

        CHECK_INT(stg_breaker_classify(&o), rows[i].verdict);
    }
    for (int code = 1; code <= 16; code++) {
        stg_outcome o = stg_failed_grpc(code, NULL);

        CHECK_INT(stg_breaker_classify(&o), code == 14  ? STG_BREAKER_FAILURE
                                            : code == 1 ? STG_BREAKER_NEITHER
                                                        : STG_BREAKER_SUCCESS);
    }
    // Numbers of other protocols are not gRPC's.
    for (int code = 1; code <= 14; code += 13) {
        stg_outcome o = {.fault = STG_FAULT_REJECTED,
                         .code_kind = STG_CODE_KAFKA,
                         .code = (uint32_t)code};

        CHECK_INT(stg_breaker_classify(&o), STG_BREAKER_SUCCESS);
    }
}

#define NOT_SLOW                                                               \
    "breaker-slow counts calls in the window of a breaker by share: expected " \
    "none, or one such as breaker=50%/20/10s:30s"
#define SHARE(slow_percent_, slow_after_)                                     \
    {                                                                         \
        .rule = STG_BREAKER_SHARE, .percent = 1, .calls = 1, .window = STG_S, \
        .open = STG_S, .open_max = STG_S, .slow_percent = (slow_percent_),    \
        .slow_after = (slow_after_)                                           \
    }

TEST(breaker, refuses_options_out_of_range_and_names_them)
{
    static const stg_ns s = STG_S, too_long = 366 * STG_DAY;
    const struct {
        stg_breaker_options o;
        const char *text;
    } refusals[] = {
        {{.rule = (stg_breaker_rule)3},
         "breaker rule=3 is out of range, expected one of stg_breaker_rule"},
        {{.failures = 1}, "breaker has no rule: expected 0 for the rest"},
        {{.percent = 1}, "breaker has no rule: expected 0 for the rest"},
        {{.calls = 1}, "breaker has no rule: expected 0 for the rest"},
        {{.window = 1}, "breaker has no rule: expected 0 for the rest"},
        {{.open = 1}, "breaker has no rule: expected 0 for the rest"},
        {{.open_max = 1}, "breaker has no rule: expected 0 for the rest"},
        {{.connects = 1},
         "breaker-connect=1 is out of range, expected none where breaker=none"},
        {{.rule = STG_BREAKER_ROW,
          .failures = 1,
          .connects = 1000001,
          .open = s,
          .open_max = s},
         "breaker-connect=1000001 is out of range, expected none, or 1 to "
         "1000000"},
        {{.rule = STG_BREAKER_ROW, .open = s, .open_max = s},
         "breaker failures=0 is out of range, expected 1 to 1000000"},
        {{.rule = STG_BREAKER_ROW, .failures = 1000001, .open = s},
         "breaker failures=1000001 is out of range, expected 1 to 1000000"},
        {{.rule = STG_BREAKER_ROW, .failures = 1, .percent = 1, .open = s},
         "breaker counts failures in a row: percent, calls and window are "
         "expected to be 0"},
        {{.rule = STG_BREAKER_ROW, .failures = 1, .calls = 1, .open = s},
         "breaker counts failures in a row: percent, calls and window are "
         "expected to be 0"},
        {{.rule = STG_BREAKER_ROW, .failures = 1, .window = 1, .open = s},
         "breaker counts failures in a row: percent, calls and window are "
         "expected to be 0"},
        {{.rule = STG_BREAKER_ROW, .failures = 1},
         "breaker open=0 is out of range, expected 1ms to 365d"},
        {{.rule = STG_BREAKER_ROW, .failures = 1, .open = too_long},
         "breaker open=366d is out of range, expected 1ms to 365d"},
        {{.rule = STG_BREAKER_ROW, .failures = 1, .open = s, .open_max = 1},
         "breaker open_max=1ns is out of range, expected its first opening to "
         "365d"},
        {{.rule = STG_BREAKER_ROW,
          .failures = 1,
          .open = s,
          .open_max = too_long},
         "breaker open_max=366d is out of range, expected its first opening to "
         "365d"},
        {{.rule = STG_BREAKER_SHARE},
         "breaker percent=0 is out of range, expected 1 to 100"},
        {{.rule = STG_BREAKER_SHARE, .percent = 101},
         "breaker percent=101 is out of range, expected 1 to 100"},
        {{.rule = STG_BREAKER_SHARE, .percent = 1},
         "breaker calls=0 is out of range, expected 1 to 10000"},
        {{.rule = STG_BREAKER_SHARE, .percent = 1, .calls = 10001},
         "breaker calls=10001 is out of range, expected 1 to 10000"},
        {{.rule = STG_BREAKER_SHARE, .percent = 1, .calls = 1},
         "breaker window=0 is out of range, expected 10ms to 1d"},
        {{.rule = STG_BREAKER_SHARE,
          .percent = 1,
          .calls = 1,
          .window = STG_DAY + 1},
         "breaker window=86400000000001ns is out of range, expected 10ms to 1d"},
        {{.rule = STG_BREAKER_SHARE,
          .percent = 1,
          .calls = 1,
          .window = s,
          .failures = 2},
         "breaker failures=2 is out of range, expected 0 where a share counts"},
        {{.rule = STG_BREAKER_SHARE, .percent = 1, .calls = 1, .window = s},
         "breaker open=0 is out of range, expected 1ms to 365d"},
        {{.probes = 2},
         "breaker-probes=2 is out of range, expected 1 where breaker=none"},
        {{.probes_good = 1}, "breaker has no rule: expected 0 for the rest"},
        {{.slow_percent = 1}, NOT_SLOW},
        {{.slow_after = s}, NOT_SLOW},
        {{.rule = STG_BREAKER_ROW,
          .failures = 1,
          .open = s,
          .open_max = s,
          .slow_percent = 1},
         NOT_SLOW},
        {{.rule = STG_BREAKER_ROW,
          .failures = 1,
          .open = s,
          .open_max = s,
          .slow_after = s},
         NOT_SLOW},
        {SHARE(101, s),
         "breaker-slow percent=101 is out of range, expected 1 to 100"},
        {SHARE(0, s),
         "breaker-slow percent=0 is out of range, expected 1 to 100"},
        {SHARE(1, 0),
         "breaker-slow duration=0 is out of range, expected 1us to 365d"},
        {SHARE(1, 999),
         "breaker-slow duration=999ns is out of range, expected 1us to 365d"},
        {SHARE(1, 365 * STG_DAY + 1),
         "breaker-slow duration=31536000000000001ns is out of range, expected 1us "
         "to 365d"},
        {{.rule = STG_BREAKER_ROW,
          .failures = 1,
          .open = s,
          .open_max = s,
          .probes = 1,
          .probes_good = 1},
         "breaker-probes=1 is out of range, expected 2 to 31, or 0 for one"},
        {{.rule = STG_BREAKER_ROW,
          .failures = 1,
          .open = s,
          .open_max = s,
          .probes = 32,
          .probes_good = 1},
         "breaker-probes=32 is out of range, expected 2 to 31, or 0 for one"},
        {{.rule = STG_BREAKER_ROW,
          .failures = 1,
          .open = s,
          .open_max = s,
          .probes = 3,
          .probes_good = 4},
         "breaker-probes good=4 is out of range, expected 1 to the probes, or 0 "
         "for one"},
        {{.rule = STG_BREAKER_ROW,
          .failures = 1,
          .open = s,
          .open_max = s,
          .probes = 3},
         "breaker-probes good=0 is out of range, expected 1 to the probes, or 0 "
         "for one"},
        {{.rule = STG_BREAKER_ROW,
          .failures = 1,
          .open = s,
          .open_max = s,
          .probes_good = 1},
         "breaker-probes good=1 is out of range, expected 1 to the probes, or 0 "
         "for one"},
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
         .connects = 1000000,
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
         .open_max = STG_S,
         .probes = 31,
         .probes_good = 31},
        {.rule = STG_BREAKER_ROW,
         .failures = 1,
         .open = STG_MS,
         .open_max = STG_MS,
         .probes = 2,
         .probes_good = 1},
        SHARE(1, STG_US),
        SHARE(100, 365 * STG_DAY),
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
    CHECK_INT(enter(&b, 0), STG_PERMIT_GRANTED);
    fail(&b, 1, 0);
    CHECK_INT(enter(&b, 0), STG_PERMIT_DENIED);
}

/* A window of 10 s is ten slices of a second: this one and nine before. */
TEST(breaker, counts_exactly_ten_slices)
{
    for (stg_ns s = 0; s < 20; s++) {
        stg_breaker near = share(), far = share();
        stg_ns end = (s + STG_BREAKER_SLICES) * STG_S;

        fail(&near, 9, s * STG_S);
        fail(&near, 1, end - 1);
        CHECK_FROM(s, enter(&near, end) == STG_PERMIT_DENIED);
        fail(&far, 9, s * STG_S + STG_S - 1);
        fail(&far, 1, end);
        CHECK_FROM(s, enter(&far, end) == STG_PERMIT_GRANTED);
    }
}

/* The number of a slice comes again after 2^28 of them. What is older than half
 * of that is taken for newer; up to then, nothing old is. */
TEST(breaker, takes_no_old_slice_for_a_new_one)
{
    const stg_ns half = UINT64_C(1) << 27;

    for (int bits = 4; bits <= 27; bits++) {
        stg_ns slices = (UINT64_C(1) << bits) - 1;
        stg_breaker b = share();
        stg_ns later;

        b.options.window = 10 * STG_MS; // slices of 1 ms
        later = STG_S + slices / 10 * 10 * STG_MS;
        fail(&b, 9, STG_S);
        fail(&b, 9, later);
        CHECK_FROM(bits, enter(&b, later) == STG_PERMIT_GRANTED);
        fail(&b, 1, later);
        CHECK_FROM(bits, enter(&b, later) == STG_PERMIT_DENIED);
        b = share();
        b.options.window = 10 * STG_MS;
        fail(&b, 9, STG_S);
        fail(&b, 9, STG_S + half * STG_MS);
        CHECK_FROM(bits, enter(&b, STG_DAY) == STG_PERMIT_GRANTED);
    }
}

/* Times are units of 1024 ns, rounded up. */
TEST(breaker, reopens_with_the_next_unit)
{
    static const struct {
        stg_ns now, reopen_at;
    } rows[] = {{448, 1000448},
                {449, 1001472},
                {1471, 1001472},
                {1472, 1001472},
                {1473, 1002496}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_breaker b = closed((stg_breaker_options){.rule = STG_BREAKER_ROW,
                                                     .failures = 1,
                                                     .open = STG_MS,
                                                     .open_max = STG_MS});

        fail(&b, 1, rows[i].now);
        CHECK_U64(reopening(&b, rows[i].now), rows[i].reopen_at);
        CHECK_INT(enter(&b, rows[i].reopen_at), STG_PERMIT_PROBE);
    }
}

/* -- connects -------------------------------------------------------------- */

/* 20 in a row, or 3 that could not connect; open for 200 ms, up to 30 s. */
static stg_breaker broadcast(void)
{
    return closed((stg_breaker_options){.rule = STG_BREAKER_ROW,
                                        .failures = 20,
                                        .connects = 3,
                                        .open = 200 * STG_MS,
                                        .open_max = 30 * STG_S});
}

static void report_of(stg_breaker *b, int times, stg_breaker_verdict v,
                      stg_ns now)
{
    while (times-- > 0)
        stg_breaker_report(b, false, v, now, now);
}

TEST(breaker, opens_after_connect_faults_in_a_row)
{
    stg_breaker b = broadcast();

    report_of(&b, 2, STG_BREAKER_UNREACHED, STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_GRANTED);
    report_of(&b, 1, STG_BREAKER_UNREACHED, STG_S);
    check_near(reopening(&b, STG_S), STG_S + 200 * STG_MS);
}

/* Whatever comes over a connection ends the row; what was ours does not. */
TEST(breaker, starts_the_row_of_connect_faults_anew_after_a_connect)
{
    static const stg_breaker_verdict connected[] = {
        STG_BREAKER_SUCCESS, STG_BREAKER_FAILURE, STG_BREAKER_BUSY};
    stg_breaker b;

    for (size_t i = 0; i < sizeof connected / sizeof *connected; i++) {
        b = broadcast();
        report_of(&b, 2, STG_BREAKER_UNREACHED, STG_S);
        report_of(&b, 1, connected[i], 2 * STG_S);
        report_of(&b, 2, STG_BREAKER_UNREACHED, 3 * STG_S);
        CHECK_INT(enter(&b, 3 * STG_S), STG_PERMIT_GRANTED);
        report_of(&b, 1, STG_BREAKER_UNREACHED, 3 * STG_S);
        CHECK_INT(enter(&b, 3 * STG_S), STG_PERMIT_DENIED);
    }
    b = broadcast();
    report_of(&b, 2, STG_BREAKER_UNREACHED, STG_S);
    report_of(&b, 9, STG_BREAKER_NEITHER, STG_S);
    report_of(&b, 1, STG_BREAKER_UNREACHED, STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_DENIED);
}

/* One dead backend of three: at 1,000 calls a second rows of three are there
 * all the time, and so are connects. */
TEST(breaker, stays_closed_while_anything_connects)
{
    stg_breaker b = broadcast();

    for (stg_ns now = STG_S; now < 2 * STG_S; now += 50 * STG_MS) {
        report_of(&b, 1, STG_BREAKER_SUCCESS, now);
        report_of(&b, 10, STG_BREAKER_UNREACHED, now + 49 * STG_MS);
        CHECK_INT(enter(&b, now), STG_PERMIT_GRANTED);
    }
    report_of(&b, 1, STG_BREAKER_SUCCESS, 3 * STG_S);
    report_of(&b, 5, STG_BREAKER_UNREACHED, 3 * STG_S + 99 * STG_MS);
    CHECK_INT(enter(&b, 3 * STG_S + 99 * STG_MS), STG_PERMIT_GRANTED);
    // A unit of the clock of connects is a bit more than 1 ms.
    report_of(&b, 1, STG_BREAKER_UNREACHED, 3 * STG_S + 102 * STG_MS);
    CHECK_INT(enter(&b, 3 * STG_S + 102 * STG_MS), STG_PERMIT_DENIED);
}

/* The last connect is taken for the end of its unit of 1048576 ns; the first
 * instant there is, too. */
TEST(breaker, opens_when_nothing_has_connected_for_100_ms)
{
    const stg_ns at = 1048576 + 100 * STG_MS;
    stg_breaker b = broadcast();

    report_of(&b, 1, STG_BREAKER_SUCCESS, 0);
    report_of(&b, 5, STG_BREAKER_UNREACHED, 1);
    report_of(&b, 1, STG_BREAKER_UNREACHED, at - 1);
    CHECK_INT(enter(&b, at - 1), STG_PERMIT_GRANTED);
    report_of(&b, 1, STG_BREAKER_UNREACHED, at);
    CHECK_INT(enter(&b, at), STG_PERMIT_DENIED);
    // Nothing ever did: no 100 ms are waited for.
    b = broadcast();
    report_of(&b, 3, STG_BREAKER_UNREACHED, 1);
    CHECK_INT(enter(&b, 1), STG_PERMIT_DENIED);
    // Two failures after an hour without connects are not three in a row.
    b = broadcast();
    report_of(&b, 1, STG_BREAKER_SUCCESS, 0);
    report_of(&b, 2, STG_BREAKER_UNREACHED, STG_HOUR);
    CHECK_INT(enter(&b, STG_HOUR), STG_PERMIT_GRANTED);
    // At the end of all time connects are seen as well.
    b = broadcast();
    report_of(&b, 1, STG_BREAKER_SUCCESS, STG_NEVER - 1);
    report_of(&b, 5, STG_BREAKER_UNREACHED, STG_NEVER - 1);
    CHECK_INT(enter(&b, STG_NEVER - 1), STG_PERMIT_GRANTED);
}

TEST(breaker, counts_no_connects_where_none_are_wanted)
{
    stg_breaker b = broadcast();

    b.options.connects = 0;
    report_of(&b, 19, STG_BREAKER_UNREACHED, STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_GRANTED);
    report_of(&b, 1, STG_BREAKER_UNREACHED, STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_DENIED);
}

TEST(breaker, opens_after_connect_faults_beside_a_share)
{
    stg_breaker b = share();

    b.options.connects = 2;
    report_of(&b, 1, STG_BREAKER_UNREACHED, STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_GRANTED);
    report_of(&b, 1, STG_BREAKER_UNREACHED, STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_DENIED);
}

/* 200 ms, 400, 800 ... and from the beginning after a success. */
TEST(breaker, begins_its_doublings_anew_after_a_success)
{
    stg_breaker b = broadcast();
    stg_ns now = STG_S;

    for (int round = 0; round < 3; round++) {
        stg_ns open = 200 * STG_MS;

        report_of(&b, 3, STG_BREAKER_UNREACHED, now);
        for (int i = 0; i < 5; i++) {
            check_near(reopening(&b, now), now + open);
            now += open + STG_MS;
            CHECK_INT(enter(&b, now), STG_PERMIT_PROBE);
            stg_breaker_report(&b, true, STG_BREAKER_UNREACHED, now, now);
            open *= 2;
        }
        now += open + STG_MS;
        CHECK_INT(enter(&b, now), STG_PERMIT_PROBE);
        stg_breaker_report(&b, true, STG_BREAKER_SUCCESS, now, now);
        CHECK_INT(enter(&b, now), STG_PERMIT_GRANTED);
        now += 110 * STG_MS;
    }
}

/* A caller whose clock is behind neither moves the last connect back, nor
 * takes it for long ago. */
TEST(breaker, takes_no_step_back_of_a_clock_for_a_silence)
{
    stg_breaker b = broadcast();

    report_of(&b, 1, STG_BREAKER_SUCCESS, 10 * STG_S);
    report_of(&b, 1, STG_BREAKER_SUCCESS, 5 * STG_S);
    report_of(&b, 9, STG_BREAKER_UNREACHED, 5 * STG_S);
    report_of(&b, 9, STG_BREAKER_UNREACHED, 10 * STG_S + 90 * STG_MS);
    CHECK_INT(enter(&b, 10 * STG_S), STG_PERMIT_GRANTED);
    report_of(&b, 1, STG_BREAKER_UNREACHED, 10 * STG_S + 110 * STG_MS);
    CHECK_INT(enter(&b, 10 * STG_S + 110 * STG_MS), STG_PERMIT_DENIED);
}

TEST(breaker, l2_counts_connects_without_overflow)
{
    stg_breaker b = closed((stg_breaker_options){.rule = STG_BREAKER_ROW,
                                                 .failures = 1000000,
                                                 .connects = 1000000,
                                                 .open = STG_S,
                                                 .open_max = STG_S});

    report_of(&b, 1, STG_BREAKER_BUSY, STG_NEVER - STG_S);
    for (int i = 0; i < 3; i++) {
        report_of(&b, 999999, STG_BREAKER_UNREACHED, STG_NEVER - STG_S);
        report_of(&b, 1, STG_BREAKER_BUSY, STG_NEVER);
        CHECK_INT(enter(&b, STG_NEVER), STG_PERMIT_GRANTED);
        b.state = 0;
    }
    b.options.failures = 0; // the row is no matter here
    b.options.rule = STG_BREAKER_NONE;
    b.reach = 0;
    report_of(&b, 999999, STG_BREAKER_UNREACHED, STG_NEVER - 2 * STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_GRANTED);
    report_of(&b, 1100000, STG_BREAKER_UNREACHED, STG_NEVER - 2 * STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_DENIED);
    b.state = 0;
    report_of(&b, 1, STG_BREAKER_UNREACHED, STG_NEVER - 2 * STG_S);
    CHECK_INT(enter(&b, STG_S), STG_PERMIT_DENIED);
}

TEST(breaker, keeps_its_row_of_connect_faults_under_other_options)
{
    stg_breaker old = broadcast(), other = broadcast();

    other.options.failures = 10;
    report_of(&old, 2, STG_BREAKER_UNREACHED, STG_S);
    stg_breaker_keep(&other, &old);
    report_of(&other, 1, STG_BREAKER_UNREACHED, STG_S);
    CHECK_INT(enter(&other, STG_S), STG_PERMIT_DENIED);
}

/* -- a probe that is asked for ---------------------------------------------- */

TEST(breaker, is_half_open_at_once_when_somebody_asks)
{
    stg_breaker b = row();
    uint64_t word = b.state;

    stg_breaker_probe_now(&b, STG_S);
    CHECK_U64(b.state, word); // it is closed
    for (int i = 0; i < 3; i++)
        stg_breaker_report(&b, false, STG_BREAKER_FAILURE, STG_S, STG_S);
    CHECK_INT(enter(&b, 2 * STG_S), STG_PERMIT_DENIED);
    stg_breaker_probe_now(&b, 2 * STG_S);
    word = b.state;
    stg_breaker_probe_now(&b, 3 * STG_S);
    CHECK_U64(b.state, word); // a probe may start already
    CHECK_INT(stg_breaker_look(&b, 2 * STG_S, NULL), STG_BREAKER_HALF_OPEN);
    CHECK_INT(enter(&b, 2 * STG_S), STG_PERMIT_PROBE);
    word = b.state;
    stg_breaker_probe_now(&b, 3 * STG_S);
    CHECK_U64(b.state, word); // one is under way
    CHECK_INT(enter(&b, 3 * STG_S), STG_PERMIT_DENIED);
    stg_breaker_report(&b, true, STG_BREAKER_SUCCESS, 2 * STG_S, 3 * STG_S);
    CHECK_INT(stg_breaker_look(&b, 3 * STG_S, NULL), STG_BREAKER_CLOSED);
}

/* -- other options --------------------------------------------------------- */

TEST(breaker, stays_open_under_other_numbers_and_another_rule)
{
    stg_breaker old = row(), other = share(), none;
    stg_ns at = 0;

    for (int i = 0; i < 3; i++)
        stg_breaker_report(&old, false, STG_BREAKER_FAILURE, STG_S, STG_S);
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
    stg_breaker_report(&old, false, STG_BREAKER_FAILURE, STG_S, STG_S);
    stg_breaker_report(&old, false, STG_BREAKER_FAILURE, STG_S, STG_S);
    stg_breaker_keep(&other, &old);
    stg_breaker_report(&other, false, STG_BREAKER_FAILURE, STG_S, STG_S);
    CHECK_INT(stg_breaker_look(&other, STG_S, NULL), STG_BREAKER_CLOSED);
    stg_breaker_report(&other, false, STG_BREAKER_FAILURE, STG_S, STG_S);
    CHECK(stg_breaker_look(&other, STG_S, NULL) != STG_BREAKER_CLOSED);
    stg_breaker_keep(&third, &old); // failures in a row are no share
    CHECK_U64(stg_breaker_look(&third, STG_S, NULL), STG_BREAKER_CLOSED);
    stg_breaker_report(&third, false, STG_BREAKER_FAILURE, STG_S, STG_S);
    CHECK_INT(stg_breaker_look(&third, STG_S, NULL), STG_BREAKER_CLOSED);
}

TEST(breaker, goes_on_with_its_share)
{
    stg_breaker old = share(), other = share();

    other.options.percent = 60;
    for (int i = 0; i < 9; i++)
        stg_breaker_report(&old, false,
                           i < 6 ? STG_BREAKER_FAILURE : STG_BREAKER_SUCCESS,
                           STG_S, STG_S);
    stg_breaker_keep(&other, &old);
    stg_breaker_report(&other, false, STG_BREAKER_FAILURE, STG_S, STG_S);
    CHECK(stg_breaker_look(&other, STG_S, NULL) != STG_BREAKER_CLOSED);
}

/* Whichever slices of the window the calls are in. */
TEST(breaker, goes_on_with_every_slice_of_its_share)
{
    for (stg_ns s = 0; s < STG_BREAKER_SLICES; s++) {
        stg_breaker old = share(), other = share();
        stg_ns at = STG_HOUR + s * STG_S;

        fail(&old, 9, at);
        stg_breaker_keep(&other, &old);
        fail(&other, 1, at);
        CHECK_FROM(s, enter(&other, at) == STG_PERMIT_DENIED);
    }
}
