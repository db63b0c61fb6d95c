/* Reads a batch of NDJSON in place: each line's members are found, decoded
 * where they lie, and become a message that points into the text.
 *
 * Decoded text is never longer than its JSON, which is why it can be written
 * over it. A batch is all or nothing: the first wrong line refuses it. */
#include "ingress/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "http/header.h"
#include "store/parcel.h"

/* The members of a line. */
typedef enum field {
    BODY,
    BODY_BASE64,
    JSON,
    KEY,
    CONTENT_TYPE,
    HEADERS,
    IDEMPOTENCY_KEY,
    NOT_BEFORE,
    EXPIRES,
    FIELDS,
} field;

static const char *const field_names[FIELDS] = {
    [BODY] = "body",
    [BODY_BASE64] = "body_base64",
    [JSON] = "json",
    [KEY] = "key",
    [CONTENT_TYPE] = "content_type",
    [HEADERS] = "headers",
    [IDEMPOTENCY_KEY] = "idempotency_key",
    [NOT_BEFORE] = "not_before",
    [EXPIRES] = "expires",
};

struct stg_batch_piece {
    struct stg_batch_piece *next;
    char bytes[];
};

/* A line that is being read. */
typedef struct line {
    size_t number;
    stg_span raw[FIELDS]; /* JSON values; at is NULL: not there */
    const stg_batch_rules *rules;
    stg_batch *batch;
    stg_problem *why;
} line;

#define REFUSE(l, status, format, ...)                                    \
    stg_problem_set((l)->why, (status), (l)->number, "line %zu: " format, \
                    (l)->number, __VA_ARGS__)

/* The batch's own text may be written to: it was given as char *. */
static char *writable(const char *at)
{
    return (char *)(uintptr_t)at;
}

/* -- a line's members -------------------------------------------------------- */

/* Compared as it came, with its quotes: a name with an escape in it is
 * unknown. */
static field find_field(stg_span name)
{
    for (field f = BODY; f < FIELDS; f++)
        if (name.size == strlen(field_names[f]) + 2 &&
            memcmp(name.at + 1, field_names[f], name.size - 2) == 0)
            return f;
    return FIELDS;
}

static bool keep_member(line *l, stg_span name, stg_span value)
{
    field f = find_field(name);

    if (f == FIELDS)
        return REFUSE(
            l, 400,
            "unknown name %.*s; expected body, body_base64, json, key, "
            "content_type, headers, idempotency_key, not_before, expires",
            (int)(name.size < 40 ? name.size : 40), name.at);
    if (l->raw[f].at != NULL)
        return REFUSE(l, 400, "\"%s\" is there twice", field_names[f]);
    l->raw[f] = value;
    return true;
}

/* Positions in errors count bytes of the line, from 1. */
static bool read_members(line *l, stg_span text)
{
    stg_scan s = stg_scan_of(text);
    bool is_first = true;
    stg_span name, value;

    while (stg_scan_member(&s, &is_first, &name, &value))
        if (!keep_member(l, name, value))
            return false;
    if (s.wrong == NULL)
        stg_scan_end(&s);
    return s.wrong == NULL || REFUSE(l, 400, "%s at byte %zu", s.wrong,
                                     (size_t)(s.at - text.at) + 1);
}

/* -- what they stand for, written where they lie ----------------------------- */

/* Empty if it is not there. */
static bool read_text(line *l, field f, stg_span *text)
{
    stg_span raw = l->raw[f];
    char *at = writable(raw.at);

    if (raw.at == NULL)
        return true;
    if (raw.at[0] != '"')
        return REFUSE(l, 400, "\"%s\" is no string", field_names[f]);
    *text = (stg_span){at, stg_scan_text(raw, at)};
    return true;
}

static bool read_key(line *l, field f, stg_span *key)
{
    if (l->raw[f].at == NULL)
        return true;
    if (!read_text(l, f, key))
        return false;
    return stg_parcel_is_key(*key) ||
           REFUSE(l, 400,
                  "\"%s\": expected 1 to %d bytes without control characters",
                  field_names[f], STG_KEY_SIZE_MAX);
}

static bool read_content_type(line *l, stg_span *type)
{
    if (!read_text(l, CONTENT_TYPE, type))
        return false;
    return (type->size <= STG_KEY_SIZE_MAX && stg_header_is_value(*type)) ||
           REFUSE(l, 400, "\"%s\" is no media type", field_names[CONTENT_TYPE]);
}

