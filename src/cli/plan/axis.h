/* axis.h - times on a line of characters, with ticks that people can read.
 *
 * Linear as long as that shows the short ones; else logarithmic, with a place
 * of its own for 0 at the left. Integers only, so that a plot is the same bytes
 * everywhere. */
#ifndef STAGGER_CLI_PLAN_AXIS_H
#define STAGGER_CLI_PLAN_AXIS_H

#include <stdbool.h>

#include <stagger/ns.h>

#define STG_AXIS_WIDTH_MAX 1000

typedef struct stg_axis {
    int width;    /* columns, 20 to STG_AXIS_WIDTH_MAX */
    stg_ns least; /* of those above 0; 0 as long as there is none */
    stg_ns most;
    bool is_log;
} stg_axis;

/* Starts from {.width = ...}. Makes room for a time. */
void stg_axis_include(stg_axis *axis, stg_ns ns);

/* Chooses the scale. */
void stg_axis_settle(stg_axis *axis);

/* The column of a time, from 0. */
int stg_axis_place(const stg_axis *axis, stg_ns ns);

/* Where the ticks are, and a line of labels under them. Both have room for the
 * width; the line for a terminator too. */
void stg_axis_mark(const stg_axis *axis, bool *ticks, char *labels);

#endif
