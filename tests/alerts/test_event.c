/* Events: which wait and in what order, their keys, and what services and
 * templates are sent. */
#include "alerts/event.h"

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "tests/harness.h"

static const uint64_t NOON = UINT64_C(1772366400) * STG_S;

static stg_digest digest_of(stg_alert alert, const char *target,
                            stg_alert_phase phase)
{
    stg_digest d = {.hub = "box", .at = NOON, .item_count = 1};

    d.items[0] = (stg_digest_item){.alert = alert,
                                   .phase = phase,
                                   .count = 3,
                                   .fresh = 3,
                                   .first_at = NOON,
                                   .last_at = NOON};
    snprintf(d.items[0].target, sizeof d.items[0].target, "%s", target);
    return d;
}

static void put(stg_events *e, const char *target, stg_alert_phase phase)
{
    stg_digest d = digest_of(STG_ALERT_BREAKER, target, phase);

    CHECK_INT(stg_events_add(e, &d), 0);
}

/* Takes the next one and checks it; frees it. */
static void check_next(stg_events *e, stg_ns now, const char *target,
                       stg_alert_phase phase)
{
    stg_digest *d = stg_events_take(e, now);

    CHECK(d != NULL);
    CHECK_STR(d->items[0].target, target);
    CHECK_INT(d->items[0].phase, phase);
    CHECK_INT(d->item_count, 1);
    free(d);
}

/* -- which wait ------------------------------------------------------------ */

TEST(events, wait_in_their_order_one_of_a_key)
{
    stg_events e;

    stg_events_init(&e);
    put(&e, "a", STG_ALERT_BEGAN);
    put(&e, "b", STG_ALERT_BEGAN);
    put(&e, "a", STG_ALERT_MORE);
    CHECK_INT(e.count, 2);
    // Nobody has heard of it yet.
    check_next(&e, 0, "a", STG_ALERT_BEGAN);
    check_next(&e, 0, "b", STG_ALERT_BEGAN);
    CHECK(stg_events_take(&e, 0) == NULL);
}

TEST(events, that_ended_before_they_were_told_are_told_as_two)
{
    stg_events e;
    stg_digest *d;

    stg_events_init(&e);
    put(&e, "a", STG_ALERT_BEGAN);
    put(&e, "a", STG_ALERT_ENDED);
    d = stg_events_take(&e, 0);
    CHECK(d != NULL && stg_event_was(d) && !stg_event_is_resolved(d));
    CHECK(stg_events_add_end(&e, d));
    free(d);
    check_next(&e, 0, "a", STG_ALERT_ENDED);
    CHECK_INT(e.count, 0);
}

/* It began again while its first end was sent: that end would close it. */
TEST(events, do_not_end_what_has_begun_again)
{
    stg_events e;
    stg_digest *d;

    stg_events_init(&e);
    put(&e, "a", STG_ALERT_WAS);
    d = stg_events_take(&e, 0);
    put(&e, "a", STG_ALERT_BEGAN);
    CHECK(stg_events_add_end(&e, d));
    free(d);
    check_next(&e, 0, "a", STG_ALERT_BEGAN);
    CHECK_INT(e.count, 0);
}

TEST(events, that_are_put_off_are_passed_over)
{
    stg_events e;
    stg_digest *d;

    stg_events_init(&e);
    put(&e, "a", STG_ALERT_BEGAN);
    put(&e, "b", STG_ALERT_BEGAN);
    d = stg_events_take(&e, 5);
    e.again_at = 10;
    CHECK(stg_events_put_off(&e, d));
    check_next(&e, 5, "b", STG_ALERT_BEGAN);
    CHECK(stg_events_take(&e, 9) == NULL);
    check_next(&e, 10, "a", STG_ALERT_BEGAN);
    // News of an alert that was put off goes out at once.
    CHECK(stg_events_put_off(&e, d));
    put(&e, "a", STG_ALERT_MORE);
    check_next(&e, 5, "a", STG_ALERT_BEGAN);
    free(d);
    CHECK_INT(e.count, 0);
}

