/* Known mistakes in policies: each check looks at one, and adds a warning with
 * the change that mends it. A check is sure of what it says: a policy that is
 * unusual but right for somebody gets no warning. The fix is a text to paste,
 * and was tried: tests/cli/plan_lint.py applies each and checks again. */
#include "plan/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "core/backoff_draw.h"
#include "core/writer.h"

enum { MANY_ATTEMPTS = 10 };

/* Never NULL: when the list is full the warning goes to the spare place behind
 * it, and is not counted. */
stg_warning *stg_lint_add(stg_lint *lint, const char *code, const char *format,
                          ...)
{
    stg_warning *w = &lint->warnings[lint->count];
    va_list args;

    if (lint->count < STG_WARNINGS_MAX)
        lint->count++;
    w->code = code;
    va_start(args, format);
    vsnprintf(w->text, sizeof w->text, format, args);
    va_end(args);
    return w;
}

void stg_lint_fix(stg_warning *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(w->fix, sizeof w->fix, format, args);
    va_end(args);
}

/* The unit that people would give such a duration in. */
static stg_ns unit_of(stg_ns ns)
{
    static const stg_ns units[] = {STG_DAY, STG_HOUR, STG_MIN,
                                   STG_S,   STG_MS,   STG_US};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (ns >= 2 * units[i])
            return units[i];
    return 1;
}

/* For the texts of fixes: 31234 ms becomes 32 s. */
static stg_ns round_up(stg_ns ns)
{
    stg_ns unit = unit_of(ns);

    return stg_ns_mul(ns / unit + (ns % unit != 0), unit);
}

/* Attempts alone do not make a retry: some rule must allow one. */
static bool is_retried(const stg_lint_facts *facts)
{
    return facts->policy->attempts_max > 1 &&
           stg_answers_retries_max(facts->answers) > 0;
}

/* The longest wait that there can be. */
static stg_ns longest_wait(const stg_lint_facts *facts)
{
    uint64_t last = stg_ns_min(facts->policy->attempts_max - 1, UINT32_MAX);

    return stg_forecast_row(facts->forecast, facts->policy, last).wait.most;
}

/* Every retry starts at once: a base of 0, or a list of zeros. */
static bool is_without_waits(const stg_forecast *f)
{
    return f->waits[f->wait_count - 1].total.most == 0;
}

/* With at most two attempts there is one retry, which may as well be exact: a
 * second failure together is the end. One client shares its moments with
 * nobody. */
static void check_jitter(stg_lint *lint, const stg_lint_facts *facts)
{
    const stg_backoff *b = &facts->policy->backoff;
    stg_warning *w;

    if (b->jitter != STG_JITTER_NONE || facts->forecast->attempts_max <= 2 ||
        facts->clients == 1 || is_without_waits(facts->forecast))
        return;
    if (facts->clients == 0)
        w = stg_lint_add(lint, "no-jitter",
                         "clients that fail together come back together, every "
                         "time");
    else
        w = stg_lint_add(lint, "no-jitter",
                         "%" PRIu32
                         " clients that fail together come back in "
                         "the same moment, every time",
                         facts->clients);
    stg_lint_fix(w, "%s", stg_backoff_grows(b) ? "jitter=full" : "jitter=50%");
}

/* A cap is asked for only where waits grow beyond a day: below that it is a
 * matter of taste. The cap of the fix is 30 s, or the base where that is more. */
static void check_waits(stg_lint *lint, const stg_lint_facts *facts)
{
    const stg_policy *p = facts->policy;
    const stg_backoff *b = &p->backoff;
    stg_ns longest = longest_wait(facts);
    char wait[STG_NS_TEXT_MAX], cap[STG_DURATION_TEXT_MAX];
    stg_warning *w;

    if (is_without_waits(facts->forecast)) {
        w = stg_lint_add(lint, "no-wait",
                         "every retry starts at once, while what made the "
                         "attempt fail still lasts");
        stg_lint_fix(w, "%s",
                     b->growth == STG_LIST ? "list=1s,5s" : "base=200ms");
    }
    if (p->deadline == STG_NEVER && b->cap == STG_NEVER && longest > STG_DAY &&
        p->attempts_max != STG_UNLIMITED &&
        (stg_backoff_grows(b) || b->jitter == STG_JITTER_DECORRELATED)) {
        w = stg_lint_add(
            lint, "unbounded", "with neither cap nor deadline waits grow %s%s",
            longest == STG_NEVER ? "without end" : "up to ",
            longest == STG_NEVER ? "" : stg_time_text(longest, wait));
        stg_lint_fix(
            w, "cap=%s",
            stg_duration_text(stg_ns_max(30 * STG_S, round_up(b->base)), cap));
    }
}

