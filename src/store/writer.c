/* The writer's thread: rounds of transactions.
 *
 * A round takes what has come during the last one: all appends go into one
 * transaction, flow's group into another, then one request, then a piece of what
 * can wait. An answer is given when its transaction is durable, never before:
 * with synchronous=FULL each COMMIT syncs the write-ahead log. Lanes that are
 * new go into whatever transaction comes first, and so are there before a row
 * names them.
 *
 * Where another process writes to the file, or the server is away, the thread
 * waits, answers pings, and says so after some tries; when the store is to close
 * it waits CLOSING_TRIES seconds, and is broken then. Of a commit whose end was
 * not heard of, a request asks the server; a group comes again. */
#include "store/writer.h"
#include "host/process.h"
#include "store/postgres/open.h"
#include "store/sqlite.h"

#include <stdlib.h>
#include <sys/statvfs.h>

enum {
    APPENDS_MAX = 8192,      /* calls of a transaction */
    APPEND_BYTES = 16 << 20, /* and about so many bytes */
    SEGMENT_BYTES = 4 << 20, /* of a segment, or less of a small quota */
    CLOSING_TRIES = 10,      /* a second each, while others write */
    TOLD_TRIES = 5,          /* and after so many people are told */
    RESERVE_MAX = 64 << 20,  /* bytes of the disk that no message fills */
    SPACE_PAUSE = 50000000,  /* ns between two looks at the disk */
};

/* After a commit, before its pages are given back. */
static const uint64_t rest_pause = STG_S;

/* -- transactions ---------------------------------------------------------- */

bool stg_writer_is_stuck(const stg_store_writer *w)
{
    return w->troubles[STG_STORE_BUSY] || w->troubles[STG_STORE_AWAY];
}

void stg_writer_tell_end(stg_store_writer *w, stg_store_trouble what)
{
    if (!w->troubles[what])
        return;
    w->troubles[what] = false;
    stg_request_queue_tell(w->in, what, NULL);
}

int stg_writer_look(stg_store_writer *w, int rc)
{
    stg_error why;

    w->files_at = w->url == NULL ? uv_hrtime() + STG_S : UINT64_MAX;
    if (stg_store_files_look(&w->files, &why))
        return rc;
    w->why = why;
    return SQLITE_READONLY_DBMOVED;
}

static void tell_trouble(stg_store_writer *w, bool is_hanging)
{
    stg_error why;

    w->troubles[w->url == NULL ? STG_STORE_BUSY : STG_STORE_AWAY] = true;
    if (w->url == NULL) {
        stg_request_queue_tell(
            w->in, STG_STORE_BUSY,
            "%s: another process writes to it, and does not end; "
            "nothing can be stored meanwhile: end it",
            w->o->path);
        return;
    }
    stg_pg_say_trouble(w->db, is_hanging, &why);
    stg_request_queue_tell(
        w->in, STG_STORE_AWAY,
        "%s; nothing can be stored meanwhile, and it is tried again", why.text);
}

/* Whether it is no use to wait for it any longer: once so, it stays so. */
static bool wait_on(stg_store_writer *w)
{
    bool is_lost = stg_writer_look(w, SQLITE_OK) != SQLITE_OK;

    uv_mutex_lock(&w->in->lock);
    stg_request_queue_answer_pings(w->in);
    w->is_hopeless = is_lost || w->in->is_broken ||
                     (w->in->stage >= STG_QUEUE_ENDING &&
                      ++w->closing_tries >= CLOSING_TRIES);
    uv_mutex_unlock(&w->in->lock);
    return w->is_hopeless;
}

/* A server that is away is told at once; another process that writes to the
 * file may end soon, and is told after TOLD_TRIES seconds. */
static bool is_over(void *ctx)
{
    stg_store_writer *w = ctx;

    w->busy_tries++;
    if (!stg_writer_is_stuck(w) &&
        (w->url != NULL || w->busy_tries >= TOLD_TRIES))
        tell_trouble(w, false);
    return wait_on(w);
}

/* The same while the server has a command. */
static bool is_hanging(void *ctx)
{
    stg_store_writer *w = ctx;

    w->busy_tries++;
    if (!stg_writer_is_stuck(w) && w->busy_tries >= TOLD_TRIES)
        tell_trouble(w, true);
    return wait_on(w);
}

