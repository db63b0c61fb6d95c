/* uv.h - the retry on a libuv loop: any number at once, none of them blocking.
 *
 * A library of its own: link stagger-uv. A stg_uv is the caller's, stays where
 * it is until done() and is the only memory an operation takes. All calls are
 * made on the loop's thread; start() and done() are called from the loop, never
 * from inside stg_uv_retry().
 *
 *     static void start(stg_uv *op, uint32_t attempt)
 *     {
 *         send_request(op->data, attempt, ...);  // later: stg_uv_report()
 *     }
 *     static void done(stg_uv *op, const stg_report *report) { ... }
 *
 *     op->data = request;
 *     stg_uv_retry(loop, op, &policy, NULL, start, done);
 *
 * With hedges in the policy (hedge=100ms, see hedge.h) and op->hedge set, several
 * attempts are under way at a time. Each has a number of its own: what start()
 * and hedge() begin is kept by number, reported by number, and abandon() is
 * called with the number of each one that has lost.
 *
 * With an env the operation runs on virtual time: at each turn of the loop the
 * clock is moved (env.sleep) to the earliest instant that an operation with
 * that env on that loop waits for, an attempt's timeout included. Those that are
 * due at one instant go on in the order in which they began to wait for it; on
 * real time no order is promised. done() has libuv's order of closing handles. A
 * turn costs
 * as much as the operations that are due (each the logarithm of all), and those
 * with a cancel; one in which operations begin costs a look at all handles. */
#ifndef STAGGER_UV_H
#define STAGGER_UV_H

#include <uv.h>

#include <stagger/operation.h>

STG_DECLS_BEGIN

typedef struct stg_uv stg_uv;

/* Starts attempt number `attempt`, from 1. It ends with stg_uv_report(), which
 * may be called before start() returns. */
typedef void stg_uv_start_fn(stg_uv *op, uint32_t attempt);

/* The end. The handle is closed: it may be freed or used again. */
typedef void stg_uv_done_fn(stg_uv *op, const stg_report *report);

/* The attempt is given up (its time is over, another one of its round has won,
 * or the operation is cancelled): stop what start() or hedge() began. What it
 * reports from now on is ignored. */
typedef void stg_uv_abandon_fn(stg_uv *op, uint32_t attempt);

struct stg_uv {
    void *data;                 /* the caller's, as is */
    stg_uv_abandon_fn *abandon; /* the caller's, NULL: nothing to stop */
    stg_uv_start_fn *hedge; /* the caller's, NULL: no hedges. Starts a further
                                   attempt beside those under way: often the
                                   function that is start, too. Read only
                                   where the policy has hedges */
    /* The rest is private, but op.retry may be a parent (with.parent). */
    stg_operation op;
    stg_report report;
    stg_uv_start_fn *start;
    stg_uv_done_fn *done;
    union {
        uv_handle_t any;
        uv_timer_t timer; /* on real time */
        uv_idle_t idle;   /* on virtual time */
    } handle;
    stg_ns due_at; /* the end of the wait, or of the attempt's time */
    uint32_t attempt;
    int phase;
    struct {
        stg_ns due_at; /* the end of its time */
        uint32_t number;
    } attempts[1 + STG_HEDGES_MAX]; /* of the round; number 0: it has ended */
    /* On virtual time: the operation that keeps the clock of all that share
     * it, and the place among them. */
    struct stg_uv *keeper;
    struct {
        uint64_t key;
        void *child, *next, *prev;
    } place;
    uint64_t number;
    struct stg_uv *next_looked_at, *prev_looked_at;
    bool is_woken;
    struct {
        void *waiting, *woken;
        struct stg_uv *looked_at;
        uint64_t numbers, ending;
        bool is_new;
    } clock; /* of the keeper */
};

/* Begins an operation. data and abandon are set by the caller beforehand; all
 * else is written here. with may be NULL, and is copied; its cancel is looked
 * at every 50 ms, for it may be set from anywhere, and is as good as
 * stg_uv_cancel(). Returns
 * STG_INVALID, and calls nothing, for what cannot be used; op->report then has
 * the reason. */
STG_API stg_status stg_uv_retry(uv_loop_t *loop, stg_uv *op,
                                const stg_policy *policy, const stg_with *with,
                                stg_uv_start_fn *start, stg_uv_done_fn *done);

/* Reports how attempt number `attempt` ended. Reports of attempts that are over
 * are ignored, so a late answer does no harm as long as op lives. (A handle that
 * is used again counts from 1 again: stop what is under way in abandon().) */
STG_API void stg_uv_report(stg_uv *op, uint32_t attempt, stg_outcome outcome);

/* Ends the operation as cancelled; done() is called by the loop. After the end
 * it does nothing. */
STG_API void stg_uv_cancel(stg_uv *op);

STG_DECLS_END

#endif
