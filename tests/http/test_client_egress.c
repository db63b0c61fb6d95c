/* What the client connects to, and what it does not. Which addresses: see
 * test_egress.c. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness.h"
#include "tests/http/resolver.h"
#include "tests/http/world.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* -- helpers --------------------------------------------------------------- */

static void set_rule(world *w, const char *allow, const char *deny)
{
    stg_cidr allowed, denied;
    stg_egress e = {&allowed, &denied, allow != NULL, deny != NULL, false};

    if (allow != NULL)
        CHECK(stg_cidr_parse(&allowed, allow, NULL) == STG_OK);
    if (deny != NULL)
        CHECK(stg_cidr_parse(&denied, deny, NULL) == STG_OK);
    CHECK(stg_client_set_egress(w->client, &e, NULL) == STG_OK);
    memset(&allowed, 0xff, sizeof allowed); // copied, that is
    memset(&denied, 0xff, sizeof denied);
}

static ending exchange_with(world *w, const char *host)
{
    stg_endpoint_options o;
    char url[96];

    (void)snprintf(url, sizeof url, "http://%s:%d/", host, w->leaf.port);
    o = stg_endpoint_options_default(url);
    world_use(w, &o);
    return world_exchange(w, "body");
}

static void check_refused(const ending *e, const char *detail)
{
    CHECK_STR(e->detail, detail);
    CHECK_INT(e->outcome.fault, STG_FAULT_EGRESS);
    CHECK(e->outcome.unsent && e->outcome.permanent);
    CHECK_INT(e->status, 0);
}

static void check_refuses(world *w, const char *host, const char *why)
{
    char detail[256];
    ending e = exchange_with(w, host);

    (void)snprintf(detail, sizeof detail,
                   "connect %s:%d: %s (see egress in the settings)", host,
                   w->leaf.port, why);
    check_refused(&e, detail);
}

static void check_reaches(world *w, const char *host)
{
    ending e = exchange_with(w, host);

    CHECK_STR(e.detail, "HTTP 200");
}

/* -- names and addresses --------------------------------------------------- */

TEST(client_egress, connects_to_no_address_that_is_refused_by_itself)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    static const char why[] =
        "169.254.169.254 may not be connected to: a "
        "metadata address (169.254.169.254/32)";

    check_refuses(&w, "169.254.169.254", why);
    check_refuses(&w, "meta.test", why);
    check_refuses(&w, "both.test", why);
    check_refuses(&w, "2852039166", why);
    check_refuses(&w, "0xa9fea9fe", why);
    check_refuses(&w, "[fe80::1]",
                  "fe80::1 may not be connected to: a link-local address "
                  "(fe80::/10)");
    check_refuses(&w, "0.0.0.0",
                  "0.0.0.0 may not be connected to: an address of this host "
                  "(0.0.0.0/8)");
    check_refuses(&w, "[::ffff:169.254.169.254]",
                  "::ffff:169.254.169.254 may not be connected to: a metadata "
                  "address (169.254.169.254/32)");
    check_refuses(&w, "mapped.test",
                  "::ffff:169.254.169.254 may not be connected to: a metadata "
                  "address (169.254.169.254/32)");
    check_refuses(&w, "nat.test",
                  "64:ff9b::a9fe:a9fe may not be connected to: a metadata "
                  "address (169.254.169.254/32)");
    CHECK_U64(w.leaf.accepted, 0);
    world_close(&w);
}

TEST(client_egress, goes_by_the_addresses_of_a_name_that_are_left)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    char detail[96];
    ending e;

    check_reaches(&w, "mixed.test");
    set_rule(&w, NULL, "127.0.0.2");
    check_reaches(&w, "two.test");
    CHECK_U64(w.leaf.accepted, 2);
    set_rule(&w, NULL, "127.0.0.1");
    e = exchange_with(&w, "two.test");
    (void)snprintf(detail, sizeof detail,
                   "connect 127.0.0.2:%d: connection refused", w.leaf.port);
    CHECK_STR(e.detail, detail);
    CHECK_U64(w.leaf.accepted, 2);
    set_rule(&w, NULL, "127.0.0.0/30");
    check_refuses(&w, "two.test",
                  "127.0.0.2 may not be connected to: denied by 127.0.0.0/30");
    CHECK_U64(w.leaf.accepted, 2);
    world_close(&w);
}

TEST(client_egress, connects_to_what_is_allowed_where_all_is_denied)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));

    set_rule(&w, NULL, "0.0.0.0/0");
    check_refuses(&w, "127.0.0.1",
                  "127.0.0.1 may not be connected to: denied by 0.0.0.0/0");
    set_rule(&w, "127.0.0.1", "0.0.0.0/0");
    check_reaches(&w, "127.0.0.1");
    check_reaches(&w, "here.test");
    world_close(&w);
}

