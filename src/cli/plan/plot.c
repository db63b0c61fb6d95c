/* Where waits may fall: a bar a retry, from the least to the most, with the
 * mean marked, all on one axis. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/plan/axis.h"
#include "cli/plan/plan.h"
#include "cli/time_text.h"

enum { LABEL = 20 };

typedef struct pens {
    const char *start, *line, *mean, *end, *alone, *base, *tick;
} pens;

static const pens ascii = {"[", "=", "o", "]", "o", "-", "+"};
static const pens utf8 = {"├", "─", "●", "┤", "●", "─", "┴"};

static void include(const stg_plan *plan, stg_axis *axis)
{
    for (uint32_t i = 0; i < stg_plan_listed(plan); i++) {
        const stg_wait_range *wait = &plan->forecast.waits[i].wait;

        stg_axis_include(axis, wait->least);
        stg_axis_include(axis, wait->mean);
        stg_axis_include(axis, wait->most);
    }
}

static void show_bar(const stg_axis *axis, const stg_wait_range *wait,
                     const pens *pen)
{
    int start = stg_axis_place(axis, wait->least);
    int mean = stg_axis_place(axis, wait->mean);
    int end = stg_axis_place(axis, wait->most);

    printf("%*s", start, "");
    for (int x = start; x <= end; x++) {
        const char *mark = x == start ? pen->start
                           : x == end ? pen->end
                                      : pen->line;

        fputs(start == end ? pen->alone : x == mean ? pen->mean : mark, stdout);
    }
    putchar('\n');
}

static void show_axis(const stg_axis *axis, const pens *pen,
                      const stg_terminal *t)
{
    char labels[STG_AXIS_WIDTH_MAX + 1];
    bool ticks[STG_AXIS_WIDTH_MAX] = {false};

    stg_axis_mark(axis, ticks, labels);
    printf("%s%*s", stg_terminal_style(t, STG_STYLE_FAINT), LABEL, "");
    for (int x = 0; x < axis->width; x++)
        fputs(ticks[x] ? pen->tick : pen->base, stdout);
    printf("\n%*s%s%s\n", LABEL, "", labels,
           stg_terminal_style(t, STG_STYLE_PLAIN));
}

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

static void show_plot(const stg_plan *plan, const stg_axis *axis,
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

static void show_legend(const stg_axis *axis, const pens *pen,
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
    stg_axis axis = {.width = t->width - LABEL};
    bool is_one = plans->count == 1;

    for (size_t i = 0; i < plans->count; i++)
        include(&plans->at[i], &axis);
    stg_axis_settle(&axis);
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
