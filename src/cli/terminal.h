/* terminal.h - how wide stdout is, what it can show, and text, times, tables and
 * questions that fit it.
 *
 * Widths count bytes: everything but the bars of a plot is ASCII. */
#ifndef STAGGER_CLI_TERMINAL_H
#define STAGGER_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/ns.h>

#include "plan/plan.h"

/* -- text ------------------------------------------------------------------- */

typedef struct stg_terminal {
    int width;      /* COLUMNS, what the terminal says, or 80 */
    bool is_colour; /* a terminal, and NO_COLOR is not set */
    bool is_utf8;   /* a terminal, and a locale that says so */
} stg_terminal;

stg_terminal stg_terminal_look(void);

typedef enum stg_style {
    STG_STYLE_PLAIN,
    STG_STYLE_BOLD,
    STG_STYLE_FAINT,
    STG_STYLE_WARN,
    STG_STYLE_GOOD,
} stg_style;

/* What changes the style from here on: "" without colour. */
const char *stg_terminal_style(const stg_terminal *t, stg_style style);

/* stg_time_text() with its blank held. Returns text. */
const char *stg_terminal_time(stg_ns ns, char text[STG_NS_TEXT_MAX]);

/* Prints label, padded to `indent`, and behind it text in lines that fit and
 * start at `indent`. A word longer than a line is broken behind a comma. */
void stg_terminal_wrap(const stg_terminal *t, int indent, const char *label,
                       stg_style style, const char *text);

/* -- questions -------------------------------------------------------------- */

/* Whether there is one to ask: standard input and error are a terminal. */
bool stg_confirm_can(void);

/* Asks "question [y/N] " on standard error. True for y or yes alone. */
bool stg_confirm(const char *question);

/* -- tables ----------------------------------------------------------------- */

enum { STG_GRID_COLUMNS_MAX = 8 };

typedef struct stg_grid_column {
    const char *title;
    int least;     /* it is not cut to less */
    bool is_right; /* a number */
} stg_grid_column;

typedef struct stg_grid {
    stg_terminal terminal;
    bool is_bounded; /* by the terminal's width */
    const stg_grid_column *columns;
    int count;
    int widths[STG_GRID_COLUMNS_MAX]; /* 0: left out */
} stg_grid;

stg_grid stg_grid_make(const stg_grid_column *columns, int count);

/* The width of column c, for a widest text of so many bytes. */
void stg_grid_widen(stg_grid *t, int c, size_t widest);

/* By how much a row is too long; 0 where nothing bounds it. */
int stg_grid_over(const stg_grid *t);

/* Takes from one column what a row is too long by; one that is left with next
 * to nothing goes. */
void stg_grid_cut(stg_grid *t, int c);

void stg_grid_put_titles(const stg_grid *t);
void stg_grid_put(const stg_grid *t, const char *const *cells);

#endif
