#include "sim/delivery/internal.h"

#include <assert.h>
#include <string.h>

/* The log of a world, and those that read it: flow's reader of each partition
 * and its catch-up reader, or the one consumer of a member of a group.
 * Positions order, and do not count: they have gaps. */

enum { TRUE_SIZE_TOO_LARGE = 5000000, READ_TOOK_MAX = 2 * STG_MS };

stg_ns stg_world_some_time(stg_world *w, stg_ns most)
{
    return w->has_delays ? stg_rng_upto(&w->rng, most) : 0;
}

/* -- messages -------------------------------------------------------------- */

/* Receipts have the log's capacity, as they are found by the index of a
 * message: all lanes grow with it. */
static bool grow(stg_world *w)
{
    size_t before = w->log_capacity;

    if (!stg_world_grow(w, &w->log, &w->log_capacity, w->log_count + 1,
                        sizeof *w->log))
        return false;
    if (w->log_capacity == before)
        return true;
    for (uint32_t i = 0; i < w->lane_count; i++) {
        stg_world_lane *l = w->lanes[i];
        stg_world_receipt *receipts =
            stg_world_allocate(w, w->log_capacity + 1, sizeof *receipts);

        if (receipts == NULL)
            return false;
        memcpy(receipts, l->receipts, w->log_count * sizeof *receipts);
        stg_world_release(w, l->receipts);
        l->receipts = receipts;
    }
    return true;
}

/* Chance is drawn only where it is asked for, so that other runs replay as
 * before. */
static void set_times(stg_world *w, stg_world_message *m)
{
    stg_ns not_before = w->not_before, expires = w->expires;

    if (w->times_most > 0 && stg_rng_upto(&w->rng, 1) == 0)
        not_before = stg_rng_upto(&w->rng, w->times_most);
    if (w->times_most > 0 && stg_rng_upto(&w->rng, 3) == 0)
        expires = stg_rng_upto(&w->rng, 2 * w->times_most);
    if (not_before > 0)
        m->not_before = stg_ns_add(m->created_at, not_before);
    if (expires > 0)
        m->expires_at = stg_ns_add(m->created_at, expires);
}

/* One position in ten comes after a gap of two, so that flow cannot take a
 * difference of positions for a count. A message that is too large has few
 * bytes, and says its true size. */
static bool publish(stg_world *w, uint32_t p)
{
    stg_world_partition *at = &w->partitions[p];
    stg_world_message *m;

    if (!grow(w) || !stg_world_grow(w, &at->messages, &at->capacity,
                                    at->count + 1, sizeof *at->messages))
        return false;
    m = &w->log[w->log_count];
    at->last += stg_rng_upto(&w->rng, 9) == 0 ? 3 : 1;
    *m = (stg_world_message){
        .position = at->last,
        .partition = p,
        .key = w->key_count == 0 ? 0 : w->log_count % w->key_count + 1,
        .created_at = stg_world_wall(w),
        .size = w->size};
    if (w->too_large > 0 && w->log_count % w->too_large == w->too_large - 1) {
        m->size = STG_WORLD_SIZE_MIN;
        m->true_size = TRUE_SIZE_TOO_LARGE;
    }
    set_times(w, m);
    at->messages[at->count++] = w->log_count++;
    return true;
}

void stg_world_publish(stg_world *w, uint32_t partition, uint64_t count)
{
    assert(partition < w->partition_count);
    while (count > 0 && !w->has_failed && publish(w, partition))
        count--;
}

