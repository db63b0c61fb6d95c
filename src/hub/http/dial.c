#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/http/inside.h"

/* More addresses of a name are not tried. */
enum { ADDRESSES_MAX = 16 };

typedef union stg_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} stg_address;

/* Of a name, shared by the connections that are being made to it. */
struct stg_addresses {
    size_t users;
    uint8_t count;
    char why[176]; /* what is wrong with the first one that egress refuses */
    stg_address at[];
};

/* One at a time for an endpoint, however many connections wait for it: the
 * threads of the loop are few, and a resolver may be slow. */
struct stg_lookup {
    uv_getaddrinfo_t request;
    stg_client *client;
    stg_endpoint *endpoint; /* NULL: it is gone */
    stg_list waiting;
};

/* -- addresses ------------------------------------------------------------- */

static stg_addresses *new_addresses(size_t count)
{
    stg_addresses *a = calloc(1, sizeof *a + count * sizeof *a->at);

    if (a != NULL)
        a->users = 1;
    return a;
}

static void release_addresses(stg_addresses *a)
{
    if (a != NULL && --a->users == 0)
        free(a);
}

static void print_address(const stg_address *at, char host[64])
{
    if (at->any.sa_family == AF_INET6)
        (void)uv_ip6_name(&at->v6, host, 64);
    else
        (void)uv_ip4_name(&at->v4, host, 64);
}

/* Counts the one behind the last, if egress allows it. */
static void keep_allowed(stg_addresses *a, const stg_client *c)
{
    const stg_address *at = &a->at[a->count];
    char why[STG_EGRESS_WHY_MAX], host[64] = "";

    if (stg_egress_allows(&c->egress, &at->any, why)) {
        a->count++;
        return;
    }
    if (*a->why != '\0')
        return;
    print_address(at, host);
    (void)snprintf(a->why, sizeof a->why, "%.45s may not be connected to: %s",
                   host, why);
}

/* The URL's own address. */
static stg_addresses *of_literal(const stg_endpoint *e)
{
    stg_addresses *a = new_addresses(1);

    if (a == NULL)
        return NULL;
    if (uv_ip4_addr(e->host, e->port, &a->at->v4) != 0)
        (void)uv_ip6_addr(e->host, e->port, &a->at->v6); // checked in url.c
    keep_allowed(a, e->client);
    return a;
}

static stg_addresses *of_answer(const stg_endpoint *e,
                                const struct addrinfo *found)
{
    stg_addresses *a = new_addresses(ADDRESSES_MAX);

    if (a == NULL)
        return NULL;
    for (; found != NULL && a->count < ADDRESSES_MAX; found = found->ai_next) {
        stg_address *at = &a->at[a->count];

        if (found->ai_family == AF_INET) {
            memcpy(&at->v4, found->ai_addr, sizeof at->v4);
            at->v4.sin_port = htons(e->port);
        } else if (found->ai_family == AF_INET6) {
            memcpy(&at->v6, found->ai_addr, sizeof at->v6);
            at->v6.sin6_port = htons(e->port);
        } else {
            continue;
        }
        keep_allowed(a, e->client);
    }
    return a;
}

void stg_dial_print(const stg_connection *c, char *text, size_t size)
{
    const stg_addresses *a = c->addresses;
    char host[64], of[48] = "";
    const stg_address *at;
    bool is_v6;

    if (a == NULL || c->address == 0) {
        (void)snprintf(text, size, "%s", c->endpoint->peer);
        return;
    }
    at = &a->at[c->address - 1];
    is_v6 = at->any.sa_family == AF_INET6;
    print_address(at, host);
    if (a->count > 1)
        (void)snprintf(of, sizeof of, " (address %u of %u)",
                       (unsigned)c->address, (unsigned)a->count);
    (void)snprintf(text, size, is_v6 ? "[%s]:%u%s" : "%s:%u%s", host,
                   (unsigned)c->endpoint->port, of);
}

/* -- connect --------------------------------------------------------------- */

