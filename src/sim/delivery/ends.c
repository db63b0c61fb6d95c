#include "sim/delivery/internal.h"

#include <string.h>

/* What has to be true when all has settled, of each lane and message. Each dead
 * letter is looked at once: those of a lane are listed, and marked at the
 * messages that they have. */

/* -- dead letters ---------------------------------------------------------- */

/* Dead letters of the lanes' present lives, by lane. */
typedef struct letters {
    size_t *first; /* of each lane, from 1 on; 0: none */
    size_t *next;  /* the same lane's next, from 1 on */
} letters;

/* False: no memory. */
static bool list_letters(stg_world *w, letters *all)
{
    all->first = stg_world_allocate(w, w->lane_count + 1, sizeof *all->first);
    all->next = stg_world_allocate(w, w->dead_count + 1, sizeof *all->next);
    if (all->first == NULL || all->next == NULL)
        return false;
    for (size_t i = w->dead_count; i-- > 0;) {
        uint32_t lane = w->dead[i].lane;

        if (w->dead[i].life != w->lanes[lane]->life)
            continue;
        all->next[i] = all->first[lane];
        all->first[lane] = i + 1;
    }
    return true;
}

static void free_letters(stg_world *w, const letters *all)
{
    stg_world_release(w, all->first);
    stg_world_release(w, all->next);
}

/* How a message is dead on the lane that is checked. */
typedef struct mark {
    uint32_t rows; /* of its own */
    bool is_in_bulk;
} mark;

static void mark_letter(const stg_world *w, const stg_world_dead *d,
                        mark *marks)
{
    const stg_world_partition *at = &w->partitions[d->partition];
    uint64_t last = d->count == 0 ? d->position : d->last_position;

    for (uint64_t i = stg_world_find(w, d->partition, d->position);
         i < at->count && w->log[at->messages[i]].position <= last; i++) {
        if (d->count == 0)
            marks[at->messages[i]].rows++;
        else
            marks[at->messages[i]].is_in_bulk = true;
    }
}

/* By the index of a message. */
static void mark_letters(const stg_world *w, const letters *all, uint32_t lane,
                         mark *marks)
{
    memset(marks, 0, w->log_count * sizeof *marks);
    for (size_t i = all->first[lane]; i > 0; i = all->next[i - 1])
        mark_letter(w, &w->dead[i - 1], marks);
}

/* -- a message ------------------------------------------------------------- */

/* A replay has another row than the delivery before it. */
static bool is_parked(const stg_world *w, uint32_t lane, uint64_t i)
{
    const stg_world_message *m = &w->log[i];

    for (uint32_t n = 0;
         w->row_count > 0 && n <= w->lanes[lane]->receipts[i].replays; n++)
        if (stg_world_find_row(w, lane, m->partition, m->position, n) != NULL)
            return true;
    return false;
}

/* As far as the hub can know: a target that lies has the message. */
static bool has_arrived(const stg_world_receipt *r)
{
    return r->processed > 0 || r->lied > 0;
}

/* The bounds of attempts and arrivals are per replay, and wider by one for each
 * crash: a crash loses the count of an attempt that was made. `unknown` are
 * those that arrived and of which the hub heard a fault. */
static void check_end(stg_world *w, uint32_t lane, uint64_t i, const mark *dead)
{
    const stg_world_message *m = &w->log[i];
    const stg_world_lane *l = w->lanes[lane];
    const stg_world_receipt *r = &l->receipts[i];
    stg_world_subject of = stg_about_message(lane, m->partition, m->position);
    uint64_t tries = 1 + r->replays;

    stg_world_require(w, !is_parked(w, lane, i), "I20", of,
                      "no message is parked for ever");
    stg_world_require(w, dead->rows <= 1, "I13", of,
                      "a dead message has one row");
    stg_world_require(w, has_arrived(r) || dead->rows > 0 || dead->is_in_bulk,
                      "I1", of, "a message is delivered, or dead with a row");
    if (!l->has_changed && l->policy->reset_after == STG_NEVER &&
        l->policy->attempts_max != STG_UNLIMITED)
        stg_world_require(
            w, r->attempts <= l->policy->attempts_max * tries + w->crashes,
            "I3", of, "attempts are within the policy's, and the crashes");
    stg_world_require(w, r->processed <= tries + w->crashes + r->unknown, "I16",
                      of, "a message arrives twice only for a reason");
}

