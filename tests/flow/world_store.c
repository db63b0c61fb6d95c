/* The log and the store of a world. */
#include <stdlib.h>

#include "tests/flow/world_inside.h"

/* -- the log --------------------------------------------------------------- */

/* Untraced, everything takes some time, and things overtake each other. */
static stg_ns some_time(world *w, stg_ns most)
{
    return w->is_traced ? 0 : stg_rng_upto(&w->rng, most);
}

void world_read_log(world *w, const stg_action *a)
{
    event *e;

    if (a->partition == STG_ANY_PARTITION) {
        world_poll(w, a);
        return;
    }
    e = world_post(w, a->read.is_catch_up ? CATCH_UP : MESSAGES,
                   some_time(w, 2 * STG_MS));

    // I2: nothing is asked for that was trimmed.
    CHECK(w->is_merged || a->read.from >= w->committed[a->partition]);
    w->reads++;
    e->assignment = a->read.assignment;
    w->catch_ups += a->read.is_catch_up;
    e->partition = a->partition;
    e->from = a->read.from;
    e->bytes_max = a->read.bytes_max;
}

bool world_is_readable(const world *w, const event *e)
{
    uint64_t count = w->partition_logged[e->partition];
    const uint64_t *of = w->of_partition[e->partition];

    return count > 0 && w->log[of[count - 1]].position >= e->from &&
           w->log[of[count - 1]].position >= w->trimmed[e->partition];
}

/* The broker is away, or does not know its end yet. */
static bool is_unread(world *w, const event *e)
{
    if (e->what != CATCH_UP)
        return false;
    if (w->unread > 0) {
        w->unread--;
        return true;
    }
    return w->is_merged && !w->is_traced && stg_rng_upto(&w->rng, 7) == 0;
}

void world_answer_read(world *w, const event *e)
{
    uint64_t logged_count = w->partition_logged[e->partition];
    const uint64_t *of = w->of_partition[e->partition];
    uint64_t first = logged_count;
    uint64_t from = stg_ns_max(e->from, w->trimmed[e->partition]);
    size_t count = 0, total = 0;
    uint64_t next = e->from;

    if (is_unread(w, e)) {
        stg_flow_unread(w->flow, e->partition, e->assignment, w->now);
        return;
    }
    while (first > 0 && w->log[of[first - 1]].position >= from)
        first--;
    for (uint64_t i = first; i < logged_count; i++) {
        if (count > 0 && total + w->log[of[i]].size > e->bytes_max)
            break;
        total += w->log[of[i]].size;
        count++;
        next = w->log[of[i]].position + 1;
    }
    world_give_records(w, e->partition, e, first, count, next, e->assignment);
}

void world_give_records(world *w, uint32_t p, const event *e, uint64_t first,
                        uint64_t count, uint64_t next, uint64_t assignment)
{
    const uint64_t *of = w->of_partition[p];
    stg_record *records = calloc((size_t)count + 1, sizeof *records);
    size_t total = 16;
    unsigned char *bytes, *at;

    for (size_t i = 0; i < count; i++)
        total += w->log[of[first + i]].size;
    at = bytes = calloc(1, total);
    for (size_t i = 0; i < count; i++) {
        const logged *m = &w->log[of[first + i]];

        world_write_bytes(at, m->partition, m->position);
        records[i] = (stg_record){.position = m->position,
                                  .key = m->key,
                                  .created_at = m->created_at,
                                  .bytes = at,
                                  .size = m->size,
                                  .true_size = m->true_size};
        at += m->size;
    }
    stg_flow_messages(w->flow, e->what == CATCH_UP, p, assignment, records,
                      (size_t)count, next, w->now);
    free(records);
    free(bytes);
}

/* -- rows ------------------------------------------------------------------ */

row *world_find_row(world *w, uint32_t l, uint32_t p, uint64_t position,
                    uint32_t replay)
{
    for (size_t i = 0; i < w->row_count; i++)
        if (w->rows[i].lane == l && w->rows[i].position == position &&
            w->rows[i].partition == p && w->rows[i].replay == replay)
            return &w->rows[i];
    return NULL;
}

void world_delete_row(world *w, row *r)
{
    if (r != NULL)
        *r = w->rows[--w->row_count];
}

row *world_add_row(world *w)
{
    w->rows = realloc(w->rows, (w->row_count + 1) * sizeof *w->rows);
    return &w->rows[w->row_count++];
}

static world_dead *add_dead(world *w)
{
    if (w->dead_count % 64 == 0)
        w->dead = realloc(w->dead, (w->dead_count + 64) * sizeof *w->dead);
    return &w->dead[w->dead_count++];
}

