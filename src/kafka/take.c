/* From librdkafka's queue into batches for the loop. Not to read that queue is
 * what holds the brokers back.
 *
 * A batch is filled only while the loop waits for one (bytes_max > 0). `next`
 * of a slot moves when a message is packed, or passed over as a gap or as one
 * without a value, never when it is only taken from the queue: a new assignment
 * begins at `next`, drops what was taken, and loses nothing.
 *
 * The trap: while a batch is filled its entries name slots by their index. No
 * slot may be added or removed until hand_over() has made runs of them; that is
 * why an error here changes the state of its slot and leaves the rest to the
 * next turn. */
#include <stdlib.h>

#include "kafka/member.h"

enum { MARK_S = 1 }; /* between two records that are noted of a partition */

/* -- messages at hand ------------------------------------------------------ */

void stg_kafka_pending_drop(stg_kafka_pending *h)
{
    while (h->first < h->count)
        rd_kafka_message_destroy(h->at[h->first++]);
}

rd_kafka_message_t *stg_kafka_pending_next(stg_kafka_pending *h,
                                           rd_kafka_queue_t *queue, size_t most)
{
    ssize_t taken;

    if (h->first == h->count) {
        if (most > STG_KAFKA_PENDING_MAX)
            most = STG_KAFKA_PENDING_MAX;
        taken = rd_kafka_consume_batch_queue(queue, 0, h->at, most);
        h->first = 0;
        h->count = taken > 0 ? (size_t)taken : 0;
        for (size_t i = 0; i < h->count; i++)
            h->bytes += h->at[i]->len;
    }
    return h->first < h->count ? h->at[h->first] : NULL;
}

bool stg_kafka_pending_is_half(stg_kafka_pending *h, size_t queue_max)
{
    if (h->bytes < queue_max / 2)
        return false;
    h->bytes = 0;
    return true;
}

/* A thread of librdkafka that found the queue full sleeps for a second, unless it
 * has something to send: without this a queue a second is the most that is read.
 * (From 2.2 it sleeps for fetch.queue.backoff.ms, which older ones do not know.)
 * Nobody waits for the answer. */
void stg_kafka_fetch_on(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = RD_KAFKA_OFFSET_END;
    (void)rd_kafka_offsets_for_times(rk, list, 0);
}

/* -- what they say --------------------------------------------------------- */

/* It is not read until the brokers have said where it begins and ends: see
 * evaluate_out_of_range() in ends.c. */
static void leave_range(stg_kafka_member *m, stg_kafka_slot *slot)
{
    slot->state = STG_KAFKA_SLOT_OUT_OF_RANGE;
    m->ask_at = 0;
}

/* An error of one partition; it goes on by itself but for the first. */
static void take_error(stg_kafka_member *m, stg_kafka_slot *slot,
                       const rd_kafka_message_t *message)
{
    uint64_t end = (uint64_t)message->offset;
    stg_kafka_report report;

    switch (message->err) {
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
        leave_range(m, slot);
        break;
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
        if (message->offset >= 0 && end > slot->next)
            slot->next = end; // behind the markers of transactions
        break;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        m->watch_at = 0; // and that says it
        stg_kafka_member_suspect(m, slot, "a broker does not know it");
        break;
    default:
        report = stg_kafka_trouble_of(message->err, slot->tp.topic);
        stg_kafka_events_report(m->to_loop, &report, "%s/%u: %s",
                                slot->tp.topic, (unsigned)slot->tp.partition,
                                rd_kafka_message_errstr(message));
        break;
    }
}

static void tell_large(stg_kafka_member *m, const stg_kafka_slot *slot,
                       const stg_record *record)
{
    m->counts.too_large++;
    stg_kafka_events_report(
        m->to_loop,
        &(stg_kafka_report){.what = STG_KAFKA_TOO_LARGE,
                            .tp = slot->tp,
                            .position = record->position,
                            .size = record->true_size,
                            .level = 4},
        "%s/%u: the message at %llu has %zu bytes, and at most %zu are sent",
        slot->tp.topic, (unsigned)slot->tp.partition,
        (unsigned long long)record->position, record->true_size,
        m->o->message_max);
}

/* Its hash goes over all of its bytes: so this is rare. */
static void mark(stg_kafka_member *m, stg_kafka_slot *slot,
                 const rd_kafka_message_t *message)
{
    slot->mark = stg_kafka_mark(message);
    if (slot->first.hash == 0)
        slot->first = slot->mark;
    slot->mark_at = stg_ns_add(m->taken_at, MARK_S * STG_S);
}

/* Reported once a second for each partition: a topic may have such headers in
 * every record. All of them are counted. */
static void tell_lost(stg_kafka_member *m, stg_kafka_slot *slot,
                      const stg_record *record, uint32_t lost)
{
    stg_ns now = stg_kafka_now();

    m->counts.headers_lost += lost;
    if (now < slot->told_at)
        return;
    slot->told_at = now + STG_S;
    stg_kafka_events_report(
        m->to_loop,
        &(stg_kafka_report){.what = STG_KAFKA_HEADERS_LOST,
                            .tp = slot->tp,
                            .position = record->position,
                            .count = lost,
                            .level = 4},
        "%u of its headers cannot be sent: no HTTP, or more than 16 KiB in all",
        (unsigned)lost);
}

