/* What the loop knows of a store without asking its threads, and the short
 * calls. New lanes are in lane_begin.c.
 *
 * s->first and s->next are the loop's copies, as of the last answers. */
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "http/url.h"
#include "store/internal.h"
#include "store/postgres/open.h"
#include "store/reader.h"

bool stg_store_is_url(const char *path)
{
    return strncmp(path, "postgres://", 11) == 0 ||
           strncmp(path, "postgresql://", 13) == 0;
}

/* -- at the start ---------------------------------------------------------- */

const char *stg_store_name(const stg_store *s)
{
    return s->o.path;
}

stg_ns stg_store_now(const stg_store *s)
{
    return stg_sql_now(s->writer.db);
}

uint64_t stg_store_epoch(const stg_store *s)
{
    return stg_epochs_now(&s->epochs);
}

uint64_t stg_store_epoch_at(const stg_store *s, uint64_t position)
{
    return stg_epochs_at(&s->epochs, position);
}

uint64_t stg_store_count_from(const stg_store *s, uint64_t position)
{
    return stg_ns_sub(s->next, stg_ns_max(position, s->first));
}

uint64_t stg_store_first(const stg_store *s)
{
    return s->first;
}

void stg_store_look(stg_store *s, stg_store_view *view)
{
    uv_mutex_lock(&s->in.lock);
    *view = s->in.view;
    uv_mutex_unlock(&s->in.lock);
}

bool stg_store_has_lane(const stg_store *s, const char *name)
{
    return stg_lanes_find(&s->lanes, name) != UINT32_MAX;
}

stg_status stg_store_lanes(stg_store *s, stg_store_lane_fn *each, void *ctx,
                           stg_error *err)
{
    (void)err;
    for (uint32_t i = 0; i < s->lanes.count; i++) {
        const stg_lane_name *l = &s->lanes.names[i];

        if (l->name != NULL && !l->is_forgotten)
            each(ctx, i, l->name, l->url);
    }
    return STG_OK;
}

/* Blocks, by a connection of its own: the hub calls it at its start. */
stg_status stg_store_cursors(stg_store *s, stg_store_cursor_fn *each, void *ctx,
                             stg_error *err)
{
    stg_db *db = NULL;
    int rc = stg_store_connect(&db, s->url, s->o.path);

    if (rc == SQLITE_OK)
        rc = stg_cursors_read(db, NULL, true, each, ctx);
    if (rc != SQLITE_OK && db != NULL)
        stg_sql_words(err, s->o.path, "cursors cannot be read", db, rc);
    stg_sql_close(db);
    return rc == SQLITE_OK ? STG_OK : STG_IO;
}

/* -- calls ----------------------------------------------------------------- */

/* A call that cannot even be asked breaks the whole store: its caller waits for
 * an answer that would never come. */
void stg_store_lack_memory(stg_store *s)
{
    stg_error why;

    stg_store_refuse_memory(s, &why);
    stg_request_queue_break(&s->in, &why);
}

/* Without memory nothing can be asked any more, and nothing is promised. */
void *stg_store_new_request(stg_store *s, size_t size)
{
    void *request = calloc(1, size);

    if (request == NULL)
        stg_store_lack_memory(s);
    return request;
}

/* The position only rises: the writer may delete what is below it. */
void stg_store_commit(stg_store *s, uint64_t position)
{
    uv_mutex_lock(&s->in.lock);
    if (position > s->in.commit) {
        s->in.commit = position;
        uv_cond_signal(&s->in.writer_wake);
    }
    uv_mutex_unlock(&s->in.lock);
}

typedef struct ping {
    stg_store_request request;
    void (*done)(void *ctx);
    void *ctx;
} ping;

static void tell_ping(stg_store_request *e)
{
    const ping *p = STG_HOLDER(&e->link, ping, request.link);

    p->done(p->ctx);
}

static void free_ping(stg_store_request *e)
{
    free(STG_HOLDER(&e->link, ping, request.link));
}

/* Pings are a list of their own, so that a writer that waits for the server
 * answers them, too. */
void stg_store_ping(stg_store *s, void (*done)(void *ctx), void *ctx)
{
    ping *p = stg_store_new_request(s, sizeof *p);

    if (p == NULL)
        return;
    p->request.tell = tell_ping;
    p->request.free = free_ping;
    p->done = done;
    p->ctx = ctx;
    uv_mutex_lock(&s->in.lock);
    stg_list_push(&s->in.pings, &p->request.link);
    uv_cond_signal(&s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
}

/* -- a lane that is paused stays so over a restart -------------------------- */

typedef struct note {
    stg_store_request request;
    uint32_t lane;
    stg_pause pause;
    stg_noted_fn *done;
    void *ctx;
} note;

static int write_note(stg_store_request *e, stg_store_writer *w)
{
    const note *n = STG_HOLDER(&e->link, note, request.link);

    return stg_sql_run(w->pause_lane, "du", (int)n->pause, (uint64_t)n->lane);
}

/* The table in memory follows the one on disk, never the other way: without
 * room the lane stays as it was. */
static void tell_note(stg_store_request *e)
{
    const note *n = STG_HOLDER(&e->link, note, request.link);
    stg_store *s = e->s;

    s->notes++;
    if (!e->is_full && n->lane < s->lanes.count)
        s->lanes.names[n->lane].pause = n->pause;
    if (n->done != NULL)
        n->done(n->ctx, e->is_full);
}

static void free_note(stg_store_request *e)
{
    free(STG_HOLDER(&e->link, note, request.link));
}

stg_pause stg_store_paused(const stg_store *s, uint32_t lane)
{
    return lane < s->lanes.count ? s->lanes.names[lane].pause : STG_PAUSE_NONE;
}

void stg_store_pause(stg_store *s, uint32_t lane, stg_pause pause,
                     stg_noted_fn *done, void *ctx)
{
    note *n = stg_store_new_request(s, sizeof *n);

    if (n == NULL)
        return;
    n->request.write = write_note;
    n->request.tell = tell_note;
    n->request.free = free_note;
    n->lane = lane;
    n->pause = pause;
    n->done = done;
    n->ctx = ctx;
    stg_store_request_send(s, &n->request);
}