/* A name is judged by what it resolves to each time. */
TEST(client_egress, judges_a_name_anew_when_it_connects_anew)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), CLOSE));
    ending e;

    atomic_store(&resolver_moves, 0);
    check_reaches(&w, "moving.test");
    while (world_look(&w).idle > 0)
        world_turn(&w, 1);
    e = world_exchange(&w, "again");
    CHECK_INT(e.outcome.fault, STG_FAULT_EGRESS);
    CHECK_U64(w.leaf.accepted, 1);
    world_close(&w);
}

TEST(client_egress, tells_it_not_from_within_the_call)
{
    WORLD(w, SCRIPT(HEAR));
    stg_endpoint_options o = stg_endpoint_options_default("http://[ff02::1]/");
    stg_exchange *x;
    ending e;

    world_use(&w, &o);
    x = world_start(&w, &e, ""); // checks that it was not told
    stg_exchange_cancel(x);
    world_wait(&w, &e);
    CHECK_INT(e.outcome.fault, STG_FAULT_CANCELLED);
    CHECK(e.outcome.unsent);
    world_close(&w);
}

/* -- a rule that changes --------------------------------------------------- */

TEST(client_egress, uses_no_idle_connection_that_the_rule_forbids_now)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK), HEAR, SAY(OK)));
    ending e;

    check_reaches(&w, "here.test");
    set_rule(&w, NULL, "10.0.0.0/8");
    e = world_exchange(&w, ""); // judged again, and allowed again
    CHECK(e.is_reused);
    set_rule(&w, NULL, "127.0.0.0/8");
    CHECK_U64(world_look(&w).idle, 1);
    e = world_exchange(&w, "");
    CHECK_INT(e.outcome.fault, STG_FAULT_EGRESS);
    CHECK_U64(world_look(&w).idle, 0);
    CHECK_U64(w.leaf.requests, 2);
    CHECK_U64(w.leaf.accepted, 1);
    set_rule(&w, NULL, NULL);
    e = world_exchange(&w, "");
    CHECK_STR(e.detail, "HTTP 200");
    CHECK(!e.is_reused);
    world_close(&w);
}

TEST(client_egress, sends_nothing_where_the_rule_changes_while_it_connects)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");
    ending e;

    world_use(&w, &o);
    (void)world_start(&w, &e, "");
    set_rule(&w, NULL, "127.0.0.0/8");
    world_wait(&w, &e);
    CHECK_INT(e.outcome.fault, STG_FAULT_EGRESS);
    CHECK_U64(w.leaf.requests, 0);
    CHECK(strstr(e.detail, "may not be connected to any more") != NULL);
    world_close(&w);
}

/* What an exchange under way has begun it may end. */
TEST(client_egress, lets_an_exchange_under_way_end)
{
    WORLD(w, SCRIPT(HEAR, SAY("HTTP/1.1 "), SAY("200 OK\r\n"),
                    SAY("Content-Length: 0\r\n"), SAY("\r\n")));
    ending e;
    stg_endpoint_options o = world_options(&w, "/");

    world_use(&w, &o);
    (void)world_start(&w, &e, "");
    while (w.leaf.requests == 0)
        world_turn(&w, 1);
    set_rule(&w, NULL, "127.0.0.0/8");
    world_wait(&w, &e);
    CHECK_STR(e.detail, "HTTP 200");
    e = world_exchange(&w, "");
    CHECK_INT(e.outcome.fault, STG_FAULT_EGRESS);
    world_close(&w);
}

/* -- redirects ------------------------------------------------------------- */

TEST(client_egress, follows_no_redirect)
{
    const leaf_step *script = SCRIPT(HEAR, SAY(OK));
    static const int statuses[] = {301, 302, 303, 307, 308};

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        char answer[256];
        leaf_step say = {LEAF_SAY, answer, 0};
        WORLD(w, SCRIPT(HEAR, say));
        leaf other;
        ending e;

        CHECK(leaf_open(&other, &w.loop, "127.0.0.1", NULL, &script, 1));
        say.size = (size_t)snprintf(
            answer, sizeof answer,
            "HTTP/1.1 %d Moved\r\nLocation: http://127.0.0.1:%d/\r\n"
            "Content-Length: 0\r\n\r\n",
            statuses[i], other.port);
        w_scripts[0] = SCRIPT(HEAR, say);
        e = world_exchange(&w, "body");
        world_turn(&w, 20);
        CHECK_INT(e.outcome.fault, STG_FAULT_3XX);
        CHECK_INT(e.status, statuses[i]);
        CHECK_U64(other.accepted, 0);
        CHECK_U64(w.leaf.requests, 1);
        leaf_close(&other);
        world_close(&w);
    }
}
