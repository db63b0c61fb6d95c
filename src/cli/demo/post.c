#include "cli/demo/post.h"

#include <stdio.h>
#include <string.h>

static void fill(demo_post *p);

bool stg_demo_post_open(demo_post *p, uv_loop_t *loop, const char *address)
{
    char url[128];
    stg_endpoint_options o;

    snprintf(url, sizeof url, "http://%s/v1/messages", address);
    o = stg_endpoint_options_default(url);
    return stg_client_new(&p->client, loop, NULL) == STG_OK &&
           stg_endpoint_new(&p->endpoint, p->client, &o, NULL) == STG_OK;
}

static void finish(demo_post *p)
{
    if (!p->is_closing || p->under_way > 0)
        return;
    if (p->endpoint != NULL)
        stg_endpoint_free(p->endpoint);
    p->endpoint = NULL;
    stg_client_close(p->client, p->closed, p->ctx);
}

static void answered(void *ctx, const stg_reply *reply)
{
    demo_request *r = ctx;
    demo_post *p = r->post;

    r->is_sent = false;
    p->under_way--;
    p->accepted += reply->status == 202;
    p->refused += reply->status != 202;
    fill(p);
    finish(p);
}

static void send_out(demo_post *p, demo_request *r)
{
    stg_span headers = {r->headers, 0}, body = {r->body, 0};
    int head = snprintf(r->headers, sizeof r->headers,
                        "Content-Type: application/json\r\n"
                        "Idempotency-Key: demo-%u\r\n",
                        p->sent);
    int size = snprintf(r->body, sizeof r->body,
                        "{\"order\":%u,\"state\":\"paid\"}", p->sent);

    headers.size = (size_t)head;
    body.size = (size_t)size;
    p->sent++;
    r->post = p;
    r->is_sent = stg_endpoint_send(p->endpoint, headers, body, 10 * STG_S,
                                   answered, r) != NULL;
    p->under_way += r->is_sent;
    p->refused += !r->is_sent;
}

static void fill(demo_post *p)
{
    for (int i = 0; i < DEMO_POSTS; i++)
        if (!p->is_closing && p->sent < p->allowed && !p->requests[i].is_sent)
            send_out(p, &p->requests[i]);
}

void stg_demo_post_allow(demo_post *p, uint32_t more)
{
    p->allowed += more;
    fill(p);
}

void stg_demo_post_close(demo_post *p, void (*closed)(void *ctx), void *ctx)
{
    p->is_closing = true;
    p->closed = closed;
    p->ctx = ctx;
    finish(p);
}
