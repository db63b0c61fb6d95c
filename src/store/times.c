/* When a message may be sent: reads instants and times from now, and writes both as the
 * instants that a parcel has. */
#include "store/parcel.h"

#include <string.h>

#include "core/reader.h"
#include "host/wall.h"
#include "http/header.h"

static bool read_ahead(stg_span text, stg_ns from, stg_ns *at)
{
    stg_reader r = {text.at, text.at + text.size};
    stg_ns ahead;

    if (from == 0 || !stg_read_duration(&r, &ahead) || !stg_reader_is_empty(&r))
        return false;
    *at = stg_ns_add(from, ahead);
    return true;
}

bool stg_times_read(stg_span text, stg_ns from, stg_ns *at)
{
    char instant[STG_UTC_TEXT_MAX];

    if (text.size == 0 || text.size >= sizeof instant)
        return false;
    memcpy(instant, text.at, text.size);
    instant[text.size] = '\0';
    return memchr(instant, '\0', text.size) == NULL &&
           (stg_instant_read(instant, at) || read_ahead(text, from, at));
}

#define EXPECTED \
    "expected a time like 2026-03-01T12:00:00Z, or one from now, like 10m"

const char *stg_times_read_both(stg_times *t, stg_span not_before,
                                stg_span expires, stg_ns now, bool *is_expires)
{
    *t = (stg_times){0, 0};
    *is_expires = false;
    if (not_before.at != NULL &&
        (!stg_times_read(not_before, now, &t->not_before) ||
         t->not_before > stg_ns_add(now, STG_NOT_BEFORE_MAX)))
        return EXPECTED ", at most 30d ahead";
    *is_expires = true;
    if (expires.at != NULL && !stg_times_read(expires, now, &t->expires_at))
        return EXPECTED;
    return expires.at != NULL && t->expires_at <= t->not_before
               ? "expected a time after the one before which it is not sent"
               : NULL;
}

stg_span stg_times_print(stg_ns at, char text[STG_UTC_TEXT_MAX])
{
    return (stg_span){text, strlen(stg_utc_text(at, text))};
}

static char *put_line(char *to, const char *name, stg_ns at)
{
    char text[STG_UTC_TEXT_MAX];

    return at == 0 ? to
                   : stpcpy(stpcpy(stpcpy(stpcpy(to, name), ": "),
                                   stg_utc_text(at, text)),
                            "\r\n");
}

char *stg_times_put(char *to, const stg_times *t)
{
    return put_line(put_line(to, STG_NOT_BEFORE, t->not_before), STG_EXPIRES,
                    t->expires_at);
}

/* Most messages have none, and are known by their first bytes. */
static bool begins(stg_span headers, const char *name, size_t size)
{
    return headers.size > size && memcmp(headers.at, name, size) == 0 &&
           headers.at[size] == ':';
}

#define BEGINS(headers, name) begins((headers), (name), sizeof(name) - 1)

/* 0 is none: the first instant of 1970 is the one behind it. */
static bool take(stg_span *headers, const char *name, size_t size, stg_ns *at)
{
    enum { COLON = 2, END = 2 }; // ": ", "\r\n"
    stg_span line;

    if (!begins(*headers, name, size))
        return true;
    line = stg_header_next(headers);
    if (line.size <= size + COLON + END ||
        !stg_times_read(
            (stg_span){line.at + size + COLON, line.size - size - COLON - END},
            0, at))
        return false;
    *at = stg_ns_max(*at, 1);
    return true;
}

#define TAKE(headers, name, at) take((headers), (name), sizeof(name) - 1, (at))

stg_times stg_times_find(stg_span headers)
{
    stg_times t = {0, 0};

    (void)stg_header_take_hops(&headers);
    if (!TAKE(&headers, STG_NOT_BEFORE, &t.not_before) ||
        !TAKE(&headers, STG_EXPIRES, &t.expires_at))
        t.not_before = STG_NEVER;
    return t;
}

void stg_times_skip(stg_span *headers)
{
    if (BEGINS(*headers, STG_NOT_BEFORE))
        (void)stg_header_next(headers);
}
