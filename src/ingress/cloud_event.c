/* CloudEvents from one mode into the other: attributes between headers and members of a
 * JSON object, data byte by byte. What is no event in one mode goes on as it came. */
#include "ingress/cloud_event.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/digits.h"
#include "base/json.h"
#include "base/text.h"
#include "base/visible.h"
#include "http/header.h"

enum { NAME_MAX = 64 }; /* of an attribute; the specification has 20 */

/* Without them it is no event. Source: CloudEvents 1.0.2, "Required Attributes". */
static const char *const required[] = {"specversion", "id", "source", "type"};

enum {
    REQUIRED = sizeof required / sizeof *required,
    ALL = (1 << REQUIRED) - 1
};

static const char structured[] = "application/cloudevents+json";

/* The bit of a required attribute, or 0. */
static unsigned bit_of(stg_span name)
{
    for (unsigned i = 0; i < REQUIRED; i++)
        if (stg_header_equal(name, required[i]))
            return 1U << i;
    return 0;
}

/* Without parameters and the blanks before them. */
static stg_span media_type(stg_span type)
{
    const char *end = type.size > 0 ? memchr(type.at, ';', type.size) : NULL;

    if (end != NULL)
        type.size = (size_t)(end - type.at);
    while (type.size > 0 && type.at[type.size - 1] == ' ')
        type.size--;
    return type;
}

bool stg_cloud_event_is_structured(stg_span content_type)
{
    return stg_header_equal(media_type(content_type), structured);
}

bool stg_cloud_event_is_header(stg_span name)
{
    return name.size > 3 && stg_header_matches("ce-*", name);
}

/* application/json, and all that end in /json or +json. */
static bool is_json_type(stg_span type)
{
    static const char end[] = "json";
    size_t size = sizeof end - 1;

    type = media_type(type);
    return type.size > size &&
           strncasecmp(type.at + type.size - size, end, size) == 0 &&
           strchr("/+", type.at[type.size - size - 1]) != NULL;
}

static bool is_text_type(stg_span type)
{
    return type.size > 5 && strncasecmp(type.at, "text/", 5) == 0;
}

/* -- values in headers ----------------------------------------------------- */

/* Source: HTTP Protocol Binding, 3.1.3.2. */
static void put_encoded(stg_text *to, stg_span value)
{
    for (size_t i = 0; i < value.size; i++) {
        unsigned char c = (unsigned char)value.at[i];

        if (c > ' ' && c < 0x7f && c != '"' && c != '%')
            stg_text_add(to, value.at + i, 1);
        else
            stg_text_put_escape(to, value.at[i]);
    }
}

/* Where it lies in out. What is no code stays as it is. */
static stg_span decode(stg_span value, char *out)
{
    size_t size = 0;

    for (size_t i = 0; i < value.size; i++) {
        int high = value.at[i] == '%' && i + 2 < value.size
                       ? stg_hex_digit(value.at[i + 1])
                       : -1;
        int low = high >= 0 ? stg_hex_digit(value.at[i + 2]) : -1;

        out[size++] = (char)(low >= 0 ? high << 4 | low : value.at[i]);
        i += low >= 0 ? 2 : 0;
    }
    return (stg_span){out, size};
}

/* A string of JSON; the value is UTF-8. */
static void put_string(stg_text *to, stg_span value)
{
    char code[STG_VISIBLE_ESCAPE_MAX];

    stg_text_put(to, "\"");
    for (size_t i = 0; i < value.size; i++) {
        char c = value.at[i];

        if (c == '"' || c == '\\')
            stg_text_put(to, "\\");
        if ((unsigned char)c < ' ')
            stg_text_add(to, code, stg_visible_escape((unsigned char)c, code));
        else
            stg_text_add(to, &c, 1);
    }
    stg_text_put(to, "\"");
}

/* -- to structured mode ---------------------------------------------------- */

/* The name of an attribute in the header's; false: no attribute has it. */
static bool read_name(stg_span header, char name[NAME_MAX])
{
    size_t size = header.size - 3;

    if (size >= NAME_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        char c = stg_header_fold_case(header.at[i + 3]);

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
            return false;
        name[i] = c;
    }
    name[size] = '\0';
    // These two are the body, and its Content-Type.
    return strcmp(name, "data") != 0 && strcmp(name, "datacontenttype") != 0;
}

static stg_span value_of_line(stg_span line, stg_span name)
{
    stg_span value = {line.at + name.size + 1, line.size - name.size - 1};

    while (value.size > 0 && value.at[0] == ' ')
        value = (stg_span){value.at + 1, value.size - 1};
    while (value.size > 0 && strchr("\r\n ", value.at[value.size - 1]) != NULL)
        value.size--;
    return value;
}

