/* Letters by a filter, from the table.
 *
 * A page follows the ids, and tests each row: targets and positions are looked up
 * by their indexes, the rest (cause, category, state, time) by reading. So a call
 * looks at so many rows only (LOOKED_MAX), and may come back with few letters, or
 * none, and the id to go on from. Ids only rise, and so a page is not moved by
 * what is made meanwhile. */
#include "store/query.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/cause.h"
#include "store/eviction.h"
#include "store/letter.h"

enum {
    LOOKED_MAX = 20000, /* letters, in one call */
    CHUNK = 500,        /* of them, of one statement */
};

/* -- filters --------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Sorted, for search_ids() and intersect() rely on that. */
static const uint64_t *copy_ids(stg_arena *a, const uint64_t *ids, size_t count)
{
    uint64_t *same = stg_arena_bytes(a, (count + 1) * sizeof *same);

    if (same == NULL)
        return NULL;
    if (count > 0)
        memcpy(same, ids, count * sizeof *same);
    qsort(same, count, sizeof *same, compare_ids);
    return same;
}

bool stg_filter_copy(stg_filter *to, const stg_letter_filter *from)
{
    stg_arena *a = &to->texts;

    *to = (stg_filter){.f = *from};
    to->f.ids = copy_ids(a, from->ids, from->id_count);
    to->f.target = stg_arena_text(a, from->target);
    to->f.cause = stg_arena_text(a, from->cause);
    to->f.category = stg_arena_text(a, from->category);
    to->f.state = stg_arena_text(a, from->state);
    if (from->since > 0)
        stg_sql_time(from->since, to->since);
    if (from->until > 0)
        stg_sql_time(from->until, to->until);
    return !a->is_short;
}

void stg_filter_free(stg_filter *f)
{
    stg_arena_free(&f->texts);
}

/* -- a row ----------------------------------------------------------------- */

static_assert(STG_REPLAY_LOST == 2147483647 && STG_REPLAY_EVICTED == 2147483646,
              "see STG_LETTER_REPLAYS");

static int add(stg_found *found, stg_stmt *st, bool is_whole)
{
    stg_letter_read(&found->letters[found->count], &found->texts, st, is_whole);
    found->are_forgotten[found->count++] =
        stg_sql_column(st, STG_LETTER_IS_FORGOTTEN) != 0;
    return found->texts.is_short ? SQLITE_NOMEM : SQLITE_OK;
}

/* Also empties what was found before: texts of an earlier page are gone. */
static bool make_room(stg_found *found, size_t rows)
{
    stg_arena_free(&found->texts);
    found->count = 0;
    found->next = 0;
    if (rows <= found->room)
        return true;
    free(found->letters);
    free(found->are_forgotten);
    found->letters = calloc(rows, sizeof *found->letters);
    found->are_forgotten = calloc(rows, sizeof *found->are_forgotten);
    found->room = rows;
    return found->letters != NULL && found->are_forgotten != NULL;
}

void stg_found_free(stg_found *found)
{
    free(found->letters);
    free(found->are_forgotten);
    stg_arena_free(&found->texts);
}

int stg_find_one(stg_db *db, uint64_t id, stg_found *found)
{
    stg_stmt *st = NULL;
    int rc;

    if (!make_room(found, 1))
        return SQLITE_NOMEM;
    rc = stg_sql_prepare_once(db, &st,
                              "SELECT " STG_LETTER_SELECT_WHOLE
                              " FROM failed_broadcast_logs WHERE id = ?");
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "u", id);
    if (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = add(found, st, true);
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* "SELECT ... WHERE id IN (1,2) ORDER BY id" of malloc(). */
static char *text_of_ids(const stg_found *page)
{
    static const char head[] = "SELECT " STG_LETTER_SELECT_WHOLE
                               " FROM failed_broadcast_logs WHERE id IN (";
    size_t room = sizeof head + 21 * page->count + 16;
    char *text = malloc(room);
    size_t size = sizeof head - 1;

    if (text == NULL)
        return NULL;
    memcpy(text, head, sizeof head);
    for (size_t i = 0; i < page->count; i++)
        size += (size_t)snprintf(text + size, room - size, "%s%" PRIu64,
                                 i == 0 ? "" : ",", page->letters[i].id);
    snprintf(text + size, room - size, ") ORDER BY id");
    return text;
}

int stg_find_whole(stg_db *db, const stg_found *page, stg_found *found)
{
    stg_stmt *st = NULL;
    char *text;
    int rc;

    if (!make_room(found, page->count))
        return SQLITE_NOMEM;
    if (page->count == 0)
        return SQLITE_OK;
    text = text_of_ids(page);
    rc = text == NULL ? SQLITE_NOMEM : stg_sql_prepare_once(db, &st, text);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = stg_find_add(found, st, page->count) ? SQLITE_OK : SQLITE_NOMEM;
    stg_sql_finalize(st);
    free(text);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int stg_find_is_target(stg_db *db, const char *name, bool *is_known)
{
    stg_stmt *st = NULL;
    uint64_t known = 0;
    int rc = stg_sql_prepare_once(
        db, &st,
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM lanes WHERE name = ?1)"
        " OR EXISTS (SELECT 1 FROM failed_broadcast_logs WHERE target = ?1)"
        " THEN 1 ELSE 0 END");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "s", name);
    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, &known);
    *is_known = known != 0;
    stg_sql_finalize(st);
    return rc;
}

