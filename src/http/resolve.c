/* How names are asked about: by c-ares, whose sockets the loop watches, or by
 * the system's getaddrinfo() in a thread.
 *
 * c-ares calls back from within its own calls, where it may not be closed: so
 * what it answers is put down, and told when it has returned. */
#include <ares.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/process.h"
#include "http/names.h"

/* Try after 0.5, 1, 2, 4 and 8 s: an answer to any of them counts. */
enum { FIRST_TRY_MS = 500, TRIES = 5, HOLD_MIN_S = 5, HOLD_MAX_S = 300 };

/* Then it is asked about IPv4 alone. */
enum { SLOW_MS = 250 };

enum { RECEIVE_BYTES = 1 << 20 }; /* the answers of many names at once */

/* One of c-ares, watched. */
typedef struct socket_watch {
    uv_poll_t poll;
    stg_link link;
    stg_names *names;
    ares_socket_t fd;
} socket_watch;

/* -- sockets --------------------------------------------------------------- */

static void watch_closed(uv_handle_t *handle)
{
    socket_watch *s = handle->data;
    stg_names *all = s->names;

    free(s);
    all->hooks.released(all->hooks.ctx);
}

/* An error of the watch is both events to c-ares, which finds out by itself. */
static void process(uv_poll_t *poll, int status, int events)
{
    socket_watch *s = poll->data;
    stg_names *all = s->names;
    bool reads = status < 0 || (events & UV_READABLE) != 0;
    bool writes = status < 0 || (events & UV_WRITABLE) != 0;

    ares_process_fd(all->channel, reads ? s->fd : ARES_SOCKET_BAD,
                    writes ? s->fd : ARES_SOCKET_BAD);
    stg_names_tell(all);
}

static socket_watch *find_watch(const stg_names *all, ares_socket_t fd)
{
    for (stg_link *at = stg_list_first(&all->sockets); at != NULL;
         at = stg_list_next(&all->sockets, at)) {
        socket_watch *s = STG_HOLDER(at, socket_watch, link);

        if (s->fd == fd)
            return s;
    }
    return NULL;
}

/* Without memory its answer is not heard: the question is asked again. */
static socket_watch *new_watch(stg_names *all, ares_socket_t fd)
{
    socket_watch *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    if (!stg_process_can_watch(all->loop, fd) ||
        uv_poll_init(all->loop, &s->poll, fd) != 0) {
        free(s);
        return NULL;
    }
    s->poll.data = s;
    s->names = all;
    s->fd = fd;
    stg_list_push(&all->sockets, &s->link);
    all->hooks.held(all->hooks.ctx);
    return s;
}

static void watch_socket(void *names, ares_socket_t fd, int reads, int writes)
{
    stg_names *all = names;
    socket_watch *s = find_watch(all, fd);

    if (s == NULL && (reads || writes))
        s = new_watch(all, fd);
    if (s == NULL)
        return;
    if (reads || writes) {
        (void)uv_poll_start(
            &s->poll, (reads ? UV_READABLE : 0) | (writes ? UV_WRITABLE : 0),
            process);
        return;
    }
    stg_list_remove(&s->link);
    uv_close((uv_handle_t *)&s->poll, watch_closed);
}

/* -- a channel ------------------------------------------------------------- */

static ares_channel new_channel(stg_names *all)
{
    char lookups[] = "fb"; // /etc/hosts first
    struct ares_options o = {
        .timeout = FIRST_TRY_MS,
        .tries = TRIES,
        .udp_port = all->port,
        .tcp_port = all->port,
        .lookups = lookups,
        .resolvconf_path = (char *)all->path,
        .socket_receive_buffer_size = RECEIVE_BYTES,
        .sock_state_cb = watch_socket,
        .sock_state_cb_data = all,
    };
    int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_UDP_PORT |
               ARES_OPT_TCP_PORT | ARES_OPT_LOOKUPS | ARES_OPT_RESOLVCONF |
               ARES_OPT_SOCK_RCVBUF | ARES_OPT_SOCK_STATE_CB;
    ares_channel channel;

    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
        return NULL;
    if (ares_init_options(&channel, &o, mask) == ARES_SUCCESS)
        return channel;
    ares_library_cleanup();
    return NULL;
}

