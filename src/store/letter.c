#include "store/letter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "base/visible.h"

void stg_line_free(stg_letter_line *l)
{
    free(l->at);
    *l = (stg_letter_line){.size = 0};
}

static char *make_room(stg_letter_line *l, size_t size)
{
    size_t room = l->room == 0 ? 1024 : l->room;
    char *at;

    while (room - l->size < size)
        room *= 2;
    if (room > l->room) {
        at = realloc(l->at, room);
        if (at == NULL) {
            l->is_short = true;
            return NULL;
        }
        l->at = at;
        l->room = room;
    }
    return l->at + l->size;
}

static void add(stg_letter_line *l, const char *text, size_t size)
{
    char *to = make_room(l, size);

    if (to == NULL || size == 0)
        return;
    memcpy(to, text, size);
    l->size += size;
}

static void add_text(stg_letter_line *l, const char *text)
{
    add(l, text, strlen(text));
}

/* A character that may not stand for itself. */
static void add_escape(stg_letter_line *l, uint32_t c)
{
    static const char names[] = "\"\"\\\\\nn\rr\tt";
    char text[STG_VISIBLE_ESCAPE_MAX];

    for (size_t i = 0; names[i] != '\0'; i += 2)
        if ((unsigned char)names[i] == c) {
            add(l, "\\", 1);
            add(l, &names[i + 1], 1);
            return;
        }
    add(l, text, stg_visible_escape(c, text));
}

static void add_json(stg_letter_line *l, stg_span text)
{
    add(l, "\"", 1);
    for (size_t i = 0; i < text.size;) {
        stg_visible_char c =
            stg_visible_next(text.at + i, text.size - i, STG_VISIBLE_IN_LINE);

        if (!c.is_visible || c.code == '"' || c.code == '\\')
            add_escape(l, c.code);
        else
            add(l, text.at + i, c.size);
        i += c.size;
    }
    add(l, "\"", 1);
}

void stg_line_add_base64(stg_letter_line *l, stg_span bytes)
{
    size_t size = stg_base64_size(bytes.size);
    char *to = make_room(l, size);

    if (to == NULL)
        return;
    stg_base64_put(to, bytes);
    l->size += size;
}

/* -- a row ----------------------------------------------------------------- */

const char *stg_letter_name(stg_letter_column column)
{
    static const char *const names[] = {
        [STG_LETTER_ID] = "id",
        [STG_LETTER_MESSAGE_ID] = "message_id",
        [STG_LETTER_TARGET] = "target",
        [STG_LETTER_TARGET_URL] = "target_url",
        [STG_LETTER_STATE] = "state",
        [STG_LETTER_WHY] = "why",
        [STG_LETTER_CATEGORY] = "category",
        [STG_LETTER_CAUSE] = "cause",
        [STG_LETTER_HTTP_STATUS] = "http_status",
        [STG_LETTER_DETAIL] = "detail",
        [STG_LETTER_ATTEMPTS] = "attempts",
        [STG_LETTER_FIRST_ATTEMPT_AT] = "first_attempt_at",
        [STG_LETTER_LAST_ATTEMPT_AT] = "last_attempt_at",
        [STG_LETTER_CREATED_AT] = "created_at",
        [STG_LETTER_CHANGED_AT] = "changed_at",
        [STG_LETTER_TOPIC] = "topic",
        [STG_LETTER_PARTITION] = "partition",
        [STG_LETTER_POSITION] = "position",
        [STG_LETTER_LAST_POSITION] = "last_position",
        [STG_LETTER_COUNT] = "count",
        [STG_LETTER_REPLAY] = "replay",
        [STG_LETTER_CONTENT_TYPE] = "content_type",
        [STG_LETTER_HEADERS] = "headers",
        [STG_LETTER_KEY] = "key",
        [STG_LETTER_SOURCE_KEY] = "source_key",
        [STG_LETTER_ANSWER] = "answer",
        [STG_LETTER_PAYLOAD] = "payload",
    };

    return names[column];
}

bool stg_letter_is_bytes(int column)
{
    return column == STG_LETTER_SOURCE_KEY || column == STG_LETTER_ANSWER ||
           column == STG_LETTER_PAYLOAD;
}

static void write_column(stg_letter_line *l, stg_stmt *st, int column)
{
    stg_span text = stg_sql_column_span(st, column);
    bool is_base64 = stg_letter_is_bytes(column) &&
                     stg_sql_is_blob(st, column) &&
                     !stg_utf8_is_text(text.at, text.size);

    add_text(l, column == 0 ? "{\"" : ", \"");
    add_text(l, stg_letter_name((stg_letter_column)column));
    add_text(l, is_base64 ? "_base64\": " : "\": ");
    if (stg_sql_is_null(st, column)) {
        add_text(l, "null");
    } else if (stg_sql_is_number(st, column)) {
        add_text(l, stg_sql_text(st, column));
    } else if (is_base64) {
        add(l, "\"", 1);
        stg_line_add_base64(l, text);
        add(l, "\"", 1);
    } else {
        add_json(l, text);
    }
}

void stg_letter_write(stg_letter_line *l, stg_stmt *st)
{
    for (int column = 0; column < STG_LETTER_COLUMNS; column++)
        write_column(l, st, column);
    add_text(l, "}\n");
}
