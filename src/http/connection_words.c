/* What people read of an exchange that failed: where it was, with whom, and what
 * was missing. The text is in client.detail until the next one. */
#include <stdio.h>

#include "http/internal.h"

enum { PLACE_MAX = 620 };

/* The phase in which an exchange ended, and its peer: "connect 10.0.0.1:80". */
static void print_place(const stg_connection *c, stg_exchange_phase phase,
                        char *text, size_t size)
{
    static const char *const verbs[] = {
        [STG_PHASE_RESOLVE] = "resolve", [STG_PHASE_CONNECT] = "connect",
        [STG_PHASE_TUNNEL] = "CONNECT",  [STG_PHASE_TLS] = "tls",
        [STG_PHASE_WRITE] = "send to",   [STG_PHASE_WAIT] = "answer of",
        [STG_PHASE_READ] = "answer of",
    };
    const stg_endpoint *e = c->endpoint;
    const char *proxy = e->proxy != NULL ? e->proxy->peer : "";
    bool is_proxy = e->proxy != NULL && phase < STG_PHASE_TUNNEL;
    bool is_by = phase == STG_PHASE_TUNNEL;
    char peer[300];

    if (phase == STG_PHASE_CONNECT)
        stg_dial_print(c, peer, sizeof peer);
    else
        (void)snprintf(peer, sizeof peer, "%s",
                       phase == STG_PHASE_RESOLVE ? e->host : e->peer);
    (void)snprintf(text, size, "%s %s%s%s%s", verbs[phase],
                   is_proxy ? "proxy " : "", peer, is_by ? " by proxy " : "",
                   is_by ? proxy : "");
}

/* How long the phase was allowed to last, or the exchange if that was less. */
static stg_ns allowed(const stg_connection *c, stg_exchange_phase phase)
{
    const stg_endpoint *e = c->endpoint;
    const stg_exchange *x = &c->exchange;
    const stg_ns timeouts[] = {
        [STG_PHASE_RESOLVE] = e->common->resolve_timeout,
        [STG_PHASE_CONNECT] = e->common->connect_timeout,
        [STG_PHASE_TUNNEL] = e->common->connect_timeout,
        [STG_PHASE_TLS] = e->common->tls_timeout,
        [STG_PHASE_WRITE] = e->common->write_timeout,
        [STG_PHASE_WAIT] = e->common->first_byte_timeout,
        [STG_PHASE_READ] = STG_NEVER,
    };

    return c->phase_at < x->whole_at ? timeouts[phase]
                                     : stg_ns_sub(x->whole_at, x->begun_at);
}

/* "connect to HOST: no connection within 3 s": where it was, and what was missing
 * there. */
const char *stg_connection_print_timeout(stg_connection *c,
                                         stg_exchange_phase phase)
{
    static const char *const missing[] = {
        [STG_PHASE_RESOLVE] = "the resolver did not answer",
        [STG_PHASE_CONNECT] = "no connection",
        [STG_PHASE_TUNNEL] = "no answer",
        [STG_PHASE_TLS] = "the handshake was not over",
        [STG_PHASE_WRITE] = "the request was not taken",
        [STG_PHASE_WAIT] = "nothing came",
        [STG_PHASE_READ] = "it was not whole",
    };
    char place[PLACE_MAX], time[STG_NS_TEXT_MAX];

    print_place(c, phase, place, sizeof place);
    (void)snprintf(c->client->detail, sizeof c->client->detail,
                   "%.420s: %s within %s", place, missing[phase],
                   stg_ns_text(allowed(c, phase), time));
    return c->client->detail;
}

const char *stg_connection_print_error(stg_connection *c,
                                       stg_exchange_phase phase, int error)
{
    const stg_exchange *x = &c->exchange;
    char place[PLACE_MAX], answered[64] = "";
    bool is_answer = phase > STG_PHASE_WRITE || phase == STG_PHASE_TUNNEL;

    print_place(c, phase, place, sizeof place);
    if (is_answer && stg_connection_heard(c) == 0)
        (void)snprintf(answered, sizeof answered, ", before an answer");
    else if (stg_connection_heard(c) > 0)
        (void)snprintf(answered, sizeof answered, ", after %llu bytes of it",
                       (unsigned long long)stg_connection_heard(c));
    (void)snprintf(
        c->client->detail, sizeof c->client->detail, "%.360s: %s%s%s", place,
        error == UV_EOF ? "the connection was closed" : uv_strerror(error),
        answered, x->is_reused ? ", on a reused connection" : "");
    return c->client->detail;
}

/* Of an address that the settings do not allow. */
const char *stg_connection_print_refusal(stg_connection *c, bool is_proxy,
                                         int error)
{
    const stg_endpoint *e = c->endpoint;

    (void)snprintf(c->client->detail, sizeof c->client->detail,
                   "connect %s%s: %s (see %s in the settings)",
                   is_proxy ? "proxy " : "",
                   is_proxy ? e->proxy->peer : e->peer, stg_dial_why(c),
                   error == STG_ERROR_EGRESS ? "egress" : "source-address");
    return c->client->detail;
}
