/* core.c - what the library costs: an operation that succeeds, one that must
 * wait, and the pieces of both. `make bench` runs it. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include <stagger/call.h>
#include <stagger/loop.h>
#include <stagger/text.h>

#include "bench/meter.h"
#include "core_size.h" // made by size.sh: CORE_SIZE

static stg_policy policy_of(const char *text)
{
    stg_policy policy = {0};

    (void)stg_policy_parse(&policy, text, NULL); // a zeroed one is refused
    return policy;
}

/* -- an operation that succeeds at once */

static stg_outcome succeed(void *ctx)
{
    (void)ctx;
    return stg_ok();
}

/* What is called is not known beforehand. */
static stg_call_fn *volatile attempt = succeed;

static stg_policy plain, client, backend;
static stg_peer peer;

static void bare(size_t n)
{
    while (n-- > 0) {
        stg_outcome o = attempt(NULL);

        meter_hide(&o);
    }
}

static void call_with(const stg_policy *policy, const stg_with *with, size_t n)
{
    while (n-- > 0) {
        bool is_done = stg_call(policy, with, attempt, NULL, NULL);

        meter_hide(&is_done);
    }
}

static void loop_with(const stg_policy *policy, const stg_with *with, size_t n)
{
    while (n-- > 0) {
        stg_loop r;

        stg_loop_begin(&r, policy, with);
        while (stg_loop_again(&r))
            stg_loop_report(&r, attempt(NULL));
        meter_hide(&r);
    }
}

static void call_plain(size_t n)
{
    call_with(&plain, NULL, n);
}

static void loop_plain(size_t n)
{
    loop_with(&plain, NULL, n);
}

static void call_client(size_t n)
{
    call_with(&client, NULL, n);
}

static void call_backend(size_t n)
{
    call_with(&backend, &(stg_with){.peer = &peer}, n);
}

static void loop_backend(size_t n)
{
    loop_with(&backend, &(stg_with){.peer = &peer}, n);
}

static void read_clock(size_t n)
{
    const stg_env *env = stg_env_system();

    while (n-- > 0) {
        stg_ns now = env->now(NULL);

        meter_hide(&now);
    }
}

static void measure_success(void)
{
    plain = policy_of("client deadline=none");
    client = policy_of("client");
    backend = policy_of("backend");
    (void)stg_peer_init(&peer, &backend);

    meter_begin("success at once, over the bare call");
    meter_compare("stg_call, no deadline", 15, bare, call_plain);
    meter_compare("stg_loop, no deadline", 15, bare, loop_plain);
    meter_compare("stg_call, backend: clock, budget, peer", 60, bare,
                  call_backend);
    meter_compare("stg_loop, backend: clock, budget, peer", 60, bare,
                  loop_backend);
    meter_compare("stg_call, a deadline: clock", 0, bare, call_client);
    meter_compare("the clock alone", 0, NULL, read_clock);
}

/* -- decisions: core alone, on a clock of its own */

static stg_retry in_attempt;
static stg_rng rng;
static stg_with with_peer = {.peer = &peer};

/* An operation in its first attempt, to make copies of. */
static void start(const stg_policy *policy, const stg_with *with)
{
    (void)stg_retry_start(&in_attempt, policy, with, STG_HOUR);
    (void)stg_retry_admit(&in_attempt, STG_HOUR, &rng);
}

static void copy_retry(size_t n)
{
    while (n-- > 0) {
        stg_retry r = in_attempt;

        meter_hide(&r);
    }
}

static void decide(size_t n)
{
    const stg_outcome o = stg_answered(503);
    stg_ns now = STG_HOUR;

    while (n-- > 0) {
        stg_retry r = in_attempt;
        stg_decision d = stg_retry_step(&r, &o, now++, &rng);

        meter_hide(&r);
        meter_hide(&d);
    }
}

/* Pays, and is given back what it paid. */
static void decide_and_cancel(size_t n)
{
    const stg_outcome o = stg_answered(503);
    stg_ns now = STG_HOUR;

    while (n-- > 0) {
        stg_retry r = in_attempt;
        stg_decision d = stg_retry_step(&r, &o, now, &rng);

        meter_hide(&d);
        d = stg_retry_cancel(&r, now++);
        meter_hide(&r);
    }
}

static void measure_decisions(void)
{
    rng = stg_rng_seed(1);
    meter_begin("stg_retry_step, a decision to wait");
    start(&client, NULL);
    meter_compare("after a 503", 40, copy_retry, decide);
    start(&backend, &with_peer);
    meter_compare("after a 503, paid, and cancelled", 0, copy_retry,
                  decide_and_cancel);
}

/* -- the pieces */

static const char text[] =
    "exponential base=200ms cap=30s jitter=full attempts=5 deadline=2m "
    "retry=5xx,429,408,timeout,reset once=connect-timeout budget=100:10/s";

