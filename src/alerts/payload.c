/* Digests as JSON: a text for Slack, a card for Teams, or all facts for a webhook.
 *
 * Names of the members of a webhook's body are an interface: docs/alerts.md has
 * them, and programs read them. A text or a time without a value is left out,
 * instead of being null or empty. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alerts/text.h"
#include "host/wall.h"

char *stg_payload_print(json_t *json)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

/* -- Slack ----------------------------------------------------------------- */

/* Source: "Formatting text for app surfaces", api.slack.com: & < > are the
 * control characters, to be replaced by entities. */
static size_t escape(char *to, size_t room, const char *text)
{
    size_t size = 0;

    for (; *text != '\0'; text++) {
        char plain[2] = {*text, '\0'};
        const char *as = *text == '&'   ? "&amp;"
                         : *text == '<' ? "&lt;"
                         : *text == '>' ? "&gt;"
                                        : plain;
        size_t length = strlen(as);

        if (size + length >= room)
            return 0;
        memcpy(to + size, as, length);
        size += length;
    }
    to[size] = '\0';
    return size;
}

/* Escaped it may be longer: then items go until it fits. */
static void write_slack(const stg_digest *d, char escaped[STG_SLACK_TEXT_MAX])
{
    char subject[STG_ALERT_SUBJECT_MAX], text[STG_SLACK_TEXT_MAX],
        both[STG_SLACK_TEXT_MAX + STG_ALERT_SUBJECT_MAX + 2];

    stg_alert_subject(d, subject);
    for (size_t room = STG_SLACK_TEXT_MAX - STG_ALERT_SUBJECT_MAX; room >= 1000;
         room -= 200) {
        stg_alert_text(d, text, room);
        snprintf(both, sizeof both, "%s\n\n%s", subject, text);
        if (escape(escaped, STG_SLACK_TEXT_MAX, both) > 0)
            return;
    }
    (void)escape(escaped, STG_SLACK_TEXT_MAX, subject);
}

char *stg_payload_slack(const stg_digest *d)
{
    char text[STG_SLACK_TEXT_MAX];

    write_slack(d, text);
    return stg_payload_print(
        json_pack("{s:s, s:b}", "text", text, "mrkdwn", 0));
}

/* -- Teams ----------------------------------------------------------------- */

/* A run of text is shown as it is, while that of a TextBlock is read as
 * Markdown. A line that follows an empty one stands apart from it. */
static json_t *line_of(const char *text, bool is_title, bool is_apart)
{
    json_t *run = json_pack("{s:s, s:s}", "type", "TextRun", "text", text);

    if (is_title)
        (void)json_object_set_new(run, "weight", json_string("Bolder"));
    return json_pack("{s:s, s:s, s:[o]}", "type", "RichTextBlock", "spacing",
                     is_apart ? "Medium" : "None", "inlines", run);
}

static void add_lines(json_t *body, char *text)
{
    bool is_apart = true;

    for (char *line = text, *end; *line != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        if (*end != '\0')
            *end++ = '\0';
        if (*line != '\0')
            (void)json_array_append_new(body, line_of(line, false, is_apart));
        is_apart = *line == '\0';
    }
}

/* Source: "Create incoming webhooks with Workflows", learn.microsoft.com, and
 * Adaptive Cards 1.4. A message has 28 KB at most. */
char *stg_payload_teams(const stg_digest *d)
{
    char text[STG_TEAMS_TEXT_MAX];
    json_t *body = json_array(), *card;

    stg_alert_subject(d, text);
    (void)json_array_append_new(body, line_of(text, true, false));
    stg_alert_text(d, text, sizeof text);
    add_lines(body, text);
    card = json_pack(
        "{s:s, s:s, s:s, s:{s:s}, s:o}", "type", "AdaptiveCard", "$schema",
        "http://adaptivecards.io/schemas/adaptive-card.json", "version", "1.4",
        "msteams", "width", "Full", "body", body);
    return stg_payload_print(json_pack(
        "{s:s, s:[{s:s, s:n, s:o}]}", "type", "message", "attachments",
        "contentType", "application/vnd.microsoft.card.adaptive", "contentUrl",
        "content", card));
}

/* -- a webhook ------------------------------------------------------------- */

