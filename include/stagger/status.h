/* status.h - how a call that can fail says so, and where. */
#ifndef STAGGER_STATUS_H
#define STAGGER_STATUS_H

#include <stagger/api.h>

STG_DECLS_BEGIN

typedef enum stg_status {
    STG_OK = 0,
    STG_INVALID,   /* an argument, setting or text that cannot be used */
    STG_NOT_FOUND, /* no such name, or the end of a list */
    STG_IO,        /* the system refused: a file, the source of entropy */
} stg_status;

/* The words to a status that is not STG_OK. text is one line without an end of
 * line, and names the place, what was found and what was expected:
 * "policy:1:24: cap=100ms is below base=200ms". line and column count from 1
 * (bytes); both are 0 where the input has no lines. Functions that take a
 * stg_error take NULL too, and write it only when they fail. */
typedef struct stg_error {
    uint32_t line;
    uint32_t column;
    char text[376];
} stg_error;

STG_DECLS_END

#endif
