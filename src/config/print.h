/* print.h - the table of settings in other forms: documentation, manual, schema,
 * and the options of `stagger hub`. */
#ifndef STAGGER_CONFIG_PRINT_H
#define STAGGER_CONFIG_PRINT_H

#include <stdio.h>

#include "config/table.h"

/* A file that is short and has the parts that most need. */
extern const char stg_settings_example[];

/* docs/configuration.md */
void stg_settings_print_docs(FILE *to);

/* docs/man/stagger.yaml.5, in mdoc. */
void stg_settings_print_manual(FILE *to);

/* packaging/stagger.schema.json, of the draft 2020-12. */
void stg_settings_print_schema(FILE *to);

/* The lines of --help for the flag of a setting, or for another one. */
void stg_settings_print_flag(FILE *to, const stg_setting *s);
void stg_settings_print_option(FILE *to, const char *flag, const char *says);

/* Words for people, wrapped: the line begins behind `used` columns, those that
 * follow behind `indent`. Backquotes are left out. */
void stg_print_wrapped(FILE *to, const char *text, int used, int indent);

#endif
