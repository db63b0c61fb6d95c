/* The options of alerts: their text, their defaults, and what is refused. */
#include "alerts/options.h"

#include <stdio.h>

#include "tests/harness.h"

TEST(alert_options, reads_a_threshold)
{
    static const struct {
        const char *text;
        stg_alert_threshold expected;
    } all[] = {
        {"10 failures in 5m", {10, 5 * STG_MIN}},
        {"1 failure in 10s", {1, 10 * STG_S}},
        {"1000000000 failures  in\t1d", {1000000000, STG_DAY}},
        {"7 failures in 90s", {7, 90 * STG_S}},
        {"off", {0, 0}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stg_alert_threshold t;

        CHECK_INT(stg_alert_threshold_read(all[i].text, &t, NULL), STG_OK);
        CHECK_U64(t.failures, all[i].expected.failures);
        CHECK_U64(t.window, all[i].expected.window);
    }
}

TEST(alert_options, refuses_what_is_no_threshold)
{
    static const char *const bad[] = {
        "",
        "10",
        "10 in 5m",
        "10 failures",
        "10 failures in",
        "10 failures in5m",
        "10failures in 5m",
        "10 failuresin 5m",
        "0 failures in 5m",
        "10 failures in 5",
        "10 failures in 500ms",
        "10 failures in 25h",
        "1 failures in 5m",
        "10 failures in 5m ",
        "1000000001 failures in 5m",
        "-1 failures in 5m",
        "off ",
        "ten failures in 5m",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stg_alert_threshold t = {3, 4};
        stg_error err;

        if (stg_alert_threshold_read(bad[i], &t, &err) != STG_INVALID)
            harness_fail(__FILE__, __LINE__, "read \"%s\"", bad[i]);
        CHECK(strstr(err.text, "N failures in TIME") != NULL);
        CHECK_U64(t.failures, 3);
    }
}

TEST(alert_options, finds_each_alert_by_its_name)
{
    stg_alert found;

    for (int i = 0; i < STG_ALERT_COUNT; i++) {
        CHECK_INT(stg_alert_find(stg_alert_name((stg_alert)i), &found), STG_OK);
        CHECK_INT(found, i);
    }
    CHECK_INT(stg_alert_find("breakers", &found), STG_NOT_FOUND);
}

/* -- the check ------------------------------------------------------------- */

static const char *const to[] = {"ops@example.org", "night@example.org"};

static stg_alert_receiver_options slack(void)
{
    stg_alert_receiver_options s =
        stg_alert_receiver_options_default(STG_RECEIVER_SLACK);

    s.name = "slack";
    s.url_file = "/etc/stagger/slack";
    return s;
}

static stg_alert_receiver_options mail(void)
{
    stg_alert_receiver_options s =
        stg_alert_receiver_options_default(STG_RECEIVER_MAIL);

    s.name = "mail";
    s.url = "smtp://mail.example.org:587";
    s.user = "hub";
    s.password_file = "/etc/stagger/mail";
    s.from = "hub@example.org";
    s.to = to;
    s.to_count = 2;
    return s;
}

static stg_alert_receiver_options webhook(void)
{
    stg_alert_receiver_options s =
        stg_alert_receiver_options_default(STG_RECEIVER_WEBHOOK);

    s.name = "webhook";
    s.url = "https://example.org/alerts";
    return s;
}

/* "PATH: WORDS" of what is wrong; "": nothing. */
static const char *check(const stg_alert_options *o)
{
    static char text[512];
    stg_alert_flaw flaw = {.path = ""};

    if (stg_alert_options_check(o, &flaw) == STG_OK)
        return "";
    CHECK_INT(stg_alert_options_check(o, NULL), STG_INVALID);
    snprintf(text, sizeof text, "%s: %s", flaw.path, flaw.error.text);
    return text;
}

static const char *check_receiver(stg_alert_receiver_options receiver)
{
    stg_alert_options o = stg_alert_options_default();

    o.receivers = &receiver;
    o.receiver_count = 1;
    return check(&o);
}

TEST(alert_options, takes_the_defaults_with_each_kind_of_receiver)
{
    stg_alert_options o = stg_alert_options_default();
    const stg_alert_receiver_options receivers[] = {slack(), mail(), webhook()};

    CHECK_STR(check(&o), "");
    o.receivers = receivers;
    o.receiver_count = 3;
    CHECK_STR(check(&o), "");
}

#define REFUSES(change, words)                             \
    do {                                                   \
        stg_alert_options o = stg_alert_options_default(); \
        change;                                            \
        CHECK_STR(check(&o), words);                       \
    } while (0)

TEST(alert_options, refuses_times_out_of_range)
{
    REFUSES(o.interval = 59 * STG_S, "interval: expected 1m to 7d");
    REFUSES(o.interval = 8 * STG_DAY, "interval: expected 1m to 7d");
    REFUSES(o.repeat_interval = 14 * STG_MIN,
            "repeat-interval: expected the interval to 365d, or never");
    REFUSES(o.group_wait = 11 * STG_MIN, "group-wait: expected 10m at most");
    REFUSES(o.min_interval = 2 * STG_HOUR,
            "min-interval: expected 1h and the interval at most");
    REFUSES(o.min_interval = 16 * STG_MIN,
            "min-interval: expected 1h and the interval at most");
    REFUSES(o.resolve_after = 2 * STG_DAY,
            "resolve-after: expected 1d at most");
    REFUSES(o.lag_time = 1, "lag.time: expected 1s to 365d, or never");
    REFUSES(o.certificate = 366 * STG_DAY,
            "certificate: expected 365d at most");
    REFUSES(o.threshold.window = 0,
            "threshold: expected 1 to 1000000000 failures in 1s to 1d");
    REFUSES(o.threshold_all.window = 2 * STG_DAY,
            "threshold-all: expected 1 to 1000000000 failures in 1s to 1d");
    REFUSES(o.alerts = STG_ALERT_ALL + 1,
            "alerts: expected alerts that there "
            "are");
    REFUSES(o.receiver_count = 33, "receivers: expected 32 at most");
}

#define REFUSES_RECEIVER(of, change, words)  \
    do {                                     \
        stg_alert_receiver_options s = of(); \
        change;                              \
        CHECK_STR(check_receiver(s), words); \
    } while (0)

TEST(alert_options, refuses_a_receiver_that_cannot_be_used)
{
    static const char *const bad_to[] = {"ops@example.org\r\nBcc: x@y"};
    static const char *const bad_target[] = {"a b"};

    REFUSES_RECEIVER(
        slack, s.name = "a b",
        "receivers[0].name: expected 1 to 64 of A-Z a-z 0-9 . _ -");
    REFUSES_RECEIVER(
        slack, s.name = NULL,
        "receivers[0].name: expected 1 to 64 of A-Z a-z 0-9 . _ -");
    REFUSES_RECEIVER(slack, s.timeout = 0,
                     "receivers[0].timeout: expected 1s to 1m");
    REFUSES_RECEIVER(slack, s.alerts = 0,
                     "receivers[0].alerts: expected one at least");
    REFUSES_RECEIVER(slack, (s.targets = bad_target, s.target_count = 1),
                     "receivers[0].targets: expected names of targets");
    REFUSES_RECEIVER(
        slack, s.url_file = NULL,
        "receivers[0].url-file: expected a file that has the URL of the "
        "incoming webhook");
    REFUSES_RECEIVER(
        slack, s.url = "https://hooks.slack.com/services/x",
        "receivers[0].url: whoever has it can write to the channel: "
        "expected url-file, a file that has it");
    REFUSES_RECEIVER(slack, (s.to = to, s.to_count = 1),
                     "receivers[0].to: only mail has it");
    REFUSES_RECEIVER(webhook, s.url = "ftp://example.org",
                     "receivers[0].url: expected http:// or https://");
    REFUSES_RECEIVER(
        webhook, s.url = NULL,
        "receivers[0].url: expected url, or url-file, a file that has it");
    REFUSES_RECEIVER(webhook, s.from = "a@b",
                     "receivers[0].from: only mail has it");
    REFUSES_RECEIVER(webhook, s.user = "a",
                     "receivers[0].user: only mail has a login");
    REFUSES_RECEIVER(mail, s.url = "http://example.org",
                     "receivers[0].url: expected smtp://HOST[:PORT] or "
                     "smtps://HOST[:PORT]");
    REFUSES_RECEIVER(mail, s.url = "smtp://hub:pass@example.org",
                     "receivers[0].url: expected smtp://HOST[:PORT] or "
                     "smtps://HOST[:PORT]");
    REFUSES_RECEIVER(mail, s.url = "smtp://example.org/x y",
                     "receivers[0].url: expected smtp://HOST[:PORT] or "
                     "smtps://HOST[:PORT]");
    REFUSES_RECEIVER(
        mail, s.from = "hub",
        "receivers[0].from: expected an address, as hub@example.org");
    REFUSES_RECEIVER(
        mail, s.from = "<hub@example.org>",
        "receivers[0].from: expected an address, as hub@example.org");
    REFUSES_RECEIVER(mail, s.to_count = 0,
                     "receivers[0].to: expected 1 to 100 "
                     "addresses");
    REFUSES_RECEIVER(mail, (s.to = bad_to, s.to_count = 1),
                     "receivers[0].to: expected addresses, as ops@example.org");
    REFUSES_RECEIVER(mail, s.password_file = NULL,
                     "receivers[0].password-file: a login needs both user and "
                     "password-file");
    REFUSES_RECEIVER(
        mail, s.starttls = STG_STARTTLS_OPTIONAL,
        "receivers[0].starttls: a password is sent over TLS only: expected "
        "required, or smtps://");
}

TEST(alert_options, refuses_headers_that_are_none)
{
    static const stg_alert_header bad[] = {
        {"A b", "x", NULL},  {"", "x", NULL},          {"A", NULL, NULL},
        {"A", "x", "/file"}, {"A", "x\r\nB: c", NULL}, {NULL, "x", NULL},
    };
    static const stg_alert_header good[] = {
        {"Authorization", NULL, "/etc/stagger/token"}, {"X-Team", "ops", NULL}};
    stg_alert_receiver_options s = webhook();

    s.headers = good;
    s.header_count = 2;
    CHECK_STR(check_receiver(s), "");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s.headers = &bad[i];
        s.header_count = 1;
        CHECK(strncmp(check_receiver(s), "receivers[0].headers: ", 18) == 0);
    }
}