/* The size is checked when it is decoded: Base64 and escapes are longer than
 * what they stand for. */
static bool read_body(line *l, stg_parcel *p)
{
    int forms = (l->raw[BODY].at != NULL) + (l->raw[BODY_BASE64].at != NULL) +
                (l->raw[JSON].at != NULL);

    if (forms != 1)
        return REFUSE(
            l, 400, "expected one of body, body_base64, json; found %d", forms);
    p->body = l->raw[JSON];
    if (!read_text(l, BODY, &p->body) || !read_text(l, BODY_BASE64, &p->body))
        return false;
    if (l->raw[BODY_BASE64].at != NULL &&
        !stg_base64_read(writable(p->body.at), p->body, &p->body.size))
        return REFUSE(l, 400, "\"%s\" is no Base64 (RFC 4648, with padding)",
                      field_names[BODY_BASE64]);
    if (p->body.size > l->rules->message_max)
        return REFUSE(l, 413, "a body of %zu bytes; the most is %zu",
                      p->body.size, l->rules->message_max);
    return true;
}

/* Those without a type of their own: what is said of text and JSON holds. */
static void default_content_type(const line *l, stg_parcel *p)
{
    static const char text[] = "text/plain; charset=utf-8",
                      json[] = "application/json";

    if (l->raw[CONTENT_TYPE].at != NULL)
        return;
    if (l->raw[BODY].at != NULL)
        p->content_type = (stg_span){text, sizeof text - 1};
    else if (l->raw[JSON].at != NULL)
        p->content_type = (stg_span){json, sizeof json - 1};
}

/* A member of `headers`, as a header's line at out: never beyond the member. */
static bool write_header(line *l, stg_span name, stg_span value, char **out)
{
    stg_span text = {*out, 0};

    if (value.at[0] != '"')
        return REFUSE(l, 400, "the value of header %.*s is no string",
                      (int)(name.size < 40 ? name.size : 40), name.at);
    text.size = stg_scan_text(name, *out);
    if (!stg_header_is_name(text))
        return REFUSE(l, 400, "\"%s\": a name that no header has",
                      field_names[HEADERS]);
    if (!stg_headers_keep(l->rules->headers, text))
        return REFUSE(l, 400,
                      "header %.*s is not kept: the setting listen.headers "
                      "names those that are",
                      (int)(text.size < 40 ? text.size : 40), text.at);
    *out += text.size;
    memcpy(*out, ": ", 2);
    *out += 2;
    text = (stg_span){*out, stg_scan_text(value, *out)};
    if (!stg_header_is_value(text))
        return REFUSE(l, 400, "\"%s\": a value that no header may have",
                      field_names[HEADERS]);
    *out += text.size;
    memcpy(*out, "\r\n", 2);
    *out += 2;
    return true;
}

static bool read_headers(line *l, stg_span *headers)
{
    stg_span raw = l->raw[HEADERS], name, value;
    char *begin = writable(raw.at), *out = begin;
    bool is_first = true;
    stg_scan s;

    if (raw.at == NULL)
        return true;
    s = stg_scan_of(raw);
    while (stg_scan_member(&s, &is_first, &name, &value)) {
        size_t last = (size_t)(out - begin);

        if (!write_header(l, name, value, &out))
            return false;
        out = begin + stg_header_fold(begin, (size_t)(out - begin), last);
    }
    if (out - begin > STG_HEADERS_SIZE_MAX)
        return REFUSE(l, 413, "headers of %zu bytes; the most is %d",
                      (size_t)(out - raw.at), STG_HEADERS_SIZE_MAX);
    // The value was scanned before: only its kind can be wrong.
    if (s.wrong != NULL)
        return REFUSE(l, 400, "\"%s\" is no object", field_names[HEADERS]);
    *headers = (stg_span){raw.at, (size_t)(out - raw.at)};
    return true;
}

/* Puts the times ahead of the headers, in memory of their own: in the text there
 * is no room for them. */
