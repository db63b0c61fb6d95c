/* What the server tells its user, by hooks; what callers see of it: ingress. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/server.h"
#include "tests/harness.h"

enum { CALLERS = 2 };

/* A server whose user answers when the test says so. */
typedef struct shop {
    uv_loop_t loop;
    stg_httpd_hooks hooks;
    stg_httpd server;
    stg_inbound *waiting[CALLERS];
    unsigned waiting_count, calms;
    int callers[CALLERS];
    bool is_closed;
} shop;

static void ignore(stg_inbound *c)
{
    (void)c;
}

static void ignore_body(stg_inbound *c, stg_span piece)
{
    (void)c, (void)piece;
}

static void ignore_refused(stg_inbound *c, int status, const char *why)
{
    (void)c, (void)status, (void)why;
}

static void note_whole(stg_inbound *c)
{
    shop *s = c->server->ctx;

    s->waiting[s->waiting_count++] = c;
}

static void note_calm(stg_httpd *server)
{
    ((shop *)server->ctx)->calms++;
}

static const stg_httpd_hooks least = {
    .size = sizeof(stg_inbound),
    .head = ignore,
    .body = ignore_body,
    .whole = note_whole,
    .refused = ignore_refused,
    .ended = ignore,
};

static void begin(shop *s, void (*calm)(stg_httpd *server))
{
    static const stg_httpd_options o = {.connections_max = CALLERS,
                                        .address_connections_max = CALLERS,
                                        .header_max = 512,
                                        .header_timeout = STG_MIN,
                                        .idle_timeout = STG_MIN,
                                        .request_timeout = STG_MIN};
    const struct sockaddr_in from = {.sin_family = AF_INET};

    memset(s, 0, sizeof *s);
    s->hooks = least;
    s->hooks.calm = calm;
    CHECK(uv_loop_init(&s->loop) == 0);
    CHECK_INT(stg_httpd_open(&s->server, &s->loop, -1, &s->hooks, s, &o, NULL),
              STG_OK);
    for (int i = 0; i < CALLERS; i++) {
        int pair[2];

        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
        CHECK(stg_httpd_adopt(&s->server, pair[0],
                              (const struct sockaddr *)&from));
        s->callers[i] = pair[1];
    }
}

/* One more caller asks, and waits. */
static void ask(shop *s)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    unsigned before = s->waiting_count;

    CHECK(write(s->callers[before], text, sizeof text - 1) ==
          (ssize_t)sizeof text - 1);
    while (s->waiting_count == before)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
}

static void answer(shop *s, unsigned i)
{
    stg_inbound_answer(s->waiting[i], 200, "text/plain", "", "", 0, false);
}

static void note_closed(void *ctx)
{
    ((shop *)ctx)->is_closed = true;
}

static void end(shop *s)
{
    stg_httpd_close(&s->server, note_closed, s);
    CHECK(uv_run(&s->loop, UV_RUN_DEFAULT) == 0);
    CHECK(s->is_closed);
    CHECK(uv_loop_close(&s->loop) == 0);
    for (int i = 0; i < CALLERS; i++)
        close(s->callers[i]);
}

TEST(server, tells_once_that_no_request_waits_any_more)
{
    shop s;

    begin(&s, note_calm);
    ask(&s);
    ask(&s);
    answer(&s, 1);
    CHECK_U64(s.calms, 0);
    answer(&s, 0);
    CHECK_U64(s.calms, 1);
    end(&s);
    CHECK_U64(s.calms, 1);
}

/* A request does not wait any more when its client has gone. */
TEST(server, tells_that_no_request_waits_when_its_connection_is_closed)
{
    shop s;

    begin(&s, note_calm);
    ask(&s);
    CHECK_U64(s.calms, 0);
    end(&s);
    CHECK_U64(s.calms, 1);
}

TEST(server, needs_no_hook_for_what_its_user_does_not_ask)
{
    shop s;

    begin(&s, NULL);
    ask(&s);
    ask(&s);
    answer(&s, 0);
    answer(&s, 1);
    end(&s);
}
