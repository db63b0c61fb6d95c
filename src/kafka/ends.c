/* Where partitions begin and end, asked of the brokers.
 *
 * A partition that the group has assigned is told to the loop only when its
 * first offset and its end are known and the group was asked for its commit.
 * One that was read from where the topic has nothing is asked again, and then
 * its position decides: below the begin it has expired, above the end the topic
 * was made again or cut off, and between the two it may be another topic.
 *
 * The trap: a broker that has just become the leader may tell an end that is
 * too low. An end below what was committed is believed only after SHORT_TRIES.
 * All of it blocks the member's thread, so the times are bounded. */
#include <stdlib.h>

#include "kafka/member.h"

enum {
    LIST_MS = 2000,  /* for all of them */
    ALONE_MS = 300,  /* for one, when not all can be asked at once */
    TURN_MS = 1500,  /* for those in one turn */
    AGAIN_MS = 500,  /* until they are asked again */
    SHORT_TRIES = 3, /* an end that is below what was committed may be that of
                        a broker that has just become the leader */
};

static rd_kafka_topic_partition_list_t *
list_of(const stg_topic_partition *places, size_t count, int64_t offset)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)count);

    for (size_t i = 0; i < count; i++)
        rd_kafka_topic_partition_list_add(list, places[i].topic,
                                          (int32_t)places[i].partition)
            ->offset = offset;
    return list;
}

static int64_t found(const rd_kafka_topic_partition_list_t *list,
                     const stg_topic_partition *p)
{
    const rd_kafka_topic_partition_t *at = rd_kafka_topic_partition_list_find(
        list, p->topic, (int32_t)p->partition);

    return at == NULL || at->err != 0 ? -1 : at->offset;
}

/* which: RD_KAFKA_OFFSET_BEGINNING or _END, which are times that brokers know.
 */
