/* memory.h - memory for the simulator in tests, which counts. */
#ifndef TESTS_SIM_MEMORY_H
#define TESTS_SIM_MEMORY_H

#include "base/memory.h"

typedef struct test_memory {
    size_t held, most; /* bytes, now and at most */
    size_t left;       /* allocations until there is no memory */
} test_memory;

/* Memory that is told of in m, and does not end; m is kept. */
stg_memory test_memory_of(test_memory *m);

#endif
