/* A batch of records on its way from a thread to the loop. Their bytes are in
 * large blocks that are never moved, so that a record's pointer stays good
 * while the batch grows. Records come in any order of partitions; closing sorts
 * them by run, and keeps their order within each (a counting sort). */
#include "kafka/internal.h"

#include <stdlib.h>
#include <string.h>

#include "kafka/internal.h"

enum { BLOCK = 256 * 1024, ENTRIES_FIRST = 64 };

typedef struct stg_kafka_block {
    struct stg_kafka_block *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
} block;

stg_kafka_batch *stg_kafka_batch_new(void)
{
    return stg_kafka_memory(1, sizeof(stg_kafka_batch));
}

void stg_kafka_batch_free(stg_kafka_batch *b)
{
    if (b == NULL)
        return;
    for (block *at = b->blocks, *next; at != NULL; at = next) {
        next = at->next;
        free(at);
    }
    free(b->entries);
    free(b->records);
    free(b->runs);
    free(b->ids);
    free(b);
}

/* A block of its own for what is large, behind the one that is being filled. */
static void *large(stg_kafka_batch *b, size_t size)
{
    block *new = stg_kafka_memory(1, sizeof *new + size);

    new->used = new->size = size;
    new->next = b->blocks->next;
    b->blocks->next = new;
    return new->bytes;
}

/* What is left of a block is given up when a small record does not fit any
 * more; a large one gets its own block, so that it does not waste most of
 * another. */
void *stg_kafka_batch_bytes(stg_kafka_batch *b, size_t size)
{
    block *at = b->blocks;

    if (at == NULL || at->size - at->used < size) {
        if (at != NULL && size > BLOCK / 4)
            return large(b, size);
        at = malloc(sizeof *at + (size > BLOCK ? size : BLOCK));
        if (at == NULL)
            abort();
        *at = (block){.next = b->blocks, .size = size > BLOCK ? size : BLOCK};
        b->blocks = at;
    }
    at->used += size;
    return at->bytes + at->used - size;
}

void stg_kafka_batch_add(stg_kafka_batch *b, size_t slot,
                         const stg_record *record)
{
    if (b->count == b->room) {
        b->room = b->room == 0 ? ENTRIES_FIRST : 2 * b->room;
        b->entries = realloc(b->entries, b->room * sizeof *b->entries);
        if (b->entries == NULL)
            abort();
    }
    b->entries[b->count++] = (struct stg_kafka_entry){slot, *record};
    b->size += record->size;
}

/* Slots are the runs' numbers when the batch is closed. */
void stg_kafka_batch_identify(stg_kafka_batch *b, size_t slot,
                              const stg_record_id *id)
{
    if (b->id_count == b->id_room) {
        b->id_room = b->id_room == 0 ? ENTRIES_FIRST : 2 * b->id_room;
        b->ids = realloc(b->ids, b->id_room * sizeof *b->ids);
        if (b->ids == NULL)
            abort();
    }
    b->ids[b->id_count++] = (struct stg_kafka_identified){
        slot, b->entries[b->count - 1].record.position, *id};
}

/* Sorts the records by partition, in two passes: how many each has, then each to its
 * place, in the order in which they came. */
void stg_kafka_batch_close(stg_kafka_batch *b, const stg_kafka_run *slots,
                           size_t count)
{
    size_t *at = stg_kafka_memory(count + 1, sizeof *at);

    b->records = stg_kafka_memory(b->count + 1, sizeof *b->records);
    b->runs = stg_kafka_memory(count + 1, sizeof *b->runs);
    b->run_count = count;
    if (count > 0)
        memcpy(b->runs, slots, count * sizeof *slots);
    for (size_t i = 0; i < b->count; i++)
        b->runs[b->entries[i].slot].count++;
    for (size_t i = 0, first = 0; i < count; i++) {
        at[i] = first;
        b->runs[i].records = b->records + first;
        first += b->runs[i].count;
    }
    for (size_t i = 0; i < b->count; i++)
        b->records[at[b->entries[i].slot]++] = b->entries[i].record;
    free(at);
    free(b->entries);
    b->entries = NULL;
}

void stg_kafka_batch_drop(stg_kafka_batch *b, size_t run, uint64_t position)
{
    stg_kafka_run *r = &b->runs[run];
    stg_record *all = b->records + (r->records - b->records);

    for (size_t i = 0; i < r->count; i++)
        if (all[i].position == position) {
            memmove(all + i, all + i + 1, (--r->count - i) * sizeof *all);
            return;
        }
}
