/* Rewinds that are under way here, each a replay job with a range of the log in
 * the place of a bulk row. A single message that is sent again is one, too: resend.c.
 *
 * A look finds the rows that are to go on. With PostgreSQL it comes again every
 * second, for other hubs make rows, too, and partitions change hands; with a file
 * while there are some.
 *
 * A rewind that has to wait, for room, for those before a message in their order,
 * for the end of all that it has parked, or of what is under way of it when it is
 * cancelled, has no step and no timer: the group that ends rows of its lane wakes
 * it. Where there are none the look does. */
#include <stdlib.h>

#include "store/replay_job.h"
#include "store/rewinds.h"

static const stg_ns look_pause = STG_S;

/* Rows that have to have room before one that had none goes on: pieces of a few
 * messages would each read the log again. */
enum { ROOM_MIN = 64 };

/* -- a job ----------------------------------------------------------------- */

/* The range as a bulk row: its one letter. */
stg_replay_job *stg_rewind_job_new(stg_store *s, const stg_again *again)
{
    stg_replay_job *r = calloc(1, sizeof *r);
    stg_letter *l = calloc(1, sizeof *l);
    stg_again *copy = malloc(sizeof *copy);

    if (r == NULL || l == NULL || copy == NULL) {
        free(r);
        free(l);
        free(copy);
        stg_store_lack_memory(s);
        return NULL;
    }
    *copy = *again;
    *l = (stg_letter){.target = again->lane < s->lanes.count
                                    ? s->lanes.names[again->lane].name
                                    : "",
                      .lane = again->lane,
                      .partition = again->partition,
                      .position = again->position,
                      .last_position = again->until - 1};
    r->s = s;
    r->again = copy;
    r->found.letters = l;
    r->found.count = 1;
    return r;
}

static void begin(stg_replay_job *r);
static void end(stg_replay_job *r);
static void cancel(stg_replay_job *r);
static void wake(stg_replay_job *r);

static uint32_t replay_of(const stg_again *a)
{
    return (uint32_t)a->number * STG_REWIND_REPLAYS;
}

/* The next look finds whether it is to go on; one that was cancelled is. */
static void leave(stg_replay_job *r, stg_letters_end why)
{
    if (r->is_cancel_asked)
        stg_replay_job_advance(r);
    else
        stg_replay_job_finish(r, why);
}

static bool is_forgotten(const stg_replay_job *r)
{
    const stg_lanes *lanes = &r->s->lanes;
    uint32_t lane = r->again->lane;

    return lane < lanes->count && lanes->names[lane].is_forgotten;
}

static bool is_rewind(const stg_again *a)
{
    return a->is_stored && !a->is_one;
}

static bool is_read(const stg_replay_job *r)
{
    return r->again->has_begun &&
           r->found.letters[0].position >= r->again->until;
}

/* Until an end in its lane makes so much room, or any end if that is 0. */
static void wait_for_end(stg_replay_job *r, uint64_t wants_room)
{
    r->wants_room = wants_room;
    r->is_waiting = true;
    // It came while the last step was under way.
    if (r->is_woken && wants_room == 0)
        wake(r);
}

static void wake(stg_replay_job *r)
{
    r->is_woken = true;
    if (!r->is_waiting)
        return;
    r->is_waiting = false;
    stg_replay_job_advance(r);
}

/* Where the settings lack its target, the next look asks again. */
static void go_on(stg_replay_job *r)
{
    const stg_letter *l = &r->found.letters[0];
    const stg_store_options *o = &r->s->o;

    if (stg_replay_job_is_unread(r, l))
        stg_replay_job_finish(r, STG_LETTERS_AWAY);
    else if (o->knows != NULL && !o->knows(o->ctx, l->lane))
        stg_replay_job_finish(r, STG_LETTERS_HELD);
    else if (r->again->is_stored && stg_replay_job_room(r, l->lane) == 0)
        wait_for_end(r, ROOM_MIN);
    else if (!r->again->has_begun)
        begin(r);
    else
        stg_replay_job_range(r, l);
}

