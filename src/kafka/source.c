/* Topics of Kafka as a source: the table of sources/source.h, what is read on
 * its way to flow, and the numbers that operators see.
 *
 * A run carries a tag, flow's own number of the assignment that it was read
 * for. So what the consumer's thread had read before a partition was lost, and
 * hands over after it was assigned again, is known by flow as old, and
 * dropped. */
#include "kafka/kafka.h"

#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "kafka/assignment.h"
#include "kafka/topic.h"

enum { NUMBER_MASK = (1 << STG_KAFKA_NUMBER_BITS) - 1 };

static stg_kafka_source *kafka_of(stg_source *s)
{
    return (stg_kafka_source *)s;
}

static const stg_kafka_source *kafka_seen(const stg_source *s)
{
    return (const stg_kafka_source *)s;
}

/* -- open, close ----------------------------------------------------------- */

/* The topics that the store has partitions of. */
typedef struct known_topics {
    const stg_kafka_source *source;
    const char **topics; /* ended by NULL; NULL: no memory */
    size_t count, room;
} known_topics;

/* The store tells partitions, many of one topic: each topic is noted once. */
static void note_known(void *ctx, const stg_store_partition *p)
{
    known_topics *k = ctx;

    if (k->topics == NULL || strcmp(p->log, k->source->base.ops->name) != 0)
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

/* Topics that the store has partitions of have begun: where they are read on is
 * for its cursors to say, and not for `kafka.start`. The list is lent for the
 * call, which copies it. */
static stg_status open_kafka(stg_source *source, stg_error *err)
{
    stg_kafka_source *s = kafka_of(source);
    known_topics known = {
        .source = s, .topics = calloc(16, sizeof *known.topics), .room = 16};
    stg_status status;

    stg_store_partitions(source->host->store, note_known, &known);
    if (known.topics == NULL)
        return stg_hub_refuse(err, STG_IO, "there is no memory for Kafka");
    s->options.known = known.topics;
    if (stg_store_keeps_keys(source->host->store))
        s->options.place = stg_kafka_source_place;
    status = stg_kafka_open(&s->kafka, source->host->loop, &s->options, err);
    s->options.known = NULL;
    free(known.topics);
    return status;
}

/* Claims that the store has not answered are taken back before the group is
 * left: the next owner's claim must come after ours. `kafka` is NULL from here
 * on, and what comes late sees by that that it is closed. */
static void close_kafka(stg_source *source, void (*closed)(void *ctx),
                        void *ctx)
{
    stg_kafka_source *s = kafka_of(source);
    stg_kafka *kafka = s->kafka;

    stg_deadline_clear(source->host->deadlines, &s->trouble);
    stg_kafka_source_cancel_claims(s);
    stg_kafka_source_save_prints(s);
    s->kafka = NULL;
    stg_kafka_close(kafka, closed, ctx);
    stg_kafka_source_end_rereads(s);
}

static void free_kafka(stg_source *source)
{
    stg_kafka_source *s = kafka_of(source);

    stg_kafka_assignments_free(s);
    stg_kafka_source_end_keyed(s);
    if (s->letters != NULL)
        stg_kafka_letters_close(s->letters);
    free(s);
}

/* -- what flow wants ------------------------------------------------------- */

void stg_kafka_source_take_run(stg_kafka_source *s, const stg_kafka_run *run,
                               bool is_catch_up)
{
    stg_kafka_assignment *p = stg_kafka_assignment_find(s, &run->tp);

    if (p != NULL && run->end > p->end)
        p->end = run->end;
    if (p != NULL && run->mark.hash != 0)
        stg_kafka_assignment_mark(p, &run->mark);
    s->base.messages += is_catch_up ? 0 : run->count;
    stg_flow_messages(s->base.host->flow, is_catch_up,
                      (uint32_t)(run->tag & NUMBER_MASK),
                      run->tag >> STG_KAFKA_NUMBER_BITS, run->records,
                      run->count, run->next, stg_deadlines_now());
}

/* The read is merged: flow waits for the end of it, whatever runs there
 * were. */
static void take_runs(void *ctx, const stg_kafka_run *runs, size_t count)
{
    stg_kafka_source *s = ctx;

    for (size_t i = 0; i < count; i++)
        stg_kafka_source_take_run(s, &runs[i], false);
    stg_flow_read_end(s->base.host->flow, stg_deadlines_now());
    stg_kafka_source_wake(s);
}

static void read_ahead(stg_source *s, const stg_action *a)
{
    stg_kafka_read(kafka_of(s)->kafka, a->read.bytes_max, take_runs, s);
}

/* Without an assignment flow does not have the partition any more, and the
 * commit is dropped. */
static void commit(stg_source *s, uint32_t number, uint64_t position)
{
    const stg_kafka_assignment *p =
        stg_kafka_assignment_find_number(kafka_of(s), number);

    if (p != NULL)
        stg_kafka_commit(kafka_of(s)->kafka, &p->tp, position);
}

/* -- for operators --------------------------------------------------------- */

static const stg_kafka_assignment *nth_read(const stg_kafka_source *s, size_t i)
{
    const stg_kafka_assignment *p = NULL;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->state == STG_ASSIGNMENT_READING && i-- == 0)
            break;
    return p;
}

