/* Events as PagerDuty and Opsgenie take them.
 *
 * Sources: PagerDuty, "Send an Alert Event" of the Events API v2: summary of
 * 1024 characters at most, dedup_key of 255. Opsgenie, "Alert API": message of
 * 130 characters, alias of 512, description of 15000, entity of 512, source of
 * 100, note of 25000. Times are of RFC 3339. */
#include "alerts/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alerts/text.h"
#include "base/text.h"
#include "core/writer.h"
#include "host/wall.h"

/* -- what both have -------------------------------------------------------- */

bool stg_event_is_resolved(const stg_digest *d)
{
    return d->items[0].phase == STG_ALERT_ENDED;
}

bool stg_event_was(const stg_digest *d)
{
    return d->items[0].phase == STG_ALERT_WAS;
}

/* A switch, so that the compiler refuses a trouble without a word. */
static const char *trouble_word(stg_alert_trouble trouble)
{
    switch (trouble) {
    case STG_TROUBLE_FULL:
        return "full";
    case STG_TROUBLE_LETTERS:
        return "letters";
    case STG_TROUBLE_BUSY:
        return "busy";
    case STG_TROUBLE_AWAY:
        return "away";
    case STG_TROUBLE_LOG:
        return "source";
    case STG_TROUBLE_HALF:
        return "half";
    case STG_TROUBLE_NEARLY:
        return "nearly";
    case STG_TROUBLE_UPLINK:
        return "uplink";
    case STG_TROUBLE_PROXY:
        return "proxy";
    case STG_TROUBLE_UNCOPIED:
        return "uncopied";
    case STG_TROUBLE_HELD:
        return "held";
    case STG_TROUBLE_BROKEN:
        return "broken";
    }
    return "";
}

/* Names have 64 bytes at most, so that all fits. */
void stg_event_key(const stg_digest *d, char key[STG_EVENT_KEY_MAX])
{
    const stg_digest_item *i = &d->items[0];
    const char *last =
        i->alert == STG_ALERT_STORE ? trouble_word(i->trouble) : i->target;

    if (d->is_test)
        snprintf(key, STG_EVENT_KEY_MAX, "stagger/%s/test", d->hub);
    else
        snprintf(key, STG_EVENT_KEY_MAX, "stagger/%s/%s%s%s", d->hub,
                 stg_alert_name(i->alert), *last != '\0' ? "/" : "", last);
}

/* Likewise. */
static stg_alert_severity severity_of(stg_alert alert)
{
    switch (alert) {
    case STG_ALERT_STORE:
        return STG_SEVERITY_CRITICAL;
    case STG_ALERT_DEAD:
    case STG_ALERT_BREAKER:
    case STG_ALERT_DISABLED:
    case STG_ALERT_RETENTION:
        return STG_SEVERITY_ERROR;
    case STG_ALERT_GONE:
    case STG_ALERT_TOKEN:
    case STG_ALERT_LAG:
    case STG_ALERT_CERTIFICATE:
        return STG_SEVERITY_WARNING;
    }
    return STG_SEVERITY_WARNING;
}

stg_alert_severity stg_event_severity(const stg_digest *d)
{
    return d->is_test ? STG_SEVERITY_INFO : severity_of(d->items[0].alert);
}

const char *stg_severity_name(stg_alert_severity severity)
{
    static const char *const names[] = {[STG_SEVERITY_CRITICAL] = "critical",
                                        [STG_SEVERITY_ERROR] = "error",
                                        [STG_SEVERITY_WARNING] = "warning",
                                        [STG_SEVERITY_INFO] = "info"};

    return names[severity];
}

/* -- PagerDuty ------------------------------------------------------------- */

static json_t *payload_of(const stg_digest *d)
{
    char subject[STG_ALERT_SUBJECT_MAX], time[STG_UTC_TEXT_MAX];
    const stg_digest_item *i = &d->items[0];
    json_t *payload = json_object();

    stg_alert_subject(d, subject);
    stg_payload_set(payload, "summary", subject);
    stg_payload_set(payload, "source", d->hub);
    stg_payload_set(payload, "severity",
                    stg_severity_name(stg_event_severity(d)));
    stg_payload_set(payload, "timestamp", stg_utc_text(i->first_at, time));
    if (d->is_test)
        return payload;
    if (i->target[0] != '\0')
        stg_payload_set(payload, "component", i->target);
    stg_payload_set(payload, "class", stg_alert_name(i->alert));
    (void)json_object_set_new(payload, "custom_details", stg_payload_item(i));
    return payload;
}

