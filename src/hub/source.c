/* The one place where the hub knows which kinds of sources there are: settings
 * become the options of one of them. A new kind gets its case in make_named().
 *
 * A source gets a stg_source_host: what it needs of the hub, as functions. It
 * must not include the hub. The order of the calls is make (before the store
 * opens, which asks who reads bodies again), restore (before cursors are
 * restored), open, close, and free (after the store has closed). */
#include "hub/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alerts/digest.h"
#include "base/refuse.h"
#include "config/from.h"
#include "config/targets.h"
#include "host/wall.h"
#include "hub/hub_internal.h"
#include "kafka/kafka.h"

/* Between two looks at targets that are not in the settings. */
static const stg_ns RETENTION_PAUSE = 5 * STG_S;

/* -- settings of Kafka as options ------------------------------------------ */

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

/* Texts are hub.fixed's, or kept in source_part: the source keeps no copies. */
static stg_kafka_options consumer_options(const stg_hub_source *s,
                                          const stg_settings *o)
{
    stg_kafka_options k = stg_kafka_options_default();

    k.brokers = s->brokers;
    k.topics = o->kafka.topics.at;
    k.group = s->group;
    k.properties = s->properties;
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
    return k;
}

/* Makes the texts that a consumer's options keep. */
static stg_status source_keep_texts(stg_hub_source *s, const stg_settings *o,
                                    stg_error *err)
{
    s->brokers = join_brokers(&o->kafka.brokers);
    s->properties = copy_properties(&o->kafka);
    (void)stg_shard_group(o, s->group);
    if (s->brokers != NULL && s->properties != NULL)
        return STG_OK;
    return stg_hub_refuse(err, STG_IO, "out of memory for Kafka");
}

static stg_status make_kafka(stg_hub *h, const stg_settings *o, stg_error *err)
{
    stg_hub_source *s = &h->source_part;
    stg_kafka_source_options k;
    stg_status status;

    status = source_keep_texts(s, o, err);
    if (status != STG_OK)
        return status;
    k = (stg_kafka_source_options){.consumer = consumer_options(s, o),
                                   .letters = o->letters.topic};
    status = stg_source_new_kafka(&h->source, &k, err);
    if (status == STG_OK)
        h->source->brokers = (uint32_t)o->kafka.brokers.count;
    return status;
}

stg_status stg_hub_source_check(stg_hub *h, const stg_settings *o,
                                stg_error *err)
{
    stg_kafka_options k;
    stg_status status;

    if (o->source != STG_SOURCE_KAFKA)
        return STG_OK;
    status = source_keep_texts(&h->source_part, o, err);
    if (status != STG_OK)
        return status;
    k = consumer_options(&h->source_part, o);
    return stg_kafka_check(&k, err);
}

static stg_status make_named(stg_hub *h, const stg_settings *o, stg_error *err)
{
    switch (o->source) {
    case STG_SOURCE_KAFKA:
        return make_kafka(h, o, err);
    case STG_SOURCE_QUEUE:
        return stg_source_new_queue(&h->source, err);
    }
    return STG_INVALID;
}

/* -- what a source needs of the hub ---------------------------------------- */

static bool is_ending(void *ctx)
{
    const stg_hub *h = ctx;

    return stg_hub_is_stopping(h);
}

static void wake(void *ctx)
{
    stg_shell_note(ctx);
}

/* An alert is of all kinds of sources: its text begins with the kind. */
static void alert(void *ctx, const char *why)
{
    stg_hub *h = ctx;
    char text[STG_DIGEST_TEXT_MAX];

    if (why != NULL) {
        (void)snprintf(text, sizeof text, "%s: %s", h->source->ops->name, why);
        why = text;
    }
    stg_watch_store(&h->watch, STG_TROUBLE_LOG, why, stg_deadlines_now());
}

/* For stg_store_options. Once the source is closed the store gets no message,
 * and the position at which it asked. */
static void reread(void *ctx, uint32_t number, uint64_t from, size_t bytes_max,
                   size_t count_max, stg_read_fn *done, void *done_ctx)
{
    const stg_hub *h = ctx;

    if (h->source_part.is_open)
        h->source->ops->reread(h->source, number, from, bytes_max, count_max,
                               done, done_ctx);
    else
        done(done_ctx, NULL, 0, from);
}

/* Before the store is opened, since the store is told where dead letters are copied
 * to and who reads messages again. */
