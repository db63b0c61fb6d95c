#include "chart/svg_internal.h"

#include <string.h>

/* Text, axes and the frame of a panel. What stg_svg_axis_title() and
 * stg_svg_tick() return lies in the picture's one scratch buffer: it is good
 * until that buffer is used again, so measure or draw it first. */

void stg_svg_text(const stg_picture *pic, double x, double y,
                  const char *anchor, const char *class_names, const char *text)
{
    stg_text_buffer_form(pic->buffer, "<text x=\"%f\" y=\"%f\"", x, y);
    if (strcmp(anchor, "start") != 0)
        stg_text_buffer_form(pic->buffer, " text-anchor=\"%s\"", anchor);
    if (class_names[0] != '\0')
        stg_text_buffer_form(pic->buffer, " class=\"%s\"", class_names);
    stg_text_buffer_form(pic->buffer, ">%e</text>\n", text);
}

/* Escapes byte by byte, which leaves the bytes of UTF-8 as they are. */
static void put_part(const stg_picture *pic, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char one[2] = {text[i], '\0'};

        stg_text_buffer_put_escaped(pic->buffer, one);
    }
}

/* The whole name is in a title, for who points at the dots. */
void stg_svg_name(const stg_picture *pic, double x, double y,
                  const char *class_names, const char *name, double room)
{
    const double dots = 14;
    size_t length = stg_measure_fit(name, TEXT_SIZE, room);

    if (name[length] == '\0') {
        stg_svg_text(pic, x, y, "start", class_names, name);
        return;
    }
    length = stg_measure_fit(name, TEXT_SIZE, room - dots);
    stg_text_buffer_form(pic->buffer, "<text x=\"%f\" y=\"%f\" class=\"%s\">",
                         x, y, class_names);
    put_part(pic, name, length);
    stg_text_buffer_form(pic->buffer, "...<title>%e</title></text>\n", name);
}

void stg_svg_lines(stg_picture *pic, const char *class_names, double size,
                   double line_height, const char *text)
{
    double margin = pic->edge;

    while (*text != '\0') {
        size_t length = stg_measure_break(text, size, pic->width - 2 * margin);

        pic->y += line_height;
        stg_text_buffer_form(pic->buffer,
                             "<text x=\"%f\" y=\"%f\" class=\"%s\">", margin,
                             pic->y - 5, class_names);
        put_part(pic, text, length);
        stg_text_buffer_put(pic->buffer, "</text>\n");
        text += length;
        while (*text == ' ')
            text++;
    }
}

static const char *scratch_text(const stg_picture *pic)
{
    return pic->scratch->text == NULL ? "" : pic->scratch->text;
}

const char *stg_svg_axis_title(const stg_picture *pic,
                               const stg_chart_axis *axis,
                               const stg_scale *scale)
{
    const char *unit = scale->unit_name == NULL ? "" : scale->unit_name;
    stg_text_buffer *p = pic->scratch;

    stg_text_buffer_clear(p);
    if (axis->label == NULL)
        return "";
    stg_text_buffer_put(p, axis->label);
    if (axis->is_time && axis->is_log)
        stg_text_buffer_put(p, strcmp(axis->label, "time") == 0
                                   ? " (logarithmic)"
                                   : " (time, logarithmic)");
    else if (unit[0] != '\0' && strstr(axis->label, unit) == NULL)
        stg_text_buffer_form(p,
                             axis->is_log    ? " (%s, logarithmic)"
                             : axis->is_root ? " (%s, square root)"
                                             : " (%s)",
                             unit);
    else if (axis->is_log)
        stg_text_buffer_put(p, " (logarithmic)");
    return scratch_text(pic);
}

const char *stg_svg_tick(const stg_picture *pic, const stg_scale *scale,
                         int tick)
{
    stg_text_buffer_clear(pic->scratch);
    stg_scale_put_tick(scale, scale->ticks[tick], pic->scratch);
    return scratch_text(pic);
}

/* The lowest tick is the axis if it lies on the bottom; else it is a line of
 * the grid as the others. */
void stg_svg_frame(const stg_picture *pic, const stg_plot *plot)
{
    for (int i = 0; i < plot->y.tick_count; i++) {
        double y = stg_scale_place(&plot->y, plot->y.ticks[i]);

        stg_text_buffer_form(
            pic->buffer, "<path class=\"%s\" d=\"M%f %fH%f\"/>\n",
            i == 0 && y == plot->bottom ? "a" : "g", pic->left, y, pic->right);
        stg_svg_text(pic, pic->left - GAP, y + 4, "end", "q",
                     stg_svg_tick(pic, &plot->y, i));
    }
}

/* The labels of ticks, from the left, each where the one before has left room.
 * Those at the edges are pulled in. */
static void draw_ticks(const stg_picture *pic, double y)
{
    double end = -GAP;

    for (int i = 0; i < pic->x.tick_count; i++) {
        const char *label = stg_svg_tick(pic, &pic->x, i);
        double x = stg_scale_place(&pic->x, pic->x.ticks[i]);
        double width = stg_measure(label, TEXT_SIZE), start = x - width / 2;

        stg_text_buffer_form(pic->buffer,
                             "<path class=\"a\" d=\"M%f %fv5\"/>\n", x, y);
        if (start + width > pic->width - 2)
            start = pic->width - 2 - width;
        if (start < end + GAP)
            continue;
        stg_svg_text(pic, start + width / 2, y + 19, "middle", "q", label);
        end = start + width;
    }
}

void stg_svg_x_axis(stg_picture *pic)
{
    double y = pic->y - GAP;

    stg_text_buffer_form(pic->buffer, "<path class=\"a\" d=\"M%f %fH%f\"/>\n",
                         pic->left, y, pic->right);
    draw_ticks(pic, y);
    stg_svg_text(pic, (pic->left + pic->right) / 2, y + 38, "middle", "q u",
                 stg_svg_axis_title(pic, &pic->chart->x, &pic->x));
    pic->y = y + 44;
}

/* A span is shaded in all panels and named in the first: in it where its name
 * fits, else to its right, or to its left at the edge of the plot. */
void stg_svg_spans(const stg_picture *pic, const stg_plot *plot)
{
    for (size_t i = 0; i < pic->chart->span_count; i++) {
        const stg_chart_span *span = &pic->chart->spans[i];
        double from = stg_scale_place(&pic->x, span->from);
        double to = stg_scale_place(&pic->x, span->to), half, y;

        stg_text_buffer_form(pic->buffer,
                             "<rect class=\"s\" x=\"%f\" y=\"%f\" width=\"%f\" "
                             "height=\"%f\"/>\n",
                             from, plot->top, to - from,
                             plot->bottom - plot->top);
        y = plot->top + 14 * (double)(i + 1); // a line each
        if (plot->index > 0 || span->name == NULL)
            continue;
        half = stg_measure(span->name, TEXT_SIZE) / 2;
        if (half <= (to - from) / 2)
            stg_svg_text(pic, (from + to) / 2, y, "middle", "q", span->name);
        else if (to + 2 * half < pic->right)
            stg_svg_text(pic, to + 4, y, "start", "q", span->name);
        else
            stg_svg_text(pic, from - 4, y, "end", "q", span->name);
    }
}
