/* delay.h - what a server says about when to come back.
 *
 * Reads Retry-After (seconds, or one of the three dates of HTTP) and
 * retry-after-ms. Pure: the wall clock is an argument, and the answer's own
 * Date is preferred to it, so that a wrong clock of ours does no harm.
 *
 * Source: RFC 9110, sections 5.6.7 (dates) and 10.2.3 (Retry-After). */
#ifndef STAGGER_DELAY_H
#define STAGGER_DELAY_H

#include <stdbool.h>

#include <stagger/ns.h>

STG_DECLS_BEGIN

/* Values of an answer's headers, terminated strings; NULL where it has none. */
typedef struct stg_delay_headers {
    const char *retry_after;
    const char *retry_after_ms; /* wins, being the finer one */
    const char *date;
} stg_delay_headers;

/* The delay that the headers ask for; 0 if none, or one that is negative,
 * unreadable or past. wall_s is the caller's clock in seconds since 1970, used
 * where there is no readable Date. Not capped: a policy does that. */
STG_API stg_ns stg_delay_read(const stg_delay_headers *headers, int64_t wall_s);

/* Reads an HTTP date in any of its three forms into seconds since 1970.
 * wall_s settles the century of a two-digit year: never more than 50 years
 * ahead. Returns false, and leaves *date_s, where text is no date. */
STG_API bool stg_delay_date(const char *text, int64_t wall_s, int64_t *date_s);

STG_DECLS_END

#endif
