/* input.h - the bytes of a descriptor in pieces, while they are wanted.
 *
 * A pipe, a socket or a terminal is asked by an epoll of its own, and keeps its
 * flags: uv_poll on it would make it non-blocking for all who share it. What
 * epoll does not take, as it is always ready (a regular file, /dev/null), is
 * read by libuv's threads. All on the loop's thread otherwise. */
#ifndef STAGGER_SOURCES_INPUT_H
#define STAGGER_SOURCES_INPUT_H

#include <stdbool.h>

#include <uv.h>

#include <stagger/status.h>

enum { STG_PIECE_MAX = 64 * 1024 };

typedef struct stg_input stg_input;

/* A piece of 1 to STG_PIECE_MAX bytes, lent for the call; size 0: the end, or
 * error, an errno. Never from within a call to the input. One piece may still
 * come after it was not wanted any more. */
typedef void stg_input_fn(void *ctx, const char *piece, size_t size, int error);

/* fd is not closed. Returns STG_IO with words: it is closed, a directory, not
 * open for reading. Nothing is wanted yet. */
stg_status stg_input_open(stg_input **input, uv_loop_t *loop, int fd,
                          stg_input_fn *take, void *ctx, stg_error *err);

void stg_input_want(stg_input *i, bool is_wanted);

/* No piece comes any more; then done is called. */
void stg_input_close(stg_input *i, void (*done)(void *ctx), void *ctx);

#endif