stg_status stg_hub_source_make(stg_hub *h, const stg_settings *o,
                               stg_store_options *store, stg_error *err)
{
    stg_status status = h->source == NULL ? make_named(h, o, err) : STG_OK;

    if (status != STG_OK)
        return status;
    h->source_part.host =
        (stg_source_host){.loop = h->loop,
                          .deadlines = &h->deadlines,
                          .log = h->log,
                          .keeps_rows = !stg_from_is_postgres(o->store.path),
                          .is_ending = is_ending,
                          .wake = wake,
                          .alert = alert,
                          .ctx = h};
    h->source->host = &h->source_part.host;
    stg_client_files(h->client)->brokers = h->source->brokers;
    store->sink = h->source->letters;
    if (h->source->ops->reread != NULL)
        store->read = reread;
    return STG_OK;
}

/* -- restore, open, close -------------------------------------------------- */

typedef struct restoring {
    stg_hub *hub;
    stg_status status;
    stg_error *err;
} restoring;

static void assign_rows(restoring *r, uint32_t number, uint64_t generation)
{
    stg_assignment rows = {.partition = number,
                           .generation = generation,
                           .is_merged = true,
                           .is_rows_only = true};

    if (r->status == STG_OK)
        r->status =
            stg_flow_assign(r->hub->flow, &rows, stg_deadlines_now(), r->err);
}

static void assign_old(void *ctx, const stg_store_partition *p)
{
    assign_rows(ctx, p->number, p->generation);
}

/* A file keeps rows of all its partitions, and flow must have these before
 * their cursors. Rows of a database come with the partitions that are
 * claimed. */
stg_status stg_hub_source_restore(stg_hub *h, stg_error *err)
{
    restoring r = {.hub = h, .err = err};

    h->source_part.host.store = h->store;
    h->source_part.host.flow = h->flow;
    if (!h->source_part.host.keeps_rows)
        return STG_OK; // of a database only what is claimed
    if (h->source->ops->restore != NULL)
        r.status = h->source->ops->restore(h->source, err);
    else
        assign_rows(&r, 0, 0); // what the queue had before
    stg_store_partitions(h->store, assign_old, &r);
    return r.status;
}

/* A target that the settings do not have must not hold back what the source
 * commits for ever: what it has waited for longer than store.retention is
 * shed. */
static void shed_old(stg_hub *h, const stg_target *t, stg_ns utc, stg_ns now)
{
    stg_lane_view v;

    if (t->settings != NULL ||
        stg_flow_view_lane(h->flow, t->lane, &v, now) != STG_OK ||
        v.oldest_at == 0 ||
        stg_ns_sub(utc, v.oldest_at) < h->settings->store.retention ||
        !stg_flow_retain_lane(h->flow, t->lane, now))
        return;
    stg_tell_released(h, t);
    stg_shell_note(h);
}

static void watch_retention(stg_hub *h);

static void look_at_targets(stg_deadline *d)
{
    stg_hub *h = STG_HEAP_HOLDER(d, stg_hub, source_part.retention);
    stg_ns now = stg_deadlines_now(), utc = stg_wall_now();

    if (stg_hub_is_closing(h) || h->is_broken)
        return;
    for (size_t i = 0; i < h->targets.count; i++)
        shed_old(h, h->targets.all[i], utc, now);
    watch_retention(h);
}

static void watch_retention(stg_hub *h)
{
    stg_deadline *d = &h->source_part.retention;

    d->passed = look_at_targets;
    stg_deadline_set(&h->deadlines, d,
                     stg_ns_add(stg_deadlines_now(), RETENTION_PAUSE));
}

stg_status stg_hub_source_open(stg_hub *h, unsigned *parts, stg_error *err)
{
    const stg_source_ops *ops = h->source->ops;

    if (ops->open != NULL) {
        stg_status status = ops->open(h->source, err);

        if (status != STG_OK)
            return status;
        h->source_part.is_open = true;
        *parts += 1;
    }
    if (!ops->is_trimmed)
        watch_retention(h);
    return STG_OK;
}

void stg_hub_source_close(stg_hub *h, void (*closed)(void *ctx), void *ctx)
{
    stg_deadline_clear(&h->deadlines, &h->source_part.retention);
    if (!h->source_part.is_open)
        return;
    h->source_part.is_open = false;
    h->source->ops->close(h->source, closed, ctx);
}

void stg_hub_source_free(stg_hub *h)
{
    if (h->source != NULL)
        h->source->ops->free(h->source);
    free(h->source_part.brokers);
    free(h->source_part.properties);
}

/* A partition that the store does not know has no topic, and is everybody's. */
bool stg_hub_source_is_of(const stg_hub *h, uint32_t partition,
                          const stg_texts *topics)
{
    bool (*matches)(const char *setting, const char *topic) =
        h->source->ops->matches;
    stg_store_partition p;

    if (topics->count == 0 || !stg_store_partition_of(h->store, partition, &p))
        return true;
    for (size_t i = 0; i < topics->count; i++)
        if (matches != NULL ? matches(topics->at[i], p.topic)
                            : strcmp(topics->at[i], p.topic) == 0)
            return true;
    return false;
}
