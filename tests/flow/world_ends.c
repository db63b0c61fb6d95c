/* What has to be true of a world: its books, and how all things ended. */
#include "flow/state.h"
#include "tests/flow/world_inside.h"

static uint64_t count_of(const world_dead *d)
{
    return d->count == 0 ? 1 : d->count;
}

void world_check_cursor(const world *w, const stg_cursor *c)
{
    uint64_t rows = 0, replays = 0, dead = 0, cancelled = 0;

    for (size_t i = 0; i < w->row_count; i++) {
        const row *r = &w->rows[i];
        bool is_of = r->lane == c->lane && r->partition == c->partition;

        rows += is_of;
        replays += is_of && r->replay > 0;
    }
    for (size_t i = 0; i < w->dead_count; i++) {
        const world_dead *d = &w->dead[i];

        if (d->lane != c->lane || d->partition != c->partition ||
            d->life != w->lanes[c->lane].life)
            continue;
        if (d->is_cancelled)
            cancelled += count_of(d);
        else
            dead += count_of(d);
    }
    CHECK_U64(c->parked, rows);
    CHECK_U64(c->replays, replays);
    CHECK_U64(c->dead, dead);
    CHECK_U64(c->cancelled, cancelled);
    CHECK_U64(c->routed, c->delivered + c->dead + c->cancelled + c->parked);
}

void world_check_views(const world *w)
{
    for (uint32_t l = 0; l < w->lane_count; l++) {
        stg_lane_view v;

        if (stg_flow_look(w->flow, l, &v, w->now) != STG_OK)
            continue;
        if (v.routed != v.delivered + v.dead + v.cancelled + v.parked +
                            v.waiting + v.in_flight)
            harness_fail(__FILE__, __LINE__,
                         "seed %ju: lane %u: the books do not balance",
                         (uintmax_t)w->seed, l);
        CHECK_U64(v.in_flight, w->lanes[l].in_flight);
        CHECK(v.limit <= w->lanes[l].o.in_flight_max);
    }
}

/* 0: no dead row; 1: one of its own; 2: within a range. */
static int how_dead(const world *w, uint32_t l, const logged *m, uint32_t *rows)
{
    int how = 0;

    *rows = 0;
    for (size_t i = 0; i < w->dead_count; i++) {
        const world_dead *d = &w->dead[i];

        if (d->lane != l || d->partition != m->partition ||
            d->life != w->lanes[l].life)
            continue;
        if (d->count == 0 && d->position == m->position) {
            how = 1;
            ++*rows;
        } else if (d->count > 0 && d->position <= m->position &&
                   m->position <= d->last_position && how == 0) {
            how = 2;
        }
    }
    return how;
}

static void check_end(world *w, uint32_t l, uint64_t i, uint64_t seed)
{
    const logged *m = &w->log[i];
    const lane *at = &w->lanes[l];
    const world_receipt *r = &at->receipts[i];
    uint64_t tries = 1 + r->replays;
    uint32_t dead_rows;
    int how = how_dead(w, l, m, &dead_rows);

    for (uint32_t replay = 0; replay <= r->replays; replay++)
        if (world_find_row(w, l, m->partition, m->position, replay) != NULL)
            harness_fail(__FILE__, __LINE__,
                         "seed %ju: lane %u: position %ju is still parked",
                         (uintmax_t)seed, l, (uintmax_t)m->position);
    CHECK_FROM(seed, dead_rows <= 1);
    // I1 Delivered, or dead with a row.
    if (r->processed == 0 && how == 0)
        harness_fail(__FILE__, __LINE__,
                     "seed %ju: lane %u lost position %ju of partition %u",
                     (uintmax_t)seed, l, (uintmax_t)m->position, m->partition);
    // I3
    if (!at->has_changed && at->policy->reset_after == STG_NEVER &&
        at->policy->attempts_max != STG_UNLIMITED &&
        r->attempts > at->policy->attempts_max * tries + w->crashes)
        harness_fail(__FILE__, __LINE__,
                     "seed %ju: lane %u tried position %ju %u times",
                     (uintmax_t)seed, l, (uintmax_t)m->position, r->attempts);
    // I16
    CHECK_FROM(seed, r->processed <= tries + w->crashes + r->unknown);
}

static bool is_business(const lane *l, const logged *m)
{
    return m->position >= l->cursors[m->partition].begin &&
           world_is_wanted(l, m->partition, m->position);
}

/* Of all messages that were its business. */
typedef struct sum {
    uint64_t wanted, processed;
} sum;

