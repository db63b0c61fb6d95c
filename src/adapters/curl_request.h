/* curl_request.h - one request of libcurl, and its attempts. Private.
 *
 *     flaw = stg_curl_request_begin(&r, easy, with);
 *     for each attempt
 *         stg_curl_request_start(&r, limit);
 *         code = ... a transfer of r.easy ...
 *         stg_curl_request_report(&r, &op, &code);
 *     stg_curl_request_end(&r);
 *
 * The request stays where it is: libcurl has its address meanwhile. */
#ifndef STAGGER_ADAPTERS_CURL_REQUEST_H
#define STAGGER_ADAPTERS_CURL_REQUEST_H

#include <stagger/curl.h>

#define STG_CURL_KEY_HEADER "Idempotency-Key"

/* r->with.with is what the operation begins with. Returns what is wrong, or
 * NULL. with may be NULL. */
const char *stg_curl_request_begin(stg_curl_request *r, CURL *easy,
                                   const stg_curl_with *with);

/* Sets the handle for an attempt, which may take so long. */
void stg_curl_request_start(stg_curl_request *r, stg_ns limit);

/* Reports to op what the attempt came to, and takes the body back if there will
 * be another one; where it cannot, the operation ends. Corrects code. */
void stg_curl_request_report(stg_curl_request *r, stg_operation *op,
                             CURLcode *code);

/* Leaves the handle as curl.h says. */
void stg_curl_request_end(stg_curl_request *r);

#endif
