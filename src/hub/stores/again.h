/* again.h - what a thread that reads does when the store does not answer: it
 * asks again. */
#ifndef STAGGER_HUB_STORES_AGAIN_H
#define STAGGER_HUB_STORES_AGAIN_H

#include "hub/stores/inbox.h"

/* Whether what failed with rc is to be done again; a connection that was gone is
 * there again then. False with STG_SQL_AWAY: the store closes, and it was waited
 * for long enough. */
bool stg_store_again(stg_inbox *in, stg_db *db, int rc);

/* A connection of a thread's own, by the url, or to the file at `path` if that
 * is NULL. */
int stg_store_connect(stg_db **db, const char *url, const char *path);

#endif
