/* The numbers of partitions: the table, what is known of it in memory, and the
 * taking of numbers by the writer.
 *
 * Who may write a number is a matter of generations: each taking raises the
 * number's generation for a shard, in the transaction that then reads its
 * cursors. Whoever had it before comes with a lower one, and is refused (the
 * fence): so two hubs may both believe that they have a partition, and only one
 * of them can write. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/writer.h"

/* -- in memory ------------------------------------------------------------- */

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *same = malloc(size);

    return same == NULL ? NULL : memcpy(same, text, size);
}

static void free_one(stg_partition_row *one)
{
    if (one == NULL)
        return;
    free(one->log);
    free(one->topic);
    free(one);
}

stg_partition_row *stg_partitions_get(const stg_partitions *p, uint32_t number)
{
    return number < p->count ? p->all[number] : NULL;
}

static bool make_room(stg_partitions *p, uint32_t number)
{
    uint32_t room = p->room == 0 ? 64 : p->room;
    stg_partition_row **all;

    while (room <= number)
        room *= 2;
    if (room == p->room)
        return true;
    all = realloc(p->all, room * sizeof(stg_partition_row *));
    if (all == NULL)
        return false;
    memset(all + p->room, 0, (room - p->room) * sizeof(stg_partition_row *));
    p->all = all;
    p->room = room;
    return true;
}

/* The row's address changes: a pointer from stg_partitions_get() is of no use
 * behind this call. */
stg_partition_row *stg_partitions_set(stg_partitions *p,
                                      const stg_partition_row *one)
{
    stg_partition_row *same = malloc(sizeof *same);

    if (same == NULL)
        return NULL;
    *same = *one;
    same->log = copy(one->log);
    same->topic = copy(one->topic);
    if (same->log == NULL || same->topic == NULL ||
        !make_room(p, one->number)) {
        free_one(same);
        return NULL;
    }
    free_one(p->all[one->number]);
    p->all[one->number] = same;
    if (one->number >= p->count)
        p->count = one->number + 1;
    return same;
}

/* Forgets the numbers from there on: they may be of a transaction that was
 * rolled back. */
static void cut(stg_partitions *p, uint32_t from)
{
    while (p->count > from) {
        free_one(p->all[--p->count]);
        p->all[p->count] = NULL;
    }
}

/* From the highest number down: numbers rise with the epochs of a partition. */
const stg_partition_row *stg_partitions_newest(const stg_partitions *p,
                                               const stg_claim_ask *ask,
                                               uint32_t below)
{
    for (uint32_t i = below < p->count ? below : p->count; i-- > 0;) {
        const stg_partition_row *one = p->all[i];

        if (one != NULL && one->partition == ask->partition &&
            strcmp(one->topic, ask->topic) == 0 &&
            strcmp(one->log, ask->log) == 0)
            return one;
    }
    return NULL;
}

void stg_partitions_free(stg_partitions *p)
{
    cut(p, 0);
    free(p->all);
    *p = (stg_partitions){.count = 0};
}

/* -- the table ------------------------------------------------------------- */

#define COLUMNS "number, log, topic, partition, epoch, stale"

static int read_row(stg_partition_row *one, stg_stmt *row)
{
    uint64_t number = stg_sql_column(row, 0);
    const char *epoch = stg_sql_text(row, 4);

    if (number < 1 || number >= STG_PARTITIONS_MAX || epoch == NULL)
        return SQLITE_CORRUPT;
    one->number = (uint32_t)number;
    one->partition = (uint32_t)stg_sql_column(row, 3);
    one->epoch = strtoull(epoch, NULL, 16);
    one->stale =
        stg_sql_is_null(row, 5) ? STG_NO_POSITION : stg_sql_column(row, 5);
    return SQLITE_OK;
}

/* A row that is known already stays: the generation in memory is what this hub
 * was given, and is not replaced by another's. */
static int load_row(stg_partitions *p, stg_stmt *row)
{
    stg_partition_row one = {.log = (char *)stg_sql_text(row, 1),
                             .topic = (char *)stg_sql_text(row, 2)};
    int rc = read_row(&one, row);

    if (rc != SQLITE_OK || one.log == NULL || one.topic == NULL)
        return SQLITE_CORRUPT;
    one.generation = stg_sql_column(row, 6);
    if (stg_partitions_get(p, one.number) != NULL)
        return SQLITE_OK;
    return stg_partitions_set(p, &one) == NULL ? SQLITE_NOMEM : SQLITE_OK;
}

/* What was read from the table before is not read again: a number's row never
 * changes. */
