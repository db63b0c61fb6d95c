#include "store/store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "http/url_mask.h"
#include "store/internal.h"
#include "store/postgres/open.h"
#include "store/postgres/shared_lanes.h"
#include "store/read_retry.h"

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

uint64_t stg_store_next(const stg_store *s)
{
    return s->next;
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

/* It is written before, or with, the first row that needs it. */
static bool send_lane(stg_store *s, uint32_t number, const char *name,
                      const char *url)
{
    stg_job *job = stg_job_new(STG_JOB_LANE, NULL, 0);

    if (job == NULL)
        return false;
    job->lane.number = number;
    job->lane.name = stg_store_copy(name);
    job->lane.url = stg_store_copy(url);
    if (job->lane.name == NULL || job->lane.url == NULL ||
        !stg_lanes_set(&s->lanes, number, name, url)) {
        stg_job_free(job);
        return false;
    }
    uv_mutex_lock(&s->in.lock);
    stg_list_push(&s->in.lanes, &job->link);
    uv_cond_signal(&s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
    return true;
}

/* With a connection of the loop's own, which is made when it is needed. */
static bool ask_lane(stg_store *s, const char *name, const char *url,
                     uint32_t *lane, stg_error *err)
{
    bool is_new = stg_lanes_find(&s->lanes, name) == UINT32_MAX, is_paused;
    int rc = s->is_away ? STG_SQL_AWAY : SQLITE_OK;

    if (rc == SQLITE_OK && s->lane_db == NULL)
        rc = stg_pg_open_another(&s->lane_db, s->url);
    if (rc == SQLITE_OK)
        rc = stg_shared_lanes_find(s->lane_db, name, url, lane, &is_paused);
    if (rc == SQLITE_OK && !stg_lanes_set(&s->lanes, *lane, name, url))
        rc = SQLITE_NOMEM;
    // Changes of a lane that is known are told: see stg_others_watch().
    if (rc == SQLITE_OK && is_new)
        s->lanes.names[*lane].is_paused = is_paused;
    if (rc == SQLITE_OK)
        return true;
    (void)stg_hub_refuse(err, STG_IO,
                         rc == SQLITE_TOOBIG
                             ? "target %s: the store has had as many targets "
                               "as it may, more have no number"
                             : "target %s: the store does not answer, and it "
                               "needs a number from there; try it again",
                         name);
    return false;
}

bool stg_store_has_lane(const stg_store *s, const char *name)
{
    return stg_lanes_find(&s->lanes, name) != UINT32_MAX;
}

stg_status stg_store_lane(stg_store *s, const char *name, const char *url,
                          uint32_t *lane, stg_error *err)
{
    uint32_t number = stg_lanes_find(&s->lanes, name);
    const stg_lane_name *known;
    bool is_sent = true;
    char *masked;

    if (number == UINT32_MAX)
        number = s->lanes.count;
    if (number >= STG_LANES_MAX && s->url == NULL) {
        return stg_hub_refuse(
            err, STG_INVALID,
            "target %s: the store has had %d targets, more have no "
            "number; begin with a new store",
            name, STG_LANES_MAX);
    }
    known = number < s->lanes.count ? &s->lanes.names[number] : NULL;
    if (known != NULL && known->name == NULL)
        known = NULL;
    *lane = number;
    masked = stg_url_mask(url);
    if (masked == NULL)
        return stg_store_refuse_memory(s, err);
    if (known == NULL || strcmp(known->url, masked) != 0)
        is_sent = s->url != NULL ? ask_lane(s, name, masked, lane, err)
                                 : send_lane(s, number, name, masked);
    free(masked);
    if (!is_sent && s->url != NULL)
        return STG_IO;
    return is_sent ? STG_OK : stg_store_refuse_memory(s, err);
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

void stg_store_lack_memory(stg_store *s)
{
    stg_error why;

    stg_store_refuse_memory(s, &why);
    stg_request_queue_break(&s->in, &why);
}

/* Without memory nothing can be asked any more, and nothing is promised. */
static stg_job *new_job(stg_store *s, stg_job_kind kind, void *ctx,
                        size_t answers)
{
    stg_job *job = stg_job_new(kind, ctx, answers);

    if (job == NULL)
        stg_store_lack_memory(s);
    return job;
}

void stg_store_append(stg_store *s, const stg_append *messages, size_t count,
                      stg_append_fn *done, void *ctx)
{
    enum { KEY_COST = 96 };
    stg_job *job = new_job(s, STG_JOB_APPEND, ctx, count);

    if (job == NULL)
        return;
    job->append.messages = messages;
    job->append.count = count;
    job->append.done = done;
    for (size_t i = 0; i < count; i++)
        job->append.cost +=
            stg_queue_cost(&messages[i].parcel) +
            (messages[i].idempotency_key.size > 0 ? KEY_COST : 0);
    uv_mutex_lock(&s->in.lock);
    stg_list_push(&s->in.appends, &job->link);
    uv_cond_signal(&s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
}

bool stg_store_request_send(stg_store *s, stg_store_request *e)
{
    stg_job *job = new_job(s, STG_JOB_REQUEST, NULL, 0);

    if (job == NULL) {
        e->free(e);
        return false;
    }
    job->request = e;
    uv_mutex_lock(&s->in.lock);
    stg_list_push(e->look != NULL ? &s->in.looks : &s->in.writes, &job->link);
    uv_cond_signal(e->look != NULL ? &s->in.query_wake : &s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
    return true;
}

static void ask_reader(stg_store *s, stg_job *job)
{
    uv_mutex_lock(&s->in.lock);
    stg_list_push(&s->in.reads, &job->link);
    uv_cond_signal(&s->in.reader_wake);
    uv_mutex_unlock(&s->in.lock);
}

void stg_store_read(stg_store *s, uint64_t from, size_t bytes_max, bool waits,
                    stg_read_fn *done, void *ctx)
{
    stg_job *job = new_job(s, STG_JOB_READ, ctx, 0);

    if (job == NULL)
        return;
    job->read.from = from;
    job->read.bytes_max = bytes_max;
    job->read.waits = waits;
    job->read.done = done;
    // There is no queue, and nothing ever comes.
    if (s->url != NULL && waits)
        stg_job_free(job);
    else if (s->url != NULL)
        stg_request_queue_answer(&s->in, job);
    else
        ask_reader(s, job);
}

void stg_store_commit(stg_store *s, uint64_t position)
{
    uv_mutex_lock(&s->in.lock);
    if (position > s->in.commit) {
        s->in.commit = position;
        uv_cond_signal(&s->in.writer_wake);
    }
    uv_mutex_unlock(&s->in.lock);
}

void stg_store_ping(stg_store *s, void (*done)(void *ctx), void *ctx)
{
    stg_job *job = new_job(s, STG_JOB_PING, ctx, 0);

    if (job == NULL)
        return;
    job->ponged = done;
    uv_mutex_lock(&s->in.lock);
    stg_list_push(&s->in.pings, &job->link);
    uv_cond_signal(&s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
}

void stg_store_group(stg_store *s, const stg_group *g, stg_group_fn *done,
                     void *ctx)
{
    stg_job *job = new_job(s, STG_JOB_GROUP, ctx, 0);

    if (job == NULL)
        return;
    job->group.group = g;
    job->group.done = done;
    job->group.told = s->replays_told;
    uv_mutex_lock(&s->in.lock);
    assert(s->in.group == NULL);
    s->in.group = job;
    uv_cond_signal(&s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
}

void stg_store_fetch(stg_store *s, uint32_t lane, bool is_replay,
                     const stg_mark *after, uint32_t rows_max,
                     stg_fetch_fn *done, void *ctx)
{
    stg_job *job = new_job(s, STG_JOB_FETCH, ctx, 0);

    if (job == NULL)
        return;
    job->fetch.lane = lane;
    job->fetch.is_replay = is_replay;
    job->fetch.after = *after;
    job->fetch.rows_max = rows_max;
    job->fetch.done = done;
    job->fetch.claimed = s->url == NULL ? NULL : stg_store_claimed(s);
    if (s->url != NULL && job->fetch.claimed == NULL) {
        stg_job_free(job);
        stg_store_lack_memory(s);
        return;
    }
    ask_reader(s, job);
}
