#include <stagger/budget.h>

#include "core/gcra.h"
#include "core/options.h"
#include "core/ratio.h"
#include "core/writer.h"

enum { AWS_TOKENS = 500, AWS_RETRY = 5, AWS_TIMEOUT = 10, AWS_FIRST = 1 };

static stg_status check_unused(const stg_budget_options *o, stg_error *err)
{
    bool has_capacity =
        o->kind == STG_BUDGET_TOKENS || o->kind == STG_BUDGET_GRPC;
    bool has_rate = o->kind == STG_BUDGET_TOKENS || o->kind == STG_BUDGET_RATIO;
    bool has_ratio = o->kind == STG_BUDGET_RATIO || o->kind == STG_BUDGET_GRPC;

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

static stg_status check_tokens(const stg_budget_options *o, stg_error *err)
{
    if (o->capacity < 1 || o->capacity > 1000000)
        return stg_refuse_number(err, "budget capacity", o->capacity,
                                 "1 to 1000000 tokens");
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
                          "refuse every retry; wanted attempts=1 for that");
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

stg_status stg_budget_check(const stg_budget_options *o, stg_error *err)
{
    if (o == NULL)
        return stg_refuse(err, "budget is NULL");
    if (check_unused(o, err) != STG_OK)
        return STG_INVALID;
    switch (o->kind) {
    case STG_BUDGET_NONE:
    case STG_BUDGET_AWS:
        return STG_OK;
    case STG_BUDGET_TOKENS:
        return check_tokens(o, err);
    case STG_BUDGET_RATIO:
        return check_ratio(o, err);
    case STG_BUDGET_GRPC:
        return check_grpc(o, err);
    }
    return stg_refuse_number(err, "budget kind", (unsigned)o->kind,
                             "one of stg_budget_kind");
}

stg_status stg_budget_init(stg_budget *b, const stg_budget_options *o)
{
    if (b == NULL || stg_budget_check(o, NULL) != STG_OK)
        return STG_INVALID;
    *b = (stg_budget){.options = *o};
    return STG_OK;
}

/* aws and grpc count what is used, so that zero is full. */
typedef struct use_call {
    uint64_t amount;
    uint64_t most; /* used at most */
} use_call;

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

static bool unuse(uint64_t seen, uint64_t *next, void *arg)
{
    *next = stg_ns_sub(seen, *(uint64_t *)arg);
    return *next != seen;
}

void stg_budget_attempt(stg_budget *b, stg_ns now)
{
    if (b->options.kind == STG_BUDGET_RATIO)
        stg_ratio_attempt(b, now);
}

void stg_budget_fail(stg_budget *b)
{
    use_call one = {.amount = 1000,
                    .most = 1000 * (uint64_t)b->options.capacity};

    if (b->options.kind == STG_BUDGET_GRPC)
        stg_word_change(&b->level, use, &one);
}

void stg_budget_succeed(stg_budget *b, uint32_t paid)
{
    uint64_t back;

    if (b->options.kind == STG_BUDGET_AWS)
        back = paid > 0 ? paid : AWS_FIRST;
    else if (b->options.kind == STG_BUDGET_GRPC)
        back = b->options.ratio;
    else
        return;
    stg_word_change(&b->level, unuse, &back);
}

static stg_grant grant(uint32_t paid, stg_ns from_at)
{
    return (stg_grant){.granted = true, .paid = paid, .from_at = from_at};
}

static const stg_grant refused = {.from_at = STG_NEVER};

static stg_grant take_aws(stg_budget *b, bool after_timeout, stg_ns now)
{
    uint32_t price = after_timeout ? AWS_TIMEOUT : AWS_RETRY;
    use_call c = {.amount = price, .most = AWS_TOKENS};

    return stg_word_change(&b->level, use_if_left, &c) ? grant(price, now)
                                                       : refused;
}

static stg_grant take_grpc(const stg_budget *b, stg_ns now)
{
    uint64_t used = stg_word_read(&b->level);

    // More than half is left exactly when less than half is used.
    return 2 * used < 1000 * (uint64_t)b->options.capacity ? grant(0, now)
                                                           : refused;
}

stg_grant stg_budget_reserve(stg_budget *b, bool after_timeout, stg_ns now,
                             stg_ns until_at)
{
    const stg_budget_options *o = &b->options;
    stg_grant tokens = {.paid = 1};

    switch (o->kind) {
    case STG_BUDGET_NONE:
        return grant(0, now);
    case STG_BUDGET_TOKENS:
        tokens.granted = stg_gcra_reserve(&b->level, o->rate, o->capacity, now,
                                          until_at, &tokens.from_at);
        return tokens;
    case STG_BUDGET_RATIO:
        return stg_ratio_take(b, now) ? grant(1, now) : refused;
    case STG_BUDGET_AWS:
        return take_aws(b, after_timeout, now);
    case STG_BUDGET_GRPC:
        return take_grpc(b, now);
    }
    return grant(0, now); // gcov-excl: no such kind
}

stg_grant stg_budget_take(stg_budget *b, bool after_timeout, stg_ns now)
{
    return stg_budget_reserve(b, after_timeout, now, stg_ns_add(now, 1));
}

void stg_budget_give_back(stg_budget *b, uint32_t paid, stg_ns from_at,
                          stg_ns now)
{
    uint64_t back = paid;

    if (paid == 0)
        return;
    if (b->options.kind == STG_BUDGET_TOKENS)
        stg_gcra_give_back(&b->level, b->options.rate, b->options.capacity,
                           from_at, now);
    else if (b->options.kind == STG_BUDGET_RATIO)
        stg_ratio_give_back(b, from_at);
    else if (b->options.kind == STG_BUDGET_AWS)
        stg_word_change(&b->level, unuse, &back);
}

static uint64_t tokens_left(const stg_budget *b, stg_ns now)
{
    stg_ns interval = stg_gcra_interval(b->options.rate);
    stg_ns full = interval * b->options.capacity;
    stg_ns missing = stg_ns_sub(stg_word_read(&b->level), now);

    return stg_ns_sub(full, missing) / interval * 1000 +
           stg_ns_sub(full, missing) % interval * 1000 / interval;
}

uint64_t stg_budget_left(const stg_budget *b, stg_ns now)
{
    switch (b->options.kind) {
    case STG_BUDGET_NONE:
        return UINT64_MAX;
    case STG_BUDGET_TOKENS:
        return tokens_left(b, now);
    case STG_BUDGET_RATIO:
        return stg_ratio_left(b, now);
    case STG_BUDGET_AWS:
        return 1000 * (AWS_TOKENS - stg_word_read(&b->level));
    case STG_BUDGET_GRPC:
        return 1000 * (uint64_t)b->options.capacity - stg_word_read(&b->level);
    }
    return UINT64_MAX; // gcov-excl: no such kind
}

/* -- other options --------------------------------------------------------- */

/* As many tokens as old has, if there is room for them. */
static void keep_tokens(stg_budget *b, const stg_budget *old, stg_ns now)
{
    stg_ns interval = stg_gcra_interval(b->options.rate);
    uint64_t left = tokens_left(old, now);
    uint64_t most = 1000 * (uint64_t)b->options.capacity;
    uint64_t missing = stg_ns_sub(most, left);

    b->level = stg_ns_add(now, missing / 1000 * interval +
                                   missing % 1000 * interval / 1000);
}

static void keep_grpc(stg_budget *b, const stg_budget *old)
{
    uint64_t most = 1000 * (uint64_t)b->options.capacity;

    b->level = stg_ns_sub(most, stg_budget_left(old, 0));
}

static void keep_ratio(stg_budget *b, const stg_budget *old)
{
    b->level = stg_word_read(&old->level);
    for (int i = 0; i < STG_BUDGET_SECONDS; i++) {
        b->attempts[i] = stg_word_read(&old->attempts[i]);
        b->retries[i] = stg_word_read(&old->retries[i]);
    }
}

void stg_budget_keep(stg_budget *b, const stg_budget *old, stg_ns now)
{
    if (b->options.kind != old->options.kind)
        return;
    if (b->options.kind == STG_BUDGET_TOKENS)
        keep_tokens(b, old, now);
    else if (b->options.kind == STG_BUDGET_GRPC)
        keep_grpc(b, old);
    else
        keep_ratio(b, old);
}
