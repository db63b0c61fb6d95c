/* inttypes.h - of <inttypes.h>, the formats that the sources use. */
#ifndef STAGGER_WASM_INTTYPES_H
#define STAGGER_WASM_INTTYPES_H

#include <stdint.h>

#define PRIu32 "u"
#define PRIu64 "llu"

#endif
