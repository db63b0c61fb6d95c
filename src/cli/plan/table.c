/* One policy at length: a table of its waits, then the facts: attempts, time,
 * load, what a server may ask for, budgets and breakers, and what happens on
 * each fault. A fact that has no bound says why. */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/plan/internal.h"
#include "cli/say.h"
#include "cli/terminal.h"
#include "plan/plan.h"

/* What all columns take, and those without the least and mean of all waits. */
enum { LABEL = 14, NUMBER = 7, CELL = 10, WIDE = 78, MIDDLE = 58 };

static void show_cell(const char *before, stg_ns ns)
{
    char time[STG_NS_TEXT_MAX], cell[STG_NS_TEXT_MAX + 4];

    snprintf(cell, sizeof cell, "%s%s", before, stg_time_text(ns, time));
    printf("%*s", CELL, cell);
}

/* A retry beyond ten million borrows from the cell behind it. */
static void show_first(uint64_t retry, stg_ns ns)
{
    char time[STG_NS_TEXT_MAX];
    int used = printf("%*" PRIu64 " ", NUMBER, retry);

    printf("%*s", NUMBER + CELL - used, stg_time_text(ns, time));
}

/* With long waits the deadline comes before it. */
static bool may_be_late(const stg_plan *plan, const stg_forecast_wait *row)
{
    return plan->policy.deadline != STG_NEVER &&
           row->total.most >= plan->policy.deadline;
}

/* Marks in the rows that need a note below the table. */
typedef struct notes {
    bool is_late;
    bool is_estimate;
} notes;

static void show_row(const stg_plan *plan, const stg_forecast_wait *row,
                     notes *n, const stg_terminal *t)
{
    const char *about = row->is_mean_estimate ? "~" : "";
    bool is_late = may_be_late(plan, row);

    n->is_late |= is_late;
    n->is_estimate |= row->is_mean_estimate;
    show_first(row->retry, t->width >= MIDDLE ? row->window : row->wait.least);
    if (t->width >= MIDDLE)
        show_cell("", row->wait.least);
    show_cell(about, row->wait.mean);
    show_cell("", row->wait.most);
    if (t->width >= WIDE) {
        show_cell("", row->total.least);
        show_cell(about, row->total.mean);
    }
    if (t->width >= MIDDLE)
        show_cell("", row->total.most);
    puts(is_late ? "*" : "");
}

/* Three forms by width; show_row() has the same three. */
static void show_header(const stg_terminal *t)
{
    const char *faint = stg_terminal_style(t, STG_STYLE_FAINT);
    const char *plain = stg_terminal_style(t, STG_STYLE_PLAIN);

    if (t->width >= WIDE) {
        printf("%s%17s%30s%30s%s\n", faint, "", "------------- wait ---------",
               "--------- all waits --------", plain);
        printf("%s%7s%10s%10s%10s%10s%10s%10s%10s%s\n", faint, "retry",
               "window", "least", "mean", "most", "least", "mean", "most",
               plain);
    } else if (t->width >= MIDDLE) {
        printf("%s%7s%10s%10s%10s%10s%10s%s\n", faint, "retry", "window",
               "least", "mean", "most", "all most", plain);
    } else {
        printf("%s%7s%10s%10s%10s%s\n", faint, "retry", "least", "mean", "most",
               plain);
    }
}

/* `first` is past the deadline even with the shortest waits. */
static void show_never(const stg_plan *plan, uint64_t first)
{
    char deadline[STG_NS_TEXT_MAX];

    printf("%7" PRIu64 "%s never made: past the deadline of %s\n", first,
           first < plan->forecast.retries_max ? " and later" : "",
           stg_time_text(plan->policy.deadline, deadline));
}

/* What follows the rows that were listed: the last one, and why there are no
 * more. */