/* Decorrelated jitter draws from three times the wait before, whatever the
 * growth is. */
static void warn_decorrelated(stg_lint *lint, const stg_backoff *b,
                              const char *factor)
{
    static const char *const ignored[] = {"fixed", "linear", NULL, "the list",
                                          "polynomial"};
    static const char *const fixes[] = {"jitter=50%", "jitter=full", "factor=2",
                                        "jitter=50%", "jitter=full"};
    bool is_factor = b->growth == STG_EXPONENTIAL;
    stg_warning *w =
        stg_lint_add(lint, "decorrelated-ignores-growth",
                     "%s plays no part: decorrelated jitter draws each wait "
                     "from the one before",
                     is_factor ? factor : ignored[b->growth]);

    stg_lint_fix(w, "%s", fixes[b->growth]);
}

/* The n-th wait of a list comes before retry n. */
static void check_list(stg_lint *lint, const stg_lint_facts *facts)
{
    uint32_t waits = facts->policy->backoff.list_count;
    uint64_t retries = facts->policy->attempts_max - 1;

    if (facts->policy->backoff.growth != STG_LIST || waits <= retries)
        return;
    stg_lint_fix(
        stg_lint_add(lint, "no-effect",
                     "the list has %" PRIu32 " waits, and attempts=%" PRIu64
                     " has room for %" PRIu64 ": the rest is never used",
                     waits, facts->policy->attempts_max, retries),
        "attempts=%" PRIu32, waits + 1);
}

/* A setting that plays no part was meant to: by default factor is 2, so that only
 * another one tells that somebody set it. */
static void check_growth(stg_lint *lint, const stg_lint_facts *facts)
{
    const stg_backoff *b = &facts->policy->backoff;
    bool is_exponential = b->growth == STG_EXPONENTIAL;
    bool is_usual = b->factor == stg_backoff_default().factor;
    char factor[24], wait[STG_NS_TEXT_MAX];
    stg_writer writer = stg_writer_on(factor, sizeof factor);

    stg_write_text(&writer, "factor=");
    stg_write_thousandths(&writer, b->factor);
    if (b->jitter == STG_JITTER_DECORRELATED) {
        if (!is_exponential || !is_usual)
            warn_decorrelated(lint, b, factor);
    } else if (is_exponential && b->factor == 1000) {
        stg_lint_fix(stg_lint_add(lint, "factor-one",
                                  "factor=1 does not grow: every window is %s",
                                  stg_time_text(b->base, wait)),
                     "factor=2");
    } else if (!is_exponential && !is_usual) {
        stg_lint_fix(stg_lint_add(lint, "no-effect",
                                  "%s is for exponential alone", factor),
                     "factor=2, or exponential");
    }
}

/* Each bound that is missing can be given by a deadline; where there is one
 * nothing here can go on for ever. */
static void check_bounds(stg_lint *lint, const stg_lint_facts *facts)
{
    const stg_policy *p = facts->policy;
    bool waits = p->budget_waits && p->budget.kind != STG_BUDGET_NONE;

    if (p->deadline != STG_NEVER)
        return;
    if (is_retried(facts) && p->attempts_max == STG_UNLIMITED)
        stg_lint_fix(stg_lint_add(lint, "unbounded",
                                  "neither attempts nor time have a bound: an "
                                  "operation may go on for ever"),
                     "deadline=10m");
    if (p->attempt_timeout == STG_NEVER)
        stg_lint_fix(stg_lint_add(lint, "attempt-timeout-missing",
                                  "an attempt that hangs hangs for ever: there "
                                  "is neither a timeout nor a deadline"),
                     "attempt-timeout=10s");
    if (is_retried(facts) && waits && !facts->is_in_hub)
        stg_lint_fix(stg_lint_add(lint, "budget-wait-unbounded",
                                  "the wait for an empty budget has no bound: "
                                  "there is no deadline"),
                     "deadline=10m");
}

/* Retries that the deadline never lets begin, or seldom: by the shortest waits,
 * or by the mean ones. */
