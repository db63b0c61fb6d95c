/* key.h - one alert of one lane: what is known of it, and when it is to be
 * told. Private to the engine.
 *
 *            raise / threshold                told
 *     quiet --------------------> live, news ------> live, told
 *       ^                            |  ^              |    |
 *       |   was and is over          |  +--------------+    | is over
 *       +----------------------------+     more of it       |
 *       +---------------------------------------------------+
 *
 * A quiet key is kept while its window has something, and for an interval after
 * it was told. */
#ifndef STAGGER_ALERTS_KEY_H
#define STAGGER_ALERTS_KEY_H

#include "alerts/engine.h"
#include "alerts/tally.h"
#include "base/heap.h"

typedef struct stg_alert_key stg_alert_key;

struct stg_alert_key {
    stg_node due;         /* when it is to be told */
    stg_node look;        /* when its window, or the calm, is to be looked at */
    stg_alert_key *next;  /* of the same lane */
    stg_alert_key *batch; /* next of those that are told now */
    uint32_t lane;
    uint8_t alert;
    bool is_on;         /* it holds now */
    bool is_live;       /* it has fired, and is not over */
    bool is_told;       /* and that has been told */
    bool has_news;      /* that have not been told, */
    bool has_been_told; /* ever, at: */
    stg_ns told_at;
    stg_ns news_at;           /* the first that were not told */
    stg_ns first_at, last_at; /* of what was counted since it fired */
    stg_ns off_at;            /* since when it does not hold */
    uint64_t count, fresh;
    stg_alert_causes causes;
    uint64_t number, number_told, time;
    bool has_cause;
    stg_alert_cause cause;
    char *text;     /* NULL: none */
    uint32_t heard; /* bits of the readers that were told that it began */
    uint32_t owed;  /* bits of the readers that are to be told of its end */
    char *name;     /* the target's name, the key's own copy, once the lane is
                          gone; NULL: the lane has its target */
    stg_tally tally[]; /* one, of dead letters */
};

/* The threshold of dead letters that counts for a key. */
typedef struct stg_alert_rules {
    const stg_alert_options *o;
    const stg_alert_threshold *threshold; /* STG_ALERT_DEAD */
} stg_alert_rules;

/* NULL: there is no memory. In no heap. */
stg_alert_key *stg_alert_key_new(stg_alert alert, uint32_t lane);
void stg_alert_key_free(stg_alert_key *k);

/* So many dead letters more. True: with these it fires. */
bool stg_alert_key_count(stg_alert_key *k, const stg_alert_rules *r,
                         stg_alert_cause cause, uint64_t count, stg_ns now);

/* So many of these causes are told of elsewhere. If that was not told yet, and
 * they made it fire, it does not. */
void stg_alert_key_take(stg_alert_key *k, const stg_alert_rules *r,
                        const stg_alert_causes *causes, uint64_t count);

void stg_alert_key_raise(stg_alert_key *k, const stg_alert_detail *detail,
                         stg_ns now);
void stg_alert_key_clear(stg_alert_key *k, stg_ns now);

/* Fires where a lower threshold has made the letters of the window too many.
 * True: it fires now. */
bool stg_alert_key_judge(stg_alert_key *k, const stg_alert_rules *r,
                         stg_ns now);

/* The target has left: nothing holds any more, and its window is empty. */
void stg_alert_key_leave(stg_alert_key *k, stg_ns now);

/* What time does. */
void stg_alert_key_look(stg_alert_key *k, const stg_alert_rules *r, stg_ns now);

/* When it is to be told, as things are; STG_NEVER. */
stg_ns stg_alert_key_due_at(const stg_alert_key *k, const stg_alert_options *o);

/* When it is to be looked at; STG_NEVER: nothing of it changes by time. */
stg_ns stg_alert_key_look_at(const stg_alert_key *k, const stg_alert_rules *r);

/* Nothing of it is worth to be kept. */
bool stg_alert_key_is_idle(const stg_alert_key *k, const stg_alert_options *o,
                           stg_ns now);

stg_alert_phase stg_alert_key_phase(const stg_alert_key *k,
                                    const stg_alert_options *o, stg_ns now);

/* It has been told, in its phase. */
void stg_alert_key_settle(stg_alert_key *k, const stg_alert_options *o,
                          stg_ns now);

/* -- all keys ----------------------------------------------------------------- */

/* Private to engine.c, which owns each key and says what the lists are for, and to
 * readers.c, which goes through them. */
struct stg_alert_engine {
    stg_alert_options o;
    stg_alert_key *all;      /* dead letters of all targets together */
    stg_alert_key *others;   /* other keys of no lane */
    stg_alert_key *gone;     /* keys of targets that are gone, by their names */
    stg_alert_key **by_lane; /* the first of each */
    size_t lanes;
    uint32_t keys;
    uint64_t unkept;
    stg_heap due, looks;
    stg_alert_key *batch; /* keys that are told now */
    bool has_told;
    stg_ns told_at; /* the last digest */
};

#endif
