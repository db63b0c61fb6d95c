/* The checks of the budgets, and the levels of those that are buckets: tokens
 * are one virtual time (word.h), aws and grpc one count. ratio and share are in
 * budget_counts.c. Each decision is a compare-and-swap, so any number of
 * threads may ask at once; budget.h has the formulas and their sources. */
#include <stagger/budget.h>

#include "core/counts.h"
#include "core/options.h"
#include "core/wide.h"
#include "core/word.h"
#include "core/writer.h"

const stg_budget_options stg_budget_aws = {.kind = STG_BUDGET_AWS,
                                           .capacity = 500,
                                           .cost = 5,
                                           .timeout_cost = 10,
                                           .throttle_cost = 5};

/* Fields of other kinds must be 0, so that equal budgets have equal options. */
static stg_status check_unused(const stg_budget_options *o, stg_error *err)
{
    bool has_capacity =
        o->kind != STG_BUDGET_NONE && o->kind != STG_BUDGET_RATIO;
    bool has_rate = o->kind == STG_BUDGET_TOKENS || o->kind == STG_BUDGET_RATIO;
    bool has_ratio = o->kind == STG_BUDGET_RATIO ||
                     o->kind == STG_BUDGET_GRPC || o->kind == STG_BUDGET_SHARE;

    if (!has_capacity && o->capacity != 0)
        return stg_refuse_number(err, "budget capacity", o->capacity,
                                 "0 for this kind");
    if (!has_rate && o->rate != 0)
        return stg_refuse_thousandths(err, "budget rate", o->rate,
                                      "0 for this kind");
    if (!has_ratio && o->ratio != 0)
        return stg_refuse_thousandths(err, "budget ratio", o->ratio,
                                      "0 for this kind");
    return STG_OK;
}

static stg_status check_capacity(const stg_budget_options *o, stg_error *err)
{
    if (o->capacity < 1 || o->capacity > 1000000)
        return stg_refuse_number(err, "budget capacity", o->capacity,
                                 "1 to 1000000 tokens");
    return STG_OK;
}

static stg_status check_tokens(const stg_budget_options *o, stg_error *err)
{
    if (check_capacity(o, err) != STG_OK)
        return STG_INVALID;
    if (o->rate < 1 || o->rate > 1000000000)
        return stg_refuse_thousandths(err, "budget rate", o->rate,
                                      "0.001/s to 1000000/s");
    return STG_OK;
}

static stg_status check_ratio(const stg_budget_options *o, stg_error *err)
{
    if (o->ratio > 10000)
        return stg_refuse_thousandths(err, "budget ratio", o->ratio, "0 to 10");
    if (o->rate > 1000000000)
        return stg_refuse_thousandths(err, "budget rate", o->rate,
                                      "0/s to 1000000/s");
    if (o->ratio == 0 && o->rate == 0)
        return stg_refuse(err,
                          "budget ratio and floor are both 0, and would "
                          "refuse every retry; expected attempts=1 for that");
    return STG_OK;
}

static stg_status check_grpc(const stg_budget_options *o, stg_error *err)
{
    if (o->capacity < 1 || o->capacity > 1000)
        return stg_refuse_number(err, "budget capacity", o->capacity,
                                 "1 to 1000 tokens");
    if (o->ratio < 1 || o->ratio > 1000000)
        return stg_refuse_thousandths(err, "budget ratio", o->ratio,
                                      "0.001 to 1000");
    return STG_OK;
}

static stg_status check_share(const stg_budget_options *o, stg_error *err)
{
    if (o->ratio > 1000)
        return stg_refuse_thousandths(err, "budget share", o->ratio,
                                      "0 to 1, which is 0% to 100%");
    // With none a retry would wait for ever where nothing else is under way.
    if (o->capacity < 1 || o->capacity > 1000000)
        return stg_refuse_number(err, "budget floor", o->capacity,
                                 "1 to 1000000 retries at once");
    return STG_OK;
}

