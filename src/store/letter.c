/* A dead letter as columns, and as a line of JSON: one table of columns, in the
 * order in which they are printed, serves every writer of dead letters.
 *
 * The same lists (STG_LETTER_LIGHT and STG_LETTER_REST in letter.h) make the
 * statements, and so a column is read by its place in them.
 *
 * Without memory a line sets is_short, and what it holds is of no use. */
#include "store/letter.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/visible.h"
#include "store/eviction.h"

/* A character that may not stand for itself. */
static void add_escape(stg_text *l, uint32_t c)
{
    static const char names[] = "\"\"\\\\\nn\rr\tt";
    char text[STG_VISIBLE_ESCAPE_MAX];

    for (size_t i = 0; names[i] != '\0'; i += 2)
        if ((unsigned char)names[i] == c) {
            stg_text_add(l, "\\", 1);
            stg_text_add(l, &names[i + 1], 1);
            return;
        }
    stg_text_add(l, text, stg_visible_escape(c, text));
}

/* Escapes also what JSON would allow, if it cannot be seen in a line. */
static void add_json(stg_text *l, stg_span text)
{
    stg_text_add(l, "\"", 1);
    for (size_t i = 0; i < text.size;) {
        stg_visible_char c =
            stg_visible_next(text.at + i, text.size - i, STG_VISIBLE_IN_LINE);

        if (!c.is_visible || c.code == '"' || c.code == '\\')
            add_escape(l, c.code);
        else
            stg_text_add(l, text.at + i, c.size);
        i += c.size;
    }
    stg_text_add(l, "\"", 1);
}

void stg_letter_add_base64(stg_text *line, stg_span bytes)
{
    size_t size = stg_base64_size(bytes.size);
    char *to = stg_text_reserve(line, size);

    if (to == NULL)
        return;
    stg_base64_put(to, bytes);
    line->size += size;
}

/* -- columns --------------------------------------------------------------- */

typedef enum type { NUMBER, TEXT, BYTES } type;

