/* stagger dead list --summary: a line for each target, cause and state, and the
 * line that closes every list. Letters are counted as they are read, in a table
 * by these three, so that memory grows with the groups and not with the
 * letters. A bulk dead letter is one letter for many messages: both are
 * counted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/dead/dead.h"
#include "cli/say.h"
#include "cli/terminal.h"

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

static const stg_grid_column columns[COLUMNS] = {
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

static bool is_number(int c)
{
    return c == COLUMN_LETTERS || c == COLUMN_MESSAGES;
}

/* -- groups ---------------------------------------------------------------- */

void dead_groups_free(dead_groups *g)
{
    free(g->at);
    stg_text_table_free(&g->numbers);
    stg_arena_free(&g->texts);
}

static bool grow(dead_groups *g)
{
    size_t room = g->room == 0 ? 64 : 2 * g->room;
    dead_group *at;

    if (g->count < g->room)
        return true;
    at = realloc(g->at, room * sizeof *at);
    if (at == NULL)
        return false;
    g->at = at;
    g->room = room;
    return true;
}

/* The group of a letter, which may be new. NULL: no memory. The key joins the
 * three texts with newlines. The pointer is valid until the next new group, as
 * the array may move. */
static dead_group *group_of(dead_groups *g, const stg_letter *l)
{
    size_t size = strlen(dead_or_none(l->target)) +
                  strlen(dead_or_none(l->cause)) +
                  strlen(dead_or_none(l->state)) + 3;
    char *name = malloc(size);
    const char *kept = NULL;
    size_t found = 0;

    if (name == NULL || !grow(g)) {
        free(name);
        return NULL;
    }
    snprintf(name, size, "%s\n%s\n%s", dead_or_none(l->target),
             dead_or_none(l->cause), dead_or_none(l->state));
    if (!stg_text_table_find(&g->numbers, name, &found)) {
        found = g->count;
        kept = stg_arena_text(&g->texts, name);
        if (kept != NULL && stg_text_table_add(&g->numbers, kept, found, NULL))
            g->at[g->count++] =
                (dead_group){.target = stg_arena_text(&g->texts, l->target),
                             .cause = stg_arena_text(&g->texts, l->cause),
                             .state = stg_arena_text(&g->texts, l->state)};
    }
    free(name);
    return found < g->count ? &g->at[found] : NULL;
}

/* Where the text before was, if it has room. */
static void keep(stg_arena *a, char **kept, const char *text)
{
    size_t size = strlen(text) + 1;

    if (*kept == NULL || size > strlen(*kept) + 1)
        *kept = stg_arena_bytes(a, size);
    if (*kept != NULL)
        memcpy(*kept, text, size);
}

/* Without memory the sums would be wrong: is_short makes the whole command
 * fail. Times are compared as texts, since all have the same form in UTC. */
void dead_groups_add(dead_groups *g, const stg_letter *l)
{
    const char *newest = stg_letter_newest(l);
    dead_group *one = group_of(g, l);

    if (one == NULL) {
        g->texts.is_short = true;
        return;
    }
    g->letters++;
    g->messages += l->count;
    one->letters++;
    one->messages += l->count;
    if (l->created_at != NULL &&
        (one->first == NULL || strcmp(l->created_at, one->first) < 0))
        keep(&g->texts, &one->first, l->created_at);
    if (newest != NULL && (one->last == NULL || strcmp(newest, one->last) > 0))
        keep(&g->texts, &one->last, newest);
}

