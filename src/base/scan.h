/* scan.h - reads JSON (RFC 8259) where it lies, value by value, without
 * a tree: a value is the bytes it has, so that numbers go on as they came and
 * memory does not grow with what a producer nests.
 *
 * Strict: UTF-8, no lone surrogates, STG_SCAN_DEPTH levels at most. Names that
 * are double inside a value are not looked for. A function that returns false
 * has set `wrong`, and the scan is over. */
#ifndef STAGGER_BASE_SCAN_H
#define STAGGER_BASE_SCAN_H

#include <stdbool.h>

#include "base/span.h"

enum { STG_SCAN_DEPTH = 128 };

typedef struct stg_scan {
    const char *at, *end;
    const char *wrong; /* "a string without its end"; NULL: nothing so far */
} stg_scan;

stg_scan stg_scan_of(stg_span text);

/* The next value, without the blanks around it. */
bool stg_scan_value(stg_scan *s, stg_span *value);

/* Nothing but blanks follows. */
bool stg_scan_end(stg_scan *s);

/* An object, member by member; name is a string with its quotes:
 *
 *     for (is_first = true; stg_scan_member(&s, &is_first, &name, &value);)
 *
 * is false at the end of the object too, and then nothing is wrong. */
bool stg_scan_member(stg_scan *s, bool *is_first, stg_span *name,
                     stg_span *value);

/* What a string value (scanned, with its quotes) stands for, written to out,
 * which may be where the string lies. Returns the bytes, fewer than it has. */
size_t stg_scan_text(stg_span string, char *out);

#endif
