/* say_json.h - prints an answer as JSON, in which what no terminal may show is
 * escaped: the same value, whoever reads it. */
#ifndef STAGGER_CLI_SAY_JSON_H
#define STAGGER_CLI_SAY_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Indented, or in one line; and an end of line. */
void stg_say_json(FILE *to, const json_t *value, bool is_line);

#endif
