/* check_try.h - who would get a message, and why not: `stagger check --try`. */
#ifndef STAGGER_CLI_CHECK_TRY_H
#define STAGGER_CLI_CHECK_TRY_H

#include <stdbool.h>

#include "base/text.h"
#include "config/diagnostics.h"
#include "config/settings.h"

/* A message as it is published. Zeroed before use. */
typedef struct stg_try {
    const char
        *file; /* the body's; "-": standard input; NULL: nothing is tried */
    const char *type, *key, *topic; /* NULL: none was given */
    stg_text headers;               /* lines */
    bool is_json;                   /* what is printed */
} stg_try;

/* Adds 'Name: value'. Complains, and returns STG_EXIT_USAGE, where it is none. */
int stg_try_add_header(stg_try *t, const char *text);

/* Prints a line a target, without what c hides. Returns 0, or STG_EXIT_USAGE and complains: the file
 * cannot be read, or a hub would drop one of the headers. */
int stg_try_run(const stg_try *t, const stg_settings *s,
                const stg_diagnostics *c);

void stg_try_free(stg_try *t);

#endif
