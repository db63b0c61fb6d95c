/* From a connection to a proxy to one to the target: CONNECT is sent and its
 * answer read, before TLS or the request. What fails here before the proxy has
 * answered is the proxy's fault, as it is where it refuses us; what it answers
 * about the target is the target's. Only where nothing comes in time nobody knows:
 * that is a connect-timeout, and flow asks what others know of the proxy (see
 * flow/lane.h). */
#include <stdio.h>

#include "http/internal.h"
#include "http/proxy.h"

void stg_tunnel_open(stg_connection *c)
{
    stg_endpoint *e = c->endpoint;
    int error;

    stg_connection_enter(c, STG_PHASE_TUNNEL,
                         stg_from_now(e->common->connect_timeout));
    error = stg_wire_send(c, e->proxy->tunnel, e->proxy->tunnel_size);
    if (error != 0)
        stg_connection_fail_later(c, error);
}

static void refuse(stg_connection *c, stg_outcome outcome, int status)
{
    bool is_of_target = outcome.fault != STG_FAULT_PROXY;

    stg_connection_forget_answer(c);
    (void)snprintf(c->client->detail, sizeof c->client->detail,
                   "proxy %s %s%s%s (%d)", c->endpoint->proxy->peer,
                   stg_proxy_words(status), is_of_target ? " to " : "",
                   is_of_target ? c->endpoint->peer : "", status);
    stg_connection_fail(c, outcome, c->client->detail);
}

/* What answers so is no proxy, or a broken one. */
static void refuse_answer(stg_connection *c, const char *why)
{
    (void)snprintf(c->client->detail, sizeof c->client->detail,
                   "proxy %s: its answer to CONNECT: %s",
                   c->endpoint->proxy->peer, why);
    stg_connection_forget_answer(c);
    stg_connection_fail(c, stg_failed(STG_FAULT_PROXY), c->client->detail);
}

static void settle(stg_connection *c)
{
    int status = c->answer->status;
    stg_outcome outcome;

    if (!stg_proxy_connects(status, &outcome)) {
        refuse(c, outcome, status);
    } else if (c->answer->has_leftover) {
        // The target speaks second, and cannot have been asked yet.
        refuse_answer(c, "bytes behind it");
    } else {
        stg_connection_forget_answer(c);
        stg_connection_reached(c);
    }
}

void stg_tunnel_read(stg_connection *c, const char *bytes, size_t size)
{
    switch (stg_answer_feed(stg_connection_answer(c), bytes, size)) {
    case STG_ANSWER_OPEN:
        stg_connection_await_more(c);
        break;
    case STG_ANSWER_BROKEN:
        refuse_answer(c, c->answer->why);
        break;
    default:
        settle(c);
    }
}