static world_dead *find_dead(world *w, const stg_change *c)
{
    for (size_t i = w->dead_count; i-- > 0;)
        if (w->dead[i].lane == c->lane && w->dead[i].position == c->position &&
            w->dead[i].partition == c->partition &&
            w->dead[i].replay == c->replay &&
            w->dead[i].life == w->lanes[c->lane].life)
            return &w->dead[i];
    return NULL;
}

/* What was replayed since stays so when a group comes again. */
static bool was_replayed(const world *w, const stg_change *c)
{
    for (size_t i = w->replayed_count; i-- > 0;) {
        const world_dead *d = &w->replayed[i];

        if (d->lane == c->lane && d->position == c->position &&
            d->partition == c->partition && d->replay == c->replay &&
            d->count == c->count && d->life == w->lanes[c->lane].life)
            return true;
    }
    return false;
}

void world_put_dead(world *w, const stg_change *c)
{
    world_dead *d = find_dead(w, c);

    // A bulk row is not the row of a delivery, nor one cancelled one shed.
    if (d != NULL && ((d->count > 0) != (c->count > 0) ||
                      d->is_cancelled != c->is_cancelled))
        harness_fail(__FILE__, __LINE__,
                     "seed %ju: lane %u position %ju: two rows of one name, "
                     "of %ju and %ju messages",
                     (uintmax_t)w->seed, c->lane, (uintmax_t)c->position,
                     (uintmax_t)d->count, (uintmax_t)c->count);
    if (d == NULL && was_replayed(w, c))
        return;
    if (d == NULL)
        d = add_dead(w);
    *d = (world_dead){.lane = c->lane,
                      .partition = c->partition,
                      .position = c->position,
                      .replay = c->replay,
                      .last_position = c->last_position,
                      .count = c->count,
                      .is_cancelled = c->is_cancelled,
                      .is_expired = c->is_expired,
                      .reason = c->reason,
                      .life = w->lanes[c->lane].life,
                      .attempts =
                          (uint32_t)c->attempts_before + c->progress.attempts};
    if (c->failure != NULL) {
        d->outcome = c->failure->outcome;
        d->why = c->failure->why;
    }
}

static void park(world *w, const stg_change *c)
{
    row *r = world_find_row(w, c->lane, c->partition, c->position, c->replay);

    CHECK(r != NULL || c->message != NULL);
    if (r == NULL)
        r = world_add_row(w);
    *r = (row){.lane = c->lane,
               .partition = c->partition,
               .position = c->position,
               .replay = c->replay,
               .attempts_before = c->attempts_before,
               .progress = c->progress,
               .began_at = c->began_at,
               .wait = c->wait,
               .due_at = c->due_at,
               .has_failure = c->failure != NULL};
    if (c->failure != NULL) {
        r->failure = *c->failure;
        r->failure.detail = "";
        r->failure.answer = NULL;
        r->failure.answer_size = 0;
    }
}

void world_cancel_rows(world *w, const stg_change *c)
{
    for (size_t i = 0; i < w->row_count;) {
        stg_change each = *c;

        if (w->rows[i].lane != c->lane ||
            w->rows[i].partition != c->partition) {
            i++;
            continue;
        }
        each.position = w->rows[i].position;
        each.replay = w->rows[i].replay;
        each.progress = w->rows[i].progress;
        each.attempts_before = w->rows[i].attempts_before;
        each.is_cancelled = true;
        world_put_dead(w, &each);
        world_delete_row(w, &w->rows[i]);
    }
}

/* -- a group --------------------------------------------------------------- */

static void apply_change(world *w, const stg_change *c)
{
    row *r;

    switch (c->kind) {
    case STG_CHANGE_PARK:
        park(w, c);
        break;
    case STG_CHANGE_DEAD:
        world_put_dead(w, c);
        // Given up before an attempt, perhaps.
        world_receipt_at(w, c->lane, c->partition, c->position)->is_over = true;
        __attribute__((fallthrough));
    case STG_CHANGE_DELIVERED:
        r = world_find_row(w, c->lane, c->partition, c->position, c->replay);
        world_delete_row(w, r);
        break;
    case STG_CHANGE_RANGE:
        world_put_dead(w, c);
        break;
    case STG_CHANGE_CANCEL:
        world_cancel_rows(w, c);
        break;
    case STG_CHANGE_FORGET:
        w->lanes[c->lane].cursors[c->partition].is_known = false;
        break;
    }
}

