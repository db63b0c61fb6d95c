/* The client over sockets: phases, pool and endings. What is an answer and what
 * is none: test_answer.c; TLS: test_client_tls.c. */
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stagger/stagger.h>

#include "tests/harness.h"
#include "tests/http/resolver.h"
#include "tests/http/world.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

enum { BIG = 32 << 20 };

/* A body that no socket takes at once. */
static char *big_body(void)
{
    char *body = malloc(BIG);

    CHECK(body != NULL);
    memset(body, 'x', BIG);
    return body;
}

static void check_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        harness_fail(__FILE__, __LINE__, "\"%s\" has no \"%s\"", text, part);
}

static void check_fault(const ending *e, stg_fault fault, bool is_unsent,
                        const char *detail_part)
{
    check_has(e->detail, detail_part);
    CHECK_INT(e->outcome.fault, fault);
    CHECK_INT(e->outcome.unsent, is_unsent);
}

static void check_status(const ending *e, int status, const char *answer)
{
    if (e->status != status)
        harness_fail(__FILE__, __LINE__, "%s", e->detail);
    CHECK_STR(e->answer, answer);
    CHECK_INT(e->outcome.fault == STG_FAULT_NONE, status < 300);
}

static unsigned dialed; /* connects, of everyone here */

__attribute__((visibility("default"))) int
connect(int fd, const struct sockaddr *to, socklen_t size)
{
    dialed++;
    return (int)syscall(SYS_connect, fd, to, size);
}

/* -- the request ----------------------------------------------------------- */

TEST(client, sends_the_endpoints_head_then_headers_length_and_body)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/in/box?q=1&r");
    char expected[256];
    ending e;

    o.method = "PUT";
    o.headers = "Authorization: Bearer x\r\nX-A:\t b\r\n";
    world_use(&w, &o);
    (void)world_start_sized(&w, &e, "Stagger-Id: 7\r\n", "a\0b", 3, STG_S * 9);
    world_wait(&w, &e);
    check_status(&e, 200, "ok");
    CHECK_STR(e.detail, "HTTP 200");
    (void)snprintf(expected, sizeof expected,
                   "PUT /in/box?q=1&r HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
                   "User-Agent: stagger/" STG_VERSION
                   "\r\n"
                   "Authorization: Bearer x\r\nX-A:\t b\r\n"
                   "Stagger-Id: 7\r\nContent-Length: 3\r\n\r\na",
                   w.leaf.port);
    CHECK_STR(w.leaf.heard, expected);
    CHECK_U64(w.leaf.heard_size, strlen(expected) + 2);
    CHECK(w.leaf.heard[w.leaf.heard_size - 1] == 'b');
    world_close(&w);
}

TEST(client, asks_for_the_root_where_the_url_has_no_path)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "?a=b");

    world_use(&w, &o);
    (void)world_exchange(&w, "");
    check_has(w.leaf.heard, "POST /?a=b HTTP/1.1\r\n");
    check_has(w.leaf.heard, "Content-Length: 0\r\n\r\n");
    o = world_options(&w, "");
    world_use(&w, &o);
    (void)world_exchange(&w, "");
    check_has(w.leaf.heard, "POST / HTTP/1.1\r\n");
    o = world_options(&w, "/");
    world_use(&w, &o);
    (void)world_exchange(&w, "");
    check_has(w.leaf.heard, "POST / HTTP/1.1\r\n");
    world_close(&w);
}

TEST(client, sends_a_body_that_no_socket_takes_at_once)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    char *body = big_body();
    ending e;

    (void)world_start_sized(&w, &e, "", body, BIG, STG_MIN);
    world_wait(&w, &e);
    check_status(&e, 200, "ok");
    CHECK_U64(w.leaf.requests, 1);
    e = world_exchange(&w, "and the connection is good");
    CHECK(e.is_reused);
    free(body);
    world_close(&w);
}

TEST(client, sends_to_a_path_of_its_own_with_headers_in_two_parts)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    static const stg_span path = {"/9?z", 4}, none = {"", 0},
                          one = {"A: 1\r\n", 6}, two = {"B: 2\r\n", 6};
    stg_endpoint_options o = world_options(&w, "/in?q");
    ending e = {.times = 0};

    o.is_open_path = true;
    world_use(&w, &o);
    CHECK(stg_endpoint_send_to(w.endpoint, path, one, two, none, STG_MIN,
                               world_told, &e) != NULL);
    world_wait(&w, &e);
    check_status(&e, 200, "ok");
    check_has(w.leaf.heard, "POST /9?z HTTP/1.1\r\nHost: 127.0.0.1:");
    check_has(w.leaf.heard, "A: 1\r\nB: 2\r\nContent-Length: 0\r\n\r\n");
    e.times = 0;
    CHECK(stg_endpoint_send_to(w.endpoint, none, none, none, none, STG_MIN,
                               world_told, &e) != NULL);
    world_wait(&w, &e);
    check_status(&e, 200, "ok");
    check_has(w.leaf.heard, "POST /in?q HTTP/1.1\r\n");
    world_close(&w);
}

/* -- the options ----------------------------------------------------------- */

/* Why it is none; "": it is one. Static. */
static const char *refusal(const stg_endpoint_options *o)
{
    static stg_error err;
    uv_loop_t loop;
    stg_client *client;
    stg_endpoint *endpoint = NULL;
    stg_status status;

    err.text[0] = '\0';
    CHECK(uv_loop_init(&loop) == 0);
    CHECK(stg_client_new(&client, &loop, NULL) == STG_OK);
    status = stg_endpoint_new(&endpoint, client, o, &err);
    CHECK_INT(status, err.text[0] == '\0' ? STG_OK : STG_INVALID);
    CHECK((endpoint != NULL) == (status == STG_OK));
    if (endpoint != NULL)
        stg_endpoint_free(endpoint);
    stg_client_close(client, NULL, NULL);
    CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
    CHECK(uv_loop_close(&loop) == 0);
    return err.text;
}

static void check_refused(stg_endpoint_options o, const char *part)
{
    CHECK(*refusal(&o) != '\0');
    check_has(refusal(&o), part);
}

