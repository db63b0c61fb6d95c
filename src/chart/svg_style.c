#include "chart/chart.h"

#include <stdint.h>
#include <string.h>

#include "chart/svg_internal.h"

/* What a drawing needs of fonts and colours: how wide a text will be, without a
 * font to ask, and the colours of both themes.
 *
 * Widths are too large on purpose (`room`): a text that is measured too narrow
 * overlaps what stands beside it, and one measured too wide only leaves a gap.
 * The sizes and weights of stg_palette_css() are those that TEXT_SIZE,
 * TITLE_SIZE and BOLD measure by, and must change with them.
 *
 * Theme colours are tied to places: a class c0 to c7 has the same number as the
 * shape of svg_marks.c. */

/* -- widths of text -------------------------------------------------------- */

/* Thousandths of the size, ' ' to '~': from the metrics of Helvetica. */
static const uint16_t widths[] = {
    278, 278, 355, 556, 556,  889, 667, 191, 333, 333, 389, 584, 278, 333,
    278, 278, 556, 556, 556,  556, 556, 556, 556, 556, 556, 556, 278, 278,
    584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722,  778, 667, 778, 722, 667, 611, 722, 667, 944,
    667, 667, 611, 278, 278,  278, 469, 556, 333, 556, 556, 500, 556, 556,
    278, 556, 556, 222, 222,  500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500,  500, 500, 334, 260, 334, 584};

/* DejaVu Sans, the widest in use, is 16 % wider on the whole. */
static const double room = 1.16;

static double width_of(unsigned char c)
{
    enum { OTHER = 650 };

    if (c >= 0x80 && c < 0xC0)
        return 0; // a character counts with its first byte
    return c >= ' ' && c <= '~' ? widths[c - ' '] : OTHER;
}

double stg_measure(const char *text, double size)
{
    double sum = 0;

    for (; *text != '\0'; text++)
        sum += width_of((unsigned char)*text);
    return sum * size * room / 1000;
}

/* Ends between two characters, never inside one. */
size_t stg_measure_fit(const char *text, double size, double width)
{
    double sum = 0;
    size_t length = 0;

    for (; text[length] != '\0'; length++) {
        sum += width_of((unsigned char)text[length]);
        if (sum * size * room / 1000 > width)
            break;
    }
    while (text[length] != '\0' && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    return length;
}

/* Never 0 for a text that is not empty, or a caller would not come to its end:
 * where not even one character fits it is the whole text. */
size_t stg_measure_break(const char *text, double size, double width)
{
    size_t length = stg_measure_fit(text, size, width), at = length;

    if (text[length] == '\0')
        return length;
    while (at > 0 && text[at] != ' ')
        at--;
    if (at > 0)
        return at;
    return length > 0 ? length : strlen(text);
}

/* -- colours --------------------------------------------------------------- */

enum { COLOURS = 8 };

typedef struct theme {
    const char *ground, *ink, *quiet, *grid, *axis;
    const char *warning; /* letters, which need more contrast than lines */
    const char *colours[COLOURS];
} theme;

/* Found by search: the calmest colours (of the least chroma) that everybody tells
 * apart as well as the most vivid ones, also who sees two of the three primary
 * colours; tests/sim/pages.py has the distances. Names are in ink. */
static const theme light = {"#ffffff",
                            "#1c2127",
                            "#57606a",
                            "#e3e6ea",
                            "#8b949e",
                            "#b42318",
                            {"#1f3d85", "#e96210", "#03a598", "#8859cd",
                             "#792f06", "#a34e33", "#08787e", "#502541"}};

static const theme dark = {"#14171b",
                           "#e8eaed",
                           "#a3acb6",
                           "#2b3138",
                           "#6e7781",
                           "#ff9a90",
                           {"#72affa", "#ed9f48", "#bcf5bd", "#656bae",
                            "#9f652a", "#2f9a8c", "#7ce0ff", "#a5b7aa"}};

static void put_theme(stg_text_buffer *buffer, const theme *t)
{
    stg_text_buffer_form(buffer, ".stg{color:%s}.stg .p{fill:%s}", t->ink,
                         t->ground);
    stg_text_buffer_form(buffer, ".stg .q{fill:%s}.stg .g{stroke:%s}", t->quiet,
                         t->grid);
    stg_text_buffer_form(buffer, ".stg .a{stroke:%s}.stg .o{stroke:%s}",
                         t->axis, t->ground);
    stg_text_buffer_form(buffer, ".stg .m{stroke:%s}", t->ground);
    for (int i = 0; i < COLOURS; i++)
        stg_text_buffer_form(buffer, ".stg .c%d{color:%s}", i, t->colours[i]);
}

void stg_palette_css(stg_text_buffer *buffer)
{
    stg_text_buffer_put(
        buffer,
        ".stg{font:12px Helvetica,Arial,\"Liberation Sans\",sans-serif}"
        ".stg text{fill:currentColor}"
        ".stg .t{font-size:17px;font-weight:600}.stg .n{font-weight:600}"
        ".stg .o{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}"
        ".stg .g,.stg .a{fill:none;stroke-width:1}"
        ".stg .l{fill:none;stroke:currentColor;stroke-width:2;"
        "stroke-linejoin:round;stroke-linecap:round}"
        ".stg .k{stroke-dasharray:6 7}"
        ".stg .e{fill:none;stroke:currentColor;stroke-width:1.5}"
        ".stg .b{fill:currentColor;fill-opacity:.2}"
        ".stg .f{fill:currentColor}"
        ".stg .r{fill:currentColor;fill-opacity:.45}"
        ".stg .m{fill:currentColor;stroke-width:1}"
        ".stg .d{fill:none;stroke:currentColor;stroke-width:2.4;"
        "stroke-linecap:round;stroke-opacity:.85}"
        ".stg .s{fill:currentColor;fill-opacity:.1}"
        ".stg .h{fill:currentColor;fill-opacity:0}"
        ".stg .h:hover{fill-opacity:.12}");
    put_theme(buffer, &light);
    stg_text_buffer_put(buffer,
                        "@media screen and (prefers-color-scheme:dark){");
    put_theme(buffer, &dark);
    stg_text_buffer_put(buffer, "}");
}

static void put_page_theme(stg_text_buffer *buffer, const theme *t)
{
    stg_text_buffer_form(buffer, "body{background:%s;color:%s}", t->ground,
                         t->ink);
    stg_text_buffer_form(
        buffer,
        ".note,small,caption,summary{color:%s}th,td,.tiles div{border-color:"
        "%s}",
        t->quiet, t->grid);
    stg_text_buffer_form(buffer, ".warning{color:%s}.spark{color:%s}",
                         t->warning, t->colours[0]);
}

void stg_palette_page_css(stg_text_buffer *buffer)
{
    put_page_theme(buffer, &light);
    stg_text_buffer_put(buffer,
                        "@media screen and (prefers-color-scheme:dark){");
    put_page_theme(buffer, &dark);
    stg_text_buffer_put(buffer, "}");
}
