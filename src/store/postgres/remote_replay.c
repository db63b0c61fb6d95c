/* Letters of partitions that other hubs have: who has one sends it again.
 *
 * A replay of such a letter only notes the request, in its row; once a second
 * each hub looks for requests in the partitions that it has claimed, and
 * replays those letters. What nobody has now waits for whoever takes it. */
#include <stdlib.h>

#include "store/replay_job.h"

enum { REQUESTS_MAX = 256 }; /* that are carried out at once */

static const uint64_t pause_time = STG_S, held_time = 5 * STG_S;

/* -- to ask ---------------------------------------------------------------- */

/* A drop changes a row's state alone, which any hub may do; parking needs the
 * owner of the partition. */
bool stg_replay_job_is_ours(const stg_replay_job *r, const stg_letter *l)
{
    const stg_partition_row *p;

    if (r->s->url == NULL || r->is_drop || l->partition == 0)
        return true;
    p = stg_partitions_get(&r->s->partitions, l->partition);
    return p != NULL && p->is_claimed;
}

/* A letter that was replayed or dropped meanwhile is not dead, and stays so. */
static int write_remote_replays(stg_store_request *e, stg_store_writer *w)
{
    stg_replay_job_step *s =
        STG_HOLDER(&e->link, stg_replay_job_step, request.link);
    stg_stmt *st;
    int rc = stg_sql_prepare_once(w->db, &st,
                                  "UPDATE failed_broadcast_logs"
                                  " SET is_requested = 1"
                                  " WHERE id = ? AND state = 'dead'");

    for (size_t i = 0; i < s->count && rc == SQLITE_OK; i++)
        rc = stg_sql_run(st, "u", s->ids[i]);
    stg_sql_finalize(st);
    return rc;
}

/* Counts the letters as replayed, though another hub will do it: what becomes
 * of them is not known here. */
static void have_asked_others(stg_replay_job *r, stg_replay_job_step *s)
{
    if (s->request.is_full) {
        stg_replay_job_finish(r, STG_LETTERS_FULL);
        return;
    }
    for (size_t i = 0; i < s->count; i++) {
        const stg_letter *l = &r->found.letters[r->at + i];

        r->sum.letters++;
        stg_replay_job_add(r, l->lane, l->count);
    }
    r->at += s->count;
    stg_replay_job_advance(r);
}

void stg_replay_job_ask_others(stg_replay_job *r)
{
    stg_replay_job_step *s = stg_replay_job_step_new(r, have_asked_others);

    if (s == NULL)
        return;
    while (
        s->count < STG_REPLAY_JOB_PIECE && r->at + s->count < r->found.count &&
        !r->found.are_forgotten[r->at + s->count] &&
        !stg_replay_job_is_orphaned(r, &r->found.letters[r->at + s->count]) &&
        !stg_replay_job_is_ours(r, &r->found.letters[r->at + s->count])) {
        s->ids[s->count] = r->found.letters[r->at + s->count].id;
        s->count++;
    }
    s->request.write = write_remote_replays;
    stg_store_request_send(r->s, &s->request);
}

/* -- to fulfil ------------------------------------------------------------- */

typedef struct looking {
    stg_store_request request;
    char *claimed;
    uint64_t ids[REQUESTS_MAX];
    size_t count;
} looking;

static int look_for_remote_replays(stg_store_request *e, stg_db *db)
{
    looking *l = STG_HOLDER(&e->link, looking, request.link);
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st,
        "SELECT id FROM failed_broadcast_logs"
        " WHERE is_requested = 1 AND state = 'dead'"
        " AND partition = ANY (CAST(?1 AS INTEGER[])) ORDER BY id LIMIT ?2");

    l->count = 0;
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "su", l->claimed, (uint64_t)REQUESTS_MAX);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        l->ids[l->count++] = stg_sql_column(st, 0);
        rc = SQLITE_OK;
    }
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A replay that could not be finished (a full lane, a log that is away, a target
 * that is not in the settings) leaves its requests in the rows: the next look
 * comes later then. */
static void look_again(void *ctx, const stg_letters_sum *sum)
{
    stg_store *s = ctx;

    if (s->closed == NULL)
        stg_remote_replay_watch(
            s, sum->end == STG_LETTERS_DONE && sum->orphaned == 0 ? pause_time
                                                                  : held_time);
}

/* These replays take the way of all others, with a filter of ids; so they are
 * fenced, paced and counted as those. */
static void have_remote_replays(stg_store_request *e)
{
    const looking *l = STG_HOLDER(&e->link, looking, request.link);
    const stg_letter_filter f = {.ids = l->ids, .id_count = l->count};

    if (e->s->closed != NULL)
        return;
    if (l->count == 0)
        stg_remote_replay_watch(e->s, pause_time);
    else
        stg_store_replay(e->s, &f, false, look_again, e->s);
}

static void free_looking(stg_store_request *e)
{
    looking *l = STG_HOLDER(&e->link, looking, request.link);

    free(l->claimed);
    free(l);
}

void stg_remote_replay_watch(stg_store *s, uint64_t pause)
{
    looking *l = calloc(1, sizeof *l);

    if (l == NULL || (l->claimed = stg_store_claimed(s)) == NULL) {
        free(l);
        stg_store_lack_memory(s);
        return;
    }
    l->request.look = look_for_remote_replays;
    l->request.tell = have_remote_replays;
    l->request.free = free_looking;
    l->request.at = uv_hrtime() + pause;
    stg_store_request_send(s, &l->request);
}
