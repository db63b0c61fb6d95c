/* What a command knows of the terminal it prints to: width, colours, text and
 * tables that fit, times that are short, and a question. A pipe gets the same
 * without colours, and tables of any width. Bytes are columns, but for the bars
 * of a plot. */
#include "cli/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/say.h"

/* -- text ------------------------------------------------------------------- */

enum { NARROWEST = 40, USUAL = 80, WIDEST = 1000 };

/* COLUMNS comes first, so that a width can be asked for, also in a pipe. Below
 * 40 columns tables would hold nothing; what is wider than the terminal
 * wraps. */
static int find_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size = {0};
    long width = columns == NULL ? 0 : strtol(columns, NULL, 10);

    if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    if (width <= 0)
        width = USUAL;
    if (width < NARROWEST)
        return NARROWEST;
    return width > WIDEST ? WIDEST : (int)width;
}

stg_terminal stg_terminal_look(void)
{
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
    bool can_colour = kind != NULL && strcmp(kind, "dumb") != 0;

    setlocale(LC_CTYPE, "");
    return (stg_terminal){
        .width = find_width(),
        .is_colour = is_terminal && can_colour &&
                     (no_colour == NULL || no_colour[0] == '\0'),
        .is_utf8 = is_terminal && strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
    };
}

const char *stg_terminal_style(const stg_terminal *t, stg_style style)
{
    static const char *const codes[] = {
        [STG_STYLE_PLAIN] = "\033[0m", [STG_STYLE_BOLD] = "\033[1m",
        [STG_STYLE_FAINT] = "\033[2m", [STG_STYLE_WARN] = "\033[33m",
        [STG_STYLE_GOOD] = "\033[32m",
    };

    return t->is_colour ? codes[style] : "";
}

/* The blank before the unit becomes STG_HELD, which wrapping does not break and
 * put_piece() prints as a blank. */
const char *stg_terminal_time(stg_ns ns, char text[STG_NS_TEXT_MAX])
{
    char *blank;

    stg_time_text(ns, text);
    blank = strchr(text, ' ');
    if (blank != NULL)
        *blank = STG_HELD;
    return text;
}

/* How much of text stands in a line of `room`: up to a blank, or else behind a
 * comma, or else anywhere. */
static size_t fit(const char *text, size_t room)
{
    size_t length = strlen(text), at = room;

    if (length <= room)
        return length;
    while (at > 0 && text[at] != ' ')
        at--;
    if (at > 0)
        return at;
    for (at = room; at > 0 && text[at - 1] != ',';)
        at--;
    // Not within a character of UTF-8.
    for (; at == 0 && room > 1 && ((unsigned char)text[room] & 0xc0) == 0x80;)
        room--;
    return at > 0 ? at : room;
}

static void put_piece(const char *text, size_t length)
{
    for (size_t i = 0, size; i < length; i += size) {
        const char *held = memchr(text + i, STG_HELD, length - i);

        size = held == NULL ? length - i : (size_t)(held - text) - i;
        stg_say_text(stdout, text + i, size, STG_VISIBLE_IN_LINE);
        if (held != NULL) {
            putchar(' ');
            size++;
        }
    }
}

static size_t room_of(const stg_terminal *t, size_t indent)
{
    enum { LEAST = 16 };
    size_t width = (size_t)t->width;

    return width > indent + LEAST ? width - indent : LEAST;
}

/* A label that is longer than the indent shortens the first line only. */
void stg_terminal_wrap(const stg_terminal *t, int indent, const char *label,
                       stg_style style, const char *text)
{
    size_t pad = (size_t)indent, start = strlen(label);

    printf("%s%-*s%s", stg_terminal_style(t, style), indent, label,
           stg_terminal_style(t, STG_STYLE_PLAIN));
    for (start = start > pad ? start : pad;; start = pad) {
        size_t length = fit(text, room_of(t, start));

        put_piece(text, length);
        putchar('\n');
        text += length;
        while (*text == ' ')
            text++;
        if (*text == '\0')
            return;
        printf("%*s", indent, "");
    }
}

/* -- questions -------------------------------------------------------------- */

bool stg_confirm_can(void)
{
    return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

/* The question goes to stderr, so that it is seen when stdout is a file.
 * Anything but y or yes is a no, also the end of the input. */
bool stg_confirm(const char *question)
{
    char answer[16];

    fflush(stdout);
    stg_say(stderr, "%s [y/N] ", question);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) == NULL) {
        fputc('\n', stderr);
        return false;
    }
    answer[strcspn(answer, "\r\n")] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

/* -- tables ----------------------------------------------------------------- */

stg_grid stg_grid_make(const stg_grid_column *columns, int count)
{
    return (stg_grid){.terminal = stg_terminal_look(),
                      .is_bounded = isatty(STDOUT_FILENO) == 1 ||
                                    getenv("COLUMNS") != NULL,
                      .columns = columns,
                      .count = count};
}

/* A column that is never widened has width 0 and is not shown. */
void stg_grid_widen(stg_grid *t, int c, size_t widest)
{
    size_t title = strlen(t->columns[c].title);

    t->widths[c] = (int)(widest > title ? widest : title);
}

/* By how much a row is wider than the terminal, with two blanks between
 * columns. A pipe has no width unless COLUMNS gives one. */
int stg_grid_over(const stg_grid *t)
{
    int width = 0;

    for (int i = 0; i < t->count; i++)
        width += t->widths[i] == 0 ? 0 : t->widths[i] + (width > 0 ? 2 : 0);
    return t->is_bounded && width > t->terminal.width
               ? width - t->terminal.width
               : 0;
}

/* Takes what is over from one column, down to its least; a column of less than
 * six is left out. Called for several columns in turn, the first gives most. */
void stg_grid_cut(stg_grid *t, int c)
{
    enum { NOTHING = 6 };
    int over = stg_grid_over(t);
    int least = t->columns[c].least, width = t->widths[c];

    if (over == 0 || width <= least)
        return;
    width = width - over > least ? width - over : least;
    t->widths[c] = width < NOTHING ? 0 : width;
}

/* A text that is too long for its column ends in dots. */
static void put_cell(const stg_grid *t, int c, bool is_last, const char *text)
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

void stg_grid_put(const stg_grid *t, const char *const *cells)
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

void stg_grid_put_titles(const stg_grid *t)
{
    const char *titles[STG_GRID_COLUMNS_MAX];

    for (int i = 0; i < t->count; i++)
        titles[i] = t->columns[i].title;
    fputs(stg_terminal_style(&t->terminal, STG_STYLE_BOLD), stdout);
    stg_grid_put(t, titles);
    fputs(stg_terminal_style(&t->terminal, STG_STYLE_PLAIN), stdout);
}
