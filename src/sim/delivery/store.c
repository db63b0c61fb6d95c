#include "sim/delivery/internal.h"

/* The store of a world at work: a group takes its time and may be refused, or
 * its answer lost; a fetch is asked for, looks at the rows some time later, and
 * answers after that, when they may be others.
 *
 * A group is written when its answer comes, not when it is asked for: until
 * then a crash may lose it whole, or write it unseen. The order of the answers
 * in write_group() matters: a fenced group must not be written, whatever room
 * there is. */

/* -- a group --------------------------------------------------------------- */

/* The group is answered for good. The next one knows of the replays that flow
 * was told of, so they are no longer added to the cursors. */
static void forget_group(stg_world *w)
{
    w->is_group_pending = w->was_written = false;
    w->group = NULL;
    for (uint32_t l = 0; w->has_replayed && l < w->lane_count; l++)
        for (uint32_t p = 0; p < w->partition_count; p++)
            w->lanes[l]->cursors[p].replayed = w->lanes[l]->cursors[p].rewound =
                0;
    w->has_replayed = false;
}

/* What takes room: parked rows and single dead letters; rows that are replaced
 * count as well. */
static uint64_t count_rows(const stg_group *g)
{
    uint64_t rows = 0;

    for (size_t i = 0; i < g->change_count; i++)
        rows += g->changes[i].kind == STG_CHANGE_PARK ||
                g->changes[i].kind == STG_CHANGE_DEAD;
    return rows;
}

void stg_world_store(stg_world *w, const stg_action *a)
{
    stg_world_require(w, w->group == NULL, "check", stg_about_all(),
                      "one group at a time");
    stg_world_check_claims(w, a->group);
    // The one before may be given up, when all of it was lost.
    if (a->group->number != w->group_number)
        forget_group(w);
    w->group_number = a->group->number;
    w->group = a->group;
    w->is_group_pending = true;
    w->groups++;
    stg_world_post(w, STG_WORLD_STORED, w->store_delay);
}

/* What the store answers, and does. */
static stg_stored write_group(stg_world *w)
{
    uint64_t rows = count_rows(w->group);

    if (stg_world_is_fenced(w, w->group))
        return STG_STORED_FENCED;
    if ((w->is_store_full || rows > w->store_room) && !w->was_written)
        return STG_STORED_FULL;
    if (w->lost_answers > 0) {
        w->lost_answers--;
        if (stg_rng_upto(&w->rng, 1) == 1)
            w->was_written = true;
        if (w->was_written)
            stg_world_apply(w, w->group);
        return STG_STORED_UNKNOWN;
    }
    stg_world_apply(w, w->group);
    w->store_room -= w->store_room == UINT64_MAX || w->was_written ? 0 : rows;
    return STG_STORED;
}

/* After UNKNOWN flow sends the same group again, made before the replays since:
 * they are still to be added. One that was written needs no room again. */
void stg_world_end_store(stg_world *w)
{
    stg_stored how = write_group(w);

    if (how != STG_STORED_UNKNOWN &&
        !(how == STG_STORED_FENCED && w->was_written))
        forget_group(w);
    w->group = NULL;
    stg_flow_stored(w->flow, how, w->now);
}

/* By chance the group got there or not, and flow has no answer to it. */
void stg_world_lose_store(stg_world *w)
{
    if (w->group != NULL && stg_rng_upto(&w->rng, 1) == 1 &&
        !stg_world_is_fenced(w, w->group) && !w->is_store_full &&
        count_rows(w->group) <= w->store_room)
        stg_world_apply(w, w->group);
    forget_group(w);
}

/* -- a fetch --------------------------------------------------------------- */

/* Two delays: until the store looks, and from then until flow has the answer.
 * Between them rows may be written, deleted or replayed. */
void stg_world_fetch(stg_world *w, const stg_action *a)
{
    stg_ns delay = w->fetch_delay == STG_NEVER
                       ? stg_world_some_time(w, 20 * STG_MS)
                       : w->fetch_delay;
    stg_ns looks_after =
        w->has_delays ? stg_rng_upto(&w->rng, delay) : delay / 2;
    stg_world_event *e = stg_world_post(w, STG_WORLD_LOOK, looks_after);

    stg_world_require(w, a->fetch.rows_max > 0, "check",
                      stg_about_lane(a->lane), "a fetch wants rows");
    if (e == NULL)
        return;
    w->fetches++;
    e->lane = a->lane;
    e->fetch.is_replay = a->fetch.is_replay;
    e->fetch.after = a->fetch.after;
    e->fetch.rows_max = a->fetch.rows_max;
    e->fetch.left = delay - looks_after;
}

