/* query.h - letters by a filter, as the query thread looks for them. */
#ifndef STAGGER_STORE_QUERY_H
#define STAGGER_STORE_QUERY_H

#include "store/letter.h"
#include "store/sql.h"

/* A copy of a filter, its own. */
typedef struct stg_filter {
    stg_letter_filter f;                                   /* ids rise */
    char since[STG_SQL_TIME_MAX], until[STG_SQL_TIME_MAX]; /* "": no bound */
    stg_arena texts;
} stg_filter;

/* False: no memory. */
bool stg_filter_copy(stg_filter *to, const stg_letter_filter *from);
void stg_filter_free(stg_filter *f);

typedef struct stg_found {
    stg_letter *letters;
    bool *are_forgotten; /* their targets are */
    size_t count, room;
    uint64_t next; /* see stg_letters_fn */
    stg_arena texts;
} stg_found;

/* A page behind `after`. found is zeroed, or was used before. */
int stg_find_page(stg_db *db, const stg_filter *f, uint64_t after,
                  size_t rows_max, bool is_newest_first, stg_found *found);

/* One, whole; count is 0 if there is none. */
int stg_find_one(stg_db *db, uint64_t id, stg_found *found);

/* Those of a page, whole, by their ids; without what is gone by now. */
int stg_find_whole(stg_db *db, const stg_found *page, stg_found *found);

/* Whether there is a target of this name, or a letter of one. */
int stg_find_is_target(stg_db *db, const char *name, bool *is_known);

/* The position of the oldest message in the queue; UINT64_MAX: it has none. */
int stg_find_first(stg_db *db, uint64_t *position);

/* Letters that a copy is to have, whole, with the version of each: those behind
 * ?1; or, in a store that others use, of the partitions ?1. At most ?2. */
enum { STG_FIND_CHANGED_VERSION = STG_LETTER_SELECTED }; /* its column */
int stg_find_prepare_changed(stg_db *db, stg_stmt **st);

/* The row that st is at; the letter is whole. False: no memory. */
bool stg_find_add(stg_found *found, stg_stmt *st, size_t rows_max);

/* Forgets what it has. False: no memory. */
bool stg_found_clear(stg_found *found, size_t rows_max);

void stg_found_free(stg_found *found);

#endif
