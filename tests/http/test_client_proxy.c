/* Through a proxy: the leaf is the proxy, and the target behind it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/http/world.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define THROUGH "HTTP/1.1 200 Connection established\r\n\r\n"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void use(world *w, const char *url, const char *proxy)
{
    stg_endpoint_options o = stg_endpoint_options_default(url);
    char at[96];

    (void)snprintf(at, sizeof at, proxy, w->leaf.port);
    o.proxy = at;
    o.connect_timeout = 200 * STG_MS;
    world_use(w, &o);
}

static ending exchange(world *w, const char *url)
{
    use(w, url, "http://u:p@127.0.0.1:%d");
    return world_exchange(w, "body");
}

static void check_is(const ending *e, stg_fault fault, const char *words)
{
    CHECK_INT(e->outcome.fault, fault);
    CHECK(e->outcome.unsent);
    CHECK_INT(e->outcome.permanent, fault == STG_FAULT_EGRESS);
    CHECK_INT(e->status, 0); // it is not the target's
    if (strstr(e->detail, words) == NULL)
        CHECK_STR(e->detail, words);
}

TEST(client_proxy, asks_for_the_target_by_its_name_and_then_sends)
{
    WORLD(w, SCRIPT(HEAR, SAY(THROUGH), HEAR, SAY(OK), HEAR, SAY(OK)));
    ending e = exchange(&w, "http://hooks.test/in?a=b");

    CHECK_STR(e.detail, "HTTP 200");
    CHECK_INT(e.status, 200);
    CHECK(!e.is_reused);
    CHECK(
        begins(w.leaf.heard, "POST /in?a=b HTTP/1.1\r\nHost: hooks.test\r\n"));
    CHECK(strstr(w.leaf.heard, "Proxy") == NULL);
    // The connection is the target's: no second CONNECT.
    e = world_exchange(&w, "body");
    CHECK_STR(e.detail, "HTTP 200");
    CHECK(e.is_reused);
    CHECK_U64(w.leaf.accepted, 1);
    CHECK_U64(world_look(&w).connects, 1);
    world_close(&w);
}

TEST(client_proxy, gives_it_the_name_and_the_password)
{
    WORLD(w, SCRIPT(HEAR, SAY("HTTP/1.1 502 \r\n\r\n")));

    (void)exchange(&w, "http://hooks.test/");
    CHECK(begins(w.leaf.heard,
                 "CONNECT hooks.test:80 HTTP/1.1\r\nHost: hooks.test:80\r\n"
                 "Proxy-Authorization: Basic dTpw\r\nUser-Agent: stagger/"));
    CHECK(strstr(w.leaf.heard, "body") == NULL);
    world_close(&w);
}

TEST(client_proxy, reads_its_answer_in_pieces_and_behind_interim_ones)
{
    WORLD(w,
          SCRIPT(HEAR, SAY("HTTP/1.1 2"), SAY("00 OK\r\nVia: x\r"),
                 SAY("\n\r\n"), HEAR, SAY("HTTP/1.1 20"), SAY("0 OK\r\n"),
                 LAST("\r\nok")),
          SCRIPT(HEAR, SAY("HTTP/1.1 100 \r\n\r\nHTTP/1.0 299 x\r\n"),
                 SAY("Content-Length: 5\r\n\r\n"), HEAR, LAST(OK)));

    CHECK_STR(exchange(&w, "http://hooks.test/").detail, "HTTP 200");
    CHECK_STR(exchange(&w, "http://hooks.test/").detail, "HTTP 200");
    world_close(&w);
}

TEST(client_proxy, tells_faults_of_the_target_by_its_status)
{
    static const struct {
        const char *says;
        stg_fault fault;
        const char *words;
    } cases[] = {
        {"HTTP/1.1 407 \r\nContent-Length: 9\r\n\r\n", STG_FAULT_PROXY,
         " asks for authorisation (407)"},
        {"HTTP/1.1 403 \r\n\r\nno", STG_FAULT_EGRESS,
         " forbids the connection to hooks.test:80 (403)"},
        {"HTTP/1.1 502 \r\n\r\n", STG_FAULT_UNREACHABLE,
         " cannot connect to hooks.test:80 (502)"},
        {"HTTP/1.1 504 \r\n\r\n", STG_FAULT_UNREACHABLE,
         " could not connect in time to hooks.test:80 (504)"},
        {"HTTP/1.1 404 \r\n\r\n", STG_FAULT_PROTOCOL,
         " does not connect to hooks.test:80 (404)"},
        {"HTTP/1.1 101 \r\n\r\n", STG_FAULT_PROXY, "no other protocol"},
        {"SSH-2.0-OpenSSH\r\n", STG_FAULT_PROXY, "no line of HTTP"},
        {"HTTP/1.1 200 OK\r\n\r\nhello", STG_FAULT_PROXY, "bytes behind it"},
        {"HTTP/1.1 200 OK\nA: b\n\n", STG_FAULT_PROXY, "no line of HTTP"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const leaf_step says = {LEAF_SAY, cases[i].says, strlen(cases[i].says)};
        WORLD(w, SCRIPT(HEAR, says));
        ending e = exchange(&w, "http://hooks.test/");

        check_is(&e, cases[i].fault, cases[i].words);
        CHECK(e.dialed_at > 0); // the proxy was
        CHECK(begins(e.detail, "proxy 127.0.0.1:"));
        world_close(&w);
    }
}

TEST(client_proxy, is_at_fault_where_it_breaks_off)
{
    static char head[80 * 1024] = "HTTP/1.1 200 OK\r\nA: ";
    const leaf_step huge = {LEAF_SAY, head, sizeof head};
    WORLD(w, SCRIPT(HEAR, CLOSE), SCRIPT(HEAR, RESET), SCRIPT(RESET),
          SCRIPT(HEAR, LAST("HTTP/1.1 200 O")), SCRIPT(HEAR, huge));
    ending e;

    memset(head + 20, 'a', sizeof head - 20);
    e = exchange(&w, "http://hooks.test/");
    check_is(&e, STG_FAULT_PROXY,
             "the connection was closed, before an answer");
    CHECK(begins(e.detail, "CONNECT hooks.test:80 by proxy 127.0.0.1:"));
    e = exchange(&w, "http://hooks.test/");
    check_is(&e, STG_FAULT_PROXY, "connection reset by peer, before an answer");
    e = exchange(&w, "http://hooks.test/");
    check_is(&e, STG_FAULT_PROXY, "connection reset by peer");
    e = exchange(&w, "http://hooks.test/");
    check_is(&e, STG_FAULT_PROXY, "closed, after 14 bytes of it");
    e = exchange(&w, "http://hooks.test/");
    check_is(&e, STG_FAULT_PROXY, "the head is longer than 64 KiB");
    world_close(&w);
}

/* Nobody knows whether it waits for the target. */
TEST(client_proxy, has_as_much_time_for_its_answer_as_to_connect)
{
    WORLD(w, SCRIPT(HEAR, SAY("HTTP/1.1 200 ")));
    ending e = exchange(&w, "http://hooks.test/");

    check_is(&e, STG_FAULT_CONNECT_TIMEOUT, ": no answer within 200 ms");
    CHECK(e.took >= 199 * STG_MS);
    world_close(&w);
}

