#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "http/header.h"
#include "ingress/internal.h"

/* The ingress's options: their check, and what is made of them in memory
 * (tokens, rules of headers, TLS).
 *
 * At the start all of them count. A change while the hub runs takes over
 * tokens, headers, webhooks, certificates and how many connections there may be,
 * and nothing else. It is prepared, which may fail and leaves the ingress as it was,
 * and then put in use, which cannot fail. A change ends the streams, for the
 * token of one may be gone. */

/* Limits that contradict each other would refuse every request, and only then be
 * noticed. */
static stg_status check_numbers(const stg_ingress_options *o, stg_error *err)
{
    if (o->message_max == 0 || o->batch_max == 0 || o->lines_max == 0 ||
        o->waiting_max == 0 || o->address_waiting_max == 0 ||
        o->connections_max == 0 || o->address_connections_max == 0)
        return stg_hub_refuse(
            err, STG_INVALID,
            "ingress: a limit is 0, and nothing could be accepted");
    if (o->message_max > o->pending_max || o->batch_max > o->pending_max)
        return stg_hub_refuse(
            err, STG_INVALID,
            "ingress: a message of %zu bytes or a batch of %zu does "
            "not fit into what may wait, %zu",
            o->message_max, o->batch_max, o->pending_max);
    if (o->header_max < 1024 || o->header_max > STG_HEADER_MAX)
        return stg_hub_refuse(
            err, STG_INVALID,
            "ingress: header_max=%zu; expected 1024 to 24576 bytes",
            o->header_max);
    if (o->idle_timeout == 0 || o->request_timeout == 0 ||
        o->header_timeout == 0)
        return stg_hub_refuse(err, STG_INVALID, "ingress: a timeout is 0");
    return STG_OK;
}

/* The rule that keeps a hub closed by default: without a token file it listens
 * to this machine alone. */
static stg_status read_tokens(const stg_ingress *g,
                              const stg_ingress_options *o, stg_tokens **tokens,
                              stg_error *err)
{
    *tokens = NULL;
    if (o->token_file != NULL)
        return stg_tokens_load(tokens, o->token_file, err);
    if (stg_address_is_loopback(&g->address))
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID,
        "listen=%.60s: others could reach it, and it has no token "
        "file; to make one: stagger token new FILE --role publish, "
        "or listen on 127.0.0.1",
        o->listen);
}

void stg_ingress_free_headers(char **headers)
{
    for (size_t i = 0; headers != NULL && headers[i] != NULL; i++)
        free(headers[i]);
    free(headers);
}

static stg_status copy_headers(const char *const *rules, char ***headers,
                               stg_error *err)
{
    size_t count = 0;
    bool is_short;

    while (rules[count] != NULL)
        count++;
    *headers = calloc(count + 1, sizeof **headers);
    is_short = *headers == NULL;
    for (size_t i = 0; !is_short && i < count; i++)
        is_short = ((*headers)[i] = strdup(rules[i])) == NULL;
    if (!is_short)
        return STG_OK;
    stg_ingress_free_headers(*headers);
    (void)stg_hub_refuse(err, STG_IO, "ingress: no memory");
    return STG_IO;
}

/* -- how many connections -------------------------------------------------- */

/* The targets' quarter is theirs alone; the half that is shared is looked at
 * when a connection comes. */
static uint64_t options_file_share(const stg_ingress *g, uint64_t *room)
{
    const stg_files alone = {0};

    *room =
        stg_files_room(g->options.files != NULL ? g->options.files : &alone);
    return *room - *room / 4;
}

static void options_tell_cap(stg_ingress *g, uint32_t requested, uint64_t most,
                             uint64_t room)
{
    bool is_told = g->connections_requested == requested;

    g->connections_requested = requested;
    if (is_told)
        return;
    STG_LOG(g->options.log, STG_LOG_WARN, "connections-capped",
            stg_field_number("requested", requested),
            stg_field_number("connections", most),
            stg_field_number("open_files", room),
            stg_field_text("next",
                           "three quarters of the files that are left for "
                           "connections may be producers': raise the limit "
                           "(LimitNOFILE=, ulimit -n)"));
}

