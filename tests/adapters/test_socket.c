/* Real sockets whose other end hangs, closes, or is not there. */
#include <stagger/socket.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/time.h>
#include <unistd.h>

#include <stagger/env.h>
#include <stagger/loop.h>

#include "tests/adapters/story.h"
#include "tests/harness.h"

static int ends[2] = {-1, -1}; /* ours, and the other one */
static int listening = -1;
static stg_ns begun_at;

static stg_ns now(void)
{
    return stg_env_system()->now(NULL);
}

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void shut_all(void)
{
    shut(&ends[0]);
    shut(&ends[1]);
    shut(&listening);
}

/* Closes what the last test has left, and connects two ends. */
static void open_pair(void)
{
    shut_all();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    begun_at = now();
}

/* ends[0] is not connected; its address is that of a socket that listens if
 * backlog is not negative. */
static struct sockaddr_in open_tcp(int backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;

    shut_all();
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(listening >= 0 && ends[0] >= 0);
    CHECK(bind(listening, (struct sockaddr *)&address, length) == 0);
    CHECK(backlog < 0 || listen(listening, backlog) == 0);
    CHECK(getsockname(listening, (struct sockaddr *)&address, &length) == 0);
    begun_at = now();
    return address;
}

static stg_outcome connect_to(int fd, const struct sockaddr_in *address,
                              stg_ns end_at)
{
    return stg_socket_connect(fd, (const struct sockaddr *)address,
                              sizeof *address, end_at);
}

