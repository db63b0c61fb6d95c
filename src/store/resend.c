/* Single messages, sent again: each the job of a rewind without a row. */
#include <stdlib.h>

#include "store/replay_job.h"
#include "store/rewinds.h"

typedef struct resending {
    stg_resent_fn *done;
    void *ctx;
} resending;

static stg_resent result_of(const stg_letters_sum *sum)
{
    if (sum->messages > 0)
        return STG_RESENT;
    switch (sum->end) {
    case STG_LETTERS_DONE:
        return sum->expired > 0 ? STG_RESENT_GONE : STG_RESENT_WAITS;
    case STG_LETTERS_FULL:
    case STG_LETTERS_STOPPED:
        return STG_RESENT_NO_ROOM;
    default:
        return STG_RESENT_AWAY;
    }
}

static void have_resent(void *ctx, const stg_letters_sum *sum)
{
    resending *d = ctx;

    d->done(d->ctx, result_of(sum));
    free(d);
}

/* Another hub has the partition: it finds a rewind of one message. */
static void have_stored(void *ctx, stg_rewound how, uint64_t number)
{
    resending *d = ctx;

    (void)number;
    d->done(d->ctx, how == STG_REWOUND           ? STG_RESENT_ELSEWHERE
                    : how == STG_REWOUND_NOTHING ? STG_RESENT_GONE
                    : how == STG_REWOUND_RUNNING ? STG_RESENT_AWAY
                                                 : STG_RESENT_NO_ROOM);
    free(d);
}

void stg_store_resend(stg_store *s, uint32_t lane, uint32_t partition,
                      uint64_t position, stg_resent_fn *done, void *ctx)
{
    const stg_again again = {.lane = lane,
                             .partition = partition,
                             .position = position,
                             .until = position + 1,
                             .has_begun = true};
    resending *d = malloc(sizeof *d);
    stg_replay_job *r = d == NULL ? NULL : stg_rewind_job_new(s, &again);

    if (d == NULL)
        stg_store_lack_memory(s);
    if (r == NULL) {
        free(d);
        return;
    }
    *d = (resending){done, ctx};
    r->done = have_resent;
    r->ctx = d;
    if (!stg_replay_job_is_ours(r, &r->found.letters[0])) {
        const stg_rewind_start start = {.lane = lane,
                                        .partition = partition,
                                        .position = position,
                                        .is_one = true};

        stg_replay_job_free(r);
        stg_store_rewind(s, &start, have_stored, d);
        return;
    }
    stg_replay_job_advance(r);
}
