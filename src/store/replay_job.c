/* Replay and drop: step by step over the letters of a filter.
 *
 * The query thread finds a page of letters; of these, some at a time, the
 * writer settles in one transaction; then flow is told, and the next ones
 * follow. Of a bulk row the query thread first reads which messages there are,
 * and their target is asked whether it wants them. One step is under way at any
 * time, and whatever it relies on may have changed when it comes to it: so each
 * names what it expects. */
#include "store/replay_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t patience = 10 * STG_S;

void stg_replay_job_free(stg_replay_job *r)
{
    stg_filter_free(&r->filter);
    stg_found_free(&r->found);
    stg_list_remove(&r->rewinding);
    free(r->again);
    free(r->held_lanes);
    free(r->unread);
    free(r);
}

/* done() is called before r is freed, for the sum's `held` is r's memory. */
void stg_replay_job_finish(stg_replay_job *r, stg_letters_end end)
{
    if (end != STG_LETTERS_DONE)
        r->sum.end = end;
    r->sum.held = r->held[0] == '\0' ? NULL : r->held;
    r->done(r->ctx, &r->sum);
    stg_replay_job_free(r);
}

/* -- steps ----------------------------------------------------------------- */

static stg_replay_job_step *step_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, stg_replay_job_step, request.link);
}

/* The step gives the replay back before then(): from here on freeing the
 * step does not free it. then() ends with a new step, or with the end of the
 * replay. */
static void tell_step(stg_store_request *e)
{
    stg_replay_job_step *s = step_of(e);
    stg_replay_job *r = s->r;

    s->r = NULL;
    s->then(r, s);
}

static void free_step(stg_store_request *e)
{
    stg_replay_job_step *s = step_of(e);

    if (s->r != NULL)
        stg_replay_job_free(s->r);
    stg_arena_free(&s->texts);
    free(s->parcels);
    free(s->records);
    free(s);
}

/* NULL: no memory; the store breaks, and the replay is gone. */
stg_replay_job_step *
stg_replay_job_step_new(stg_replay_job *r,
                        void (*then)(stg_replay_job *r, stg_replay_job_step *s))
{
    stg_replay_job_step *s = calloc(1, sizeof *s);

    if (s == NULL) {
        stg_store_lack_memory(r->s);
        stg_replay_job_free(r);
        return NULL;
    }
    s->request.tell = tell_step;
    s->request.free = free_step;
    s->request.is_paced = true;
    s->r = r;
    s->then = then;
    return s;
}

/* -- a page ---------------------------------------------------------------- */

/* Reads from r on the query thread: the loop leaves r alone while a step is
 * under way. */
static int look_page(stg_store_request *e, stg_db *db)
{
    stg_replay_job *r = step_of(e)->r;
    int rc = SQLITE_OK;

    // Only letters that are there at the start are replayed: one that fails
    // again makes a new letter, and would be found again without an end.
    if (r->after == 0)
        rc = stg_sql_ask(
            db, "SELECT coalesce(max(id), 0) FROM failed_broadcast_logs",
            &r->last);
    if (rc == SQLITE_OK)
        rc = stg_find_page(db, &r->filter, r->after, STG_REPLAY_JOB_PAGE, false,
                           &r->found);
    return rc;
}

/* Cuts letters that are newer than the first look (r->last). */
static void cut_page(stg_replay_job *r)
{
    stg_found *f = &r->found;

    while (f->count > 0 && f->letters[f->count - 1].id > r->last) {
        f->count--;
        f->next = 0;
    }
    if (f->next >= r->last)
        f->next = 0;
}

static void have_page(stg_replay_job *r, stg_replay_job_step *s)
{
    (void)s;
    cut_page(r);
    r->at = 0;
    r->after = r->found.next;
    r->is_last = r->found.next == 0;
    stg_replay_job_advance(r);
}

static void ask_page(stg_replay_job *r)
{
    stg_replay_job_step *s = stg_replay_job_step_new(r, have_page);

    if (s == NULL)
        return;
    s->request.look = look_page;
    stg_store_request_send(r->s, &s->request);
}

/* -- waiting for room ------------------------------------------------------ */

static uint64_t find_left(const stg_replay_job *r)
{
    uint64_t most = r->filter.f.messages_max;

    return most == 0 ? UINT64_MAX : stg_ns_sub(most, r->sum.messages);
}

/* Asked anew before each step: flow fills the lane meanwhile. */
uint64_t stg_replay_job_room(const stg_replay_job *r, uint32_t lane)
{
    const stg_store_options *o = &r->s->o;
    uint64_t room = o->room == NULL ? UINT64_MAX : o->room(o->ctx, lane);

    return stg_ns_min(room, find_left(r));
}

