/* curl.h - the retry around a transfer of libcurl: one that blocks, or many at
 * once in an event loop (below, from stg_curl_multi on).
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
 *     CURLOPT_XFERINFOFUNCTION, XFERINFODATA, with a cancel, if it blocks; then
 *     NOPROGRESS                              none
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
 * sent again is CURLE_GOT_NOTHING. Whether it succeeded is report->next, why
 * not report->why, and whether with.fallback answered in its place
 * report->fell_back; report may be NULL.
 *
 * A cancel ends a transfer within a second. Inside stg_call() it is nested in
 * that, without being told. */
STG_API CURLcode stg_curl_perform(CURL *easy, const stg_policy *policy,
                                  const stg_curl_with *with,
                                  stg_report *report);

/* -- many at once
 *
 * A program that has a CURLM, and an event loop of any kind around it, hands its
 * transfers to stg_curl_multi_add() in place of curl_multi_add_handle(), and
 * calls stg_curl_multi_read() in place of curl_multi_info_read():
 *
 *     static void done(stg_curl_transfer *t, CURLcode code,
 *                      const stg_report *report) { ... }
 *
 *     stg_curl_multi_init(&m, multi, on_timer, NULL);
 *     stg_curl_multi_add(&m, &t, easy, &policy, &with, done);
 *
 *     // when a socket is ready, or the timer has fired, as ever:
 *     curl_multi_socket_action(multi, socket, events, &running);
 *     stg_curl_multi_read(&m);
 *
 * Each transfer is what stg_curl_perform() would make of it, and waits without
 * blocking: in a wait its handle is out of the CURLM. Nothing here sleeps, waits
 * for a socket or owns a loop. With on_timer NULL the loop asks instead how long
 * to wait, and there is no timer to keep:
 *
 *     while (stg_curl_multi_running(&m) > 0) {
 *         curl_multi_perform(multi, &running);
 *         stg_curl_multi_read(&m);
 *         curl_multi_poll(multi, NULL, 0, stg_curl_multi_timeout(&m, 1000),
 *                         NULL);
 *     }
 *
 * examples/curl_epoll.c is one on epoll. Both structs are the caller's, stay
 * where they are, and are all the memory that is used beside libcurl's. All
 * calls are made by the thread that drives the CURLM; a cancel may be set by any.
 * CURLMOPT_TIMERFUNCTION and TIMERDATA belong to the stg_curl_multi. All else of
 * the CURLM is the caller's, who may also add other handles to it.
 *
 * Called from inside libcurl's callbacks or on_timer, stg_curl_multi_add() and
 * stg_curl_multi_cancel() do as ever; stg_curl_multi_read() and
 * stg_curl_multi_close() must not be.
 *
 * With an env the waits take virtual time, and the transfers real time: when no
 * transfer is under way, stg_curl_multi_read() moves the clock (env.sleep) to the
 * end of the first wait. All that are in one stg_curl_multi have the same env. */

typedef struct stg_curl_multi stg_curl_multi;
typedef struct stg_curl_transfer stg_curl_transfer;

/* Sets the loop's one timer: timeout_ms from now, or not at all for -1, in place
 * of what was set before. When it fires, call curl_multi_socket_action() with
 * CURL_SOCKET_TIMEOUT, and stg_curl_multi_read(). It serves libcurl's time-outs
 * and the waits here; whoever has written one for CURLMOPT_TIMERFUNCTION can use
 * it as it is. What it returns is libcurl's to read. */
typedef int stg_curl_timer_fn(CURLM *multi, long timeout_ms, void *data);

/* The end. Code and report are what stg_curl_perform() says. The transfer is out
 * of everything: it may be freed, or added again, and so may its handle. */
typedef void stg_curl_done_fn(stg_curl_transfer *t, CURLcode code,
                              const stg_report *report);