static void show_end(const stg_plan *plan, uint32_t listed, notes *n,
                     const stg_terminal *t)
{
    const stg_forecast *f = &plan->forecast;
    uint64_t last = stg_ns_min(f->retries_max, f->retries_in_time);
    stg_forecast_wait row;

    if (last == STG_UNLIMITED) {
        printf("    ...   and so on, %s\n", plan->policy.deadline == STG_NEVER
                                                ? "without end"
                                                : "until the deadline");
    } else if (last > listed) {
        row = stg_forecast_row(f, &plan->policy, last);
        if (last > listed + 1)
            puts(listed < stg_plan_made(plan) ? "    ...   the same"
                                              : "    ...");
        show_row(plan, &row, n, t);
    }
    if (last < f->retries_max)
        show_never(plan, last + 1);
}

/* 65536 is DRAWS of forecast.c. */
static void show_notes(const stg_plan *plan, const notes *n)
{
    char deadline[STG_NS_TEXT_MAX];

    if (n->is_late)
        printf("      * not made if it comes to that: the deadline is %s\n",
               stg_time_text(plan->policy.deadline, deadline));
    if (n->is_estimate)
        puts("      ~ the mean of 65536 draws");
}

static void show_waits(const stg_plan *plan, const stg_terminal *t)
{
    uint32_t listed = stg_plan_listed(plan);
    notes n = {0};

    if (plan->forecast.retries_max == 0)
        return;
    putchar('\n');
    show_header(t);
    for (uint32_t i = 0; i < listed; i++)
        show_row(plan, &plan->forecast.waits[i], &n, t);
    show_end(plan, listed, &n, t);
    show_notes(plan, &n);
}

static void show_fact(const char *label, const char *text,
                      const stg_terminal *t)
{
    char padded[LABEL + 3];

    snprintf(padded, sizeof padded, "  %-*s", LABEL, label);
    stg_terminal_wrap(t, LABEL + 2, padded, STG_STYLE_BOLD, text);
}

/* What keeps an operation from all the attempts that it may make. */
static const char *find_limit(const stg_plan *plan)
{
    if (plan->forecast.attempts_max == 1 + plan->forecast.retries_in_time)
        return "the deadline leaves time for";
    return "the limits on faults leave";
}

static void show_attempts(const stg_plan *plan, const stg_terminal *t)
{
    uint64_t allowed = plan->policy.attempts_max;
    uint64_t most = plan->forecast.attempts_max;
    char text[STG_PLAN_WORDS_MAX], at_most[32] = "no limit";

    if (allowed != STG_UNLIMITED)
        snprintf(at_most, sizeof at_most, "at most %" PRIu64, allowed);
    if (allowed == 1)
        snprintf(text, sizeof text, "1, and no retry");
    else if (most == 1)
        snprintf(text, sizeof text, "1: no fault is retried in time");
    else if (most < allowed)
        snprintf(text, sizeof text, "%s, but %s %" PRIu64, at_most,
                 find_limit(plan), most);
    else
        snprintf(text, sizeof text, "%s", at_most);
    show_fact("attempts", text, t);
}

/* Why there is no bound on time; of several reasons the first in this order is
 * named. It must know all that find_time() in forecast.c has no bound for. */
static const char *find_unbounded(const stg_plan *plan)
{
    const stg_policy *p = &plan->policy;

    if (p->reset_after != STG_NEVER &&
        p->reset_after <= stg_ns_min(p->attempt_timeout, p->deadline))
        return "an attempt that ran for reset-after starts all anew";
    if (p->attempt_timeout == STG_NEVER)
        return "an attempt may take any time";
    if (plan->forecast.attempts_max == STG_UNLIMITED)
        return "there may be any number of attempts";
    if (p->budget_waits && p->budget.kind != STG_BUDGET_NONE)
        return "the budget is waited for";
    if (p->rate != 0)
        return "the rate is waited for";
    if (p->throttle.kind == STG_THROTTLE_AWS)
        return "the throttle is waited for";
    return "the waits have no bound";
}

/* The longest from the first attempt to the last failure; what bounds it is
 * named. */
