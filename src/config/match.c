/* Which messages a target gets: by its headers, and by its body. Pure, so that every
 * hub of a group and every command finds the same; also why a target does not get
 * one. */
#include <string.h>

#include "base/visible.h"
#include "config/targets.h"
#include "http/header.h"
#include "ingress/cloud_event.h"

/* -- headers --------------------------------------------------------------- */

static bool has_value(const stg_match_setting *m, stg_span value)
{
    if (m->conditions != NULL)
        return stg_pattern_takes_text(m->conditions, value);
    for (size_t i = 0; i < m->values.count; i++)
        if (strlen(m->values.at[i]) == value.size &&
            memcmp(m->values.at[i], value.at, value.size) == 0)
            return true;
    return false;
}

/* The next of the lines "Name: value\r\n"; false at the end of them. */
static bool next_line(stg_span *lines, stg_span *name, stg_span *value)
{
    const char *end = lines->at + lines->size;
    const char *colon = memchr(lines->at, ':', lines->size), *stop;

    if (colon == NULL)
        return false;
    stop = memchr(colon, '\r', (size_t)(end - colon));
    if (stop == NULL || end - stop < 2)
        return false;
    *name = (stg_span){lines->at, (size_t)(colon - lines->at)};
    for (colon++; colon < stop && *colon == ' ';)
        colon++;
    *value = (stg_span){colon, (size_t)(stop - colon)};
    *lines = (stg_span){stop + 2, (size_t)(end - stop - 2)};
    return true;
}

static bool takes_nothing(const stg_match_setting *m)
{
    return m->conditions != NULL && stg_pattern_takes_nothing(m->conditions);
}

static bool is_in_lines(const stg_match_setting *m, stg_span lines)
{
    bool is_there = false;
    stg_span name, value;

    while (lines.size > 0 && next_line(&lines, &name, &value)) {
        if (!stg_header_equal(name, m->header))
            continue;
        if (has_value(m, value))
            return true;
        is_there = true;
    }
    return !is_there && takes_nothing(m);
}

/* Whether it is there with one of the values; at: NULL, it is not. */
static bool is_one(const stg_match_setting *m, stg_span value)
{
    return value.size > 0 ? has_value(m, value) : takes_nothing(m);
}

static bool is_met(const stg_match_setting *m, const stg_parcel *p)
{
    stg_span name = {m->header, strlen(m->header)};

    // These two are not among the lines, and one that is empty is not there.
    if (stg_header_equal(name, "Content-Type"))
        return is_one(m, p->content_type);
    if (stg_header_equal(name, "Stagger-Key"))
        return is_one(m, p->key);
    return is_in_lines(m, p->headers);
}

/* Attributes of an event that is in the body are looked for there. */
static bool is_elsewhere(const stg_match_setting *m, const stg_parcel *p)
{
    return m->header == NULL ||
           (m->is_attribute && stg_cloud_event_is_structured(p->content_type));
}

bool stg_match_wants_headers(const stg_target_settings *t, const stg_parcel *p)
{
    for (size_t i = 0; i < t->match_count; i++)
        if (!is_elsewhere(&t->match[i], p) && !is_met(&t->match[i], p))
            return false;
    return true;
}

/* -- bodies ---------------------------------------------------------------- */

stg_pattern *stg_match_body(const stg_target_settings *t)
{
    for (size_t i = 0; i < t->match_count; i++)
        if (t->match[i].body != NULL)
            return t->match[i].body;
    return NULL;
}

stg_pattern *stg_match_event(const stg_target_settings *t)
{
    for (size_t i = 0; i < t->match_count; i++)
        if (t->match[i].event != NULL)
            return t->match[i].event;
    return NULL;
}

static bool wants_body(const stg_target_settings *t, const stg_parcel *p)
{
    bool is_structured = stg_cloud_event_is_structured(p->content_type);
    const stg_pattern *body = stg_match_body(t),
                      *event = is_structured ? stg_match_event(t) : NULL;
    json_t *json =
        body != NULL || event != NULL ? stg_pattern_parse(p->body) : NULL;
    bool wants = (body == NULL || stg_pattern_matches(body, json)) &&
                 (event == NULL || stg_pattern_matches(event, json));

    json_decref(json);
    return wants;
}