static int begin(stg_store_writer *w)
{
    int rc;

    w->busy_tries = 0;
    rc = stg_sql_begin(w->db, is_over, w);
    // A server that lets us in may refuse what comes.
    if (rc == SQLITE_OK && w->url == NULL)
        stg_writer_tell_end(w, STG_STORE_BUSY);
    return rc;
}

static int write_lanes(stg_store_writer *w)
{
    int rc = SQLITE_OK;

    for (stg_link *link = stg_list_first(&w->lanes);
         link != NULL && rc == SQLITE_OK;
         link = stg_list_next(&w->lanes, link)) {
        const stg_lane_request *l =
            STG_HOLDER(link, stg_lane_request, request.link);

        rc = stg_sql_run(w->add_lane, "uss", (uint64_t)l->number, l->name,
                         l->url);
    }
    return rc;
}

/* Free pages of the file are room: SQLite uses them before the file grows. */
static int measure(stg_store_writer *w)
{
    uint64_t pages = 0, free_pages = 0;
    int rc = stg_sql_number(w->page_count, &pages);

    if (rc == SQLITE_OK)
        rc = stg_sql_number(w->free_count, &free_pages);
    w->used = stg_ns_sub(pages, free_pages) * STG_PAGE;
    return rc;
}

/* A disk that is nearly full has no room for messages: what is left is for rows,
 * cursors and the WAL. Its size is asked for 20 times a second at most. */
static void writer_look_at_disk(stg_store_writer *w)
{
    uint64_t now = uv_hrtime();
    struct statvfs s;

    if (now < w->space_at)
        return;
    w->space_at = now + SPACE_PAUSE;
    w->space = UINT64_MAX;
    w->reserve = 0;
    if (statvfs(w->o->path, &s) != 0 || s.f_blocks == 0)
        return;
    w->space = (uint64_t)s.f_bavail * s.f_frsize;
    w->reserve =
        stg_ns_min(RESERVE_MAX, (uint64_t)s.f_blocks * s.f_frsize / 20);
}

/* Intake stops at 80 % of the quota: the last fifth is for what has to be
 * stored about messages that were taken. The WAL counts. */
void stg_writer_find_room(stg_store_writer *w)
{
    uint64_t share = w->o->quota - w->o->quota / 5;
    uint64_t left;

    writer_look_at_disk(w);
    left = stg_ns_sub(w->space, w->reserve);
    w->room = stg_ns_sub(share, stg_ns_add(w->used, w->files.log_size));
    w->room_lack = w->held_at > 0 ? STG_SHORT_LOG : STG_SHORT_SHARE;
    if (left < w->room) {
        w->room = left;
        w->room_lack = STG_SHORT_RESERVE;
    }
    if (w->room >= w->refused)
        w->refused = 0;
}

/* Rows have all of the quota, the WAL's part included: what they may not fill is
 * held by a read. */
static int writer_check_quota(stg_store_writer *w)
{
    int rc;

    if (w->used + w->files.log_size < w->o->quota)
        return SQLITE_OK;
    rc = stg_writer_squeeze(w);
    if (rc != SQLITE_OK)
        return rc;
    return w->files.log_size > 0 && w->held_at > 0 &&
                   w->used + w->files.log_size >= w->o->quota
               ? stg_shortage_code(STG_SHORT_LOG)
               : SQLITE_OK;
}

int stg_writer_begin(stg_store_writer *w)
{
    int rc = w->url == NULL ? writer_check_quota(w) : SQLITE_OK;

    if (rc == SQLITE_OK)
        rc = begin(w);
    w->began_at = uv_hrtime();
    // A server's room is its own; lanes are there before they are named.
    if (w->url != NULL)
        return rc;
    stg_writer_find_room(w);
    return rc == SQLITE_OK ? write_lanes(w) : rc;
}

