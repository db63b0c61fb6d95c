#include "base/suggest.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

const char *stg_suggest(const char *word, const char *const *names)
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
