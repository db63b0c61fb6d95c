#include "sim/statistics.h"

#include <string.h>

/* Means with their errors, histograms of durations, and the highest rate of
 * events. Values are added in the order in which they come, by + - * / alone,
 * so that a figure is the same bytes on every machine. */

/* -- an estimate ----------------------------------------------------------- */

/* The first guess is never below the root, so that steps only fall. */
double stg_estimate_root(double x)
{
    double root = x > 1 ? x : 1, next;

    if (!(x > 0))
        return 0;
    // Newton's steps fall from above until they cannot.
    while ((next = (root + x / root) / 2) < root)
        root = next;
    return root;
}

stg_estimate stg_estimate_make(const double *values, size_t count)
{
    double n = (double)count, sum = 0, spread = 0;
    stg_estimate e = {0};

    if (count == 0)
        return e;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    e.mean = sum / n;
    for (size_t i = 0; i < count; i++)
        spread += (values[i] - e.mean) * (values[i] - e.mean);
    if (count > 1)
        e.se = stg_estimate_root(spread / (n - 1) / n);
    return e;
}

bool stg_estimate_is_apart(stg_estimate a, stg_estimate b)
{
    double apart = a.mean - b.mean;

    return apart * apart > 4 * (a.se * a.se + b.se * b.se);
}

/* -- a histogram ----------------------------------------------------------- */

enum { LEAST = 10 };  // 2^10 ns
enum { EIGHTHS = 3 }; // bits of a bucket within its octave

/* The octave's number is the highest bit, the next three are the bucket's. */
static unsigned find_bucket(stg_ns ns)
{
    unsigned octave, bucket;

    if (ns < (stg_ns)1 << LEAST)
        return 0;
    octave = 63 - (unsigned)__builtin_clzll(ns);
    bucket = (unsigned)(ns >> (octave - EIGHTHS)) & 7;
    bucket += (octave - LEAST) << EIGHTHS;
    return bucket < STG_SIM_HISTOGRAM_BUCKETS ? bucket
                                              : STG_SIM_HISTOGRAM_BUCKETS - 1;
}

/* Where a bucket begins; that of the first is 0. */
static stg_ns find_start(unsigned bucket)
{
    if (bucket == 0)
        return 0;
    return (stg_ns)(8 + (bucket & 7)) << (LEAST - EIGHTHS + (bucket >> 3));
}

void stg_sim_histogram_add(stg_sim_histogram *h, stg_ns ns)
{
    uint32_t *n = &h->buckets[find_bucket(ns)];

    h->count++;
    if (*n < UINT32_MAX)
        ++*n;
}

void stg_sim_histogram_merge(stg_sim_histogram *h,
                             const stg_sim_histogram *other)
{
    h->count += other->count;
    for (unsigned i = 0; i < STG_SIM_HISTOGRAM_BUCKETS; i++)
        h->buckets[i] = h->buckets[i] > UINT32_MAX - other->buckets[i]
                            ? UINT32_MAX
                            : h->buckets[i] + other->buckets[i];
}

/* A full bucket (2^32 - 1) makes their sum less than count; then the highest
 * shares fall into no bucket, and 0 is returned. */
stg_ns stg_sim_histogram_at(const stg_sim_histogram *h, uint32_t share)
{
    uint64_t needed = (h->count * share + 999) / 1000, below = 0;

    if (needed == 0)
        needed = 1;
    for (unsigned i = 0; i < STG_SIM_HISTOGRAM_BUCKETS; i++) {
        uint32_t n = h->buckets[i];

        if (n > 0 && below + n >= needed) {
            stg_ns from = find_start(i), width = find_start(i + 1) - from;

            return from +
                   (stg_ns)((double)width * ((double)(needed - below) / n));
        }
        below += n;
    }
    return 0;
}

/* -- the highest rate ------------------------------------------------------ */

#define NO_SLICE UINT64_MAX /* no time is in it */

void stg_sim_max_rate_init(stg_sim_max_rate *p, stg_ns width,
                           const stg_memory *memory)
{
    stg_ns half = (stg_ns)1 << (STG_MAX_RATE_SLICE_BITS - 1);

    *p = (stg_sim_max_rate){
        .width = (uint32_t)((width + half) >> STG_MAX_RATE_SLICE_BITS),
        .last = NO_SLICE,
        .memory = memory,
    };
}

static void close_block(const stg_sim_max_rate *p, stg_max_rate_block *b)
{
    if (b->slices != NULL)
        p->memory->release(p->memory->ctx, b->slices);
    *b = (stg_max_rate_block){0};
}

void stg_sim_max_rate_close(stg_sim_max_rate *p)
{
    close_block(p, &p->before);
    close_block(p, &p->now);
    stg_sim_max_rate_clear(p);
}

static void begin_block(stg_max_rate_block *b, uint64_t begin)
{
    b->begin = begin;
    b->count = 0;
    b->used = 0;
}

void stg_sim_max_rate_clear(stg_sim_max_rate *p)
{
    begin_block(&p->before, 0);
    begin_block(&p->now, 0);
    p->most = 0;
    p->last = NO_SLICE;
}

static bool grow(const stg_sim_max_rate *p, stg_max_rate_block *b)
{
    uint32_t room = b->room == 0 ? 64 : 2 * b->room;
    stg_max_rate_slice *slices;

    if (room > p->width)
        room = p->width;
    slices = p->memory->allocate(p->memory->ctx, room * sizeof *slices);
    if (slices == NULL)
        return false;
    if (b->slices != NULL) {
        memcpy(slices, b->slices, b->used * sizeof *slices);
        p->memory->release(p->memory->ctx, b->slices);
    }
    b->slices = slices;
    b->room = room;
    return true;
}

/* The windows that end in a slice of this block and begin in the one before:
 * the latter's slices leave, one by one, as the former's come. */
static uint64_t find_most(const stg_sim_max_rate *p)
{
    const stg_max_rate_block *before = &p->before, *now = &p->now;
    uint64_t count = before->count, most = 0;
    uint32_t left = 0;

    for (uint32_t i = 0; i < now->used; i++) {
        // Both blocks are as long as the window, so the same number a block
        // ago is where it begins.
        while (left < before->used &&
               before->slices[left].number <= now->slices[i].number)
            count -= before->slices[left++].count;
        count += now->slices[i].count;
        if (count > most)
            most = count;
    }
    return most;
}

uint64_t stg_sim_max_rate_most(stg_sim_max_rate *p)
{
    if (p->before.count + p->now.count > p->most) {
        uint64_t most = find_most(p);

        if (most > p->most)
            p->most = most;
    }
    return p->most;
}

/* The block is over: the next one has this slice. */
static void turn(stg_sim_max_rate *p, uint64_t slice)
{
    uint64_t begin = slice - slice % p->width;
    stg_max_rate_block old = p->before;

    (void)stg_sim_max_rate_most(p);
    p->before = p->now;
    p->now = old;
    if (p->before.begin + p->width != begin)
        begin_block(&p->before, 0);
    begin_block(&p->now, begin);
}

bool stg_sim_max_rate_make_room(stg_sim_max_rate *p, uint64_t slice)
{
    if (slice - p->now.begin >= p->width)
        turn(p, slice);
    return p->now.used < p->now.room || grow(p, &p->now);
}
