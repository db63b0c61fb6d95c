/* load.h - settings out of a file: read, checked, and complained about, all at
 * once; what an option of the command changes in them; and what a reload may. */
#ifndef STAGGER_CONFIG_LOAD_H
#define STAGGER_CONFIG_LOAD_H

#include "config/diagnostics.h"
#include "config/kinds/kinds.h"
#include "config/settings.h"

/* Reads the file, and the small files that it names (secrets, certificates), and
 * looks at the disk: it blocks for as long as these take, also when it is called
 * while a hub runs. Paths in it are relative to its own directory. Returns
 * STG_OK and settings that are complete (perhaps with warnings), or STG_INVALID
 * and every mistake, sorted by place; STG_IO where the file itself cannot be
 * read. c is zeroed before; to be freed in any case. */
stg_status stg_settings_load(const char *path, stg_settings **s,
                             stg_diagnostics *c);

/* The same for a command with options: `options` has their overrides (see
 * stg_settings_override()), and where its hub listens. They are in the place of the
 * file's values before settings are checked beside each other. NULL: there are
 * none. */
stg_status stg_settings_load_over(const char *path, const stg_settings *options,
                                  stg_settings **s, stg_diagnostics *c);

/* The same of a text, which stands for a file of that path. */
stg_status stg_settings_load_text(const char *text, size_t size,
                                  const char *path, stg_settings **s,
                                  stg_diagnostics *c);

/* Reads one target by itself, a map as those of `targets` (in JSON, which is YAML,
 * too), and checks it beside the settings that a hub runs with: their defaults,
 * policies, egress and address hold for it. Paths in it are relative to their
 * file; a secret is never read from a file, for whoever writes the text need not
 * be somebody who may read this machine's files. *t is NULL where another shard has
 * it. It points into base: it goes first.
 * Diagnostics have pointers. Without a `policy` there, or in the defaults, it has
 * the preset for many targets, since their number does not stay.
 * Returns STG_INVALID and every mistake. c is zeroed before; to be freed in any
 * case. */
stg_status stg_settings_load_target(const char *text, size_t size,
                                    const stg_settings *base,
                                    stg_target_settings **t,
                                    stg_diagnostics *c);

/* Warns if others than the hub may use the store's file: it has the bodies of
 * messages. Nothing for one that is not there, or is a database's URL. */
void stg_settings_check_store(stg_diagnostics *c, stg_file_place place,
                              const char *path);

/* Complains where a file that the hub writes (the store with what is beside it,
 * copies, the audit log, its socket) is also the file of another setting, by
 * whatever path: one would destroy the other. Files that are only read may be
 * shared, and so may devices and pipes. For the settings as they are in force,
 * options of the command included; store: the path of the store. Looks at the
 * disk. */
void stg_settings_check_files(const stg_settings *s, const char *store,
                              stg_diagnostics *c);

/* Where a setting of the hub ("store.path") was written; line 0: nowhere. */
stg_file_place stg_settings_place(const stg_settings *s, const char *path);

/* -- what other settings change --------------------------------------------- */

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

/* -- what only a restart changes: fixed.c ----------------------------------- */

/* A copy of the settings that only a restart changes, and of all that they point
 * to; the other settings are the defaults. A hub keeps it from its start to its
 * end. NULL: out of memory. */
stg_settings *stg_settings_copy_fixed(const stg_settings *from);

/* Gives s the values that `fixed` has of them; s points into `fixed`, which has to
 * outlive it. */
void stg_settings_use_fixed(stg_settings *s, const stg_settings *fixed);

/* Complains, each with its place in next, of what only a restart can change; and
 * warns of files whose contents are such a value and have changed. */
void stg_settings_check_reload(const stg_settings *fixed,
                               const stg_settings *next, stg_diagnostics *c);

#endif