void stg_rewind_advance(stg_replay_job *r)
{
    const stg_letter *l = &r->found.letters[0];
    stg_again *a = r->again;

    r->is_woken = false;
    a->is_cancelled |= r->is_cancel_asked;
    if (is_forgotten(r) || (is_read(r) && !is_rewind(a)))
        stg_replay_job_finish(r, STG_LETTERS_DONE);
    else if (!stg_replay_job_is_ours(r, l))
        stg_replay_job_finish(r, STG_LETTERS_AWAY);
    else if (a->is_cancelled)
        cancel(r);
    else if (is_read(r))
        end(r);
    else
        go_on(r);
}

/* A piece that stopped before its first message waits for the order; one that was
 * not written was cancelled meanwhile. */
void stg_rewind_have_piece(stg_replay_job *r, stg_replay_job_step *s)
{
    stg_letter *l = &r->found.letters[0];
    const stg_replayed *out = &s->out[0];
    bool has_moved = out->next > l->position;

    if (!out->is_done) {
        leave(r, STG_LETTERS_HELD);
        return;
    }
    l->position = out->next;
    r->again->sent += out->messages;
    stg_replay_job_count(r, out);
    stg_replay_job_tell(r, s);
    if (has_moved)
        stg_replay_job_advance(r);
    else
        wait_for_end(r, 0);
}

/* -- its end --------------------------------------------------------------- */

static void tell_end(const stg_replay_job *r, uint64_t cancelled)
{
    const stg_store_options *o = &r->s->o;
    const stg_again *a = r->again;

    if (o->rewound != NULL)
        o->rewound(o->ctx, a->lane, a->partition, a->sent, cancelled);
}

static int write_end(stg_store_request *e, stg_store_writer *w)
{
    return stg_rewind_end(
        w, STG_HOLDER(&e->link, stg_replay_job_step, request.link));
}

static void have_asked_end(stg_replay_job *r, stg_replay_job_step *s)
{
    if (s->request.is_full) {
        stg_replay_job_finish(r, STG_LETTERS_FULL);
    } else if (s->out[0].is_done) {
        tell_end(r, 0);
        stg_replay_job_finish(r, STG_LETTERS_DONE);
    } else {
        wait_for_end(r, 0);
    }
}

/* All is read: is it over? */
static void end(stg_replay_job *r)
{
    stg_replay_job_step *s = stg_replay_job_step_new(r, have_asked_end);

    if (s == NULL)
        return;
    s->request.write = write_end;
    stg_store_request_send(r->s, &s->request);
}

static int write_cancel(stg_store_request *e, stg_store_writer *w)
{
    stg_replay_job_step *s =
        STG_HOLDER(&e->link, stg_replay_job_step, request.link);
    int rc;

    s->count = 1;
    s->partitions[0] = s->r->again->partition;
    rc = stg_replay_job_fence(w, s);
    if (rc == SQLITE_OK && !s->is_fenced)
        rc = stg_rewind_cancel(w, s);
    return rc == SQLITE_OK ? stg_replay_job_move_books(w, s) : rc;
}

static void have_cancelled(stg_replay_job *r, stg_replay_job_step *s)
{
    const stg_store_options *o = &r->s->o;
    const stg_again *a = r->again;
    uint64_t messages = s->out[0].messages;

    if (s->request.is_full || !s->out[0].is_done) {
        stg_replay_job_finish(r, STG_LETTERS_HELD);
        return;
    }
    r->s->replays_told = stg_ns_max(r->s->replays_told, s->number);
    if (o->cancelled != NULL)
        o->cancelled(o->ctx, a->lane, a->partition, replay_of(a), messages);
    tell_end(r, messages);
    stg_replay_job_finish(r, STG_LETTERS_DONE);
}

/* What is under way of it comes to its end first; then its rows are the store's
 * alone. */
static void cancel(stg_replay_job *r)
{
    const stg_store_options *o = &r->s->o;
    const stg_again *a = r->again;
    stg_replay_job_step *s;

    if (o->hold != NULL && !o->hold(o->ctx, a->lane, replay_of(a))) {
        wait_for_end(r, 0);
        return;
    }
    s = stg_replay_job_step_new(r, have_cancelled);
    if (s == NULL)
        return;
    s->request.write = write_cancel;
    stg_store_request_send(r->s, &s->request);
}

