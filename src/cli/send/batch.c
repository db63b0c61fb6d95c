/* Lines as NDJSON, each with its key.
 *
 * The JSON is written by hand: a line is one string among fields that never
 * change, and building a jansson object for each took 2.7 times the processor's
 * time of the whole command. What is no UTF-8 cannot be a string of JSON, and
 * goes as base64. */
#include "cli/send/send.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/visible.h"

/* -- texts ------------------------------------------------------------------- */

static bool put(send_batch *b, const char *bytes, size_t size)
{
    stg_text_add(&b->text, bytes, size);
    return !b->text.is_short;
}

static bool put_text(send_batch *b, const char *text)
{
    return put(b, text, strlen(text));
}

/* A string of JSON, of UTF-8; a byte takes six at most. */
static bool put_string(send_batch *b, stg_span s)
{
    char *to = stg_text_reserve(&b->text, 6 * s.size + 2);

    if (to == NULL)
        return false;
    *to++ = '"';
    for (size_t i = 0; i < s.size; i++) {
        unsigned char c = (unsigned char)s.at[i];

        if (c < ' ') {
            to += snprintf(to, 7, "\\u%04x", c);
            continue;
        }
        if (c == '"' || c == '\\')
            *to++ = '\\';
        *to++ = (char)c;
    }
    *to++ = '"';
    b->text.size = (size_t)(to - b->text.at);
    return true;
}

static bool put_base64(send_batch *b, stg_span s)
{
    size_t size = stg_base64_size(s.size);
    char *to = stg_text_reserve(&b->text, size + 2);

    if (to == NULL)
        return false;
    *to = '"';
    *stg_base64_put(to + 1, s) = '"';
    b->text.size += size + 2;
    return true;
}

/* -- messages -------------------------------------------------------------- */

static bool put_headers(send_batch *b, const send_options *o)
{
    for (size_t i = 0; i < o->header_count; i++)
        if (!put_text(b, i == 0 ? ",\"headers\":{" : ",") ||
            !put_string(b, o->headers[i].name) || !put_text(b, ":") ||
            !put_string(b, o->headers[i].value))
            return false;
    return o->header_count == 0 || put_text(b, "}");
}

static bool put_field(send_batch *b, const char *name, const char *value)
{
    return value == NULL ||
           (put_text(b, name) && put_string(b, stg_span_of(value)));
}

/* Borrows a batch for its text only. The text ends with a 0, and the caller
 * frees it. */
bool stg_send_batch_fields(char **fields, const send_options *o)
{
    send_batch b = {0};

    if (put_field(&b, ",\"key\":", o->key) &&
        put_field(&b, ",\"content_type\":", o->type) &&
        put_field(&b, ",\"not_before\":", o->not_before) &&
        put_field(&b, ",\"expires\":", o->expires) && put_headers(&b, o) &&
        put(&b, "", 1)) {
        *fields = b.text.at;
        return true;
    }
    stg_text_free(&b.text);
    return false;
}

/* Opens the object; every line begins with its key, if there are keys. */
static bool put_key(send_batch *b, const send_options *o, uint64_t number,
                    bool is_followed)
{
    char key[SEND_ID_MAX + 24];

    if (o->has_no_id)
        return put_text(b, "{");
    snprintf(key, sizeof key, "%s-%" PRIu64, o->id, number);
    return put_text(b, "{\"idempotency_key\":") &&
           put_string(b, stg_span_of(key)) &&
           put_text(b, is_followed ? "," : "");
}

static bool put_line(send_batch *b, const send_options *o, const char *fields,
                     stg_span line, uint64_t number)
{
    if (!put_key(b, o, number, true))
        return false;
    if (stg_utf8_is_text(line.at, line.size))
        return put_text(b, "\"body\":") && put_string(b, line) &&
               put_text(b, fields) && put_text(b, "}\n");
    return put_text(b, "\"body_base64\":") && put_base64(b, line) &&
           put_text(b, fields) && put_text(b, "}\n");
}

/* Whether the object has a key of its own, and any members at all. NULL, or
 * what is wrong with it. */
static const char *look_into(stg_span line, bool *has_key, bool *has_any)
{
    stg_scan s = stg_scan_of(line);
    stg_span name, value;
    bool is_first = true;
    static const char key[] = "\"idempotency_key\"";

    *has_key = *has_any = false;
    if (line.size == 0 || line.at[0] != '{')
        return "expected a JSON object";
    while (stg_scan_member(&s, &is_first, &name, &value)) {
        *has_any = true;
        if (name.size == sizeof key - 1 && memcmp(name.at, key, name.size) == 0)
            *has_key = true;
    }
    return s.wrong != NULL || stg_scan_end(&s) ? s.wrong
                                               : "expected one JSON object";
}

/* As it came, but for a key where it has none. */
static bool put_object(send_batch *b, const send_options *o, stg_span line,
                       uint64_t number, const char **why)
{
    bool has_key, has_any;

    *why = look_into(line, &has_key, &has_any);
    if (*why != NULL)
        return true;
    if (has_key)
        return put(b, line.at, line.size) && put_text(b, "\n");
    return put_key(b, o, number, has_any) &&
           put(b, line.at + 1, line.size - 1) && put_text(b, "\n");
}

/* The first line always fits, however long it is. A line that was added in part
 * is cut off again, so the batch stays valid. */
send_added stg_send_batch_add(send_batch *b, const send_options *o,
                              const char *fields, stg_span line,
                              uint64_t number, const char **why)
{
    size_t size = b->text.size;
    bool is_well;

    *why = NULL;
    if (o->form == SEND_NDJSON)
        line = stg_span_trim(line);
    if (line.size == 0)
        return SEND_ADDED;
    if (b->count == SEND_BATCH_LINES ||
        (b->count > 0 && b->text.size + line.size > SEND_BATCH_BYTES))
        return SEND_ADD_FULL;
    is_well = o->form == SEND_NDJSON ? put_object(b, o, line, number, why)
                                     : put_line(b, o, fields, line, number);
    if (!is_well || *why != NULL) {
        b->text.size = size;
        return is_well ? SEND_ADD_REFUSED : SEND_ADD_FAILED;
    }
    b->lines[b->count++] = number;
    b->bytes += line.size + 1;
    return SEND_ADDED;
}

void stg_send_batch_clear(send_batch *b)
{
    stg_text_clear(&b->text);
    b->count = 0;
    b->bytes = 0;
}

void stg_send_batch_free(send_batch *b)
{
    stg_text_free(&b->text);
    *b = (send_batch){0};
}
