/* How the client finds the addresses of a name: against a name server of the
 * tests' own, in the same loop. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http/internal.h"
#include "tests/harness.h"
#include "tests/http/world.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* -- a name server --------------------------------------------------------- */

enum { TYPE_A = 1, TYPE_AAAA = 28, LATE_MS = 120 };

typedef struct server {
    uv_udp_t udp;
    uv_tcp_t tcp; /* at the same port */
    unsigned asked_by_tcp;
    uv_timer_t timer;
    char path[64]; /* of a resolv.conf that names it */
    int port;
    unsigned asked; /* for addresses of IPv4 */
    unsigned ttl;   /* in its answers */
    bool is_deaf;   /* to all names */
    unsigned char
        late[64]; /* the question of late.test, until it is answered */
    size_t late_size;
    struct sockaddr_in late_from;
    char bytes[512];
} server;

/* Answers of the name server: a name's addresses of IPv4 and of IPv6, each list
 * up to a NULL. */
static const struct known {
    const char *name, *four[17], *six[2];
} knowns[] = {
    {"here.test", {"127.0.0.1"}, {NULL}},
    {"late.test", {"127.0.0.1"}, {NULL}},
    {"two.test", {"127.0.0.1", "127.0.0.1"}, {NULL}},
    {"dead.test", {"127.0.0.9", "127.0.0.1"}, {NULL}},
    {"many.test",
     {"127.0.0.9", "127.0.0.10", "127.0.0.11", "127.0.0.12", "127.0.0.13",
      "127.0.0.14", "127.0.0.15", "127.0.0.16", "127.0.0.17", "127.0.0.18",
      "127.0.0.19", "127.0.0.20", "127.0.0.21", "127.0.0.22", "127.0.0.23",
      "127.0.0.1"},
     {NULL}},
    {"both.test", {"127.0.0.1"}, {"2001:db8::1"}},
    {"meta.test", {"127.0.0.1"}, {"fd00:ec2::254"}},
    {"only.a.search", {"127.0.0.1"}, {NULL}},
    {"big.test", {"127.0.0.1"}, {NULL}},
    {"four.test", {"127.0.0.1"}, {"::1"}},
};

static const struct known *find_known(const char *name)
{
    for (size_t i = 0; i < sizeof knowns / sizeof *knowns; i++)
        if (strcmp(knowns[i].name, name) == 0)
            return &knowns[i];
    return strncmp(name, "good", 4) == 0 ? &knowns[0] : NULL;
}

/* The name and type of a question; returns its end. */
static size_t read_question(const unsigned char *q, char name[256],
                            unsigned *type)
{
    size_t at = 12, to = 0;

    while (q[at] != 0) {
        memcpy(name + to, q + at + 1, q[at]);
        to += q[at];
        name[to++] = '.';
        at += q[at] + 1U;
    }
    name[to - 1] = '\0';
    *type = (unsigned)q[at + 1] << 8 | q[at + 2];
    return at + 5;
}

static size_t put_address(unsigned char *to, unsigned type, unsigned ttl,
                          const char *address)
{
    unsigned char head[12] = {0xc0, 12, 0, (unsigned char)type, 0, 1, 0, 0};
    size_t size = type == TYPE_A ? 4 : 16;

    head[8] = (unsigned char)(ttl >> 8);
    head[9] = (unsigned char)ttl;
    head[11] = (unsigned char)size;
    memcpy(to, head, sizeof head);
    CHECK(inet_pton(type == TYPE_A ? AF_INET : AF_INET6, address,
                    to + sizeof head) == 1);
    return sizeof head + size;
}

/* By UDP, names that begin with "big" have an answer that was cut. */
static size_t make_answer(server *s, const unsigned char *question,
                          bool is_by_tcp, unsigned char reply[512])
{
    char name[256];
    unsigned type, count = 0;
    size_t size = read_question(question, name, &type);
    const struct known *k = find_known(name);
    const char *const *at;

    memcpy(reply, question, size);
    memset(reply + 6, 0, 6);
    reply[2] = 0x81; // an answer, and recursion was wanted
    reply[3] = k == NULL ? 0x83 : 0x80;
    at = k == NULL ? NULL : type == TYPE_A ? k->four : k->six;
    if (strncmp(name, "big", 3) == 0 && !is_by_tcp) {
        reply[2] |= 0x02; // TC
        at = NULL;
    }
    for (; at != NULL && *at != NULL; at++, count++)
        size += put_address(reply + size, type, s->ttl, *at);
    reply[7] = (unsigned char)count;
    return size;
}

