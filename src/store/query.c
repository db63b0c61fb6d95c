#include "store/query.h"

#include <assert.h>
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

enum column {
    ID,
    MESSAGE_ID,
    TARGET,
    TARGET_URL,
    STATE,
    WHY,
    CATEGORY,
    CAUSE,
    DETAIL,
    HTTP_STATUS,
    ATTEMPTS,
    FIRST_ATTEMPT_AT,
    LAST_ATTEMPT_AT,
    CREATED_AT,
    CHANGED_AT,
    LANE,
    PARTITION,
    REPLAY,
    POSITION,
    LAST_POSITION,
    COUNT,
    PAYLOAD_SIZE,
    IS_FORGOTTEN,
    TOPIC,
    TOPIC_PARTITION,
    CONTENT_TYPE,
    HEADERS,
    KEY,
    SOURCE_KEY,
    SOURCE_HEADERS,
    ANSWER,
    PAYLOAD,
    VERSION
};

static_assert(STG_REPLAY_LOST == 2147483647 && STG_REPLAY_EVICTED == 2147483646,
              "see STG_LETTER_REPLAYS");

#define LIGHT                                                                      \
    "id, nullif(message_id, ''), target, target_url, state, why, category, cause," \
    " detail, http_status, attempts, first_attempt_at, last_attempt_at,"           \
    " created_at, changed_at, lane, partition, " STG_LETTER_REPLAYS                \
    ", position,"                                                                  \
    " last_position, count, length(payload),"                                      \
    " coalesce((SELECT is_forgotten FROM lanes WHERE number = lane), 1), " STG_LETTER_PLACE

#define WHOLE                                                           \
    LIGHT                                                               \
    ", content_type, headers, key, source_key, source_headers, answer," \
    " payload"

static const char *text_of(stg_arena *a, stg_stmt *st, int column)
{
    return stg_arena_column(a, st, column).at;
}

static void read_light(stg_letter *l, stg_arena *a, stg_stmt *st)
{
    *l = (stg_letter){
        .id = stg_sql_column(st, ID),
        .message_id = text_of(a, st, MESSAGE_ID),
        .target = text_of(a, st, TARGET),
        .target_url = text_of(a, st, TARGET_URL),
        .state = text_of(a, st, STATE),
        .why = text_of(a, st, WHY),
        .category = text_of(a, st, CATEGORY),
        .cause = text_of(a, st, CAUSE),
        .detail = text_of(a, st, DETAIL),
        .http_status = stg_sql_column(st, HTTP_STATUS),
        .attempts = stg_sql_column(st, ATTEMPTS),
        .first_attempt_at = text_of(a, st, FIRST_ATTEMPT_AT),
        .last_attempt_at = text_of(a, st, LAST_ATTEMPT_AT),
        .created_at = text_of(a, st, CREATED_AT),
        .changed_at = text_of(a, st, CHANGED_AT),
        .lane = (uint32_t)stg_sql_column(st, LANE),
        .partition = (uint32_t)stg_sql_column(st, PARTITION),
        .replay = (uint32_t)stg_sql_column(st, REPLAY),
        .position = stg_sql_column(st, POSITION),
        .last_position = stg_sql_column(st, LAST_POSITION),
        .topic = text_of(a, st, TOPIC),
        .topic_partition = (uint32_t)stg_sql_column(st, TOPIC_PARTITION),
        .count = stg_sql_column(st, COUNT),
        .has_payload = !stg_sql_is_null(st, PAYLOAD_SIZE),
        .payload_size = stg_sql_column(st, PAYLOAD_SIZE),
    };
    l->is_evicted = stg_letter_is_evicted(l->why);
}

static void read_rest(stg_letter *l, stg_arena *a, stg_stmt *st)
{
    l->content_type = text_of(a, st, CONTENT_TYPE);
    l->headers = text_of(a, st, HEADERS);
    l->key = text_of(a, st, KEY);
    l->source_key = stg_arena_column(a, st, SOURCE_KEY);
    l->source_headers = stg_arena_column(a, st, SOURCE_HEADERS);
    l->answer = stg_arena_column(a, st, ANSWER);
    l->payload = stg_arena_column(a, st, PAYLOAD);
}