TEST(client, refuses_headers_that_are_none_or_its_own)
{
    static const struct {
        const char *headers, *part;
    } cases[] = {
        {"X: 1", "expected lines"},
        {"X: 1\n", "expected lines"},
        {"X 1\r\n", "expected lines"},
        {": 1\r\n", "expected lines"},
        {"X Y: 1\r\n", "expected lines"},
        {"A: 1\r\n\r\nB: 1\r\n", "expected lines"},
        {"A: 1\r\n folded\r\n", "expected lines"},
        {"A: 1\rB: 2\r\n", "control byte"},
        {"A: 1\nB: 2\r\n", "control byte"},
        {"A: \x7f\r\n", "control byte"},
        {"host: x\r\n", "the client's own: host"},
        {"A: 1\r\ncontent-length: 3\r\n", "the client's own"},
        {"Transfer-Encoding: chunked\r\n", "the client's own"},
        {"Connection: close\r\n", "the client's own"},
        {"Expect: 100-continue\r\n", "the client's own"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stg_endpoint_options o = stg_endpoint_options_default("http://h/");

        o.headers = cases[i].headers;
        check_refused(o, cases[i].part);
    }
}

TEST(client, refuses_options_out_of_range_by_name)
{
    stg_endpoint_options o = stg_endpoint_options_default("ftp://h/");

    check_refused(o, "http:// or https://");
    o = stg_endpoint_options_default("http://h/");
    o.method = "CONNECT";
    check_refused(o, "method");
    o.method = "PO ST";
    check_refused(o, "method");
    o.method = "OF-32-LETTERS-WHICH-IS-THE-MOSTXX";
    check_refused(o, "method");
    o.method++;
    CHECK_STR(refusal(&o), "");
    o = stg_endpoint_options_default("http://h/");
    o.connect_timeout = 0;
    check_refused(o, "connect_timeout");
    o = stg_endpoint_options_default("http://h/");
    o.first_byte_timeout = STG_DAY + 1;
    check_refused(o, "first_byte_timeout");
    o = stg_endpoint_options_default("http://h/");
    o.excerpt_max = (size_t)1 << 30;
    check_refused(o, "excerpt_max");
    o = stg_endpoint_options_default("https://h/");
    o.certificate_file = "x";
    check_refused(o, "both");
    o.key_file = "/nowhere/key";
    o.certificate_file = "/nowhere/certificate";
    check_refused(o, "tls.certificate /nowhere/certificate");
    o = stg_endpoint_options_default("https://h/");
    o.ca_file = "/nowhere/ca";
    check_refused(o, "tls.ca /nowhere/ca");
}

TEST(client, shows_64_bytes_of_a_header_that_is_none)
{
    stg_endpoint_options o = stg_endpoint_options_default("http://h/");
    char line[80], shown[80];

    memset(line, 'A', 70);
    strcpy(line + 70, " 1\r\n");
    o.headers = line;
    check_refused(o, "expected lines");
    snprintf(shown, sizeof shown, ": %.64s", line);
    CHECK_STR(strrchr(refusal(&o), ':'), shown);
}

TEST(client, takes_times_of_a_millisecond_to_a_day_or_never)
{
    static const size_t times[] = {
        offsetof(stg_endpoint_options, resolve_timeout),
        offsetof(stg_endpoint_options, connect_timeout),
        offsetof(stg_endpoint_options, tls_timeout),
        offsetof(stg_endpoint_options, write_timeout),
        offsetof(stg_endpoint_options, first_byte_timeout),
        offsetof(stg_endpoint_options, idle_max),
        offsetof(stg_endpoint_options, age_max),
    };

    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        stg_endpoint_options o = stg_endpoint_options_default("http://h/");
        stg_ns *time = (stg_ns *)(void *)((char *)&o + times[i]);

        *time = STG_MS;
        CHECK_STR(refusal(&o), "");
        *time = STG_DAY;
        CHECK_STR(refusal(&o), "");
        *time = STG_NEVER;
        CHECK_STR(refusal(&o), "");
        *time = STG_MS - 1;
        check_refused(o, "1ms to 1d");
        *time = STG_DAY + 1;
        check_refused(o, "1ms to 1d");
    }
}

TEST(client, takes_sizes_and_texts_up_to_their_ends)
{
    stg_endpoint_options o = stg_endpoint_options_default("https://h/");

    o.answer_max = (size_t)1 << 30;
    o.excerpt_max = (size_t)1 << 26;
    o.source = "192.0.2.1";
    o.server_name = "s";
    o.headers = "A:\tb\r\nC: \x80 ~\r\n";
    CHECK_STR(refusal(&o), "");
    o.source = "::1";
    CHECK_STR(refusal(&o), "");
    o.source = "h";
    check_refused(o, "source: expected an IP address");
    o.source = NULL;
    o.server_name = "";
    check_refused(o, "server_name: it is empty");
    o.server_name = NULL;
    o.answer_max++;
    check_refused(o, "answer_max");
    o.answer_max--;
    o.excerpt_max++;
    check_refused(o, "excerpt_max");
}

/* -- the pool -------------------------------------------------------------- */

TEST(client, uses_a_connection_again)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK), HEAR, SAY(OK)));
    ending e = world_exchange(&w, "1");

    CHECK(!e.is_reused);
    CHECK_U64(world_look(&w).idle, 1);
    CHECK_U64(world_look(&w).busy, 0);
    for (int i = 0; i < 2; i++) {
        e = world_exchange(&w, "2");
        check_status(&e, 200, "ok");
        CHECK(e.is_reused);
    }
    CHECK_U64(w.leaf.accepted, 1);
    CHECK_U64(world_look(&w).connects, 1);
    world_close(&w);
}

