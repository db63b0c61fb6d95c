/* A JSON scanner that builds no tree: it skips values and returns where they
 * lie.
 *
 * Nesting is kept in an array of STG_SCAN_DEPTH brackets, not by recursion, so
 * that input cannot exhaust the stack. Pure; any thread. */
#include "base/json.h"

#include <assert.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "base/digits.h"
#include "base/visible.h"

stg_scan stg_scan_of(stg_span text)
{
    return (stg_scan){.at = text.at, .end = text.at + text.size};
}

static bool fail(stg_scan *s, const char *wrong)
{
    s->wrong = wrong;
    return false;
}

static void skip_blanks(stg_scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' ||
                              *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

static bool has(const stg_scan *s, char c)
{
    return s->at < s->end && *s->at == c;
}

static bool take(stg_scan *s, char c)
{
    if (!has(s, c))
        return false;
    s->at++;
    return true;
}

/* -- strings ----------------------------------------------------------------- */

/* Four digits; -1: they are none. */
static int32_t read_hex(const char *at, const char *end)
{
    int32_t unit = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = stg_hex_digit(at[i]);

        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* The character of the escape \uXXXX, or of two that are a pair, at *at (behind
 * the 'u'), which moves behind it; -1: it is none. */
static int32_t read_unicode(const char **at, const char *end)
{
    int32_t high = read_hex(*at, end), low;

    if (high < 0 || (high >= 0xdc00 && high <= 0xdfff))
        return -1;
    *at += 4;
    if (high < 0xd800 || high > 0xdbff)
        return high;
    if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return -1;
    low = read_hex(*at + 2, end);
    if (low < 0xdc00 || low > 0xdfff)
        return -1;
    *at += 6;
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static bool skip_escape(stg_scan *s)
{
    char c;

    if (s->at == s->end)
        return fail(s, "a string without its end");
    c = *s->at++;
    if (c == 'u')
        return read_unicode(&s->at, s->end) >= 0 ||
               fail(s, "an escape \\u that is no character");
    return (c != '\0' && strchr("\"\\/bfnrt", c) != NULL) ||
           fail(s, "an unknown escape in a string");
}

/* Marks the highest bit of each byte of a word that is below `least`, which is 128
 * at most; above the first one that is, of others, too. Source: Warren, "Hacker's
 * Delight", 2nd edition, section 6-1. */
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define BYTES_BELOW(word, least) (((word)-EACH(least)) & ~(word)&EACH(0x80))

/* To the first byte that is not ASCII, a control character, a quote or the
 * beginning of an escape, eight bytes at a time; or near to the end. */
static void skip_ascii(stg_scan *s)
{
    uint64_t word, found = 0;

    for (; s->end - s->at >= (ptrdiff_t)sizeof word; s->at += sizeof word) {
        memcpy(&word, s->at, sizeof word);
        word = le64toh(word);
        found = (word & EACH(0x80)) | BYTES_BELOW(word, ' ') |
                BYTES_BELOW(word ^ EACH('"'), 1) |
                BYTES_BELOW(word ^ EACH('\\'), 1);
        if (found != 0) {
            s->at += __builtin_ctzll(found) / 8;
            return;
        }
    }
}

/* Runs of plain ASCII are passed in one go: most of a body is that. */
static bool skip_string(stg_scan *s)
{
    if (!take(s, '"'))
        return fail(s, "expected a string");
    while (skip_ascii(s), s->at < s->end) {
        unsigned char c = (unsigned char)*s->at;
        size_t length;

        if (take(s, '"'))
            return true;
        if (c < ' ')
            return fail(s, "a control character in a string");
        if (take(s, '\\')) {
            if (!skip_escape(s))
                return false;
            continue;
        }
        length = stg_utf8_length(s->at, (size_t)(s->end - s->at));
        if (length == 0)
            return fail(s, "a string that is not UTF-8");
        s->at += length;
    }
    return fail(s, "a string without its end");
}

static size_t put_utf8(int32_t c, char *out)
{
    static const unsigned char firsts[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(firsts[length] | c);
    return length;
}

/* For a string that the scanner has accepted: escapes are not checked again.
 * out may be where the string is, for no escape is shorter than what it stands
 * for. */
size_t stg_scan_text(stg_span string, char *out)
{
    static const char letters[] = "bfnrt", stand_for[] = "\b\f\n\r\t";
    const char *at = string.at + 1, *end = string.at + string.size - 1;
    char *start = out;

    assert(string.size >= 2 && *end == '"');
    while (at < end) {
        const char *letter;

        if (*at != '\\') {
            *out++ = *at++;
            continue;
        }
        at += 2;
        letter = strchr(letters, at[-1]);
        if (at[-1] == 'u')
            out += put_utf8(read_unicode(&at, end), out);
        else
            *out++ = letter != NULL ? stand_for[letter - letters] : at[-1];
    }
    return (size_t)(out - start);
}

/* -- numbers and words ------------------------------------------------------- */

static bool skip_digits(stg_scan *s)
{
    const char *start = s->at;

    while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
        s->at++;
    return s->at > start || fail(s, "a number without digits");
}

/* RFC 8259, section 6: no zeros in front, and digits on both sides of a
 * point. */
static bool skip_number(stg_scan *s)
{
    take(s, '-');
    if (!take(s, '0') && !skip_digits(s))
        return false;
    if (take(s, '.') && !skip_digits(s))
        return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+'))
            take(s, '-');
        return skip_digits(s);
    }
    return true;
}

static bool skip_word(stg_scan *s, const char *word)
{
    size_t size = strlen(word);

    if ((size_t)(s->end - s->at) < size || memcmp(s->at, word, size) != 0)
        return fail(s, "no JSON value");
    s->at += size;
    return true;
}

static bool skip_plain(stg_scan *s)
{
    switch (*s->at) {
    case '"':
        return skip_string(s);
    case 't':
        return skip_word(s, "true");
    case 'f':
        return skip_word(s, "false");
    case 'n':
        return skip_word(s, "null");
    default:
        return *s->at == '-' || (*s->at >= '0' && *s->at <= '9')
                   ? skip_number(s)
                   : fail(s, "no JSON value");
    }
}

/* -- nesting ----------------------------------------------------------------- */

/* The brackets that are open, outermost first. */
typedef struct nest {
    size_t depth;
    char closes[STG_SCAN_DEPTH];
} nest;

static bool skip_name(stg_scan *s)
{
    skip_blanks(s);
    if (!skip_string(s))
        return false;
    skip_blanks(s);
    return take(s, ':') || fail(s, "expected a colon behind a name");
}

/* Behind a value: closes what closes here, and moves to the next one. False at
 * the end of the whole value, too. */
static bool skip_to_next(stg_scan *s, nest *n)
{
    while (n->depth > 0) {
        char close = n->closes[n->depth - 1];

        skip_blanks(s);
        if (take(s, ','))
            return close == ']' || skip_name(s);
        if (!take(s, close))
            return fail(s, close == ']' ? "an array without its end"
                                        : "an object without its end");
        n->depth--;
    }
    return false;
}

/* The beginning of an array or object that is not empty; *is_whole: it was. */
static bool open_nest(stg_scan *s, nest *n, bool *is_whole)
{
    char close = *s->at++ == '[' ? ']' : '}';

    skip_blanks(s);
    *is_whole = take(s, close);
    if (*is_whole)
        return true;
    if (n->depth == STG_SCAN_DEPTH)
        return fail(s, "nested too deeply");
    n->closes[n->depth++] = close;
    return close == ']' || skip_name(s);
}

/* A loop over the brackets that are open, and no recursion: each pass skips
 * one plain value or opens one bracket. */
static bool skip_value(stg_scan *s)
{
    nest n = {.depth = 0};

    do {
        bool is_whole = true;

        skip_blanks(s);
        if (s->at == s->end)
            return fail(s, "expected a value");
        if (*s->at == '[' || *s->at == '{') {
            if (!open_nest(s, &n, &is_whole))
                return false;
        } else if (!skip_plain(s)) {
            return false;
        }
        if (!is_whole)
            continue;
        if (!skip_to_next(s, &n))
            return s->wrong == NULL;
    } while (true);
}

bool stg_scan_value(stg_scan *s, stg_span *value)
{
    skip_blanks(s);
    value->at = s->at;
    if (!skip_value(s))
        return false;
    value->size = (size_t)(s->at - value->at);
    return true;
}

bool stg_scan_end(stg_scan *s)
{
    skip_blanks(s);
    return s->at == s->end || fail(s, "something behind the value");
}

/* False also at the end of the object: s->wrong tells an error from it. */
bool stg_scan_member(stg_scan *s, bool *is_first, stg_span *name,
                     stg_span *value)
{
    bool was_first = *is_first;

    *is_first = false;
    skip_blanks(s);
    if (was_first && !take(s, '{'))
        return fail(s, "expected an object");
    skip_blanks(s);
    if (was_first ? take(s, '}') : !take(s, ','))
        return was_first || take(s, '}') ? false
                                         : fail(s, "an object without its end");
    skip_blanks(s);
    name->at = s->at;
    if (!skip_string(s))
        return false;
    name->size = (size_t)(s->at - name->at);
    skip_blanks(s);
    if (!take(s, ':'))
        return fail(s, "expected a colon behind a name");
    return stg_scan_value(s, value);
}
