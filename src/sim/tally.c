#include "sim/statistics.h"

#include <string.h>

size_t stg_sim_tally_places(unsigned bits)
{
    return ((size_t)(64 - bits) + 2) << (bits - 1);
}

/* Where value is counted: as it is below 2^bits, else by its power of two and
 * the bits - 1 digits after its first. */
size_t stg_sim_tally_place(unsigned bits, uint64_t value)
{
    unsigned shift;

    if (value >> bits == 0)
        return (size_t)value;
    shift = 64 - bits - (unsigned)__builtin_clzll(value);
    return ((size_t)shift << (bits - 1)) + (size_t)(value >> shift);
}

/* The greatest value that is counted there. */
uint64_t stg_sim_tally_value(unsigned bits, size_t place)
{
    size_t half = (size_t)1 << (bits - 1);
    unsigned shift;

    if (place < 2 * half)
        return place;
    shift = ((unsigned)(place / half) - 1) & 63;
    return ((uint64_t)(place - shift * half) << shift |
            (((uint64_t)1 << shift) - 1));
}

void stg_sim_tally_init(stg_sim_tally *t, unsigned bits,
                        const stg_memory *memory)
{
    *t = (stg_sim_tally){.bits = bits, .memory = memory};
}

void stg_sim_tally_close(stg_sim_tally *t)
{
    if (t->counts != NULL)
        t->memory->release(t->memory->ctx, t->counts);
    stg_sim_tally_init(t, t->bits, t->memory);
}

static bool make_counts(stg_sim_tally *t)
{
    size_t size = stg_sim_tally_places(t->bits) * sizeof *t->counts;

    if (t->counts == NULL)
        t->counts = t->memory->allocate(t->memory->ctx, size);
    else
        return true;
    if (t->counts == NULL)
        return false;
    memset(t->counts, 0, size);
    return true;
}

static void add_sum(stg_sim_tally *t, uint64_t high, uint64_t low)
{
    t->sum_low += low;
    t->sum_high += high + (t->sum_low < low ? 1 : 0);
}

bool stg_sim_tally_add(stg_sim_tally *t, uint64_t value)
{
    if (t->counts == NULL && !make_counts(t))
        return false;
    t->counts[stg_sim_tally_place(t->bits, value)]++;
    if (t->count == 0 || value < t->least)
        t->least = value;
    if (value > t->most)
        t->most = value;
    t->count++;
    add_sum(t, 0, value);
    return true;
}

bool stg_sim_tally_merge(stg_sim_tally *t, const stg_sim_tally *other)
{
    if (other->count == 0)
        return true;
    if (!make_counts(t))
        return false;
    for (size_t i = 0; i < stg_sim_tally_places(t->bits); i++)
        t->counts[i] += other->counts[i];
    if (t->count == 0 || other->least < t->least)
        t->least = other->least;
    if (other->most > t->most)
        t->most = other->most;
    t->count += other->count;
    add_sum(t, other->sum_high, other->sum_low);
    return true;
}

double stg_sim_tally_mean(const stg_sim_tally *t)
{
    if (t->count == 0)
        return 0;
    return ((double)t->sum_high * 0x1p64 + (double)t->sum_low) /
           (double)t->count;
}

/* The greatest value of the place that the share falls into, but no more than
 * came: a share of 1 is exact, others are too high by the width of a place at
 * most. */
uint64_t stg_sim_tally_quantile(const stg_sim_tally *t, double share)
{
    double needed = share * (double)t->count;
    uint64_t passed = 0, value;

    if (t->count == 0)
        return 0;
    for (size_t i = 0; i < stg_sim_tally_places(t->bits); i++) {
        passed += t->counts[i];
        if (passed == 0 || (double)passed < needed)
            continue;
        value = stg_sim_tally_value(t->bits, i);
        if (value < t->least)
            return t->least;
        return value < t->most ? value : t->most;
    }
    return t->most;
}

uint64_t stg_sim_tally_below(const stg_sim_tally *t, uint64_t value)
{
    uint64_t passed = 0;

    if (t->count == 0)
        return 0;
    if (value >= t->most)
        return t->count;
    for (size_t i = 0, last = stg_sim_tally_place(t->bits, value); i <= last;
         i++)
        passed += t->counts[i];
    return passed;
}
