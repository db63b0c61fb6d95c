/* text_settings.c - the settings of a policy's text: each with its key, what
 * its value is read by, and what is said of one that cannot be read. A reader
 * takes the value as far as it understands it, and returns whether that was
 * all. Ranges that depend on other settings are left to stg_policy_check().
 * Readers start from nothing, for a preset may have set the same before. */
#include "core/text_internal.h"

#include "core/codes.h"
#include "core/options.h"

static const char expected_time[] =
    "expected a duration up to 365d in whole ns, like 200ms, 1.5s or 2h";

/* What a setting knows beside numbers. */
static const char *const word_none[] = {"none", NULL};
static const char *const word_unlimited[] = {"unlimited", NULL};
static const char *const words_jitter[] = {
    "none", "full", "equal", "decorrelated", "up:", "polly", NULL};
const char *const stg_budget_words[] = {
    "none", "aws", "aws:", "tokens:", "ratio:", "grpc:", "share:", NULL};
static const char *const words_throttle[] = {"none", "sre", "sre:", "aws",
                                             NULL};
static const char *const words_empty[] = {"give-up", "wait", NULL};
static const char *const words_scope[] = {"attempts", "retries", NULL};
static const char *const words_retry_after[] = {"floor", "exact", "ignore",
                                                NULL};
static const char *const words_unsafe[] = {"yes", "no", NULL};
static const char *const words_nested[] = {"once", "full", NULL};

static bool take_all(stg_reader *value, const char *text)
{
    return stg_read_text(value, text) && stg_reader_is_empty(value);
}

static bool is_none(const stg_reader *value)
{
    return stg_reader_equals(value, "none");
}

/* Which of the first `count` words the value is. */
static bool find_word(const stg_reader *value, const char *const words[],
                      unsigned count, unsigned *word)
{
    for (*word = 0; *word < count; ++*word)
        if (stg_reader_equals(value, words[*word]))
            return true;
    return false;
}

static bool read_time(stg_reader *value, stg_ns *ns)
{
    return stg_read_duration(value, ns) && stg_reader_is_empty(value);
}

static bool read_optional(stg_reader *value, stg_ns *ns)
{
    if (!is_none(value))
        return read_time(value, ns);
    *ns = STG_NEVER;
    return true;
}

static bool read_attempts(stg_parser *p, stg_reader *value)
{
    uint32_t attempts;

    if (stg_reader_equals(value, "unlimited")) {
        p->policy.attempts_max = STG_UNLIMITED;
        return true;
    }
    if (!stg_read_int(value, &attempts))
        return false;
    p->policy.attempts_max = attempts;
    return stg_reader_is_empty(value);
}

static bool read_base(stg_parser *p, stg_reader *value)
{
    return read_time(value, &p->policy.backoff.base);
}

/* "1s:overload,connect" */
static bool read_base_for(stg_parser *p, stg_reader *value)
{
    stg_reader time = stg_read_until(value, ':'), piece;
    stg_ns base;

    if (!read_time(&time, &base) || base == 0)
        return false;
    do {
        stg_rule rule;

        piece = stg_read_until(value, ',');
        if (!stg_spelling_read(piece, &rule) ||
            rule.link != STG_LINK_CATEGORY ||
            p->policy.base_for[rule.value] != 0)
            return false;
        p->policy.base_for[rule.value] = base;
    } while (piece.end != value->end);
    return true;
}

static bool read_cap(stg_parser *p, stg_reader *value)
{
    p->has_cap = true;
    return read_optional(value, &p->policy.backoff.cap);
}

static bool read_floor(stg_parser *p, stg_reader *value)
{
    return read_time(value, &p->policy.backoff.floor);
}

static bool read_factor(stg_parser *p, stg_reader *value)
{
    return stg_read_decimal(value, &p->policy.backoff.factor) &&
           stg_reader_is_empty(value);
}

