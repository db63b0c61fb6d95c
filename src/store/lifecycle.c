/* A store's life: it is opened, its threads start, it closes.
 *
 * Opening blocks the loop's thread until the file or the server has answered.
 * Closing is a chain: stg_store_close() sets the stage, the writer ends last,
 * and its last signal makes stg_store_deliver() call stg_store_end(), which
 * joins the threads and closes the loop's handle. The struct holds that handle,
 * so it is freed in the handle's callback and nowhere else: also when opening
 * failed, where all but the struct is released at once. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "store/internal.h"
#include "store/postgres/open.h"
#include "store/replay_job.h"
#include "store/sqlite.h"
#include "store/store_file.h"

stg_store_options stg_store_options_default(const char *path)
{
    return (stg_store_options){.path = path,
                               .shard_of = 1,
                               .quota = (uint64_t)8 << 30,
                               .dead = {STG_NEVER, UINT64_MAX, 25},
                               .receipts = {.quota = 256 << 20},
                               .retention = STG_DAY,
                               .keys_kept = STG_DAY,
                               .keys_max = 1000000};
}

char *stg_store_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *same = malloc(size);

    return same == NULL ? NULL : memcpy(same, text, size);
}

stg_status stg_store_refuse_memory(const stg_store *s, stg_error *err)
{
    return stg_hub_refuse(err, STG_IO, "%s: there is no memory left",
                          s->o.path);
}

/* Whether dead letters are copied, to a file or to a sink: only then there
 * is the thread for it. */
static bool has_letters(const stg_store *s)
{
    return s->o.letters != NULL || s->o.sink.write != NULL;
}

/* -- closing --------------------------------------------------------------- */

/* Frees everything but the queue, whose handle the loop still holds. The
 * threads have ended, or were never started. The files of a store that was
 * made in vain are removed while the lock is still held, so that no other
 * hub has opened them. */
static void release(stg_store *s)
{
    stg_store_writer_free(&s->writer);
    stg_store_reader_free(&s->reader);
    stg_query_thread_free(&s->query_thread);
    if (has_letters(s))
        stg_letters_free(&s->letters);
    stg_lanes_free(&s->lanes);
    stg_partitions_free(&s->partitions);
    stg_epochs_free(&s->epochs);
    stg_replay_job_drop_readings(s);
    stg_sql_close(s->lane_db);
    if (s->is_discarded && s->lock.beside >= 0)
        stg_store_lock_remove(s->o.path);
    stg_store_lock_end(&s->lock);
    free(s->url);
    free((char *)s->o.path);
    free((char *)s->o.letters);
}

/* Only the files that this process has made are ever removed: is_new. */
void stg_store_discard(stg_store *s)
{
    s->is_discarded = s->is_new;
}

/* closed() comes last, when the store is freed: the caller may open it
 * again. */
static void on_closed(uv_handle_t *handle)
{
    stg_store *s = handle->data;
    void (*closed)(void *ctx) = s->closed;
    void *ctx = s->closed_ctx;

    stg_request_queue_free(&s->in);
    release(s);
    free(s);
    closed(ctx);
}

/* The threads have left the queue (`threads` is 0), so the joins do not
 * wait. */
void stg_store_end(stg_store *s)
{
    uv_thread_join(&s->writer.thread);
    uv_thread_join(&s->reader.thread);
    uv_thread_join(&s->query_thread.thread);
    if (has_letters(s))
        uv_thread_join(&s->letters.thread);
    uv_close((uv_handle_t *)&s->in.answered, on_closed);
}

/* -- opening --------------------------------------------------------------- */

