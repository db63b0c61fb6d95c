/* call.c - an HTTP request as one call, with what the server says about when
 * to come back.
 *
 * The function makes one attempt and returns what it came to; stg_call() calls
 * it again for as long as the policy says. Here the server is a list of
 * answers; in your program it is your HTTP client. */
#include <stdio.h>
#include <time.h>

#include <stagger/stagger.h>

typedef struct answer {
    int status;
    const char *retry_after_ms; /* the header of that name, or NULL */
} answer;

typedef struct request {
    const char *path;
    const answer *next; /* what the server answers next */
} request;

static stg_outcome get(void *ctx)
{
    request *r = ctx;
    const answer *a = r->next++;
    stg_delay_headers headers = {.retry_after_ms = a->retry_after_ms};

    printf("GET %s: %d\n", r->path, a->status);
    return stg_answered_after(a->status, stg_delay_read(&headers, time(NULL)));
}

static bool run(const char *path, const answer *answers)
{
    request r = {.path = path, .next = answers};
    stg_with with = {.method = "GET"}; // a POST would need a key
    stg_policy policy;
    stg_report report;
    char text[STG_REPORT_TEXT_MAX];
    bool is_done;

    if (stg_policy_parse(&policy, "client base=10ms", NULL) != STG_OK)
        return false;
    is_done = stg_call(&policy, &with, get, &r, &report);
    printf("    %s\n", stg_report_text(&report, text));
    return is_done;
}

int main(void)
{
    static const answer busy[] = {{503, NULL}, {429, "30"}, {200, NULL}};
    static const answer missing[] = {{404, NULL}};

    return run("/orders/1", busy) && !run("/orders/2", missing) ? 0 : 1;
}
