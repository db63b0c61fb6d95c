/* Reads, begins and writes traceparent headers for attempts.
 *
 * A trace that the hub begins has an id computed from the message's epoch and
 * position, so that every attempt, also after a restart, has the same one.
 * Pure; nothing allocates. */
#include "http/trace.h"

#include <string.h>
#include <strings.h>

#include "base/digits.h"
#include "http/header.h"

/* "00-<32 hex digits>-<16>-<2>" */
enum {
    TRACE_AT = 3,
    PARENT_AT = 36,
    FLAGS_AT = 53,
    VALUE_SIZE = 55,
    SAMPLED = 1
};

static bool parse_hex(const char *at, int count, uint64_t *number)
{
    *number = 0;
    for (int i = 0; i < count; i++) {
        int digit = stg_hex_lower(at[i]); // as the format wants

        if (digit < 0)
            return false;
        *number = *number << 4 | (unsigned)digit;
    }
    return true;
}

/* Version 00 has no more than we read; a later one may, behind a hyphen. */
static bool is_whole(stg_span value, uint64_t version)
{
    if (version == 0)
        return value.size == VALUE_SIZE;
    return version != 0xff &&
           (value.size == VALUE_SIZE || value.at[VALUE_SIZE] == '-');
}

/* By the letter of W3C's Trace Context: a value with a mistake is no trace, and a new
 * one begins. */
bool stg_trace_parse(stg_trace *t, stg_span value)
{
    uint64_t version, high, low, parent, flags;

    *t = (stg_trace){.high = 0};
    if (value.size < VALUE_SIZE || value.at[TRACE_AT - 1] != '-' ||
        value.at[PARENT_AT - 1] != '-' || value.at[FLAGS_AT - 1] != '-' ||
        !parse_hex(value.at, 2, &version) || !is_whole(value, version) ||
        !parse_hex(value.at + TRACE_AT, 16, &high) ||
        !parse_hex(value.at + TRACE_AT + 16, 16, &low) ||
        !parse_hex(value.at + PARENT_AT, 16, &parent) ||
        !parse_hex(value.at + FLAGS_AT, 2, &flags))
        return false;
    if ((high | low) == 0 || parent == 0)
        return false;
    *t = (stg_trace){.high = high,
                     .low = low,
                     .parent = parent,
                     .is_sampled = (flags & SAMPLED) != 0};
    return true;
}

/* The finalizer of splitmix64: each bit of the outcome depends on all of x. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Each step can be undone, so no two messages have the same. */
stg_trace stg_trace_begin(uint64_t epoch, uint64_t position)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    stg_trace t = {.is_sampled = true};

    t.low = mix(epoch + golden * (position + 1));
    t.high = mix(epoch + 1) ^ mix(t.low + golden);
    t.low |= (t.high | t.low) == 0; // all zeros are no id
    return t;
}

/* -- header lines ---------------------------------------------------------- */

typedef enum kind { OTHER, PARENT, STATE } kind;

static bool is_named(stg_span line, const char *name, size_t size)
{
    return line.size > size && line.at[size] == ':' &&
           strncasecmp(line.at, name, size) == 0;
}

static kind kind_of(stg_span line)
{
    if ((line.at[0] | 0x20) != 't') // most are not
        return OTHER;
    return is_named(line, "traceparent", 11)  ? PARENT
           : is_named(line, "tracestate", 10) ? STATE
                                              : OTHER;
}

static stg_span value_of(stg_span line)
{
    enum { BEFORE = 13, BEHIND = 2 }; // "traceparent: " and the line's end

    if (line.size < BEFORE + BEHIND)
        return (stg_span){line.at, 0};
    return (stg_span){line.at + BEFORE, line.size - BEFORE - BEHIND};
}

/* Two of them are none. *is_any: a line is about traces. */
static stg_trace find(stg_span headers, bool *is_any)
{
    unsigned parents = 0;
    stg_trace t = {.high = 0};
    stg_span line;

    *is_any = false;
    while ((line = stg_header_next(&headers)).size > 0) {
        kind k = kind_of(line);

        *is_any |= k != OTHER;
        if (k == PARENT &&
            (!stg_trace_parse(&t, value_of(line)) || ++parents > 1))
            return (stg_trace){.high = 0};
    }
    return t;
}

static char *put(char *to, const char *text, size_t size)
{
    if (size > 0)
        memcpy(to, text, size);
    return to + size;
}

/* What is not replaced. tracestate says nothing without its traceparent. */
static char *put_others(char *to, stg_span headers, bool has_trace)
{
    stg_span line;

    while ((line = stg_header_next(&headers)).size > 0) {
        kind k = kind_of(line);

        if (k == OTHER || (k == STATE && has_trace))
            to = put(to, line.at, line.size);
    }
    return to;
}

/* The digits of eight half bytes, the first in the highest byte: every request
 * has 48 of them. */
static uint64_t spell(uint32_t number)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t x = number, letters;

    x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
    x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x | x << 4) & (ones * 15);
    letters = (x + ones * 6) >> 4 & ones; // of those above 9
    return x + ones * '0' + letters * ('a' - '0' - 10);
}

static char *put_digits(char *to, uint64_t eight)
{
    const unsigned char in_order[] = {
        (unsigned char)(eight >> 56), (unsigned char)(eight >> 48),
        (unsigned char)(eight >> 40), (unsigned char)(eight >> 32),
        (unsigned char)(eight >> 24), (unsigned char)(eight >> 16),
        (unsigned char)(eight >> 8),  (unsigned char)eight};

    memcpy(to, in_order, sizeof in_order);
    return to + sizeof in_order;
}

static char *put_hex(char *to, uint64_t number)
{
    to = put_digits(to, spell((uint32_t)(number >> 32)));
    return put_digits(to, spell((uint32_t)number));
}

static char *put_parent(char *to, const stg_trace *t)
{
    to = put(to, "traceparent: 00-", 16);
    to = put_hex(put_hex(to, t->high), t->low);
    *to++ = '-';
    to = put_hex(to, t->span);
    return put(to, t->is_sampled ? "-01\r\n" : "-00\r\n", 5);
}

/* A trace that came with the message goes on, with this attempt as the parent.
 * One that cannot be read is dropped, and its tracestate with it. */
char *stg_trace_put(char *to, stg_span headers, stg_trace_mode mode,
                    uint64_t epoch, uint64_t position, uint64_t span,
                    uint64_t share, stg_trace *t)
{
    bool is_any, was_there;

    *t = find(headers, &is_any);
    if (mode == STG_TRACE_OFF)
        *t = (stg_trace){.high = 0};
    was_there = stg_trace_is_there(t);
    to = is_any ? put_others(to, headers, was_there)
                : put(to, headers.at, headers.size);
    if (!was_there && mode == STG_TRACE_BEGIN) {
        *t = stg_trace_begin(epoch, position);
        t->is_sampled = t->low <= share;
    }
    t->span = span != 0 ? span : 1;
    return stg_trace_is_there(t) ? put_parent(to, t) : to;
}

const char *stg_trace_print(const stg_trace *t, char text[STG_TRACE_TEXT_MAX])
{
    if (!stg_trace_is_there(t))
        return NULL;
    *put_hex(put_hex(text, t->high), t->low) = '\0';
    return text;
}
