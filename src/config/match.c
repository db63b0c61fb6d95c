#include "config/match.h"

#include <string.h>

#include "http/forwarding.h"

static bool has_value(const stg_match_setting *m, stg_span value)
{
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

static bool is_in_lines(const stg_match_setting *m, stg_span lines)
{
    stg_span name, value;

    while (lines.size > 0 && next_line(&lines, &name, &value))
        if (stg_header_equal(name, m->header) && has_value(m, value))
            return true;
    return false;
}

static bool is_met(const stg_match_setting *m, const stg_parcel *p)
{
    stg_span name = {m->header, strlen(m->header)};

    // These two are not among the lines, and one that is empty is not there.
    if (stg_header_equal(name, "Content-Type"))
        return p->content_type.size > 0 && has_value(m, p->content_type);
    if (stg_header_equal(name, "Stagger-Key"))
        return p->key.size > 0 && has_value(m, p->key);
    return is_in_lines(m, p->headers);
}

bool stg_match_wants(const stg_target_settings *t, const stg_parcel *p)
{
    for (size_t i = 0; i < t->match_count; i++)
        if (!is_met(&t->match[i], p))
            return false;
    return true;
}

bool stg_match_accepts(void *ctx, const stg_message *m)
{
    stg_parcel p;

    return !stg_parcel_unpack(&p, m->bytes, m->size) ||
           stg_match_wants(ctx, &p);
}
