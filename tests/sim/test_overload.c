/* Storms, what ends them, and what a run promises. */
#include "tests/sim/memory.h"
#include "tests/sim/overload_help.h"

#define STEADY "exponential base=500ms cap=5s jitter=full deadline=none "

static stg_overload_options stalled(const char *policy)
{
    stg_overload_options o = stg_overload_default();

    o.policy = help_policy(policy);
    o.trigger.kind = STG_TRIGGER_STALL;
    return o;
}

/* Goodput and requests sent, a second, over the last twenty. */
typedef struct late {
    double goodput, sent;
} late;

static late look_late(const stg_overload_options *o,
                      const stg_overload_result *r)
{
    uint32_t count = (uint32_t)(20 * STG_S / o->bin);
    late l = {0};

    for (uint32_t i = r->bin_count - count; i < r->bin_count; i++) {
        l.goodput += r->bins[i].succeeded / 20.0;
        l.sent += r->bins[i].sent / 20.0;
    }
    return l;
}

/* The trigger lasts ten seconds, and the service could do 1000 a second where
 * 700 are requested. A minute later nothing works: every request is answered after
 * its client has gone, and each of these comes back. */
TEST(overload, shows_a_storm_that_naive_retries_never_end)
{
    static const char *const naive[] = {
        "fixed base=100ms jitter=none attempts=4",
        "exponential base=100ms jitter=none attempts=5",
        "exponential base=500ms cap=5s jitter=full attempts=6", // jitter too
    };

    for (size_t i = 0; i < sizeof naive / sizeof *naive; i++)
        for (uint64_t n = 0; n < seeds(2); n++) {
            stg_overload_options o = stalled(naive[i]);
            stg_overload_result r = help_run(&o, n);
            late l = look_late(&o, &r);

            CHECK_FROM(n, r.recovery.was_healthy);
            CHECK_FROM(n, r.recovery.before > 650 && r.recovery.before < 750);
            CHECK_FROM(n, !r.recovery.is_recovered);
            CHECK_FROM(n, l.goodput < 0.05 * r.recovery.before);
            CHECK_FROM(n, l.sent > 2 * 1000);
            stg_overload_free(&r, &help_memory);
        }
}

TEST(overload, shows_that_a_budget_ends_the_storm)
{
    static const char *const budgets[] = {
        "fixed base=100ms jitter=none attempts=4 budget=ratio:0.1",
        "exponential base=100ms jitter=none attempts=5 budget=tokens:10:1/s",
        "exponential base=500ms cap=5s jitter=full attempts=6 budget=aws",
        "exponential base=500ms jitter=full attempts=6 budget=grpc:10:0.1",
    };

    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++)
        for (uint64_t n = 0; n < seeds(2); n++) {
            stg_overload_options o = stalled(budgets[i]);
            stg_overload_result r = help_run(&o, n);
            late l = look_late(&o, &r);

            CHECK_FROM(n, r.recovery.is_recovered);
            CHECK_FROM(n, r.recovery.after < 30 * STG_S);
            CHECK_FROM(n, l.goodput > 0.95 * r.recovery.before);
            stg_overload_free(&r, &help_memory);
        }
}

/* What else ends it, each on its own. */
TEST(overload, shows_what_else_ends_the_storm)
{
    for (int way = 0; way < 8; way++) {
        stg_overload_options o =
            stalled("exponential base=100ms jitter=full attempts=4");
        stg_overload_result r;

        if (way == 0)
            o.policy = help_policy(
                "exponential base=100ms jitter=full "
                "attempts=4 breaker=20:2s-10s");
        if (way == 1)
            o.service.order = STG_SIM_ORDER_LIFO;
        if (way == 2)
            o.service.queue_max = 300; // 0.3 s, less than clients wait
        if (way == 3)
            o.throttle = 2000;
        if (way == 4)
            CHECK(stg_overload_set(&o, "order", "adaptive-lifo", NULL) ==
                  STG_OK);
        if (way >= 5)
            CHECK(stg_overload_set(&o, "shedding",
                                   way == 5   ? "wait:300ms"
                                   : way == 6 ? "wait:5ms:100ms"
                                              : "codel:5ms:100ms",
                                   NULL) == STG_OK);
        r = help_run(&o, 0);
        CHECK_FROM(way, r.recovery.is_recovered);
        stg_overload_free(&r, &help_memory);
    }
}