#define COLUMN(c, name, field, type, sql, header) \
    [STG_LETTER_##c] = {name, header, type, offsetof(stg_letter, field)},

static const struct {
    const char *name, *header;
    type type;
    size_t offset;
} columns[] = {STG_LETTER_LIGHT(COLUMN) STG_LETTER_REST(COLUMN)};

const char *stg_letter_name(stg_letter_column column)
{
    return columns[column].name;
}

const char *stg_letter_header(stg_letter_column column)
{
    return columns[column].header;
}

bool stg_letter_is_bytes(stg_letter_column column)
{
    return columns[column].type == BYTES;
}

/* The type in the table decides how the field at the offset is written: a TEXT
 * that is NULL stays NULL, a NUMBER becomes 0. */
static void read_column(stg_letter *l, stg_arena *a, stg_stmt *st,
                        stg_letter_column column, int at)
{
    void *field = (char *)l + columns[column].offset;

    switch (columns[column].type) {
    case NUMBER:
        *(uint64_t *)field = stg_sql_column(st, at);
        break;
    case TEXT:
        *(const char **)field = stg_arena_column(a, st, at).at;
        break;
    case BYTES:
        *(stg_span *)field = stg_arena_column(a, st, at);
        break;
    }
}

/* Light columns come first in both forms; then lane, partition and
 * is_forgotten; a whole letter has the rest behind them. */
void stg_letter_read(stg_letter *l, stg_arena *a, stg_stmt *st, bool is_whole)
{
    stg_letter_column c = 0;
    int at = STG_LETTER_LIGHT_COLUMNS;

    *l = (stg_letter){.id = 0};
    for (; c < STG_LETTER_LIGHT_COLUMNS; c++)
        read_column(l, a, st, c, (int)c);
    l->has_payload = !stg_sql_is_null(st, STG_LETTER_PAYLOAD_SIZE);
    l->is_evicted = stg_letter_is_evicted(l->why);
    l->lane = (uint32_t)stg_sql_column(st, at++);
    l->partition = (uint32_t)stg_sql_column(st, at++);
    at++; // STG_LETTER_IS_FORGOTTEN
    if (!is_whole)
        return;
    for (; c < STG_LETTER_COLUMNS; c++)
        read_column(l, a, st, c, at++);
    l->source_headers = stg_arena_column(a, st, at);
}

/* Where a number means that there is none. */
static bool has_number(const stg_letter *l, stg_letter_column column)
{
    switch (column) {
    case STG_LETTER_HTTP_STATUS:
        return l->http_status > 0;
    case STG_LETTER_PARTITION:
        return l->topic != NULL;
    case STG_LETTER_POSITION:
        return !l->is_evicted;
    case STG_LETTER_LAST_POSITION:
        return l->last_position > 0;
    case STG_LETTER_PAYLOAD_SIZE:
        return l->has_payload;
    default:
        return true;
    }
}

stg_letter_value stg_letter_get(const stg_letter *l, stg_letter_column column)
{
    const void *field = (const char *)l + columns[column].offset;
    stg_letter_value value = {.is_number = columns[column].type == NUMBER};

    if (columns[column].type == BYTES) {
        value.span = *(const stg_span *)field;
    } else if (columns[column].type == TEXT) {
        value.span.at = *(const char *const *)field;
        if (value.span.at != NULL)
            value.span.size = strlen(value.span.at);
    } else {
        value.number = *(const uint64_t *)field;
    }
    value.is_null =
        value.is_number ? !has_number(l, column) : value.span.at == NULL;
    return value;
}

/* Keeps the flags that say "there is none" in step with the values. */
void stg_letter_set(stg_letter *l, stg_letter_column column,
                    stg_letter_value value)
{
    void *field = (char *)l + columns[column].offset;

    if (columns[column].type == TEXT)
        *(const char **)field = value.is_null ? NULL : value.span.at;
    else if (columns[column].type == NUMBER)
        *(uint64_t *)field = value.is_null ? 0 : value.number;
    else
        *(stg_span *)field = value.is_null ? (stg_span){NULL, 0} : value.span;
    if (column == STG_LETTER_POSITION)
        l->is_evicted = value.is_null;
    if (column == STG_LETTER_PAYLOAD_SIZE)
        l->has_payload = !value.is_null;
}

const char *const stg_letter_states[] = {"dead",    "replayed",  "dropped",
                                         "expired", "cancelled", NULL};

bool stg_letter_is_state(const char *word)
{
    for (size_t i = 0; stg_letter_states[i] != NULL; i++)
        if (strcmp(word, stg_letter_states[i]) == 0)
            return true;
    return false;
}

/* As newest_of() in query.c, for a letter that was read. */
const char *stg_letter_newest(const stg_letter *l)
{
    bool is_one = l->last_position == 0 && !l->is_evicted;

    return is_one ? l->created_at : l->last_attempt_at;
}

/* -- a line ---------------------------------------------------------------- */

/* Bytes that are valid UTF-8 go as text, and others as base64 under a name of
 * their own: so who reads it never has to guess. */
static void write_column(stg_text *line, const stg_letter *l,
                         stg_letter_column column)
{
    stg_letter_value v = stg_letter_get(l, column);
    bool is_base64 = stg_letter_is_bytes(column) &&
                     !stg_utf8_is_text(v.span.at, v.span.size);
    char number[24];

    stg_text_put(line, column == 0 ? "{\"" : ", \"");
    stg_text_put(line, stg_letter_name(column));
    stg_text_put(line, is_base64 ? "_base64\": " : "\": ");
    if (v.is_null) {
        stg_text_put(line, "null");
    } else if (v.is_number) {
        snprintf(number, sizeof number, "%" PRIu64, v.number);
        stg_text_put(line, number);
    } else if (is_base64) {
        stg_text_add(line, "\"", 1);
        stg_letter_add_base64(line, v.span);
        stg_text_add(line, "\"", 1);
    } else {
        add_json(line, v.span);
    }
}

void stg_letter_write(stg_text *line, const stg_letter *l)
{
    for (stg_letter_column c = 0; c < STG_LETTER_COLUMNS; c++)
        write_column(line, l, c);
    stg_text_put(line, "}\n");
}
