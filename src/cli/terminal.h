/* terminal.h - how wide stdout is, what it can show, and text that fits it.
 *
 * Widths count bytes: everything but the bars of a plot is ASCII. */
#ifndef STAGGER_CLI_TERMINAL_H
#define STAGGER_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/ns.h>

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

/* Stands for a blank at which no line is broken. */
#define STG_HELD '\037'

/* stg_time_text() with its blank held. Returns text. */
const char *stg_terminal_time(stg_ns ns, char text[STG_NS_TEXT_MAX]);

/* Prints label, padded to `indent`, and behind it text in lines that fit and
 * start at `indent`. A word longer than a line is broken behind a comma. */
void stg_terminal_wrap(const stg_terminal *t, int indent, const char *label,
                       stg_style style, const char *text);

#endif
