/* stagger dead list --summary: a line for each target, cause and state; and the
 * line that closes every list. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/dead/dead.h"
#include "cli/dead/table.h"
#include "cli/json.h"
#include "cli/say.h"

typedef enum column {
    COLUMN_TARGET,
    COLUMN_CAUSE,
    COLUMN_STATE,
    COLUMN_LETTERS,
    COLUMN_MESSAGES,
    COLUMN_FIRST,
    COLUMN_LAST,
    COLUMNS
} column;

static const dead_column columns[COLUMNS] = {
    [COLUMN_TARGET] = {"target", 8, false},
    [COLUMN_CAUSE] = {"cause", 8, false},
    [COLUMN_STATE] = {"state", 9, false},
    [COLUMN_LETTERS] = {"letters", 20, true},
    [COLUMN_MESSAGES] = {"messages", 20, true},
    [COLUMN_FIRST] = {"first (UTC)", 11, false},
    [COLUMN_LAST] = {"last (UTC)", 11, false},
};

/* In JSON and CSV. */
static const char *const names[COLUMNS] = {
    "target", "cause", "state", "letters", "messages", "first_at", "last_at"};

static const char select_groups[] =
    "SELECT target, cause, state, count(*),"
    " CAST(sum(count) AS BIGINT), min(created_at),"
    " max(" DEAD_NEWEST ")";

static const char behind_groups[] =
    " GROUP BY target, cause, state ORDER BY 5 DESC, 4 DESC, target, cause,"
    " state";

static bool is_number(int c)
{
    return c == COLUMN_LETTERS || c == COLUMN_MESSAGES;
}

/* -- groups ---------------------------------------------------------------- */

/* They are in memory before the first is printed: the store is let go. */
typedef struct group {
    char *cells[COLUMNS]; /* as texts; NULL: nothing to say */
} group;

typedef struct groups {
    group *at;
    size_t count, room;
} groups;

static void free_groups(groups *g)
{
    for (size_t i = 0; i < g->count; i++)
        for (int c = 0; c < COLUMNS; c++)
            free(g->at[i].cells[c]);
    free(g->at);
}

static int keep(groups *g, stg_stmt *row)
{
    if (g->count == g->room) {
        size_t room = g->room == 0 ? 64 : 2 * g->room;
        group *at = realloc(g->at, room * sizeof *at);

        if (at == NULL)
            return SQLITE_NOMEM;
        g->at = at;
        g->room = room;
    }
    g->at[g->count++] = (group){.cells = {NULL}};
    for (int c = 0; c < COLUMNS; c++) {
        const char *text = stg_sql_text(row, c);

        if (text == NULL)
            continue;
        g->at[g->count - 1].cells[c] = strdup(text);
        if (g->at[g->count - 1].cells[c] == NULL)
            return SQLITE_NOMEM;
    }
    return SQLITE_OK;
}

static int read_groups(dead_rows *r, groups *g)
{
    stg_stmt *st;
    int rc = dead_ask(r, &st, select_groups, behind_groups);

    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = keep(g, st);
    return rc == SQLITE_DONE ? stg_sql_reset(st) : rc;
}

static const char *text_of(const group *g, int c)
{
    return g->cells[c] == NULL ? "" : g->cells[c];
}

/* -- JSON, CSV ------------------------------------------------------------- */

static void put_json(stg_json *j, const group *g)
{
    stg_json_open_row(j, NULL);
    for (int c = 0; c < COLUMNS; c++)
        if (g->cells[c] == NULL)
            stg_json_null(j, names[c]);
        else if (is_number(c))
            stg_json_number(j, names[c], strtoull(g->cells[c], NULL, 10));
        else
            stg_json_string(j, names[c], g->cells[c]);
    stg_json_close(j, '}');
}

static void print_json(const groups *g)
{
    stg_json j = {.depth = 0};

    stg_json_open(&j, NULL, '{');
    stg_json_open(&j, "summary", '[');
    for (size_t i = 0; i < g->count; i++)
        put_json(&j, &g->at[i]);
    stg_json_close(&j, ']');
    stg_json_close(&j, '}');
}

static void put_csv(const char *text, int c)
{
    dead_put_csv((stg_span){text, strlen(text)}, c == COLUMNS - 1);
}

static void print_csv(const groups *g)
{
    for (int c = 0; c < COLUMNS; c++)
        put_csv(names[c], c);
    for (size_t i = 0; i < g->count; i++)
        for (int c = 0; c < COLUMNS; c++)
            put_csv(text_of(&g->at[i], c), c);
}

/* -- the table ------------------------------------------------------------- */

typedef struct summary {
    dead_table table;
    int from, size; /* what is shown of a time */
} summary;

/* Seconds go first, and then the year. */
static void set_times(summary *s, int from, int size)
{
    s->from = from;
    s->size = size;
    dead_table_widen(&s->table, COLUMN_FIRST, (size_t)size);
    dead_table_widen(&s->table, COLUMN_LAST, (size_t)size);
}