static void connected(uv_connect_t *request, int status)
{
    stg_connection *c = request->handle->data;

    // UV_ECANCELED: the socket was closed, and who did so goes on.
    if (c->phase != STG_PHASE_CONNECT || c->is_redialing)
        return;
    if (status == 0)
        stg_connection_connected(c);
    else if (!stg_dial_skip(c))
        stg_connection_fail_later(c, status);
}

static int open_socket(stg_connection *c, const stg_address *to)
{
    int error = uv_tcp_init(c->client->loop, &c->tcp);

    if (error != 0)
        return error;
    c->has_handle = true;
    c->client->sockets++;
    c->tcp.data = c;
    error = uv_tcp_connect(&c->request.connect, &c->tcp, &to->any, connected);
    if (error == 0)
        (void)uv_tcp_nodelay(&c->tcp, 1); // slower without, not wrong
    return error;
}

/* Where files are scarce, a connection that waits for use somewhere makes room
 * for one that is needed here. */
static void make_room(stg_client *c)
{
    stg_connection *idle =
        STG_HOLDER(stg_list_first(&c->idle), stg_connection, waiting);

    if (c->sockets >= c->sockets_max && idle != NULL)
        stg_connection_close(idle);
}

static void dial(stg_connection *c)
{
    const stg_addresses *a = c->addresses;
    stg_ns now = stg_deadlines_now();
    size_t left = (size_t)a->count - c->address;
    int error;

    if (c->address == 0)
        c->dial_at = stg_ns_min(stg_from_now(c->endpoint->connect_timeout),
                                c->exchange.whole_at);
    // Those that do not answer leave time for those behind them.
    stg_connection_enter(
        c, STG_PHASE_CONNECT,
        left <= 1 || c->dial_at == STG_NEVER
            ? c->dial_at
            : stg_ns_add(now, stg_ns_sub(c->dial_at, now) / left));
    c->client->dialed++;
    make_room(c->client);
    error = open_socket(c, &a->at[c->address++]);
    if (error != 0 && !stg_dial_skip(c))
        stg_connection_fail_later(c, error);
}

void stg_dial_next(stg_connection *c)
{
    stg_client *client = c->client;

    (void)uv_idle_start(&client->turn, stg_dial_turn);
    if (client->dialed < STG_DIALS_MAX) {
        dial(c);
        return;
    }
    // It has the whole time to wait, and the phase's own from when it begins.
    stg_connection_enter(c, STG_PHASE_CONNECT, STG_NEVER);
    stg_list_push(&client->dials, &c->link);
}

void stg_dial_turn(uv_idle_t *turn)
{
    stg_client *client = turn->data;
    stg_link *link;

    client->dialed = 0;
    if (stg_list_first(&client->dials) == NULL)
        (void)uv_idle_stop(turn);
    while (client->dialed < STG_DIALS_MAX &&
           (link = stg_list_shift(&client->dials)) != NULL)
        dial(STG_HOLDER(link, stg_connection, link));
}

bool stg_dial_skip(stg_connection *c)
{
    if (c->is_redialing || !c->has_handle || c->address == c->addresses->count)
        return false;
    c->is_redialing = true;
    stg_connection_enter(c, STG_PHASE_CONNECT, c->dial_at);
    uv_close((uv_handle_t *)&c->tcp, stg_connection_closed);
    return true;
}

/* addresses: given, or NULL where there was no memory for them. */
static void connect_to(stg_connection *c, stg_addresses *a)
{
    c->addresses = a;
    c->address = 0;
    c->rule = c->client->rule;
    if (a == NULL)
        stg_connection_fail_later(c, UV_ENOMEM);
    else if (a->count == 0)
        stg_connection_fail_later(c, STG_ERROR_EGRESS);
    else
        stg_dial_next(c);
}

bool stg_dial_is_allowed(stg_connection *c)
{
    struct sockaddr_storage peer;
    int size = sizeof peer;

    if (c->rule == c->client->rule)
        return true;
    if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&peer, &size) != 0 ||
        !stg_egress_allows(&c->client->egress, (struct sockaddr *)&peer, NULL))
        return false;
    c->rule = c->client->rule;
    return true;
}

