#include <stagger/breaker.h>

#include "core/options.h"
#include "core/word.h"
#include "core/writer.h"

/* The state word: phase, doublings, and a value. Closed, the value is the
 * failures in a row, or for a share the unit in which it closed (0: never
 * opened). Open, or with a probe under way, it is the unit from which the next
 * probe may start. With several probes under way that is in rough units, above
 * the counts of a round. */
typedef enum phase { CLOSED, OPEN, PROBING } phase;

enum { VALUE_BITS = 56, DOUBLINGS_MAX = 63, UNIT_BITS = 10 };
enum { FAILURES_MAX = 1000000 };
static const uint64_t value_mask = (UINT64_C(1) << VALUE_BITS) - 1;

static uint64_t pack(phase p, unsigned doublings, uint64_t value)
{
    return (uint64_t)p << 62 | (uint64_t)doublings << VALUE_BITS | value;
}

static phase phase_of(uint64_t word)
{
    return (phase)(word >> 62);
}

static unsigned doublings_of(uint64_t word)
{
    return (unsigned)(word >> VALUE_BITS) & DOUBLINGS_MAX;
}

static uint64_t value_of(uint64_t word)
{
    return word & value_mask;
}

/* The first unit that starts at `at` or later. */
static uint64_t unit_from(stg_ns at)
{
    return (at >> UNIT_BITS) + ((at & ((1 << UNIT_BITS) - 1)) != 0);
}

/* Several probes: as many as have begun, and what came of them. */
enum { COUNT_BITS = 5, COUNT_MAX = STG_PROBES_MAX, ROUGH_BITS = 23 };
static const uint64_t rough_max = (UINT64_C(1) << (64 - ROUGH_BITS)) - 1;

typedef struct probe_round {
    uint64_t until; /* rough unit from which the next round may start */
    unsigned begun, good, bad;
} probe_round;

static bool is_round(const stg_breaker_options *o, uint64_t word)
{
    return o->probes != 0 && phase_of(word) == PROBING;
}

static uint64_t pack_round(unsigned doublings, probe_round r)
{
    uint64_t counts = (uint64_t)r.begun << 2 * COUNT_BITS |
                      (uint64_t)r.good << COUNT_BITS | r.bad;

    return pack(PROBING, doublings, r.until << 3 * COUNT_BITS | counts);
}

static probe_round round_of(uint64_t word)
{
    return (probe_round){
        .until = value_of(word) >> 3 * COUNT_BITS,
        .begun = word >> 2 * COUNT_BITS & COUNT_MAX,
        .good = word >> COUNT_BITS & COUNT_MAX,
        .bad = word & COUNT_MAX,
    };
}

static stg_status check_probes(const stg_breaker_options *o, stg_error *err)
{
    if (o->probes == 1 || o->probes > COUNT_MAX)
        return stg_refuse_number(err, "breaker-probes", o->probes,
                                 "2 to 31, or 0 for one");
    if (o->probes_good > o->probes || (o->probes_good == 0) != (o->probes == 0))
        return stg_refuse_number(err, "breaker-probes good", o->probes_good,
                                 "1 to the probes, or 0 for one");
    return STG_OK;
}

static stg_status check_open(const stg_breaker_options *o, stg_error *err)
{
    if (o->connects > FAILURES_MAX)
        return stg_refuse_number(err, "breaker-connect", o->connects,
                                 "none, or 1 to 1000000");
    if (o->open < STG_MS || o->open > STG_BACKOFF_MAX)
        return stg_refuse_duration(err, "breaker open", o->open, "1ms to 365d");
    if (o->open_max < o->open || o->open_max > STG_BACKOFF_MAX)
        return stg_refuse_duration(err, "breaker open_max", o->open_max,
                                   "its first opening to 365d");
    return check_probes(o, err);
}

static stg_status check_row(const stg_breaker_options *o, stg_error *err)
{
    if (o->failures < 1 || o->failures > FAILURES_MAX)
        return stg_refuse_number(err, "breaker failures", o->failures,
                                 "1 to 1000000");
    if (o->percent != 0 || o->calls != 0 || o->window != 0)
        return stg_refuse(err,
                          "breaker counts failures in a row: percent, "
                          "calls and window are wanted 0");
    return check_open(o, err);
}

