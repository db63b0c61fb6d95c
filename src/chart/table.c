#include "chart/table.h"

#include <string.h>

/* Tables for programs: JSON and CSV of the same cells. A column without a key
 * is for people and is left out of both.
 *
 * A key "group.name" becomes an object in JSON and group_name in CSV. Columns
 * of one group must be neighbours: a group that comes twice would be written as
 * two members of one name. A column with an estimate in any row is two columns
 * of CSV in all rows, so that rows keep their length. */

static const stg_cell *cell_at(const stg_table *t, size_t row, size_t column)
{
    return &t->cells[row * t->column_count + column];
}

/* -- for programs */

enum { DIGITS = 12 };

/* Bytes from 0x80 on are passed as they are: texts are UTF-8. */
void stg_text_buffer_put_json(stg_text_buffer *buffer, const char *text)
{
    static const char digits[] = "0123456789abcdef";

    stg_text_buffer_put_char(buffer, '"');
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') {
            stg_text_buffer_put_char(buffer, '\\');
            stg_text_buffer_put_char(buffer, *text);
        } else if (c < ' ') {
            stg_text_buffer_put(buffer, "\\u00");
            stg_text_buffer_put_char(buffer, digits[c >> 4]);
            stg_text_buffer_put_char(buffer, digits[c & 15]);
        } else {
            stg_text_buffer_put_char(buffer, *text);
        }
    }
    stg_text_buffer_put_char(buffer, '"');
}

/* Infinite and no numbers are null in JSON, and empty in CSV. */
static void put_number(stg_text_buffer *buffer, double number, const char *none)
{
    if (number - number == 0)
        stg_text_buffer_put_number(buffer, number, DIGITS);
    else
        stg_text_buffer_put(buffer, none);
}

static void put_json_cell(stg_text_buffer *buffer, const stg_cell *cell)
{
    switch (cell->kind) {
    case STG_CELL_TEXT:
        stg_text_buffer_put_json(buffer, cell->text);
        break;
    case STG_CELL_NUMBER:
        put_number(buffer, cell->number, "null");
        break;
    case STG_CELL_ESTIMATE:
        stg_text_buffer_put(buffer, "{\"mean\": ");
        put_number(buffer, cell->number, "null");
        stg_text_buffer_put(buffer, ", \"se\": ");
        put_number(buffer, cell->se, "null");
        stg_text_buffer_put(buffer, "}");
        break;
    case STG_CELL_FACT:
        stg_text_buffer_put(buffer, cell->number != 0 ? "true" : "false");
        break;
    default:
        stg_text_buffer_put(buffer, "null");
    }
}

/* The length of what is before the dot of a key; 0: there is none. */
static size_t group_of(const char *key)
{
    const char *dot = strchr(key, '.');

    return dot == NULL ? 0 : (size_t)(dot - key);
}

static bool is_same_group(const char *a, const char *b)
{
    size_t length = a == NULL || b == NULL ? 0 : group_of(a);

    return length > 0 && group_of(b) == length && memcmp(a, b, length) == 0;
}

/* last: the key before it, whose group stays open if it is the same. */
static void put_json_key(stg_text_buffer *buffer, const char *key,
                         const char *last, bool is_first)
{
    size_t group = group_of(key);

    if (!is_first)
        stg_text_buffer_put(buffer, ", ");
    if (group > 0 && !is_same_group(key, last)) {
        stg_text_buffer_put(buffer, "\"");
        stg_text_buffer_put_part(buffer, key, group);
        stg_text_buffer_put(buffer, "\": {");
    }
    stg_text_buffer_put_json(buffer, key + (group > 0 ? group + 1 : 0));
    stg_text_buffer_put(buffer, ": ");
}