/* Each script ends in an answer after which its connection is no good. */
TEST(client, does_not_use_a_connection_again_after)
{
    static const struct {
        const char *what;
        leaf_step say;
        int status;
    } cases[] = {
        {"Connection: close",
         {LEAF_SAY,
          "HTTP/1.1 200 OK\r\nConnection: close\r\n"
          "Content-Length: 0\r\n\r\n",
          0},
         200},
        {"HTTP/1.0",
         {LEAF_SAY, "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 0},
         200},
        {"a byte too many",
         {LEAF_SAY, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nx", 0},
         200},
        {"two answers",
         {LEAF_SAY,
          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
          0},
         200},
        {"a body of 204",
         {LEAF_SAY, "HTTP/1.1 204 No\r\nContent-Length: 1\r\n\r\nx", 0},
         204},
        {"more after chunks",
         {LEAF_SAY,
          "HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n"
          "0\r\n\r\n\r\n",
          0},
         500},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leaf_step say = cases[i].say;
        ending e;

        say.size = strlen(say.bytes);
        WORLD(w, SCRIPT(HEAR, say), SCRIPT(HEAR, SAY(OK)));
        e = world_exchange(&w, "");
        CHECK_INT(e.status, cases[i].status);
        CHECK_U64(world_look(&w).idle, 0);
        e = world_exchange(&w, "");
        CHECK_FROM(i, !e.is_reused);
        CHECK_U64(w.leaf.accepted, 2);
        world_close(&w);
    }
}

TEST(client, drops_an_idle_connection_that_says_something)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), SAY("HTTP/1.1 408 Slow\r\n")),
          SCRIPT(HEAR, SAY(OK)));
    ending e = world_exchange(&w, "");

    CHECK_U64(world_look(&w).idle, 1);
    while (world_look(&w).idle > 0)
        world_turn(&w, 1);
    e = world_exchange(&w, "");
    check_status(&e, 200, "ok");
    CHECK(!e.is_reused);
    world_close(&w);
}

TEST(client, drops_an_idle_connection_that_is_closed_or_reset)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), CLOSE), SCRIPT(HEAR, SAY(OK), RESET),
          SCRIPT(HEAR, SAY(OK)));

    for (int i = 0; i < 2; i++) {
        ending e = world_exchange(&w, "");

        check_status(&e, 200, "ok");
        CHECK(!e.is_reused);
        while (world_look(&w).idle > 0)
            world_turn(&w, 1);
    }
    world_close(&w);
}

/* What the loop has not seen yet is seen before a request is sent: it costs no
 * attempt, and an answer that nobody asked for is not taken for one. */
TEST(client, looks_whether_an_idle_connection_is_still_quiet)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), SAY("HTTP/1.1 500 Stray\r\n\r\n"), CLOSE),
          SCRIPT(HEAR, SAY(OK), CLOSE), SCRIPT(HEAR, SAY(OK), RESET),
          SCRIPT(HEAR, SAY(OK)));
    ending e = world_exchange(&w, "");

    for (int i = 0; i < 3; i++) {
        CHECK_U64(world_look(&w).idle, 1);
        leaf_turn(&w.leaf);
        e = world_exchange(&w, "");
        check_status(&e, 200, "ok");
        CHECK(!e.is_reused);
    }
    CHECK_U64(w.leaf.accepted, 4);
    world_close(&w);
}

TEST(client, closes_a_connection_that_idles_too_long)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");

    o.idle_max = 3 * STG_MS;
    world_use(&w, &o);
    (void)world_exchange(&w, "");
    while (world_look(&w).idle > 0)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    while (w.leaf.open > 0)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    world_close(&w);
}

TEST(client, makes_a_new_connection_for_one_that_is_too_old)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");
    ending e;

    o.age_max = 50 * STG_MS;
    world_use(&w, &o);
    (void)world_exchange(&w, "");
    uv_sleep(60);
    // The loop has not seen that its time is over.
    e = world_exchange(&w, "");
    check_status(&e, 200, "ok");
    CHECK(!e.is_reused);
    CHECK_U64(w.leaf.accepted, 2);
    world_close(&w);
}

TEST(client, keeps_no_more_idle_connections_than_it_is_told)
{
    enum { MANY = 5 };
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");
    ending e[MANY];

    o.idle_count_max = 2;
    world_use(&w, &o);
    for (int i = 0; i < MANY; i++)
        (void)world_start(&w, &e[i], "");
    CHECK_U64(world_look(&w).busy, MANY);
    for (int i = 0; i < MANY; i++)
        world_wait(&w, &e[i]);
    CHECK_U64(world_look(&w).idle, 2);
    CHECK_U64(world_look(&w).busy, 0);
    while (w.leaf.open > 2)
        world_turn(&w, 1);
    world_close(&w);
}

/* -- resolve and connect --------------------------------------------------- */

