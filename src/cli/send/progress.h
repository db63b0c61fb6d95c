/* progress.h - the line of `stagger send` on a terminal: how many messages
 * are accepted, how fast, and how long it will take. */
#ifndef STAGGER_CLI_SEND_PROGRESS_H
#define STAGGER_CLI_SEND_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <stagger/ns.h>

typedef struct send_progress {
    stg_ns begun_at, shown_at;
    uint64_t total;    /* bytes; 0: unknown */
    uint64_t bytes;    /* of what was accepted */
    uint64_t messages; /* accepted */
    char trouble[40];  /* the cause of the last wait; "" after a success */
    bool is_shown;     /* a terminal is there */
    bool is_line_open;
} send_progress;

void stg_send_progress_begin(send_progress *p, uint64_t total, stg_ns now);

/* Writes the line over the last one. */
void stg_send_progress_show(send_progress *p, stg_ns now);

/* Ends the line, if there is one. */
void stg_send_progress_finish(send_progress *p);

#endif
