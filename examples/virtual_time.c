/* virtual_time.c - a test of your own code that takes no time.
 *
 * read_stock() is the code under test: it retries for up to a minute. The test
 * gives it a clock that stands still until somebody sleeps, and then jumps; so
 * it sees every wait, exactly, and ends at once. */
#include <stdio.h>

#include <stagger/stagger.h>

/* -- your code: env is NULL in production */

typedef stg_outcome stock_fn(void *ctx, int *stock);

static int read_stock(stock_fn *ask, void *ctx, const stg_env *env)
{
    stg_policy policy = stg_policy_default();
    stg_loop r;
    int stock = -1;

    policy.attempts_max = STG_UNLIMITED;
    policy.deadline = STG_MIN;
    stg_loop_begin(&r, &policy, &(stg_with){.env = env});
    while (stg_loop_again(&r))
        stg_loop_report(&r, ask(ctx, &stock));
    return stock;
}

/* -- its test */

static stg_ns now(void *clock)
{
    return *(stg_ns *)clock;
}

static bool sleep_until(void *clock, stg_ns until_at, const stg_cancel *cancel)
{
    (void)cancel;
    *(stg_ns *)clock = until_at;
    return true;
}

static uint64_t always_the_same(void *clock)
{
    (void)clock;
    return 42;
}

static stg_outcome fail(void *ctx, int *stock)
{
    (void)stock;
    ++*(int *)ctx;
    return stg_answered(503);
}

static stg_outcome fail_twice(void *ctx, int *stock)
{
    if (++*(int *)ctx <= 2)
        return stg_answered(503);
    *stock = 7;
    return stg_ok();
}

int main(void)
{
    stg_ns clock = 0;
    stg_env env = {now, sleep_until, always_the_same, &clock};
    int asked = 0, stock = read_stock(fail_twice, &asked, &env);
    char took[STG_NS_TEXT_MAX];

    printf("asked %d times in %s: %d\n", asked, stg_ns_text(clock, took),
           stock);
    if (stock != 7 || asked != 3)
        return 1;

    asked = 0;
    clock = 0;
    stock = read_stock(fail, &asked, &env);
    printf("asked %d times in %s: %d\n", asked, stg_ns_text(clock, took),
           stock);
    return stock == -1 && clock < STG_MIN && asked > 3 ? 0 : 1;
}
