/* pq_state.h - SQLSTATEs in libpq's words. Private.
 *
 * libpq keeps the code of a connection that was refused to itself, but has it in
 * its words where it is asked to be verbose (PQERRORS_VERBOSE), which a
 * connection can be asked that is not made yet. */
#ifndef STAGGER_ADAPTERS_PQ_STATE_H
#define STAGGER_ADAPTERS_PQ_STATE_H

#include <string.h>

/* The next code in such words, "FATAL:  28P01: password ..."; NULL: there is
 * none. It is not terminated. */
static inline const char *stg_pq_next_state(const char *words)
{
    static const char signs[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    while ((words = strstr(words, ":  ")) != NULL) {
        words += 3;
        if (strspn(words, signs) == 5 && words[5] == ':')
            return words;
    }
    return NULL;
}

#endif
