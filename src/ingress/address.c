#include "ingress/address.h"
#include "base/refuse.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* What `listen` says: an address of IP in numbers and a port, or a path of
 * this machine (unix:/path). No resolver is asked, so of names only
 * `localhost` is known.
 *
 * Other files ask here who could reach the listener (without a token file only
 * this machine may, see options.c), and whether a target's host and port lead
 * back to the hub itself. */

static stg_status refuse(stg_error *err, stg_status status, const char *text,
                         const char *why)
{
    return stg_hub_refuse(err, status, "listen=%.80s: %s", text, why);
}

/* -- text -------------------------------------------------------------------- */

static bool read_port(const char *text, in_port_t *port)
{
    unsigned number = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = number * 10 + (unsigned)(*text - '0');
        if (number > UINT16_MAX)
            return false;
    }
    *port = htons((uint16_t)number);
    return true;
}

/* The host between its brackets, or up to the last colon; *port behind it. */
static bool split(const char *text, char *host, size_t room, const char **port)
{
    const char *colon = strrchr(text, ':'), *end = colon;
    bool is_bracketed = text[0] == '[';

    if (colon == NULL)
        return false;
    if (is_bracketed) {
        text++;
        end = colon - 1;
        if (end < text || *end != ']')
            return false;
    }
    if ((size_t)(end - text) >= room)
        return false;
    memcpy(host, text, (size_t)(end - text));
    host[end - text] = '\0';
    *port = colon + 1;
    // So that 0::1:80 is not read as an address and a port.
    return is_bracketed == (strchr(host, ':') != NULL);
}

bool stg_address_is_path(const stg_listen_address *a)
{
    return a->any.sa_family == AF_UNIX;
}

/* -1: it is no path; 0: it is a wrong one. */
static int read_path(stg_listen_address *a, const char *text)
{
    static const char scheme[] = "unix:";
    const char *path = text + sizeof scheme - 1;

    if (strncmp(text, scheme, sizeof scheme - 1) != 0)
        return -1;
    memset(a, 0, sizeof *a);
    a->any.sa_family = AF_UNIX;
    if (path[0] != '/' || strlen(path) >= sizeof a->un.sun_path)
        return 0;
    memcpy(a->un.sun_path, path, strlen(path));
    return 1;
}

/* localhost is 127.0.0.1, whatever the system's resolver says. */
static bool read_host(stg_listen_address *a, const char *host)
{
    memset(a, 0, sizeof *a);
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    a->any.sa_family = strchr(host, ':') == NULL ? AF_INET : AF_INET6;
    if (a->any.sa_family == AF_INET)
        return inet_pton(AF_INET, host, &a->v4.sin_addr) == 1;
    return inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1;
}

/* No names: what a hub listens on must not depend on a name server. */
stg_status stg_address_parse(stg_listen_address *a, const char *text,
                             stg_error *err)
{
    char host[INET6_ADDRSTRLEN];
    const char *port;
    in_port_t number = 0;
    int path = read_path(a, text);

    if (path > 0)
        return STG_OK;
    if (path == 0)
        return refuse(err, STG_INVALID, text,
                      "expected unix: and an absolute path of at most 107 "
                      "bytes, like unix:/run/stagger/hub.sock");
    if (!split(text, host, sizeof host, &port) || !read_host(a, host) ||
        !read_port(port, &number))
        return refuse(
            err, STG_INVALID, text,
            "expected address:port, in numbers, like 127.0.0.1:8080 or "
            "[::1]:8080, where port 0 picks a free one; or "
            "unix:/path");
    if (a->any.sa_family == AF_INET)
        a->v4.sin_port = number;
    else
        a->v6.sin6_port = number;
    return STG_OK;
}

uint16_t stg_address_port(const stg_listen_address *a)
{
    if (stg_address_is_path(a))
        return 0;
    return ntohs(a->any.sa_family == AF_INET ? a->v4.sin_port
                                             : a->v6.sin6_port);
}

