#include "cli/dead/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/say.h"

dead_table dead_table_make(const dead_column *columns, int count)
{
    return (dead_table){.terminal = stg_terminal_look(),
                        .is_bounded = isatty(STDOUT_FILENO) == 1 ||
                                      getenv("COLUMNS") != NULL,
                        .columns = columns,
                        .count = count};
}

void dead_table_widen(dead_table *t, int c, size_t widest)
{
    size_t title = strlen(t->columns[c].title);

    t->widths[c] = (int)(widest > title ? widest : title);
}

int dead_table_over(const dead_table *t)
{
    int width = 0;

    for (int i = 0; i < t->count; i++)
        width += t->widths[i] == 0 ? 0 : t->widths[i] + (width > 0 ? 2 : 0);
    return t->is_bounded && width > t->terminal.width
               ? width - t->terminal.width
               : 0;
}

void dead_table_cut(dead_table *t, int c)
{
    enum { NOTHING = 6 };
    int over = dead_table_over(t);
    int least = t->columns[c].least, width = t->widths[c];

    if (over == 0 || width <= least)
        return;
    width = width - over > least ? width - over : least;
    t->widths[c] = width < NOTHING ? 0 : width;
}

/* A text that is too long for its column ends in dots. */
static void put_cell(const dead_table *t, int c, bool is_last, const char *text)
{
    size_t length = strlen(text), width = (size_t)t->widths[c];
    bool is_right = t->columns[c].is_right;
    bool is_cut = length > width && !is_right;
    size_t shown = is_cut ? (width > 2 ? width - 2 : 0) : length;

    if (is_right)
        printf("%*s", (int)(width > length ? width - length : 0), "");
    stg_say_text(stdout, text, shown, STG_VISIBLE_IN_COLUMN);
    if (is_cut)
        fputs(width > 1 ? ".." : "", stdout);
    if (!is_right && !is_last && length < width)
        printf("%*s", (int)(width - length), "");
}

void dead_table_put(const dead_table *t, const char *const *cells)
{
    bool is_first = true;

    for (int i = 0; i < t->count; i++) {
        if (t->widths[i] <= 0)
            continue;
        fputs(is_first ? "" : "  ", stdout);
        put_cell(t, i, i == t->count - 1, cells[i]);
        is_first = false;
    }
    putchar('\n');
}

void dead_table_put_titles(const dead_table *t)
{
    const char *titles[DEAD_COLUMNS_MAX];

    for (int i = 0; i < t->count; i++)
        titles[i] = t->columns[i].title;
    fputs(stg_terminal_style(&t->terminal, STG_STYLE_BOLD), stdout);
    dead_table_put(t, titles);
    fputs(stg_terminal_style(&t->terminal, STG_STYLE_PLAIN), stdout);
}
