/* The cursors of lanes, STG_SLICE a row, as the writer writes them.
 *
 * A group brings whole slices; the rows it replaces need not be read, for the
 * writer knows the bases of what it wrote before. A row is read only where the
 * store is ahead of the group, which happens after an answer that was lost: bases
 * only rise, and a group that comes late takes nothing back.
 *
 * A replay moves rows from dead to parked in its own transaction, or routes
 * messages again, of which flow hears later. A group that flow made before it heard has the books of before: so
 * moves are kept until a group comes that knows of them, and are added to those
 * that do not. After a rollback all is read anew. */
#include "store/lanes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static_assert(STG_SLICE <= 32, "`has` has a bit for each");

/* A row, as far as it decides whether it must be read before it is written. */
struct stg_slice {
    uint32_t partition, slice;
    uint32_t has; /* lanes that are stored, a bit for each */
    uint64_t bases[STG_SLICE];
};

static bool has(const stg_slice *s, uint32_t lane)
{
    return s->has >> lane % STG_SLICE & 1;
}

/* -- the rows that there are ----------------------------------------------- */

static size_t place_of(const stg_cursors *c, uint32_t partition, uint32_t slice)
{
    uint64_t key = (uint64_t)partition << 32 | slice;
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15 >> 32) & (c->slot_count - 1);

    while (c->slots[at] != NULL && (c->slots[at]->partition != partition ||
                                    c->slots[at]->slice != slice))
        at = (at + 1) & (c->slot_count - 1);
    return at;
}

static bool grow(stg_cursors *c)
{
    stg_cursors wider = {.slot_count =
                             c->slot_count == 0 ? 64 : 2 * c->slot_count};

    wider.slots = calloc(wider.slot_count, sizeof(stg_slice *));
    if (wider.slots == NULL)
        return false;
    for (size_t i = 0; i < c->slot_count; i++)
        if (c->slots[i] != NULL)
            wider.slots[place_of(&wider, c->slots[i]->partition,
                                 c->slots[i]->slice)] = c->slots[i];
    free(c->slots);
    c->slots = wider.slots;
    c->slot_count = wider.slot_count;
    return true;
}

/* The row, made if there is none. NULL: no memory. */
static stg_slice *slice_of(stg_cursors *c, uint32_t partition, uint32_t slice)
{
    stg_slice *s;
    size_t at;

    if (2 * c->count >= c->slot_count && !grow(c))
        return NULL;
    at = place_of(c, partition, slice);
    if (c->slots[at] != NULL)
        return c->slots[at];
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->partition = partition;
    s->slice = slice;
    c->slots[at] = s;
    c->count++;
    return s;
}

/* -- the text of a row ----------------------------------------------------- */

/* Zeros are left out: read_number() in cursors_text.c reads what is missing as
 * 0. */
static void put_book(stg_text *t, const char *name, uint64_t number)
{
    if (number == 0)
        return;
    stg_text_put(t, name);
    stg_text_put_number(t, number);
}

/* A lane a line, so that a person can read the row with any client. */
static void put_cursor(stg_text *t, const stg_cursor *cursor)
{
    stg_text_put(t, t->size == 0 ? "{\n\"" : ",\n\"");
    stg_text_put_number(t, cursor->lane);
    stg_text_put(t, "\": {\"base\": ");
    stg_text_put_number(t, cursor->base);
    for (size_t i = 0; i < cursor->settled_count; i++) {
        stg_text_put(t, i == 0 ? ", \"settled\": [[" : ", [");
        stg_text_put_number(t, cursor->settled[i].first);
        stg_text_put(t, ", ");
        stg_text_put_number(t, cursor->settled[i].last);
        stg_text_put(t, "]");
    }
    if (cursor->settled_count > 0)
        stg_text_put(t, "]");
    put_book(t, ", \"routed\": ", cursor->routed);
    put_book(t, ", \"delivered\": ", cursor->delivered);
    put_book(t, ", \"dead\": ", cursor->dead);
    put_book(t, ", \"cancelled\": ", cursor->cancelled);
    put_book(t, ", \"parked\": ", cursor->parked);
    put_book(t, ", \"oldest_at\": ", cursor->oldest_at);
    if (cursor->is_ordered)
        stg_text_put(t, ", \"ordered\": true");
    stg_text_put(t, "}");
}