static void free_channel(ares_channel channel)
{
    ares_destroy(channel); // answers what is under way
    ares_library_cleanup();
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* One that is away for a moment while it is written changes nothing. A file
 * that has changed makes a new channel. The old one answers its questions as
 * destroyed, and these are asked again. */
static void follow_file(stg_names *all, stg_ns now)
{
    ares_channel old = all->channel, fresh;
    struct stat is;

    if (stg_ns_sub(now, all->looked_at) < STG_S && old != NULL)
        return;
    all->looked_at = now;
    memset(&is, 0, sizeof is);
    if ((stat(all->path, &is) != 0 || is_same_file(&is, &all->file)) &&
        old != NULL)
        return;
    fresh = new_channel(all);
    if (fresh == NULL)
        return;
    all->file = is;
    all->channel = fresh;
    if (old != NULL)
        free_channel(old);
}

/* -- answers --------------------------------------------------------------- */

/* Whether a file, or memory, was what it was short of. c-ares calls a socket
 * that it could not open a refused connection: opening a file tells which it
 * was. */
static bool is_short(int status)
{
    int fd;

    if (status == ARES_ENOMEM || status == ARES_EFILE)
        return true;
    if (status != ARES_ECONNREFUSED)
        return false;
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)close(fd);
    return fd < 0;
}

/* The least TTL in the answer, those of CNAMEs included, between 5 s and 5
 * min. */
static stg_ns hold_of(const struct ares_addrinfo *found)
{
    int ttl = HOLD_MAX_S;

    for (const struct ares_addrinfo_node *at = found->nodes; at != NULL;
         at = at->ai_next)
        ttl = at->ai_ttl < ttl ? at->ai_ttl : ttl;
    for (const struct ares_addrinfo_cname *at = found->cnames; at != NULL;
         at = at->next)
        ttl = at->ttl < ttl ? at->ttl : ttl;
    return (stg_ns)(ttl < HOLD_MIN_S ? HOLD_MIN_S : ttl) * STG_S;
}

/* There is no such name, and the name server has said so. */
static bool is_none(int status)
{
    return status == ARES_ENOTFOUND || status == ARES_ENODATA ||
           status == ARES_EBADNAME || status == ARES_ENONAME;
}

/* One of c-ares: about both families; where that takes long about IPv4 alone,
 * for there are name servers that do not answer about IPv6. (Never one for each
 * family: search domains could find two hosts.) */
typedef struct query {
    stg_name *name;
    int family;
} query;

static void end_query(query *q)
{
    stg_name *n = q->name;

    n->names->queries--;
    free(q);
    stg_name_give_back(n);
}

static void take_addresses(stg_name *n, const struct ares_addrinfo *found)
{
    stg_ns hold = hold_of(found);

    n->is_in_turn = true;
    n->count = 0;
    for (const struct ares_addrinfo_node *at = found->nodes; at != NULL;
         at = at->ai_next)
        stg_name_add(n, at->ai_addr);
    if (n->is_asked)
        stg_name_answer(n, n->count > 0 ? 0 : UV_EAI_NONAME, "no address",
                        hold);
    else
        stg_name_keep(n, n->count > 0 ? 0 : UV_EAI_NONAME, "no address", hold);
}

/* Keeps the failure of a question. */
static void take_failure(stg_name *n, int status)
{
    if (status == ARES_EDESTRUCTION || status == ARES_ECANCELLED)
        stg_name_repeat(n, true);
    else if (is_short(status))
        stg_name_repeat(n, false);
    else if (is_none(status))
        stg_name_answer(n, UV_EAI_NONAME, ares_strerror(status),
                        HOLD_MIN_S * STG_S);
    else
        stg_name_answer(n, UV_EAI_AGAIN, ares_strerror(status), 0);
}

/* The answer about both families replaces one about IPv4 alone, never the
 * other way round. */
static void answered(void *asked, int status, int timeouts,
                     struct ares_addrinfo *found)
{
    query *q = asked;
    stg_name *n = q->name;
    bool is_known = stg_deadlines_now() < n->until_at && n->error == 0;
    bool is_whole = q->family == AF_UNSPEC;

    (void)timeouts;
    if (status == ARES_SUCCESS && (is_whole || !is_known))
        take_addresses(n, found);
    else if (status != ARES_SUCCESS && is_whole && n->is_asked)
        take_failure(n, status);
    if (status == ARES_SUCCESS)
        ares_freeaddrinfo(found);
    end_query(q);
}

