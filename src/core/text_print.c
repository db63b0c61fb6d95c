/* What decides how a policy behaves is always written: the growth and its
 * numbers, jitter, attempts, deadline, faults. Other settings are written where
 * they differ from what an unset one is. */
#include "core/text_internal.h"

#include <stagger/text.h>

#include <string.h>

#include "core/backoff_draw.h"
#include "core/options.h"
#include "core/rule.h"
#include "core/writer.h"

/* The growth stands before the first key. */
static void write_key(stg_writer *w, const char *key)
{
    stg_write_char(w, ' ');
    stg_write_text(w, key);
}

static void write_time(stg_writer *w, const char *key, stg_ns ns)
{
    write_key(w, key);
    stg_write_duration(w, ns);
}

const char *stg_growth_name(unsigned growth)
{
    static const char *const names[] = {
        [STG_FIXED] = "fixed",
        [STG_LINEAR] = "linear",
        [STG_EXPONENTIAL] = "exponential",
        [STG_LIST] = "list=",
        [STG_POLYNOMIAL] = "polynomial",
    };

    return growth <= STG_POLYNOMIAL ? names[growth] : NULL;
}

bool stg_growth_is_word(const char *text, size_t length)
{
    const char *name;

    for (unsigned i = 0; (name = stg_growth_name(i)) != NULL; i++) {
        size_t whole = strlen(name);

        if (length >= whole && (i == STG_LIST || length == whole) &&
            strncmp(text, name, whole) == 0)
            return true;
    }
    return false;
}

static void write_growth(stg_writer *w, const stg_backoff *b)
{
    stg_write_text(w, stg_growth_name(b->growth));
    for (uint32_t i = 0; i < b->list_count; i++) {
        if (i > 0)
            stg_write_char(w, ',');
        stg_write_duration(w, b->list[i]);
    }
}

static void write_percent(stg_writer *w, const stg_backoff *b)
{
    if (b->below != b->above) {
        stg_write_char(w, '-');
        stg_write_number(w, b->below);
        stg_write_text(w, "%:");
    }
    stg_write_number(w, b->above);
    stg_write_char(w, '%');
}

void stg_jitter_write(stg_writer *w, const stg_backoff *b)
{
    static const char *const names[] = {
        [STG_JITTER_NONE] = "none",
        [STG_JITTER_FULL] = "full",
        [STG_JITTER_EQUAL] = "equal",
        [STG_JITTER_DECORRELATED] = "decorrelated",
        [STG_JITTER_UP] = "up:",
        [STG_JITTER_POLLY] = "polly",
    };

    if (b->jitter == STG_JITTER_PERCENT) {
        write_percent(w, b);
        return;
    }
    stg_write_text(w, names[b->jitter]);
    if (b->jitter == STG_JITTER_UP)
        stg_write_duration(w, b->up);
}

/* The cap where none is set. */
static stg_ns unset_cap(const stg_policy *p)
{
    return stg_ns_max(stg_backoff_default().cap, stg_cap_least(p));
}

static void write_bases(stg_writer *w, const stg_policy *p)
{
    for (unsigned i = 0; i < STG_BASES; i++) {
        if (p->base_for[i] == 0)
            continue;
        write_time(w, "base-for=", p->base_for[i]);
        stg_write_char(w, ':');
        stg_write_text(w, stg_category_name((stg_category)i));
    }
}

static void write_backoff(stg_writer *w, const stg_policy *p)
{
    const stg_backoff *b = &p->backoff;
    stg_backoff unset = stg_backoff_default();
    // A cap that changes no wait is written only where somebody has set it.
    bool has_cap = stg_backoff_grows(b) || b->jitter == STG_JITTER_DECORRELATED;

    write_growth(w, b);
    if (b->growth == STG_POLYNOMIAL) {
        write_key(w, "power=");
        stg_write_number(w, b->power);
    }
    if (b->offset != 0)
        write_time(w, "offset=", b->offset);
    if (b->counts_from_0)
        write_key(w, "count-from=0");
    if (stg_backoff_has_base(b) || b->base != unset.base)
        write_time(w, "base=", b->base);
    write_bases(w, p);
    if (b->factor != unset.factor) {
        write_key(w, "factor=");
        stg_write_thousandths(w, b->factor);
    }
    if (has_cap || b->cap != unset_cap(p))
        write_time(w, "cap=", b->cap);
    if (b->floor != 0)
        write_time(w, "floor=", b->floor);
    write_key(w, "jitter=");
    stg_jitter_write(w, b);
}

