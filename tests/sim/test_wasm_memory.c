/* The memory primitives and the formats of the page, under other names, beside
 * the system's. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/rng.h>

#include "tests/harness.h"

void *our_memchr(const void *bytes, int byte, size_t size);
int our_memcmp(const void *a, const void *b, size_t size);
void *our_memcpy(void *to, const void *from, size_t size);
void *our_memmove(void *to, const void *from, size_t size);
void *our_memset(void *bytes, int byte, size_t size);
char *our_strchr(const char *text, int byte);
int our_strcmp(const char *a, const char *b);
size_t our_strlen(const char *text);
int our_strncmp(const char *a, const char *b, size_t size);
char *our_strpbrk(const char *text, const char *bytes);
char *our_strstr(const char *text, const char *part);

#define memchr our_memchr
#define memcmp our_memcmp
#define memcpy our_memcpy
#define memmove our_memmove
#define memset our_memset
#define strchr our_strchr
#define strcmp our_strcmp
#define strlen our_strlen
#define strncmp our_strncmp
#define strpbrk our_strpbrk
#define strstr our_strstr
#include "web/wasm/memory.c"
#include "web/wasm/wide.c"

int our_snprintf(char *text, size_t size, const char *format, ...);
int our_vsnprintf(char *text, size_t size, const char *format, va_list args);

#undef snprintf // clang's fortified ones are macros
#undef vsnprintf
#define snprintf our_snprintf
#define vsnprintf our_vsnprintf
#include "web/wasm/print.c"
#undef snprintf
#undef vsnprintf

void *our_calloc(size_t count, size_t size);
void our_free(void *bytes);
void our_qsort(void *all, size_t count, size_t size,
               int (*compare)(const void *a, const void *b));

#define calloc our_calloc
#define free our_free
#define qsort our_qsort
#include "web/wasm/library.c"
#undef calloc
#undef free
#undef qsort

static void *allocate(void *ctx, size_t size)
{
    (void)ctx;
    return memset(malloc(size), 7, size);
}

static void release(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

const stg_memory stg_wasm_memory = {allocate, release, NULL};
#undef memchr
#undef memcmp
#undef memcpy
#undef memmove
#undef memset
#undef strchr
#undef strcmp
#undef strlen
#undef strncmp
#undef strpbrk
#undef strstr

enum { SIZE = 64 };

static int sign(int x)
{
    return (x > 0) - (x < 0);
}

/* Few different bytes, so that much is equal. */
static void fill(char bytes[SIZE + 1], stg_rng *rng)
{
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)(254 + stg_rng_upto(rng, 3));
    bytes[stg_rng_upto(rng, SIZE)] = '\0';
    bytes[SIZE] = '\0';
}

TEST(wasm_memory, does_as_the_system_does)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        char a[SIZE + 1], b[SIZE + 1], copy[SIZE + 1];
        size_t size = stg_rng_upto(&rng, SIZE);
        size_t from = stg_rng_upto(&rng, SIZE - size);
        size_t to = stg_rng_upto(&rng, SIZE - size);
        int byte = (int)stg_rng_upto(&rng, 255);

        fill(a, &rng);
        fill(b, &rng);
        memcpy(b, a, from); // much of them is the same
        CHECK_FROM(seed,
                   sign(our_memcmp(a, b, size)) == sign(memcmp(a, b, size)));
        CHECK_FROM(seed, sign(our_strcmp(a, b)) == sign(strcmp(a, b)));
        CHECK_FROM(seed,
                   sign(our_strncmp(a, b, size)) == sign(strncmp(a, b, size)));
        CHECK_FROM(seed, our_strlen(a) == strlen(a));
        CHECK_FROM(seed, our_strchr(a, a[from]) == strchr(a, a[from]));
        CHECK_FROM(seed, our_strchr(a, byte) == strchr(a, byte));
        CHECK_FROM(seed, our_memchr(a, byte, size) == memchr(a, byte, size));
        b[2] = '\0';
        CHECK_FROM(seed, our_strpbrk(a, b) == strpbrk(a, b));
        CHECK_FROM(seed, our_strstr(a, b) == strstr(a, b));

        memcpy(copy, a, sizeof a);
        CHECK_FROM(seed, our_memmove(a + to, a + from, size) == a + to);
        memmove(copy + to, copy + from, size);
        CHECK_FROM(seed, memcmp(a, copy, sizeof a) == 0);
        CHECK_FROM(seed, our_memset(a + from, byte, size) == a + from);
        memset(copy + from, byte, size);
        CHECK_FROM(seed, memcmp(a, copy, sizeof a) == 0);
        fill(b, &rng);
        CHECK_FROM(seed, our_memcpy(a + to, b + from, size) == a + to);
        memcpy(copy + to, b + from, size);
        CHECK_FROM(seed, memcmp(a, copy, sizeof a) == 0);
    }
}

TEST(wasm_memory, multiplies_to_128_bits)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t word[4];
        unsigned __int128 a, b;
        wide product;

        for (int i = 0; i < 4; i++)
            word[i] = stg_rng_next(&rng) >> stg_rng_upto(&rng, 63);
        a = (unsigned __int128)word[1] << 64 | word[0];
        b = (unsigned __int128)word[3] << 64 | word[2];
        a *= b;
        product = __multi3(word[0], word[1], word[2], word[3]);
        CHECK_FROM(seed, product.low == (uint64_t)a);
        CHECK_FROM(seed, product.high == (uint64_t)(a >> 64));
    }
}

TEST(wasm_memory, prints_as_the_system_does)
{
    static const unsigned long long numbers[] = {0, 7, 10, 4294967296,
                                                 UINT64_MAX};
    static const char format[] = "%s|%u.%02u|%5u|%llu|100%%|%s";

    for (size_t size = 0; size < SIZE; size++)
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            char a[SIZE] = "a", b[SIZE] = "a";
            unsigned small = (unsigned)numbers[i];

            CHECK_INT(our_snprintf(a, size, format, "", small, small, small,
                                   numbers[i], "end"),
                      snprintf(b, size, format, "", small, small, small,
                               numbers[i], "end"));
            CHECK_STR(a, b);
        }
}

static int compare(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

TEST(wasm_memory, sorts_and_zeroes)
{
    for (uint64_t seed = 0; seed < seeds(200); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        size_t count = stg_rng_upto(&rng, SIZE);
        uint16_t a[SIZE + 1], b[SIZE + 1];
        unsigned char *bytes = our_calloc(count + 1, 3);

        for (size_t i = 0; i < count; i++)
            a[i] = b[i] = (uint16_t)stg_rng_upto(&rng, 300);
        our_qsort(a, count, sizeof *a, compare);
        qsort(b, count, sizeof *b, compare);
        CHECK_FROM(seed, memcmp(a, b, count * sizeof *a) == 0);
        for (size_t i = 0; i < 3 * (count + 1); i++)
            CHECK_FROM(seed, bytes[i] == 0);
        our_free(bytes);
    }
    our_free(NULL);
    CHECK(our_calloc(SIZE_MAX, 2) == NULL);
}
