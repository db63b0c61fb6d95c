#include "tests/harness.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// cmocka.h wants these before it.
#include <setjmp.h>

#include <cmocka.h>

// Only one thread of one process can leave a test, for cmocka jumps out of it.
// These are written once, before the first test.
static pthread_t main_thread;
static pid_t main_process;
static uint64_t scale = 100;

static harness_test *first, **last = &first;
static size_t tests;

void harness_add(harness_test *test)
{
    *last = test;
    last = &test->next;
    tests++;
}

uint64_t seeds(uint64_t n)
{
    uint64_t scaled = n / 100 * scale + n % 100 * scale / 100;

    return scaled > 0 ? scaled : 1;
}

void harness_fail(const char *file, int line, const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "%s:%d: ", file, line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);

    if (getpid() != main_process)
        _exit(1);
    if (pthread_equal(pthread_self(), main_thread))
        _fail(file, line);
    abort();
}

void harness_str(const char *file, int line, const char *what,
                 const char *actual, const char *expected)
{
    if (actual == expected)
        return;
    if (actual && expected && strcmp(actual, expected) == 0)
        return;
    harness_fail(file, line, "%s is\n    %s\nand not\n    %s", what,
                 actual ? actual : "NULL", expected ? expected : "NULL");
}

/* The start of the first line that differs, in a, and its number. */
static const char *first_difference(const char *a, const char *b, int *number)
{
    const char *start = a;

    *number = 1;
    for (; *a && *a == *b; a++, b++) {
        if (*a == '\n') {
            start = a + 1;
            ++*number;
        }
    }
    return start;
}

void harness_trace(const char *file, int line, const char *actual,
                   const char *expected)
{
    const char *start;
    int number;

    if (!actual)
        harness_fail(file, line, "the trace is NULL");
    if (strcmp(actual, expected) == 0)
        return;
    start = first_difference(actual, expected, &number);
    harness_fail(file, line,
                 "the trace differs from line %d on, which is\n%.*s\n"
                 "-- the trace:\n%s\n-- was expected:\n%s",
                 number, (int)strcspn(start, "\n"), start, actual, expected);
}

// A failure jumps out of run(), so that `finished` stays false behind it.
static bool finished = true;
static bool fail_fast;

static void run(void **state)
{
    const harness_test *test = *state;

    if (fail_fast && !finished)
        exit(1);
    finished = false;
    test->run();
    finished = true;
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    const char *percent = getenv("STAGGER_SEEDS");
    struct CMUnitTest *chosen = calloc(tests + 1, sizeof *chosen);
    size_t count = 0;
    int failed;

    main_thread = pthread_self();
    main_process = getpid();
    fail_fast = getenv("STAGGER_FAIL_FAST") != NULL;
    if (percent)
        scale = strtoull(percent, NULL, 10);
    if (!chosen)
        return 2;

    for (harness_test *test = first; test; test = test->next) {
        if (strstr(test->name, part))
            chosen[count++] = (struct CMUnitTest){
                .name = test->name, .test_func = run, .initial_state = test};
    }
    if (count == 0) {
        fprintf(stderr, "no test has \"%s\" in its name\n", part);
        free(chosen);
        return 2;
    }
    failed = _cmocka_run_group_tests("tests", chosen, count, NULL, NULL);
    free(chosen);
    return failed ? 1 : 0;
}
