/* fingerprint.h - what tells a topic's partition from another one of the same
 * name: a topic that was deleted and made again has the same name, and offsets
 * that begin anew.
 *
 * Plain data. A record at an offset never changes while its log exists, so one
 * that is still there with the same hash proves that the log is the same. */
#ifndef STAGGER_STORE_FINGERPRINT_H
#define STAGGER_STORE_FINGERPRINT_H

#include <stdbool.h>
#include <stdint.h>

/* A record that was read. */
typedef struct stg_log_mark {
    uint64_t position;
    uint64_t at_ms; /* its timestamp, ms since 1970; 0: it has none */
    uint64_t hash;  /* of timestamp, key, headers and value; 0: no record */
} stg_log_mark;

typedef struct stg_fingerprint {
    uint64_t begin;     /* the log's first offset, when a mark was noted last:
                           of one log it never falls */
    stg_log_mark first; /* the first record that was read of it */
    stg_log_mark last;  /* the latest that was noted, about once a second */
} stg_fingerprint;

static inline bool stg_fingerprint_is_known(const stg_fingerprint *f)
{
    return f->last.hash != 0;
}

/* A record is noted. */
static inline void stg_fingerprint_add(stg_fingerprint *f,
                                       const stg_log_mark *mark, uint64_t begin)
{
    if (f->first.hash == 0)
        f->first = *mark;
    f->last = *mark;
    f->begin = begin > f->begin ? begin : f->begin;
}

#endif
