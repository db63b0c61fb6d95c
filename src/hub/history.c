/* The history of a target: a ring of buckets, each the difference between what
 * the counters say and what they said ten seconds earlier.
 *
 * A round begins at each full ten seconds of the loop's clock, while anything
 * happens, and reads READS_MAX targets a turn. A bucket that nothing happened
 * in is not written: the next one that is clears those between. */
#include "hub/history.h"

#include <stdlib.h>
#include <string.h>

#include "hub/hub_internal.h"

enum {
    READS_MAX = 200,                        /* targets a turn: some 100 us */
    CAUSES = STG_FAULT_COUNT + STG_STATUSES /* statuses by their place */
};

static const stg_ns TURN_PAUSE = 10 * STG_MS;

struct stg_history {
    uint64_t last; /* the bucket that was written last */
    uint64_t delivered, failures;
    uint32_t causes[CAUSES]; /* modulo 2^32: only differences count */
    stg_latency latency;
    stg_history_bucket buckets[STG_HISTORY_BUCKETS];
};

/* -- a bucket ---------------------------------------------------------------- */

static uint64_t count_of(const stg_causes *c, unsigned cause)
{
    return cause < STG_FAULT_COUNT ? c->faults[cause]
                                   : c->statuses[cause - STG_FAULT_COUNT].count;
}

/* Keeps the two causes that were counted most since the last bucket. */
static void find_causes(stg_history *h, const stg_causes *c,
                        stg_history_bucket *b)
{
    for (unsigned i = STG_FAULT_NONE + 1; i < CAUSES; i++) {
        uint32_t count = (uint32_t)count_of(c, i);
        uint32_t more = count - h->causes[i];
        uint16_t kept = more < UINT16_MAX ? (uint16_t)more : UINT16_MAX;

        h->causes[i] = count;
        if (kept > b->counts[0]) {
            b->causes[1] = b->causes[0];
            b->counts[1] = b->counts[0];
            b->causes[0] = (uint8_t)i;
            b->counts[0] = kept;
        } else if (kept > b->counts[1]) {
            b->causes[1] = (uint8_t)i;
            b->counts[1] = kept;
        }
    }
}

static void find_times(stg_history *h, const stg_latency *now,
                       stg_history_bucket *b)
{
    stg_latency since;

    if (now == NULL)
        return;
    for (size_t i = 0; i < STG_LATENCY_BUCKETS; i++)
        since.counts[i] = now->counts[i] - h->latency.counts[i];
    h->latency = *now;
    b->p50 = (uint8_t)stg_latency_find(&since, 500);
    b->p99 = (uint8_t)stg_latency_find(&since, 990);
}

static stg_history_bucket *begin_bucket(stg_history *h, uint64_t number)
{
    uint64_t from = h->last + 1;

    if (number - h->last > STG_HISTORY_BUCKETS)
        from = number - STG_HISTORY_BUCKETS + 1;
    for (uint64_t i = from; i <= number; i++)
        h->buckets[i % STG_HISTORY_BUCKETS] =
            (stg_history_bucket){.delivered = 0};
    h->last = number;
    return &h->buckets[number % STG_HISTORY_BUCKETS];
}

static uint32_t cut(uint64_t count)
{
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* Whether the target has done anything since its last bucket. */
static bool read_target(stg_target *t, uint64_t number)
{
    const stg_counters *c = t->meter.counters;
    stg_history *h = t->history;
    stg_history_bucket *b;

    if (c == NULL)
        return false;
    if (h == NULL) {
        h = t->history = calloc(1, sizeof *h);
        if (h == NULL)
            return true;
        h->last = number - 1;
    }
    if (c->delivered == h->delivered && t->failures == h->failures)
        return false;
    b = begin_bucket(h, number);
    b->delivered = cut(c->delivered - h->delivered);
    b->failed = cut(t->failures - h->failures);
    h->delivered = c->delivered;
    h->failures = t->failures;
    find_causes(h, &c->ended, b);
    find_times(h, t->latency, b);
    return true;
}

stg_history_bucket stg_history_at(const stg_target *t, uint64_t number)
{
    const stg_history *h = t->history;

    if (h == NULL || number > h->last ||
        number + STG_HISTORY_BUCKETS <= h->last)
        return (stg_history_bucket){.delivered = 0};
    return h->buckets[number % STG_HISTORY_BUCKETS];
}

const char *stg_history_cause(const stg_target *t, uint8_t cause,
                              char text[STG_CAUSE_MAX], stg_category *category)
{
    stg_outcome o = {.fault = (stg_fault)cause};

    if (cause >= STG_FAULT_COUNT && t->meter.counters != NULL) {
        const stg_causes *c = &t->meter.counters->ended;

        o.fault = c->statuses[cause - STG_FAULT_COUNT].fault;
        o.code_kind = STG_CODE_STATUS;
        o.code = c->statuses[cause - STG_FAULT_COUNT].status;
    }
    *category = stg_fault_about(o.fault)->category;
    return stg_outcome_cause(&o, text);
}

/* -- the rounds -------------------------------------------------------------- */

static stg_ns next_round(stg_ns now)
{
    return (now / STG_HISTORY_STEP + 1) * STG_HISTORY_STEP;
}

static void note_state(const stg_hub *h, stg_target *t, stg_ns now)
{
    stg_lane_view v;

    if (stg_flow_view_lane(h->flow, t->lane, &v, now) == STG_OK)
        (void)stg_target_note_state(t, v.state, now);
}

/* A round reads all targets, some of them a turn of the loop, so that thousands of
 * targets delay no delivery. While nothing happens there is no next round. */
static void pass(stg_deadline *d)
{
    stg_recorder *r = STG_HEAP_HOLDER(d, stg_recorder, due);
    const stg_targets *all = &r->hub->targets;
    stg_ns now = stg_deadlines_now();

    if (stg_hub_is_closing(r->hub) || r->hub->is_broken)
        return;
    if (r->at == 0) {
        r->bucket = now / STG_HISTORY_STEP - 1;
        r->is_busy = false;
    }
    for (size_t i = 0; i < READS_MAX && r->at < all->count; i++, r->at++) {
        note_state(r->hub, all->all[r->at], now);
        r->is_busy = read_target(all->all[r->at], r->bucket) || r->is_busy;
    }
    if (r->at < all->count) {
        stg_deadline_set(&r->hub->deadlines, d, stg_ns_add(now, TURN_PAUSE));
        return;
    }
    r->at = 0;
    if (r->is_busy)
        stg_deadline_set(&r->hub->deadlines, d, next_round(now));
}

void stg_recorder_note(stg_recorder *r, stg_ns now)
{
    if (stg_deadline_at(&r->due) == STG_NEVER)
        stg_deadline_set(&r->hub->deadlines, &r->due, next_round(now));
}

uint64_t stg_recorder_last(const stg_recorder *r, stg_ns now)
{
    // While a round is under way, or late, some targets lack its bucket.
    return r->at > 0 || stg_deadline_at(&r->due) <= now
               ? now / STG_HISTORY_STEP - 2
               : now / STG_HISTORY_STEP - 1;
}

void stg_recorder_open(stg_recorder *r, stg_hub *hub)
{
    r->hub = hub;
    r->due.passed = pass;
}

void stg_recorder_close(stg_recorder *r)
{
    stg_deadline_clear(&r->hub->deadlines, &r->due);
}