static stg_status check_share(const stg_breaker_options *o, stg_error *err)
{
    if (o->percent < 1 || o->percent > 100)
        return stg_refuse_number(err, "breaker percent", o->percent,
                                 "1 to 100");
    if (o->calls < 1 || o->calls > 10000)
        return stg_refuse_number(err, "breaker calls", o->calls, "1 to 10000");
    if (o->window < 10 * STG_MS || o->window > STG_DAY)
        return stg_refuse_duration(err, "breaker window", o->window,
                                   "10ms to 1d");
    if (o->failures != 0)
        return stg_refuse_number(err, "breaker failures", o->failures,
                                 "0 where a share counts");
    return check_open(o, err);
}

/* But for connects, which has an error of its own. */
static bool is_all_zero(const stg_breaker_options *o)
{
    return o->failures == 0 && o->percent == 0 && o->calls == 0 &&
           o->window == 0 && o->open == 0 && o->open_max == 0 &&
           o->probes_good == 0;
}

stg_status stg_breaker_check(const stg_breaker_options *o, stg_error *err)
{
    if (o == NULL)
        return stg_refuse(err, "breaker is NULL");
    switch (o->rule) {
    case STG_BREAKER_NONE:
        if (o->connects != 0)
            return stg_refuse_number(err, "breaker-connect", o->connects,
                                     "none where breaker=none");
        if (o->probes != 0)
            return stg_refuse_number(err, "breaker-probes", o->probes,
                                     "1 where breaker=none");
        return is_all_zero(o)
                   ? STG_OK
                   : stg_refuse(err,
                                "breaker has no rule: the rest is wanted "
                                "0");
    case STG_BREAKER_ROW:
        return check_row(o, err);
    case STG_BREAKER_SHARE:
        return check_share(o, err);
    }
    return stg_refuse_number(err, "breaker rule", (unsigned)o->rule,
                             "one of stg_breaker_rule");
}

stg_status stg_breaker_init(stg_breaker *b, const stg_breaker_options *o)
{
    if (b == NULL || stg_breaker_check(o, NULL) != STG_OK)
        return STG_INVALID;
    *b = (stg_breaker){.options = *o};
    return STG_OK;
}

static stg_breaker_verdict judge_rpc(const stg_outcome *o)
{
    enum { GRPC_CANCELLED = 1, GRPC_UNAVAILABLE = 14 };

    if (o->fault == STG_FAULT_TRANSIENT)
        return STG_BREAKER_FAILURE;
    if (o->fault != STG_FAULT_GRPC)
        return STG_BREAKER_SUCCESS;
    if (o->code == GRPC_UNAVAILABLE)
        return STG_BREAKER_FAILURE;
    return o->code == GRPC_CANCELLED ? STG_BREAKER_NEITHER
                                     : STG_BREAKER_SUCCESS;
}

stg_breaker_verdict stg_breaker_judge(const stg_outcome *o)
{
    if (o == NULL)
        return STG_BREAKER_NEITHER;
    switch (stg_fault_about(o->fault)->category) {
    case STG_CATEGORY_CONNECT:
        return STG_BREAKER_UNREACHED;
    case STG_CATEGORY_SERVER:
        return STG_BREAKER_FAILURE;
    case STG_CATEGORY_OVERLOAD:
        return STG_BREAKER_BUSY;
    case STG_CATEGORY_OWN:
    case STG_CATEGORY_LOCAL:
    case STG_CATEGORY_OTHER:
        return STG_BREAKER_NEITHER;
    case STG_CATEGORY_RPC:
        return judge_rpc(o);
    case STG_CATEGORY_DATABASE:
        return o->fault == STG_FAULT_CONNECTION_LOST ||
                       o->fault == STG_FAULT_OUTCOME_UNKNOWN ||
                       o->fault == STG_FAULT_TOO_MANY_CONNECTIONS
                   ? STG_BREAKER_FAILURE
                   : STG_BREAKER_SUCCESS;
    case STG_CATEGORY_NONE:
    case STG_CATEGORY_REQUEST:
        return STG_BREAKER_SUCCESS;
    }
    return STG_BREAKER_NEITHER; // gcov-excl: no such category
}

/* What a change of state needs to know. */
typedef struct breaker_call {
    const stg_breaker_options *options;
    stg_ns now;
    stg_passage passage; /* out */
    stg_ns reopen_at;    /* out */
} breaker_call;

static stg_ns open_for(const stg_breaker_options *o, unsigned doublings)
{
    stg_ns factor = (stg_ns)1 << doublings;

    return stg_ns_min(stg_ns_mul(o->open, factor), o->open_max);
}

