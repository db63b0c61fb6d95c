/* diff.h - what other settings change: for a reload. */
#ifndef STAGGER_CONFIG_DIFF_H
#define STAGGER_CONFIG_DIFF_H

#include "config/diagnostics.h"
#include "config/kinds/kinds.h"

/* Whether all of it is the same, what its policy says included. Both are of
 * settings that are complete. */
bool stg_settings_same_target(const stg_target_settings *a,
                              const stg_target_settings *b);

/* The target of that name; NULL: there is none. Looks at each of them. */
const stg_target_settings *stg_settings_target(const stg_settings *s,
                                               const char *name);

/* An option of the command goes before the file: reads text into the setting (of
 * the hub, or of the defaults), and remembers it. False: err says why. */
bool stg_settings_override(stg_settings *s, const stg_setting *setting,
                           const char *text, stg_error *err);

/* Before `next` is put into a hub that runs with `old`: gives it what old has of
 * the command's options, and complains, each with its place in next, of what only
 * a restart can change. */
void stg_settings_check_reload(const stg_settings *old, stg_settings *next,
                               stg_diagnostics *c);

#endif
