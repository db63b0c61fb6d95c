/* Partitions of a log that is not the queue are taken, and let go. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/stores/arena.h"
#include "hub/stores/inside.h"
#include "hub/wall.h"

/* A number that was taken, with its cursors. */
typedef struct taken {
    stg_partition p; /* its texts are the question's */
    stg_cursor *cursors;
    size_t count, room;
    uint64_t furthest; /* base */
    bool is_short;     /* of memory */
    stg_arena texts;
} taken;

typedef struct taking {
    stg_errand errand;
    stg_store *s;
    stg_claim_ask ask;
    taken now, before[STG_CLAIMED_BEFORE_MAX];
    size_t before_count;
    stg_claimed answer;
    stg_claimed_before answer_before[STG_CLAIMED_BEFORE_MAX];
    bool is_spent; /* no number is left */
    stg_claimed_fn *done;
    void *ctx;
} taking;

/* -- on the writer's thread ------------------------------------------------ */

static taking *taking_of(stg_errand *e)
{
    return STG_HOLDER(&e->link, taking, errand.link);
}

static bool make_room(taken *t)
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

static void keep_cursor(void *ctx, const stg_cursor *c)
{
    taken *t = ctx;
    size_t size = c->settled_count * sizeof *c->settled;
    uint64_t *settled = stg_arena_bytes(&t->texts, size + 1);

    t->furthest = stg_ns_max(t->furthest, c->base);
    t->is_short |= settled == NULL || !make_room(t);
    if (t->is_short)
        return;
    if (size > 0)
        memcpy(settled, c->settled, size);
    t->cursors[t->count] = *c;
    t->cursors[t->count++].settled = settled;
}

static void clear(taken *t)
{
    t->count = 0;
    t->furthest = 0;
}

/* From here on nobody else writes it; so what is read then stays. */
static int take(taken *t, stg_store_writer *w)
{
    bool is_shared = stg_sql_is_shared(w->db);
    int rc =
        stg_partitions_raise(w->db, t->p.number, w->o->shard, &t->p.generation);

    clear(t);
    if (rc == SQLITE_OK && is_shared)
        rc = stg_rows_pull_in_one(w->db, t->p.number, stg_wall_now());
    if (rc == SQLITE_OK && is_shared)
        rc = stg_cursors_reload(&w->cursors, w->db, t->p.number);
    if (rc == SQLITE_OK)
        rc = stg_cursors_read(w->db, t->p.number, true, keep_cursor, t);
    if (rc == SQLITE_OK &&
        (t->is_short || stg_partitions_set(&w->partitions, &t->p) == NULL))
        rc = SQLITE_NOMEM;
    return rc;
}

/* Numbers in this epoch name other messages than before: another one. */
static bool is_over(const taking *t)
{
    return t->now.p.number == t->ask.previous ||
           (t->ask.end != STG_NO_POSITION && t->now.furthest > t->ask.end);
}

static int make_number(taking *t, stg_store_writer *w)
{
    int rc = stg_partitions_add(w->db, &t->ask, &t->now.p);

    t->is_spent = rc == SQLITE_TOOBIG;
    return rc == SQLITE_OK ? take(&t->now, w) : rc;
}

static int make_epoch(taking *t, stg_store_writer *w)
{
    stg_partition *p = &t->now.p;

    if (uv_random(NULL, NULL, &p->epoch, sizeof p->epoch, 0, NULL) != 0)
        return SQLITE_IOERR;
    p->epoch |= 1; // 0 is the first
    p->stale = t->ask.committed;
    t->answer.was_reset = true;
    return make_number(t, w);
}

static int find_number(taking *t, stg_store_writer *w)
{
    int rc = stg_partitions_newest(w->db, &t->ask, &t->now.p);

    if (rc == SQLITE_DONE)
        return make_number(t, w);
    if (rc == SQLITE_OK)
        rc = take(&t->now, w);
    return rc == SQLITE_OK && is_over(t) ? make_epoch(t, w) : rc;
}

