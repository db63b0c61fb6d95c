/* json.h - writes JSON, numbers exactly.
 *
 * Times are milliseconds with up to six digits behind the point, written from
 * the integers: a double holds 15 digits, and 365 d in ns have 17. Objects and
 * lists are indented; a row is one line. What is no UTF-8 reads as U+FFFD, and
 * what a terminal would obey is an escape. */
#ifndef STAGGER_BASE_JSON_H
#define STAGGER_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <stagger/ns.h>

#include "base/span.h"

typedef struct stg_json {
    FILE *to; /* NULL: stdout */
    int depth;
    int row_depth; /* of the row that we are in; 0: in none */
    bool has_items;
} stg_json;

/* key is NULL in a list, and for the whole text. */
void stg_json_open(stg_json *j, const char *key, char bracket); /* '{' or '[' */
void stg_json_open_row(stg_json *j, const char *key);           /* a '{' */
void stg_json_close(stg_json *j, char bracket);                 /* '}' or ']' */

void stg_json_string(stg_json *j, const char *key, const char *text);
void stg_json_number(stg_json *j, const char *key, uint64_t number);
void stg_json_bool(stg_json *j, const char *key, bool is_true);
void stg_json_null(stg_json *j, const char *key);

/* 1500 as 1.5. */
void stg_json_thousandths(stg_json *j, const char *key, uint64_t number);

/* UINT64_MAX (no limit, never) is null in these three. */
void stg_json_limit(stg_json *j, const char *key, uint64_t number);
void stg_json_limit_thousandths(stg_json *j, const char *key, uint64_t number);
void stg_json_ms(stg_json *j, const char *key, stg_ns ns);

/* -- reading ------------------------------------------------------------- */

/* Reads JSON (RFC 8259) where it lies, value by value, without
 * a tree: a value is the bytes it has, so that numbers go on as they came and
 * memory does not grow with what a producer nests.
 *
 * Strict: UTF-8, no lone surrogates, STG_SCAN_DEPTH levels at most. Names that
 * are double inside a value are not looked for. A function that returns false
 * has set `wrong`, and the scan is over. */

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
