/* opening.h - from a file to a store: what is there is looked at before it is
 * touched, what is missing is made, what is of another version is refused. */
#ifndef STAGGER_STORE_OPENING_H
#define STAGGER_STORE_OPENING_H

#include "store/epochs.h"
#include "store/store.h"

/* The connection of the writer, on a file that stg_claim_begin() took: in WAL,
 * synchronous=FULL, with the quota's number of pages. Returns STG_IO or
 * STG_INVALID with words, and then *db is still to be closed if it is not
 * NULL. */
stg_status stg_opening_open(stg_db **db, const stg_store_options *o,
                            stg_epochs *epochs, stg_error *err);

#endif
