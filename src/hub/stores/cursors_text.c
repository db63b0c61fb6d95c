/* A row of cursors as text, and back. */
#include <jansson.h>
#include <stdlib.h>

#include "hub/stores/cursors.h"

static bool read_number(const json_t *object, const char *name,
                        uint64_t *number)
{
    const json_t *value = json_object_get(object, name);

    *number = 0;
    if (value == NULL)
        return true;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *number = (uint64_t)json_integer_value(value);
    return true;
}

static bool read_settled(const json_t *object, uint64_t **settled,
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
        const json_t *value = json_array_get(list, i);

        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return false;
        (*settled)[i] = (uint64_t)json_integer_value(value);
    }
    return true;
}

static bool read_cursor(const json_t *object, stg_cursor *c, uint64_t **settled)
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
    return true;
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
            uint64_t *settled = NULL;

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

typedef struct reading {
    sqlite3_stmt *parked, *replays;
    stg_cursor_each *each;
    void *ctx;
    int rc;
} reading;

static int count_rows(sqlite3_stmt *st, const stg_cursor *c, uint64_t *count)
{
    int rc = stg_sql_bind(st, "uu", (uint64_t)c->lane, (uint64_t)c->partition);

    return rc == SQLITE_OK ? stg_sql_number(st, count) : rc;
}

static void add_parked(void *ctx, const stg_cursor *c)
{
    reading *r = ctx;
    stg_cursor whole = *c;

    if (r->rc == SQLITE_OK)
        r->rc = count_rows(r->parked, c, &whole.parked);
    if (r->rc == SQLITE_OK)
        r->rc = count_rows(r->replays, c, &whole.replays);
    if (r->rc == SQLITE_OK)
        r->each(r->ctx, &whole);
}

static int read_rows(sqlite3_stmt *rows, reading *r)
{
    int rc;

    while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
        uint64_t partition = stg_sql_column(rows, 0);
        uint64_t slice = stg_sql_column(rows, 1);

        if (!stg_cursors_parse(stg_sql_column_span(rows, 2),
                               (uint32_t)partition, (uint32_t)slice, add_parked,
                               r))
            return SQLITE_CORRUPT;
        if (r->rc != SQLITE_OK)
            return r->rc;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int stg_cursors_read(sqlite3 *db, stg_cursor_each *each, void *ctx)
{
    reading r = {.each = each, .ctx = ctx};
    sqlite3_stmt *rows = NULL;
    int rc = sqlite3_prepare_v2(
        db, "SELECT count(*) FROM parked WHERE lane = ? AND partition = ?", -1,
        &r.parked, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db,
                                "SELECT count(*) FROM parked WHERE lane = ?"
                                " AND partition = ? AND replay > 0",
                                -1, &r.replays, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db,
                                "SELECT partition, slice, lanes FROM cursors"
                                " ORDER BY partition, slice",
                                -1, &rows, NULL);
    if (rc == SQLITE_OK)
        rc = read_rows(rows, &r);
    sqlite3_finalize(rows);
    sqlite3_finalize(r.parked);
    sqlite3_finalize(r.replays);
    return rc;
}
