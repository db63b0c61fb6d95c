#include <stagger/breaker.h>

#include "core/counts.h"
#include "core/options.h"
#include "core/word.h"
#include "core/writer.h"

/* A circuit breaker in one atomic word. Each event (enter, report, abandon) is
 * a pure function from the old word to the new one, applied by compare-and-swap
 * (word.h): there is no lock, any thread may call. It may run again with another
 * `seen`, so it writes to *next and to its own call struct only.
 *
 * Failures in a row are counted in the word itself, a share in slices of time
 * (breaker_window.c), failed connects in a second word, `reach`. Instants are
 * rounded up to units of 1024 ns, so that no probe is let out early. */

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

static bool is_round(const stg_breaker_options *o, uint64_t word)
{
    return o->probes != 0 && phase_of(word) == PROBING;
}

static uint64_t pack_round(const stg_breaker_options *o, unsigned doublings,
                           stg_breaker_round r)
{
    return pack(PROBING, doublings, stg_breaker_round_pack(o, r));
}

static stg_status check_probes(const stg_breaker_options *o, stg_error *err)
{
    if (o->probes == 1 || o->probes > STG_PROBES_MAX)
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

static stg_status check_slow(const stg_breaker_options *o, stg_error *err)
{
    if (o->slow_percent == 0 && o->slow_after == 0)
        return STG_OK;
    if (o->slow_percent < 1 || o->slow_percent > 100)
        return stg_refuse_number(err, "breaker-slow percent", o->slow_percent,
                                 "1 to 100");
    if (o->slow_after < STG_US || o->slow_after > STG_BACKOFF_MAX)
        return stg_refuse_duration(err, "breaker-slow duration", o->slow_after,
                                   "1us to 365d");
    return STG_OK;
}

static stg_status check_not_slow(const stg_breaker_options *o, stg_error *err)
{
    if (o->slow_percent == 0 && o->slow_after == 0)
        return STG_OK;
    return stg_refuse(err,
                      "breaker-slow counts calls in the window of a breaker by "
                      "share: expected none, or one such as "
                      "breaker=50%/20/10s:30s");
}

static stg_status check_row(const stg_breaker_options *o, stg_error *err)
{
    if (o->failures < 1 || o->failures > FAILURES_MAX)
        return stg_refuse_number(err, "breaker failures", o->failures,
                                 "1 to 1000000");
    if (o->percent != 0 || o->calls != 0 || o->window != 0)
        return stg_refuse(err,
                          "breaker counts failures in a row: percent, "
                          "calls and window are expected to be 0");
    if (check_not_slow(o, err) != STG_OK)
        return STG_INVALID;
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
    if (check_slow(o, err) != STG_OK)
        return STG_INVALID;
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
        if (check_not_slow(o, err) != STG_OK)
            return STG_INVALID;
        return is_all_zero(o)
                   ? STG_OK
                   : stg_refuse(err,
                                "breaker has no rule: expected 0 for the rest");
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

/* Of gRPC's codes only UNAVAILABLE says that the server does not work.
 * CANCELLED came from this side. */
static stg_breaker_verdict classify_rpc(const stg_outcome *o)
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

/* A breaker asks whether the remote is there and works, not whether the caller
 * got what it wanted: a request that was refused is a success. What happened
 * on this side (own, local) counts as neither. */
stg_breaker_verdict stg_breaker_classify(const stg_outcome *o)
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
        return classify_rpc(o);
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

typedef struct breaker_call {
    const stg_breaker_options *options;
    stg_ns now;
    stg_breaker_ending ending; /* of one that reports */
    stg_permit permit;         /* out */
    stg_ns reopen_at;          /* out */
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

static uint64_t probe_in_round(const breaker_call *c, unsigned doublings,
                               stg_breaker_round r)
{
    stg_ns until_at = stg_ns_add(c->now, open_for(c->options, doublings));

    r.begun++;
    r.until = stg_breaker_round_unit(c->options, until_at);
    return pack_round(c->options, doublings, r);
}

/* A round whose time is over is replaced by a new one, so probes that never
 * report do not keep the breaker half-open for ever. */
static bool enter_round(uint64_t seen, uint64_t *next, breaker_call *c)
{
    stg_breaker_round r = stg_breaker_round_read(c->options, value_of(seen));
    stg_ns until_at = stg_breaker_round_until(c->options, r);

    if (c->now >= until_at) {
        r = (stg_breaker_round){.begun = 0};
    } else if (r.begun >= c->options->probes) {
        c->permit = STG_PERMIT_DENIED;
        c->reopen_at = until_at;
        return false;
    }
    c->permit = STG_PERMIT_PROBE;
    *next = probe_in_round(c, doublings_of(seen), r);
    return true;
}

/* The first caller after the time is the probe. The word then moves on by a
 * whole opening: a probe that never reports keeps others out for so long
 * only. */
static bool enter(uint64_t seen, uint64_t *next, void *arg)
{
    breaker_call *c = arg;

    c->permit = STG_PERMIT_GRANTED;
    if (phase_of(seen) == CLOSED) // gcov-excl: another thread has closed it
        return false;             // gcov-excl: another thread has closed it
    if (is_round(c->options, seen))
        return enter_round(seen, next, c);
    if (c->now >> UNIT_BITS < value_of(seen)) {
        c->permit = STG_PERMIT_DENIED;
        c->reopen_at = value_of(seen) << UNIT_BITS;
        return false;
    }
    c->permit = STG_PERMIT_PROBE;
    *next = c->options->probes == 0
                ? opened(c, PROBING, doublings_of(seen))
                : probe_in_round(c, doublings_of(seen),
                                 (stg_breaker_round){.begun = 0});
    return true;
}

/* Not inlined: a closed breaker has no registers to save. */
__attribute__((noinline)) static stg_permit
enter_open(stg_breaker *b, stg_ns now, stg_ns *reopen_at)
{
    breaker_call c = {.options = &b->options, .now = now};

    stg_word_change(&b->state, enter, &c);
    if (c.permit == STG_PERMIT_DENIED && reopen_at != NULL)
        *reopen_at = c.reopen_at;
    return c.permit;
}

stg_permit stg_breaker_enter(stg_breaker *b, stg_ns now, stg_ns *reopen_at)
{
    if (b == NULL || phase_of(stg_word_read(&b->state)) == CLOSED)
        return STG_PERMIT_GRANTED;
    return enter_open(b, now, reopen_at);
}

/* Each bad probe doubles the opening, up to open_max. */
static uint64_t reopened(const breaker_call *c, unsigned doublings)
{
    return opened(c, OPEN, doublings + (doublings < DOUBLINGS_MAX));
}

/* A share starts from nothing: only slices after this unit count. */
static uint64_t closed(const breaker_call *c)
{
    bool is_share = c->options->rule == STG_BREAKER_SHARE;

    return pack(CLOSED, 0, is_share ? unit_from(c->now) : 0);
}

/* One probe is a round of its own. Where it is open again, a late one closes it
 * if it is enough by itself. */
static bool end_probe(uint64_t seen, uint64_t *next, void *arg)
{
    const breaker_call *c = arg;
    const stg_breaker_options *o = c->options;
    stg_breaker_round r = {.begun = 1};

    if (is_round(o, seen))
        r = stg_breaker_round_read(o, value_of(seen));
    stg_breaker_round_count(&r, c->ending);
    if (stg_breaker_round_is_bad(o, r)) {
        *next = reopened(c, doublings_of(seen));
    } else if (stg_breaker_round_is_good(o, r)) {
        *next = closed(c);
        return phase_of(seen) != CLOSED;
    } else {
        *next = pack_round(o, doublings_of(seen), r);
    }
    return phase_of(seen) == PROBING;
}

/* 0 is closed, without a failure. A word that is 0 is not written, so that the
 * threads of a healthy breaker share its cache line. */
static bool end_row(uint64_t seen, uint64_t *next, void *arg)
{
    (void)arg;
    *next = 0;
    return seen != 0 && phase_of(seen) == CLOSED;
}

/* The value stays below `failures`, so adding 1 cannot reach the other fields
 * of the word. */
static bool lengthen_row(uint64_t seen, uint64_t *next, void *arg)
{
    const breaker_call *c = arg;

    if (value_of(seen) + 1 >= c->options->failures)
        *next = opened(c, OPEN, 0);
    else
        *next = seen + 1;
    return phase_of(seen) == CLOSED;
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

/* The call is counted first, and the word compared after. If another thread
 * has opened or closed the breaker meanwhile, open_on_share() finds another
 * word and leaves it. */
static void report_share(stg_breaker *b, const breaker_call *c)
{
    share_call s = {.call = c, .seen = stg_word_read(&b->state)};

    if (phase_of(s.seen) == CLOSED &&
        stg_breaker_window_add(b, c->ending, value_of(s.seen) << UNIT_BITS,
                               c->now))
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

/* A step back of now is not later. Sets the count of faults to 0. */
static bool note_connect(uint64_t seen, uint64_t *next, void *arg)
{
    const reach_call *c = arg;
    uint64_t unit = stg_ns_min((c->now >> REACH_UNIT_BITS) + 1,
                               UINT64_MAX >> CONNECTS_BITS);

    *next = stg_ns_max(unit, seen >> CONNECTS_BITS) << CONNECTS_BITS;
    return *next != seen;
}

/* A fault within quiet_for of the last connect is counted, but does not open
 * the breaker. */
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

static bool is_slow(const stg_breaker_options *o, stg_ns started_at, stg_ns now)
{
    return o->slow_percent != 0 && stg_ns_sub(now, started_at) >= o->slow_after;
}

/* A probe that ends as NEITHER or BUSY keeps its place until its time is over,
 * unless its caller abandons it. */
void stg_breaker_report(stg_breaker *b, bool is_probe,
                        stg_breaker_verdict verdict, stg_ns started_at,
                        stg_ns now)
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
    c.ending =
        (stg_breaker_ending){is_failure, is_slow(c.options, started_at, now)};
    // A probe whose breaker has moved on meanwhile counts like any other call.
    if (is_probe && stg_word_change(&b->state, end_probe, &c))
        return;
    if (b->options.rule == STG_BREAKER_ROW)
        stg_word_change(&b->state, is_failure ? lengthen_row : end_row, &c);
    else if (b->options.rule == STG_BREAKER_SHARE)
        report_share(b, &c);
    if (is_gone)
        stg_word_change(&b->state, open_unreached, &c);
}

/* A single probe's place is free at once: the word says open until now. A
 * round has begun one probe less. */
static bool free_place(uint64_t seen, uint64_t *next, void *arg)
{
    const breaker_call *c = arg;

    if (is_round(c->options, seen)) {
        stg_breaker_round r =
            stg_breaker_round_read(c->options, value_of(seen));

        r.begun -= r.begun > 0;
        *next = pack_round(c->options, doublings_of(seen), r);
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

/* A breaker is half-open as soon as its time is over, although no probe has
 * come yet. */
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

/* Words of one probe, of several and of several that may be slow differ while
 * probes are under way: then it is open until the next may start. */
static uint64_t keep_probes(const stg_breaker_options *o,
                            const stg_breaker_options *was, uint64_t word)
{
    uint64_t until = value_of(word);
    stg_breaker_round r = stg_breaker_round_read(was, until);

    if (phase_of(word) != PROBING || stg_breaker_round_is_alike(o, was))
        return word;
    if (was->probes != 0)
        until = stg_breaker_round_until(was, r) >> UNIT_BITS;
    return pack(OPEN, doublings_of(word), until);
}

/* An open breaker stays open under any new rule. A closed one keeps its count
 * only where the rule is the same, for the value counts something else
 * otherwise. */
void stg_breaker_keep(stg_breaker *b, const stg_breaker *old)
{
    const stg_breaker_options *o = &b->options, *was = &old->options;
    uint64_t word = stg_word_read(&old->state);

    if (o->rule == STG_BREAKER_NONE ||
        (o->rule != was->rule && phase_of(word) == CLOSED))
        return;
    b->state = keep_probes(o, was, word);
    b->reach = stg_word_read(&old->reach);
    stg_breaker_window_keep(b, old);
}

static bool bring_forward(uint64_t seen, uint64_t *next, void *arg)
{
    const breaker_call *c = arg;
    uint64_t now = c->now >> UNIT_BITS;

    if (phase_of(seen) != OPEN || value_of(seen) <= now)
        return false;
    *next = pack(OPEN, doublings_of(seen), now);
    return true;
}

void stg_breaker_probe_now(stg_breaker *b, stg_ns now)
{
    breaker_call c = {.now = now};

    stg_word_change(&b->state, bring_forward, &c);
}
