/* Replay and drop: step by step over the letters of a filter.
 *
 * The desk finds a page of letters; of these, some at a time, the writer settles
 * in one transaction; then flow is told, and the next ones follow. Of a range
 * row the desk first reads which messages there are, and their target is asked
 * whether it wants them. One step is under way at any time, and whatever it
 * relies on may have changed when it comes to it: so each names what it
 * expects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/stores/find.h"
#include "hub/stores/inside.h"
#include "hub/wall.h"

enum {
    PAGE = 256, /* letters that are found at once */
    PIECE = 64, /* rows of a transaction */
    PIECE_BYTES = 1 << 20,
    SCANNED = 256, /* messages of a range row that are looked at at once */
};

static const uint64_t pause_time = 100 * STG_MS, patience = 10 * STG_S;

typedef struct redo redo;

/* One step; the redo goes with it if it is never answered. */
typedef struct step {
    stg_errand errand;
    redo *r;
    void (*then)(redo *r, struct step *s);

    /* of letters: these, from r->at on, and what became of them */
    uint64_t ids[PIECE];
    stg_replayed out[PIECE];
    size_t count;
    uint64_t number; /* of the transaction, to be told with the next group */

    /* of a range row */
    uint64_t last, positions[SCANNED];
    stg_parcel *parcels; /* without bodies */
    stg_arena texts;
    stg_bite bite;
} step;

struct redo {
    stg_store *s;
    stg_filter filter;
    bool is_drop, is_dry;
    stg_found found;
    size_t at;
    uint64_t after, last; /* ids: a letter that is made later is another one */
    bool is_last;         /* page */
    stg_letters_sum sum;
    char held[128];
    uint32_t *held_lanes; /* that are not waited for any more */
    size_t held_count;
    uint64_t waiting_at; /* since when nothing gets on; 0: it does */
    uint64_t bitten;     /* the range row that was counted */
    stg_letters_sum_fn *done;
    void *ctx;
};

static void advance(redo *r);

static void free_redo(redo *r)
{
    stg_filter_free(&r->filter);
    stg_found_free(&r->found);
    free(r->held_lanes);
    free(r);
}

static void finish(redo *r, stg_letters_end end)
{
    if (end != STG_LETTERS_DONE)
        r->sum.end = end;
    r->sum.held = r->held[0] == '\0' ? NULL : r->held;
    r->done(r->ctx, &r->sum);
    free_redo(r);
}

/* -- steps ----------------------------------------------------------------- */

static step *step_of(stg_errand *e)
{
    return STG_HOLDER(&e->link, step, errand.link);
}

static void tell_step(stg_errand *e)
{
    step *s = step_of(e);
    redo *r = s->r;

    s->r = NULL;
    s->then(r, s);
}

static void free_step(stg_errand *e)
{
    step *s = step_of(e);

    if (s->r != NULL)
        free_redo(s->r);
    stg_arena_free(&s->texts);
    free(s->parcels);
    free(s);
}

/* NULL: no memory; the store breaks, and the redo is gone. */
static step *new_step(redo *r, void (*then)(redo *r, step *s))
{
    step *s = calloc(1, sizeof *s);

    if (s == NULL) {
        stg_store_starve(r->s);
        free_redo(r);
        return NULL;
    }
    s->errand.tell = tell_step;
    s->errand.free = free_step;
    s->errand.is_paced = true;
    s->r = r;
    s->then = then;
    return s;
}

/* -- a page ---------------------------------------------------------------- */

static int look_page(stg_errand *e, stg_db *db)
{
    redo *r = step_of(e)->r;
    int rc = SQLITE_OK;

    // What is sent again may end badly at once, and so without an end.
    if (r->after == 0)
        rc = stg_sql_ask(
            db, "SELECT coalesce(max(id), 0) FROM failed_broadcast_logs",
            &r->last);
    if (rc == SQLITE_OK)
        rc = stg_find_page(db, &r->filter, r->after, PAGE, false, &r->found);
    return rc;
}

