/* Appends: the call, and what the writer does with all that came during its
 * last commit.
 *
 * All calls go into one transaction, and are answered when it is durable; each
 * is in it whole or not at all. A call of many messages has a savepoint, so that
 * a conflict at its end takes back its beginning and no other call. If the
 * transaction fails as a whole, positions and keys are as before it: a position
 * that was answered is never given again, and one that was not may be. */
#include <stdlib.h>

#include "host/wall.h"
#include "store/internal.h"

/* -- the call -------------------------------------------------------------- */

static stg_append_request *append_of(stg_link *link)
{
    return STG_HOLDER(link, stg_append_request, request.link);
}

/* A message that an earlier start accepted has the id of its time. */
static void name_repeats(const stg_store *s, stg_append_request *a)
{
    for (size_t i = 0; i < a->count && s->epochs.count > 1; i++)
        if (a->how == STG_APPENDED && a->answers[i].is_repeat)
            a->answers[i].epoch =
                stg_epochs_at(&s->epochs, a->answers[i].position);
}

static void tell_append(stg_store_request *e)
{
    stg_append_request *a = append_of(&e->link);

    name_repeats(e->s, a);
    a->done(a->ctx, a->how, a->answers, a->at);
}

static void free_append(stg_store_request *e)
{
    free(append_of(&e->link));
}

/* The messages are the caller's until done(). The cost is an estimate: 96 bytes
 * for a key's row are added to the message's. */
void stg_store_append(stg_store *s, const stg_append *messages, size_t count,
                      stg_append_fn *done, void *ctx)
{
    enum { KEY_COST = 96 };
    stg_append_request *a =
        stg_store_new_request(s, sizeof *a + count * sizeof *a->answers);

    if (a == NULL)
        return;
    a->request.tell = tell_append;
    a->request.free = free_append;
    a->messages = messages;
    a->count = count;
    a->done = done;
    a->ctx = ctx;
    for (size_t i = 0; i < count; i++)
        a->cost += stg_queue_cost(&messages[i].parcel) +
                   (messages[i].idempotency_key.size > 0 ? KEY_COST : 0);
    uv_mutex_lock(&s->in.lock);
    stg_list_push(&s->in.appends, &a->request.link);
    uv_cond_signal(&s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
}

/* -- on the writer's thread ------------------------------------------------ */

/* The hashes are kept until the call is done: take_back() needs them. */
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
    if (has_key && !stg_keys_hash(&w->keys, hash, m->idempotency_key,
                                  m->is_same_by_key ? NULL : &m->parcel))
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
static int take_back(stg_store_writer *w, stg_append_request *a, size_t count,
                     const stg_queue_extent *before)
{
    w->queue.is = *before;
    for (size_t i = 0; i < count; i++)
        if (a->messages[i].idempotency_key.size > 0 && !a->answers[i].is_repeat)
            stg_keys_drop(&w->keys, &w->hashes[i], a->answers[i].position);
    return stg_sql_exec(w->db, "ROLLBACK TO call");
}

static int append_messages(stg_store_writer *w, stg_append_request *a,
                           stg_ns wall)
{
    const stg_queue_extent before = w->queue.is;
    stg_key_found found;
    int rc = SQLITE_OK;

    for (size_t i = 0; i < a->count && rc == SQLITE_OK; i++) {
        rc = append_message(w, &a->messages[i], &w->hashes[i], &a->answers[i],
                            &found, wall);
        if (rc != SQLITE_OK || found != STG_KEY_OTHER)
            continue;
        a->how = STG_APPEND_CONFLICT;
        a->at = i;
        return i == 0 ? SQLITE_OK : take_back(w, a, i, &before);
    }
    return rc;
}

/* One call. A single message needs no savepoint: it writes nothing before the
 * last question is answered. */
static int append_call(stg_store_writer *w, stg_append_request *a, stg_ns wall)
{
    bool is_many = a->count > 1;
    int rc = SQLITE_OK;

    a->how = STG_APPENDED;
    if (a->cost > w->room) {
        if (w->refused == 0 || a->cost < w->refused)
            w->refused = a->cost;
        a->how = STG_APPEND_FULL;
        return SQLITE_OK;
    }
    if (!make_hash_room(w, a->count))
        return SQLITE_NOMEM;
    if (is_many)
        rc = stg_sql_exec(w->db, "SAVEPOINT call");
    if (rc == SQLITE_OK)
        rc = append_messages(w, a, wall);
    if (rc == SQLITE_OK && is_many)
        rc = stg_sql_exec(w->db, "RELEASE call");
    if (a->how == STG_APPENDED)
        w->room -= a->cost;
    return rc;
}

/* Stores where the queue ends now, and before its first message the epoch. */
static int append_note(stg_store_writer *w)
{
    int rc = stg_queue_note(&w->queue);

    return rc == SQLITE_OK && !w->has_epoch
               ? stg_epochs_store(w->rows.ids.epochs, w->db)
               : rc;
}

static int append_calls(stg_store_writer *w, stg_ns wall)
{
    uint64_t before = w->queue.is.next;
    int rc = stg_writer_begin(w);

    for (stg_link *link = stg_list_first(&w->appends);
         link != NULL && rc == SQLITE_OK;
         link = stg_list_next(&w->appends, link))
        rc = append_call(w, append_of(link), wall);
    if (rc == SQLITE_OK && w->queue.is.next != before)
        rc = append_note(w);
    rc = stg_writer_end(w, rc);
    w->has_epoch |= rc == SQLITE_OK && w->queue.is.next != before;
    return rc;
}

/* in->next rises before the answers are given: whoever hears of one can read
 * the message. */
static void answer(stg_store_writer *w, bool is_written)
{
    for (stg_link *link = stg_list_first(&w->appends); link != NULL;
         link = stg_list_next(&w->appends, link))
        if (!is_written)
            append_of(link)->how = STG_APPEND_FULL;
    uv_mutex_lock(&w->in->lock);
    w->in->next = w->queue.is.next;
    uv_cond_signal(&w->in->reader_wake);
    uv_mutex_unlock(&w->in->lock);
    stg_request_queue_answer_all(w->in, &w->appends);
}

/* Empties the WAL where it has the room that the appends need: its pages have a
 * place in the file already. */
static int append_squeeze(stg_store_writer *w)
{
    uint64_t cost = 0;

    for (stg_link *link = stg_list_first(&w->appends); link != NULL;
         link = stg_list_next(&w->appends, link))
        cost += append_of(link)->cost;
    return cost > w->room && cost <= w->room + w->files.log_size
               ? stg_writer_squeeze(w)
               : SQLITE_OK;
}

bool stg_writer_append(stg_store_writer *w)
{
    const stg_queue_extent before = w->queue.is;
    int rc;

    if (stg_list_first(&w->appends) == NULL)
        return true;
    // There is no queue.
    if (w->url != NULL) {
        answer(w, false);
        return true;
    }
    rc = append_squeeze(w);
    if (rc == SQLITE_OK)
        rc = append_calls(w, stg_wall_now());
    if (rc != SQLITE_OK) {
        w->queue.is = before;
        stg_keys_undo(&w->keys, before.next);
    }
    stg_writer_note_appends(w, rc);
    if (rc != SQLITE_OK && !stg_sql_is_full(rc)) {
        stg_request_queue_break(w->in, &w->why);
        return false;
    }
    answer(w, rc == SQLITE_OK);
    return true;
}
