/* A lane that a call has paused stays paused over a restart. */
#include <stdlib.h>

#include "store/internal.h"

typedef struct note {
    stg_store_request request;
    stg_store *s;
    uint32_t lane;
    bool is_paused;
    stg_noted_fn *done;
    void *ctx;
} note;

static int write_note(stg_store_request *e, stg_store_writer *w)
{
    const note *n = STG_HOLDER(&e->link, note, request.link);

    return stg_sql_run(w->pause_lane, "du", (int)n->is_paused,
                       (uint64_t)n->lane);
}

static void tell_note(stg_store_request *e)
{
    note *n = STG_HOLDER(&e->link, note, request.link);

    n->s->notes++;
    if (!e->is_full && n->lane < n->s->lanes.count)
        n->s->lanes.names[n->lane].is_paused = n->is_paused;
    if (n->done != NULL)
        n->done(n->ctx, e->is_full);
}

static void free_note(stg_store_request *e)
{
    free(STG_HOLDER(&e->link, note, request.link));
}

bool stg_store_is_paused(const stg_store *s, uint32_t lane)
{
    return lane < s->lanes.count && s->lanes.names[lane].is_paused;
}

void stg_store_pause(stg_store *s, uint32_t lane, bool is_paused,
                     stg_noted_fn *done, void *ctx)
{
    note *n = calloc(1, sizeof *n);

    if (n == NULL) {
        stg_store_lack_memory(s);
        return;
    }
    n->request.write = write_note;
    n->request.tell = tell_note;
    n->request.free = free_note;
    n->s = s;
    n->lane = lane;
    n->is_paused = is_paused;
    n->done = done;
    n->ctx = ctx;
    stg_store_request_send(s, &n->request);
}