static void show_time(const stg_plan *plan, const stg_terminal *t)
{
    const stg_policy *p = &plan->policy;
    const stg_forecast *f = &plan->forecast;
    char text[STG_PLAN_WORDS_MAX], all[STG_NS_TEXT_MAX], each[STG_NS_TEXT_MAX],
        waits[STG_NS_TEXT_MAX];
    stg_ns attempts;

    stg_terminal_time(f->time_total_most, all);
    if (f->time_total_most == STG_NEVER) {
        snprintf(text, sizeof text, "no bound: %s", find_unbounded(plan));
    } else if (f->time_total_most == p->deadline) {
        snprintf(text, sizeof text, "%s, the deadline%s", all,
                 p->attempt_timeout == STG_NEVER
                     ? "; an attempt may take what is left of it"
                     : "");
    } else if (f->requests_max == 1) {
        snprintf(text, sizeof text, "%s, the timeout of the attempt", all);
    } else {
        attempts = stg_ns_mul(stg_forecast_round(p), f->attempts_max);
        snprintf(text, sizeof text,
                 "%s: %" PRIu64 " attempt%s of %s%s, waits of %s", all,
                 f->attempts_max, stg_plural(f->attempts_max),
                 stg_terminal_time(stg_forecast_round(p), each),
                 p->hedge.max == 0 ? "" : " with hedges",
                 stg_terminal_time(f->time_total_most - attempts, waits));
    }
    show_fact("worst time", text, t);
}

/* The worst case is one operation that fails all the time. In the long run a
 * budget may allow less, which is named only where it does. */
static void show_load(const stg_plan *plan, const stg_terminal *t)
{
    const stg_forecast *f = &plan->forecast;
    char text[2 * STG_PLAN_WORDS_MAX], number[STG_PLAN_WORDS_MAX];
    int length;

    if (f->requests_max == STG_UNLIMITED)
        length = snprintf(text, sizeof text,
                          "requests without limit while all fails");
    else
        length = snprintf(text, sizeof text,
                          "up to %" PRIu64 " requests for one while all fails",
                          f->requests_max);
    if (f->sustained < stg_ns_mul(f->requests_max, 1000))
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "; in the long run %s for one",
                           stg_plan_thousandths(f->sustained, number));
    if (plan->policy.budget.kind == STG_BUDGET_RATIO &&
        plan->policy.budget.rate > 0)
        snprintf(text + length, sizeof text - (size_t)length,
                 ", and %s a second besides",
                 stg_plan_thousandths(plan->policy.budget.rate, number));
    else if (f->per_second != STG_UNLIMITED)
        snprintf(text + length, sizeof text - (size_t)length,
                 "; in the long run retries at %s/s",
                 stg_plan_thousandths(f->per_second, number));
    show_fact("worst load", text, t);
}

/* The times above are the policy's own: what a server asks for comes on top. */
static void show_server_delay(const stg_plan *plan, const stg_terminal *t)
{
    const stg_policy *p = &plan->policy;
    char text[STG_PLAN_WORDS_MAX], most[STG_NS_TEXT_MAX];

    stg_terminal_time(p->retry_after_max, most);
    if (stg_plan_is_deaf(p))
        snprintf(text, sizeof text, "ignored");
    else if (p->retry_after == STG_RETRY_AFTER_EXACT)
        snprintf(text, sizeof text,
                 "is the wait, up to %s, without jitter and also where the "
                 "policy waits for longer",
                 most);
    else if (p->retry_after_max >= p->deadline)
        snprintf(text, sizeof text,
                 "followed; one past the deadline ends the operation at once");
    else
        snprintf(text, sizeof text,
                 "followed up to %s, which the numbers above leave out", most);
    show_fact("Retry-After", text, t);
}

static void show_arrivals(const stg_plan *plan, uint32_t clients,
                          const stg_terminal *t)
{
    char text[STG_PLAN_WORDS_MAX + 160], number[STG_PLAN_WORDS_MAX];
    uint64_t arrivals = stg_plan_arrivals(plan, clients);

    if (clients == 0 || plan->forecast.wait_count == 0)
        return;
    if (arrivals == 1000 * (uint64_t)clients)
        snprintf(text, sizeof text,
                 "%" PRIu32 " that fail together: all come back within 100%cms",
                 clients, STG_HELD);
    else
        snprintf(text, sizeof text,
                 "%" PRIu32
                 " that fail together: about %s of them in each "
                 "100%cms of retry 1, on average",
                 clients, stg_plan_thousandths(arrivals, number), STG_HELD);
    show_fact("clients", text, t);
}

