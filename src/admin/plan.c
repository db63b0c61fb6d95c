/* What a target's policy will do: the numbers of `stagger plan`, for one that runs,
 * and its waits as a picture. It is worked out for each request, in less than a
 * millisecond. */
#include <stdlib.h>

#include "admin/internal.h"
#include "chart/chart.h"
#include "plan/plan.h"

/* The plan of the target that the path names, to be freed; NULL: answered. */
static stg_plan *work_out(const stg_admin *a, stg_ask *ask)
{
    const stg_target *t =
        stg_targets_named(&a->hub->targets, stg_ask_word(ask, 0));
    bool has_policy = t != NULL && t->settings != NULL;
    stg_plan *plan = has_policy ? calloc(1, sizeof *plan) : NULL;

    if (t == NULL)
        stg_admin_refuse_name(a, ask, stg_ask_word(ask, 0));
    else if (!has_policy)
        stg_ask_refuse(ask, 404,
                       "only the store knows this target: it has no policy");
    else if (plan == NULL)
        stg_ask_refuse(ask, 503, "no memory");
    if (plan == NULL)
        return NULL;
    plan->name = t->name;
    plan->is_of_target = true;
    plan->policy = *t->settings->common->policy;
    stg_plan_work_out(plan, 0);
    return plan;
}

/* -- as JSON --------------------------------------------------------------- */

/* NULL: no memory. */
static char *print(const stg_plan *plan, size_t *size)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, size);
    stg_json j = {.to = to};
    bool is_whole;

    if (to == NULL)
        return NULL;
    stg_plan_write(plan, 0, &j);
    is_whole = ferror(to) == 0;
    if (fclose(to) == 0 && is_whole)
        return text;
    free(text);
    return NULL;
}

void stg_admin_target_plan(void *admin, stg_ask *ask)
{
    stg_plan *plan = work_out(admin, ask);
    size_t size = 0;
    char *text;

    if (plan == NULL)
        return;
    text = print(plan, &size);
    free(plan);
    stg_ask_answer(ask, 200, "application/json", text, size);
}

/* -- as a picture ---------------------------------------------------------- */

/* A bar for each retry, from the least wait to the most. */
static void draw(const stg_plan *plan, stg_text_buffer *to)
{
    const stg_forecast *f = &plan->forecast;
    stg_chart_point points[STG_FORECAST_ROWS] = {{0}};
    char title[STG_TARGET_NAME_MAX + 32];
    stg_chart_panel panel = {.y = {.label = "wait", .is_time = true}};
    stg_chart_series waits = {.name = "wait",
                              .mark = STG_MARK_RANGE,
                              .points = points,
                              .count = f->wait_count};
    stg_chart chart = {.name = "plan",
                       .title = title,
                       .note = f->wait_count == 0
                                   ? "It makes one attempt, and no retry."
                                   : "A wait falls anywhere in its bar; the "
                                     "mark is the mean.",
                       .x = {.label = "retry"},
                       .panels = &panel,
                       .panel_count = 1,
                       .series = &waits,
                       .series_count = 1};
    stg_svg_options options = stg_svg_options_default();

    panel.y.is_from_zero = true;
    snprintf(title, sizeof title, "The waits of %s", plan->name);
    for (uint32_t i = 0; i < f->wait_count; i++) {
        const stg_wait_range *w = &f->waits[i].wait;

        points[i] = (stg_chart_point){.x = (double)f->waits[i].retry,
                                      .y = (double)w->mean / STG_MS,
                                      .low = (double)w->least / STG_MS,
                                      .high = (double)w->most / STG_MS};
    }
    stg_chart_svg(&chart, &options, to);
}

void stg_admin_target_picture(void *admin, stg_ask *ask)
{
    stg_text_buffer svg = stg_text_buffer_on(&stg_hub_memory);
    stg_plan *plan = work_out(admin, ask);

    if (plan == NULL)
        return;
    draw(plan, &svg);
    free(plan);
    if (svg.is_short)
        stg_text_buffer_free(&svg);
    stg_ask_answer(ask, 200, "image/svg+xml", svg.text, svg.length);
}
