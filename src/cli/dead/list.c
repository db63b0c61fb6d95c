/* stagger dead list and export: the rows as a table that fits the terminal, as
 * JSON, as CSV, or whole. The columns are those of store/letter.h, wherever they
 * are printed. A table needs two passes, as its widths are those of all rows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/visible.h"
#include "cli/dead/dead.h"
#include "cli/options.h"
#include "cli/terminal.h"

/* -- JSON, CSV ------------------------------------------------------------- */

/* The light columns only; payloads are what export is for. */
static void list_json(void *ctx, const stg_letter *l)
{
    stg_json *j = ctx;

    stg_json_open_row(j, NULL);
    for (stg_letter_column c = 0; c < STG_LETTER_LIGHT_COLUMNS; c++) {
        const char *name = stg_letter_name(c);
        stg_letter_value v = stg_letter_get(l, c);

        if (v.is_null)
            stg_json_null(j, name);
        else if (v.is_number)
            stg_json_number(j, name, v.number);
        else
            stg_json_string(j, name, v.span.at);
    }
    stg_json_close(j, '}');
}

static void put_cell(const char *text, stg_letter_column c)
{
    dead_put_csv((stg_span){text, strlen(text)},
                 c == STG_LETTER_LIGHT_COLUMNS - 1);
}

static void list_csv(void *ctx, const stg_letter *l)
{
    char number[DEAD_NUMBER_MAX];

    (void)ctx;
    for (stg_letter_column c = 0; c < STG_LETTER_LIGHT_COLUMNS; c++)
        put_cell(dead_text(l, c, number), c);
}

static int print_json(dead_rows *r)
{
    stg_json j = {.depth = 0};
    int rc;

    stg_json_open(&j, NULL, '{');
    stg_json_open(&j, "dead_letters", '[');
    rc = dead_read(r, r->o->limit, false, list_json, &j);
    stg_json_close(&j, ']');
    stg_json_close(&j, '}');
    return rc;
}

