/* store_names.h - the names of a store's files: PATH, and those that SQLite and the
 * lock keep beside the file that PATH leads to. */
#ifndef STAGGER_STORE_STORE_NAMES_H
#define STAGGER_STORE_STORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "host/named_file.h"

enum { STG_STORE_NAMES = 5 };

/* Looks for the file number i of the store at path, i below STG_STORE_NAMES; 0 is
 * PATH itself. Blocks. False: not even its folder is there. */
bool stg_store_look_file(const char *path, size_t i, stg_named_file *f);

/* Tells whether a file is one of the store's at path, a const char *: nobody else
 * may write to it. Blocks. */
bool stg_store_has_file(void *path, const struct stat *file);

#endif
