/* table.h - a table that fits the terminal, as the lists of dead letters
 * are. A file or a pipe takes lines of any length. */
#ifndef STAGGER_CLI_DEAD_TABLE_H
#define STAGGER_CLI_DEAD_TABLE_H

#include "cli/terminal.h"

enum { DEAD_COLUMNS_MAX = 8 };

typedef struct dead_column {
    const char *title;
    int least;     /* it is not cut to less */
    bool is_right; /* a number */
} dead_column;

typedef struct dead_table {
    stg_terminal terminal;
    bool is_bounded; /* by the terminal's width */
    const dead_column *columns;
    int count;
    int widths[DEAD_COLUMNS_MAX]; /* 0: left out */
} dead_table;

dead_table dead_table_make(const dead_column *columns, int count);

/* The width of column c, for a widest text of so many bytes. */
void dead_table_widen(dead_table *t, int c, size_t widest);

/* By how much a row is too long; 0 where nothing bounds it. */
int dead_table_over(const dead_table *t);

/* Takes from one column what a row is too long by; one that is left with next
 * to nothing goes. */
void dead_table_cut(dead_table *t, int c);

void dead_table_put_titles(const dead_table *t);
void dead_table_put(const dead_table *t, const char *const *cells);

#endif
