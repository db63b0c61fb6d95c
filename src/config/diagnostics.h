/* diagnostics.h - what is wrong with a settings file, and what is unwise: all of
 * it at once, each with its place. */
#ifndef STAGGER_CONFIG_DIAGNOSTICS_H
#define STAGGER_CONFIG_DIAGNOSTICS_H

#include <stdbool.h>
#include <stdio.h>

#include "config/settings.h"

typedef struct stg_diagnostic {
    stg_file_place place; /* line 0: of no place in the file */
    bool is_warning;      /* legal, but unwise */
    char *text;           /* what; expected; did you mean: a line */
    char
        *pointer; /* of JSON (RFC 6901), to what it is about; NULL: of a file */
} stg_diagnostic;

enum { STG_DIAGNOSTICS_MAX = 500 };

/* A value that is shown by the name that it came by. */
typedef struct stg_hidden stg_hidden;

/* Zeroed before use, and freed after it. */
typedef struct stg_diagnostics {
    stg_diagnostic *all;
    size_t count, room;
    size_t mistakes, warnings; /* the same one at one place counts once */
    size_t cut;                /* more than STG_DIAGNOSTICS_MAX: not kept */
    bool is_memory_short;      /* there was none for a text: a mistake, too */
    stg_hidden *hidden;
} stg_diagnostics;

__attribute__((format(printf, 3, 4))) void
stg_complain(stg_diagnostics *c, stg_file_place place, const char *format, ...);

/* Legal but unwise. */
__attribute__((format(printf, 3, 4))) void
stg_warn(stg_diagnostics *c, stg_file_place place, const char *format, ...);

/* From now on `value`, which came from the environment, is shown as ${NAME}. One
 * of fewer than six bytes only where it is all that is quoted or shown: it is no
 * secret, and may be a part of any word. False: no memory. */
bool stg_diagnostics_hide(stg_diagnostics *c, const char *name,
                          const char *value);

/* The text without what is hidden, and without parts of that; to be freed. NULL:
 * no memory. */
char *stg_diagnostics_show(const stg_diagnostics *c, const char *text);

/* By place; those of no place first. */
void stg_diagnostics_sort(stg_diagnostics *c);

/* "file:line:column: TEXT", or "file: TEXT" of no place. */
void stg_diagnostic_print(const stg_diagnostic *one, const char *file,
                          FILE *to);

/* The same, a line each; a warning says so. */
void stg_diagnostics_print(const stg_diagnostics *c, const char *file,
                           FILE *to);

void stg_diagnostics_free(stg_diagnostics *c);

#endif