static bool put_times(line *l, const stg_times *t, stg_span *headers)
{
    struct stg_batch_piece *piece =
        malloc(sizeof *piece + STG_TIMES_ROOM + headers->size);
    char *to;

    if (piece == NULL)
        return stg_problem_set(l->why, 503, 0, "no memory");
    piece->next = l->batch->pieces;
    l->batch->pieces = piece;
    l->batch->more += sizeof *piece + STG_TIMES_ROOM + headers->size;
    to = stg_times_put(piece->bytes, t);
    if (headers->size > 0)
        memcpy(to, headers->at, headers->size);
    *headers =
        (stg_span){piece->bytes, (size_t)(to - piece->bytes) + headers->size};
    return true;
}

/* Both are read before one is judged, since each is checked against the other. */
static bool read_times(line *l, stg_span *headers)
{
    stg_span not_before = {NULL, 0}, expires = {NULL, 0};
    const char *expected;
    bool is_expires;
    stg_times t;

    if (l->raw[NOT_BEFORE].at == NULL && l->raw[EXPIRES].at == NULL)
        return true;
    if (!read_text(l, NOT_BEFORE, &not_before) ||
        !read_text(l, EXPIRES, &expires))
        return false;
    expected = stg_times_read_both(&t, not_before, expires, l->rules->now,
                                   &is_expires);
    if (expected != NULL)
        return REFUSE(l, 400, "\"%s\": %s",
                      field_names[is_expires ? EXPIRES : NOT_BEFORE], expected);
    return put_times(l, &t, headers);
}

/* Each of these writes over its own member only, and spoils no other. */
static bool read_line(line *l, stg_span text, stg_append *message)
{
    *message = (stg_append){0};
    if (!read_members(l, text) || !read_body(l, &message->parcel) ||
        !read_key(l, KEY, &message->parcel.key) ||
        !read_content_type(l, &message->parcel.content_type) ||
        !read_headers(l, &message->parcel.headers) ||
        !read_times(l, &message->parcel.headers) ||
        !read_key(l, IDEMPOTENCY_KEY, &message->idempotency_key))
        return false;
    default_content_type(l, &message->parcel);
    return true;
}

/* -- lines ------------------------------------------------------------------- */

static bool is_blank(stg_span text)
{
    return stg_span_trim(text).size == 0;
}

/* Messages, lines_max + 1 at most: more are not counted. */
static size_t count_messages(stg_span text, size_t lines_max)
{
    size_t count = 0;

    while (text.size > 0 && count <= lines_max)
        count += !is_blank(stg_span_take_line(&text));
    return count;
}

size_t stg_batch_cost(const char *text, size_t size,
                      const stg_batch_rules *rules)
{
    return count_messages((stg_span){text, size}, rules->lines_max) *
           (sizeof(stg_append) + sizeof(size_t));
}

static bool read_lines(stg_batch *b, stg_span text, size_t *numbers,
                       const stg_batch_rules *rules, stg_problem *why)
{
    for (size_t number = 1; text.size > 0; number++) {
        line l = {.number = number, .rules = rules, .batch = b, .why = why};
        stg_span one = stg_span_take_line(&text);

        if (is_blank(one))
            continue;
        if (!read_line(&l, one, &b->messages[b->count]))
            return false;
        numbers[b->count++] = number;
    }
    return true;
}

/* Numbers of lines lie behind the messages, in the same block. */
// NOLINTNEXTLINE(readability-non-const-parameter): written to, by writable()
bool stg_batch_parse(stg_batch *b, char *text, size_t size,
                     const stg_batch_rules *rules, stg_problem *why)
{
    stg_span all = {text, size};
    size_t count = count_messages(all, rules->lines_max);
    size_t *numbers;

    if (count == 0)
        return stg_problem_set(why, 400, 0, "a batch without a message");
    if (count > rules->lines_max)
        return stg_problem_set(why, 413, 0, "more than %zu messages",
                               rules->lines_max);
    *b = (stg_batch){
        .messages = malloc(count * (sizeof *b->messages + sizeof *numbers))};
    if (b->messages == NULL)
        return stg_problem_set(why, 503, 0, "no memory");
    numbers = (size_t *)(void *)(b->messages + count);
    b->lines = numbers;
    if (read_lines(b, all, numbers, rules, why))
        return true;
    stg_batch_free(b);
    return false;
}

void stg_batch_free(stg_batch *b)
{
    while (b->pieces != NULL) {
        struct stg_batch_piece *next = b->pieces->next;

        free(b->pieces);
        b->pieces = next;
    }
    free(b->messages);
    *b = (stg_batch){0};
}