static int print_csv(dead_rows *r)
{
    for (stg_letter_column c = 0; c < STG_LETTER_LIGHT_COLUMNS; c++)
        put_cell(stg_letter_name(c), c);
    return dead_read(r, r->o->limit, false, list_csv, NULL);
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

static const stg_grid_column columns[COLUMNS] = {
    [COLUMN_ID] = {"id", 20, true},
    [COLUMN_TIME] = {"time (UTC)", 19, false},
    [COLUMN_TARGET] = {"target", 8, false},
    [COLUMN_CAUSE] = {"cause", 8, false},
    [COLUMN_STATE] = {"state", 9, false},
    [COLUMN_ATTEMPTS] = {"attempts", 8, true},
    [COLUMN_COUNT] = {"count", 20, true},
    [COLUMN_MESSAGE] = {"message", 0, false},
};

/* All of them, before the first line: how wide things are, and how many. */
typedef struct totals {
    size_t widest[COLUMNS];
    bool has_other; /* than dead */
    dead_groups groups;
} totals;

typedef struct cells {
    char id[DEAD_NUMBER_MAX], attempts[DEAD_NUMBER_MAX], count[DEAD_NUMBER_MAX];
    char time[20];
    const char *at[COLUMNS];
} cells;

/* The count is shown only for bulk letters, so that the column can be left out
 * where there are none. */
static void print_cells(cells *c, const stg_letter *l)
{
    snprintf(c->time, sizeof c->time, "%.19s", dead_or_none(l->created_at));
    if (strlen(c->time) > 10)
        c->time[10] = ' ';
    c->at[COLUMN_ID] = dead_text(l, STG_LETTER_ID, c->id);
    c->at[COLUMN_TIME] = c->time;
    c->at[COLUMN_TARGET] = dead_or_none(l->target);
    c->at[COLUMN_CAUSE] = dead_or_none(l->cause);
    c->at[COLUMN_STATE] = dead_or_none(l->state);
    c->at[COLUMN_ATTEMPTS] = dead_text(l, STG_LETTER_ATTEMPTS, c->attempts);
    c->at[COLUMN_COUNT] =
        l->count == 1 ? "" : dead_text(l, STG_LETTER_COUNT, c->count);
    c->at[COLUMN_MESSAGE] = dead_or_none(l->message_id);
}

static void add_up(void *ctx, const stg_letter *l)
{
    totals *t = ctx;
    cells c = {.at = {NULL}};

    print_cells(&c, l);
    for (int i = 0; i < COLUMNS; i++)
        if (strlen(c.at[i]) > t->widest[i])
            t->widest[i] = strlen(c.at[i]);
    t->has_other |= strcmp(c.at[COLUMN_STATE], "dead") != 0;
    dead_groups_add(&t->groups, l);
}

static void list_row(void *ctx, const stg_letter *l)
{
    cells c = {.at = {NULL}};

    print_cells(&c, l);
    stg_grid_put(ctx, c.at);
}

/* -- all of it ------------------------------------------------------------- */

static bool is_filtered(const dead_options *o)
{
    return o->filter.target != NULL || o->cause_word != NULL ||
           o->filter.state != NULL || o->filter.since > 0 ||
           o->filter.until > 0;
}

/* The second pass reads again: rows may have come since, and are cut like
 * others. */
static int print_table(dead_rows *r, totals *sum)
{
    stg_grid t = stg_grid_make(columns, COLUMNS);
    uint64_t limit = r->o->limit;
    int rc;

    for (int i = 0; i < COLUMNS; i++)
        if ((i != COLUMN_STATE || sum->has_other) &&
            (i != COLUMN_COUNT || sum->widest[i] > 0))
            stg_grid_widen(&t, i, sum->widest[i]);
    stg_grid_cut(&t, COLUMN_TARGET);
    stg_grid_cut(&t, COLUMN_CAUSE);
    stg_grid_cut(&t, COLUMN_MESSAGE);
    stg_grid_put_titles(&t);
    rc = dead_read(r, limit, false, list_row, &t);
    if (limit > 0 && limit < sum->groups.letters)
        printf("and %" PRIu64 " older\n", sum->groups.letters - limit);
    if (rc == SQLITE_OK && !dead_put_sums(r, &sum->groups))
        rc = SQLITE_NOMEM;
    return rc;
}

/* JSON and CSV need no widths and are written in one pass. The first pass of
 * the table and of the summary ignores --limit: the closing line counts all
 * letters. Of none there is no table. */
static int print(dead_rows *r)
{
    const dead_options *o = r->o;
    bool is_text = o->form == DEAD_TEXT;
    totals t = {.has_other = false};
    int rc;

    if (!is_text && !o->is_summary)
        return o->form == DEAD_JSON ? print_json(r) : print_csv(r);
    rc = dead_read(r, 0, false, add_up, &t);
    if (rc == SQLITE_OK && t.groups.texts.is_short)
        rc = SQLITE_NOMEM;
    if (rc == SQLITE_OK && o->is_summary && (!is_text || t.groups.letters > 0))
        rc = dead_summary(r, &t.groups) ? SQLITE_OK : SQLITE_NOMEM;
    else if (rc == SQLITE_OK && t.groups.letters > 0)
        rc = print_table(r, &t);
    dead_groups_free(&t.groups);
    return rc;
}

int dead_list(const dead_options *o)
{
    dead_rows r;
    int code = dead_open(&r, o), rc;

    if (code == 0 && (rc = print(&r)) != SQLITE_OK)
        code = dead_fail(&r, rc);
    else if (code == 0)
        code = dead_check_target(&r);
    if (code == 0 && r.count == 0 && o->form == DEAD_TEXT)
        puts(is_filtered(o) ? "No dead letters that match."
                            : "No dead letters.");
    dead_close(&r);
    return stg_options_finish("stagger dead", code);
}

/* -- export ----------------------------------------------------------------- */

/* A letter that does not fit memory is left out and the others are written; the
 * export then fails at its end. */
static void put_letter(void *ctx, const stg_letter *l)
{
    stg_text line = {.size = 0};
    bool *is_short = ctx;

    stg_letter_write(&line, l);
    *is_short = *is_short || line.is_short;
    if (!line.is_short)
        fwrite(line.at, 1, line.size, stdout);
    stg_text_free(&line);
}

/* Writes bytes as two columns: the bytes, in base64 unless they are text, and
 * the name of this encoding. */
static void put_blob(stg_span bytes, bool is_last, bool *is_short)
{
    bool is_text = stg_utf8_is_text(bytes.at, bytes.size);
    const char *encoding = bytes.size == 0 ? "" : is_text ? "text" : "base64";
    stg_text line = {.size = 0};

    if (is_text) {
        dead_put_csv(bytes, false);
    } else {
        stg_letter_add_base64(&line, bytes);
        *is_short = *is_short || line.is_short;
        dead_put_csv((stg_span){line.at, line.size}, false);
        stg_text_free(&line);
    }
    dead_put_csv((stg_span){encoding, strlen(encoding)}, is_last);
}

/* Must give as many columns as put_titles(): bytes have two. */
static void put_csv(void *ctx, const stg_letter *l)
{
    for (stg_letter_column c = 0; c < STG_LETTER_COLUMNS; c++) {
        bool is_last = c == STG_LETTER_COLUMNS - 1;
        char number[DEAD_NUMBER_MAX];
        const char *text;

        if (stg_letter_is_bytes(c)) {
            put_blob(stg_letter_get(l, c).span, is_last, ctx);
            continue;
        }
        text = dead_text(l, c, number);
        dead_put_csv((stg_span){text, strlen(text)}, is_last);
    }
}

static void put_titles(void)
{
    for (stg_letter_column c = 0; c < STG_LETTER_COLUMNS; c++) {
        const char *name = stg_letter_name(c);
        bool is_last = c == STG_LETTER_COLUMNS - 1;
        char encoding[32];

        dead_put_csv((stg_span){name, strlen(name)},
                     is_last && !stg_letter_is_bytes(c));
        if (!stg_letter_is_bytes(c))
            continue;
        snprintf(encoding, sizeof encoding, "%s_encoding", name);
        dead_put_csv((stg_span){encoding, strlen(encoding)}, is_last);
    }
}

static int export(dead_rows *r)
{
    bool is_csv = r->o->form == DEAD_CSV, is_short = false;
    int rc;

    if (is_csv)
        put_titles();
    rc = dead_read(r, 0, true, is_csv ? put_csv : put_letter, &is_short);
    return rc == SQLITE_OK && is_short ? SQLITE_NOMEM : rc;
}

int dead_export(const dead_options *o)
{
    dead_rows r;
    int code = dead_open(&r, o), rc;

    if (code == 0 && (rc = export(&r)) != SQLITE_OK)
        code = dead_fail(&r, rc);
    else if (code == 0)
        code = dead_check_target(&r);
    dead_close(&r);
    return stg_options_finish("stagger dead", code);
}
