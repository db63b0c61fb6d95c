/* suggest.h - what a word that is unknown was meant to be. Pure. */
#ifndef STAGGER_BASE_SUGGEST_H
#define STAGGER_BASE_SUGGEST_H

#include <stddef.h>

/* A search among names that come one by one; `name` is the one so far that the
 * word is most like, or NULL if it is like none, or is one. A word without the
 * ':' or '=' at the end of a name has made no slip by that, and is not that
 * name. The word and the names are borrowed until it is over. */
typedef struct stg_suggestion {
    const char *word; /* of `length` bytes, not terminated */
    size_t length;
    size_t slips_max; /* as many are too many */
    const char *name; /* out */
} stg_suggestion;

stg_suggestion stg_suggestion_begin(const char *word, size_t length);
void stg_suggestion_try(stg_suggestion *s, const char *name);

/* The name that word is most like, or NULL if it is like none, or is one. names
 * ends with NULL. */
const char *stg_suggest(const char *word, const char *const *names);

#endif
