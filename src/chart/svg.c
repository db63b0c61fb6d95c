#include "chart/chart.h"

#include "chart/svg_internal.h"

/* A chart as SVG: extents of the points, then scales, then panels from top to
 * bottom. It is drawn twice, first into a buffer that takes nothing, as the
 * height in the first line is known only after the legends have been wrapped.
 * Both passes must do the same: drawing may not depend on what the buffer
 * holds.
 *
 * The left edge depends on the widest tick label, and so on the y scales, which
 * do not depend on the width of the plot: plot_of() may be called before
 * lay_out() has set the edges. */

enum { EDGE = 14, INSET = 1, EDGE_LEAST = 6, NARROWEST = 280, WIDEST = 2000 };

stg_svg_options stg_svg_options_default(void)
{
    return (stg_svg_options){.width = 760, .is_alone = true};
}

bool stg_plot_has(const stg_picture *pic, const stg_plot *plot,
                  const stg_chart_point *point)
{
    return stg_axis_shows(&pic->chart->x, point->x) &&
           stg_axis_shows(&plot->panel->y, point->y);
}

/* -- what the points take */

static void include_point(stg_extent *e, const stg_chart_axis *axis,
                          stg_chart_mark mark, double cell_height,
                          const stg_chart_point *point)
{

    stg_extent_include(e, axis, point->y);
    if (mark == STG_MARK_CELL) {
        stg_extent_include(e, axis, point->y - cell_height / 2);
        stg_extent_include(e, axis, point->y + cell_height / 2);
        return;
    }
    if (mark != STG_MARK_STEP) // a share ends at all of them
        stg_extent_include(e, axis, point->y + 2 * point->y_se);
    if (mark == STG_MARK_RANGE) {
        stg_extent_include(e, axis, point->low);
        stg_extent_include(e, axis, point->high);
    } else if (mark == STG_MARK_AREA || mark == STG_MARK_STEP) {
        if (!axis->is_log)
            stg_extent_include(e, axis, 0);
    }
}

/* Points that the x axis does not show take no room on y. With is_y_shared all
 * panels have the extent of all series. */
static stg_extent y_extent(const stg_chart *chart, unsigned panel)
{
    const stg_chart_axis *axis = &chart->panels[panel].y;
    stg_extent e = {.is_empty = true};

    for (size_t i = 0; i < chart->series_count; i++) {
        const stg_chart_series *s = &chart->series[i];

        if (s->panel != panel && !chart->is_y_shared)
            continue;
        for (size_t k = 0; k < s->count; k++)
            if (stg_axis_shows(&chart->x, s->points[k].x))
                include_point(&e, axis, s->mark, chart->cell_height,
                              &s->points[k]);
    }
    return e;
}

/* Bars stand free of the edges, and cells are whole. */
static void include_x(stg_extent *e, const stg_chart *chart,
                      const stg_chart_series *s, double x)
{
    const double margin = s->mark == STG_MARK_RANGE  ? 0.6
                          : s->mark == STG_MARK_CELL ? chart->cell_width / 2
                                                     : 0;

    stg_extent_include(e, &chart->x, x - margin);
    stg_extent_include(e, &chart->x, x + margin);
}

static stg_extent x_extent(const stg_chart *chart)
{
    stg_extent e = {.is_empty = true};

    for (size_t i = 0; i < chart->series_count; i++)
        for (size_t k = 0; k < chart->series[i].count; k++)
            include_x(&e, chart, &chart->series[i],
                      chart->series[i].points[k].x);
    for (size_t i = 0; i < chart->span_count; i++) {
        stg_extent_include(&e, &chart->x, chart->spans[i].from);
        stg_extent_include(&e, &chart->x, chart->spans[i].to);
    }
    return e;
}

/* Whether the marks of a chart stand well away from its edges. */
static bool has_spots(const stg_chart *chart)
{
    for (size_t i = 0; i < chart->series_count; i++)
        if (chart->series[i].mark == STG_MARK_SPOT)
            return true;
    return false;
}

/* -- where the panels are */

static double height_of(const stg_picture *pic)
{
    const double share = 0.46, least = 210, most = 380;
    size_t panels = pic->chart->panel_count;
    double height = pic->width * share;

    height = height < least ? least : height > most ? most : height;
    return panels == 1 ? height : panels == 2 ? height * 0.6 : 96;
}

static stg_plot plot_of(const stg_picture *pic, unsigned panel)
{
    enum { ROOM = 44, SMALL_ROOM = 30 };
    const stg_chart *chart = pic->chart;
    double height = height_of(pic);
    stg_extent e = y_extent(chart, panel);
    int ticks = (int)(height / (chart->panel_count > 2 ? SMALL_ROOM : ROOM));
    stg_plot plot = {.index = panel, .panel = &chart->panels[panel]};

    plot.y = stg_scale_make(&plot.panel->y, &e, ticks < 2 ? 2 : ticks, false);
    plot.top = pic->y;
    plot.bottom = plot.top + height;
    plot.y.at_from = plot.bottom;
    plot.y.at_to = plot.top;
    return plot;
}

/* The width of the widest label at the ticks of y. */
static double tick_width(const stg_picture *pic)
{
    double widest = 0;

    for (unsigned i = 0; i < pic->chart->panel_count; i++) {
        stg_plot plot = plot_of(pic, i);

        for (int k = 0; k < plot.y.tick_count; k++) {
            double width =
                stg_measure(stg_svg_tick(pic, &plot.y, k), TEXT_SIZE);

            widest = width > widest ? width : widest;
        }
    }
    return widest;
}

