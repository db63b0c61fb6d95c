/* The output of `stagger sim delivery FILE`: what was simulated, what each target got
 * and when, what alerts would have told, a row for each target, and the course of
 * it as pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart/text_buffer.h"
#include "cli/options.h"
#include "cli/sim/delivery.h"
#include "cli/sim/sim.h"

static const stg_table_column columns[] = {
    {"target", "target", false, 0},
    {"messages", NULL, false, 0},
    {"delivered", "delivered", false, 0},
    {"dead", "dead letters", false, 0},
    {"dead_untried", NULL, false, 0},
    {"waiting", "still waiting", false, 0},
    {"attempts", NULL, false, 0},
    {"attempts_each", "attempts each", false, 1},
    {"delay_p50_ms", "half within", true, 2},
    {"delay_p99_ms", "99 % within", true, 0},
    {"delay_max_ms", "all within", true, 0},
    {"waiting_most", "most waiting", false, 1},
    {"late_ms", NULL, true, 0},
    {"late_until_ms", "late until", true, 1},
    {"breaker_opened", "breaker opened", false, 2},
};

enum {
    COLUMNS = sizeof columns / sizeof *columns,
    FOCUS_MAX = 7,
    ALERTS_SAID = 20,
};

static double ms(stg_ns ns)
{
    return (double)ns / 1e6;
}

static stg_cell delay_cell(const stg_world_scenario_sum *sum, stg_ns delay)
{
    return sum->delivered > 0 ? stg_cell_number(ms(delay))
                              : (stg_cell){.kind = STG_CELL_NONE};
}

static void fill(stg_cell *cells, const char *name,
                 const stg_world_scenario_sum *sum)
{
    const stg_cell none = {.kind = STG_CELL_NONE};
    const stg_cell filled[COLUMNS] = {
        stg_cell_text(name),
        stg_cell_number((double)sum->messages),
        stg_cell_number((double)sum->delivered),
        stg_cell_number((double)sum->dead),
        stg_cell_number((double)(sum->shed + sum->expired)),
        stg_cell_number((double)sum->waiting),
        stg_cell_number((double)sum->starts),
        sum->messages > 0
            ? stg_cell_number((double)sum->starts / (double)sum->messages)
            : none,
        delay_cell(sum, sum->p50),
        delay_cell(sum, sum->p99),
        delay_cell(sum, sum->slowest),
        stg_cell_number((double)sum->waiting_most),
        stg_cell_number(ms(sum->late)),
        sum->late > 0 ? stg_cell_number(ms(sum->late_until)) : none,
        stg_cell_number((double)sum->openings),
    };

    memcpy(cells, filled, sizeof filled);
}

/* -- in words ---------------------------------------------------------------- */

static void say_fault(const stg_world_scenario_fault *f,
                      const stg_world_scenario *s, stg_text_buffer *p)
{
    stg_text_buffer_put(p, strcmp(f->target, "*") == 0 ? "each target"
                                                       : f->target);
    stg_text_buffer_form(p, ": %s", f->answer);
    if (f->is_timed) {
        stg_text_buffer_put(p, " after ");
        stg_text_buffer_put_time(p, ms(f->what.took));
    }
    if (f->share < 100)
        stg_text_buffer_form(p, " for %d %% of the attempts", (int)f->share);
    stg_text_buffer_put(p, " from ");
    stg_text_buffer_put_time(p, ms(f->from));
    stg_text_buffer_put(p, " to ");
    stg_text_buffer_put_time(p, ms(stg_world_scenario_end(s, f)));
}

static void say_setting(const stg_world_scenario *s, stg_text_buffer *p)
{
    stg_text_buffer_put_counted(p, s->rate / 1000.0, " message a second",
                                " messages a second");
    stg_text_buffer_put(p, " of ");
    stg_text_buffer_put_counted(p, (double)s->size, " byte", " bytes");
    stg_text_buffer_put(p, " for ");
    stg_text_buffer_put_time(p, ms(s->load));
    stg_text_buffer_put(p, ", to ");
    stg_text_buffer_put_counted(p, (double)s->target_count,
                                " target, which answers in about ",
                                " targets, which answer in about ");
    stg_text_buffer_put_time(p, ms(s->latency));
    stg_text_buffer_put(p, ".");
    for (size_t i = 0; i < s->fault_count; i++) {
        stg_text_buffer_put(p, i == 0 ? "\n" : "; ");
        say_fault(&s->faults[i], s, p);
    }
    if (s->fault_count > 0)
        stg_text_buffer_put(p, ".");
}

