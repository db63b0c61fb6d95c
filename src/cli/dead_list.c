/* stagger dead list: a table that fits the terminal, or JSON, or CSV. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/dead.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/terminal.h"

/* What is listed of a letter, in JSON and CSV. */
static const stg_letter_column listed[] = {STG_LETTER_ID,
                                           STG_LETTER_MESSAGE_ID,
                                           STG_LETTER_TARGET,
                                           STG_LETTER_STATE,
                                           STG_LETTER_WHY,
                                           STG_LETTER_CATEGORY,
                                           STG_LETTER_CAUSE,
                                           STG_LETTER_HTTP_STATUS,
                                           STG_LETTER_DETAIL,
                                           STG_LETTER_ATTEMPTS,
                                           STG_LETTER_CREATED_AT,
                                           STG_LETTER_POSITION,
                                           STG_LETTER_LAST_POSITION,
                                           STG_LETTER_COUNT};

enum { LISTED = sizeof listed / sizeof *listed };

/* -- JSON, CSV ------------------------------------------------------------- */

static void list_json(void *ctx, sqlite3_stmt *row)
{
    stg_json *j = ctx;

    stg_json_open_row(j, NULL);
    for (size_t i = 0; i < LISTED; i++) {
        const char *name = stg_letter_name(listed[i]);
        int column = (int)listed[i];

        if (sqlite3_column_type(row, column) == SQLITE_NULL)
            stg_json_null(j, name);
        else if (sqlite3_column_type(row, column) == SQLITE_INTEGER)
            stg_json_number(j, name, stg_sql_column(row, column));
        else
            stg_json_string(j, name,
                            (const char *)sqlite3_column_text(row, column));
    }
    stg_json_close(j, '}');
}

static void list_csv(void *ctx, sqlite3_stmt *row)
{
    (void)ctx;
    for (size_t i = 0; i < LISTED; i++) {
        // Numbers as text, too.
        sqlite3_column_text(row, (int)listed[i]);
        dead_put_csv(stg_sql_column_span(row, (int)listed[i]), i == LISTED - 1);
    }
}

static int print_json(dead_rows *r)
{
    stg_json j = {.depth = 0};
    int rc;

    stg_json_open(&j, NULL, '{');
    stg_json_open(&j, "dead_letters", '[');
    rc = dead_read(r, list_json, &j);
    stg_json_close(&j, ']');
    stg_json_close(&j, '}');
    return rc;
}

static int print_csv(dead_rows *r)
{
    for (size_t i = 0; i < LISTED; i++) {
        const char *name = stg_letter_name(listed[i]);

        dead_put_csv((stg_span){name, strlen(name)}, i == LISTED - 1);
    }
    return dead_read(r, list_csv, NULL);
}

/* -- the table ------------------------------------------------------------- */

typedef enum column {
    COLUMN_ID,
    COLUMN_TIME,
    COLUMN_TARGET,
    COLUMN_CAUSE,
    COLUMN_STATE,
    COLUMN_ATTEMPTS,
    COLUMN_COUNT,
    COLUMN_MESSAGE,
    COLUMNS
} column;

static const struct {
    const char *title;
    int least;     /* it is not cut to less */
    bool is_right; /* a number */
} columns[COLUMNS] = {
    [COLUMN_ID] = {"id", 20, true},
    [COLUMN_TIME] = {"time (UTC)", 19, false},
    [COLUMN_TARGET] = {"target", 8, false},
    [COLUMN_CAUSE] = {"cause", 8, false},
    [COLUMN_STATE] = {"state", 9, false},
    [COLUMN_ATTEMPTS] = {"attempts", 8, true},
    [COLUMN_COUNT] = {"count", 20, true},
    [COLUMN_MESSAGE] = {"message", 0, false},
};

typedef struct table {
    stg_terminal terminal;
    int widths[COLUMNS]; /* 0: left out */
} table;

static int width_of(const char *title, uint64_t widest)
{
    int width = (int)strlen(title);

    return widest > (uint64_t)width ? (int)widest : width;
}

static int row_width(const table *t)
{
    int width = 0;

    for (int i = 0; i < COLUMNS; i++)
        width += t->widths[i] == 0 ? 0 : t->widths[i] + (width > 0 ? 2 : 0);
    return width;
}

/* Takes from one column what the row is too long by; one that is left with next
 * to nothing goes. */
static void cut(table *t, column c)
{
    enum { NOTHING = 6 };
    int over = row_width(t) - t->terminal.width;
    int least = columns[c].least, width = t->widths[c];

    if (over <= 0 || width <= least)
        return;
    width = width - over > least ? width - over : least;
    t->widths[c] = width < NOTHING ? 0 : width;
}

/* How wide things are, asked of the store before the first line. */
static int measure(dead_rows *r, table *t)
{
    static const char select[] =
        "SELECT max(length(id)), 19, max(length(target)), max(length(cause)),"
        " CASE WHEN max(state <> 'dead') THEN max(length(state)) END,"
        " max(length(attempts)),"
        " CASE WHEN max(count) > 1 THEN max(length(count)) END,"
        " max(length(message_id))";
    bool is_bounded = isatty(STDOUT_FILENO) == 1 || getenv("COLUMNS") != NULL;
    sqlite3_stmt *st;
    int rc = dead_ask(r, &st, select, "");

    if (rc == SQLITE_OK)
        rc = stg_sql_step(st);
    if (rc != SQLITE_ROW)
        return rc;
    for (int i = 0; i < COLUMNS; i++)
        t->widths[i] = (i == COLUMN_STATE || i == COLUMN_COUNT) &&
                               sqlite3_column_type(st, i) == SQLITE_NULL
                           ? 0
                           : width_of(columns[i].title, stg_sql_column(st, i));
    rc = sqlite3_reset(st);
    // A file or a pipe takes lines of any length.
    if (is_bounded) {
        cut(t, COLUMN_TARGET);
        cut(t, COLUMN_CAUSE);
        cut(t, COLUMN_MESSAGE);
    }
    return rc;
}