static stg_status check_options(const stg_store_options *o, stg_error *err)
{
    const uint64_t least = (uint64_t)16 << 20, most = (uint64_t)1 << 44;

    if (o->path == NULL || *o->path == '\0')
        return stg_hub_refuse(err, STG_INVALID, "store: no path; name a file");
    if (o->quota < least || o->quota > most)
        return stg_hub_refuse(
            err, STG_INVALID,
            "quota=%" PRIu64
            " is out of range, expected 16 MiB to 16 TiB, in bytes",
            o->quota);
    if (o->retention < STG_MIN || o->retention > 365 * STG_DAY)
        return stg_hub_refuse(err, STG_INVALID,
                              "retention is out of range, expected 1m to 365d");
    if (o->keep > 365 * STG_DAY)
        return stg_hub_refuse(err, STG_INVALID,
                              "keep is out of range, expected 0s to 365d");
    if (o->dead.keep < STG_MIN || o->dead.max < 1 || o->dead.share < 1 ||
        o->dead.share > 30)
        return stg_hub_refuse(err, STG_INVALID,
                              "dead letters: expected a time of 1m at least, 1 "
                              "row at least, and 1 to 30 %% of the quota");
    if (o->shard_of < 1 || o->shard_of > 1024 || o->shard >= o->shard_of)
        return stg_hub_refuse(
            err, STG_INVALID,
            "shard %" PRIu32 " of %" PRIu32
            " is out of range, expected 1 to 1024 shards, and "
            "one of them, from 0",
            o->shard, o->shard_of);
    if (o->keys_max < 1 || o->keys_kept > 365 * STG_DAY)
        return stg_hub_refuse(
            err, STG_INVALID,
            "idempotency keys: expected 1 at least, kept for 365d "
            "at most");
    return STG_OK;
}

/* Opens the connections, and reads what the loop keeps in memory. The
 * writer's connection comes first: it makes the tables that the others
 * expect. */
static stg_status load(stg_store *s, stg_error *err)
{
    uint64_t letters_version = 0;
    stg_status status =
        s->url != NULL
            ? stg_pg_open_writer(&s->writer.db, s->url, s->o.shard_of, err)
            : stg_opening_open(&s->writer.db, &s->o, &s->epochs, err);
    const char *what = s->url != NULL ? "cannot be read" : "is damaged";
    int rc;

    if (status == STG_OK && s->url == NULL)
        status = stg_store_files_begin(&s->writer.files, s->o.path, err);
    if (status != STG_OK)
        return status;
    if (s->url != NULL && !stg_epochs_make(&s->epochs))
        return stg_store_refuse_memory(s, err);
    rc = stg_store_writer_load(&s->writer);
    if (rc == SQLITE_OK)
        rc = stg_lanes_load(&s->lanes, s->writer.db);
    if (rc == SQLITE_OK)
        rc = stg_partitions_load(&s->partitions, s->writer.db, s->o.shard);
    if (rc == SQLITE_OK && s->url == NULL)
        rc = stg_meta_read(s->writer.db, "letters_version", &letters_version);
    if (rc == SQLITE_OK)
        rc = stg_store_reader_open(&s->reader);
    if (rc == SQLITE_OK)
        rc = stg_query_thread_open(&s->query_thread);
    if (rc != SQLITE_OK) {
        stg_sql_words(err, s->o.path, what, s->writer.db, rc);
        return STG_IO;
    }
    // What follows is set before the threads start: no lock is needed yet.
    s->writer.rows.ids.epochs = &s->epochs;
    s->next = s->in.next = s->writer.queue.is.next;
    s->first = s->writer.queue.is.first;
    s->in.view.first = s->first;
    s->writer.letters_version = s->writer.letters_noted = letters_version;
    s->letters.version = s->in.letters_version = letters_version;
    if (s->url != NULL && (s->in.claimed = stg_store_claimed(s)) == NULL)
        return stg_store_refuse_memory(s, err);
    return has_letters(s) ? stg_letters_open(&s->letters, err) : STG_OK;
}

typedef struct thread {
    uv_thread_t *id;
    void (*run)(void *ctx);
    void *ctx;
} thread;

/* Ends the first `started` threads, after one could not be started. Those
 * that were not started will never leave the queue, so they are taken off
 * its count: the writer waits until it is the only one. It is the first in
 * the table, and wakes the others itself when it has nothing left to write. */
