/* memory.h - where memory comes from: a hook, so that what is pure can hold
 * some without knowing an allocator. */
#ifndef STAGGER_BASE_MEMORY_H
#define STAGGER_BASE_MEMORY_H

#include <stddef.h>

typedef struct stg_memory {
    void *(*allocate)(void *ctx, size_t size); /* NULL: there is none left */
    void (*release)(void *ctx, void *bytes);   /* never called with NULL */
    void *ctx;
} stg_memory;

#endif
