/* store_path.h - where the store is, for every verb that wants one. */
#ifndef STAGGER_CLI_STORE_PATH_H
#define STAGGER_CLI_STORE_PATH_H

/* What --store said, else STAGGER_STORE in the environment, else
 * "./stagger.db". given may be NULL. Lent. */
const char *stg_store_path(const char *given);

#endif
