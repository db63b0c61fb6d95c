/* load.h - settings out of a file: read, checked, and complained about, all at
 * once. */
#ifndef STAGGER_CONFIG_LOAD_H
#define STAGGER_CONFIG_LOAD_H

#include "config/diagnostics.h"
#include "config/settings.h"

/* Reads the file, and the small files that it names (secrets, certificates), and
 * looks at the disk: it blocks for as long as these take, also when it is called
 * while a hub runs. Paths in it are relative to its own directory. Returns
 * STG_OK and settings that are complete (perhaps with warnings), or STG_INVALID
 * and every mistake, sorted by place; STG_IO where the file itself cannot be
 * read. c is zeroed before; to be freed in any case. */
stg_status stg_settings_load(const char *path, stg_settings **s,
                             stg_diagnostics *c);

/* The same of a text, which stands for a file of that path. */
stg_status stg_settings_load_text(const char *text, size_t size,
                                  const char *path, stg_settings **s,
                                  stg_diagnostics *c);

/* Warns if others than the hub may use the store's file: it has the bodies of
 * messages. Nothing for one that is not there, or is a database's URL. */
void stg_settings_check_store(stg_diagnostics *c, stg_file_place place,
                              const char *path);

/* Where a setting of the hub ("store.path") was written; line 0: nowhere. */
stg_file_place stg_settings_place(const stg_settings *s, const char *path);

#endif
