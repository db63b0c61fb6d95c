#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/reader.h"

void stg_options_complain(const char *who, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", who);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void stg_options_point(const char *text, uint32_t column)
{
    enum { SHOWN = 72, BEFORE = 48 };
    size_t length = strcspn(text, "\r\n");
    size_t at = column > 0 ? column - 1 : 0, start, end;

    if (at > length)
        at = length;
    start = length > SHOWN && at > BEFORE ? at - BEFORE : 0;
    end = length - start > SHOWN ? start + SHOWN : length;
    fputs(start > 0 ? "  ..." : "  ", stderr);
    // A byte is a column here, and a tab would be many.
    for (size_t i = start; i < end; i++)
        fputc(text[i] >= ' ' && text[i] <= '~' ? text[i]
              : text[i] == '\t'                ? ' '
                                               : '?',
              stderr);
    fputs(end < length ? "...\n" : "\n", stderr);
    fprintf(stderr, "%*s^\n", (int)(at - start) + (start > 0 ? 5 : 2), "");
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters to change, add, drop or swap with a neighbour; or a large
 * number for words that are too long to be a slip. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 32 };
    size_t rows[3][LONGEST + 1];
    size_t a_length = strlen(a), b_length = strlen(b);

    if (a_length > LONGEST || b_length > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3];
        const size_t *higher = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            bool is_same = a[i - 1] == b[j - 1];

            row[j] = least_of(above[j - 1] + !is_same,
                              1 + least_of(above[j], row[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], 1 + higher[j - 2]);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *stg_options_suggest(const char *word, const char *const *names)
{
    // One slip, or one in three letters; a letter alone is no slip.
    size_t length = strlen(word);
    size_t best = length < 6 ? 2 : length / 3 + 1;
    const char *suggestion = NULL;

    if (length < 2)
        return NULL;

    for (; *names != NULL; names++) {
        size_t slips = distance(word, *names);

        if (slips < best) {
            best = slips;
            suggestion = *names;
        }
    }
    return suggestion;
}

bool stg_options_read_int(const char *text, uint32_t least, uint32_t most,
                          uint32_t *number)
{
    stg_reader r = {text, text + strlen(text)};

    return stg_read_int(&r, number) && stg_reader_is_empty(&r) &&
           *number >= least && *number <= most;
}

int stg_options_finish(const char *who, int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    stg_options_complain(who, "cannot write the output: %s", strerror(errno));
    return STG_EXIT_USAGE;
}
