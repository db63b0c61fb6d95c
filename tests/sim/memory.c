#include "tests/sim/memory.h"

#include <stdint.h>
#include <stdlib.h>

enum { HEAD = 64 }; /* before what was asked for: its size */

static void *allocate(void *ctx, size_t size)
{
    test_memory *m = ctx;
    size_t *head;

    if (m->left == 0)
        return NULL;
    m->left--;
    head = malloc(HEAD + size);
    if (head == NULL)
        return NULL;
    *head = size;
    m->held += size;
    if (m->held > m->most)
        m->most = m->held;
    return (char *)head + HEAD;
}

static void release(void *ctx, void *bytes)
{
    test_memory *m = ctx;
    size_t *head = (size_t *)(void *)((char *)bytes - HEAD);

    m->held -= *head;
    free(head);
}

stg_memory test_memory_of(test_memory *m)
{
    *m = (test_memory){.left = SIZE_MAX};
    return (stg_memory){allocate, release, m};
}
