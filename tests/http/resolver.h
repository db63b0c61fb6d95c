/* resolver.h - in place of the system's getaddrinfo(), so that no test asks
 * anyone. Its table of names is in resolver.c. */
#ifndef TESTS_HTTP_RESOLVER_H
#define TESTS_HTTP_RESOLVER_H

#include <stdatomic.h>

extern atomic_uint resolver_lookups; /* so far, of everyone */
extern atomic_bool resolver_is_slow; /* slow.test waits for as long as it is */
extern atomic_int resolver_moves;    /* what moving.test resolves to, in turn */

#endif