static bool look(const stg_source *source, size_t i, stg_source_view *v)
{
    const stg_kafka_source *s = kafka_seen(source);
    const stg_kafka_assignment *p = s->kafka != NULL ? nth_read(s, i) : NULL;
    stg_partition_view flow = {.next = 0};

    if (p == NULL)
        return false;
    (void)stg_flow_view_partition(source->host->flow, p->number, &flow);
    *v = (stg_source_view){.topic = p->tp.topic,
                           .partition = p->tp.partition,
                           .number = p->number,
                           .begin = p->begin,
                           .end = stg_ns_max(p->end, flow.next),
                           .next = flow.next,
                           .committed = flow.committed};
    return true;
}

/* The sum over partitions that are read. Gaps in a log count as messages. */
static uint64_t lag_of(const stg_source *source, uint32_t lane,
                       const stg_lane_view *view)
{
    const stg_kafka_source *s = kafka_seen(source);
    const stg_kafka_assignment *p = NULL;
    uint64_t lag = 0;
    stg_lane_cursor_view v;

    (void)view;
    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->state == STG_ASSIGNMENT_READING &&
            stg_flow_view_cursor(source->host->flow, lane, p->number, &v) ==
                STG_OK)
            lag = stg_ns_add(lag, stg_ns_sub(p->end, v.next));
    return lag;
}

static uint64_t count_read(const stg_kafka_source *s)
{
    uint64_t count = 0;
    const stg_kafka_assignment *p = NULL;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        count += p->state == STG_ASSIGNMENT_READING;
    return count;
}

static size_t put_letters(const stg_kafka_source *s, stg_source_fact *to)
{
    static const char name[] = "stagger_kafka_letters_total",
                      help[] =
                          "Dead letters for their topic: copied whole, "
                          "cut (without their body), or left out.";
    stg_kafka_letters_counts c;

    if (s->letters == NULL)
        return 0;
    c = stg_kafka_letters_look(s->letters);
    to[0] = (stg_source_fact){name, help, "whole", true,
                              stg_ns_sub(c.written, c.cut)};
    to[1] = (stg_source_fact){name, help, "cut", true, c.cut};
    to[2] = (stg_source_fact){name, help, "left-out", true, c.left_out};
    return 3;
}

/* The numbers of stagger_kafka_ in the metrics. */
static size_t facts(const stg_source *source,
                    stg_source_fact to[STG_SOURCE_FACTS_MAX])
{
    static const char commits[] = "stagger_kafka_commits_total",
                      commits_help[] = "Commits of offsets, by their result.";
    const stg_kafka_source *s = kafka_seen(source);
    stg_kafka_counts c;

    if (s->kafka == NULL)
        return 0;
    stg_kafka_look(s->kafka, &c, NULL, NULL);
    const stg_source_fact all[] = {
        {"stagger_kafka_up", "1 when a broker answers.", NULL, false,
         !c.is_away},
        {"stagger_kafka_partitions", "Partitions that are read.", NULL, false,
         count_read(s)},
        {"stagger_kafka_messages_total",
         "Messages that were read ahead of all lanes.", NULL, true,
         source->messages},
        {"stagger_kafka_rebalances_total",
         "Partitions given, taken back and lost, as often as it was said.",
         NULL, true, c.rebalances},
        {"stagger_kafka_partitions_taken_total",
         "Partitions whose reading has begun.", NULL, true, s->counts.taken},
        {"stagger_kafka_fenced_total",
         "Partitions that another hub had taken in the store.", NULL, true,
         s->counts.fenced},
        {"stagger_kafka_renewed_total",
         "Partitions of topics that were made again, or cut off.", NULL, true,
         s->counts.renewed},
        {"stagger_kafka_partitions_added_total",
         "Partitions that topics have got.", NULL, true, s->counts.added},
        {"stagger_kafka_topics_missing", "Topics that are not there.", NULL,
         false, s->topics_missing},
        {"stagger_kafka_expired_total",
         "Positions that the topics had lost before they were read, at most.",
         NULL, true, s->counts.expired},
        {"stagger_kafka_too_large_total",
         "Messages that were larger than a message may be.", NULL, true,
         c.too_large},
        {"stagger_kafka_headers_lost_total",
         "Headers of records that should go on and could not be sent.", NULL,
         true, c.headers_lost},
        {"stagger_kafka_skipped_total",
         "Records without a value that are no messages.", NULL, true,
         c.skipped},
        {"stagger_kafka_repeated_total",
         "Second records of a message, by its idempotency key, that were left "
         "out.",
         NULL, true, s->repeated},
        {commits, commits_help, "ok", true,
         stg_ns_sub(c.commits, c.commit_failures)},
        {commits, commits_help, "failed", true, c.commit_failures},
    };
    enum { COUNT = sizeof all / sizeof *all };

    memcpy(to, all, sizeof all);
    to += COUNT;
    to += stg_kafka_source_put_published(s, to);
    return COUNT + STG_KAFKA_PUBLISHED_FACTS + put_letters(s, to);
}

