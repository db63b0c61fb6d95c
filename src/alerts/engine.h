/* engine.h - when people are told, and about what.
 *
 * Facts go in (so many dead letters, a breaker opened, it closed), digests come
 * out: what is to be told now, in one message. An engine is pure: no clock, no
 * I/O; now is monotonic, and the same facts give the same digests. Each (alert,
 * lane) is one key:
 *
 *     a key fires      at once when it can be told, that is with what else comes
 *                      within `group`, `pause` after the last digest at the
 *                      soonest
 *     fires again      is counted, and told `interval` after the last time
 *     goes on          is told again after `repeat-interval`
 *     is over          when nothing came for `resolve-after`; told once, if the
 *                      beginning was told
 *
 * So in any interval a key is in two digests at most: once as it fires, once as
 * it is over. What began and ended between two digests is told as such, in one.
 *
 * Dead letters fire at a threshold, of their target and of all targets
 * together, and are over at half of it. What comes while a target's own key
 * fires is no longer counted for all together, so that one bad target does not
 * speak twice.
 *
 * Facts that cost: a dead letter some 50 ns. Memory: up to STG_ALERT_KEYS_MAX
 * keys, made as they are needed; what has no key is counted. All on one
 * thread. */
#ifndef STAGGER_ALERTS_ENGINE_H
#define STAGGER_ALERTS_ENGINE_H

#include "alerts/options.h"
#include "alerts/tally.h"

typedef struct stg_alert_engine stg_alert_engine;

/* In place of a lane, of STG_ALERT_DEAD: all targets together. */
#define STG_ALERT_NO_LANE UINT32_MAX

/* In place of a lane, of STG_ALERT_STORE: what is wrong with it. */
typedef enum stg_alert_trouble {
    STG_TROUBLE_FULL,     /* rows do not fit */
    STG_TROUBLE_LETTERS,  /* the file of dead letters cannot be written */
    STG_TROUBLE_BUSY,     /* another process does not let us write to it */
    STG_TROUBLE_AWAY,     /* the database that is the store does not answer */
    STG_TROUBLE_LOG,      /* the source cannot be read, or not all of it */
    STG_TROUBLE_HALF,     /* dead letters have half of the room they may have */
    STG_TROUBLE_NEARLY,   /* nine tenths of it */
    STG_TROUBLE_UNCOPIED, /* some go that the copy has not got */
    STG_TROUBLE_UPLINK,   /* no connection can be made: see flow/lane.h */
    STG_TROUBLE_PROXY,    /* one of the hub's own is away: likewise */
    STG_TROUBLE_HELD,     /* a read of another process holds back its WAL */
    STG_TROUBLE_BROKEN,   /* the hub ends */
} stg_alert_trouble;
#define STG_ALERT_LANE_OF(trouble) (STG_ALERT_NO_LANE - 1 - (uint32_t)(trouble))

/* A target's own. */
static inline bool stg_alert_is_lane(uint32_t lane)
{
    return lane < STG_ALERT_LANE_OF(STG_TROUBLE_BROKEN);
}

enum { STG_ALERT_KEYS_MAX = 32768 };

/* Readers are numbers below STG_ALERT_READERS_MAX, and a key knows which readers
 * were told that it began. So a reader that comes later
 * can be told of what fires already, and of an end only readers hear that were
 * told of the beginning. */
enum { STG_ALERT_READERS_MAX = STG_ALERT_RECEIVERS_MAX };

/* Copies the plain values of o, which has been checked; alerts and receivers of
 * o are not looked at: all alerts are known. NULL: out of memory. */
stg_alert_engine *stg_alert_engine_new(const stg_alert_options *o);
void stg_alert_engine_free(stg_alert_engine *e);

/* Other options from now on. What is known is kept; counts of a window only if
 * that stays as it was. */
void stg_alert_engine_change(stg_alert_engine *e, const stg_alert_options *o,
                             stg_ns now);

/* -- facts ----------------------------------------------------------------- */

/* So many dead letters of a lane (below 1000000), of this cause. */
void stg_alert_engine_dead(stg_alert_engine *e, uint32_t lane,
                           stg_alert_cause cause, uint64_t count, stg_ns now);

/* What is said of a condition besides. */
typedef struct stg_alert_detail {
    bool has_cause;
    stg_alert_cause cause;
    uint64_t number;  /* LAG: messages. RETENTION: percent used */
    uint64_t time;    /* LAG: ns that the oldest waits. CERTIFICATE: its end, ns
                         since 1970 */
    const char *text; /* STORE, TOKEN: what is wrong; copied, NULL: nothing */
} stg_alert_detail;

/* A condition holds: any alert but STG_ALERT_DEAD. Said again it is no news,
 * unless number has doubled, or text is another. */
void stg_alert_engine_raise(stg_alert_engine *e, stg_alert alert, uint32_t lane,
                            const stg_alert_detail *detail, stg_ns now);

/* It does not hold any more. */
void stg_alert_engine_clear(stg_alert_engine *e, stg_alert alert, uint32_t lane,
                            stg_ns now);

/* Whether it holds, as far as was said. */
bool stg_alert_engine_is_raised(const stg_alert_engine *e, stg_alert alert,
                                uint32_t lane);

