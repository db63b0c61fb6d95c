/* uv_hedge.c - a second attempt when the first one is slow, on a libuv loop.
 *
 * The network is a timer here. The first request hangs; after 20 ms the policy
 * sends another one, whose answer wins, and the first is stopped. Several
 * attempts are under way at a time, so what belongs to one has a place by its
 * number. */
#include <stdio.h>

#include <stagger/stagger.h>
#include <stagger/uv.h>

enum { PLACES = 1 + STG_HEDGES_MAX }; /* no more are under way at once */

typedef struct exchange {
    uv_timer_t answer; /* stands for a socket */
    stg_uv *op;
    uint32_t attempt;
} exchange;

static exchange exchanges[PLACES];
static unsigned started, stopped;

static void on_answer(uv_timer_t *timer)
{
    const exchange *e = timer->data;

    printf("attempt %u is answered\n", (unsigned)e->attempt);
    stg_uv_report(e->op, e->attempt, stg_answered(200));
}

/* The function for first attempts, retries and hedges. */
static void start(stg_uv *op, uint32_t attempt)
{
    exchange *e = &exchanges[attempt % PLACES];

    printf("attempt %u starts\n", (unsigned)attempt);
    started++;
    e->op = op;
    e->attempt = attempt;
    uv_timer_start(&e->answer, on_answer, attempt == 1 ? 60000 : 5, 0);
}

static void abandon(stg_uv *op, uint32_t attempt)
{
    (void)op;
    printf("attempt %u is stopped\n", (unsigned)attempt);
    stopped++;
    uv_timer_stop(&exchanges[attempt % PLACES].answer);
}

static void done(stg_uv *op, const stg_report *report)
{
    (void)op;
    printf("%u attempt and %u hedge\n", (unsigned)report->attempts,
           (unsigned)report->hedges);
    for (int i = 0; i < PLACES; i++)
        uv_close((uv_handle_t *)&exchanges[i].answer, NULL);
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    stg_uv op = {.abandon = abandon, .hedge = start};
    stg_policy policy;
    stg_peer peer;

    if (stg_policy_parse(&policy, "backend hedge=20ms", NULL) != STG_OK ||
        stg_peer_init(&peer, &policy) != STG_OK)
        return 2;
    for (int i = 0; i < PLACES; i++) {
        uv_timer_init(loop, &exchanges[i].answer);
        exchanges[i].answer.data = &exchanges[i];
    }
    if (stg_uv_retry(loop, &op, &policy,
                     &(stg_with){.peer = &peer, .method = "GET"}, start,
                     done) != STG_OK)
        return 2;
    uv_run(loop, UV_RUN_DEFAULT);
    return started == 2 && stopped == 1 && uv_loop_close(loop) == 0 ? 0 : 1;
}
