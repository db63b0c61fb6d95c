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

/* What --help says of a setting's flag, its default included. Returns text. */
enum { STG_FLAG_TEXT_MAX = 600 };
const char *stg_settings_flag_text(const stg_setting *s,
                                   char text[STG_FLAG_TEXT_MAX]);

#endif
