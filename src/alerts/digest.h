/* digest.h - what is told in one message: the worst of it, and a count of the
 * rest.
 *
 * Plain data, whole: it can wait for its receiver while what it tells of
 * changes. Times are nanoseconds since 1970. Texts are valid UTF-8 without
 * control bytes. */
#ifndef STAGGER_ALERTS_DIGEST_H
#define STAGGER_ALERTS_DIGEST_H

#include "alerts/engine.h"
#include "flow/flow.h"

enum {
    STG_DIGEST_ITEMS = 20,
    STG_DIGEST_SHARES = 5,
    STG_DIGEST_NAME_MAX = 65,
    STG_DIGEST_TEXT_MAX = 256,
};

/* What the hub does about a target, as of now. */
typedef struct stg_alert_target {
    const char *name; /* NULL: nobody knows it any more */
    bool has_lane;    /* and what follows */
    stg_lane_state state;
    uint64_t waiting, parked; /* messages of the log; rows */
    uint64_t gate_until;      /* CIRCUIT_OPEN: the next probe; 0: not known */
    bool is_replaying;        /* `replay: on-recovery` */
} stg_alert_target;

typedef struct stg_digest_item {
    stg_alert alert;
    stg_alert_phase phase;
    char target[STG_DIGEST_NAME_MAX]; /* "": all targets, or the hub */
    stg_alert_trouble trouble;        /* STG_ALERT_STORE */
    uint64_t count, fresh;            /* see stg_alert_news */
    stg_alert_causes causes;          /* the most frequent first */
    uint64_t first_at, last_at, ended_at;
    bool has_cause;
    stg_alert_cause cause;
    uint64_t number, time; /* see stg_alert_detail */
    char text[STG_DIGEST_TEXT_MAX];
    bool is_gone; /* the target was removed, and has no lane any more */
    bool has_lane;
    stg_lane_state state;
    uint64_t waiting, parked, gate_until;
    bool is_replaying;
} stg_digest_item;

typedef struct stg_digest {
    char hub[STG_DIGEST_NAME_MAX];
    bool is_test; /* nothing happened; there is no item */
    uint64_t at;
    stg_digest_item items[STG_DIGEST_ITEMS]; /* the worst first */
    size_t item_count;
    uint64_t left[STG_ALERT_COUNT]; /* items without a place */
    uint64_t dead;                  /* dead letters since they were last told */
    struct {
        char target[STG_DIGEST_NAME_MAX];
        uint64_t count;
    } shares[STG_DIGEST_SHARES]; /* of all targets together; the most first */
    size_t share_count;
    uint64_t unkept; /* facts of targets that were not told apart */
    uint64_t merged; /* digests that are in this one, besides itself */
} stg_digest;

/* Whole characters of text, which may be NULL, as many as fit; what is none,
 * and a control byte, is '?'. */
void stg_digest_take_text(char *to, size_t room, const char *text);

/* The items, with those that have no place. */
uint64_t stg_digest_total(const stg_digest *d);

/* What is asked while a digest is made. */
typedef struct stg_digest_source {
    /* Whether its reader wants it. */
    bool (*wants)(void *ctx, stg_alert alert, uint32_t lane);
    void (*describe)(void *ctx, uint32_t lane, stg_alert_target *target);
    void *ctx;
    stg_ns now;      /* as the engine's */
    uint64_t utc;    /* the same instant */
    unsigned reader; /* a number: see engine.h */
    bool is_part; /* a digest of STG_DIGEST_ITEMS behind `from` that are wanted,
                     in the engine's order, and nothing is left out */
    size_t from;
} stg_digest_source;

/* Makes a digest of what the engine has gathered, as it is news to the reader. The
 * end of what the reader was told of is not asked for by wants(). False: nothing of it is wanted.
 * The caller fills in the name of the hub. */
bool stg_digest_make(stg_digest *d, const stg_alert_engine *e,
                     const stg_digest_source *source);

/* A digest to try a receiver with. */
void stg_digest_make_test(stg_digest *d, uint64_t utc);

/* Whether they are about the same alert of the same target; and what older, one
 * of these, has into the newer one. */
bool stg_digest_item_is_same(const stg_digest_item *a,
                             const stg_digest_item *b);
void stg_digest_merge_item(stg_digest_item *i, const stg_digest_item *older);

/* What `older` has into d, which is the later one: one item for each alert of
 * each target, the worst first. */
void stg_digest_merge(stg_digest *d, const stg_digest *older);

#endif
