/* text_table.h - a table from texts to numbers, for names that may be many.
 *
 * Zeroed before use; texts are kept. */
#ifndef STAGGER_BASE_TEXT_TABLE_H
#define STAGGER_BASE_TEXT_TABLE_H

#include <stdbool.h>

#include "base/hash.h"

typedef struct stg_text_place {
    const char *text; /* NULL: free */
    size_t number;
} stg_text_place;

typedef struct stg_text_table {
    stg_text_place *at;
    size_t room, count;
    stg_hash_seed seed; /* zeros: drawn for the first text */
} stg_text_table;

/* Adds text with a number, unless it is there. *found, which may be NULL, is the
 * number that it has now. False: there is no memory. */
bool stg_text_table_add(stg_text_table *t, const char *text, size_t number,
                        size_t *found);

/* Whether text is there; its number. */
bool stg_text_table_find(const stg_text_table *t, const char *text,
                         size_t *number);

/* Nothing where it is not there. */
void stg_text_table_remove(stg_text_table *t, const char *text);

void stg_text_table_free(stg_text_table *t);

#endif
