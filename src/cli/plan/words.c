/* The sentences of `stagger plan`, shared by its table, its columns and its JSON:
 * warnings, and a budget, a rate, a breaker and the like in a few words. They
 * explain what the setting does, since its text is shown beside them. */
#include <inttypes.h>
#include <stdio.h>

#include <stagger/policies.h>

#include "cli/plan/internal.h"
#include "core/rule.h"
#include "core/writer.h"

void stg_plan_show_text(const stg_plan *plan, size_t number,
                        const stg_terminal *t)
{
    char label[STG_NAME_MAX + 24] = "";
    int length = 0;

    if (number > 0)
        length = snprintf(label, sizeof label, "%zu ", number);
    if (plan->is_named)
        snprintf(label + length, sizeof label - (size_t)length,
                 "%s: ", plan->name);
    stg_terminal_wrap(t, number > 0 || plan->is_named ? 4 : 0, label,
                      STG_STYLE_BOLD, plan->text);
}

void stg_plan_show_warning(const stg_warning *w, const char *before,
                           const stg_terminal *t)
{
    char label[64], fix[sizeof w->fix + 8];

    snprintf(label, sizeof label, "%s%s: ", before, w->code);
    stg_terminal_wrap(t, 6, label, STG_STYLE_WARN, w->text);
    snprintf(fix, sizeof fix, "%s", w->fix);
    stg_terminal_wrap(t, 11, "      fix: ", STG_STYLE_GOOD, fix);
}

/* With several policies each warning begins with the number of its own. */
void stg_plan_show_warnings(const stg_plans *plans, const stg_terminal *t)
{
    char before[24] = "  ";
    size_t count = 0;

    for (size_t i = 0; i < plans->count; i++)
        count += plans->at[i].lint.count;
    if (count == 0)
        return;
    printf("\n%s%s%s\n", stg_terminal_style(t, STG_STYLE_BOLD),
           count == 1 ? "Warning" : "Warnings",
           stg_terminal_style(t, STG_STYLE_PLAIN));
    for (size_t i = 0; i < plans->count; i++) {
        if (plans->count > 1)
            snprintf(before, sizeof before, "  %zu ", i + 1);
        for (size_t j = 0; j < plans->at[i].lint.count; j++)
            stg_plan_show_warning(&plans->at[i].lint.warnings[j], before, t);
    }
}

/* How many of the listed waits begin before the deadline in the shortest
 * case. */
uint32_t stg_plan_made(const stg_plan *plan)
{
    const stg_forecast *f = &plan->forecast;
    uint32_t made = 0;

    while (made < f->wait_count && !f->waits[made].is_past_deadline)
        made++;
    return made;
}

/* Means that are estimates are the same within 2 %. */
static bool is_same(const stg_forecast_wait *a, const stg_forecast_wait *b)
{
    return a->window == b->window && a->wait.least == b->wait.least &&
           a->wait.most == b->wait.most &&
           stg_ns_sub(a->wait.mean, b->wait.mean) <= b->wait.mean / 50 &&
           stg_ns_sub(b->wait.mean, a->wait.mean) <= b->wait.mean / 50;
}

/* Waits that repeat at the end are one row, if they are more than FEW. */
uint32_t stg_plan_listed(const stg_plan *plan)
{
    enum { FEW = 3 };
    const stg_forecast_wait *rows = plan->forecast.waits;
    uint32_t made = stg_plan_made(plan), from = made;

    while (from > 0 && is_same(&rows[from - 1], &rows[made - 1]))
        from--;
    return made - from > FEW ? from + 1 : made;
}

/* Faults that the library makes itself (category own) are shown only where they
 * are retried. */
bool stg_plan_is_shown(const stg_forecast_answer *row, uint16_t retries_max)
{
    stg_category category = stg_fault_about(row->outcome.fault)->category;

    return category != STG_CATEGORY_OWN || retries_max > 0;
}