static void say_all(const stg_world_scenario_found *f, stg_text_buffer *p)
{
    const stg_world_scenario_sum *all = &f->result.all;

    stg_text_buffer_put_counted(p, (double)all->delivered, " delivery",
                                " deliveries");
    stg_text_buffer_put(p, " of ");
    stg_text_buffer_put_rounded(p, (double)all->messages);
    if (all->dead == 0)
        stg_text_buffer_put(p, ", no dead letter");
    else
        stg_text_buffer_put(p, ", ");
    if (all->dead > 0)
        stg_text_buffer_put_counted(p, (double)all->dead, " dead letter",
                                    " dead letters");
    if (all->waiting > 0) {
        stg_text_buffer_put(p, ", and ");
        stg_text_buffer_put_rounded(p, (double)all->waiting);
        stg_text_buffer_put(p, " that still wait");
    }
}

/* Of what became a dead letter without an attempt. */
static void say_untried(const stg_world_scenario_sum *sum, stg_text_buffer *p)
{
    if (sum->shed > 0) {
        stg_text_buffer_put(p, " ");
        stg_text_buffer_put_rounded(p, (double)sum->shed);
        stg_text_buffer_put(
            p,
            " became dead letters untried, for the breaker was open for longer "
            "than `shed-after`; a replay sends them (`replay: on-recovery` by "
            "itself, which is not simulated).");
    }
    if (sum->expired > 0) {
        stg_text_buffer_put(p, " ");
        stg_text_buffer_put_rounded(p, (double)sum->expired);
        stg_text_buffer_put(p,
                            " became dead letters untried, for they were older "
                            "than `store.retention`.");
    }
}

/* Targets that had late messages: until when. The others: how long their messages
 * took at most. */
static void say_targets(const stg_world_scenario_found *f, stg_text_buffer *p)
{
    const stg_world_scenario_result *r = &f->result;
    size_t late = 0, said = 0, paused = 0;
    stg_ns slowest = 0;

    for (size_t t = 0; t < f->scenario->target_count; t++) {
        const stg_world_scenario_sum *sum = &r->sums[t];

        if (f->scenario->targets[t].lane.is_paused) {
            stg_text_buffer_form(p, "\n%s is paused: its messages wait.",
                                 f->scenario->targets[t].name);
            paused++;
            continue;
        }
        late += sum->late > 0;
        if (sum->late == 0)
            slowest = stg_ns_max(slowest, sum->slowest);
        if (sum->late == 0 || said++ >= FOCUS_MAX)
            continue;
        stg_text_buffer_form(p, "\n%s had late messages (more than 10 s) for ",
                             f->scenario->targets[t].name);
        stg_text_buffer_put_time(p, ms(sum->late));
        stg_text_buffer_put(p, ", until ");
        stg_text_buffer_put_time(p, ms(sum->late_until));
        stg_text_buffer_put(p, "; at most ");
        stg_text_buffer_put_counted(p, (double)sum->waiting_most,
                                    " message waited.", " messages waited.");
        say_untried(sum, p);
    }
    if (late > FOCUS_MAX)
        stg_text_buffer_form(p, "\n%d more had late messages.",
                             (int)(late - FOCUS_MAX));
    if (late + paused == f->scenario->target_count)
        return;
    stg_text_buffer_put(
        p, late == 0 ? "\nNo target had late messages (more than 10 s): "
                     : "\nNo other target had: ");
    stg_text_buffer_put(p, "each that arrived did so within ");
    stg_text_buffer_put_time(p, ms(slowest));
    stg_text_buffer_put(p, ".");
}

