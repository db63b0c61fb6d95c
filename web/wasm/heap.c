/* The memory of a page: blocks of few sizes, from the end of what the linker
 * laid out up to what the browser grants. A block that is given back waits for
 * the next one of its size. */
#include "heap.h"

#include <stdint.h>

enum {
    ALIGN = 16,
    SIZES = 4 * 24, /* 64, 80, 96, 112, 128, 160 ... to 896 MiB */
    PAGE = 1 << 16, /* of WebAssembly */
};

typedef union block {
    union block *next; /* while it is free */
    unsigned size;     /* which one, while it is not */
    unsigned char head[ALIGN];
} block;

typedef struct heap {
    block *free[SIZES];
    uintptr_t at, end; /* what was never given out */
} heap;

extern unsigned char __heap_base; /* of the linker */

/* A block that nobody had before, or NULL if the browser has no more. */
static block *cut(heap *h, size_t bytes)
{
    block *b;

    if (h->at == 0) {
        h->at = ((uintptr_t)&__heap_base + ALIGN - 1) & -(uintptr_t)ALIGN;
        h->end = __builtin_wasm_memory_size(0) * PAGE;
    }
    if (h->end - h->at < bytes) {
        size_t pages = (bytes - (h->end - h->at) + PAGE - 1) / PAGE;

        if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX)
            return NULL;
        h->end += pages * PAGE;
    }
    b = (block *)h->at;
    h->at += bytes;
    return b;
}

/* Four sizes between two powers of two. */
static size_t bytes_of(unsigned size)
{
    return (size_t)(4 + size % 4) * ALIGN << size / 4;
}

static void *allocate(void *ctx, size_t size)
{
    heap *h = ctx;
    unsigned fit = 0;
    block *b;

    while (fit < SIZES && bytes_of(fit) - sizeof *b < size)
        fit++;
    if (fit == SIZES)
        return NULL;
    b = h->free[fit];
    if (b != NULL)
        h->free[fit] = b->next;
    else if ((b = cut(h, bytes_of(fit))) == NULL)
        return NULL;
    b->size = fit;
    return b + 1;
}

static void release(void *ctx, void *bytes)
{
    heap *h = ctx;
    block *b = (block *)bytes - 1;
    unsigned size = b->size;

    b->next = h->free[size];
    h->free[size] = b;
}

/* The one state that has no owner to hang from: the page is its process. */
static heap the_heap;

const stg_memory stg_wasm_memory = {allocate, release, &the_heap};