/* A port at which nobody listens. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    (void)close(fd);
    return ntohs(at.sin_port);
}

static ending exchange_with(world *w, const char *url,
                            stg_endpoint_options change)
{
    change.url = url;
    world_use(w, &change);
    return world_exchange(w, "body");
}

TEST(client, tells_of_a_refused_connection)
{
    WORLD(w, SCRIPT(HEAR));
    char url[64], detail[96];
    int port = free_port();
    ending e;

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", port);
    (void)snprintf(detail, sizeof detail,
                   "connect 127.0.0.1:%d: connection refused", port);
    e = exchange_with(&w, url, stg_endpoint_options_default(url));
    check_fault(&e, STG_FAULT_REFUSED, true, detail);
    CHECK_STR(e.detail, detail);
    CHECK_INT(e.status, 0);
    CHECK_U64(world_look(&w).busy, 0);
    world_close(&w);
}

TEST(client, tries_the_addresses_of_a_name_in_order)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    char url[64], detail[128];
    int port = free_port();
    ending e;

    // Nobody listens at the first.
    (void)snprintf(url, sizeof url, "http://two.test:%d/", w.leaf.port);
    e = exchange_with(&w, url, stg_endpoint_options_default(url));
    check_status(&e, 200, "ok");
    check_has(w.leaf.heard, "Host: two.test:");
    (void)snprintf(url, sizeof url, "http://two.test:%d/", port);
    (void)snprintf(detail, sizeof detail,
                   "connect 127.0.0.1:%d (address 2 of 2): connection refused",
                   port);
    e = exchange_with(&w, url, stg_endpoint_options_default(url));
    check_fault(&e, STG_FAULT_REFUSED, true, detail);
    world_close(&w);
}

TEST(client, resolves_a_name_once_for_all_who_wait)
{
    enum { MANY = 20 };
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    stg_endpoint_options o;
    unsigned before = atomic_load(&resolver_lookups);
    char url[64];
    ending e[MANY + 1];

    (void)snprintf(url, sizeof url, "http://localhost:%d/", w.leaf.port);
    o = stg_endpoint_options_default(url);
    world_use(&w, &o);
    for (int i = 0; i < MANY; i++)
        (void)world_start(&w, &e[i], "");
    for (int i = 0; i < MANY; i++) {
        world_wait(&w, &e[i]);
        check_status(&e[i], 200, "ok");
    }
    CHECK_U64(world_look(&w).connects, MANY);
    CHECK_U64(atomic_load(&resolver_lookups) - before, 1);
    // And again, when all of these are busy or gone.
    for (int i = 0; i < MANY + 1; i++)
        (void)world_start(&w, &e[i], "");
    for (int i = 0; i < MANY + 1; i++)
        world_wait(&w, &e[i]);
    CHECK(world_look(&w).connects > MANY);
    CHECK_U64(atomic_load(&resolver_lookups) - before, 2);
    check_status(&e[MANY], 200, "ok");
    world_close(&w);
}

TEST(client, tells_of_a_name_that_does_not_resolve)
{
    WORLD(w, SCRIPT(HEAR));
    ending e = exchange_with(&w, "http://none.test/",
                             stg_endpoint_options_default(""));

    check_fault(&e, STG_FAULT_DNS, true, "resolve none.test: ");
    CHECK_INT(e.outcome.code_kind, STG_CODE_RESOLVER);
    e = exchange_with(&w, "http://again.test/",
                      stg_endpoint_options_default(""));
    check_fault(&e, STG_FAULT_DNS_TEMPORARY, true, "resolve again.test: ");
    world_close(&w);
}

TEST(client, gives_up_a_name_that_is_not_resolved_in_time)
{
    WORLD(w, SCRIPT(HEAR));
    stg_endpoint_options o = stg_endpoint_options_default("");
    ending e;

    o.resolve_timeout = 5 * STG_MS;
    atomic_store(&resolver_is_slow, true);
    e = exchange_with(&w, "http://slow.test/", o);
    atomic_store(&resolver_is_slow, false);
    check_fault(&e, STG_FAULT_DNS_TEMPORARY, true,
                "resolve slow.test: the resolver did not answer within 5 ms");
    world_close(&w); // and its answer comes to nobody
}

/* Two threads look names up; what waits for one of them has its time yet. */
TEST(client, counts_no_time_before_a_name_is_asked_about)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    static const char *const hosts[] = {"slow1.test", "slow2.test",
                                        "good.test"};
    stg_endpoint *endpoints[3];
    ending e[3];

    atomic_store(&resolver_is_slow, true);
    for (int i = 0; i < 3; i++) {
        char url[64];
        stg_endpoint_options o;

        (void)snprintf(url, sizeof url, "http://%s:%d/", hosts[i], w.leaf.port);
        o = stg_endpoint_options_default(url);
        o.resolve_timeout = 30 * STG_MS;
        w.endpoint = NULL;
        world_use(&w, &o);
        endpoints[i] = w.endpoint;
        (void)world_start(&w, &e[i], "");
    }
    for (int i = 0; i < 2; i++) {
        world_wait(&w, &e[i]);
        CHECK_INT(e[i].outcome.fault, STG_FAULT_DNS_TEMPORARY);
    }
    atomic_store(&resolver_is_slow, false);
    world_wait(&w, &e[2]);
    check_status(&e[2], 200, "ok");
    stg_endpoint_free(endpoints[0]);
    stg_endpoint_free(endpoints[1]);
    world_close(&w);
}

TEST(client, reaches_an_address_of_ipv6)
{
    const leaf_step *script = SCRIPT(HEAR, SAY(OK));
    WORLD(w, script);
    leaf six;
    char url[64], host[64];
    ending e;

    if (leaf_open(&six, &w.loop, "::1", NULL, &script, 1)) {
        (void)snprintf(url, sizeof url, "http://[::1]:%d/", six.port);
        (void)snprintf(host, sizeof host, "\r\nHost: [::1]:%d\r\n", six.port);
        e = exchange_with(&w, url, stg_endpoint_options_default(url));
        check_status(&e, 200, "ok");
        check_has(six.heard, host);
    }
    leaf_close(&six);
    world_close(&w);
}

/* A listener whose queue is full: what connects to it hears nothing. */
typedef struct hole {
    int listener, guests[8];
    int port;
} hole;

static void open_hole(hole *h, const char *address, int port)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;

    CHECK(uv_ip4_addr(address, port, &at) == 0);
    h->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(h->listener, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(listen(h->listener, 0) == 0);
    CHECK(getsockname(h->listener, (struct sockaddr *)&at, &size) == 0);
    h->port = ntohs(at.sin_port);
    for (int i = 0; i < 8; i++) {
        h->guests[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(h->guests[i], (struct sockaddr *)&at, sizeof at);
    }
}

static void close_hole(hole *h)
{
    (void)close(h->listener);
    for (int i = 0; i < 8; i++)
        (void)close(h->guests[i]);
}

TEST(client, gives_up_a_connection_that_is_not_made_in_time)
{
    WORLD(w, SCRIPT(HEAR));
    stg_endpoint_options o;
    hole h;
    char url[64];
    ending e;

    open_hole(&h, "127.0.0.1", 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", h.port);
    o = stg_endpoint_options_default(url);
    o.connect_timeout = 20 * STG_MS;
    e = exchange_with(&w, url, o);
    check_fault(&e, STG_FAULT_CONNECT_TIMEOUT, true,
                ": no connection within 20 ms");
    CHECK(e.took >= 20 * STG_MS);
    close_hole(&h);
    world_close(&w);
}

TEST(client, goes_on_from_an_address_that_does_not_answer_to_the_next)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = stg_endpoint_options_default("");
    char url[64];
    hole h;
    ending e;

    open_hole(&h, "127.0.0.2", w.leaf.port);
    (void)snprintf(url, sizeof url, "http://two.test:%d/", w.leaf.port);
    o.connect_timeout = 500 * STG_MS;
    e = exchange_with(&w, url, o);
    check_status(&e, 200, "ok");
    CHECK(e.took >= 250 * STG_MS);
    CHECK_U64(world_look(&w).idle, 1);
    close_hole(&h);
    world_close(&w);
}

TEST(client, cancels_while_it_goes_on_to_the_next_address)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = stg_endpoint_options_default("");
    stg_exchange *x;
    char url[64];
    ending e;

    (void)snprintf(url, sizeof url, "http://two.test:%d/", free_port());
    o.url = url;
    world_use(&w, &o);
    // However many turns it has had: each is somewhere else.
    for (int turns = 0; turns < 12; turns++) {
        x = world_start(&w, &e, "");
        world_turn(&w, turns);
        if (e.times == 0)
            stg_exchange_cancel(x);
        world_wait(&w, &e);
        CHECK(e.outcome.fault == STG_FAULT_CANCELLED ||
              e.outcome.fault == STG_FAULT_REFUSED);
        CHECK(e.outcome.unsent);
    }
    world_close(&w);
}

