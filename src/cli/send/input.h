/* input.h - where the messages of `stagger send` come from: a file or
 * standard input, whole or line by line, through a buffer that grows to the
 * longest line. */
#ifndef STAGGER_CLI_SEND_INPUT_H
#define STAGGER_CLI_SEND_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* The longest line, and the largest message; the hub has a limit of its own. */
enum { SEND_INPUT_MAX = 256 * 1024 * 1024 };

typedef struct send_input {
    int file;
    bool is_regular; /* a read does not wait for anybody */
    bool has_ended;
    uint64_t total; /* bytes, of a regular file */
    uint64_t lines; /* given out, empty ones too */
    char *bytes;
    size_t at, size, room; /* what is read and not given out is [at, size) */
    size_t given;          /* where the last line began */
    size_t searched;       /* and up to here without an end of line */
} send_input;

/* path NULL: standard input. Returns 0 or errno. */
int stg_send_input_open(send_input *in, const char *path);
void stg_send_input_close(send_input *in);

/* Whether a read would not wait. */
bool stg_send_input_is_ready(const send_input *in);

/* One read: 0 or errno. At the end of the input has_ended is set; EFBIG is for
 * a line above SEND_INPUT_MAX. */
int stg_send_input_fill(send_input *in);

/* The next line without its end, "\n" or "\r\n"; false if there is none yet.
 * Lent until the next fill. */
bool stg_send_input_line(send_input *in, stg_span *line);

/* The last line that was given out comes again. */
void stg_send_input_return(send_input *in);

/* All that is read. */
stg_span stg_send_input_whole(const send_input *in);

#endif