TEST(alert_options, refuses_signatures_that_would_not_be)
{
    static const stg_sign_secret secrets[9] = {
        {"a secret of 24 characters", NULL},
        {"another one of 24 letters", NULL}};
    static const char *const sizes[] = {"0", "2"};
    stg_alert_receiver_options s = webhook();
    char words[96];

    s.sign.scheme = STG_SIGN_GITHUB;
    for (size_t i = 0; i < 2; i++) {
        s.secrets = secrets;
        s.secret_count = 2 * i;
        snprintf(words, sizeof words,
                 "receivers[0].sign.secrets: %s of them; expected 1", sizes[i]);
        CHECK_STR(check_receiver(s), words);
    }
    s.sign.scheme = STG_SIGN_STRIPE;
    CHECK_STR(check_receiver(s), "");
    s.secret_count = 9;
    CHECK_STR(check_receiver(s),
              "receivers[0].sign.secrets: 9 of them; expected 1 to 8");
    s.secret_count = 2;
    s.sign.prefix = "x";
    CHECK_STR(check_receiver(s),
              "receivers[0].sign.prefix: it is for another scheme; expected it "
              "with `sign.scheme: custom`");
    s.sign = (stg_sign_options){.scheme = STG_SIGN_NONE};
    CHECK_STR(
        check_receiver(s),
        "receivers[0].sign.secrets: without `sign.scheme`; expected both");
}

TEST(alert_options, refuses_two_receivers_of_one_name)
{
    stg_alert_options o = stg_alert_options_default();
    stg_alert_receiver_options receivers[] = {slack(), webhook()};

    receivers[1].name = "slack";
    o.receivers = receivers;
    o.receiver_count = 2;
    CHECK_STR(check(&o), "receivers[1].name: another receiver has it");
}
