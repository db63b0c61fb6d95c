/* curl.h - the retry around a transfer of libcurl.
 *
 * A library of its own: link stagger-curl. libcurl is 7.84 or later.
 *
 *     curl_easy_setopt(curl, CURLOPT_URL, "https://api.example/orders");
 *     curl_easy_setopt(curl, CURLOPT_POSTFIELDS, order);
 *     code = stg_curl_perform(curl, &policy,
 *                             &(stg_curl_with){.make_key = true}, &report);
 *
 * An attempt is one transfer, and one request on the wire (and those that it
 * is redirected to): where libcurl would send a request again by itself,
 * because a connection that it has used before died, the attempt fails as reset
 * instead, and the policy decides. Answers are classified by their status,
 * whether or not CURLOPT_FAILONERROR is set, with the delay that Retry-After or
 * retry-after-ms asks for; other failures by their CURLcode and by how far the
 * attempt got: what fails before the request is begun was surely not processed.
 *
 * The method is found out, as far as the protocol is HTTP: a POST or PATCH that
 * may have been carried out is repeated only with an idempotency key, or where
 * the policy says unsafe=yes. Of other protocols what sends a body counts as a
 * POST. with.method says otherwise.
 *
 * Options that the caller has set on the handle stay, but libcurl cannot be
 * asked for them, and some are needed here. These belong to the operation while
 * it runs, and afterwards are as said:
 *
 *     CURLOPT_PREREQFUNCTION, PREREQDATA     always; then none
 *     CURLOPT_TIMEOUT_MS                     if the policy or `timeout` limits
 *                                            the attempt; then `timeout`
 *     CURLOPT_XFERINFOFUNCTION, XFERINFODATA, with a cancel; then none
 *     NOPROGRESS
 *     CURLOPT_HTTPHEADER                     with `headers`, `key` or make_key;
 *                                            then `headers` */
#ifndef STAGGER_CURL_H
#define STAGGER_CURL_H

#include <curl/curl.h>

#include <stagger/operation.h>

STG_DECLS_BEGIN

/* The longest idempotency key, of visible ASCII. */
#define STG_CURL_KEY_MAX 255

/* Everything optional. NULL, or all zeros, is the default. It is copied; what
 * its pointers point to outlives the operation. */
typedef struct stg_curl_with {
    stg_with with; /* the peer, the cancel, the hook ... */
    /* The headers of the request, for CURLOPT_HTTPHEADER. If one of them is an
     * Idempotency-Key, the operation has that key. */
    const struct curl_slist *headers;
    const char *key; /* sent as Idempotency-Key with each attempt */
    bool make_key;   /* make such a key, where neither `key` nor `headers` has
                        one: the same in all attempts */
    stg_ns timeout;  /* of each attempt, beside the policy's: the caller's own
                        CURLOPT_TIMEOUT_MS; 0: none */
    /* Takes the read function back to the begin of the body, as
     * CURLOPT_SEEKFUNCTION, before it is sent again. What does not return
     * CURL_SEEKFUNC_OK ends the operation, and so does a NULL, where the body
     * comes from a read function (CURLOPT_UPLOAD, or a length that is not
     * known). What libcurl holds itself (CURLOPT_POSTFIELDS, MIMEPOST) needs
     * none. A CURLOPT_POST with a read function does: where its length is known
     * it cannot be told from these, and is sent again from where the function
     * stands. So is one of an unknown length after an attempt of more than one
     * request: after a redirect, and where libcurl was kept from sending the
     * request again. */
    curl_seek_callback seek;
    void *seek_data;
    /* Takes back what the write function got from the last attempt, before the
     * next one. NULL: nothing is taken back. Bodies of failed answers then
     * stand before the one that succeeds, unless CURLOPT_FAILONERROR is set,
     * and a body that broke off after a status of 2xx ends the operation. */
    void (*reset)(void *data);
    void *reset_data;
} stg_curl_with;

/* In place of curl_easy_perform(): transfers until it succeeds or the policy
 * gives up. Blocks, and sleeps in between. Returns what the last transfer did,
 * so that an answer of 503 is CURLE_OK, unless CURLOPT_FAILONERROR is set; with
 * none, CURLE_BAD_FUNCTION_ARGUMENT for a call that cannot be used, and else
 * CURLE_ABORTED_BY_CALLBACK. A connection that died where libcurl would have
 * sent again is CURLE_GOT_NOTHING. Whether it succeeded is report->next, and
 * why not report->why; report may be NULL.
 *
 * A cancel ends a transfer within a second. Inside stg_call() it is nested in
 * that, without being told. */
STG_API CURLcode stg_curl_perform(CURL *easy, const stg_policy *policy,
                                  const stg_curl_with *with,
                                  stg_report *report);

STG_DECLS_END

#endif
