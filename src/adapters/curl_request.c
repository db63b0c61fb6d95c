/* One transfer of libcurl as an attempt: before it, the key and the time that
 * it may take; after it, what libcurl's code and the answer's headers come to.
 * The easy handle is the caller's: what is set here is set back at the end. */
#include "adapters/curl_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <stagger/call.h>
#include <stagger/curl.h>
#include <stagger/delay.h>
#include <stagger/key.h>
#include <stagger/loop.h>

#include "adapters/internal.h"

/* -- the key */

static bool is_key(const struct curl_slist *header)
{
    const size_t length = sizeof STG_CURL_KEY_HEADER - 1;
    const char *value;

    if (header->data == NULL ||
        strncasecmp(header->data, STG_CURL_KEY_HEADER, length) != 0)
        return false;
    value = header->data + length;
    value += strspn(value, " \t");
    // Without a value libcurl takes the header away.
    return *value == ':' && value[1 + strspn(value + 1, " \t")] != '\0';
}

static bool have_key(const struct curl_slist *headers)
{
    for (; headers != NULL; headers = headers->next)
        if (is_key(headers))
            return true;
    return false;
}

static bool is_visible(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* A header of r's own with the key, before those of the caller. */
static const char *add_key(stg_curl_request *r)
{
    char made[STG_KEY_MAX];
    const char *key = r->with.key;

    if (key == NULL)
        key = stg_key_new(made);
    if (key[0] == '\0' || strlen(key) > STG_CURL_KEY_MAX || !is_visible(key))
        return "the key is no 1 to 255 characters of visible ASCII";
    snprintf(r->key, sizeof r->key, STG_CURL_KEY_HEADER ": %s", key);
    r->header = (struct curl_slist){
        .data = r->key, .next = (struct curl_slist *)r->with.headers};
    return NULL;
}

const char *stg_curl_request_begin(stg_curl_request *r, CURL *easy,
                                   const stg_curl_with *with)
{
    *r = (stg_curl_request){.easy = easy};
    if (with != NULL)
        r->with = *with;
    if (easy == NULL)
        return "the handle is NULL";
    if (have_key(r->with.headers)) {
        r->with.with.has_key = true;
    } else if (r->with.key != NULL || r->with.make_key) {
        r->with.with.has_key = true;
        return add_key(r);
    }
    return NULL;
}

/* -- what libcurl tells */

static long get_long(const stg_curl_request *r, CURLINFO info)
{
    long value = 0;

    curl_easy_getinfo(r->easy, info, &value);
    return value;
}

static curl_off_t get_size(const stg_curl_request *r, CURLINFO info)
{
    curl_off_t value = 0;

    curl_easy_getinfo(r->easy, info, &value);
    return value;
}

static const char *get_text(const stg_curl_request *r, CURLINFO info)
{
    const char *value = NULL;

    curl_easy_getinfo(r->easy, info, &value);
    return value == NULL ? "" : value;
}

static bool is_http(const stg_curl_request *r)
{
    return strncasecmp(get_text(r, CURLINFO_SCHEME), "http", 4) == 0;
}

/* The first of that name in the last answer, or NULL. */
static const char *get_header(const stg_curl_request *r, const char *name)
{
    struct curl_header *header;

    return curl_easy_header(r->easy, name, 0, CURLH_HEADER, -1, &header) ==
                   CURLHE_OK
               ? header->value
               : NULL;
}

/* -- before an attempt */

/* Whether libcurl asks a read function for the body. It tells what kind of
 * request it makes only where CURLOPT_CUSTOMREQUEST does not hide that, so this
 * is taken away for a moment; that it was there shows in where the text is. */
static void learn_kind(stg_curl_request *r, const char *method)
{
    uintptr_t at = (uintptr_t)method;
    char custom[64];

    snprintf(custom, sizeof custom, "%s", method);
    r->is_upload = strlen(method) >= sizeof custom;
    if (r->is_upload) // for all we know
        return;
    curl_easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, NULL);
    method = get_text(r, CURLINFO_EFFECTIVE_METHOD);
    r->is_upload = strcmp(method, "PUT") == 0;
    r->is_post = strcmp(method, "POST") == 0;
    if ((uintptr_t)method != at)
        curl_easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, custom);
}

/* Only now, for libcurl knows it from the begin of a transfer on; and in its
 * first request, for a redirect changes it. */
static void learn_method(stg_curl_request *r)
{
    const char *method = get_text(r, CURLINFO_EFFECTIVE_METHOD);
    bool is_read = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;

    snprintf(r->method, sizeof r->method, "%s",
             is_read || is_http(r) ? method : "POST");
    if (r->with.seek == NULL)
        learn_kind(r, method);
}

