#include "sim/statistics.h"

#include <string.h>

/* How many had succeeded by then, with the error over the runs. The curve of a
 * run rises, and is kept as its steps: counts by place of time, as a tally has
 * them.
 *
 * For the error the sum of squares of the curve's height over the runs is
 * needed at each place. `squares` has by how much the square rises there, so
 * that adding up from the left gives it, also at places where a run has no
 * step. That is exact in integers, and the order of runs does not matter. */

enum { BITS = 7 };

void stg_sim_curve_init(stg_sim_curve *c, const stg_memory *memory)
{
    *c = (stg_sim_curve){.memory = memory};
}

static void release(const stg_sim_curve *c, void *bytes)
{
    if (bytes != NULL)
        c->memory->release(c->memory->ctx, bytes);
}

static void release_all(stg_sim_curve *c)
{
    release(c, c->steps);
    release(c, c->squares);
    release(c, c->now);
    c->steps = c->squares = NULL;
    c->now = NULL;
}

void stg_sim_curve_close(stg_sim_curve *c)
{
    release_all(c);
    stg_sim_curve_init(c, c->memory);
}

size_t stg_sim_curve_size(void)
{
    return stg_sim_tally_places(BITS) *
           (2 * sizeof(uint64_t) + sizeof(uint32_t));
}

static void *make_array(const stg_sim_curve *c, size_t size)
{
    size_t all = size * stg_sim_tally_places(BITS);
    void *bytes = c->memory->allocate(c->memory->ctx, all);

    if (bytes != NULL)
        memset(bytes, 0, all);
    return bytes;
}

static bool make(stg_sim_curve *c)
{
    if (c->steps != NULL)
        return true;
    c->steps = make_array(c, sizeof *c->steps);
    c->squares = make_array(c, sizeof *c->squares);
    c->now = make_array(c, sizeof *c->now);
    if (c->steps != NULL && c->squares != NULL && c->now != NULL)
        return true;
    release_all(c);
    return false;
}

/* Counts in the run under way; finish() or drop() ends it. first and after
 * bound the places that it has used. */
bool stg_sim_curve_add(stg_sim_curve *c, stg_ns at)
{
    size_t place = stg_sim_tally_place(BITS, at);

    if (!make(c))
        return false;
    c->now[place]++;
    if (c->first == c->after) {
        c->first = place;
        c->after = place + 1;
    }
    c->first = place < c->first ? place : c->first;
    c->after = place >= c->after ? place + 1 : c->after;
    return true;
}

void stg_sim_curve_finish(stg_sim_curve *c)
{
    uint64_t before = 0;

    for (size_t i = c->first; i < c->after; i++) {
        uint64_t so_far = before + c->now[i];

        c->steps[i] += c->now[i];
        c->squares[i] += so_far * so_far - before * before;
        c->now[i] = 0;
        before = so_far;
    }
    c->first = c->after = 0;
    c->runs++;
}

void stg_sim_curve_drop(stg_sim_curve *c)
{
    for (size_t i = c->first; i < c->after; i++)
        c->now[i] = 0;
    c->first = c->after = 0;
}

bool stg_sim_curve_merge(stg_sim_curve *c, const stg_sim_curve *other)
{
    if (other->steps != NULL && !make(c))
        return false;
    c->runs += other->runs;
    if (other->steps == NULL)
        return true;
    for (size_t i = 0; i < stg_sim_tally_places(BITS); i++) {
        c->steps[i] += other->steps[i];
        c->squares[i] += other->squares[i];
    }
    return true;
}

static stg_estimate estimate(double runs, uint64_t sum, uint64_t squares)
{
    double mean = (double)sum / runs;
    double spread = (double)squares - mean * (double)sum;
    stg_estimate e = {.mean = mean};

    if (runs > 1 && spread > 0)
        e.se = stg_estimate_root(spread / (runs - 1) / runs);
    return e;
}

size_t stg_sim_curve_read(const stg_sim_curve *c, stg_sim_curve_point *points)
{
    size_t count = 0, places = stg_sim_tally_places(BITS);
    uint64_t sum = 0, squares = 0;

    for (size_t i = 0; c->steps != NULL && c->runs > 0 && i < places; i++) {
        if (c->steps[i] == 0)
            continue;
        sum += c->steps[i];
        squares += c->squares[i];
        if (points != NULL)
            points[count] = (stg_sim_curve_point){
                .at = stg_sim_tally_value(BITS, i),
                .count = estimate((double)c->runs, sum, squares)};
        count++;
    }
    return count;
}