TEST(events, are_bounded)
{
    stg_events e;
    char name[16];

    stg_events_init(&e);
    for (int i = 0; i < STG_EVENTS_MAX; i++) {
        snprintf(name, sizeof name, "t%d", i);
        put(&e, name, STG_ALERT_BEGAN);
    }
    put(&e, "t5", STG_ALERT_ENDED); // it waits already
    {
        stg_digest d = digest_of(STG_ALERT_BREAKER, "more", STG_ALERT_BEGAN);

        CHECK_INT(stg_events_add(&e, &d), 1);
    }
    CHECK_INT(e.count, STG_EVENTS_MAX);
    stg_events_clear(&e);
    CHECK(stg_events_take(&e, 0) == NULL);
}

/* -- keys ------------------------------------------------------------------ */

TEST(event_key, is_of_the_alert_and_its_target)
{
    stg_digest d = digest_of(STG_ALERT_LAG, "shop", STG_ALERT_STILL);
    char key[STG_EVENT_KEY_MAX];

    stg_event_key(&d, key);
    CHECK_STR(key, "stagger/box/lag/shop");
    d = digest_of(STG_ALERT_DEAD, "", STG_ALERT_BEGAN);
    stg_event_key(&d, key);
    CHECK_STR(key, "stagger/box/dead-letters");
    d = digest_of(STG_ALERT_STORE, "", STG_ALERT_BEGAN);
    d.items[0].trouble = STG_TROUBLE_AWAY;
    stg_event_key(&d, key);
    CHECK_STR(key, "stagger/box/store/away");
    d.is_test = true;
    stg_event_key(&d, key);
    CHECK_STR(key, "stagger/box/test");
}

TEST(event_key, says_which_trouble_it_is_of)
{
    static const char *const words[] = {
        "full",   "letters",  "busy",   "away",  "source", "half",
        "nearly", "uncopied", "uplink", "proxy", "held",   "broken"};
    stg_digest d = digest_of(STG_ALERT_STORE, "", STG_ALERT_BEGAN);
    char key[STG_EVENT_KEY_MAX], expected[STG_EVENT_KEY_MAX];

    CHECK_U64(sizeof words / sizeof *words, STG_TROUBLE_BROKEN + 1);
    for (size_t i = 0; i <= STG_TROUBLE_BROKEN; i++) {
        char *text;

        d.items[0].trouble = (stg_alert_trouble)i;
        stg_event_key(&d, key);
        snprintf(expected, sizeof expected, "stagger/box/store/%s", words[i]);
        CHECK_STR(key, expected);
        text = stg_payload_pagerduty(&d, "a-key");
        CHECK(text != NULL);
        free(text);
        text = stg_payload_opsgenie(&d);
        CHECK(text != NULL);
        free(text);
    }
}

/* As docs/alerts.md has them. */
TEST(event_severity, is_of_the_alert)
{
    static const stg_alert_severity expected[STG_ALERT_COUNT] = {
        [STG_ALERT_DEAD] = STG_SEVERITY_ERROR,
        [STG_ALERT_BREAKER] = STG_SEVERITY_ERROR,
        [STG_ALERT_GONE] = STG_SEVERITY_WARNING,
        [STG_ALERT_DISABLED] = STG_SEVERITY_ERROR,
        [STG_ALERT_TOKEN] = STG_SEVERITY_WARNING,
        [STG_ALERT_STORE] = STG_SEVERITY_CRITICAL,
        [STG_ALERT_LAG] = STG_SEVERITY_WARNING,
        [STG_ALERT_CERTIFICATE] = STG_SEVERITY_WARNING,
        [STG_ALERT_RETENTION] = STG_SEVERITY_ERROR};

    for (size_t i = 0; i < STG_ALERT_COUNT; i++) {
        stg_digest d = digest_of((stg_alert)i, "a", STG_ALERT_BEGAN);
        char *text = stg_payload_pagerduty(&d, "a-key");

        CHECK_INT(stg_event_severity(&d), expected[i]);
        CHECK(text != NULL);
        free(text);
    }
}

TEST(event_key, is_escaped_in_a_url)
{
    stg_digest d = digest_of(STG_ALERT_LAG, "a.b", STG_ALERT_ENDED);
    char *url;

    snprintf(d.hub, sizeof d.hub, "h/\xc3\xa4 ?");
    url = stg_opsgenie_url(&d, "https://api.eu.opsgenie.com/");
    CHECK_STR(url,
              "https://api.eu.opsgenie.com/v2/alerts/"
              "stagger%2Fh%2F%C3%A4%20%3F%2Flag%2Fa.b/close"
              "?identifierType=alias");
    free(url);
    d.items[0].phase = STG_ALERT_STILL;
    url = stg_opsgenie_url(&d, "https://api.opsgenie.com");
    CHECK_STR(url, "https://api.opsgenie.com/v2/alerts");
    free(url);
}

