/* log_fold.h - at most ten lines a second for an event with one cause, however
 * many targets it happens to.
 *
 * Lines are admitted one by one. While fewer than nine of a kind (an event and
 * its cause) were written within the last second, a line is written as it is.
 * Else its events are counted, and so are all that follow, until a second after
 * the last line: then the fold says how many events it stands for, over how many
 * targets, and names three. The tenth line of a second
 * is kept for a fold that cannot wait: at the end, or before folding is
 * switched off.
 *
 * Counts are exact. Memory is bounded: 128 pairs of an event and a cause are
 * told apart within a second, and further causes of an event are one, "other".
 *
 * Pure: time comes in, lines go out by a callback. All on one thread. */
#ifndef STAGGER_HOST_LOG_FOLD_H
#define STAGGER_HOST_LOG_FOLD_H

#include "base/hash.h"
#include "host/log.h"

enum {
    STG_LOG_FOLD_LINES = 9, /* a kind and a second; the tenth is kept */
    STG_LOG_FOLD_CAUSES = 128,
    STG_LOG_FOLD_EVENTS = 256,      /* kinds without a cause, or with "other" */
    STG_LOG_FOLD_TARGETS = 1 << 17, /* told apart in all kinds together */
};

/* The subject of a line. Everything is borrowed for the call, but for the names
 * of fields, which are literals. */
typedef struct stg_log_fact {
    stg_log_level level;
    const char *event;
    stg_field cause;      /* name NULL: the event has none */
    const char *subjects; /* name of the field that counts the subjects */
    stg_span subject;     /* the target, mostly; at NULL: the event has none */
    uint64_t events; /* number of events that the line stands for, from 1 */
} stg_log_fact;

/* Returns what a line of one event is about. The cause is the field `cause`, or
 * else `status`; the subject is the field `target`, or another that says whom
 * the event happened to. */
stg_log_fact stg_log_fact_of(stg_log_level level, const char *event,
                             const stg_field *fields, size_t count);

/* A line that stands for many events; borrowed for the call. */
typedef struct stg_log_folded {
    stg_log_level level; /* the highest of its events */
    const char *event;
    const stg_field *fields;
    size_t count;
} stg_log_folded;

/* Writes the line. False: not now; the events stay counted, and are told with
 * those that follow, a second later at the earliest. */
typedef bool stg_log_fold_fn(void *ctx, const stg_log_folded *line,
                             stg_log_now now);

typedef struct stg_log_fold stg_log_fold;

/* Returns NULL when out of memory. seed is copied; ctx is kept for write. */
stg_log_fold *stg_log_fold_new(const stg_hash_seed *seed,
                               stg_log_fold_fn *write, void *ctx);

/* Frees the fold; what is counted and not told is lost. NULL is allowed. */
void stg_log_fold_free(stg_log_fold *f);

/* True: the line is to be written now. False: its events are counted. Writes
 * the fold of the kind first, if that is due. Takes constant time. */
bool stg_log_fold_admit(stg_log_fold *f, const stg_log_fact *fact,
                        stg_log_now now);

/* Writes the folds that are due. Returns the instant when the next one is, or
 * STG_NEVER. */
stg_ns stg_log_fold_tick(stg_log_fold *f, stg_log_now now);

/* Writes all folds, due or not. */
void stg_log_fold_flush(stg_log_fold *f, stg_log_now now);

#endif
