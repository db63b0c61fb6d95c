/* The window of a breaker that opens at a share of failures or of slow calls:
 * a ring of slices, a word each; and rounds of several probes.
 *
 * A slice carries its own number, so that no thread has to clear the ring: the
 * first call that finds an old number begins the slice anew. */
#include "core/counts.h"

#include "core/word.h"

/* -- the window */

/* A slice of the window: its number, calls, and those of them that count, as
 * failures or as slow ones. The number is cut to 28 bits, which for a window of
 * 10 s is eight years. */
enum { CALLS_BITS = 18, SLICE_BITS = 28 };
static const uint64_t calls_max = (1 << CALLS_BITS) - 1;
static const uint64_t slice_mask = (UINT64_C(1) << SLICE_BITS) - 1;

typedef struct slice_call {
    uint64_t slice;
    uint64_t counts; /* 0 or 1 */
} slice_call;

static uint64_t pack_slice(uint64_t slice, uint64_t calls, uint64_t counted)
{
    return slice << 2 * CALLS_BITS | calls << CALLS_BITS | counted;
}

static uint64_t calls_of(uint64_t word)
{
    return word >> CALLS_BITS & calls_max;
}

static uint64_t counted_of(uint64_t word)
{
    return word & calls_max;
}

/* How many slices b is behind a, in the ring of 28 bits. */
static uint64_t slices_behind(uint64_t a, uint64_t b)
{
    return (a - b) & slice_mask;
}

static bool count_call(uint64_t seen, uint64_t *next, void *arg)
{
    const slice_call *c = arg;
    uint64_t slice = seen >> 2 * CALLS_BITS;
    uint64_t calls = calls_of(seen), counted = counted_of(seen);

    // A newer slice, by a window at most: another thread's clock is ahead. Any
    // other is over, or was never begun.
    if (slice != c->slice &&
        (calls == 0 || slices_behind(slice, c->slice) > STG_BREAKER_SLICES)) {
        slice = c->slice;
        calls = counted = 0;
    }
    if (calls == calls_max) { // keep the share, and half of the weight
        calls /= 2;
        counted /= 2;
    }
    *next = pack_slice(slice, calls + 1, counted + c->counts);
    return true;
}

static uint64_t slice_of(const stg_breaker *b, stg_ns at)
{
    return at / (b->options.window / STG_BREAKER_SLICES);
}

static void count(stg_word *slices, uint64_t slice, bool counts)
{
    slice_call c = {.slice = slice & slice_mask, .counts = counts};

    stg_word_change(&slices[slice % STG_BREAKER_SLICES], count_call, &c);
}

/* How many slices, from the current one on, are later than the closing. */
static uint64_t find_reach(const stg_breaker *b, uint64_t current,
                           stg_ns closed_at)
{
    if (closed_at == 0)
        return STG_BREAKER_SLICES;
    return stg_ns_min(STG_BREAKER_SLICES,
                      stg_ns_sub(current, slice_of(b, closed_at)));
}

/* Whether so many percent of the calls of these slices count. Never before the
 * window has `calls` calls: a share of few says nothing. */
static bool is_reached(const stg_breaker *b, const stg_word *slices,
                       uint32_t percent, uint64_t current, stg_ns closed_at)
{
    uint64_t reach = find_reach(b, current, closed_at), calls = 0, counted = 0;

    for (int i = 0; i < STG_BREAKER_SLICES; i++) {
        uint64_t word = stg_word_read(&slices[i]);

        if (slices_behind(current, word >> 2 * CALLS_BITS) < reach) {
            calls += calls_of(word);
            counted += counted_of(word);
        }
    }
    return calls >= b->options.calls && 100 * counted >= percent * calls;
}

/* Both rings count every call, so that each share has its own denominator. */
bool stg_breaker_window_add(stg_breaker *b, stg_breaker_ending call,
                            stg_ns closed_at, stg_ns now)
{
    const stg_breaker_options *o = &b->options;
    uint64_t slice = slice_of(b, now);

    count(b->slices, slice, call.is_failure);
    if (o->slow_percent != 0)
        count(b->slow_slices, slice, call.is_slow);
    return (call.is_failure &&
            is_reached(b, b->slices, o->percent, slice, closed_at)) ||
           (call.is_slow &&
            is_reached(b, b->slow_slices, o->slow_percent, slice, closed_at));
}

