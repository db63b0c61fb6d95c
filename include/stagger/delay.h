/* delay.h - what a server says about when to come back.
 *
 * Reads Retry-After (seconds, or one of the three dates of HTTP) and
 * retry-after-ms; where there is neither, the reset of a rate limit of which
 * nothing is left. Pure: the wall clock is an argument, and the answer's own
 * Date is preferred to it, so that a wrong clock of ours does no harm.
 *
 * Source: RFC 9110, sections 5.6.7 (dates) and 10.2.3 (Retry-After); the drafts
 * of "RateLimit header fields for HTTP" (draft-ietf-httpapi-ratelimit-headers):
 * RateLimit-Reset in seconds from now (to draft 07), RateLimit (from 08, and
 * before); X-RateLimit-Reset as the time itself: GitHub, Okta, X. */
#ifndef STAGGER_DELAY_H
#define STAGGER_DELAY_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/ns.h>

STG_DECLS_BEGIN

/* Values of an answer's headers, terminated strings; NULL where it has none. */
typedef struct stg_delay_headers {
    const char *retry_after;
    const char *retry_after_ms; /* wins, being the finer one */
    const char *date;
    const char *rate_limit;           /* RateLimit */
    const char *rate_limit_remaining; /* X-RateLimit-Remaining and its like */
    const char *rate_limit_reset;     /* X-RateLimit-Reset and its like */
    int status;                       /* of the answer; 0 if unknown */
} stg_delay_headers;

/* Which of them a header is. */
typedef enum stg_delay_header {
    STG_DELAY_RETRY_AFTER,
    STG_DELAY_RETRY_AFTER_MS,
    STG_DELAY_DATE,
    STG_DELAY_RATE_LIMIT,
    STG_DELAY_REMAINING,
    STG_DELAY_RESET,
    STG_DELAY_HEADERS, /* how many there are */
} stg_delay_header;

/* Name i of the headers to look for, from 0, and which one it is: several names
 * are one. NULL behind the last. Static; header names are of any case. header may
 * be NULL. */
STG_API const char *stg_delay_name(size_t i, stg_delay_header *header);

/* Notes the value of a header, unless there is one: the first name wins. NULL is
 * no value. Keeps the pointer. */
STG_API void stg_delay_note(stg_delay_headers *headers, stg_delay_header header,
                            const char *value);

/* The delay that the headers ask for; 0 if none, or one that is negative,
 * unreadable or past. wall_s is the caller's clock in seconds since 1970, used
 * where there is no readable Date. Not capped: a policy does that.
 *
 * A rate limit counts where Retry-After and retry-after-ms are not there, and
 * nothing of it is left: the remaining number is 0, or is not told and the status
 * is 429 or 403. A reset below 1000000000 is seconds from now, else seconds since
 * 1970; of 1000000000000 and more it is neither. Of several limits that are used
 * up the longest counts. */
STG_API stg_ns stg_delay_read(const stg_delay_headers *headers, int64_t wall_s);

/* Reads an HTTP date in any of its three forms into seconds since 1970.
 * wall_s settles the century of a two-digit year: never more than 50 years
 * ahead. Returns false, and leaves *date_s, where text is no date. */
STG_API bool stg_delay_date(const char *text, int64_t wall_s, int64_t *date_s);

STG_DECLS_END

#endif