/* A queue that only those leave who have gone has those at its front who are
 * about to: they are served, and it is too late. */
TEST(overload, shows_that_skipping_who_has_gone_is_not_enough)
{
    stg_overload_options o =
        stalled("exponential base=100ms jitter=full attempts=4");
    stg_overload_result r;

    o.service.skips_gone = true;
    r = help_run(&o, 0);
    CHECK(!r.recovery.is_recovered);
    CHECK(look_late(&o, &r).sent > 2 * 1000);
    stg_overload_free(&r, &help_memory);
}

TEST(overload, calls_nothing_recovered_that_never_worked)
{
    stg_overload_options o = stalled("attempts=4 base=100ms");
    stg_overload_result r;

    o.load.rate = 2000 * 1000;
    r = help_run(&o, 0);
    CHECK(!r.recovery.was_healthy);
    stg_overload_free(&r, &help_memory);
}

static bool is_same(const stg_overload_result *a, const stg_overload_result *b)
{
    return a->begun == b->begun && a->saved == b->saved && a->sent == b->sent &&
           a->events == b->events && a->bin_count == b->bin_count &&
           memcmp(a->bins, b->bins, a->bin_count * sizeof *a->bins) == 0;
}

TEST(overload, gives_the_same_for_the_same_seed)
{
    stg_overload_options o = stalled("backend");
    stg_overload_result a = help_run(&o, 3), b = help_run(&o, 3),
                        c = help_run(&o, 4);

    CHECK(is_same(&a, &b));
    CHECK(!is_same(&a, &c));
    stg_overload_free(&a, &help_memory);
    stg_overload_free(&b, &help_memory);
    stg_overload_free(&c, &help_memory);
}

/* The numbers of one run, whatever compiled it: FNV-1a over all bins. */
static uint64_t hash_of(const stg_overload_result *r)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (uint32_t i = 0; i < r->bin_count; i++) {
        const stg_overload_bin *b = &r->bins[i];
        uint64_t words[] = {b->begun,      b->saved, b->lost,    b->sent,
                            b->retried,    b->held,  b->refused, b->timeouts,
                            b->for_nobody, 0,        0};

        memcpy(&words[9], &b->queue, 8);
        memcpy(&words[10], &b->busy, 8);
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            hash = (hash ^ words[k]) * 0x100000001b3;
    }
    return hash;
}

TEST(overload, gives_the_same_on_every_machine)
{
    stg_overload_options o = stalled("backend attempts=6 breaker=50%/20/10s");
    stg_overload_result r;

    o.throttle = 2000;
    o.errors = 10000;
    o.service.time = (stg_distribution){.kind = STG_DISTRIBUTION_MIX,
                                        .a = 100 * STG_MS,
                                        .b = 8 * STG_MS,
                                        .count = 20};
    o.network = (stg_distribution){
        .kind = STG_DISTRIBUTION_NORMAL, .a = 2 * STG_MS, .b = 500 * STG_US};
    r = help_run(&o, 0);
    CHECK_U64(hash_of(&r), UINT64_C(1618363326557568213));
    stg_overload_free(&r, &help_memory);
}

