/* visible.h - the characters of a text from outside: where each ends in UTF-8,
 * and which of them a terminal, a log or a table may show as they are.
 *
 * Producers, targets and other hubs choose names, headers, bodies and causes.
 * A control character in them moves the cursor or sends the terminal a command
 * (also the C1 controls, U+0080 to U+009F); a bidirectional override shows a
 * text in another order than it has; an invisible character makes two names
 * look the same. All that is printed for people goes through here: commands by
 * cli/say.h, the hub's log by host/log.h. */
#ifndef STAGGER_BASE_VISIBLE_H
#define STAGGER_BASE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- UTF-8 ------------------------------------------------------------------- */

/* The bytes of the character at `at`, 1 to 4; 0 if it is none: cut off, too
 * long for its value, a surrogate, above U+10FFFF. size is 1 or more.
 *
 * Source: The Unicode Standard, table 3-7. */
static inline size_t stg_utf8_length(const char *at, size_t size)
{
    const unsigned char *c = (const unsigned char *)at;
    size_t length = c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
    unsigned least = c[0] == 0xe0 ? 0xa0 : c[0] == 0xf0 ? 0x90 : 0x80;
    unsigned most = c[0] == 0xed ? 0x9f : c[0] == 0xf4 ? 0x8f : 0xbf;

    if (c[0] < 0x80)
        return 1;
    if (c[0] < 0xc2 || c[0] > 0xf4 || size < length)
        return 0;
    if (c[1] < least || c[1] > most)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (c[i] < 0x80 || c[i] > 0xbf)
            return 0;
    return length;
}

/* Whether `size` bytes are UTF-8; none are. */
static inline bool stg_utf8_is_text(const char *at, size_t size)
{
    for (size_t i = 0, length; i < size; i += length) {
        length = stg_utf8_length(at + i, size - i);
        if (length == 0)
            return false;
    }
    return true;
}

/* -- what is visible --------------------------------------------------------- */

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
