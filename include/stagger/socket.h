/* socket.h - blocking sockets that keep to the end of an attempt.
 *
 * A connect(), send() or recv() that blocks cannot be stopped from outside.
 * These calls do the same and return when the attempt's time is over:
 *
 *     while (stg_loop_again(&r)) {
 *         stg_ns end_at = stg_socket_end_at(stg_loop_timeout(&r));
 *         int fd = socket(AF_INET, SOCK_STREAM, 0);
 *         stg_outcome o = stg_socket_connect(fd, address, length, end_at);
 *
 *         if (o.fault == STG_FAULT_NONE)
 *             o = stg_socket_send(fd, request, strlen(request), end_at);
 *         if (o.fault == STG_FAULT_NONE)
 *             o = stg_socket_receive(fd, answer, &size, end_at);
 *         close(fd);
 *         stg_loop_report(&r, o);
 *     }
 *
 * end_at is an instant of the system's monotonic clock, whatever the operation's
 * env; STG_NEVER is none. All calls of an attempt share one, so that a peer that
 * sends a byte now and then gains nothing by it. A signal does not end a call,
 * and a cancel is not looked at. The socket may be of any family and in either
 * mode, and stays in it; it is the caller's, who closes it after a failure.
 * Nothing is allocated. Any thread may call, one at a time for a socket. */
#ifndef STAGGER_SOCKET_H
#define STAGGER_SOCKET_H

#include <sys/socket.h>

#include <stagger/outcome.h>

STG_DECLS_BEGIN

/* The instant that is timeout from now. */
STG_API stg_ns stg_socket_end_at(stg_ns timeout);

/* As connect(). The faults are those of errno, and connect-timeout for a time
 * that is over, here or in the system. */
STG_API stg_outcome stg_socket_connect(int fd, const struct sockaddr *address,
                                       socklen_t length, stg_ns end_at);

/* Sends all of data, unlike send(), and raises no SIGPIPE. Fails as errno says,
 * or as timeout; a part may have been sent then. */
STG_API stg_outcome stg_socket_send(int fd, const void *data, size_t size,
                                    stg_ns end_at);

/* As recv(): waits for some bytes, *size at most and not 0, and sets *size to how
 * many came: 0 at the end of the stream, and where it fails: as errno says, or as
 * timeout. */
STG_API stg_outcome stg_socket_receive(int fd, void *data, size_t *size,
                                       stg_ns end_at);

/* For code that reads and writes a blocking socket itself, such as a library's:
 * sets SO_RCVTIMEO and SO_SNDTIMEO, so that each single call takes no longer than
 * the time that is left, and then fails with EAGAIN (which stg_failed_errno()
 * reads as timeout); on Linux a connect() as well, with EINPROGRESS. STG_NEVER
 * takes both away. Fails as timeout if no time is left. */
STG_API stg_outcome stg_socket_limit(int fd, stg_ns end_at);

STG_DECLS_END

#endif
