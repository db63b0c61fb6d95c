/* Fills templates in: one pass over the text, which is short, for each message.
 *
 * A name in a body is looked for in all of its object, so that one that is there
 * twice is found out: the target might read the other one. */
#include "http/template.h"

#include <stdio.h>

#include "base/json.h"
#include "http/header.h"

enum { VALUE_MAX = 2048 }; /* bytes of a value as it is in the message */

static const char of_header[] = "header.", of_body[] = "body.";

static bool refuse(char flaw[STG_TEMPLATE_FLAW_MAX], stg_span name,
                   const char *why)
{
    snprintf(flaw, STG_TEMPLATE_FLAW_MAX, "%.*s %s",
             (int)(name.size < 120 ? name.size : 120), name.at, why);
    return false;
}

static bool begins(stg_span name, const char *with, size_t size)
{
    return name.size > size && memcmp(name.at, with, size) == 0;
}

static stg_span behind(stg_span name, size_t size)
{
    return (stg_span){name.at + size, name.size - size};
}

/* -- the names --------------------------------------------------------------- */

/* Takes the first name off "user.id". False: it is empty. */
static bool take_name(stg_span *path, stg_span *name)
{
    const char *dot = memchr(path->at, '.', path->size);
    size_t size = dot == NULL ? path->size : (size_t)(dot - path->at);

    *name = (stg_span){path->at, size};
    *path = behind(*path, dot == NULL ? size : size + 1);
    return size > 0 && (dot == NULL || path->size > 0);
}

static bool is_path(stg_span path)
{
    stg_span name;

    while (path.size > 0)
        if (!take_name(&path, &name))
            return false;
    return true;
}

static bool is_name(stg_span name)
{
    if (begins(name, of_header, sizeof of_header - 1))
        return stg_header_is_name(behind(name, sizeof of_header - 1));
    if (begins(name, of_body, sizeof of_body - 1))
        return is_path(behind(name, sizeof of_body - 1));
    return stg_span_is(name, "id") || stg_span_is(name, "key") ||
           stg_span_is(name, "topic");
}

bool stg_template_check(const char *text, char flaw[STG_TEMPLATE_FLAW_MAX])
{
    while ((text = strchr(text, '{')) != NULL) {
        const char *end = text[1] == '{' ? text + 1 : strchr(text, '}');
        stg_span name;

        if (end == NULL) {
            snprintf(flaw, STG_TEMPLATE_FLAW_MAX,
                     "a brace without its end; expected {{ for a brace");
            return false;
        }
        name = (stg_span){text + 1, (size_t)(end - text - 1)};
        if (text[1] != '{' && !is_name(name)) {
            snprintf(flaw, STG_TEMPLATE_FLAW_MAX,
                     "{%.*s}; expected {id}, {key}, {topic}, {header.NAME} or "
                     "{body.NAME}, or {{ for a brace",
                     (int)(name.size < 60 ? name.size : 60), name.at);
            return false;
        }
        text = end + 1;
    }
    return true;
}

/* -- the values -------------------------------------------------------------- */

static stg_span find_header(const stg_template_message *m, stg_span name)
{
    stg_span lines = m->headers, line;

    if (stg_header_equal(name, "Content-Type"))
        return m->content_type;
    if (stg_header_equal(name, "Stagger-Key"))
        return m->key;
    while ((line = stg_header_next(&lines)).size > 0)
        if (stg_header_same(stg_header_name(line), name) &&
            line.size >= name.size + 4)
            return (stg_span){line.at + name.size + 2,
                              line.size - name.size - 4};
    return (stg_span){NULL, 0};
}

/* A member's name, which may have escapes. */
static bool is_named(stg_span quoted, stg_span name)
{
    char text[VALUE_MAX];

    return quoted.size <= sizeof text &&
           stg_scan_text(quoted, text) == name.size &&
           memcmp(text, name.at, name.size) == 0;
}

/* NULL: there is one. */
static const char *find_member(stg_span object, stg_span name, stg_span *value)
{
    stg_scan s = stg_scan_of(object);
    stg_span each, found;
    bool is_first = true;

    value->at = NULL;
    if (object.at[0] != '{')
        return "is missing";
    while (stg_scan_member(&s, &is_first, &each, &found)) {
        if (!is_named(each, name))
            continue;
        if (value->at != NULL)
            return "is there twice";
        *value = found;
    }
    return value->at == NULL ? "is missing" : NULL;
}

/* The text of a scalar; text has room for VALUE_MAX. NULL: done. */
static const char *read_scalar(stg_span *value, char *text)
{
    if (value->size > VALUE_MAX)
        return "is longer than 2048 bytes";
    switch (value->at[0]) {
    case '{':
        return "is an object";
    case '[':
        return "is a list";
    case 'n':
        return "is null";
    case '"':
        *value = (stg_span){text, stg_scan_text(*value, text)};
        return NULL;
    default:
        return NULL;
    }
}