/* "retry=5xx,429", for the rules with this limit that stand at `from` or
 * later. Writes nothing where there is none. */
static bool write_list(stg_writer *w, const stg_policy *p, uint32_t from,
                       uint16_t retries_max, const char *key)
{
    bool is_first = true;

    for (uint32_t i = from; i < p->rule_count; i++) {
        if (p->rules[i].retries_max != retries_max)
            continue;
        if (is_first)
            write_key(w, key);
        else
            stg_write_char(w, ',');
        stg_rule_write(w, &p->rules[i]);
        is_first = false;
    }
    return !is_first;
}

static bool is_first_of_its_limit(const stg_policy *p, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (p->rules[i].retries_max == p->rules[index].retries_max)
            return false;
    return true;
}

/* once= first, then each limit at the place of its first rule. */
static void write_limited(stg_writer *w, const stg_policy *p)
{
    char text[16];

    write_list(w, p, 0, 1, "once=");
    for (uint32_t i = 0; i < p->rule_count; i++) {
        stg_writer key = stg_writer_on(text, sizeof text);
        uint16_t retries_max = p->rules[i].retries_max;

        if (!stg_rule_is_limited(&p->rules[i]) || retries_max == 1 ||
            !is_first_of_its_limit(p, i))
            continue;
        stg_write_text(&key, "at-most=");
        stg_write_number(&key, retries_max);
        stg_write_char(&key, ':');
        write_list(w, p, i, retries_max, text);
    }
}

/* Rules are grouped by their limit. Their order in the struct is lost by that,
 * and has no meaning. */
static void write_rules(stg_writer *w, const stg_policy *p)
{
    const char *key = p->default_rules ? "retry=default," : "retry=";

    if (!write_list(w, p, 0, STG_ALWAYS, key))
        write_key(w, p->default_rules ? "retry=default" : "retry=none");
    write_limited(w, p);
    write_list(w, p, 0, 0, "never=");
}

static void write_rate(stg_writer *w, uint32_t rate)
{
    stg_write_thousandths(w, rate);
    stg_write_text(w, "/s");
}

static void write_aws(stg_writer *w, const stg_budget_options *o)
{
    const uint32_t numbers[] = {o->capacity, o->cost, o->timeout_cost,
                                o->throttle_cost};

    stg_write_text(w, "aws");
    if (stg_budget_options_equal(o, &stg_budget_aws))
        return;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        stg_write_char(w, ':');
        stg_write_number(w, numbers[i]);
    }
}

static void write_share(stg_writer *w, const stg_budget_options *o)
{
    stg_write_text(w, "share:");
    stg_write_thousandths(w, 100 * (uint64_t)o->ratio);
    stg_write_text(w, "%+");
    stg_write_number(w, o->capacity);
}

static void write_budget(stg_writer *w, const stg_budget_options *o)
{
    if (o->kind == STG_BUDGET_NONE)
        return;
    write_key(w, "budget=");
    if (o->kind == STG_BUDGET_AWS) {
        write_aws(w, o);
    } else if (o->kind == STG_BUDGET_TOKENS) {
        stg_write_text(w, "tokens:");
        stg_write_number(w, o->capacity);
        stg_write_char(w, ':');
        write_rate(w, o->rate);
    } else if (o->kind == STG_BUDGET_GRPC) {
        stg_write_text(w, "grpc:");
        stg_write_number(w, o->capacity);
        stg_write_char(w, ':');
        stg_write_thousandths(w, o->ratio);
    } else if (o->kind == STG_BUDGET_SHARE) {
        write_share(w, o);
    } else {
        stg_write_text(w, "ratio:");
        stg_write_thousandths(w, o->ratio);
        if (o->rate != 0) {
            stg_write_char(w, '+');
            write_rate(w, o->rate);
        }
    }
}

static void write_bulkhead(stg_writer *w, const stg_bulkhead_options *o)
{
    if (o->max == 0)
        return;
    write_key(w, "bulkhead=");
    stg_write_number(w, o->max);
    if (o->wait == 0)
        return;
    stg_write_char(w, ':');
    stg_write_duration(w, o->wait);
}

static void write_throttle(stg_writer *w, const stg_throttle_options *o)
{
    if (o->kind == STG_THROTTLE_NONE)
        return;
    write_key(w,
              o->kind == STG_THROTTLE_AWS ? "throttle=aws" : "throttle=sre:");
    if (o->kind == STG_THROTTLE_SRE)
        stg_write_thousandths(w, o->k);
}