const char *stg_address_print(const stg_listen_address *a,
                              char text[STG_ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "";
    bool is_v4 = a->any.sa_family == AF_INET;

    if (stg_address_is_path(a)) {
        snprintf(text, STG_ADDRESS_TEXT_MAX, "unix:%s", a->un.sun_path);
        return text;
    }
    inet_ntop(a->any.sa_family,
              is_v4 ? (const void *)&a->v4.sin_addr : &a->v6.sin6_addr, host,
              sizeof host);
    snprintf(text, STG_ADDRESS_TEXT_MAX, is_v4 ? "%s:%u" : "[%s]:%u", host,
             (unsigned)stg_address_port(a));
    return text;
}

bool stg_address_is_loopback(const stg_listen_address *a)
{
    const unsigned char *v6 = a->v6.sin6_addr.s6_addr;

    if (stg_address_is_path(a))
        return true;
    if (a->any.sa_family == AF_INET)
        return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr) && v6[12] == 127);
}

/* -- who is there ------------------------------------------------------------ */

/* IPv4 as ::ffff:a.b.c.d. */
static struct in6_addr mapped(const stg_listen_address *a)
{
    struct in6_addr to = a->v6.sin6_addr;

    if (a->any.sa_family == AF_INET6)
        return to;
    memset(&to, 0, sizeof to);
    to.s6_addr[10] = to.s6_addr[11] = 0xff;
    memcpy(to.s6_addr + 12, &a->v4.sin_addr, 4);
    return to;
}

static bool is_same_host(const stg_listen_address *a,
                         const stg_listen_address *b)
{
    struct in6_addr left = mapped(a), right = mapped(b);

    return memcmp(&left, &right, sizeof left) == 0;
}

/* 0.0.0.0 or ::, of its own family or of both. */
static bool is_everywhere(const stg_listen_address *a,
                          const stg_listen_address *to)
{
    struct in6_addr host = mapped(to);

    if (a->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
    return a->v4.sin_addr.s_addr == INADDR_ANY && IN6_IS_ADDR_V4MAPPED(&host);
}

/* Whether one of this machine's interfaces has the address. */
static bool is_machines(const stg_listen_address *to)
{
    struct ifaddrs *all, *i;
    bool is_one = false;

    if (getifaddrs(&all) != 0)
        return false;
    for (i = all; i != NULL && !is_one; i = i->ifa_next) {
        stg_listen_address a;

        if (i->ifa_addr == NULL || (i->ifa_addr->sa_family != AF_INET &&
                                    i->ifa_addr->sa_family != AF_INET6))
            continue;
        memcpy(&a, i->ifa_addr,
               i->ifa_addr->sa_family == AF_INET ? sizeof a.v4 : sizeof a.v6);
        is_one = is_same_host(&a, to);
    }
    freeifaddrs(all);
    return is_one;
}

/* Names but localhost are not looked up: a target that leads back here by its
 * name is not noticed, and ends by its hops (check.c). */
bool stg_address_reaches(const stg_listen_address *a, const char *host,
                         uint16_t port)
{
    bool is_localhost = strcasecmp(host, "localhost") == 0;
    stg_listen_address to;

    if (port == 0 || port != stg_address_port(a))
        return false;
    if (!read_host(&to, is_localhost ? "localhost" : host))
        return false;
    if (is_localhost && stg_address_is_loopback(a))
        return true;
    if (is_everywhere(a, &to))
        return stg_address_is_loopback(&to) || is_machines(&to);
    return is_same_host(a, &to);
}

/* -- sockets ----------------------------------------------------------------- */

/* Says what to do, and not just what happened: these are the errors of a first
 * start. */
static const char *advice(const stg_listen_address *a, int error)
{
    switch (error) {
    case EADDRINUSE:
        return "another program listens there; stop it, or choose another "
               "port (ss -ltnp shows who it is; ss -lxp of a path)";
    case EACCES:
        return stg_address_is_path(a)
                   ? "not permitted; its directory must be writable for the "
                     "user who listens"
                   : "not permitted; ports below 1024 need "
                     "CAP_NET_BIND_SERVICE (AmbientCapabilities= of a unit of "
                     "systemd), or choose a higher one";
    case EEXIST:
        return "a file that is not a socket has this name; remove it, or "
               "choose another path";
    case EADDRNOTAVAIL:
        return "this machine has no such address (ip address shows those it "
               "has)";
    case EAFNOSUPPORT:
        return "this machine has no IPv6; listen on an IPv4 address";
    default:
        return strerror(error);
    }
}

/* Tells whether the path names a socket itself, and not by a link. */
static bool address_look(const stg_listen_address *a, struct stat *s)
{
    return lstat(a->un.sun_path, s) == 0 && S_ISSOCK(s->st_mode);
}

/* Removes the name if it still is that of the socket with this identity. */
static void address_remove(const stg_listen_address *a, dev_t device,
                           ino_t inode)
{
    struct stat s;

    if (address_look(a, &s) && s.st_dev == device && s.st_ino == inode)
        (void)unlink(a->un.sun_path);
}

/* Removes the socket that a killed hub has left: a refused connection says that
 * nobody listens there. In any other case the file stays, and bind() says what
 * is wrong. Connecting must not wait: a listener that is stopped, with a full
 * backlog, would hold it up for as long. */
static void address_remove_stale(const stg_listen_address *a)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat before;

    if (fd < 0)
        return;
    if (address_look(a, &before) && connect(fd, &a->any, sizeof a->un) != 0 &&
        errno == ECONNREFUSED)
        address_remove(a, before.st_dev, before.st_ino);
    close(fd);
}

