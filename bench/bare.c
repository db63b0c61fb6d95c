/* The floor for bench/hub.py: what the requests of a hub cost when nothing is
 * decided, kept or stored: one thread, epoll, a system call to write and one to
 * read for each request.
 *
 * usage: bare PORT CONNECTIONS SECONDS BODY
 *
 * Sends POSTs with BODY bytes to 127.0.0.1:PORT, each connection the next one
 * when the last is answered. All answers are taken to be as long as the first.
 * Prints "bare N requests N us N us CPU". */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <netinet/tcp.h>

enum { EVENTS = 1024, READ_MAX = 64 * 1024, HEAD_MAX = 512, US = 1000000 };

static const char head[] =
    "POST /t/0 HTTP/1.1\r\nHost: 127.0.0.1:65535\r\n"
    "User-Agent: stagger/0.1.0\r\n"
    "Idempotency-Key: 00c0ffee00c0ffee-1234567\r\n"
    "Stagger-Message: 00c0ffee00c0ffee-1234567\r\n"
    "Stagger-Hops: 1\r\nStagger-Attempt: 1\r\nStagger-Attempts-Max: 5\r\n"
    "Content-Type: text/plain\r\n";

typedef struct bare {
    int poll;
    struct sockaddr_in at;
    char *request;
    size_t request_size;
    size_t answer_size; /* 0: none was seen */
    uint64_t requests;
    char bytes[READ_MAX];
} bare;

typedef struct caller {
    int fd;
    size_t left; /* of the answer that is being read */
} caller;

static void fail(const char *what)
{
    fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
    exit(2);
}

static uint64_t now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * US + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t cpu_us(void)
{
    struct rusage used;

    (void)getrusage(RUSAGE_SELF, &used);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * US +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void make_request(bare *b, size_t body)
{
    size_t size = sizeof head + HEAD_MAX;

    b->request = malloc(size + body);
    if (b->request == NULL)
        fail("memory");
    b->request_size = (size_t)snprintf(
        b->request, size, "%sContent-Length: %zu\r\n\r\n", head, body);
    memset(b->request + b->request_size, 'x', body);
    b->request_size += body;
}

static void ask(const bare *b, caller *c)
{
    if (send(c->fd, b->request, b->request_size, MSG_NOSIGNAL) !=
        (ssize_t)b->request_size)
        fail("send");
    c->left = b->answer_size;
}

/* The first answer says how long they are: it comes alone. */
static void measure(bare *b, caller *c)
{
    size_t size = 0, body = 0;
    const char *end = NULL, *length;

    while (end == NULL || size < (size_t)(end - b->bytes) + 4 + body) {
        ssize_t got = recv(c->fd, b->bytes + size, HEAD_MAX - size, 0);

        if (got <= 0)
            fail("the first answer");
        size += (size_t)got;
        b->bytes[size] = '\0';
        end = strstr(b->bytes, "\r\n\r\n");
        length = strstr(b->bytes, "Content-Length: ");
        if (end != NULL && length != NULL)
            body = strtoul(length + sizeof "Content-Length:", NULL, 10);
    }
    b->answer_size = size;
}

static void open_caller(bare *b, caller *c)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    int one = 1;

    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 ||
        connect(c->fd, (struct sockaddr *)&b->at, sizeof b->at) != 0)
        fail("connect");
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (b->answer_size == 0) {
        ask(b, c);
        measure(b, c);
    }
    (void)fcntl(c->fd, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(b->poll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        fail("epoll");
}

static void take(bare *b, caller *c)
{
    ssize_t got = recv(c->fd, b->bytes, sizeof b->bytes, 0);

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0 || (size_t)got > c->left)
        fail("an answer");
    if (c->left == b->answer_size &&
        (got < 12 || memcmp(b->bytes + 8, " 200", 4) != 0))
        fail("an answer that is no 200");
    c->left -= (size_t)got;
    if (c->left > 0)
        return;
    b->requests++;
    ask(b, c);
}

int main(int argc, char **argv)
{
    static bare b;
    struct epoll_event events[EVENTS];
    uint64_t began, cpu, now, until;
    size_t count;
    caller *callers;

    if (argc != 5) {
        fputs("usage: bare PORT CONNECTIONS SECONDS BODY\n", stderr);
        return 2;
    }
    b.at = (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10))};
    b.at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    count = strtoul(argv[2], NULL, 10);
    make_request(&b, strtoul(argv[4], NULL, 10));
    callers = calloc(count, sizeof *callers);
    b.poll = epoll_create1(0);
    if (callers == NULL || b.poll < 0)
        fail("memory");
    for (size_t i = 0; i < count; i++)
        open_caller(&b, &callers[i]);
    began = now_us();
    cpu = cpu_us();
    until = began + strtoul(argv[3], NULL, 10) * US;
    for (size_t i = 0; i < count; i++)
        ask(&b, &callers[i]);
    while ((now = now_us()) < until) {
        int ready = epoll_wait(b.poll, events, EVENTS, 100);

        for (int i = 0; i < ready; i++)
            take(&b, events[i].data.ptr);
    }
    printf("bare %llu requests %llu us %llu us CPU\n",
           (unsigned long long)b.requests, (unsigned long long)(now - began),
           (unsigned long long)(cpu_us() - cpu));
    free(callers);
    free(b.request);
    return 0;
}