int stg_partitions_load(stg_partitions *p, stg_db *db, uint32_t shard)
{
    stg_stmt *rows = NULL;
    int rc = stg_sql_prepare_once(
        db, &rows,
        "SELECT " COLUMNS
        ", coalesce((SELECT generation FROM claims c"
        " WHERE c.number = p.number AND shard = ?), 0)"
        " FROM partitions p WHERE number >= ? ORDER BY number");

    cut(p, p->loaded);
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(rows, "uu", (uint64_t)shard, (uint64_t)p->loaded);
    while (rc == SQLITE_OK && (rc = stg_sql_step(rows)) == SQLITE_ROW)
        rc = load_row(p, rows);
    stg_sql_finalize(rows);
    if (rc == SQLITE_DONE)
        p->loaded = p->count;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* max + 1 is safe behind the lock that the transaction has
 * (stg_sql_serialize()), as rows are never deleted. */
int stg_partitions_add(stg_db *db, const stg_claim_ask *ask,
                       stg_partition_row *to)
{
    stg_stmt *st = NULL;
    uint64_t number = 0;
    char epoch[17];
    int rc = stg_sql_ask(
        db, "SELECT coalesce(max(number), 0) + 1 FROM partitions", &number);

    if (rc == SQLITE_OK && number >= STG_PARTITIONS_MAX)
        return SQLITE_TOOBIG;
    to->number = (uint32_t)number;
    snprintf(epoch, sizeof epoch, "%016" PRIx64, to->epoch);
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(db, &st,
                                  "INSERT INTO partitions (" COLUMNS
                                  ") VALUES (?, ?, ?, ?, ?, ?)");
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "ussus", number, ask->log, ask->topic,
                          (uint64_t)ask->partition, epoch);
    // One that is 0 says nothing: lanes begin there anyway.
    if (rc == SQLITE_OK)
        rc = stg_sql_bind_from(st, 6, "o",
                               to->stale == STG_NO_POSITION ? 0 : to->stale);
    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "");
    stg_sql_finalize(st);
    return rc;
}

/* -- claims ---------------------------------------------------------------- */

/* The rows of a statement: a number, and its generation. */
static int each_row(stg_stmt *st, int rc, stg_partitions_each *each, void *ctx)
{
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        each(ctx, (uint32_t)stg_sql_column(st, 0), stg_sql_column(st, 1));
        rc = SQLITE_OK;
    }
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The newest epochs first: a claim takes so many only. */
int stg_partitions_with_rows(stg_db *db, const char *list,
                             stg_partitions_each *each, void *ctx)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_list(
        db, &st, "SELECT number, 0 FROM partitions p WHERE number IN (", list,
        ") AND (EXISTS (SELECT 1 FROM parked"
        " WHERE parked.partition = p.number) OR EXISTS (SELECT 1"
        " FROM failed_broadcast_logs f WHERE f.partition = p.number"
        " AND f.is_requested = 1 AND f.state = 'dead')) ORDER BY number DESC");

    return each_row(st, rc, each, ctx);
}

/* ORDER BY: two hubs that raise the same numbers lock the rows in one order,
 * and so cannot wait for each other. */
static int raise_generations(stg_db *db, const char *list, uint32_t shard,
                             stg_partitions_each *each, void *ctx)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_list(
        db, &st,
        "INSERT INTO claims (number, shard, generation)"
        " SELECT number, ?, 1 FROM partitions WHERE number IN (",
        list,
        ") ORDER BY number ON CONFLICT (number, shard) DO UPDATE SET"
        " generation = claims.generation + 1 RETURNING number, generation");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "u", (uint64_t)shard);
    return each_row(st, rc, each, ctx);
}

/* "{1,7}". NULL: no memory. */
static char *list_of(const stg_claim *claims, size_t count)
{
    char *list = malloc(3 + 11 * count), *to = list;

    if (list == NULL)
        return NULL;
    *to++ = '{';
    for (size_t i = 0; i < count; i++)
        to += sprintf(to, "%s%" PRIu32, i > 0 ? "," : "", claims[i].partition);
    memcpy(to, "}", 2);
    return list;
}

/* The generation of a number among the rows that st steps through. */
static int fence_rows(stg_stmt *st, const stg_claim *claims, size_t count,
                      bool *is_ours)
{
    int rc;

    while ((rc = stg_sql_step(st)) == SQLITE_ROW)
        for (size_t i = 0; i < count; i++)
            if (claims[i].partition == stg_sql_column(st, 0))
                is_ours[i] = claims[i].generation == stg_sql_column(st, 1);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Reads and locks the generations of all at once; who wants to take one of
 * them waits for the end of the transaction. A number without a row is
 * fenced, too. */
static int fence_shared(stg_stmt *st, uint32_t shard, const stg_claim *claims,
                        size_t count, uint32_t *fenced, size_t *fenced_count)
{
    char *list = list_of(claims, count);
    bool *is_ours = calloc(count, sizeof *is_ours);
    int rc = list == NULL || is_ours == NULL ? SQLITE_NOMEM : SQLITE_OK;

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "us", (uint64_t)shard, list);
    if (rc == SQLITE_OK)
        rc = fence_rows(st, claims, count, is_ours);
    stg_sql_reset(st);
    // A target that is forgotten is of no topic: nobody else has it.
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
        if (!is_ours[i] && claims[i].partition != 0)
            fenced[(*fenced_count)++] = claims[i].partition;
    free(list);
    free(is_ours);
    return rc;
}

