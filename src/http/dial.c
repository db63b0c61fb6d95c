/* From a name to a connection: addresses in turn, some at a time (RFC 8305).
 *
 * Each address is judged by egress just before it is tried, whatever the name was
 * judged before. The next one has its turn when the one before has failed, or has
 * not answered for a while; the first that connects wins, and the others are
 * closed. Many dials at once are spread over turns of the loop; where the system
 * has no file left they wait for one, and that time is not the target's. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "host/process.h"
#include "http/internal.h"

/* RFC 8305, section 5: after so long the next address is tried, too. */
static const stg_ns APART = 250 * STG_MS;

/* Without a file, a look for one is taken so often at least. */
static const stg_ns REST = 100 * STG_MS;

/* Of a connection that is being made. Thousands may wait for their turn, so words
 * have memory only where there is something to say. */
struct stg_addresses {
    uint8_t count;
    bool is_target_refused; /* by egress, where the proxy is dialed */
    int error; /* why there are none: STG_ERROR_EGRESS or _FAMILY */
    char *why; /* the first one may not be tried; NULL: nothing, or no memory */
    stg_address at[];
};

/* -- addresses ------------------------------------------------------------- */

static stg_addresses *new_addresses(size_t count)
{
    return calloc(1, sizeof(stg_addresses) + count * sizeof(stg_address));
}

/* The last refusal replaces the one before. */
static void refuse(stg_addresses *a, int error, const char *why)
{
    free(a->why);
    a->error = error;
    a->why = strdup(why);
}

static void print_address(const stg_address *at, char host[64])
{
    if (at->any.sa_family == AF_INET6)
        (void)uv_ip6_name(&at->v6, host, 64);
    else
        (void)uv_ip4_name(&at->v4, host, 64);
}

static void refuse_egress(stg_addresses *a, const stg_address *at,
                          const char *why)
{
    char host[64] = "", text[176];

    print_address(at, host);
    (void)snprintf(text, sizeof text, "%.45s may not be connected to: %s", host,
                   why);
    refuse(a, STG_ERROR_EGRESS, text);
}

static bool is_allowed(stg_addresses *a, const stg_client *c,
                       const stg_address *at)
{
    char why[STG_EGRESS_WHY_MAX];

    if (stg_egress_allows(&c->egress, &at->any, why))
        return true;
    if (a->error != STG_ERROR_EGRESS)
        refuse_egress(a, at, why);
    return false;
}

/* An address of the other family cannot be connected to from the source. */
static bool is_of_family(stg_addresses *a, const stg_endpoint *e,
                         const stg_address *at)
{
    int family = e->common->source.any.sa_family;

    if (family == AF_UNSPEC || family == at->any.sa_family)
        return true;
    if (a->error != 0)
        return false;
    refuse(a, STG_ERROR_FAMILY,
           family == AF_INET ? "it has no address of IPv4, as the source has"
                             : "it has no address of IPv6, as the source has");
    return false;
}

/* Counts the one behind the last, if it may be tried. */
static void keep_allowed(stg_addresses *a, const stg_endpoint *e)
{
    const stg_address *at = &a->at[a->count];

    if (is_of_family(a, e, at) && is_allowed(a, e->client, at))
        a->count++;
}

/* The URL's own address, or the proxy's. */
static stg_addresses *of_literal(const stg_endpoint *e)
{
    stg_addresses *a = new_addresses(1);

    if (a == NULL)
        return NULL;
    if (uv_ip4_addr(e->host, e->port, &a->at->v4) != 0)
        (void)uv_ip6_addr(e->host, e->port, &a->at->v6); // checked in url.c
    keep_allowed(a, e);
    return a;
}

static void set_port(stg_address *at, uint16_t port)
{
    if (at->any.sa_family == AF_INET)
        at->v4.sin_port = htons(port);
    else
        at->v6.sin6_port = htons(port);
}

static stg_addresses *of_name(const stg_endpoint *e, stg_name *n)
{
    stg_address all[STG_ADDRESSES_MAX];
    uint8_t count = stg_name_order(n, all);
    stg_addresses *a = new_addresses(count);

    if (a == NULL)
        return NULL;
    for (uint8_t i = 0; i < count; i++) {
        stg_address *at = &a->at[a->count];

        *at = all[i];
        set_port(at, e->port);
        keep_allowed(a, e);
    }
    return a;
}

