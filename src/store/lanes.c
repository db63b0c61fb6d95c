/* Names and numbers of lanes in memory, for the loop's thread.
 *
 * names[] is by number and keeps forgotten lanes, for rows name them; `numbers`
 * finds a number by its name and has the others only. Its keys are the names'
 * own memory. */
#include "store/lanes.h"

#include <stdlib.h>
#include <string.h>

uint32_t stg_lanes_find(const stg_lanes *l, const char *name)
{
    size_t number;

    return stg_text_table_find(&l->numbers, name, &number) ? (uint32_t)number
                                                           : UINT32_MAX;
}

/* The name may have been given to a newer lane by now, which keeps it. */
void stg_lanes_forget(stg_lanes *l, uint32_t number)
{
    const char *name = number < l->count ? l->names[number].name : NULL;

    if (name == NULL)
        return;
    l->names[number].is_forgotten = true;
    if (stg_lanes_find(l, name) == number)
        stg_text_table_remove(&l->numbers, name);
}

static bool make_room(stg_lanes *l, uint32_t number)
{
    uint32_t room = l->room == 0 ? 64 : l->room;
    stg_lane_name *names;

    while (room <= number)
        room *= 2;
    if (room > l->room) {
        names = realloc(l->names, room * sizeof *names);
        if (names == NULL)
            return false;
        memset(names + l->room, 0, (room - l->room) * sizeof *names);
        l->names = names;
        l->room = room;
    }
    return true;
}

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *same = malloc(size);

    if (same != NULL)
        memcpy(same, text, size);
    return same;
}

/* From now on it has this number. NULL: no memory. */
static char *add_name(stg_lanes *l, const char *name, uint32_t number)
{
    char *kept = copy(name);

    stg_text_table_remove(&l->numbers, name);
    if (kept != NULL && stg_text_table_add(&l->numbers, kept, number, NULL))
        return kept;
    free(kept);
    return NULL;
}

/* The name of a number never changes; its URL may. */
bool stg_lanes_set(stg_lanes *l, uint32_t number, const char *name,
                   const char *url)
{
    stg_lane_name *known;
    char *url_copy;

    if (!make_room(l, number) || (url_copy = copy(url)) == NULL)
        return false;
    known = &l->names[number];
    if (known->name == NULL) {
        known->name = add_name(l, name, number);
        if (known->name == NULL) {
            free(url_copy);
            return false;
        }
        if (number >= l->count)
            l->count = number + 1;
    }
    free(known->url);
    known->url = url_copy;
    return true;
}

void stg_lanes_drop(stg_lanes *l, uint32_t number)
{
    stg_lane_name *dropped = &l->names[number];

    stg_text_table_remove(&l->numbers, dropped->name);
    free(dropped->name);
    free(dropped->url);
    *dropped = (stg_lane_name){.name = NULL};
    if (number + 1 == l->count)
        l->count--;
}

/* Lanes come by number, so that of two with one name the newer one has it. */
static int load_row(stg_lanes *l, stg_stmt *row)
{
    uint64_t number = stg_sql_column(row, 0);
    const char *name = stg_sql_text(row, 1), *url = stg_sql_text(row, 2);

    if (number >= STG_LANES_MAX || name == NULL || url == NULL)
        return SQLITE_CORRUPT;
    if (!stg_lanes_set(l, (uint32_t)number, name, url))
        return SQLITE_NOMEM;
    if (stg_sql_column(row, 3) != 0)
        stg_lanes_forget(l, (uint32_t)number);
    else
        l->names[number].pause = (stg_pause)stg_sql_column(row, 4);
    return SQLITE_OK;
}

int stg_lanes_load(stg_lanes *l, stg_db *db)
{
    stg_stmt *rows;
    int rc = stg_sql_prepare_once(
        db, &rows,
        "SELECT number, name, url, is_forgotten, pause FROM lanes"
        " ORDER BY number");

    while (rc == SQLITE_OK && (rc = stg_sql_step(rows)) == SQLITE_ROW)
        rc = load_row(l, rows);
    stg_sql_finalize(rows);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void stg_lanes_free(stg_lanes *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        free(l->names[i].name);
        free(l->names[i].url);
    }
    free(l->names);
    stg_text_table_free(&l->numbers);
    *l = (stg_lanes){.count = 0};
}
