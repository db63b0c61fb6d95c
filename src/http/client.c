#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/writer.h"
#include "http/internal.h"

/* One client for each loop. It has what the connections of all endpoints
 * share: deadlines, names, contexts of TLS, the list of idle connections, and
 * buffers; and it counts what must be closed before it can be freed.
 *
 * A buffer of the client is used by one connection at a time and within one
 * call: whoever needs its bytes later copies them. The client is freed by
 * whoever releases it last, so nothing may touch it behind a call of
 * stg_client_release(). All on the loop's thread. */

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
    stg_egress_rule_release(c->rule);
    free(c);
    if (closed != NULL)
        closed(ctx);
}

/* One that waits for use somewhere closes, where files are scarce. */
static bool evict(void *ctx)
{
    stg_client *c = ctx;
    stg_connection *idle =
        STG_HOLDER(stg_list_first(&c->idle), stg_connection, waiting);

    if (idle != NULL)
        stg_connection_close(idle);
    return idle != NULL;
}

stg_files *stg_client_files(stg_client *c)
{
    return &c->files;
}

bool stg_client_has_waited(stg_client *c)
{
    bool has_waited = c->has_waited;

    c->has_waited = false;
    return has_waited;
}

static void hold(void *ctx)
{
    stg_client_hold(ctx);
}

static void release(void *ctx)
{
    stg_client_release(ctx);
}

static void open_names(stg_client *c)
{
    const stg_names_hooks hooks = {.asked = stg_dial_asked,
                                   .told = stg_dial_told,
                                   .held = hold,
                                   .released = release,
                                   .ctx = c};

    stg_names_init(&c->names, c->loop, &c->deadlines, &hooks);
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
    open_names(c);
    stg_list_init(&c->contexts);
    stg_list_init(&c->commons);
    stg_list_init(&c->dials);
    c->dialed = 0;
    stg_list_init(&c->idle);
    c->files = (stg_files){.evict_target = evict, .targets_ctx = c};
    c->rest_until = 0;
    c->rest = (stg_deadline){.passed = stg_dial_rested};
    c->has_waited = false;
    (void)uv_idle_init(loop, &c->turn); // cannot fail
    c->turn.data = c;
    // The timer of the deadlines, and the idle handle.
    c->open = 2;
    c->is_closing = false;
    c->egress = (stg_egress){.allow = NULL};
    c->rule = NULL;
    c->rule_number = 0;
    *client = c;
    return STG_OK;
}

/* `rule_number` counts the changes, so that connections of the pool are judged by
 * the new rule before their next use. */
void stg_client_use_egress(stg_client *c, stg_egress_rule *rule)
{
    stg_egress_rule *old = c->rule;

    c->rule = stg_egress_rule_hold(rule);
    c->egress = rule->is;
    c->rule_number++;
    stg_egress_rule_release(old);
}

stg_status stg_client_set_egress(stg_client *c, const stg_egress *e,
                                 stg_error *err)
{
    stg_egress_rule *rule = stg_egress_rule_new(e);

    if (rule == NULL) {
        (void)stg_refuse(err, "out of memory");
        return STG_IO;
    }
    stg_client_use_egress(c, rule);
    stg_egress_rule_release(rule);
    return STG_OK;
}

void stg_client_set_resolver(stg_client *c, stg_resolver by)
{
    c->names.by = by;
}

static void turn_closed(uv_handle_t *turn)
{
    stg_client_release(turn->data);
}

/* Connections and endpoints are closed by their users before; what is still
 * open of them is waited for. */
void stg_client_close(stg_client *c, void (*done)(void *ctx), void *ctx)
{
    c->is_closing = true;
    c->closed = done;
    c->closed_ctx = ctx;
    stg_names_close(&c->names);
    stg_deadline_clear(&c->deadlines, &c->rest);
    stg_deadlines_close(&c->deadlines, release, c);
    uv_close((uv_handle_t *)&c->turn, turn_closed);
}
