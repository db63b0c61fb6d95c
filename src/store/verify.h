/* verify.h - whether a store is sound: SQLite's own check, and what must hold
 * between its tables. Changes nothing, and works while a hub has the store: all
 * is looked at as of one moment. */
#ifndef STAGGER_STORE_VERIFY_H
#define STAGGER_STORE_VERIFY_H

#include "store/sql.h"

typedef struct stg_verified {
    uint64_t messages, lanes, parked, keys;
    uint64_t letters; /* rows, in whatever state: these are */
    uint64_t dead, replayed, dropped, expired, cancelled;
    uint64_t flaws;
} stg_verified;

/* A flaw in words: what, and where. Lent. */
typedef void stg_flaw_fn(void *ctx, const char *words);

/* STG_OK also when there are flaws: see v->flaws. Else it could not be read, or
 * is no store: STG_IO or STG_INVALID with words. each may be NULL. */
stg_status stg_verify(const char *path, stg_verified *v, stg_flaw_fn *each,
                      void *ctx, stg_error *err);

#endif