static void take_message(stg_kafka_member *m, stg_kafka_batch *b,
                         stg_kafka_slot *slot,
                         const rd_kafka_message_t *message)
{
    stg_record record;
    uint32_t lost;

    // A partition that was assigned anew comes again from where it stands.
    if (message->offset < 0 || (uint64_t)message->offset < slot->next)
        return;
    slot->next = (uint64_t)message->offset + 1;
    if (m->taken_at >= slot->mark_at)
        mark(m, slot, message);
    if (!stg_kafka_record(m->o, b, message, &record, &lost)) {
        m->counts.skipped++;
        return;
    }
    stg_kafka_batch_add(b, (size_t)(slot - m->slots.at), &record);
    stg_kafka_identify(m->o, b, (size_t)(slot - m->slots.at), message);
    if (record.true_size > 0)
        tell_large(m, slot, &record);
    if (lost > 0)
        tell_lost(m, slot, &record, lost);
}

/* -- a batch --------------------------------------------------------------- */

/* Takes the end that a broker has told last, of a partition that is read. */
static void look_at_end(stg_kafka_member *m, stg_kafka_slot *slot)
{
    int64_t low, high;

    if (rd_kafka_get_watermark_offsets(m->rk, slot->tp.topic,
                                       (int32_t)slot->tp.partition, &low,
                                       &high) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        high > 0 && (uint64_t)high > slot->end)
        slot->end = (uint64_t)high;
    if (slot->end < slot->next)
        slot->end = slot->next;
}

/* The partitions of which something was read: those with a `next` of before. */
static size_t find_runs(stg_kafka_member *m, const uint64_t *before,
                        stg_kafka_batch *b, stg_kafka_run *runs)
{
    size_t *number = stg_kafka_memory(m->slots.count + 1, sizeof *number);
    size_t count = 0;

    for (size_t i = 0; i < m->slots.count; i++) {
        stg_kafka_slot *slot = &m->slots.at[i];

        number[i] = count;
        if (slot->next == before[i])
            continue;
        look_at_end(m, slot);
        runs[count++] = (stg_kafka_run){.tp = slot->tp,
                                        .tag = slot->tag,
                                        .next = slot->next,
                                        .end = slot->end,
                                        .mark = slot->mark};
        slot->mark.hash = 0;
    }
    for (size_t i = 0; i < b->count; i++)
        b->entries[i].slot = number[b->entries[i].slot];
    for (size_t i = 0; i < b->id_count; i++)
        b->ids[i].run = number[b->ids[i].run];
    free(number);
    return count;
}

/* A batch without a record is sent, too, where a gap moved `next`: flow's lanes
 * pass over it then. An empty one leaves the request open. */
static void hand_over(stg_kafka_member *m, stg_kafka_batch *b,
                      const uint64_t *before)
{
    stg_kafka_run *runs = stg_kafka_memory(m->slots.count + 1, sizeof *runs);
    size_t count = find_runs(m, before, b, runs);
    stg_kafka_event *note;

    if (count > 0) {
        note = stg_kafka_event_new(STG_KAFKA_EVENT_READ);
        stg_kafka_batch_close(b, runs, count);
        note->batch = b;
        m->bytes_max = 0;
        stg_kafka_events_send(m->to_loop, note);
    } else {
        stg_kafka_batch_free(b);
    }
    free(runs);
}

static stg_kafka_slot *slot_of(stg_kafka_member *m,
                               const rd_kafka_message_t *message)
{
    if (message->rkt == NULL)
        return NULL;
    return stg_kafka_slots_find(&m->slots, rd_kafka_topic_name(message->rkt),
                                (uint32_t)message->partition);
}

/* The size that is compared is the value's: keys and headers may take a batch
 * over bytes_max. The first message always fits. One of a slot that is not read
 * any more is dropped. */
static void fill(stg_kafka_member *m, stg_kafka_batch *b)
{
    rd_kafka_message_t *message;
    stg_kafka_slot *slot;

    while (b->size < m->bytes_max) {
        message = stg_kafka_pending_next(&m->pending, m->records,
                                         STG_KAFKA_PENDING_MAX);
        if (message == NULL)
            break;
        // One that does not fit waits for the next batch.
        if (b->count > 0 && message->err == 0 &&
            message->len <= m->o->message_max &&
            message->len > m->bytes_max - b->size)
            break;
        slot = slot_of(m, message);
        if (slot != NULL && slot->state == STG_KAFKA_SLOT_READING &&
            slot->is_assigned) {
            if (message->err != 0)
                take_error(m, slot, message);
            else
                take_message(m, b, slot, message);
        }
        m->pending.first++;
        rd_kafka_message_destroy(message);
    }
}

static void fetch_on(stg_kafka_member *m)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)m->slots.count);

    for (size_t i = 0; i < m->slots.count; i++)
        if (m->slots.at[i].is_assigned)
            rd_kafka_topic_partition_list_add(
                list, m->slots.at[i].tp.topic,
                (int32_t)m->slots.at[i].tp.partition);
    stg_kafka_fetch_on(m->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
}

/* Nothing is taken while an assignment is due: the queue still has what was
 * read for the old one. */
void stg_kafka_member_take(stg_kafka_member *m)
{
    stg_kafka_batch *b;
    uint64_t *before;

    if (m->bytes_max == 0 || m->records == NULL || m->must_assign)
        return;
    m->taken_at = stg_kafka_now();
    before = stg_kafka_memory(m->slots.count + 1, sizeof *before);
    for (size_t i = 0; i < m->slots.count; i++)
        before[i] = m->slots.at[i].next;
    b = stg_kafka_batch_new();
    fill(m, b);
    hand_over(m, b, before);
    free(before);
    if (stg_kafka_pending_is_half(&m->pending, m->o->queue_max))
        fetch_on(m);
}
