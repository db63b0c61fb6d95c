/* The reader behind has one place at a time, and two who ask: flow for its
 * laggards, and the store for the bodies of bulk rows that are replayed. Where
 * both wait they have it in turn. */
#include <stdlib.h>

#include "hub/hub_internal.h"

/* What the store asks for. */
typedef struct stg_source_reading {
    stg_link link;
    uint32_t number;
    uint64_t assignment; /* of the place when it was asked */
    uint64_t from;
    size_t bytes_max, count_max;
    stg_read_fn *done;
    void *done_ctx;
} reading;

static void read_next(stg_source *s);

/* -- for flow -------------------------------------------------------------- */

/* Flow waits for an answer to its read, whatever has become of the place. */
static void end_laggards(stg_source *s)
{
    const stg_action *a = &s->behind;

    stg_flow_unread(s->hub->flow, a->partition, a->read.assignment,
                    stg_deadlines_now());
}

/* Of what a laggard lacks there is always something, or a gap up to the end: who
 * found nothing did not reach the broker in time, or one that has just begun and
 * does not know its end yet. What has expired was told. */
static void take_laggards(void *ctx, const stg_kafka_run *runs, size_t count)
{
    stg_source *s = ctx;

    s->is_behind_busy = false;
    if (count == 0 || runs->next <= s->behind.read.from)
        end_laggards(s);
    else
        stg_source_take_run(s, runs, true);
    read_next(s);
    stg_shell_note(s->hub);
}

static void read_laggards(stg_source *s)
{
    const stg_action *a = &s->behind;
    const stg_source_place *p = stg_source_find_number(s, a->partition);
    stg_kafka_place place;

    s->has_laggards = false;
    s->was_laggards = true;
    if (p == NULL) {
        end_laggards(s);
        return;
    }
    place = stg_source_place_of(p);
    s->is_behind_busy = true;
    stg_kafka_read_behind(s->kafka, &place, a->read.from, a->read.bytes_max,
                          stg_source_tag(a->read.assignment, a->partition),
                          take_laggards, s);
}

/* -- for the store --------------------------------------------------------- */

static void answer(reading *r, const stg_record *records, size_t count,
                   uint64_t next)
{
    r->done(r->done_ctx, records, count, next);
    free(r);
}

/* The place that has the number now, if it is read. */
static const stg_source_place *find_given(const stg_source *s, uint32_t number)
{
    const stg_source_place *p = stg_source_find_number(s, number);

    return p != NULL && p->state == STG_SOURCE_GIVEN ? p : NULL;
}

/* Whether the topic was made again since: its partition is read under a later
 * number, and what was of this one is no more. */
static bool is_over(const stg_source *s, uint32_t number)
{
    stg_store_partition of, now;

    if (!stg_store_partition_of(s->hub->store, number, &of))
        return false;
    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        const stg_source_place *p = STG_HOLDER(at, stg_source_place, link);

        if (p->state == STG_SOURCE_GIVEN &&
            stg_source_is_same(p, of.topic, of.partition))
            return p->number > number &&
                   stg_store_partition_of(s->hub->store, p->number, &now) &&
                   now.epoch != of.epoch;
    }
    return false;
}

/* What was read of a place that has gone may be of another topic of its name. */
static void take_reading(void *ctx, const stg_kafka_run *runs, size_t count)
{
    stg_source *s = ctx;
    reading *r = s->reading;
    const stg_source_place *p = find_given(s, r->number);

    s->reading = NULL;
    s->is_behind_busy = false;
    if (count == 0 || p == NULL || p->assignment != r->assignment)
        answer(r, NULL, 0, r->from);
    else
        answer(r, runs->records, runs->count, runs->next);
    read_next(s);
}

static void read_for_store(stg_source *s, reading *r)
{
    const stg_source_place *p = find_given(s, r->number);
    stg_kafka_place place;

    s->was_laggards = false;
    if (p == NULL || s->is_away) {
        answer(r, NULL, 0,
               p == NULL && is_over(s, r->number) ? UINT64_MAX : r->from);
        return;
    }
    s->reading = r;
    r->assignment = p->assignment;
    place = stg_source_place_of(p);
    s->is_behind_busy = true;
    stg_kafka_read_again(s->kafka, &place, r->from, r->bytes_max, r->count_max,
                         take_reading, s);
}

static reading *shift(stg_source *s)
{
    return STG_HOLDER(stg_list_shift(&s->readings), reading, link);
}

/* -- in turn --------------------------------------------------------------- */

static void read_next(stg_source *s)
{
    while (s->kafka != NULL && !s->is_behind_busy) {
        bool has_readings = !stg_list_is_empty(&s->readings);

        if (s->has_laggards && !(has_readings && s->was_laggards))
            read_laggards(s);
        else if (has_readings)
            read_for_store(s, shift(s));
        else
            return;
    }
}

void stg_source_read_laggards(stg_source *s, const stg_action *a)
{
    s->behind = *a;
    s->has_laggards = true;
    read_next(s);
}

void stg_source_read_again(void *hub, uint32_t number, uint64_t from,
                           size_t bytes_max, size_t count_max,
                           stg_read_fn *done, void *done_ctx)
{
    stg_source *s = &((stg_hub *)hub)->source;
    reading *r = s->kafka == NULL ? NULL : malloc(sizeof *r);

    if (r == NULL) {
        done(done_ctx, NULL, 0, from);
        return;
    }
    *r = (reading){.number = number,
                   .from = from,
                   .bytes_max = bytes_max,
                   .count_max = count_max,
                   .done = done,
                   .done_ctx = done_ctx};
    stg_list_push(&s->readings, &r->link);
    read_next(s);
}

void stg_source_end_readings(stg_source *s)
{
    reading *r;

    if (s->readings.ends.next == NULL)
        return; // it was never opened
    if (s->reading != NULL)
        answer(s->reading, NULL, 0, s->reading->from);
    s->reading = NULL;
    while ((r = shift(s)) != NULL)
        answer(r, NULL, 0, r->from);
}
