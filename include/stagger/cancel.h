/* cancel.h - ends operations from outside: from another thread, or from a
 * signal handler.
 *
 * A zeroed stg_cancel is ready: `static stg_cancel stop;`. Any number of
 * operations may share one. Setting it wakes those that sleep, and each of
 * them gives up with the reason `cancelled`. It stays set. An attempt under way
 * is not broken off by loop and call, and if it succeeds the operation is done;
 * on a libuv loop it is abandoned within 50 ms, one of libcurl within a second
 * (in a stg_curl_multi within 50 ms), and a statement that stg_pq_exec() waits
 * for is ended. */
#ifndef STAGGER_CANCEL_H
#define STAGGER_CANCEL_H

#include <stdbool.h>

#include <stagger/api.h>

STG_DECLS_BEGIN

typedef struct stg_cancel {
    stg_flag is_set;
} stg_cancel;

/* Async-signal-safe, and keeps errno. */
STG_API void stg_cancel_set(stg_cancel *c);

STG_API bool stg_cancel_is_set(const stg_cancel *c);

STG_DECLS_END

#endif