void stg_address_leave(const stg_listen_address *a)
{
    if (stg_address_is_path(a) && a->inode != 0)
        address_remove(a, a->device, a->inode);
}

/* Binds to the path, and notes the identity of the socket that is made. errno is
 * EEXIST where another kind of file is in the way. */
static bool address_bind_path(int fd, stg_listen_address *a)
{
    struct stat s;

    a->inode = 0;
    address_remove_stale(a);
    if (bind(fd, &a->any, sizeof a->un) == 0) {
        if (address_look(a, &s)) {
            a->device = s.st_dev;
            a->inode = s.st_ino;
        }
        return true;
    }
    if (errno == EADDRINUSE && lstat(a->un.sun_path, &s) == 0)
        errno = S_ISSOCK(s.st_mode) ? EADDRINUSE : EEXIST;
    return false;
}

/* Returns the socket; -1: errno says why. */
static int open_socket(const stg_listen_address *a)
{
    return socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  0);
}

static bool bind_socket(int fd, stg_listen_address *a)
{
    int yes = 1, no = 0;
    bool is_v4 = a->any.sa_family == AF_INET;

    if (stg_address_is_path(a))
        return address_bind_path(fd, a);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    // [::] is everywhere, whatever the system's default.
    if (!is_v4)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    return bind(fd, &a->any, is_v4 ? sizeof a->v4 : sizeof a->v6) == 0;
}

/* Binds to any free port, so that a hub that runs there is no failure. A path
 * is not tried: it would have to be created. */
stg_status stg_address_check_host(const stg_listen_address *a, stg_error *err)
{
    stg_listen_address host = *a;
    char text[STG_ADDRESS_TEXT_MAX];
    int fd, error;

    if (stg_address_is_path(a)) // who starts it may have other rights there
        return STG_OK;
    stg_address_print(a, text);
    if (a->any.sa_family == AF_INET)
        host.v4.sin_port = 0;
    else
        host.v6.sin6_port = 0;
    fd = open_socket(&host);
    error = fd < 0 || !bind_socket(fd, &host) ? errno : 0;
    if (fd >= 0)
        close(fd);
    return error == EADDRNOTAVAIL || error == EAFNOSUPPORT
               ? refuse(err, STG_INVALID, text, advice(a, error))
               : STG_OK;
}

stg_status stg_address_listen(stg_listen_address *a, int *fd, stg_error *err)
{
    char text[STG_ADDRESS_TEXT_MAX];
    socklen_t size = sizeof a->un;
    int error;

    stg_address_print(a, text);
    *fd = open_socket(a);
    if (*fd < 0)
        return refuse(err, STG_IO, text, advice(a, errno));
    if (bind_socket(*fd, a) && listen(*fd, SOMAXCONN) == 0 &&
        getsockname(*fd, &a->any, &size) == 0)
        return STG_OK;
    // What is not permitted stays so; a port may be free at another start.
    error = errno;
    stg_address_leave(a);
    close(*fd);
    return refuse(err,
                  error == EEXIST ? STG_INVALID : stg_hub_file_status(error),
                  text, advice(a, error));
}