/* Lanes stay in the list until a transaction that has them is durable. */
int stg_writer_end(stg_store_writer *w, int rc)
{
    if (rc == SQLITE_OK && w->url == NULL)
        rc = measure(w);
    rc = stg_sql_end(w->db, rc, w->o->path, &w->why);
    stg_histogram_add(&w->commits, uv_hrtime() - w->began_at);
    // A commit counts only in the file that has the name of the store.
    if (w->url == NULL)
        rc = stg_writer_look(w, rc);
    stg_writer_find_room(w);
    if (rc == SQLITE_OK && w->url != NULL)
        stg_writer_tell_end(w, STG_STORE_AWAY);
    if (rc == SQLITE_OK)
        stg_store_requests_free(&w->lanes);
    else
        w->lanes_at = uv_hrtime() + STG_S;
    return rc;
}

static int note_pages(void *ctx, sqlite3 *db, const char *name, int pages)
{
    stg_store_writer *w = ctx;

    (void)db;
    (void)name;
    w->wal_pages = pages;
    w->rest_at = uv_hrtime() + rest_pause;
    return SQLITE_OK;
}

void stg_writer_tell_letters(stg_store_writer *w)
{
    uv_mutex_lock(&w->in->lock);
    w->in->dead_groups++;
    uv_cond_signal(&w->in->letters_wake);
    uv_mutex_unlock(&w->in->lock);
}

/* -- requests -------------------------------------------------------------- */

/* Fetches are not answered between the commit and its answer: they could have
 * rows in them that flow has not heard of. */
static void hold_fetches(stg_store_writer *w, bool holds)
{
    uv_mutex_lock(&w->in->lock);
    w->in->is_replaying = holds;
    uv_cond_signal(&w->in->reader_wake);
    uv_mutex_unlock(&w->in->lock);
}

/* A transaction whose end was not heard of. */
static bool has_committed(stg_store_writer *w)
{
    return stg_sql_revive(w->db, is_over, w) == SQLITE_OK &&
           stg_sql_has_committed(w->db);
}

/* Versions that rose mean that letters have changed, and their thread is
 * woken. */
static int run_write(stg_store_writer *w, stg_store_request *e)
{
    uint64_t version = w->rows.version;
    int rc = stg_writer_begin(w);

    if (rc == SQLITE_OK)
        rc = stg_sql_serialize(w->db);
    if (rc == SQLITE_OK)
        rc = e->write(e, w);
    hold_fetches(w, true);
    rc = stg_writer_end(w, rc);
    if (rc == STG_SQL_AWAY && has_committed(w))
        rc = SQLITE_OK;
    if (rc == SQLITE_OK)
        stg_cursors_replayed(&w->cursors);
    if (rc == SQLITE_OK && w->rows.version != version)
        stg_writer_tell_letters(w);
    return rc;
}

/* Four times as long as it took is for others. */
static void pace(stg_store_writer *w, uint64_t began_at)
{
    uint64_t now = uv_hrtime();

    w->request_at = now + stg_ns_max(4 * (now - began_at), 2 * STG_MS);
}

static bool write_request(stg_store_writer *w)
{
    stg_store_request *e = w->request;
    uint64_t began_at = uv_hrtime();
    int rc;

    if (e == NULL)
        return true;
    w->request = NULL;
    do
        rc = run_write(w, e);
    while (rc == STG_SQL_AWAY && !w->is_hopeless);
    e->is_full = stg_sql_is_full(rc);
    if (stg_sql_is_full(rc))
        rc = stg_cursors_load(&w->cursors, w->db);
    if (e->is_paced)
        pace(w, began_at);
    if (rc != SQLITE_OK) {
        e->free(e);
        stg_request_queue_break(w->in, &w->why);
        hold_fetches(w, false);
        return false;
    }
    stg_request_queue_answer(w->in, e);
    hold_fetches(w, false);
    return true;
}

/* -- rounds ---------------------------------------------------------------- */

/* As many calls as make a good transaction. */
static void take_appends(stg_store_writer *w)
{
    uint64_t bytes = 0;
    stg_link *link;

    for (size_t i = 0; i < APPENDS_MAX && bytes < APPEND_BYTES; i++) {
        link = stg_list_shift(&w->in->appends);
        if (link == NULL)
            return;
        stg_list_push(&w->appends, link);
        bytes += STG_HOLDER(link, stg_append_request, request.link)->cost;
    }
}