/* -- both ------------------------------------------------------------------ */

bool stg_match_wants(const stg_target_settings *t, const stg_parcel *p)
{
    return stg_match_wants_headers(t, p) && wants_body(t, p);
}

/* A stg_lane_options.accepts; ctx is the target's settings. A message that
 * cannot be unpacked is accepted, so that its attempt fails and says why. */
bool stg_match_accepts(void *ctx, const stg_message *m)
{
    stg_parcel p;

    return !stg_parcel_unpack(&p, m->bytes, m->size) ||
           (m->true_size > 0 ? stg_match_wants_headers(ctx, &p)
                             : stg_match_wants(ctx, &p));
}

/* -- why not --------------------------------------------------------------- */

enum { VALUES_SHOWN = 6, VALUE_SHOWN = 60 };

static void put_value(stg_text *to, stg_span value)
{
    size_t size = 0;

    while (size < value.size && size < VALUE_SHOWN) {
        size_t length = stg_utf8_length(value.at + size, value.size - size);

        size += length > 0 ? length : 1;
    }
    stg_text_put(to, "\"");
    stg_text_add(to, value.at, size);
    stg_text_put(to, size < value.size ? "...\"" : "\"");
}

/* The value of the header that the message has; at: NULL, it has none. */
static stg_span value_of(const stg_match_setting *m, const stg_parcel *p)
{
    stg_span header = {m->header, strlen(m->header)}, lines = p->headers, name,
             value;

    if (stg_header_equal(header, "Content-Type"))
        return p->content_type.size > 0 ? p->content_type : (stg_span){NULL, 0};
    if (stg_header_equal(header, "Stagger-Key"))
        return p->key.size > 0 ? p->key : (stg_span){NULL, 0};
    while (lines.size > 0 && next_line(&lines, &name, &value))
        if (stg_header_equal(name, m->header))
            return value;
    return (stg_span){NULL, 0};
}

static void explain_header(const stg_match_setting *m, const stg_parcel *p,
                           stg_text *why)
{
    stg_span value = value_of(m, p);

    if (m->conditions != NULL) {
        json_t *headers = json_object();

        if (value.at != NULL)
            (void)json_object_set_new(headers, m->header,
                                      json_stringn(value.at, value.size));
        stg_pattern_explain(m->conditions, headers, "header", why);
        json_decref(headers);
        return;
    }
    stg_text_put(why, "header ");
    stg_text_put(why, m->header);
    if (value.at == NULL) {
        stg_text_put(why, m->values.count > 1
                              ? " is not there; expected one of "
                              : " is not there; expected ");
    } else {
        stg_text_put(why, ": ");
        put_value(why, value);
        stg_text_put(why, m->values.count > 1 ? " is none of " : " is not ");
    }
    for (size_t i = 0; i < m->values.count && i < VALUES_SHOWN; i++) {
        const char *one = m->values.at[i];

        stg_text_put(why, i > 0 ? ", " : "");
        put_value(why, (stg_span){one, strlen(one)});
    }
    if (m->values.count > VALUES_SHOWN)
        stg_text_put(why, ", ...");
}

void stg_match_explain(const stg_target_settings *t, const stg_parcel *p,
                       const json_t *body, stg_text *why)
{
    bool is_structured = stg_cloud_event_is_structured(p->content_type);
    const stg_pattern *event = is_structured ? stg_match_event(t) : NULL,
                      *pattern = stg_match_body(t);
    size_t before = why->size;

    for (size_t i = 0; i < t->match_count; i++)
        if (!is_elsewhere(&t->match[i], p) && !is_met(&t->match[i], p)) {
            explain_header(&t->match[i], p, why);
            return;
        }
    if (event != NULL)
        stg_pattern_explain(event, body, "event", why);
    if (pattern != NULL && why->size == before)
        stg_pattern_explain(pattern, body, "body", why);
}