/* UINT64_MAX: the queue is empty, and so every position is below its first. */
int stg_find_first(stg_db *db, uint64_t *position)
{
    int rc = stg_sql_ask(db,
                         "SELECT position FROM messages"
                         " ORDER BY position LIMIT 1",
                         position);

    if (rc != SQLITE_OK)
        *position = UINT64_MAX;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* -- those that have changed ------------------------------------------------- */

/* In a file, versions rise with each change, and one cursor is enough. Hubs
 * that share a database change rows at the same time, and a later version may
 * be committed first: so each row says which version of it was copied. */
int stg_find_prepare_changed(stg_db *db, stg_stmt **st)
{
    return stg_sql_prepare(
        db, st,
        stg_sql_is_shared(db)
            ? "SELECT " STG_LETTER_SELECT_WHOLE
              ", version FROM failed_broadcast_logs"
              " WHERE version <> sent_version"
              " AND partition = ANY (CAST(?1 AS INTEGER[]))"
              " ORDER BY id LIMIT ?2"
            : "SELECT " STG_LETTER_SELECT_WHOLE
              ", version FROM failed_broadcast_logs"
              " WHERE version > ?1 ORDER BY version LIMIT ?2");
}

bool stg_found_clear(stg_found *found, size_t rows_max)
{
    return make_room(found, rows_max);
}

bool stg_find_add(stg_found *found, stg_stmt *st, size_t rows_max)
{
    return found->count < rows_max && add(found, st, true) == SQLITE_OK;
}

/* -- whether it is one of them --------------------------------------------- */

static bool is_same(stg_stmt *st, int column, const char *expected)
{
    const char *text;

    if (expected == NULL)
        return true;
    text = stg_sql_text(st, column);
    return text != NULL && strcmp(text, expected) == 0;
}

static bool is_cause(stg_stmt *st, const char *pattern)
{
    const char *cause;

    if (pattern == NULL)
        return true;
    cause = stg_sql_text(st, STG_LETTER_CAUSE);
    return cause != NULL && stg_cause_fits(pattern, cause);
}

/* When the last of its messages was given up: a bulk row takes some for a
 * while. */
static const char *newest_of(stg_stmt *st)
{
    bool is_one = stg_sql_is_null(st, STG_LETTER_LAST_POSITION) &&
                  !stg_letter_is_evicted(stg_sql_text(st, STG_LETTER_WHY));

    return stg_sql_text(st, is_one ? STG_LETTER_CREATED_AT
                                   : STG_LETTER_LAST_ATTEMPT_AT);
}

/* A letter for one message has one time; a bulk row has a span, and is in time
 * if its span and the filter's meet. */
static bool is_in_time(stg_stmt *st, const stg_filter *f)
{
    const char *at = stg_sql_text(st, STG_LETTER_CREATED_AT);
    const char *newest = newest_of(st);

    // As texts they are in order.
    return at != NULL && newest != NULL &&
           (f->since[0] == '\0' || strcmp(newest, f->since) >= 0) &&
           (f->until[0] == '\0' || strcmp(at, f->until) < 0);
}

/* A bulk row stands for what was given up without an attempt. */
static bool is_unreached(stg_stmt *st)
{
    return stg_sql_column(st, STG_LETTER_REPLAY) == 0 &&
           (!stg_sql_is_null(st, STG_LETTER_LAST_POSITION) ||
            is_same(st, STG_LETTER_CATEGORY, "A"));
}

static bool matches(stg_stmt *st, const stg_filter *f)
{
    return is_same(st, STG_LETTER_TARGET, f->f.target) &&
           is_same(st, STG_LETTER_STATE, f->f.state) &&
           is_cause(st, f->f.cause) &&
           (!f->f.is_unreached || is_unreached(st)) &&
           is_same(st, STG_LETTER_CATEGORY, f->f.category) && is_in_time(st, f);
}

/* -- one after the other --------------------------------------------------- */

typedef struct search {
    const stg_filter *f;
    stg_found *found;
    size_t rows_max, looked;
    uint64_t last; /* that was looked at */
} search;

/* Tests the row that st is at. False: the page is full, or enough rows were
 * looked at; found->next is then the id to go on from. */
static bool take(search *s, stg_stmt *st, int *rc)
{
    s->last = stg_sql_column(st, STG_LETTER_ID);
    s->looked++;
    if (matches(st, s->f))
        *rc = add(s->found, st, false);
    if (*rc != SQLITE_OK)
        return false;
    if (s->found->count < s->rows_max && s->looked < LOOKED_MAX)
        return true;
    s->found->next = s->last;
    return false;
}

static int go_over(search *s, stg_stmt *st)
{
    int rc;

    while ((rc = stg_sql_step(st)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        if (!take(s, st, &rc))
            break;
    }
    stg_sql_reset(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* All, or a target's, in the order of their ids. */
static int search_table(stg_db *db, search *s, uint64_t after, bool is_reverse)
{
    static const char *const texts[2][2] = {
        {"SELECT " STG_LETTER_SELECT_LIGHT " FROM failed_broadcast_logs"
         " WHERE id > ?1 ORDER BY id LIMIT ?2",
         "SELECT " STG_LETTER_SELECT_LIGHT " FROM failed_broadcast_logs"
         " WHERE id < ?1 ORDER BY id DESC LIMIT ?2"},
        {"SELECT " STG_LETTER_SELECT_LIGHT " FROM failed_broadcast_logs"
         " WHERE target = ?3 AND id > ?1 ORDER BY id LIMIT ?2",
         "SELECT " STG_LETTER_SELECT_LIGHT " FROM failed_broadcast_logs"
         " WHERE target = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2"}};
    const char *target = s->f->f.target;
    uint64_t from = is_reverse && after == 0 ? INT64_MAX : after;
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(db, &st, texts[target != NULL][is_reverse]);

    if (rc == SQLITE_OK && target != NULL)
        rc = stg_sql_bind_from(st, 3, "s", target);
    // Some at a time: of a server they come all at once.
    while (rc == SQLITE_OK && s->found->next == 0) {
        size_t looked = s->looked;

        rc = stg_sql_bind(st, "uu", from, (uint64_t)CHUNK);
        if (rc == SQLITE_OK)
            rc = go_over(s, st);
        if (s->looked - looked < CHUNK)
            break;
        from = s->last;
    }
    stg_sql_finalize(st);
    return rc;
}

/* Those of a list that rises. */
static int search_ids(stg_db *db, search *s, const uint64_t *ids, size_t count,
                      uint64_t after, bool is_reverse)
{
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(db, &st,
                                  "SELECT " STG_LETTER_SELECT_LIGHT
                                  " FROM failed_broadcast_logs WHERE id = ?1");

    for (size_t i = 0; i < count && rc == SQLITE_OK && s->found->next == 0;
         i++) {
        uint64_t id = ids[is_reverse ? count - 1 - i : i];

        if (after > 0 && (is_reverse ? id >= after : id <= after))
            continue;
        rc = stg_sql_bind(st, "u", id);
        if (rc == SQLITE_OK)
            rc = go_over(s, st);
        stg_sql_reset(st);
    }
    stg_sql_finalize(st);
    return rc;
}

/* -- about one message ----------------------------------------------------- */

typedef struct ids {
    uint64_t *at;
    size_t count, room;
} ids;

static bool push(ids *list, uint64_t id)
{
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 64 : 2 * list->room;
        uint64_t *at = realloc(list->at, room * sizeof *at);

        if (at == NULL)
            return false;
        list->at = at;
        list->room = room;
    }
    list->at[list->count++] = id;
    return true;
}

/* Lane by lane, for that is how they are found at once. */
static int collect(stg_db *db, const stg_letter_filter *f, ids *list)
{
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(
        db, &st,
        "SELECT id FROM lanes CROSS JOIN failed_broadcast_logs"
        " ON lane = number AND partition = ?1 AND position = ?2"
        " WHERE last_position IS NULL UNION "
        "SELECT id FROM lanes CROSS JOIN failed_broadcast_logs"
        " ON lane = number AND partition = ?1 AND position <= ?2"
        " WHERE last_position IS NOT NULL AND last_position >= ?2"
        " ORDER BY id");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "uu", (uint64_t)f->partition, f->position);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = push(list, stg_sql_column(st, 0)) ? SQLITE_OK : SQLITE_NOMEM;
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Those of the first that are in the second, too: both rise. */
static void intersect(ids *list, const uint64_t *other, size_t count)
{
    size_t kept = 0, at = 0;

    for (size_t i = 0; i < list->count; i++) {
        while (at < count && other[at] < list->at[i])
            at++;
        if (at < count && other[at] == list->at[i])
            list->at[kept++] = list->at[i];
    }
    list->count = kept;
}

static int search_message(stg_db *db, search *s, uint64_t after,
                          bool is_reverse)
{
    ids list = {.count = 0};
    int rc = collect(db, &s->f->f, &list);

    if (rc == SQLITE_OK && s->f->f.id_count > 0)
        intersect(&list, s->f->f.ids, s->f->f.id_count);
    if (rc == SQLITE_OK)
        rc = search_ids(db, s, list.at, list.count, after, is_reverse);
    free(list.at);
    return rc;
}

int stg_find_page(stg_db *db, const stg_filter *f, uint64_t after,
                  size_t rows_max, bool is_newest_first, stg_found *found)
{
    search s = {.f = f, .found = found, .rows_max = rows_max};

    if (!make_room(found, rows_max))
        return SQLITE_NOMEM;
    if (f->f.has_position)
        return search_message(db, &s, after, is_newest_first);
    if (f->f.id_count > 0)
        return search_ids(db, &s, f->f.ids, f->f.id_count, after,
                          is_newest_first);
    return search_table(db, &s, after, is_newest_first);
}