/* A file has one hub: nothing can be fenced. */
int stg_partitions_prepare_fence(stg_db *db, stg_stmt **st)
{
    *st = NULL;
    if (!stg_sql_is_shared(db))
        return SQLITE_OK;
    return stg_sql_prepare(
        db, st,
        "SELECT number, generation FROM claims WHERE shard = ?1"
        " AND number = ANY (CAST(?2 AS INTEGER[])) ORDER BY number"
        " FOR SHARE");
}

int stg_partitions_fence(stg_stmt *st, uint32_t shard, const stg_claim *claims,
                         size_t count, uint32_t *fenced, size_t *fenced_count)
{
    *fenced_count = 0;
    if (st == NULL)
        return SQLITE_OK;
    return fence_shared(st, shard, claims, count, fenced, fenced_count);
}

/* -- numbers that are taken together --------------------------------------- */

static bool make_cursor_room(stg_taken *t)
{
    size_t room = t->room == 0 ? 64 : 2 * t->room;
    stg_cursor *cursors;

    if (t->count < t->room)
        return true;
    cursors = realloc(t->cursors, room * sizeof *cursors);
    if (cursors == NULL)
        return false;
    t->cursors = cursors;
    t->room = room;
    return true;
}

static void keep_cursor(stg_taken *t, const stg_cursor *c)
{
    size_t size = c->settled_count * sizeof *c->settled;
    stg_positions *settled = stg_arena_bytes(&t->texts, size + 1);

    t->furthest = stg_ns_max(t->furthest, c->base);
    t->is_short |= settled == NULL || !make_cursor_room(t);
    if (t->is_short)
        return;
    if (size > 0)
        memcpy(settled, c->settled, size);
    t->cursors[t->count] = *c;
    t->cursors[t->count++].settled = settled;
}

void stg_taken_clear(stg_taken *t)
{
    t->count = 0;
    t->furthest = 0;
}

/* Numbers that are taken together. */
typedef struct handful {
    stg_taken **by_number; /* NULL: not of them */
    uint32_t *numbers;
    size_t count, room; /* of by_number */
    char *list;         /* see stg_sql_list() */
} handful;

static stg_taken *find_taken(const handful *h, uint32_t number)
{
    return number < h->room ? h->by_number[number] : NULL;
}

static void note_generation(void *ctx, uint32_t number, uint64_t generation)
{
    stg_taken *t = find_taken(ctx, number);

    if (t != NULL)
        t->p.generation = generation;
}

static void note_cursor(void *ctx, const stg_cursor *c)
{
    stg_taken *t = find_taken(ctx, c->partition);

    if (t != NULL)
        keep_cursor(t, c);
}

static void drop_handful(handful *h)
{
    free(h->by_number);
    free(h->numbers);
    free(h->list);
}

static int gather(handful *h, stg_taken *const *all, size_t count)
{
    *h = (handful){.count = count};
    for (size_t i = 0; i < count; i++)
        if (all[i]->p.number >= h->room)
            h->room = all[i]->p.number + 1;
    h->by_number = calloc(h->room, sizeof(stg_taken *));
    h->numbers = calloc(count, sizeof *h->numbers);
    if (h->by_number == NULL || h->numbers == NULL)
        return SQLITE_NOMEM;
    for (size_t i = 0; i < count; i++) {
        stg_taken_clear(all[i]);
        h->by_number[all[i]->p.number] = all[i];
        h->numbers[i] = all[i]->p.number;
    }
    h->list = stg_sql_list(h->numbers, count);
    return h->list == NULL ? SQLITE_NOMEM : SQLITE_OK;
}

/* Raises the generations first: from then on nobody else writes these rows, so
 * what is read behind it stays. */
static int take_handful(handful *h, stg_store_writer *w)
{
    bool is_shared = stg_sql_is_shared(w->db);
    int rc = raise_generations(w->db, h->list, w->o->shard, note_generation, h);

    if (rc == SQLITE_OK && is_shared)
        rc = stg_rows_pull_in_of(w->db, h->list, stg_sql_now(w->db));
    if (rc == SQLITE_OK && is_shared)
        rc = stg_cursors_reload(&w->cursors, w->db, h->numbers, h->count);
    return rc == SQLITE_OK
               ? stg_cursors_read(w->db, h->list, true, note_cursor, h)
               : rc;
}

/* Sets the generations in the writer's table within the transaction: where a
 * server went away, the request runs again and sets them anew. */
int stg_taken_take(stg_taken *const *all, size_t count, stg_store_writer *w)
{
    handful h;
    int rc;

    if (count == 0)
        return SQLITE_OK;
    rc = gather(&h, all, count);
    if (rc == SQLITE_OK)
        rc = take_handful(&h, w);
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
        if (all[i]->is_short ||
            stg_partitions_set(&w->partitions, &all[i]->p) == NULL)
            rc = SQLITE_NOMEM;
    drop_handful(&h);
    return rc;
}

void stg_taken_free(stg_taken *t)
{
    stg_arena_free(&t->texts);
    free(t->cursors);
}