/* Attributes go to `body`, all other lines to `lines`. False: it is no event, or
 * one that JSON cannot have. */
static bool put_attributes(const stg_parcel *p, stg_text *body, stg_text *lines)
{
    stg_span left = p->headers, line;
    unsigned found = 0;

    stg_text_put(body, "{");
    while ((line = stg_header_next(&left)).size > 0) {
        stg_span header = stg_header_name(line), value;
        char name[NAME_MAX], *out;

        if (!stg_cloud_event_is_header(header)) {
            stg_text_add(lines, line.at, line.size);
            continue;
        }
        value = value_of_line(line, header);
        if (!read_name(header, name))
            return false;
        found |= bit_of((stg_span){name, strlen(name)});
        out = malloc(value.size + 1);
        if (out == NULL) {
            body->is_short = true;
            return true;
        }
        value = decode(value, out);
        stg_text_put(body, body->size > 1 ? ",\"" : "\"");
        stg_text_put(body, name);
        stg_text_put(body, "\":");
        put_string(body, value);
        free(out);
    }
    return found == ALL;
}

static bool is_whole_json(stg_span body)
{
    stg_scan s = stg_scan_of(body);
    stg_span value;

    return stg_scan_value(&s, &value) && stg_scan_end(&s);
}

/* JSON stands as it is, other text in a string, all else in Base64; what calls itself
 * JSON and is none goes as bytes, so that nothing is lost. */
static void put_data(const stg_parcel *p, stg_text *body)
{
    stg_span data = p->body;

    if (p->content_type.size > 0) {
        stg_text_put(body, ",\"datacontenttype\":");
        put_string(body, p->content_type);
    }
    if (data.size == 0)
        return;
    if ((p->content_type.size == 0 || is_json_type(p->content_type)) &&
        is_whole_json(data)) {
        stg_text_put(body, ",\"data\":");
        stg_text_add(body, data.at, data.size);
    } else if (is_text_type(p->content_type) &&
               !is_json_type(p->content_type) &&
               stg_utf8_is_text(data.at, data.size)) {
        stg_text_put(body, ",\"data\":");
        put_string(body, data);
    } else {
        stg_text_put(body, ",\"data_base64\":\"");
        stg_text_put_base64(body, data);
        stg_text_put(body, "\"");
    }
}

/* False: it stays as it is. */
static bool to_structured(const stg_parcel *p, stg_text *body, stg_text *lines)
{
    if (!put_attributes(p, body, lines))
        return false;
    put_data(p, body);
    stg_text_put(body, "}");
    return body->is_short || stg_utf8_is_text(body->at, body->size);
}

/* -- to binary mode -------------------------------------------------------- */

typedef struct event {
    stg_span data, base64, type; /* JSON values; at: NULL, not there */
    unsigned found;
    stg_text *lines;
} event;

/* What a string of JSON stands for, behind the text, of which it is no part yet.
 * False: no memory. */
static bool read_string(stg_text *room, stg_span json, stg_span *value)
{
    char *out = stg_text_reserve(room, json.size);

    if (out == NULL)
        return false;
    value->at = out;
    value->size = stg_scan_text(json, out);
    return true;
}

/* Whether the attribute was there before, also in another case. */
static bool has_line(const event *e, stg_span name)
{
    stg_span left = {e->lines->at, e->lines->size}, line;

    while ((line = stg_header_next(&left)).size > 0) {
        stg_span header = stg_header_name(line);

        if (stg_header_matches("ce-*", header) &&
            stg_header_same((stg_span){header.at + 3, header.size - 3}, name))
            return true;
    }
    return false;
}

/* False: no header can have it, or two would. */
static bool put_attribute(event *e, stg_span name, stg_span value)
{
    stg_text room = {.size = 0};
    stg_span text = value;
    bool is_string = value.at[0] == '"';

    if (stg_span_is(value, "null"))
        return true;
    if (strchr("{[", value.at[0]) != NULL || !stg_header_is_name(name) ||
        name.size >= NAME_MAX || e->lines->size > STG_HEADERS_SIZE_MAX ||
        has_line(e, name))
        return false;
    if (is_string && !read_string(&room, value, &text))
        e->lines->is_short = true;
    else {
        e->found |= bit_of(name);
        stg_text_put(e->lines, "ce-");
        stg_text_add(e->lines, name.at, name.size);
        stg_text_put(e->lines, ": ");
        put_encoded(e->lines, text);
        stg_text_put(e->lines, "\r\n");
    }
    stg_text_free(&room);
    return true;
}

