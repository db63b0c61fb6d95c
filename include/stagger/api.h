/* api.h - what every public header needs: visibility, C++, the shared word.
 *
 * STG_API marks what the shared library exports. STG_DECLS_BEGIN and
 * STG_DECLS_END give the declarations between them C linkage in C++. */
#ifndef STAGGER_API_H
#define STAGGER_API_H

#include <stdint.h>

#if defined(__GNUC__)
#define STG_API __attribute__((visibility("default")))
#else
#define STG_API
#endif

#ifdef __cplusplus
#define STG_DECLS_BEGIN extern "C" {
#define STG_DECLS_END }
#else
#define STG_DECLS_BEGIN
#define STG_DECLS_END
#endif

/* One word that threads share, and one flag. Only the library touches it; to C++,
 * which has no _Atomic, they are opaque numbers of the same size. */
#ifdef __cplusplus
typedef uint64_t stg_word __attribute__((aligned(8)));
typedef uint32_t stg_flag;
#else
typedef _Atomic uint64_t stg_word;
typedef _Atomic uint32_t stg_flag;
_Static_assert(sizeof(stg_word) == 8 && _Alignof(stg_word) == 8,
               "a shared word is eight bytes, aligned");
_Static_assert(sizeof(stg_flag) == 4, "a flag is four bytes");
#endif

#endif
