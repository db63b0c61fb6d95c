/* Endpoints that others take the place of, as at a reload. */
#include <stdio.h>
#include <stdlib.h>

#include "http/internal.h"
#include "tests/harness.h"
#include "tests/http/world.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* The world's endpoint is given away. */
static void retire(world *w)
{
    stg_endpoint_retire(w->endpoint);
    w->endpoint = NULL;
}

static void wait_for_no_guest(world *w)
{
    while (w->leaf.open > 0)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
}

TEST(client_retire, ends_at_once_where_nothing_is_under_way)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));

    (void)world_exchange(&w, "");
    CHECK_U64(world_look(&w).idle, 1);
    retire(&w);
    wait_for_no_guest(&w);
    world_close(&w);
}

TEST(client_retire, lets_what_is_under_way_end_and_keeps_no_connection)
{
    WORLD(w, SCRIPT(HEAR, SAY("HTTP/1.1 200 OK\r\n"), HEAR),
          SCRIPT(HEAR, SAY("HTTP/1.1 200 OK\r\n"),
                 SAY("Content-Length: 1\r\n\r\n"), SAY("x")),
          SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    ending first, second, third;
    stg_endpoint_options o;

    (void)world_start(&w, &first, "1");
    while (w.leaf.requests < 1)
        world_turn(&w, 1);
    (void)world_start(&w, &second, "2");
    while (w.leaf.requests < 2)
        world_turn(&w, 1);
    retire(&w);
    o = world_options(&w, "/new");
    world_use(&w, &o);
    // The new one has nothing to do with the old one's connections.
    third = world_exchange(&w, "3");
    CHECK_STR(third.detail, "HTTP 200");
    CHECK(!third.is_reused);
    world_wait(&w, &second);
    CHECK_STR(second.answer, "x");
    CHECK_U64(first.times, 0);
    for (int turns = 0; w.leaf.open > 2 && turns < 10000; turns++)
        world_turn(&w, 1);
    CHECK_U64(w.leaf.open, 2); // of the first, and of the new endpoint
    third = world_exchange(&w, "4");
    CHECK(third.is_reused);
    world_close(&w); // the leaf goes, and that ends the first
    CHECK_U64(first.times, 1);
}

TEST(client_retire, may_be_cancelled_in_every_phase)
{
    WORLD(w, SCRIPT(HEAR));

    for (int turns = 0; turns < 10; turns++) {
        ending e;
        stg_exchange *x = world_start(&w, &e, "");

        world_turn(&w, turns);
        retire(&w);
        stg_exchange_cancel(x);
        world_wait(&w, &e);
        CHECK_INT(e.outcome.fault, STG_FAULT_CANCELLED);
    }
    wait_for_no_guest(&w);
    world_close(&w);
}

TEST(client_retire, waits_for_a_lookup_that_exchanges_wait_for)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o;
    char url[64];
    ending e[3];

    (void)snprintf(url, sizeof url, "http://localhost:%d/", w.leaf.port);
    o = stg_endpoint_options_default(url);
    world_use(&w, &o);
    for (int i = 0; i < 3; i++)
        (void)world_start(&w, &e[i], "");
    retire(&w);
    for (int i = 0; i < 3; i++) {
        world_wait(&w, &e[i]);
        CHECK_STR(e[i].detail, "HTTP 200");
    }
    wait_for_no_guest(&w);
    world_close(&w);
}

static void retire_when_told(void *ctx, const stg_reply *reply)
{
    world *w = ctx;

    CHECK_INT(reply->status, 200);
    retire(w);
}

TEST(client_retire, may_be_called_from_done)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = world_options(&w, "/");
    stg_span none = {"", 0};

    world_use(&w, &o);
    CHECK(stg_endpoint_send(w.endpoint, none, none, STG_S * 9, retire_when_told,
                            &w) != NULL);
    while (w.endpoint != NULL)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    wait_for_no_guest(&w);
    world_close(&w);
}

/* -- many endpoints, and not so many files ---------------------------------- */

