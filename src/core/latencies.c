/* Latencies as counters of a quarter of an octave each, four in an atomic word, from which
 * the time of a hedge is read. Halving all of them at 1000 keeps their shares and lets
 * old ones fade. */
#include <stagger/hedge.h>

#include "core/word.h"

/* Counters of 16 bits, four in a word. A quarter of an octave each, in units of
 * 16 us: the first eight are 0 to 7 units, then 8-9, 10-11, 12-13, 14-15,
 * 16-19 ... */
enum { UNIT_BITS = 14, COUNTER_BITS = 16, IN_WORD = 4 };
enum { COUNTERS = STG_LATENCY_WORDS * IN_WORD, OCTAVES = COUNTERS / 4 };

/* At MOST the counters are halved. That keeps their shares, and forgets. */
enum { LEAST = 100, MOST = 1000 };
static const uint64_t halved_once = UINT64_C(1) << 32; /* in count */

/* The last counter takes all latencies that are longer. */
static unsigned counter_of(stg_ns took)
{
    uint64_t units = took >> UNIT_BITS;
    unsigned octave = 0;

    while (octave + 2 < OCTAVES && units >= 8) {
        units >>= 1;
        octave++;
    }
    return octave * 4 + (unsigned)stg_ns_min(units, 7);
}

/* The first latency that is too long for the counter. */
static stg_ns end_of(unsigned counter)
{
    unsigned octave = counter < 4 ? 0 : counter / 4 - 1;

    return (stg_ns)(counter - octave * 4 + 1) << (octave + UNIT_BITS);
}

static bool count_one(uint64_t seen, uint64_t *next, void *is_full)
{
    *next = seen + 1;
    *(bool *)is_full = (uint32_t)*next >= MOST;
    if (*(bool *)is_full)
        *next = (*next ^ halved_once) - MOST / 2;
    return true;
}

static bool add_one(uint64_t seen, uint64_t *next, void *one)
{
    *next = seen + *(uint64_t *)one;
    return true;
}

/* Two of the four are rounded up, by turns: rounding neither loses the few in
 * a tail nor keeps them for ever. */
static bool halve(uint64_t seen, uint64_t *next, void *is_odd_turn)
{
    const uint64_t ones = UINT64_C(0x0001000000010000);
    uint64_t up = *(bool *)is_odd_turn ? ones : ones >> COUNTER_BITS;

    *next = (seen >> 1 & UINT64_C(0x7fff7fff7fff7fff)) + (seen & up);
    return *next != seen;
}

void stg_latencies_add(stg_latencies *l, stg_ns took)
{
    unsigned counter = counter_of(took);
    uint64_t one = UINT64_C(1) << counter % IN_WORD * COUNTER_BITS;
    bool is_full, is_odd_turn;

    if (l == NULL)
        return;
    // Two words, one after the other: a reader may see one of them alone.
    stg_word_change(&l->counters[counter / IN_WORD], add_one, &one);
    stg_word_change(&l->count, count_one, &is_full);
    if (!is_full)
        return;
    is_odd_turn = (stg_word_read(&l->count) & halved_once) != 0;
    for (unsigned i = 0; i < STG_LATENCY_WORDS; i++)
        stg_word_change(&l->counters[i], halve, &is_odd_turn);
}

/* Returns the end of the counter that the percentile falls into: too long by
 * the width of a counter at most, never too short. */
stg_ns stg_latencies_percentile(const stg_latencies *l, uint32_t percentile)
{
    uint64_t count = l == NULL ? 0 : (uint32_t)stg_word_read(&l->count);
    uint64_t above = 0, word;
    unsigned counter = COUNTERS;

    if (count < LEAST || percentile == 0 || percentile > 100)
        return STG_NEVER;
    // From the slowest down, for of those there are few.
    do {
        counter--;
        word = stg_word_read(&l->counters[counter / IN_WORD]);
        above += word >> counter % IN_WORD * COUNTER_BITS & 0xffff;
    } while (counter > 0 && 100 * above <= (100 - percentile) * count);
    return end_of(counter);
}
