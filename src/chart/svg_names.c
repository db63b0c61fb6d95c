/* Which line is which: names beside the ends of lines where there is room, and
 * in a row above the plot where there is not.
 *
 * A panel has its names in one place: beside its lines (all are lines, few,
 * with short names), beside its spots, as the name of the panel, in the first
 * panel if that has the same, or else in a legend. stg_svg_legend() asks for
 * all of these.
 *
 * For spots both it and stg_svg_spot_names() ask place_spots(), before and
 * after the rows of the legend are known. The answer must be the same, or names
 * come twice or not at all: places may depend on the plot's size, not on where
 * it is. */
#include "chart/svg_internal.h"

#include <string.h>

enum {
    BESIDE_WIDTH_LEAST = 560,
    BESIDE_NAME_MOST = 150,
    NAME_STEP = 17,
    MARK = 26
};

static bool is_of(const stg_chart_series *s, unsigned panel)
{
    return s->panel == panel && s->count > 0;
}

static size_t count_series(const stg_chart *chart, unsigned panel)
{
    size_t count = 0;

    for (size_t i = 0; i < chart->series_count; i++)
        count += is_of(&chart->series[i], panel);
    return count;
}

/* A series that says no more than the panel's name. */
static bool is_named_by_panel(const stg_chart *chart, unsigned panel)
{
    const char *name = chart->panels[panel].name;

    if (name == NULL || count_series(chart, panel) != 1)
        return false;
    for (size_t i = 0; i < chart->series_count; i++)
        if (is_of(&chart->series[i], panel))
            return strcmp(chart->series[i].name, name) == 0;
    return false;
}

/* Depends on the width and the chart alone, since it is asked for the layout,
 * before there are scales. */
static bool names_beside(const stg_chart *chart, unsigned panel, double width)
{
    enum { PANEL_MOST = 6 }; // most series in each of several panels
    size_t count = count_series(chart, panel);
    size_t most = chart->panel_count > 1 ? PANEL_MOST : 12;

    if (width < BESIDE_WIDTH_LEAST || count > most ||
        is_named_by_panel(chart, panel))
        return false;
    for (size_t i = 0; i < chart->series_count; i++) {
        const stg_chart_series *s = &chart->series[i];

        if (is_of(s, panel) &&
            (s->mark != STG_MARK_LINE ||
             stg_measure(s->name, TEXT_SIZE) > BESIDE_NAME_MOST))
            return false;
    }
    return count > 0;
}

double stg_svg_names_width(const stg_chart *chart, double width)
{
    double widest = 0;

    for (size_t i = 0; i < chart->series_count; i++) {
        const stg_chart_series *s = &chart->series[i];
        double name = stg_measure(s->name, TEXT_SIZE) * BOLD + MARK + GAP;

        if (s->panel < chart->panel_count && name > widest &&
            names_beside(chart, s->panel, width))
            widest = name;
    }
    return widest;
}

/* -- beside the ends of lines */

typedef struct name {
    const stg_chart_series *s;
    double ideal, y;
} name;

/* Where the line ends: its last point that is shown. */
static bool find_end(const stg_picture *pic, const stg_plot *plot,
                     const stg_chart_series *s, double *y)
{
    for (size_t i = s->count; i-- > 0;)
        if (stg_plot_has(pic, plot, &s->points[i])) {
            *y = stg_scale_place(&plot->y, s->points[i].y);
            return true;
        }
    return false;
}

/* From the top, by where they want to be. */
static size_t collect(const stg_picture *pic, const stg_plot *plot,
                      name names[NAMES_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < pic->chart->series_count && count < NAMES_MAX; i++) {
        const stg_chart_series *s = &pic->chart->series[i];
        size_t at = count;
        double y;

        if (s->panel != plot->index || !find_end(pic, plot, s, &y))
            continue;
        for (; at > 0 && names[at - 1].ideal > y; at--)
            names[at] = names[at - 1];
        names[at] = (name){.s = s, .ideal = y, .y = y};
        count++;
    }
    return count;
}

/* Pushes names apart, down first and then up from the bottom. Where there are
 * too many for the height the first ones stand above the plot. */