/* -- made ------------------------------------------------------------------ */

static const stg_source_ops ops = {.name = "kafka",
                                   .open = open_kafka,
                                   .publish = stg_kafka_source_publish,
                                   .copy = stg_kafka_source_copy,
                                   .give_up = stg_kafka_source_give_up,
                                   .read = read_ahead,
                                   .catch_up = stg_kafka_source_catch_up,
                                   .commit = commit,
                                   .release = stg_kafka_source_release,
                                   .fenced = stg_kafka_source_fenced,
                                   .reread = stg_kafka_source_reread,
                                   .matches = stg_topic_matches,
                                   .look = look,
                                   .lag = lag_of,
                                   .facts = facts,
                                   .close = close_kafka,
                                   .free = free_kafka};

static stg_status write_letters(void *ctx, const stg_letter *rows, size_t count,
                                stg_letter_report *report, stg_error *err)
{
    return stg_kafka_letters_write(ctx, rows, count, report, err);
}

static void end_letters_soon(void *ctx)
{
    stg_kafka_letters_end_soon(ctx);
}

static stg_status open_letters(stg_kafka_source *s,
                               const stg_kafka_source_options *o,
                               stg_error *err)
{
    stg_kafka_letters_options l = stg_kafka_letters_options_default();
    stg_status status;

    if (o->letters == NULL)
        return STG_OK;
    l.brokers = o->consumer.brokers;
    l.topic = o->letters;
    l.properties = o->consumer.properties;
    l.property_count = o->consumer.property_count;
    status = stg_kafka_letters_open(&s->letters, &l, err);
    if (status == STG_OK)
        s->base.letters = (stg_letter_sink){.write = write_letters,
                                            .end_soon = end_letters_soon,
                                            .ctx = s->letters};
    return status;
}

static stg_kafka_source *make(const stg_kafka_source_options *o)
{
    stg_kafka_source *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->base.ops = &ops;
    s->options = o->consumer;
    s->options.assigned = stg_kafka_source_assigned;
    s->options.revoked = stg_kafka_source_revoked;
    s->options.lost = stg_kafka_source_lost;
    s->options.compared = stg_kafka_source_compared;
    s->options.report = stg_kafka_source_report;
    s->options.ctx = s;
    stg_list_init(&s->assignments);
    stg_list_init(&s->dropped);
    stg_list_init(&s->orphans);
    stg_list_init(&s->rereads);
    stg_list_init(&s->reserving.waiting);
    stg_list_init(&s->reserving.asked);
    stg_list_init(&s->placing.waiting);
    stg_list_init(&s->placing.asked);
    return s;
}

stg_status stg_source_new_kafka(stg_source **source,
                                const stg_kafka_source_options *o,
                                stg_error *err)
{
    stg_kafka_source *s = make(o);
    stg_status status;

    if (s == NULL)
        return stg_hub_refuse(err, STG_IO, "there is no memory for Kafka");
    status = stg_kafka_check(&s->options, err);
    if (status == STG_OK)
        status = open_letters(s, o, err);
    if (status == STG_OK)
        *source = &s->base;
    else
        free_kafka(&s->base);
    return status;
}
