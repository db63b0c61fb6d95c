/* table.h - every setting, once: its path, kind, range, default, what it does,
 * and an example.
 *
 * The parser and its words, `stagger hub --help`, docs/configuration.md,
 * stagger.yaml(5) and the JSON Schema are all made of this table. Static. */
#ifndef STAGGER_CONFIG_TABLE_H
#define STAGGER_CONFIG_TABLE_H

#include <stdio.h>

#include "config/settings.h"

/* What a path begins in, and the struct that `at` is an offset of, unless it is
 * common. */
typedef enum stg_setting_in {
    STG_IN_HUB,      /* the file: stg_settings */
    STG_IN_TARGET,   /* one of `targets`, or `defaults`: stg_target_settings */
    STG_IN_RECEIVER, /* one of `alerts.receivers`: stg_alert_receiver_options */
    STG_IN_INBOUND,  /* one of `inbound`: stg_inbound_settings */
} stg_setting_in;

enum { STG_IN_COUNT = STG_IN_INBOUND + 1 };

typedef struct stg_kind stg_kind; /* config/kinds/kinds.h */

typedef struct stg_setting {
    const char *path;     /* "store.quota" */
    uint64_t least, most; /* of words: the first one's place */
    const char *none; /* the word for STG_NEVER, also of a number; NULL: it has
                         none */
    const char *const *words; /* of stg_kind_word, in the enum's order */
    const char *standard;     /* the default, as it is written; NULL: none */
    const char *example;
    const char *says; /* what it does: sentences */
    const char *flag; /* of `stagger hub`: "-s, --store FILE"; NULL: none */
    const char *flag_says; /* of the flag, where `says` is of the file only */
    const stg_kind *kind;
    stg_setting_in in;
    uint16_t at, size; /* where its value is, and how large */
    uint16_t count_at; /* of a list: where its count is */
    bool is_fixed;     /* only a restart changes it */
    bool is_common;    /* of a target: `at` is in its stg_target_common */
    bool is_own;       /* of a target: not for `defaults` */
    bool is_needed;    /* there is no default */
    bool is_secret;    /* a file that nobody else may read */
} stg_setting;

/* The setting number i from 0, in the order of the documentation; NULL after the
 * last. */
const stg_setting *stg_setting_at(size_t i);

/* The struct that its value is in: base, or what that target has in common. */
void *stg_setting_base(const stg_setting *s, void *base);

/* Its number. */
size_t stg_setting_number(const stg_setting *s);

/* How many there are. */
size_t stg_setting_count(void);

/* NULL: there is none. */
const stg_setting *stg_setting_find(stg_setting_in in, const char *path,
                                    size_t size);

/* -- printing ------------------------------------------------------------ */

/* The table of settings in other forms: documentation, manual, schema,
 * and the options of `stagger hub`. */

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
