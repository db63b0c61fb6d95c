/* A row of cursors as text, and back.
 *
 * Reading is strict: a lane that is not of the row's slice, a negative number
 * or a wrong type make the whole row damaged (SQLITE_CORRUPT). A cursor that is
 * guessed would lose messages, or send them twice.
 *
 * A lane that several shards have is told once, with the furthest base. For
 * that the rows come in the order of partition, slice and shard, and one slice
 * is merged in memory at a time: without ORDER BY the same lane would be told
 * twice. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "store/lanes.h"

static bool read_count(const json_t *value, uint64_t *number)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *number = (uint64_t)json_integer_value(value);
    return true;
}

/* What is 0 was left out when the row was written: a missing name is no
 * error. */
static bool read_number(const json_t *object, const char *name,
                        uint64_t *number)
{
    const json_t *value = json_object_get(object, name);

    *number = 0;
    return value == NULL || read_count(value, number);
}

/* One more than the count, for malloc(0) may return NULL. */
static bool read_settled(const json_t *object, stg_positions **settled,
                         size_t *count)
{
    const json_t *list = json_object_get(object, "settled");

    *settled = NULL;
    *count = 0;
    if (list == NULL)
        return true;
    if (!json_is_array(list))
        return false;
    *count = json_array_size(list);
    *settled = malloc((*count + 1) * sizeof **settled);
    if (*settled == NULL)
        return false;
    for (size_t i = 0; i < *count; i++) {
        const json_t *pair = json_array_get(list, i);

        if (json_array_size(pair) != 2 ||
            !read_count(json_array_get(pair, 0), &(*settled)[i].first) ||
            !read_count(json_array_get(pair, 1), &(*settled)[i].last))
            return false;
    }
    return true;
}

static bool read_cursor(const json_t *object, stg_cursor *c,
                        stg_positions **settled)
{
    *settled = NULL;
    if (!json_is_object(object) || !read_number(object, "base", &c->base) ||
        !read_number(object, "routed", &c->routed) ||
        !read_number(object, "delivered", &c->delivered) ||
        !read_number(object, "dead", &c->dead) ||
        !read_number(object, "cancelled", &c->cancelled) ||
        !read_number(object, "parked", &c->parked) ||
        !read_number(object, "oldest_at", &c->oldest_at) ||
        !read_settled(object, settled, &c->settled_count))
        return false;
    c->is_ordered = json_is_true(json_object_get(object, "ordered"));
    c->settled = *settled;
    return stg_positions_are_sound(c->settled, c->settled_count, c->base);
}

static bool read_lane(const char *name, uint32_t slice, uint32_t *lane)
{
    char *end;
    unsigned long number = strtoul(name, &end, 10);

    *lane = (uint32_t)number;
    return *name >= '0' && *name <= '9' && *end == '\0' &&
           number / STG_SLICE == slice;
}

bool stg_cursors_parse(stg_span text, uint32_t partition, uint32_t slice,
                       stg_cursor_each *each, void *ctx)
{
    json_t *row = json_loadb(text.at, text.size, 0, NULL), *object;
    bool is_good = json_is_object(row);
    const char *name;

    if (is_good)
        json_object_foreach(row, name, object)
        {
            stg_cursor c = {.partition = partition};
            stg_positions *settled = NULL;

            is_good = read_lane(name, slice, &c.lane) &&
                      read_cursor(object, &c, &settled);
            if (is_good)
                each(ctx, &c);
            free(settled);
            if (!is_good)
                break;
        }
    json_decref(row);
    return is_good;
}

/* -- all of them ----------------------------------------------------------- */

/* The parked rows of a lane in a partition, in sum. */
typedef struct parked_sum {
    uint32_t partition, lane;
    uint64_t rows, replays;
} parked_sum;

/* The lanes of a slice, over all shards. */
typedef struct reading {
    stg_db *db;
    uint32_t partition, slice;
    bool has[STG_SLICE];
    stg_cursor cursors[STG_SLICE];
    stg_positions *settled[STG_SLICE];
    parked_sum *parked; /* of all partitions; they rise, and lanes in each */
    size_t parked_count, parked_room;
    stg_cursor_each *each;
    void *ctx;
    bool counts;
    bool is_short; /* of memory */
} reading;

/* Of equal bases the one that was handed more, which only rises: a shard that had
 * the lane before has its cursor still. */
static bool is_further(const stg_cursor *c, const stg_cursor *than)
{
    return c->base != than->base ? c->base > than->base
                                 : c->routed > than->routed;
}

/* The settled positions are
 * copied, for the parsed text is freed before the slice is told. */
static void note(void *ctx, const stg_cursor *c)
{
    reading *r = ctx;
    uint32_t at = c->lane % STG_SLICE;
    size_t size = c->settled_count * sizeof *c->settled;

    if (r->has[at] && !is_further(c, &r->cursors[at]))
        return;
    free(r->settled[at]);
    r->settled[at] = malloc(size + 1);
    if (r->settled[at] == NULL) {
        r->is_short = true;
        return;
    }
    if (size > 0)
        memcpy(r->settled[at], c->settled, size);
    r->has[at] = true;
    r->cursors[at] = *c;
    r->cursors[at].settled = r->settled[at];
}

