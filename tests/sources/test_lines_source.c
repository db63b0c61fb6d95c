/* A hub that reads a source of its caller's: what any source may rely on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/admin.h"
#include "config/load.h"
#include "hub/hub_internal.h"
#include "tests/harness.h"
#include "tests/http/leaf.h"
#include "tests/sources/lines_source.h"

/* A folder with a store and a file of lines, a target, and a hub now and then. */
typedef struct scene {
    uv_loop_t loop;
    char folder[64], lines[96], settings[96];
    leaf target;
    stg_hub *hub;
    bool has_ended;
    char *page;
} scene;

#define ANSWER "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"

static const leaf_step script[] = {{LEAF_HEAR, NULL, 0},
                                   {LEAF_LAST, ANSWER, sizeof ANSWER - 1},
                                   {LEAF_END, NULL, 0}};
static const leaf_step *const scripts[] = {script};

static void put(const char *path, const char *mode, const char *text)
{
    FILE *file = fopen(path, mode);

    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
}

static void begin(scene *s)
{
    const char *top = getenv("TMPDIR");
    char text[400];

    *s = (scene){.hub = NULL};
    CHECK(uv_loop_init(&s->loop) == 0);
    CHECK(leaf_open(&s->target, &s->loop, "127.0.0.1", NULL, scripts, 1));
    snprintf(s->folder, sizeof s->folder, "%.40s/stagger-XXXXXX",
             top != NULL ? top : "/tmp");
    CHECK(mkdtemp(s->folder) != NULL);
    snprintf(s->lines, sizeof s->lines, "%s/lines", s->folder);
    snprintf(s->settings, sizeof s->settings, "%s/hub.yaml", s->folder);
    snprintf(text, sizeof text,
             "store: {path: %s/store.db}\n"
             "listen: {address: '127.0.0.1:0'}\n"
             "targets: [{name: a, order: strict, "
             "url: 'http://127.0.0.1:%d/'}]\n",
             s->folder, s->target.port);
    put(s->settings, "w", text);
}

static void note_end(void *ctx, const stg_hub_end *end)
{
    CHECK(end->is_clean);
    ((scene *)ctx)->has_ended = true;
}

static void start(scene *s)
{
    stg_diagnostics d = {.all = NULL};
    stg_hub_options o = {.source = lines_source_new(s->lines),
                         .calls = &stg_admin_calls,
                         .ended = note_end,
                         .ctx = s};
    stg_error err = {.text = ""};

    CHECK_INT(stg_settings_load(s->settings, &o.settings, &d), STG_OK);
    stg_diagnostics_free(&d);
    s->has_ended = false;
    (void)stg_hub_open(&s->hub, &s->loop, &o, &err);
    CHECK_STR(err.text, "");
}

static void stop(scene *s)
{
    stg_hub_stop(s->hub);
    while (!s->has_ended)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    stg_hub_free(s->hub);
    s->hub = NULL;
}

static void end(scene *s)
{
    char command[96];

    leaf_close(&s->target);
    CHECK(uv_run(&s->loop, UV_RUN_DEFAULT) == 0);
    CHECK(uv_loop_close(&s->loop) == 0);
    snprintf(command, sizeof command, "rm -rf %s", s->folder);
    CHECK(system(command) == 0);
}

static stg_source_view view_of(const scene *s)
{
    stg_source_view v = {.topic = NULL};

    (void)s->hub->source->ops->look(s->hub->source, 0, &v);
    return v;
}

/* Until all below a position is settled for good. */
static void await_committed(scene *s, uint64_t position)
{
    while (view_of(s).committed < position)
        (void)uv_run(&s->loop, UV_RUN_ONCE);
    CHECK_U64(view_of(s).committed, position);
}

/* The body of the request that came last. */
static const char *last_body(const scene *s)
{
    const char *end = strstr(s->target.heard, "\r\n\r\n");

    return end == NULL ? "" : end + 4;
}

TEST(lines_source, is_read_and_committed)
{
    scene s;
    stg_lane_view lane;

    begin(&s);
    put(s.lines, "w", "one\ntwo\nthree\n");
    start(&s);
    await_committed(&s, 3);
    CHECK_INT(s.target.requests, 3);
    CHECK_STR(last_body(&s), "three");
    CHECK_U64(view_of(&s).next, 3);
    CHECK_INT(stg_hub_look_lane(s.hub, 0, &lane, stg_deadlines_now()), STG_OK);
    CHECK_U64(lane.lag, 0);
    // A line is a message when it is whole.
    put(s.lines, "a", "four");
    put(s.lines, "a", "\nfive\n");
    await_committed(&s, 5);
    CHECK_INT(s.target.requests, 5);
    CHECK_STR(last_body(&s), "five");
    stop(&s);
    end(&s);
}

TEST(lines_source, goes_on_at_the_cursor_after_a_restart)
{
    scene s;

    begin(&s);
    put(s.lines, "w", "one\ntwo\n");
    start(&s);
    await_committed(&s, 2);
    stop(&s);
    put(s.lines, "a", "three\n");
    start(&s);
    await_committed(&s, 3);
    CHECK_INT(s.target.requests, 3);
    CHECK_STR(last_body(&s), "three");
    stop(&s);
    end(&s);
}

static void take_page(void *ctx, char *text, size_t size)
{
    scene *s = ctx;

    CHECK(text != NULL);
    s->page = calloc(1, size + 1);
    CHECK(s->page != NULL);
    memcpy(s->page, text, size);
    free(text);
}

TEST(lines_source, has_its_name_in_the_metrics)
{
    scene s;
    char sample[160];

    begin(&s);
    put(s.lines, "w", "one\ntwo\n");
    start(&s);
    await_committed(&s, 2);
    CHECK(stg_metrics_ask(&s.hub->metrics, take_page, &s));
    while (s.page == NULL)
        (void)uv_run(&s.loop, UV_RUN_ONCE);
    snprintf(sample, sizeof sample,
             "stagger_lines_committed_position{topic=\"%s\",partition=\"0\"} 2",
             s.lines);
    CHECK(strstr(s.page, sample) != NULL);
    snprintf(sample, sizeof sample,
             "stagger_lines_lag_messages{topic=\"%s\",partition=\"0\","
             "target=\"a\"} 0",
             s.lines);
    CHECK(strstr(s.page, sample) != NULL);
    CHECK(strstr(s.page, "stagger_kafka_") == NULL);
    free(s.page);
    stop(&s);
    end(&s);
}

/* Its table has no `publish`. */
TEST(lines_source, takes_nothing_that_is_posted_and_says_where_it_belongs)
{
    static const char request[] =
        "POST /v1/messages HTTP/1.1\r\n"
        "Host: localhost\r\nContent-Length: 1\r\n"
        "Connection: close\r\n\r\nx";
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char answer[2000] = "";
    size_t size = 0;
    ssize_t n;
    scene s;
    int fd;

    begin(&s);
    put(s.lines, "w", "");
    start(&s);
    to.sin_port = htons(s.hub->intake.port);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0);
    CHECK(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
    CHECK(send(fd, request, sizeof request - 1, 0) == sizeof request - 1);
    while ((n = recv(fd, answer + size, sizeof answer - 1 - size,
                     MSG_DONTWAIT)) != 0) {
        size += n > 0 ? (size_t)n : 0;
        (void)uv_run(&s.loop, UV_RUN_NOWAIT);
    }
    CHECK(strncmp(answer, "HTTP/1.1 404 ", 13) == 0);
    CHECK(strstr(answer, "messages are the lines of a file") != NULL);
    CHECK(close(fd) == 0);
    stop(&s);
    end(&s);
}