/* Private: a request of libcurl, and its attempts. */
typedef struct stg_curl_request {
    CURL *easy;
    stg_curl_with with;
    struct curl_slist header; /* the key's, before those of the caller */
    char key[sizeof "Idempotency-Key: " + STG_CURL_KEY_MAX];
    char method[16];   /* as much as core has to know; "": not known yet */
    long redirects;    /* so many when the last request was begun */
    bool is_begun;     /* in this attempt, a request may be on the wire */
    bool is_sent_anew; /* and libcurl was about to send it again */
    bool is_upload;    /* its body comes from a read function */
    bool is_post;      /* or may come from one */
    bool is_started;   /* there was an attempt */
    bool is_limited;   /* in time */
} stg_curl_request;

struct stg_curl_transfer {
    void *data; /* the caller's, as is */
    /* The rest is private, but op.retry may be a parent (with.parent). */
    stg_operation op;
    stg_report report;
    stg_curl_request request;
    stg_curl_multi *multi;
    stg_curl_done_fn *done;
    CURLcode code;
    int phase;
    bool is_cancelled;
    stg_curl_transfer *child[2]; /* those of a multi are a tree, by handle */
    struct {
        uint64_t key;
        void *child, *next, *prev;
    } waiting; /* its place by due time */
    struct {
        void *next, *prev;
    } ready, watched; /* among those that have their turn; with a cancel */
};

struct stg_curl_multi {
    /* Private. */
    CURLM *multi;
    stg_curl_timer_fn *on_timer;
    void *timer_data;
    stg_curl_transfer *root;
    void *waiting;
    struct {
        void *next, *prev;
    } ready, watched;
    size_t running, in_flight;
    stg_ns curl_at, look_at; /* on the system's clock */
    bool is_armed;           /* on_timer was told of an instant */
    bool is_at_once;         /* and to come at once */
    bool is_reading, is_closing;
};

/* Begins, on a CURLM without transfers. on_timer may be NULL; it is given data.
 * Returns STG_INVALID where m or multi is NULL. */
STG_API stg_status stg_curl_multi_init(stg_curl_multi *m, CURLM *multi,
                                       stg_curl_timer_fn *on_timer, void *data);

/* Begins a transfer; t is not under way, and its data is set by the caller
 * beforehand. The first attempt starts with the next stg_curl_multi_read(), for
 * which on_timer is called. with may be NULL, and is copied; its cancel is looked
 * at every 50 ms, in waits and in attempts, and is as good as
 * stg_curl_multi_cancel(). The operation is nested only if with.with.parent says
 * so. Until done() the handle belongs to the transfer: set no options on it.
 *
 * Returns STG_INVALID, and never calls done(), for what cannot be used, such as a
 * handle that is in the same stg_curl_multi already; t->report then has the
 * reason. */
STG_API stg_status stg_curl_multi_add(stg_curl_multi *m, stg_curl_transfer *t,
                                      CURL *easy, const stg_policy *policy,
                                      const stg_curl_with *with,
                                      stg_curl_done_fn *done);

/* Ends the transfer as cancelled; done() is called by the next
 * stg_curl_multi_read(). After the end it does nothing. */
STG_API void stg_curl_multi_cancel(stg_curl_transfer *t);

/* In place of curl_multi_info_read(), whenever curl_multi_socket_action() or
 * curl_multi_perform() have been called: takes what has ended, starts what is
 * due, and calls done(). Returns a message of a handle that the caller has added
 * with curl_multi_add_handle(), and is then to be called again; NULL: that is
 * all. In done() it does nothing.
 *
 * A call costs the logarithm of all transfers for each one that has ended or is
 * due, and every 50 ms a look at each one with a cancel. */
STG_API CURLMsg *stg_curl_multi_read(stg_curl_multi *m);

/* How many ms from now the loop may wait for sockets before it calls libcurl and
 * stg_curl_multi_read() again: for libcurl's time-outs and for the waits. No more
 * than max_ms, unless that is negative; -1 for no limit. */
STG_API int stg_curl_multi_timeout(const stg_curl_multi *m, int max_ms);

/* The transfers that have not ended, those that wait included. (libcurl's own
 * number of running handles lacks these.) */
STG_API size_t stg_curl_multi_running(const stg_curl_multi *m);

/* Ends all transfers as cancelled, with their done(), which can add no more, and
 * takes the timer function out of the CURLM. Before curl_multi_cleanup(). */
STG_API void stg_curl_multi_close(stg_curl_multi *m);

STG_DECLS_END

#endif
