/* Several policies side by side, as many as the terminal is wide for; the others
 * follow below. Rows that say the same as the row before them in every column are
 * left out, and faults that get the same answer everywhere share a row. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan/internal.h"
#include "cli/terminal.h"

enum {
    LABEL = 16,
    NUMBER = 7,
    CELL = 20,
    HALF = CELL / 2,
    ANSWER = 6,
    ANSWERS_MAX = 8
};

typedef struct columns {
    const stg_plan *at;
    size_t count;
    size_t first;     /* the number of at[0], from 1 */
    uint32_t clients; /* 0: not said */
} columns;

/* Right-aligned in its column; *gap, the blanks before it, is printed only in
 * front of something. */
static void put_cell(int *gap, int width, const char *text)
{
    *gap += width;
    if (text[0] == '\0')
        return;
    printf("%*s", *gap, text);
    *gap = 0;
}

/* Cut to the column, in which blanks are blanks and none is the last. */
static void write_name(char name[CELL - 1], size_t number, const char *text)
{
    snprintf(name, CELL - 1, "%zu %s", number, text);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '\t')
            *c = ' ';
    for (size_t end = strlen(name); end > 0 && name[end - 1] == ' '; end--)
        name[end - 1] = '\0';
}

static void show_names(const columns *c, const stg_terminal *t)
{
    char name[CELL - 1];

    printf("%s%*s", stg_terminal_style(t, STG_STYLE_BOLD), LABEL, "");
    for (size_t i = 0; i < c->count; i++) {
        write_name(name, c->first + i, c->at[i].name);
        printf("%*s", CELL, name);
    }
    printf("%s\n", stg_terminal_style(t, STG_STYLE_PLAIN));
}

static void show_header(const columns *c, const stg_terminal *t)
{
    show_names(c, t);
    printf("%s%7s%*s", stg_terminal_style(t, STG_STYLE_FAINT), "retry",
           LABEL - NUMBER, "");
    for (size_t i = 0; i < c->count; i++)
        printf("%*s%*s", HALF, "window", HALF, "mean");
    printf("%s\n", stg_terminal_style(t, STG_STYLE_PLAIN));
}

static void show_wait(const stg_plan *plan, uint32_t i, int *gap)
{
    const stg_forecast *f = &plan->forecast;
    char window[STG_NS_TEXT_MAX], mean[STG_NS_TEXT_MAX], about[HALF];
    uint32_t made = stg_plan_made(plan);

    if (i >= made) {
        put_cell(gap, CELL,
                 i == made && made < f->wait_count ? "past the deadline" : "");
    } else {
        snprintf(about, sizeof about, "%s%s",
                 f->waits[i].is_mean_estimate ? "~" : "",
                 stg_time_text(f->waits[i].wait.mean, mean));
        put_cell(gap, HALF, stg_time_text(f->waits[i].window, window));
        put_cell(gap, HALF, about);
    }
}

/* Whether row i says in each column what the row before it said. */
static bool is_repetition(const columns *c, uint32_t i)
{
    for (size_t k = 0; k < c->count; k++) {
        const stg_forecast_wait *row = &c->at[k].forecast.waits[i];
        uint32_t made = stg_plan_made(&c->at[k]);

        if (i > made)
            continue;
        if (i == made || row[0].window != row[-1].window ||
            row[0].wait.mean != row[-1].wait.mean)
            return false;
    }
    return true;
}

/* Blanks are gathered in `gap`, so that no line ends in them. */
static void show_row(const columns *c, uint32_t i)
{
    int gap = LABEL - NUMBER;

    printf("%*" PRIu32, NUMBER, i + 1);
    for (size_t k = 0; k < c->count; k++)
        show_wait(&c->at[k], i, &gap);
    putchar('\n');
}

/* Tells whether retries follow those that are listed. Retries that the deadline
 * forbids do not count. */
static bool has_more(const stg_plan *plan)
{
    const stg_forecast *f = &plan->forecast;

    return f->is_truncated && stg_plan_made(plan) == f->wait_count;
}

static void show_more(const columns *c)
{
    char text[32];
    int gap = LABEL - NUMBER;
    bool is_any = false;

    for (size_t i = 0; i < c->count; i++)
        is_any |= has_more(&c->at[i]);
    if (!is_any)
        return;
    printf("%*s", NUMBER, "...");
    for (size_t i = 0; i < c->count; i++) {
        const stg_forecast *f = &c->at[i].forecast;

        if (f->retries_max == STG_UNLIMITED)
            snprintf(text, sizeof text, "and so on");
        else
            snprintf(text, sizeof text, "%" PRIu64 " more",
                     f->retries_max - f->wait_count);
        put_cell(&gap, CELL, has_more(&c->at[i]) ? text : "");
    }
    putchar('\n');
}

/* A column's own rows end with the first wait past its deadline. Runs of equal
 * rows are shown by the first and the last, if they are longer than FEW. */