/* -1, 0, 1: the one that there is more of comes first. */
static int compare_counts(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

/* By messages and then letters: what hurts most stands first. The rest of the
 * order only makes it the same each time. */
static int compare_groups(const void *a, const void *b)
{
    const dead_group *x = a, *y = b;
    int c = compare_counts(x->messages, y->messages);

    if (c == 0)
        c = compare_counts(x->letters, y->letters);
    if (c == 0)
        c = strcmp(dead_or_none(x->target), dead_or_none(y->target));
    if (c == 0)
        c = strcmp(dead_or_none(x->cause), dead_or_none(y->cause));
    return c == 0 ? strcmp(dead_or_none(x->state), dead_or_none(y->state)) : c;
}

/* -- a group as texts ------------------------------------------------------- */

typedef struct cells {
    char letters[DEAD_NUMBER_MAX], messages[DEAD_NUMBER_MAX];
    const char *at[COLUMNS]; /* NULL: nothing to say */
} cells;

static void print_cells(cells *c, const dead_group *g)
{
    snprintf(c->letters, sizeof c->letters, "%" PRIu64, g->letters);
    snprintf(c->messages, sizeof c->messages, "%" PRIu64, g->messages);
    c->at[COLUMN_TARGET] = g->target;
    c->at[COLUMN_CAUSE] = g->cause;
    c->at[COLUMN_STATE] = g->state;
    c->at[COLUMN_LETTERS] = c->letters;
    c->at[COLUMN_MESSAGES] = c->messages;
    c->at[COLUMN_FIRST] = g->first;
    c->at[COLUMN_LAST] = g->last;
}

/* -- JSON, CSV ------------------------------------------------------------- */

/* Nothing to say is null, not an empty text. */
static void put_json(stg_json *j, const dead_group *g)
{
    cells text = {.at = {NULL}};

    print_cells(&text, g);
    stg_json_open_row(j, NULL);
    for (int c = 0; c < COLUMNS; c++)
        if (text.at[c] == NULL)
            stg_json_null(j, names[c]);
        else if (is_number(c))
            stg_json_number(j, names[c], strtoull(text.at[c], NULL, 10));
        else
            stg_json_string(j, names[c], text.at[c]);
    stg_json_close(j, '}');
}

static void print_json(const dead_groups *g)
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

static void print_csv(const dead_groups *g)
{
    cells text = {.at = {NULL}};

    for (int c = 0; c < COLUMNS; c++)
        put_csv(names[c], c);
    for (size_t i = 0; i < g->count; i++) {
        print_cells(&text, &g->at[i]);
        for (int c = 0; c < COLUMNS; c++)
            put_csv(dead_or_none(text.at[c]), c);
    }
}

/* -- the table ------------------------------------------------------------- */

typedef struct summary {
    stg_grid table;
    int from, size; /* the part of a time that is shown, in characters */
} summary;

/* Seconds go first, and then the year. */
static void set_times(summary *s, int from, int size)
{
    s->from = from;
    s->size = size;
    stg_grid_widen(&s->table, COLUMN_FIRST, (size_t)size);
    stg_grid_widen(&s->table, COLUMN_LAST, (size_t)size);
}

/* Where the table is too wide the seconds of the times are left out first, then
 * the year, and then target and cause are cut. */
static void fit(summary *s, const dead_groups *g)
{
    size_t widest[COLUMNS] = {0};
    cells text = {.at = {NULL}};

    for (size_t i = 0; i < g->count; i++) {
        print_cells(&text, &g->at[i]);
        for (int c = 0; c < COLUMN_FIRST; c++)
            if (strlen(dead_or_none(text.at[c])) > widest[c])
                widest[c] = strlen(dead_or_none(text.at[c]));
    }
    for (int c = 0; c < COLUMN_FIRST; c++)
        stg_grid_widen(&s->table, c, widest[c]);
    set_times(s, 0, 19);
    if (stg_grid_over(&s->table) > 0)
        set_times(s, 0, 16);
    if (stg_grid_over(&s->table) > 0)
        set_times(s, 5, 11);
    stg_grid_cut(&s->table, COLUMN_TARGET);
    stg_grid_cut(&s->table, COLUMN_CAUSE);
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

static void put_row(const summary *s, const dead_group *g)
{
    char first[24], last[24];
    cells text = {.at = {NULL}};

    print_cells(&text, g);
    for (int c = 0; c < COLUMNS; c++)
        text.at[c] = dead_or_none(text.at[c]);
    cut_time(s, dead_or_none(g->first), first);
    cut_time(s, dead_or_none(g->last), last);
    text.at[COLUMN_FIRST] = first;
    text.at[COLUMN_LAST] = last;
    stg_grid_put(&s->table, text.at);
}

static void print_table(const dead_groups *g)
{
    summary s = {.table = stg_grid_make(columns, COLUMNS)};

    fit(&s, g);
    stg_grid_put_titles(&s.table);
    for (size_t i = 0; i < g->count; i++)
        put_row(&s, &g->at[i]);
}

/* JSON and CSV have no closing line: a program adds up by itself. */
bool dead_summary(const dead_rows *r, dead_groups *g)
{
    if (g->count > 0)
        qsort(g->at, g->count, sizeof *g->at, compare_groups);
    if (r->o->form == DEAD_JSON)
        print_json(g);
    else if (r->o->form == DEAD_CSV)
        print_csv(g);
    else
        print_table(g);
    return r->o->form != DEAD_TEXT || dead_put_sums(r, g);
}

/* -- the closing line ------------------------------------------------------ */

typedef struct sum {
    const char *name;
    uint64_t letters;
} sum;

/* What is dead is the first of the states. */
static bool is_first(const sum *s)
{
    return strcmp(s->name, "dead") == 0;
}

/* "dead" first, then the largest count; the name only makes the order the same
 * each time. */
static int compare_sums(const void *a, const void *b)
{
    const sum *x = a, *y = b;
    int c = is_first(y) - is_first(x);

    if (c == 0)
        c = compare_counts(x->letters, y->letters);
    return c == 0 ? strcmp(x->name, y->name) : c;
}

/* Of the groups, by what name_of() says. sums has room for all of them. */
static size_t sum_up(const dead_groups *g, sum *sums,
                     const char *name_of(const dead_group *))
{
    size_t count = 0, at;

    for (size_t i = 0; i < g->count; i++) {
        const char *name = name_of(&g->at[i]);

        for (at = 0; at < count && strcmp(sums[at].name, name) != 0; at++)
            ;
        if (at == count)
            sums[count++] = (sum){name, 0};
        sums[at].letters += g->at[i].letters;
    }
    qsort(sums, count, sizeof *sums, compare_sums);
    return count;
}

static const char *state_of(const dead_group *g)
{
    return dead_or_none(g->state);
}

static const char *cause_of(const dead_group *g)
{
    return g->cause == NULL ? "no cause" : g->cause;
}

/* "1930 dead letters for 2400 messages: 8 dead, 1922 replayed; HTTP_401 1930".
 * Where all are dead, they are not told to be. */
bool dead_put_sums(const dead_rows *r, dead_groups *g)
{
    sum *sums = calloc(g->count + 1, sizeof *sums);
    size_t count;
    bool has_dead;

    if (sums == NULL)
        return false;
    count = sum_up(g, sums, state_of);
    has_dead = count > 0 && is_first(&sums[0]);
    printf("%" PRIu64 " dead letter%s", g->letters, stg_plural(g->letters));
    if (g->messages > g->letters)
        printf(" for %" PRIu64 " messages", g->messages);
    printf(": %s", !has_dead && r->o->filter.state == NULL ? "0 dead, " : "");
    for (size_t i = 0; i < count && !(has_dead && count == 1); i++)
        stg_say(stdout, "%" PRIu64 " %s%s", sums[i].letters, sums[i].name,
                i + 1 < count ? ", " : "; ");
    count = sum_up(g, sums, cause_of);
    for (size_t i = 0; i < count; i++)
        stg_say(stdout, "%s %" PRIu64 "%s", sums[i].name, sums[i].letters,
                i + 1 < count ? ", " : "\n");
    free(sums);
    return true;
}