static uint64_t opened(const breaker_call *c, phase p, unsigned doublings)
{
    stg_ns until_at = stg_ns_add(c->now, open_for(c->options, doublings));

    return pack(p, doublings, unit_from(until_at));
}

/* One more of a round that has begun, or of the next one. */
static uint64_t probe_in_round(const breaker_call *c, unsigned doublings,
                               probe_round r)
{
    stg_ns until_at = stg_ns_add(c->now, open_for(c->options, doublings));

    r.begun++;
    r.until = stg_ns_min(((until_at - 1) >> ROUGH_BITS) + 1, rough_max);
    return pack_round(doublings, r);
}

static bool enter_round(uint64_t seen, uint64_t *next, breaker_call *c)
{
    probe_round r = round_of(seen);

    if (c->now >> ROUGH_BITS >= r.until) {
        r = (probe_round){.begun = 0};
    } else if (r.begun >= c->options->probes) {
        c->passage = STG_PASSAGE_CLOSED;
        c->reopen_at = r.until << ROUGH_BITS;
        return false;
    }
    c->passage = STG_PASSAGE_PROBE;
    *next = probe_in_round(c, doublings_of(seen), r);
    return true;
}

static bool enter(uint64_t seen, uint64_t *next, void *arg)
{
    breaker_call *c = arg;

    c->passage = STG_PASSAGE_OPEN;
    if (phase_of(seen) == CLOSED) // gcov-excl: another thread has closed it
        return false;             // gcov-excl: another thread has closed it
    if (is_round(c->options, seen))
        return enter_round(seen, next, c);
    if (c->now >> UNIT_BITS < value_of(seen)) {
        c->passage = STG_PASSAGE_CLOSED;
        c->reopen_at = value_of(seen) << UNIT_BITS;
        return false;
    }
    c->passage = STG_PASSAGE_PROBE;
    *next = c->options->probes == 0 ? opened(c, PROBING, doublings_of(seen))
                                    : probe_in_round(c, doublings_of(seen),
                                                     (probe_round){.begun = 0});
    return true;
}

/* Not inlined: a closed breaker has no registers to save. */
__attribute__((noinline)) static stg_passage
enter_open(stg_breaker *b, stg_ns now, stg_ns *reopen_at)
{
    breaker_call c = {.options = &b->options, .now = now};

    stg_word_change(&b->state, enter, &c);
    if (c.passage == STG_PASSAGE_CLOSED && reopen_at != NULL)
        *reopen_at = c.reopen_at;
    return c.passage;
}

stg_passage stg_breaker_enter(stg_breaker *b, stg_ns now, stg_ns *reopen_at)
{
    if (b == NULL || phase_of(stg_word_read(&b->state)) == CLOSED)
        return STG_PASSAGE_OPEN;
    return enter_open(b, now, reopen_at);
}

static bool close_after_probe(uint64_t seen, uint64_t *next, void *arg)
{
    const breaker_call *c = arg;
    bool is_share = c->options->rule == STG_BREAKER_SHARE;
    probe_round r = round_of(seen);

    if (is_round(c->options, seen) && ++r.good < c->options->probes_good)
        *next = pack_round(doublings_of(seen), r);
    else
        *next = pack(CLOSED, 0, is_share ? unit_from(c->now) : 0);
    // Where one is not enough, a late one is none when it is open again.
    return phase_of(seen) == PROBING ||
           (phase_of(seen) == OPEN && c->options->probes_good <= 1);
}

static bool reopen_after_probe(uint64_t seen, uint64_t *next, void *arg)
{
    const breaker_call *c = arg;
    unsigned doublings = doublings_of(seen);
    probe_round r = round_of(seen);

    if (is_round(c->options, seen) &&
        ++r.bad + c->options->probes_good <= c->options->probes) {
        *next = pack_round(doublings, r);
        return true;
    }
    if (doublings < DOUBLINGS_MAX)
        doublings++;
    *next = opened(c, OPEN, doublings);
    return phase_of(seen) == PROBING;
}

static bool end_row(uint64_t seen, uint64_t *next, void *arg)
{
    (void)arg;
    *next = 0;
    return seen != 0 && phase_of(seen) == CLOSED;
}

static bool lengthen_row(uint64_t seen, uint64_t *next, void *arg)
{
    const breaker_call *c = arg;

    if (value_of(seen) + 1 >= c->options->failures)
        *next = opened(c, OPEN, 0);
    else
        *next = seen + 1;
    return phase_of(seen) == CLOSED;
}

