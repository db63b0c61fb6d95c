/* The table of assignments: by topic and partition, and of one partition by
 * age, for the one that ends and the one that replaces it may be there
 * together. There are hundreds at most, so that it is a list and is searched
 * from its begin.
 *
 * What is dropped stays in memory while someone may look at it: until the next
 * event of the group, or until the store has given the answer that it owes. */
#include <stdlib.h>
#include <string.h>

#include "kafka/assignment.h"

stg_kafka_assignment *stg_kafka_assignment_next(const stg_kafka_source *s,
                                                const stg_kafka_assignment *p)
{
    stg_link *next = p == NULL ? stg_list_first(&s->assignments)
                               : stg_list_next(&s->assignments, &p->link);

    return next == NULL ? NULL : STG_HOLDER(next, stg_kafka_assignment, link);
}

bool stg_kafka_assignment_is_of(const stg_kafka_assignment *p,
                                const char *topic, uint32_t partition)
{
    return p->tp.partition == partition && strcmp(p->tp.topic, topic) == 0;
}

bool stg_kafka_assignment_is_twin(const stg_kafka_assignment *p,
                                  const stg_kafka_assignment *other)
{
    return p != other &&
           stg_kafka_assignment_is_of(p, other->tp.topic, other->tp.partition);
}

stg_kafka_assignment *stg_kafka_assignment_find(const stg_kafka_source *s,
                                                const stg_topic_partition *tp)
{
    stg_kafka_assignment *p = NULL;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->tp.assignment == tp->assignment &&
            stg_kafka_assignment_is_of(p, tp->topic, tp->partition))
            break;
    return p;
}

bool stg_kafka_assignment_is_flows(const stg_kafka_assignment *p)
{
    return p->state == STG_ASSIGNMENT_READING ||
           p->state == STG_ASSIGNMENT_REVOKING ||
           p->state == STG_ASSIGNMENT_REVOKED;
}

stg_kafka_assignment *
stg_kafka_assignment_find_number(const stg_kafka_source *s, uint32_t number)
{
    stg_kafka_assignment *p = NULL;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->number == number && stg_kafka_assignment_is_flows(p))
            break;
    return p;
}

static void clear_retry(stg_kafka_assignment *p)
{
    stg_deadline_clear(p->source->base.host->deadlines, &p->retry);
}

void stg_kafka_assignment_free(stg_kafka_assignment *p)
{
    clear_retry(p);
    stg_list_remove(&p->link);
    free(p);
}

void stg_kafka_assignment_drop(stg_kafka_assignment *p)
{
    stg_kafka_source *s = p->source;
    bool is_claiming = p->state == STG_ASSIGNMENT_CLAIMING;

    clear_retry(p);
    p->state = STG_ASSIGNMENT_DROPPED;
    stg_list_remove(&p->link);
    stg_list_push(is_claiming ? &s->orphans : &s->dropped, &p->link);
}

static void free_list(stg_list *list)
{
    stg_link *at;

    while ((at = stg_list_shift(list)) != NULL)
        free(STG_HOLDER(at, stg_kafka_assignment, link));
}

void stg_kafka_assignments_free_dropped(stg_kafka_source *s)
{
    free_list(&s->dropped);
}

void stg_kafka_assignments_free(stg_kafka_source *s)
{
    stg_kafka_assignment *p = NULL;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        clear_retry(p);
    free_list(&s->assignments);
    free_list(&s->orphans);
    free_list(&s->dropped);
}

static void put_in_order(stg_kafka_source *s, stg_kafka_assignment *p)
{
    stg_link *at = stg_list_last(&s->assignments);

    for (; at != NULL; at = stg_list_prev(&s->assignments, at)) {
        const stg_kafka_assignment *q =
            STG_HOLDER(at, stg_kafka_assignment, link);
        int order = strcmp(q->tp.topic, p->tp.topic);

        if (order < 0 || (order == 0 && q->tp.partition <= p->tp.partition))
            break;
    }
    stg_list_insert(at != NULL ? at : &s->assignments.ends, &p->link);
}

stg_kafka_assignment *stg_kafka_assignment_add(stg_kafka_source *s,
                                               const stg_kafka_assigned *a)
{
    stg_kafka_assignment *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    *p = (stg_kafka_assignment){.source = s,
                                .tp = a->tp,
                                .begin = a->begin,
                                .end = a->end,
                                .committed = a->has_committed ? a->committed
                                                              : STG_NO_POSITION,
                                .number = STG_NO_PARTITION,
                                .known = STG_NO_PARTITION,
                                .previous = STG_NO_PARTITION};
    put_in_order(s, p);
    return p;
}
