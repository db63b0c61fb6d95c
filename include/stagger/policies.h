/* policies.h - a file of named policies, a line each:
 *
 *     # who calls the database
 *     db: backend deadline=10s
 *     hooks: webhook attempts=4   # the partner asked for less
 *
 * A name is 1 to 64 of a-z A-Z 0-9 - _ . and starts with a letter; it stands
 * once in a file and is not a preset's. Errors say file, line and column.
 * These functions are pure: they read a buffer. To read a file see load.h. */
#ifndef STAGGER_POLICIES_H
#define STAGGER_POLICIES_H

#include <stddef.h>

#include <stagger/text.h>

STG_DECLS_BEGIN

#define STG_NAME_MAX 65 /* the terminator included */

/* A walk over a buffer. The caller fills in source (for errors; NULL reads as
 * "policies"), text and size, and zeroes the rest; all is borrowed until the
 * walk ends. */
typedef struct stg_policies {
    const char *source;
    const char *text;
    size_t size;
    size_t at;     /* where the next line starts */
    uint32_t line; /* how many lines lie before it */
} stg_policies;

/* The next policy: STG_OK with name and policy; STG_NOT_FOUND at the end;
 * STG_INVALID with err at the first thing wrong, where the walk stays. */
STG_API stg_status stg_policies_next(stg_policies *walk,
                                     char name[STG_NAME_MAX],
                                     stg_policy *policy, stg_error *err);

/* The policy called name. Reads the whole buffer first, so that an error
 * anywhere is told: STG_INVALID. STG_NOT_FOUND: no such name. */
STG_API stg_status stg_policies_find(const stg_policies *file, const char *name,
                                     stg_policy *policy, stg_error *err);

STG_DECLS_END

#endif