static void set_time(json_t *to, const char *name, uint64_t utc)
{
    char text[STG_UTC_TEXT_MAX];

    if (utc > 0)
        (void)json_object_set_new(to, name,
                                  json_string(stg_utc_text(utc, text)));
}

static void set_number(json_t *to, const char *name, uint64_t number)
{
    (void)json_object_set_new(to, name, json_integer((json_int_t)number));
}

static void set_text(json_t *to, const char *name, const char *text)
{
    if (text[0] != '\0')
        (void)json_object_set_new(to, name, json_string(text));
}

static json_t *causes_of(const stg_alert_causes *c)
{
    json_t *causes = json_object();
    char cause[STG_CAUSE_MAX];

    for (size_t i = 0; i < STG_ALERT_CAUSES_MAX && c->list[i].count > 0; i++)
        set_number(causes, stg_alert_cause_text(c->list[i].cause, cause),
                   c->list[i].count);
    if (c->others > 0)
        set_number(causes, "(other)", c->others);
    return causes;
}

static void set_state(json_t *to, const stg_digest_item *i)
{
    if (!i->has_lane)
        return;
    set_text(to, "state", stg_lane_state_name(i->state));
    set_number(to, "waiting", i->waiting);
    set_number(to, "parked", i->parked);
}

/* The numbers that only one kind of alert has. */
static void set_numbers(json_t *to, const stg_digest_item *i)
{
    char cause[STG_CAUSE_MAX];

    switch (i->alert) {
    case STG_ALERT_DEAD:
        (void)json_object_set_new(to, "causes", causes_of(&i->causes));
        break;
    case STG_ALERT_BREAKER:
    case STG_ALERT_GONE:
    case STG_ALERT_DISABLED:
        if (i->has_cause)
            set_text(to, "cause", stg_alert_cause_text(i->cause, cause));
        break;
    case STG_ALERT_LAG:
        set_number(to, "lag_messages", i->number);
        set_number(to, "lag_ms", i->time / STG_MS);
        break;
    case STG_ALERT_CERTIFICATE:
        set_time(to, "valid_until", i->time);
        break;
    case STG_ALERT_RETENTION:
        set_number(to, "percent", i->number);
        break;
    case STG_ALERT_TOKEN:
    case STG_ALERT_STORE:
        set_text(to, "detail", i->text);
        break;
    }
}

json_t *stg_payload_item(const stg_digest_item *i)
{
    char words[STG_ALERT_WORDS_MAX];
    json_t *item = json_object();

    set_text(item, "alert", stg_alert_name(i->alert));
    set_text(item, "phase", stg_alert_phase_name(i->phase));
    set_text(item, "target", i->target);
    stg_alert_headline(i, words);
    set_text(item, "summary", words);
    set_number(item, "count", i->count);
    set_number(item, "fresh", i->fresh);
    set_time(item, "first_at", i->first_at);
    set_time(item, "last_at", i->last_at);
    set_time(item, "ended_at", i->ended_at);
    set_numbers(item, i);
    set_state(item, i);
    stg_alert_deed(i, words);
    set_text(item, "hub_does", words);
    stg_alert_command(i, words);
    set_text(item, "command", words);
    return item;
}

static json_t *left_of(const stg_digest *d)
{
    json_t *left = json_object();

    for (int a = 0; a < STG_ALERT_COUNT; a++)
        if (d->left[a] > 0)
            set_number(left, stg_alert_name((stg_alert)a), d->left[a]);
    return left;
}

char *stg_payload_webhook(const stg_digest *d)
{
    char words[STG_ALERT_TEXT_MAX];
    json_t *whole = json_object(), *items = json_array();

    set_text(whole, "hub", d->hub);
    set_time(whole, "at", d->at);
    (void)json_object_set_new(whole, "test", json_boolean(d->is_test));
    stg_alert_subject(d, words);
    set_text(whole, "subject", words);
    stg_alert_text(d, words, sizeof words);
    set_text(whole, "text", words);
    for (size_t i = 0; i < d->item_count; i++)
        (void)json_array_append_new(items, stg_payload_item(&d->items[i]));
    (void)json_object_set_new(whole, "alerts", items);
    (void)json_object_set_new(whole, "more", left_of(d));
    set_number(whole, "merged", d->merged);
    return stg_payload_print(whole);
}
