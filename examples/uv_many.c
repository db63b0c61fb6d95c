/* uv_many.c - hundreds of operations at once on one libuv loop.
 *
 * Each holds its own handle, waits for its own instants, and blocks nobody. The
 * network is a timer here: an answer comes a few ms after the request, or does
 * not come at all, and then the attempt's time is over. */
#include <stdio.h>

#include <stagger/stagger.h>
#include <stagger/uv.h>

enum { REQUESTS = 300 };

typedef struct request {
    stg_uv op;
    uv_timer_t answer; /* stands for a socket */
    int number;
    uint32_t attempt; /* the one that the answer is to */
} request;

static unsigned done_count, attempt_count;

static void on_answer(uv_timer_t *timer)
{
    request *r = timer->data;
    bool is_up = (r->number + (int)r->attempt) % 3 == 0;

    stg_uv_report(&r->op, r->attempt, stg_answered(is_up ? 200 : 503));
}

static void start(stg_uv *op, uint32_t attempt)
{
    request *r = op->data;

    attempt_count++;
    r->attempt = attempt;
    if (r->number % 10 != 0 || attempt > 1) // else it is lost
        uv_timer_start(&r->answer, on_answer, (uint64_t)r->number % 5, 0);
}

/* Too late: whatever comes now is not wanted. */
static void abandon(stg_uv *op, uint32_t attempt)
{
    request *r = op->data;

    (void)attempt;
    uv_timer_stop(&r->answer);
}

static void done(stg_uv *op, const stg_report *report)
{
    request *r = op->data;
    char text[STG_REPORT_TEXT_MAX];

    done_count += report->next == STG_DONE;
    if (r->number % 60 == 0)
        printf("request %d: %s\n", r->number, stg_report_text(report, text));
    uv_close((uv_handle_t *)&r->answer, NULL);
}

int main(void)
{
    static request requests[REQUESTS];
    uv_loop_t *loop = uv_default_loop();
    stg_policy policy;

    if (stg_policy_parse(&policy, "interactive base=5ms attempt-timeout=100ms",
                         NULL) != STG_OK)
        return 2;
    for (int i = 0; i < REQUESTS; i++) {
        request *r = &requests[i];

        r->number = i;
        r->op.data = r->answer.data = r;
        r->op.abandon = abandon;
        uv_timer_init(loop, &r->answer);
        if (stg_uv_retry(loop, &r->op, &policy, NULL, start, done) != STG_OK)
            return 2;
    }
    uv_run(loop, UV_RUN_DEFAULT);
    printf("%u of %d done, after %u attempts\n", done_count, REQUESTS,
           attempt_count);
    return done_count == REQUESTS && uv_loop_close(loop) == 0 ? 0 : 1;
}
