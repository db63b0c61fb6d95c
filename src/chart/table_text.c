/* Tables for readers: lines for a terminal, and HTML.
 *
 * A terminal has a width: columns are left out by rank until the lines fit, and
 * columns of rank 0 stay even if they do not. HTML has all columns. Both leave
 * out a column without a title, or without a cell that says something.
 *
 * Widths count characters of UTF-8 and take each for one place; wide characters
 * and combining ones would shift what follows. say() returns a text that is
 * good until it is called again. */
#include "chart/table.h"

#include <string.h>

enum { SPARK_WIDTH = 16, APART = 2 };

static const stg_cell *cell_at(const stg_table *t, size_t row, size_t column)
{
    return &t->cells[row * t->column_count + column];
}

/* Whether a reader sees it: it has a title, and something to say in some row. A
 * table without rows shows all titles. */
static bool is_shown(const stg_table *t, size_t column)
{
    if (t->columns[column].title == NULL)
        return false;
    for (size_t row = 0; row < t->row_count; row++)
        if (cell_at(t, row, column)->kind != STG_CELL_NONE)
            return true;
    return t->row_count == 0;
}

/* -- sparklines */

/* The highest of the values that a character (or pixel) stands for. With fewer
 * values than places a value is shown several times. */
static double level_of(const stg_cell *cell, size_t at, size_t width)
{
    size_t from = at * cell->count / width;
    size_t to = (at + 1) * cell->count / width;
    double most = 0;

    for (size_t i = from; i < to || i == from; i++)
        most = cell->curve[i] > most ? cell->curve[i] : most;
    return most;
}

/* Each curve is drawn to its own highest value. What is above 0 has a block of
 * one eighth at least; 7.99 makes the highest value the eighth, not a ninth. */
static void put_spark(stg_text_buffer *buffer, const stg_cell *cell,
                      bool is_utf8)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄",
                                         "▅", "▆", "▇", "█"};
    static const char ascii[] = " ..:-=+*#";
    size_t width = cell->count < SPARK_WIDTH ? cell->count : SPARK_WIDTH;
    double most = 0;

    for (size_t i = 0; i < cell->count; i++)
        most = cell->curve[i] > most ? cell->curve[i] : most;
    for (size_t i = 0; i < width; i++) {
        double level = level_of(cell, i, width);
        int step = level > 0 && most > 0 ? 1 + (int)(level / most * 7.99) : 0;

        if (is_utf8)
            stg_text_buffer_put(buffer, blocks[step]);
        else
            stg_text_buffer_put_char(buffer, ascii[step]);
    }
}

/* -- a cell in words */

static void put_number(stg_text_buffer *buffer, double number, bool is_time)
{
    if (is_time)
        stg_text_buffer_put_time(buffer, number);
    else
        stg_text_buffer_put_rounded(buffer, number);
}

static void put_cell(stg_text_buffer *buffer, const stg_table_column *column,
                     const stg_cell *cell, bool is_utf8)
{
    switch (cell->kind) {
    case STG_CELL_TEXT:
        stg_text_buffer_put(buffer, cell->text);
        break;
    case STG_CELL_NUMBER:
    case STG_CELL_ESTIMATE:
        put_number(buffer, cell->number, column->is_time);
        break;
    case STG_CELL_FACT:
        stg_text_buffer_put(buffer, cell->number != 0 ? "yes" : "no");
        break;
    case STG_CELL_SPARK:
        put_spark(buffer, cell, is_utf8);
        break;
    default:
        stg_text_buffer_put(buffer, "-");
    }
}