const char *stg_plan_thousandths(uint64_t number, char *words)
{
    stg_writer w = stg_writer_on(words, STG_PLAN_WORDS_MAX);

    stg_write_thousandths(&w, number);
    return words;
}

/* May return a literal and leave words as it was. */
const char *stg_plan_answer(uint16_t retries_max, char *words)
{
    if (retries_max == STG_PLAN_WAITED)
        return "waited for";
    if (retries_max == 0 || retries_max == STG_ALWAYS)
        return retries_max == 0 ? "given up" : "retried";
    snprintf(words, STG_PLAN_WORDS_MAX, "at most %u", retries_max);
    return words;
}

/* Thousandths of one thing, or of several. */
static void write_counted(stg_writer *w, uint64_t thousandths, const char *one,
                          const char *several)
{
    stg_write_thousandths(w, thousandths);
    stg_write_char(w, ' ');
    stg_write_text(w, thousandths == 1000 ? one : several);
}

static void write_tokens(stg_writer *w, const stg_budget_options *o)
{
    write_counted(w, 1000 * (uint64_t)o->capacity, "retry", "retries");
    stg_write_text(w, " at once, then ");
    stg_write_thousandths(w, o->rate);
    stg_write_text(w, " a second");
}

static void write_ratio(stg_writer *w, const stg_budget_options *o)
{
    stg_write_text(w, "at most ");
    if (o->ratio > 0) {
        write_counted(w, o->ratio, "retry", "retries");
        stg_write_text(w, " for each first attempt of the last 10");
        stg_write_char(w, STG_HELD);
        stg_write_char(w, 's');
    }
    if (o->ratio > 0 && o->rate > 0)
        stg_write_text(w, ", and ");
    if (o->rate > 0 && o->ratio > 0)
        stg_write_thousandths(w, o->rate);
    else if (o->rate > 0)
        write_counted(w, o->rate, "retry", "retries");
    if (o->rate > 0)
        stg_write_text(w, " a second");
}

static void write_aws(stg_writer *w, const stg_budget_options *o)
{
    write_counted(w, 1000 * (uint64_t)o->capacity, "token", "tokens");
    stg_write_text(w, ": a retry costs ");
    stg_write_number(w, o->cost);
    if (o->timeout_cost != o->cost) {
        stg_write_text(w, ", after a timeout ");
        stg_write_number(w, o->timeout_cost);
    }
    if (o->throttle_cost != o->cost) {
        stg_write_text(w, ", after a 429 ");
        stg_write_number(w, o->throttle_cost);
    }
    stg_write_text(w, "; successes give them back");
}

/* Retries stop at half of the tokens (gRPC's retryThrottling). */
static void write_grpc(stg_writer *w, const stg_budget_options *o)
{
    write_counted(w, 1000 * (uint64_t)o->capacity, "token", "tokens");
    stg_write_text(w, ": a failure takes 1, a success gives ");
    stg_write_thousandths(w, o->ratio);
    stg_write_text(w, "; no retry with ");
    stg_write_thousandths(w, 500 * (uint64_t)o->capacity);
    stg_write_text(w, " or fewer");
}

/* The ratio is stored in thousandths; 100 times that is percent in
 * thousandths. */
static void write_share(stg_writer *w, const stg_budget_options *o)
{
    stg_write_text(w, "retries at once, and waiting, at most ");
    if (o->ratio > 0) {
        stg_write_thousandths(w, 100 * (uint64_t)o->ratio);
        stg_write_char(w, STG_HELD);
        stg_write_text(w, "% of the attempts under way");
    }
    stg_write_text(w, o->ratio > 0 ? ", or " : "");
    stg_write_number(w, o->capacity);
}

/* The last words matter most: an empty budget makes a retry wait, or ends the
 * operation. */