/* -- writing one row ------------------------------------------------------- */

/* A row while it is made: of the lanes that the group has, those of the store
 * that it has not or has lower, and none that it forgets. */
typedef struct row {
    stg_cursors *c;
    const stg_group *group; /* NULL: a replay, this: */
    const stg_move *move;
    uint64_t told; /* the group knows of replays up to this one */
    const stg_cursor *of[STG_SLICE]; /* the group's; NULL: none */
    stg_slice now;
} row;

static bool is_forgotten(const stg_group *g, uint32_t lane)
{
    for (size_t i = 0; g != NULL && i < g->change_count; i++)
        if (g->changes[i].kind == STG_CHANGE_FORGET &&
            g->changes[i].lane == lane)
            return true;
    return false;
}

static void move(stg_cursor *c, const stg_move *m)
{
    if (m->is_again)
        c->routed += m->count;
    else
        c->dead = stg_ns_sub(c->dead, m->count);
    c->parked += m->count;
}

/* Adds the replays that the group did not know of when flow made it: its books
 * still have these rows as dead. */
static stg_cursor correct(const row *r, const stg_cursor *cursor)
{
    const stg_cursors *c = r->c;
    stg_cursor right = *cursor;

    for (size_t i = 0; i < c->move_count; i++) {
        const stg_move *m = &c->moves[i];

        if (m->number > r->told && m->lane == right.lane &&
            m->partition == right.partition)
            move(&right, m);
    }
    return right;
}

static void add(row *r, const stg_cursor *cursor)
{
    uint32_t at = cursor->lane % STG_SLICE;

    put_cursor(&r->c->text, cursor);
    r->now.has |= UINT32_C(1) << at;
    r->now.bases[at] = cursor->base;
}

/* Decides for one stored cursor: the group's stays if its base is not lower,
 * and else the stored one. A replay comes without a group, and only moves
 * books. */
static void keep(void *ctx, const stg_cursor *stored)
{
    row *r = ctx;
    const stg_cursor **ours = &r->of[stored->lane % STG_SLICE];

    if (*ours != NULL && (*ours)->base >= stored->base)
        return;
    *ours = NULL;
    if (r->group == NULL && stored->lane == r->move->lane) {
        stg_cursor moved = *stored;

        move(&moved, r->move);
        add(r, &moved);
    } else if (!is_forgotten(r->group, stored->lane)) {
        add(r, stored);
    }
}

/* Whether the store has something that the group has not, or has lower. */
static bool is_ahead(const stg_slice *s, const row *r)
{
    for (uint32_t at = 0; at < STG_SLICE; at++)
        if (has(s, at) && (r->of[at] == NULL || r->of[at]->base < s->bases[at]))
            return true;
    return false;
}

static int keep_stored(row *r)
{
    stg_slice *s = &r->now;
    int rc = stg_sql_bind(r->c->read, "uuu", (uint64_t)s->partition,
                          (uint64_t)r->c->shard, (uint64_t)s->slice);

    if (rc != SQLITE_OK)
        return rc;
    rc = stg_sql_step(r->c->read);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    if (!stg_cursors_parse(stg_sql_column_span(r->c->read, 0), s->partition,
                           s->slice, keep, r))
        rc = SQLITE_CORRUPT;
    stg_sql_reset(r->c->read);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* `known` is set before the write is durable: after a rollback
 * stg_cursors_load() reads all anew. lanes.begins is of the queue, and is set
 * once, by the first cursor of a lane. */
static int write_row(row *r, stg_slice *known)
{
    stg_text *text = &r->c->text;
    int rc = SQLITE_OK;

    r->now.partition = known->partition;
    r->now.slice = known->slice;
    stg_text_clear(text);
    if (is_ahead(known, r))
        rc = keep_stored(r);
    for (uint32_t at = 0; at < STG_SLICE && rc == SQLITE_OK; at++)
        if (r->of[at] != NULL) {
            stg_cursor right = correct(r, r->of[at]);

            add(r, &right);
            if (!has(known, at) && right.partition == 0)
                rc = stg_sql_run(r->c->begin, "uu", (uint64_t)right.lane,
                                 right.base);
        }
    if (rc != SQLITE_OK)
        return rc;
    stg_text_put(text, text->size == 0 ? "{}" : "\n}");
    if (text->is_short)
        return SQLITE_NOMEM;
    *known = r->now;
    return stg_sql_run(r->c->write, "uuuj", (uint64_t)known->partition,
                       (uint64_t)r->c->shard, (uint64_t)known->slice,
                       (stg_span){text->at, text->size});
}

/* -- a group --------------------------------------------------------------- */

/* In a store that others use, only what was claimed is ours to write: elsewhere
 * the cursor stays, of a number that nobody asks for any more. */
static bool is_ours(const stg_cursors *c, const stg_group *g,
                    uint32_t partition)
{
    if (!c->is_shared || partition == 0)
        return true;
    for (size_t i = 0; i < g->claim_count; i++)
        if (g->claims[i].partition == partition)
            return true;
    return false;
}

/* Writes the rows of all partitions that have the lane, without it. */
static int forget(stg_cursors *c, const stg_group *g, uint32_t lane)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; i < c->slot_count && rc == SQLITE_OK; i++) {
        stg_slice *s = c->slots[i];

        if (s != NULL && s->slice == lane / STG_SLICE &&
            has(s, lane % STG_SLICE) && is_ours(c, g, s->partition)) {
            row r = {.c = c, .group = g};

            rc = write_row(&r, s);
        }
    }
    return rc;
}

