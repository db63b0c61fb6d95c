/* malloc_memory.h - base/memory.h's hook by malloc(). */
#ifndef STAGGER_TESTS_MALLOC_MEMORY_H
#define STAGGER_TESTS_MALLOC_MEMORY_H

#include <stdlib.h>

#include "base/memory.h"

static inline void *stg_malloc_allocate(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static inline void stg_malloc_release(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

#define STG_MALLOC_MEMORY                                               \
    {                                                                   \
        .allocate = stg_malloc_allocate, .release = stg_malloc_release, \
        .ctx = NULL                                                     \
    }

#endif
