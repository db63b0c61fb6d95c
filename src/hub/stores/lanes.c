#include "hub/stores/lanes.h"

#include <stdlib.h>
#include <string.h>

static uint32_t slot_of(const stg_lanes *l, const char *name)
{
    uint32_t slot = (uint32_t)stg_parcel_hash((stg_span){name, strlen(name)}) &
                    (l->slot_count - 1);

    while (l->slots[slot] != 0 &&
           strcmp(l->names[l->slots[slot] - 1].name, name) != 0)
        slot = (slot + 1) & (l->slot_count - 1);
    return slot;
}

uint32_t stg_lanes_find(const stg_lanes *l, const char *name)
{
    return l->slot_count == 0 ? UINT32_MAX : l->slots[slot_of(l, name)] - 1;
}

static void fill_slots(stg_lanes *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->names[i].name != NULL && !l->names[i].is_forgotten)
            l->slots[slot_of(l, l->names[i].name)] = i + 1;
}

static bool make_slots(stg_lanes *l)
{
    uint32_t count = l->slot_count == 0 ? 64 : 2 * l->slot_count;
    uint32_t *slots = calloc(count, sizeof *slots);

    if (slots == NULL)
        return false;
    free(l->slots);
    l->slots = slots;
    l->slot_count = count;
    fill_slots(l);
    return true;
}

void stg_lanes_forget(stg_lanes *l, uint32_t number)
{
    if (number >= l->count || l->names[number].name == NULL)
        return;
    l->names[number].is_forgotten = true;
    memset(l->slots, 0, l->slot_count * sizeof *l->slots);
    fill_slots(l);
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
    // Half full at most.
    while (l->slot_count <= 2 * number)
        if (!make_slots(l))
            return false;
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

bool stg_lanes_set(stg_lanes *l, uint32_t number, const char *name,
                   const char *url)
{
    stg_lane_name *known;
    char *url_copy;

    if (!make_room(l, number) || (url_copy = copy(url)) == NULL)
        return false;
    known = &l->names[number];
    if (known->name == NULL) {
        known->name = copy(name);
        if (known->name == NULL) {
            free(url_copy);
            return false;
        }
        if (number >= l->count)
            l->count = number + 1;
        l->slots[slot_of(l, name)] = number + 1;
    }
    free(known->url);
    known->url = url_copy;
    return true;
}

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
        l->names[number].is_paused = stg_sql_column(row, 4) != 0;
    return SQLITE_OK;
}

int stg_lanes_load(stg_lanes *l, stg_db *db)
{
    stg_stmt *rows;
    int rc = stg_sql_prepare_once(
        db, &rows,
        "SELECT number, name, url, is_forgotten, is_paused FROM lanes"
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
    free(l->slots);
    *l = (stg_lanes){.count = 0};
}