/* Whatever the settings, what goes in comes out. */
TEST(overload, balances_its_books)
{
    for (uint64_t i = 0; i < 42; i++) {
        stg_overload_options o = stalled(i % 2 ? "attempts=4" : "backend");
        stg_overload_result r;
        uint64_t begun = 0, saved = 0, lost = 0, sent = 0, ended = 0;
        uint64_t succeeded = 0, given_up = 0;

        o.trigger.kind = (stg_trigger_kind)(i % 6);
        o.trigger.factor = i % 6 == 5 ? 500 : i % 6 >= 3 ? 2500 : 0;
        o.warmup = 0;
        o.end_at = 30 * STG_S;
        o.trigger.from_at = 5 * STG_S;
        o.trigger.until_at = 15 * STG_S;
        o.throttle = i % 7 == 0 ? 2000 : 0;
        o.service.shed = (stg_sim_shed)(i % 4 % 3);
        o.service.shed_target = 20 * STG_MS;
        o.service.shed_interval = 100 * STG_MS;
        o.service.limit = i % 5 == 0 ? 50 * STG_MS : 0;
        o.layers = i % 11 == 0 ? 2 : 1;
        r = help_run(&o, i);
        for (uint32_t b = 0; b < r.bin_count; b++) {
            const stg_overload_bin *bin = &r.bins[b];

            begun += bin->begun;
            saved += bin->saved;
            lost += bin->lost;
            sent += bin->sent;
            succeeded += bin->succeeded;
            given_up += bin->given_up;
            CHECK_FROM(i, bin->saved + bin->lost <= bin->begun);
            CHECK_FROM(i, bin->busy <= o.service.workers + 1e-9);
            CHECK_FROM(i, bin->queue <= o.service.queue_max + 1e-9);
        }
        for (int why = 0; why < STG_OVERLOAD_WHYS; why++)
            ended += r.whys[why];
        CHECK_U64(r.begun, begun);
        CHECK_U64(r.saved, saved);
        CHECK_U64(r.lost, lost);
        CHECK_U64(r.sent, sent);
        CHECK_U64(succeeded, saved);
        CHECK_U64(given_up, lost);
        CHECK_U64(ended, saved + lost);
        CHECK_FROM(i, r.retried <= r.sent);
        stg_overload_free(&r, &help_memory);
    }
}

/* Closed load: no client has two operations at once. */
TEST(overload, never_has_more_under_way_than_closed_clients)
{
    stg_overload_options o = stalled("attempts=3 base=100ms");
    stg_overload_result r;

    o.load = (stg_overload_load){
        .is_closed = true, .clients = 50, .think = {.a = 10 * STG_MS}};
    o.service.skips_gone = true;
    r = help_run(&o, 0);
    CHECK(r.service.queued_most <= 50);
    CHECK(r.begun > 1000);
    stg_overload_free(&r, &help_memory);
}

/* Clients in one process share its budget; in many, each has its own. */
TEST(overload, shares_a_budget_within_a_process)
{
    stg_overload_options o = stalled(STEADY "attempts=4 budget=tokens:10:1/s");
    stg_overload_result one, many;

    o.processes = 1;
    one = help_run(&o, 0);
    o.processes = 100;
    many = help_run(&o, 0);
    CHECK(one.retried <= 10 + 80);
    CHECK(many.retried > 1000);
    stg_overload_free(&one, &help_memory);
    stg_overload_free(&many, &help_memory);
}

TEST(overload, asks_for_a_wait_where_it_has_no_place)
{
    stg_overload_options o = stalled(STEADY "attempts=2");
    stg_overload_result r;

    o.service.queue_max = 0;
    o.retry_after = 60 * STG_S; // nobody is back before the end
    o.trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
    r = help_run(&o, 0);
    CHECK(r.refused > 3000);
    for (uint32_t i = 0; i < 240; i++)
        CHECK_U64(r.bins[i].retried, 0);
    stg_overload_free(&r, &help_memory);
}

TEST(overload, ends_when_it_is_stopped_and_keeps_what_it_has)
{
    stg_overload_options o = stalled("attempts=4");
    stg_overload_result r;
    atomic_bool stop = true;

    CHECK(stg_overload_run(&o, 1, 0, &stop, &help_memory, &r) == STG_OK);
    CHECK(r.is_cut);
    CHECK(r.bin_count < 360);
    stg_overload_free(&r, &help_memory);
}

TEST(overload, ends_at_the_most_that_may_be_under_way)
{
    stg_overload_options o = stalled("attempts=4");
    stg_overload_result r;

    o.live_max = 900;
    r = help_run(&o, 0);
    CHECK(r.is_cut);
    CHECK(r.bin_count > 80 && r.bin_count < 130);
    stg_overload_free(&r, &help_memory);
}