/* Names have no escapes, or no header could have them. */
static bool read_member(event *e, stg_span quoted, stg_span value)
{
    stg_span name = {quoted.at + 1, quoted.size - 2};
    stg_span *own = stg_span_is(name, "data")              ? &e->data
                    : stg_span_is(name, "data_base64")     ? &e->base64
                    : stg_span_is(name, "datacontenttype") ? &e->type
                                                           : NULL;

    if (own == NULL)
        return put_attribute(e, name, value);
    if (!stg_span_is(value, "null"))
        *own = value;
    return true;
}

static bool read_event(event *e, stg_span body)
{
    stg_scan s = stg_scan_of(body);
    bool is_first = true, is_read = true;
    stg_span name, value;

    while (is_read && stg_scan_member(&s, &is_first, &name, &value))
        is_read = read_member(e, name, value);
    return is_read && s.wrong == NULL && stg_scan_end(&s) && e->found == ALL;
}

/* The bytes of the data: those of a string where they are not JSON. False: it is
 * no Base64. */
static bool read_data(const event *e, stg_span type, stg_text *body)
{
    stg_span data = e->base64.at != NULL ? e->base64 : e->data;
    bool is_string = data.at != NULL && data.at[0] == '"';
    char *out = data.at != NULL ? stg_text_reserve(body, data.size) : NULL;

    if (out == NULL)
        return true; // none, or no memory, which body knows
    if (e->base64.at == NULL &&
        (!is_string || type.size == 0 || is_json_type(type))) {
        stg_text_add(body, data.at, data.size);
        return true;
    }
    body->size = is_string ? stg_scan_text(data, out) : 0;
    return e->base64.at == NULL ||
           (is_string &&
            stg_base64_read(out, (stg_span){out, body->size}, &body->size));
}

static void put_other_lines(const stg_parcel *p, stg_text *lines)
{
    stg_span left = p->headers, line;

    while ((line = stg_header_next(&left)).size > 0)
        if (!stg_cloud_event_is_header(stg_header_name(line)))
            stg_text_add(lines, line.at, line.size);
}

/* The type of the data, in `type`. False: it stays as it is. */
static bool to_binary(const stg_parcel *p, stg_text *body, stg_text *lines,
                      stg_text *type)
{
    event e = {.lines = lines};
    stg_span text = {NULL, 0};

    put_other_lines(p, lines);
    if (!read_event(&e, p->body) || lines->size > STG_HEADERS_SIZE_MAX)
        return false;
    if (e.type.at != NULL &&
        (e.type.at[0] != '"' ||
         (read_string(type, e.type, &text) && !stg_header_is_value(text))))
        return false;
    type->size = text.size;
    // Source: JSON Event Format, 3.1: what is not said is JSON.
    if (e.type.at == NULL && e.data.at != NULL && e.base64.at == NULL)
        stg_text_put(type, "application/json");
    return read_data(&e, (stg_span){type->at, type->size}, body);
}

/* -- both ------------------------------------------------------------------ */

/* All three in one piece of memory. False: there is none. */
static bool adopt(stg_parcel *p, const stg_text *body, const stg_text *lines,
                  const stg_text *type, char **memory)
{
    const stg_text *parts[] = {body, lines, type};
    stg_span *to[] = {&p->body, &p->headers, &p->content_type};
    char *at;

    if (body->is_short || lines->is_short || type->is_short)
        return false;
    at = *memory = malloc(body->size + lines->size + type->size + 1);
    for (size_t i = 0; at != NULL && i < 3; i++) {
        if (parts[i]->size > 0)
            memcpy(at, parts[i]->at, parts[i]->size);
        *to[i] = (stg_span){at, parts[i]->size};
        at += parts[i]->size;
    }
    return at != NULL;
}

/* What is no event, or is in the wanted mode already, is left as it is. */
bool stg_cloud_event_convert(stg_cloud_events mode, stg_parcel *p,
                             char **memory)
{
    bool is_structured = stg_cloud_event_is_structured(p->content_type);
    stg_text body = {.size = 0}, lines = {.size = 0}, type = {.size = 0};
    bool is_made = true, is_other;

    *memory = NULL;
    if (mode == STG_CLOUD_EVENTS_AS_IS ||
        is_structured == (mode == STG_CLOUD_EVENTS_STRUCTURED))
        return true;
    if (is_structured) {
        is_other = to_binary(p, &body, &lines, &type);
    } else {
        is_other = to_structured(p, &body, &lines);
        stg_text_put(&type, structured);
        stg_text_put(&type, "; charset=utf-8");
    }
    if (is_other || body.is_short || lines.is_short || type.is_short)
        is_made = adopt(p, &body, &lines, &type, memory);
    stg_text_free(&body);
    stg_text_free(&lines);
    stg_text_free(&type);
    return is_made;
}