static void apply_cursor(world *w, const stg_cursor *c)
{
    cursor *known = &w->lanes[c->lane].cursors[c->partition];

    CHECK(!known->is_known || c->base >= known->c.base);
    for (size_t i = 0; i < c->settled_count; i++)
        CHECK(c->settled[i] >= (i == 0 ? c->base : c->settled[i - 1] + 1));
    free(known->settled);
    known->settled = calloc(c->settled_count + 1, sizeof *known->settled);
    if (c->settled_count > 0)
        memcpy(known->settled, c->settled,
               c->settled_count * sizeof *known->settled);
    known->c = *c;
    known->c.settled = known->settled;
    // The group was made before flow heard of these.
    known->c.dead -= known->replayed;
    known->c.parked += known->replayed;
    known->c.replays += known->replayed;
    known->is_known = true;
    w->lanes[c->lane].was_known = true;
    world_check_cursor(w, &known->c);
}

/* The next group knows of the replays that flow was told of. */
static void forget_group(world *w)
{
    w->is_group_out = false;
    w->group = NULL;
    for (uint32_t l = 0; l < w->lane_count; l++)
        for (uint32_t p = 0; p < w->partition_count; p++)
            w->lanes[l].cursors[p].replayed = 0;
}

static void apply_group(world *w, const stg_group *g)
{
    for (size_t i = 0; i < g->change_count; i++)
        apply_change(w, &g->changes[i]);
    for (size_t i = 0; i < g->cursor_count; i++)
        apply_cursor(w, &g->cursors[i]);
}

static uint64_t count_rows(const stg_group *g)
{
    uint64_t rows = 0;

    for (size_t i = 0; i < g->change_count; i++)
        rows += g->changes[i].kind == STG_CHANGE_PARK ||
                g->changes[i].kind == STG_CHANGE_DEAD;
    return rows;
}

void world_store(world *w, const stg_action *a)
{
    CHECK(w->group == NULL);
    world_check_claims(w, a->group);
    w->group = a->group;
    w->is_group_out = true;
    w->groups++;
    world_post(w, STORED, w->store_delay);
}

void world_end_store(world *w)
{
    stg_stored how = STG_STORED;
    uint64_t rows = count_rows(w->group);

    if (world_is_fenced(w, w->group)) {
        how = STG_STORED_FENCED;
    } else if (rows > w->store_room) {
        how = STG_STORED_FULL;
    } else if (w->store_unknown > 0) {
        // It was written, or not, and nobody heard of it.
        w->store_unknown--;
        if (stg_rng_upto(&w->rng, 1) == 1)
            apply_group(w, w->group);
        how = STG_STORED_UNKNOWN;
    } else {
        apply_group(w, w->group);
        w->store_room -= w->store_room == UINT64_MAX ? 0 : rows;
    }
    if (how != STG_STORED_UNKNOWN)
        forget_group(w);
    w->group = NULL;
    stg_flow_stored(w->flow, how, w->now);
}

void world_lose_store(world *w)
{
    if (w->group != NULL && stg_rng_upto(&w->rng, 1) == 1 &&
        !world_is_fenced(w, w->group) && count_rows(w->group) <= w->store_room)
        apply_group(w, w->group);
    forget_group(w);
}

bool world_is_settled(const cursor *c, uint64_t position)
{
    if (!c->is_known)
        return false;
    if (position < c->c.base)
        return true;
    for (size_t i = 0; i < c->c.settled_count; i++)
        if (c->c.settled[i] == position)
            return true;
    return false;
}

void world_store_room(world *w, uint64_t rows)
{
    w->store_room = rows;
}

void world_store_unknown(world *w, uint32_t answers)
{
    w->store_unknown = answers;
}

void world_store_delay(world *w, stg_ns delay)
{
    w->store_delay = delay;
}

/* -- a fetch --------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
    const row *one = a, *other = b;

    if (one->due_at != other->due_at)
        return one->due_at < other->due_at ? -1 : 1;
    if (one->position != other->position)
        return one->position < other->position ? -1 : 1;
    if (one->partition != other->partition)
        return one->partition < other->partition ? -1 : 1;
    return (one->replay > other->replay) - (one->replay < other->replay);
}

static bool is_above(const row *r, const stg_mark *m)
{
    row at = {.due_at = m->due_at,
              .position = m->position,
              .partition = m->partition,
              .replay = m->replay};

    return compare_rows(r, &at) > 0;
}

/* It is asked for, looks at the rows some time later, and answers after that. */
void world_fetch(world *w, const stg_action *a)
{
    stg_ns delay = w->fetch_delay == STG_NEVER ? some_time(w, 20 * STG_MS)
                                               : w->fetch_delay;
    stg_ns looks_after =
        w->is_traced ? delay / 2 : stg_rng_upto(&w->rng, delay);
    event *e = world_post(w, LOOK, looks_after);

    CHECK(a->fetch.rows_max > 0);
    w->fetches++;
    e->lane = a->lane;
    e->is_replay = a->fetch.is_replay;
    e->after = a->fetch.after;
    e->rows_max = a->fetch.rows_max;
    e->left = delay - looks_after;
}