static bool read_power(stg_parser *p, stg_reader *value)
{
    uint32_t power;

    if (!stg_read_int(value, &power) || power < 2 || power > STG_POWER_MAX)
        return false;
    p->policy.backoff.power = (uint16_t)power;
    return stg_reader_is_empty(value);
}

static bool read_offset(stg_parser *p, stg_reader *value)
{
    return read_time(value, &p->policy.backoff.offset);
}

static bool read_count_from(stg_parser *p, stg_reader *value)
{
    bool is_0 = stg_reader_equals(value, "0");

    p->policy.backoff.counts_from_0 = is_0;
    return is_0 || stg_reader_equals(value, "1");
}

/* "20%", or "-25%:50%" */
static bool read_percent(stg_reader *value, stg_backoff *b)
{
    b->jitter = STG_JITTER_PERCENT;
    if (stg_read_text(value, "-"))
        return stg_read_int(value, &b->below) && stg_read_text(value, "%:") &&
               stg_read_int(value, &b->above) && take_all(value, "%");
    if (!stg_read_int(value, &b->below))
        return false;
    b->above = b->below;
    return take_all(value, "%");
}

static bool read_jitter(stg_parser *p, stg_reader *value)
{
    stg_backoff *b = &p->policy.backoff;
    unsigned word;

    b->below = b->above = 0;
    b->up = 0;
    if (find_word(value, words_jitter, STG_JITTER_DECORRELATED + 1, &word)) {
        b->jitter = (stg_jitter)word;
        return true;
    }
    if (stg_reader_equals(value, "polly")) {
        b->jitter = STG_JITTER_POLLY;
        return true;
    }
    if (!stg_read_text(value, "up:"))
        return read_percent(value, b);
    b->jitter = STG_JITTER_UP;
    return read_time(value, &b->up);
}

static bool read_deadline(stg_parser *p, stg_reader *value)
{
    return read_optional(value, &p->policy.deadline);
}

static bool read_attempt_timeout(stg_parser *p, stg_reader *value)
{
    return read_optional(value, &p->policy.attempt_timeout);
}

static bool read_reset_after(stg_parser *p, stg_reader *value)
{
    return read_optional(value, &p->policy.reset_after);
}

static bool read_retry_after_max(stg_parser *p, stg_reader *value)
{
    return read_time(value, &p->policy.retry_after_max);
}

static bool read_retry_after(stg_parser *p, stg_reader *value)
{
    unsigned word;

    if (!find_word(value, words_retry_after, STG_RETRY_AFTER_IGNORE + 1, &word))
        return false;
    p->policy.retry_after = (stg_retry_after)word;
    return true;
}

static bool read_rate(stg_reader *value, uint32_t *rate)
{
    return stg_read_decimal(value, rate) && stg_read_text(value, "/s");
}

static bool read_ratio(stg_reader *value, stg_budget_options *o)
{
    if (!stg_read_decimal(value, &o->ratio))
        return false;
    return stg_reader_is_empty(value) ||
           (stg_read_text(value, "+") && read_rate(value, &o->rate));
}

/* "20%", or "20%+3" */
static bool read_share_budget(stg_reader *value, stg_budget_options *o)
{
    uint32_t percent; // in thousandths

    o->capacity = 3;
    if (!stg_read_decimal(value, &percent) || percent % 100 != 0 ||
        !stg_read_text(value, "%"))
        return false;
    o->ratio = percent / 100;
    return stg_reader_is_empty(value) ||
           (stg_read_text(value, "+") && stg_read_int(value, &o->capacity) &&
            stg_reader_is_empty(value));
}

/* ":500:5:10:5" */
static bool read_aws(stg_reader *value, stg_budget_options *o)
{
    uint32_t *const numbers[] = {&o->capacity, &o->cost, &o->timeout_cost,
                                 &o->throttle_cost};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!stg_read_text(value, ":") || !stg_read_int(value, numbers[i]))
            return false;
    return stg_reader_is_empty(value);
}

