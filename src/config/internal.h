/* internal.h - what the files of the settings share. Private to them. */
#ifndef STAGGER_CONFIG_INTERNAL_H
#define STAGGER_CONFIG_INTERNAL_H

#include "base/text_table.h"
#include "config/settings.h"

typedef struct stg_settings_chunk stg_settings_chunk;

/* An option of the command, which goes before the file. */
typedef struct stg_settings_override_note stg_settings_override_note;
struct stg_settings_override_note {
    stg_settings_override_note *next;
    const struct stg_setting *setting;
    const char *text;
};

struct stg_settings_inside {
    stg_settings_chunk *chunks; /* the newest first */
    size_t target_room;
    stg_text_table compiled; /* policies by text and timeout, to `policies` */
    const stg_policy **policies;
    size_t policy_room;
    stg_file_place
        *places; /* of the hub's settings, by number; NULL: no file */
    stg_settings_override_note *overrides; /* in their order */
    bool is_complete;
};

#endif
