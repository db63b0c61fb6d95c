/* Text without printf, which core does not have. A text that does not fit is
 * cut, and its whole length still counted, so that a caller can tell. The text
 * ends in a NUL after each piece, if it has room for one. */
#include "core/writer.h"

#include <string.h>

stg_writer stg_writer_on(char *text, size_t size)
{
    if (text == NULL)
        size = 0;
    if (size > 0)
        text[0] = '\0';
    return (stg_writer){.text = text, .size = size};
}

void stg_write_char(stg_writer *w, char c)
{
    if (w->length + 1 < w->size) {
        w->text[w->length] = c;
        w->text[w->length + 1] = '\0';
    }
    w->length++;
}

static void write_bytes(stg_writer *w, const char *text, size_t count)
{
    size_t left = w->length + 1 < w->size ? w->size - w->length - 1 : 0;
    size_t fits = count < left ? count : left;

    if (fits > 0) {
        memcpy(w->text + w->length, text, fits);
        w->text[w->length + fits] = '\0';
    }
    w->length += count;
}

void stg_write_text(stg_writer *w, const char *text)
{
    write_bytes(w, text, strlen(text));
}

/* Texts of errors quote what anybody may have written: only printable ASCII
 * goes in. */
void stg_write_part(stg_writer *w, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        stg_write_char(w, text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
}

void stg_write_word(stg_writer *w, const char *word, size_t length)
{
    enum { SHOWN = 40 };

    stg_write_part(w, word, length < SHOWN ? length : SHOWN);
    if (length > SHOWN)
        stg_write_text(w, "...");
}

/* The end of a long path says more than its beginning. */
void stg_write_path(stg_writer *w, const char *path)
{
    enum { SHOWN = 100 };
    size_t length = strlen(path);

    if (length > SHOWN) {
        stg_write_text(w, "...");
        path += length - SHOWN;
        length = SHOWN;
    }
    stg_write_part(w, path, length);
}

void stg_write_number(stg_writer *w, uint64_t number)
{
    char digits[20];
    size_t first = sizeof digits;

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    write_bytes(w, digits + first, sizeof digits - first);
}

void stg_write_thousandths(stg_writer *w, uint64_t thousandths)
{
    uint64_t rest = thousandths % 1000;

    stg_write_number(w, thousandths / 1000);
    if (rest == 0)
        return;
    stg_write_char(w, '.');
    for (uint64_t place = 100; rest > 0; place /= 10) {
        stg_write_char(w, (char)('0' + rest / place));
        rest %= place;
    }
}

/* In the largest unit that divides it, so that it is read back as the same
 * number. */
void stg_write_duration(stg_writer *w, stg_ns ns)
{
    static const struct {
        stg_ns length;
        const char *name;
    } units[] = {{STG_DAY, "d"}, {STG_HOUR, "h"}, {STG_MIN, "m"}, {STG_S, "s"},
                 {STG_MS, "ms"}, {STG_US, "us"},  {1, "ns"}};
    size_t i = 0;

    if (ns == 0 || ns == STG_NEVER) {
        stg_write_text(w, ns == 0 ? "0" : "none");
        return;
    }
    while (ns % units[i].length != 0)
        i++;
    stg_write_number(w, ns / units[i].length);
    stg_write_text(w, units[i].name);
}

const char *stg_duration_text(stg_ns ns, char text[STG_DURATION_TEXT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_DURATION_TEXT_MAX);

    stg_write_duration(&w, ns);
    return text;
}

stg_writer stg_writer_on_error(stg_error *err)
{
    if (err == NULL)
        return stg_writer_on(NULL, 0);
    err->line = 0;
    err->column = 0;
    return stg_writer_on(err->text, sizeof err->text);
}

stg_status stg_refuse(stg_error *err, const char *text)
{
    stg_writer w = stg_writer_on_error(err);

    stg_write_text(&w, text);
    return STG_INVALID;
}

static stg_writer start(stg_error *err, const char *key)
{
    stg_writer w = stg_writer_on_error(err);

    stg_write_text(&w, key);
    stg_write_char(&w, '=');
    return w;
}

static stg_status finish(stg_writer *w, const char *expected)
{
    stg_write_text(w, " is out of range, expected ");
    stg_write_text(w, expected);
    return STG_INVALID;
}

stg_status stg_refuse_number(stg_error *err, const char *key, uint64_t found,
                             const char *expected)
{
    stg_writer w = start(err, key);

    stg_write_number(&w, found);
    return finish(&w, expected);
}

stg_status stg_refuse_thousandths(stg_error *err, const char *key,
                                  uint64_t found, const char *expected)
{
    stg_writer w = start(err, key);

    stg_write_thousandths(&w, found);
    return finish(&w, expected);
}

stg_status stg_refuse_percent(stg_error *err, const char *key, uint64_t found,
                              const char *expected)
{
    stg_writer w = start(err, key);

    stg_write_number(&w, found);
    stg_write_char(&w, '%');
    return finish(&w, expected);
}

stg_status stg_refuse_duration(stg_error *err, const char *key, stg_ns found,
                               const char *expected)
{
    stg_writer w = start(err, key);

    if (found == STG_NEVER)
        stg_write_text(&w, "none");
    else
        stg_write_duration(&w, found);
    return finish(&w, expected);
}

stg_status stg_refuse_cap(stg_error *err, stg_ns cap, const char *key,
                          stg_ns ns)
{
    stg_writer w = stg_writer_on_error(err);

    stg_write_text(&w, "cap=");
    stg_write_duration(&w, cap);
    stg_write_text(&w, " is below ");
    stg_write_text(&w, key);
    stg_write_char(&w, '=');
    stg_write_duration(&w, ns);
    return STG_INVALID;
}