static bool read_budget(stg_parser *p, stg_reader *value)
{
    stg_budget_options *o = &p->policy.budget;

    *o = (stg_budget_options){.kind = STG_BUDGET_NONE};
    if (is_none(value))
        return true;
    if (stg_read_text(value, "aws")) {
        *o = stg_budget_aws;
        return stg_reader_is_empty(value) || read_aws(value, o);
    }
    if (stg_read_text(value, "ratio:")) {
        o->kind = STG_BUDGET_RATIO;
        return read_ratio(value, o) && stg_reader_is_empty(value);
    }
    if (stg_read_text(value, "grpc:")) {
        o->kind = STG_BUDGET_GRPC;
        return stg_read_int(value, &o->capacity) && stg_read_text(value, ":") &&
               stg_read_decimal(value, &o->ratio) && stg_reader_is_empty(value);
    }
    if (stg_read_text(value, "share:")) {
        o->kind = STG_BUDGET_SHARE;
        return read_share_budget(value, o);
    }
    (void)stg_read_text(value, "tokens:"); // may be left out
    o->kind = STG_BUDGET_TOKENS;
    return stg_read_int(value, &o->capacity) && stg_read_text(value, ":") &&
           read_rate(value, &o->rate) && stg_reader_is_empty(value);
}

static bool read_budget_empty(stg_parser *p, stg_reader *value)
{
    p->policy.budget_waits = stg_reader_equals(value, "wait");
    return p->policy.budget_waits || stg_reader_equals(value, "give-up");
}

static bool read_peer_rate(stg_parser *p, stg_reader *value)
{
    p->policy.rate = 0;
    if (is_none(value))
        return true;
    return read_rate(value, &p->policy.rate) && p->policy.rate != 0 &&
           stg_reader_is_empty(value);
}

/* "20", or "20:500ms" */
static bool read_bulkhead(stg_parser *p, stg_reader *value)
{
    stg_bulkhead_options *o = &p->policy.bulkhead;

    *o = (stg_bulkhead_options){.max = 0};
    if (is_none(value))
        return true;
    if (!stg_read_int(value, &o->max) || o->max == 0)
        return false;
    return stg_reader_is_empty(value) ||
           (stg_read_text(value, ":") && read_time(value, &o->wait));
}

static bool read_throttle(stg_parser *p, stg_reader *value)
{
    stg_throttle_options *o = &p->policy.throttle;

    *o = (stg_throttle_options){.kind = STG_THROTTLE_NONE};
    if (is_none(value))
        return true;
    o->kind = STG_THROTTLE_AWS;
    if (stg_reader_equals(value, "aws"))
        return true;
    *o = (stg_throttle_options){.kind = STG_THROTTLE_SRE, .k = 2000};
    if (!stg_read_text(value, "sre"))
        return false;
    return stg_reader_is_empty(value) ||
           (stg_read_text(value, ":") && stg_read_decimal(value, &o->k) &&
            stg_reader_is_empty(value));
}

/* "100ms", "p95", and ":2" behind either. */
static bool read_hedge(stg_parser *p, stg_reader *value)
{
    stg_hedge_options *o = &p->policy.hedge;
    stg_reader after;

    *o = (stg_hedge_options){.max = 0};
    if (is_none(value))
        return true;
    o->max = 1;
    after = *value;
    after = stg_read_until(&after, ':');
    value->at = after.end;
    if (stg_read_text(&after, "p")
            ? !stg_read_int(&after, &o->percentile) || o->percentile == 0 ||
                  !stg_reader_is_empty(&after)
            : !read_time(&after, &o->delay))
        return false;
    if (stg_reader_is_empty(value))
        return true;
    value->at++; // behind the colon
    return stg_read_int(value, &o->max) && stg_reader_is_empty(value) &&
           o->max != 0;
}

