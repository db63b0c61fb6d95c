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

#endif
