/* A target that speaks TLS and answers 200 to everything, on one thread and
 * epoll: for bench/hub.py. `stagger sink` is the one without TLS.
 *
 * usage: tls_sink CERTIFICATE KEY [COUNT]
 *
 * Prints its port. Ends with 0 when it has answered COUNT requests. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

enum { EVENTS = 256, READ_MAX = 16 * 1024, HEAD_MAX = 8 * 1024 };

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

typedef struct guest {
    SSL *ssl;
    int fd;
    size_t head_size; /* of a head that is not whole */
    uint64_t body;    /* of the request, still to come */
    bool is_in_body;
    char head[HEAD_MAX];
} guest;

typedef struct sink {
    int poll, listener;
    SSL_CTX *tls;
    uint64_t answered, count; /* 0: without an end */
    char bytes[READ_MAX];
} sink;

static void fail(const char *what)
{
    fprintf(stderr, "tls_sink: %s: %s\n", what, strerror(errno));
    ERR_print_errors_fp(stderr);
    exit(2);
}

static void watch(const sink *s, int fd, void *who)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = who};

    if (epoll_ctl(s->poll, EPOLL_CTL_ADD, fd, &event) != 0)
        fail("epoll");
}

static void open_sink(sink *s, const char *certificate, const char *key)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;

    s->tls = SSL_CTX_new(TLS_server_method());
    if (s->tls == NULL ||
        SSL_CTX_use_certificate_chain_file(s->tls, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(s->tls, key, SSL_FILETYPE_PEM) != 1)
        fail("TLS");
    SSL_CTX_set_mode(s->tls, SSL_MODE_RELEASE_BUFFERS);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->poll = epoll_create1(0);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (s->poll < 0 || s->listener < 0 ||
        bind(s->listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(s->listener, 4096) != 0 ||
        getsockname(s->listener, (struct sockaddr *)&at, &size) != 0)
        fail("listen");
    watch(s, s->listener, NULL);
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
}

static void part(guest *g)
{
    SSL_free(g->ssl);
    close(g->fd);
    free(g);
}

static void welcome(sink *s)
{
    int one = 1, fd;

    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): epoll has it
    while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
        guest *g = calloc(1, sizeof *g);

        if (g == NULL)
            fail("memory");
        g->fd = fd;
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
        g->ssl = SSL_new(s->tls);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (g->ssl == NULL || SSL_set_fd(g->ssl, fd) != 1)
            fail("TLS");
        SSL_set_accept_state(g->ssl);
        watch(s, fd, g);
    }
}

/* False: the other side takes no answers. */
static bool reply(sink *s, guest *g)
{
    if (SSL_write(g->ssl, answer, sizeof answer - 1) <= 0)
        return false;
    s->answered++;
    return true;
}

/* Takes what is there of the head that is begun. Returns how many bytes of it
 * were taken; *is_whole: it ended there. 0: it is too long. */
static size_t take_head(guest *g, const char *bytes, size_t size,
                        bool *is_whole)
{
    size_t room = HEAD_MAX - 1 - g->head_size;
    size_t taken = size < room ? size : room;
    const char *end, *length;

    memcpy(g->head + g->head_size, bytes, taken);
    g->head[g->head_size + taken] = '\0';
    end = strstr(g->head, "\r\n\r\n");
    *is_whole = end != NULL;
    if (end == NULL) {
        g->head_size += taken;
        return taken;
    }
    taken = (size_t)(end - g->head) + 4 - g->head_size;
    length = strstr(g->head, "Content-Length: ");
    g->body = length != NULL && length < end
                  ? strtoull(length + sizeof "Content-Length:", NULL, 10)
                  : 0;
    g->head_size = 0;
    return taken;
}

/* Requests, whole and not. False: the guest is to go. */
static bool take(sink *s, guest *g, const char *bytes, size_t size)
{
    while (size > 0) {
        size_t taken = g->body < size ? (size_t)g->body : size;

        if (g->is_in_body)
            g->body -= taken;
        else
            taken = take_head(g, bytes, size, &g->is_in_body);
        if (taken == 0)
            return false;
        bytes += taken;
        size -= taken;
        if (g->is_in_body && g->body == 0) {
            g->is_in_body = false;
            if (!reply(s, g))
                return false;
        }
    }
    return true;
}

static void serve(sink *s, guest *g)
{
    int size;

    while ((size = SSL_read(g->ssl, s->bytes, sizeof s->bytes)) > 0)
        if (!take(s, g, s->bytes, (size_t)size)) {
            part(g);
            return;
        }
    if (SSL_get_error(g->ssl, size) == SSL_ERROR_WANT_READ)
        return;
    ERR_clear_error();
    part(g);
}

int main(int argc, char **argv)
{
    static sink s;
    struct epoll_event events[EVENTS];

    if (argc < 3) {
        fputs("usage: tls_sink CERTIFICATE KEY [COUNT]\n", stderr);
        return 2;
    }
    s.count = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    open_sink(&s, argv[1], argv[2]);
    while (s.count == 0 || s.answered < s.count) {
        int count = epoll_wait(s.poll, events, EVENTS, -1);

        for (int i = 0; i < count; i++)
            if (events[i].data.ptr == NULL)
                welcome(&s);
            else
                serve(&s, events[i].data.ptr);
    }
    return 0;
}
