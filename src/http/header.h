/* header.h - names of header fields, and lines of them: "Name: value\r\n" each.
 *
 * Two names are the same when they differ in case only, or in `_` for `-`:
 * gateways that hand headers on as variables (CGI, WSGI) make one of them, and
 * a message's X_Api_Key must not stand in for a target's X-Api-Key.
 *
 * Whoever sends a request has one copy of each header. Where several want to
 * say it, the client's framing comes first, then the hub's own headers, then
 * those of the target's settings, then the message's. */
#ifndef STAGGER_HTTP_HEADER_H
#define STAGGER_HTTP_HEADER_H

#include <stdbool.h>

#include <stagger/status.h>

#include "base/span.h"

/* A message that has come through that many hubs is refused: it goes round. */
#define STG_HOPS_MAX 8

/* Of a message that came as a webhook: the webhook's name. Only the hub says it: a
 * publisher's own is dropped. */
#define STG_WEBHOOK_HEADER "X-Inbound"

/* Whether both are the same name. */
bool stg_header_same(stg_span a, stg_span b);

/* The same, of a whole name or, where rule ends in '*', of its beginning. */
bool stg_header_matches(const char *rule, stg_span name);

/* Whether it speaks of the connection or of the framing: the client's own.
 * Source: RFC 9110, sections 7.6.1 and 8.6. */
bool stg_header_is_framing(stg_span name);

/* Whether the hub says it itself: Idempotency-Key, Stagger-*, signatures
 * (Webhook-*, RFC 9421) and the trace. */
bool stg_header_is_hubs(stg_span name);

/* Whether it may differ each time that the same message is sent: what traces and
 * proxies say. */
bool stg_header_is_passing(stg_span name);

/* A byte of a name, as names compare. */
char stg_header_fold_case(char c);

/* A token of RFC 9110, section 5.6.2, 1 to 256 bytes. */
bool stg_header_is_name(stg_span text);

/* No control characters but tabs, and no blanks around it. */
bool stg_header_is_value(stg_span text);

/* Takes the first name off a comma-separated list, as in Connection. False: it
 * has none. */
bool stg_header_list_take(stg_span *list, stg_span *name);

/* Whether such a list has the name. */
bool stg_header_list_has(stg_span list, stg_span name);

/* Whether a == b, case aside. */
bool stg_header_equal(stg_span a, const char *b);

/* The next line of lines, with its end; size 0: there are no more. */
stg_span stg_header_next(stg_span *lines);

/* The name of a line: what is before its colon. */
stg_span stg_header_name(stg_span line);

/* How many hubs a message has come through: of the line "Stagger-Hops: N" that
 * its headers begin with where there were any. *headers moves behind it. */
unsigned stg_header_take_hops(stg_span *headers);

/* The line that begins at `last`, the last one, becomes part of an earlier line
 * of the same name, if there is one: ", value" behind its own. An empty value
 * adds nothing, and no comma. Returns the size of all lines then, which is no
 * larger. Source: RFC 9110, sections 5.3 and 5.6.1.2. */
size_t stg_header_fold(char *lines, size_t size, size_t last);

/* -- which headers of a message go on to the targets --------------------------
 *
 * A rule is a name, or the beginning of one and a '*': "traceparent", "X-*".
 * Some are never kept, whatever the rules say: those of the connection and of the
 * framing, credentials, cookies, User-Agent, and what the hub says itself, as
 * X-Inbound (Content-Type apart, which always goes on). */

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
