/* send.h - what the parts of `stagger send` share: its settings.
 *
 *   send_input      the file, or standard input, line by line
 *   send_batch      lines as the batch that the hub takes
 *   send_post       one request, retried until it is answered
 *   send_publisher  a message, or batch after batch, and what came of them
 *   send_progress   the line on the terminal */
#ifndef STAGGER_CLI_SEND_SEND_H
#define STAGGER_CLI_SEND_SEND_H

#include <stagger/policy.h>

#include <stdint.h>

#include "base/span.h"
#include "cli/remote.h"

enum { SEND_ID_MAX = 200, SEND_HEADERS_MAX = 64, SEND_IN_FLIGHT_MAX = 64 };

typedef enum send_form {
    SEND_WHOLE,  /* the input is one message */
    SEND_LINES,  /* each line is one */
    SEND_NDJSON, /* each line is one as the hub's batches have them */
} send_form;

typedef struct send_header {
    stg_span name, value;
} send_header;

typedef struct send_options {
    send_form form;
    const char *file; /* NULL: standard input */
    const char *key, *type;
    stg_remote_options remote; /* its URL: the paths of the API stand behind */
    char id[SEND_ID_MAX + 1]; /* the key, or with lines the beginning of keys */
    bool has_own_id;          /* it was given */
    send_header headers[SEND_HEADERS_MAX];
    size_t header_count;
    uint32_t in_flight;
    stg_policy policy;
} send_options;

#endif
