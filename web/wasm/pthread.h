/* pthread.h - the type that a header of the command names: a page has one
 * thread. */
#ifndef STAGGER_WASM_PTHREAD_H
#define STAGGER_WASM_PTHREAD_H

typedef int pthread_mutex_t;

#endif