/* Once a message, for all names in all of its templates. */
static bool scan_body(stg_template_message *m, char flaw[STG_TEMPLATE_FLAW_MAX])
{
    stg_scan s = stg_scan_of(m->body);

    if (m->root.at != NULL ||
        (stg_scan_value(&s, &m->root) && stg_scan_end(&s)))
        return true;
    m->root.at = NULL;
    snprintf(flaw, STG_TEMPLATE_FLAW_MAX, "the body is not JSON: %s", s.wrong);
    return false;
}

static bool find_in_body(stg_template_message *m, stg_span whole, char *text,
                         stg_span *value, char flaw[STG_TEMPLATE_FLAW_MAX])
{
    stg_span path = behind(whole, sizeof of_body - 1), name;
    const char *why = NULL;

    if (!scan_body(m, flaw))
        return false;
    *value = m->root;
    while (why == NULL && path.size > 0) {
        stg_span in = *value;

        (void)take_name(&path, &name);
        why = find_member(in, name, value);
    }
    if (why == NULL)
        why = read_scalar(value, text);
    return why == NULL || refuse(flaw, whole, why);
}

/* text: room for what has to be decoded. */
static bool find(stg_template_message *m, stg_span name, char *text,
                 stg_span *value, char flaw[STG_TEMPLATE_FLAW_MAX])
{
    if (begins(name, of_body, sizeof of_body - 1))
        return find_in_body(m, name, text, value, flaw);
    *value = begins(name, of_header, sizeof of_header - 1)
                 ? find_header(m, behind(name, sizeof of_header - 1))
             : stg_span_is(name, "id")  ? m->id
             : stg_span_is(name, "key") ? m->key
                                        : m->topic;
    if (value->size == 0)
        return refuse(flaw, name, "is missing");
    return value->size <= VALUE_MAX ||
           refuse(flaw, name, "is longer than 2048 bytes");
}

/* -- where they stand -------------------------------------------------------- */

static bool put_value(stg_text *to, stg_template_place place,
                      stg_template_message *m, stg_span name,
                      char flaw[STG_TEMPLATE_FLAW_MAX])
{
    char text[VALUE_MAX];
    stg_span value;

    if (!find(m, name, text, &value, flaw))
        return false;
    if (place == STG_TEMPLATE_PATH) {
        stg_text_put_percent(to, value);
        return true;
    }
    if (!stg_header_is_value(value))
        return refuse(flaw, name, "has characters that no header may have");
    stg_text_add(to, value.at, value.size);
    return true;
}

/* The segment of the path that begins at `from` has a value in it: it is to be
 * one segment. */
static bool check_segment(const stg_text *to, size_t from, stg_span name,
                          char flaw[STG_TEMPLATE_FLAW_MAX])
{
    stg_span segment = {to->at + from, to->size - from};

    if (to->is_short)
        return true;
    if (segment.size == 0)
        return refuse(flaw, name, "makes an empty path segment");
    return (!stg_span_is(segment, ".") && !stg_span_is(segment, "..")) ||
           refuse(flaw, name, "makes a path segment of dots");
}

typedef struct filling {
    stg_text *to;
    stg_template_place place;
    stg_template_message *m;
    size_t segment; /* where that of the path begins */
    stg_span value; /* the last name in it; size 0: none */
    bool is_query;
    char *flaw;
} filling;

static bool end_segment(filling *f)
{
    bool is_checked =
        f->value.size > 0 && !f->is_query && f->place == STG_TEMPLATE_PATH;

    return !is_checked || check_segment(f->to, f->segment, f->value, f->flaw);
}

static bool put_literal(filling *f, const char *c)
{
    if ((*c == '/' || *c == '?') && !end_segment(f))
        return false;
    stg_text_add(f->to, c, 1);
    f->is_query |= *c == '?';
    if (*c == '/' || *c == '?') {
        f->segment = f->to->size;
        f->value.size = 0;
    }
    return true;
}

bool stg_template_put(stg_text *to, const char *text, stg_template_place place,
                      stg_template_message *m, char flaw[STG_TEMPLATE_FLAW_MAX])
{
    filling f = {
        .to = to, .place = place, .m = m, .segment = to->size, .flaw = flaw};

    for (; *text != '\0'; text++) {
        const char *end = *text == '{' ? strchr(text, '}') : NULL;

        if (*text == '{' && text[1] == '{') {
            stg_text_add(to, text++, 1);
        } else if (end != NULL) {
            f.value = (stg_span){text + 1, (size_t)(end - text - 1)};
            if (!put_value(to, place, m, f.value, flaw))
                return false;
            text = end;
        } else if (!put_literal(&f, text)) {
            return false;
        }
    }
    return end_segment(&f);
}