/* The cursors from `from` on that are of one row; returns its end. */
static size_t collect(row *r, size_t from, bool forgets)
{
    const stg_cursor *first = &r->group->cursors[from];
    size_t at = from;

    for (; at < r->group->cursor_count; at++) {
        const stg_cursor *one = &r->group->cursors[at];

        if (one->partition != first->partition ||
            one->lane / STG_SLICE != first->lane / STG_SLICE)
            break;
        if (!forgets || !is_forgotten(r->group, one->lane))
            r->of[one->lane % STG_SLICE] = one;
    }
    return at;
}

/* -- replays --------------------------------------------------------------- */

static void drop_moves(stg_cursors *c, uint64_t from, uint64_t to)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->move_count; i++)
        if (c->moves[i].number < from || c->moves[i].number > to)
            c->moves[kept++] = c->moves[i];
    c->move_count = kept;
}

static bool note_move(stg_cursors *c, const stg_move *m)
{
    if (c->move_count == c->move_room) {
        size_t room = c->move_room == 0 ? 16 : 2 * c->move_room;
        stg_move *moves = realloc(c->moves, room * sizeof *moves);

        if (moves == NULL)
            return false;
        c->moves = moves;
        c->move_room = room;
    }
    c->moves[c->move_count++] = *m;
    return true;
}

int stg_cursors_replay(stg_cursors *c, const stg_move *m)
{
    stg_slice *s = slice_of(c, m->partition, m->lane / STG_SLICE);
    stg_move noted = *m;
    row r = {.c = c, .move = m};

    noted.number = c->replays + 1;
    if (s == NULL || !note_move(c, &noted))
        return SQLITE_NOMEM;
    return has(s, m->lane % STG_SLICE) ? write_row(&r, s) : SQLITE_OK;
}

/* Called behind the commit. The number rises only if the transaction has noted
 * moves, which have the next number. */
void stg_cursors_replayed(stg_cursors *c)
{
    if (c->move_count > 0 && c->moves[c->move_count - 1].number > c->replays)
        c->replays++;
}

int stg_cursors_write(stg_cursors *c, const stg_group *g, uint64_t told)
{
    bool forgets = false;
    int rc = SQLITE_OK;

    // It will not come again with less.
    drop_moves(c, 0, told);
    for (size_t i = 0; i < g->change_count && rc == SQLITE_OK; i++)
        if (g->changes[i].kind == STG_CHANGE_FORGET) {
            forgets = true;
            rc = forget(c, g, g->changes[i].lane);
        }
    for (size_t at = 0; at < g->cursor_count && rc == SQLITE_OK;) {
        const stg_cursor *first = &g->cursors[at];
        stg_slice *s = slice_of(c, first->partition, first->lane / STG_SLICE);
        row r = {.c = c, .group = g, .told = told};

        if (s == NULL)
            return SQLITE_NOMEM;
        at = collect(&r, at, forgets);
        rc = write_row(&r, s);
    }
    return rc;
}

/* -- the beginning --------------------------------------------------------- */

