/* Where the group begins a topic that neither it nor the store knows: resolved
 * once for all of its partitions, and committed before any of them is read.
 * From then on the group knows the topic, and partitions that appear later
 * begin at their first record. */
#include <stdlib.h>
#include <string.h>

#include "kafka/member.h"

enum { WAIT_MS = 2000 };

/* A topic that is to begin. */
typedef struct starting {
    stg_kafka_member *m;
    const stg_kafka_known *known;
    uint32_t count;
    stg_topic_partition *places; /* all of its partitions */
    stg_kafka_ends *ends;
} starting;

static bool is_stored(const stg_kafka_options *o, const char *topic)
{
    for (size_t i = 0; o->known != NULL && o->known[i] != NULL; i++)
        if (strcmp(o->known[i], topic) == 0)
            return true;
    return false;
}

bool stg_kafka_start_is_known(const stg_kafka_member *m, const char *topic)
{
    const stg_kafka_known *k = stg_kafka_known_find(m, topic);

    return m->o->start == STG_KAFKA_START_NONE ||
           (k != NULL ? k->has_begun : m->has_listed);
}

/* -- what there is --------------------------------------------------------- */

/* 0: it is not known now. */
static uint32_t count_partitions(rd_kafka_t *rk, const char *topic)
{
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    const struct rd_kafka_metadata *md;
    uint32_t count = 0;

    if (rkt == NULL)
        return 0;
    if (rd_kafka_metadata(rk, 0, rkt, &md, WAIT_MS) ==
        RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (md->topic_cnt == 1 && md->topics[0].err == 0)
            count = (uint32_t)md->topics[0].partition_cnt;
        rd_kafka_metadata_destroy(md);
    }
    rd_kafka_topic_destroy(rkt);
    return count;
}

static bool has_committed(const starting *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->ends[i].committed >= 0)
            return true;
    return false;
}

static bool has_ends(const starting *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->ends[i].begin < 0 || s->ends[i].end < 0)
            return false;
    return true;
}

/* One of the members does it, so that they do not do it twice. */
static bool is_ours(const starting *s)
{
    return stg_kafka_slots_find(&s->m->slots, s->places[0].topic, 0) != NULL;
}

/* -- where it begins ------------------------------------------------------- */

static rd_kafka_topic_partition_list_t *list_of(const starting *s)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)s->count);

    for (uint32_t i = 0; i < s->count; i++)
        rd_kafka_topic_partition_list_add(list, s->places[i].topic, (int32_t)i);
    return list;
}

/* The first record that is not older. */
static bool set_times(const starting *s, rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = (int64_t)s->m->o->start_ms;
    if (rd_kafka_offsets_for_times(s->m->rk, list, WAIT_MS) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    for (int i = 0; i < list->cnt; i++) {
        if (list->elems[i].err != 0)
            return false;
        if (list->elems[i].offset < 0) // there is none
            list->elems[i].offset = s->ends[i].end;
    }
    return true;
}

static bool set_offsets(const starting *s,
                        rd_kafka_topic_partition_list_t *list)
{
    bool is_late = s->known->is_late;

    if (s->m->o->start == STG_KAFKA_START_TIME && !is_late)
        return set_times(s, list);
    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset =
            s->m->o->start == STG_KAFKA_START_LATEST && !is_late
                ? s->ends[i].end
                : s->ends[i].begin;
    return true;
}

static bool commit(const starting *s,
                   const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(s->m->rk);
    bool is_done = rd_kafka_commit_queue(s->m->rk, list, queue, NULL, NULL) ==
                   RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_event_t *ev = is_done ? rd_kafka_queue_poll(queue, WAIT_MS) : NULL;
    const rd_kafka_topic_partition_list_t *done =
        ev == NULL ? NULL : rd_kafka_event_topic_partition_list(ev);

    is_done = done != NULL && rd_kafka_event_error(ev) == 0;
    for (int i = 0; is_done && i < done->cnt; i++)
        is_done = done->elems[i].err == 0;
    if (ev != NULL)
        rd_kafka_event_destroy(ev);
    rd_kafka_queue_destroy(queue);
    return is_done;
}

/* older: the messages that the group will not read, as it begins behind them. */
static void tell(const starting *s, const rd_kafka_topic_partition_list_t *list)
{
    uint64_t older = 0;
    const char *topic = s->places[0].topic;

    for (int i = 0; i < list->cnt; i++)
        older += (uint64_t)(list->elems[i].offset - s->ends[i].begin);
    stg_kafka_events_report(
        s->m->to_loop,
        &(stg_kafka_report){.what = STG_KAFKA_STARTED,
                            .tp = {.topic = topic},
                            .older = older,
                            .level = 6},
        older == 0
            ? "%s: the group begins with its first record"
            : "%s: the group begins behind older messages, which are not "
              "sent; to send them, too, stop the hub, and start it with "
              "`kafka.start: earliest`, a new group and a new store",
        topic);
}

/* -- a topic --------------------------------------------------------------- */

static bool begin(const starting *s)
{
    rd_kafka_topic_partition_list_t *list = list_of(s);
    bool is_done = set_offsets(s, list) && commit(s, list);

    if (is_done)
        tell(s, list);
    rd_kafka_topic_partition_list_destroy(list);
    return is_done;
}

/* False: it is asked again. */
static bool start(starting *s)
{
    rd_kafka_resp_err_t err;

    if (!stg_kafka_ends_ask(s->m->rk, s->places, s->count, s->ends, true, &err))
        return false;
    return has_committed(s) || (is_ours(s) && has_ends(s) && begin(s));
}

/* A topic that the store knows has begun before, whatever the group has forgotten. */
static void start_topic(stg_kafka_member *m, stg_kafka_known *k)
{
    const char *name = k->name;
    starting s = {.m = m, .known = k};

    k->has_begun = is_stored(m->o, name);
    if (k->has_begun)
        return;
    s.count = count_partitions(m->rk, name);
    if (s.count == 0)
        return;
    s.places = stg_kafka_memory(s.count, sizeof *s.places);
    s.ends = stg_kafka_memory(s.count, sizeof *s.ends);
    for (uint32_t i = 0; i < s.count; i++)
        s.places[i] = (stg_topic_partition){.topic = name, .partition = i};
    k->has_begun = start(&s);
    free(s.places);
    free(s.ends);
}

void stg_kafka_member_start(stg_kafka_member *m,
                            const stg_topic_partition *places, size_t count)
{
    stg_kafka_known *k;

    if (m->o->start == STG_KAFKA_START_NONE || !stg_kafka_known_ask(m))
        return;
    for (size_t i = 0; i < count; i++) {
        k = stg_kafka_known_find(m, places[i].topic);
        if (k != NULL && !k->has_begun)
            start_topic(m, k);
    }
}
