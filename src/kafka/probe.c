/* Topics that were deleted and made again within a moment: no broker is seen to
 * miss them, and where there are as many records again a consumer of librdkafka
 * goes on at its offset. So brokers are asked now and then which record is the
 * first that is later than the first one that was read. In the same log that is
 * behind it; in a new one it is the first record of all. */
#include "kafka/member.h"

enum { PROBE_MS = 1000 };

static bool is_probed(const stg_kafka_slot *s)
{
    return s->state == STG_KAFKA_SLOT_READING && s->first.at_ms > 0 &&
           !s->is_disordered;
}

static rd_kafka_topic_partition_list_t *list_probed(const stg_kafka_member *m)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)m->slots.count);

    for (size_t i = 0; i < m->slots.count; i++) {
        const stg_kafka_slot *s = &m->slots.at[i];

        if (is_probed(s))
            rd_kafka_topic_partition_list_add(list, s->tp.topic,
                                              (int32_t)s->tp.partition)
                ->offset = (int64_t)s->first.at_ms + 1;
    }
    return list;
}

static void evaluate(stg_kafka_member *m,
                     const rd_kafka_topic_partition_t *found)
{
    stg_kafka_slot *s = stg_kafka_slots_find(&m->slots, found->topic,
                                             (uint32_t)found->partition);

    if (s == NULL || !is_probed(s) || found->err != 0 || found->offset < 0 ||
        (uint64_t)found->offset > s->first.position)
        return;
    // If it is the same log after all, this would be found again and again.
    s->is_disordered = true;
    stg_kafka_member_suspect(
        m, s, "a record at or below the first one that was read is later");
}

void stg_kafka_member_probe(stg_kafka_member *m)
{
    rd_kafka_topic_partition_list_t *list = list_probed(m);

    if (list->cnt > 0 && rd_kafka_offsets_for_times(m->rk, list, PROBE_MS) ==
                             RD_KAFKA_RESP_ERR_NO_ERROR)
        for (int i = 0; i < list->cnt; i++)
            evaluate(m, &list->elems[i]);
    rd_kafka_topic_partition_list_destroy(list);
}