static sum check_each(world *w, uint32_t l, uint64_t seed)
{
    const lane *at = &w->lanes[l];
    sum s = {0, 0};

    for (uint64_t i = 0; i < w->log_count; i++) {
        const logged *m = &w->log[i];

        if (!is_business(at, m)) {
            CHECK_FROM(seed, w->is_merged || at->receipts[i].attempts == 0);
            continue;
        }
        s.wanted++;
        s.processed += at->receipts[i].processed > 0;
        check_end(w, l, i, seed);
    }
    return s;
}

/* Of what the lane wanted from its first to its last position nothing is
 * missing in a bulk row, for that is what a replay of it sends. */
static void check_ranges(const world *w, uint64_t seed)
{
    for (size_t i = 0; i < w->dead_count; i++) {
        const world_dead *d = &w->dead[i];
        const lane *l = &w->lanes[d->lane];
        uint64_t wanted = 0;

        if (d->count == 0 || d->is_cancelled || d->is_expired ||
            d->life != l->life)
            continue;
        for (uint64_t k = 0; k < w->log_count; k++)
            wanted += w->log[k].partition == d->partition &&
                      w->log[k].position >= d->position &&
                      w->log[k].position <= d->last_position &&
                      is_business(l, &w->log[k]);
        if (wanted != d->count)
            harness_fail(__FILE__, __LINE__,
                         "seed %ju: lane %u: the range from %ju to %ju is of "
                         "%ju messages, and counts %ju",
                         (uintmax_t)seed, d->lane, (uintmax_t)d->position,
                         (uintmax_t)d->last_position, (uintmax_t)wanted,
                         (uintmax_t)d->count);
    }
}

/* The log itself: a lane that joins may begin there. */
static bool has_lost(const world *w)
{
    for (uint32_t p = 0; p < w->partition_count; p++)
        if (w->is_merged && w->trimmed[p] > 0)
            return true;
    return false;
}

/* Of what the log had lost nobody knows how many there were: the rows have as
 * many as there were positions. */
static uint64_t count_lost(const world *w, uint32_t l)
{
    uint64_t count = 0;

    for (size_t i = 0; i < w->dead_count; i++)
        if (w->dead[i].lane == l && w->dead[i].is_expired &&
            w->dead[i].life == w->lanes[l].life)
            count += w->dead[i].count;
    return count;
}

void world_check_ends(world *w, uint64_t seed)
{
    check_ranges(w, seed);
    for (uint32_t l = 0; l < w->lane_count; l++) {
        const lane *at = &w->lanes[l];
        uint64_t settled = 0, delivered = 0;
        sum s;

        if (at->was_removed)
            continue;
        CHECK_FROM(seed, !at->is_removing); // I20
        s = check_each(w, l, seed);
        for (uint64_t i = 0; i < w->log_count; i++)
            CHECK_FROM(seed,
                       !is_business(at, &w->log[i]) ||
                           world_is_settled(&at->cursors[w->log[i].partition],
                                            w->log[i].position));
        for (uint32_t p = 0; p < w->partition_count; p++) {
            const stg_cursor *c = &at->cursors[p].c;

            CHECK_FROM(seed, c->parked == 0);
            settled += c->delivered + c->dead + c->cancelled;
            delivered += c->delivered;
        }
        settled -= count_lost(w, l);
        if (at->has_lost || has_lost(w) ? settled > s.wanted
                                        : settled != s.wanted)
            harness_fail(
                __FILE__, __LINE__, "seed %ju: lane %u: %ju settled of %ju",
                (uintmax_t)seed, l, (uintmax_t)settled, (uintmax_t)s.wanted);
        CHECK_FROM(seed, delivered <= s.processed);
    }
}

/* What came after the removal is nobody's business. */
void world_check_removed(world *w, uint32_t l)
{
    const lane *at = &w->lanes[l];

    for (uint32_t p = 0; p < w->partition_count; p++)
        CHECK(!at->cursors[p].is_known);
    for (size_t i = 0; i < w->row_count; i++)
        CHECK(w->rows[i].lane != l);
    CHECK_U64(at->in_flight, 0);
    for (uint64_t i = 0; i < w->log_count; i++) {
        const logged *m = &w->log[i];

        if (is_business(at, m) && m->position < at->cursors[m->partition].end)
            check_end(w, l, i, w->seed);
    }
}

uint64_t world_dead_of(const world *w, uint32_t l)
{
    uint64_t count = 0;

    for (size_t i = 0; i < w->dead_count; i++)
        if (w->dead[i].lane == l)
            count += count_of(&w->dead[i]);
    return count;
}

uint64_t world_ranges_of(const world *w, uint32_t l)
{
    uint64_t ranges = 0;

    for (size_t i = 0; i < w->dead_count; i++)
        ranges += w->dead[i].lane == l && w->dead[i].count > 0;
    return ranges;
}

void world_end(world *w, uint64_t seed)
{
    world_check_ends(w, seed);
    world_free(w);
}
