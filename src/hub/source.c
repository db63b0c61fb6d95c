#include "hub/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "config/from.h"
#include "config/targets.h"
#include "hub/hub_internal.h"
#include "kafka/topic.h"

enum { NUMBER_MASK = (1 << STG_SOURCE_NUMBER_BITS) - 1 };

/* -- options of the consumer ----------------------------------------------- */

static char *join_brokers(const stg_texts *brokers)
{
    size_t size = 1, used = 0;
    char *all;

    for (size_t i = 0; i < brokers->count; i++)
        size += strlen(brokers->at[i]) + 1;
    all = calloc(1, size);
    for (size_t i = 0; all != NULL && i < brokers->count; i++)
        used += (size_t)snprintf(all + used, size - used, "%s%s",
                                 i > 0 ? "," : "", brokers->at[i]);
    return all;
}

/* They have the same shape but for the file, which the settings have read. */
static stg_kafka_property *copy_properties(const stg_kafka_settings *k)
{
    stg_kafka_property *all = calloc(k->option_count + 1, sizeof *all);

    for (size_t i = 0; all != NULL && i < k->option_count; i++)
        all[i] = (stg_kafka_property){k->options[i].name, k->options[i].value};
    return all;
}

static stg_kafka_start start_of(const stg_kafka_settings *k, uint64_t *at_ms)
{
    static const stg_kafka_start starts[] = {
        [STG_START_LATEST] = STG_KAFKA_START_LATEST,
        [STG_START_EARLIEST] = STG_KAFKA_START_EARLIEST,
        [STG_START_TIME] = STG_KAFKA_START_TIME};
    stg_start_kind kind = STG_START_LATEST; // what was checked is one of them

    (void)stg_from_read_start(k->start, &kind, at_ms);
    return starts[kind];
}

static stg_kafka_options options_of(stg_source *s, const stg_settings *o,
                                    const stg_kafka_property *properties,
                                    const char *group)
{
    stg_kafka_options k = stg_kafka_options_default();

    k.brokers = s->brokers;
    k.topics = o->kafka.topics.at;
    k.group = group;
    k.properties = properties;
    k.property_count = o->kafka.option_count;
    if (o->kafka.headers.count > 0)
        k.headers = o->kafka.headers.at;
    k.message_max = stg_intake_message_max(o->memory_max);
    k.null = o->kafka.null_value == STG_NULL_SEND ? STG_KAFKA_NULL_EMPTY
                                                  : STG_KAFKA_NULL_SKIP;
    k.keeps_headers = o->kafka.headers_lost == STG_HEADERS_LOST_DEAD;
    k.keeps_source = o->letters.topic != NULL;
    k.stops_expired = o->kafka.expired == STG_EXPIRED_STOP;
    k.start = start_of(&o->kafka, &k.start_ms);
    k.seed = uv_hrtime();
    k.assigned = stg_source_assigned;
    k.revoked = stg_source_revoked;
    k.lost = stg_source_lost;
    k.compared = stg_source_compared;
    k.told = stg_source_told;
    k.ctx = s;
    return k;
}

/* -- copies of dead letters ------------------------------------------------ */

static stg_status write_letters(void *ctx, const stg_letter *rows, size_t count,
                                stg_letter_report *report, stg_error *err)
{
    return stg_kafka_letters_write(ctx, rows, count, report, err);
}

static void end_letters_soon(void *ctx)
{
    stg_kafka_letters_end_soon(ctx);
}

static stg_status open_letters(stg_source *s, const stg_settings *o,
                               const stg_kafka_property *properties,
                               stg_store_options *store, stg_error *err)
{
    stg_kafka_letters_options l = stg_kafka_letters_options_default();
    stg_status status;

    if (o->letters.topic == NULL)
        return STG_OK;
    l.brokers = s->brokers;
    l.topic = o->letters.topic;
    l.properties = properties;
    l.property_count = o->kafka.option_count;
    status = stg_kafka_letters_open(&s->letters, &l, err);
    if (status == STG_OK)
        store->sink = (stg_letter_sink){.write = write_letters,
                                        .end_soon = end_letters_soon,
                                        .ctx = s->letters};
    return status;
}

/* -- open, close ----------------------------------------------------------- */