static void answer(server *s, const unsigned char *question,
                   const struct sockaddr *from)
{
    unsigned char reply[512];
    size_t size = make_answer(s, question, false, reply);
    uv_buf_t part = uv_buf_init((char *)reply, (unsigned)size);

    CHECK(uv_udp_try_send(&s->udp, &part, 1, from) == (int)size);
}

static void answer_late(uv_timer_t *timer)
{
    server *s = timer->data;

    answer(s, s->late, (struct sockaddr *)&s->late_from);
}

static void hear(uv_udp_t *udp, ssize_t size, const uv_buf_t *buf,
                 const struct sockaddr *from, unsigned flags)
{
    server *s = udp->data;
    const unsigned char *question = (const unsigned char *)buf->base;
    char name[256];
    unsigned type;

    (void)flags;
    if (size <= 12 || from == NULL)
        return;
    (void)read_question(question, name, &type);
    s->asked += type == TYPE_A;
    if (s->is_deaf || strncmp(name, "mute", 4) == 0 ||
        (strcmp(name, "four.test") == 0 && type != TYPE_A))
        return;
    if (strcmp(name, "late.test") != 0 || type != TYPE_A) {
        answer(s, question, from);
        return;
    }
    CHECK((size_t)size <= sizeof s->late);
    memcpy(s->late, question, (size_t)size);
    memcpy(&s->late_from, from, sizeof s->late_from);
    CHECK(uv_timer_start(&s->timer, answer_late, LATE_MS, 0) == 0);
}

static void lend(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    server *s = handle->data;

    (void)size;
    *buf = uv_buf_init(s->bytes, sizeof s->bytes);
}

/* -- by TCP: two bytes of length, and a message */

typedef struct caller {
    uv_tcp_t tcp; /* its first field */
    server *server;
    unsigned char bytes[1024];
    size_t size;
} caller;

static void free_caller(uv_handle_t *handle)
{
    free(handle);
}

static void lend_rest(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    caller *c = (caller *)handle;

    (void)size;
    *buf = uv_buf_init((char *)c->bytes + c->size,
                       (unsigned)(sizeof c->bytes - c->size));
}

static void answer_by_tcp(caller *c, const unsigned char *question)
{
    unsigned char reply[2 + 512];
    size_t size = make_answer(c->server, question, true, reply + 2);
    uv_buf_t part = uv_buf_init((char *)reply, (unsigned)size + 2);

    reply[0] = (unsigned char)(size >> 8);
    reply[1] = (unsigned char)size;
    c->server->asked_by_tcp++;
    CHECK(uv_try_write((uv_stream_t *)&c->tcp, &part, 1) == (int)size + 2);
}

static void hear_tcp(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    caller *c = (caller *)stream;
    size_t size;

    (void)buf;
    if (got < 0) {
        uv_close((uv_handle_t *)stream, free_caller);
        return;
    }
    c->size += (size_t)got;
    while (c->size > 2 && c->size >= (size = 2U + ((unsigned)c->bytes[0] << 8 |
                                                   c->bytes[1]))) {
        answer_by_tcp(c, c->bytes + 2);
        c->size -= size;
        memmove(c->bytes, c->bytes + size, c->size);
    }
}

static void accept_tcp(uv_stream_t *listener, int status)
{
    caller *c = calloc(1, sizeof *c);

    CHECK(status == 0 && c != NULL);
    c->server = listener->data;
    CHECK(uv_tcp_init(listener->loop, &c->tcp) == 0);
    CHECK(uv_accept(listener, (uv_stream_t *)&c->tcp) == 0);
    CHECK(uv_read_start((uv_stream_t *)&c->tcp, lend_rest, hear_tcp) == 0);
}

/* Both at one port, whichever is free for both. */
static void bind_both(int *udp, int *tcp)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;

    for (;;) {
        at.sin_port = 0;
        *udp = socket(AF_INET, SOCK_DGRAM, 0);
        *tcp = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(*udp >= 0 && *tcp >= 0);
        CHECK(bind(*udp, (struct sockaddr *)&at, sizeof at) == 0);
        CHECK(getsockname(*udp, (struct sockaddr *)&at, &size) == 0);
        if (bind(*tcp, (struct sockaddr *)&at, sizeof at) == 0)
            return;
        close(*udp);
        close(*tcp);
    }
}

