/* What is sent: JSON for Slack and webhooks, mails; and secrets out of files. */
#include "alerts/options.h"
#include "alerts/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include <stagger/rng.h>

#include "tests/harness.h"

/* 2026-03-01T12:00:00Z */
static const uint64_t NOON = UINT64_C(1772366400) * STG_S;

static stg_digest_item item_of(stg_alert alert, const char *target)
{
    stg_digest_item i = {.alert = alert,
                         .phase = STG_ALERT_BEGAN,
                         .count = 37,
                         .fresh = 37,
                         .first_at = NOON - 4 * STG_MIN,
                         .last_at = NOON,
                         .has_lane = true,
                         .state = STG_LANE_CIRCUIT_OPEN,
                         .waiting = 1204};
    stg_outcome o = stg_answered(503);

    stg_alert_causes_add(&i.causes, stg_alert_cause_of(&o), 37);
    snprintf(i.target, sizeof i.target, "%s", target);
    return i;
}

static stg_digest digest(void)
{
    stg_digest d = {.hub = "box", .at = NOON, .item_count = 1};

    d.items[0] = item_of(STG_ALERT_DEAD, "payments");
    return d;
}

static stg_digest store_digest(const char *text)
{
    stg_digest d = {.hub = "box", .at = NOON, .item_count = 1};

    d.items[0] = (stg_digest_item){.alert = STG_ALERT_STORE,
                                   .trouble = STG_TROUBLE_BROKEN,
                                   .first_at = NOON,
                                   .last_at = NOON};
    stg_digest_take_text(d.items[0].text, sizeof d.items[0].text, text);
    return d;
}

/* -- Slack ----------------------------------------------------------------- */

TEST(slack, is_text_without_formatting)
{
    stg_digest d = digest();
    char *text = stg_payload_slack(&d);

    CHECK_STR(
        text,
        "{\"text\":\"[stagger box] payments: 37 dead letters in 4 min\\n\\n"
        "payments: 37 dead letters in 4 min\\n"
        "    causes: 37 HTTP_503\\n"
        "    first: 2026-03-01 11:56:00 UTC, last: 2026-03-01 12:00:00 UTC\\n"
        "    the hub: circuit open: 1204 messages wait in the log, and go out by "
        "themselves when a probe succeeds; dead letters are sent again only "
        "by a replay\\n"
        "    more: stagger dead list --target payments --since "
        "2026-03-01T11:56:00Z\\n\",\"mrkdwn\":false}");
    free(text);
}

TEST(slack, escapes_what_means_something_there)
{
    stg_digest d = store_digest("<!channel> & <http://x|y>");
    char *text = stg_payload_slack(&d);

    CHECK(strstr(text, "&lt;!channel&gt; &amp; &lt;http://x|y&gt;") != NULL);
    CHECK(strchr(text, '<') == NULL && strchr(text, '>') == NULL);
    free(text);
}

/* However much is escaped, it is less than Slack takes. */
TEST(slack, is_never_too_long)
{
    char angles[STG_DIGEST_TEXT_MAX];
    stg_digest d = store_digest("");
    json_t *json;
    char *text;

    memset(angles, '<', sizeof angles - 1);
    angles[sizeof angles - 1] = '\0';
    for (size_t i = 0; i < STG_DIGEST_ITEMS; i++) {
        d.items[i] = d.items[0];
        strcpy(d.items[i].text, angles);
    }
    d.item_count = STG_DIGEST_ITEMS;
    text = stg_payload_slack(&d);
    json = json_loads(text, 0, NULL);
    CHECK(json != NULL);
    CHECK(json_string_length(json_object_get(json, "text")) <
          STG_SLACK_TEXT_MAX);
    json_decref(json);
    free(text);
}

/* -- a webhook ------------------------------------------------------------- */