static bool is_held(const stg_replay_job *r, uint32_t lane)
{
    for (size_t i = 0; i < r->held_count; i++)
        if (r->held_lanes[i] == lane)
            return true;
    return false;
}

/* Its lane sends nothing, and would cancel what waits when it is forgotten; nor
 * is it said any more what of a bulk row the target wants. */
bool stg_replay_job_is_orphaned(const stg_replay_job *r, const stg_letter *l)
{
    const stg_store_options *o = &r->s->o;

    return !r->is_drop && o->knows != NULL && !o->knows(o->ctx, l->lane);
}

/* The letter stays dead. */
void stg_replay_job_leave(stg_replay_job *r, const stg_letter *l,
                          stg_letters_end end)
{
    if (r->held[0] != '\0')
        return;
    snprintf(r->held, sizeof r->held, "%s", l->target);
    r->sum.end = end;
}

/* Gives up on the lane for this replay, after it had no room for `patience`.
 * Its other letters are passed over, or each would wait as long. */
static void hold(stg_replay_job *r, const stg_letter *l)
{
    uint32_t *lanes =
        realloc(r->held_lanes, (r->held_count + 1) * sizeof *lanes);

    stg_replay_job_leave(r, l, STG_LETTERS_HELD);
    r->waiting_at = 0;
    if (lanes == NULL)
        return;
    r->held_lanes = lanes;
    r->held_lanes[r->held_count++] = l->lane;
}

/* A look that only waits until request.at: the query thread is the timer. */
static int look_nowhere(stg_store_request *e, stg_db *db)
{
    (void)e;
    (void)db;
    return SQLITE_OK;
}

static void go_on(stg_replay_job *r, stg_replay_job_step *s)
{
    (void)s;
    stg_replay_job_advance(r);
}

void stg_replay_job_rest(stg_replay_job *r, stg_ns pause)
{
    stg_replay_job_step *s = stg_replay_job_step_new(r, go_on);

    if (s == NULL)
        return;
    s->request.look = look_nowhere;
    s->request.at = uv_hrtime() + pause;
    stg_store_request_send(r->s, &s->request);
}

/* Waits for room in the letter's lane. False: it was waited for long enough.
 * The time counts from the last message that was parked
 * (stg_replay_job_count()). */
static bool waits(stg_replay_job *r, const stg_letter *l)
{
    uint64_t now = uv_hrtime();

    if (r->waiting_at == 0)
        r->waiting_at = now;
    if (now - r->waiting_at > patience) {
        hold(r, l);
        return false;
    }
    stg_replay_job_rest(r, STG_REPLAY_JOB_PAUSE);
    return true;
}

/* -- what was done --------------------------------------------------------- */

void stg_replay_job_add(stg_replay_job *r, uint32_t lane, uint64_t messages)
{
    const stg_store_options *o = &r->s->o;

    r->sum.messages += messages;
    if (!r->is_drop && o->is_paused != NULL && o->is_paused(o->ctx, lane))
        r->sum.paused += messages;
}

void stg_replay_job_count(stg_replay_job *r, const stg_replayed *out)
{
    r->sum.letters += out->is_done;
    stg_replay_job_add(r, out->lane, out->messages);
    r->sum.expired += out->expired;
    r->sum.forgotten += out->is_forgotten && !r->is_drop;
    if (out->messages > 0)
        r->waiting_at = 0;
}

/* Flow hears of all that went to a lane at once. */
void stg_replay_job_tell(stg_replay_job *r, stg_replay_job_step *s)
{
    const stg_store_options *o = &r->s->o;

    if (r->is_drop)
        return;
    r->s->replays_told = stg_ns_max(r->s->replays_told, s->number);
    for (size_t i = 0; i < s->count; i++) {
        stg_replayed *one = &s->out[i];
        uint64_t messages = 0;

        for (size_t j = i; j < s->count; j++)
            if (s->out[j].lane == one->lane &&
                s->out[j].partition == one->partition) {
                messages += s->out[j].messages;
                s->out[j].messages = 0;
            }
        if (messages > 0 && o->replayed != NULL)
            o->replayed(o->ctx, one->lane, one->partition, messages,
                        r->again != NULL);
    }
}

/* Moves what was parked in the books, in the transaction that did it: once for
 * each lane and partition of the step. With the answer s->number becomes
 * replays_told, by which a group that was made before it is told apart. A step
 * that has parked nothing has no number: it is the next one's. */