/* Others would wait for all of them. */
TEST(client, dials_no_more_than_some_in_a_turn_of_the_loop)
{
    enum { MANY = 300, MOST = 64, CANCELLED = 290 };
    WORLD(w, SCRIPT(HEAR));
    stg_endpoint_options o;
    stg_exchange *x[MANY];
    ending e[MANY];
    unsigned before = dialed, seen;
    char url[64];

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", free_port());
    o = stg_endpoint_options_default(url);
    o.connect_timeout = STG_MIN;
    world_use(&w, &o);
    for (int i = 0; i < MANY; i++)
        x[i] = world_start(&w, &e[i], "");
    CHECK_U64(dialed - before, MOST);
    // One that waits for its turn may be cancelled as any other.
    stg_exchange_cancel(x[CANCELLED]);
    for (int turns = 0; dialed - before < MANY - 1 && turns < 100; turns++) {
        seen = dialed;
        world_turn(&w, 1);
        CHECK(dialed - seen <= MOST);
    }
    CHECK_U64(dialed - before, MANY - 1);
    for (int i = 0; i < MANY; i++) {
        world_wait(&w, &e[i]);
        CHECK_INT(e[i].outcome.fault,
                  i == CANCELLED ? STG_FAULT_CANCELLED : STG_FAULT_REFUSED);
        CHECK(e[i].outcome.unsent);
    }
    CHECK_U64(dialed - before, MANY - 1);
    world_close(&w);
}

TEST(client, counts_the_time_to_connect_from_when_it_dials)
{
    enum { MANY = 100, MOST = 64 };
    WORLD(w, SCRIPT(HEAR));
    stg_endpoint_options o;
    ending e[MANY], last;
    char url[64];

    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", free_port());
    o = stg_endpoint_options_default(url);
    o.connect_timeout = 500 * STG_MS;
    world_use(&w, &o);
    for (int i = 0; i < MANY; i++)
        (void)world_start(&w, &e[i], "");
    (void)world_start_sized(&w, &last, "", "", 0, STG_MS);
    uv_sleep(520);
    // One that had no turn for as long as it may take was not tried.
    world_wait(&w, &last);
    check_fault(&last, STG_FAULT_CANCELLED, true, "not tried: ");
    CHECK(last.is_put_back);
    for (int i = 0; i < MANY; i++)
        world_wait(&w, &e[i]);
    for (int i = MOST; i < MANY; i++)
        CHECK_INT(e[i].outcome.fault, STG_FAULT_REFUSED);
    world_close(&w);
}

/* As long as the target has connections that become free, nobody waits for a file. */
TEST(client, takes_a_connection_that_is_free_before_it_may_dial)
{
    enum { MANY = 8, MOST = 3, FILES = 4 };
    WORLD(w,
          SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK), HEAR, SAY(OK), HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");
    stg_files *files = stg_client_files(w.client);
    stg_exchange *x[MANY];
    ending e[MANY], last;

    world_use(&w, &o);
    files->limit = FILES; // of which one is for producers
    for (int i = 0; i < MANY; i++)
        x[i] = world_start(&w, &e[i], "");
    stg_exchange_cancel(x[MOST]);
    for (int i = 0; i < MANY; i++)
        world_wait(&w, &e[i]);
    CHECK_INT(e[MOST].outcome.fault, STG_FAULT_CANCELLED);
    for (int i = 0; i < MANY; i++) {
        if (i == MOST)
            continue;
        check_status(&e[i], 200, "ok");
        CHECK(e[i].is_reused == (i > MOST));
        CHECK((e[i].dialed_at == 0) == e[i].is_reused);
    }
    CHECK_U64(w.leaf.accepted, MOST);
    CHECK_U64(w.leaf.requests, MANY - 1);
    CHECK_U64(world_look(&w).connects, MOST);
    CHECK_U64(world_look(&w).idle, MOST);
    CHECK_U64(files->targets, MOST);
    last = world_exchange(&w, ""); // what was handed over is as good as any
    check_status(&last, 200, "ok");
    CHECK(last.is_reused);
    CHECK_U64(w.leaf.accepted, MOST);
    world_close(&w);
}

/* Where files are scarce. */
TEST(client, keeps_no_connection_from_a_target_whose_turn_it_is)
{
    enum { BEFORE = 8, BEHIND = 8, MOST = 3, FILES = 4 };
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK), HEAR, SAY(OK), HEAR, SAY(OK),
                    HEAR, SAY(OK), HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");
    ending before[BEFORE], other, behind[BEHIND];
    stg_span none = {"", 0};
    stg_endpoint *e;

    world_use(&w, &o);
    stg_client_files(w.client)->limit = FILES;
    CHECK_INT(stg_endpoint_new(&e, w.client, &o, NULL), STG_OK);
    for (int i = 0; i < BEFORE; i++)
        (void)world_start(&w, &before[i], "");
    memset(&other, 0, sizeof other);
    CHECK(stg_endpoint_send(e, none, none, 20 * STG_S, world_told, &other));
    for (int i = 0; i < BEHIND; i++)
        (void)world_start(&w, &behind[i], "");
    world_wait(&w, &other);
    check_status(&other, 200, "ok");
    CHECK_U64(behind[BEHIND - 1].times, 0);
    CHECK(!other.is_reused);
    for (int i = 0; i < BEHIND; i++) {
        world_wait(&w, &behind[i]);
        check_status(&behind[i], 200, "ok");
    }
    for (int i = 0; i < BEFORE; i++)
        check_status(&before[i], 200, "ok");
    CHECK_U64(w.leaf.accepted, MOST + 2); // for the other one, and back
    stg_endpoint_free(e);
    world_close(&w);
}

