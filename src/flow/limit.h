/* limit.h - how many attempts a lane has under way at once: as many as its
 * target turns out to bear.
 *
 * It starts at 1 and doubles each round trip (one more for each success), then
 * grows by one in two round trips. It falls when attempts tell that there are
 * too many: they end in a fault that says so, or succeed late. One of these
 * tells nothing, for targets fail by chance, too. So they are counted by
 * rounds, of as many ends as attempts are allowed at once, 64 at least, and a
 * round is bad when more of them are in it than chance explains: three standard
 * deviations and one more than at the share that is usual at fewer attempts (3
 * % at least, a half at most).
 *
 * A success is late if it took an eighth, and 5 ms, longer than is usual at
 * fewer attempts. Late rounds count when they have gone on for 100 ms: what
 * stops for a moment, on either side, delays all that are under way.
 *
 * After a bad round the limit falls to the share of the slots' time that was of
 * use: in successes, or of their time that which is usual. It falls by a fifth
 * at least and a half at most. If the next rounds are as bad it goes on
 * falling. But if it has fallen by a third and that has not helped, the limit
 * was not the cause: what was found is usual from now on, and the limit is what
 * it was before.
 *
 * What is usual is learned from the first 64 successes, for which 16 attempts
 * at once are enough, and from later rounds; what rises while the limit grows
 * again after a fall does not count for 128 rounds. Every 256 rounds two thirds
 * of the limit are tried for one round: if that is better, then what was taken
 * for chance was load.
 *
 * Sources. Slow start, and one step down for all that are under way together:
 * Jacobson, "Congestion avoidance and control", SIGCOMM 1988. Down by the share
 * of attempts that tell of congestion, judged by rounds: Alizadeh and others,
 * "Data Center TCP", SIGCOMM 2010, and RFC 8257. Down by the ratio of the usual
 * time to the time found, to a half at most: Gradient2Limit of Netflix's
 * concurrency-limits. What is usual is measured at few attempts, now and then
 * again: the gradient controller of Envoy's adaptive concurrency filter. Back
 * to what it was before a fall without cause: RFC 4015 (Eifel). Growth by a
 * share above 64: Kelly, "Scalable TCP", CCR 2003. */
#ifndef STAGGER_FLOW_LIMIT_H
#define STAGGER_FLOW_LIMIT_H

#include <stdbool.h>

#include <stagger/ns.h>
#include <stagger/outcome.h>

/* The target's load, as the end of an attempt shows it. */
typedef enum stg_load {
    STG_LOAD_SERVED,   /* a success */
    STG_LOAD_TOO_MUCH, /* a fault that asks for fewer attempts at once */
    STG_LOAD_OTHER,    /* another fault */
} stg_load;

/* Shares are in 65536ths, times in units of 1024 ns. */
typedef struct stg_limit {
    uint32_t value;     /* attempts at once, 1 to max */
    uint32_t max;       /* 1 to 10000 */
    uint32_t threshold; /* below it: slow start */
    uint32_t credit;    /* successes since it last grew by one */

    /* The round: how many attempts have ended, and their time. */
    uint32_t ended, served, faults, late;
    uint64_t served_time, fault_time;
    stg_ns counted_at; /* what ends before does not count */
    stg_ns set_at;     /* nor faults of attempts begun before */
    stg_ns late_at;    /* since when rounds are late; 0: the last one was not */

    /* The usual values. */
    uint32_t usual_faults; /* share of attempts */
    uint32_t usual_late;   /* share of successes; 0: not known */
    uint64_t usual_time;   /* time of a success; 0: not known */
    uint32_t learned;      /* rounds that were counted for it */
    uint32_t quiet;        /* rounds since it last fell */

    /* Before it fell, and for a trial. */
    uint32_t old_value; /* 0: the last round was good */
    uint32_t old_faults;
    uint64_t old_time;
    bool is_trial;
} stg_limit;

/* What the end of an attempt tells. counts_connects: a breaker does, too, and so
 * sees to a target that is away. */
stg_load stg_load_of(const stg_outcome *o, bool counts_connects);

/* The slow start of a lane that is new, or whose target has come back. */
void stg_limit_start(stg_limit *l, uint32_t max, stg_ns now);

/* An attempt that began at attempt_at has ended. is_used: as many were under way as
 * the limit allows when the last one began; else a success is no reason to allow
 * more. */
void stg_limit_end(stg_limit *l, stg_load load, bool is_used, stg_ns attempt_at,
                   stg_ns now);

#endif