static stg_partition partition_of(const taking *t)
{
    return (stg_partition){.log = (char *)t->ask.log,
                           .topic = (char *)t->ask.topic,
                           .partition = t->ask.partition,
                           .stale = STG_NO_POSITION};
}

/* Rows of earlier epochs go with the partition. */
static int take_before(taking *t, stg_store_writer *w)
{
    stg_partition all[STG_CLAIMED_BEFORE_MAX];
    int rc;

    t->before_count = 0;
    if (!stg_sql_is_shared(w->db))
        return SQLITE_OK;
    for (size_t i = 0; i < STG_CLAIMED_BEFORE_MAX; i++)
        all[i] = partition_of(t);
    rc = stg_partitions_before(w->db, &t->ask, t->now.p.number, all,
                               STG_CLAIMED_BEFORE_MAX, &t->before_count);
    for (size_t i = 0; i < t->before_count && rc == SQLITE_OK; i++) {
        t->before[i].p = all[i];
        rc = take(&t->before[i], w);
    }
    return rc;
}

/* What the group has committed, if it speaks of this epoch. Cursors that hubs
 * share count alone; but a new database has none. */
static uint64_t floor_of(const taking *t)
{
    uint64_t committed = t->ask.committed;
    bool is_known = t->s->url != NULL && t->now.count > 0;

    return is_known || committed == STG_NO_POSITION ||
                   committed == t->now.p.stale || committed > t->ask.end
               ? 0
               : committed;
}

static void fill_answer(taking *t)
{
    t->answer.number = t->now.p.number;
    t->answer.epoch = t->now.p.epoch;
    t->answer.generation = t->now.p.generation;
    t->answer.floor = floor_of(t);
    t->answer.cursors = t->now.cursors;
    t->answer.count = t->now.count;
    t->answer.before = t->answer_before;
    t->answer.before_count = t->before_count;
    for (size_t i = 0; i < t->before_count; i++)
        t->answer_before[i] =
            (stg_claimed_before){.number = t->before[i].p.number,
                                 .epoch = t->before[i].p.epoch,
                                 .generation = t->before[i].p.generation,
                                 .cursors = t->before[i].cursors,
                                 .count = t->before[i].count};
}

static int write_claim(stg_errand *e, stg_store_writer *w)
{
    taking *t = taking_of(e);
    int rc;

    t->now.p = partition_of(t);
    t->answer = (stg_claimed){.status = STG_OK};
    clear(&t->now);
    rc = find_number(t, w);
    if (t->is_spent)
        return SQLITE_OK;
    if (rc == SQLITE_OK)
        rc = take_before(t, w);
    fill_answer(t);
    return rc;
}

/* -- on the loop ----------------------------------------------------------- */

static void refuse(taking *t, stg_status status, const char *words)
{
    t->answer = (stg_claimed){.status = status, .words = words};
}

/* The copy of the dead letters is of those partitions. */
static void tell_claimed(stg_store *s)
{
    char *claimed;

    if (s->url == NULL)
        return;
    claimed = stg_store_claimed(s);
    if (claimed == NULL)
        stg_store_starve(s);
    else
        stg_inbox_set_claimed(&s->in, claimed);
}

static bool note_claimed(stg_store *s, const stg_partition *got)
{
    stg_partition *p = stg_partitions_set(&s->partitions, got);

    if (p == NULL)
        return false;
    p->is_claimed = true;
    return true;
}