/* A cost above the capacity would refuse every such retry. */
static stg_status check_costs(const stg_budget_options *o, stg_error *err)
{
    const struct {
        const char *name;
        uint32_t cost;
    } costs[] = {{"budget cost", o->cost},
                 {"budget timeout cost", o->timeout_cost},
                 {"budget throttle cost", o->throttle_cost}};
    bool has_costs = o->kind == STG_BUDGET_AWS;
    uint32_t least = has_costs ? 1 : 0, most = has_costs ? o->capacity : 0;

    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        if (costs[i].cost < least || costs[i].cost > most)
            return stg_refuse_number(err, costs[i].name, costs[i].cost,
                                     has_costs ? "1 to the capacity"
                                               : "0 for this kind");
    return STG_OK;
}

static stg_status check_kind(const stg_budget_options *o, stg_error *err)
{
    switch (o->kind) {
    case STG_BUDGET_NONE:
        return STG_OK;
    case STG_BUDGET_TOKENS:
        return check_tokens(o, err);
    case STG_BUDGET_AWS:
        return check_capacity(o, err);
    case STG_BUDGET_RATIO:
        return check_ratio(o, err);
    case STG_BUDGET_GRPC:
        return check_grpc(o, err);
    case STG_BUDGET_SHARE:
        return check_share(o, err);
    }
    return stg_refuse_number(err, "budget kind", (unsigned)o->kind,
                             "one of stg_budget_kind");
}

stg_status stg_budget_check(const stg_budget_options *o, stg_error *err)
{
    if (o == NULL)
        return stg_refuse(err, "budget is NULL");
    if (check_unused(o, err) != STG_OK || check_kind(o, err) != STG_OK)
        return STG_INVALID;
    return check_costs(o, err);
}

stg_status stg_budget_init(stg_budget *b, const stg_budget_options *o)
{
    if (b == NULL || stg_budget_check(o, NULL) != STG_OK)
        return STG_INVALID;
    *b = (stg_budget){.options = *o};
    return STG_OK;
}

/* aws and grpc count what is used, in thousandths, so that zero is full. */
typedef struct use_call {
    uint64_t amount;
    uint64_t most; /* used at most */
} use_call;

/* Failures are counted whatever is left: the level stops at the most. */
static bool use(uint64_t seen, uint64_t *next, void *arg)
{
    const use_call *c = arg;

    *next = stg_ns_min(seen + c->amount, c->most);
    return *next != seen;
}

static bool use_if_left(uint64_t seen, uint64_t *next, void *arg)
{
    const use_call *c = arg;

    *next = seen + c->amount;
    return *next <= c->most;
}

static uint64_t tokens_max(const stg_budget_options *o)
{
    return 1000 * (uint64_t)o->capacity;
}

static uint64_t cost_of(const stg_budget_options *o, stg_charge charge)
{
    uint32_t cost = o->cost;

    if (charge == STG_CHARGE_TIMEOUT)
        cost = o->timeout_cost;
    else if (charge == STG_CHARGE_THROTTLE)
        cost = o->throttle_cost;
    return 1000 * (uint64_t)cost;
}

/* Stops at 0, which is full. */
static bool unuse(uint64_t seen, uint64_t *next, void *arg)
{
    *next = stg_ns_sub(seen, *(uint64_t *)arg);
    return *next != seen;
}

void stg_budget_attempt(stg_budget *b, stg_ns now)
{
    if (b != NULL && b->options.kind == STG_BUDGET_RATIO)
        stg_ratio_attempt(b, now);
}

void stg_budget_begin(stg_budget *b)
{
    if (b != NULL && b->options.kind == STG_BUDGET_SHARE)
        stg_share_begin(b);
}

void stg_budget_end(stg_budget *b, stg_charge paid)
{
    if (b != NULL && b->options.kind == STG_BUDGET_SHARE)
        stg_share_end(b, paid != STG_CHARGE_NONE);
}

void stg_budget_withdraw(stg_budget *b, stg_charge paid, stg_ns started_at,
                         stg_ns now)
{
    if (b == NULL || b->options.kind == STG_BUDGET_SHARE)
        return; // which has forgotten it
    if (paid != STG_CHARGE_NONE)
        stg_budget_give_back(b, paid, started_at, now);
    else if (b->options.kind == STG_BUDGET_RATIO)
        stg_ratio_withdraw(b, started_at);
}