static int add(stg_found *found, stg_stmt *st, bool is_whole)
{
    stg_letter *l = &found->letters[found->count];

    read_light(l, &found->texts, st);
    if (is_whole)
        read_rest(l, &found->texts, st);
    found->are_forgotten[found->count++] =
        stg_sql_column(st, IS_FORGOTTEN) != 0;
    return found->texts.is_short ? SQLITE_NOMEM : SQLITE_OK;
}

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
    rc = stg_sql_prepare_once(
        db, &st, "SELECT " WHOLE " FROM failed_broadcast_logs WHERE id = ?");
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "u", id);
    if (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = add(found, st, true);
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* -- those that have changed ------------------------------------------------- */

_Static_assert((int)VERSION == STG_FIND_CHANGED_VERSION, "of its column");

int stg_find_prepare_changed(stg_db *db, stg_stmt **st)
{
    return stg_sql_prepare(
        db, st,
        stg_sql_is_shared(db)
            ? "SELECT " WHOLE
              ", version FROM failed_broadcast_logs"
              " WHERE version <> sent_version"
              " AND partition = ANY (CAST(?1 AS INTEGER[]))"
              " ORDER BY id LIMIT ?2"
            : "SELECT " WHOLE
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

static bool is_same(stg_stmt *st, int column, const char *wanted)
{
    const char *text;

    if (wanted == NULL)
        return true;
    text = stg_sql_text(st, column);
    return text != NULL && strcmp(text, wanted) == 0;
}

static bool is_cause(stg_stmt *st, const char *pattern)
{
    const char *cause;

    if (pattern == NULL)
        return true;
    cause = stg_sql_text(st, CAUSE);
    return cause != NULL && stg_cause_fits(pattern, cause);
}

/* When the last of its messages was given up; a row that an older stagger wrote
 * does not know. */
static const char *newest_of(stg_stmt *st)
{
    int column = (stg_sql_is_null(st, LAST_POSITION) &&
                  !stg_letter_is_evicted(stg_sql_text(st, WHY))) ||
                         stg_sql_is_null(st, LAST_ATTEMPT_AT)
                     ? CREATED_AT
                     : LAST_ATTEMPT_AT;

    return stg_sql_text(st, column);
}

static bool is_in_time(stg_stmt *st, const stg_filter *f)
{
    const char *at = stg_sql_text(st, CREATED_AT);
    const char *newest = newest_of(st);

    // As texts they are in order.
    return at != NULL && newest != NULL &&
           (f->since[0] == '\0' || strcmp(newest, f->since) >= 0) &&
           (f->until[0] == '\0' || strcmp(at, f->until) < 0);
}

static bool matches(stg_stmt *st, const stg_filter *f)
{
    return is_same(st, TARGET, f->f.target) && is_same(st, STATE, f->f.state) &&
           is_cause(st, f->f.cause) && is_same(st, CATEGORY, f->f.category) &&
           is_in_time(st, f);
}

/* -- one after the other --------------------------------------------------- */

typedef struct search {
    const stg_filter *f;
    stg_found *found;
    size_t rows_max, looked;
    uint64_t last; /* that was looked at */
} search;

/* The row that st is at. False: it is enough. */
static bool take(search *s, stg_stmt *st, int *rc)
{
    s->last = stg_sql_column(st, ID);
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
        {"SELECT " LIGHT " FROM failed_broadcast_logs"
         " WHERE id > ?1 ORDER BY id LIMIT ?2",
         "SELECT " LIGHT " FROM failed_broadcast_logs"
         " WHERE id < ?1 ORDER BY id DESC LIMIT ?2"},
        {"SELECT " LIGHT " FROM failed_broadcast_logs"
         " WHERE target = ?3 AND id > ?1 ORDER BY id LIMIT ?2",
         "SELECT " LIGHT " FROM failed_broadcast_logs"
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
    int rc = stg_sql_prepare_once(
        db, &st, "SELECT " LIGHT " FROM failed_broadcast_logs WHERE id = ?1");

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