int stg_replay_job_move_books(stg_store_writer *w, stg_replay_job_step *s)
{
    int rc = SQLITE_OK;

    s->number = 0;
    for (size_t i = 0; i < s->count && rc == SQLITE_OK; i++) {
        const stg_replayed *one = &s->out[i];
        uint64_t messages = 0;
        bool is_first = true;

        for (size_t j = 0; j < s->count; j++)
            if (s->out[j].lane == one->lane &&
                s->out[j].partition == one->partition) {
                is_first &= j >= i;
                messages += s->out[j].messages;
            }
        if (!is_first || messages == 0)
            continue;
        s->number = w->cursors.replays + 1;
        rc = stg_cursors_replay(&w->cursors,
                                &(stg_move){.lane = one->lane,
                                            .partition = one->partition,
                                            .count = messages,
                                            .is_again = s->r->again != NULL});
    }
    return rc;
}

/* A step that was fenced has zeroed results: its letters stay as they are, and
 * are passed. */
static void have_done(stg_replay_job *r, stg_replay_job_step *s)
{
    if (s->request.is_full) {
        stg_replay_job_finish(r, STG_LETTERS_FULL);
        return;
    }
    for (size_t i = 0; i < s->count; i++)
        stg_replay_job_count(r, &s->out[i]);
    r->at += s->count;
    stg_replay_job_tell(r, s);
    stg_replay_job_advance(r);
}

/* -- letters --------------------------------------------------------------- */

/* A drop needs no fence: it is a change of state alone, and parks nothing. The
 * rows of claims stay locked until the transaction ends. */
int stg_replay_job_fence(stg_store_writer *w, stg_replay_job_step *s)
{
    stg_claim claims[STG_REPLAY_JOB_PIECE];
    uint32_t fenced[STG_REPLAY_JOB_PIECE];
    size_t count = 0, fenced_count;
    int rc;

    s->is_fenced = false;
    if (w->url == NULL || s->r->is_drop)
        return SQLITE_OK;
    for (size_t i = 0; i < s->count; i++) {
        const stg_partition_row *p =
            stg_partitions_get(&w->partitions, s->partitions[i]);

        if (p != NULL &&
            (count == 0 || claims[count - 1].partition != s->partitions[i]))
            claims[count++] = (stg_claim){.partition = s->partitions[i],
                                          .generation = p->generation};
    }
    rc = stg_partitions_fence(w->fence, w->o->shard, claims, count, fenced,
                              &fenced_count);
    s->is_fenced = rc == SQLITE_OK && fenced_count > 0;
    if (s->is_fenced)
        memset(s->out, 0, sizeof s->out);
    return rc;
}

/* May run again after a server went away: each call sets s->out[] anew. */
static int write_letters(stg_store_request *e, stg_store_writer *w)
{
    stg_replay_job_step *s = step_of(e);
    stg_ns wall = stg_sql_now(w->db);
    int rc = stg_replay_job_fence(w, s);

    if (rc != SQLITE_OK || s->is_fenced)
        return rc;
    for (size_t i = 0; i < s->count && rc == SQLITE_OK; i++)
        rc = s->r->is_drop ? stg_replays_drop(&w->replays, &w->rows, s->ids[i],
                                              wall, &s->out[i])
                           : stg_replays_letter(&w->replays, &w->rows,
                                                s->ids[i], wall, &s->out[i]);
    return rc == SQLITE_OK && !s->r->is_drop ? stg_replay_job_move_books(w, s)
                                             : rc;
}

/* How many letters of the lane are in the step already. */
static uint64_t count_lane(const stg_replay_job *r,
                           const stg_replay_job_step *s, uint32_t lane)
{
    uint64_t count = 0;

    for (size_t i = 0; i < s->count; i++)
        count += r->found.letters[r->at + i].lane == lane;
    return count;
}

/* Takes letters into the step, as many as make a good transaction and their
 * lanes have room for; it ends at the first that needs another way (a bulk row,
 * one of another hub's). */
static void pick(stg_replay_job *r, stg_replay_job_step *s)
{
    uint64_t bytes = 0;

    while (s->count < STG_REPLAY_JOB_PIECE &&
           r->at + s->count < r->found.count) {
        const stg_letter *l = &r->found.letters[r->at + s->count];

        if (!stg_replay_job_is_ours(r, l))
            return;
        if (!r->is_drop &&
            (l->last_position > 0 || is_held(r, l->lane) ||
             stg_replay_job_is_orphaned(r, l) ||
             stg_replay_job_room(r, l->lane) <= count_lane(r, s, l->lane)))
            return;
        bytes += l->payload_size;
        if (s->count > 0 && bytes > STG_REPLAY_JOB_BYTES)
            return;
        s->partitions[s->count] = l->partition;
        s->ids[s->count++] = l->id;
    }
}

static void do_letters(stg_replay_job *r)
{
    stg_replay_job_step *s = stg_replay_job_step_new(r, have_done);

    if (s == NULL)
        return;
    s->request.write = write_letters;
    pick(r, s);
    stg_store_request_send(r->s, &s->request);
}