void stg_budget_fail(stg_budget *b)
{
    use_call one = {.amount = 1000};

    if (b == NULL || b->options.kind != STG_BUDGET_GRPC)
        return;
    one.most = tokens_max(&b->options);
    stg_word_change(&b->level, use, &one);
}

/* The price list of aws: time-outs and throttling have prices of their own.
 * 429 and RESOURCE_EXHAUSTED are throttling. */
stg_charge stg_budget_charge(const stg_outcome *o)
{
    enum { RESOURCE_EXHAUSTED = 8 };

    switch (o == NULL ? STG_FAULT_ERROR : o->fault) {
    case STG_FAULT_TIMEOUT:
    case STG_FAULT_CONNECT_TIMEOUT:
    case STG_FAULT_TLS_TIMEOUT:
        return STG_CHARGE_TIMEOUT;
    case STG_FAULT_PUSHBACK:
        return STG_CHARGE_THROTTLE;
    case STG_FAULT_OVERLOAD:
        return o->code == 429 ? STG_CHARGE_THROTTLE : STG_CHARGE_RETRY;
    case STG_FAULT_GRPC:
        return o->code == RESOURCE_EXHAUSTED ? STG_CHARGE_THROTTLE
                                             : STG_CHARGE_RETRY;
    default:
        return STG_CHARGE_RETRY;
    }
}

/* aws gives back what the last retry cost, or one token where there was none;
 * grpc gives back tokenRatio for each success (gRFC A6). */
void stg_budget_succeed(stg_budget *b, stg_charge paid)
{
    const uint64_t first = 1000;
    uint64_t back;

    if (b == NULL)
        return;
    if (b->options.kind == STG_BUDGET_AWS)
        back = paid == STG_CHARGE_NONE ? first : cost_of(&b->options, paid);
    else if (b->options.kind == STG_BUDGET_GRPC)
        back = b->options.ratio;
    else
        return;
    stg_word_change(&b->level, unuse, &back);
}

static stg_grant grant(stg_ns from_at)
{
    return (stg_grant){.granted = true, .from_at = from_at};
}

static const stg_grant refused = {.from_at = STG_NEVER};

static stg_grant take_aws(stg_budget *b, stg_charge charge, stg_ns now)
{
    use_call c = {.amount = cost_of(&b->options, charge),
                  .most = tokens_max(&b->options)};

    return stg_word_change(&b->level, use_if_left, &c) ? grant(now) : refused;
}

/* A retry costs nothing itself, failures do (stg_budget_fail). Source: gRFC
 * A6. */
static stg_grant take_grpc(const stg_budget *b, stg_ns now)
{
    uint64_t used = stg_word_read(&b->level);

    // More than half is left exactly when less than half is used.
    return 2 * used < tokens_max(&b->options) ? grant(now) : refused;
}

/* Only a token bucket knows when the next token comes, and may grant one of
 * the future. All other kinds answer for now, and refuse with STG_NEVER. */
stg_grant stg_budget_reserve(stg_budget *b, stg_charge charge, stg_ns now,
                             stg_ns until_at)
{
    const stg_budget_options *o;
    stg_grant tokens;

    if (b == NULL)
        return grant(now);
    o = &b->options;
    switch (o->kind) {
    case STG_BUDGET_NONE:
        return grant(now);
    case STG_BUDGET_TOKENS:
        tokens.granted = stg_gcra_reserve(&b->level, o->rate, o->capacity, now,
                                          until_at, &tokens.from_at);
        return tokens;
    case STG_BUDGET_RATIO:
        return stg_ratio_take(b, now) ? grant(now) : refused;
    case STG_BUDGET_AWS:
        return take_aws(b, charge, now);
    case STG_BUDGET_GRPC:
        return take_grpc(b, now);
    case STG_BUDGET_SHARE:
        return stg_share_take(b) ? grant(now) : refused;
    }
    return grant(now); // gcov-excl: no such kind
}