/* -- its beginning --------------------------------------------------------- */

static int write_begin(stg_store_request *e, stg_store_writer *w)
{
    return stg_rewind_begin(
        w, STG_HOLDER(&e->link, stg_replay_job_step, request.link));
}

static void have_begun(stg_replay_job *r, stg_replay_job_step *s)
{
    stg_again *a = r->again;
    stg_letter *l = &r->found.letters[0];

    if (s->request.is_full || !s->out[0].is_done) {
        leave(r, STG_LETTERS_FULL);
        return;
    }
    a->has_begun = true;
    l->position = a->position;
    l->last_position = a->until - 1;
    stg_replay_job_advance(r);
}

static void write_row(stg_replay_job *r)
{
    stg_replay_job_step *s = stg_replay_job_step_new(r, have_begun);

    if (s == NULL)
        return;
    s->request.write = write_begin;
    stg_store_request_send(r->s, &s->request);
}

/* The first record from the middle on tells on which side of it the time is; where
 * there is none up to the high end, it is below. Positions below the log's first
 * are read as that. */
static void halve(stg_again *a, const stg_record *records, size_t count,
                  uint64_t next)
{
    uint64_t middle = a->low + (a->high - a->low) / 2;

    for (size_t i = 0; i < count; i++) {
        if (records[i].position < middle)
            continue;
        if (records[i].position >= a->high || records[i].created_at >= a->since)
            a->high = middle;
        else
            a->low = records[i].position + 1;
        return;
    }
    if (next >= a->high)
        a->high = middle;
    else
        a->low = next;
}

static void seek(stg_replay_job *r);

static void have_middle(void *ctx, const stg_record *records, size_t count,
                        uint64_t next)
{
    stg_replay_job *r = ctx;
    stg_again *a = r->again;

    stg_list_remove(&r->reading);
    if (r->s->closed != NULL) {
        stg_replay_job_finish(r, STG_LETTERS_STOPPED);
    } else if (count == 0 && next <= a->low + (a->high - a->low) / 2) {
        // The log cannot be read now.
        stg_replay_job_rest(r, STG_REPLAY_JOB_PAUSE);
    } else {
        halve(a, records, count, next);
        seek(r);
    }
}

/* Of another log than the queue the first message that is not older is found by
 * halving: as its clock goes, they turn young once. */
static void seek(stg_replay_job *r)
{
    const stg_store_options *o = &r->s->o;
    stg_again *a = r->again;

    if (a->low >= a->high) {
        a->position = a->high;
        write_row(r);
        return;
    }
    stg_list_push(&r->s->readings, &r->reading);
    o->read(o->ctx, a->partition, a->low + (a->high - a->low) / 2, 1, 1,
            have_middle, r);
}

/* It ends where the lane stands now; else where its cursor was stored. */
static void begin(stg_replay_job *r)
{
    const stg_store_options *o = &r->s->o;
    stg_again *a = r->again;

    if (o->next != NULL)
        a->until = stg_ns_max(a->until, o->next(o->ctx, a->lane, a->partition));
    if (a->since == 0 || a->partition == 0 || o->read == NULL) {
        write_row(r);
        return;
    }
    if (a->high == 0)
        a->high = a->until;
    seek(r);
}

/* -- which are to go on ---------------------------------------------------- */

typedef struct looking {
    stg_store_request request;
    char *claimed;
    stg_again *all;
    size_t count;
} looking;

static stg_replay_job *job_at(stg_link *link)
{
    return STG_HOLDER(link, stg_replay_job, rewinding);
}

/* NULL: it is not under way here. */
static stg_replay_job *find_job(const stg_store *s, const stg_again *a)
{
    for (stg_link *link = stg_list_first(&s->rewinding); link != NULL;
         link = stg_list_next(&s->rewinding, link)) {
        const stg_again *other = job_at(link)->again;

        if (other->lane == a->lane && other->number == a->number &&
            other->partition == a->partition)
            return job_at(link);
    }
    return NULL;
}

/* The next look finds whether it is to go on. */
static void have_ended(void *ctx, const stg_letters_sum *sum)
{
    (void)ctx;
    (void)sum;
}

