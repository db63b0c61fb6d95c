#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/writer.h"
#include "hub/http/inside.h"

/* A write to a connection that the other side closed is an error like any
 * other, and no reason to die; uv_write() does not ask for that. */
static void ignore_broken_pipes(void)
{
    struct sigaction is;

    if (sigaction(SIGPIPE, NULL, &is) == 0 && is.sa_handler == SIG_DFL) {
        is.sa_handler = SIG_IGN;
        (void)sigaction(SIGPIPE, &is, NULL);
    }
}

/* Files that are left to the others: what is published and asked, the store. */
static uint64_t find_sockets_max(void)
{
    enum { OTHERS = 2048 };
    struct rlimit is;
    uint64_t most;

    if (getrlimit(RLIMIT_NOFILE, &is) != 0 || is.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    most = (uint64_t)is.rlim_cur;
    return most - (most / 4 < OTHERS ? most / 4 : OTHERS);
}

void stg_client_hold(stg_client *c)
{
    c->open++;
}

void stg_client_release(stg_client *c)
{
    void (*closed)(void *ctx) = c->closed;
    void *ctx = c->closed_ctx;

    c->open--;
    if (c->open > 0 || !c->is_closing)
        return;
    free(c->networks);
    free(c);
    if (closed != NULL)
        closed(ctx);
}

stg_status stg_client_new(stg_client **client, uv_loop_t *loop, stg_error *err)
{
    stg_client *c = malloc(sizeof *c);

    if (c == NULL) {
        (void)stg_refuse(err, "no memory for the HTTP client");
        return STG_IO;
    }
    ignore_broken_pipes();
    c->loop = loop;
    stg_deadlines_init(&c->deadlines, loop);
    stg_list_init(&c->contexts);
    stg_list_init(&c->dials);
    c->dialed = 0;
    stg_list_init(&c->idle);
    c->sockets = 0;
    c->sockets_max = find_sockets_max();
    (void)uv_idle_init(loop, &c->turn); // cannot fail
    c->turn.data = c;
    c->open = 2;
    c->is_closing = false;
    c->egress = (stg_egress){.allow = NULL};
    c->networks = NULL;
    c->rule = 0;
    *client = c;
    return STG_OK;
}

stg_status stg_client_set_egress(stg_client *c, const stg_egress *e,
                                 stg_error *err)
{
    size_t count = e->allow_count + e->deny_count;
    stg_cidr *networks = calloc(count + 1, sizeof *networks);

    if (networks == NULL) {
        (void)stg_refuse(err, "no memory for the networks of egress");
        return STG_IO;
    }
    if (e->allow_count > 0)
        memcpy(networks, e->allow, e->allow_count * sizeof *networks);
    if (e->deny_count > 0)
        memcpy(networks + e->allow_count, e->deny,
               e->deny_count * sizeof *networks);
    free(c->networks);
    c->networks = networks;
    c->egress = *e;
    c->egress.allow = networks;
    c->egress.deny = networks + e->allow_count;
    c->rule++;
    return STG_OK;
}

static void release(void *ctx)
{
    stg_client_release(ctx);
}

static void turn_closed(uv_handle_t *turn)
{
    stg_client_release(turn->data);
}

void stg_client_close(stg_client *c, void (*done)(void *ctx), void *ctx)
{
    c->is_closing = true;
    c->closed = done;
    c->closed_ctx = ctx;
    stg_deadlines_close(&c->deadlines, release, c);
    uv_close((uv_handle_t *)&c->turn, turn_closed);
}