static const char *text_at(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

TEST(webhook, has_all_of_it_as_json)
{
    stg_digest d = digest();
    char *text, subject[STG_ALERT_SUBJECT_MAX];
    json_t *json, *item;

    d.left[STG_ALERT_BREAKER] = 9970;
    d.merged = 2;
    text = stg_payload_webhook(&d);
    json = json_loads(text, 0, NULL);
    CHECK(json != NULL);
    stg_alert_subject(&d, subject);
    CHECK_STR(text_at(json, "hub"), "box");
    CHECK_STR(text_at(json, "at"), "2026-03-01T12:00:00.000Z");
    CHECK_STR(text_at(json, "subject"), subject);
    CHECK(json_is_false(json_object_get(json, "test")));
    CHECK_INT(json_integer_value(json_object_get(json, "merged")), 2);
    CHECK_INT(json_integer_value(
                  json_object_get(json_object_get(json, "more"), "breaker")),
              9970);
    item = json_array_get(json_object_get(json, "alerts"), 0);
    CHECK_STR(text_at(item, "alert"), "dead-letters");
    CHECK_STR(text_at(item, "phase"), "began");
    CHECK_STR(text_at(item, "target"), "payments");
    CHECK_STR(text_at(item, "first_at"), "2026-03-01T11:56:00.000Z");
    CHECK_STR(text_at(item, "state"), "circuit-open");
    CHECK_STR(text_at(item, "command"),
              "stagger dead list --target payments "
              "--since 2026-03-01T11:56:00Z");
    CHECK_INT(json_integer_value(
                  json_object_get(json_object_get(item, "causes"), "HTTP_503")),
              37);
    json_decref(json);
    free(text);
}

/* -- mail ------------------------------------------------------------------ */

static const char *const to[] = {"ops@example.org", "night@example.org"};

static char *mail_of(const stg_digest *d)
{
    stg_mail_head head = {
        .from = "hub@example.org", .to = to, .to_count = 2, .id = 0xabc};
    char *text = stg_mail_print(d, &head);

    CHECK(text != NULL);
    return text;
}

TEST(mail, is_a_header_and_a_text)
{
    stg_digest d = digest();
    char *text = mail_of(&d);

    CHECK_TRACE(
        text,
        "Date: Sun, 01 Mar 2026 12:00:00 +0000\r\n"
        "From: hub@example.org\r\n"
        "To: ops@example.org,\r\n"
        " night@example.org\r\n"
        "Subject: [stagger box] payments: 37 dead letters in 4 min\r\n"
        "Message-ID: <0000000000000abc.1772366400000@example.org>\r\n"
        "Auto-Submitted: auto-generated\r\n"
        "\r\n"
        "payments: 37 dead letters in 4 min\r\n"
        "    causes: 37 HTTP_503\r\n"
        "    first: 2026-03-01 11:56:00 UTC, last: 2026-03-01 12:00:00 UTC\r\n"
        "    the hub: circuit open: 1204 messages wait in the log, and go out by "
        "themselves when a probe succeeds; dead letters are sent again only "
        "by a replay\r\n"
        "    more: stagger dead list --target payments --since "
        "2026-03-01T11:56:00Z\r\n");
    free(text);
}

TEST(mail, encodes_a_subject_that_is_not_ascii)
{
    stg_digest d = store_digest(
        "Gr\xc3\xbc\xc3\x9f"
        "e");
    char *text = mail_of(&d);

    CHECK(strstr(
              text,
              "\r\nSubject: =?UTF-8?Q?=5Bstagger=20box=5D=20the=20hub=3A=20") !=
          NULL);
    CHECK(strstr(text, "Gr=C3=BC=C3=9Fe?=\r\n") != NULL);
    CHECK(strstr(text,
                 "Gr\xc3\xbc\xc3\x9f"
                 "e\r\n") != NULL); // of the text
    free(text);
}

/* Whatever a text says, the header keeps its lines, and they are short. */
TEST(mail, cannot_be_given_other_lines)
{
    static const char *const names[] = {
        "Date", "From", "To", "Subject", "Message-ID", "Auto-Submitted"};

    for (uint64_t seed = 0; seed < seeds(2000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        char bad[200];
        size_t size = (size_t)stg_rng_upto(&rng, sizeof bad - 1), lines = 0;
        stg_digest d;
        char *text, *at;

        for (size_t i = 0; i < size; i++)
            bad[i] = "\r\n :=?ab.\xc3\xa4\xff\x01"[stg_rng_upto(&rng, 12)];
        bad[size] = '\0';
        d = store_digest(bad);
        stg_digest_take_text(d.hub, sizeof d.hub, bad);
        text = mail_of(&d);
        at = text;
        while (strncmp(at, "\r\n", 2) != 0) {
            char *end = strstr(at, "\r\n");

            CHECK_FROM(seed, end != NULL && end - at <= 78);
            if (*at != ' ') {
                size_t length = strlen(names[lines]);

                CHECK_FROM(seed, strncmp(at, names[lines], length) == 0);
                CHECK_FROM(seed, at[length] == ':');
                lines++;
            }
            at = end + 2;
        }
        CHECK_FROM(seed, lines == 6);
        for (at += 2; *at != '\0';) { // the body, whose bytes libcurl encodes
            char *end = strstr(at, "\r\n");

            CHECK_FROM(seed, end != NULL);
            at = end + 2;
        }
        free(text);
    }
}

/* -- secrets --------------------------------------------------------------- */

static stg_status read_text(const char *bytes, size_t size, char **secret,
                            stg_error *err)
{
    char path[] = "/tmp/stagger-secret-XXXXXX";
    int fd = mkstemp(path);
    stg_status status;

    CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    status = stg_secret_read(path, secret, err);
    unlink(path);
    return status;
}

TEST(secret, is_the_line_of_its_file)
{
    char *secret;

    CHECK_INT(read_text("hunter 2\n", 9, &secret, NULL), STG_OK);
    CHECK_STR(secret, "hunter 2");
    stg_secret_free(secret);
    CHECK_INT(read_text(" \r\n x \n\n", 8, &secret, NULL), STG_OK);
    CHECK_STR(secret, "x");
    stg_secret_free(secret);
    stg_secret_free(NULL);
}

TEST(secret, is_refused_without_being_shown)
{
    static char large[STG_SECRET_MAX + 10];
    char *secret = NULL;
    stg_error err;

    memset(large, 'x', sizeof large);
    CHECK_INT(read_text("", 0, &secret, &err), STG_INVALID);
    CHECK(strstr(err.text, ": there is nothing in it") != NULL);
    CHECK_INT(read_text(" \n", 2, &secret, &err), STG_INVALID);
    CHECK_INT(read_text("one\ntwo\n", 8, &secret, &err), STG_INVALID);
    CHECK(strstr(err.text, "expected one line") != NULL);
    CHECK(strstr(err.text, "two") == NULL);
    CHECK_INT(read_text("a\0b", 3, &secret, &err), STG_INVALID);
    CHECK_INT(read_text(large, sizeof large, &secret, &err), STG_INVALID);
    CHECK(strstr(err.text, "4096") != NULL);
    CHECK_INT(stg_secret_read("/nowhere/at/all", &secret, &err), STG_IO);
    CHECK_STR(err.text, "/nowhere/at/all: No such file or directory");
    CHECK_INT(stg_secret_read("/tmp", &secret, &err), STG_IO);
    CHECK(secret == NULL);
}