static void tell_claim(stg_errand *e)
{
    taking *t = taking_of(e);
    bool is_noted = true;

    if (t->is_spent)
        refuse(t, STG_INVALID,
               "the store has had 65535 partitions, more have no number; begin "
               "with a new store");
    else if (e->is_full)
        refuse(t, STG_IO, "the store is full: a partition cannot be taken");
    if (t->answer.status == STG_OK) {
        is_noted = note_claimed(t->s, &t->now.p);
        for (size_t i = 0; i < t->before_count && is_noted; i++)
            is_noted = note_claimed(t->s, &t->before[i].p);
        tell_claimed(t->s);
    }
    if (!is_noted) {
        stg_store_starve(t->s);
        return;
    }
    t->done(t->ctx, &t->answer);
}

static void free_taken(taken *t)
{
    stg_arena_free(&t->texts);
    free(t->cursors);
}

static void free_claim(stg_errand *e)
{
    taking *t = taking_of(e);

    free_taken(&t->now);
    for (size_t i = 0; i < STG_CLAIMED_BEFORE_MAX; i++)
        free_taken(&t->before[i]);
    free((char *)t->ask.log);
    free((char *)t->ask.topic);
    free(t);
}

void stg_store_claim(stg_store *s, const stg_claim_ask *ask,
                     stg_claimed_fn *done, void *ctx)
{
    taking *t = calloc(1, sizeof *t);

    if (t == NULL) {
        stg_store_starve(s);
        return;
    }
    t->errand.write = write_claim;
    t->errand.tell = tell_claim;
    t->errand.free = free_claim;
    t->s = s;
    t->ask = *ask;
    t->ask.log = stg_store_copy(ask->log);
    t->ask.topic = stg_store_copy(ask->topic);
    t->done = done;
    t->ctx = ctx;
    if (t->ask.log == NULL || t->ask.topic == NULL) {
        free_claim(&t->errand);
        stg_store_starve(s);
        return;
    }
    stg_errand_send(s, &t->errand);
}

void stg_store_unclaim(stg_store *s, uint32_t number)
{
    stg_partition *p = stg_partitions_get(&s->partitions, number);

    if (p == NULL)
        return;
    p->is_claimed = false;
    tell_claimed(s);
}

char *stg_store_claimed(const stg_store *s)
{
    char *list = malloc(4 + 6 * (size_t)s->partitions.count), *to = list;

    if (list == NULL)
        return NULL;
    // What has no topic is of nobody else.
    to += sprintf(to, "{0");
    for (uint32_t i = 1; i < s->partitions.count; i++) {
        const stg_partition *p = stg_partitions_get(&s->partitions, i);

        if (p != NULL && p->is_claimed)
            to += sprintf(to, ",%" PRIu32, i);
    }
    memcpy(to, "}", 2);
    return list;
}

/* -- which there are ------------------------------------------------------- */

bool stg_store_partition_of(const stg_store *s, uint32_t number,
                            stg_store_partition *to)
{
    const stg_partition *p = stg_partitions_get(&s->partitions, number);

    if (p == NULL)
        return false;
    *to = (stg_store_partition){.number = number,
                                .log = p->log,
                                .topic = p->topic,
                                .partition = p->partition,
                                .epoch = p->epoch,
                                .generation = p->generation};
    return true;
}

void stg_store_partitions(const stg_store *s, stg_store_partition_fn *each,
                          void *ctx)
{
    stg_store_partition one;

    for (uint32_t i = 1; i < s->partitions.count; i++)
        if (stg_store_partition_of(s, i, &one))
            each(ctx, &one);
}

/* -- ids ------------------------------------------------------------------- */

static stg_ids ids_of(const stg_store *s)
{
    return (stg_ids){.epochs = &s->epochs, .partitions = &s->partitions};
}

const char *stg_store_id(const stg_store *s, uint32_t number, uint64_t position,
                         char text[STG_MESSAGE_ID_MAX])
{
    stg_ids ids = ids_of(s);

    return stg_ids_print(&ids, number, position, text);
}

bool stg_store_find_id(const stg_store *s, const char *id, uint32_t *number,
                       uint64_t *position)
{
    stg_ids ids = ids_of(s);

    return stg_ids_parse(&ids, id, number, position);
}
