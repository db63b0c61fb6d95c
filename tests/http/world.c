#include "tests/http/world.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness.h"

void world_open(world *w, SSL_CTX *tls, const leaf_step *const *scripts,
                size_t count)
{
    memset(w, 0, sizeof *w);
    CHECK(uv_loop_init(&w->loop) == 0);
    CHECK(stg_client_new(&w->client, &w->loop, NULL) == STG_OK);
    CHECK(leaf_open(&w->leaf, &w->loop, "127.0.0.1", tls, scripts, count));
}

stg_endpoint_options world_options(world *w, const char *path)
{
    (void)snprintf(w->url, sizeof w->url, "http%s://127.0.0.1:%d%s",
                   w->leaf.tls ? "s" : "", w->leaf.port, path);
    return stg_endpoint_options_default(w->url);
}

void world_use(world *w, const stg_endpoint_options *o)
{
    stg_error err;

    if (w->endpoint != NULL)
        stg_endpoint_free(w->endpoint);
    err.text[0] = '\0';
    (void)stg_endpoint_new(&w->endpoint, w->client, o, &err);
    CHECK_STR(err.text, "");
}

void world_told(void *ctx, const stg_reply *reply)
{
    ending *e = ctx;

    e->times++;
    e->outcome = reply->outcome;
    e->status = reply->status;
    e->is_reused = reply->is_reused;
    e->is_put_back = reply->is_put_back;
    e->dialed_at = reply->dialed_at;
    e->took = reply->took;
    (void)snprintf(e->detail, sizeof e->detail, "%s", reply->detail);
    e->answer_size = reply->answer.size;
    CHECK(e->answer_size < sizeof e->answer);
    memcpy(e->answer, reply->answer.at, e->answer_size);
    e->answer[e->answer_size] = '\0';
}

stg_exchange *world_start_sized(world *w, ending *e, const char *headers,
                                const char *body, size_t size, stg_ns timeout)
{
    stg_endpoint_options o = world_options(w, "/");
    stg_exchange *x;

    if (w->endpoint == NULL)
        world_use(w, &o);
    memset(e, 0, sizeof *e);
    x = stg_endpoint_send(w->endpoint, (stg_span){headers, strlen(headers)},
                          (stg_span){body, size}, timeout, world_told, e);
    CHECK(x != NULL);
    CHECK_U64(e->times, 0);
    return x;
}

stg_exchange *world_start(world *w, ending *e, const char *body)
{
    return world_start_sized(w, e, "", body, strlen(body), 20 * STG_S);
}

void world_wait(world *w, const ending *e)
{
    while (e->times == 0)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    CHECK_U64(e->times, 1);
}

ending world_exchange(world *w, const char *body)
{
    ending e;

    (void)world_start(w, &e, body);
    world_wait(w, &e);
    return e;
}

void world_turn(world *w, int times)
{
    for (int i = 0; i < times; i++)
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
}

stg_endpoint_view world_look(const world *w)
{
    stg_endpoint_view view;

    stg_endpoint_look(w->endpoint, &view);
    return view;
}

static void closed(void *ctx)
{
    world *w = ctx;

    w->is_closed = true;
}

void world_close(world *w)
{
    if (w->endpoint != NULL)
        stg_endpoint_free(w->endpoint);
    stg_client_close(w->client, closed, w);
    leaf_close(&w->leaf);
    CHECK(uv_run(&w->loop, UV_RUN_DEFAULT) == 0);
    CHECK(w->is_closed);
    CHECK(uv_loop_close(&w->loop) == 0);
}