static void write_hedge(stg_writer *w, const stg_hedge_options *o)
{
    if (o->max == 0)
        return;
    write_key(w, o->percentile == 0 ? "hedge=" : "hedge=p");
    if (o->percentile == 0)
        stg_write_duration(w, o->delay);
    else
        stg_write_number(w, o->percentile);
    if (o->max == 1)
        return;
    stg_write_char(w, ':');
    stg_write_number(w, o->max);
}

static void write_probes(stg_writer *w, const stg_breaker_options *o)
{
    if (o->probes == 0)
        return;
    write_key(w, "breaker-probes=");
    stg_write_number(w, o->probes_good);
    if (o->probes_good == o->probes)
        return;
    stg_write_char(w, '/');
    stg_write_number(w, o->probes);
}

static void write_breaker(stg_writer *w, const stg_breaker_options *o)
{
    if (o->rule == STG_BREAKER_NONE)
        return;
    write_key(w, "breaker=");
    if (o->rule == STG_BREAKER_ROW) {
        stg_write_number(w, o->failures);
    } else {
        stg_write_number(w, o->percent);
        stg_write_text(w, "%/");
        stg_write_number(w, o->calls);
        stg_write_char(w, '/');
        stg_write_duration(w, o->window);
    }
    stg_write_char(w, ':');
    stg_write_duration(w, o->open);
    if (o->open_max != o->open) {
        stg_write_char(w, '-');
        stg_write_duration(w, o->open_max);
    }
    if (o->connects != 0) {
        write_key(w, "breaker-connect=");
        stg_write_number(w, o->connects);
    }
    write_probes(w, o);
    if (o->slow_percent == 0)
        return;
    write_key(w, "breaker-slow=");
    stg_write_number(w, o->slow_percent);
    stg_write_text(w, "%/");
    stg_write_duration(w, o->slow_after);
}

static void write_attempts(stg_writer *w, uint64_t attempts_max)
{
    write_key(w, "attempts=");
    if (attempts_max == STG_UNLIMITED)
        stg_write_text(w, "unlimited");
    else
        stg_write_number(w, attempts_max);
}

const char *stg_retry_after_name(stg_retry_after how)
{
    static const char *const names[] = {
        [STG_RETRY_AFTER_FLOOR] = "floor",
        [STG_RETRY_AFTER_EXACT] = "exact",
        [STG_RETRY_AFTER_IGNORE] = "ignore",
    };

    return names[how];
}

size_t stg_policy_write(const stg_policy *p, char *text, size_t size)
{
    stg_writer w = stg_writer_on(text, size);
    stg_policy unset = stg_policy_default();

    write_backoff(&w, p);
    write_attempts(&w, p->attempts_max);
    write_time(&w, "deadline=", p->deadline);
    if (p->attempt_timeout != unset.attempt_timeout)
        write_time(&w, "attempt-timeout=", p->attempt_timeout);
    if (p->retry_after_max != unset.retry_after_max)
        write_time(&w, "retry-after-max=", p->retry_after_max);
    if (p->retry_after != STG_RETRY_AFTER_FLOOR) {
        write_key(&w, "retry-after=");
        stg_write_text(&w, stg_retry_after_name(p->retry_after));
    }
    if (p->reset_after != unset.reset_after)
        write_time(&w, "reset-after=", p->reset_after);
    write_rules(&w, p);
    write_budget(&w, &p->budget);
    if (p->budget_waits)
        write_key(&w, "budget-empty=wait");
    if (p->rate != 0) {
        write_key(&w, "rate=");
        write_rate(&w, p->rate);
    }
    write_bulkhead(&w, &p->bulkhead);
    write_throttle(&w, &p->throttle);
    write_hedge(&w, &p->hedge);
    write_breaker(&w, &p->breaker);
    if (p->breaks_retries_only)
        write_key(&w, "breaker-scope=retries");
    if (p->unsafe)
        write_key(&w, "unsafe=yes");
    if (p->nested == STG_NESTED_FULL)
        write_key(&w, "nested=full");
    return w.length;
}

stg_status stg_policy_print(const stg_policy *p, char text[STG_POLICY_TEXT_MAX])
{
    if (text == NULL || stg_policy_check(p, NULL) != STG_OK)
        return STG_INVALID;
    stg_policy_write(p, text, STG_POLICY_TEXT_MAX);
    return STG_OK;
}
