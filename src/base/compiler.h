/* compiler.h - what we tell a compiler that knows it. */
#ifndef STAGGER_BASE_COMPILER_H
#define STAGGER_BASE_COMPILER_H

/* For what the next statements fill in, as far as it is read: a compiler that
 * zeroes locals to be safe would write it twice, in each call. */
#ifdef __has_attribute
#if __has_attribute(uninitialized)
#define STG_UNINITIALIZED __attribute__((uninitialized))
#endif
#endif
#ifndef STG_UNINITIALIZED
#define STG_UNINITIALIZED
#endif

/* Keeps the stack frame of a rare path out of its caller. */
#ifdef __GNUC__
#define STG_NOINLINE __attribute__((noinline))
#else
#define STG_NOINLINE
#endif

#endif
