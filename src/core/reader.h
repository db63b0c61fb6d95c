/* reader.h - numbers and durations out of text. Private.
 *
 * A stg_reader is a piece of text that is not terminated. What reads from it
 * moves `at` behind what it understood, and returns false, with `at` anywhere,
 * if it did not. */
#ifndef STAGGER_CORE_READER_H
#define STAGGER_CORE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/ns.h>

typedef struct stg_reader {
    const char *at;
    const char *end;
} stg_reader;

static inline bool stg_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool stg_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool stg_reader_is_empty(const stg_reader *r)
{
    return r->at == r->end;
}

/* What stands before the next c, which is passed over; all of it without. */
stg_reader stg_read_until(stg_reader *r, char c);

/* Takes text if it stands there; else moves nothing. */
bool stg_read_text(stg_reader *r, const char *text);

/* Whether the whole piece is this text. */
bool stg_reader_equals(const stg_reader *r, const char *text);

/* The same in any case, and with '_' as '-'. */
bool stg_reader_spells(const stg_reader *r, const char *text);

/* Digits, up to 2^32 - 1. */
bool stg_read_int(stg_reader *r, uint32_t *number);

/* Digits, and up to three behind a point; as thousandths, up to 2^32 - 1. */
bool stg_read_decimal(stg_reader *r, uint32_t *thousandths);

/* "0", or a decimal and a unit (ns us ms s m h d) that make whole nanoseconds,
 * up to 365 d. */
bool stg_read_duration(stg_reader *r, stg_ns *ns);

/* A header's value: digits with blanks around them, saturating. text is
 * terminated. */
bool stg_read_count(const char *text, uint64_t *count);

#endif
