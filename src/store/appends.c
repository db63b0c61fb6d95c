/* The writer's appends: all calls that came during the last commit, in one
 * transaction, and each of them whole or not at all. */
#include <stdlib.h>

#include "host/wall.h"
#include "store/writer.h"

static bool make_hash_room(stg_store_writer *w, size_t count)
{
    stg_key *hashes;

    if (count <= w->hash_room)
        return true;
    hashes = realloc(w->hashes, count * sizeof *hashes);
    if (hashes == NULL)
        return false;
    w->hashes = hashes;
    w->hash_room = count;
    return true;
}

/* One message; *found: what became of its key. */
static int append_message(stg_store_writer *w, const stg_append *m,
                          stg_key *hash, stg_append_answer *answer,
                          stg_key_found *found, stg_ns wall)
{
    bool has_key = m->idempotency_key.size > 0;
    int rc = SQLITE_OK;

    *found = STG_KEY_NEW;
    if (has_key &&
        !stg_keys_hash(&w->keys, hash, m->idempotency_key, &m->parcel))
        return SQLITE_NOMEM;
    if (has_key)
        rc = stg_keys_find(&w->keys, hash, wall, found, &answer->position);
    if (rc != SQLITE_OK || *found != STG_KEY_NEW) {
        answer->is_repeat = *found == STG_KEY_REPEATED;
        return rc;
    }
    rc = stg_queue_add(&w->queue, &m->parcel, wall, &answer->position);
    if (rc == SQLITE_OK && has_key)
        rc = stg_keys_add(&w->keys, hash, answer->position, wall);
    return rc;
}

/* Takes back the first `count` messages of a call. */
static int take_back(stg_store_writer *w, stg_job *job, size_t count,
                     const stg_queue *before)
{
    w->queue.next = before->next;
    w->queue.filled = before->filled;
    for (size_t i = 0; i < count; i++)
        if (job->append.messages[i].idempotency_key.size > 0 &&
            !job->answers[i].is_repeat)
            stg_keys_drop(&w->keys, &w->hashes[i], job->answers[i].position);
    return stg_sql_exec(w->db, "ROLLBACK TO call");
}

static int append_messages(stg_store_writer *w, stg_job *job, stg_ns wall)
{
    const stg_queue before = w->queue;
    stg_key_found found;
    int rc = SQLITE_OK;

    for (size_t i = 0; i < job->append.count && rc == SQLITE_OK; i++) {
        rc = append_message(w, &job->append.messages[i], &w->hashes[i],
                            &job->answers[i], &found, wall);
        if (rc != SQLITE_OK || found != STG_KEY_OTHER)
            continue;
        job->append.how = STG_APPEND_CONFLICT;
        job->append.at = i;
        return i == 0 ? SQLITE_OK : take_back(w, job, i, &before);
    }
    return rc;
}

/* One call. A single message needs no savepoint: it writes nothing before the
 * last question is answered. */
static int append_call(stg_store_writer *w, stg_job *job, stg_ns wall)
{
    bool is_many = job->append.count > 1;
    int rc = SQLITE_OK;

    job->append.how = STG_APPENDED;
    if (job->append.cost > w->room) {
        if (w->refused == 0 || job->append.cost < w->refused)
            w->refused = job->append.cost;
        job->append.how = STG_APPEND_FULL;
        return SQLITE_OK;
    }
    if (!make_hash_room(w, job->append.count))
        return SQLITE_NOMEM;
    if (is_many)
        rc = stg_sql_exec(w->db, "SAVEPOINT call");
    if (rc == SQLITE_OK)
        rc = append_messages(w, job, wall);
    if (rc == SQLITE_OK && is_many)
        rc = stg_sql_exec(w->db, "RELEASE call");
    if (job->append.how == STG_APPENDED)
        w->room -= job->append.cost;
    return rc;
}

static int append_calls(stg_store_writer *w, stg_ns wall)
{
    uint64_t before = w->queue.next;
    int rc = stg_writer_begin(w);

    for (stg_link *link = stg_list_first(&w->appends);
         link != NULL && rc == SQLITE_OK;
         link = stg_list_next(&w->appends, link))
        rc = append_call(w, STG_HOLDER(link, stg_job, link), wall);
    if (rc == SQLITE_OK && w->queue.next != before)
        rc = stg_queue_note(&w->queue);
    return stg_writer_end(w, rc);
}

static void answer(stg_store_writer *w, bool is_written)
{
    for (stg_link *link = stg_list_first(&w->appends); link != NULL;
         link = stg_list_next(&w->appends, link))
        if (!is_written)
            STG_HOLDER(link, stg_job, link)->append.how = STG_APPEND_FULL;
    uv_mutex_lock(&w->in->lock);
    w->in->next = w->queue.next;
    uv_cond_signal(&w->in->reader_wake);
    uv_mutex_unlock(&w->in->lock);
    stg_request_queue_answer_all(w->in, &w->appends);
}

bool stg_writer_append(stg_store_writer *w)
{
    const stg_queue before = w->queue;
    int rc;

    if (stg_list_first(&w->appends) == NULL)
        return true;
    // There is no queue.
    if (w->url != NULL) {
        answer(w, false);
        return true;
    }
    rc = append_calls(w, stg_wall_now());
    if (rc != SQLITE_OK) {
        w->queue.next = before.next;
        w->queue.filled = before.filled;
        stg_keys_undo(&w->keys, before.next);
    }
    w->is_disk_full = rc != SQLITE_OK;
    if (rc != SQLITE_OK && !stg_sql_is_full(rc)) {
        stg_request_queue_break(w->in, &w->why);
        return false;
    }
    answer(w, rc == SQLITE_OK);
    return true;
}
