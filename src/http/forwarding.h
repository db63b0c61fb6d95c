/* forwarding.h - which headers of a message go on to the targets.
 *
 * A rule is a name, or the beginning of one and a '*': "traceparent", "X-*".
 * Names compare as in http/header.h. Some are never kept, whatever the rules say:
 * those of the connection and of the framing, credentials, cookies, User-Agent,
 * and what the hub says itself (Content-Type apart, which always goes on). */
#ifndef STAGGER_HTTP_FORWARDING_H
#define STAGGER_HTTP_FORWARDING_H

#include <stdbool.h>

#include <stagger/status.h>

#include "http/header.h"

/* traceparent, tracestate, Content-Encoding, Content-Language, ce-* (of
 * CloudEvents), X-*; ended by NULL. */
extern const char *const stg_headers_default[];

/* Returns STG_INVALID with words for a rule that is none, or that names what is
 * never kept. */
stg_status stg_headers_check(const char *const *rules, stg_error *err);

/* Whether no rule can keep a header of that name. */
bool stg_header_is_never_kept(stg_span name);

/* Whether a header of that name is kept. */
bool stg_headers_keep(const char *const *rules, stg_span name);

#endif