static void write_file(const server *s, const char *text)
{
    char path[80];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s.new", s->path);
    file = fopen(path, "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
    CHECK(rename(path, s->path) == 0);
}

static void server_open(server *s, world *w)
{
    struct sockaddr_in at;
    int size = sizeof at, fd, tcp;

    memset(s, 0, sizeof *s);
    s->ttl = 60;
    bind_both(&fd, &tcp);
    CHECK(uv_udp_init(&w->loop, &s->udp) == 0);
    CHECK(uv_timer_init(&w->loop, &s->timer) == 0);
    s->udp.data = s->timer.data = s;
    CHECK(uv_udp_open(&s->udp, fd) == 0);
    s->tcp.data = s;
    CHECK(uv_tcp_init(&w->loop, &s->tcp) == 0);
    CHECK(uv_tcp_open(&s->tcp, tcp) == 0);
    CHECK(uv_listen((uv_stream_t *)&s->tcp, 16, accept_tcp) == 0);
    CHECK(uv_udp_getsockname(&s->udp, (struct sockaddr *)&at, &size) == 0);
    CHECK(uv_udp_recv_start(&s->udp, lend, hear) == 0);
    s->port = ntohs(at.sin_port);
    (void)snprintf(s->path, sizeof s->path, "/tmp/stagger-resolv-XXXXXX");
    fd = mkstemp(s->path);
    CHECK(fd >= 0);
    (void)close(fd);
    write_file(s, "nameserver 127.0.0.1\nsearch a.search\n");
    w->client->names.path = s->path;
    w->client->names.port = (uint16_t)s->port;
    stg_client_set_resolver(w->client, STG_RESOLVER_DNS);
}

static void server_close(server *s)
{
    uv_close((uv_handle_t *)&s->udp, NULL);
    uv_close((uv_handle_t *)&s->tcp, NULL);
    uv_close((uv_handle_t *)&s->timer, NULL);
    (void)unlink(s->path);
}

#define SERVED(s, w) \
    server s;        \
    server_open(&s, &w)

static void close_all(server *s, world *w)
{
    server_close(s);
    world_close(w);
}

static stg_endpoint_options options_of(world *w, const char *host)
{
    (void)snprintf(w->url, sizeof w->url, "http://%s:%d/", host, w->leaf.port);
    return stg_endpoint_options_default(w->url);
}

static ending exchange_with(world *w, const char *host)
{
    stg_endpoint_options o = options_of(w, host);

    o.idle_count_max = 0; // each exchange connects
    world_use(w, &o);
    return world_exchange(w, "");
}

static void check_ok(const ending *e)
{
    CHECK_STR(e->detail, "HTTP 200");
}

/* -- answers --------------------------------------------------------------- */

TEST(client_names, asks_the_name_server_once_for_as_long_as_its_answer_holds)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    ending e;

    e = exchange_with(&w, "here.test");
    check_ok(&e);
    for (int i = 0; i < 2; i++) {
        e = world_exchange(&w, "");
        check_ok(&e);
    }
    CHECK_U64(s.asked, 1);
    CHECK_U64(w.leaf.accepted, 3);
    close_all(&s, &w);
}

TEST(client_names, asks_again_by_tcp_where_the_answer_was_cut)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    ending e = exchange_with(&w, "here.test");

    check_ok(&e);
    CHECK_U64(s.asked_by_tcp, 0);
    e = exchange_with(&w, "big.test");
    check_ok(&e);
    CHECK(s.asked_by_tcp > 0);
    close_all(&s, &w);
}

/* 5 s at least, and 5 min at most; that there is none for 5 s. */
TEST(client_names, keeps_an_answer_for_its_ttl_within_bounds)
{
    static const struct {
        const char *host;
        unsigned ttl, holds_s;
    } rows[] = {{"good1.test", 0, 5},
                {"good2.test", 77, 77},
                {"good3.test", 9999, 300},
                {"none.test", 77, 5}};
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_ns before, left;
        stg_name *n;

        s.ttl = rows[i].ttl;
        (void)exchange_with(&w, rows[i].host);
        before = stg_deadlines_now();
        n = w.endpoint->name;
        left = stg_ns_sub(n->until_at, before);
        CHECK(left <= rows[i].holds_s * STG_S);
        CHECK(left > (rows[i].holds_s - 2) * STG_S);
        // It is over, and asked again.
        n->until_at = 1;
        s.asked = 0;
        (void)world_exchange(&w, "");
        CHECK(s.asked >= 1);
    }
    close_all(&s, &w);
}