/* A slice of the window: its number, calls, failures. The number is cut to 28
 * bits, which for a window of 10 s is eight years. */
enum { CALLS_BITS = 18, SLICE_BITS = 28 };
static const uint64_t calls_max = (1 << CALLS_BITS) - 1;
static const uint64_t slice_mask = (UINT64_C(1) << SLICE_BITS) - 1;

typedef struct slice_call {
    uint64_t slice;
    uint64_t failures; /* 0 or 1 */
} slice_call;

static uint64_t pack_slice(uint64_t slice, uint64_t calls, uint64_t failures)
{
    return slice << 2 * CALLS_BITS | calls << CALLS_BITS | failures;
}

static uint64_t calls_of(uint64_t word)
{
    return word >> CALLS_BITS & calls_max;
}

static uint64_t failures_of(uint64_t word)
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
    uint64_t calls = calls_of(seen), failures = failures_of(seen);

    // An older slice is over. A newer one: another thread's clock is ahead.
    if (slice != c->slice && slices_behind(c->slice, slice) <= slice_mask / 2) {
        slice = c->slice;
        calls = failures = 0;
    }
    if (calls == calls_max) { // keep the share, and half of the weight
        calls /= 2;
        failures /= 2;
    }
    *next = pack_slice(slice, calls + 1, failures + c->failures);
    return true;
}

static uint64_t slice_of(const stg_breaker *b, stg_ns at)
{
    return at / (b->options.window / STG_BREAKER_SLICES);
}

/* Whether the window, or what of it lies behind the last closing, is bad. */
static bool is_share_reached(const stg_breaker *b, stg_ns now,
                             uint64_t closed_unit)
{
    const stg_breaker_options *o = &b->options;
    uint64_t current = slice_of(b, now);
    uint64_t reach = STG_BREAKER_SLICES, calls = 0, failures = 0;

    if (closed_unit != 0) {
        uint64_t closed = slice_of(b, closed_unit << UNIT_BITS);

        reach = stg_ns_min(reach, stg_ns_sub(current, closed));
    }
    for (int i = 0; i < STG_BREAKER_SLICES; i++) {
        uint64_t word = stg_word_read(&b->slices[i]);

        if (slices_behind(current, word >> 2 * CALLS_BITS) < reach) {
            calls += calls_of(word);
            failures += failures_of(word);
        }
    }
    return calls >= o->calls && 100 * failures >= o->percent * calls;
}

typedef struct share_call {
    const breaker_call *call;
    uint64_t seen; /* the closed word under which the share was reached */
} share_call;

static bool open_on_share(uint64_t seen, uint64_t *next, void *arg)
{
    const share_call *s = arg;

    *next = opened(s->call, OPEN, 0);
    return seen == s->seen;
}

static void report_share(stg_breaker *b, bool is_failure, const breaker_call *c)
{
    uint64_t slice = slice_of(b, c->now);
    slice_call count = {.slice = slice & slice_mask, .failures = is_failure};
    share_call s = {.call = c, .seen = stg_word_read(&b->state)};

    if (phase_of(s.seen) != CLOSED)
        return;
    stg_word_change(&b->slices[slice % STG_BREAKER_SLICES], count_call, &count);
    if (count.failures == 1 && is_share_reached(b, c->now, value_of(s.seen)))
        stg_word_change(&b->state, open_on_share, &s);
}

/* The word of connects: the first unit after the last connect (0: there was
 * none), and the connect faults since. */
enum { CONNECTS_BITS = 20, REACH_UNIT_BITS = 20 };
static const uint64_t connects_mask = (UINT64_C(1) << CONNECTS_BITS) - 1;
static const stg_ns quiet_for = 100 * STG_MS;

typedef struct reach_call {
    const stg_breaker_options *options;
    stg_ns now;
    bool is_gone; /* out: as many faults in a row, and for long enough */
} reach_call;

/* A step back of now is not later. */
static bool note_connect(uint64_t seen, uint64_t *next, void *arg)
{
    const reach_call *c = arg;
    uint64_t unit = stg_ns_min((c->now >> REACH_UNIT_BITS) + 1,
                               UINT64_MAX >> CONNECTS_BITS);

    *next = stg_ns_max(unit, seen >> CONNECTS_BITS) << CONNECTS_BITS;
    return *next != seen;
}