static void parse(size_t n)
{
    while (n-- > 0) {
        stg_policy p;

        (void)stg_policy_parse(&p, text, NULL);
        meter_hide(&p);
    }
}

static void print(size_t n)
{
    char out[STG_POLICY_TEXT_MAX];
    stg_policy p = policy_of(text);

    while (n-- > 0) {
        (void)stg_policy_print(&p, out);
        meter_hide(out);
    }
}

static void classify(size_t n)
{
    static const int errors[] = {ECONNREFUSED, ECONNRESET, ETIMEDOUT, EPIPE};

    while (n-- > 0) {
        stg_outcome o = stg_failed_errno(errors[n % 4]);

        meter_hide(&o);
    }
}

static void classify_status(size_t n)
{
    while (n-- > 0) {
        stg_outcome o = stg_answered(500 + (int)(n % 4));

        meter_hide(&o);
    }
}

static void look_up_rule(size_t n)
{
    stg_outcome o = stg_answered(503);
    stg_policy p = policy_of(text);

    while (n-- > 0) {
        int limited;
        uint16_t retries = stg_policy_retries(&p, &o, &limited);

        meter_hide(&retries);
    }
}

static stg_breaker breaker;

static void enter_and_report(size_t n)
{
    stg_ns now = STG_HOUR, reopen_at;

    while (n-- > 0) {
        stg_permit p = stg_breaker_enter(&breaker, now++, &reopen_at);

        stg_breaker_report(&breaker, p == STG_PERMIT_PROBE, STG_BREAKER_SUCCESS,
                           now, now);
    }
}

static void measure_pieces(void)
{
    stg_breaker_options row = {.rule = STG_BREAKER_ROW,
                               .failures = 5,
                               .open = 30 * STG_S,
                               .open_max = 30 * STG_S};
    stg_breaker_options share = {.rule = STG_BREAKER_SHARE,
                                 .percent = 50,
                                 .calls = 20,
                                 .window = 10 * STG_S,
                                 .open = 30 * STG_S,
                                 .open_max = 30 * STG_S};

    meter_begin("the pieces");
    meter_compare("parse a policy of 140 letters", 0, NULL, parse);
    meter_compare("print it", 0, NULL, print);
    meter_compare("classify an errno", 0, NULL, classify);
    meter_compare("classify a status", 0, NULL, classify_status);
    meter_compare("look up its rule", 0, NULL, look_up_rule);
    (void)stg_breaker_init(&breaker, &row);
    meter_compare("breaker, in a row: enter and report", 0, NULL,
                  enter_and_report);
    (void)stg_breaker_init(&breaker, &share);
    meter_compare("breaker, by share: enter and report", 0, NULL,
                  enter_and_report);
}

/* -- two threads on one budget */

static _Atomic uint64_t word;
static stg_budget budget;
static _Thread_local unsigned long refusals; // there should be none

static void swap(size_t n)
{
    uint64_t seen = atomic_load(&word);

    while (n-- > 0)
        while (!atomic_compare_exchange_strong(&word, &seen, seen + 1))
            ;
}

/* Time goes on faster than tokens are taken: there is always one. */
static void take(size_t n)
{
    static _Thread_local stg_ns now = STG_HOUR;

    while (n-- > 0) {
        stg_grant g =
            stg_budget_take(&budget, STG_CHARGE_RETRY, now += 4 * STG_US);

        refusals += !g.granted;
        meter_hide(&g);
    }
}

/* Both do half of it. */
static void swap_in_pair(size_t n)
{
    meter_pair(swap, n / 2);
}

static void take_in_pair(size_t n)
{
    meter_pair(take, n / 2);
}

static void measure_sharing(void)
{
    stg_budget_options o = {
        .kind = STG_BUDGET_TOKENS, .capacity = 1000000, .rate = 1000000000};

    (void)stg_budget_init(&budget, &o);
    meter_begin("a token budget");
    meter_compare("one thread: compare-and-swap", 0, NULL, swap);
    meter_compare("one thread: take", 0, NULL, take);
    meter_pair_begin();
    meter_compare("two threads: compare-and-swap", 0, NULL, swap_in_pair);
    meter_compare("two threads: take", 40, NULL, take_in_pair);
    meter_pair_end();
    if (refusals > 0)
        meter_number("refused, in this thread", refusals, "times", 0);
}

int main(void)
{
    measure_success();
    measure_decisions();
    measure_sharing();
    measure_pieces();
    printf("\n");
    meter_number("sizeof(stg_retry)", sizeof(stg_retry), "bytes", 64);
    meter_number("sizeof(stg_loop)", sizeof(stg_loop), "bytes", 0);
    meter_number("sizeof(stg_policy)", sizeof(stg_policy), "bytes", 0);
    meter_number("sizeof(stg_peer)", sizeof(stg_peer), "bytes", 0);
    meter_number(".text + .rodata of core", CORE_SIZE, "bytes", 96 * 1024);
    return 0;
}
