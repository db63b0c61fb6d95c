/* Where the waits may fall, drawn over time: a bar for each retry, from the
 * earliest to the latest moment. The axis is linear or logarithmic in steps
 * that people use (1, 2, 5, 10, 15 or 30 of a unit), as many as there is room
 * for. */
#include "cli/plan/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/terminal.h"

/* -- the axis --------------------------------------------------------------- */

enum { COUNTS = 9 };

/* The steps of people: a count of a unit. */
static const struct {
    stg_ns unit;
    unsigned counts[COUNTS];
} scale[] = {
    {1, {1, 2, 5, 10, 20, 50, 100, 200, 500}},
    {STG_US, {1, 2, 5, 10, 20, 50, 100, 200, 500}},
    {STG_MS, {1, 2, 5, 10, 20, 50, 100, 200, 500}},
    {STG_S, {1, 2, 5, 10, 15, 30}},
    {STG_MIN, {1, 2, 5, 10, 15, 30}},
    {STG_HOUR, {1, 2, 3, 6, 12}},
    {STG_DAY, {1, 2, 5, 10, 20, 50, 100, 1000, 10000}},
};

enum { STEPS = COUNTS * sizeof scale / sizeof *scale };

/* 0 where a unit has fewer. */
static stg_ns step_at(size_t i)
{
    return scale[i / COUNTS].unit * scale[i / COUNTS].counts[i % COUNTS];
}

/* The axis of times. It starts from {.width = ...}; widen() makes room for a time,
 * settle() chooses the scale. */
typedef struct axis_scale {
    int width;    /* columns, 20 to AXIS_WIDTH_MAX */
    stg_ns least; /* of those above 0; 0 as long as there is none */
    stg_ns most;
    bool is_log;
} axis_scale;

enum { AXIS_WIDTH_MAX = 1000 };

/* 0 is never the least: a logarithmic axis has a place of its own for it. */
static void widen(axis_scale *axis, stg_ns ns)
{
    if (ns > axis->most)
        axis->most = ns;
    if (ns > 0 && (axis->least == 0 || ns < axis->least))
        axis->least = ns;
}

/* Logarithmic when the least would be in the first 50th of a linear axis. */
static void settle(axis_scale *axis)
{
    enum { LINEAR = 50 }; // on 60 columns the least is still off the edge

    if (axis->most == 0)
        axis->least = axis->most = STG_MS; // all waits are 0
    axis->is_log = axis->most / LINEAR > axis->least;
}

/* log2 in 1 / 65536, of 1 and more: each squaring gives a bit. */
static uint64_t log2_of(uint64_t x)
{
    uint64_t whole = 0, log, mantissa;

    while (x >> whole > 1)
        whole++;
    mantissa = whole > 31 ? x >> (whole - 31) : x << (31 - whole);
    log = whole;
    for (int bit = 0; bit < 16; bit++) {
        mantissa = mantissa * mantissa >> 31;
        log = 2 * log + (mantissa >> 32);
        mantissa >>= mantissa >> 32;
    }
    return log;
}

/* Rounded to the nearest column. Times are shortened to 48 bits first, so that
 * the product with the width fits 64. */
static int column_of(const axis_scale *axis, stg_ns ns)
{
    uint64_t last = (uint64_t)axis->width - 1, start = 0, part, all;

    if (axis->is_log) {
        if (ns < axis->least)
            return 0;
        start = 2; // 0 has a place, and then comes a gap
        part = log2_of(ns) - log2_of(axis->least);
        all = log2_of(axis->most) - log2_of(axis->least);
    } else {
        part = ns;
        all = axis->most;
        for (; all >> 48 != 0; all >>= 1)
            part >>= 1;
    }
    return (int)(start + (part * (last - start) + all / 2) / all);
}

/* Puts the label under its tick, unless others are too near. */
static bool put_label(const axis_scale *axis, int at, stg_ns ns, char *labels)
{
    char text[STG_NS_TEXT_MAX];
    int length = (int)strlen(stg_time_text(ns, text));
    int start = at - length / 2;

    if (start < 0)
        start = 0;
    if (start + length > axis->width)
        start = axis->width - length;
    for (int x = start - 2; x < start + length + 2; x++)
        if (x >= 0 && x < axis->width && labels[x] != ' ')
            return false;
    memcpy(labels + start, text, (size_t)length);
    return true;
}

static void mark(const axis_scale *axis, stg_ns ns, bool *ticks, char *labels)
{
    int at = column_of(axis, ns);

    if (put_label(axis, at, ns, labels))
        ticks[at] = true;
}

/* The step that leaves a label room. */
static stg_ns find_step(const axis_scale *axis)
{
    enum { ROOM = 10 };
    uint64_t labels = (uint64_t)axis->width / ROOM;
    stg_ns step = 1;

    for (size_t i = 0; i < STEPS && axis->most / step > labels; i++)
        if (step_at(i) > 0)
            step = step_at(i);
    return step;
}

/* Units come first, then 10 and 100 of them, then the others. */
static int rank_of(unsigned count)
{
    if (count == 1)
        return 0;
    while (count % 10 == 0)
        count /= 10;
    return count == 1 ? 1 : 2;
}

/* The most important steps go first, because a label that would touch another
 * is left out. */
static void mark_log(const axis_scale *axis, bool *ticks, char *labels)
{
    for (int rank = 0; rank <= 2; rank++)
        for (size_t i = 0; i < STEPS; i++) {
            stg_ns step = step_at(i);

            if (step > 0 && step >= axis->least && step <= axis->most &&
                rank_of(scale[i / COUNTS].counts[i % COUNTS]) == rank)
                mark(axis, step, ticks, labels);
        }
}