static bool is_blocking(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

/* The attempt took its time, and no longer than a busy machine makes it. */
static void check_took(stg_ns least)
{
    CHECK(now() - begun_at >= least);
    CHECK(now() - begun_at < STG_MIN);
}

TEST(socket, connects_and_stays_in_its_mode)
{
    struct sockaddr_in address = open_tcp(8);

    CHECK_INT(connect_to(ends[0], &address, STG_NEVER).fault, STG_FAULT_NONE);
    CHECK(is_blocking(ends[0]));
    shut(&ends[0]);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK_INT(connect_to(ends[0], &address, stg_socket_end_at(STG_MIN)).fault,
              STG_FAULT_NONE);
    CHECK(!is_blocking(ends[0]));
    shut_all();
}

TEST(socket, says_why_it_cannot_connect)
{
    struct sockaddr_in address = open_tcp(-1);
    stg_outcome o = connect_to(ends[0], &address, stg_socket_end_at(STG_MIN));

    CHECK_INT(o.fault, STG_FAULT_REFUSED);
    CHECK_INT(o.code, ECONNREFUSED);
    CHECK(is_blocking(ends[0]));
    shut(&ends[0]);
    CHECK_INT(connect_to(-1, &address, STG_NEVER).fault, STG_FAULT_INVALID);
    shut_all();
}

/* Linux drops what comes to a queue that is full. */
TEST(socket, ends_a_connect_that_hangs)
{
    struct sockaddr_in address = open_tcp(0);
    int others[4];
    stg_outcome o;

    for (int i = 0; i < 4; i++) {
        others[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(others[i], (struct sockaddr *)&address, sizeof address);
    }
    o = connect_to(ends[0], &address, stg_socket_end_at(50 * STG_MS));
    CHECK_INT(o.fault, STG_FAULT_CONNECT_TIMEOUT);
    CHECK(is_blocking(ends[0]));
    check_took(50 * STG_MS);
    for (int i = 0; i < 4; i++)
        close(others[i]);
    shut_all();
}

TEST(socket, sends_all_and_receives_what_came)
{
    char text[16] = "";
    size_t size = sizeof text;

    open_pair();
    CHECK_INT(stg_socket_send(ends[1], "hello", 5, STG_NEVER).fault,
              STG_FAULT_NONE);
    CHECK_INT(stg_socket_receive(ends[0], text, &size, STG_NEVER).fault,
              STG_FAULT_NONE);
    CHECK_U64(size, 5);
    CHECK_STR(text, "hello");
    shut(&ends[1]);
    CHECK_INT(stg_socket_receive(ends[0], text, &size, STG_NEVER).fault,
              STG_FAULT_NONE);
    CHECK_U64(size, 0); // the end of the stream
    CHECK_INT(stg_socket_receive(ends[0], text, &size, STG_NEVER).fault,
              STG_FAULT_INVALID);
    CHECK_INT(stg_socket_send(ends[0], "hello", 5, STG_NEVER).fault,
              STG_FAULT_RESET); // and no SIGPIPE
    shut_all();
}

TEST(socket, ends_a_receive_that_hangs)
{
    char text[16];
    size_t size = sizeof text;

    open_pair();
    CHECK_INT(
        stg_socket_receive(ends[0], text, &size, stg_socket_end_at(50 * STG_MS))
            .fault,
        STG_FAULT_TIMEOUT);
    CHECK_U64(size, 0);
    check_took(50 * STG_MS);
    shut_all();
}

TEST(socket, ends_a_send_that_hangs)
{
    static const char much[1 << 22]; // more than any buffer on the way

    open_pair();
    CHECK_INT(stg_socket_send(ends[0], much, sizeof much,
                              stg_socket_end_at(50 * STG_MS))
                  .fault,
              STG_FAULT_TIMEOUT);
    CHECK(is_blocking(ends[0]));
    check_took(50 * STG_MS);
    shut_all();
}

/* However often there is a byte to read. */
TEST(socket, ends_a_peer_that_never_stops)
{
    stg_ns end_at;
    stg_outcome o;
    char byte;

    open_pair();
    end_at = stg_socket_end_at(50 * STG_MS);
    do {
        size_t size = 1;

        CHECK(send(ends[1], "x", 1, 0) == 1);
        o = stg_socket_receive(ends[0], &byte, &size, end_at);
    } while (o.fault == STG_FAULT_NONE);
    CHECK_INT(o.fault, STG_FAULT_TIMEOUT);
    check_took(50 * STG_MS);
    shut_all();
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

TEST(socket, goes_on_after_a_signal)
{
    struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0}, {0}};
    struct sigaction count = {.sa_handler = count_signal}, before;
    char text[16];
    size_t size = sizeof text;
    stg_outcome o;

    open_pair();
    CHECK(sigaction(SIGALRM, &count, &before) == 0);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    o = stg_socket_receive(ends[0], text, &size,
                           stg_socket_end_at(60 * STG_MS));
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    CHECK_INT(o.fault, STG_FAULT_TIMEOUT);
    CHECK(signals > 0);
    check_took(60 * STG_MS);
    shut_all();
}

TEST(socket, limits_what_others_read_and_write)
{
    struct timeval t;
    socklen_t length = sizeof t;
    char byte;

    open_pair();
    CHECK_INT(stg_socket_limit(ends[0], stg_socket_end_at(30 * STG_MS)).fault,
              STG_FAULT_NONE);
    errno = 0;
    CHECK(read(ends[0], &byte, 1) == -1);
    CHECK_INT(stg_failed_errno(errno).fault, STG_FAULT_TIMEOUT);
    CHECK(now() - begun_at >= 20 * STG_MS); // the kernel counts in ticks
    CHECK(getsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &t, &length) == 0);
    CHECK(t.tv_sec == 0 && t.tv_usec > 0);
    CHECK_INT(stg_socket_limit(ends[0], STG_NEVER).fault, STG_FAULT_NONE);
    CHECK(getsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &t, &length) == 0);
    CHECK(t.tv_sec == 0 && t.tv_usec == 0);
    CHECK_INT(stg_socket_limit(ends[0], stg_socket_end_at(400 * STG_DAY)).fault,
              STG_FAULT_NONE);
    CHECK_INT(stg_socket_limit(ends[0], now()).fault, STG_FAULT_TIMEOUT);
    CHECK_INT(stg_socket_limit(-1, STG_NEVER).fault, STG_FAULT_INVALID);
    shut_all();
}

static stg_outcome ask(const struct sockaddr_in *address, stg_ns end_at)
{
    char text[16];
    size_t size = sizeof text;
    stg_outcome o;

    shut(&ends[0]);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    o = connect_to(ends[0], address, end_at);
    if (o.fault == STG_FAULT_NONE)
        o = stg_socket_send(ends[0], "hello", 5, end_at);
    if (o.fault == STG_FAULT_NONE)
        o = stg_socket_receive(ends[0], text, &size, end_at);
    return o;
}

TEST(socket, keeps_to_the_time_of_each_attempt)
{
    stg_policy policy =
        policy_of("fixed base=0 attempts=3 attempt-timeout=30ms");
    struct sockaddr_in silent = open_tcp(8);
    stg_loop r;

    stg_loop_begin(&r, &policy, NULL);
    while (stg_loop_again(&r))
        stg_loop_report(&r,
                        ask(&silent, stg_socket_end_at(stg_loop_timeout(&r))));
    CHECK_INT(stg_loop_result(&r).attempts, 3);
    CHECK_INT(stg_loop_result(&r).last.fault, STG_FAULT_TIMEOUT);
    check_took(90 * STG_MS);
    shut_all();
}
