/* The catch-up reader reads one partition at a time, and two ask for it: flow
 * for lanes that catch up, and the store for the bodies of bulk rows that are
 * replayed. Where both wait they have it in turn. Each is answered, whatever
 * becomes of the partition: flow and the store wait for the answer before they
 * ask again. */
#include <stdlib.h>

#include "kafka/assignment.h"

/* What the store asks for. */
typedef struct stg_kafka_reread {
    stg_link link;
    uint32_t number;
    uint64_t assignment; /* of the partition when it was asked */
    uint64_t from;
    size_t bytes_max, count_max;
    stg_read_fn *done;
    void *done_ctx;
} reread;

static void read_next(stg_kafka_source *s);

/* -- for flow -------------------------------------------------------------- */

/* Flow waits for an answer to its read, whatever has become of the
 * partition. */
static void end_catch_up(stg_kafka_source *s)
{
    const stg_action *a = &s->catch_up_read;

    stg_flow_unread(s->base.host->flow, a->partition, a->read.assignment,
                    stg_deadlines_now());
}

/* Of what a lane lacks that catches up there is always something, or a gap up to the end:
 * who found nothing did not reach the broker in time, or one that has just
 * begun and does not know its end yet. What has expired was told. */
static void take_catch_up(void *ctx, const stg_kafka_run *runs, size_t count)
{
    stg_kafka_source *s = ctx;

    s->is_catching_up = false;
    if (count == 0 || runs->next <= s->catch_up_read.read.from)
        end_catch_up(s);
    else
        stg_kafka_source_take_run(s, runs, true);
    read_next(s);
    stg_kafka_source_wake(s);
}

static void read_catch_up(stg_kafka_source *s)
{
    const stg_action *a = &s->catch_up_read;
    const stg_kafka_assignment *p =
        stg_kafka_assignment_find_number(s, a->partition);

    s->has_catch_up = false;
    s->was_catch_up = true;
    if (p == NULL) {
        end_catch_up(s);
        return;
    }
    s->is_catching_up = true;
    stg_kafka_read_catch_up(
        s->kafka, &p->tp, a->read.from, a->read.bytes_max,
        stg_kafka_source_tag(a->read.assignment, a->partition), take_catch_up,
        s);
}

/* -- for the store --------------------------------------------------------- */

static void answer(reread *r, const stg_record *records, size_t count,
                   uint64_t next)
{
    r->done(r->done_ctx, records, count, next);
    free(r);
}

/* The assignment that has the number now, if it is read. */
static const stg_kafka_assignment *find_read(const stg_kafka_source *s,
                                             uint32_t number)
{
    const stg_kafka_assignment *p = stg_kafka_assignment_find_number(s, number);

    return p != NULL && p->state == STG_ASSIGNMENT_READING ? p : NULL;
}

/* Whether the topic was made again since: its partition is read under a later
 * number, and what was of this one is no more. */
static bool is_recreated(const stg_kafka_source *s, uint32_t number)
{
    const stg_kafka_assignment *p = NULL;
    stg_store_partition of, now;

    if (!stg_store_partition_of(s->base.host->store, number, &of))
        return false;
    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->state == STG_ASSIGNMENT_READING &&
            stg_kafka_assignment_is_of(p, of.topic, of.partition))
            return p->number > number &&
                   stg_store_partition_of(s->base.host->store, p->number,
                                          &now) &&
                   now.epoch != of.epoch;
    return false;
}

/* What was read of an assignment that has ended may be of another topic of its
 * name. */
static void take_reread(void *ctx, const stg_kafka_run *runs, size_t count)
{
    stg_kafka_source *s = ctx;
    reread *r = s->reread;
    const stg_kafka_assignment *p = find_read(s, r->number);

    s->reread = NULL;
    s->is_catching_up = false;
    if (count == 0 || p == NULL || p->tp.assignment != r->assignment)
        answer(r, NULL, 0, r->from);
    else
        answer(r, runs->records, runs->count, runs->next);
    read_next(s);
}

static void read_for_store(stg_kafka_source *s, reread *r)
{
    const stg_kafka_assignment *p = find_read(s, r->number);

    s->was_catch_up = false;
    if (p == NULL || s->base.is_away) {
        answer(r, NULL, 0,
               p == NULL && is_recreated(s, r->number) ? UINT64_MAX : r->from);
        return;
    }
    s->reread = r;
    r->assignment = p->tp.assignment;
    s->is_catching_up = true;
    stg_kafka_read_again(s->kafka, &p->tp, r->from, r->bytes_max, r->count_max,
                         take_reread, s);
}

static reread *shift(stg_kafka_source *s)
{
    return STG_HOLDER(stg_list_shift(&s->rereads), reread, link);
}

/* -- in turn --------------------------------------------------------------- */

static void read_next(stg_kafka_source *s)
{
    while (s->kafka != NULL && !s->is_catching_up) {
        bool has_rereads = !stg_list_is_empty(&s->rereads);

        if (s->has_catch_up && !(has_rereads && s->was_catch_up))
            read_catch_up(s);
        else if (has_rereads)
            read_for_store(s, shift(s));
        else
            return;
    }
}

void stg_kafka_source_catch_up(stg_source *source, const stg_action *a)
{
    stg_kafka_source *s = (stg_kafka_source *)source;

    s->catch_up_read = *a;
    s->has_catch_up = true;
    read_next(s);
}

void stg_kafka_source_reread(stg_source *source, uint32_t number, uint64_t from,
                             size_t bytes_max, size_t count_max,
                             stg_read_fn *done, void *done_ctx)
{
    stg_kafka_source *s = (stg_kafka_source *)source;
    reread *r = s->kafka == NULL ? NULL : malloc(sizeof *r);

    if (r == NULL) {
        done(done_ctx, NULL, 0, from);
        return;
    }
    *r = (reread){.number = number,
                  .from = from,
                  .bytes_max = bytes_max,
                  .count_max = count_max,
                  .done = done,
                  .done_ctx = done_ctx};
    stg_list_push(&s->rereads, &r->link);
    read_next(s);
}

void stg_kafka_source_end_rereads(stg_kafka_source *s)
{
    reread *r;

    if (s->reread != NULL)
        answer(s->reread, NULL, 0, s->reread->from);
    s->reread = NULL;
    while ((r = shift(s)) != NULL)
        answer(r, NULL, 0, r->from);
}
