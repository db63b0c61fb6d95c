/* assert.h - what is built for a browser is a release: nothing is asserted. */
#ifndef STAGGER_WASM_ASSERT_H
#define STAGGER_WASM_ASSERT_H

#define assert(claim) ((void)0)

#endif
