/* Partitions of a log that is not the queue are taken, and let go. */
#include <stdlib.h>
#include <string.h>

#include "hub/stores/arena.h"
#include "hub/stores/inside.h"

typedef struct taking {
    stg_errand errand;
    stg_store *s;
    stg_claim_ask ask;
    stg_partition got; /* its texts are the question's */
    stg_claimed answer;
    stg_cursor *cursors;
    size_t count, room;
    uint64_t furthest; /* base */
    bool is_spent;     /* no number is left */
    bool is_short;     /* of memory */
    stg_arena texts;
    stg_claimed_fn *done;
    void *ctx;
} taking;

/* -- on the writer's thread ------------------------------------------------ */

static taking *taking_of(stg_errand *e)
{
    return STG_HOLDER(&e->link, taking, errand.link);
}

static bool make_room(taking *t)
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
    taking *t = ctx;
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

static int read_cursors(taking *t, stg_db *db)
{
    int rc;

    t->count = 0;
    t->furthest = 0;
    rc = stg_cursors_read(db, t->got.number, true, keep_cursor, t);
    return rc == SQLITE_OK && t->is_short ? SQLITE_NOMEM : rc;
}

/* Numbers in this epoch name other messages than before: another one. */
static bool is_over(const taking *t)
{
    return t->got.number == t->ask.previous ||
           (t->ask.end != STG_NO_POSITION && t->furthest > t->ask.end);
}

static int make_number(taking *t, stg_store_writer *w)
{
    int rc = stg_partitions_add(w->db, &t->ask, &t->got);

    t->is_spent = rc == SQLITE_TOOBIG;
    t->count = 0;
    return rc;
}

static int make_epoch(taking *t, stg_store_writer *w)
{
    if (uv_random(NULL, NULL, &t->got.epoch, sizeof t->got.epoch, 0, NULL) != 0)
        return SQLITE_IOERR;
    t->got.epoch |= 1; // 0 is the first
    t->got.stale = t->ask.committed;
    t->answer.was_reset = true;
    return make_number(t, w);
}

static int find_number(taking *t, stg_store_writer *w)
{
    int rc = stg_partitions_newest(w->db, &t->ask, &t->got);

    if (rc == SQLITE_DONE)
        return make_number(t, w);
    if (rc == SQLITE_OK)
        rc = read_cursors(t, w->db);
    return rc == SQLITE_OK && is_over(t) ? make_epoch(t, w) : rc;
}

/* What the group has committed, if it speaks of this epoch. */
static uint64_t floor_of(const taking *t)
{
    uint64_t committed = t->ask.committed;

    return committed == STG_NO_POSITION || committed == t->got.stale ||
                   committed > t->ask.end
               ? 0
               : committed;
}

static int write_claim(stg_errand *e, stg_store_writer *w)
{
    taking *t = taking_of(e);
    int rc;

    t->got = (stg_partition){.log = (char *)t->ask.log,
                             .topic = (char *)t->ask.topic,
                             .partition = t->ask.partition,
                             .stale = STG_NO_POSITION};
    t->answer = (stg_claimed){.status = STG_OK};
    rc = find_number(t, w);
    if (t->is_spent)
        return SQLITE_OK;
    if (rc == SQLITE_OK)
        rc = stg_partitions_raise(w->db, t->got.number, w->o->shard,
                                  &t->answer.generation);
    t->got.generation = t->answer.generation;
    if (rc == SQLITE_OK && stg_partitions_set(&w->partitions, &t->got) == NULL)
        rc = SQLITE_NOMEM;
    t->answer.number = t->got.number;
    t->answer.epoch = t->got.epoch;
    t->answer.floor = floor_of(t);
    t->answer.cursors = t->cursors;
    t->answer.count = t->count;
    return rc;
}

/* -- on the loop ----------------------------------------------------------- */

static void refuse(taking *t, stg_status status, const char *words)
{
    t->answer = (stg_claimed){.status = status, .words = words};
}

static void tell_claim(stg_errand *e)
{
    taking *t = taking_of(e);
    stg_partition *p;

    if (t->is_spent)
        refuse(t, STG_INVALID,
               "the store has had 65535 partitions, more have no number; begin "
               "with a new store");
    else if (e->is_full)
        refuse(t, STG_IO, "the store is full: a partition cannot be taken");
    if (t->answer.status == STG_OK) {
        p = stg_partitions_set(&t->s->partitions, &t->got);
        if (p == NULL) {
            stg_store_starve(t->s);
            return;
        }
        p->is_claimed = true;
    }
    t->done(t->ctx, &t->answer);
}

static void free_claim(stg_errand *e)
{
    taking *t = taking_of(e);

    stg_arena_free(&t->texts);
    free((char *)t->ask.log);
    free((char *)t->ask.topic);
    free(t->cursors);
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

    if (p != NULL)
        p->is_claimed = false;
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