stg_status stg_source_check(stg_source *s, stg_hub *hub, const stg_settings *o,
                            stg_store_options *store, stg_error *err)
{
    char group[STG_SHARD_GROUP_MAX];
    stg_kafka_property *properties;
    stg_kafka_options k;
    stg_status status;

    s->hub = hub;
    stg_list_init(&s->places);
    stg_list_init(&s->asking);
    stg_list_init(&s->gone);
    stg_list_init(&s->readings);
    s->keeps_rows = !stg_from_is_postgres(o->store.path);
    if (o->source != STG_SOURCE_KAFKA)
        return STG_OK;
    store->read = stg_source_read_again;
    s->brokers = join_brokers(&o->kafka.brokers);
    properties = copy_properties(&o->kafka);
    if (s->brokers == NULL || properties == NULL) {
        free(properties);
        return stg_hub_refuse(err, STG_IO, "there is no memory for Kafka");
    }
    k = options_of(s, o, properties, stg_shard_group(o, group));
    status = stg_kafka_check(&k, err);
    if (status == STG_OK)
        status = open_letters(s, o, properties, store, err);
    free(properties);
    return status;
}

typedef struct giving {
    stg_hub *hub;
    stg_status status;
    stg_error *err;
} giving;

static void give_rows(giving *g, uint32_t number, uint64_t generation)
{
    stg_assignment assignment = {.partition = number,
                                 .generation = generation,
                                 .is_merged = true,
                                 .is_rows_only = true};

    if (g->status == STG_OK)
        g->status = stg_flow_assign(g->hub->flow, &assignment,
                                    stg_deadlines_now(), g->err);
}

static void give_old(void *ctx, const stg_store_partition *p)
{
    if (p->number != 0)
        give_rows(ctx, p->number, p->generation);
}

stg_status stg_source_give(stg_source *s, stg_error *err)
{
    giving g = {.hub = s->hub, .err = err};
    stg_assignment queue = {.begin = 0};

    if (!s->keeps_rows)
        return STG_OK; // of a database only what is claimed
    if (s->hub->settings->source == STG_SOURCE_KAFKA) {
        give_rows(&g, 0, 0);
    } else {
        queue.begin = stg_store_first(s->hub->store);
        g.status =
            stg_flow_assign(s->hub->flow, &queue, stg_deadlines_now(), err);
    }
    stg_store_partitions(s->hub->store, give_old, &g);
    return g.status;
}

/* The topics that the store has partitions of. */
typedef struct known_topics {
    const char **topics; /* ended by NULL; NULL: no memory */
    size_t count, room;
} known_topics;

static void note_known(void *ctx, const stg_store_partition *p)
{
    known_topics *k = ctx;

    if (k->topics == NULL || strcmp(p->log, STG_SOURCE_LOG) != 0)
        return;
    for (size_t i = k->count; i-- > 0;)
        if (strcmp(k->topics[i], p->topic) == 0)
            return;
    if (k->count + 1 == k->room) {
        const char **wider =
            realloc(k->topics, 2 * k->room * sizeof *k->topics);

        if (wider == NULL) {
            free(k->topics);
            k->topics = NULL;
            return;
        }
        k->topics = wider;
        k->room *= 2;
    }
    k->topics[k->count++] = p->topic;
    k->topics[k->count] = NULL;
}

static stg_status open_kafka(stg_source *s, stg_error *err)
{
    const stg_settings *o = s->hub->settings;
    char group[STG_SHARD_GROUP_MAX];
    stg_kafka_property *properties = copy_properties(&o->kafka);
    known_topics known = {.topics = calloc(16, sizeof *known.topics),
                          .room = 16};
    stg_kafka_options k;
    stg_status status;

    stg_store_partitions(s->hub->store, note_known, &known);
    if (properties == NULL || known.topics == NULL) {
        free(properties);
        free(known.topics);
        return stg_hub_refuse(err, STG_IO, "there is no memory for Kafka");
    }
    k = options_of(s, o, properties, stg_shard_group(o, group));
    k.known = known.topics;
    status = stg_kafka_open(&s->kafka, s->hub->loop, &k, err);
    free(known.topics);
    free(properties);
    return status;
}

stg_status stg_source_open(stg_source *s, unsigned *parts, stg_error *err)
{
    stg_status status = STG_OK;

    if (s->hub->settings->source == STG_SOURCE_KAFKA)
        status = open_kafka(s, err);
    *parts += s->kafka != NULL;
    if (s->kafka != NULL)
        stg_source_watch_release(s);
    return status;
}

void stg_source_close(stg_source *s, void (*closed)(void *ctx), void *ctx)
{
    if (s->kafka != NULL) {
        stg_deadline_clear(&s->hub->deadlines, &s->release);
        stg_deadline_clear(&s->hub->deadlines, &s->trouble);
        stg_source_take_back(s);
        stg_source_save_prints(s);
        stg_kafka_close(s->kafka, closed, ctx);
    }
    s->kafka = NULL;
    stg_source_end_readings(s);
}

void stg_source_free(stg_source *s)
{
    if (s->hub == NULL)
        return;
    stg_source_drop_places(s);
    if (s->letters != NULL)
        stg_kafka_letters_close(s->letters);
    s->letters = NULL;
    free(s->brokers);
    s->brokers = NULL;
}