static void show_waits(const columns *c)
{
    enum { FEW = 3 };
    uint32_t rows = 0;

    for (size_t k = 0; k < c->count; k++) {
        const stg_forecast *f = &c->at[k].forecast;
        uint32_t made = stg_plan_made(&c->at[k]);
        uint32_t own = made + (made < f->wait_count ? 1 : 0);

        rows = own > rows ? own : rows;
    }
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t last = i;

        show_row(c, i);
        while (last + 1 < rows && is_repetition(c, last + 1))
            last++;
        if (last - i < FEW)
            continue;
        printf("%*s%*sthe same\n", NUMBER, "...", LABEL - NUMBER, "");
        show_row(c, last);
        i = last;
    }
    show_more(c);
}

typedef const char *total_fn(const stg_plan *plan, char *words);

static const char *write_number(uint64_t number, char *words)
{
    if (number == STG_UNLIMITED)
        return "no limit";
    snprintf(words, STG_PLAN_WORDS_MAX, "%" PRIu64, number);
    return words;
}

static const char *attempts(const stg_plan *plan, char *words)
{
    return write_number(plan->policy.attempts_max, words);
}

static const char *write_time(stg_ns ns, char *words)
{
    return ns == STG_NEVER ? "no bound" : stg_time_text(ns, words);
}

/* Never more than the deadline: waits that would pass it are not made. */
static const char *mean_waits(const stg_plan *plan, char *words)
{
    const stg_forecast *f = &plan->forecast;
    stg_ns mean =
        f->retries_max == STG_UNLIMITED ? STG_NEVER : f->last.total.mean;

    return write_time(stg_ns_min(mean, plan->policy.deadline), words);
}

/* Waits only: worst_time() has the attempts as well. */
static const char *worst_waits(const stg_plan *plan, char *words)
{
    return write_time(
        stg_ns_min(plan->forecast.wait_total_most, plan->policy.deadline),
        words);
}

static const char *worst_time(const stg_plan *plan, char *words)
{
    return write_time(plan->forecast.time_total_most, words);
}

static const char *worst_load(const stg_plan *plan, char *words)
{
    return write_number(plan->forecast.requests_max, words);
}

static const char *sustained_load(const stg_plan *plan, char *words)
{
    if (plan->forecast.sustained == STG_UNLIMITED)
        return "no limit";
    return stg_plan_thousandths(plan->forecast.sustained, words);
}

/* "it depends": a ratio follows the traffic, so that there is no number. */
static const char *budget_rate(const stg_plan *plan, char *words)
{
    bool is_none = plan->policy.budget.kind == STG_BUDGET_NONE;

    if (plan->forecast.per_second == STG_UNLIMITED)
        return is_none ? "no limit" : "it depends";
    return stg_plan_thousandths(plan->forecast.per_second, words);
}

/* The most that the policy lets a server ask for. */
static const char *server_delay(const stg_plan *plan, char *words)
{
    stg_ns most = plan->policy.retry_after_max;

    return stg_plan_is_deaf(&plan->policy) ? "ignored"
                                           : stg_time_text(most, words);
}

static const char *warnings(const stg_plan *plan, char *words)
{
    if (plan->lint.count == 0)
        return "none";
    return write_number(plan->lint.count, words);
}

static void show_label(const char *label, const stg_terminal *t)
{
    printf("  %s%-*s%s", stg_terminal_style(t, STG_STYLE_BOLD), LABEL - 2,
           label, stg_terminal_style(t, STG_STYLE_PLAIN));
}

/* "back in 100 ms" needs --clients, as it is a number of them. */
static void show_totals(const columns *c, const stg_terminal *t)
{
    static const struct {
        const char *label;
        total_fn *write;
    } rows[] = {
        {"attempts", attempts},       {"mean waits", mean_waits},
        {"worst waits", worst_waits}, {"worst time", worst_time},
        {"worst load", worst_load},   {"sustained load", sustained_load},
        {"retries/s", budget_rate},   {"Retry-After", server_delay},
        {"warnings", warnings},
    };
    char words[STG_PLAN_WORDS_MAX];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        show_label(rows[i].label, t);
        for (size_t k = 0; k < c->count; k++)
            printf("%*s", CELL, rows[i].write(&c->at[k], words));
        putchar('\n');
    }
    if (c->clients == 0)
        return;
    show_label("back in 100 ms", t);
    for (size_t k = 0; k < c->count; k++)
        printf("%*s", CELL,
               stg_plan_thousandths(stg_plan_arrivals(&c->at[k], c->clients),
                                    words));
    putchar('\n');
}

/* Rows for all codes that any of the policies names. */
static void list_all(stg_answers *all, const columns *c)
{
    stg_policy codes = stg_policy_default();

    for (size_t k = 0; k < c->count; k++) {
        const stg_policy *p = &c->at[k].policy;

        for (uint32_t i = 0; i < p->rule_count; i++)
            if (p->rules[i].link == STG_LINK_CODE &&
                codes.rule_count < STG_RULES_MAX)
                codes.rules[codes.rule_count++] = p->rules[i];
    }
    stg_answers_list(all, &codes, false);
}

