#include "hub/ops/ingress_headers.h"

#include "hub/http/header.h"
#include "hub/refuse.h"

#include <string.h>
#include <strings.h>

enum { NAME_MAX_SIZE = 256 };

const char *const stg_headers_default[] = {
    "traceparent", "tracestate", "Content-Encoding", "Content-Language", "ce-*",
    "X-*",         NULL,
};

/* RFC 9110, 11; RFC 6265; what the sender says of itself. */
static const char *const never[] = {
    "Authorization", "Content-Type", "Cookie",     "HTTP2-Settings",
    "Proxy-*",       "Set-Cookie",   "User-Agent", NULL,
};

/* A trace goes on from a message to its attempts. */
bool stg_header_is_never_kept(stg_span name)
{
    return stg_header_matches_any(never, name) || stg_header_is_framing(name) ||
           (stg_header_is_hubs(name) && !stg_header_matches("trace*", name));
}

bool stg_header_equal(stg_span a, const char *b)
{
    return a.size == strlen(b) && strncasecmp(a.at, b, a.size) == 0;
}

bool stg_headers_keep(const char *const *rules, stg_span name)
{
    return stg_header_matches_any(rules, name) &&
           !stg_header_is_never_kept(name);
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
        else if (stg_header_is_never_kept(name))
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

bool stg_header_list_take(stg_span *list, stg_span *name)
{
    while (list->size > 0) {
        const char *comma = memchr(list->at, ',', list->size);
        const char *end = list->at + list->size;
        const char *stop = comma == NULL ? end : comma;
        const char *at = list->at;

        while (at < stop && is_blank(*at))
            at++;
        while (stop > at && is_blank(stop[-1]))
            stop--;
        list->at = comma == NULL ? end : comma + 1;
        list->size = (size_t)(end - list->at);
        *name = (stg_span){at, (size_t)(stop - at)};
        if (name->size > 0)
            return true;
    }
    return false;
}

bool stg_header_list_has(stg_span list, stg_span name)
{
    stg_span each;

    while (stg_header_list_take(&list, &each))
        if (each.size == name.size &&
            strncasecmp(each.at, name.at, name.size) == 0)
            return true;
    return false;
}
