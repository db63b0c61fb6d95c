/* suggest.h - what a word that is unknown was meant to be. Pure. */
#ifndef STAGGER_BASE_SUGGEST_H
#define STAGGER_BASE_SUGGEST_H

/* The name that word is most like, or NULL if it is like none. names ends with
 * NULL. */
const char *stg_suggest(const char *word, const char *const *names);

#endif
