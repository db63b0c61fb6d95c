/* batch.h - lines as a batch that the hub takes: NDJSON, each message with
 * an idempotency key that is the same whenever the line is sent again. */
#ifndef STAGGER_CLI_SEND_BATCH_H
#define STAGGER_CLI_SEND_BATCH_H

#include "cli/send/send.h"

enum { SEND_BATCH_LINES = 500, SEND_BATCH_BYTES = 1024 * 1024 };

typedef struct send_batch {
    char *text;
    size_t size, room;
    size_t count;
    uint64_t lines[SEND_BATCH_LINES]; /* where each came from, from 1 */
    uint64_t bytes;                   /* of the input */
} send_batch;

/* What all messages of --lines have, made once: the fields "key",
 * "content_type" and "headers", each behind a comma. False: no memory. */
bool stg_send_batch_fields(char **fields, const send_options *o);

typedef enum send_added {
    SEND_ADDED,
    SEND_ADD_FULL,    /* not now: the batch goes out first */
    SEND_ADD_REFUSED, /* it is no message; *why has words */
    SEND_ADD_FAILED,  /* there is no memory */
} send_added;

/* Adds line number `number`. An empty line is nothing, and added. */
send_added stg_send_batch_add(send_batch *b, const send_options *o,
                              const char *fields, stg_span line,
                              uint64_t number, const char **why);

/* Empties it, and keeps its memory. */
void stg_send_batch_clear(send_batch *b);
void stg_send_batch_free(send_batch *b);

#endif
