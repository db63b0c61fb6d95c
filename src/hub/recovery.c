/* `replay: on-recovery`: when a target takes messages again, what an outage has made
 * dead letters of is sent again, once.
 *
 * A target is due from the start of the hub on, and each time its circuit opens. It
 * has recovered when its circuit closes; or, where that never opened, with the
 * first success: a hub that was restarted in an outage does not spend the letters
 * on a target that is still down. Letters of the outage may become durable when the
 * replay has looked: so it looks again, behind groups that are stored later, until
 * it has found nothing behind two of them. A probe that somebody asks for, and for which
 * no message waits, takes the oldest of the letters. */
#include "hub/hub_internal.h"

#include <stdlib.h>

#include "host/wall.h"
#include "store/dead_letters.h"

/* A replay; its target may go meanwhile. */
typedef struct recovery {
    stg_hub *hub;
    uint32_t lane;
    uint64_t groups;   /* that were stored when this look began */
    stg_ns started_at; /* wall clock */
} recovery;

static const char *const ends[] = {
    [STG_LETTERS_DONE] = "done",       [STG_LETTERS_HELD] = "held",
    [STG_LETTERS_AWAY] = "away",       [STG_LETTERS_FULL] = "full",
    [STG_LETTERS_STOPPED] = "stopped",
};

static void tell(const stg_hub *h, const stg_target *t, const recovery *r,
                 const stg_letters_sum *sum)
{
    STG_LOG(h->log, STG_LOG_INFO, "replayed-on-recovery",
            stg_field_text("target", t->name),
            stg_field_text("state", ends[sum->end]),
            stg_field_number("letters", sum->letters),
            stg_field_number("messages", sum->messages));
    if (h->calls_part != NULL)
        h->calls->replayed(h->calls_part, t->name, r->started_at, sum);
}

/* Of the groups since then the first may have been on its way. */
static bool may_have_missed(const recovery *r, const stg_target *t,
                            const stg_letters_sum *sum)
{
    return sum->end == STG_LETTERS_DONE &&
           (sum->messages > 0 || r->groups < t->recovery_groups + 2);
}

/* What it has not come to stays dead, and is sent with the next recovery. */
static void ended(void *ctx, const stg_letters_sum *sum)
{
    recovery *r = ctx;
    stg_hub *h = r->hub;
    stg_target *t = stg_targets_at(&h->targets, r->lane);

    if (t != NULL) {
        if (sum->messages > 0 || sum->end != STG_LETTERS_DONE)
            tell(h, t, r, sum);
        if (t->recovery == STG_RECOVERY_RUNNING) {
            if (sum->messages > 0)
                t->recovery_groups = r->groups;
            t->recovery = may_have_missed(r, t, sum) ? STG_RECOVERY_AGAIN
                                                     : STG_RECOVERY_DONE;
            h->has_recoveries |= t->recovery == STG_RECOVERY_AGAIN;
        }
    }
    free(r);
}

static void start(stg_hub *h, stg_target *t)
{
    const stg_letter_filter f = {.target = t->name, .is_unreached = true};
    recovery *r = malloc(sizeof *r);

    if (r == NULL) { // it stays due
        h->has_recoveries |= t->recovery == STG_RECOVERY_AGAIN;
        return;
    }
    if (t->recovery != STG_RECOVERY_AGAIN)
        t->recovery_groups = h->groups_stored;
    *r = (recovery){h, t->lane, h->groups_stored, stg_wall_now()};
    t->recovery = STG_RECOVERY_RUNNING;
    stg_store_replay(h->store, &f, false, ended, r);
}

bool stg_recovery_is_wanted(const stg_target *t)
{
    return t->settings != NULL &&
           t->settings->common->replay == STG_REPLAY_ON_RECOVERY;
}

/* -- a probe ---------------------------------------------------------------- */

typedef struct probe {
    stg_hub *hub;
    uint32_t lane;
    stg_probe_fn *done;
    void *ctx;
} probe;

/* Flow has been told of the message before. */
static void have_message(void *ctx, const stg_letters_sum *sum)
{
    probe *p = ctx;
    stg_hub *h = p->hub;
    bool is_sent = sum->messages > 0 && !stg_hub_is_stopping(h) &&
                   stg_flow_probe(h->flow, p->lane, stg_deadlines_now());

    if (is_sent)
        stg_shell_note(h);
    p->done(p->ctx, is_sent ? STG_OK
                    : sum->end == STG_LETTERS_STOPPED || stg_hub_is_stopping(h)
                        ? STG_IO
                        : STG_INVALID);
    free(p);
}

void stg_recovery_probe(stg_hub *h, const stg_target *t, stg_probe_fn *done,
                        void *ctx)
{
    const stg_letter_filter f = {
        .target = t->name, .is_unreached = true, .messages_max = 1};
    probe *p = stg_recovery_is_wanted(t) ? malloc(sizeof *p) : NULL;

    if (p == NULL) {
        done(ctx, STG_INVALID);
        return;
    }
    *p = (probe){h, t->lane, done, ctx};
    stg_store_replay(h->store, &f, false, have_message, p);
}

/* -- when it is due --------------------------------------------------------- */

void stg_recovery_opened(stg_target *t)
{
    t->recovery = STG_RECOVERY_DUE;
}

/* Only with a closed breaker: a single success may have been a probe. */
void stg_recovery_note(stg_hub *h, stg_target *t)
{
    stg_lane_view v;

    if (!stg_recovery_is_wanted(t)) {
        t->recovery = STG_RECOVERY_DONE;
        return;
    }
    if (stg_hub_is_stopping(h) ||
        stg_flow_view_lane(h->flow, t->lane, &v, stg_deadlines_now()) !=
            STG_OK ||
        v.breaker != STG_BREAKER_CLOSED)
        return;
    start(h, t);
}

void stg_recovery_stored(stg_hub *h)
{
    h->groups_stored++;
    if (!h->has_recoveries || stg_hub_is_stopping(h))
        return;
    h->has_recoveries = false;
    for (size_t i = 0; i < h->targets.count; i++)
        if (h->targets.all[i]->recovery == STG_RECOVERY_AGAIN)
            stg_recovery_note(h, h->targets.all[i]);
}
