/* What a word that is unknown was meant to be: the name with the fewest slips, where a
 * slip is a letter too many, too few, another one, or two that are swapped. The shorter
 * a word, the fewer slips it may have, or it would be like many names. */
#include "base/suggest.h"

#include <stdbool.h>
#include <string.h>

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many letters to change, add, drop or swap with a neighbour; or a large
 * number for words that are too long to be a slip. Damerau's distance without
 * repeated edits (optimal string alignment): it needs three rows of the table
 * at a time. */
static size_t distance(const char *a, size_t a_length, const char *b,
                       size_t b_length)
{
    enum { LONGEST = 32 };
    size_t rows[3][LONGEST + 1];

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

stg_suggestion stg_suggestion_begin(const char *word, size_t length)
{
    // One slip is allowed, from six letters on one in three. A word of a single
    // letter gets no suggestion.
    return (stg_suggestion){.word = word,
                            .length = length,
                            .slips_max = length < 2   ? 0
                                         : length < 6 ? 2
                                                      : length / 3 + 1};
}

/* Whether the name ends in a ':' or '=', and the word does not. */
static bool lacks_end(const stg_suggestion *s, const char *name, size_t length)
{
    char end = length == 0 ? '\0' : name[length - 1];

    return (end == ':' || end == '=') && s->length > 0 &&
           s->word[s->length - 1] != end;
}

void stg_suggestion_try(stg_suggestion *s, const char *name)
{
    size_t length = strlen(name);
    bool is_short = lacks_end(s, name, length);
    size_t slips = distance(s->word, s->length, name, length - is_short);

    if (slips < s->slips_max) {
        s->slips_max = slips;
        s->name = slips == 0 && !is_short ? NULL : name;
    }
}

const char *stg_suggest(const char *word, const char *const *names)
{
    stg_suggestion s = stg_suggestion_begin(word, strlen(word));

    for (; *names != NULL; names++)
        stg_suggestion_try(&s, *names);
    return s.name;
}