static void cut_page(redo *r)
{
    stg_found *f = &r->found;

    while (f->count > 0 && f->letters[f->count - 1].id > r->last) {
        f->count--;
        f->next = 0;
    }
    if (f->next >= r->last)
        f->next = 0;
}

static void have_page(redo *r, step *s)
{
    (void)s;
    cut_page(r);
    r->at = 0;
    r->after = r->found.next;
    r->is_last = r->found.next == 0;
    advance(r);
}

static void ask_page(redo *r)
{
    step *s = new_step(r, have_page);

    if (s == NULL)
        return;
    s->errand.look = look_page;
    stg_errand_send(r->s, &s->errand);
}

/* -- waiting for room ------------------------------------------------------ */

static uint64_t room_of(const redo *r, uint32_t lane)
{
    const stg_store_options *o = &r->s->o;

    return o->room == NULL ? UINT64_MAX : o->room(o->ctx, lane);
}

static bool is_held(const redo *r, uint32_t lane)
{
    for (size_t i = 0; i < r->held_count; i++)
        if (r->held_lanes[i] == lane)
            return true;
    return false;
}

/* The letter stays dead. */
static void leave(redo *r, const stg_letter *l)
{
    if (r->held[0] == '\0')
        snprintf(r->held, sizeof r->held, "%s", l->target);
    r->sum.end = STG_LETTERS_HELD;
}

/* And so does the rest of its lane's. */
static void hold(redo *r, const stg_letter *l)
{
    uint32_t *lanes =
        realloc(r->held_lanes, (r->held_count + 1) * sizeof *lanes);

    leave(r, l);
    r->waiting_at = 0;
    if (lanes == NULL)
        return;
    r->held_lanes = lanes;
    r->held_lanes[r->held_count++] = l->lane;
}

static int look_nowhere(stg_errand *e, stg_db *db)
{
    (void)e;
    (void)db;
    return SQLITE_OK;
}

static void go_on(redo *r, step *s)
{
    (void)s;
    advance(r);
}

static void rest(redo *r)
{
    step *s = new_step(r, go_on);

    if (s == NULL)
        return;
    s->errand.look = look_nowhere;
    s->errand.at = uv_hrtime() + pause_time;
    stg_errand_send(r->s, &s->errand);
}

/* False: it was waited for long enough. */
static bool waits(redo *r, const stg_letter *l)
{
    uint64_t now = uv_hrtime();

    if (r->waiting_at == 0)
        r->waiting_at = now;
    if (now - r->waiting_at > patience) {
        hold(r, l);
        return false;
    }
    rest(r);
    return true;
}

/* -- what was done --------------------------------------------------------- */

static void count_out(redo *r, const stg_replayed *out)
{
    r->sum.letters += out->is_done;
    r->sum.messages += out->messages;
    r->sum.expired += out->expired;
    r->sum.forgotten += out->is_forgotten && !r->is_drop;
    if (out->messages > 0)
        r->waiting_at = 0;
}

/* Flow hears of all that went to a lane at once. */
static void tell_flow(redo *r, step *s)
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
            o->replayed(o->ctx, one->lane, one->partition, messages);
    }
}

/* The books: what was parked of one lane, in the transaction that did it. */
static int move_books(stg_store_writer *w, step *s)
{
    int rc = SQLITE_OK;

    s->number = w->cursors.replays + 1;
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
        if (is_first && messages > 0)
            rc = stg_cursors_replay(&w->cursors, one->lane, one->partition,
                                    messages);
    }
    return rc;
}

static void have_done(redo *r, step *s)
{
    if (s->errand.is_full) {
        finish(r, STG_LETTERS_FULL);
        return;
    }
    for (size_t i = 0; i < s->count; i++)
        count_out(r, &s->out[i]);
    r->at += s->count;
    tell_flow(r, s);
    advance(r);
}

/* -- letters --------------------------------------------------------------- */