static void say_memory(const stg_world_scenario_found *f, stg_text_buffer *p)
{
    uint64_t most = 0;

    for (size_t i = 0; i < f->result.interval_count; i++)
        most = f->result.held[i] > most ? f->result.held[i] : most;
    stg_text_buffer_put(p, "\nMessages took up to ");
    stg_text_buffer_put_rounded(p, (double)most / 1e6);
    stg_text_buffer_put(p, " MB of memory, of ");
    stg_text_buffer_put_rounded(p, (double)f->scenario->flow.memory_max / 1e6);
    stg_text_buffer_put(p, " MB that they may have.");
}

/* 1:02:03. */
static void put_clock(stg_text_buffer *p, stg_ns at)
{
    int seconds = (int)(at / STG_S % 60), minutes = (int)(at / STG_MIN % 60);

    stg_text_buffer_form(p, minutes < 10 ? "%d:0%d" : "%d:%d",
                         (int)(at / STG_HOUR), minutes);
    stg_text_buffer_form(p, seconds < 10 ? ":0%d" : ":%d", seconds);
}

/* Alerts that are not listed, by target: "and 48 more: leaf3 40, leaf7 8". Of those
 * that were not kept nobody knows the target. */
static void say_more_alerts(const stg_world_scenario_found *f,
                            stg_text_buffer *p)
{
    size_t targets = f->scenario->target_count, more = f->alerts_cut, named = 0;

    if (f->alert_count > ALERTS_SAID)
        more += f->alert_count - ALERTS_SAID;
    if (more == 0)
        return;
    stg_text_buffer_form(p, "\n    and %d more", (int)more);
    for (size_t t = 0; t < targets && f->alerts_cut == 0; t++) {
        const char *name = f->scenario->targets[t].name;
        size_t count = 0;

        for (size_t i = ALERTS_SAID; i < f->alert_count; i++)
            count += strcmp(f->alerts[i].target, name) == 0;
        if (count > 0 && named == FOCUS_MAX) {
            stg_text_buffer_put(p, ", ...");
            return;
        }
        if (count > 0)
            stg_text_buffer_form(p, named++ == 0 ? ": %s %d" : ", %s %d", name,
                                 (int)count);
    }
}

static void say_alerts(const stg_world_scenario_found *f, stg_text_buffer *p)
{
    stg_text_buffer_put(p, f->alert_count == 0
                               ? "\n\nNo alert would have been sent."
                               : "\n\nAlerts would have told, since the "
                                 "beginning:");
    for (size_t i = 0; i < f->alert_count && i < ALERTS_SAID; i++) {
        const stg_world_scenario_alert *a = &f->alerts[i];

        stg_text_buffer_put(p, "\n    ");
        put_clock(p, a->at);
        stg_text_buffer_form(p, "  %s: %s",
                             a->target[0] == '\0' ? "all targets" : a->target,
                             a->text);
    }
    say_more_alerts(f, p);
    if (!f->has_receiver && f->alert_count > 0)
        stg_text_buffer_put(
            p, "\nThe settings have no receiver that would have been told.");
}

static void say_lead(const stg_world_scenario_found *f, stg_text_buffer *p)
{
    say_setting(f->scenario, p);
    if (f->has_filters)
        stg_text_buffer_put(p,
                            "\nFilters (match) are not asked: each message "
                            "is for each target.");
    stg_text_buffer_put(p, "\n\n");
    if (f->result.is_interrupted)
        stg_text_buffer_put(p, "Interrupted: up to then ");
    say_all(f, p);
    stg_text_buffer_put(p, ".");
    say_targets(f, p);
    say_memory(f, p);
    say_alerts(f, p);
}

/* -- the course of it -------------------------------------------------------- */

/* Whose lines are drawn: targets with a fault of their own, or with more than the
 * others to show; and the rest together. */
typedef struct focus {
    size_t targets[FOCUS_MAX];
    size_t count;
    bool has_rest;
} focus;

static bool is_of_interest(const stg_world_scenario_found *f, size_t t)
{
    const stg_world_scenario *s = f->scenario;

    for (size_t i = 0; i < s->fault_count; i++)
        if (strcmp(s->faults[i].target, s->targets[t].name) == 0)
            return true;
    return f->result.sums[t].late > 0 || f->result.sums[t].dead > 0;
}