/* More exchanges than files: each of them has a connection of its own. */
static void check_each_dials(world *w, const stg_endpoint_options *o)
{
    enum { MANY = 6, FILES = 4 };
    ending e[MANY];

    world_use(w, o);
    stg_client_files(w->client)->limit = FILES;
    for (int i = 0; i < MANY; i++)
        (void)world_start(w, &e[i], "");
    for (int i = 0; i < MANY; i++) {
        world_wait(w, &e[i]);
        check_status(&e[i], 200, "ok");
        CHECK(!e[i].is_reused);
        CHECK(e[i].dialed_at > 0);
    }
    CHECK_U64(w->leaf.accepted, MANY);
}

TEST(client, hands_over_no_connection_where_none_may_be_kept)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");

    o.idle_count_max = 0;
    check_each_dials(&w, &o);
    world_close(&w);
}

TEST(client, hands_over_no_connection_that_is_closed_behind_its_answer)
{
    WORLD(w, SCRIPT(HEAR, LAST(OK)));
    stg_endpoint_options o = world_options(&w, "/");

    check_each_dials(&w, &o);
    world_close(&w);
}

/* I25: it is no attempt, and costs the target nothing. */
TEST(client, waits_for_a_file_where_the_process_has_too_many_open)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o;
    struct rlimit is, none;
    ending e, given_up;

    (void)world_exchange(&w, ""); // what the system opens lazily is open
    o = world_options(&w, "/");
    world_use(&w, &o); // and what is idle is gone
    CHECK(getrlimit(RLIMIT_NOFILE, &is) == 0);
    none = is;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(!stg_client_has_waited(w.client));
    (void)world_start(&w, &e, "");
    (void)world_start_sized(&w, &given_up, "", "", 0, 50 * STG_MS);
    world_wait(&w, &given_up);
    check_fault(&given_up, STG_FAULT_CANCELLED, true, "not tried: ");
    CHECK(given_up.is_put_back);
    CHECK(given_up.took >= 50 * STG_MS);
    CHECK(stg_client_has_waited(w.client));
    CHECK(!stg_client_has_waited(w.client));
    CHECK_U64(e.times, 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &is) == 0);
    world_wait(&w, &e);
    check_status(&e, 200, "ok");
    CHECK(e.took < 50 * STG_MS); // what it waited is not the target's
    world_close(&w);
}

/* -- time ------------------------------------------------------------------ */

TEST(client, waits_for_the_first_byte_as_long_as_it_is_told)
{
    WORLD(w, SCRIPT(HEAR));
    stg_endpoint_options o = world_options(&w, "/");
    ending e;

    o.first_byte_timeout = 15 * STG_MS;
    world_use(&w, &o);
    e = world_exchange(&w, "");
    check_fault(&e, STG_FAULT_TIMEOUT, false, ": nothing came within 15 ms");
    CHECK(e.took >= 15 * STG_MS);
    CHECK_U64(world_look(&w).idle, 0);
    world_close(&w);
}

TEST(client, waits_for_the_whole_as_long_as_it_is_told)
{
    WORLD(w, SCRIPT(HEAR, SAY("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")));
    stg_endpoint_options o = world_options(&w, "/");
    ending e;

    o.first_byte_timeout = 5 * STG_S;
    world_use(&w, &o);
    (void)world_start_sized(&w, &e, "", "", 0, 200 * STG_MS);
    world_wait(&w, &e);
    check_fault(&e, STG_FAULT_TIMEOUT, false, "it was not whole within 200 ms");
    CHECK_INT(e.status, 200);
    CHECK(e.took >= 200 * STG_MS);
    world_close(&w);
}

TEST(client, gives_up_a_request_that_is_not_taken_in_time)
{
    WORLD(w, SCRIPT(DEAF));
    stg_endpoint_options o = world_options(&w, "/");
    char *body = big_body();
    ending e;

    o.write_timeout = 40 * STG_MS;
    world_use(&w, &o);
    (void)world_start_sized(&w, &e, "", body, BIG, STG_MIN);
    world_wait(&w, &e);
    check_fault(&e, STG_FAULT_TIMEOUT, false,
                ": the request was not taken within 40 ms");
    free(body);
    world_close(&w);
}

TEST(client, keeps_the_time_of_each_exchange_on_a_reused_connection)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR));
    ending e;

    (void)world_start_sized(&w, &e, "", "", 0, STG_HOUR);
    world_wait(&w, &e);
    (void)world_start_sized(&w, &e, "", "", 0, 10 * STG_MS);
    world_wait(&w, &e);
    CHECK(e.is_reused);
    CHECK_U64(e.dialed_at, 0);
    check_fault(&e, STG_FAULT_TIMEOUT, false, "nothing came within 10 ms");
    world_close(&w);
}

/* -- endings --------------------------------------------------------------- */

TEST(client, tells_of_a_connection_closed_before_an_answer)
{
    WORLD(w, SCRIPT(HEAR, CLOSE), SCRIPT(HEAR, RESET));
    ending e = world_exchange(&w, "");

    check_fault(&e, STG_FAULT_RESET, false,
                "the connection was closed, before an answer");
    CHECK(strstr(e.detail, "reused") == NULL);
    CHECK(!e.is_reused);
    e = world_exchange(&w, "");
    check_fault(&e, STG_FAULT_RESET, false,
                "connection reset by peer, before an answer");
    CHECK_INT(e.status, 0);
    world_close(&w);
}

/* One attempt, one request: that the server may have closed an idle connection
 * just before is no reason to send again. */
TEST(client, tells_of_a_stale_connection_and_sends_nothing_twice)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, RESET), SCRIPT(HEAR, SAY(OK)));
    ending e = world_exchange(&w, "1");

    e = world_exchange(&w, "2");
    check_fault(&e, STG_FAULT_RESET, false, "before an answer");
    check_has(e.detail, "on a reused connection");
    CHECK(e.is_reused);
    CHECK_U64(w.leaf.accepted, 1);
    CHECK_U64(w.leaf.requests, 2);
    world_close(&w);
}

