/* A target's endpoint: its options checked, the fixed part of its requests'
 * heads made once, and its pool of connections. The connection that was used last
 * is taken first; one that is closed by the other side while it is idle costs no
 * attempt. An endpoint that is retired goes with its last exchange. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <stagger/stagger.h>

#include "base/refuse.h"
#include "base/text.h"
#include "core/writer.h"
#include "http/header.h"
#include "http/internal.h"
#include "http/proxy.h"

stg_endpoint_options stg_endpoint_options_default(const char *url)
{
    return (stg_endpoint_options){
        .url = url,
        .method = "POST",
        .resolve_timeout = 5 * STG_S,
        .connect_timeout = 5 * STG_S,
        .tls_timeout = 10 * STG_S,
        .write_timeout = STG_NEVER,
        .first_byte_timeout = STG_NEVER,
        .idle_max = STG_MIN,
        .age_max = 10 * STG_MIN,
        .idle_count_max = 64,
        .answer_max = 64 * 1024,
        .excerpt_max = 1024,
    };
}

/* -- the options ----------------------------------------------------------- */

static stg_status check_time(const char *key, stg_ns time, stg_error *err)
{
    if (time != STG_NEVER && (time < STG_MS || time > STG_DAY))
        return stg_refuse_duration(err, key, time, "1ms to 1d");
    return STG_OK;
}

static stg_status check_times(const stg_endpoint_options *o, stg_error *err)
{
    const struct {
        const char *key;
        stg_ns time;
    } times[] = {
        {"resolve_timeout", o->resolve_timeout},
        {"connect_timeout", o->connect_timeout},
        {"tls_timeout", o->tls_timeout},
        {"write_timeout", o->write_timeout},
        {"first_byte_timeout", o->first_byte_timeout},
        {"idle_max", o->idle_max},
        {"age_max", o->age_max},
    };

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (check_time(times[i].key, times[i].time, err) != STG_OK)
            return STG_INVALID;
    return STG_OK;
}

static stg_status check_sizes(const stg_endpoint_options *o, stg_error *err)
{
    enum { ANSWER_MAX = 1 << 30, EXCERPT_MAX = 1 << 26 };

    if (o->answer_max > ANSWER_MAX)
        return stg_refuse_number(err, "answer_max", o->answer_max,
                                 "1 GiB at most");
    if (o->excerpt_max > EXCERPT_MAX)
        return stg_refuse_number(err, "excerpt_max", o->excerpt_max,
                                 "64 MiB at most");
    return STG_OK;
}

/* A token of RFC 9110, section 5.6.2, of any length. */
static bool is_token(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~' ||
            strchr("()<>@,;:\\\"/[]?={}", text[i]) != NULL)
            return false;
    return size > 0;
}

static stg_status check_method(const char *method, stg_error *err)
{
    if (method == NULL || strlen(method) > 32 ||
        !is_token(method, strlen(method)) || strcmp(method, "CONNECT") == 0)
        return stg_refuse(err,
                          "method: expected one of HTTP (POST, PUT, ...) "
                          "but CONNECT");
    return STG_OK;
}

static stg_status refuse_header(stg_error *err, const char *words,
                                const char *line, size_t size)
{
    stg_writer w = stg_writer_on_error(err);

    // Never its value, which may be a secret.
    stg_write_text(&w, "headers: ");
    stg_write_text(&w, words);
    stg_write_text(&w, ": ");
    stg_write_part(&w, line, size < 64 ? size : 64);
    return STG_INVALID;
}

