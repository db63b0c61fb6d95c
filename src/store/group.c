/* Flow's group: the call, and its transaction.
 *
 * All of a group is durable, or nothing of it: rows and the cursors that rely on
 * them. First the claims are compared: where another hub has taken a partition,
 * nothing is written, and flow hears which ones. A commit whose end was not heard
 * of (the server went away) is STG_STORED_UNKNOWN: flow sends the group again,
 * and a group that is written twice has the effect of once. What does not fit is
 * rolled back, and the writer's copy of the cursors is read anew, for it may be
 * ahead of the table. */
#include <assert.h>
#include <stdlib.h>

#include "store/internal.h"

/* -- the call -------------------------------------------------------------- */

static stg_group_request *group_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, stg_group_request, request.link);
}

/* The name of a lane that is no more is free; its number is not. */
static void forget_lanes(stg_store *s, const stg_group *g)
{
    for (size_t i = 0; i < g->change_count; i++)
        if (g->changes[i].kind == STG_CHANGE_FORGET)
            stg_lanes_forget(&s->lanes, g->changes[i].lane);
}

static void tell_group(stg_store_request *e)
{
    const stg_group_request *r = group_of(e);

    if (r->how == STG_STORED)
        forget_lanes(e->s, r->group);
    r->done(r->ctx, r->how, r->fenced, r->fenced_count);
}

static void free_group(stg_store_request *e)
{
    stg_group_request *r = group_of(e);

    free(r->fenced);
    free(r);
}

void stg_store_group(stg_store *s, const stg_group *g, stg_group_fn *done,
                     void *ctx)
{
    stg_group_request *r = stg_store_new_request(s, sizeof *r);

    if (r == NULL)
        return;
    r->request.tell = tell_group;
    r->request.free = free_group;
    r->group = g;
    r->done = done;
    r->ctx = ctx;
    if (g->number == 0 || g->number != s->group_number)
        s->group_told = s->replays_told;
    s->group_number = g->number;
    r->told = s->group_told;
    uv_mutex_lock(&s->in.lock);
    assert(s->in.group == NULL);
    s->in.group = r;
    uv_cond_signal(&s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
}

/* -- on the writer's thread ------------------------------------------------ */

/* SQLITE_ABORT: others have partitions of it. */
static int fence(stg_store_writer *w, stg_group_request *r)
{
    const stg_group *g = r->group;
    int rc;

    if (g->claim_count == 0)
        return SQLITE_OK;
    free(r->fenced);
    r->fenced = calloc(g->claim_count, sizeof *r->fenced);
    if (r->fenced == NULL)
        return SQLITE_NOMEM;
    rc = stg_partitions_fence(w->fence, w->o->shard, g->claims, g->claim_count,
                              r->fenced, &r->fenced_count);
    return rc == SQLITE_OK && r->fenced_count > 0 ? SQLITE_ABORT : rc;
}

static int write_changes(stg_store_writer *w, stg_group_request *r)
{
    const stg_group *g = r->group;
    stg_ns wall = stg_sql_now(w->db);
    int rc = stg_writer_begin(w);

    if (rc == SQLITE_OK)
        rc = fence(w, r);
    if (rc == SQLITE_OK)
        rc = stg_rows_write(&w->rows, g->changes, g->change_count, wall);
    if (rc == SQLITE_OK)
        rc = stg_cursors_write(&w->cursors, g, r->told);
    return stg_writer_end(w, rc);
}

bool stg_writer_group(stg_store_writer *w)
{
    stg_group_request *r = w->group;
    uint64_t version = w->rows.version;
    int rc;

    if (r == NULL)
        return true;
    rc = write_changes(w, r);
    if (r->fenced_count > 0 && rc == SQLITE_ABORT) {
        r->how = STG_STORED_FENCED;
    } else if (rc == STG_SQL_AWAY && !w->is_hopeless) {
        // It may be there, or not: it comes again.
        r->how = STG_STORED_UNKNOWN;
    } else if (stg_sql_is_full(rc) &&
               stg_cursors_load(&w->cursors, w->db) == 0) {
        r->how = STG_STORED_FULL;
    } else if (rc != SQLITE_OK) {
        stg_request_queue_break(w->in, &w->why);
        return false;
    } else {
        r->how = STG_STORED;
    }
    stg_writer_note_group(w, r->group, rc);
    if (r->how == STG_STORED && w->rows.version != version)
        stg_writer_tell_letters(w);
    w->group = NULL;
    stg_request_queue_answer(w->in, &r->request);
    return true;
}