/* From the position where the lane began, and of what its filter takes. */
static bool is_business(const stg_world_lane *l, const stg_world_message *m)
{
    return m->position >= l->cursors[m->partition].begin &&
           stg_world_is_routed(l, m->partition, m->position);
}

/* Counts of the messages that concern a lane. */
typedef struct lane_sum {
    uint64_t routed, processed;
} lane_sum;

static lane_sum check_each(stg_world *w, uint32_t lane, const mark *marks)
{
    const stg_world_lane *l = w->lanes[lane];
    lane_sum s = {0, 0};

    for (uint64_t i = 0; i < w->log_count; i++) {
        const stg_world_message *m = &w->log[i];
        stg_world_subject of =
            stg_about_message(lane, m->partition, m->position);

        if (!is_business(l, m)) {
            stg_world_require(w, w->is_group || l->receipts[i].attempts == 0,
                              "I7", of, "what the lane refuses is not tried");
            continue;
        }
        s.routed++;
        s.processed += has_arrived(&l->receipts[i]);
        check_end(w, lane, i, &marks[i]);
        stg_world_require(
            w, stg_world_is_settled(&l->cursors[m->partition], m->position),
            "I20", of, "a message is settled durably");
    }
    return s;
}

/* A crash may come between the partitions of a removal: where the store has
 * forgotten the lane it begins anew, behind what it had shed, until it is removed
 * there once more. */
static bool is_of_before(const stg_world_lane *l, const stg_world_dead *d)
{
    return (l->is_removing || l->was_removed) &&
           d->last_position < l->cursors[d->partition].begin;
}

/* A replay of a bulk row sends all that was routed to the lane from its first
 * to its last position: nothing of that is missing in it. */
static void check_bulk_rows(stg_world *w)
{
    for (size_t i = 0; i < w->dead_count; i++) {
        const stg_world_dead *d = &w->dead[i];
        const stg_world_lane *l = w->lanes[d->lane];
        const stg_world_partition *at;
        uint64_t routed = 0;

        if (d->count == 0 || d->is_cancelled || d->is_expired ||
            d->life != l->life || is_of_before(l, d))
            continue;
        at = &w->partitions[d->partition];
        for (uint64_t k = stg_world_find(w, d->partition, d->position);
             k < at->count &&
             w->log[at->messages[k]].position <= d->last_position;
             k++)
            routed += is_business(l, &w->log[at->messages[k]]);
        stg_world_require(w, routed == d->count, "I13",
                          stg_about_message(d->lane, d->partition, d->position),
                          "a bulk row counts the messages in its range");
    }
}

/* The log itself: a lane that is added may begin there. */
static bool has_log_lost(const stg_world *w)
{
    for (uint32_t p = 0; p < w->partition_count; p++)
        if (w->is_group && w->partitions[p].trimmed > 0)
            return true;
    return false;
}

/* Nobody knows how many messages the log had lost: the rows have as many as
 * there were positions. */
static uint64_t count_lost(const stg_world *w, const letters *all,
                           uint32_t lane)
{
    uint64_t count = 0;

    for (size_t i = all->first[lane]; i > 0; i = all->next[i - 1])
        if (w->dead[i - 1].is_expired)
            count += w->dead[i - 1].count;
    return count;
}

/* A message must have been settled once, neither lost nor counted twice. Where
 * the log lost messages, or other hubs settled some in stores of their own,
 * fewer may be settled here, but never more. */
static void check_lane(stg_world *w, const letters *all, uint32_t lane,
                       mark *marks)
{
    const stg_world_lane *l = w->lanes[lane];
    stg_world_subject of = stg_about_lane(lane);
    uint64_t settled = 0, delivered = 0;
    lane_sum s;

    stg_world_require(w, !l->is_removing, "I20", of, "a removal ends");
    mark_letters(w, all, lane, marks);
    s = check_each(w, lane, marks);
    for (uint32_t p = 0; p < w->partition_count; p++) {
        const stg_cursor *c = &l->cursors[p].c;

        stg_world_require(w, c->parked == 0, "I20", of, "no row is parked");
        settled += c->delivered + c->dead + c->cancelled;
        delivered += c->delivered;
    }
    settled -= count_lost(w, all, lane) + l->rewound;
    stg_world_require(w,
                      l->has_lost || has_log_lost(w) ? settled <= s.routed
                                                     : settled == s.routed,
                      "I17", of, "all that was routed is settled once");
    stg_world_require(w, delivered <= s.processed + l->rewound, "I1", of,
                      "what counts as delivered was processed");
}

