/* Blocking sockets with an end: poll() until then, and the call. connect() is
 * made on a socket that is non-blocking for that time; send() and recv() ask
 * for MSG_DONTWAIT, since a socket that was ready may not be any more. */
#include <stagger/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/time.h>

#include <stagger/env.h>

#include "adapters/internal.h"

static stg_ns time_left(stg_ns end_at)
{
    return end_at == STG_NEVER
               ? STG_NEVER
               : stg_ns_sub(end_at, stg_env_system()->now(NULL));
}

stg_ns stg_socket_end_at(stg_ns timeout)
{
    return stg_ns_add(stg_env_system()->now(NULL), timeout);
}

/* Returns 0 when the socket is ready, or an errno. */
static int wait_for(int fd, short events, stg_ns end_at)
{
    struct pollfd p = {.fd = fd, .events = events};
    stg_ns left;
    int count;

    do {
        left = time_left(end_at);
        if (left == 0)
            return ETIMEDOUT;
        count = poll(&p, 1, left == STG_NEVER ? -1 : (int)stg_to_ms(left));
    } while (count == 0 || (count < 0 && errno == EINTR));
    return count < 0 ? errno : 0;
}

/* Whether to try again what has failed. Waits until then; else *error says how it
 * ended. */
static bool is_ready(int fd, short events, stg_ns end_at, int *error)
{
    *error = errno;
    if (*error == EINTR)
        return true;
    if (*error != EAGAIN && *error != EWOULDBLOCK)
        return false;
    *error = wait_for(fd, events, end_at);
    return *error == 0;
}

/* -- connect */

static int connect_within(int fd, const struct sockaddr *address,
                          socklen_t length, stg_ns end_at)
{
    socklen_t size = sizeof(int);
    int error;

    if (connect(fd, address, length) == 0)
        return 0;
    // Interrupted, it goes on as well.
    if (errno != EINPROGRESS && errno != EINTR)
        return errno;
    error = wait_for(fd, POLLOUT, end_at);
    if (error == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    return error;
}

stg_outcome stg_socket_connect(int fd, const struct sockaddr *address,
                               socklen_t length, stg_ns end_at)
{
    int mode = fcntl(fd, F_GETFL), error;
    stg_outcome o;

    if (mode < 0 || fcntl(fd, F_SETFL, mode | O_NONBLOCK) != 0)
        return stg_failed_errno(errno);
    error = connect_within(fd, address, length, end_at);
    (void)fcntl(fd, F_SETFL, mode);
    if (error == 0)
        return stg_ok();
    o = stg_failed_errno(error);
    if (error == ETIMEDOUT)
        o.fault = STG_FAULT_CONNECT_TIMEOUT;
    return o;
}

/* -- send and receive */

/* Returns when the system has all of it, which says nothing about the peer. */
stg_outcome stg_socket_send(int fd, const void *data, size_t size,
                            stg_ns end_at)
{
    const char *at = data;
    int error;

    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (sent >= 0) {
            at += sent;
            size -= (size_t)sent;
        } else if (!is_ready(fd, POLLOUT, end_at, &error)) {
            return stg_failed_errno(error);
        }
    }
    return stg_ok();
}

stg_outcome stg_socket_receive(int fd, void *data, size_t *size, stg_ns end_at)
{
    ssize_t length;
    size_t room;
    int error;

    if (size == NULL || *size == 0)
        return stg_failed(STG_FAULT_INVALID);
    room = *size;
    *size = 0;
    if (time_left(end_at) == 0) // for a peer that always has a byte
        return stg_failed_errno(ETIMEDOUT);
    do {
        length = recv(fd, data, room, MSG_DONTWAIT);
    } while (length < 0 && is_ready(fd, POLLIN, end_at, &error));
    if (length < 0)
        return stg_failed_errno(error);
    *size = (size_t)length;
    return stg_ok();
}

/* -- for others */

/* 0 would be for ever. */
static struct timeval to_timeval(stg_ns left)
{
    left = stg_ns_min(left, INT32_MAX * STG_S);
    left = stg_ns_max(left, STG_US);
    return (struct timeval){.tv_sec = (time_t)(left / STG_S),
                            .tv_usec = (suseconds_t)(left % STG_S / STG_US)};
}

/* The system limits each call by itself, so what is left is to be set anew
 * before every call. */
stg_outcome stg_socket_limit(int fd, stg_ns end_at)
{
    stg_ns left = time_left(end_at);
    struct timeval t = {.tv_sec = 0};

    if (left == 0)
        return stg_failed_errno(ETIMEDOUT);
    if (left != STG_NEVER)
        t = to_timeval(left);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t) != 0)
        return stg_failed_errno(errno);
    return stg_ok();
}