TEST(client, tells_of_an_answer_that_is_reset_or_cut_short)
{
    WORLD(w,
          SCRIPT(HEAR, SAY("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
                 RESET),
          SCRIPT(HEAR, SAY("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
                 CLOSE),
          SCRIPT(HEAR, SAY("HTTP/1.1 20"), CLOSE));
    ending e = world_exchange(&w, "");

    check_fault(&e, STG_FAULT_RESET, false, "after 41 bytes of it");
    CHECK_INT(e.status, 200);
    e = world_exchange(&w, "");
    check_fault(&e, STG_FAULT_PROTOCOL, false, "cut short, after 41 bytes");
    CHECK_INT(e.status, 200);
    CHECK_STR(e.answer, "abc");
    e = world_exchange(&w, "");
    check_fault(&e, STG_FAULT_PROTOCOL, false, "cut short");
    CHECK_INT(e.status, 0);
    world_close(&w);
}

/* The bytes and what comes behind them in one turn of the loop: libuv then
 * calls a reset an end, too. */
TEST(client, tells_a_reset_right_behind_some_bytes_from_an_end)
{
    static const struct {
        const char *bytes;
        bool is_reset;
        stg_fault fault;
        const char *part;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", true,
         STG_FAULT_RESET, "connection reset by peer, after 41 bytes of it"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", false,
         STG_FAULT_PROTOCOL, "cut short, after 41 bytes"},
        {"HTTP/1.1 200 OK\r\n\r\nto the end", true, STG_FAULT_RESET,
         "connection reset by peer, after 29 bytes of it"},
        {"HTTP/1.1 200 OK\r\n\r\nto the end", false, STG_FAULT_NONE,
         "HTTP 200"},
        {"HTTP/1.1 2", true, STG_FAULT_RESET, "after 10 bytes of it"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leaf_step say = {LEAF_SAY, cases[i].bytes, strlen(cases[i].bytes)};
        leaf_step end = cases[i].is_reset ? RESET : CLOSE;
        WORLD(w, SCRIPT(HEAR, say, end));
        ending e;

        (void)world_start(&w, &e, "");
        while (w.leaf.requests == 0)
            world_turn(&w, 1);
        leaf_turn(&w.leaf);
        leaf_turn(&w.leaf);
        world_wait(&w, &e);
        check_has(e.detail, cases[i].part);
        CHECK_INT(e.outcome.fault, cases[i].fault);
        world_close(&w);
    }
}

TEST(client, tells_of_what_is_no_http)
{
    WORLD(w, SCRIPT(HEAR, SAY("SSH-2.0-OpenSSH_9.2\r\n")),
          SCRIPT(HEAR, SAY("HTTP/1.1 200 OK\nContent-Length: 0\n\n")));
    ending e = world_exchange(&w, "");

    check_fault(&e, STG_FAULT_PROTOCOL, false, "answer of 127.0.0.1:");
    CHECK_U64(world_look(&w).idle, 0);
    e = world_exchange(&w, "");
    check_fault(&e, STG_FAULT_PROTOCOL, false, "line");
    world_close(&w);
}

TEST(client, takes_an_answer_that_comes_before_the_request_is_sent)
{
    WORLD(w,
          SCRIPT(DEAF, SAY("HTTP/1.1 413 Large\r\nContent-Length: 2\r\n\r\nno"),
                 HEAR),
          SCRIPT(HEAR, SAY(OK)));
    char *body = big_body();
    ending e;

    (void)world_start_sized(&w, &e, "", body, BIG, STG_MIN);
    world_wait(&w, &e);
    memset(body, 'y', BIG); // no longer lent to the client
    free(body);
    check_status(&e, 413, "no");
    CHECK_U64(world_look(&w).idle, 0);
    e = world_exchange(&w, "");
    CHECK(!e.is_reused);
    world_close(&w);
}

TEST(client, takes_an_early_answer_of_one_who_then_hangs_up)
{
    WORLD(w, SCRIPT(SAY("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n"
                        "Retry-After: 7\r\n\r\n"),
                    RESET));
    char *body = big_body();
    ending e;

    (void)world_start_sized(&w, &e, "", body, BIG, STG_MIN);
    world_wait(&w, &e);
    free(body);
    check_status(&e, 503, "");
    CHECK_U64(e.outcome.delay, 7 * STG_S);
    world_close(&w);
}

TEST(client, cuts_an_answer_and_lets_its_status_stand)
{
    WORLD(
        w,
        SCRIPT(HEAR,
               SAY("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n01234567890")),
        SCRIPT(HEAR,
               SAY("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"),
               HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");
    ending e;

    o.answer_max = 10;
    o.excerpt_max = 4;
    world_use(&w, &o);
    e = world_exchange(&w, "");
    check_status(&e, 200, "0123");
    CHECK_STR(e.detail, "HTTP 200, cut after 10 bytes of its body");
    CHECK_U64(world_look(&w).idle, 0);
    e = world_exchange(&w, "");
    check_status(&e, 200, "0123");
    CHECK_STR(e.detail, "HTTP 200");
    CHECK_U64(world_look(&w).idle, 1);
    world_close(&w);
}

/* RFC 5842, section 7.2: whatever the policy says of 5xx. */
TEST(client, knows_a_loop_and_what_is_no_status)
{
    WORLD(w, SCRIPT(HEAR, SAY("HTTP/1.1 508 Loop\r\nContent-Length: 0\r\n\r\n"),
                    HEAR, SAY("HTTP/1.1 507 No\r\nContent-Length: 0\r\n\r\n"),
                    HEAR, SAY("HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n")));
    ending e = world_exchange(&w, "");

    CHECK_INT(e.outcome.fault, STG_FAULT_LOOP);
    CHECK(e.outcome.permanent);
    e = world_exchange(&w, "");
    CHECK_INT(e.outcome.fault, STG_FAULT_5XX);
    CHECK(!e.outcome.permanent);
    e = world_exchange(&w, "");
    CHECK_INT(e.outcome.fault, STG_FAULT_PROTOCOL);
    world_close(&w);
}

TEST(client, reads_an_answer_to_the_end_of_the_connection)
{
    WORLD(w, SCRIPT(HEAR, SAY("HTTP/1.1 502 Bad\r\n\r\n"), SAY("some"),
                    SAY("thing"), CLOSE));
    ending e = world_exchange(&w, "");

    check_status(&e, 502, "something");
    CHECK_U64(world_look(&w).idle, 0);
    world_close(&w);
}

TEST(client, knows_that_head_has_no_body)
{
    WORLD(w, SCRIPT(HEAR, SAY("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
                    HEAR, SAY("HTTP/1.1 204 No\r\n\r\n")));
    stg_endpoint_options o = world_options(&w, "/");
    ending e;

    o.method = "HEAD";
    world_use(&w, &o);
    e = world_exchange(&w, "");
    check_status(&e, 200, "");
    e = world_exchange(&w, "");
    check_status(&e, 204, "");
    CHECK(e.is_reused);
    world_close(&w);
}

/* -- cancel, and what may be done where ------------------------------------ */

static void check_cancelled(world *w, stg_exchange *x, const ending *e,
                            bool is_unsent)
{
    stg_exchange_cancel(x);
    CHECK_U64(e->times, 0);
    world_wait(w, e);
    check_fault(e, STG_FAULT_CANCELLED, is_unsent, "cancelled");
    world_turn(w, 5);
    CHECK_U64(e->times, 1);
    CHECK_U64(world_look(w).busy, 0);
    CHECK_U64(world_look(w).idle, 0);
}

TEST(client, cancels_in_every_phase)
{
    WORLD(w, SCRIPT(HEAR, SAY("HTTP/1.1 200 OK\r\n")));
    stg_endpoint_options o;
    stg_exchange *x;
    char url[64];
    ending e;

    x = world_start_sized(&w, &e, "A: 1\r\n", "", 0, 20 * STG_S);
    check_cancelled(&w, x, &e, true); // while it connects
    x = world_start(&w, &e, "");
    while (w.leaf.requests == 0)
        world_turn(&w, 1);
    check_cancelled(&w, x, &e, false); // while it waits, or reads
    (void)snprintf(url, sizeof url, "http://localhost:%d/", w.leaf.port);
    o = stg_endpoint_options_default(url);
    world_use(&w, &o);
    x = world_start(&w, &e, "");
    check_cancelled(&w, x, &e, true); // while it resolves
    world_close(&w);
}

TEST(client, cancels_one_whose_answer_is_there_but_not_read)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_exchange *x;
    ending e;

    x = world_start(&w, &e, "");
    while (w.leaf.requests == 0)
        world_turn(&w, 1);
    check_cancelled(&w, x, &e, false);
    world_close(&w);
}

/* In `done` everything is over: it may send again, and free. */
typedef struct chain {
    world *w;
    int left;
    stg_exchange *other;
} chain;

static void go_on(void *ctx, const stg_reply *reply)
{
    chain *c = ctx;
    stg_span none = {"", 0};

    CHECK_INT(reply->status, 200);
    CHECK_U64(world_look(c->w).busy, 0);
    if (c->left-- > 0) {
        CHECK(stg_endpoint_send(c->w->endpoint, none, none, STG_S * 9, go_on,
                                c) != NULL);
        return;
    }
    stg_endpoint_free(c->w->endpoint);
    c->w->endpoint = NULL;
}

TEST(client, lets_done_send_again_and_free_the_endpoint)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK), HEAR, SAY(OK), HEAR,
                    SAY("HTTP/1.1 200 OK\r\n\r\n"), CLOSE));
    stg_endpoint_options o = world_options(&w, "/");
    chain c = {&w, 3, NULL};
    stg_span none = {"", 0};

    world_use(&w, &o);
    CHECK(stg_endpoint_send(w.endpoint, none, none, STG_S * 9, go_on, &c));
    while (w.endpoint != NULL)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    CHECK_U64(w.leaf.accepted, 1);
    CHECK_U64(w.leaf.requests, 4);
    world_close(&w);
}