static void put_json_row(stg_text_buffer *buffer, const stg_table *t,
                         size_t row)
{
    const char *last = NULL;

    stg_text_buffer_put(buffer, "    {");
    for (size_t c = 0; c < t->column_count; c++) {
        const char *key = t->columns[c].key;

        if (key == NULL)
            continue;
        if (last != NULL && group_of(last) > 0 && !is_same_group(last, key))
            stg_text_buffer_put(buffer, "}");
        put_json_key(buffer, key, last, last == NULL);
        put_json_cell(buffer, cell_at(t, row, c));
        last = key;
    }
    stg_text_buffer_put(buffer,
                        last != NULL && group_of(last) > 0 ? "}}" : "}");
}

void stg_table_json(const stg_table *t, stg_text_buffer *buffer)
{
    stg_text_buffer_put(buffer, "[");
    for (size_t row = 0; row < t->row_count; row++) {
        stg_text_buffer_put(buffer, row == 0 ? "\n" : ",\n");
        put_json_row(buffer, t, row);
    }
    stg_text_buffer_put(buffer, t->row_count > 0 ? "\n  ]" : "]");
}

/* -- CSV */

static bool needs_quotes(const char *text)
{
    for (; *text != '\0'; text++)
        if (strchr(",\"\n\r", *text) != NULL)
            return true;
    return false;
}

static void put_csv_text(stg_text_buffer *buffer, const char *text)
{
    if (!needs_quotes(text)) {
        stg_text_buffer_put(buffer, text);
        return;
    }
    stg_text_buffer_put_char(buffer, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            stg_text_buffer_put_char(buffer, '"');
        stg_text_buffer_put_char(buffer, *text);
    }
    stg_text_buffer_put_char(buffer, '"');
}

static void put_csv_key(stg_text_buffer *buffer, const char *key)
{
    for (; *key != '\0'; key++)
        stg_text_buffer_put_char(buffer, *key == '.' ? '_' : *key);
}

/* Whether a column has estimates: in CSV it is two then, in all rows. */
static bool has_estimates(const stg_table *t, size_t column)
{
    for (size_t row = 0; row < t->row_count; row++)
        if (cell_at(t, row, column)->kind == STG_CELL_ESTIMATE)
            return true;
    return false;
}

static void put_csv_keys(const stg_table *t, stg_text_buffer *buffer)
{
    const char *comma = "";

    for (size_t c = 0; c < t->column_count; c++) {
        if (t->columns[c].key == NULL)
            continue;
        stg_text_buffer_put(buffer, comma);
        put_csv_key(buffer, t->columns[c].key);
        if (has_estimates(t, c)) {
            stg_text_buffer_put(buffer, ",");
            put_csv_key(buffer, t->columns[c].key);
            stg_text_buffer_put(buffer, "_se");
        }
        comma = ",";
    }
    stg_text_buffer_put(buffer, "\n");
}

static void put_csv_cell(stg_text_buffer *buffer, const stg_cell *cell)
{
    if (cell->kind == STG_CELL_TEXT)
        put_csv_text(buffer, cell->text);
    else if (cell->kind == STG_CELL_FACT)
        stg_text_buffer_put(buffer, cell->number != 0 ? "true" : "false");
    else if (cell->kind == STG_CELL_NUMBER || cell->kind == STG_CELL_ESTIMATE)
        put_number(buffer, cell->number, "");
}

/* Of a column with estimates, a cell without one has an empty error. */
void stg_table_csv(const stg_table *t, stg_text_buffer *buffer)
{
    put_csv_keys(t, buffer);
    for (size_t row = 0; row < t->row_count; row++) {
        const char *comma = "";

        for (size_t c = 0; c < t->column_count; c++) {
            const stg_cell *cell = cell_at(t, row, c);

            if (t->columns[c].key == NULL)
                continue;
            stg_text_buffer_put(buffer, comma);
            put_csv_cell(buffer, cell);
            if (has_estimates(t, c)) {
                stg_text_buffer_put(buffer, ",");
                if (cell->kind == STG_CELL_ESTIMATE)
                    put_number(buffer, cell->se, "");
            }
            comma = ",";
        }
        stg_text_buffer_put(buffer, "\n");
    }
}