static void take_all(stg_store_writer *w)
{
    stg_request_queue *in = w->in;

    take_appends(w);
    stg_list_move(&w->lanes, &in->lanes);
    w->group = in->group;
    in->group = NULL;
    w->is_closing = in->stage >= STG_QUEUE_CLOSING;
    if (in->stage >= STG_QUEUE_ENDING && !w->is_ending && w->url == NULL)
        w->files_at = 0;
    w->is_ending = in->stage >= STG_QUEUE_ENDING;
    if (w->request_at <= uv_hrtime() || w->is_closing)
        w->request =
            STG_HOLDER(stg_list_shift(&in->writes), stg_store_request, link);
    w->commit = in->commit;
    if (in->letters_version > w->letters_version)
        w->letters_version = in->letters_version;
}

static bool is_idle(stg_store_writer *w)
{
    return stg_list_first(&w->appends) == NULL && w->group == NULL &&
           w->request == NULL;
}

/* The view is of the last commit. */
static void show(stg_store_writer *w)
{
    w->in->view = (stg_store_view){
        .used = w->used + w->files.log_size,
        .quota = w->url != NULL ? 0 : w->o->quota,
        .wal = w->files.log_size,
        .first = w->queue.is.first,
        .next = w->queue.is.next,
        .message_bytes = stg_queue_bytes(&w->queue),
        .letter_bytes = w->eviction.bytes,
        .shortage = w->short_of,
        .keys = w->keys.count,
        .commits = w->commits,
        .checkpoints = w->checkpoints,
    };
}

/* Waits for something to do. False: it is over. */
static bool take(stg_store_writer *w)
{
    stg_request_queue *in = w->in;
    bool goes_on = true;

    uv_mutex_lock(&in->lock);
    show(w);
    for (;;) {
        uint64_t commit = w->commit, now, at;

        if (in->is_broken) {
            goes_on = false;
            break;
        }
        take_all(w);
        stg_request_queue_answer_pings(in);
        at = w->commit != commit ? 0 : stg_writer_tend_at(w);
        if (!stg_list_is_empty(&in->writes))
            at = stg_ns_min(at, w->request_at);
        now = uv_hrtime();
        if (!is_idle(w) || at <= now)
            break;
        if (in->stage == STG_QUEUE_CLOSING) {
            in->stage = STG_QUEUE_WRITTEN;
            uv_cond_signal(&in->reader_wake);
            uv_cond_signal(&in->letters_wake);
            uv_cond_signal(&in->query_wake);
        }
        if (w->is_closing && in->threads == 1) {
            goes_on = false;
            break;
        }
        if (at == UINT64_MAX)
            uv_cond_wait(&in->writer_wake, &in->lock);
        else
            uv_cond_timedwait(&in->writer_wake, &in->lock, at - now);
    }
    uv_mutex_unlock(&in->lock);
    return goes_on;
}

/* Whatever was asked and not written: nobody knows. */
static void tell_broken(stg_store_writer *w)
{
    stg_request_queue *in = w->in;

    for (stg_link *link = stg_list_first(&w->appends); link != NULL;
         link = stg_list_next(&w->appends, link))
        STG_HOLDER(link, stg_append_request, request.link)->how =
            STG_APPEND_UNKNOWN;
    stg_request_queue_answer_all(in, &w->appends);
    uv_mutex_lock(&in->lock);
    in->is_answered = true;
    uv_async_send(&in->answered);
    while (in->stage < STG_QUEUE_CLOSING || in->threads > 1)
        uv_cond_wait(&in->writer_wake, &in->lock);
    uv_mutex_unlock(&in->lock);
}

/* The last to close moves the WAL into the file, and must be one that may write.
 * It also removes what has the WAL's name, which may be somebody else's by now. */
static void writer_close(stg_store_writer *w)
{
    int keeps = 1;

    if (w->url == NULL)
        stg_writer_empty_log(w);
    if (w->url == NULL && !stg_store_files_has_log(&w->files))
        (void)sqlite3_file_control(stg_sqlite_of(w->db), NULL,
                                   SQLITE_FCNTL_PERSIST_WAL, &keeps);
    stg_sql_close(w->db);
    w->db = NULL;
}