/* -- what the queue has ---------------------------------------------------- */

static void take_messages(stg_hub *h, bool is_catch_up,
                          const stg_record *records, size_t count,
                          uint64_t next)
{
    stg_flow_messages(h->flow, is_catch_up, 0, 0, records, count, next,
                      stg_deadlines_now());
    stg_shell_note(h);
}

static void read_main(void *ctx, const stg_record *records, size_t count,
                      uint64_t next)
{
    take_messages(ctx, false, records, count, next);
}

static void read_behind(void *ctx, const stg_record *records, size_t count,
                        uint64_t next)
{
    take_messages(ctx, true, records, count, next);
}

/* -- what Kafka has -------------------------------------------------------- */

/* A run's tag says for which assignment of flow's it was read. */
void stg_source_take_run(stg_source *s, const stg_kafka_run *run,
                         bool is_catch_up)
{
    stg_source_place *p = stg_source_find(s, &run->place);

    if (p != NULL && run->end > p->end)
        p->end = run->end;
    if (p != NULL && run->mark.hash != 0)
        stg_source_mark(p, &run->mark);
    s->counts.messages += is_catch_up ? 0 : run->count;
    stg_flow_messages(s->hub->flow, is_catch_up,
                      (uint32_t)(run->tag & NUMBER_MASK),
                      run->tag >> STG_SOURCE_NUMBER_BITS, run->records,
                      run->count, run->next, stg_deadlines_now());
}

static void take_runs(void *ctx, const stg_kafka_run *runs, size_t count)
{
    stg_source *s = ctx;

    for (size_t i = 0; i < count; i++)
        stg_source_take_run(s, &runs[i], false);
    stg_flow_read_end(s->hub->flow, stg_deadlines_now());
    stg_shell_note(s->hub);
}

static void read_kafka(stg_source *s, const stg_action *a)
{
    if (a->read.is_catch_up)
        stg_source_read_laggards(s, a);
    else
        stg_kafka_read(s->kafka, a->read.bytes_max, take_runs, s);
}

/* -- what flow wants ------------------------------------------------------- */

void stg_source_read(stg_source *s, const stg_action *a)
{
    bool is_catch_up = a->read.is_catch_up;

    if (s->kafka != NULL)
        read_kafka(s, a);
    else
        stg_store_read(s->hub->store, a->read.from, a->read.bytes_max,
                       !is_catch_up, is_catch_up ? read_behind : read_main,
                       s->hub);
}

void stg_source_commit(stg_source *s, uint32_t partition, uint64_t position)
{
    const stg_source_place *p;
    stg_kafka_place place;

    if (s->kafka == NULL) {
        stg_store_commit(s->hub->store, position);
        return;
    }
    p = stg_source_find_number(s, partition);
    if (p == NULL)
        return;
    place = stg_source_place_of(p);
    stg_kafka_commit(s->kafka, &place, position);
}

/* -- for people ------------------------------------------------------------ */

static const stg_source_place *nth_given(const stg_source *s, size_t i)
{
    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        const stg_source_place *p = STG_HOLDER(at, stg_source_place, link);

        if (p->state == STG_SOURCE_GIVEN && i-- == 0)
            return p;
    }
    return NULL;
}

bool stg_source_look(const stg_source *s, size_t i, stg_source_view *v)
{
    const stg_source_place *p = s->kafka != NULL ? nth_given(s, i) : NULL;
    stg_partition_view flow = {.next = 0};

    if (p == NULL)
        return false;
    (void)stg_flow_view_partition(s->hub->flow, p->number, &flow);
    *v = (stg_source_view){.topic = p->topic,
                           .partition = p->partition,
                           .number = p->number,
                           .begin = p->begin,
                           .end = stg_ns_max(p->end, flow.next),
                           .next = flow.next,
                           .committed = flow.committed};
    return true;
}

uint64_t stg_source_lag(const stg_source *s, uint32_t lane)
{
    uint64_t lag = 0;

    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        const stg_source_place *p = STG_HOLDER(at, stg_source_place, link);
        stg_lane_cursor_view v;

        if (p->state == STG_SOURCE_GIVEN &&
            stg_flow_view_cursor(s->hub->flow, lane, p->number, &v) == STG_OK)
            lag = stg_ns_add(lag, stg_ns_sub(p->end, v.next));
    }
    return lag;
}

bool stg_source_is_of(const stg_hub *h, uint32_t partition,
                      const stg_texts *topics)
{
    stg_store_partition p;

    if (topics->count == 0 || !stg_store_partition_of(h->store, partition, &p))
        return true;
    for (size_t i = 0; i < topics->count; i++)
        if (stg_topic_matches(topics->at[i], p.topic))
            return true;
    return false;
}
