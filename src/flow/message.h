/* message.h - what was published, held in memory once however many lanes.
 *
 * Flow does not read the bytes: the shell packs into them whatever a delivery
 * needs (content type, headers, body), and gets them back to send. */
#ifndef STAGGER_FLOW_MESSAGE_H
#define STAGGER_FLOW_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include <stagger/ns.h>

typedef struct stg_message {
    uint64_t position; /* its place in the log: orders, does not count */
    uint64_t key;      /* hash of its ordering key; 0: it has none */
    uint32_t partition;
    uint32_t refs;         /* flow's own: who holds it */
    uint32_t slot;         /* flow's own: of its partition */
    uint32_t true_size;    /* as in stg_record; saturates */
    uint32_t headers_lost; /* as in stg_record */
    /* Flow's own: what the log has lost before it, which no reader has read:
     * [lost_from, lost_end). 0, 0: nothing. */
    uint64_t lost_from, lost_end;
    stg_ns created_at; /* when it was accepted, by the wall clock: since 1970;
                          0: not known */
    size_t size;
    unsigned char bytes[];
} stg_message;

/* The same as it comes from a log, lent for a call. */
typedef struct stg_record {
    uint64_t position;
    uint64_t key;
    stg_ns created_at;
    const void *bytes;
    size_t size;
    size_t true_size; /* of a body too large to be sent, which was left out:
                         each lane that wants the message settles it as dead, at
                         once; 0: nothing was */
    uint32_t headers_lost; /* headers that cannot be sent, where it is not to be
                              sent without them: likewise, but with its bytes */
} stg_record;

#endif
