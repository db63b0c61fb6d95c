/* cause.h - which dead letters a word means: those of one cause, of a family of
 * causes, or of a category. */
#ifndef STAGGER_STORE_CAUSE_H
#define STAGGER_STORE_CAUSE_H

#include <stdbool.h>

#include <stagger/outcome.h>

/* One of both; the other is "". */
typedef struct stg_cause {
    char pattern[STG_CAUSE_MAX]; /* "HTTP_503", "PAUSED"; "HTTP_5*": all that
                                    begin so */
    char category[2];            /* "A" connect, B server, C request,
                                    D overload */
} stg_cause;

/* Reads a fault in any spelling that policies know (503, HTTP_503, refused,
 * ECONNREFUSED, 5xx, connect, A ...), or the cause of a bulk row, like PAUSED.
 * False: dead letters have no such cause; near is then what was meant, as
 * records write it, "" if it is like none. */
bool stg_cause_read(stg_cause *cause, const char *word,
                    char near[STG_CAUSE_MAX]);

bool stg_cause_fits(const char *pattern, const char *cause);

#endif
