/* stagger check --try: a message against the filters of all targets, as a hub with
 * these settings would. The body is read once, as there. */
#include "cli/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/remote.h"
#include "cli/say.h"
#include "config/targets.h"
#include "http/header.h"
#include "kafka/topic.h"

static const char who[] = "stagger check";

/* -- the message ----------------------------------------------------------- */

int stg_try_add_header(stg_try *t, const char *text)
{
    const char *colon = strchr(text, ':');
    stg_span name = {text, colon != NULL ? (size_t)(colon - text) : 0}, value;

    if (colon == NULL || !stg_header_is_name(name))
        return stg_options_refuse(who, "--header: expected 'Name: value'");
    value.at = colon + 1 + strspn(colon + 1, " \t");
    value.size = strlen(value.at);
    if (!stg_header_is_value(value))
        return stg_options_refuse(who,
                                  "--header=%.*s: expected 'Name: value', as "
                                  "HTTP has them",
                                  (int)name.size, name.at);
    stg_text_add(&t->headers, name.at, name.size);
    stg_text_put(&t->headers, ": ");
    stg_text_add(&t->headers, value.at, value.size);
    stg_text_put(&t->headers, "\r\n");
    return 0;
}

void stg_try_free(stg_try *t)
{
    stg_text_free(&t->headers);
}

/* Refuses headers that the hub would drop: no filter would find them. */
static int check_headers(const stg_try *t, const stg_settings *s)
{
    bool is_kafka = s->source == STG_SOURCE_KAFKA;
    const stg_texts *rules = is_kafka ? &s->kafka.headers : &s->listen.headers;
    stg_span lines = {t->headers.at, t->headers.size}, line;

    while ((line = stg_header_next(&lines)).size > 0) {
        stg_span name = stg_header_name(line);
        const char *instead =
            stg_header_equal(name, "Content-Type")  ? "say --type"
            : stg_header_equal(name, "Stagger-Key") ? "say --key"
                                                    : NULL;

        if (instead != NULL)
            return stg_options_refuse(who, "--header=%.*s: %s", (int)name.size,
                                      name.at, instead);
        if (!stg_header_equal(name, STG_WEBHOOK_HEADER) &&
            !stg_headers_keep(
                rules->count > 0 ? rules->at : stg_headers_default, name))
            return stg_options_refuse(
                who,
                "--header=%.*s: a hub would drop it; `%s` says what is "
                "kept",
                (int)name.size, name.at,
                is_kafka ? "kafka.headers" : "listen.headers");
    }
    return 0;
}

static int read_body(const char *path, stg_text *body)
{
    enum { PIECE = 1 << 16 };
    bool is_input = strcmp(path, "-") == 0;
    FILE *file = is_input ? stdin : fopen(path, "rb");
    size_t got = file != NULL;
    int error = errno;

    while (got > 0) {
        char *to = stg_text_reserve(body, PIECE);

        got = to != NULL ? fread(to, 1, PIECE, file) : 0;
        body->size += got;
    }
    if (file != NULL) {
        error = ferror(file) ? errno : body->is_short ? ENOMEM : 0;
        if (!is_input)
            (void)fclose(file);
    }
    if (error == 0)
        return 0;
    stg_options_complain(who, "--try=%s: %s", path, strerror(error));
    return STG_EXIT_USAGE;
}

/* -- targets --------------------------------------------------------------- */

typedef struct trying {
    const stg_try *t;
    const stg_settings *s;
    const stg_diagnostics *diagnostics; /* what came from the environment */
    stg_parcel message;
    json_t *body; /* NULL: it is not JSON */
    size_t getting;
    int width; /* of the names */
} trying;

static bool is_of_topic(const trying *r, const stg_texts *topics)
{
    for (size_t i = 0; i < topics->count; i++)
        if (r->t->topic != NULL &&
            stg_topic_matches(topics->at[i], r->t->topic))
            return true;
    return topics->count == 0;
}

static void explain(trying *r, const stg_target_settings *target, stg_text *why)
{
    if (is_of_topic(r, &target->topics)) {
        stg_match_explain(target, &r->message, r->body, why);
        return;
    }
    stg_text_put(why, r->t->topic == NULL ? "topic: none was said (--topic)"
                                          : "topic ");
    stg_text_put(why, r->t->topic == NULL ? "" : r->t->topic);
    stg_text_put(why, "; expected ");
    for (size_t i = 0; i < target->topics.count; i++) {
        stg_text_put(why, i > 0 ? ", " : "");
        stg_text_put(why, target->topics.at[i]);
    }
}

