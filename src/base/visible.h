/* visible.h - which characters of a text from outside a terminal, a log or a
 * table may show as they are.
 *
 * Producers, targets and other hubs choose names, headers, bodies and causes.
 * A control character in them moves the cursor or sends the terminal a command
 * (also the C1 controls, U+0080 to U+009F); a bidirectional override shows a
 * text in another order than it has; an invisible character makes two names
 * look the same. All that is printed for people goes through here: commands by
 * cli/say.h, the hub's log by host/log_line.h. */
#ifndef STAGGER_BASE_VISIBLE_H
#define STAGGER_BASE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum stg_visible_in {
    STG_VISIBLE_IN_TEXT,  /* lines of text: \n and \t are visible */
    STG_VISIBLE_IN_LINE,  /* one line */
    STG_VISIBLE_IN_COLUMN /* a column whose width counts bytes: ASCII */
} stg_visible_in;

/* A character: `size` bytes of UTF-8, or one byte that belongs to none. */
typedef struct stg_visible_char {
    size_t size;
    uint32_t code; /* U+FFFD for such a byte */
    bool is_valid; /* UTF-8 */
    bool is_visible;
} stg_visible_char;

/* The character at `at`, of the `size` bytes there, 1 or more. */
stg_visible_char stg_visible_next(const char *at, size_t size,
                                  stg_visible_in in);

/* Puts a '?' for each character that is not visible; the text does not grow.
 * In texts the \r of a "\r\n" is left out. Returns the size, without a NUL. */
size_t stg_visible_clean(char *text, size_t size, stg_visible_in in);

/* The same for a string. Returns text. */
char *stg_visible_string(char *text, stg_visible_in in);

/* `code` as JSON escapes it, \uXXXX, or two of them above U+FFFF. Returns the
 * size, without a NUL. */
enum { STG_VISIBLE_ESCAPE_MAX = 12 };
size_t stg_visible_escape(uint32_t code, char to[STG_VISIBLE_ESCAPE_MAX]);

#endif
