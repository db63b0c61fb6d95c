/* A sliding window of counts, and a short list of causes.
 *
 * The window has STG_TALLY_SLICES slices in a ring with room for one more: the
 * newest is filling while the oldest may still count. So nothing that came
 * within the window is missed, and the total may hold up to one slice too much.
 *
 * Slices saturate at UINT32_MAX, and the total is always their sum: it cannot
 * wrap. */
#include "alerts/tally.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "store/cause.h"

enum { ROOM = STG_TALLY_SLICES + 1 };

static uint64_t slice_at(stg_ns window, stg_ns now)
{
    return now / (window / STG_TALLY_SLICES);
}

/* The number of the oldest slice that still counts; unless all have. */
static uint64_t oldest(const stg_tally *t)
{
    return t->latest < STG_TALLY_SLICES ? 0 : t->latest - STG_TALLY_SLICES;
}

/* Moves on to the slice of now, and empties those that are passed on the way.
 * After a pause of a whole window all are emptied at once, without a loop over
 * them. */
uint64_t stg_tally_pass(stg_tally *t, stg_ns window, stg_ns now)
{
    uint64_t number = slice_at(window, now), before = t->total;

    if (number <= t->latest)
        return 0;
    if (number - t->latest >= ROOM || before == 0) {
        memset(t->slices, 0, sizeof t->slices);
        t->total = 0;
        t->latest = number;
    }
    while (t->latest < number) {
        uint32_t *slice = &t->slices[++t->latest % ROOM];

        t->total -= *slice;
        *slice = 0;
    }
    return before - t->total;
}

void stg_tally_add(stg_tally *t, stg_ns window, uint64_t count, stg_ns now)
{
    uint32_t *slice, room;

    (void)stg_tally_pass(t, window, now);
    slice = &t->slices[t->latest % ROOM];
    room = UINT32_MAX - *slice;
    if (count > room)
        count = room;
    *slice += (uint32_t)count;
    t->total += count;
}

/* Of the newest first: what is taken came last. */
void stg_tally_take(stg_tally *t, uint64_t count)
{
    for (uint64_t n = t->latest; count > 0 && t->total > 0; n--) {
        uint32_t *slice = &t->slices[n % ROOM];
        uint64_t taken = count < *slice ? count : *slice;

        *slice -= (uint32_t)taken;
        t->total -= taken;
        count -= taken;
        if (n == oldest(t))
            return;
    }
}

/* The first slice that has some; the latest if none has. */
static uint64_t first(const stg_tally *t)
{
    uint64_t n = oldest(t);

    while (n < t->latest && t->slices[n % ROOM] == 0)
        n++;
    return n;
}

/* The slice number n has left the window when slice n + ROOM begins. */
stg_ns stg_tally_next(const stg_tally *t, stg_ns window)
{
    if (t->total == 0)
        return STG_NEVER;
    return (first(t) + ROOM) * (window / STG_TALLY_SLICES);
}

stg_ns stg_tally_since(const stg_tally *t, stg_ns window)
{
    return first(t) * (window / STG_TALLY_SLICES);
}

/* -- causes ---------------------------------------------------------------- */

stg_alert_cause stg_alert_cause_of(const stg_outcome *o)
{
    return (stg_alert_cause){.fault = (uint16_t)o->fault,
                             .code_kind = (uint16_t)o->code_kind,
                             .code = o->code};
}

/* Letters that were never tried have no fault: code is then a
 * stg_shed_cause. */
enum { NO_FAULT = UINT16_MAX }; /* code: stg_shed_cause */

stg_alert_cause stg_alert_cause_of_shed(const stg_change *c)
{
    if (c->failure != NULL)
        return stg_alert_cause_of(&c->failure->outcome);
    return (stg_alert_cause){.fault = NO_FAULT,
                             .code = (uint32_t)stg_shed_cause_of(c)};
}

