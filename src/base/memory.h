/* memory.h - where memory comes from, and pieces of it that are kept.
 *
 * The hook lets what is pure hold memory without knowing an allocator. */
#ifndef STAGGER_BASE_MEMORY_H
#define STAGGER_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stg_memory {
    void *(*allocate)(void *ctx, size_t size); /* NULL: there is none left */
    void (*release)(void *ctx, void *bytes);   /* never called with NULL */
    void *ctx;
} stg_memory;

/* -- pools ------------------------------------------------------------------- */

/* Pieces of memory of one size that are given back and soon wanted
 * again.
 *
 * It keeps STG_POOL_MAX of them at most, the last one given comes first: it is
 * still in the processor's cache. All others go back to where they came from.
 * Under the address sanitizer a pool keeps nothing, so that no use of a piece
 * after its end is hidden. A zeroed pool is empty. */

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { STG_POOL_MAX = 0 };
#else
enum { STG_POOL_MAX = 128 };
#endif

typedef struct stg_pool_piece {
    struct stg_pool_piece *next;
} stg_pool_piece;

typedef struct stg_pool {
    stg_pool_piece *first;
    uint32_t count;
} stg_pool;

/* A piece with whatever is in it; NULL: there is none. */
static inline void *stg_pool_take(stg_pool *p)
{
    stg_pool_piece *piece = p->first;

    if (piece == NULL)
        return NULL;
    p->first = piece->next;
    p->count--;
    return piece;
}

/* False: it keeps no more, and the piece is still the caller's. */
static inline bool stg_pool_give(stg_pool *p, void *bytes)
{
    stg_pool_piece *piece = bytes;

    if (p->count + 1 > (uint32_t)STG_POOL_MAX)
        return false;
    piece->next = p->first;
    p->first = piece;
    p->count++;
    return true;
}

#endif