static bool is_value(const char *at, const char *end)
{
    for (; at < end; at++)
        if (((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7f)
            return false;
    return true;
}

/* These lines go out as they are: nothing in them may end a header early, or frame
 * the request. */
static stg_status check_headers(const char *at, stg_error *err)
{
    while (at != NULL && *at != '\0') {
        const char *end = strstr(at, "\r\n"), *colon;
        size_t name_size = strcspn(at, ":\r\n");

        colon = at + name_size;
        if (end == NULL || *colon != ':' || !is_token(at, name_size))
            return refuse_header(err, "expected lines of \"Name: value\\r\\n\"",
                                 at, name_size);
        if (stg_header_is_framing((stg_span){at, name_size}))
            return refuse_header(err, "this one is the client's own", at,
                                 name_size);
        if (!is_value(colon, end))
            return refuse_header(err, "a control byte in the value", at,
                                 name_size);
        at = end + 2;
    }
    return STG_OK;
}

/* What its URL and its proxy's say. */
typedef struct whereabouts {
    stg_url url;
    stg_proxy proxy; /* of the options' proxy */
} whereabouts;

static stg_status read_proxy(const char *text, stg_proxy *proxy, stg_error *err)
{
    stg_error why;
    stg_status status;

    *proxy = (stg_proxy){.basic = NULL};
    if (text == NULL)
        return STG_OK;
    status = stg_proxy_parse(proxy, text, &why);
    return status == STG_OK
               ? STG_OK
               : stg_hub_refuse(err, status, "proxy: %.300s", why.text);
}

/* The proxy is read last, for it has memory of its own: give it back with
 * stg_proxy_free(). */
static stg_status check(const stg_endpoint_options *o, whereabouts *w,
                        stg_error *err)
{
    stg_address source;

    if (stg_url_parse(&w->url, o->url, err) != STG_OK ||
        stg_endpoint_source_read(o->source, &source, err) != STG_OK ||
        check_method(o->method, err) != STG_OK ||
        check_headers(o->headers, err) != STG_OK ||
        check_times(o, err) != STG_OK || check_sizes(o, err) != STG_OK)
        return STG_INVALID;
    if (o->server_name != NULL && *o->server_name == '\0')
        return stg_refuse(err, "server_name: it is empty");
    if ((o->certificate_file == NULL) != (o->key_file == NULL))
        return stg_refuse(err,
                          "a client's certificate needs both: the file "
                          "of the certificate and that of its key");
    return read_proxy(o->proxy, &w->proxy, err);
}

/* -- the texts ------------------------------------------------------------- */

/* Appends to *at, with a terminator; returns where it begins. */
static char *put(char **at, const char *text, size_t size)
{
    char *from = *at;

    memcpy(from, text, size);
    from[size] = '\0';
    *at += size + 1;
    return from;
}

static bool has_agent(const char *headers)
{
    stg_span lines = {headers, strlen(headers)}, line;

    while ((line = stg_header_next(&lines)).size > 0)
        if (stg_header_matches("User-Agent", stg_header_name(line)))
            return true;
    return false;
}

/* Returns the size that it needs, as snprintf() does: make() asks first, and
 * prints then. */
static int print_head(char *text, size_t size, const stg_endpoint_options *o,
                      const stg_url *url)
{
    static const char agent[] = "User-Agent: stagger/" STG_VERSION "\r\n";
    const char *headers = o->headers != NULL ? o->headers : "";
    char host[300];
    bool has_slash = url->path.size > 0 && url->path.at[0] == '/';

    (void)stg_url_print_peer(url, url->port != (url->is_tls ? 443 : 80), host,
                             sizeof host);
    return snprintf(text, size, "%s %s%.*s HTTP/1.1\r\nHost: %s\r\n%s%s",
                    o->method, has_slash ? "" : "/", (int)url->path.size,
                    url->path.at, host, has_agent(headers) ? "" : agent,
                    headers);
}

/* The name that the certificate is to be for: without the dot at the end that
 * only resolvers know. */
static stg_span name_of(const stg_endpoint_options *o, const stg_url *url)
{
    stg_span name = url->host;

    if (o->server_name != NULL)
        name = (stg_span){o->server_name, strlen(o->server_name)};
    if (name.size > 1 && name.at[name.size - 1] == '.')
        name.size--;
    return name;
}

static void set_options(stg_endpoint *e, const stg_endpoint_options *o,
                        const whereabouts *w)
{
    const stg_url *dialed = o->proxy != NULL ? &w->proxy.url : &w->url;

    e->port = dialed->port;
    e->is_to_head = strcmp(o->method, "HEAD") == 0;
    e->is_address = dialed->is_address;
}

/* Of the request for a tunnel, and of the proxy's "host:port". */
typedef struct tunnel_texts {
    char peer[300], via[300];
    size_t peer_size, via_size, size;
} tunnel_texts;

static void measure_tunnel(tunnel_texts *t, const stg_endpoint_options *o,
                           const whereabouts *w)
{
    char none[1];

    t->peer_size =
        (size_t)stg_url_print_peer(&w->url, true, t->peer, sizeof t->peer);
    t->via_size = t->size = 0;
    if (o->proxy == NULL)
        return;
    t->via_size =
        (size_t)stg_url_print_peer(&w->proxy.url, true, t->via, sizeof t->via);
    t->size = (size_t)stg_proxy_print(&w->proxy, t->peer, none, sizeof none);
}

/* The target's own address is kept, so that egress can be asked about it as well. */
static void put_tunnel(stg_endpoint *e, const tunnel_texts *t,
                       const whereabouts *w, char **at)
{
    stg_endpoint_proxy *p = e->proxy;
    struct sockaddr_storage to;

    p->peer = put(at, t->via, t->via_size);
    p->tunnel = *at;
    p->tunnel_size = t->size;
    (void)stg_proxy_print(&w->proxy, t->peer, *at, t->size + 1);
    *at += t->size + 1;
    p->has_target = stg_url_read_address(&w->url, &to);
    if (p->has_target)
        memcpy(&p->target, &to, sizeof p->target);
}

/* One block of memory: the struct, that of its proxy, and behind them all texts, each
 * with a terminator. What is common is not there yet. */
static stg_endpoint *make(const stg_endpoint_options *o, const whereabouts *w)
{
    const stg_url *url = &w->url;
    stg_span host = o->proxy != NULL ? w->proxy.url.host : url->host;
    char none[1];
    size_t head_size = (size_t)print_head(none, sizeof none, o, url);
    size_t proxy_size = o->proxy != NULL ? sizeof(stg_endpoint_proxy) : 0;
    stg_span name = name_of(o, url);
    bool is_named = name.size != host.size || // other than it is dialed
                    memcmp(name.at, host.at, host.size) != 0;
    tunnel_texts t;
    stg_endpoint *e;
    char *at;

    measure_tunnel(&t, o, w);
    e = calloc(1, sizeof *e + proxy_size + host.size + t.peer_size +
                      (is_named ? name.size : 0) + head_size + t.via_size +
                      t.size + 6);
    if (e == NULL)
        return NULL;
    set_options(e, o, w);
    stg_list_init(&e->idle);
    stg_list_init(&e->dials);
    at = (char *)(e + 1) + proxy_size;
    e->host = put(&at, host.at, host.size);
    e->peer = put(&at, t.peer, t.peer_size);
    if (o->proxy != NULL) {
        e->proxy = (stg_endpoint_proxy *)(e + 1);
        put_tunnel(e, &t, w, &at);
    }
    e->server_name = is_named ? put(&at, name.at, name.size) : e->host;
    e->is_name_address = stg_url_is_address(name);
    e->head = at;
    e->head_size = head_size;
    (void)print_head(at, head_size + 1, o, url);
    e->path_at = (uint32_t)strlen(o->method) + 1;
    e->path_size = (uint32_t)strcspn(e->head + e->path_at, " ");
    if (o->is_open_path)
        e->head_size = 0;
    return e;
}

/* -- new ------------------------------------------------------------------- */

static stg_tls_options tls_of(const stg_endpoint_options *o)
{
    return (stg_tls_options){.names = o->tls_names,
                             .ca_file = o->ca_file,
                             .certificate_file = o->certificate_file,
                             .key_file = o->key_file,
                             .is_unverified = o->is_unverified};
}

/* Contexts of TLS and names are shared by endpoints that have the same, since hubs
 * have thousands of targets at a few hosts. */
stg_status stg_endpoint_new(stg_endpoint **endpoint, stg_client *c,
                            const stg_endpoint_options *o, stg_error *err)
{
    stg_tls_options tls = tls_of(o);
    stg_tls_context *context = NULL;
    stg_endpoint_common *common;
    whereabouts w;
    stg_endpoint *e;

    if (check(o, &w, err) != STG_OK)
        return STG_INVALID;
    if (w.url.is_tls &&
        stg_tls_context_take(&context, &c->contexts, &tls, err) != STG_OK) {
        stg_proxy_free(&w.proxy);
        return STG_INVALID;
    }
    common = stg_endpoint_common_take(&c->commons, o);
    e = common == NULL ? NULL : make(o, &w);
    stg_proxy_free(&w.proxy);
    if (e == NULL) {
        if (common != NULL)
            stg_endpoint_common_give_back(common);
        if (context != NULL)
            stg_tls_context_release(context);
        (void)stg_refuse(err, "no memory for a target");
        return STG_IO;
    }
    e->client = c;
    e->common = common;
    e->tls = context;
    if (!e->is_address)
        e->name = stg_name_take(&c->names, e->host);
    if (!e->is_address && e->name == NULL) {
        stg_endpoint_free(e);
        (void)stg_refuse(err, "no memory for a target");
        return STG_IO;
    }
    *endpoint = e;
    return STG_OK;
}

/* -- the same? ------------------------------------------------------------- */

static bool has_same_texts(const stg_endpoint *a, const stg_endpoint *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->head, b->head) == 0 &&
           strcmp(a->server_name, b->server_name) == 0 &&
           (a->proxy != NULL) == (b->proxy != NULL) &&
           (a->proxy == NULL ||
            strcmp(a->proxy->tunnel, b->proxy->tunnel) == 0);
}

/* Makes another endpoint to compare with, so that what options come to is
 * decided in one place. Without memory they differ, and the endpoint is
 * replaced. */
bool stg_endpoint_matches(const stg_endpoint *e, const stg_endpoint_options *o)
{
    stg_tls_options tls = tls_of(o);
    stg_endpoint_common common = stg_endpoint_common_of(o);
    stg_endpoint *other;
    whereabouts w;
    bool is_same;

    if (check(o, &w, NULL) != STG_OK)
        return false;
    other = make(o, &w);
    is_same = other != NULL && w.url.is_tls == (e->tls != NULL) &&
              (e->tls == NULL || stg_tls_context_matches(e->tls, &tls)) &&
              e->port == other->port && e->head_size == other->head_size &&
              has_same_texts(e, other) &&
              stg_endpoint_common_matches(e->common, &common);
    free(other);
    stg_proxy_free(&w.proxy);
    return is_same;
}

/* -- the pool -------------------------------------------------------------- */

static stg_connection *take_idle(stg_endpoint *e)
{
    stg_connection *c =
        STG_HOLDER(stg_list_shift(&e->idle), stg_connection, link);

    if (c == NULL)
        return NULL;
    stg_list_remove(&c->waiting);
    e->idle_count--;
    return c;
}

static bool is_usable(stg_connection *c, stg_ns until, stg_ns now)
{
    return now < until && stg_dial_is_allowed(c) && stg_wire_is_quiet(c);
}

/* An exchange that waits for its turn to dial goes on with the socket of a connection
 * whose own exchange has ended, and which is closed. */
static void hand_over(stg_connection *from, stg_connection *to)
{
    stg_list_remove(&to->link);
    stg_list_remove(&to->waiting);
    to->socket = from->socket;
    to->socket->tcp.data = to;
    to->tls = from->tls;
    to->made_at = from->made_at;
    to->rule = from->rule;
    to->read_ms = from->read_ms;
    to->handles++;
    from->handles--;
    from->socket = NULL;
    from->tls = NULL;
    stg_connection_close(from);
    stg_connection_go_on(to);
    stg_dial_end(to);
    to->exchange.is_reused = true;
    stg_connection_begin_request(to);
}

void stg_endpoint_keep(stg_endpoint *e, stg_connection *c, stg_ns now)
{
    const stg_endpoint_common *o = e->common;
    stg_ns old_at = stg_ns_add(c->made_at, o->age_max);
    stg_connection *waiting = stg_dial_find_waiting(e);

    if (waiting != NULL && o->idle_count_max > 0 && is_usable(c, old_at, now)) {
        hand_over(c, waiting);
        return;
    }
    // One that is too old already is closed in the next turn.
    if (e->idle_count >= o->idle_count_max) {
        stg_connection_close(c);
        return;
    }
    if (c->tls != NULL)
        stg_tls_rest(c->tls);
    e->idle_count++;
    stg_list_unshift(&e->idle, &c->link);
    stg_list_push(&e->client->idle, &c->waiting);
    stg_connection_enter(c, STG_PHASE_IDLE,
                         stg_ns_min(stg_ns_add(now, o->idle_max), old_at));
    stg_dial_wake(e->client);
}

/* The one used last, since it is the least likely to have been closed; if it
 * was, that costs no attempt. */
static stg_connection *take(stg_endpoint *e, stg_ns now)
{
    stg_connection *c;

    while ((c = take_idle(e)) != NULL) {
        if (is_usable(c, c->phase_at, now))
            return c;
        stg_connection_close(c);
    }
    return stg_connection_new(e, now);
}

/* NULL: there is no memory, and done is not called. */
stg_exchange *stg_endpoint_send(stg_endpoint *e, stg_span headers,
                                stg_span body, stg_ns timeout,
                                stg_reply_fn *done, void *ctx)
{
    stg_ns now = stg_deadlines_now();
    stg_connection *c = take(e, now);

    if (c == NULL)
        return NULL;
    e->busy++;
    stg_connection_start(c, headers, body, timeout, done, ctx, now);
    return &c->exchange;
}

/* A request's head in one piece: what the endpoint has, with another path. */
stg_exchange *stg_endpoint_send_to(stg_endpoint *e, stg_span path,
                                   stg_span headers, stg_span more,
                                   stg_span body, stg_ns timeout,
                                   stg_reply_fn *done, void *ctx)
{
    const char *behind = e->head + e->path_at + e->path_size;
    stg_exchange *x = NULL;
    stg_text head = {.at = NULL};

    assert(e->head_size == 0);
    if (path.size == 0)
        path = (stg_span){e->head + e->path_at, e->path_size};
    stg_text_add(&head, e->head, e->path_at);
    stg_text_add(&head, path.at, path.size);
    stg_text_put(&head, behind);
    stg_text_add(&head, headers.at, headers.size);
    stg_text_add(&head, more.at, more.size);
    if (!head.is_short)
        x = stg_endpoint_send(e, (stg_span){head.at, head.size}, body, timeout,
                              done, ctx);
    stg_text_free(&head);
    return x;
}

void stg_endpoint_free(stg_endpoint *e)
{
    stg_connection *c;

    assert(e->busy == 0);
    while ((c = take_idle(e)) != NULL)
        stg_connection_close(c);
    if (e->name != NULL)
        stg_name_give_back(e->name);
    if (e->tls != NULL)
        stg_tls_context_release(e->tls);
    stg_endpoint_common_give_back(e->common);
    free(e);
}

/* Exchanges that are under way end as they would; the last one frees e. */
void stg_endpoint_retire(stg_endpoint *e)
{
    stg_connection *c;

    e->is_retired = true;
    while ((c = take_idle(e)) != NULL)
        stg_connection_close(c);
    if (e->busy == 0)
        stg_endpoint_free(e);
}

void stg_endpoint_leave(stg_endpoint *e)
{
    if (e->is_retired && e->busy == 0)
        stg_endpoint_free(e);
}

void stg_endpoint_look(const stg_endpoint *e, stg_endpoint_view *view)
{
    *view =
        (stg_endpoint_view){.idle = e->idle_count,
                            .busy = e->busy,
                            .connects = e->connects,
                            .is_tls = e->tls != NULL,
                            .certificate_until = e->certificate_until,
                            .own_certificate_until =
                                e->tls != NULL ? stg_tls_own_until(e->tls) : 0};
}