static void spread(name *names, size_t count, double top, double bottom)
{
    for (size_t i = 0; i < count; i++) {
        double least = i == 0 ? top : names[i - 1].y + NAME_STEP;

        names[i].y = names[i].y < least ? least : names[i].y;
    }
    for (size_t i = count; i-- > 0;) {
        double most = i + 1 == count ? bottom : names[i + 1].y - NAME_STEP;

        names[i].y = names[i].y > most ? most : names[i].y;
    }
}

void stg_svg_names(const stg_picture *pic, const stg_plot *plot)
{
    name names[NAMES_MAX];
    size_t count;

    if (!names_beside(pic->chart, plot->index, pic->width))
        return;
    count = collect(pic, plot, names);
    spread(names, count, plot->top + 2, plot->bottom - 2);
    for (size_t i = 0; i < count; i++) {
        const stg_chart_series *series = names[i].s;

        stg_text_buffer_form(pic->buffer, "<path class=\"m c%d\" d=\"",
                             (int)(series->colour % 8));
        stg_svg_marker(pic->buffer, series->colour, pic->right + GAP + 6,
                       names[i].y, 4);
        stg_text_buffer_put(pic->buffer, "\"/>");
        stg_svg_text(pic, pic->right + MARK, names[i].y + 4, "start", "n",
                     series->name);
    }
}

/* -- beside spots */

typedef struct box {
    double left, right, top, bottom;
    const char *anchor; /* of a text in it */
} box;

typedef struct boxes {
    box at[2 * NAMES_MAX];
    size_t count;
} boxes;

static void add_box(boxes *all, box b)
{
    if (all->count < 2 * NAMES_MAX)
        all->at[all->count++] = b;
}

static bool is_free(const boxes *all, const stg_picture *pic,
                    const stg_plot *plot, box b)
{
    if (b.left < pic->left || b.right > pic->width - 2 || b.top < plot->top ||
        b.bottom > plot->bottom)
        return false;
    for (size_t i = 0; i < all->count; i++) {
        const box *other = &all->at[i];

        if (b.left < other->right && other->left < b.right &&
            b.top < other->bottom && other->top < b.bottom)
            return false;
    }
    return true;
}

/* The free place for a name that is nearest to its spot. */
static bool find_place(const boxes *all, const stg_picture *pic,
                       const stg_plot *plot, double x, double y, double width,
                       box *found)
{
    const double near = 14, half = 8;

    for (int ring = 0; ring < 10; ring++) {
        double far = 8.0 * ring;
        double right = x + near, left = x - near - width;
        double below = y + near + far, above = y - near - far;
        box places[] = {
            {right, right + width, y - half + far, y + half + far, "start"},
            {right, right + width, y - half - far, y + half - far, "start"},
            {left, left + width, y - half - far, y + half - far, "end"},
            {left, left + width, y - half + far, y + half + far, "end"},
            {x - width / 2, x + width / 2, above - 2 * half, above, "middle"},
            {x - width / 2, x + width / 2, below, below + 2 * half, "middle"},
        };

        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            if (is_free(all, pic, plot, places[i])) {
                *found = places[i];
                return true;
            }
    }
    return false;
}

static bool is_spot(const stg_picture *pic, const stg_plot *plot,
                    const stg_chart_series *s)
{
    return s->panel == plot->index && s->mark == STG_MARK_SPOT &&
           s->count > 0 && stg_plot_has(pic, plot, &s->points[0]);
}

/* No name may cover a spot, its own or another. */
static void block_spots(const stg_picture *pic, const stg_plot *plot,
                        boxes *all)
{
    const double half = 7;

    for (size_t i = 0; i < pic->chart->series_count; i++) {
        const stg_chart_series *s = &pic->chart->series[i];

        if (is_spot(pic, plot, s)) {
            double x = stg_scale_place(&pic->x, s->points[0].x);
            double y = stg_scale_place(&plot->y, s->points[0].y);

            add_box(all, (box){x - half, x + half, y - half, y + half, NULL});
        }
    }
}

static void put_spot(const stg_picture *pic, const box *place, const char *text)
{
    double x = place->anchor[0] == 's'   ? place->left
               : place->anchor[0] == 'e' ? place->right
                                         : (place->left + place->right) / 2;

    stg_svg_text(pic, x, place->bottom - 4, place->anchor, "n o", text);
}