static focus find_focus(const stg_world_scenario_found *f)
{
    size_t targets = f->scenario->target_count;
    focus found = {.count = 0};

    for (size_t t = 0; t < targets && found.count < FOCUS_MAX; t++)
        if (targets <= FOCUS_MAX || is_of_interest(f, t))
            found.targets[found.count++] = t;
    found.has_rest = found.count < targets;
    return found;
}

static bool is_in(const focus *of, size_t t)
{
    for (size_t k = 0; k < of->count; k++)
        if (of->targets[k] == t)
            return true;
    return false;
}

/* Line k of the focus in interval i; the last one is the rest: sums, and of the
 * slowest the slowest. */
static stg_world_scenario_interval value_of(const stg_world_scenario_found *f,
                                            const focus *of, size_t k, size_t i)
{
    size_t targets = f->scenario->target_count;
    const stg_world_scenario_interval *row = &f->result.intervals[i * targets];
    stg_world_scenario_interval rest = {.starts = 0};

    if (k < of->count)
        return row[of->targets[k]];
    for (size_t t = 0; t < targets; t++) {
        if (is_in(of, t))
            continue;
        rest.starts += row[t].starts;
        rest.delivered += row[t].delivered;
        rest.dead += row[t].dead;
        rest.waiting += row[t].waiting;
        rest.slowest = stg_ns_max(rest.slowest, row[t].slowest);
    }
    return rest;
}

enum { ATTEMPTS, DELIVERED, WAITING, DELAY, PANELS };

/* How many are drawn: not those after the load, when nothing waits any more. */
static size_t count_drawn(const stg_world_scenario_found *f)
{
    const stg_world_scenario_result *r = &f->result;
    size_t targets = f->scenario->target_count, count = r->interval_count;

    for (; count > 1 && (count - 1) * r->interval >= f->scenario->load; count--)
        for (size_t t = 0; t < targets; t++)
            if (r->intervals[(count - 2) * targets + t].waiting > 0)
                return count;
    return count;
}

/* The last interval may be shorter than the others. */
static double seconds_of(const stg_world_scenario_result *r, size_t i)
{
    stg_ns left = stg_ns_sub(r->lasted, i * r->interval);

    return (double)(left < r->interval ? left : r->interval) / STG_S;
}

/* Where nothing came that was delivered there is no delay. */
static double number_of(const stg_world_scenario_found *f, size_t panel,
                        const stg_world_scenario_interval *v, size_t i)
{
    double seconds = seconds_of(&f->result, i);

    switch (panel) {
    case ATTEMPTS:
        return (double)v->starts / seconds;
    case DELIVERED:
        return (double)v->delivered / seconds;
    case WAITING:
        return (double)v->waiting;
    default:
        return v->slowest > 0 ? ms(v->slowest) : NAN;
    }
}

static void draw_line(const stg_world_scenario_found *f, stg_chart_set *charts,
                      const focus *of, size_t k, size_t panel,
                      stg_chart_series *s)
{
    const stg_world_scenario_result *r = &f->result;
    size_t count = count_drawn(f);
    stg_chart_point *points = stg_chart_set_points(charts, s, count);

    s->name = k < of->count ? f->scenario->targets[of->targets[k]].name
                            : "all others";
    s->mark = STG_MARK_LINE;
    s->colour = (unsigned)k;
    s->panel = (unsigned)panel;
    for (size_t i = 0; points != NULL && i < count; i++) {
        stg_world_scenario_interval v = value_of(f, of, k, i);

        points[i] = (stg_chart_point){.x = ms(r->interval) * ((double)i + 0.5),
                                      .y = number_of(f, panel, &v, i)};
    }
}

static void shade(const stg_world_scenario *s, stg_chart_set *charts,
                  stg_chart *chart)
{
    stg_chart_span *spans =
        stg_chart_set_take(charts, (s->fault_count + 1) * sizeof *spans);

    if (spans == NULL)
        return;
    for (size_t i = 0; i < s->fault_count; i++) {
        const stg_world_scenario_fault *f = &s->faults[i];
        stg_text_buffer name = stg_text_buffer_on(charts->memory);

        stg_text_buffer_form(&name, "%s %s", f->target, f->answer);
        spans[i] = (stg_chart_span){.name = stg_chart_set_text(charts, &name),
                                    .from = ms(f->from),
                                    .to = ms(stg_world_scenario_end(s, f))};
        stg_text_buffer_free(&name);
    }
    chart->spans = spans;
    chart->span_count = s->fault_count;
}