const char *stg_dial_why(const stg_connection *c)
{
    return c->addresses != NULL && c->addresses->count == 0
               ? c->addresses->why
               : "the address may not be connected to any more";
}

/* -- resolve --------------------------------------------------------------- */

static stg_outcome outcome_of(int error)
{
    static const struct {
        int uv, eai;
    } codes[] = {
        {UV_EAI_AGAIN, EAI_AGAIN},
        {UV_EAI_BADFLAGS, EAI_BADFLAGS},
        {UV_EAI_FAIL, EAI_FAIL},
        {UV_EAI_FAMILY, EAI_FAMILY},
        {UV_EAI_MEMORY, EAI_MEMORY},
        {UV_EAI_NONAME, EAI_NONAME},
        {UV_EAI_SERVICE, EAI_SERVICE},
        {UV_EAI_SOCKTYPE, EAI_SOCKTYPE},
#ifdef EAI_NODATA
        {UV_EAI_NODATA, EAI_NODATA},
#endif
#ifdef EAI_ADDRFAMILY
        {UV_EAI_ADDRFAMILY, EAI_ADDRFAMILY},
#endif
    };

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].uv == error)
            return stg_failed_resolver(codes[i].eai);
    return stg_failed_errno(-error);
}

static void fail_lookup(stg_connection *c, int error)
{
    (void)snprintf(c->client->detail, sizeof c->client->detail,
                   "resolve %s: %s", c->endpoint->host, uv_strerror(error));
    stg_connection_fail(c, outcome_of(error), c->client->detail);
}

static stg_connection *next_waiting(stg_lookup *l)
{
    return STG_HOLDER(stg_list_shift(&l->waiting), stg_connection, link);
}

static void resolved(uv_getaddrinfo_t *request, int status,
                     struct addrinfo *found)
{
    stg_lookup *l = request->data;
    stg_addresses *a = NULL;
    stg_connection *c;

    if (l->endpoint != NULL) {
        l->endpoint->lookup = NULL;
        if (status == 0)
            a = of_answer(l->endpoint, found);
    }
    if (a != NULL && a->count == 0 && *a->why == '\0')
        status = UV_EAI_NONAME;
    while ((c = next_waiting(l)) != NULL) {
        if (status != 0) {
            fail_lookup(c, status);
            continue;
        }
        if (a != NULL)
            a->users++;
        connect_to(c, a);
    }
    release_addresses(a);
    uv_freeaddrinfo(found);
    stg_client_release(l->client);
    free(l);
}

static int look_up(stg_endpoint *e)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM};
    stg_lookup *l = calloc(1, sizeof *l);
    int error;

    if (l == NULL)
        return UV_ENOMEM;
    l->request.data = l;
    l->client = e->client;
    l->endpoint = e;
    stg_list_init(&l->waiting);
    error = uv_getaddrinfo(e->client->loop, &l->request, resolved, e->host,
                           NULL, &hints);
    if (error != 0) {
        free(l);
        return error;
    }
    stg_client_hold(e->client);
    e->lookup = l;
    return 0;
}

void stg_dial_begin(stg_connection *c)
{
    stg_endpoint *e = c->endpoint;
    int error = 0;

    e->connects++;
    if (e->is_address) {
        connect_to(c, of_literal(e));
        return;
    }
    stg_connection_enter(c, STG_PHASE_RESOLVE,
                         stg_from_now(e->resolve_timeout));
    if (e->lookup == NULL)
        error = look_up(e);
    if (error != 0)
        stg_connection_fail_later(c, error);
    else
        stg_list_push(&e->lookup->waiting, &c->link);
}

void stg_dial_end(stg_connection *c)
{
    release_addresses(c->addresses);
    c->addresses = NULL;
}

void stg_dial_forget(stg_endpoint *e)
{
    if (e->lookup == NULL)
        return;
    e->lookup->endpoint = NULL;
    (void)uv_cancel((uv_req_t *)&e->lookup->request);
    e->lookup = NULL;
}