/* What does not apply to the policy is left out. The breaker always stands
 * there, since its absence matters. */
static void show_facts(const stg_plan *plan, uint32_t clients,
                       const stg_terminal *t)
{
    const stg_policy *p = &plan->policy;
    char text[STG_PLAN_WORDS_MAX], time[STG_NS_TEXT_MAX];

    putchar('\n');
    show_attempts(plan, t);
    if (plan->forecast.attempts_max > 1 && stg_say_jitter(p, text) != NULL)
        show_fact("waits", text, t);
    if (plan->forecast.attempts_max > 1 && *stg_plan_bases(p, text) != '\0')
        show_fact("waits", text, t);
    show_time(plan, t);
    if (plan->forecast.requests_max > 1)
        show_load(plan, t);
    if (plan->forecast.attempts_max > 1) {
        show_server_delay(plan, t);
        show_arrivals(plan, clients, t);
    }
    if (plan->forecast.requests_max > 1)
        show_fact("budget", stg_plan_budget(p, text), t);
    if (p->rate != 0)
        show_fact("rate", stg_plan_rate(p, text), t);
    if (p->bulkhead.max != 0)
        show_fact("bulkhead", stg_plan_bulkhead(p, text), t);
    if (p->throttle.kind != STG_THROTTLE_NONE)
        show_fact("throttle", stg_plan_throttle(p, text), t);
    if (p->hedge.max != 0)
        show_fact("hedge", stg_plan_hedge(p, text), t);
    show_fact("breaker", stg_plan_breaker(plan, text), t);
    if (p->reset_after != STG_NEVER) {
        snprintf(text, sizeof text,
                 "a failure after an attempt of %s or more is a first one",
                 stg_terminal_time(p->reset_after, time));
        show_fact("reset", text, t);
    }
    if (p->unsafe)
        show_fact("unsafe", "POST and PATCH are repeated without a key", t);
    if (p->nested == STG_NESTED_FULL)
        show_fact("nested", "repeats inside other operations, too", t);
}

/* The callback of stg_answers_write(): whether the row gets the answer that is
 * being printed. */
static bool gets(const stg_forecast_answer *row, const void *ctx)
{
    uint16_t asked = *(const uint16_t *)ctx;

    return (row->is_uncounted ? STG_PLAN_WAITED : row->retries_max) == asked &&
           stg_plan_is_shown(row, asked);
}

static void show_answer(const stg_plan *plan, uint16_t retries_max,
                        const stg_terminal *t)
{
    char names[2048] = "", label[STG_PLAN_WORDS_MAX];

    if (stg_answers_write(&plan->answers, gets, &retries_max, names,
                          sizeof names) > 0)
        show_fact(stg_plan_answer(retries_max, label), names, t);
}

/* From always down to never. */
static void show_answers(const stg_plan *plan, const stg_terminal *t)
{
    putchar('\n');
    if (plan->policy.attempts_max == 1) {
        show_answer(plan, STG_PLAN_WAITED, t);
        show_fact("given up",
                  plan->is_of_target ? "everything else, at once"
                                     : "everything, at once",
                  t);
        return;
    }
    show_answer(plan, STG_ALWAYS, t);
    for (uint16_t n = STG_RETRIES_MAX; n > 0; n--)
        show_answer(plan, n, t);
    show_answer(plan, STG_PLAN_WAITED, t);
    show_answer(plan, 0, t);
    if (!stg_exit_rule_stands(&plan->policy))
        show_fact("in run", "exit codes are retried, too, but 126 and 127", t);
}

/* Only the first plan: several are shown in columns. */
void stg_plan_show_table(const stg_plans *plans, const stg_terminal *t)
{
    const stg_plan *plan = &plans->at[0];

    stg_plan_show_text(plan, 0, t);
    show_waits(plan, t);
    show_facts(plan, plans->clients, t);
    show_answers(plan, t);
    stg_plan_show_warnings(plans, t);
}