/* Binary search: positions of a partition rise. */
uint64_t stg_world_find(const stg_world *w, uint32_t partition,
                        uint64_t position)
{
    const stg_world_partition *at = &w->partitions[partition];
    uint64_t low = 0, high = at->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (w->log[at->messages[middle]].position < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t stg_world_index(stg_world *w, uint32_t partition, uint64_t position)
{
    const stg_world_partition *at = &w->partitions[partition];
    uint64_t i = stg_world_find(w, partition, position);
    bool is_there =
        i < at->count && w->log[at->messages[i]].position == position;

    stg_world_require(w, is_there, "I11",
                      stg_about_message(UINT32_MAX, partition, position),
                      "the message was published");
    return is_there ? at->messages[i] : w->log_count;
}

void stg_world_write_bytes(unsigned char *bytes, uint32_t partition,
                           uint64_t position)
{
    memcpy(bytes, &position, sizeof position);
    memcpy(bytes + sizeof position, &partition, sizeof partition);
}

/* -- a read of one partition ----------------------------------------------- */

/* The consumer of a group reads all its partitions in one read. */
static void poll(stg_world *w, const stg_action *a)
{
    stg_world_event *e = stg_world_post(w, STG_WORLD_POLL,
                                        stg_world_some_time(w, READ_TOOK_MAX));
    bool is_only = true;

    if (e == NULL)
        return;
    for (const stg_world_event *other = e->next; other; other = other->next)
        is_only &=
            other->kind != STG_WORLD_POLL && other->kind != STG_WORLD_POLLED;
    stg_world_require(w, is_only, "check", stg_about_all(),
                      "one read of all partitions at a time");
    e->read.bytes_max = a->read.bytes_max;
    w->reads++;
}

void stg_world_read(stg_world *w, const stg_action *a)
{
    stg_world_event *e;

    if (a->partition == STG_ANY_PARTITION) {
        poll(w, a);
        return;
    }
    e = stg_world_post(
        w, a->read.is_catch_up ? STG_WORLD_CATCH_UP : STG_WORLD_READ,
        stg_world_some_time(w, READ_TOOK_MAX));
    if (e == NULL)
        return;
    stg_world_require(
        w, w->is_group || a->read.from >= w->partitions[a->partition].committed,
        "I2", stg_about_partition(a->partition),
        "nothing is read that may have been trimmed");
    w->reads++;
    w->catch_ups += a->read.is_catch_up;
    e->partition = a->partition;
    e->read.assignment = a->read.assignment;
    e->read.from = a->read.from;
    e->read.bytes_max = a->read.bytes_max;
}

/* The next message that the consumer comes to: which of the partition's. */
static uint64_t find_next(const stg_world *w, uint32_t p)
{
    const stg_world_partition *at = &w->partitions[p];

    return stg_world_find(w, p, stg_ns_max(at->read_at, at->trimmed));
}

static bool is_pollable(const stg_world *w)
{
    for (uint32_t p = 0; p < w->partition_count; p++)
        if (stg_world_is_assigned(w, p) &&
            find_next(w, p) < w->partitions[p].count)
            return true;
    return false;
}

/* A read of the log waits until there is a message, as a consumer does; a
 * catch-up read is answered at its time. An event at STG_NEVER is never ready,
 * also in a run until STG_NEVER. */
bool stg_world_is_readable(const stg_world *w, const stg_world_event *e)
{
    const stg_world_partition *at = &w->partitions[e->partition];
    uint64_t last;

    if (e->kind == STG_WORLD_POLL)
        return is_pollable(w);
    if (e->kind != STG_WORLD_READ)
        return e->at != STG_NEVER;
    if (at->count == 0)
        return false;
    last = w->log[at->messages[at->count - 1]].position;
    return last >= e->read.from && last >= at->trimmed;
}

/* The broker is away, or does not know its end yet. */
static bool is_unread(stg_world *w, const stg_world_event *e)
{
    if (e->kind != STG_WORLD_CATCH_UP)
        return false;
    if (w->failing_reads > 0) {
        w->failing_reads--;
        return true;
    }
    return w->is_group && w->has_delays && stg_rng_upto(&w->rng, 7) == 0;
}

/* Hands flow the messages of a batch, in memory that is gone after the call. */
static void give_records(stg_world *w, uint32_t p, bool is_catch_up,
                         const stg_world_batch *b)
{
    const uint64_t *messages = w->partitions[p].messages;
    size_t count = (size_t)b->count;
    stg_record *records = stg_world_allocate(w, count + 1, sizeof *records);
    size_t total = 16;
    unsigned char *bytes, *at;

    for (size_t i = 0; i < count; i++)
        total += w->log[messages[b->first + i]].size;
    at = bytes = stg_world_allocate(w, 1, total);
    for (size_t i = 0; records != NULL && bytes != NULL && i < count; i++) {
        const stg_world_message *m = &w->log[messages[b->first + i]];

        stg_world_write_bytes(at, m->partition, m->position);
        records[i] = (stg_record){.position = m->position,
                                  .key = m->key,
                                  .created_at = m->created_at,
                                  .not_before = m->not_before,
                                  .expires_at = m->expires_at,
                                  .bytes = at,
                                  .size = m->size,
                                  .true_size = m->true_size};
        at += m->size;
    }
    if (records != NULL && bytes != NULL)
        stg_flow_messages(w->flow, is_catch_up, p, b->assignment, records,
                          count, b->next, w->now);
    stg_world_release(w, records);
    stg_world_release(w, bytes);
}

/* One message at least, even where it is larger than bytes_max: else a reader
 * would stand before it for ever. */
void stg_world_answer_read(stg_world *w, const stg_world_event *e)
{
    const stg_world_partition *at = &w->partitions[e->partition];
    stg_world_batch b = {.assignment = e->read.assignment,
                         .next = e->read.from};
    size_t total = 0;

    if (is_unread(w, e)) {
        stg_flow_unread(w->flow, e->partition, e->read.assignment, w->now);
        return;
    }
    b.first =
        stg_world_find(w, e->partition, stg_ns_max(e->read.from, at->trimmed));
    for (uint64_t i = b.first; i < at->count; i++) {
        const stg_world_message *m = &w->log[at->messages[i]];

        if (b.count > 0 && total + m->size > e->read.bytes_max)
            break;
        total += m->size;
        b.count++;
        b.next = m->position + 1;
    }
    give_records(w, e->partition, e->kind == STG_WORLD_CATCH_UP, &b);
}

/* -- the consumer of a group ----------------------------------------------- */

/* Reads the messages that are there, up to *left bytes, which it lowers; the
 * first message of a poll is read whatever its size. The consumer goes on after
 * the batch (read_at), whether or not flow takes it. */
static stg_world_batch read_batch(stg_world *w, uint32_t p, size_t *left,
                                  bool is_first)
{
    stg_world_partition *at = &w->partitions[p];
    stg_world_batch b = {.assignment = at->assignment,
                         .first = find_next(w, p)};

    while (b.first + b.count < at->count) {
        size_t size = w->log[at->messages[b.first + b.count]].size;

        if (size > *left && !(is_first && b.count == 0))
            break;
        *left -= size < *left ? size : *left;
        b.count++;
    }
    if (b.count > 0) {
        b.next = w->log[at->messages[b.first + b.count - 1]].position + 1;
        at->read_at = b.next;
    }
    return b;
}

/* With delays a poll brings some of the partitions that have something; never
 * none. */
void stg_world_answer_poll(stg_world *w, size_t bytes_max)
{
    stg_world_event *e = stg_world_post(w, STG_WORLD_POLLED,
                                        stg_world_some_time(w, READ_TOOK_MAX));
    bool is_any = false;

    if (e == NULL)
        return;
    e->batches = stg_world_allocate(w, w->partition_count, sizeof *e->batches);
    for (int turn = 0; e->batches != NULL && turn < 2 && !is_any; turn++)
        for (uint32_t p = 0; p < w->partition_count; p++) {
            if (!stg_world_is_assigned(w, p) ||
                (turn == 0 && w->has_delays && stg_rng_upto(&w->rng, 1) == 0))
                continue;
            e->batches[p] = read_batch(w, p, &bytes_max, !is_any);
            is_any |= e->batches[p].count > 0;
        }
}

/* A partition may have gone since the poll, or have been assigned anew: the
 * batch has the assignment of then, by which flow tells. */
void stg_world_answer_polled(stg_world *w, const stg_world_event *e)
{
    for (uint32_t p = 0; e->batches != NULL && p < w->partition_count; p++)
        if (e->batches[p].count > 0)
            give_records(w, p, false, &e->batches[p]);
    stg_flow_read_end(w->flow, w->now);
}

/* Positions without messages at the end of the log: flow learns of the next
 * position alone. */
void stg_world_skip(stg_world *w, uint32_t partition, uint64_t count)
{
    stg_world_partition *at = &w->partitions[partition];

    assert(at->where == STG_WORLD_ASSIGNED);
    assert(find_next(w, partition) == at->count);
    if (w->has_failed)
        return;
    at->last += count;
    at->read_at = at->last + 1;
    stg_flow_messages(w->flow, false, partition, at->assignment, NULL, 0,
                      at->read_at, w->now);
}