static void check_deadline(stg_lint *lint, const stg_lint_facts *facts)
{
    const stg_policy *p = facts->policy;
    const stg_forecast *f = facts->forecast;
    uint64_t allowed =
        stg_ns_min(f->retries_max, stg_answers_retries_max(facts->answers));
    bool is_never = f->retries_in_time < allowed;
    uint64_t made = is_never ? f->retries_in_time : f->retries_usual;
    stg_ns needed = round_up(stg_ns_add(f->wait_total_most, 1));
    char waits[STG_NS_TEXT_MAX], deadline[STG_NS_TEXT_MAX],
        whole[STG_DURATION_TEXT_MAX];
    stg_forecast_wait next;
    stg_warning *w;

    // Without a limit of attempts the deadline is meant to end the operation.
    if (p->deadline == STG_NEVER || f->retries_max == STG_UNLIMITED ||
        made >= allowed)
        return;
    next = stg_forecast_row(f, p, made + 1);
    w = stg_lint_add(
        lint, "deadline-short",
        "retry %" PRIu64 " of %" PRIu64
        " is %s made: the waits "
        "up to it take %s %s, the deadline is %s",
        made + 1, allowed, is_never ? "never" : "seldom",
        stg_time_text(is_never ? next.total.least : next.total.mean, waits),
        is_never ? "or more" : "on average",
        stg_time_text(p->deadline, deadline));
    if (needed <= STG_BACKOFF_MAX)
        stg_lint_fix(w, "deadline=%s, or attempts=%" PRIu64,
                     stg_duration_text(needed, whole), made + 1);
    else
        stg_lint_fix(w, "attempts=%" PRIu64, made + 1);
}

/* Times that can never come, because an attempt ends before. Half of the
 * deadline is not a mistake, all of it is: no time is left for a retry. */
static void check_timeouts(stg_lint *lint, const stg_lint_facts *facts)
{
    const stg_policy *p = facts->policy;
    stg_ns share = p->deadline / stg_ns_min(p->attempts_max, MANY_ATTEMPTS);
    stg_ns longest = stg_ns_min(p->attempt_timeout, p->deadline);
    char found[STG_NS_TEXT_MAX], fix[STG_DURATION_TEXT_MAX];
    stg_warning *w;

    if (p->attempt_timeout != STG_NEVER && p->attempt_timeout >= p->deadline &&
        is_retried(facts)) {
        w = stg_lint_add(lint, "timeout-over-deadline",
                         "an attempt may take all of the deadline (%s): one "
                         "that times out is never repeated",
                         stg_time_text(p->deadline, found));
        stg_lint_fix(w, "attempt-timeout=%s",
                     stg_duration_text(
                         stg_ns_max(share - share % unit_of(share), 1), fix));
    }
    if (p->reset_after != STG_NEVER && p->reset_after > longest) {
        w = stg_lint_add(lint, "reset-after-unreachable",
                         "no attempt runs that long: each ends after %s at "
                         "most",
                         stg_time_text(longest, found));
        stg_lint_fix(w, "reset-after=none");
    }
    if (p->hedge.max != 0 && p->hedge.delay >= longest) {
        w = stg_lint_add(lint, "hedge-unreachable",
                         "no attempt is under way for that long: each ends "
                         "after %s at most",
                         stg_time_text(longest, found));
        stg_lint_fix(w, "hedge=%s",
                     stg_duration_text(stg_ns_max(longest / 4, STG_MS), fix));
    }
}

/* 5 s is the limit, because servers that shed load commonly ask for 30 s or
 * more. */
static void check_server_delay(stg_lint *lint, const stg_lint_facts *facts)
{
    stg_ns most = facts->policy->retry_after_max;
    char text[STG_NS_TEXT_MAX];

    bool is_ignored = facts->policy->retry_after == STG_RETRY_AFTER_IGNORE;
    bool is_exact = facts->policy->retry_after == STG_RETRY_AFTER_EXACT;

    if (is_exact && most > 0 && facts->clients != 1)
        stg_lint_fix(stg_lint_add(lint, "retry-after-exact",
                                  "clients that a server tells the same moment "
                                  "(Retry-After) come back in it, together"),
                     "retry-after=floor");
    if (most == 0 || is_ignored)
        stg_lint_fix(stg_lint_add(lint, "retry-after-ignored",
                                  "a server that says when to come back "
                                  "(Retry-After) is not heard"),
                     is_ignored ? "retry-after=floor" : "retry-after-max=1h");
    else if (most < 5 * STG_S)
        stg_lint_fix(stg_lint_add(lint, "retry-after-short",
                                  "a server that asks for 30 s (Retry-After) "
                                  "is asked again after %s",
                                  stg_time_text(most, text)),
                     "retry-after-max=1h");
}

