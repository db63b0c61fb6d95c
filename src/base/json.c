/* JSON as a stream: nothing is built in memory, so that a million dead letters
 * take as much as one. The caller keeps the order: an object or a list that is
 * opened is closed. `row_depth` is the depth at which a row began; inside it
 * all is on one line. */
#include "base/json.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/visible.h"

static FILE *out(const stg_json *j)
{
    return j->to != NULL ? j->to : stdout;
}

/* JSON that is also safe on a terminal: what is invisible becomes an escape. */
static void put_quoted(FILE *to, const char *at, size_t size)
{
    char escape[STG_VISIBLE_ESCAPE_MAX] = "";

    fputc('"', to);
    for (size_t i = 0; i < size;) {
        stg_visible_char c =
            stg_visible_next(at + i, size - i, STG_VISIBLE_IN_LINE);

        if (c.code == '"' || c.code == '\\')
            fprintf(to, "\\%c", (int)c.code);
        else if (c.is_visible)
            fwrite(at + i, 1, c.size, to);
        else
            fwrite(escape, 1, stg_visible_escape(c.code, escape), to);
        i += c.size;
    }
    fputc('"', to);
}

static void put_string(const stg_json *j, const char *text)
{
    put_quoted(out(j), text, strlen(text));
}

static void new_line(const stg_json *j)
{
    if (j->row_depth > 0)
        fputc(' ', out(j));
    else
        fprintf(out(j), "\n%*s", 2 * j->depth, "");
}

/* The comma is written before the next item, since only then it is known that
 * there is one. */
static void begin_item(stg_json *j, const char *key)
{
    if (j->has_items)
        fputc(',', out(j));
    if (j->depth > 0 && (j->row_depth == 0 || j->has_items))
        new_line(j);
    j->has_items = true;
    if (key != NULL) {
        put_string(j, key);
        fputs(": ", out(j));
    }
}

void stg_json_open(stg_json *j, const char *key, char bracket)
{
    begin_item(j, key);
    fputc(bracket, out(j));
    j->depth++;
    j->has_items = false;
}

void stg_json_open_row(stg_json *j, const char *key)
{
    stg_json_open(j, key, '{');
    if (j->row_depth == 0)
        j->row_depth = j->depth;
}

/* The end of the outermost value also ends the line. */
void stg_json_close(stg_json *j, char bracket)
{
    bool is_in_row = j->row_depth > 0;

    if (j->row_depth == j->depth)
        j->row_depth = 0;
    j->depth--;
    if (j->has_items && !is_in_row)
        new_line(j);
    fputc(bracket, out(j));
    j->has_items = true;
    if (j->depth == 0)
        fputc('\n', out(j));
}

void stg_json_string(stg_json *j, const char *key, const char *text)
{
    begin_item(j, key);
    put_string(j, text);
}

void stg_json_number(stg_json *j, const char *key, uint64_t number)
{
    begin_item(j, key);
    fprintf(out(j), "%" PRIu64, number);
}

void stg_json_bool(stg_json *j, const char *key, bool is_true)
{
    begin_item(j, key);
    fputs(is_true ? "true" : "false", out(j));
}

void stg_json_null(stg_json *j, const char *key)
{
    begin_item(j, key);
    fputs("null", out(j));
}

/* number / 10^digits, without zeros at its end. */
static void put_decimal(const stg_json *j, uint64_t number, uint64_t one,
                        int digits)
{
    uint64_t part = number % one;

    fprintf(out(j), "%" PRIu64, number / one);
    if (part == 0)
        return;
    for (; part % 10 == 0; part /= 10)
        digits--;
    fprintf(out(j), ".%0*" PRIu64, digits, part);
}

void stg_json_thousandths(stg_json *j, const char *key, uint64_t number)
{
    begin_item(j, key);
    put_decimal(j, number, 1000, 3);
}

/* No limit is null: 2^64 - 1 would lose its last digits in a double. */
void stg_json_limit(stg_json *j, const char *key, uint64_t number)
{
    if (number == UINT64_MAX)
        stg_json_null(j, key);
    else
        stg_json_number(j, key, number);
}

void stg_json_limit_thousandths(stg_json *j, const char *key, uint64_t number)
{
    if (number == UINT64_MAX)
        stg_json_null(j, key);
    else
        stg_json_thousandths(j, key, number);
}

/* Exact, with up to six decimals; never is null. */
void stg_json_ms(stg_json *j, const char *key, stg_ns ns)
{
    if (ns == STG_NEVER) {
        stg_json_null(j, key);
        return;
    }
    begin_item(j, key);
    put_decimal(j, ns, STG_MS, 6);
}
