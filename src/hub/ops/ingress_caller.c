#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "hub/ops/ingress_inside.h"

/* -- origins ----------------------------------------------------------------- */

static void read_prefix(const struct sockaddr *from, unsigned char prefix[16])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

    memset(prefix, 0, 16);
    if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)from;
        bool is_mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);

        memcpy(prefix, &v6->sin6_addr, is_mapped ? 16 : 8);
    } else if (from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)from;

        memcpy(prefix, mapped, sizeof mapped);
        memcpy(prefix + sizeof mapped, &v4->sin_addr, 4);
    }
}

/* Callers choose their addresses, and must not know which share a slot. */
static stg_list *slot_of(stg_ingress *g, const unsigned char prefix[16])
{
    uint64_t hash = stg_hash(&g->origin_seed, prefix, 16);

    return &g->origins[hash & (STG_ORIGIN_SLOTS - 1)];
}

static stg_origin *find_origin(stg_ingress *g, const unsigned char prefix[16])
{
    stg_list *slot = slot_of(g, prefix);

    for (stg_link *at = stg_list_first(slot); at != NULL;
         at = stg_list_next(slot, at)) {
        stg_origin *o = STG_HOLDER(at, stg_origin, link);

        if (memcmp(o->prefix, prefix, sizeof o->prefix) == 0)
            return o;
    }
    return NULL;
}

static stg_origin *get_origin(stg_ingress *g, const unsigned char prefix[16])
{
    stg_origin *o = find_origin(g, prefix);

    if (o != NULL)
        return o;
    o = calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    memcpy(o->prefix, prefix, sizeof o->prefix);
    stg_list_push(slot_of(g, prefix), &o->link);
    return o;
}

static void leave_origin(stg_origin *o)
{
    if (--o->callers > 0)
        return;
    stg_list_remove(&o->link);
    free(o);
}

const char *stg_origin_print(const stg_origin *o, char text[INET6_ADDRSTRLEN])
{
    struct in6_addr address;

    memcpy(&address, o->prefix, sizeof address);
    if (IN6_IS_ADDR_V4MAPPED(&address))
        inet_ntop(AF_INET, o->prefix + 12, text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, o->prefix, text, INET6_ADDRSTRLEN);
    return text;
}

/* -- connections ------------------------------------------------------------- */

/* Above the quarter that is its own, the ingress takes what the targets leave:
 * an idle connection of theirs, or of another caller, makes room. */
static bool has_file(stg_ingress *g)
{
    if (stg_files_have_caller(g->files))
        return true;
    stg_files_ask_targets(g->files);
    return stg_files_have_caller(g->files) || stg_callers_relieve(g);
}

enum MHD_Result stg_caller_admit(void *ingress, const struct sockaddr *from,
                                 socklen_t size)
{
    stg_ingress *g = ingress;
    unsigned char prefix[16];
    char text[INET6_ADDRSTRLEN];
    stg_origin *o;

    (void)size;
    if (!has_file(g))
        return MHD_NO;
    read_prefix(from, prefix);
    o = find_origin(g, prefix);
    if (o == NULL || o->callers < g->options.address_connections_max)
        return MHD_YES;
    STG_LOG_REPEAT(g->options.log, STG_LOG_WARN, "connections-refused", 1,
                   stg_field_text("from", stg_origin_print(o, text)),
                   stg_field_number("connections", o->callers));
    return MHD_NO;
}

static void pass_deadline(stg_deadline *d);

static const struct sockaddr *address_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection,
                                   MHD_CONNECTION_INFO_CLIENT_ADDRESS)
        ->client_addr;
}

static stg_caller *new_caller(stg_ingress *g, struct MHD_Connection *connection)
{
    stg_caller *c = calloc(1, sizeof *c);
    unsigned char prefix[16];

    if (c == NULL)
        return NULL;
    read_prefix(address_of(connection), prefix);
    c->origin = get_origin(g, prefix);
    if (c->origin == NULL) {
        free(c);
        return NULL;
    }
    c->origin->callers++;
    c->ingress = g;
    c->connection = connection;
    c->fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
            ->connect_fd;
    c->is_first = true;
    c->deadline.passed = pass_deadline;
    stg_list_push(&g->callers, &c->link);
    g->view.connections++;
    g->files->callers++;
    stg_caller_enter(c, STG_PHASE_HEADER);
    return c;
}

static void free_caller(stg_caller *c)
{
    stg_ingress *g = c->ingress;

    stg_caller_enter(c, STG_PHASE_HEADER); // it is not busy any more
    stg_deadline_clear(&g->deadlines, &c->deadline);
    stg_list_remove(&c->link);
    leave_origin(c->origin);
    g->view.connections--;
    g->files->callers--;
    free(c);
    // At its limit the daemon listens again in the run after this one.
    stg_deadline_set(&g->deadlines, &g->turn, 0);
}

void stg_caller_notice(void *ingress, struct MHD_Connection *connection,
                       void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        // Without memory it has no caller, and its request is not answered.
        *socket_context = new_caller(ingress, connection);
    } else if (*socket_context != NULL) {
        free_caller(*socket_context);
        *socket_context = NULL;
    }
}

void *stg_caller_begin(void *ingress, const char *uri,
                       struct MHD_Connection *connection)
{
    stg_caller *c =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
            ->socket_context;

