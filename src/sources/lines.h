/* lines.h - standard input as a source of messages: `--from -`, a line each.
 *
 * A line is a message without its end of line ("\n" or "\r\n"); the last one
 * needs none; empty ones are skipped. A line above message_max is logged with
 * its number and skipped. Pipes, sockets, terminals and regular files; all on
 * the loop's thread but for the reading of regular files.
 *
 * Lines are appended in their order, in batches, one batch at a time. Reading
 * stops while pending_max bytes wait. A full store is asked again after a wait
 * that grows (options.backoff), so nothing is lost. A batch whose append came out
 * unknown is not sent again: it could be there twice. It ends the reading;
 * the store has called its end by then. */
#ifndef STAGGER_SOURCES_LINES_H
#define STAGGER_SOURCES_LINES_H

#include <uv.h>

#include <stagger/backoff.h>

#include "host/log.h"
#include "store/store.h"

typedef struct stg_lines stg_lines;

typedef struct stg_lines_options {
    int fd;             /* 0; not closed */
    size_t message_max; /* 1 MiB */
    size_t
        pending_max; /* bytes that are read and wait, above message_max: 8 MiB */
    size_t batch_max;         /* messages of an append: 1000 */
    const char *content_type; /* "text/plain; charset=utf-8"; NULL: none */
    stg_backoff backoff;      /* for a store that is full: the core's default */
    uint64_t seed;            /* of its jitter */

    /* stg_store_append() of a store, or what stands in for it. */
    void (*append)(void *ctx, const stg_append *messages, size_t count,
                   stg_append_fn *done, void *done_ctx);
    /* The end of the input (or an error of it, which is logged), and every line
     * of it is durable or was skipped. Once, and not after a stop. */
    void (*ended)(void *ctx, uint64_t messages);
    void *ctx;    /* of both */
    stg_log *log; /* kept; may be NULL */
} stg_lines_options;

/* Everything above but append, ended, ctx and log. */
stg_lines_options stg_lines_options_default(void);

/* Begins to read, in the loop. Returns STG_IO with words: the descriptor is
 * closed, a directory, not open for reading. */
stg_status stg_lines_open(stg_lines **lines, uv_loop_t *loop,
                          const stg_lines_options *o, stg_error *err);

/* Reads no more. Lines that were read are appended still; if the store is full
 * they are dropped, and so is the beginning of a line whose end did not come:
 * both are counted, and logged. stopped is called when no append is under way,
 * not from within this call. */
void stg_lines_stop(stg_lines *l, void (*stopped)(void *ctx), void *ctx);

/* After a stop or an end: frees it, then done is called. An append that is
 * under way is let go; the loop has to go on until its callback came. */
void stg_lines_close(stg_lines *l, void (*done)(void *ctx), void *ctx);

typedef struct stg_lines_view {
    uint64_t lines;    /* read, with those that were skipped */
    uint64_t messages; /* durable */
    uint64_t skipped;  /* too long */
    uint64_t dropped;  /* by a stop, for the store was full */
    uint64_t cut;      /* bytes of a line that a stop has cut off */
    size_t pending;    /* bytes, now */
    bool is_waiting;   /* for a store that is full */
    bool has_ended;
    bool has_failed; /* by an error of reading, which was logged */
} stg_lines_view;
void stg_lines_look(const stg_lines *l, stg_lines_view *view);

#endif
