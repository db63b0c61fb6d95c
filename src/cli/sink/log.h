/* log.h - a line of JSON for each receipt, appended to a file.
 *
 * Lines are gathered and written before the answers go out, so that who has an
 * answer finds its line. Each line is
 *
 *   {"time":1763728800.123456,"id":"..","attempt":1,"key":null,
 *    "method":"POST","path":"/t/1","status":503,"size":1024,"sha256":".."}
 *
 * time: seconds since 1970, when the request had been read. id: Stagger-Message
 * or else Idempotency-Key, null without. attempt: how often this id came to
 * this path. key: Stagger-Key. status: a number, "reset" or "hang". Texts are
 * cut at SINK_TEXT_MAX - 1 bytes. */
#ifndef STAGGER_CLI_SINK_LOG_H
#define STAGGER_CLI_SINK_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/parcel.h"

enum { SINK_TEXT_MAX = 256, SINK_LOG_MAX = 65536 };

typedef struct sink_receipt {
    stg_span method, path, id, key; /* of size 0: none */
    uint64_t attempt;
    const char *answered; /* "200", "reset", "hang" */
    uint64_t size;
    const unsigned char *sha256; /* 32 bytes */
} sink_receipt;

typedef struct sink_log {
    int file; /* -1: there is no log */
    char lines[SINK_LOG_MAX];
    size_t size;
    int error; /* errno of the write that failed */
} sink_log;

/* Returns 0 or errno. path NULL: no log. */
int stg_sink_log_open(sink_log *l, const char *path);
void stg_sink_log_close(sink_log *l);

static inline bool stg_sink_log_is_open(const sink_log *l)
{
    return l->file >= 0;
}

void stg_sink_log_add(sink_log *l, const sink_receipt *r);

/* Writes what was gathered. After an error it is thrown away: see error. */
void stg_sink_log_flush(sink_log *l);

#endif
