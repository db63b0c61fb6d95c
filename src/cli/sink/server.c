#include "cli/sink/server.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stagger/env.h>

#include "cli/sink/connection.h"

/* How often the live line is written, and a full table of files looked at. */
#define SHOW_EVERY (250 * STG_MS)
#define FULL_WAIT (100 * STG_MS)

enum { EVENTS = 512, ACCEPTS_MAX = 256, BACKLOG = 4096, HOST_MAX = 64 };

__attribute__((format(printf, 3, 4))) static stg_status
fail(stg_error *err, stg_status status, const char *format, ...)
{
    va_list args;

    *err = (stg_error){0};
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return status;
}

/* -- where to listen ------------------------------------------------------- */

/* [ADDRESS:]PORT; an IPv6 address in brackets. */
static bool split(const char *text, char host[HOST_MAX], const char **port)
{
    const char *colon = strrchr(text, ':'), *from = text;
    size_t size;

    snprintf(host, HOST_MAX, "127.0.0.1");
    *port = colon == NULL ? text : colon + 1;
    if ((*port)[0] < '0' || (*port)[0] > '9')
        return false;
    if (colon == NULL)
        return true;
    size = (size_t)(colon - text);
    if (size >= 2 && text[0] == '[' && colon[-1] == ']') {
        from++;
        size -= 2;
    }
    if (size == 0 || size >= HOST_MAX)
        return false;
    memcpy(host, from, size);
    host[size] = '\0';
    return true;
}

static struct addrinfo *find_address(const char *text)
{
    static const struct addrinfo numeric = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
        .ai_socktype = SOCK_STREAM};
    char host[HOST_MAX];
    const char *port;
    struct addrinfo *found = NULL;
    char *end;

    if (!split(text, host, &port) || strtoul(port, &end, 10) > 65535 ||
        *end != '\0' || getaddrinfo(host, port, &numeric, &found) != 0)
        return NULL;
    return found;
}

static int listen_on(const struct addrinfo *a)
{
    int on = 1;
    int listener =
        socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (listener < 0)
        return -1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, a->ai_addr, a->ai_addrlen) == 0 &&
        listen(listener, BACKLOG) == 0)
        return listener;
    on = errno;
    close(listener);
    errno = on;
    return -1;
}

/* Scripts read this line, so it is there before anything else happens. */
static void tell_address(int listener)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    char host[HOST_MAX] = "", port[8] = "";
    bool is_six;

    getsockname(listener, (struct sockaddr *)&address, &size);
    getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port,
                sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    is_six = address.ss_family == AF_INET6;
    printf("stagger sink: listening on http://%s%s%s:%s\n", is_six ? "[" : "",
           host, is_six ? "]" : "", port);
    fflush(stdout);
}

static stg_status open_listener(sink *s, stg_error *err)
{
    struct addrinfo *a = find_address(s->o->listen);

    if (a == NULL)
        return fail(err, STG_INVALID,
                    "--listen=%s: wanted a port, or ADDRESS:PORT with a "
                    "numeric address, like 127.0.0.1:9000 or [::1]:9000",
                    s->o->listen);
    s->listener = listen_on(a);
    freeaddrinfo(a);
    if (s->listener < 0)
        return fail(err, STG_IO, "--listen=%s: %s; another port, or 0 for any?",
                    s->o->listen, strerror(errno));
    return STG_OK;
}

/* -- the loop's own -------------------------------------------------------- */

static int take_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void allow_many_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* tag: its field in s, by which it is told. */
static bool watch(sink *s, int file, void *tag)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = tag};

    return file >= 0 && epoll_ctl(s->epoll, EPOLL_CTL_ADD, file, &e) == 0;
}

stg_status stg_sink_server_open(sink *s, stg_error *err)
{
    stg_status status = open_listener(s, err);

    if (status != STG_OK)
        return status;
    allow_many_files();
    stg_list_init(&s->connections);
    s->signals = take_signals();
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll < 0 || !watch(s, s->signals, &s->signals) ||
        !watch(s, s->listener, &s->listener))
        return fail(err, STG_IO, "cannot wait for events: %s", strerror(errno));
    tell_address(s->listener);
    return STG_OK;
}

/* -- accepting ------------------------------------------------------------- */

/* Without this a full table of files would be reported without end. */
static void pause_accepting(sink *s, bool is_full)
{
    struct epoll_event e = {.events = is_full ? 0 : EPOLLIN,
                            .data.ptr = &s->listener};

    s->is_full = is_full;
    epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->listener, &e);
}

static void accept_some(sink *s)
{
    int on = 1, socket;

    for (int i = 0; i < ACCEPTS_MAX; i++) {
        socket = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket >= 0) {
            setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            stg_sink_connection_open(s, socket);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                   errno == ENOBUFS) {
            pause_accepting(s, true);
            return;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        }
    }
}

/* -- the loop -------------------------------------------------------------- */

static stg_ns read_clock(void)
{
    return stg_env_system()->now(NULL);
}

static bool is_shown(const sink *s)
{
    return !s->o->is_quiet && isatty(STDERR_FILENO) == 1;
}

/* For epoll, in whole ms upwards: no timer is early. */
static int find_timeout(const sink *s, stg_ns show_at)
{
    stg_ns until_at = show_at, wait;

    if (s->timers.top != NULL)
        until_at = stg_ns_min(until_at, s->timers.top->key);
    if (s->is_full)
        until_at = stg_ns_min(until_at, stg_ns_add(s->now, FULL_WAIT));
    if (until_at == STG_NEVER)
        return -1;
    wait = stg_ns_sub(until_at, read_clock());
    wait = (wait + STG_MS - 1) / STG_MS;
    return wait > INT_MAX ? INT_MAX : (int)wait;
}

/* Returns false when a signal says to stop. */
static bool serve(sink *s, const struct epoll_event *events, int count)
{
    bool goes_on = true;

    for (int i = 0; i < count; i++) {
        void *of = events[i].data.ptr;

        if (of == &s->signals)
            goes_on = false;
        else if (of == &s->listener)
            accept_some(s);
        else
            stg_sink_connection_serve(s, of, events[i].events);
    }
    return goes_on;
}

static void wake_due(sink *s)
{
    while (s->timers.top != NULL && s->timers.top->key <= s->now)
        stg_sink_connection_wake(s, s->timers.top);
}

stg_status stg_sink_server_run(sink *s, stg_error *err)
{
    struct epoll_event events[EVENTS];
    bool goes_on = true, shows = is_shown(s);
    stg_ns show_at = shows ? 0 : STG_NEVER;
    int count;

    s->tally.shown_at = s->now = read_clock();
    while (goes_on && (s->unanswered > 0 || !stg_sink_is_done(s))) {
        count = epoll_wait(s->epoll, events, EVENTS, find_timeout(s, show_at));
        if (count < 0 && errno != EINTR)
            return fail(err, STG_IO, "epoll: %s", strerror(errno));
        s->now = read_clock();
        if (s->is_full)
            pause_accepting(s, false);
        goes_on = serve(s, events, count);
        wake_due(s);
        if (s->log.error != 0)
            return fail(err, STG_IO, "%s: %s", s->o->log,
                        strerror(s->log.error));
        if (s->now >= show_at) {
            stg_sink_tally_show(&s->tally, s->now);
            show_at = stg_ns_add(s->now, SHOW_EVERY);
        }
    }
    if (shows)
        stg_sink_tally_show(&s->tally, s->now);
    return STG_OK;
}

void stg_sink_server_close(sink *s)
{
    stg_sink_connection_close_all(s);
    close(s->listener);
    close(s->signals);
    close(s->epoll);
}