/* -- a dry run ------------------------------------------------------------- */

/* Counts what a replay would do. Of a bulk row of the queue, messages below the
 * first position are gone; what another log still has is not asked. */
static void count_dry(stg_replay_job *r, size_t i)
{
    const stg_letter *l = &r->found.letters[i];
    uint64_t there = l->count, first = l->partition == 0 ? r->s->first : 0;

    if (!r->is_drop && r->found.are_forgotten[i]) {
        r->sum.forgotten++;
        return;
    }
    if (!r->is_drop && l->is_evicted) {
        r->sum.expired += l->count;
        return;
    }
    if (stg_replay_job_is_orphaned(r, l)) {
        r->sum.orphaned++;
        return;
    }
    if (!r->is_drop && l->last_position > 0 && l->position < first)
        there = stg_ns_min(there, stg_ns_sub(l->last_position + 1, first));
    r->sum.letters++;
    stg_replay_job_add(r, l->lane, there);
    r->sum.expired += l->count - there;
}

/* -- all of it ------------------------------------------------------------- */

/* Whether the letter at r->at needs nothing more: it was counted, or its lane
 * is held. */
static bool passes(stg_replay_job *r)
{
    if (r->is_dry) {
        count_dry(r, r->at);
        return true;
    }
    if (r->is_drop)
        return false;
    if (r->found.are_forgotten[r->at]) {
        r->sum.forgotten++;
        return true;
    }
    if (r->found.letters[r->at].is_evicted) {
        r->sum.expired += r->found.letters[r->at].count;
        return true;
    }
    if (stg_replay_job_is_orphaned(r, &r->found.letters[r->at])) {
        r->sum.orphaned++;
        return true;
    }
    return is_held(r, r->found.letters[r->at].lane);
}

/* Goes on with the letter at r->at until a request is sent or the replay ends.
 * Whether a letter is this hub's is asked before its lane's room, for another
 * hub parks it in a lane of its own. */
void stg_replay_job_advance(stg_replay_job *r)
{
    if (r->so_far != NULL)
        *r->so_far = r->sum;
    if (r->s->closed != NULL) {
        stg_replay_job_finish(r, STG_LETTERS_STOPPED);
        return;
    }
    if (r->again != NULL) {
        stg_rewind_advance(r);
        return;
    }
    while (find_left(r) > 0 && r->at < r->found.count) {
        const stg_letter *l = &r->found.letters[r->at];

        if (passes(r)) {
            r->at++;
        } else if (!stg_replay_job_is_ours(r, l)) {
            if (r->filter.f.messages_max == 0) {
                stg_replay_job_ask_others(r);
                return;
            }
            r->at++;
        } else if (stg_replay_job_is_unread(r, l)) {
            stg_replay_job_leave(r, l, STG_LETTERS_AWAY);
            r->at++;
        } else if (!r->is_drop && stg_replay_job_room(r, l->lane) == 0) {
            if (waits(r, l))
                return;
            r->at++;
        } else if (!r->is_drop && l->last_position > 0) {
            stg_replay_job_range(r, l);
            return;
        } else {
            do_letters(r);
            return;
        }
    }
    if (r->is_last || find_left(r) == 0)
        stg_replay_job_finish(r, STG_LETTERS_DONE);
    else
        ask_page(r);
}

/* Only letters that are dead are found, whatever state the filter names. */
static void begin(stg_store *s, const stg_letter_filter *f, stg_replay_job how,
                  stg_letters_sum_fn *done, void *ctx)
{
    stg_replay_job *r = malloc(sizeof *r);
    stg_letter_filter dead = *f;

    if (r == NULL) {
        stg_store_lack_memory(s);
        return;
    }
    *r = how;
    r->s = s;
    r->done = done;
    r->ctx = ctx;
    dead.state = "dead";
    if (!stg_filter_copy(&r->filter, &dead)) {
        stg_replay_job_free(r);
        stg_store_lack_memory(s);
        return;
    }
    ask_page(r);
}

void stg_store_replay(stg_store *s, const stg_letter_filter *f, bool is_dry,
                      stg_letters_sum_fn *done, void *ctx)
{
    begin(s, f, (stg_replay_job){.is_dry = is_dry}, done, ctx);
}

void stg_store_replay_watched(stg_store *s, const stg_letter_filter *f,
                              stg_letters_sum *so_far, stg_letters_sum_fn *done,
                              void *ctx)
{
    begin(s, f, (stg_replay_job){.so_far = so_far}, done, ctx);
}

void stg_store_drop(stg_store *s, const stg_letter_filter *f, bool is_dry,
                    stg_letters_sum_fn *done, void *ctx)
{
    begin(s, f, (stg_replay_job){.is_drop = true, .is_dry = is_dry}, done, ctx);
}