/* The number in front of the '%' was read as failures in a row. */
static bool read_share(stg_reader *value, stg_breaker_options *o)
{
    stg_reader window;

    o->rule = STG_BREAKER_SHARE;
    o->percent = o->failures;
    o->failures = 0;
    if (!stg_read_text(value, "/") || !stg_read_int(value, &o->calls) ||
        !stg_read_text(value, "/"))
        return false;
    window = *value;
    window = stg_read_until(&window, ':');
    value->at = window.end;
    return read_time(&window, &o->window);
}

/* A '-' with nothing behind it is refused. */
static bool read_opening(stg_reader *value, stg_breaker_options *o)
{
    stg_reader open = stg_read_until(value, '-');

    if (!read_time(&open, &o->open))
        return false;
    o->open_max = o->open;
    return stg_reader_is_empty(value) ? value->end == open.end
                                      : read_time(value, &o->open_max);
}

static bool read_breaker(stg_parser *p, stg_reader *value)
{
    stg_breaker_options *o = &p->policy.breaker;

    // What other words say of it stays.
    *o = (stg_breaker_options){.rule = STG_BREAKER_NONE,
                               .connects = o->connects,
                               .probes = o->probes,
                               .probes_good = o->probes_good,
                               .slow_percent = o->slow_percent,
                               .slow_after = o->slow_after};
    if (is_none(value))
        return true;
    o->rule = STG_BREAKER_ROW;
    o->open = 30 * STG_S;
    o->open_max = 10 * STG_MIN;
    if (!stg_read_int(value, &o->failures))
        return false;
    if (stg_read_text(value, "%") && !read_share(value, o))
        return false;
    if (stg_reader_is_empty(value))
        return true;
    return stg_read_text(value, ":") && read_opening(value, o);
}

static bool read_breaker_scope(stg_parser *p, stg_reader *value)
{
    p->policy.breaks_retries_only = stg_reader_equals(value, "retries");
    return p->policy.breaks_retries_only ||
           stg_reader_equals(value, "attempts");
}

static bool read_breaker_connect(stg_parser *p, stg_reader *value)
{
    uint32_t *connects = &p->policy.breaker.connects;

    *connects = 0;
    if (is_none(value))
        return true;
    return stg_read_int(value, connects) && *connects != 0 &&
           stg_reader_is_empty(value);
}

/* "3", or "6/10": of ten six */
static bool read_breaker_probes(stg_parser *p, stg_reader *value)
{
    stg_breaker_options *o = &p->policy.breaker;
    uint32_t good, probes;

    if (!stg_read_int(value, &good))
        return false;
    probes = good;
    if (stg_read_text(value, "/") && !stg_read_int(value, &probes))
        return false;
    if (good < 1 || good > probes || probes > STG_PROBES_MAX)
        return false;
    o->probes = probes == 1 ? 0 : (uint16_t)probes;
    o->probes_good = probes == 1 ? 0 : (uint16_t)good;
    return stg_reader_is_empty(value);
}

/* "80%/2s" */
static bool read_breaker_slow(stg_parser *p, stg_reader *value)
{
    stg_breaker_options *o = &p->policy.breaker;

    o->slow_percent = 0;
    o->slow_after = 0;
    if (is_none(value))
        return true;
    return stg_read_int(value, &o->slow_percent) && o->slow_percent != 0 &&
           stg_read_text(value, "%/") && read_time(value, &o->slow_after);
}

static bool read_unsafe(stg_parser *p, stg_reader *value)
{
    p->policy.unsafe = stg_reader_equals(value, "yes");
    return p->policy.unsafe || stg_reader_equals(value, "no");
}

static bool read_nested(stg_parser *p, stg_reader *value)
{
    bool is_full = stg_reader_equals(value, "full");

    p->policy.nested = is_full ? STG_NESTED_FULL : STG_NESTED_ONCE;
    return is_full || stg_reader_equals(value, "once");
}

