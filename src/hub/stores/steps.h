/* steps.h - the tables of the store: the steps that make them, and that lead
 * from those of an older version to these. */
#ifndef STAGGER_HUB_STORES_STEPS_H
#define STAGGER_HUB_STORES_STEPS_H

#include "hub/stores/sql.h"

/* The version that all steps lead to. */
uint64_t stg_steps_count(void);

/* Takes the steps behind `version`, in the caller's transaction. */
int stg_steps_take(stg_db *db, uint64_t version);

#endif