void stg_ingress_limit(stg_ingress *g, uint32_t in_all, uint32_t of_client)
{
    uint64_t room, most = options_file_share(g, &room), share = of_client;

    if (most < in_all) {
        options_tell_cap(g, in_all, most, room);
        share = stg_ns_max(share * most / in_all, 1);
        in_all = (uint32_t)most;
    }
    g->options.connections_max = g->view.connections_max = in_all;
    g->options.address_connections_max = (uint32_t)share;
}

/* -- what may change ------------------------------------------------------- */

struct stg_ingress_next {
    stg_tokens *tokens;
    char **headers;
    const stg_webhook *webhooks; /* the caller's of stg_ingress_prepare() */
    size_t webhook_count;
    stg_tls_context
        *tls; /* NULL: connections are plain, or nothing listens yet */
    uint32_t connections_max, address_connections_max; /* requested numbers */
};

void stg_ingress_drop(stg_ingress_next *next)
{
    if (next == NULL)
        return;
    stg_tokens_free(next->tokens);
    stg_ingress_free_headers(next->headers);
    if (next->tls != NULL)
        stg_tls_context_release(next->tls);
    free(next);
}

/* At the start the server reads its certificate itself. */
static stg_status options_read_tls(stg_ingress *g, const stg_ingress_options *o,
                                   stg_ingress_next *next, stg_error *err)
{
    stg_error why;
    stg_status status = STG_OK;

    if (g->server.loop != NULL)
        status = stg_httpd_prepare_tls(&g->server, &o->tls, &next->tls, &why);
    return status == STG_OK
               ? STG_OK
               : stg_hub_refuse(err, status, "listen.tls: %.350s", why.text);
}

static stg_status options_read(stg_ingress *g, const stg_ingress_options *o,
                               stg_ingress_next *next, stg_error *err)
{
    stg_status status = check_numbers(o, err);

    if (status == STG_OK)
        status = stg_headers_check(o->headers, err);
    if (status == STG_OK)
        status = read_tokens(g, o, &next->tokens, err);
    if (status == STG_OK)
        status = copy_headers(o->headers, &next->headers, err);
    if (status == STG_OK)
        status = options_read_tls(g, o, next, err);
    return status;
}

stg_status stg_ingress_prepare(stg_ingress *g, const stg_ingress_options *o,
                               stg_ingress_next **next, stg_error *err)
{
    stg_ingress_next *n = calloc(1, sizeof *n);
    stg_status status;

    if (n == NULL)
        return stg_hub_refuse(err, STG_IO, "ingress: out of memory");
    n->webhooks = o->webhooks;
    n->webhook_count = o->webhook_count;
    n->connections_max = o->connections_max;
    n->address_connections_max = o->address_connections_max;
    status = options_read(g, o, n, err);
    if (status == STG_OK)
        *next = n;
    else
        stg_ingress_drop(n);
    return status;
}

/* Exchanges what next has for what the ingress has, and frees that. */
static void options_exchange(stg_ingress *g, stg_ingress_next *next)
{
    const stg_ingress_next old = {.tokens = g->tokens, .headers = g->headers};

    g->tokens = next->tokens;
    g->headers = next->headers;
    g->webhooks = next->webhooks;
    g->webhook_count = next->webhook_count;
    next->tokens = old.tokens;
    next->headers = old.headers;
    stg_ingress_drop(next);
}

void stg_ingress_use(stg_ingress *g, stg_ingress_next *next)
{
    stg_ingress_limit(g, next->connections_max, next->address_connections_max);
    stg_httpd_limit(&g->server, g->options.connections_max,
                    g->options.address_connections_max);
    stg_httpd_use_tls(&g->server, next->tls);
    next->tls = NULL; // the server's
    options_exchange(g, next);
    stg_ingress_end_streams(g);
}

/* -- at the start ---------------------------------------------------------- */

stg_status stg_ingress_read_options(stg_ingress *g, stg_error *err)
{
    const stg_ingress_options *o = &g->options;
    stg_ingress_next *next = NULL;
    stg_status status = stg_address_parse(&g->address, o->listen, err);

    if (status == STG_OK && o->tls.certificate_file != NULL &&
        stg_address_is_path(&g->address))
        status = stg_hub_refuse(err, STG_INVALID,
                                "listen=%.120s: a socket of this machine is "
                                "plain; expected an address and port, or no "
                                "certificate",
                                o->listen);
    if (status == STG_OK)
        status = stg_ingress_prepare(g, o, &next, err);
    if (next != NULL)
        options_exchange(g, next);
    return status;
}
