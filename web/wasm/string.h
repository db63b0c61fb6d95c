/* string.h - of <string.h>, what the sources use that go into a browser: there
 * is no C library there. See memory.c. */
#ifndef STAGGER_WASM_STRING_H
#define STAGGER_WASM_STRING_H

#include <stddef.h>

void *memchr(const void *bytes, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *bytes, int byte, size_t size);
char *strchr(const char *text, int byte);
int strcmp(const char *a, const char *b);
size_t strlen(const char *text);
int strncmp(const char *a, const char *b, size_t size);
char *strpbrk(const char *text, const char *bytes);
char *strstr(const char *text, const char *part);

#endif