TEST(client_names, tells_of_a_name_that_is_not_there_and_asks_once)
{
    WORLD(w, SCRIPT(HEAR));
    SERVED(s, w);
    ending e = exchange_with(&w, "none.test"), second;
    unsigned asked = s.asked;

    CHECK_INT(e.outcome.fault, STG_FAULT_DNS);
    CHECK(e.outcome.unsent);
    CHECK(strncmp(e.detail, "resolve none.test: ", 19) == 0);
    (void)world_start(&w, &e, "");
    (void)world_start(&w, &second, "");
    world_wait(&w, &e);
    world_wait(&w, &second);
    CHECK_INT(second.outcome.fault, STG_FAULT_DNS);
    CHECK_U64(s.asked, asked);
    close_all(&s, &w);
}

TEST(client_names, follows_search_domains_and_knows_the_hosts_file)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    ending e = exchange_with(&w, "only");

    check_ok(&e);
    s.asked = 0;
    e = exchange_with(&w, "localhost");
    check_ok(&e);
    CHECK_U64(s.asked, 0);
    e = exchange_with(&w, "0x7f000001"); // a number is an address, as elsewhere
    check_ok(&e);
    CHECK_U64(s.asked, 0);
    close_all(&s, &w);
}

TEST(client_names, asks_once_for_all_endpoints_of_a_name)
{
    enum { MANY = 20 };
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    stg_endpoint_options o = options_of(&w, "here.test");
    stg_endpoint *endpoints[MANY];
    ending e[MANY];

    for (int i = 0; i < MANY; i++) {
        w.endpoint = NULL;
        world_use(&w, &o);
        endpoints[i] = w.endpoint;
        (void)world_start(&w, &e[i], "");
    }
    for (int i = 0; i < MANY; i++) {
        world_wait(&w, &e[i]);
        check_ok(&e[i]);
    }
    CHECK_U64(s.asked, 1);
    for (int i = 0; i < MANY - 1; i++)
        stg_endpoint_free(endpoints[i]);
    close_all(&s, &w);
}

/* -- I25: a name server that is slow, or silent ---------------------------- */

TEST(client_names, waits_for_no_name_but_its_own)
{
    enum { MANY = 120 }; // a leaf has 64 guests
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    stg_endpoint *endpoints[MANY];
    ending *e = calloc(MANY, sizeof *e);
    stg_ns began_at = stg_deadlines_now();

    CHECK(e != NULL);
    // Every second one is never answered.
    for (int i = 0; i < MANY; i++) {
        char host[32];
        stg_endpoint_options o;

        (void)snprintf(host, sizeof host, "%s%d.test", i % 2 ? "good" : "mute",
                       i);
        o = options_of(&w, host);
        o.resolve_timeout = 2 * STG_S;
        w.endpoint = NULL;
        world_use(&w, &o);
        endpoints[i] = w.endpoint;
        (void)world_start(&w, &e[i], "");
    }
    for (int i = 1; i < MANY; i += 2) {
        world_wait(&w, &e[i]);
        check_ok(&e[i]);
    }
    CHECK(stg_ns_sub(stg_deadlines_now(), began_at) < 2 * STG_S);
    for (int i = 0; i < MANY; i += 2) {
        world_wait(&w, &e[i]);
        CHECK_INT(e[i].outcome.fault, STG_FAULT_DNS_TEMPORARY);
        // From when it was asked, and not a second name's time more.
        CHECK(e[i].took < 3 * STG_S);
    }
    for (int i = 0; i < MANY - 1; i++)
        stg_endpoint_free(endpoints[i]);
    free(e);
    close_all(&s, &w);
}

TEST(client_names, keeps_an_answer_that_came_too_late_for_who_waited)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    stg_endpoint_options o = options_of(&w, "late.test");
    ending e;

    o.resolve_timeout = 20 * STG_MS;
    world_use(&w, &o);
    e = world_exchange(&w, "");
    CHECK_INT(e.outcome.fault, STG_FAULT_DNS_TEMPORARY);
    CHECK_STR(e.detail,
              "resolve late.test: the resolver did not answer within 20 ms");
    while (w.endpoint->name->is_asked)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    e = world_exchange(&w, "");
    check_ok(&e);
    CHECK_U64(s.asked, 1);
    close_all(&s, &w);
}

TEST(client_names, does_without_the_family_that_is_not_answered)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    ending e = exchange_with(&w, "four.test");

    check_ok(&e);
    CHECK(e.took < 2 * STG_S);
    close_all(&s, &w);
}

