#include "chart/chart.h"

#include "chart/svg_internal.h"

#include <string.h>

/* A page that stands alone: no script, no font and no picture from elsewhere,
 * and a Content-Security-Policy that forbids them. Each chart is in the page
 * twice, wide and narrow, and the style shows one of them: SVG text does not
 * wrap by itself. Text of the user must pass through %e or put_escaped(). */

enum { WIDE = 760, NARROW = 360 };

static const char head[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
    "'none'; style-src 'unsafe-inline'; img-src data:\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n";

static const char style[] =
    "body{margin:0;font:16px/1.5 system-ui,Helvetica,Arial,sans-serif}"
    "main{max-width:54rem;margin:0 auto;padding:1.5rem 1rem 3rem}"
    "h1,h2{overflow-wrap:anywhere}"
    "h1{font-size:1.7rem;line-height:1.25;margin:0 0 .5rem}"
    "h2{font-size:1.2rem;line-height:1.3;margin:0 0 .75rem}"
    "section{margin:2.75rem 0 0}"
    "p{margin:.5rem 0}"
    ".note{font-size:.875rem}"
    ".warning{font-weight:600}"
    "code{font:.875rem/1.5 ui-monospace,monospace;overflow-wrap:anywhere}"
    ".stg{display:block;width:100%;height:auto}"
    ".narrow{display:none}"
    ".scroll{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:.875rem;"
    "font-variant-numeric:tabular-nums}"
    "caption{text-align:left;font-weight:600;padding:0 0 .4rem}"
    "th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap;"
    "border-bottom:1px solid}"
    "th.left,td.left,details td:first-child{text-align:left}"
    "small{font-size:.8rem}"
    "details{margin:.5rem 0}summary{cursor:pointer;font-size:.875rem}"
    ".spark path{fill:currentColor}"
    ".tiles{display:grid;gap:.75rem;margin:1.25rem 0 0;"
    "grid-template-columns:repeat(auto-fit,minmax(9rem,1fr))}"
    ".tiles div{border:1px solid;border-radius:.5rem;padding:.6rem .9rem;"
    "overflow-wrap:anywhere}"
    ".tiles dt{font-weight:600}.tiles dd{margin:0;"
    "font-variant-numeric:tabular-nums}.tiles .first{font-size:1.25rem}"
    "@media screen and (min-width:1280px){main{max-width:120rem;padding-left:"
    "2.5rem;padding-right:2.5rem}.charts{display:grid;grid-template-columns:"
    "repeat(2,minmax(0,1fr));column-gap:3.5rem}}"
    "@media (max-width:640px){.wide{display:none}.narrow{display:block}"
    "main{padding:1rem .75rem 2rem}h1{font-size:1.4rem}}"
    "@media print{main{max-width:none;padding:0}section{break-inside:avoid}"
    ".wide{display:block}.narrow,details{display:none}}";

/* Whether a line says what the title has said. */
static bool is_title(const stg_page *page, const char *line, size_t length)
{
    size_t title = strlen(page->title);

    length -= length > 0 && line[length - 1] == '.';
    return length == title && memcmp(line, page->title, title) == 0;
}

/* A paragraph a line; one that is set in is for a machine: a policy. A line
 * that the title has said already is left out. */
static void put_lead(const stg_page *page, stg_text_buffer *buffer)
{
    const char *lead = page->lead;

    while (*lead != '\0') {
        const char *end = strchr(lead, '\n');
        size_t length = end == NULL ? strlen(lead) : (size_t)(end - lead);
        bool is_code = lead[0] == ' ';

        if (is_title(page, lead, length)) {
            lead += length + (end != NULL);
            continue;
        }
        if (length > 0)
            stg_text_buffer_put(buffer, is_code ? "<p><code>" : "<p>");
        for (size_t i = 0; i < length; i++) {
            char one[2] = {lead[i], '\0'};

            stg_text_buffer_put_escaped(buffer, one);
        }
        if (length > 0)
            stg_text_buffer_put(buffer, is_code ? "</code></p>\n" : "</p>\n");
        lead += length + (end != NULL);
    }
}

static void put_tiles(const stg_page *page, stg_text_buffer *buffer)
{
    if (page->tile_count == 0)
        return;
    stg_text_buffer_form(buffer, "<dl class=\"tiles\" aria-label=\"%e\">\n",
                         page->tiles_title);
    for (size_t i = 0; i < page->tile_count; i++) {
        const stg_page_tile *t = &page->tiles[i];

        stg_text_buffer_form(buffer,
                             "<div><dt>%e</dt><dd class=\"first\">%e</dd>"
                             "<dd>%e</dd></div>\n",
                             t->name, t->first, t->second);
    }
    stg_text_buffer_form(buffer, "</dl>\n<p class=\"note\">%e</p>\n",
                         page->tiles_title);
}

static void put_head(const stg_page *page, stg_text_buffer *buffer)
{
    stg_text_buffer_put(buffer, head);
    stg_text_buffer_form(buffer, "<title>%e</title>\n<style>", page->title);
    stg_text_buffer_put(buffer, style);
    stg_palette_css(buffer);
    stg_palette_page_css(buffer);
    stg_text_buffer_put(buffer, "</style>\n</head>\n<body>\n<main>\n");
    stg_text_buffer_form(buffer, "<h1>%e</h1>\n", page->title);
    if (page->warning != NULL)
        stg_text_buffer_form(buffer, "<p class=\"warning\">%e</p>\n",
                             page->warning);
    if (page->lead != NULL)
        put_lead(page, buffer);
    if (page->command != NULL)
        stg_text_buffer_form(buffer, "<p><code>%e</code></p>\n", page->command);
    put_tiles(page, buffer);
}

/* -- the numbers of a chart */

static bool is_listed(stg_chart_mark mark)
{
    return mark == STG_MARK_LINE || mark == STG_MARK_SPOT ||
           mark == STG_MARK_RANGE;
}

/* More rows than that nobody reads: --csv has them. */
static bool has_few_numbers(const stg_chart *chart)
{
    enum { MOST = 200 };
    size_t count = 0;

    for (size_t i = 0; i < chart->series_count; i++) {
        if (!is_listed(chart->series[i].mark))
            return false;
        count += chart->series[i].count;
    }
    return count > 0 && count <= MOST;
}

static void put_value(const stg_chart_axis *axis, double number, double se,
                      stg_text_buffer *buffer)
{
    stg_text_buffer_put(buffer, "<td>");
    stg_axis_put(axis, number, buffer);
    if (se > 0) {
        stg_text_buffer_put(buffer, " <small>± ");
        stg_axis_put(axis, se, buffer);
        stg_text_buffer_put(buffer, "</small>");
    }
    stg_text_buffer_put(buffer, "</td>");
}

static void put_row(const stg_chart *chart, const stg_chart_series *s,
                    const stg_chart_point *p, stg_text_buffer *buffer)
{
    const stg_chart_axis *y = &chart->panels[s->panel].y;

    stg_text_buffer_form(buffer, "<tr><td>%e</td>", s->name);
    put_value(&chart->x, p->x, p->x_se, buffer);
    put_value(y, p->y, p->y_se, buffer);
    if (s->mark == STG_MARK_RANGE) {
        put_value(y, p->low, 0, buffer);
        put_value(y, p->high, 0, buffer);
    }
    stg_text_buffer_put(buffer, "</tr>\n");
}

static void put_numbers(const stg_chart *chart, stg_text_buffer *buffer)
{
    bool is_range = chart->series[0].mark == STG_MARK_RANGE;

    stg_text_buffer_form(buffer,
                         "<details><summary>The numbers</summary>"
                         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                         "aria-label=\"The numbers: %e\">\n<table>\n<thead><tr>"
                         "<th scope=\"col\" class=\"left\">of</th>"
                         "<th scope=\"col\">%e</th><th scope=\"col\">%e</th>%s"
                         "</tr></thead>\n<tbody>\n",
                         chart->title, chart->x.label, chart->panels[0].y.label,
                         is_range ? "<th scope=\"col\">from</th>"
                                    "<th scope=\"col\">to</th>"
                                  : "");
    for (size_t i = 0; i < chart->series_count; i++)
        for (size_t k = 0; k < chart->series[i].count; k++)
            put_row(chart, &chart->series[i], &chart->series[i].points[k],
                    buffer);
    stg_text_buffer_put(buffer, "</tbody></table></div></details>\n");
}

/* The title of a chart is left out where it is the page's own. Both widths are
 * drawn in full; only one of them is shown, by the width of the screen. */
static void put_chart(const stg_chart *chart, const char *title,
                      stg_text_buffer *buffer)
{
    stg_svg_options options = {.is_alone = false};

    stg_text_buffer_put(buffer, "<section>\n");
    if (strcmp(chart->title, title) != 0) // else it stands above all
        stg_text_buffer_form(buffer, "<h2>%e</h2>\n", chart->title);
    stg_text_buffer_put(buffer, "<div class=\"wide\">\n");
    options.width = WIDE;
    stg_chart_svg(chart, &options, buffer);
    stg_text_buffer_put(buffer, "</div>\n<div class=\"narrow\">\n");
    options.width = NARROW;
    options.is_still = true; // no pointer is there, mostly
    stg_chart_svg(chart, &options, buffer);
    stg_text_buffer_put(buffer, "</div>\n");
    if (chart->note != NULL)
        stg_text_buffer_form(buffer, "<p class=\"note\">%e</p>\n", chart->note);
    if (has_few_numbers(chart))
        put_numbers(chart, buffer);
    stg_text_buffer_put(buffer, "</section>\n");
}

void stg_page_html(const stg_page *page, stg_text_buffer *buffer)
{
    put_head(page, buffer);
    stg_text_buffer_put(buffer, "<div class=\"charts\">\n");
    for (size_t i = 0; i < page->chart_count; i++)
        put_chart(page->charts[i], page->title, buffer);
    stg_text_buffer_put(buffer, "</div>\n");
    for (size_t i = 0; i < page->table_count; i++) {
        stg_text_buffer_form(buffer,
                             "<section><div class=\"scroll\" tabindex=\"0\" "
                             "role=\"region\" aria-label=\"%e\">\n",
                             page->tables[i].title == NULL
                                 ? "The results"
                                 : page->tables[i].title);
        stg_table_html(&page->tables[i], buffer);
        stg_text_buffer_put(buffer, "</div></section>\n");
    }
    stg_text_buffer_put(buffer, "</main>\n</body>\n</html>\n");
}
