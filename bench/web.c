/* What the page does, natively: bench/web.py has the same calls under node.
 *
 * usage: web CLIENTS REPETITIONS    prints calls, and CPU seconds */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/wasm.h"

static void *allocate(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void release(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

static const char policy[] =
    "exponential base=10ms cap=2s jitter=full "
    "attempts=unlimited deadline=none";

int main(int argc, char **argv)
{
    stg_memory memory = {allocate, release, NULL};
    stg_wasm *w = stg_wasm_new(&memory);
    uint32_t clients = argc == 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    uint32_t reps = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    clock_t began;

    if (w == NULL ||
        *stg_wasm_begin(w, clients, reps, 1, "optimistic", "normal:10ms:2ms") ||
        *stg_wasm_add(w, "full", policy)) {
        fprintf(stderr, "usage: web CLIENTS REPETITIONS\n");
        return 2;
    }
    began = clock();
    while (stg_wasm_repeat(w, 0))
        ;
    printf("%.0f %.6f\n", stg_wasm_sums(w, 0)[STG_WASM_CALLS] * reps,
           (double)(clock() - began) / CLOCKS_PER_SEC);
    stg_wasm_free(w);
    return 0;
}
