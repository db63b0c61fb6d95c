#include <stagger/curl.h>

#include <stagger/call.h>
#include <stagger/loop.h>

#include "adapters/curl_request.h"

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