const char *stg_plan_budget(const stg_policy *p, char *words)
{
    stg_writer w = stg_writer_on(words, STG_PLAN_WORDS_MAX);

    switch (p->budget.kind) {
    case STG_BUDGET_NONE:
        stg_write_text(&w,
                       "none: nothing bounds the retries of all operations "
                       "together");
        return words;
    case STG_BUDGET_TOKENS:
        write_tokens(&w, &p->budget);
        break;
    case STG_BUDGET_RATIO:
        write_ratio(&w, &p->budget);
        break;
    case STG_BUDGET_AWS:
        write_aws(&w, &p->budget);
        break;
    case STG_BUDGET_GRPC:
        write_grpc(&w, &p->budget);
        break;
    case STG_BUDGET_SHARE:
        write_share(&w, &p->budget);
        break;
    }
    stg_write_text(&w, p->budget_waits ? "; what finds it empty waits"
                                       : "; what finds it empty is given up");
    return words;
}

/* Two settings have this effect: a maximum of 0, and retry-after=ignore. */
bool stg_plan_is_deaf(const stg_policy *p)
{
    return p->retry_after_max == 0 || p->retry_after == STG_RETRY_AFTER_IGNORE;
}

const char *stg_plan_bases(const stg_policy *p, char *words)
{
    stg_writer w = stg_writer_on(words, STG_PLAN_WORDS_MAX);
    const char *between = "as if the base were ";
    char time[STG_NS_TEXT_MAX];

    words[0] = '\0';
    for (unsigned i = 0; i < STG_BASES; i++) {
        if (p->base_for[i] == 0)
            continue;
        stg_write_text(&w, between);
        stg_write_text(&w, stg_terminal_time(p->base_for[i], time));
        stg_write_text(&w, " after a fault of category ");
        stg_write_text(&w, stg_category_name((stg_category)i));
        between = ", ";
    }
    return words;
}

const char *stg_plan_rate(const stg_policy *p, char *words)
{
    stg_writer w = stg_writer_on(words, STG_PLAN_WORDS_MAX);

    stg_write_thousandths(&w, p->rate);
    stg_write_text(&w,
                   " attempts a second of all operations together, first "
                   "ones and retries; the others wait");
    return words;
}

/* A wait of 0 means that who finds no place is given up at once. */
const char *stg_plan_bulkhead(const stg_policy *p, char *words)
{
    const stg_bulkhead_options *o = &p->bulkhead;
    stg_writer w = stg_writer_on(words, STG_PLAN_WORDS_MAX);
    char time[STG_NS_TEXT_MAX];

    write_counted(&w, 1000 * (uint64_t)o->max, "attempt", "attempts");
    stg_write_text(&w, " at once of all operations together; the others ");
    if (o->wait == 0) {
        stg_write_text(&w, "are given up");
        return words;
    }
    stg_write_text(&w, "wait, and are given up after ");
    stg_write_text(&w, stg_terminal_time(o->wait, time));
    return words;
}

const char *stg_plan_throttle(const stg_policy *p, char *words)
{
    stg_writer w = stg_writer_on(words, STG_PLAN_WORDS_MAX);

    if (p->throttle.kind == STG_THROTTLE_AWS)
        return "after a 429 at seven tenths of the rate, then more again; the "
               "others wait";
    stg_write_text(&w, "at most about ");
    stg_write_thousandths(&w, p->throttle.k);
    stg_write_text(&w,
                   " requests for each one that was accepted in the last "
                   "two minutes; the others are given up");
    return words;
}

/* The synchronous loop cannot send a second attempt beside the first, hence the
 * last words. */