/* labels has a byte more than the axis is wide. The label of 0 goes first, so
 * that it is always there. */
static void mark_all(const axis_scale *axis, bool *ticks, char *labels)
{
    stg_ns step = find_step(axis);

    memset(labels, ' ', (size_t)axis->width);
    labels[axis->width] = '\0';
    mark(axis, 0, ticks, labels);
    if (axis->is_log)
        mark_log(axis, ticks, labels);
    else
        for (uint64_t i = 1; i <= axis->most / step; i++)
            mark(axis, i * step, ticks, labels);
    for (int end = axis->width; end > 0 && labels[end - 1] == ' '; end--)
        labels[end - 1] = '\0';
}

/* -- the plot --------------------------------------------------------------- */

enum { LABEL = 20 };

typedef struct pens {
    const char *start, *line, *mean, *end, *alone, *base, *tick;
} pens;

static const pens ascii = {"[", "=", "o", "]", "o", "-", "+"};
static const pens utf8 = {"├", "─", "●", "┤", "●", "─", "┴"};

/* All plots share one axis, so that they can be compared by eye. */
static void include(const stg_plan *plan, axis_scale *axis)
{
    for (uint32_t i = 0; i < stg_plan_listed(plan); i++) {
        const stg_wait_range *wait = &plan->forecast.waits[i].wait;

        widen(axis, wait->least);
        widen(axis, wait->mean);
        widen(axis, wait->most);
    }
}

/* A range of one column is a point. */
static void show_bar(const axis_scale *axis, const stg_wait_range *wait,
                     const pens *pen)
{
    int start = column_of(axis, wait->least);
    int mean = column_of(axis, wait->mean);
    int end = column_of(axis, wait->most);

    printf("%*s", start, "");
    for (int x = start; x <= end; x++) {
        const char *mark = x == start ? pen->start
                           : x == end ? pen->end
                                      : pen->line;

        fputs(start == end ? pen->alone : x == mean ? pen->mean : mark, stdout);
    }
    putchar('\n');
}

static void show_axis(const axis_scale *axis, const pens *pen,
                      const stg_terminal *t)
{
    char labels[AXIS_WIDTH_MAX + 1];
    bool ticks[AXIS_WIDTH_MAX] = {false};

    mark_all(axis, ticks, labels);
    printf("%s%*s", stg_terminal_style(t, STG_STYLE_FAINT), LABEL, "");
    for (int x = 0; x < axis->width; x++)
        fputs(ticks[x] ? pen->tick : pen->base, stdout);
    printf("\n%*s%s%s\n", LABEL, "", labels,
           stg_terminal_style(t, STG_STYLE_PLAIN));
}

/* Prints what the rows leave out: how many more retries there are, and from
 * which one on the deadline forbids them. */
static void show_rest(const stg_plan *plan, uint32_t shown)
{
    const stg_forecast *f = &plan->forecast;
    uint64_t last = stg_ns_min(f->retries_max, f->retries_in_time);
    char deadline[STG_NS_TEXT_MAX];
    bool is_same = shown < stg_plan_made(plan);

    if (last == STG_UNLIMITED)
        puts("    ...  and so on");
    else if (last > shown)
        printf("    ...  %sup to %" PRIu64 "\n", is_same ? "the same " : "",
               last);
    if (last < f->retries_max)
        printf("%7" PRIu64 "  and later never: past the deadline of %s\n",
               last + 1, stg_time_text(plan->policy.deadline, deadline));
}

static void show_plot(const stg_plan *plan, const axis_scale *axis,
                      const pens *pen, const stg_terminal *t)
{
    char window[STG_NS_TEXT_MAX];

    if (plan->forecast.retries_max == 0) {
        puts("  no retry");
        return;
    }
    printf("%s%7s%11s%s\n", stg_terminal_style(t, STG_STYLE_FAINT), "retry",
           "window", stg_terminal_style(t, STG_STYLE_PLAIN));
    for (uint32_t i = 0; i < stg_plan_listed(plan); i++) {
        const stg_forecast_wait *row = &plan->forecast.waits[i];

        printf("%7" PRIu64 "%11s  ", row->retry,
               stg_time_text(row->window, window));
        show_bar(axis, &row->wait, pen);
    }
    show_axis(axis, pen, t);
    show_rest(plan, stg_plan_listed(plan));
}

static void show_legend(const axis_scale *axis, const pens *pen,
                        const stg_terminal *t)
{
    char text[160];

    snprintf(text, sizeof text,
             "A wait falls anywhere in its bar; %s is the mean.%s", pen->mean,
             axis->is_log ? " The axis is logarithmic." : "");
    putchar('\n');
    stg_terminal_wrap(t, 0, "", STG_STYLE_PLAIN, text);
}

void stg_plan_show_plot(const stg_plans *plans, const stg_terminal *t)
{
    const pens *pen = t->is_utf8 ? &utf8 : &ascii;
    axis_scale axis = {.width = t->width - LABEL};
    bool is_one = plans->count == 1;

    for (size_t i = 0; i < plans->count; i++)
        include(&plans->at[i], &axis);
    settle(&axis);
    for (size_t i = 0; i < plans->count; i++) {
        if (i > 0)
            putchar('\n');
        stg_plan_show_text(&plans->at[i], is_one ? 0 : i + 1, t);
        putchar('\n');
        show_plot(&plans->at[i], &axis, pen, t);
    }
    show_legend(&axis, pen, t);
    stg_plan_show_warnings(plans, t);
}
