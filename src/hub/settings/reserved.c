#include "hub/settings/reserved.h"

#include <strings.h>

#include "hub/ops/ingress_headers.h"

/* RFC 9110, 7.6.1 and 8.6: they speak of the connection and of the framing. */
static const char *const framing[] = {
    "Host",       "Content-Length", "Transfer-Encoding",
    "Connection", "Keep-Alive",     "Proxy-Connection",
    "TE",         "Trailer",        "Upgrade",
    "Expect",
};

const char *stg_reserved_header(stg_span name)
{
    for (size_t i = 0; i < sizeof framing / sizeof *framing; i++)
        if (stg_header_equal(name, framing[i]))
            return "speaks of the connection, which is the hub's own";
    if (stg_header_equal(name, "Idempotency-Key") ||
        (name.size >= 8 && strncasecmp(name.at, "Stagger-", 8) == 0))
        return "is the hub's own";
    if (stg_header_equal(name, "Content-Type"))
        return "is the message's, as it was published";
    return NULL;
}
