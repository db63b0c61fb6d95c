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

enum { STG_CURL_METHOD_MAX = 16 }; /* as much as core has to know */

typedef struct stg_curl_request {
    CURL *easy;
    stg_curl_with with;
    struct curl_slist header; /* the key's, before those of the caller */
    char key[sizeof STG_CURL_KEY_HEADER ": " + STG_CURL_KEY_MAX];
    char method[STG_CURL_METHOD_MAX]; /* "": not known yet */
    long redirects;    /* so many when the last request was begun */
    bool is_begun;     /* in this attempt, a request may be on the wire */
    bool is_sent_anew; /* and libcurl was about to send it again */
    bool is_upload;    /* its body comes from a read function */
    bool is_post;      /* or may come from one */
    bool is_started;   /* there was an attempt */
    bool is_limited;   /* in time */
} stg_curl_request;

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