void stg_store_writer_run(void *writer)
{
    stg_store_writer *w = writer;

    stg_thread_name("store-writer");
    while (take(w))
        if (!stg_writer_append(w) || !stg_writer_group(w) ||
            !write_request(w) || !stg_writer_tend(w))
            break;
    if (stg_writer_look(w, SQLITE_OK) != SQLITE_OK)
        stg_request_queue_break(w->in, &w->why);
    if (stg_request_queue_is_broken(w->in))
        tell_broken(w);
    writer_close(w);
    stg_request_queue_leave(w->in);
}

static int load_rows(stg_store_writer *w)
{
    int rc = stg_rows_prepare(&w->rows, w->db);

    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(w->db, &w->pause_lane,
                             "UPDATE lanes SET pause = ?1, failing_since ="
                             " CASE WHEN ?1 = 0 THEN NULL ELSE failing_since"
                             " END WHERE number = ?2");
    if (rc == SQLITE_OK)
        rc = stg_partitions_prepare_fence(w->db, &w->fence);
    if (rc == SQLITE_OK)
        rc = stg_replays_prepare(&w->replays, w->db);
    if (rc == SQLITE_OK)
        rc = stg_eviction_prepare(&w->eviction, w->db);
    if (rc == SQLITE_OK)
        rc = stg_receipt_table_prepare(&w->receipts, w->db, w->o,
                                       w->url != NULL);
    if (rc == SQLITE_OK && w->url == NULL)
        rc = stg_eviction_look(&w->eviction);
    if (rc == SQLITE_OK)
        rc = stg_partitions_load(&w->partitions, w->db, w->o->shard);
    return rc == SQLITE_OK ? stg_cursors_load(&w->cursors, w->db) : rc;
}

/* There is no queue, nothing that is trimmed, and no file to be kept small. */
static int load_shared(stg_store_writer *w)
{
    int rc;

    w->age_at = w->kept_at = w->room_at = w->keys_at = UINT64_MAX;
    stg_pg_watch(w->db, is_hanging, w);
    if (!stg_keys_begin(&w->keys))
        return SQLITE_NOMEM;
    rc = stg_published_prepare(&w->published, w->db);
    return rc == SQLITE_OK ? load_rows(w) : rc;
}

int stg_store_writer_load(stg_store_writer *w)
{
    int rc;

    stg_list_init(&w->appends);
    stg_list_init(&w->lanes);
    w->cursors.shard = w->o->shard;
    w->rows.ids.partitions = &w->partitions;
    // What may be too old or too much is looked at first of all.
    w->trim_at = w->trim_since = w->rest_at = w->files_at = UINT64_MAX;
    if (w->url != NULL)
        return load_shared(w);
    if (w->o->keep == 0)
        w->kept_at = UINT64_MAX;
    w->keys.kept = w->o->keys_kept;
    w->keys.count_max = w->o->keys_max;
    w->files_at = 0;
    sqlite3_wal_hook(stg_sqlite_of(w->db), note_pages, w);
    rc = stg_sql_prepare(w->db, &w->page_count, "PRAGMA page_count");
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(w->db, &w->free_count, "PRAGMA freelist_count");
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(
            w->db, &w->add_lane,
            "INSERT INTO lanes (number, name, url) VALUES (?, ?, ?)"
            " ON CONFLICT (number) DO UPDATE SET url = excluded.url");
    if (rc == SQLITE_OK)
        rc = measure(w);
    if (rc == SQLITE_OK)
        rc = stg_queue_load(&w->queue, w->db,
                            stg_ns_min(w->o->quota / 256, SEGMENT_BYTES));
    if (rc == SQLITE_OK)
        rc = stg_keys_load(&w->keys, w->db);
    return rc == SQLITE_OK ? load_rows(w) : rc;
}

void stg_store_writer_free(stg_store_writer *w)
{
    stg_store_requests_free(&w->appends);
    stg_store_requests_free(&w->lanes);
    if (w->group != NULL)
        w->group->request.free(&w->group->request);
    if (w->request != NULL)
        w->request->free(w->request);
    stg_keys_free(&w->keys);
    stg_partitions_free(&w->partitions);
    stg_cursors_free(&w->cursors);
    stg_rows_free(&w->rows);
    free(w->hashes);
    stg_store_files_end(&w->files);
    stg_sql_close(w->db);
}
