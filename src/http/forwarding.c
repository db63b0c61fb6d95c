#include "http/forwarding.h"

#include "base/refuse.h"

#include <string.h>

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

bool stg_headers_keep(const char *const *rules, stg_span name)
{
    return stg_header_matches_any(rules, name) &&
           !stg_header_is_never_kept(name);
}

/* A lone '*' is a rule as well: it keeps all that may be kept. */
stg_status stg_headers_check(const char *const *rules, stg_error *err)
{
    for (; *rules != NULL; rules++) {
        stg_span name = {*rules, strlen(*rules)};
        const char *why = NULL;

        if (name.size > 1 && name.at[name.size - 1] == '*')
            name.size--;
        if (!stg_header_is_name(name))
            why =
                "expected the name of a header, or the beginning of one and *";
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
