/* Any message in the modes of CloudEvents: what is converted is an event of that
 * mode, comes back with the same data and the same other headers, and has no header
 * that was not there.
 *
 * The input is a line, the content type, and behind it headers, an empty line and
 * the body. */
#include <string.h>

#include "base/json.h"
#include "base/visible.h"
#include "fuzz/fuzz.h"
#include "http/header.h"
#include "ingress/cloud_event.h"

static bool is_line(stg_span line)
{
    stg_span name = stg_header_name(line), value;

    if (!stg_header_is_name(name) || line.size < name.size + 4)
        return false;
    value = (stg_span){line.at + name.size + 2, line.size - name.size - 4};
    return memcmp(line.at + name.size, ": ", 2) == 0 &&
           memcmp(value.at + value.size, "\r\n", 2) == 0 &&
           stg_header_is_value(value);
}

static void check_lines(stg_span lines)
{
    stg_span line;

    while ((line = stg_header_next(&lines)).size > 0)
        HOLDS(is_line(line));
}

static size_t count_others(stg_span lines)
{
    size_t count = 0;
    stg_span line;

    while ((line = stg_header_next(&lines)).size > 0)
        count += !stg_cloud_event_is_header(stg_header_name(line));
    return count;
}

static stg_span trim(stg_span text)
{
    while (text.size > 0 && strchr(" \t\r\n", text.at[0]) != NULL &&
           text.at[0] != '\0')
        text = (stg_span){text.at + 1, text.size - 1};
    while (text.size > 0 && text.at[text.size - 1] != '\0' &&
           strchr(" \t\r\n", text.at[text.size - 1]) != NULL)
        text.size--;
    return text;
}

static bool same(stg_span a, stg_span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.at, b.at, a.size) == 0);
}

static void check_structured(const stg_parcel *p)
{
    stg_scan s = stg_scan_of(p->body);
    stg_span value;

    HOLDS(stg_cloud_event_is_structured(p->content_type));
    HOLDS(stg_utf8_is_text(p->body.at, p->body.size));
    HOLDS(stg_scan_value(&s, &value) && stg_scan_end(&s));
}

static void check(stg_cloud_events mode, const stg_parcel *given)
{
    stg_cloud_events other = mode == STG_CLOUD_EVENTS_BINARY
                                 ? STG_CLOUD_EVENTS_STRUCTURED
                                 : STG_CLOUD_EVENTS_BINARY;
    stg_parcel p = *given, back;
    char *memory, *again, *none;

    HOLDS(stg_cloud_event_convert(mode, &p, &memory));
    if (memory == NULL) {
        HOLDS(memcmp(&p, given, sizeof p) == 0);
        return;
    }
    check_lines(p.headers);
    HOLDS(stg_header_is_value(p.content_type));
    HOLDS(count_others(p.headers) == count_others(given->headers));
    if (mode == STG_CLOUD_EVENTS_STRUCTURED)
        check_structured(&p);
    back = p;
    HOLDS(stg_cloud_event_convert(mode, &back, &none) && none == NULL);
    HOLDS(stg_cloud_event_convert(other, &back, &again));
    if (mode == STG_CLOUD_EVENTS_STRUCTURED && again != NULL)
        HOLDS(same(trim(back.body), trim(given->body)));
    free(again);
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stg_span left = {(const char *)data, size}, line = stg_header_next(&left);
    size_t end = line.size > 0 && line.at[line.size - 1] == '\n';
    char *headers = malloc(size + 1), *body;
    stg_parcel p = {.content_type = {line.at, line.size - end}};

    p.headers.at = headers;
    if (!stg_header_is_value(p.content_type))
        p.content_type.size = 0;
    while ((line = stg_header_next(&left)).size > 2)
        if (is_line(line)) {
            memcpy(headers + p.headers.size, line.at, line.size);
            p.headers.size += line.size;
        }
    body = malloc(left.size + (left.size == 0)); // exact
    if (left.size > 0)
        memcpy(body, left.at, left.size);
    p.body = (stg_span){body, left.size};
    check(STG_CLOUD_EVENTS_BINARY, &p);
    check(STG_CLOUD_EVENTS_STRUCTURED, &p);
    free(body);
    free(headers);
    return 0;
}
