#include "tests/harness.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// A test that fails jumps to its end, which only the thread and the process that
// run it can do. They are written once, before the first test.
static jmp_buf test_end;
static pthread_t main_thread;
static pid_t main_process;
static uint64_t scale = 100;

static harness_test *first, **last = &first;

void harness_add(harness_test *test)
{
    *last = test;
    last = &test->next;
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
        longjmp(test_end, 1);
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

static bool passes(const harness_test *test)
{
    if (setjmp(test_end) != 0)
        return false;
    test->run();
    return true;
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    const char *percent = getenv("STAGGER_SEEDS");
    bool is_fail_fast = getenv("STAGGER_FAIL_FAST") != NULL;
    size_t passed = 0, failed = 0;

    main_thread = pthread_self();
    main_process = getpid();
    if (percent)
        scale = strtoull(percent, NULL, 10);

    for (const harness_test *test = first; test; test = test->next) {
        bool is_good;

        if (strstr(test->name, part) == NULL)
            continue;
        printf("[ RUN    ] %s\n", test->name);
        fflush(stdout); // before a crash, or a child that would print it again
        is_good = passes(test);
        printf("[ %s ] %s\n", is_good ? "    OK" : "FAILED", test->name);
        passed += is_good;
        failed += !is_good;
        if (is_fail_fast && failed > 0)
            break;
    }
    printf("%zu passed, %zu failed\n", passed, failed);
    if (passed + failed == 0)
        fprintf(stderr, "no test has \"%s\" in its name\n", part);
    return passed + failed == 0 ? 2 : failed > 0;
}
