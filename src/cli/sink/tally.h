/* tally.h - what `stagger sink` has received, as it counts and shows it.
 */
#ifndef STAGGER_CLI_SINK_TALLY_H
#define STAGGER_CLI_SINK_TALLY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <stagger/ns.h>

#include "cli/sink/replies.h"

enum { SINK_STATUS_MAX = 600 };

typedef struct sink_tally {
    uint64_t receipts;
    uint64_t by_status[SINK_STATUS_MAX];
    uint64_t resets, hangs;
    uint64_t unnamed;    /* receipts with neither id nor key */
    uint64_t duplicates; /* of what was answered 2xx before */
    uint64_t broken;     /* requests that were no HTTP, or broke off */
    uint64_t bytes;      /* of bodies */
    uint64_t shown;      /* receipts at shown_at */
    stg_ns shown_at;
    bool is_line_open; /* the live line stands on the terminal */
} sink_tally;

void stg_sink_tally_add(sink_tally *t, const sink_reply *reply);

/* Writes the live line over the last one; to a terminal. */
void stg_sink_tally_show(sink_tally *t, stg_ns now);

/* Ends the live line, if there is one. */
void stg_sink_tally_finish(sink_tally *t);

/* Prints the summary. messages: how many different ones came. */
void stg_sink_tally_sum(sink_tally *t, uint64_t messages, FILE *file);

#endif
