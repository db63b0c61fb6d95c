/* The memory primitives, which a compiler calls by their names whatever the
 * source says. Compiled without its built-in knowledge of them, or their loops
 * would become calls of themselves. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

void *memchr(const void *bytes, int byte, size_t size)
{
    const unsigned char *at = bytes;

    for (; size > 0; at++, size--)
        if (*at == (unsigned char)byte)
            return (void *)(uintptr_t)at;
    return NULL;
}

int memcmp(const void *a, const void *b, size_t size)
{
    const unsigned char *x = a, *y = b;

    for (; size > 0; x++, y++, size--)
        if (*x != *y)
            return *x < *y ? -1 : 1;
    return 0;
}

/* Of eight bytes each, as long as there are eight: memory that is not aligned
 * costs nothing here. */
void *memcpy(void *to, const void *from, size_t size)
{
    unsigned char *out = to;
    const unsigned char *in = from;

    for (; size >= 8; out += 8, in += 8, size -= 8)
        __builtin_memcpy(out, in, 8);
    for (; size > 0; out++, in++, size--)
        *out = *in;
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    unsigned char *out = to;
    const unsigned char *in = from;

    if ((uintptr_t)to - (uintptr_t)from >= size)
        return memcpy(to, from, size);
    while (size > 0) {
        size--;
        out[size] = in[size];
    }
    return to;
}

void *memset(void *bytes, int byte, size_t size)
{
    const uint64_t eight = (unsigned char)byte * UINT64_C(0x0101010101010101);
    unsigned char *out = bytes;

    for (; size >= 8; out += 8, size -= 8)
        __builtin_memcpy(out, &eight, 8);
    for (; size > 0; out++, size--)
        *out = (unsigned char)byte;
    return bytes;
}

char *strchr(const char *text, int byte)
{
    for (;; text++) {
        if (*text == (char)byte)
            return (char *)(uintptr_t)text;
        if (*text == '\0')
            return NULL;
    }
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

size_t strlen(const char *text)
{
    size_t length = 0;

    while (text[length] != '\0')
        length++;
    return length;
}

int strncmp(const char *a, const char *b, size_t size)
{
    for (; size > 0; a++, b++, size--) {
        if (*a != *b)
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        if (*a == '\0')
            return 0;
    }
    return 0;
}

char *strpbrk(const char *text, const char *bytes)
{
    for (; *text != '\0'; text++)
        if (strchr(bytes, *text) != NULL)
            return (char *)(uintptr_t)text;
    return NULL;
}

char *strstr(const char *text, const char *part)
{
    size_t length = strlen(part);

    for (;; text++) {
        if (strncmp(text, part, length) == 0)
            return (char *)(uintptr_t)text;
        if (*text == '\0')
            return NULL;
    }
}
