/* values.h - what is written for one setting, read into its value: the same for
 * a settings file and for the options of the command.
 *
 * Kinds that are more than one text (headers, lists, maps) are the loader's. */
#ifndef STAGGER_CONFIG_VALUES_H
#define STAGGER_CONFIG_VALUES_H

#include "config/table.h"

/* What is wrong with a value: "`5` has no unit", "a time from 1m to 365d, like
 * 24h", "5m". */
typedef struct stg_value_flaw {
    char what[400];
    char wanted[240];
    char hint[80];   /* "": none */
    uint32_t column; /* in the text, from 1; 0: all of it */
} stg_value_flaw;

enum { STG_EXPECTED_MAX = 240 };

/* What is wanted of a setting, for people: "true or false". Returns text. */
const char *stg_setting_expected(const stg_setting *s,
                                 char text[STG_EXPECTED_MAX]);

/* Whether stg_value_read() reads its kind. */
bool stg_setting_is_scalar(const stg_setting *s);

/* Reads text into the setting's value in base, the struct that it is a part of.
 * Texts are kept, not copied. False: *flaw says why; nothing was changed. */
bool stg_value_read(const stg_setting *s, const char *text, void *base,
                    stg_value_flaw *flaw);

#endif