/* A request is about to go out. The second one without a redirect is a
 * repetition that nobody has asked for: the connection had been used before,
 * and died. */
// NOLINTNEXTLINE(readability-non-const-parameter): as libcurl declares it
static int on_request(void *data, char *remote, char *local, int remote_port,
                      int local_port)
{
    stg_curl_request *r = data;
    long redirects = get_long(r, CURLINFO_REDIRECT_COUNT);

    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    if (r->is_begun && redirects == r->redirects && is_http(r)) {
        r->is_sent_anew = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (r->method[0] == '\0')
        learn_method(r);
    r->is_begun = true;
    r->redirects = redirects;
    return CURL_PREREQFUNC_OK;
}

static int on_progress(void *data, curl_off_t down_all, curl_off_t down,
                       curl_off_t up_all, curl_off_t up)
{
    const stg_curl_request *r = data;

    (void)down_all;
    (void)down;
    (void)up_all;
    (void)up;
    return stg_cancel_is_set(r->with.with.cancel);
}

static void limit_time(stg_curl_request *r, stg_ns limit)
{
    if (r->with.timeout != 0)
        limit = stg_ns_min(limit, r->with.timeout);
    r->is_limited = limit != STG_NEVER;
    if (r->is_limited)
        curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS,
                         // 0 is none to it
                         (long)stg_to_ms(stg_ns_max(limit, 1)));
}

static void set_headers(const stg_curl_request *r, const struct curl_slist *all)
{
    if (r->header.data != NULL || r->with.headers != NULL)
        curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, (struct curl_slist *)all);
}

static void set_progress(const stg_curl_request *r, curl_xferinfo_callback on,
                         const void *data)
{
    if (r->with.with.cancel == NULL)
        return;
    curl_easy_setopt(r->easy, CURLOPT_XFERINFOFUNCTION, on);
    curl_easy_setopt(r->easy, CURLOPT_XFERINFODATA, data);
    curl_easy_setopt(r->easy, CURLOPT_NOPROGRESS, on == NULL ? 1L : 0L);
}

/* The hook runs before each request of a transfer, also behind a redirect. */
static void set_prereq(const stg_curl_request *r, curl_prereq_callback on,
                       const void *data)
{
    curl_easy_setopt(r->easy, CURLOPT_PREREQFUNCTION, on);
    curl_easy_setopt(r->easy, CURLOPT_PREREQDATA, data);
}

void stg_curl_request_start(stg_curl_request *r, stg_ns limit)
{
    if (r->is_started && r->with.reset != NULL)
        r->with.reset(r->with.reset_data);
    r->is_begun = r->is_sent_anew = false;
    r->redirects = 0;
    limit_time(r, limit);
    if (r->is_started)
        return;
    r->is_started = true;
    set_headers(r, r->header.data != NULL ? &r->header : r->with.headers);
    set_progress(r, on_progress, r);
    set_prereq(r, on_request, r);
}

void stg_curl_request_end(stg_curl_request *r)
{
    if (!r->is_started)
        return;
    if (r->is_limited)
        curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS,
                         (long)stg_to_ms(r->with.timeout));
    set_headers(r, r->with.headers);
    set_progress(r, NULL, NULL);
    set_prereq(r, NULL, NULL);
}

/* -- after it */

static stg_ns read_delay(const stg_curl_request *r, long status)
{
    stg_delay_headers headers = {.status = (int)status};
    stg_delay_header header;
    const char *name;

    for (size_t i = 0; (name = stg_delay_name(i, &header)) != NULL; i++)
        stg_delay_note(&headers, header, get_header(r, name));
    return stg_delay_read(&headers, (int64_t)time(NULL));
}

static bool is_answer(CURLcode code)
{
    return code == CURLE_OK || code == CURLE_HTTP_RETURNED_ERROR;
}

static stg_outcome read_answer(const stg_curl_request *r, CURLcode code)
{
    long status = get_long(r, CURLINFO_RESPONSE_CODE);

    if (!is_http(r) || status == 0) // HTTP/0.9 has none
        return stg_failed_curl((int)code);
    return stg_answered_after((int)status, read_delay(r, status));
}

static bool is_before_request(const stg_outcome *o)
{
    stg_category category = stg_fault_about(o->fault)->category;

    return category == STG_CATEGORY_CONNECT || category == STG_CATEGORY_LOCAL;
}