/* "192.0.2.1:443 (address 2 of 4)"; the name, as long as none was tried. */
void stg_dial_print(const stg_connection *c, char *text, size_t size)
{
    const stg_addresses *a = c->addresses;
    char host[64], of[48] = "";
    const stg_address *at;
    bool is_v6;

    if (a == NULL || c->address == 0) {
        (void)snprintf(text, size, "%s",
                       c->endpoint->proxy != NULL ? c->endpoint->proxy->peer
                                                  : c->endpoint->peer);
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

/* An active idle handle keeps the loop from sleeping: stg_dial_turn() stops it
 * when nothing is left to do. */
void stg_dial_wake(stg_client *c)
{
    if (!stg_list_is_empty(&c->dials) && !c->is_closing)
        (void)uv_idle_start(&c->turn, stg_dial_turn);
}

/* -- sockets --------------------------------------------------------------- */

static stg_socket *socket_of(uv_handle_t *tcp)
{
    return (stg_socket *)(void *)((char *)tcp - offsetof(stg_socket, tcp));
}

static void socket_closed(uv_handle_t *tcp)
{
    stg_connection *c = tcp->data;

    free(socket_of(tcp));
    stg_connection_closed(c);
}

/* Its file is free from here on. */
static void close_socket(stg_connection *c, stg_socket *s)
{
    stg_list_remove(&s->link);
    c->client->files.targets -= s->is_open;
    uv_close((uv_handle_t *)&s->tcp, socket_closed);
    stg_dial_wake(c->client);
}

static void close_dials(stg_connection *c)
{
    stg_link *at;

    while ((at = stg_list_first(&c->dials)) != NULL)
        close_socket(c, STG_HOLDER(at, stg_socket, link));
}

void stg_dial_close(stg_connection *c)
{
    close_dials(c);
    if (c->socket != NULL)
        close_socket(c, c->socket);
    c->socket = NULL;
}

/* -- connect --------------------------------------------------------------- */

/* How much an error says about the target: what a host answered says more than
 * that there is no way to it, which may be so of one family only. */
static int weight_of(int error)
{
    switch (error) {
    case 0:
        return 0;
    case UV_ENETUNREACH:
    case UV_EHOSTUNREACH:
    case UV_ENETDOWN:
    case UV_EADDRNOTAVAIL:
    case UV_EAFNOSUPPORT:
        return 1;
    default:
        return 2;
    }
}

/* An address was tried, and it was nothing: the next one's turn comes at once.
 * The connection fails when none is left and none is under way. */
static void skip(stg_connection *c, int error)
{
    if (weight_of(error) >= weight_of(c->dial_error))
        c->dial_error = error;
    if (stg_dial_has_next(c))
        stg_dial_next(c);
    else if (stg_list_is_empty(&c->dials))
        stg_connection_fail_later(c, c->dial_error);
}

static void connected(uv_connect_t *request, int status)
{
    stg_socket *s = socket_of((uv_handle_t *)request->handle);
    stg_connection *c = s->tcp.data;

    free(request);
    // UV_ECANCELED: the socket was closed, and who did so goes on.
    if (uv_is_closing((uv_handle_t *)&s->tcp))
        return;
    if (status != 0) {
        close_socket(c, s);
        skip(c, status);
        return;
    }
    if (c->endpoint->name != NULL)
        // The next dials to the name begin with the family that has worked.
        c->endpoint->name->family = s->family;
    stg_list_remove(&s->link);
    c->socket = s;
    close_dials(c);
    stg_list_remove(&c->link); // its next address had no turn yet
    stg_connection_connected(c);
}

/* The port is chosen when it connects, so that connections to two targets may
 * have one port: there are more of them then. */
static int prepare(stg_socket *s, const stg_address *source)
{
    uv_os_fd_t fd;

    if (uv_fileno((uv_handle_t *)&s->tcp, &fd) != 0 ||
        !stg_process_can_watch(s->tcp.loop, fd))
        return UV_ENOMEM;
    if (source->any.sa_family == AF_UNSPEC)
        return 0;
#ifdef IP_BIND_ADDRESS_NO_PORT
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &(int){1},
                     sizeof(int));
#endif
    return uv_tcp_bind(&s->tcp, &source->any, 0);
}

/* Returns an error of libuv, or 0. A socket that was begun is closed by itself
 * after an error. */
static int open_socket(stg_connection *c, const stg_address *to)
{
    stg_socket *s = calloc(1, sizeof *s);
    uv_connect_t *request = malloc(sizeof *request);
    int error = UV_ENOMEM;

    if (s != NULL && request != NULL)
        error = uv_tcp_init_ex(c->client->loop, &s->tcp, to->any.sa_family);
    if (error != 0) {
        free(s);
        free(request);
        return error;
    }
    s->tcp.data = c;
    s->family = to->any.sa_family;
    c->handles++;
    stg_list_push(&c->dials, &s->link);
    error = prepare(s, &c->endpoint->common->source);
    if (error == 0)
        error = uv_tcp_connect(request, &s->tcp, &to->any, connected);
    if (error != 0) {
        free(request);
        close_socket(c, s);
        return error;
    }
    s->is_open = true;
    c->client->files.targets++;
    (void)uv_tcp_nodelay(&s->tcp, 1); // slower without, not wrong
    return 0;
}

/* All addresses have their turn within the time to connect. */
static stg_ns find_next_at(const stg_connection *c, stg_ns now)
{
    size_t left = (size_t)c->addresses->count - c->address;
    stg_ns apart = APART;

    if (left == 0)
        return c->dial_at;
    if (c->dial_at != STG_NEVER)
        apart = stg_ns_min(apart, stg_ns_sub(c->dial_at, now) / (left + 1));
    return stg_ns_add(now, apart);
}

static void add(stg_list *dials, stg_link *link, bool is_first)
{
    if (is_first)
        stg_list_unshift(dials, link);
    else
        stg_list_push(dials, link);
}

/* For its turn, for a file, or for another connection of the target that is free
 * before; where other addresses are being tried, its time goes on. */
static void wait_for_turn(stg_connection *c, bool is_first)
{
    if (stg_list_is_empty(&c->dials)) {
        stg_connection_wait(c);
        add(&c->endpoint->dials, &c->waiting, is_first);
    }
    stg_connection_enter(c, STG_PHASE_CONNECT,
                         c->dial_at == 0 ? STG_NEVER : c->dial_at);
    if (!stg_list_has(&c->link))
        add(&c->client->dials, &c->link, is_first);
}

/* Where files are scarce, all wait in one row: a target that has connections keeps
 * none of them from another one whose turn it is. */
stg_connection *stg_dial_find_waiting(const stg_endpoint *e)
{
    const stg_client *client = e->client;
    stg_link *first = stg_list_first(&e->dials);
    stg_connection *c = STG_HOLDER(first, stg_connection, waiting);

    if (c == NULL || stg_list_first(&client->dials) == &c->link)
        return c;
    return stg_deadlines_now() >= client->rest_until &&
                   stg_files_have_target(&client->files)
               ? c
               : NULL;
}

static void dial(stg_connection *c)
{
    const stg_addresses *a = c->addresses;
    int error;

    stg_list_remove(&c->waiting);
    stg_connection_go_on(c);
    if (c->dial_at == 0)
        c->dial_at =
            stg_ns_min(stg_from_now(c->endpoint->common->connect_timeout),
                       c->exchange.whole_at);
    c->client->dialed++;
    error = open_socket(c, &a->at[c->address]);
    // Not the address's fault: the same one is tried again, before all others
    // that wait.
    if (stg_is_shortage(error)) {
        c->client->rest_until = stg_ns_add(stg_deadlines_now(), REST);
        wait_for_turn(c, true);
        return;
    }
    c->endpoint->connects += c->address == 0;
    c->address++;
    stg_connection_enter(c, STG_PHASE_CONNECT,
                         find_next_at(c, stg_deadlines_now()));
    if (error != 0)
        skip(c, error);
}

bool stg_dial_has_next(const stg_connection *c)
{
    return c->address < c->addresses->count;
}

/* Where files are scarce, a connection that waits for use somewhere makes room
 * for one that is needed here. */
static bool has_file(stg_client *c)
{
    if (stg_deadlines_now() < c->rest_until)
        return false;
    while (!stg_files_have_target(&c->files))
        if (!c->files.evict_target(c))
            return false;
    return true;
}

void stg_dial_next(stg_connection *c)
{
    stg_client *client = c->client;

    if (!stg_list_has(&c->link) && stg_list_is_empty(&client->dials) &&
        client->dialed < STG_DIALS_MAX && has_file(client)) {
        (void)uv_idle_start(&client->turn, stg_dial_turn);
        dial(c);
        return;
    }
    wait_for_turn(c, false);
    stg_dial_wake(client);
}

/* Those that are left when there is no file look again in a moment. */
static void rest(stg_client *c)
{
    c->has_waited = true;
    stg_files_ask_callers(&c->files);
    stg_deadline_set(&c->deadlines, &c->rest,
                     stg_ns_add(stg_deadlines_now(), REST));
}

/* A turn dials STG_DIALS_MAX addresses at most, those of stg_dial_next()
 * included. The handle stops after a turn that dialed none, so that the count
 * begins anew in each. */
void stg_dial_turn(uv_idle_t *turn)
{
    stg_client *client = turn->data;
    bool is_short = false;

    client->dialed = 0;
    while (client->dialed < STG_DIALS_MAX &&
           !stg_list_is_empty(&client->dials) && !is_short) {
        is_short = !has_file(client);
        if (!is_short)
            dial(STG_HOLDER(stg_list_shift(&client->dials), stg_connection,
                            link));
    }
    if (is_short)
        rest(client);
    if (is_short || client->dialed == 0)
        (void)uv_idle_stop(turn);
}

void stg_dial_rested(stg_deadline *rest)
{
    stg_dial_wake(STG_HOLDER((void *)rest, stg_client, rest));
}

/* addresses: given, or NULL where there was no memory for them. */
static void connect_to(stg_connection *c, stg_addresses *a)
{
    c->addresses = a;
    c->address = 0;
    c->dial_at = 0;
    c->dial_error = 0;
    c->rule = c->client->rule_number;
    if (a == NULL)
        stg_connection_fail_later(c, UV_ENOMEM);
    else if (a->count == 0)
        stg_connection_fail_later(c, a->error);
    else
        stg_dial_next(c);
}

/* Of a target that is an address behind a proxy; of another one the proxy has to
 * find it, and to judge it. */
static bool is_target_allowed(const stg_endpoint *e)
{
    return e->proxy == NULL || !e->proxy->has_target ||
           stg_egress_allows(&e->client->egress, &e->proxy->target.any, NULL);
}

/* Asks about the peer's own address, for the list of addresses is gone by the
 * time that a connection comes out of the pool. */
bool stg_dial_is_allowed(stg_connection *c)
{
    struct sockaddr_storage peer;
    int size = sizeof peer;

    if (c->rule == c->client->rule_number)
        return true;
    if (uv_tcp_getpeername(&c->socket->tcp, (struct sockaddr *)&peer, &size) !=
            0 ||
        !stg_egress_allows(&c->client->egress, (struct sockaddr *)&peer,
                           NULL) ||
        !is_target_allowed(c->endpoint))
        return false;
    c->rule = c->client->rule_number;
    return true;
}

const char *stg_dial_why(const stg_connection *c)
{
    const stg_addresses *a = c->addresses;

    if (a == NULL || a->count > 0)
        return "the address may not be connected to any more";
    return a->why != NULL ? a->why : "no address may be connected to";
}

bool stg_dial_is_target_refused(const stg_connection *c)
{
    return c->addresses != NULL && c->addresses->is_target_refused;
}

/* The proxy connects to whatever it is asked for: an address is judged here, and a
 * name there. NULL: no memory. */
static stg_addresses *refuse_target(const stg_endpoint *e)
{
    stg_addresses *a = new_addresses(0);

    if (a != NULL)
        a->is_target_refused = !is_allowed(a, e->client, &e->proxy->target);
    return a;
}

/* -- resolve --------------------------------------------------------------- */

void stg_dial_asked(stg_link *waiting, bool is_under_way)
{
    stg_connection *c = STG_HOLDER(waiting, stg_connection, link);

    if (!is_under_way) {
        stg_connection_wait(c);
        return;
    }
    stg_connection_go_on(c);
    stg_connection_enter(c, STG_PHASE_RESOLVE,
                         stg_from_now(c->endpoint->common->resolve_timeout));
}

void stg_dial_told(stg_link *waiting, stg_name *n)
{
    stg_connection *c = STG_HOLDER(waiting, stg_connection, link);
    bool is_proxy = c->endpoint->proxy != NULL;

    if (n->error == 0) {
        stg_connection_go_on(c);
        connect_to(c, of_name(c->endpoint, n));
        return;
    }
    (void)snprintf(c->client->detail, sizeof c->client->detail,
                   "resolve %s%s: %s", is_proxy ? "proxy " : "", n->host,
                   n->why);
    stg_connection_fail(
        c, is_proxy ? stg_failed(STG_FAULT_PROXY) : stg_name_outcome(n->error),
        c->client->detail);
}

void stg_dial_begin(stg_connection *c)
{
    stg_endpoint *e = c->endpoint;

    if (!is_target_allowed(e)) {
        connect_to(c, refuse_target(e));
    } else if (e->is_address) {
        connect_to(c, of_literal(e));
    } else if (stg_name_ask(e->name, &c->link, stg_deadlines_now())) {
        connect_to(c, of_name(e, e->name));
    } else if (!e->name->is_asked) {
        stg_connection_wait(c);
    }
}

void stg_dial_end(stg_connection *c)
{
    if (c->addresses != NULL)
        free(c->addresses->why);
    free(c->addresses);
    c->addresses = NULL;
}
