#include "core/reader.h"

#include <string.h>

/* Reads pieces of a text from its front, without a copy. Numbers saturate, so
 * that a check of their range finds them too large. A read that fails may have
 * moved r->at: the caller is to give up on the word, or to read from a copy of
 * r. */

stg_reader stg_read_until(stg_reader *r, char c)
{
    stg_reader piece = {r->at, r->at};

    while (piece.end != r->end && *piece.end != c)
        piece.end++;
    r->at = piece.end == r->end ? r->end : piece.end + 1;
    return piece;
}

bool stg_read_text(stg_reader *r, const char *text)
{
    size_t length = strlen(text);

    if ((size_t)(r->end - r->at) < length || memcmp(r->at, text, length) != 0)
        return false;
    r->at += length;
    return true;
}

bool stg_reader_equals(const stg_reader *r, const char *text)
{
    stg_reader copy = *r;

    return stg_read_text(&copy, text) && stg_reader_is_empty(&copy);
}

/* A letter of a word that may be written in any case, and with '_' as '-'. */
static char fold(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c == '_' ? '-' : c;
}

bool stg_reader_spells(const stg_reader *r, const char *text)
{
    const char *at = r->at;

    for (; at != r->end && *text != '\0'; at++, text++)
        if (fold(*at) != fold(*text))
            return false;
    return at == r->end && *text == '\0';
}

/* Digits, saturating; false where there are none. */
static bool read_digits(stg_reader *r, uint64_t *number)
{
    const char *start = r->at;

    for (*number = 0; r->at != r->end && stg_is_digit(*r->at); r->at++)
        *number = stg_ns_add(stg_ns_mul(*number, 10), (uint64_t)(*r->at - '0'));
    return r->at != start;
}

/* Up to three digits behind a point, if there is one, as thousandths. */
static bool read_fraction(stg_reader *r, uint64_t *thousandths)
{
    const char *start = r->at + 1;

    *thousandths = 0;
    if (!stg_read_text(r, "."))
        return true;
    for (uint64_t place = 100; place > 0 && r->at != r->end; place /= 10) {
        if (!stg_is_digit(*r->at))
            break;
        *thousandths += place * (uint64_t)(*r->at++ - '0');
    }
    return r->at != start;
}

bool stg_read_int(stg_reader *r, uint32_t *number)
{
    uint64_t n;

    if (!read_digits(r, &n) || n > UINT32_MAX)
        return false;
    *number = (uint32_t)n;
    return true;
}

bool stg_read_decimal(stg_reader *r, uint32_t *thousandths)
{
    uint64_t whole, part;

    if (!read_digits(r, &whole) || !read_fraction(r, &part) ||
        stg_ns_add(stg_ns_mul(whole, 1000), part) > UINT32_MAX)
        return false;
    *thousandths = (uint32_t)(1000 * whole + part);
    return true;
}

/* A bare 0 needs no unit. A fraction has three digits at most, and a
 * nanosecond has none. More than 365 d is no duration. */
bool stg_read_duration(stg_reader *r, stg_ns *ns)
{
    static const struct {
        const char *name;
        stg_ns length;
    } units[] = {{"ns", 1},      {"us", STG_US},  {"ms", STG_MS}, {"s", STG_S},
                 {"m", STG_MIN}, {"h", STG_HOUR}, {"d", STG_DAY}};
    uint64_t whole, part;
    size_t i = 0;

    if (stg_reader_equals(r, "0")) {
        r->at = r->end;
        *ns = 0;
        return true;
    }
    if (!read_digits(r, &whole) || !read_fraction(r, &part))
        return false;
    while (i < sizeof units / sizeof *units && !stg_read_text(r, units[i].name))
        i++;
    if (i == sizeof units / sizeof *units ||
        (i == 0 && part != 0)) // no part of a nanosecond
        return false;
    *ns = stg_ns_add(stg_ns_mul(whole, units[i].length),
                     part * units[i].length / 1000);
    return *ns <= 365 * STG_DAY;
}

/* For values of headers: digits, with blanks around them, saturating. */
bool stg_read_count(const char *text, uint64_t *count)
{
    uint64_t n = 0;

    while (stg_is_blank(*text))
        text++;
    if (!stg_is_digit(*text))
        return false;
    for (; stg_is_digit(*text); text++)
        n = stg_ns_add(stg_ns_mul(n, 10), (uint64_t)(*text - '0'));
    while (stg_is_blank(*text))
        text++;
    *count = n;
    return *text == '\0';
}