static int write_letters(stg_errand *e, stg_store_writer *w)
{
    step *s = step_of(e);
    stg_ns wall = stg_wall_now();
    int rc = SQLITE_OK;

    for (size_t i = 0; i < s->count && rc == SQLITE_OK; i++)
        rc = s->r->is_drop ? stg_replays_drop(&w->replays, &w->rows, s->ids[i],
                                              wall, &s->out[i])
                           : stg_replays_letter(&w->replays, &w->rows,
                                                s->ids[i], wall, &s->out[i]);
    return rc == SQLITE_OK && !s->r->is_drop ? move_books(w, s) : rc;
}

/* How many letters of the lane are in the step already. */
static uint64_t count_lane(const redo *r, const step *s, uint32_t lane)
{
    uint64_t count = 0;

    for (size_t i = 0; i < s->count; i++)
        count += r->found.letters[r->at + i].lane == lane;
    return count;
}

/* As many as make a good transaction, and their lanes have room for. */
static void pick(redo *r, step *s)
{
    uint64_t bytes = 0;

    while (s->count < PIECE && r->at + s->count < r->found.count) {
        const stg_letter *l = &r->found.letters[r->at + s->count];

        if (!r->is_drop && (l->last_position > 0 || is_held(r, l->lane) ||
                            room_of(r, l->lane) <= count_lane(r, s, l->lane)))
            return;
        bytes += l->payload_size;
        if (s->count > 0 && bytes > PIECE_BYTES)
            return;
        s->ids[s->count++] = l->id;
    }
}

static void do_letters(redo *r)
{
    step *s = new_step(r, have_done);

    if (s == NULL)
        return;
    s->errand.write = write_letters;
    pick(r, s);
    stg_errand_send(r->s, &s->errand);
}

/* -- range rows ------------------------------------------------------------ */

static int scan_row(step *s, stg_stmt *st, uint64_t *bytes)
{
    stg_parcel *p = &s->parcels[s->bite.count];

    *p = (stg_parcel){.content_type = stg_arena_column(&s->texts, st, 1),
                      .headers = stg_arena_column(&s->texts, st, 2),
                      .key = stg_arena_column(&s->texts, st, 3)};
    s->positions[s->bite.count++] = s->bite.to = stg_sql_column(st, 0);
    *bytes += stg_sql_column(st, 4);
    return s->texts.is_short ? SQLITE_NOMEM : SQLITE_OK;
}

/* Which messages there are from the row's front on, without their bodies. */
static int look_range(stg_errand *e, stg_db *db)
{
    step *s = step_of(e);
    uint64_t bytes = 0;
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(
        db, &st,
        "SELECT position, content_type, headers, key, length(body)"
        " FROM messages WHERE position >= ? AND position <= ?"
        " ORDER BY position");

    s->bite.count = 0;
    stg_arena_free(&s->texts);
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "uu", s->bite.from, s->last);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        rc = scan_row(s, st, &bytes);
        if (rc == SQLITE_OK &&
            (s->bite.count == SCANNED || bytes > PIECE_BYTES))
            break;
    }
    stg_sql_finalize(st);
    if (rc != SQLITE_DONE)
        return rc;
    s->bite.to = s->last;
    return SQLITE_OK;
}

static int write_range(stg_errand *e, stg_store_writer *w)
{
    step *s = step_of(e);
    int rc = stg_replays_range(&w->replays, &w->rows, &s->bite, stg_wall_now(),
                               &s->out[0]);

    s->count = 1;
    return rc == SQLITE_OK ? move_books(w, s) : rc;
}

/* The row goes on from its new front, up to where it was found to end; one
 * that has changed meanwhile is left to another call. */
static void have_bitten(redo *r, step *s)
{
    stg_letter *l = &r->found.letters[r->at];
    stg_replayed *out = &s->out[0];

    if (s->errand.is_full) {
        finish(r, STG_LETTERS_FULL);
        return;
    }
    if (out->next == 0 || s->bite.to >= l->last_position)
        r->at++;
    l->position = out->next;
    // It is one letter, in however many pieces.
    if (out->is_done && r->bitten == l->id)
        out->is_done = false;
    r->bitten = l->id;
    count_out(r, out);
    tell_flow(r, s);
    advance(r);
}

