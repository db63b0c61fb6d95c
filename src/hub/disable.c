/* `disable-after`: a target whose attempts have only failed for so long is paused,
 * until somebody resumes it.
 *
 * Targets are looked at every ten seconds, while attempts end: what each has done since
 * the last look goes to the store, which knows since when it only fails, over
 * restarts and of all hubs that share it. A few failures are not enough, however
 * far apart: a target that has little to do is not told from one that is gone. */
#include <stdlib.h>

#include "host/wall.h"
#include "hub/hub_internal.h"
#include "store/store.h"

enum { FAILURES_MIN = 10 };

static const stg_ns pause = 10 * STG_S;

void stg_disable_paused(stg_hub *h, stg_target *t)
{
    t->failing.in_row = 0;
    stg_watch_paused(&h->watch, t, stg_deadlines_now());
}

/* Without room in the store it is paused until a restart. */
static void ignore(void *ctx, bool is_full)
{
    (void)ctx;
    (void)is_full;
}

/* As a pause of its own kind, which `stagger resume` ends, and nothing else. */
static void disable(stg_hub *h, stg_target *t, stg_ns since)
{
    char text[STG_UTC_TEXT_MAX], cause[STG_CAUSE_MAX];

    stg_utc_text(since, text);
    STG_LOG(h->log, STG_LOG_ERROR, "target-disabled",
            stg_field_text("target", t->name), stg_field_text("since", text),
            stg_field_text("cause", stg_outcome_cause(&t->last, cause)),
            stg_field_text("next", "mend it, then: stagger resume"));
    stg_target_control_pause(h, t, STG_PAUSE_DISABLED, ignore, NULL);
    stg_watch_tell_owner(&h->watch, t, stg_deadlines_now());
    if (h->calls_part != NULL)
        h->calls->note(h->calls_part, "disable", "disable-after", true,
                       t->name);
}

static bool may_be_disabled(const stg_target *t)
{
    return t->settings != NULL &&
           t->settings->common->disable_after != STG_NEVER &&
           t->pause == STG_PAUSE_NONE;
}

static void noted(void *ctx, const stg_lane_note *notes, size_t count)
{
    stg_hub *h = ctx;
    for (size_t i = 0; i < count && !stg_hub_is_stopping(h); i++) {
        const stg_lane_note *n = &notes[i];
        stg_target *t = stg_targets_at(&h->targets, n->lane);

        if (t != NULL && may_be_disabled(t) && n->failing_since > 0 &&
            t->failing.in_row >= FAILURES_MIN &&
            stg_ns_sub(n->now, n->failing_since) >=
                t->settings->common->disable_after)
            disable(h, t, n->failing_since);
    }
}

/* What a target has done since the last look. False: nothing. */
static bool look_at(stg_target *t, stg_lane_note *n)
{
    stg_failing *f = &t->failing;
    uint64_t all = t->attempts - t->ours, failed = t->failures - t->ours;
    uint64_t attempts = all - f->attempts, failures = failed - f->failures;

    f->attempts = all;
    f->failures = failed;
    f->in_row = attempts > failures ? 0 : f->in_row + failures;
    *n = (stg_lane_note){.lane = t->lane, .has_succeeded = attempts > failures};
    return attempts > 0;
}

/* One transaction for all that have something to say. The store answers with what all
 * hubs have seen. */
static void look(stg_deadline *d)
{
    stg_hub *h = STG_HEAP_HOLDER(d, stg_hub, failing);
    stg_lane_note *notes = malloc((h->targets.count + 1) * sizeof *notes);
    size_t count = 0;

    for (size_t i = 0; i < h->targets.count && notes != NULL; i++)
        if (may_be_disabled(h->targets.all[i]))
            count += look_at(h->targets.all[i], &notes[count]);
    if (count > 0 && !stg_hub_is_stopping(h))
        stg_store_note_lanes(h->store, notes, count, noted, h);
    else
        free(notes);
}

void stg_disable_note(stg_hub *h, stg_ns now)
{
    if (stg_deadline_at(&h->failing) == STG_NEVER)
        stg_deadline_set(&h->deadlines, &h->failing, stg_ns_add(now, pause));
}

void stg_disable_open(stg_hub *h)
{
    h->failing.passed = look;
    for (size_t i = 0; i < h->targets.count; i++)
        if (h->targets.all[i]->pause == STG_PAUSE_DISABLED)
            stg_disable_paused(h, h->targets.all[i]);
}