static void lay_out(stg_picture *pic)
{
    enum { ROOM = 64 };
    stg_extent e = x_extent(pic->chart);
    int ticks;

    pic->left = pic->edge + tick_width(pic) + GAP;
    pic->right =
        pic->width - EDGE - stg_svg_names_width(pic->chart, pic->width);
    ticks = (int)((pic->right - pic->left) / ROOM);
    ticks = ticks < 2 ? 2 : ticks >= STG_TICKS_MAX ? STG_TICKS_MAX - 1 : ticks;
    pic->x = stg_scale_make(&pic->chart->x, &e, ticks, !has_spots(pic->chart));
    pic->x.at_from = pic->left;
    pic->x.at_to = pic->right;
}

/* -- drawing */

/* In panels of one kind the axis is named once. */
static const char *axis_title(const stg_picture *pic, const stg_plot *plot)
{
    return plot->index > 0 && pic->chart->is_y_shared
               ? ""
               : stg_svg_axis_title(pic, &plot->panel->y, &plot->y);
}

/* The name of a panel, its y axis in words, and the names of its lines. */
static void draw_heading(stg_picture *pic, unsigned index)
{
    const stg_chart_panel *panel = &pic->chart->panels[index];
    stg_plot plot = plot_of(pic, index);
    const char *title = axis_title(pic, &plot);
    double x = pic->edge;

    pic->y += LINE_HEIGHT + (index == 0 ? 0 : GAP);
    if (panel->name != NULL) {
        stg_svg_name(pic, x, pic->y - 4, "n", panel->name,
                     (pic->width - 2 * x) / BOLD);
        x += stg_measure(panel->name, TEXT_SIZE) * BOLD + 2 * GAP;
    }
    if (x + stg_measure(title, TEXT_SIZE) > pic->width - pic->edge) {
        x = pic->edge;
        pic->y += LINE_HEIGHT;
    }
    if (title[0] != '\0')
        stg_svg_text(pic, x, pic->y - 4, "start", "q u", title);
    stg_svg_legend(pic, &plot);
    pic->y += GAP;
}

static void draw_panel(stg_picture *pic, unsigned index)
{
    stg_plot plot;

    draw_heading(pic, index);
    plot = plot_of(pic, index);
    stg_svg_spans(pic, &plot);
    stg_svg_frame(pic, &plot);
    // Where lines are one the first is seen: it is the one that matters most.
    for (size_t i = pic->chart->series_count; i-- > 0;)
        if (pic->chart->series[i].panel == index)
            stg_svg_marks(pic, &plot, &pic->chart->series[i]);
    stg_svg_names(pic, &plot);
    stg_svg_spot_names(pic, &plot);
    if (!pic->is_still)
        stg_svg_hover(pic, &plot);
    pic->y = plot.bottom + GAP;
}

static void draw(stg_picture *pic, const stg_svg_options *options)
{
    const stg_chart *chart = pic->chart;

    pic->y = options->is_alone ? EDGE : 0;
    if (options->is_alone)
        stg_svg_lines(pic, "t", BOLD * TITLE_SIZE, TITLE_HEIGHT, chart->title);
    pic->y += options->is_alone ? GAP : 0;
    lay_out(pic);
    for (unsigned i = 0; i < chart->panel_count; i++)
        draw_panel(pic, i);
    stg_svg_x_axis(pic);
    if (options->is_alone && chart->note != NULL) {
        pic->y += GAP;
        stg_svg_lines(pic, "q", TEXT_SIZE, LINE_HEIGHT, chart->note);
    }
    pic->y += options->is_alone ? EDGE : 2;
}

/* Narrower, there would be no room for a plot beside its labels. */
static double bounded(int width)
{
    return width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : width;
}

void stg_chart_svg(const stg_chart *chart, const stg_svg_options *options,
                   stg_text_buffer *buffer)
{
    stg_text_buffer none = {.memory = buffer->memory, .is_short = true};
    stg_text_buffer scratch = stg_text_buffer_on(buffer->memory);
    stg_picture pic = {.chart = chart,
                       .is_still = options->is_still,
                       .edge = options->is_alone ? EDGE : INSET,
                       .buffer = &none,
                       .scratch = &scratch,
                       .width = bounded(options->width)};
    double height;

    draw(&pic, options);
    height = pic.y;
    stg_text_buffer_form(
        buffer,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"stg\" "
        "width=\"%f\" height=\"%f\" viewBox=\"0 0 %f %f\" "
        "role=\"img\" aria-label=\"%e\">\n",
        pic.width, height, pic.width, height, chart->title);
    if (options->is_alone) {
        stg_text_buffer_put(buffer, "<style>");
        stg_palette_css(buffer);
        stg_text_buffer_put(buffer, "</style>\n");
        stg_text_buffer_form(buffer,
                             "<rect class=\"p\" width=\"%f\" height=\"%f\"/>\n",
                             pic.width, height);
    }
    pic.buffer = buffer;
    draw(&pic, options);
    stg_text_buffer_put(buffer, "</svg>\n");
    buffer->is_short = buffer->is_short || scratch.is_short;
    stg_text_buffer_free(&scratch);
}
