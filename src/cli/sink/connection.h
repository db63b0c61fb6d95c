/* connection.h - one client of `stagger sink`.
 *
 * Reads a request to its end without keeping its body, notes the receipt and
 * answers, in the order of the requests: pipelined ones wait while an answer is
 * delayed or cannot be written. */
#ifndef STAGGER_CLI_SINK_CONNECTION_H
#define STAGGER_CLI_SINK_CONNECTION_H

#include <stdint.h>

#include "cli/sink/sink.h"

typedef struct sink_connection sink_connection;

/* Takes the socket, non-blocking, into the epoll of s; closes it when there is
 * no memory. */
void stg_sink_connection_open(sink *s, int socket);

/* What epoll says of it. It may be gone after this. */
void stg_sink_connection_serve(sink *s, sink_connection *c, uint32_t events);

/* Its timer is due. It may be gone after this. */
void stg_sink_connection_wake(sink *s, stg_node *timer);

/* Closes all of them. */
void stg_sink_connection_close_all(sink *s);

#endif
