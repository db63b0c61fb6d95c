/* stagger dead list: a table that fits the terminal, or JSON, or CSV. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/dead/dead.h"
#include "cli/dead/table.h"
#include "cli/json.h"
#include "cli/options.h"

/* What is listed of a letter, in JSON and CSV. */
static const stg_letter_column listed[] = {
    STG_LETTER_ID,        STG_LETTER_MESSAGE_ID,  STG_LETTER_TARGET,
    STG_LETTER_STATE,     STG_LETTER_WHY,         STG_LETTER_CATEGORY,
    STG_LETTER_CAUSE,     STG_LETTER_HTTP_STATUS, STG_LETTER_DETAIL,
    STG_LETTER_ATTEMPTS,  STG_LETTER_CREATED_AT,  STG_LETTER_TOPIC,
    STG_LETTER_PARTITION, STG_LETTER_POSITION,    STG_LETTER_LAST_POSITION,
    STG_LETTER_COUNT};

enum { LISTED = sizeof listed / sizeof *listed };

/* -- JSON, CSV ------------------------------------------------------------- */

static void list_json(void *ctx, stg_stmt *row)
{
    stg_json *j = ctx;

    stg_json_open_row(j, NULL);
    for (size_t i = 0; i < LISTED; i++) {
        const char *name = stg_letter_name(listed[i]);
        int column = (int)listed[i];

        if (stg_sql_is_null(row, column))
            stg_json_null(j, name);
        else if (stg_sql_is_number(row, column))
            stg_json_number(j, name, stg_sql_column(row, column));
        else
            stg_json_string(j, name, stg_sql_text(row, column));
    }
    stg_json_close(j, '}');
}

static void list_csv(void *ctx, stg_stmt *row)
{
    (void)ctx;
    for (size_t i = 0; i < LISTED; i++) {
        // Numbers as text, too.
        stg_sql_text(row, (int)listed[i]);
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

static const dead_column columns[COLUMNS] = {
    [COLUMN_ID] = {"id", 20, true},
    [COLUMN_TIME] = {"time (UTC)", 19, false},
    [COLUMN_TARGET] = {"target", 8, false},
    [COLUMN_CAUSE] = {"cause", 8, false},
    [COLUMN_STATE] = {"state", 9, false},
    [COLUMN_ATTEMPTS] = {"attempts", 8, true},
    [COLUMN_COUNT] = {"count", 20, true},
    [COLUMN_MESSAGE] = {"message", 0, false},
};

/* How wide things are, asked of the store before the first line. */
static int measure(dead_rows *r, dead_table *t)
{
    static const char select[] =
        "SELECT length(CAST(max(id) AS TEXT)), 19, max(length(target)),"
        " max(length(cause)),"
        " CASE WHEN max(CASE state WHEN 'dead' THEN 0 ELSE 1 END) = 1"
        " THEN max(length(state)) END,"
        " length(CAST(max(attempts) AS TEXT)),"
        " CASE WHEN max(count) > 1 THEN length(CAST(max(count) AS TEXT)) END,"
        " max(length(message_id))";
    stg_stmt *st;
    int rc = dead_ask(r, &st, select, "");

    if (rc == SQLITE_OK)
        rc = stg_sql_step(st);
    if (rc != SQLITE_ROW)
        return rc;
    for (int i = 0; i < COLUMNS; i++)
        if ((i != COLUMN_STATE && i != COLUMN_COUNT) || !stg_sql_is_null(st, i))
            dead_table_widen(t, i, stg_sql_column(st, i));
    dead_table_cut(t, COLUMN_TARGET);
    dead_table_cut(t, COLUMN_CAUSE);
    dead_table_cut(t, COLUMN_MESSAGE);
    return stg_sql_reset(st);
}

static const char *text_of(stg_stmt *row, stg_letter_column c)
{
    const char *text = stg_sql_text(row, (int)c);

    return text == NULL ? "" : text;
}

static void list_row(void *ctx, stg_stmt *row)
{
    const char *count = text_of(row, STG_LETTER_COUNT);
    char time[20];

    snprintf(time, sizeof time, "%.19s", text_of(row, STG_LETTER_CREATED_AT));
    if (strlen(time) > 10)
        time[10] = ' ';
    dead_table_put(
        ctx, (const char *const[COLUMNS]){text_of(row, STG_LETTER_ID), time,
                                          text_of(row, STG_LETTER_TARGET),
                                          text_of(row, STG_LETTER_CAUSE),
                                          text_of(row, STG_LETTER_STATE),
                                          text_of(row, STG_LETTER_ATTEMPTS),
                                          strcmp(count, "1") == 0 ? "" : count,
                                          text_of(row, STG_LETTER_MESSAGE_ID)});
}

/* -- all of it ------------------------------------------------------------- */

static int count_rows(dead_rows *r, uint64_t *count)
{
    stg_stmt *st;
    int rc = dead_ask(r, &st, "SELECT count(*)", "");

    return rc == SQLITE_OK ? stg_sql_number(st, count) : rc;
}

static bool is_filtered(const dead_options *o)
{
    return o->target != NULL || o->cause != NULL || o->state != NULL ||
           o->since[0] != '\0' || o->until[0] != '\0';
}

/* A name that nobody has is a slip, and not good news. */
static int put_none(dead_rows *r)
{
    stg_stmt *st = NULL;
    uint64_t known = 1;
    int rc = SQLITE_OK;

    if (r->o->target != NULL) {
        rc = stg_sql_prepare(r->db, &st,
                             "SELECT EXISTS (SELECT 1 FROM lanes WHERE"
                             " name = ?1) OR EXISTS (SELECT 1 FROM"
                             " failed_broadcast_logs WHERE target = ?1)");
        if (rc == SQLITE_OK)
            rc = stg_sql_bind(st, "s", r->o->target);
        if (rc == SQLITE_OK)
            rc = stg_sql_number(st, &known);
    }
    if (rc == SQLITE_OK)
        puts(known == 0          ? "No target and no dead letter has this name."
             : is_filtered(r->o) ? "No dead letters that match."
                                 : "No dead letters.");
    return rc;
}

static int print_table(dead_rows *r, uint64_t count)
{
    dead_table t = dead_table_make(columns, COLUMNS);
    uint64_t limit = r->o->limit;
    int rc = measure(r, &t);

    if (rc != SQLITE_OK)
        return rc;
    dead_table_put_titles(&t);
    rc = dead_read(r, list_row, &t);
    if (limit > 0 && limit < count)
        printf("and %" PRIu64 " older\n", count - limit);
    return rc == SQLITE_OK ? dead_put_sums(r) : rc;
}

static int print_text(dead_rows *r)
{
    uint64_t count = 0;
    int rc = count_rows(r, &count);

    if (rc != SQLITE_OK)
        return rc;
    if (count == 0)
        return put_none(r);
    return r->o->is_summary ? dead_summary(r) : print_table(r, count);
}

static int print(dead_rows *r)
{
    const dead_options *o = r->o;

    if (!o->is_json && !o->is_csv)
        return print_text(r);
    if (o->is_summary)
        return dead_summary(r);
    return o->is_json ? print_json(r) : print_csv(r);
}

int dead_list(const dead_options *o)
{
    dead_rows r;
    int rc, code = 0;

    if (!dead_open(&r, o)) {
        dead_close(&r);
        return r.code;
    }
    rc = print(&r);
    if (rc != SQLITE_OK)
        code = dead_fail(&r, rc);
    dead_close(&r);
    return stg_options_finish("stagger dead", code);
}
