/* complaints.h - what is wrong with a settings file, and what is unwise: all of
 * it at once, each with its place. */
#ifndef STAGGER_CONFIG_COMPLAINTS_H
#define STAGGER_CONFIG_COMPLAINTS_H

#include <stdbool.h>
#include <stdio.h>

#include "config/settings.h"

typedef struct stg_complaint {
    stg_file_place place; /* line 0: of no place in the file */
    bool is_warning;      /* legal, but unwise */
    char *text;           /* what; wanted; did you mean: a line */
} stg_complaint;

enum { STG_COMPLAINTS_MAX = 500 };

/* Zeroed before use, and freed after it. */
typedef struct stg_complaints {
    stg_complaint *all;
    size_t count, room;
    size_t mistakes, warnings; /* the same one at one place counts once */
    size_t cut;                /* more than STG_COMPLAINTS_MAX: not kept */
    bool is_memory_short;      /* there was none for a text: a mistake, too */
} stg_complaints;

__attribute__((format(printf, 3, 4))) void
stg_complain(stg_complaints *c, stg_file_place place, const char *format, ...);

/* Legal but unwise. */
__attribute__((format(printf, 3, 4))) void
stg_warn(stg_complaints *c, stg_file_place place, const char *format, ...);

/* By place; those of no place first. */
void stg_complaints_sort(stg_complaints *c);

/* "file:line:column: TEXT", or "file: TEXT" of no place. */
void stg_complaint_print(const stg_complaint *one, const char *file, FILE *to);

/* The same, a line each; a warning says so. */
void stg_complaints_print(const stg_complaints *c, const char *file, FILE *to);

void stg_complaints_free(stg_complaints *c);

#endif
