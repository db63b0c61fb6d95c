/* fuzz.h - what the fuzz targets share. A target says what must hold of any
 * bytes; libFuzzer keeps those that it does not hold of. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define HOLDS(claim)                                                        \
    ((claim) ? (void)0                                                      \
             : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #claim), \
                abort()))

/* libFuzzer calls it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
