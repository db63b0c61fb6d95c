/* world.h - a client, an endpoint and the leaf that it speaks to, in one loop.
 */
#ifndef TESTS_HTTP_WORLD_H
#define TESTS_HTTP_WORLD_H

#include "http/client.h"
#include "tests/http/leaf.h"

typedef struct world {
    uv_loop_t loop;
    stg_client *client;
    stg_endpoint *endpoint;
    leaf leaf;
    char url[128];
    bool is_closed;
} world;

/* What an exchange came to, copied. */
typedef struct ending {
    unsigned times; /* that it was told; 0: not yet */
    stg_outcome outcome;
    int status;
    bool is_reused, is_put_back;
    char detail[512];
    char answer[4096];
    size_t answer_size;
    stg_ns dialed_at, took;
} ending;

#define WORLD(w, ...)                               \
    world w;                                        \
    const leaf_step *w##_scripts[] = {__VA_ARGS__}; \
    world_open(&w, NULL, w##_scripts, sizeof w##_scripts / sizeof *w##_scripts)

/* With a leaf at 127.0.0.1, and no endpoint. */
void world_open(world *w, SSL_CTX *tls, const leaf_step *const *scripts,
                size_t count);

/* The defaults for a path at the leaf. */
stg_endpoint_options world_options(world *w, const char *path);
void world_use(world *w, const stg_endpoint_options *o);

/* Sends to the endpoint, made with the defaults if there is none. */
stg_exchange *world_start(world *w, ending *e, const char *body);
stg_exchange *world_start_sized(world *w, ending *e, const char *headers,
                                const char *body, size_t size, stg_ns timeout);

/* The stg_reply_fn of these, with an ending. */
void world_told(void *ctx, const stg_reply *reply);

/* Turns the loop until it is told. */
void world_wait(world *w, const ending *e);

/* Both. */
ending world_exchange(world *w, const char *body);

/* Turns the loop so often. */
void world_turn(world *w, int times);

stg_endpoint_view world_look(const world *w);

/* Ends it all: nothing is left in the loop. */
void world_close(world *w);

#endif
