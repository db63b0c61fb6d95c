/* stdlib.h - of <stdlib.h>, what the sources use that go into a browser. See
 * library.c. */
#ifndef STAGGER_WASM_STDLIB_H
#define STAGGER_WASM_STDLIB_H

#include <stddef.h>

void *calloc(size_t count, size_t size);
void free(void *bytes);
void qsort(void *all, size_t count, size_t size,
           int (*compare)(const void *a, const void *b));

#endif
