#include "cli/demo/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hub/target.h"

void stg_demo_table_init(demo_table *t, stg_ns now)
{
    const char *kind = getenv("TERM");
    bool is_dumb = kind == NULL || strcmp(kind, "dumb") == 0;

    *t = (demo_table){.terminal = stg_terminal_look(),
                      .is_live = isatty(STDOUT_FILENO) != 0 && !is_dumb,
                      .began_at = now};
}

static void end_line(demo_table *t)
{
    fputs(t->is_live ? "\033[K\n" : "\n", stdout);
    t->lines++;
}

static const char *time_of(stg_ns ns, char text[STG_NS_TEXT_MAX])
{
    return ns == 0 ? "-" : stg_ns_text(ns, text);
}

static void draw_row(demo_table *t, const stg_target_view *v)
{
    char p50[STG_NS_TEXT_MAX], p99[STG_NS_TEXT_MAX];
    bool is_well = v->lane.state == STG_LANE_LIVE;
    stg_style style = is_well ? STG_STYLE_GOOD : STG_STYLE_WARN;

    printf("%-10s %s%-8s%s %9" PRIu64 " %7" PRIu64 " %6" PRIu64 " %5" PRIu64
           " %6" PRIu32 " %7s %7s %s",
           v->name, stg_terminal_style(&t->terminal, style),
           stg_target_state_name((unsigned)v->lane.state),
           stg_terminal_style(&t->terminal, STG_STYLE_PLAIN), v->lane.delivered,
           v->lane.retries, v->lane.parked, v->lane.dead, v->lane.in_flight,
           time_of(v->p50, p50), time_of(v->p99, p99),
           v->fault[0] != '\0' ? v->fault : "-");
    end_line(t);
}

void stg_demo_table_draw(demo_table *t, const stg_hub *hub, const char *title)
{
    stg_target_view v;

    // What does not fit is cut: a line that wraps would be two.
    if (t->is_live)
        fputs("\033[?7l", stdout);
    if (t->is_live && t->lines > 0)
        printf("\033[%dA", t->lines);
    t->lines = 0;
    fputs(title, stdout);
    end_line(t);
    end_line(t);
    printf("%s%-10s %-8s %9s %7s %6s %5s %6s %7s %7s %s%s",
           stg_terminal_style(&t->terminal, STG_STYLE_FAINT), "target", "state",
           "delivered", "retried", "parked", "dead", "flying", "p50", "p99",
           "last fault", stg_terminal_style(&t->terminal, STG_STYLE_PLAIN));
    end_line(t);
    for (size_t i = 0; stg_hub_look_target(hub, i, &v) == STG_OK; i++)
        draw_row(t, &v);
    if (t->is_live)
        fputs("\033[?7h", stdout);
    fflush(stdout);
}