TEST(client_proxy, is_at_fault_where_it_cannot_be_reached)
{
    WORLD(w, SCRIPT(HEAR));
    ending e;

    use(&w, "http://hooks.test/", "http://u:p@127.0.0.1:1");
    e = world_exchange(&w, "body");
    check_is(&e, STG_FAULT_PROXY, "");
    CHECK_STR(e.detail, "connect proxy 127.0.0.1:1: connection refused");
    use(&w, "http://hooks.test/", "http://u:p@away.test:1");
    e = world_exchange(&w, "body");
    check_is(&e, STG_FAULT_PROXY, "resolve proxy away.test: ");
    CHECK_U64(w.leaf.accepted, 0);
    world_close(&w);
}

static void deny(world *w, const char *network)
{
    stg_cidr denied;
    stg_egress e = {NULL, &denied, 0, 1, false};

    CHECK(stg_cidr_parse(&denied, network, NULL) == STG_OK);
    CHECK(stg_client_set_egress(w->client, &e, NULL) == STG_OK);
}

TEST(client_proxy, is_not_asked_for_an_address_that_egress_denies)
{
    WORLD(w, SCRIPT(HEAR, SAY(THROUGH), HEAR, SAY(OK)));
    ending e = exchange(&w, "http://10.1.2.3:8/");
    unsigned accepted;

    CHECK_STR(e.detail, "HTTP 200");
    accepted = w.leaf.accepted;
    deny(&w, "10.0.0.0/8");
    e = world_exchange(&w, "body"); // with a tunnel in the pool
    check_is(&e, STG_FAULT_EGRESS,
             "connect 10.1.2.3:8: 10.1.2.3 may not be connected to: denied by "
             "10.0.0.0/8 (see egress in the settings)");
    e = exchange(&w, "http://169.254.169.254/");
    check_is(&e, STG_FAULT_EGRESS, "a metadata address");
    CHECK_U64(w.leaf.accepted, accepted);
    // A name is the proxy's to check.
    CHECK_STR(exchange(&w, "http://metadata.test/").detail, "HTTP 200");
    world_close(&w);
}