char *stg_payload_pagerduty(const stg_digest *d, const char *routing_key)
{
    bool is_resolved = stg_event_is_resolved(d);
    char key[STG_EVENT_KEY_MAX];
    json_t *event = json_object();

    stg_event_key(d, key);
    stg_payload_set(event, "routing_key", routing_key);
    stg_payload_set(event, "event_action", is_resolved ? "resolve" : "trigger");
    stg_payload_set(event, "dedup_key", key);
    if (!is_resolved) {
        stg_payload_set(event, "client", "stagger");
        (void)json_object_set_new(event, "payload", payload_of(d));
    }
    return stg_payload_print(event);
}

/* -- Opsgenie -------------------------------------------------------------- */

enum { MESSAGE_MAX = 130, DESCRIPTION_MAX = 14000 };

/* All values are texts; what is no text and no number is in the description. */
static json_t *details_of(const stg_digest *d)
{
    json_t *details = json_object(), *item = stg_payload_item(&d->items[0]),
           *value;
    const char *name;

    json_object_foreach(item, name, value)
    {
        char number[32];

        snprintf(number, sizeof number, "%lld",
                 (long long)json_integer_value(value));
        if (json_is_string(value))
            stg_payload_set(details, name, json_string_value(value));
        else if (json_is_integer(value))
            stg_payload_set(details, name, number);
    }
    json_decref(item);
    return details;
}

/* The subject is cut at the end of a character; the description has it all. */
static json_t *alert_of(const stg_digest *d)
{
    static const char *const priorities[] = {[STG_SEVERITY_CRITICAL] = "P1",
                                             [STG_SEVERITY_ERROR] = "P2",
                                             [STG_SEVERITY_WARNING] = "P3",
                                             [STG_SEVERITY_INFO] = "P5"};
    char subject[STG_ALERT_SUBJECT_MAX], message[MESSAGE_MAX + 1],
        text[DESCRIPTION_MAX], key[STG_EVENT_KEY_MAX];
    json_t *alert = json_object();

    stg_event_key(d, key);
    stg_alert_subject(d, subject);
    stg_digest_take_text(message, sizeof message, subject);
    stg_alert_text(d, text, sizeof text);
    stg_payload_set(alert, "message", message);
    stg_payload_set(alert, "alias", key);
    stg_payload_set(alert, "description", text);
    stg_payload_set(alert, "priority", priorities[stg_event_severity(d)]);
    if (d->items[0].target[0] != '\0')
        stg_payload_set(alert, "entity", d->items[0].target);
    if (!d->is_test)
        (void)json_object_set_new(alert, "details", details_of(d));
    (void)json_object_set_new(
        alert, "tags",
        json_pack("[ss]", "stagger",
                  d->is_test ? "test" : stg_alert_name(d->items[0].alert)));
    return alert;
}

char *stg_payload_opsgenie(const stg_digest *d)
{
    char subject[STG_ALERT_SUBJECT_MAX];
    json_t *body;

    if (stg_event_is_resolved(d)) {
        body = json_object();
        stg_alert_subject(d, subject);
        stg_payload_set(body, "note", subject);
    } else {
        body = alert_of(d);
    }
    stg_payload_set(body, "source", d->hub);
    return stg_payload_print(body);
}

/* Source: "Close Alert", Opsgenie's Alert API. */
char *stg_opsgenie_url(const stg_digest *d, const char *service)
{
    size_t size = strlen(service);
    char key[STG_EVENT_KEY_MAX];
    stg_text url = {.at = NULL};

    while (size > 0 && service[size - 1] == '/')
        size--;
    stg_text_add(&url, service, size);
    stg_text_put(&url, "/v2/alerts");
    if (stg_event_is_resolved(d)) {
        stg_event_key(d, key);
        stg_text_put(&url, "/");
        stg_text_put_percent(&url, stg_span_of(key));
        stg_text_put(&url, "/close?identifierType=alias");
    }
    stg_text_add(&url, "", 1);
    if (!url.is_short)
        return url.at;
    stg_text_free(&url);
    return NULL;
}