static void begin_job(stg_store *s, const stg_again *a)
{
    stg_replay_job *r = stg_rewind_job_new(s, a);

    if (r == NULL)
        return;
    r->done = have_ended;
    stg_list_push(&s->rewinding, &r->rewinding);
    stg_replay_job_advance(r);
}

/* For one that waits, and whom no end will wake. */
static void look_after(stg_replay_job *r, const stg_again *a)
{
    r->is_cancel_asked |= a->is_cancelled;
    if (r->is_waiting &&
        (a->waiting == 0 || r->is_cancel_asked ||
         (r->wants_room > 0 && stg_replay_job_room(r, a->lane) > 0)))
        wake(r);
}

static void watch(stg_store *s, stg_ns pause);

static void have_looked(stg_store_request *e)
{
    const looking *l = STG_HOLDER(&e->link, looking, request.link);
    stg_store *s = e->s;

    s->is_rewind_watched = false;
    if (s->closed != NULL)
        return;
    if (l->count > 0 || s->url != NULL)
        watch(s, look_pause);
    for (size_t i = 0; i < l->count; i++) {
        stg_replay_job *r = find_job(s, &l->all[i]);

        if (r != NULL)
            look_after(r, &l->all[i]);
        else
            begin_job(s, &l->all[i]);
    }
}

static int look(stg_store_request *e, stg_db *db)
{
    looking *l = STG_HOLDER(&e->link, looking, request.link);

    return stg_rewind_look(db, l->claimed, &l->all, &l->count);
}

static void free_looking(stg_store_request *e)
{
    looking *l = STG_HOLDER(&e->link, looking, request.link);

    free(l->claimed);
    free(l->all);
    free(l);
}

static void watch(stg_store *s, stg_ns pause)
{
    looking *l = stg_store_new_request(s, sizeof *l);

    if (l == NULL)
        return;
    l->request.look = look;
    l->request.tell = have_looked;
    l->request.free = free_looking;
    l->request.at = uv_hrtime() + pause;
    if (s->url != NULL && (l->claimed = stg_store_claimed(s)) == NULL) {
        free_looking(&l->request);
        stg_store_lack_memory(s);
        return;
    }
    s->is_rewind_watched = true;
    stg_store_request_send(s, &l->request);
}

/* With a file nobody looks as long as there is no rewind. */
void stg_store_start_rewinds(stg_store *s)
{
    if (!s->is_rewind_watched)
        watch(s, 0);
}

/* -- woken ----------------------------------------------------------------- */

/* Whether the group ends the lane, or an attempt of a replay of it. */
static bool ends_any(const stg_group *g, uint32_t lane)
{
    for (size_t i = 0; i < g->change_count; i++) {
        const stg_change *c = &g->changes[i];

        if (c->lane == lane && (c->replay > 0 || c->kind == STG_CHANGE_FORGET))
            return true;
    }
    return false;
}

void stg_rewinds_note(stg_store *s, const stg_group *g)
{
    for (stg_link *link = stg_list_first(&s->rewinding); link != NULL;
         link = stg_list_next(&s->rewinding, link)) {
        stg_replay_job *r = job_at(link);

        r->is_woken = r->is_woken || ends_any(g, r->again->lane);
    }
}

void stg_rewinds_wake(stg_store *s)
{
    stg_link *link = stg_list_first(&s->rewinding);

    while (link != NULL) {
        stg_replay_job *r = job_at(link);

        link = stg_list_next(&s->rewinding, link);
        if (r->is_waiting && r->is_woken &&
            (r->wants_room == 0 ||
             stg_replay_job_room(r, r->again->lane) >= r->wants_room))
            wake(r);
    }
}

void stg_rewinds_cancel(stg_store *s, uint32_t lane)
{
    stg_link *link = stg_list_first(&s->rewinding);

    while (link != NULL) {
        stg_replay_job *r = job_at(link);

        link = stg_list_next(&s->rewinding, link);
        if (r->again->lane != lane || r->again->is_one)
            continue;
        r->is_cancel_asked = true;
        wake(r);
    }
}

void stg_rewind_drop_waiting(stg_store *s)
{
    stg_link *link;

    while ((link = stg_list_shift(&s->rewinding)) != NULL)
        stg_replay_job_free(job_at(link));
}