static void draw(const stg_world_scenario_found *f, const char *title,
                 stg_chart_set *charts)
{
    static const stg_chart_axis axes[PANELS] = {
        [ATTEMPTS] = {.label = "attempts a second", .is_from_zero = true},
        [DELIVERED] = {.label = "deliveries a second", .is_from_zero = true},
        [WAITING] = {.label = "messages waiting", .is_from_zero = true},
        [DELAY] = {.label = "longest delay of those that came",
                   .is_time = true,
                   .is_from_zero = true}};
    focus of = find_focus(f);
    size_t lines = of.count + of.has_rest;
    stg_chart_draft draft;

    if (!stg_chart_set_add(charts, "delivery-course", PANELS, PANELS * lines,
                           &draft))
        return;
    draft.chart->title = title;
    draft.chart->note =
        of.has_rest ? "Of the others: sums, and the longest delay of any."
                    : NULL;
    draft.chart->x = (stg_chart_axis){
        .label = "time", .is_time = true, .is_from_zero = true};
    for (size_t panel = 0; panel < PANELS; panel++) {
        draft.panels[panel].y = axes[panel];
        for (size_t k = 0; k < lines; k++)
            draw_line(f, charts, &of, k, panel,
                      &draft.series[panel * lines + k]);
    }
    shade(f->scenario, charts, draft.chart);
}

/* -- all of it --------------------------------------------------------------- */

static int write_out(const stg_world_scenario_ask *ask,
                     const stg_world_scenario_found *f, const stg_table *table)
{
    stg_memory memory = stg_sim_memory();
    stg_chart_set charts = stg_chart_set_on(&memory);
    stg_text_buffer lead = stg_text_buffer_on(&memory),
                    title = stg_text_buffer_on(&memory),
                    members = stg_text_buffer_on(&memory);
    int code = STG_EXIT_USAGE;

    say_lead(f, &lead);
    say_all(f, &title);
    if (ask->output.is_json)
        stg_world_scenario_put_json(f, &members);
    if (stg_sim_output_has_pictures(&ask->output))
        draw(f, title.text, &charts);
    if (!lead.is_short && !title.is_short && !members.is_short &&
        !charts.is_short) {
        stg_sim_report report = {.title = title.text,
                                 .lead = lead.text,
                                 .table = table,
                                 .members = members.text,
                                 .charts = &charts,
                                 .is_partial = f->result.is_interrupted};

        code = stg_sim_output_write(&ask->output, ask->who, &report, ask->argc,
                                    ask->argv);
    } else {
        stg_options_complain(ask->who, "out of memory");
    }
    stg_text_buffer_free(&members);
    stg_text_buffer_free(&title);
    stg_text_buffer_free(&lead);
    stg_chart_set_free(&charts);
    return code == 0 && f->result.is_interrupted ? STG_EXIT_INTERRUPTED : code;
}

int stg_world_scenario_show(const stg_world_scenario_ask *ask,
                            const stg_world_scenario_found *f)
{
    size_t targets = f->scenario->target_count, rows = targets + (targets > 1);
    stg_cell *cells = calloc(rows * COLUMNS, sizeof *cells);
    stg_table table = {.columns = columns,
                       .column_count = COLUMNS,
                       .cells = cells,
                       .row_count = rows};
    int code;

    if (cells == NULL) {
        stg_options_complain(ask->who, "out of memory");
        return STG_EXIT_USAGE;
    }
    for (size_t t = 0; t < targets; t++)
        fill(&cells[t * COLUMNS], f->scenario->targets[t].name,
             &f->result.sums[t]);
    if (rows > targets)
        fill(&cells[targets * COLUMNS], "all of them", &f->result.all);
    code = write_out(ask, f, &table);
    free(cells);
    return code;
}
