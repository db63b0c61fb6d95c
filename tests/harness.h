/* harness.h - how a test is written: TEST, the CHECKs, and seeds().
 *
 *     TEST(backoff, never_waits_longer_than_the_cap)
 *     {
 *         for (uint64_t seed = 0; seed < seeds(10000); seed++)
 *             CHECK_FROM(seed, wait_of(seed) <= cap);
 *     }
 *
 * A TEST registers itself, and main() is in harness.c; so a file of tests is a
 * program, and any number of such files is one too. What helps only the tests
 * of one file is static.
 *
 * A CHECK that holds costs a comparison, and may stand in a helper or in the
 * innermost loop. One that fails ends the test. In another thread, or in a
 * child process, it ends the program: no test can be left from there.
 *
 *     test_backoff [PART]   runs all tests, or those with PART in their name
 *
 * STAGGER_SEEDS in the environment scales seeds(), in percent (100).
 * STAGGER_FAIL_FAST, if set, ends the program after the first test that fails.
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdint.h>
#include <string.h>

#define TEST(module, name)                                                  \
    static void module##_##name##_(void);                                   \
    __attribute__((constructor)) static void module##_##name##_add_(void)   \
    {                                                                       \
        static harness_test test = {#module ": " #name, module##_##name##_, \
                                    NULL};                                  \
        harness_add(&test);                                                 \
    }                                                                       \
    static void module##_##name##_(void)

#define CHECK(claim) \
    ((claim) ? (void)0 : harness_fail(__FILE__, __LINE__, "%s", #claim))

/* As CHECK, and a failure names the seed to replay. */
#define CHECK_FROM(seed, claim)                                 \
    ((claim) ? (void)0                                          \
             : harness_fail(__FILE__, __LINE__, "seed %ju: %s", \
                            (uintmax_t)(seed), #claim))

/* Equality; a failure prints both. The strings may be NULL. */
#define CHECK_INT(actual, expected)                              \
    harness_int(__FILE__, __LINE__, #actual, (intmax_t)(actual), \
                (intmax_t)(expected))
#define CHECK_U64(actual, expected) \
    harness_u64(__FILE__, __LINE__, #actual, actual, expected)
#define CHECK_STR(actual, expected) \
    harness_str(__FILE__, __LINE__, #actual, actual, expected)

/* Equality of texts of many lines; a failure prints both, and the first line
 * that differs. */
#define CHECK_TRACE(actual, expected) \
    harness_trace(__FILE__, __LINE__, actual, expected)

/* How many seeds a property is tried on: n at the usual scale, 1 at least. */
uint64_t seeds(uint64_t n);

/* -- what the macros are made of */

typedef struct harness_test harness_test;
struct harness_test {
    const char *name;
    void (*run)(void);
    harness_test *next;
};

void harness_add(harness_test *test);

_Noreturn __attribute__((format(printf, 3, 4))) void
harness_fail(const char *file, int line, const char *format, ...);

void harness_str(const char *file, int line, const char *what,
                 const char *actual, const char *expected);
void harness_trace(const char *file, int line, const char *actual,
                   const char *expected);

static inline void harness_int(const char *file, int line, const char *what,
                               intmax_t actual, intmax_t expected)
{
    if (actual != expected)
        harness_fail(file, line, "%s is %jd, not %jd", what, actual, expected);
}

static inline void harness_u64(const char *file, int line, const char *what,
                               uint64_t actual, uint64_t expected)
{
    if (actual != expected)
        harness_fail(file, line, "%s is %ju, not %ju", what, (uintmax_t)actual,
                     (uintmax_t)expected);
}

#endif