static void fit(summary *s, const groups *g)
{
    for (int c = 0; c < COLUMN_FIRST; c++) {
        size_t widest = 0;

        for (size_t i = 0; i < g->count; i++)
            if (strlen(text_of(&g->at[i], c)) > widest)
                widest = strlen(text_of(&g->at[i], c));
        dead_table_widen(&s->table, c, widest);
    }
    set_times(s, 0, 19);
    if (dead_table_over(&s->table) > 0)
        set_times(s, 0, 16);
    if (dead_table_over(&s->table) > 0)
        set_times(s, 5, 11);
    dead_table_cut(&s->table, COLUMN_TARGET);
    dead_table_cut(&s->table, COLUMN_CAUSE);
}

/* "2026-03-01 12:00:00", or a part of it. */
static void cut_time(const summary *s, const char *at, char text[24])
{
    size_t blank = (size_t)(10 - s->from);

    snprintf(text, 24, "%.*s", s->size,
             strlen(at) > (size_t)s->from ? at + s->from : at);
    if (strlen(text) > blank)
        text[blank] = ' ';
}

static void put_row(const summary *s, const group *g)
{
    const char *cells[COLUMNS];
    char first[24], last[24];

    for (int c = 0; c < COLUMNS; c++)
        cells[c] = text_of(g, c);
    cut_time(s, cells[COLUMN_FIRST], first);
    cut_time(s, cells[COLUMN_LAST], last);
    cells[COLUMN_FIRST] = first;
    cells[COLUMN_LAST] = last;
    dead_table_put(&s->table, cells);
}

static void print_table(const groups *g)
{
    summary s = {.table = dead_table_make(columns, COLUMNS)};

    fit(&s, g);
    dead_table_put_titles(&s.table);
    for (size_t i = 0; i < g->count; i++)
        put_row(&s, &g->at[i]);
}

int dead_summary(dead_rows *r)
{
    groups g = {.count = 0};
    int rc = read_groups(r, &g);

    if (rc == SQLITE_OK && r->o->is_json)
        print_json(&g);
    else if (rc == SQLITE_OK && r->o->is_csv)
        print_csv(&g);
    else if (rc == SQLITE_OK)
        print_table(&g);
    free_groups(&g);
    return rc == SQLITE_OK && !r->o->is_json && !r->o->is_csv ? dead_put_sums(r)
                                                              : rc;
}

/* -- the closing line ------------------------------------------------------ */

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

typedef struct sums {
    uint64_t letters, messages, dead;
    char states[128], causes[512];
} sums;

typedef void add_row(sums *s, stg_stmt *row);

static void add_state(sums *s, stg_stmt *row)
{
    const char *state = stg_sql_text(row, 0);
    size_t at = strlen(s->states);

    s->letters += stg_sql_column(row, 1);
    s->messages += stg_sql_column(row, 2);
    if (strcmp(state, "dead") == 0)
        s->dead = stg_sql_column(row, 1);
    snprintf(s->states + at, sizeof s->states - at, "%s%" PRIu64 " %s",
             at > 0 ? ", " : "", stg_sql_column(row, 1), state);
}

static void add_cause(sums *s, stg_stmt *row)
{
    size_t at = strlen(s->causes);

    snprintf(s->causes + at, sizeof s->causes - at, "%s%s %" PRIu64,
             at > 0 ? ", " : "", stg_sql_text(row, 0), stg_sql_column(row, 1));
}

static int sum_up(dead_rows *r, const char *select, const char *behind,
                  add_row *add, sums *s)
{
    stg_stmt *st;
    int rc = dead_ask(r, &st, select, behind);

    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        add(s, st);
        rc = SQLITE_OK;
    }
    return rc == SQLITE_DONE ? stg_sql_reset(st) : rc;
}

/* "1930 dead letters for 2400 messages: 8 dead, 1922 replayed; HTTP_401 1930".
 * Where all are dead, they are not told to be. */
int dead_put_sums(dead_rows *r)
{
    sums s = {.letters = 0};
    int rc = sum_up(r, "SELECT state, count(*), CAST(sum(count) AS BIGINT)",
                    " GROUP BY 1 ORDER BY state <> 'dead', 2 DESC, 1",
                    add_state, &s);

    if (rc == SQLITE_OK)
        rc = sum_up(r, "SELECT coalesce(cause, 'no cause'), count(*)",
                    " GROUP BY 1 ORDER BY 2 DESC, 1", add_cause, &s);
    printf("%" PRIu64 " dead letter%s", s.letters, plural(s.letters));
    if (s.messages > s.letters)
        printf(" for %" PRIu64 " messages", s.messages);
    printf(": %s", s.dead == 0 && r->o->state == NULL ? "0 dead, " : "");
    if (s.dead < s.letters)
        stg_say(stdout, "%s; ", s.states);
    stg_say(stdout, "%s\n", s.causes);
    return rc;
}
