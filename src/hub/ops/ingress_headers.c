#include "hub/ops/ingress_headers.h"
#include "hub/refuse.h"

#include <string.h>
#include <strings.h>

enum { NAME_MAX_SIZE = 256 };

const char *const stg_headers_default[] = {
    "traceparent",      "tracestate", "Content-Encoding",
    "Content-Language", "X-*",        NULL,
};

/* RFC 9110, 7.6.1 and 11; RFC 6265. */
static const char *const never[] = {
    "Authorization",   "Connection", "Content-Length", "Content-Type",
    "Cookie",          "Expect",     "Host",           "HTTP2-Settings",
    "Idempotency-Key", "Keep-Alive", "Proxy-*",        "Set-Cookie",
    "Stagger-*",       "TE",         "Trailer",        "Transfer-Encoding",
    "Upgrade",         NULL,
};

static bool matches(const char *rule, stg_span name)
{
    size_t size = strlen(rule);

    if (size > 0 && rule[size - 1] == '*')
        return name.size >= size - 1 &&
               strncasecmp(rule, name.at, size - 1) == 0;
    return stg_header_equal(name, rule);
}

static bool matches_any(const char *const *rules, stg_span name)
{
    for (; *rules != NULL; rules++)
        if (matches(*rules, name))
            return true;
    return false;
}

bool stg_header_equal(stg_span a, const char *b)
{
    return a.size == strlen(b) && strncasecmp(a.at, b, a.size) == 0;
}

bool stg_headers_keep(const char *const *rules, stg_span name)
{
    return matches_any(rules, name) && !matches_any(never, name);
}

stg_status stg_headers_check(const char *const *rules, stg_error *err)
{
    for (; *rules != NULL; rules++) {
        stg_span name = {*rules, strlen(*rules)};
        const char *why = NULL;

        if (name.size > 1 && name.at[name.size - 1] == '*')
            name.size--;
        if (!stg_header_is_name(name))
            why = "wanted the name of a header, or the beginning of one and *";
        else if (matches_any(never, name))
            why =
                "this header is never kept: it belongs to the connection, to "
                "the sender or to the hub";
        if (why == NULL)
            continue;
        return stg_hub_refuse(err, STG_INVALID, "headers=%.80s: %s", *rules,
                              why);
    }
    return STG_OK;
}

static bool is_token_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool stg_header_is_name(stg_span text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_token_byte(text.at[i]))
            return false;
    return text.size > 0 && text.size <= NAME_MAX_SIZE;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool stg_header_is_value(stg_span text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.at[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return text.size == 0 ||
           (!is_blank(text.at[0]) && !is_blank(text.at[text.size - 1]));
}

bool stg_header_list_has(stg_span list, stg_span name)
{
    const char *end = list.at + list.size;

    for (const char *at = list.at; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma == NULL ? end : comma;
        const char *next = comma == NULL ? end : comma + 1;

        while (at < stop && is_blank(*at))
            at++;
        while (stop > at && is_blank(stop[-1]))
            stop--;
        if ((size_t)(stop - at) == name.size &&
            strncasecmp(at, name.at, name.size) == 0)
            return true;
        at = next;
    }
    return false;
}
