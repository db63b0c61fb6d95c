/* Rewinds that are under way here, each a replay job with a range of the log in
 * the place of a bulk row; and single messages, sent again.
 *
 * A look finds the rows that are to go on. With PostgreSQL it comes again every
 * second, for other hubs make rows, too, and partitions change hands; with a file
 * while there are some. */
#include <stdlib.h>

#include "store/replay_job.h"
#include "store/rewinds.h"

static const stg_ns look_pause = STG_S, order_pause = 10 * STG_MS;

/* -- a job ----------------------------------------------------------------- */

/* The range as a bulk row: its one letter. NULL: no memory. */
static stg_replay_job *new_job(stg_store *s, const stg_again *again)
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

/* It can go on when its target is in the settings; a rewind waits for room, too. */
static bool may_go_on(const stg_replay_job *r, const stg_letter *l)
{
    const stg_store_options *o = &r->s->o;

    if (o->knows != NULL && !o->knows(o->ctx, l->lane))
        return false;
    return !r->again->is_stored || stg_replay_job_room(r, l->lane) > 0;
}

static bool is_forgotten(const stg_replay_job *r)
{
    const stg_lanes *lanes = &r->s->lanes;
    uint32_t lane = r->again->lane;

    return lane < lanes->count && lanes->names[lane].is_forgotten;
}

static void begin(stg_replay_job *r);

void stg_rewind_advance(stg_replay_job *r)
{
    stg_letter *l = &r->found.letters[0];

    if (r->at > 0 || is_forgotten(r)) {
        stg_replay_job_finish(r, STG_LETTERS_DONE);
    } else if (!stg_replay_job_is_ours(r, l) ||
               stg_replay_job_is_unread(r, l)) {
        stg_replay_job_finish(r, STG_LETTERS_AWAY);
    } else if (!may_go_on(r, l)) {
        if (r->again->is_stored)
            stg_replay_job_rest(r, STG_REPLAY_JOB_PAUSE);
        else
            stg_replay_job_finish(r, STG_LETTERS_HELD);
    } else if (!r->again->has_begun) {
        begin(r);
    } else {
        stg_replay_job_range(r, l);
    }
}

/* A piece that stopped before its first message waits for the order. */
void stg_rewind_have_piece(stg_replay_job *r, stg_replay_job_step *s)
{
    stg_letter *l = &r->found.letters[0];
    const stg_replayed *out = &s->out[0];
    const stg_store_options *o = &r->s->o;
    bool has_moved = out->next > l->position;

    if (!out->is_done) {
        stg_replay_job_finish(r, STG_LETTERS_HELD);
        return;
    }
    l->position = out->next;
    r->again->sent += out->messages;
    stg_replay_job_count(r, out);
    stg_replay_job_tell(r, s);
    if (out->next > l->last_position) {
        r->at++;
        if (r->again->is_stored && o->rewound != NULL)
            o->rewound(o->ctx, l->lane, l->partition, r->again->sent);
    }
    if (has_moved)
        stg_replay_job_advance(r);
    else
        stg_replay_job_rest(r, order_pause);
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
    const stg_store_options *o = &r->s->o;

    if (s->request.is_full || !s->out[0].is_done) {
        stg_replay_job_finish(r, STG_LETTERS_FULL);
        return;
    }
    a->has_begun = true;
    l->position = a->position;
    l->last_position = a->until - 1;
    if (a->position >= a->until) {
        r->at++;
        if (o->rewound != NULL)
            o->rewound(o->ctx, a->lane, a->partition, 0);
    }
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

static bool is_under_way(const stg_store *s, const stg_again *a)
{
    for (const stg_link *link = stg_list_first(&s->rewinding); link != NULL;
         link = stg_list_next(&s->rewinding, link)) {
        const stg_again *other =
            STG_HOLDER((stg_link *)link, stg_replay_job, rewinding)->again;

        if (other->lane == a->lane && other->number == a->number &&
            other->partition == a->partition)
            return true;
    }
    return false;
}

/* The next look finds whether it is to go on. */
static void have_ended(void *ctx, const stg_letters_sum *sum)
{
    (void)ctx;
    (void)sum;
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
        stg_replay_job *r;

        if (is_under_way(s, &l->all[i]))
            continue;
        r = new_job(s, &l->all[i]);
        if (r == NULL)
            return;
        r->done = have_ended;
        stg_list_push(&s->rewinding, &r->rewinding);
        stg_replay_job_advance(r);
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

/* -- one message ----------------------------------------------------------- */

typedef struct resending {
    stg_resent_fn *done;
    void *ctx;
} resending;

static stg_resent result_of(const stg_letters_sum *sum)
{
    if (sum->messages > 0)
        return STG_RESENT;
    switch (sum->end) {
    case STG_LETTERS_DONE:
        return sum->expired > 0 ? STG_RESENT_GONE : STG_RESENT_WAITS;
    case STG_LETTERS_FULL:
    case STG_LETTERS_STOPPED:
        return STG_RESENT_NO_ROOM;
    default:
        return STG_RESENT_AWAY;
    }
}

static void have_resent(void *ctx, const stg_letters_sum *sum)
{
    resending *d = ctx;

    d->done(d->ctx, result_of(sum));
    free(d);
}

/* Another hub has the partition: it finds a rewind of one message. */
static void have_stored(void *ctx, stg_rewound how, uint64_t number)
{
    resending *d = ctx;

    (void)number;
    d->done(d->ctx, how == STG_REWOUND           ? STG_RESENT_ELSEWHERE
                    : how == STG_REWOUND_NOTHING ? STG_RESENT_GONE
                    : how == STG_REWOUND_RUNNING ? STG_RESENT_AWAY
                                                 : STG_RESENT_NO_ROOM);
    free(d);
}

void stg_store_resend(stg_store *s, uint32_t lane, uint32_t partition,
                      uint64_t position, stg_resent_fn *done, void *ctx)
{
    const stg_again again = {.lane = lane,
                             .partition = partition,
                             .position = position,
                             .until = position + 1,
                             .has_begun = true};
    resending *d = malloc(sizeof *d);
    stg_replay_job *r = d == NULL ? NULL : new_job(s, &again);

    if (d == NULL)
        stg_store_lack_memory(s);
    if (r == NULL) {
        free(d);
        return;
    }
    *d = (resending){done, ctx};
    r->done = have_resent;
    r->ctx = d;
    if (!stg_replay_job_is_ours(r, &r->found.letters[0])) {
        const stg_rewind_start start = {.lane = lane,
                                        .partition = partition,
                                        .position = position,
                                        .is_one = true};

        stg_replay_job_free(r);
        stg_store_rewind(s, &start, have_stored, d);
        return;
    }
    stg_replay_job_advance(r);
}
