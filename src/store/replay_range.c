/* Bulk rows are replayed from their front, piece by piece; a rewind is in the place
 * of one, with a range of the log.
 *
 * A piece is read first, outside of any transaction: from the queue by the
 * query thread, or from another log by o.read. Then the writer parks the
 * messages that the target wants, and moves the row's front behind them. What
 * was read may be old by then: if the row does not begin where the piece does,
 * or the partition is another hub's, nothing is written.
 *
 * The trap is a lack of memory: the replay is freed with the step, so r must
 * not be touched behind it. */
#include <stdlib.h>
#include <string.h>

#include "store/replay_job.h"

static stg_replay_job_step *step_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, stg_replay_job_step, request.link);
}

/* -- bulk rows ------------------------------------------------------------ */

/* The body stays in the store, but for a filter that looks at it: the writer copies
 * it from there when it parks the message. */
static int scan_row(stg_replay_job_step *s, stg_stmt *st, uint64_t *bytes)
{
    stg_parcel *p = &s->parcels[s->bite.count];

    *p = (stg_parcel){.content_type = stg_arena_column(&s->texts, st, 1),
                      .headers = stg_arena_column(&s->texts, st, 2),
                      .key = stg_arena_column(&s->texts, st, 3)};
    if (s->wants_body)
        p->body = stg_arena_column(&s->texts, st, 5);
    s->keys[s->bite.count] = stg_parcel_hash(p->key);
    s->positions[s->bite.count++] = s->bite.to = stg_sql_column(st, 0);
    *bytes += stg_sql_column(st, 4);
    return s->texts.is_short ? SQLITE_NOMEM : SQLITE_OK;
}

/* Reads which messages there are from the row's front on. If the row's end is
 * reached, the piece reaches to there, too, though the last messages may have
 * been deleted: what is missing then counts as expired. */
static int look_range(stg_store_request *e, stg_db *db)
{
    stg_replay_job_step *s = step_of(e);
    uint64_t bytes = 0;
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(
        db, &st,
        s->wants_body
            ? "SELECT position, content_type, headers, key, length(body), body"
              " FROM messages WHERE position >= ? AND position <= ?"
              " ORDER BY position"
            : "SELECT position, content_type, headers, key, length(body)"
              " FROM messages WHERE position >= ? AND position <= ?"
              " ORDER BY position");

    s->bite.count = 0;
    stg_arena_free(&s->texts);
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "uu", s->bite.from, s->last);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        rc = scan_row(s, st, &bytes);
        if (rc == SQLITE_OK && (s->bite.count == STG_REPLAY_JOB_SCANNED ||
                                bytes > STG_REPLAY_JOB_BYTES))
            break;
    }
    stg_sql_finalize(st);
    if (rc != SQLITE_DONE)
        return rc;
    s->bite.to = s->last;
    return SQLITE_OK;
}

/* stg_replay_job_fence() checks one letter here: count is 1, and partitions[0]
 * is its partition, or 0 for the queue, which is not fenced. */
static int write_range(stg_store_request *e, stg_store_writer *w)
{
    stg_replay_job_step *s = step_of(e);
    int rc;

    s->count = 1;
    rc = stg_replay_job_fence(w, s);
    if (rc != SQLITE_OK || s->is_fenced)
        return rc;
    rc = s->r->again != NULL
             ? stg_rewind_write(w, s)
             : stg_replays_range(&w->replays, &w->rows, &s->bite,
                                 stg_sql_now(w->db), &s->out[0]);
    return rc == SQLITE_OK ? stg_replay_job_move_books(w, s) : rc;
}

/* The row goes on from its new front, up to where it was found to end.
 * out->next is 0 for a row that is over, and for one that has changed or was
 * fenced meanwhile: that is left to another call. */
static void have_bitten(stg_replay_job *r, stg_replay_job_step *s)
{
    stg_letter *l = &r->found.letters[r->at];
    stg_replayed *out = &s->out[0];

    if (s->request.is_full) {
        stg_replay_job_finish(r, STG_LETTERS_FULL);
        return;
    }
    if (r->again != NULL) {
        stg_rewind_have_piece(r, s);
        return;
    }
    if (out->next == 0 || s->bite.to >= l->last_position)
        r->at++;
    l->position = out->next;
    // It is one letter, in however many pieces.
    if (out->is_done && r->bitten == l->id)
        out->is_done = false;
    r->bitten = l->id;
    stg_replay_job_count(r, out);
    stg_replay_job_tell(r, s);
    stg_replay_job_advance(r);
}