/* A store that is shared gives the rows of what was claimed. Those of what has
 * gone since may still come. */
static bool is_fetched(world *w, const row *r)
{
    const part *p = &w->parts[r->partition];

    if (!w->is_merged || w->keeps_rows || p->where == HERE)
        return true;
    return p->where == GOING && stg_rng_upto(&w->rng, 1) == 0;
}

void world_look_rows(world *w, const event *look)
{
    event *e = world_post(w, ROWS, look->left);
    fetched *f = &e->fetched;

    e->lane = look->lane;
    e->is_replay = look->is_replay;
    f->rows = calloc(w->row_count + 1, sizeof(row));
    f->is_all = true;
    for (size_t i = 0; i < w->row_count; i++)
        if (w->rows[i].lane == e->lane && is_fetched(w, &w->rows[i]) &&
            (w->rows[i].replay > 0) == e->is_replay &&
            is_above(&w->rows[i], &look->after))
            f->rows[f->count++] = w->rows[i];
    qsort(f->rows, f->count, sizeof(row), compare_rows);
    if (f->count > look->rows_max) {
        f->count = look->rows_max;
        f->is_all = false;
    }
}

void world_answer_fetch(world *w, event *e)
{
    const fetched *f = &e->fetched;
    stg_parked_row *rows = calloc(f->count + 1, sizeof *rows);
    unsigned char **bodies = calloc(f->count + 1, sizeof *bodies);

    for (size_t i = 0; i < f->count; i++) {
        const row *r = &f->rows[i];
        const logged *m = &w->log[world_index(w, r->partition, r->position)];

        bodies[i] = calloc(1, m->size);
        world_write_bytes(bodies[i], r->partition, r->position);
        rows[i] = (stg_parked_row){.partition = r->partition,
                                   .replay = r->replay,
                                   .attempts_before = r->attempts_before,
                                   .record = {.position = r->position,
                                              .key = m->key,
                                              .created_at = m->created_at,
                                              .bytes = bodies[i],
                                              .size = m->size},
                                   .progress = r->progress,
                                   .began_at = r->began_at,
                                   .failure = r->failure,
                                   .has_failure = r->has_failure,
                                   .wait = r->wait,
                                   .due_at = r->due_at};
    }
    stg_flow_rows(w->flow, e->lane, e->is_replay, rows, f->count, f->is_all,
                  w->now);
    for (size_t i = 0; i < f->count; i++)
        free(bodies[i]);
    free(rows);
    free(bodies);
}

void world_fetch_delay(world *w, stg_ns delay)
{
    w->fetch_delay = delay;
}

/* -- a replay -------------------------------------------------------------- */

static void replay_one(world *w, world_dead *d)
{
    lane *l = &w->lanes[d->lane];
    cursor *c = &l->cursors[d->partition];
    world_receipt *r = world_receipt_at(w, d->lane, d->partition, d->position);
    row *parked = world_add_row(w);

    *parked = (row){.lane = d->lane,
                    .partition = d->partition,
                    .position = d->position,
                    .replay = d->replay + 1,
                    .attempts_before = d->attempts,
                    .due_at = w->wall_at + (w->now - w->origin_at)};
    r->replays = d->replay + 1;
    r->not_before = 0;
    l->replays++;
    // In one transaction with the books.
    c->c.dead--;
    c->c.parked++;
    c->c.replays++;
    c->replayed += w->is_group_out;
    stg_flow_replayed(w->flow, d->lane, d->partition, 1, w->now);
    if (w->replayed_count % 64 == 0)
        w->replayed = realloc(w->replayed,
                              (w->replayed_count + 64) * sizeof *w->replayed);
    w->replayed[w->replayed_count++] = *d;
    *d = w->dead[--w->dead_count];
}

uint32_t world_replay(world *w, uint32_t l, uint32_t count)
{
    uint32_t replayed = 0;

    for (size_t i = w->dead_count; i-- > 0 && replayed < count;) {
        world_dead *d = &w->dead[i];
        const lane *at = &w->lanes[d->lane];

        if (d->lane != l || d->count > 0 || d->is_cancelled ||
            d->outcome.fault == STG_FAULT_TOO_LARGE || d->life != at->life ||
            at->is_removing || at->was_removed)
            continue;
        replay_one(w, d);
        replayed++;
    }
    return replayed;
}