static bool read_list(stg_parser *p, stg_reader *value)
{
    stg_backoff *b = &p->policy.backoff;
    const char *end = value->end;
    stg_reader piece;

    do {
        piece = stg_read_until(value, ',');
        if (b->list_count == STG_LIST_MAX ||
            !read_time(&piece, &b->list[b->list_count++]))
            return false;
    } while (piece.end != end);
    return true;
}

/* The lists of faults are read by text_rules.c. */
const stg_parser_setting stg_parser_settings[] = {
    {"attempts=", read_attempts, "expected 1 to 4294967295, or unlimited",
     word_unlimited},
    // Each before one that it begins with: a place is found by the first.
    {"base-for=", read_base_for,
     "expected a duration above 0 and categories, each once (connect, server, "
     "request, overload, database, rpc, local), like 1s:overload",
     NULL},
    {"base=", read_base, expected_time, NULL},
    {"cap=", read_cap, "expected none, or a duration up to 365d, like 30s",
     word_none},
    {"floor=", read_floor, expected_time, NULL},
    {"factor=", read_factor, "expected 1 to 100, like 2 or 1.5", NULL},
    {"power=", read_power, "expected 2 to 10, like 4", NULL},
    {"offset=", read_offset, expected_time, NULL},
    {"count-from=", read_count_from, "expected 0 or 1", NULL},
    {"jitter=", read_jitter,
     "expected none, full, equal, decorrelated, polly, 1% to 100%, -25%:50% "
     "(below and above) or up:1s",
     words_jitter},
    {"deadline=", read_deadline,
     "expected none, or a duration up to 365d, like 2m", word_none},
    {"attempt-timeout=", read_attempt_timeout,
     "expected none, or a duration up to 365d, like 10s", word_none},
    {"reset-after=", read_reset_after,
     "expected none, or a duration up to 365d, like 1m", word_none},
    {"retry-after-max=", read_retry_after_max, expected_time, NULL},
    {"retry-after=", read_retry_after, "expected floor, exact or ignore",
     words_retry_after},
    {"budget=", read_budget,
     "expected none, aws, aws:500:14:14:5, tokens:100:10/s, ratio:0.2+10/s, "
     "share:20%+3 or grpc:10:0.1",
     stg_budget_words},
    {"budget-empty=", read_budget_empty, "expected give-up or wait",
     words_empty},
    {"rate=", read_peer_rate,
     "expected none, or 0.001/s to 1000000/s, like 50/s", word_none},
    {"bulkhead=", read_bulkhead,
     "expected none, or 1 to 1000000 attempts at once and the longest wait for a "
     "place, like 20 or 20:500ms",
     word_none},
    {"throttle=", read_throttle, "expected none, aws, or sre:1 to sre:100",
     words_throttle},
    {"hedge=", read_hedge,
     "expected none, or a delay of 1ms to 365d or p50 to p99, and 1 to 3 hedges, "
     "like 100ms, p95 or p95:2",
     word_none},
    {"breaker-probes=", read_breaker_probes,
     "expected 1 to 31 probes, all of which must be good, or so many of them, "
     "like 3 or 6/10",
     NULL},
    {"breaker-slow=", read_breaker_slow,
     "expected none, or 1% to 100% of the calls and a duration of 1us to 365d "
     "from which on one is slow, like 80%/2s",
     word_none},
    {"breaker-scope=", read_breaker_scope, "expected attempts or retries",
     words_scope},
    {"breaker-connect=", read_breaker_connect,
     "expected none, or 1 to 1000000 faults of category connect in a row",
     word_none},
    {"breaker=", read_breaker,
     "expected none, 5:30s-10m (in a row, open for) or 50%/20/10s:30s (share, "
     "calls, window, open for)",
     word_none},
    {"unsafe=", read_unsafe, "expected yes or no", words_unsafe},
    {"nested=", read_nested, "expected once or full", words_nested},
    {"list=", read_list, "expected 1 to 64 durations, like 5s,5m,30m", NULL},
};