static bool start_query(stg_name *n, int family)
{
    const struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT,
                                              .ai_family = family,
                                              .ai_socktype = SOCK_STREAM};
    query *q = n->names->channel == NULL ? NULL : calloc(1, sizeof *q);

    if (q == NULL)
        return false;
    q->name = n;
    q->family = family;
    n->users++;
    n->names->queries++;
    ares_getaddrinfo(n->names->channel, n->host, NULL, &hints, answered, q);
    return true;
}

/* A number that the system takes for an address: "127.1", "0x7f000001". */
static bool is_number(stg_name *n)
{
    struct sockaddr_in at = {.sin_family = AF_INET};

    if (inet_aton(n->host, &at.sin_addr) == 0)
        return false;
    stg_name_add(n, (const struct sockaddr *)&at);
    stg_name_answer(n, 0, "", HOLD_MIN_S * STG_S);
    return true;
}

static void ask_servers(stg_name *n)
{
    if (is_number(n))
        return;
    n->asked_at = stg_deadlines_now();
    stg_list_push(&n->names->slow, &n->slow);
    if (!start_query(n, AF_UNSPEC))
        stg_name_repeat(n, false);
}

static void ask_again_of_slow(stg_names *all, stg_ns now)
{
    stg_name *n;

    while ((n = STG_HOLDER(stg_list_first(&all->slow), stg_name, slow)) !=
               NULL &&
           stg_ns_sub(now, n->asked_at) >= SLOW_MS * STG_MS) {
        stg_list_remove(&n->slow);
        (void)start_query(n, AF_INET);
    }
}

/* -- the system ------------------------------------------------------------ */

/* getaddrinfo() tells no TTL, so its answers are not kept. */
static void system_answered(uv_getaddrinfo_t *request, int status,
                            struct addrinfo *found)
{
    stg_name *n = request->data;
    stg_names *all = n->names;

    n->is_in_turn = false;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
        stg_name_add(n, at->ai_addr);
    if (status == 0 && n->count == 0)
        status = UV_EAI_NONAME;
    stg_name_answer(n, status, status == 0 ? "" : uv_strerror(status), 0);
    uv_freeaddrinfo(found);
    free(request);
    stg_names_tell(all);
    all->hooks.released(all->hooks.ctx);
}

/* getaddrinfo() on a thread of libuv's pool: the loop does not wait for it. */
static void ask_system(stg_name *n)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                          .ai_socktype = SOCK_STREAM};
    uv_getaddrinfo_t *request = calloc(1, sizeof *request);
    stg_names *all = n->names;
    int error;

    if (request == NULL) {
        stg_name_repeat(n, false);
        return;
    }
    request->data = n;
    error = uv_getaddrinfo(all->loop, request, system_answered, n->host, NULL,
                           &hints);
    if (error == 0) {
        all->hooks.held(all->hooks.ctx);
        return;
    }
    free(request);
    stg_name_answer(n, error, uv_strerror(error), 0);
}

/* -- all ------------------------------------------------------------------- */

void stg_resolve_ask(stg_name *n)
{
    if (n->names->by == STG_RESOLVER_DNS)
        ask_servers(n);
    else
        ask_system(n);
}

void stg_resolve_look(stg_names *all, stg_ns now)
{
    if (all->by == STG_RESOLVER_DNS)
        follow_file(all, now);
    if (all->channel == NULL)
        return;
    ares_process_fd(all->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    ask_again_of_slow(all, now);
}

void stg_resolve_close(stg_names *all)
{
    ares_channel channel = all->channel;

    all->channel = NULL;
    if (channel != NULL)
        free_channel(channel);
}

/* Policies know the codes of the system's resolver. */
stg_outcome stg_name_outcome(int error)
{
    static const struct {
        int uv, eai;
    } codes[] = {
        {UV_EAI_AGAIN, EAI_AGAIN},
        {UV_EAI_BADFLAGS, EAI_BADFLAGS},
        {UV_EAI_FAIL, EAI_FAIL},
        {UV_EAI_FAMILY, EAI_FAMILY},
        {UV_EAI_MEMORY, EAI_MEMORY},
        {UV_EAI_NONAME, EAI_NONAME},
        {UV_EAI_SERVICE, EAI_SERVICE},
        {UV_EAI_SOCKTYPE, EAI_SOCKTYPE},
#ifdef EAI_NODATA
        {UV_EAI_NODATA, EAI_NODATA},
#endif
#ifdef EAI_ADDRFAMILY
        {UV_EAI_ADDRFAMILY, EAI_ADDRFAMILY},
#endif
    };

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].uv == error)
            return stg_failed_resolver(codes[i].eai);
    return stg_failed_errno(-error);
}
