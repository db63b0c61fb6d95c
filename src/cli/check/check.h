/* check.h - what `stagger check` shows of settings that can be used. */
#ifndef STAGGER_CLI_CHECK_CHECK_H
#define STAGGER_CLI_CHECK_CHECK_H

#include <stdio.h>

#include "config/print.h"
#include "config/settings.h"

/* What a hub would do: where messages come from, what is kept, and a table of
 * the targets. No header's value is in it. */
void stg_check_summary(const stg_settings *s, FILE *to);

#endif
