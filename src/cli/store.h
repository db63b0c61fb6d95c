/* store.h - where the store is, for every command that wants one. */
#ifndef STAGGER_CLI_STORE_H
#define STAGGER_CLI_STORE_H

#include <stdbool.h>

/* What --store said, else STAGGER_STORE in the environment, else
 * "./stagger.db". given may be NULL. Lent. */
const char *stg_store_path(const char *given);

/* Whether it is one that may stand in a command line: everybody on the machine
 * reads those, and a URL's password in them. If not, complains. given as
 * above. */
bool stg_store_path_check(const char *who, const char *given);

/* Whether a file that can be read is at path. If not, complains. */
bool stg_store_path_look(const char *who, const char *path);

#endif