const char *stg_alert_cause_text(stg_alert_cause c, char text[STG_CAUSE_MAX])
{
    stg_outcome o = {.fault = (stg_fault)c.fault,
                     .code_kind = (stg_code_kind)c.code_kind,
                     .code = c.code};

    if (c.fault == NO_FAULT) {
        snprintf(text, STG_CAUSE_MAX, "%s",
                 stg_shed_cause_name((stg_shed_cause)c.code));
        return text;
    }
    return stg_outcome_cause(&o, text);
}

static bool is_same(stg_alert_cause a, stg_alert_cause b)
{
    return a.fault == b.fault && a.code_kind == b.code_kind && a.code == b.code;
}

void stg_alert_causes_add(stg_alert_causes *c, stg_alert_cause cause,
                          uint64_t count)
{
    for (size_t i = 0; i < STG_ALERT_CAUSES_MAX; i++) {
        if (c->list[i].count == 0)
            c->list[i].cause = cause;
        if (is_same(c->list[i].cause, cause)) {
            c->list[i].count += count;
            return;
        }
    }
    c->others += count;
}

/* The place of the most frequent one; STG_ALERT_CAUSES_MAX: of the others. */
static size_t most(const stg_alert_causes *c)
{
    size_t found = STG_ALERT_CAUSES_MAX;
    uint64_t count = c->others;

    for (size_t i = 0; i < STG_ALERT_CAUSES_MAX; i++)
        if (c->list[i].count > count) {
            found = i;
            count = c->list[i].count;
        }
    return found;
}

/* The list ends at the first count of 0, so that no gap may be left. */
static void drop(stg_alert_causes *c, size_t i)
{
    for (; i + 1 < STG_ALERT_CAUSES_MAX; i++)
        c->list[i] = c->list[i + 1];
    c->list[i].count = 0;
}

/* Nobody knows of which cause they were: the most frequent one is the best
 * guess. */
void stg_alert_causes_take(stg_alert_causes *c, uint64_t count)
{
    while (count > 0) {
        size_t i = most(c);
        uint64_t *from =
            i < STG_ALERT_CAUSES_MAX ? &c->list[i].count : &c->others;
        uint64_t taken = count < *from ? count : *from;

        if (taken == 0)
            return;
        *from -= taken;
        count -= taken;
        if (*from == 0 && i < STG_ALERT_CAUSES_MAX)
            drop(c, i);
    }
}

static uint64_t remove_one(stg_alert_causes *c, stg_alert_cause cause,
                           uint64_t count)
{
    for (size_t i = 0; i < STG_ALERT_CAUSES_MAX && c->list[i].count > 0; i++) {
        uint64_t *from = &c->list[i].count;
        uint64_t taken = count < *from ? count : *from;

        if (!is_same(c->list[i].cause, cause))
            continue;
        *from -= taken;
        if (*from == 0)
            drop(c, i);
        return count - taken;
    }
    return count;
}

void stg_alert_causes_remove(stg_alert_causes *a, const stg_alert_causes *b)
{
    uint64_t rest = b->others;

    for (size_t i = 0; i < STG_ALERT_CAUSES_MAX && b->list[i].count > 0; i++)
        rest += remove_one(a, b->list[i].cause, b->list[i].count);
    stg_alert_causes_take(a, rest);
}

void stg_alert_causes_merge(stg_alert_causes *a, const stg_alert_causes *b)
{
    for (size_t i = 0; i < STG_ALERT_CAUSES_MAX && b->list[i].count > 0; i++)
        stg_alert_causes_add(a, b->list[i].cause, b->list[i].count);
    a->others += b->others;
}

void stg_alert_causes_sort(stg_alert_causes *c)
{
    for (size_t i = 1; i < STG_ALERT_CAUSES_MAX; i++)
        for (size_t j = i; j > 0; j--) {
            stg_alert_causes copy = *c;

            if (c->list[j].count <= c->list[j - 1].count)
                break;
            c->list[j] = copy.list[j - 1];
            c->list[j - 1] = copy.list[j];
        }
}
