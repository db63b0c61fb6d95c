/* Spots of candidates, of which less is better in both directions, and the line
 * through those that no other one beats in both. */
#include "chart/chart.h"

static bool beats(const stg_chart_point *a, const stg_chart_point *b)
{
    return a->x <= b->x && a->y <= b->y && (a->x < b->x || a->y < b->y);
}

static bool is_efficient(const stg_chart_spot *spots, size_t count, size_t i)
{
    for (size_t k = 0; k < count; k++)
        if (beats(&spots[k].point, &spots[i].point))
            return false;
    return true;
}

/* The efficient ones in the order of x. They are few. */
static void join(stg_chart_set *a, stg_chart_series *s,
                 const stg_chart_spot *spots, size_t count)
{
    stg_chart_point *points = stg_chart_set_points(a, s, count);

    s->name = "frontier";
    s->mark = STG_MARK_LINE;
    s->count = 0;
    for (size_t i = 0; i < count && points != NULL; i++) {
        const stg_chart_point *spot = &spots[i].point;
        size_t at = s->count;

        if (!is_efficient(spots, count, i))
            continue;
        for (; at > 0 && points[at - 1].x > spot->x; at--)
            points[at] = points[at - 1];
        points[at] = (stg_chart_point){.x = spot->x, .y = spot->y};
        s->count++;
    }
}

void stg_chart_set_frontier(stg_chart_set *a, const stg_chart_spot *spots,
                            size_t count, unsigned panel, unsigned colour,
                            stg_chart_series *series)
{
    for (size_t i = 0; i < count; i++) {
        stg_chart_point *point = stg_chart_set_points(a, &series[i], 1);

        series[i].name = spots[i].name;
        series[i].mark = STG_MARK_SPOT;
        series[i].colour = spots[i].colour;
        series[i].panel = panel;
        if (point != NULL)
            *point = spots[i].point;
    }
    join(a, &series[count], spots, count);
    series[count].colour = colour;
    series[count].panel = panel;
}
