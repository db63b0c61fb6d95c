#include "http/url_mask.h"

#include <stdlib.h>
#include <string.h>

static const char stars[] = "***";

static char *put(char *to, const char *from, size_t size)
{
    memcpy(to, from, size);
    return to + size;
}

static char *put_stars(char *to)
{
    return put(to, stars, sizeof stars - 1);
}

/* Who is at a host: "name:password@" in front of it. */
static char *put_before_query(char *to, const char *url, size_t size)
{
    const char *host = strstr(url, "://"), *end = url + size, *at = NULL;

    if (host == NULL || host + 3 > end)
        return put(to, url, size);
    host += 3;
    for (const char *c = host; c < end && *c != '/'; c++)
        if (*c == '@')
            at = c;
    if (at == NULL)
        return put(to, url, size);
    to = put_stars(put(to, url, (size_t)(host - url)));
    return put(to, at, (size_t)(end - at));
}

/* A part of the query: "name=value". */
static char *put_part(char *to, const char *part, size_t size)
{
    const char *value = memchr(part, '=', size);

    if (size == 0)
        return to;
    if (value != NULL)
        to = put(to, part, (size_t)(value + 1 - part));
    return put_stars(to);
}

char *stg_url_mask(const char *url)
{
    size_t size = strcspn(url, "#"), head = strcspn(url, "?#");
    // A part of one character, or of none, grows by its stars.
    char *masked = malloc(4 * size + sizeof stars), *to = masked;

    if (masked == NULL)
        return NULL;
    to = put_before_query(to, url, head);
    for (size_t at = head; at < size;) {
        size_t length = strcspn(url + at + 1, "&;#");

        *to++ = url[at++];
        to = put_part(to, url + at, length);
        at += length;
    }
    *to = '\0';
    return masked;
}