static bool count_unreached(uint64_t seen, uint64_t *next, void *arg)
{
    reach_call *c = arg;
    uint64_t connects = seen & connects_mask;
    stg_ns connected_at = seen >> CONNECTS_BITS << REACH_UNIT_BITS;

    if (connects < connects_mask)
        connects++;
    *next = (seen & ~connects_mask) | connects;
    c->is_gone =
        connects >= c->options->connects &&
        (connected_at == 0 || stg_ns_sub(c->now, connected_at) >= quiet_for);
    return *next != seen;
}

/* Whether the remote cannot be connected to any more. */
static bool report_reach(stg_breaker *b, stg_breaker_verdict verdict,
                         stg_ns now)
{
    reach_call c = {.options = &b->options, .now = now};

    if (verdict == STG_BREAKER_UNREACHED)
        stg_word_change(&b->reach, count_unreached, &c);
    else if (verdict != STG_BREAKER_NEITHER)
        stg_word_change(&b->reach, note_connect, &c);
    return c.is_gone;
}

static bool open_unreached(uint64_t seen, uint64_t *next, void *arg)
{
    *next = opened(arg, OPEN, 0);
    return phase_of(seen) == CLOSED;
}

void stg_breaker_report(stg_breaker *b, bool is_probe,
                        stg_breaker_verdict verdict, stg_ns now)
{
    breaker_call c = {.now = now};
    bool is_failure =
        verdict == STG_BREAKER_FAILURE || verdict == STG_BREAKER_UNREACHED;
    bool is_gone;

    if (b == NULL)
        return;
    c.options = &b->options;
    is_gone = b->options.connects != 0 && report_reach(b, verdict, now);
    if (verdict == STG_BREAKER_NEITHER || verdict == STG_BREAKER_BUSY)
        return;
    if (is_probe &&
        stg_word_change(
            &b->state, is_failure ? reopen_after_probe : close_after_probe, &c))
        return;
    if (b->options.rule == STG_BREAKER_ROW)
        stg_word_change(&b->state, is_failure ? lengthen_row : end_row, &c);
    else if (b->options.rule == STG_BREAKER_SHARE)
        report_share(b, is_failure, &c);
    if (is_gone)
        stg_word_change(&b->state, open_unreached, &c);
}

static bool free_place(uint64_t seen, uint64_t *next, void *arg)
{
    const breaker_call *c = arg;
    probe_round r = round_of(seen);

    if (is_round(c->options, seen)) {
        r.begun -= r.begun > 0;
        *next = pack_round(doublings_of(seen), r);
    } else {
        *next = pack(OPEN, doublings_of(seen), c->now >> UNIT_BITS);
    }
    return phase_of(seen) == PROBING && *next != seen;
}

void stg_breaker_abandon(stg_breaker *b, stg_ns now)
{
    breaker_call c = {.now = now};

    if (b == NULL)
        return;
    c.options = &b->options;
    stg_word_change(&b->state, free_place, &c);
}

stg_breaker_state stg_breaker_look(const stg_breaker *b, stg_ns now,
                                   stg_ns *reopen_at)
{
    uint64_t word = b == NULL ? 0 : stg_word_read(&b->state);

    if (phase_of(word) == CLOSED)
        return STG_BREAKER_CLOSED;
    if (phase_of(word) == PROBING || now >> UNIT_BITS >= value_of(word))
        return STG_BREAKER_HALF_OPEN;
    if (reopen_at != NULL)
        *reopen_at = value_of(word) << UNIT_BITS;
    return STG_BREAKER_OPEN;
}

/* Words of one probe and of several differ while probes are under way: then it
 * is open until the next may start. */
static uint64_t keep_probes(const stg_breaker *b, const stg_breaker *old,
                            uint64_t word)
{
    uint64_t until = value_of(word);

    if (phase_of(word) != PROBING ||
        (b->options.probes == 0) == (old->options.probes == 0))
        return word;
    if (old->options.probes != 0)
        until = round_of(word).until << (ROUGH_BITS - UNIT_BITS);
    return pack(OPEN, doublings_of(word), until);
}

void stg_breaker_keep(stg_breaker *b, const stg_breaker *old)
{
    const stg_breaker_options *o = &b->options, *was = &old->options;
    uint64_t word = stg_word_read(&old->state);

    if (o->rule == STG_BREAKER_NONE ||
        (o->rule != was->rule && phase_of(word) == CLOSED))
        return;
    b->state = keep_probes(b, old, word);
    b->reach = stg_word_read(&old->reach);
    if (o->window != was->window)
        return;
    for (int i = 0; i < STG_BREAKER_SLICES; i++)
        b->slices[i] = stg_word_read(&old->slices[i]);
}
