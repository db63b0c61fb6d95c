/* Services in a row, each of which retries what it asks of the next. */
#include "tests/sim/overload_help.h"

#define FIXED "fixed base=1ms jitter=none deadline=none "

static void set(stg_overload_options *o, const char *name, const char *value)
{
    stg_error err;

    if (stg_overload_set(o, name, value, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
}

/* Answers fail with a probability, whatever the load is. In the last seconds
 * nearly nothing begins, so that all ends. */
static stg_overload_options failing(const char *errors, const char *policy,
                                    const char *inner, const char *layers)
{
    stg_overload_options o = stg_overload_default();

    o.policy = help_policy(policy);
    set(&o, "inner", inner);
    set(&o, "layers", layers);
    set(&o, "errors", errors);
    set(&o, "service", "1ms");
    set(&o, "network", "0");
    o.timeout = STG_NEVER;
    o.load.rate = 50 * 1000;
    o.service.workers = 200;
    o.processes = 1;
    o.warmup = 0;
    o.end_at = 20 * STG_S;
    o.bin = STG_S;
    o.trigger = (stg_trigger){.kind = STG_TRIGGER_SPIKE,
                              .factor = 1,
                              .from_at = 18 * STG_S,
                              .until_at = 20 * STG_S - 1};
    return o;
}

/* Beyer et al., "Site Reliability Engineering", chapter 22: where a database is
 * overloaded, and three layers above it make three retries each, an action of a
 * user makes 4^3 = 64 attempts on it. */
TEST(overload_layers, multiply_the_attempts)
{
    static const char *const layers[] = {"1", "2", "3", "4"};

    for (size_t i = 0; i < 4; i++) {
        stg_overload_options o =
            failing("100%", FIXED "attempts=4", "none", layers[i]);
        stg_overload_result r = help_run(&o, 0);

        CHECK(!r.is_cut && r.begun > 800);
        CHECK_U64(r.lost, r.begun);
        CHECK_U64(r.sent, r.begun * (uint64_t)pow(4, (double)i + 1));
        CHECK_U64(r.retried, r.sent - r.begun);
        CHECK_U64(r.service.reached, r.sent);
        for (size_t k = 0; i > 0 && k <= i; k++)
            CHECK_U64(r.sent_to[k], r.begun * (uint64_t)pow(4, (double)k + 1));
        stg_overload_free(&r, &help_memory);
    }
}

/* The same where each layer has a policy of its own: it is the product. */
TEST(overload_layers, multiply_what_each_policy_makes)
{
    stg_overload_options o =
        failing("100%", FIXED "attempts=2",
                FIXED "attempts=3|" FIXED "attempts=1", "4");
    stg_overload_result r = help_run(&o, 0);

    CHECK_U64(r.sent_to[0], 2 * r.begun);
    CHECK_U64(r.sent_to[1], 6 * r.begun);
    CHECK_U64(r.sent_to[2], 6 * r.begun);
    CHECK_U64(r.sent, 6 * r.begun);
    stg_overload_free(&r, &help_memory);
}

/* An attempt of layer i fails with p[i], where p of the last is that of the
 * service, and p[i - 1] = p[i] ^ attempts; it makes 1 + p + ... attempts. */
TEST(overload_layers, have_the_success_and_load_of_independent_failures)
{
    stg_overload_options o = failing(
        "50%", FIXED "attempts=2", FIXED "attempts=3|" FIXED "attempts=2", "3");
    help_sample success = {0}, to[3] = {{0}};
    const double p3 = 0.5, p2 = p3 * p3, p1 = p2 * p2 * p2;

    for (uint64_t n = 0; n < 20; n++) {
        stg_overload_result r = help_run(&o, n);

        help_add(&success, (double)r.saved / (double)r.begun);
        for (int i = 0; i < 3; i++)
            help_add(&to[i], (double)r.sent_to[i] / (double)r.begun);
        stg_overload_free(&r, &help_memory);
    }
    CHECK_NEAR(success, 1 - p1 * p1, 0.001);
    CHECK_NEAR(to[0], 1 + p1, 0.01);
    CHECK_NEAR(to[1], (1 + p1) * (1 + p2 + p2 * p2), 0.01);
    CHECK_NEAR(to[2], (1 + p1) * (1 + p2 + p2 * p2) * (1 + p3), 0.01);
}

/* A tenth more at each layer, and what the budgets had at the start. */
TEST(overload_layers, multiply_less_with_budgets)
{
    stg_overload_options o =
        failing("100%", FIXED "attempts=4 budget=ratio:0.1", "none", "3");
    stg_overload_result r;

    o.end_at = 200 * STG_S;
    o.trigger.from_at = 198 * STG_S;
    o.trigger.until_at = 200 * STG_S - 1;
    r = help_run(&o, 0);
    CHECK((double)r.sent < 1.5 * (double)r.begun);
    CHECK((double)r.sent > 1.2 * (double)r.begun);
    stg_overload_free(&r, &help_memory);
}

/* -- storms ----------------------------------------------------------------- */

/* Asked for a third of what it can do, and down for ten seconds. */
static stg_overload_options down(const char *layers, const char *propagate)
{
    stg_overload_options o = stg_overload_default();

    o.policy = help_policy("attempts=4 base=100ms");
    set(&o, "rate", "300");
    set(&o, "layers", layers);
    set(&o, "propagate", propagate);
    return o;
}

TEST(overload_layers, keep_a_service_down_that_one_would_not)
{
    stg_overload_options one = down("1", "no"), three = down("3", "no");
    stg_overload_options told = down("3", "yes");
    stg_overload_result a = help_run(&one, 0), b = help_run(&three, 0);
    stg_overload_result c = help_run(&told, 0);

    CHECK(a.recovery.is_recovered && !b.recovery.is_recovered);
    CHECK(a.sent < 2 * a.begun && b.sent > 40 * b.begun);
    // Services that know how long they are waited for do less in vain.
    CHECK(c.recovery.is_recovered);
    CHECK(c.sent * 5 < b.sent);
    stg_overload_free(&a, &help_memory);
    stg_overload_free(&b, &help_memory);
    stg_overload_free(&c, &help_memory);
}

/* A service that is told waits for no answer beyond what its caller does. */
TEST(overload_layers, stop_when_their_caller_does)
{
    for (int told = 0; told < 2; told++) {
        stg_overload_options o =
            failing("0%", "attempts=1 deadline=none", FIXED "attempts=50", "2");
        stg_overload_result r;

        set(&o, "service", "300ms");
        set(&o, "workers", "100");
        set(&o, "timeout", "100ms");
        o.propagates = told;
        r = help_run(&o, 0);
        CHECK_U64(r.saved, 0);
        CHECK_U64(r.sent_to[0], r.begun);
        CHECK_FROM(told, told ? r.sent <= r.begun : r.sent > 10 * r.begun);
        stg_overload_free(&r, &help_memory);
    }
}

/* Whatever the settings: no slot is lost, for there are few. */
TEST(overload_layers, give_all_of_their_slots_back)
{
    for (uint64_t i = 0; i < 24; i++) {
        stg_overload_options o = down(i % 2 ? "2" : "4", i % 3 ? "no" : "yes");
        stg_overload_result r;
        uint64_t sent = 0;

        o.policy = help_policy(i % 4 ? "attempts=2 base=50ms"
                                     : "attempts=2 base=50ms hedge=20ms");
        set(&o, "inner",
            i % 5 ? "none" : "attempts=3 base=10ms|attempts=1 hedge=5ms");
        o.trigger.kind = (stg_trigger_kind)(i % 6);
        o.trigger.factor = i % 6 == 5 ? 700 : i % 6 >= 3 ? 3000 : 0;
        o.service.skips_gone = i % 7 < 3;
        o.service.queue_max = 50;
        o.live_max = 20000;
        o.throttle = i % 8 == 0 ? 2000 : 0;
        if (i % 9 == 0)
            o.load = (stg_overload_load){
                .is_closed = true, .clients = 300, .think = {.a = STG_S}};
        if (o.trigger.kind == STG_TRIGGER_NONE)
            o.trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
        r = help_run(&o, i);
        CHECK_FROM(i, !r.is_cut);
        CHECK_FROM(i, r.saved + r.lost <= r.begun);
        CHECK_FROM(i, r.saved + r.lost + 4000 > r.begun);
        CHECK_FROM(i, r.sent == r.sent_to[o.layers - 1]);
        for (uint32_t b = 0; b < r.bin_count; b++)
            sent += r.bins[b].sent;
        CHECK_FROM(i, sent >= r.sent);
        stg_overload_free(&r, &help_memory);
    }
}

/* -- settings --------------------------------------------------------------- */

TEST(overload_layers, are_as_many_as_their_policies_need)
{
    stg_overload_options o = stg_overload_default();
    stg_error err;

    stg_overload_settle(&o);
    CHECK_INT(o.layers, 1);
    o.layers = 0;
    set(&o, "inner", "client|backend");
    stg_overload_settle(&o);
    CHECK_INT(o.layers, 3);
    CHECK_INT(o.inner_count, 2);
    set(&o, "inner", "none");
    CHECK_INT(o.inner_count, 0);
    o.layers = 5;
    CHECK(stg_overload_check(&o, &err) == STG_INVALID);
    CHECK_STR(err.text, "layers=5 is out of range, expected 1 to 4");
    CHECK(stg_overload_set(&o, "inner", "client|clinet", &err) == STG_INVALID);
    CHECK(strstr(err.text, "did you mean client?") != NULL);
    CHECK(stg_overload_set(&o, "inner", "client||client", &err) == STG_INVALID);
    CHECK(stg_overload_set(&o, "inner", "client|client|client|client", &err) ==
          STG_INVALID);
    CHECK(stg_overload_set(&o, "inner", "|", NULL) == STG_INVALID);
    CHECK(stg_overload_set(&o, "layers", "0", NULL) == STG_INVALID);
}
