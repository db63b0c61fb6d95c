#include "http/header.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/refuse.h"

/* Names of header fields with a meaning, what bytes names and values may have,
 * and lines of "Name: value\r\n".
 *
 * There are two ways to compare names. stg_header_same() takes '_' for '-',
 * and decides who may say a header: what a gateway could turn into a header of
 * ours is taken for it. stg_header_equal() knows case only, and reads headers
 * as RFC 9110 has them: a request's Content_Length is no Content-Length. Whoever
 * takes one for the other lets a header through that is the hub's, or reads
 * one that is none. */

enum { NAME_MAX_SIZE = 256 };

static const char *const framing[] = {
    "Host",
    "Content-Length",
    "Transfer-Encoding",
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Upgrade",
    "Expect",
    NULL,
};

static const char *const hubs[] = {
    "Idempotency-Key", "Stagger-*",   "Webhook-*",  "Signature",
    "Signature-Input", "traceparent", "tracestate", NULL,
};

static const char *const passing[] = {
    "trace*",
    "Stagger-Hops",
    "Stagger-Not-Before", // a time from now is another one each time
    "Stagger-Expires",
    "baggage",
    "b3",
    "X-B3-*",
    "X-Request-Id",
    "X-Correlation-Id",
    "X-Trace-Id",
    "X-Amzn-Trace-Id",
    "X-Datadog-*",
    "X-Cloud-Trace-Context",
    "X-Forwarded-*",
    "X-Real-Ip",
    "X-Envoy-*",
    NULL,
};

