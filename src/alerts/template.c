/* A body of the operator's own: {field} words in a text.
 *
 * Only what a field could be is one, a brace, small letters and `_`, a brace: so
 * braces of JSON stand for themselves. A field without a value is empty. */
#include "alerts/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alerts/text.h"
#include "base/suggest.h"
#include "base/text.h"
#include "core/writer.h"
#include "host/wall.h"

/* The fields of an event, and behind them those of an item of a webhook's body. */
static const char *const fields[] = {
    "key",          "status",   "severity", "title",       "text",    "hub",
    "at",           "alert",    "phase",    "target",      "summary", "count",
    "fresh",        "first_at", "last_at",  "ended_at",    "cause",   "detail",
    "lag_messages", "lag_ms",   "percent",  "valid_until", "state",   "waiting",
    "parked",       "hub_does", "command",  NULL};

/* The size of the word between the braces; 0: it is no field. */
static size_t word_of(const char *at)
{
    size_t size =
        *at == '{' ? strspn(at + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;

    return size > 0 && at[size + 1] == '}' ? size : 0;
}

/* What {fields} may name: those of a webhook's object, and what is made for all
 * alerts. */
static json_t *values_of(const stg_digest *d)
{
    char key[STG_EVENT_KEY_MAX], subject[STG_ALERT_SUBJECT_MAX],
        text[STG_ALERT_TEXT_MAX], time[STG_UTC_TEXT_MAX];
    json_t *values =
        d->is_test ? json_object() : stg_payload_item(&d->items[0]);

    stg_event_key(d, key);
    stg_alert_subject(d, subject);
    stg_alert_text(d, text, sizeof text);
    stg_payload_set(values, "key", key);
    stg_payload_set(values, "status",
                    stg_event_is_resolved(d) ? "resolved" : "firing");
    stg_payload_set(values, "severity",
                    stg_severity_name(stg_event_severity(d)));
    stg_payload_set(values, "title", subject);
    stg_payload_set(values, "text", text);
    stg_payload_set(values, "hub", d->hub);
    stg_payload_set(values, "at", stg_utc_text(d->at, time));
    if (d->is_test)
        stg_payload_set(values, "alert", "test");
    return values;
}

/* Without the quotes around it, which the template has. */
static void put_json(stg_text *to, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    if (text == NULL)
        to->is_short = true;
    else
        stg_text_add(to, text + 1, strlen(text) - 2);
    free(text);
}

/* A number without a value is 0, since there may be no quotes around it. */
static void put_field(stg_text *to, const json_t *values, const char *name,
                      bool is_json)
{
    static const char *const numbers[] = {"count",  "fresh",   "lag_messages",
                                          "lag_ms", "percent", "waiting",
                                          "parked", NULL};
    const json_t *value = json_object_get(values, name);

    for (size_t i = 0; numbers[i] != NULL; i++)
        if (strcmp(name, numbers[i]) == 0) {
            stg_text_put_number(to, (uint64_t)json_integer_value(value));
            return;
        }
    if (json_is_string(value) && is_json)
        put_json(to, value);
    else if (json_is_string(value))
        stg_text_put(to, json_string_value(value));
}

/* A brace that names no field stands for itself, as JSON has many. */
char *stg_alert_template_print(const stg_digest *d, const char *body,
                               bool is_json)
{
    json_t *values = values_of(d);
    stg_text to = {.at = NULL};

    for (const char *at = body; *at != '\0';) {
        size_t size = word_of(at);
        char name[32];

        if (size == 0 || size >= sizeof name) {
            stg_text_add(&to, at++, 1);
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)size, at + 1);
        put_field(&to, values, name, is_json);
        at += size + 2;
    }
    json_decref(values);
    stg_text_add(&to, "", 1);
    if (!to.is_short)
        return to.at;
    stg_text_free(&to);
    return NULL;
}

/* -- the check ------------------------------------------------------------- */

static stg_status refuse_field(const char *word, stg_error *err)
{
    const char *near = stg_suggest(word, fields);
    stg_writer w = stg_writer_on_error(err);

    stg_write_text(&w, "there is no field {");
    stg_write_text(&w, word);
    stg_write_text(&w, "}; expected those of docs/alerts.md");
    if (near != NULL) {
        stg_write_text(&w, "; did you mean {");
        stg_write_text(&w, near);
        stg_write_text(&w, "}?");
    }
    return STG_INVALID;
}

static bool is_field(const char *word)
{
    for (size_t i = 0; fields[i] != NULL; i++)
        if (strcmp(fields[i], word) == 0)
            return true;
    return false;
}

/* An alert with texts that have to be escaped. */
static bool makes_json(const char *body)
{
    stg_digest d = {.hub = "\"\\", .item_count = 1};
    char *text;
    json_t *json;

    d.items[0] = (stg_digest_item){.alert = STG_ALERT_STORE, .text = "\"\\"};
    text = stg_alert_template_print(&d, body, true);
    json = text != NULL ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    free(text);
    json_decref(json);
    return json != NULL;
}

stg_status stg_alert_template_check(const char *body, bool is_json,
                                    stg_error *err)
{
    for (const char *at = body; *at != '\0'; at++) {
        size_t size = word_of(at);
        char word[40];

        if (size == 0)
            continue;
        snprintf(word, sizeof word, "%.*s",
                 (int)(size < sizeof word ? size : sizeof word - 1), at + 1);
        if (!is_field(word))
            return refuse_field(word, err);
    }
    if (is_json && !makes_json(body))
        return stg_refuse(err,
                          "it makes no JSON; expected JSON, with texts in "
                          "quotes, as \"{title}\", or another Content-Type in "
                          "headers");
    return STG_OK;
}