/* The dead letters of a change; false: it has none. Messages that were cancelled
 * alert nobody. */
bool stg_alert_engine_stored(stg_alert_engine *e, const stg_change *c,
                             stg_ns now);

/* A lane is so many messages behind, whose oldest has waited for so long: raised at
 * either limit and cleared at half of both, so that a lag near the limit does not
 * begin and end by turns. */
void stg_alert_engine_lag(stg_alert_engine *e, const stg_alert_options *o,
                          uint32_t lane, uint64_t messages, stg_ns age,
                          stg_ns now);

/* The target has left the settings: its alerts are over, as if nothing held any
 * more. Cheap where the lane has no key. */
void stg_alert_engine_leave(stg_alert_engine *e, uint32_t lane, stg_ns now);

/* The lane is gone, and its number may be another target's. The end of what was
 * told is told under the name, which is copied; the rest is dropped. */
void stg_alert_engine_forget(stg_alert_engine *e, uint32_t lane,
                             const char *name, stg_ns now);

/* Whether an end is still to be told of a target that is gone; and such alerts
 * go on in the lane of a new target of that name. */
bool stg_alert_engine_has_gone(const stg_alert_engine *e);
void stg_alert_engine_return(stg_alert_engine *e, uint32_t lane,
                             const char *name, stg_ns now);

/* -- what is to be told ---------------------------------------------------- */

/* When there may be something; STG_NEVER. */
stg_ns stg_alert_engine_wake_at(const stg_alert_engine *e);

typedef enum stg_alert_phase {
    STG_ALERT_BEGAN,
    STG_ALERT_MORE,  /* told before, and there is more of it */
    STG_ALERT_STILL, /* told before, and it goes on */
    STG_ALERT_WAS,   /* not told before, and it is over */
    STG_ALERT_ENDED, /* told before, and it is over */
} stg_alert_phase;

/* One key of a digest. */
typedef struct stg_alert_news {
    stg_alert alert;
    uint32_t lane;
    const char *name; /* the target's that is gone, lent; NULL: ask its lane */
    stg_alert_phase phase;
    uint64_t count; /* dead letters, or times that it fired, since it began */
    uint64_t fresh; /* of these, since it was last told */
    stg_alert_causes causes;
    stg_ns first_at, last_at; /* of what was counted */
    stg_ns ended_at;          /* WAS, ENDED */
    stg_alert_detail detail;  /* its text is lent */
} stg_alert_news;

/* Takes together what is to be told. False: nothing now. is_last: there is no
 * later; what waits for others to come with it waits no longer. */
bool stg_alert_engine_gather(stg_alert_engine *e, bool is_last, stg_ns now);

/* Takes together what fires and was told, but not to this reader. False:
 * nothing. It ends with stg_alert_engine_release(). */
bool stg_alert_engine_gather_unheard(stg_alert_engine *e, unsigned reader);
void stg_alert_engine_release(stg_alert_engine *e);

/* After a true answer: each of it as it is news to the reader, in no promised
 * order. */
typedef void stg_alert_news_fn(void *ctx, const stg_alert_news *news);
void stg_alert_engine_each(const stg_alert_engine *e, unsigned reader,
                           stg_alert_news_fn *each, void *ctx, stg_ns now);

/* Whether a reader wants to be told of an alert of a lane. */
typedef bool stg_alert_wants_fn(void *ctx, stg_alert alert, uint32_t lane);

/* The reader was told of what it wants of that. */
void stg_alert_engine_hear(stg_alert_engine *e, unsigned reader,
                           stg_alert_wants_fn *wants, void *ctx);

/* The reader that takes a number, as bits of the readers before. */
typedef struct stg_alert_successor {
    uint32_t told;  /* readers who were told what the reader was told */
    uint32_t heirs; /* the reader is told of the ends that they wait for */
} stg_alert_successor;

/* Other readers: number i is from[i] of them; numbers from `count` on were told
 * nothing. */
void stg_alert_engine_change_readers(
    stg_alert_engine *e, const stg_alert_successor from[STG_ALERT_READERS_MAX],
    size_t count);

/* No digest is to be sent before: the last one and `min-interval`; 0. */
stg_ns stg_alert_engine_free_at(const stg_alert_engine *e);

/* The lanes with the most dead letters within the window that do not fire by
 * themselves; up to `room`, the most first. Returns how many. */
typedef struct stg_alert_share {
    uint32_t lane;
    uint64_t count;
} stg_alert_share;
size_t stg_alert_engine_shares(const stg_alert_engine *e,
                               stg_alert_share *shares, size_t room);

/* It has been told. */
void stg_alert_engine_settle(stg_alert_engine *e, stg_ns now);

/* -- a look ---------------------------------------------------------------- */

typedef struct stg_alert_engine_view {
    uint32_t keys;
    uint32_t firing[STG_ALERT_COUNT]; /* keys that hold now */
    uint64_t unkept; /* facts that had no key, since the start */
} stg_alert_engine_view;

void stg_alert_engine_look(const stg_alert_engine *e,
                           stg_alert_engine_view *view);

#endif