/* Nothing was sent yet: where did it stop? */
static void look_closer(const stg_curl_request *r, CURLcode code,
                        stg_outcome *o)
{
    int error = (int)get_long(r, CURLINFO_OS_ERRNO);
    stg_outcome by_errno = stg_failed_errno(error);

    if (code == CURLE_OPERATION_TIMEDOUT)
        // A local port: TCP was connected, and TLS took too long.
        o->fault = get_long(r, CURLINFO_LOCAL_PORT) > 0
                       ? STG_FAULT_TLS_TIMEOUT
                       : STG_FAULT_CONNECT_TIMEOUT;
    else if (code == CURLE_COULDNT_CONNECT && error == ETIMEDOUT)
        o->fault = STG_FAULT_CONNECT_TIMEOUT;
    else if (code == CURLE_COULDNT_CONNECT && is_before_request(&by_errno))
        *o = by_errno;
    o->unsent = true;
}

static stg_outcome read_failure(const stg_curl_request *r, CURLcode code)
{
    stg_outcome o = stg_failed_curl((int)code);

    if (!r->is_begun)
        look_closer(r, code, &o);
    else if (is_before_request(&o))
        // Of a connection after the one that the request went out on.
        o.fault = STG_FAULT_RESET;
    return o;
}

/* Bytes of a body that was a good one as long as it lasted. */
static bool has_written(const stg_curl_request *r)
{
    long status = get_long(r, CURLINFO_RESPONSE_CODE);

    return get_size(r, CURLINFO_SIZE_DOWNLOAD_T) > 0 &&
           (!is_http(r) || status / 100 == 2);
}

/* A POST whose length libcurl does not know has a read function, for what it
 * holds itself it can measure. (After a second request it has forgotten.) */
static bool is_body_read(const stg_curl_request *r)
{
    bool is_one = r->redirects == 0 && !r->is_sent_anew;

    return r->is_upload || (r->is_post && is_one &&
                            get_size(r, CURLINFO_CONTENT_LENGTH_UPLOAD_T) < 0);
}

/* Prepares for another attempt. Returns why there can be none, or NULL. */
static const char *go_back(const stg_curl_request *r)
{
    if (r->with.reset == NULL && has_written(r))
        return "the answer's body broke off, and there is no reset to take "
               "back what was written of it";
    if (!r->is_begun)
        return NULL;
    if (r->with.seek == NULL)
        return is_body_read(r) ? "the body comes from a read function, and "
                                 "there is no seek to send it again"
                               : NULL;
    return r->with.seek(r->with.seek_data, 0, SEEK_SET) == CURL_SEEKFUNC_OK
               ? NULL
               : "seek cannot go back to the begin of the body";
}

void stg_curl_request_report(stg_curl_request *r, stg_operation *op,
                             CURLcode *code)
{
    stg_outcome o;
    const char *flaw;

    if (r->is_sent_anew)
        *code = CURLE_GOT_NOTHING;
    o = is_answer(*code) ? read_answer(r, *code) : read_failure(r, *code);
    if (op->with.method == NULL && r->method[0] != '\0')
        op->with.method = r->method;
    stg_operation_report(op, &o);
    // Only another attempt needs the body again.
    if (op->decision.next != STG_WAIT)
        return;
    flaw = go_back(r);
    if (flaw == NULL)
        return;
    stg_operation_cancel(op);
    stg_operation_refuse(op, flaw);
}

/* -- the blocking form */

static CURLcode run(stg_loop *l, stg_curl_request *r)
{
    CURLcode code = CURLE_ABORTED_BY_CALLBACK;

    while (stg_loop_again(l)) {
        stg_curl_request_start(r, stg_loop_timeout(l));
        code = curl_easy_perform(r->easy);
        stg_curl_request_report(r, &l->op, &code);
    }
    stg_curl_request_end(r);
    return code;
}

CURLcode stg_curl_perform(CURL *easy, const stg_policy *policy,
                          const stg_curl_with *with, stg_report *report)
{
    CURLcode code = CURLE_BAD_FUNCTION_ARGUMENT;
    stg_curl_request r;
    stg_loop l;
    const char *flaw = stg_curl_request_begin(&r, easy, with);

    if (r.with.with.parent == NULL)
        r.with.with.parent = stg_call_current();
    stg_loop_begin(&l, policy, &r.with.with);
    if (flaw != NULL)
        stg_operation_refuse(&l.op, flaw);
    if (l.op.flaw == NULL)
        code = run(&l, &r);
    if (report != NULL)
        *report = stg_loop_result(&l);
    return code;
}