static void note(void *ctx, const stg_cursor *cursor)
{
    row *r = ctx;
    uint32_t at = cursor->lane % STG_SLICE;

    r->now.has |= UINT32_C(1) << at;
    r->now.bases[at] = cursor->base;
}

static int load_row(stg_cursors *c, stg_stmt *rows)
{
    uint32_t partition = (uint32_t)stg_sql_column(rows, 0);
    uint32_t slice = (uint32_t)stg_sql_column(rows, 1);
    stg_slice *s = slice_of(c, partition, slice);
    row r = {.now = {.partition = partition, .slice = slice}};

    if (s == NULL)
        return SQLITE_NOMEM;
    if (!stg_cursors_parse(stg_sql_column_span(rows, 2), partition, slice, note,
                           &r))
        return SQLITE_CORRUPT;
    *s = r.now;
    return SQLITE_OK;
}

static void drop_slices(stg_cursors *c)
{
    for (size_t i = 0; i < c->slot_count; i++)
        free(c->slots[i]);
    free(c->slots);
    c->slots = NULL;
    c->count = c->slot_count = 0;
}

int stg_cursors_load(stg_cursors *c, stg_db *db)
{
    stg_stmt *rows = NULL;
    int rc = SQLITE_OK, step = SQLITE_DONE;

    c->is_shared = stg_sql_is_shared(db);
    drop_slices(c);
    drop_moves(c, c->replays + 1, UINT64_MAX);
    if (c->read == NULL)
        rc = stg_sql_prepare(db, &c->read,
                             "SELECT lanes FROM cursors WHERE partition = ?"
                             " AND shard = ? AND slice = ?");
    if (rc == SQLITE_OK && c->write == NULL)
        rc = stg_sql_prepare(
            db, &c->write,
            "INSERT INTO cursors (partition, shard, slice, lanes)"
            " VALUES (?, ?, ?, ?) ON CONFLICT (partition, shard, slice)"
            " DO UPDATE SET lanes = excluded.lanes");
    if (rc == SQLITE_OK && c->begin == NULL)
        rc = stg_sql_prepare(db, &c->begin,
                             "UPDATE lanes SET begins = ?2"
                             " WHERE number = ?1 AND begins IS NULL");
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(
            db, &rows,
            "SELECT partition, slice, lanes FROM cursors WHERE shard = ?");
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(rows, "u", (uint64_t)c->shard);
    while (rc == SQLITE_OK && (step = stg_sql_step(rows)) == SQLITE_ROW)
        rc = load_row(c, rows);
    stg_sql_finalize(rows);
    return rc != SQLITE_OK || step == SQLITE_DONE ? rc : step;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

    return (one > other) - (one < other);
}

/* Nothing is known of these rows. numbers rise. */
static void forget_rows(stg_cursors *c, const uint32_t *numbers, size_t count)
{
    for (size_t i = 0; i < c->slot_count; i++) {
        stg_slice *s = c->slots[i];

        if (s != NULL && bsearch(&s->partition, numbers, count, sizeof *numbers,
                                 compare_numbers) != NULL)
            *s = (stg_slice){.partition = s->partition, .slice = s->slice};
    }
}

/* Partitions that were claimed anew: another hub has written their rows since. */
int stg_cursors_reload(stg_cursors *c, stg_db *db, const uint32_t *partitions,
                       size_t count)
{
    uint32_t *numbers = malloc((count + 1) * sizeof *numbers);
    char *list = stg_sql_list(partitions, count);
    stg_stmt *rows = NULL;
    int rc = SQLITE_NOMEM;

    if (numbers != NULL && list != NULL) {
        memcpy(numbers, partitions, count * sizeof *numbers);
        qsort(numbers, count, sizeof *numbers, compare_numbers);
        forget_rows(c, numbers, count);
        rc = stg_sql_prepare_list(db, &rows,
                                  "SELECT partition, slice, lanes FROM cursors"
                                  " WHERE shard = ? AND partition IN (",
                                  list, ")");
    }
    free(numbers);
    free(list);
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(rows, "u", (uint64_t)c->shard);
    while (rc == SQLITE_OK && (rc = stg_sql_step(rows)) == SQLITE_ROW)
        rc = load_row(c, rows);
    stg_sql_finalize(rows);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void stg_cursors_free(stg_cursors *c)
{
    drop_slices(c);
    free(c->moves);
    stg_text_free(&c->text);
}
