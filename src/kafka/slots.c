/* The partitions that are ours: a sorted array, for there are hundreds at
 * most, and messages come in runs. */
#include <stdlib.h>
#include <string.h>

#include "kafka/member.h"

void stg_kafka_slots_free(stg_kafka_slots *s)
{
    free(s->at);
    *s = (stg_kafka_slots){.at = NULL};
}

static int compare(const stg_kafka_slot *slot, const char *topic,
                   uint32_t partition)
{
    int order = strcmp(slot->tp.topic, topic);

    if (order != 0)
        return order;
    return slot->tp.partition < partition   ? -1
           : slot->tp.partition > partition ? 1
                                            : 0;
}

/* The first that is not below. */
static size_t seek(const stg_kafka_slots *s, const char *topic,
                   uint32_t partition)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(&s->at[middle], topic, partition) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

stg_kafka_slot *stg_kafka_slots_find(const stg_kafka_slots *s,
                                     const char *topic, uint32_t partition)
{
    size_t i = seek(s, topic, partition);

    return i < s->count && compare(&s->at[i], topic, partition) == 0 ? &s->at[i]
                                                                     : NULL;
}

stg_kafka_slot *stg_kafka_slots_at(const stg_kafka_slots *s,
                                   const stg_topic_partition *p)
{
    stg_kafka_slot *slot = stg_kafka_slots_find(s, p->topic, p->partition);

    return slot != NULL && slot->tp.assignment == p->assignment ? slot : NULL;
}

stg_kafka_slot *stg_kafka_slots_add(stg_kafka_slots *s, const char *topic,
                                    uint32_t partition, uint64_t assignment)
{
    size_t i = seek(s, topic, partition);

    if (i == s->count || compare(&s->at[i], topic, partition) != 0) {
        if (s->count == s->room) {
            s->room = s->room == 0 ? 16 : 2 * s->room;
            s->at = realloc(s->at, s->room * sizeof *s->at);
            if (s->at == NULL)
                abort();
        }
        memmove(s->at + i + 1, s->at + i, (s->count - i) * sizeof *s->at);
        s->count++;
    }
    s->at[i] = (stg_kafka_slot){.tp = {topic, partition, assignment}};
    return &s->at[i];
}

void stg_kafka_slots_remove(stg_kafka_slots *s, stg_kafka_slot *slot)
{
    size_t i = (size_t)(slot - s->at);

    s->count--;
    memmove(s->at + i, s->at + i + 1, (s->count - i) * sizeof *s->at);
}