static rd_kafka_resp_err_t ask_times(rd_kafka_t *rk,
                                     const stg_topic_partition *places,
                                     size_t count, int64_t which, int wait_ms,
                                     stg_kafka_ends *ends)
{
    rd_kafka_topic_partition_list_t *list = list_of(places, count, which);
    rd_kafka_resp_err_t err = rd_kafka_offsets_for_times(rk, list, wait_ms);

    for (size_t i = 0; i < count; i++) {
        int64_t offset = err == 0 ? found(list, &places[i]) : -1;

        if (which == RD_KAFKA_OFFSET_BEGINNING)
            ends[i].begin = offset;
        else
            ends[i].end = offset;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

static rd_kafka_resp_err_t ask_committed(rd_kafka_t *rk,
                                         const stg_topic_partition *places,
                                         size_t count, stg_kafka_ends *ends)
{
    rd_kafka_topic_partition_list_t *list =
        list_of(places, count, RD_KAFKA_OFFSET_INVALID);
    rd_kafka_resp_err_t err = rd_kafka_committed(rk, list, LIST_MS);

    for (size_t i = 0; i < count; i++)
        ends[i].committed = err == 0 ? found(list, &places[i]) : -1;
    rd_kafka_topic_partition_list_destroy(list);
    return err;
}

static rd_kafka_resp_err_t ask_both(rd_kafka_t *rk,
                                    const stg_topic_partition *places,
                                    size_t count, int wait_ms,
                                    stg_kafka_ends *ends)
{
    rd_kafka_resp_err_t err =
        ask_times(rk, places, count, RD_KAFKA_OFFSET_BEGINNING, wait_ms, ends);

    return err != 0 ? err
                    : ask_times(rk, places, count, RD_KAFKA_OFFSET_END, wait_ms,
                                ends);
}

/* One whose broker is away must not hold up the others. */
static rd_kafka_resp_err_t ask_alone(rd_kafka_t *rk,
                                     const stg_topic_partition *places,
                                     size_t count, stg_kafka_ends *ends)
{
    stg_ns until = stg_kafka_now() + TURN_MS * STG_MS;
    rd_kafka_resp_err_t err, first = RD_KAFKA_RESP_ERR_NO_ERROR;
    size_t known = 0;

    for (size_t i = 0; i < count && stg_kafka_now() < until; i++) {
        err = ask_both(rk, &places[i], 1, ALONE_MS, &ends[i]);
        known += err == 0;
        if (first == 0)
            first = err;
    }
    return known > 0 ? RD_KAFKA_RESP_ERR_NO_ERROR : first;
}

bool stg_kafka_ends_ask(rd_kafka_t *rk, const stg_topic_partition *places,
                        size_t count, stg_kafka_ends *ends, bool with_committed,
                        rd_kafka_resp_err_t *err)
{
    for (size_t i = 0; i < count; i++)
        ends[i] = (stg_kafka_ends){-1, -1, -1};
    if (with_committed && (*err = ask_committed(rk, places, count, ends)) != 0)
        return false;
    *err = ask_both(rk, places, count, LIST_MS, ends);
    if (*err != 0 && count > 1)
        *err = ask_alone(rk, places, count, ends);
    return *err == 0;
}

/* -- for the member -------------------------------------------------------- */

static void tell(stg_kafka_member *m, const stg_kafka_slot *s,
                 stg_kafka_report_kind what, const stg_kafka_ends *e,
                 const char *next)
{
    stg_kafka_events_report(
        m->to_loop,
        &(stg_kafka_report){.what = what,
                            .tp = s->tp,
                            .position = s->next,
                            .begin = (uint64_t)e->begin,
                            .level = 4},
        "%s/%u: position %llu is not there any more: the topic has %lld to "
        "%lld; %s",
        s->tp.topic, (unsigned)s->tp.partition, (unsigned long long)s->next,
        (long long)e->begin, (long long)e->end, next);
}

/* It was read from where there is nothing. */
static void evaluate_out_of_range(stg_kafka_member *m, stg_kafka_slot *s,
                                  const stg_kafka_ends *e)
{
    bool is_below = s->next < (uint64_t)e->begin;

    if (!is_below && s->next <= (uint64_t)e->end) {
        stg_kafka_member_suspect(m, s, "a position was not there, and is now");
    } else if (m->o->stops_expired) {
        tell(m, s, STG_KAFKA_REFUSED, e, "it is not read on (`kafka.expired`)");
        s->state = STG_KAFKA_SLOT_REFUSED;
        stg_kafka_member_change(m);
    } else if (is_below) {
        tell(m, s, STG_KAFKA_EXPIRED, e, "read on from its begin");
        s->next = (uint64_t)e->begin;
        s->state = STG_KAFKA_SLOT_READING;
        stg_kafka_member_change(m);
    } else {
        tell(m, s, STG_KAFKA_RENEWED, e,
             "it was made again or cut off, and is read from its begin");
        stg_kafka_member_renew(m, s);
    }
}

/* Hands the slot to the loop, which claims it and says where to begin. The end
 * is never told below the begin. */
static stg_kafka_assigned give(stg_kafka_slot *s, const stg_kafka_ends *e)
{
    uint64_t end = (uint64_t)(e->end < e->begin ? e->begin : e->end);

    s->state = STG_KAFKA_SLOT_GIVEN;
    s->share = STG_KAFKA_SLOT_SHARED;
    s->end = end;
    // Commits do not go back; but what is above the end is of another topic.
    if (e->committed > 0 && e->committed <= e->end)
        s->to_commit = s->sent = s->committed = (uint64_t)e->committed;
    return (stg_kafka_assigned){
        .tp = s->tp,
        .begin = (uint64_t)e->begin,
        .end = end,
        .has_committed = e->committed >= 0,
        .committed = (uint64_t)(e->committed < 0 ? 0 : e->committed),
    };
}

/* What is not known of a partition is asked again. A committed offset behind the end
 * is asked again a few times before it is believed: the end may be that of a broker
 * that lags. */
static void evaluate(stg_kafka_member *m, const stg_topic_partition *places,
                     size_t count, const stg_kafka_ends *ends)
{
    stg_kafka_event *note = stg_kafka_event_new(STG_KAFKA_EVENT_ASSIGNED);

    note->assigned = stg_kafka_memory(count, sizeof *note->assigned);
    for (size_t i = 0; i < count; i++) {
        stg_kafka_slot *s = stg_kafka_slots_at(&m->slots, &places[i]);
        const stg_kafka_ends *e = &ends[i];

        if (s == NULL || e->begin < 0 || e->end < 0 ||
            !stg_kafka_start_is_known(m, s->tp.topic))
            continue;
        if (e->committed > e->end && s->tries++ < SHORT_TRIES)
            continue;
        if (s->state == STG_KAFKA_SLOT_OUT_OF_RANGE)
            evaluate_out_of_range(m, s, e);
        else if (s->state == STG_KAFKA_SLOT_NEW)
            note->assigned[note->count++] = give(s, e);
    }
    if (note->count > 0)
        stg_kafka_events_send(m->to_loop, note);
    else
        stg_kafka_event_free(note);
}

/* Both wait for an answer of the brokers, and are not read until it has
 * come. */
static bool is_asked(const stg_kafka_slot *s)
{
    return s->state == STG_KAFKA_SLOT_NEW ||
           s->state == STG_KAFKA_SLOT_OUT_OF_RANGE;
}

static size_t count_asked(const stg_kafka_member *m)
{
    size_t count = 0;

    for (size_t i = 0; i < m->slots.count; i++)
        count += is_asked(&m->slots.at[i]);
    return count;
}

/* For all slots at once, with one request a broker. */
static void ask(stg_kafka_member *m, size_t count)
{
    stg_topic_partition *places = stg_kafka_memory(count, sizeof *places);
    stg_kafka_ends *ends = stg_kafka_memory(count, sizeof *ends);
    rd_kafka_resp_err_t err;
    stg_kafka_report report;
    size_t at = 0;

    for (size_t i = 0; i < m->slots.count; i++)
        if (is_asked(&m->slots.at[i]))
            places[at++] = m->slots.at[i].tp;
    stg_kafka_member_start(m, places, count);
    if (stg_kafka_ends_ask(m->rk, places, count, ends, true, &err)) {
        evaluate(m, places, count, ends);
    } else {
        report = stg_kafka_trouble_of(err, NULL);
        stg_kafka_events_report(m->to_loop, &report,
                                "where %zu partitions begin and end cannot be "
                                "asked: %s",
                                count, rd_kafka_err2str(err));
    }
    free(places);
    free(ends);
}

/* Not during a revocation: the group waits for an answer, and this blocks. */
void stg_kafka_member_ask(stg_kafka_member *m, stg_ns now)
{
    size_t count = count_asked(m);

    if (count == 0 || now < m->ask_at || m->rk == NULL ||
        m->revocation != STG_KAFKA_REVOKES_NOTHING)
        return;
    ask(m, count);
    m->ask_at = count_asked(m) > 0 ? stg_kafka_now() + AGAIN_MS * STG_MS : 0;
}
