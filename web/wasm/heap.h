/* heap.h - memory of a page in a browser. */
#ifndef STAGGER_WASM_HEAP_H
#define STAGGER_WASM_HEAP_H

#include "base/memory.h"

extern const stg_memory stg_wasm_memory;

#endif