/* Writes ${NAME} for values that came from the environment. */
static void hide(const trying *r, stg_text *why)
{
    char *shown;

    if (why->size == 0)
        return;
    stg_text_add(why, "", 1);
    shown =
        why->is_short ? NULL : stg_diagnostics_show(r->diagnostics, why->at);
    stg_text_free(why);
    *why = (stg_text){.size = 0};
    stg_text_put(why, shown != NULL ? shown : "no memory");
    free(shown);
}

/* Of all rows; names are 64 bytes at most. */
static int width_of(const stg_settings *s)
{
    size_t width = 0;

    for (size_t i = 0; i < s->target_count; i++)
        if (strlen(s->targets[i].name) > width)
            width = strlen(s->targets[i].name);
    return (int)width;
}

static void print_row(const trying *r, const stg_target_settings *target,
                      const stg_text *why)
{
    stg_say(stdout, "%-*s  %s%.*s\n", r->width, target->name,
            why->size > 0       ? "no: "
            : target->is_paused ? "gets it, and is paused: it waits"
                                : "gets it",
            (int)why->size, why->at != NULL ? why->at : "");
}

/* NULL: it gets the message. */
static json_t *row_of(const stg_target_settings *target, const stg_text *why)
{
    return json_pack(
        "{ss sb so}", "name", target->name, "gets", why->size == 0, "why",
        why->size == 0 ? json_null() : json_stringn(why->at, why->size));
}

static void print_all(trying *r)
{
    json_t *rows = r->t->is_json ? json_array() : NULL;

    r->width = width_of(r->s);
    for (size_t i = 0; i < r->s->target_count; i++) {
        const stg_target_settings *target = &r->s->targets[i];
        stg_text why = {.size = 0};

        explain(r, target, &why);
        hide(r, &why);
        r->getting += why.size == 0;
        if (rows != NULL)
            (void)json_array_append_new(rows, row_of(target, &why));
        else
            print_row(r, target, &why);
        stg_text_free(&why);
    }
    if (rows != NULL) {
        json_t *all =
            json_pack("{sb so}", "json", r->body != NULL, "targets", rows);

        stg_say_json(stdout, all, false);
        json_decref(all);
        return;
    }
    stg_say(stdout, "%zu of %zu target%s would get it\n", r->getting,
            r->s->target_count, stg_plural(r->s->target_count));
}

/* A filter of bodies is asked for, and the usual mistake is a comma. */
static void tell_mistake(const trying *r, const stg_text *body)
{
    json_error_t why;
    bool asks = false;

    for (size_t i = 0; i < r->s->target_count; i++)
        asks = asks || stg_match_body(&r->s->targets[i]) != NULL;
    if (r->body != NULL || !asks)
        return;
    if (stg_pattern_is_too_many(r->message.body)) {
        stg_options_complain(who,
                             "--try=%s: the body has more than %d values: to "
                             "filters it is not JSON",
                             r->t->file, STG_PATTERN_BODY_MAX);
        return;
    }
    json_decref(json_loadb(body->at != NULL ? body->at : "", body->size,
                           JSON_DECODE_ANY, &why));
    stg_options_complain(who, "--try=%s:%d:%d: the body is not JSON: %s",
                         r->t->file, why.line, why.column, why.text);
}

static stg_span span_of(const char *text)
{
    return text != NULL ? (stg_span){text, strlen(text)} : (stg_span){"", 0};
}

int stg_try_run(const stg_try *t, const stg_settings *s,
                const stg_diagnostics *c)
{
    stg_text body = {.size = 0};
    trying r = {.t = t, .s = s, .diagnostics = c};
    int code = check_headers(t, s);

    if (code == 0)
        code = read_body(t->file, &body);
    if (code == 0) {
        r.message = (stg_parcel){.content_type = span_of(t->type),
                                 .key = span_of(t->key),
                                 .headers = {t->headers.at, t->headers.size},
                                 .body = {body.at, body.size}};
        r.body = stg_pattern_parse(r.message.body);
        tell_mistake(&r, &body);
        print_all(&r);
        json_decref(r.body);
    }
    stg_text_free(&body);
    return code;
}