    (void)ingress;
    if (c != NULL) {
        c->has_begun = true;
        c->uri = uri;
        c->uri_size = uri == NULL ? 0 : strlen(uri);
        c->has_odd_uri = uri == NULL || strstr(uri, "%00") != NULL ||
                         strchr(uri, ' ') != NULL;
    }
    return c;
}

void stg_caller_complete(void *ingress, struct MHD_Connection *connection,
                         void **caller, enum MHD_RequestTerminationCode how)
{
    stg_caller *c = *caller;

    (void)ingress;
    (void)connection;
    (void)how;
    *caller = NULL;
    if (c == NULL)
        return;
    stg_request_drop(c);
    stg_answer_drop(c);
    c->is_first = false;
    stg_caller_enter(c, STG_PHASE_HEADER);
}

/* -- phases and time -------------------------------------------------------------------- */

static bool is_busy(stg_phase phase)
{
    return phase == STG_PHASE_WAIT || phase == STG_PHASE_ANSWER;
}

/* libmicrohttpd is not told of the end of a request's bytes that comes with the
 * last of them: so we look, now and then. */
static void set_deadline(stg_caller *c, stg_ns now)
{
    stg_ns at = c->due_at;

    if (at != STG_NEVER)
        at = stg_ns_min(at, stg_ns_add(now, STG_S));
    stg_deadline_set(&c->ingress->deadlines, &c->deadline, at);
}

void stg_caller_enter(stg_caller *c, stg_phase phase)
{
    stg_ingress *g = c->ingress;
    stg_ns now = stg_deadlines_now();
    stg_ns at = stg_ns_add(now, g->options.idle_timeout);

    g->busy += (uint32_t)is_busy(phase) - (uint32_t)is_busy(c->phase);
    if (phase == STG_PHASE_HEADER)
        c->has_begun = false;
    if (phase == STG_PHASE_BODY && c->phase != STG_PHASE_BODY)
        c->whole_at = stg_ns_add(now, g->options.request_timeout);
    if (phase == STG_PHASE_BODY)
        at = stg_ns_min(at, c->whole_at);
    if (phase == STG_PHASE_WAIT) // the store answers for itself
        at = STG_NEVER;
    c->phase = phase;
    c->due_at = at;
    set_deadline(c, now);
}

bool stg_caller_is_half_closed(const stg_caller *c)
{
    char byte;

    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void stg_caller_cut(stg_caller *c)
{
    c->is_cut = true;
    stg_deadline_clear(&c->ingress->deadlines, &c->deadline);
    (void)shutdown(c->fd, SHUT_RDWR);
}

/* Kept open, and nothing is asked. */
static bool is_idle(const stg_caller *c)
{
    return c->phase == STG_PHASE_HEADER && !c->is_first && !c->has_begun &&
           !c->is_cut;
}

bool stg_callers_relieve(stg_ingress *g)
{
    stg_caller *idle = NULL;

    for (stg_link *at = stg_list_first(&g->callers); at != NULL;
         at = stg_list_next(&g->callers, at)) {
        stg_caller *c = STG_HOLDER(at, stg_caller, link);

        if (is_idle(c) && (idle == NULL || c->due_at < idle->due_at))
            idle = c;
    }
    g->is_short = false;
    STG_LOG_REPEAT(g->options.log, STG_LOG_WARN, "fd-limit", 1,
                   stg_field_text("detail",
                                  "no file is left for a connection "
                                  "to the ingress"),
                   stg_field_number("connections", g->view.connections),
                   stg_field_bool("is_relieved", idle != NULL),
                   stg_field_text("next",
                                  "raise the limit of open files "
                                  "(LimitNOFILE=, ulimit -n)"));
    if (idle != NULL)
        stg_caller_cut(idle);
    return idle != NULL;
}

static void tell_timeout(const stg_caller *c)
{
    stg_problem p;

    stg_problem_set(&p, 408, 0, "the request did not come in time");
    stg_answer_raw(c, &p);
}

static void pass_deadline(stg_deadline *d)
{
    stg_caller *c = STG_HOLDER((void *)d, stg_caller, deadline);
    stg_ingress *g = c->ingress;
    stg_ns now = stg_deadlines_now();
    char text[INET6_ADDRSTRLEN];

    if (now < c->due_at) {
        // What has come so far will not become a request any more.
        if (c->phase != STG_PHASE_ANSWER && stg_caller_is_half_closed(c))
            stg_caller_cut(c);
        else
            set_deadline(c, now);
        return;
    }
    // One that was kept open and asks nothing more just closes.
    if (c->phase == STG_PHASE_BODY ||
        (c->phase == STG_PHASE_HEADER && (c->is_first || c->has_begun)))
        tell_timeout(c);
    if (c->phase != STG_PHASE_HEADER || c->is_first || c->has_begun) {
        g->view.cut++;
        STG_LOG_REPEAT(
            g->options.log, STG_LOG_WARN, "request-cut", 1,
            stg_field_text("from", stg_origin_print(c->origin, text)),
            stg_field_text("phase", c->phase == STG_PHASE_HEADER ? "header"
                                    : c->phase == STG_PHASE_BODY ? "body"
                                                                 : "answer"));
    }
    stg_caller_cut(c);
}
