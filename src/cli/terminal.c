#include "cli/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/say.h"
#include "cli/time_text.h"

enum { NARROWEST = 40, USUAL = 80, WIDEST = 1000 };

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
