/* stdio.h - of <stdio.h>, what the sources use that go into a browser: texts,
 * and no files. See print.c. */
#ifndef STAGGER_WASM_STDIO_H
#define STAGGER_WASM_STDIO_H

#include <stdarg.h>
#include <stddef.h>

typedef struct FILE FILE;

__attribute__((format(printf, 3, 4))) int snprintf(char *text, size_t size,
                                                   const char *format, ...);
__attribute__((format(printf, 3, 0))) int
vsnprintf(char *text, size_t size, const char *format, va_list args);

#endif