TEST(client_proxy, has_an_address_that_egress_allows)
{
    WORLD(w, SCRIPT(HEAR));
    ending e;

    deny(&w, "127.0.0.1");
    e = exchange(&w, "http://hooks.test/");
    check_is(&e, STG_FAULT_PROXY, "127.0.0.1 may not be connected to: denied");
    CHECK(begins(e.detail, "connect proxy 127.0.0.1:"));
    CHECK_U64(w.leaf.accepted, 0);
    world_close(&w);
}

TEST(client_proxy, makes_another_endpoint)
{
    static const char *const proxies[] = {NULL, "http://127.0.0.1:1",
                                          "http://127.0.0.1:2",
                                          "http://u:p@127.0.0.1:1"};
    WORLD(w, SCRIPT(HEAR));

    for (size_t i = 0; i < sizeof proxies / sizeof *proxies; i++) {
        stg_endpoint_options o = stg_endpoint_options_default("http://h/");

        o.proxy = proxies[i];
        world_use(&w, &o);
        for (size_t k = 0; k < sizeof proxies / sizeof *proxies; k++) {
            o.proxy = proxies[k];
            CHECK_FROM(i, stg_endpoint_matches(w.endpoint, &o) == (i == k));
        }
    }
    world_close(&w);
}

/* -- the source's address -------------------------------------------------- */

TEST(client_source, is_the_address_that_a_connection_comes_from)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");

    o.source = "127.0.0.2";
    world_use(&w, &o);
    CHECK_STR(world_exchange(&w, "body").detail, "HTTP 200");
    CHECK_STR(w.leaf.from, "127.0.0.2");
    CHECK(stg_endpoint_matches(w.endpoint, &o));
    o.source = "127.0.0.3";
    CHECK(!stg_endpoint_matches(w.endpoint, &o));
    o.source = NULL;
    CHECK(!stg_endpoint_matches(w.endpoint, &o));
    world_close(&w);
}

TEST(client_source, connects_to_addresses_of_its_family_only)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");
    char detail[128];
    ending e;

    o.source = "::1";
    world_use(&w, &o);
    e = world_exchange(&w, "body");
    (void)snprintf(detail, sizeof detail,
                   "connect 127.0.0.1:%d: it has no address of IPv6, as the "
                   "source has (see source-address in the settings)",
                   w.leaf.port);
    CHECK_STR(e.detail, detail);
    CHECK_INT(e.outcome.fault, STG_FAULT_UNREACHABLE);
    CHECK(e.outcome.unsent && e.outcome.permanent);
    world_close(&w);
}

/* 192.0.2.0/24 is nobody's (RFC 5737). */
TEST(client_source, that_this_machine_lacks_is_no_fault_of_the_target)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");
    ending e;

    o.source = "192.0.2.1";
    world_use(&w, &o);
    e = world_exchange(&w, "body");
    CHECK_INT(e.outcome.fault, STG_FAULT_NO_PORTS);
    CHECK(e.outcome.unsent);
    world_close(&w);
}
