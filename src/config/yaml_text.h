/* yaml_text.h - the text of a settings file, as libyaml can take it. Private to
 * yaml.c. */
#ifndef STAGGER_CONFIG_YAML_TEXT_H
#define STAGGER_CONFIG_YAML_TEXT_H

#include "config/diagnostics.h"

/* Reads a regular file, or a pipe, of 16 MiB at most. *text is to be freed.
 * False: complained. */
bool stg_yaml_text_read(const char *path, char **text, size_t *size,
                        stg_diagnostics *c);

/* Whether it is UTF-8 without control characters; else complained. */
bool stg_yaml_text_check(const char *text, size_t size, stg_diagnostics *c);

#endif