/* Finds a place for each name, and puts them there if so asked; false: there
 * is not enough room for all. */
static bool place_spots(const stg_picture *pic, const stg_plot *plot,
                        bool is_asked)
{
    boxes all = {.count = 0};

    block_spots(pic, plot, &all);
    for (size_t i = 0; i < pic->chart->series_count; i++) {
        const stg_chart_series *s = &pic->chart->series[i];
        box place;

        if (!is_spot(pic, plot, s))
            continue;
        if (!find_place(&all, pic, plot,
                        stg_scale_place(&pic->x, s->points[0].x),
                        stg_scale_place(&plot->y, s->points[0].y),
                        stg_measure(s->name, TEXT_SIZE) * BOLD, &place))
            return false;
        add_box(&all, place);
        if (is_asked)
            put_spot(pic, &place, s->name);
    }
    return true;
}

void stg_svg_spot_names(const stg_picture *pic, const stg_plot *plot)
{
    if (place_spots(pic, plot, false))
        (void)place_spots(pic, plot, true);
}

/* -- above the plot */

static void put_key(const stg_picture *pic, double x, double y,
                    const stg_chart_series *s)
{
    int colour = (int)(s->colour % 8);

    if (s->mark == STG_MARK_LINE || s->mark == STG_MARK_STEP)
        stg_text_buffer_form(pic->buffer,
                             "<path class=\"l c%d\" d=\"M%f %fh20\"/>", colour,
                             x, y - 4);
    if (s->mark == STG_MARK_AREA) {
        stg_text_buffer_form(pic->buffer,
                             "<path class=\"f c%d\" d=\"M%f %fh20v-9h-20z",
                             colour, x, y);
    } else if (s->mark != STG_MARK_STEP) {
        stg_text_buffer_form(pic->buffer, "<path class=\"m c%d\" d=\"", colour);
        stg_svg_marker(pic->buffer, s->colour, x + 10, y - 4, 4);
    }
    if (s->mark != STG_MARK_STEP)
        stg_text_buffer_put(pic->buffer, "\"/>");
}

/* Whether the first panel has named the same series. */
static bool is_named_above(const stg_chart *chart, unsigned panel)
{
    size_t at = 0;

    if (panel == 0 || count_series(chart, panel) != count_series(chart, 0))
        return false;
    for (size_t i = 0; i < chart->series_count; i++) {
        if (!is_of(&chart->series[i], panel))
            continue;
        while (!is_of(&chart->series[at], 0))
            at++;
        if (strcmp(chart->series[i].name, chart->series[at].name) != 0 ||
            chart->series[i].colour != chart->series[at].colour)
            return false;
        at++;
    }
    return true;
}

void stg_svg_legend(stg_picture *pic, const stg_plot *plot)
{
    unsigned panel = plot->index;
    enum { KEY = 26, APART = 18 };
    const stg_chart *chart = pic->chart;
    double x = pic->edge, room = pic->width - 2 * pic->edge - KEY;
    bool has_spots = false;

    if (names_beside(chart, panel, pic->width) ||
        is_named_by_panel(chart, panel) || is_named_above(chart, panel) ||
        (count_series(chart, panel) < 2 && chart->panels[panel].name == NULL &&
         chart->panel_count == 1))
        return;
    for (size_t i = 0; i < chart->series_count; i++)
        has_spots = has_spots || is_spot(pic, plot, &chart->series[i]);
    if (has_spots && place_spots(pic, plot, false))
        return;
    pic->y += LINE_HEIGHT + 2;
    for (size_t i = 0; i < chart->series_count; i++) {
        const stg_chart_series *s = &chart->series[i];
        double width = stg_measure(s->name, TEXT_SIZE);

        if (!is_of(s, panel))
            continue;
        width = width > room ? room : width;
        if (x > pic->edge && x + KEY + width > pic->width - pic->edge) {
            x = pic->edge;
            pic->y += LINE_HEIGHT + 2;
        }
        put_key(pic, x, pic->y - 4, s);
        stg_svg_name(pic, x + KEY, pic->y - 4, "", s->name, room);
        x += KEY + width + APART;
    }
}
