/* Values of the API in JSON: texts that may be no UTF-8, counts beyond what an integer
 * of JSON holds, times that are not known, and bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admin/internal.h"
#include "base/text.h"
#include "base/visible.h"
#include "host/wall.h"

json_t *stg_json_span(const char *at, size_t size)
{
    static const char unknown[] = "\xef\xbf\xbd"; // U+FFFD
    json_t *json = json_stringn(at, size);
    char *copy, *to;

    if (json != NULL)
        return json;
    to = copy = malloc(3 * size + 1);
    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i < size;) {
        size_t length = stg_utf8_length(at + i, size - i);

        memcpy(to, length == 0 ? unknown : at + i, length == 0 ? 3 : length);
        to += length == 0 ? 3 : length;
        i += length == 0 ? 1 : length;
    }
    json = json_stringn(copy, (size_t)(to - copy));
    free(copy);
    return json;
}

json_t *stg_json_text(const char *text)
{
    return text == NULL ? json_null() : stg_json_span(text, strlen(text));
}

json_t *stg_json_count(uint64_t number)
{
    return json_integer(number > INT64_MAX ? INT64_MAX : (json_int_t)number);
}

json_t *stg_json_time(stg_ns wall)
{
    char text[STG_UTC_TEXT_MAX];

    return wall == 0 ? json_null() : json_string(stg_utc_text(wall, text));
}

json_t *stg_json_milliseconds(stg_ns time)
{
    // A thousandth of it is exact enough for anybody.
    uint64_t thousandths = time / STG_US;

    return time == 0 ? json_null() : json_real((double)thousandths / 1000.0);
}

json_t *stg_admin_print_attempt(stg_ns ended_at, stg_ns took, uint64_t number,
                                const stg_outcome *outcome, int status)
{
    char cause[STG_CAUSE_MAX];

    return json_pack(
        "{s:o,s:o,s:o,s:o,s:s?}", "ended_at", stg_json_time(ended_at),
        "took_ms", stg_json_milliseconds(took), "attempt",
        stg_json_count(number), "http_status",
        status == 0 ? json_null() : json_integer(status), "cause",
        outcome->fault == STG_FAULT_NONE ? NULL
                                         : stg_outcome_cause(outcome, cause));
}

static json_t *base64_of(stg_span bytes)
{
    size_t size = stg_base64_size(bytes.size);
    char *text = malloc(size + 1);
    json_t *json = NULL;

    if (text != NULL) {
        stg_base64_put(text, bytes);
        json = json_stringn(text, size);
    }
    free(text);
    return json;
}

int stg_json_add_bytes(json_t *object, const char *name, stg_span bytes)
{
    char other[64];

    if (bytes.size == 0 || stg_utf8_is_text(bytes.at, bytes.size))
        return json_object_set_new(
            object, name,
            json_stringn(bytes.size == 0 ? "" : bytes.at, bytes.size));
    snprintf(other, sizeof other, "%s_base64", name);
    return json_object_set_new(object, other, base64_of(bytes));
}