/* The lane may have become full since it was asked; one message is taken all the
 * same, or the replay would stay where it is. In strict order a rewind has one at
 * a time. */
static uint64_t piece_max(const stg_replay_job *r, stg_replay_job_step *s,
                          const stg_letter *l)
{
    const stg_store_options *o = &r->s->o;

    s->order = r->again != NULL && o->order != NULL ? o->order(o->ctx, l->lane)
                                                    : STG_ORDER_NONE;
    return s->order == STG_ORDER_STRICT
               ? 1
               : stg_ns_max(stg_replay_job_room(r, l->lane), 1);
}

/* Chooses the messages that the target wants, and no more than the lane has
 * room for: the piece ends before the first that does not fit. */
static void choose(stg_replay_job *r, stg_replay_job_step *to,
                   const stg_replay_job_step *from, const stg_letter *l)
{
    const stg_store_options *o = &r->s->o;
    uint64_t room = piece_max(r, to, l);
    stg_bite *b = &to->bite;

    *b = from->bite;
    b->positions = to->positions;
    b->count = 0;
    for (size_t i = 0; i < from->bite.count; i++) {
        if (o->wants != NULL && !o->wants(o->ctx, l->lane, &from->parcels[i]))
            continue;
        if (b->count == room) {
            b->to = from->positions[i] - 1;
            return;
        }
        to->keys[b->count] = from->keys[i];
        to->positions[b->count++] = from->positions[i];
    }
}

static bool wants_body(const stg_replay_job *r, const stg_letter *l)
{
    const stg_store_options *o = &r->s->o;

    return o->wants_body != NULL && o->wants_body(o->ctx, l->lane);
}

static void scan_queue(stg_replay_job *r, const stg_letter *l);

/* A reload may have brought a filter of bodies meanwhile: it has to see them. */
static void have_scan(stg_replay_job *r, stg_replay_job_step *scan)
{
    const stg_letter *l = &r->found.letters[r->at];
    stg_replay_job_step *s;

    if (!scan->wants_body && wants_body(r, l)) {
        scan_queue(r, l);
        return;
    }
    s = stg_replay_job_step_new(r, have_bitten);
    if (s == NULL)
        return;
    s->request.write = write_range;
    choose(r, s, scan, l);
    stg_store_request_send(r->s, &s->request);
}

/* -- another log ----------------------------------------------------------- */

enum { TRIES = 3 }; /* of a read; each takes some seconds at most */

static bool is_unread(const stg_replay_job *r, uint32_t partition)
{
    for (size_t i = 0; i < r->unread_count; i++)
        if (r->unread[i] == partition)
            return true;
    return false;
}

/* Leaves the letter dead. Other letters of the partition are not asked for in
 * this replay, for each would wait for TRIES reads. */
static void give_up(stg_replay_job *r, const stg_letter *l)
{
    uint32_t *unread =
        realloc(r->unread, (r->unread_count + 1) * sizeof *unread);

    stg_replay_job_leave(r, l, STG_LETTERS_AWAY);
    r->tries = 0;
    r->at++;
    if (unread == NULL)
        return;
    r->unread = unread;
    r->unread[r->unread_count++] = l->partition;
}

/* The read was answered, but brought nothing above the row's front. The next
 * try comes after a pause, for the answer may have come within the call, and
 * would recurse. */
static void have_nothing(stg_replay_job *r, const stg_letter *l)
{
    // A rewind goes on when the log is there again.
    if (++r->tries == TRIES && (r->again == NULL || !r->again->is_stored))
        give_up(r, l);
    stg_replay_job_rest(r, STG_REPLAY_JOB_PAUSE);
}

/* Adds a record that the target wants, if the lane has room for it. true_size:
 * the body is too large to be sent, as it was when it was routed. The bytes are
 * lent for the call, and copied. */
