/* Memory and order, as <stdlib.h> has them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"

void *calloc(size_t count, size_t size)
{
    void *bytes;

    if (size > 0 && count > SIZE_MAX / size)
        return NULL;
    bytes = stg_wasm_memory.allocate(stg_wasm_memory.ctx, count * size);
    return bytes == NULL ? NULL : memset(bytes, 0, count * size);
}

void free(void *bytes)
{
    if (bytes != NULL)
        stg_wasm_memory.release(stg_wasm_memory.ctx, bytes);
}

static void swap(unsigned char *a, unsigned char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = a[i];

        a[i] = b[i];
        b[i] = byte;
    }
}

/* By insertion: what is sorted here is some hundreds, and nearly in order. */
void qsort(void *all, size_t count, size_t size,
           int (*compare)(const void *a, const void *b))
{
    unsigned char *bytes = all;

    for (size_t i = 1; i < count; i++)
        for (size_t at = i * size;
             at > 0 && compare(bytes + at - size, bytes + at) > 0; at -= size)
            swap(bytes + at - size, bytes + at, size);
}