TEST(client_pools, make_room_for_one_another_where_files_are_scarce)
{
    WORLD(w, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    stg_endpoint *first;
    stg_endpoint_view view;
    stg_endpoint_options o = world_options(&w, "/");
    ending e[8], last;

    w.client->files.limit = 20; // half of it are others', a quarter producers'
    world_use(&w, &o);
    for (int i = 0; i < 8; i++)
        (void)world_start(&w, &e[i], "");
    for (int i = 0; i < 8; i++)
        world_wait(&w, &e[i]);
    CHECK_U64(world_look(&w).idle, 8);
    CHECK_U64(w.client->files.targets, 8);
    // Another one that needs three has them from the first.
    first = w.endpoint;
    w.endpoint = NULL;
    world_use(&w, &o);
    for (int i = 0; i < 3; i++)
        (void)world_start(&w, &e[i], "");
    stg_endpoint_look(first, &view);
    CHECK_U64(view.idle, 5);
    for (int i = 0; i < 3; i++) {
        world_wait(&w, &e[i]);
        CHECK_STR(e[i].detail, "HTTP 200");
    }
    CHECK_U64(world_look(&w).idle, 3);
    world_turn(&w, 3);
    CHECK_U64(w.client->files.targets, 8);
    // One that is there is used, and costs nobody anything.
    last = world_exchange(&w, "");
    CHECK(last.is_reused);
    stg_endpoint_look(first, &view);
    CHECK_U64(view.idle, 5);
    stg_endpoint_free(first);
    world_turn(&w, 3);
    CHECK_U64(w.client->files.targets, 3);
    world_close(&w);
}

/* All sockets are busy, so that others wait for one, each in its turn. */
TEST(client_pools, hold_no_more_sockets_than_their_share)
{
    enum { MANY = 40 };
    WORLD(w, SCRIPT(HEAR, SAY(OK), CLOSE));
    stg_endpoint *endpoints[MANY];
    stg_endpoint_options o = world_options(&w, "/");
    ending e[MANY];

    w.client->files.limit = 20;
    for (int i = 0; i < MANY; i++) {
        w.endpoint = NULL;
        world_use(&w, &o);
        endpoints[i] = w.endpoint;
        (void)world_start(&w, &e[i], "");
        CHECK(w.client->files.targets <= 8);
    }
    for (int i = 0; i < MANY; i++) {
        while (e[i].times == 0) {
            (void)uv_run(&w.loop, UV_RUN_ONCE);
            CHECK(w.client->files.targets <= 8);
        }
        CHECK_STR(e[i].detail, "HTTP 200");
    }
    // Producers that came meanwhile take their share of what both have.
    w.client->files.callers = 5;
    for (int i = 0; i < MANY - 1; i++)
        stg_endpoint_free(endpoints[i]);
    CHECK(stg_files_have_target(&w.client->files));
    w.client->files.targets += 5;
    CHECK(!stg_files_have_target(&w.client->files));
    CHECK(!stg_files_have_caller(&w.client->files));
    w.client->files.targets -= 5;
    world_close(&w);
}

/* -- what endpoints have in common ----------------------------------------- */

TEST(client_retire, keeps_what_endpoints_have_in_common_as_long_as_one_has_it)
{
    WORLD(w, SCRIPT(HEAR));
    stg_endpoint_options o = stg_endpoint_options_default("http://h/");
    stg_endpoint *other;

    world_use(&w, &o);
    CHECK_INT(stg_endpoint_new(&other, w.client, &o, NULL), STG_OK);
    CHECK(other->common == w.endpoint->common);
    retire(&w);
    CHECK(stg_list_first(&w.client->commons) == &other->common->link);
    stg_endpoint_free(other);
    CHECK(stg_list_is_empty(&w.client->commons));
    world_close(&w);
}

/* -- the same? ------------------------------------------------------------- */

TEST(client_retire, knows_options_that_make_the_same_endpoint)
{
    WORLD(w, SCRIPT(HEAR));
    stg_endpoint_options o = stg_endpoint_options_default("http://h:81/a?b");

    o.headers = "A: 1\r\n";
    o.server_name = "n";
    world_use(&w, &o);
    o.url = strdup(o.url);
    o.headers = strdup(o.headers);
    CHECK(stg_endpoint_matches(w.endpoint, &o));
    free((char *)o.url);
    free((char *)o.headers);
    world_close(&w);
}

TEST(client_retire, knows_each_option_that_makes_another_endpoint)
{
    WORLD(w, SCRIPT(HEAR));
    const stg_endpoint_options o = stg_endpoint_options_default("http://h/a");
    stg_endpoint_options others[20];
    size_t count = 0;

    world_use(&w, &o);
    CHECK(stg_endpoint_matches(w.endpoint, &o));
#define OTHER(change) (others[count] = o, others[count++].change)
    OTHER(url = "http://h/b");
    OTHER(url = "http://i/a");
    OTHER(url = "http://h:81/a");
    OTHER(url = "https://h:80/a");
    OTHER(url = "none");
    OTHER(method = "PUT");
    OTHER(headers = "A: 1\r\n");
    OTHER(server_name = "x");
    OTHER(resolve_timeout = STG_S);
    OTHER(connect_timeout = STG_S);
    OTHER(tls_timeout = STG_S);
    OTHER(write_timeout = STG_S);
    OTHER(first_byte_timeout = STG_S);
    OTHER(idle_max = STG_S);
    OTHER(age_max = STG_S);
    OTHER(idle_count_max = 1);
    OTHER(answer_max = 1);
    OTHER(excerpt_max = 1);
#undef OTHER
    for (size_t i = 0; i < count; i++)
        CHECK_FROM(i, !stg_endpoint_matches(w.endpoint, &others[i]));
    world_close(&w);
}