/* Characters, not bytes. */
static int characters(const char *text)
{
    int count = 0;

    for (; text != NULL && *text != '\0'; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

/* -- lines */

typedef struct lines {
    const stg_table *table;
    stg_text_buffer *buffer;
    stg_text_buffer cell; /* one at a time */
    bool is_utf8;
    int widths[STG_TABLE_COLUMNS_MAX]; /* 0: left out */
    bool is_left[STG_TABLE_COLUMNS_MAX];
} lines;

static const char *say(lines *l, size_t row, size_t c)
{
    stg_text_buffer_clear(&l->cell);
    put_cell(&l->cell, &l->table->columns[c], cell_at(l->table, row, c),
             l->is_utf8);
    return l->cell.text == NULL ? "" : l->cell.text;
}

/* A column is aligned as a whole: one text or curve in it makes it left. */
static void measure(lines *l)
{
    const stg_table *t = l->table;

    for (size_t c = 0; c < t->column_count; c++) {
        if (!is_shown(t, c))
            continue;
        l->widths[c] = characters(t->columns[c].title);
        for (size_t row = 0; row < t->row_count; row++) {
            stg_cell_kind kind = cell_at(t, row, c)->kind;
            int width = characters(say(l, row, c));

            l->widths[c] = width > l->widths[c] ? width : l->widths[c];
            l->is_left[c] |= kind == STG_CELL_TEXT || kind == STG_CELL_SPARK;
        }
    }
}

static int line_width(const lines *l)
{
    int sum = -APART;

    for (size_t c = 0; c < l->table->column_count; c++)
        sum += l->widths[c] > 0 ? l->widths[c] + APART : 0;
    return sum;
}

/* Of equal ranks the one to the right goes first. */
static void leave_out(lines *l, int width)
{
    while (line_width(l) > width) {
        size_t worst = 0;
        int rank = 0;

        for (size_t c = 0; c < l->table->column_count; c++)
            if (l->widths[c] > 0 && l->table->columns[c].rank >= rank) {
                rank = l->table->columns[c].rank;
                worst = c;
            }
        if (rank == 0)
            return;
        l->widths[worst] = 0;
    }
}

static void pad(stg_text_buffer *buffer, int count)
{
    for (int i = 0; i < count; i++)
        stg_text_buffer_put_char(buffer, ' ');
}

/* Blanks at the end of a line are left out, those of a curve too. */
static void put_line(lines *l, size_t row, bool is_titles)
{
    int owed = 0;

    for (size_t c = 0; c < l->table->column_count; c++) {
        const char *text;
        int blank;

        if (l->widths[c] == 0)
            continue;
        text = is_titles ? l->table->columns[c].title : say(l, row, c);
        blank = l->widths[c] - characters(text);
        pad(l->buffer, owed + (l->is_left[c] ? 0 : blank));
        stg_text_buffer_put(l->buffer, text);
        owed = APART + (l->is_left[c] ? blank : 0);
    }
    while (l->buffer->length > 0 &&
           l->buffer->text[l->buffer->length - 1] == ' ')
        l->buffer->length--;
    stg_text_buffer_put_char(l->buffer, '\n');
}

void stg_table_text(const stg_table *t, int width, bool is_utf8,
                    stg_text_buffer *buffer)
{
    lines l = {.table = t,
               .buffer = buffer,
               .cell = stg_text_buffer_on(buffer->memory),
               .is_utf8 = is_utf8};

    measure(&l);
    leave_out(&l, width);
    if (t->title != NULL)
        stg_text_buffer_form(buffer, "%s\n", t->title);
    put_line(&l, 0, true);
    for (size_t row = 0; row < t->row_count; row++)
        put_line(&l, row, false);
    buffer->is_short = buffer->is_short || l.cell.is_short;
    stg_text_buffer_free(&l.cell);
}

/* -- HTML */

/* A curve in the height of a line. */
static void put_html_spark(stg_text_buffer *buffer, const stg_cell *cell)
{
    enum { WIDTH = 96, HEIGHT = 18 };
    double most = 0;
    int before = -1;

    for (size_t i = 0; i < cell->count; i++)
        most = cell->curve[i] > most ? cell->curve[i] : most;
    stg_text_buffer_form(buffer,
                         "<svg class=\"spark\" width=\"%d\" height=\"%d\" "
                         "aria-hidden=\"true\"><path d=\"M0 %d",
                         WIDTH, HEIGHT, HEIGHT);
    for (int i = 0; i < WIDTH && cell->count > 0 && most > 0; i += 2) {
        int level =
            (int)(HEIGHT *
                  (1 - level_of(cell, (size_t)i / 2, WIDTH / 2) / most));

        if (level != before)
            stg_text_buffer_form(buffer, "H%dV%d", i, level);
        before = level;
    }
    stg_text_buffer_form(buffer, "H%dV%dz\"/></svg>", WIDTH, HEIGHT);
}

/* Standard errors are shown in HTML only, not in lines. */
static void put_html_cell(stg_text_buffer *buffer,
                          const stg_table_column *column, const stg_cell *cell)
{
    stg_text_buffer words = stg_text_buffer_on(buffer->memory);

    if (cell->kind == STG_CELL_SPARK) {
        stg_text_buffer_put(buffer, "<td>");
        put_html_spark(buffer, cell);
        stg_text_buffer_put(buffer, "</td>");
        return;
    }
    put_cell(&words, column, cell, true);
    stg_text_buffer_form(buffer, "<td%s>%e",
                         cell->kind == STG_CELL_TEXT ? " class=\"left\"" : "",
                         words.text == NULL ? "" : words.text);
    if (cell->kind == STG_CELL_ESTIMATE && cell->se > 0) {
        stg_text_buffer_put(buffer, " <small>± ");
        put_number(buffer, cell->se, column->is_time);
        stg_text_buffer_put(buffer, "</small>");
    }
    stg_text_buffer_put(buffer, "</td>");
    buffer->is_short = buffer->is_short || words.is_short;
    stg_text_buffer_free(&words);
}

void stg_table_html(const stg_table *t, stg_text_buffer *buffer)
{
    stg_text_buffer_put(buffer, "<table>\n");
    if (t->title != NULL)
        stg_text_buffer_form(buffer, "<caption>%e</caption>\n", t->title);
    stg_text_buffer_put(buffer, "<thead><tr>");
    for (size_t c = 0; c < t->column_count; c++)
        if (is_shown(t, c))
            stg_text_buffer_form(buffer, "<th scope=\"col\"%s>%e</th>",
                                 t->row_count > 0 &&
                                         cell_at(t, 0, c)->kind == STG_CELL_TEXT
                                     ? " class=\"left\""
                                     : "",
                                 t->columns[c].title);
    stg_text_buffer_put(buffer, "</tr></thead>\n<tbody>\n");
    for (size_t row = 0; row < t->row_count; row++) {
        stg_text_buffer_put(buffer, "<tr>");
        for (size_t c = 0; c < t->column_count; c++)
            if (is_shown(t, c))
                put_html_cell(buffer, &t->columns[c], cell_at(t, row, c));
        stg_text_buffer_put(buffer, "</tr>\n");
    }
    stg_text_buffer_put(buffer, "</tbody></table>\n");
}
