/* stagger dead show: one dead letter with all that is known of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/event.h>
#include <stagger/fault.h>

#include "base/utf8.h"
#include "cli/dead/dead.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/terminal.h"

enum { INDENT = 16, TEXT = 2048 };

static const char *text_of(stg_stmt *row, stg_letter_column c)
{
    const char *text = stg_sql_text(row, (int)c);

    return text == NULL ? "" : text;
}

static bool is_range(stg_stmt *row)
{
    return !stg_sql_is_null(row, STG_LETTER_LAST_POSITION);
}

static bool has_payload(stg_stmt *row)
{
    return !stg_sql_is_null(row, STG_LETTER_PAYLOAD);
}

/* -- lines ----------------------------------------------------------------- */

/* Nothing is printed of what is empty. */
static void put(const stg_terminal *t, const char *label, const char *text)
{
    char line[TEXT], padded[INDENT + 1];

    if (*text == '\0')
        return;
    snprintf(padded, sizeof padded, "  %-*s", INDENT - 2, label);
    snprintf(line, sizeof line, "%s", text);
    stg_visible_string(line, STG_VISIBLE_IN_LINE);
    stg_terminal_wrap(t, INDENT, padded, STG_STYLE_FAINT, line);
}

/* The sentence to a reason's name. */
static const char *sentence_of(const char *why)
{
    for (int i = STG_WHY_DONE; i < STG_WHY_COUNT; i++)
        if (strcmp(stg_why_name((stg_why)i), why) == 0)
            return stg_why_sentence((stg_why)i);
    if (strcmp(why, "shed") == 0)
        return "the target was out of reach for longer than the lane holds, or "
               "than messages are kept";
    return "";
}

static void put_decision(const stg_terminal *t, stg_stmt *row)
{
    const char *why = text_of(row, STG_LETTER_WHY), *more = sentence_of(why);
    char line[TEXT];

    snprintf(line, sizeof line, "%s%s%s", why, *more == '\0' ? "" : ": ", more);
    put(t, "given up", line);
}

static void put_cause(const stg_terminal *t, stg_stmt *row)
{
    static const char *const categories[] = {
        "nothing was sent", "the server failed, or was silent",
        "the request is at fault", "the server asks for less"};
    const char *category = text_of(row, STG_LETTER_CATEGORY);
    char line[TEXT];

    if (*category >= 'A' && *category <= 'D')
        snprintf(line, sizeof line, "%s (%s: %s)",
                 text_of(row, STG_LETTER_CAUSE), category,
                 categories[*category - 'A']);
    else
        snprintf(line, sizeof line, "%s", text_of(row, STG_LETTER_CAUSE));
    put(t, "cause", line);
}

static void put_attempts(const stg_terminal *t, stg_stmt *row)
{
    const char *first = text_of(row, STG_LETTER_FIRST_ATTEMPT_AT);
    const char *last = text_of(row, STG_LETTER_LAST_ATTEMPT_AT);
    char line[TEXT];

    snprintf(line, sizeof line, "%s%s%s%s%s", text_of(row, STG_LETTER_ATTEMPTS),
             *first == '\0' ? "" : ", from ", first,
             *last == '\0' ? "" : " to ", last);
    put(t, "attempts", line);
}

/* -- the payload ----------------------------------------------------------- */

/* Whether it is shown as text, and not byte by byte. */
static bool is_text(stg_span bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        unsigned char c = (unsigned char)bytes.at[i];

        if ((c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 0x7f)
            return false;
    }
    return stg_utf8_is_text(bytes.at, bytes.size);
}

static void put_hex(stg_span bytes)
{
    for (size_t at = 0; at < bytes.size; at += 16) {
        size_t count = bytes.size - at < 16 ? bytes.size - at : 16;

        printf("  %08zx ", at);
        for (size_t i = 0; i < 16; i++)
            if (i < count)
                printf(" %02x", (unsigned char)bytes.at[at + i]);
            else
                fputs("   ", stdout);
        fputs("  ", stdout);
        for (size_t i = 0; i < count; i++) {
            char c = bytes.at[at + i];

            putchar(c >= ' ' && c <= '~' ? c : '.');
        }
        putchar('\n');
    }
}

static void put_blob(const char *title, stg_span bytes)
{
    printf("\n%s, %zu byte%s\n", title, bytes.size, bytes.size == 1 ? "" : "s");
    if (!is_text(bytes)) {
        put_hex(bytes);
        return;
    }
    stg_say_text(stdout, bytes.at, bytes.size, STG_VISIBLE_IN_TEXT);
    if (bytes.size > 0 && bytes.at[bytes.size - 1] != '\n')
        putchar('\n');
}

/* -- a row ----------------------------------------------------------------- */

static uint64_t first_message(dead_rows *r)
{
    stg_stmt *st = NULL;
    uint64_t first = UINT64_MAX;

    if (stg_sql_prepare(r->db, &st,
                        "SELECT position FROM messages"
                        " ORDER BY position LIMIT 1") == SQLITE_OK)
        stg_sql_number(st, &first);
    return first;
}