/* What a terminal must not take for a command is a question mark; the rest of
 * what is too long is dots. */
static void put_cell(const table *t, column c, const char *text)
{
    size_t length = strlen(text), width = (size_t)t->widths[c];
    bool is_cut = length > width && !columns[c].is_right;
    size_t shown = is_cut ? (width > 2 ? width - 2 : 0) : length;

    if (columns[c].is_right)
        printf("%*s", (int)(width > length ? width - length : 0), "");
    for (size_t i = 0; i < shown; i++)
        putchar((unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?'
                                                                : text[i]);
    if (is_cut)
        fputs(width > 1 ? ".." : "", stdout);
    if (!columns[c].is_right && c != COLUMN_MESSAGE && length < width)
        printf("%*s", (int)(width - length), "");
}

static void put_row(const table *t, const char *const cells[COLUMNS])
{
    bool is_first = true;

    for (int i = 0; i < COLUMNS; i++) {
        if (t->widths[i] <= 0)
            continue;
        fputs(is_first ? "" : "  ", stdout);
        put_cell(t, (column)i, cells[i]);
        is_first = false;
    }
    putchar('\n');
}

static const char *text_of(sqlite3_stmt *row, stg_letter_column c)
{
    const char *text = (const char *)sqlite3_column_text(row, (int)c);

    return text == NULL ? "" : text;
}

static void list_row(void *ctx, sqlite3_stmt *row)
{
    const char *count = text_of(row, STG_LETTER_COUNT);
    char time[20];

    snprintf(time, sizeof time, "%.19s", text_of(row, STG_LETTER_CREATED_AT));
    if (strlen(time) > 10)
        time[10] = ' ';
    put_row(ctx,
            (const char *const[COLUMNS]){text_of(row, STG_LETTER_ID), time,
                                         text_of(row, STG_LETTER_TARGET),
                                         text_of(row, STG_LETTER_CAUSE),
                                         text_of(row, STG_LETTER_STATE),
                                         text_of(row, STG_LETTER_ATTEMPTS),
                                         strcmp(count, "1") == 0 ? "" : count,
                                         text_of(row, STG_LETTER_MESSAGE_ID)});
}

/* -- the closing line ------------------------------------------------------ */

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* "12 dead letters for 511 messages: HTTP_503 8, SHED 4". */
static int put_sums(dead_rows *r)
{
    sqlite3_stmt *st;
    uint64_t letters = 0, messages = 0;
    char line[512] = "";
    int rc = dead_ask(r, &st,
                      "SELECT ifnull(cause, 'no cause'), count(*), sum(count)",
                      " GROUP BY 1 ORDER BY 2 DESC, 1");

    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        size_t at = strlen(line);

        snprintf(line + at, sizeof line - at, "%s%s %" PRIu64,
                 at > 0 ? ", " : "", (const char *)sqlite3_column_text(st, 0),
                 stg_sql_column(st, 1));
        letters += stg_sql_column(st, 1);
        messages += stg_sql_column(st, 2);
        rc = SQLITE_OK;
    }
    printf("%" PRIu64 " dead letter%s", letters, plural(letters));
    if (messages > letters)
        printf(" for %" PRIu64 " messages", messages);
    printf(": %s\n", line);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int count_rows(dead_rows *r, uint64_t *count)
{
    sqlite3_stmt *st;
    int rc = dead_ask(r, &st, "SELECT count(*)", "");

    return rc == SQLITE_OK ? stg_sql_number(st, count) : rc;
}

static bool is_filtered(const dead_options *o)
{
    return o->target != NULL || o->cause != NULL || o->state != NULL ||
           o->since[0] != '\0' || o->until[0] != '\0';
}

static int print_table(dead_rows *r)
{
    const char *titles[COLUMNS];
    table t = {.terminal = stg_terminal_look()};
    uint64_t count = 0;
    int rc = count_rows(r, &count);

    if (rc == SQLITE_OK && count == 0) {
        puts(is_filtered(r->o) ? "No dead letters that match."
                               : "No dead letters.");
        return SQLITE_OK;
    }
    if (rc == SQLITE_OK)
        rc = measure(r, &t);
    if (rc != SQLITE_OK)
        return rc;
    for (int i = 0; i < COLUMNS; i++)
        titles[i] = columns[i].title;
    fputs(stg_terminal_style(&t.terminal, STG_STYLE_BOLD), stdout);
    put_row(&t, titles);
    fputs(stg_terminal_style(&t.terminal, STG_STYLE_PLAIN), stdout);
    rc = dead_read(r, list_row, &t);
    return rc == SQLITE_OK ? put_sums(r) : rc;
}

int dead_list(const dead_options *o)
{
    dead_rows r;
    int rc, code = 0;

    if (!dead_open(&r, o)) {
        dead_close(&r);
        return STG_EXIT_USAGE;
    }
    rc = o->is_json  ? print_json(&r)
         : o->is_csv ? print_csv(&r)
                     : print_table(&r);
    if (rc != SQLITE_OK)
        code = dead_fail(&r, rc);
    dead_close(&r);
    return stg_options_finish("stagger dead", code);
}
