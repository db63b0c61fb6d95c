/* The embedded queue as a source: partition 0 of the store, which is always
 * there, and which nobody takes away. */
#include <stdlib.h>

#include "base/refuse.h"
#include "sources/source.h"

/* Partition 0 without generation or cursors: no other process can take it, and
 * the cursors of the lanes are restored after it (stg_flow_restore). */
static stg_status restore(stg_source *s, stg_error *err)
{
    stg_assignment all = {.begin = stg_store_first(s->host->store)};

    return stg_flow_assign(s->host->flow, &all, stg_deadlines_now(), err);
}

/* Partition 0 and assignment 0: the queue is assigned once and never lost, so
 * that no answer can be of an older assignment. */
static void take(const stg_source *s, bool is_catch_up,
                 const stg_record *records, size_t count, uint64_t next)
{
    stg_flow_messages(s->host->flow, is_catch_up, 0, 0, records, count, next,
                      stg_deadlines_now());
    s->host->wake(s->host->ctx);
}

static void take_main(void *ctx, const stg_record *records, size_t count,
                      uint64_t next)
{
    take(ctx, false, records, count, next);
}

static void take_catch_up(void *ctx, const stg_record *records, size_t count,
                          uint64_t next)
{
    take(ctx, true, records, count, next);
}

/* The main reader is ahead of all lanes: it waits for what comes. */
static void read_main(stg_source *s, const stg_action *a)
{
    stg_store_read(s->host->store, a->read.from, a->read.bytes_max, true,
                   take_main, s);
}

static void catch_up(stg_source *s, const stg_action *a)
{
    stg_store_read(s->host->store, a->read.from, a->read.bytes_max, false,
                   take_catch_up, s);
}

static void commit(stg_source *s, uint32_t number, uint64_t position)
{
    (void)number;
    stg_store_commit(s->host->store, position);
}

static void publish(stg_source *s, const char *topic,
                    const stg_append *messages, size_t count,
                    stg_append_fn *done, void *done_ctx)
{
    if (topic != NULL)
        done(done_ctx, STG_APPEND_NO_TOPIC, NULL, 0);
    else
        stg_store_append(s->host->store, messages, count, done, done_ctx);
}

/* Exact: the store counts what it has, so that gaps do not count. */
static uint64_t lag(const stg_source *s, uint32_t lane,
                    const stg_lane_view *view)
{
    (void)lane;
    return stg_store_count_from(s->host->store, view->next);
}

static void free_queue(stg_source *s)
{
    free(s);
}

stg_status stg_source_new_queue(stg_source **source, stg_error *err)
{
    static const stg_source_ops ops = {.name = "queue",
                                       .is_trimmed = true,
                                       .restore = restore,
                                       .publish = publish,
                                       .read = read_main,
                                       .catch_up = catch_up,
                                       .commit = commit,
                                       .lag = lag,
                                       .free = free_queue};

    *source = calloc(1, sizeof **source);
    if (*source == NULL)
        return stg_hub_refuse(err, STG_IO,
                              "out of memory: cannot open the queue");
    (*source)->ops = &ops;
    return STG_OK;
}
