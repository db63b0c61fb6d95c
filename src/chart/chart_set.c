#include "chart/chart.h"

#include <string.h>

/* A chart set owns all that its charts point to, piece by piece, and frees it
 * at once. A piece is zeroed.
 *
 * After the first failure the set is short: nothing more is given out, and what
 * is in it must not be drawn. A caller may go on and look once at the end. */

struct stg_chart_set_piece {
    stg_chart_set_piece *next;
    double bytes[]; // for their alignment
};

stg_chart_set stg_chart_set_on(const stg_memory *memory)
{
    return (stg_chart_set){.memory = memory};
}

void stg_chart_set_free(stg_chart_set *a)
{
    while (a->pieces != NULL) {
        stg_chart_set_piece *piece = a->pieces;

        a->pieces = piece->next;
        a->memory->release(a->memory->ctx, piece);
    }
    *a = stg_chart_set_on(a->memory);
}

void *stg_chart_set_take(stg_chart_set *a, size_t size)
{
    stg_chart_set_piece *piece = NULL;

    if (!a->is_short && size < SIZE_MAX / 2)
        piece = a->memory->allocate(a->memory->ctx, sizeof *piece + size + 1);
    if (piece == NULL) {
        a->is_short = true;
        return NULL;
    }
    piece->next = a->pieces;
    a->pieces = piece;
    memset(piece->bytes, 0, size + 1);
    return piece->bytes;
}

const char *stg_chart_set_text(stg_chart_set *a, stg_text_buffer *buffer)
{
    char *text = stg_chart_set_take(a, buffer->length + 1);

    if (buffer->is_short)
        a->is_short = true;
    if (text != NULL && buffer->length > 0)
        memcpy(text, buffer->text, buffer->length);
    stg_text_buffer_clear(buffer);
    return text == NULL ? "" : text;
}

/* Charts beyond STG_CHART_SET_MAX are refused without making the set short. */
bool stg_chart_set_add(stg_chart_set *a, const char *name, size_t panels,
                       size_t series, stg_chart_draft *draft)
{
    *draft = (stg_chart_draft){
        .chart = stg_chart_set_take(a, sizeof *draft->chart),
        .panels = stg_chart_set_take(a, panels * sizeof *draft->panels),
        .series = stg_chart_set_take(a, series * sizeof *draft->series)};
    if (a->is_short || a->count == STG_CHART_SET_MAX)
        return false;
    *draft->chart = (stg_chart){.name = name,
                                .title = "",
                                .panels = draft->panels,
                                .panel_count = panels,
                                .series = draft->series,
                                .series_count = series};
    a->charts[a->count++] = draft->chart;
    return true;
}

stg_chart_point *stg_chart_set_points(stg_chart_set *a, stg_chart_series *s,
                                      size_t count)
{
    stg_chart_point *points = NULL;

    if (count <= SIZE_MAX / 2 / sizeof *points)
        points = stg_chart_set_take(a, count * sizeof *points);
    s->points = points;
    s->count = points == NULL ? 0 : count;
    return points;
}

/* "calls-by-clients" */
static const char *name_interrupted(stg_chart_set *a, const char *name)
{
    stg_text_buffer p = stg_text_buffer_on(a->memory);
    const char *text;

    for (const char *c = name; *c != '\0'; c++)
        stg_text_buffer_put_char(&p, *c == '-' ? ' '
                                     : c == name && *c >= 'a' && *c <= 'z'
                                         ? *c - 'a' + 'A'
                                         : *c);
    stg_text_buffer_put(&p, ": interrupted, no conclusion");
    text = stg_chart_set_text(a, &p);
    stg_text_buffer_free(&p);
    return text;
}

void stg_chart_set_conclude_nothing(stg_chart_set *a)
{
    for (size_t i = 0; i < a->count; i++) {
        stg_chart *chart = stg_chart_set_take(a, sizeof *chart);

        if (chart == NULL)
            return;
        *chart = *a->charts[i];
        chart->title = name_interrupted(a, chart->name);
        a->charts[i] = chart;
    }
}