static void cancel_other(void *ctx, const stg_reply *reply)
{
    chain *c = ctx;

    (void)reply;
    stg_exchange_cancel(c->other);
}

TEST(client, lets_done_cancel_another_one_that_waits_for_the_same)
{
    WORLD(w, SCRIPT(HEAR));
    // Neither resolves; the first that is told cancels the second.
    stg_endpoint_options o = stg_endpoint_options_default("http://none.test/");
    chain c = {&w, 0, NULL};
    stg_span none = {"", 0};
    ending e;

    world_use(&w, &o);
    CHECK(
        stg_endpoint_send(w.endpoint, none, none, STG_S * 9, cancel_other, &c));
    c.other = world_start(&w, &e, "");
    world_wait(&w, &e);
    check_fault(&e, STG_FAULT_CANCELLED, true, "cancelled");
    world_close(&w);
}

TEST(client, is_closed_while_a_name_is_resolved)
{
    WORLD(w, SCRIPT(HEAR));
    stg_endpoint_options o = stg_endpoint_options_default("http://localhost/");
    stg_exchange *x;
    ending e;

    world_use(&w, &o);
    x = world_start(&w, &e, "");
    check_cancelled(&w, x, &e, true);
    world_close(&w);
}

/* Every answer, cut at every byte into two reads: the same reply. */
TEST(client, reads_an_answer_alike_in_whatever_pieces)
{
    static const struct {
        const char *bytes;
        int status;
        const char *answer;
    } cases[] = {
        {OK, 200, "ok"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\n"
         "Transfer-Encoding: chunked\r\nRetry-After: 3\r\n\r\n"
         "3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nX-T: 1\r\n\r\n",
         503, "abcd"},
        {"HTTP/1.1 204 None\r\nX: y\r\n\r\n", 204, ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = strlen(cases[i].bytes);

        for (size_t at = 1; at < size; at++) {
            leaf_step first = {LEAF_SAY, cases[i].bytes, at};
            leaf_step second = {LEAF_SAY, cases[i].bytes + at, size - at};
            ending e;

            WORLD(w, SCRIPT(HEAR, first, second));
            e = world_exchange(&w, "");
            CHECK_INT(e.status, cases[i].status);
            CHECK_STR(e.answer, cases[i].answer);
            CHECK_U64(e.outcome.delay, i == 1 ? 3 * STG_S : 0);
            CHECK_U64(world_look(&w).idle, 1);
            world_close(&w);
        }
    }
}