static stg_status stop_threads(stg_store *s, const thread *all, size_t started,
                               size_t count, stg_error *err)
{
    uv_mutex_lock(&s->in.lock);
    s->in.stage = STG_QUEUE_CLOSING;
    s->in.threads -= (uint32_t)(count - started);
    uv_cond_signal(&s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
    for (size_t i = 0; i < started; i++)
        uv_thread_join(all[i].id);
    return stg_hub_refuse(err, STG_IO,
                          "%s: a thread cannot be started; raise the limits of "
                          "processes and memory",
                          s->o.path);
}

static stg_status start_threads(stg_store *s, stg_error *err)
{
    const thread all[] = {
        {&s->writer.thread, stg_store_writer_run, &s->writer},
        {&s->reader.thread, stg_store_reader_run, &s->reader},
        {&s->query_thread.thread, stg_query_thread_run, &s->query_thread},
        {&s->letters.thread, stg_letters_run, &s->letters}};
    size_t count = has_letters(s) ? 4 : 3;

    s->in.threads = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        if (uv_thread_create(all[i].id, all[i].run, all[i].ctx) != 0)
            return stop_threads(s, all, i, count, err);
    return STG_OK;
}

/* Everything else was released when opening failed. */
static void on_open_failed(uv_handle_t *handle)
{
    stg_store *s = handle->data;

    stg_request_queue_free(&s->in);
    free(s);
}

/* The URL, with its password, is in s->url only. o.path is what may be
 * shown: a file's path, or the URL's name. */
static stg_store *new_store(const stg_store_options *o)
{
    stg_store *s = calloc(1, sizeof *s);
    bool is_url = stg_store_is_url(o->path);

    if (s == NULL)
        return NULL;
    s->o = *o;
    s->lock = STG_STORE_LOCK_NONE;
    if (is_url) {
        s->url = stg_store_copy(o->path);
        s->o.path = stg_pg_url_name(o->path);
        s->writer.url = s->reader.url = s->query_thread.url = s->letters.url =
            s->url;
    } else {
        s->o.path = stg_store_copy(o->path);
    }
    if (o->letters != NULL)
        s->o.letters = stg_store_copy(o->letters);
    if (s->o.path == NULL || (is_url && s->url == NULL) ||
        (o->letters != NULL && s->o.letters == NULL)) {
        free(s->url);
        free((char *)s->o.path);
        free((char *)s->o.letters);
        free(s);
        return NULL;
    }
    s->writer.in = s->reader.in = s->letters.in = s->query_thread.in = &s->in;
    s->writer.o = s->reader.o = s->letters.o = s->query_thread.o = &s->o;
    stg_list_init(&s->readings);
    stg_list_init(&s->rewinding);
    stg_list_init(&s->writer.appends);
    stg_list_init(&s->writer.lanes);
    return s;
}

stg_status stg_store_open(stg_store **store, uv_loop_t *loop,
                          const stg_store_options *o, stg_error *err)
{
    stg_status status = check_options(o, err);
    stg_store *s;

    if (status != STG_OK)
        return status;
    s = new_store(o);
    if (s == NULL)
        return stg_hub_refuse(err, STG_IO,
                              "the store: there is no memory left");
    if (s->url == NULL)
        status = stg_store_lock_begin(&s->lock, &s->is_new, s->o.path, err);
    if (status == STG_OK &&
        !stg_request_queue_init(&s->in, loop, stg_store_deliver))
        status = stg_store_refuse_memory(s, err);
    stg_store_discard(s); // unless it opens
    if (status != STG_OK) {
        release(s);
        free(s);
        return status;
    }
    s->in.answered.data = s;
    status = load(s, err);
    if (status == STG_OK)
        status = start_threads(s, err);
    if (status != STG_OK) {
        // At once: the caller may try again before its loop runs.
        release(s);
        uv_close((uv_handle_t *)&s->in.answered, on_open_failed);
        return status;
    }
    s->is_discarded = false;
    if (s->url != NULL) {
        stg_remote_replay_watch(s, STG_S);
        stg_others_watch(s);
    }
    *store = s;
    return STG_OK;
}

/* A writer that waits for a server or for another process asks about the stage
 * once a second, and from now on counts its tries. One that waits for work is
 * woken, to look whether its files are in their place: what is told now still
 * reaches people. */
void stg_store_end_soon(stg_store *s)
{
    uv_mutex_lock(&s->in.lock);
    if (s->in.stage == STG_QUEUE_OPEN)
        s->in.stage = STG_QUEUE_ENDING;
    uv_cond_signal(&s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
    if (s->o.sink.end_soon != NULL)
        s->o.sink.end_soon(s->o.sink.ctx);
}

void stg_store_close(stg_store *s, void (*done)(void *ctx), void *ctx)
{
    s->closed = done;
    s->closed_ctx = ctx;
    uv_mutex_lock(&s->in.lock);
    s->in.stage = STG_QUEUE_CLOSING;
    uv_cond_signal(&s->in.writer_wake);
    uv_cond_signal(&s->in.reader_wake);
    uv_cond_signal(&s->in.query_wake);
    uv_mutex_unlock(&s->in.lock);
    // They may have ended already, broken.
    uv_async_send(&s->in.answered);
}