/* What each column says of one row. */
typedef struct answers {
    const columns *columns;
    uint16_t retries_max[ANSWERS_MAX];
} answers;

/* A policy of one attempt retries nothing, whatever its rules say. */
static void ask(const columns *c, const stg_forecast_answer *row, answers *a)
{
    int limited;

    a->columns = c;
    for (size_t k = 0; k < c->count; k++) {
        const stg_plan *plan = &c->at[k];
        const stg_policy *p = &plan->policy;

        if (plan->is_of_target && stg_answers_is_uncounted(p, row))
            a->retries_max[k] = STG_PLAN_WAITED;
        else
            a->retries_max[k] =
                p->attempts_max == 1 ? 0 : stg_answers_ask(p, row, &limited);
    }
}

static bool is_equal(const answers *a, const answers *b)
{
    for (size_t k = 0; k < a->columns->count; k++)
        if (a->retries_max[k] != b->retries_max[k])
            return false;
    return true;
}

static uint16_t most_of(const answers *a)
{
    uint16_t most = 0;

    for (size_t k = 0; k < a->columns->count; k++)
        if (a->retries_max[k] > most)
            most = a->retries_max[k];
    return most;
}

/* The callback of stg_answers_write(): whether the row belongs to the faults of
 * one line. */
static bool gets(const stg_forecast_answer *row, const void *ctx)
{
    const answers *asked = ctx;
    answers own;

    ask(asked->columns, row, &own);
    return is_equal(&own, asked) && stg_plan_is_shown(row, most_of(&own));
}

/* A row that no fault would be shown in is left out. */
static void show_answers_row(const stg_answers *all, const answers *a,
                             const stg_terminal *t)
{
    char names[2048] = "", label[ANSWER * ANSWERS_MAX + 16];
    size_t length = 0;

    if (stg_answers_write(all, gets, a, names, sizeof names) == 0)
        return;
    for (size_t k = 0; k < a->columns->count; k++) {
        uint16_t n = a->retries_max[k];
        char cell[ANSWER];

        snprintf(cell, sizeof cell, "%u", n);
        length += (size_t)snprintf(label + length, sizeof label - length, "%*s",
                                   ANSWER,
                                   n == STG_ALWAYS        ? "yes"
                                   : n == STG_PLAN_WAITED ? "waits"
                                   : n == 0               ? "no"
                                   : n == 1               ? "once"
                                                          : cell);
    }
    snprintf(label + length, sizeof label - length, "   ");
    stg_terminal_wrap(t, (int)length + 3, label, STG_STYLE_PLAIN, names);
}

static bool is_any_of_target(const columns *c)
{
    for (size_t k = 0; k < c->count; k++)
        if (c->at[k].is_of_target)
            return true;
    return false;
}

/* Faults that get the same answers stand together. */
static void show_answers(const columns *c, const stg_terminal *t)
{
    stg_answers all;

    list_all(&all, c);
    printf("\n%s", stg_terminal_style(t, STG_STYLE_FAINT));
    for (size_t k = 0; k < c->count; k++)
        printf("%*zu", ANSWER, c->first + k);
    printf("   retried: yes, once or so often at most, %s%s\n",
           is_any_of_target(c) ? "no; or waited for" : "or no",
           stg_terminal_style(t, STG_STYLE_PLAIN));
    for (size_t i = 0; i < all.count; i++) {
        answers own, before;
        size_t j = 0;

        ask(c, &all.rows[i], &own);
        while (j < i) {
            ask(c, &all.rows[j], &before);
            if (is_equal(&own, &before) &&
                stg_plan_is_shown(&all.rows[j], most_of(&before)))
                break;
            j++;
        }
        if (j == i)
            show_answers_row(&all, &own, t);
    }
}

/* One column at least, however narrow the terminal is, and as many as an
 * answers row can hold at most. */
void stg_plan_show_columns(const stg_plans *plans, const stg_terminal *t)
{
    size_t fit = (size_t)(t->width - LABEL) / CELL;

    fit = fit < 1 ? 1 : fit > ANSWERS_MAX ? ANSWERS_MAX : fit;
    for (size_t i = 0; i < plans->count; i++)
        stg_plan_show_text(&plans->at[i], i + 1, t);
    for (size_t i = 0; i < plans->count; i += fit) {
        columns c = {&plans->at[i], plans->count - i, i + 1, plans->clients};

        c.count = c.count < fit ? c.count : fit;
        putchar('\n');
        show_header(&c, t);
        show_waits(&c);
        putchar('\n');
        show_totals(&c, t);
        show_answers(&c, t);
    }
    stg_plan_show_warnings(plans, t);
}
