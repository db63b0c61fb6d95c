/* ids.h - message ids: the same over attempts, crashes, hubs and replays, and
 * never of two messages.
 *
 *     00c0ffee00c0ffee-42                    of the queue: its epoch, position
 *     orders.3.1042                          of a topic: partition, offset
 *     orders.3.17.5f0e6a2b9c0d1e2f           of a topic that was made again:
 *                                            its epoch, too
 *
 * What begins a number of a topic has no epoch to be told by, so that hubs with
 * stores of their own agree. */
#ifndef STAGGER_STORE_IDS_H
#define STAGGER_STORE_IDS_H

#include "store/epochs.h"
#include "store/partitions.h"
#include "store/store.h"

typedef struct stg_ids {
    const stg_epochs *epochs;
    const stg_partitions *partitions;
} stg_ids;

const char *stg_ids_print(const stg_ids *ids, uint32_t number,
                          uint64_t position, char text[STG_MESSAGE_ID_MAX]);

/* False: it is no id, or not one of these. */
bool stg_ids_parse(const stg_ids *ids, const char *id, uint32_t *number,
                   uint64_t *position);

#endif
