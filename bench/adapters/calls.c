/* calls.c - what a call costs in C, for bench/adapters.py.
 *
 * usage: calls bare|call|loop success|retry
 *
 * Prints the ns of one call of a function that succeeds at once, or fails once
 * and is called again without a wait. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/stagger.h>

enum { WARM = 20000 };

static unsigned calls, failures; /* every how many calls one fails; 0: none */
static stg_policy policy;

static stg_outcome work(void *ctx)
{
    (void)ctx;
    return failures != 0 && ++calls % failures == 1 ? stg_failed_errno(111)
                                                    : stg_ok();
}

/* What is called is not known beforehand. */
static stg_call_fn *volatile attempt = work;

static bool bare(void)
{
    while (attempt(NULL).fault != STG_FAULT_NONE)
        continue;
    return true;
}

static bool call(void)
{
    return stg_call(&policy, NULL, attempt, NULL, NULL);
}

static bool loop(void)
{
    stg_loop r;

    stg_loop_begin(&r, &policy, NULL);
    while (stg_loop_again(&r))
        stg_loop_report(&r, attempt(NULL));
    return stg_loop_result(&r).next == STG_DONE;
}

static double measure(bool (*f)(void), unsigned count)
{
    stg_ns began = stg_env_system()->now(NULL);

    for (unsigned i = 0; i < count; i++)
        if (!f())
            abort();
    return (double)(stg_env_system()->now(NULL) - began) / count;
}

int main(int argc, char **argv)
{
    bool (*f)(void);

    if (argc != 3 ||
        stg_policy_parse(&policy, "fixed base=0 attempts=4 deadline=none",
                         NULL) != STG_OK)
        return 2;
    f = strcmp(argv[1], "call") == 0   ? call
        : strcmp(argv[1], "loop") == 0 ? loop
                                       : bare;
    failures = strcmp(argv[2], "retry") == 0 ? 2 : 0;
    measure(f, WARM);
    printf("%.2f\n", measure(f, failures != 0 ? 200000 : 5000000));
    return 0;
}