/* What the target wants, and no more than the lane has room for. */
static void choose(redo *r, step *to, const step *from, const stg_letter *l)
{
    const stg_store_options *o = &r->s->o;
    uint64_t room = stg_ns_max(room_of(r, l->lane), 1);
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
        to->positions[b->count++] = from->positions[i];
    }
}

static void have_scan(redo *r, step *scan)
{
    step *s = new_step(r, have_bitten);

    if (s == NULL)
        return;
    s->errand.write = write_range;
    choose(r, s, scan, &r->found.letters[r->at]);
    stg_errand_send(r->s, &s->errand);
}

static void do_range(redo *r, const stg_letter *l)
{
    step *s = new_step(r, have_scan);

    if (s == NULL)
        return;
    s->parcels = calloc(SCANNED, sizeof *s->parcels);
    if (s->parcels == NULL) {
        stg_store_starve(r->s);
        free_step(&s->errand);
        return;
    }
    s->errand.look = look_range;
    s->last = l->last_position;
    s->bite.id = l->id;
    s->bite.from = l->position;
    stg_errand_send(r->s, &s->errand);
}

/* -- a dry run ------------------------------------------------------------- */

static void count_dry(redo *r, size_t i)
{
    const stg_letter *l = &r->found.letters[i];
    uint64_t there = l->count, first = r->s->first;

    if (!r->is_drop && r->found.are_forgotten[i]) {
        r->sum.forgotten++;
        return;
    }
    if (!r->is_drop && l->last_position > 0 && l->position < first)
        there = stg_ns_min(there, stg_ns_sub(l->last_position + 1, first));
    r->sum.letters++;
    r->sum.messages += there;
    r->sum.expired += l->count - there;
}

/* -- all of it ------------------------------------------------------------- */

/* A range row is not said to have what its target does not want: without the
 * filter those would be sent, and as many of the others never. */
static bool is_unclear(const redo *r, const stg_letter *l)
{
    const stg_store_options *o = &r->s->o;

    return !r->is_drop && l->last_position > 0 && o->knows != NULL &&
           !o->knows(o->ctx, l->lane);
}

/* Those that nothing can be done for. */
static bool passes(redo *r)
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
    return is_held(r, r->found.letters[r->at].lane);
}

static void advance(redo *r)
{
    if (r->s->closed != NULL) {
        finish(r, STG_LETTERS_STOPPED);
        return;
    }
    while (r->at < r->found.count) {
        const stg_letter *l = &r->found.letters[r->at];

        if (passes(r)) {
            r->at++;
        } else if (is_unclear(r, l)) {
            leave(r, l);
            r->at++;
        } else if (!r->is_drop && room_of(r, l->lane) == 0) {
            if (waits(r, l))
                return;
            r->at++;
        } else if (!r->is_drop && l->last_position > 0) {
            do_range(r, l);
            return;
        } else {
            do_letters(r);
            return;
        }
    }
    if (r->is_last)
        finish(r, STG_LETTERS_DONE);
    else
        ask_page(r);
}

static void begin(stg_store *s, const stg_letter_filter *f, redo how,
                  stg_letters_sum_fn *done, void *ctx)
{
    redo *r = malloc(sizeof *r);
    stg_letter_filter dead = *f;

    if (r == NULL) {
        stg_store_starve(s);
        return;
    }
    *r = how;
    r->s = s;
    r->done = done;
    r->ctx = ctx;
    dead.state = "dead";
    if (!stg_filter_copy(&r->filter, &dead)) {
        free_redo(r);
        stg_store_starve(s);
        return;
    }
    ask_page(r);
}

void stg_store_replay(stg_store *s, const stg_letter_filter *f, bool is_dry,
                      stg_letters_sum_fn *done, void *ctx)
{
    begin(s, f, (redo){.is_dry = is_dry}, done, ctx);
}

void stg_store_drop(stg_store *s, const stg_letter_filter *f, bool is_dry,
                    stg_letters_sum_fn *done, void *ctx)
{
    begin(s, f, (redo){.is_drop = true, .is_dry = is_dry}, done, ctx);
}
