#include "cli/demo/sinks.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORDS_MAX = 6 };

static const struct {
    const char *name, *deed;
    const char *words[WORDS_MAX]; /* of `stagger sink` */
} kinds[DEMO_SINKS] = {
    {"healthy", "answers 200", {NULL}},
    {"flaky", "503 to one in ten", {"--random", "200:90,503:10"}},
    {"overloaded",
     "now and then 429, Retry-After: 1",
     {"--random", "200:997,429:3", "--retry-after", "1"}},
    {"slow", "takes 20 to 60 ms", {"--delay", "20ms-60ms"}},
    {"down", "refuses connections", {NULL}},
};

const char *stg_demo_sinks_name(int sink)
{
    return kinds[sink].name;
}

const char *stg_demo_sinks_deed(int sink)
{
    return kinds[sink].deed;
}

/* -- one ------------------------------------------------------------------- */

static void handle_closed(uv_handle_t *handle)
{
    demo_sink *sink = handle->data;
    demo_sinks *s = sink->all;

    if (--sink->handles == 0 && --s->open == 0 && s->is_ending)
        s->ended(s->ctx);
}

static void fail(demo_sink *sink)
{
    demo_sinks *s = sink->all;

    if (s->is_ending || sink->has_failed)
        return;
    sink->has_failed = true;
    s->failed(s->ctx);
}

static void on_exit_of(uv_process_t *process, int64_t code, int by)
{
    demo_sink *sink = process->data;

    (void)code;
    (void)by;
    sink->is_running = false;
    uv_close((uv_handle_t *)process, handle_closed);
    fail(sink);
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    demo_sink *sink = handle->data;

    (void)wanted;
    *buffer = uv_buf_init(sink->text + sink->size,
                          (unsigned)(sizeof sink->text - 1 - sink->size));
}

/* The first line says where it listens. */
static void find_url(demo_sink *sink)
{
    const char *at = strstr(sink->text, "http://");
    demo_sinks *s = sink->all;
    size_t size;

    if (sink->url[0] != '\0' || at == NULL || strchr(at, '\n') == NULL)
        return;
    size = strcspn(at, "\r\n");
    if (size >= sizeof sink->url - 1)
        return;
    memcpy(sink->url, at, size);
    sink->url[size] = '\0';
    if (--s->starting == 0)
        s->ready(s->ctx);
}

static void take(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    demo_sink *sink = stream->data;

    (void)buffer;
    if (size < 0) {
        uv_close((uv_handle_t *)stream, handle_closed);
        return;
    }
    sink->size += (size_t)size;
    sink->text[sink->size] = '\0';
    find_url(sink);
}

static bool spawn(demo_sink *sink, uv_loop_t *loop, const char *program,
                  const char *const *words)
{
    const char *arguments[WORDS_MAX + 6] = {"stagger", "sink", "--quiet",
                                            "--listen", "127.0.0.1:0"};
    uv_stdio_container_t files[3] = {
        {.flags = UV_IGNORE},
        {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE),
         .data.stream = (uv_stream_t *)&sink->pipe},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}};
    // A session of its own: an interrupt of the terminal is ours to handle.
    uv_process_options_t o = {.exit_cb = on_exit_of,
                              .file = program,
                              .args = (char **)arguments,
                              .stdio = files,
                              .stdio_count = 3,
                              .flags = UV_PROCESS_DETACHED};

    for (int i = 0; i < WORDS_MAX && words[i] != NULL; i++)
        arguments[5 + i] = words[i];
    (void)uv_pipe_init(loop, &sink->pipe, 0);
    sink->pipe.data = sink->process.data = sink;
    sink->handles = 2;
    sink->all->open++;
    sink->is_running = uv_spawn(loop, &sink->process, &o) == 0;
    if (!sink->is_running) {
        uv_close((uv_handle_t *)&sink->process, handle_closed);
        uv_close((uv_handle_t *)&sink->pipe, handle_closed);
        return false;
    }
    (void)uv_read_start((uv_stream_t *)&sink->pipe, give_room, take);
    return true;
}

/* A port that is bound and not listened on refuses, and stays ours. */
static bool keep_down(demo_sinks *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    demo_sink *sink = &s->sinks[DEMO_DOWN];

    s->down = socket(AF_INET, SOCK_STREAM, 0);
    if (s->down < 0 || bind(s->down, (struct sockaddr *)&at, size) != 0 ||
        getsockname(s->down, (struct sockaddr *)&at, &size) != 0)
        return false;
    snprintf(sink->url, sizeof sink->url, "http://127.0.0.1:%u",
             (unsigned)ntohs(at.sin_port));
    return true;
}

/* -- all of them ----------------------------------------------------------- */

bool stg_demo_sinks_start(demo_sinks *s, uv_loop_t *loop)
{
    char program[4096];
    size_t size = sizeof program;

    s->down = -1;
    for (int i = 0; i < DEMO_SINKS; i++)
        s->sinks[i].all = s;
    if (uv_exepath(program, &size) != 0 || !keep_down(s))
        return false;
    for (int i = 0; i < DEMO_DOWN; i++) {
        if (!spawn(&s->sinks[i], loop, program, kinds[i].words))
            return false;
        s->starting++;
    }
    return true;
}

void stg_demo_sinks_end(demo_sinks *s)
{
    s->is_ending = true;
    if (s->down >= 0)
        close(s->down);
    s->down = -1;
    for (int i = 0; i < DEMO_DOWN; i++)
        if (s->sinks[i].is_running)
            uv_process_kill(&s->sinks[i].process, SIGTERM);
    if (s->open == 0)
        s->ended(s->ctx);
}

void stg_demo_sinks_kill(demo_sinks *s)
{
    for (int i = 0; i < DEMO_DOWN; i++)
        if (s->sinks[i].is_running)
            uv_process_kill(&s->sinks[i].process, SIGKILL);
}

/* "1,234" */
static uint64_t read_grouped(const char *at)
{
    uint64_t number = 0;

    for (; (*at >= '0' && *at <= '9') || *at == ','; at++)
        if (*at != ',')
            number = number * 10 + (uint64_t)(*at - '0');
    return number;
}

uint64_t stg_demo_sinks_count(const demo_sinks *s, int sink, const char *name)
{
    const char *line = s->sinks[sink].text;
    size_t size = strlen(name);

    while (line != NULL && *line != '\0') {
        const char *at = line + strspn(line, " ");

        if (strncmp(at, name, size) == 0 && at[size] == ' ')
            return read_grouped(at + size + strspn(at + size, " "));
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return 0;
}