TEST(client_names, asks_another_server_when_resolv_conf_is_written_anew)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    ending e;

    // Nobody listens there.
    write_file(&s, "nameserver 127.0.0.7\n");
    (void)exchange_with(&w, "good1.test");
    CHECK_U64(s.asked, 0);
    s.is_deaf = true;
    write_file(&s, "nameserver 127.0.0.1\n# now mute\n");
    w.client->names.looked_at = 0;
    (void)world_start(&w, &e, "");
    while (s.asked == 0)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    // What waits for an answer of the old one is asked of the new one.
    s.is_deaf = false;
    s.asked = 0;
    write_file(&s, "nameserver 127.0.0.1\n# and now not\n");
    w.client->names.looked_at = 0;
    world_wait(&w, &e);
    check_ok(&e);
    CHECK(e.took < STG_S);
    CHECK_U64(s.asked, 1);
    close_all(&s, &w);
}

TEST(client_names, are_closed_while_questions_are_under_way)
{
    WORLD(w, SCRIPT(HEAR));
    SERVED(s, w);
    stg_endpoint_options o = options_of(&w, "mute.test");
    stg_exchange *x;
    ending e;

    world_use(&w, &o);
    x = world_start(&w, &e, "");
    while (s.asked == 0)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    stg_exchange_cancel(x);
    world_wait(&w, &e);
    CHECK_INT(e.outcome.fault, STG_FAULT_CANCELLED);
    close_all(&s, &w);
}

/* -- several addresses ----------------------------------------------------- */

/* 127.0.0.9 refuses; 2001:db8::1 has no route, or does not answer. */
TEST(client_names, tries_every_address_until_one_connects)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    ending e;

    for (int i = 0; i < 4; i++) {
        e = exchange_with(&w, "dead.test");
        check_ok(&e);
        e = exchange_with(&w, "both.test");
        check_ok(&e);
        CHECK(e.took < 2 * STG_S);
    }
    close_all(&s, &w);
}

/* Fifteen refuse. A quarter of a second is waited only for one that says nothing. */
TEST(client_names, tries_the_next_address_at_once_where_one_refuses)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    ending e = exchange_with(&w, "many.test");

    check_ok(&e);
    CHECK(e.took < 2 * STG_S);
    close_all(&s, &w);
}

TEST(client_names, judges_every_address)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    SERVED(s, w);
    stg_cidr deny;
    stg_egress rule = {.deny = &deny, .deny_count = 1};
    ending e = exchange_with(&w, "meta.test");

    check_ok(&e); // the metadata address is left out
    CHECK(stg_cidr_parse(&deny, "127.0.0.0/8", NULL) == STG_OK);
    CHECK(stg_client_set_egress(w.client, &rule, NULL) == STG_OK);
    e = world_exchange(&w, "");
    CHECK_INT(e.outcome.fault, STG_FAULT_EGRESS);
    CHECK_U64(w.leaf.accepted, 1);
    close_all(&s, &w);
}

static void print_address(const stg_address *at, char text[24])
{
    if (at->any.sa_family == AF_INET6)
        CHECK(uv_ip6_name(&at->v6, text, 24) == 0);
    else
        CHECK(uv_ip4_name(&at->v4, text, 24) == 0);
}

TEST(client_names, take_turns_with_the_addresses_of_a_family)
{
    stg_address to[STG_ADDRESSES_MAX];
    stg_name *n = calloc(1, sizeof *n + 1);
    struct sockaddr_in at;
    struct sockaddr_in6 six;
    char seen[8][24];

    CHECK(n != NULL);
    n->is_in_turn = true;
    for (int i = 1; i <= 3; i++) {
        char text[24];

        (void)snprintf(text, sizeof text, "127.0.0.%d", i);
        CHECK(uv_ip4_addr(text, 0, &at) == 0);
        stg_name_add(n, (struct sockaddr *)&at);
    }
    CHECK(uv_ip6_addr("::7", 0, &six) == 0);
    stg_name_add(n, (struct sockaddr *)&six);
    for (int i = 0; i < 2; i++) {
        if (i == 1)
            n->family = AF_INET;
        CHECK_INT(stg_name_order(n, to), 4);
        for (int k = 0; k < 4; k++)
            print_address(&to[k], seen[i * 4 + k]);
    }
    CHECK_STR(seen[0], "::7");
    CHECK_STR(seen[1], "127.0.0.1");
    CHECK_STR(seen[2], "127.0.0.2");
    CHECK_STR(seen[3], "127.0.0.3");
    CHECK_STR(seen[4], "127.0.0.2");
    CHECK_STR(seen[5], "::7");
    CHECK_STR(seen[6], "127.0.0.3");
    CHECK_STR(seen[7], "127.0.0.1");
    free(n);
}