TEST(overload, says_when_there_is_no_memory)
{
    stg_overload_options o = stalled("attempts=4");
    stg_overload_result whole;
    int cuts = 0;

    o.warmup = 0;
    o.trigger.from_at = STG_S;
    o.trigger.until_at = 2 * STG_S;
    o.end_at = 4 * STG_S;
    o.load.rate = 2000 * 1000;
    whole = help_run(&o, 0);
    for (int pieces = 0; pieces < 60; pieces++) {
        test_memory counts;
        stg_memory memory = test_memory_of(&counts);
        stg_overload_result r;

        counts.left = (size_t)pieces;
        if (stg_overload_run(&o, 7, 0, NULL, &memory, &r) == STG_OK) {
            CHECK_FROM(pieces, r.is_cut || r.begun == whole.begun);
            cuts += r.is_cut;
            stg_overload_free(&r, &memory);
        }
        CHECK_U64(counts.held, 0);
    }
    CHECK(cuts > 5);
    stg_overload_free(&whole, &help_memory);
}

static void check_refused(stg_overload_options o, const char *words)
{
    stg_error err;

    CHECK(stg_overload_check(&o, &err) == STG_INVALID);
    CHECK_STR(err.text, words);
    CHECK(stg_overload_check(&o, NULL) == STG_INVALID);
}

#define CHECK_REFUSED(change, words)                     \
    do {                                                 \
        stg_overload_options o = stg_overload_default(); \
        change;                                          \
        check_refused(o, words);                         \
    } while (0)

TEST(overload, refuses_what_is_out_of_range_and_says_the_range)
{
    stg_overload_options fine = stg_overload_default();

    CHECK(stg_overload_check(&fine, NULL) == STG_OK);
    CHECK_REFUSED(o.service.workers = 0,
                  "workers=0 is out of range, expected 1 to 100000");
    CHECK_REFUSED(o.service.queue_max = 10000001,
                  "queue=10000001 is out of range, expected 0 to 10000000");
    CHECK_REFUSED(o.service.shed = STG_SIM_SHED_WAIT,
                  "shedding=0 is out of range, expected 1us to 1d");
    CHECK_REFUSED(
        (o.service.shed = STG_SIM_SHED_CODEL, o.service.shed_target = STG_MS),
        "shedding=0 is out of range, expected 1us to 1d");
    CHECK_REFUSED(o.service.limit = 1,
                  "limit=1ns is out of range, expected 1us to 1d");
    CHECK_REFUSED(o.service.order = STG_SIM_ORDER_ADAPTIVE,
                  "order=0 is out of range, expected 1us to 1d");
    CHECK_REFUSED(o.load.rate = 0,
                  "rate=0 is out of range, expected 0.001 to "
                  "4000000 a second");
    CHECK_REFUSED(o.processes = 0,
                  "processes=0 is out of range, expected 1 to 1000000");
    CHECK_REFUSED(o.throttle = 999,
                  "throttle=0.999 is out of range, expected "
                  "none, or 1 to 100");
    CHECK_REFUSED(
        o.trigger.until_at = 90 * STG_S,
        "the trigger's end=90s is out of range, expected less than the "
        "duration");
    CHECK_REFUSED(o.trigger.from_at = 30 * STG_S,
                  "the trigger's start=30s is out of range, expected less than "
                  "its end, to=30s");
    CHECK_REFUSED(o.bin = 7 * STG_MS,
                  "bin=7ms is out of range, expected what divides the duration "
                  "into 1000 at most");
    CHECK_REFUSED(o.timeout = 0,
                  "timeout=0 is out of range, expected 1us to 1d, or none");
    CHECK_REFUSED(o.warmup = 90 * STG_S,
                  "warmup=90s is out of range, expected "
                  "less than the duration");
    CHECK_REFUSED(o.load.is_closed = true,
                  "clients=0 is out of range, expected 1 to 10000000");
}

TEST(overload, says_what_it_takes_before_it_takes_it)
{
    stg_overload_options o = stg_overload_default();

    CHECK(stg_overload_memory(&o) < 100 << 20);
    o.load = (stg_overload_load){.is_closed = true, .clients = 10000000};
    CHECK(stg_overload_memory(&o) > (uint64_t)1 << 30);
}