/* -- bodies ---------------------------------------------------------------- */

/* The longest names and texts there are, of two bytes a character. */
static stg_digest longest(void)
{
    stg_digest d = digest_of(STG_ALERT_STORE, "", STG_ALERT_BEGAN);

    for (size_t i = 0; i + 2 < sizeof d.hub; i += 2)
        memcpy(d.hub + i, "\xc3\xa4", 3);
    for (size_t i = 0; i + 2 < sizeof d.items[0].text; i += 2)
        memcpy(d.items[0].text + i, "\xc3\xa4", 3);
    return d;
}

static size_t length_at(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    size_t count = 0;

    for (; text != NULL && *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

TEST(event, keeps_the_limits_of_services)
{
    stg_digest d = longest();
    char *text = stg_payload_opsgenie(&d);
    json_t *json = json_loads(text, 0, NULL), *payload;

    CHECK(json != NULL);
    CHECK(length_at(json, "message") > 0 && length_at(json, "message") <= 130);
    CHECK(length_at(json, "alias") > 0 && length_at(json, "alias") <= 512);
    CHECK(length_at(json, "description") > 100);
    CHECK(length_at(json, "description") <= 15000);
    CHECK(length_at(json, "source") > 0 && length_at(json, "source") <= 100);
    json_decref(json);
    free(text);
    text = stg_payload_pagerduty(&d, "key");
    json = json_loads(text, 0, NULL);
    CHECK(json != NULL);
    payload = json_object_get(json, "payload");
    CHECK(length_at(json, "dedup_key") > 0);
    CHECK(strlen(json_string_value(json_object_get(json, "dedup_key"))) <= 255);
    CHECK(length_at(payload, "summary") > 0);
    CHECK(length_at(payload, "summary") <= 1024);
    json_decref(json);
    free(text);
}

/* -- templates ------------------------------------------------------------- */

TEST(template, puts_fields_in_place_of_their_words)
{
    stg_digest d = digest_of(STG_ALERT_BREAKER, "shop", STG_ALERT_ENDED);
    char *text = stg_alert_template_print(
        &d, "{status} {key} {count} {lag_ms} [{detail}] {at} {{hub}} {} {A}",
        false);

    CHECK_STR(text,
              "resolved stagger/box/breaker/shop 3 0 [] "
              "2026-03-01T12:00:00.000Z {box} {} {A}");
    free(text);
}

TEST(template, escapes_texts_of_json)
{
    stg_digest d = digest_of(STG_ALERT_STORE, "", STG_ALERT_BEGAN);
    char *text;

    snprintf(d.items[0].text, sizeof d.items[0].text, "a \"b\" \\");
    text =
        stg_alert_template_print(&d, "{\"a\": \"{detail}\", \"b\": {}}", true);
    CHECK_STR(text, "{\"a\": \"a \\\"b\\\" \\\\\", \"b\": {}}");
    free(text);
}

TEST(template, is_checked)
{
    static const struct {
        const char *body;
        bool is_json;
        const char *words; /* NULL: it is right */
    } all[] = {
        {"{\"a\": \"{title}\", \"n\": {count}}", true, NULL},
        {"{title}", false, NULL},
        {"\"{title}\"", true, NULL},
        {"{\"a\": {}}", true, NULL},
        {"{titel}", false,
         "there is no field {titel}; expected those of docs/alerts.md; did you "
         "mean {title}?"},
        {"{xyzzy_plugh}", true,
         "there is no field {xyzzy_plugh}; expected those of docs/alerts.md"},
        {"{\"a\": {title}}", true,
         "it makes no JSON; expected JSON, with texts in quotes, as "
         "\"{title}\", or another Content-Type in headers"},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stg_error err = {.text = ""};
        stg_status expected = all[i].words == NULL ? STG_OK : STG_INVALID;

        CHECK_INT(stg_alert_template_check(all[i].body, all[i].is_json, &err),
                  expected);
        if (all[i].words != NULL)
            CHECK_STR(err.text, all[i].words);
    }
}