/* Until now + 1: a token that comes later is refused. */
stg_grant stg_budget_take(stg_budget *b, stg_charge charge, stg_ns now)
{
    return stg_budget_reserve(b, charge, now, stg_ns_add(now, 1));
}

void stg_budget_give_back(stg_budget *b, stg_charge paid, stg_ns from_at,
                          stg_ns now)
{
    uint64_t back;

    if (b == NULL || paid == STG_CHARGE_NONE)
        return;
    back = cost_of(&b->options, paid);
    if (b->options.kind == STG_BUDGET_TOKENS)
        stg_gcra_give_back(&b->level, b->options.rate, b->options.capacity,
                           from_at, now);
    else if (b->options.kind == STG_BUDGET_RATIO)
        stg_ratio_give_back(b, from_at);
    else if (b->options.kind == STG_BUDGET_SHARE)
        stg_share_give_back(b);
    else if (b->options.kind == STG_BUDGET_AWS)
        stg_word_change(&b->level, unuse, &back);
}

/* In thousandths of a token. The level is the instant at which the bucket is
 * full again. */
static uint64_t tokens_left(const stg_budget *b, stg_ns now)
{
    stg_ns interval = stg_gcra_interval(b->options.rate);
    stg_ns full = interval * b->options.capacity;
    stg_ns missing = stg_ns_sub(stg_word_read(&b->level), now);

    return stg_wide_share(stg_ns_sub(full, missing), 1000, interval);
}

/* Of aws and grpc. */
static uint64_t unused(const stg_budget *b)
{
    return tokens_max(&b->options) - stg_word_read(&b->level);
}

uint64_t stg_budget_left(const stg_budget *b, stg_ns now)
{
    if (b == NULL)
        return UINT64_MAX;
    switch (b->options.kind) {
    case STG_BUDGET_NONE:
        return UINT64_MAX;
    case STG_BUDGET_TOKENS:
        return tokens_left(b, now);
    case STG_BUDGET_RATIO:
        return stg_ratio_left(b, now);
    case STG_BUDGET_AWS:
    case STG_BUDGET_GRPC:
        return unused(b);
    case STG_BUDGET_SHARE:
        return stg_share_left(b);
    }
    return UINT64_MAX; // gcov-excl: no such kind
}

/* -- other options --------------------------------------------------------- */

/* As many tokens as old has, if there is room for them. */
static void keep_tokens(stg_budget *b, const stg_budget *old, stg_ns now)
{
    stg_ns interval = stg_gcra_interval(b->options.rate);
    uint64_t left = tokens_left(old, now);
    uint64_t missing = stg_ns_sub(tokens_max(&b->options), left);

    b->level = stg_ns_add(now, stg_wide_share(missing, interval, 1000));
}

/* Likewise. */
static void keep_used(stg_budget *b, const stg_budget *old)
{
    b->level = stg_ns_sub(tokens_max(&b->options), unused(old));
}

static void keep_ratio(stg_budget *b, const stg_budget *old)
{
    b->level = stg_word_read(&old->level);
    for (int i = 0; i < STG_BUDGET_SECONDS; i++) {
        b->attempts[i] = stg_word_read(&old->attempts[i]);
        b->retries[i] = stg_word_read(&old->retries[i]);
    }
}

/* A budget of another kind starts full. */
void stg_budget_keep(stg_budget *b, const stg_budget *old, stg_ns now)
{
    if (b->options.kind != old->options.kind)
        return;
    if (b->options.kind == STG_BUDGET_TOKENS)
        keep_tokens(b, old, now);
    else if (b->options.kind == STG_BUDGET_RATIO)
        keep_ratio(b, old);
    else if (b->options.kind == STG_BUDGET_SHARE)
        b->level = stg_word_read(&old->level);
    else
        keep_used(b, old);
}

void stg_budget_adopt(stg_budget *b, stg_charge paid)
{
    if (b->options.kind == STG_BUDGET_SHARE)
        stg_share_adopt(b, paid != STG_CHARGE_NONE);
}