static bool is_before(const parked_sum *p, const stg_cursor *c)
{
    return p->partition != c->partition ? p->partition < c->partition
                                        : p->lane < c->lane;
}

/* The table of parked rows is what counts: the text has `parked` as of the last
 * group, and nothing of replays. */
static void add_parked(const reading *r, stg_cursor *c)
{
    size_t low = 0, high = r->parked_count;

    c->parked = c->replays = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (is_before(&r->parked[middle], c))
            low = middle + 1;
        else
            high = middle;
    }
    if (low < r->parked_count && r->parked[low].lane == c->lane &&
        r->parked[low].partition == c->partition) {
        c->parked = r->parked[low].rows;
        c->replays = r->parked[low].replays;
    }
}

static void tell_slice(reading *r)
{
    for (uint32_t at = 0; at < STG_SLICE; at++) {
        if (r->has[at]) {
            if (r->counts)
                add_parked(r, &r->cursors[at]);
            r->each(r->ctx, &r->cursors[at]);
        }
        free(r->settled[at]);
        r->settled[at] = NULL;
        r->has[at] = false;
    }
}

static bool push_parked(reading *r, stg_stmt *row)
{
    if (r->parked_count == r->parked_room) {
        size_t room = r->parked_room == 0 ? 64 : 2 * r->parked_room;
        parked_sum *parked = realloc(r->parked, room * sizeof *parked);

        if (parked == NULL)
            return false;
        r->parked = parked;
        r->parked_room = room;
    }
    r->parked[r->parked_count++] =
        (parked_sum){.partition = (uint32_t)stg_sql_column(row, 0),
                     .lane = (uint32_t)stg_sql_column(row, 1),
                     .rows = stg_sql_column(row, 2),
                     .replays = stg_sql_column(row, 3)};
    return true;
}

/* Counts parked rows by partition and lane. The lanes are named so that the
 * index of parked rows by lane serves, with which the rows are found at
 * once. */
static int count_parked(reading *r, const char *partitions)
{
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_list(
        r->db, &st,
        "SELECT partition, lane, count(*),"
        " sum(CASE WHEN replay > 0 THEN 1 ELSE 0 END)"
        " FROM parked WHERE lane IN (SELECT number FROM lanes)"
        " AND partition IN (",
        partitions == NULL ? "SELECT DISTINCT partition FROM cursors"
                           : partitions,
        ") GROUP BY partition, lane ORDER BY partition, lane");

    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = push_parked(r, st) ? SQLITE_OK : SQLITE_NOMEM;
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_row(reading *r, stg_stmt *row)
{
    uint32_t partition = (uint32_t)stg_sql_column(row, 0);
    uint32_t slice = (uint32_t)stg_sql_column(row, 1);

    if (partition != r->partition || slice != r->slice)
        tell_slice(r);
    r->partition = partition;
    r->slice = slice;
    if (!stg_cursors_parse(stg_sql_column_span(row, 2), partition, slice, note,
                           r))
        return SQLITE_CORRUPT;
    return r->is_short ? SQLITE_NOMEM : SQLITE_OK;
}

/* For a read that failed: tell_slice() then only frees what was merged. Slices
 * before it have been told, so a caller looks at the result first. */
static void each_nothing(void *ctx, const stg_cursor *c)
{
    (void)ctx;
    (void)c;
}

/* All zeros but for the head. */
static reading *new_reading(stg_db *db, stg_cursor_each *each, void *ctx)
{
    reading *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->db = db;
    r->partition = UINT32_MAX;
    r->each = each;
    r->ctx = ctx;
    return r;
}

/* Rows of several shards of one slice come one behind the other, and are told as
 * one. */
int stg_cursors_read(stg_db *db, const char *partitions, bool counts,
                     stg_cursor_each *each, void *ctx)
{
    reading *r = new_reading(db, each, ctx);
    bool is_all = partitions == NULL;
    stg_stmt *rows = NULL;
    int rc = r == NULL ? SQLITE_NOMEM : SQLITE_OK;

    if (rc == SQLITE_OK && counts) {
        r->counts = true;
        rc = count_parked(r, partitions);
    }
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_list(
            db, &rows,
            is_all ? "SELECT partition, slice, lanes FROM cursors"
                   : "SELECT partition, slice, lanes FROM cursors"
                     " WHERE partition IN (",
            is_all ? "" : partitions,
            is_all ? " ORDER BY partition, slice, shard"
                   : ") ORDER BY partition, slice, shard");
    while (rc == SQLITE_OK && (rc = stg_sql_step(rows)) == SQLITE_ROW)
        rc = read_row(r, rows);
    stg_sql_finalize(rows);
    if (r == NULL)
        return rc;
    if (rc != SQLITE_DONE)
        r->each = each_nothing;
    tell_slice(r);
    free(r->parked);
    free(r);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