/* Numbers of slices are times divided by the window's length, so slices are
 * kept only for a window of the same length; those of slow calls only for the
 * same limit, too. */
void stg_breaker_window_keep(stg_breaker *b, const stg_breaker *old)
{
    bool is_slow_same = b->options.slow_after == old->options.slow_after;

    if (b->options.window != old->options.window)
        return;
    for (int i = 0; i < STG_BREAKER_SLICES; i++) {
        b->slices[i] = stg_word_read(&old->slices[i]);
        if (is_slow_same)
            b->slow_slices[i] = stg_word_read(&old->slow_slices[i]);
    }
}

/* -- a round of probes */

/* The count of slow probes takes its bits from the time, whose unit grows by as
 * many, so that every instant fits. */
enum { COUNT_BITS = 5, COUNT_MAX = STG_PROBES_MAX, UNIT_BITS = 23 };

static unsigned slow_bits(const stg_breaker_options *o)
{
    return o->slow_percent == 0 ? 0 : COUNT_BITS;
}

static unsigned unit_bits(const stg_breaker_options *o)
{
    return UNIT_BITS + slow_bits(o);
}

bool stg_breaker_round_is_alike(const stg_breaker_options *o,
                                const stg_breaker_options *other)
{
    if (o->probes == 0 || other->probes == 0)
        return o->probes == other->probes;
    return slow_bits(o) == slow_bits(other);
}

uint64_t stg_breaker_round_pack(const stg_breaker_options *o,
                                stg_breaker_round r)
{
    uint64_t upper = r.until << slow_bits(o) | r.slow;

    return upper << 3 * COUNT_BITS | (uint64_t)r.begun << 2 * COUNT_BITS |
           (uint64_t)r.good << COUNT_BITS | r.bad;
}

stg_breaker_round stg_breaker_round_read(const stg_breaker_options *o,
                                         uint64_t value)
{
    uint64_t upper = value >> 3 * COUNT_BITS;

    return (stg_breaker_round){
        .until = upper >> slow_bits(o),
        .begun = value >> 2 * COUNT_BITS & COUNT_MAX,
        .good = value >> COUNT_BITS & COUNT_MAX,
        .bad = value & COUNT_MAX,
        .slow = (unsigned)upper & ((1U << slow_bits(o)) - 1),
    };
}

stg_ns stg_breaker_round_until(const stg_breaker_options *o,
                               stg_breaker_round r)
{
    return r.until << unit_bits(o);
}

/* The last unit stands for all that is later. */
uint64_t stg_breaker_round_unit(const stg_breaker_options *o, stg_ns at)
{
    return stg_ns_min(((at - 1) >> unit_bits(o)) + 1,
                      UINT64_MAX >> unit_bits(o));
}

void stg_breaker_round_count(stg_breaker_round *r, stg_breaker_ending probe)
{
    r->bad += probe.is_failure;
    r->good += !probe.is_failure;
    r->slow += probe.is_slow;
}

/* Tells whether `slow` probes are slow_percent of a round's probes, or more. In
 * a round of one probe, a slow one is 100 %. */
static bool is_slow_share(const stg_breaker_options *o, uint64_t slow)
{
    return slow > 0 && o->slow_percent > 0 &&
           100 * slow >= (uint64_t)o->slow_percent * o->probes;
}

/* A round is bad as soon as too few probes are left for it to be good: the
 * rest is not waited for. */
bool stg_breaker_round_is_bad(const stg_breaker_options *o, stg_breaker_round r)
{
    return r.bad + o->probes_good > o->probes || is_slow_share(o, r.slow);
}

/* A round is good only when it would not be too slow if all probes that are
 * still under way were slow. */
bool stg_breaker_round_is_good(const stg_breaker_options *o,
                               stg_breaker_round r)
{
    uint64_t left = stg_ns_sub(o->probes, r.good + r.bad);

    return r.good >= o->probes_good && !is_slow_share(o, r.slow + left);
}