static void add_record(stg_replay_job *r, stg_replay_job_step *s,
                       const stg_record *record, const stg_letter *l,
                       uint64_t room)
{
    const stg_store_options *o = &r->s->o;
    stg_bite *b = &s->bite;
    unsigned char *bytes;
    stg_parcel p;

    if (!stg_parcel_unpack(&p, record->bytes, record->size) ||
        record->true_size > 0)
        return;
    if (o->wants != NULL && !o->wants(o->ctx, l->lane, &p))
        return;
    if (b->count == room || b->count == STG_REPLAY_JOB_SCANNED) {
        b->to = record->position - 1;
        return;
    }
    bytes = stg_arena_bytes(&s->texts, record->size + 1);
    if (bytes == NULL)
        return;
    memcpy(bytes, record->bytes, record->size);
    s->records[b->count] = *record;
    s->records[b->count].bytes = bytes;
    s->keys[b->count] = record->key;
    s->positions[b->count++] = record->position;
}

static void take_records(stg_replay_job *r, stg_replay_job_step *s,
                         const stg_record *records, size_t count, uint64_t next)
{
    const stg_letter *l = &r->found.letters[r->at];
    uint64_t room = piece_max(r, s, l);
    stg_bite *b = &s->bite;

    *b = (stg_bite){.id = l->id,
                    .from = l->position,
                    .positions = s->positions,
                    .records = s->records,
                    .to = l->last_position};
    // Positions up to `to` that are not among the records have expired.
    if (next <= l->last_position)
        b->to = next - 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t to = b->to;

        if (records[i].position < l->position || records[i].position > to)
            continue;
        add_record(r, s, &records[i], l, room);
    }
}

/* Called on the loop, perhaps within read_log(). While the store closes, a
 * replay ends here; one whose answer never comes is freed by
 * stg_replay_job_drop_readings(). */
static void have_records(void *ctx, const stg_record *records, size_t count,
                         uint64_t next)
{
    stg_replay_job *r = ctx;
    const stg_letter *l = &r->found.letters[r->at];
    stg_replay_job_step *s;

    stg_list_remove(&r->reading);
    if (r->s->closed != NULL) {
        stg_replay_job_finish(r, STG_LETTERS_STOPPED);
        return;
    }
    if (next <= l->position) {
        have_nothing(r, l);
        return;
    }
    r->tries = 0;
    s = stg_replay_job_step_new(r, have_bitten);
    if (s == NULL)
        return;
    s->records = calloc(STG_REPLAY_JOB_SCANNED, sizeof *s->records);
    if (s->records != NULL)
        take_records(r, s, records, count, next);
    if (s->records == NULL || s->texts.is_short) {
        stg_store_lack_memory(r->s);
        s->request.free(&s->request);
        return;
    }
    s->partitions[0] = l->partition;
    s->request.write = write_range;
    stg_store_request_send(r->s, &s->request);
}

static void read_log(stg_replay_job *r, const stg_letter *l)
{
    const stg_store_options *o = &r->s->o;
    uint64_t room = stg_replay_job_room(r, l->lane);

    stg_list_push(&r->s->readings, &r->reading);
    o->read(o->ctx, l->partition, l->position, STG_REPLAY_JOB_BYTES,
            (size_t)stg_ns_min(stg_ns_max(room, 1), STG_REPLAY_JOB_SCANNED),
            have_records, r);
}

/* Whether a bulk row's log cannot be read: nobody reads it here, or its
 * partition was given up. The queue always can. */
bool stg_replay_job_is_unread(const stg_replay_job *r, const stg_letter *l)
{
    return !r->is_drop && l->last_position > 0 && l->partition != 0 &&
           (r->s->o.read == NULL || is_unread(r, l->partition));
}

void stg_replay_job_drop_readings(stg_store *s)
{
    stg_link *link;

    while ((link = stg_list_shift(&s->readings)) != NULL)
        stg_replay_job_free(STG_HOLDER(link, stg_replay_job, reading));
}

/* -- both ------------------------------------------------------------------ */

static void scan_queue(stg_replay_job *r, const stg_letter *l)
{
    stg_replay_job_step *s = stg_replay_job_step_new(r, have_scan);

    if (s == NULL)
        return;
    s->parcels = calloc(STG_REPLAY_JOB_SCANNED, sizeof *s->parcels);
    if (s->parcels == NULL) {
        stg_store_lack_memory(r->s);
        s->request.free(&s->request);
        return;
    }
    s->wants_body = wants_body(r, l);
    s->request.look = look_range;
    s->last = l->last_position;
    s->bite.id = l->id;
    s->bite.from = l->position;
    stg_store_request_send(r->s, &s->request);
}

void stg_replay_job_range(stg_replay_job *r, const stg_letter *l)
{
    if (l->partition == 0)
        scan_queue(r, l);
    else
        read_log(r, l);
}
