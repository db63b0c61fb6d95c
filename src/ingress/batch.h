/* batch.h - many messages in one request: NDJSON, a message a line.
 *
 *     {"body": "text", "key": "order-7", "idempotency_key": "a1"}
 *     {"body_base64": "AAEC", "content_type": "application/octet-stream"}
 *     {"json": {"n": 1}, "headers": {"X-Source": "till"}}
 *     {"body": "later", "not_before": "10m", "expires": "2026-03-01T12:00:00Z"}
 *
 * A body has exactly one of three forms: text, Base64 (RFC 4648, padded), or any
 * JSON, whose bytes go on as they are. Nothing else but `key`, `content_type`,
 * `headers`, `idempotency_key`, `not_before` and `expires` (store/parcel.h); a name
 * may come once. Blank lines count but are no messages. */
#ifndef STAGGER_INGRESS_BATCH_H
#define STAGGER_INGRESS_BATCH_H

#include <stdbool.h>

#include "ingress/ask.h"
#include "store/store.h"

typedef struct stg_batch_rules {
    size_t message_max;         /* bytes of a body */
    size_t lines_max;           /* messages */
    const char *const *headers; /* see http/header.h; others are refused */
    stg_ns now;                 /* by the wall clock */
} stg_batch_rules;

typedef struct stg_batch {
    stg_append *messages; /* freed by stg_batch_free() */
    const size_t *lines;  /* where each came from, from 1 */
    size_t count;
    struct stg_batch_piece *pieces; /* headers that do not lie in the text */
    size_t more;                    /* their bytes */
} stg_batch;

/* Reads a batch. The text is changed, and the messages lie in it, so it is kept
 * as long as they are. False: nothing was read, and why says which line it was
 * (400, 413, 503 for no memory). */
bool stg_batch_parse(stg_batch *b, char *text, size_t size,
                     const stg_batch_rules *rules, stg_problem *why);

/* The memory that parsing will take beside the text. */
size_t stg_batch_cost(const char *text, size_t size,
                      const stg_batch_rules *rules);

void stg_batch_free(stg_batch *b);

#endif