char stg_header_fold_case(char c)
{
    if (c == '_')
        return '-';
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool begins_with(stg_span name, const char *start, size_t size)
{
    if (name.size < size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (stg_header_fold_case(name.at[i]) != stg_header_fold_case(start[i]))
            return false;
    return true;
}

bool stg_header_same(stg_span a, stg_span b)
{
    return a.size == b.size && begins_with(a, b.at, b.size);
}

bool stg_header_matches(const char *rule, stg_span name)
{
    size_t size = strlen(rule);

    if (size > 0 && rule[size - 1] == '*')
        return begins_with(name, rule, size - 1);
    return stg_header_same(name, (stg_span){rule, size});
}

/* Whether a list of such rules, ended by NULL, has the name. */
static bool matches_any(const char *const *rules, stg_span name)
{
    for (; *rules != NULL; rules++)
        if (stg_header_matches(*rules, name))
            return true;
    return false;
}

bool stg_header_is_framing(stg_span name)
{
    return matches_any(framing, name);
}

bool stg_header_is_hubs(stg_span name)
{
    return matches_any(hubs, name);
}

bool stg_header_is_passing(stg_span name)
{
    return matches_any(passing, name);
}

/* -- what may be in one ---------------------------------------------------- */

bool stg_header_equal(stg_span a, const char *b)
{
    return a.size == strlen(b) && strncasecmp(a.at, b, a.size) == 0;
}

/* A bit for each byte of a token. Source: RFC 9110, section 5.6.2. */
static const uint32_t token_bytes[8] = {0, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff};

static bool is_token_byte(char c)
{
    unsigned char byte = (unsigned char)c;

    return (token_bytes[byte / 32] >> byte % 32 & 1) != 0;
}

/* Nearly all bytes of names are these. */
static bool is_letter_or_dash(char c)
{
    return (unsigned char)((c | 0x20) - 'a') < 26 || c == '-';
}

bool stg_header_is_name(stg_span text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_letter_or_dash(text.at[i]) && !is_token_byte(text.at[i]))
            return false;
    return text.size > 0 && text.size <= NAME_MAX_SIZE;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Whether one of eight bytes is below a blank, or 0x7f. Source: Warren, Hacker's
 * Delight, section 6-1: of such a byte the difference borrows, and its own high
 * bit is clear. One above the first of them may be taken for another. */
static bool has_control(const char *eight)
{
    static const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word, blank, erased;

    memcpy(&word, eight, sizeof word);
    erased = word ^ (ones * 0x7f);
    blank = (word - ones * ' ') & ~word;
    erased = (erased - ones) & ~erased;
    return ((blank | erased) & ones << 7) != 0;
}

static bool is_plain(const char *at, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)at[i];

        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

/* By eights, and one by one those that have a tab, or worse, in them. */
bool stg_header_is_value(stg_span text)
{
    size_t i = 0;

    if (text.size == 0) // of no bytes, it may be NULL
        return true;
    for (; i + 8 <= text.size; i += 8)
        if (has_control(text.at + i) && !is_plain(text.at + i, 8))
            return false;
    if (!is_plain(text.at + i, text.size - i))
        return false;
    return !is_blank(text.at[0]) && !is_blank(text.at[text.size - 1]);
}

/* Empty elements are passed over, as RFC 9110, section 5.6.1, wants of a receiver. */
bool stg_header_list_take(stg_span *list, stg_span *name)
{
    while (list->size > 0) {
        const char *comma = memchr(list->at, ',', list->size);
        const char *end = list->at + list->size;
        const char *stop = comma == NULL ? end : comma;
        const char *at = list->at;

        while (at < stop && is_blank(*at))
            at++;
        while (stop > at && is_blank(stop[-1]))
            stop--;
        list->at = comma == NULL ? end : comma + 1;
        list->size = (size_t)(end - list->at);
        *name = (stg_span){at, (size_t)(stop - at)};
        if (name->size > 0)
            return true;
    }
    return false;
}

bool stg_header_list_has(stg_span list, stg_span name)
{
    stg_span each;

    while (stg_header_list_take(&list, &each))
        if (each.size == name.size &&
            strncasecmp(each.at, name.at, name.size) == 0)
            return true;
    return false;
}

/* -- lines ----------------------------------------------------------------- */

stg_span stg_header_next(stg_span *lines)
{
    stg_span line = *lines;
    const char *end = line.size > 0 ? memchr(line.at, '\n', line.size) : NULL;

    if (end != NULL)
        line.size = (size_t)(end - line.at) + 1;
    if (line.size > 0) // no lines at all may be at NULL
        lines->at += line.size;
    lines->size -= line.size;
    return line;
}

stg_span stg_header_name(stg_span line)
{
    const char *colon = line.size > 0 ? memchr(line.at, ':', line.size) : NULL;

    return (stg_span){line.at, colon == NULL ? 0 : (size_t)(colon - line.at)};
}

/* One digit is enough: STG_HOPS_MAX is below 10. */
unsigned stg_header_take_hops(stg_span *headers)
{
    static const char name[] = "Stagger-Hops: ";
    enum { NAME = sizeof name - 1, LINE = NAME + 3 }; // a digit, "\r\n"
    unsigned hops;

    if (headers->size < LINE || memcmp(headers->at, name, NAME) != 0)
        return 0;
    hops = (unsigned)(headers->at[NAME] - '0');
    headers->at += LINE;
    headers->size -= LINE;
    return hops;
}

static void reverse(char *from, char *to)
{
    while (from < to) {
        char c = *from;

        *from++ = *--to;
        *to = c;
    }
}

/* Exchanges the bytes of [from, mid) and [mid, to), and keeps their orders. */
static void rotate(char *from, char *mid, char *to)
{
    reverse(from, mid);
    reverse(mid, to);
    reverse(from, to);
}

/* Works in place, without memory: the value moves to the end of the earlier
 * line by a rotation. */
size_t stg_header_fold(char *lines, size_t size, size_t last)
{
    enum { END = 2, COLON = 2 }; // "\r\n", ": "
    stg_span name = stg_header_name((stg_span){lines + last, size - last});
    stg_span left = {lines, last}, line;
    size_t value_size = size - last - name.size - COLON - END, moved, at;

    while ((line = stg_header_next(&left)).size > 0 &&
           !stg_header_same(stg_header_name(line), name))
        ;
    if (line.size == 0)
        return size;
    if (value_size == 0)
        return last;
    at = (size_t)(line.at - lines) + line.size - END;
    moved = line.size == name.size + COLON + END ? value_size // alone
                                                 : value_size + COLON;
    memmove(lines + last, lines + size - END - moved, moved);
    if (moved > value_size)
        lines[last] = ',';
    rotate(lines + at, lines + last, lines + last + moved);
    return last + moved;
}

/* -- which go on to the targets ----------------------------------------------- */

const char *const stg_headers_default[] = {
    "traceparent", "tracestate", "Content-Encoding", "Content-Language", "ce-*",
    "X-*",         NULL,
};

/* RFC 9110, 11; RFC 6265; what the sender says of itself; and that a webhook was
 * verified. */
static const char *const never[] = {
    "Authorization",  "Content-Type",     "Cookie",
    "HTTP2-Settings", "Proxy-*",          "Set-Cookie",
    "User-Agent",     STG_WEBHOOK_HEADER, NULL,
};

/* A trace goes on from a message to its attempts. */
bool stg_header_is_never_kept(stg_span name)
{
    return matches_any(never, name) || stg_header_is_framing(name) ||
           (stg_header_is_hubs(name) && !stg_header_matches("trace*", name));
}

bool stg_headers_keep(const char *const *rules, stg_span name)
{
    return matches_any(rules, name) && !stg_header_is_never_kept(name);
}

/* A lone '*' is a rule as well: it keeps all that may be kept. */
stg_status stg_headers_check(const char *const *rules, stg_error *err)
{
    for (; *rules != NULL; rules++) {
        stg_span name = {*rules, strlen(*rules)};
        const char *why = NULL;

        if (name.size > 1 && name.at[name.size - 1] == '*')
            name.size--;
        if (!stg_header_is_name(name))
            why =
                "expected the name of a header, or the beginning of one and *";
        else if (stg_header_is_never_kept(name))
            why =
                "this header is never kept: it belongs to the connection, to "
                "the sender or to the hub";
        if (why == NULL)
            continue;
        return stg_hub_refuse(err, STG_INVALID, "headers=%.80s: %s", *rules,
                              why);
    }
    return STG_OK;
}
