/* post.h - the demo's producer: messages to the hub's ingress, by HTTP.
 *
 * All on the loop's thread. */
#ifndef STAGGER_CLI_DEMO_POST_H
#define STAGGER_CLI_DEMO_POST_H

#include "http/client.h"

enum { DEMO_POSTS = 32 /* requests at once */ };

typedef struct demo_post demo_post;

typedef struct demo_request {
    demo_post *post;
    bool is_sent;
    char headers[96], body[64];
} demo_request;

struct demo_post {
    stg_client *client;
    stg_endpoint *endpoint;
    uint32_t allowed; /* to be sent by now */
    uint32_t sent, accepted, refused;
    uint32_t under_way;
    bool is_closing;
    void (*closed)(void *ctx);
    void *ctx;
    demo_request requests[DEMO_POSTS];
};

/* Zeroed before. False: no memory. */
bool stg_demo_post_open(demo_post *p, uv_loop_t *loop, const char *address);

/* So many more may go out now. */
void stg_demo_post_allow(demo_post *p, uint32_t more);

/* Sends no more, and calls closed when nothing is under way. */
void stg_demo_post_close(demo_post *p, void (*closed)(void *ctx), void *ctx);

#endif