const char *stg_plan_hedge(const stg_policy *p, char *words)
{
    const stg_hedge_options *o = &p->hedge;
    stg_writer w = stg_writer_on(words, STG_PLAN_WORDS_MAX);
    char time[STG_NS_TEXT_MAX];

    if (o->max > 1) {
        stg_write_text(&w, "up to ");
        stg_write_number(&w, o->max);
        stg_write_text(&w, " further attempts, each after ");
    } else {
        stg_write_text(&w, "a further attempt after ");
    }
    if (o->percentile == 0) {
        stg_write_text(&w, stg_terminal_time(o->delay, time));
    } else {
        stg_write_text(&w, "what ");
        stg_write_number(&w, o->percentile);
        stg_write_text(&w, " % of the latest answers took");
    }
    stg_write_text(&w, ", the first good answer wins; ");
    stg_write_text(&w, p->budget.kind == STG_BUDGET_NONE
                           ? "no budget pays"
                           : "paid from the budget");
    stg_write_text(&w, "; only on event loops (libuv, or your own)");
    return words;
}

static void write_slow(stg_writer *w, const stg_breaker_options *o)
{
    char time[STG_NS_TEXT_MAX];

    if (o->slow_percent == 0)
        return;
    stg_write_text(w, ", or when ");
    stg_write_number(w, o->slow_percent);
    stg_write_text(w, "% of them took ");
    stg_write_text(w, stg_terminal_time(o->slow_after, time));
    stg_write_text(w, " or longer");
}

static void write_connects(stg_writer *w, const stg_breaker_options *o)
{
    if (o->connects == 0)
        return;
    stg_write_text(w, o->slow_percent == 0 ? ", or " : ", or after ");
    stg_write_number(w, o->connects);
    stg_write_text(w, o->connects == 1 ? " fault of category connect"
                                       : " of category connect");
}

/* 0 is the breaker's own single probe, which needs no words. */
static void write_probes(stg_writer *w, const stg_breaker_options *o)
{
    if (o->probes == 0)
        return;
    stg_write_text(w, "; then up to ");
    stg_write_number(w, o->probes);
    stg_write_text(w, " probes at once, and ");
    stg_write_number(w, o->probes_good);
    stg_write_text(w, " good ones close it");
}

/* What an open breaker does depends on who uses the policy: in a hub messages
 * wait, elsewhere the rules for circuit-open decide. */
const char *stg_plan_breaker(const stg_plan *plan, char *words)
{
    const stg_breaker_options *o = &plan->policy.breaker;
    stg_outcome open = stg_failed(STG_FAULT_CIRCUIT_OPEN);
    stg_writer w = stg_writer_on(words, STG_PLAN_WORDS_MAX);
    char time[STG_NS_TEXT_MAX];

    if (o->rule == STG_BREAKER_NONE)
        return "none";
    stg_write_text(&w, "opens after ");
    if (o->rule == STG_BREAKER_ROW) {
        stg_write_number(&w, o->failures);
        stg_write_text(&w,
                       o->failures == 1 ? " failure" : " failures in a row");
    } else {
        stg_write_number(&w, o->percent);
        stg_write_text(&w, "% failures among ");
        write_counted(&w, 1000 * (uint64_t)o->calls, "call", "calls");
        stg_write_text(&w, " or more in ");
        stg_write_text(&w, stg_terminal_time(o->window, time));
    }
    write_slow(&w, o);
    write_connects(&w, o);
    stg_write_text(&w, ", for ");
    stg_write_text(&w, stg_terminal_time(o->open, time));
    if (o->open_max > o->open) {
        stg_write_text(&w, ", doubling up to ");
        stg_write_text(&w, stg_terminal_time(o->open_max, time));
    }
    write_probes(&w, o);
    if (plan->policy.breaks_retries_only)
        stg_write_text(&w, "; it stops retries only");
    if (plan->is_of_target)
        stg_write_text(&w, "; while it is open, messages wait");
    else if (stg_policy_retries(&plan->policy, &open, NULL) > 0)
        stg_write_text(&w, "; retries wait for it to close");
    else if (plan->policy.breaks_retries_only)
        stg_write_text(&w, ", which are given up at once while it is open");
    else
        stg_write_text(
            &w,
            "; while it is open, calls are given up at once (in a hub, messages wait)");
    return words;
}