/* A fault of category connect counts for both. */
static void check_breaker(stg_lint *lint, const stg_lint_facts *facts)
{
    const stg_breaker_options *o = &facts->policy->breaker;

    if (o->rule == STG_BREAKER_ROW && o->connects >= o->failures)
        stg_lint_fix(stg_lint_add(lint, "no-effect",
                                  "breaker-connect=%" PRIu32
                                  " plays no part: the breaker opens after "
                                  "%" PRIu32 " failure%s of any kind",
                                  o->connects, o->failures,
                                  stg_plural(o->failures)),
                     "breaker-connect=none");
}

/* An attempt that is ended for its time has failed. */
static void check_slow(stg_lint *lint, const stg_lint_facts *facts)
{
    const stg_policy *p = facts->policy;
    stg_ns longest = stg_ns_min(p->attempt_timeout, p->deadline);
    char slow[STG_DURATION_TEXT_MAX], found[STG_NS_TEXT_MAX];

    if (p->breaker.slow_percent == 0 || p->breaker.slow_after < longest)
        return;
    stg_lint_fix(stg_lint_add(lint, "no-effect",
                              "breaker-slow=%" PRIu32
                              "%%/%s finds no answer slow: each attempt ends "
                              "after %s at most",
                              p->breaker.slow_percent,
                              stg_duration_text(p->breaker.slow_after, slow),
                              stg_time_text(longest, found)),
                 "breaker-slow=none");
}

/* The number is 2 or more. */
static const char *write_requests(const char *before, uint64_t number,
                                  char text[64])
{
    if (number == STG_UNLIMITED)
        return "requests without end";
    snprintf(text, 64, "%s%" PRIu64 " requests", before, number);
    return text;
}

/* What one operation costs the remote while all fails (retry amplification). A
 * budget or a breaker bounds it, whatever the number of attempts. */
static void check_load(stg_lint *lint, const stg_lint_facts *facts)
{
    const stg_policy *p = facts->policy;
    const stg_forecast *f = facts->forecast;
    uint64_t usual =
        stg_ns_min(stg_ns_add(f->retries_usual, 1), f->attempts_max);
    char requests[64];

    if (usual > MANY_ATTEMPTS && p->budget.kind == STG_BUDGET_NONE &&
        p->breaker.rule == STG_BREAKER_NONE)
        stg_lint_fix(stg_lint_add(lint, "no-budget",
                                  "while all fails, an operation usually sends "
                                  "%s in place of one",
                                  write_requests("", usual, requests)),
                     "budget=ratio:0.2+1/s");
    if (p->hedge.max != 0 && p->budget.kind == STG_BUDGET_NONE)
        stg_lint_fix(
            stg_lint_add(
                lint, "hedge-without-budget",
                "a remote that is slow gets %s in place of "
                "one, which makes it slower",
                write_requests("up to ", 1 + (uint64_t)p->hedge.max, requests)),
            "budget=ratio:0.1+1/s");
    if (p->nested == STG_NESTED_FULL && f->attempts_max > 1)
        stg_lint_fix(
            stg_lint_add(lint, "nested-full",
                         "inside another operation attempts multiply: "
                         "%s for each attempt of that",
                         write_requests("up to ", f->attempts_max, requests)),
            "nested=once");
    if (p->unsafe)
        stg_lint_fix(stg_lint_add(lint, "unsafe",
                                  "a POST or PATCH is repeated without a key: "
                                  "what it asks for may be done twice"),
                     "unsafe=no, and send an idempotency key");
}

/* What is about retries is left out of a policy that has none. */
void stg_lint_check(stg_lint *lint, const stg_lint_facts *facts)
{
    lint->count = 0;
    if (is_retried(facts)) {
        check_jitter(lint, facts);
        check_waits(lint, facts);
        check_growth(lint, facts);
        check_list(lint, facts);
    }
    check_bounds(lint, facts);
    check_deadline(lint, facts);
    check_timeouts(lint, facts);
    check_breaker(lint, facts);
    check_slow(lint, facts);
    if (is_retried(facts)) {
        check_server_delay(lint, facts);
        check_load(lint, facts);
    }
    stg_lint_check_rules(lint, facts);
}