static stg_mark mark_of(const stg_world_row *r)
{
    return (stg_mark){.due_at = r->due_at,
                      .position = r->position,
                      .partition = r->partition,
                      .replay = r->replay};
}

/* In the order of flow's marks, which says what a fetch goes on behind. */
static bool is_below(const stg_world_row *a, const stg_world_row *b)
{
    stg_mark one = mark_of(a), other = mark_of(b);

    return stg_mark_compare(&one, &other) < 0;
}

/* A store that is shared gives the rows of what was claimed. Those of what has
 * been revoked since may still come. */
static bool is_fetched(stg_world *w, const stg_world_row *r)
{
    const stg_world_partition *p = &w->partitions[r->partition];

    if (!w->is_group || w->keeps_rows || p->where == STG_WORLD_ASSIGNED)
        return true;
    return p->where == STG_WORLD_REVOKING && stg_rng_upto(&w->rng, 1) == 0;
}

/* Keeps the lowest rows_max rows, in their order. */
static void insert(stg_world_event *e, const stg_world_row *r)
{
    stg_world_row *rows = e->fetch.rows;
    uint32_t at = e->fetch.count;

    if (at == e->fetch.rows_max) {
        e->fetch.is_all = false;
        if (!is_below(r, &rows[--at]))
            return;
    } else {
        e->fetch.count++;
    }
    for (; at > 0 && is_below(r, &rows[at - 1]); at--)
        rows[at] = rows[at - 1];
    rows[at] = *r;
}

/* Copies the rows as they are now. is_all: no more stand behind them. */
void stg_world_look_rows(stg_world *w, const stg_world_event *look)
{
    stg_world_event *e = stg_world_post(w, STG_WORLD_ROWS, look->fetch.left);

    if (e == NULL)
        return;
    e->lane = look->lane;
    e->fetch = look->fetch;
    e->fetch.is_all = true;
    e->fetch.rows =
        stg_world_allocate(w, look->fetch.rows_max, sizeof *e->fetch.rows);
    for (size_t i = 0; e->fetch.rows != NULL && i < w->row_count; i++) {
        const stg_world_row *r = &w->rows[i];
        stg_mark mark = mark_of(r);

        if (r->lane == e->lane && is_fetched(w, r) &&
            (r->replay > 0) == e->fetch.is_replay &&
            stg_mark_compare(&mark, &e->fetch.after) > 0)
            insert(e, r);
    }
}

static stg_parked_row make_parked(const stg_world *w, const stg_world_row *r,
                                  uint64_t i, unsigned char *bytes)
{
    const stg_world_message *m = &w->log[i];

    stg_world_write_bytes(bytes, r->partition, r->position);
    return (stg_parked_row){.partition = r->partition,
                            .replay = r->replay,
                            .attempts_before = r->attempts_before,
                            .record = {.position = r->position,
                                       .key = m->key,
                                       .created_at = m->created_at,
                                       .not_before = m->not_before,
                                       .expires_at = m->expires_at,
                                       .bytes = bytes,
                                       .size = m->size},
                            .progress = r->progress,
                            .began_at = r->began_at,
                            .failure = r->failure,
                            .has_failure = r->has_failure,
                            .wait = r->wait,
                            .due_at = r->due_at};
}

/* Rows and bytes are gone after the call. A row may have ended since the look;
 * flow has to know that. */
void stg_world_answer_fetch(stg_world *w, const stg_world_event *e)
{
    stg_parked_row *rows =
        stg_world_allocate(w, e->fetch.count + 1, sizeof *rows);
    unsigned char *bytes = NULL, *at;
    size_t total = 1;

    for (uint32_t i = 0; i < e->fetch.count; i++) {
        uint64_t m = stg_world_index(w, e->fetch.rows[i].partition,
                                     e->fetch.rows[i].position);

        total += m < w->log_count ? w->log[m].size : 0;
    }
    if (rows != NULL && !w->has_failed)
        bytes = at = stg_world_allocate(w, 1, total);
    for (uint32_t i = 0; bytes != NULL && i < e->fetch.count; i++) {
        const stg_world_row *r = &e->fetch.rows[i];
        uint64_t m = stg_world_index(w, r->partition, r->position);

        rows[i] = make_parked(w, r, m, at);
        at += w->log[m].size;
    }
    if (bytes != NULL)
        stg_flow_rows(w->flow, e->lane, e->fetch.is_replay, rows,
                      e->fetch.count, e->fetch.is_all, w->now);
    stg_world_release(w, bytes);
    stg_world_release(w, rows);
}
