/* The listener: whom it accepts, and who makes room.
 *
 * A quarter of the files is the server's own; above that it takes what targets
 * leave. Where no place is left, the caller that has been quiet longest goes
 * first, and new ones are still answered by a file that is held in reserve. While
 * there is no file at all the listener rests, and the system's queue holds who
 * comes. */
#include "http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/refuse.h"
#include "host/process.h"

enum { ACCEPTS_MAX = 64 }; /* in a turn of the loop */

/* How long the listener rests where there is no room, and how long a connection
 * is left alone before it has to make room for another. */
#define REST (100 * STG_MS)

static void accept_some(uv_poll_t *poll, int status, int events);

/* -- room ------------------------------------------------------------------ */

static void open_reserve(stg_httpd *s)
{
    s->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void tell_short(stg_httpd *s, bool has_evicted)
{
    STG_LOG_REPEAT(s->options.log, STG_LOG_WARN, "fd-limit", 1,
                   stg_field_text("detail",
                                  "no file is left for a connection "
                                  "to the ingress"),
                   stg_field_number("connections", s->count),
                   stg_field_bool("has_evicted", has_evicted),
                   stg_field_text("next",
                                  "raise the limit of open files "
                                  "(LimitNOFILE=, ulimit -n)"));
}

static bool evict_idle(stg_httpd *s)
{
    stg_link *idle = stg_list_first(&s->idle);

    tell_short(s, idle != NULL);
    if (idle != NULL)
        stg_inbound_close(STG_HOLDER(idle, stg_inbound, queue));
    return idle != NULL;
}

/* One that has not said what it wants for a while, or nothing more. NULL: all of
 * them are busy, or new. */
static stg_inbound *find_oldest(stg_link *heading, stg_link *idle,
                                size_t offset)
{
    stg_inbound *c = stg_list_holder(heading, offset);

    if (c != NULL && stg_deadlines_now() - c->phase_at >= REST)
        return c;
    return stg_list_holder(idle, offset);
}

static bool make_room(stg_httpd *s)
{
    stg_inbound *c =
        find_oldest(stg_list_first(&s->heading), stg_list_first(&s->idle),
                    offsetof(stg_inbound, queue));

    if (c != NULL)
        stg_inbound_close(c);
    return c != NULL;
}

static bool make_origin_room(const stg_origin *o)
{
    stg_inbound *c =
        find_oldest(stg_list_first(&o->heading), stg_list_first(&o->idle),
                    offsetof(stg_inbound, origin_queue));

    if (c != NULL)
        stg_inbound_close(c);
    return c != NULL;
}

/* One that has its answer, or else the one whose body has come for longest. */
static stg_inbound *find_passing(const stg_httpd *s)
{
    stg_link *first = stg_list_first(&s->passing);

    for (stg_link *l = first; l != NULL; l = stg_list_next(&s->passing, l)) {
        stg_inbound *c = STG_HOLDER(l, stg_inbound, queue);

        if (c->phase != STG_INBOUND_BODY)
            return c;
    }
    return STG_HOLDER(first, stg_inbound, queue);
}

/* One that is only answered is not waited for where others wait. False: the hub
 * itself has them all wait. */
static bool free_short(stg_httpd *s)
{
    stg_inbound *c = find_passing(s);

    if (c != NULL)
        stg_inbound_make_room(c);
    return c != NULL;
}

static bool has_short_place(stg_httpd *s)
{
    while (s->shorts >= STG_SHORT_MAX && free_short(s))
        ;
    return s->shorts < STG_SHORT_MAX;
}

/* Above the quarter that is its own, the server takes what the targets leave: an
 * idle connection of theirs, or of another caller, makes room. */
static bool has_file(stg_httpd *s)
{
    if (stg_files_have_caller(s->files))
        return true;
    stg_files_ask_targets(s->files);
    if (stg_files_have_caller(s->files))
        return true;
    return evict_idle(s) && stg_files_have_caller(s->files);
}

/* -- the listener ---------------------------------------------------------- */

/* A place or a file may be free: the listener reads again. */
static void wake(stg_httpd *s)
{
    if (!s->is_resting || s->is_closing)
        return;
    s->is_resting = false;
    stg_deadline_clear(&s->deadlines, &s->rest);
    (void)uv_poll_start(&s->listener, UV_READABLE, accept_some);
}

static void pass_rest(stg_deadline *d)
{
    wake(STG_HOLDER((void *)d, stg_httpd, rest));
}

/* Always false: there is no room. */
static bool rest(stg_httpd *s)
{
    s->is_resting = true;
    (void)uv_poll_stop(&s->listener);
    stg_deadline_set(&s->deadlines, &s->rest,
                     stg_ns_add(stg_deadlines_now(), REST));
    return false;
}

/* Closes a connection of the same client where it may: the client that has too
 * many makes room for itself. */
bool stg_httpd_is_full_of(stg_httpd *s, const stg_origin *client)
{
    return client->connections >= s->options.address_connections_max &&
           !make_origin_room(client);
}

static bool refuse_origin(stg_httpd *s, const stg_origin *o)
{
    char from[INET6_ADDRSTRLEN];

    if (!stg_httpd_is_full_of(s, o))
        return false;
    STG_LOG_REPEAT(s->options.log, STG_LOG_WARN, "connections-refused", 1,
                   stg_field_text("from", stg_origin_print(o, from)),
                   stg_field_number("connections", o->connections));
    return true;
}

static void join(stg_httpd *s, stg_inbound *c)
{
    stg_list_push(&s->connections, &c->link);
    s->count++;
    s->handles++;
    s->files->callers++;
    c->client = c->origin;
    c->client->uses++;
    c->client->connections++;
    s->shorts += stg_inbound_is_short(c);
}

void stg_httpd_left(stg_httpd *s, const stg_inbound *c)
{
    s->count--;
    s->files->callers--;
    s->shorts -= stg_inbound_is_short(c);
    if (c->place == STG_PLACE_RESERVE)
        open_reserve(s);
    wake(s);
}

static bool has_place(stg_httpd *s, const stg_inbound *c)
{
    return c->origin != NULL &&
           (!stg_inbound_is_short(c) || has_short_place(s)) &&
           !refuse_origin(s, c->origin);
}

/* Undoes what take() has made so far; always false. */
static bool drop(stg_httpd *s, stg_inbound *c, int fd, bool has_reserve)
{
    if (c != NULL && c->origin != NULL)
        stg_origin_release(c->origin);
    if (c != NULL)
        stg_secure_free(c->secure);
    free(c);
    close(fd);
    if (has_reserve)
        open_reserve(s);
    return false;
}

static bool open_secure(stg_httpd *s, stg_inbound *c)
{
    if (s->tls == NULL)
        return true;
    stg_secure_refresh(s);
    return stg_secure_open(c);
}

/* Those that are only answered take no place of others. */
static bool is_full(const stg_httpd *s)
{
    return s->count - s->shorts >= s->options.connections_max;
}

/* Where there is no place for it, or no file by the shares, it is still answered,
 * for some files are left aside. */
static bool take(stg_httpd *s, int fd, const struct sockaddr *from,
                 bool has_reserve)
{
    stg_inbound *c =
        stg_process_can_watch(s->loop, fd) ? calloc(1, s->hooks->size) : NULL;

    if (c == NULL)
        return drop(s, c, fd, has_reserve);
    c->server = s;
    c->place = has_reserve                  ? STG_PLACE_RESERVE
               : is_full(s) || !has_file(s) ? STG_PLACE_SHORT
                                            : STG_PLACE_OWN;
    c->origin = stg_origin_hold(&s->origins, from);
    if (!has_place(s, c) || !open_secure(s, c) ||
        uv_tcp_init(s->loop, &c->as.tcp) != 0)
        return drop(s, c, fd, has_reserve);
    join(s, c);
    if (uv_tcp_open(&c->as.tcp, fd) != 0)
        close(fd);
    return stg_inbound_open(c);
}

bool stg_httpd_adopt(stg_httpd *s, int fd, const struct sockaddr *from)
{
    return take(s, fd, from, false);
}

static int accept_one(stg_httpd *s, struct sockaddr_storage *from)
{
    socklen_t size = sizeof *from;

    from->ss_family = AF_UNSPEC;
    return accept4(s->fd, (struct sockaddr *)from, &size,
                   SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS ||
           error == ENOMEM;
}

/* The file in reserve is for an answer, after which it is free again. It is
 * closed for a moment, so that accept4() has one. */
static bool accept_by_reserve(stg_httpd *s)
{
    struct sockaddr_storage from;
    int fd;

    if (s->reserve < 0)
        return false;
    close(s->reserve);
    s->reserve = -1;
    fd = accept_one(s, &from);
    if (fd < 0) {
        open_reserve(s);
        return false;
    }
    (void)take(s, fd, (struct sockaddr *)&from, true);
    return true;
}

/* Whether room is made for one that is known to wait: the loop has said so, and
 * none was accepted since. (Without a file the system says so first, and that
 * nobody waits second.) */
static bool find_file(stg_httpd *s, bool is_awaited)
{
    return is_awaited &&
           (evict_idle(s) || accept_by_reserve(s) || free_short(s) || rest(s));
}

static bool find_place(stg_httpd *s, bool is_awaited)
{
    return !is_full(s) ||
           (is_awaited && (make_room(s) || has_short_place(s) || rest(s)));
}

/* False: there are none, or no file for one. */
static bool accept_next(stg_httpd *s, bool is_awaited)
{
    struct sockaddr_storage from;
    int fd = accept_one(s, &from);

    if (fd >= 0) {
        (void)stg_httpd_adopt(s, fd, (struct sockaddr *)&from);
        return true;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return false;
    // Any other error is one of that connection.
    return !is_shortage(errno) || find_file(s, is_awaited);
}

static void accept_some(uv_poll_t *poll, int status, int events)
{
    stg_httpd *s = poll->data;

    (void)status;
    (void)events;
    for (int i = 0;
         i < ACCEPTS_MAX && find_place(s, i == 0) && accept_next(s, i == 0);
         i++)
        ;
}

/* -- open and close -------------------------------------------------------- */

static bool evict(void *server)
{
    return evict_idle(server);
}

static int open_listener(stg_httpd *s)
{
    int error;

    if (s->fd < 0)
        return 0;
    error = uv_poll_init(s->loop, &s->listener, s->fd);
    if (error != 0) {
        close(s->fd);
        s->fd = -1;
        return error;
    }
    s->listener.data = s;
    s->handles++;
    return uv_poll_start(&s->listener, UV_READABLE, accept_some);
}

stg_status stg_httpd_open(stg_httpd *s, uv_loop_t *loop, int fd,
                          const stg_httpd_hooks *hooks, void *ctx,
                          const stg_httpd_options *o, stg_error *err)
{
    int error;

    s->loop = loop;
    s->hooks = hooks;
    s->ctx = ctx;
    s->options = *o;
    s->fd = fd;
    s->files = o->files != NULL ? o->files : &s->own_files;
    s->files->evict_caller = evict;
    s->files->callers_ctx = s;
    s->rest.passed = pass_rest;
    s->date_s = -1;
    stg_list_init(&s->connections);
    stg_list_init(&s->heading);
    stg_list_init(&s->idle);
    stg_list_init(&s->passing);
    stg_list_init(&s->contexts);
    stg_origins_init(&s->origins);
    stg_deadlines_init(&s->deadlines, loop);
    // The deadlines. The listener and each connection count one more, and the
    // last to be released tells that the server is closed.
    s->handles = 1;
    open_reserve(s);
    error = open_listener(s);
    if (error != 0)
        return stg_hub_refuse(err, STG_IO, "the server does not start: %s",
                              uv_strerror(error));
    return stg_httpd_change_tls(s, &o->tls, err);
}

void stg_httpd_limit(stg_httpd *s, uint32_t connections_max,
                     uint32_t address_connections_max)
{
    s->options.connections_max = connections_max;
    s->options.address_connections_max = address_connections_max;
    while (s->count - s->shorts > connections_max && make_room(s))
        ;
    wake(s);
}

void stg_httpd_stop(stg_httpd *s)
{
    s->is_stopping = true;
}

void stg_httpd_release(stg_httpd *s)
{
    if (--s->handles > 0)
        return;
    if (s->tls != NULL)
        stg_tls_context_release(s->tls);
    free(s->records);
    s->closed(s->closed_ctx);
}

static void release(void *server)
{
    stg_httpd_release(server);
}

static void close_listener(uv_handle_t *handle)
{
    stg_httpd *s = handle->data;

    close(s->fd);
    stg_httpd_release(s);
}

/* Connections are closed without an answer; who wants to answer stops the
 * server before. */
void stg_httpd_close(stg_httpd *s, void (*closed)(void *ctx), void *ctx)
{
    stg_link *first;

    s->closed = closed;
    s->closed_ctx = ctx;
    s->is_closing = true;
    while ((first = stg_list_first(&s->connections)) != NULL)
        stg_inbound_close(STG_HOLDER(first, stg_inbound, link));
    s->files->evict_caller = NULL;
    if (s->reserve >= 0)
        close(s->reserve);
    if (s->fd >= 0)
        uv_close((uv_handle_t *)&s->listener, close_listener);
    stg_deadlines_close(&s->deadlines, release, s);
}