/* -- the world's own numbers ----------------------------------------------- */

static void count_rows(const stg_world *w, stg_world_tally *counted)
{
    for (size_t i = 0; i < w->row_count; i++) {
        const stg_world_row *r = &w->rows[i];
        stg_world_tally *t =
            &counted[r->lane * w->partition_count + r->partition];

        t->parked++;
        t->replays += r->replay > 0;
    }
    for (size_t i = 0; i < w->dead_count; i++) {
        const stg_world_dead *d = &w->dead[i];
        stg_world_tally *t =
            &counted[d->lane * w->partition_count + d->partition];

        if (d->life != w->lanes[d->lane]->life)
            continue;
        if (d->is_cancelled)
            t->cancelled += stg_world_count_dead(d);
        else
            t->dead += stg_world_count_dead(d);
    }
}

/* Cursors were judged by numbers that rows.c has kept: counts all rows anew. */
static void check_tallies(stg_world *w)
{
    stg_world_tally *counted = stg_world_allocate(
        w, w->lane_count * w->partition_count + 1, sizeof *counted);

    if (counted == NULL)
        return;
    count_rows(w, counted);
    for (uint32_t l = 0; l < w->lane_count; l++)
        for (uint32_t p = 0; p < w->partition_count; p++) {
            const stg_world_tally *t = &counted[l * w->partition_count + p];
            const stg_world_tally *kept = &w->lanes[l]->cursors[p].tally;

            stg_world_require(
                w,
                t->parked == kept->parked && t->replays == kept->replays &&
                    t->dead == kept->dead && t->cancelled == kept->cancelled,
                "check", stg_about_message(l, p, UINT64_MAX),
                "the world has counted its rows");
        }
    stg_world_release(w, counted);
}

/* -- all of it ------------------------------------------------------------- */

void stg_world_check_ends(stg_world *w)
{
    mark *marks = stg_world_allocate(w, w->log_count + 1, sizeof *marks);
    letters all;

    if (list_letters(w, &all) && marks != NULL) {
        check_tallies(w);
        check_bulk_rows(w);
        for (uint32_t l = 0; l < w->lane_count && !w->has_failed; l++)
            if (!w->lanes[l]->was_removed)
                check_lane(w, &all, l, marks);
    }
    free_letters(w, &all);
    stg_world_release(w, marks);
}

/* What was published after the removal is nobody's business. */
static void check_removed_ends(stg_world *w, uint32_t lane)
{
    mark *marks = stg_world_allocate(w, w->log_count + 1, sizeof *marks);
    const stg_world_lane *l = w->lanes[lane];
    letters all;

    if (list_letters(w, &all) && marks != NULL) {
        mark_letters(w, &all, lane, marks);
        for (uint64_t i = 0; i < w->log_count; i++) {
            const stg_world_message *m = &w->log[i];

            if (is_business(l, m) && m->position < l->cursors[m->partition].end)
                check_end(w, lane, i, &marks[i]);
        }
    }
    free_letters(w, &all);
    stg_world_release(w, marks);
}

/* A lane that the store never knew is not checked (stg_world_note_removed()). */
void stg_world_check_removed(stg_world *w, uint32_t lane)
{
    const stg_world_lane *l = w->lanes[lane];
    bool is_known = false, has_rows = false;

    for (uint32_t p = 0; p < w->partition_count; p++)
        is_known |= l->cursors[p].is_known;
    for (size_t i = 0; i < w->row_count; i++)
        has_rows |= w->rows[i].lane == lane;
    stg_world_require(w, !is_known && !has_rows && l->in_flight == 0, "I7",
                      stg_about_lane(lane),
                      "nothing is left of a removed lane");
    check_removed_ends(w, lane);
}