/* The bodies of a bulk row are in the queue, for as long as it keeps them. */
static void put_range(dead_rows *r, const stg_terminal *t, stg_stmt *row)
{
    uint64_t first = stg_sql_column(row, STG_LETTER_POSITION), kept;
    uint64_t last = stg_sql_column(row, STG_LETTER_LAST_POSITION);
    char line[TEXT];

    snprintf(line, sizeof line,
             "%" PRIu64
             ", all that the target was to get from position %" PRIu64
             " to %" PRIu64,
             stg_sql_column(row, STG_LETTER_COUNT), first, last);
    put(t, "messages", line);
    put(t, "newest", text_of(row, STG_LETTER_LAST_ATTEMPT_AT));
    if (!stg_sql_is_null(row, STG_LETTER_TOPIC) ||
        strcmp(text_of(row, STG_LETTER_STATE), "dead") != 0)
        return;
    kept = first_message(r);
    if (kept > last)
        snprintf(line, sizeof line, "expired: the queue has none of them");
    else if (kept > first)
        snprintf(line, sizeof line,
                 "in the queue from position %" PRIu64
                 " on; those before have "
                 "expired",
                 kept);
    else
        snprintf(line, sizeof line, "in the queue");
    put(t, "payloads", line);
}

/* A replay has taken it with it, and a drop has thrown it away. */
static void put_gone(const stg_terminal *t, stg_stmt *row)
{
    bool is_replayed = strcmp(text_of(row, STG_LETTER_STATE), "replayed") == 0;

    if (strcmp(text_of(row, STG_LETTER_STATE), "dead") == 0) {
        put(t, "payload", "was too large to be kept");
        return;
    }
    put(t, "payload",
        is_replayed ? "went with the delivery that was made of it"
                    : "is not kept any more");
}

static void put_all(dead_rows *r, stg_stmt *row)
{
    stg_terminal t = stg_terminal_look();

    printf("%sDead letter %" PRIu64 "%s\n",
           stg_terminal_style(&t, STG_STYLE_BOLD),
           stg_sql_column(row, STG_LETTER_ID),
           stg_terminal_style(&t, STG_STYLE_PLAIN));
    put(&t, "message", text_of(row, STG_LETTER_MESSAGE_ID));
    put(&t, "topic", text_of(row, STG_LETTER_TOPIC));
    put(&t, "target", text_of(row, STG_LETTER_TARGET));
    put(&t, "url", text_of(row, STG_LETTER_TARGET_URL));
    put(&t, "state", text_of(row, STG_LETTER_STATE));
    put(&t, "since", text_of(row, STG_LETTER_CREATED_AT));
    put(&t, "changed", text_of(row, STG_LETTER_CHANGED_AT));
    put_decision(&t, row);
    put_cause(&t, row);
    put(&t, "detail", text_of(row, STG_LETTER_DETAIL));
    if (is_range(row))
        put_range(r, &t, row);
    else
        put_attempts(&t, row);
    if (!is_range(row) && !has_payload(row))
        put_gone(&t, row);
    if (stg_sql_column(row, STG_LETTER_REPLAY) > 0)
        put(&t, "replays", text_of(row, STG_LETTER_REPLAY));
    put(&t, "content type", text_of(row, STG_LETTER_CONTENT_TYPE));
    put(&t, "key", text_of(row, STG_LETTER_KEY));
    if (!stg_sql_is_null(row, STG_LETTER_SOURCE_KEY))
        put_blob("Key of the record",
                 stg_sql_column_span(row, STG_LETTER_SOURCE_KEY));
    if (!stg_sql_is_null(row, STG_LETTER_HEADERS))
        put_blob("Headers", stg_sql_column_span(row, STG_LETTER_HEADERS));
    if (!stg_sql_is_null(row, STG_LETTER_ANSWER))
        put_blob("Answer", stg_sql_column_span(row, STG_LETTER_ANSWER));
    if (has_payload(row))
        put_blob("Payload", stg_sql_column_span(row, STG_LETTER_PAYLOAD));
}

static int put_raw(const dead_options *o, stg_stmt *row)
{
    stg_span payload = stg_sql_column_span(row, STG_LETTER_PAYLOAD);

    if (!is_range(row) && !has_payload(row)) {
        stg_options_complain("stagger dead", "%s was %s, and has no payload",
                             o->id, text_of(row, STG_LETTER_STATE));
        return 1;
    }
    if (is_range(row)) {
        stg_options_complain("stagger dead",
                             "%s stands for many messages, and has no payload "
                             "of its own",
                             o->id);
        return 1;
    }
    stg_say_bytes(stdout, payload.at, payload.size);
    return 0;
}

static int put_json(stg_stmt *row)
{
    stg_letter_line line = {.size = 0};
    bool is_short;

    stg_letter_write(&line, row);
    is_short = line.is_short;
    if (!is_short)
        fwrite(line.at, 1, line.size, stdout);
    stg_line_free(&line);
    return is_short ? STG_EXIT_USAGE : 0;
}

static int show(dead_rows *r, const dead_options *o)
{
    char *end;
    uint64_t id = strtoull(o->id, &end, 10);
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare(r->db, &st,
                             "SELECT " STG_LETTER_SELECT
                             " FROM failed_broadcast_logs WHERE id = ?");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "u", id);
    if (rc == SQLITE_OK)
        rc = stg_sql_step(st);
    if (rc == SQLITE_DONE) {
        stg_options_complain("stagger dead", "there is no dead letter %s",
                             o->id);
        return 1;
    }
    if (rc != SQLITE_ROW)
        return dead_fail(r, rc);
    if (o->is_raw)
        return put_raw(o, st);
    if (o->is_json)
        return put_json(st);
    put_all(r, st);
    return 0;
}

int dead_show(const dead_options *o)
{
    dead_rows r;
    int code;

    if (!dead_open(&r, o)) {
        dead_close(&r);
        return STG_EXIT_USAGE;
    }
    code = show(&r, o);
    dead_close(&r);
    return stg_options_finish("stagger dead", code);
}
