#include "tests/harness.h"

#include "sim/advise.h"
#include "sim/overload.h"
#include "tests/sim/memory.h"

static uint64_t up_to(stg_rng *rng, uint64_t most)
{
    return stg_rng_upto(rng, most);
}

/* Small and large ones alike. */
static stg_question any_question(uint64_t seed)
{
    stg_rng rng = stg_rng_seed(seed);
    stg_question q = stg_question_default();

    q.clients = (uint32_t)1 << up_to(&rng, 23);
    q.processes = 1 + (uint32_t)up_to(&rng, q.clients - 1);
    q.capacity = 1000 + (((uint64_t)1 << up_to(&rng, 31)) - 1);
    q.load = 10 + (uint32_t)up_to(&rng, 940);
    q.outage = 100 * STG_MS + up_to(&rng, (uint64_t)1 << up_to(&rng, 41));
    q.patience = 10 * STG_MS + up_to(&rng, (uint64_t)1 << up_to(&rng, 41));
    q.service = STG_US + up_to(&rng, q.patience / 2);
    if (q.service > STG_MIN)
        q.service = STG_MIN;
    if (up_to(&rng, 1) == 0)
        q.queue = (uint32_t)up_to(&rng, 10000000);
    return q;
}

TEST(advise, asks_nothing_of_the_model_that_it_refuses)
{
    for (uint64_t seed = 0; seed < seeds(3000); seed++) {
        stg_question q = any_question(seed);
        stg_error err = {.text = ""};

        CHECK_FROM(seed, stg_question_check(&q, &err) == STG_OK);
        for (size_t k = 0; k < STG_SCENARIOS; k++) {
            stg_overload_options o =
                stg_scenario_options(&q, stg_scenario_at(k));

            stg_overload_settle(&o);
            if (stg_overload_check(&o, &err) != STG_OK)
                harness_fail(__FILE__, __LINE__, "seed %ju: %s",
                             (uintmax_t)seed, err.text);
        }
    }
}

static void check_candidate(const stg_question *q, const stg_candidate *c,
                            uint64_t seed)
{
    char text[STG_POLICY_TEXT_MAX], name[STG_CANDIDATE_NAME_MAX];
    stg_policy back;
    stg_error err;

    if (stg_policy_check(&c->policy, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "seed %ju: %s: %s", (uintmax_t)seed,
                     stg_candidate_name(c, name), err.text);
    CHECK(stg_policy_print(&c->policy, text) == STG_OK);
    CHECK(stg_policy_parse(&back, text, NULL) == STG_OK);
    CHECK(stg_policy_equal(&back, &c->policy));
    CHECK_FROM(seed, c->policy.deadline == q->patience);
    CHECK_FROM(seed, c->policy.backoff.jitter != STG_JITTER_NONE);
}

TEST(advise, has_candidates_that_are_policies)
{
    for (uint64_t seed = 0; seed < seeds(100); seed++) {
        stg_question q = any_question(seed);
        stg_candidate c, near;
        size_t count = 0;

        for (; stg_candidate_make(&q, count, &c); count++) {
            check_candidate(&q, &c, seed);
            for (size_t i = 0; i < STG_NEIGHBOURS; i++)
                if (stg_candidate_near(&q, &c, i, &near))
                    check_candidate(&q, &near, seed);
        }
        CHECK_INT(count, 173);
    }
}

/* Whoever has no retries has no wait, and a budget that is not there is never
 * empty: such choices make no neighbour. */
TEST(advise, has_neighbours_that_differ_in_one_thing)
{
    stg_question q = stg_question_default();
    stg_candidate c, near;
    size_t count = 0;

    CHECK(stg_candidate_make(&q, 0, &c));
    for (size_t i = 0; i < STG_NEIGHBOURS; i++)
        if (stg_candidate_near(&q, &c, i, &near)) {
            CHECK(!stg_policy_equal(&near.policy, &c.policy));
            count++;
        }
    CHECK_INT(count, 3); // attempts, timeout, breaker
    c.genes[STG_GENE_ATTEMPTS] = c.genes[STG_GENE_BREAKER] = 1;
    CHECK(stg_candidate_near(&q, &c, 2 * STG_GENE_DENIED + 1, &near));
    CHECK_INT(near.policy.rule_count, 1);
    CHECK_INT(near.policy.rules[0].value, STG_FAULT_CIRCUIT_OPEN);
}

TEST(advise, tells_candidates_apart_by_name)
{
    enum { COUNT = 173 };
    stg_question q = stg_question_default();
    static stg_candidate all[COUNT];
    static char names[COUNT][STG_CANDIDATE_NAME_MAX];

    for (size_t i = 0; i < COUNT; i++) {
        CHECK(stg_candidate_make(&q, i, &all[i]));
        stg_candidate_name(&all[i], names[i]);
        for (size_t k = 0; k < i; k++)
            CHECK(stg_policy_equal(&all[i].policy, &all[k].policy) ==
                  (strcmp(names[i], names[k]) == 0));
    }
    CHECK_STR(names[0], "no retries");
    CHECK_STR(names[1], "base=330ms attempts=8");
    CHECK_STR(names[2], "no retries timeout=1s");
    CHECK_STR(names[172], "list=9s,300ms/2 attempts=8 breaker=50%:5s waits");
}

/* 560 calls a second of one process have an error in each second: a breaker that
 * opens after one is open all the time, though not in a model that is six times
 * smaller. */
TEST(advise, opens_no_breaker_by_chance)
{
    stg_question q = stg_question_default();
    stg_candidate c, next;
    size_t breakers = 0;

    q.processes = 1;
    for (size_t i = 0; stg_candidate_make(&q, i, &c); i++) {
        if (c.policy.breaker.rule != STG_BREAKER_ROW)
            continue;
        CHECK(c.policy.breaker.failures >= 3);
        for (size_t k = 0; k < STG_NEIGHBOURS; k++)
            if (stg_candidate_near(&q, &c, k, &next))
                CHECK(next.policy.breaker.rule != STG_BREAKER_ROW ||
                      next.policy.breaker.failures >= 3);
        breakers++;
    }
    CHECK(breakers > 0);
}

/* A capacity of 800: all retries of 5000 processes together may ask for 5 % of
 * it, a retry a process every two minutes. */
TEST(advise, shares_the_budget_among_processes)
{
    enum { TOKENS = 5 + 12 * 2 }; // 5 %
    stg_question q = stg_question_default();
    stg_candidate many, one;

    CHECK(stg_candidate_make(&q, TOKENS, &many));
    q.processes = 1;
    CHECK(stg_candidate_make(&q, TOKENS, &one));
    CHECK_INT(many.policy.budget.kind, STG_BUDGET_TOKENS);
    CHECK_INT(many.policy.budget.rate, 8);
    CHECK_INT(many.policy.budget.capacity, 1);
    CHECK_INT(one.policy.budget.rate, 40000);
    CHECK_INT(one.policy.budget.capacity, 400);
}

/* The model has one process for three, which has half of the calls of one of them:
 * of 72 calls a second, of which 1 % fail, two in a row open a breaker for a second
 * every two minutes, and one does for 400 ms every second. */
TEST(advise, lets_chance_open_breakers_for_a_hundredth_of_the_time)
{
    enum { TWO_IN_A_ROW = 3 };
    stg_question q = stg_question_default();
    stg_candidate c;

    q.clients = 50;
    q.processes = 3;
    q.capacity = 309000;
    q.load = 700;
    q.outage = 116 * STG_S;
    q.patience = 20 * STG_S;
    CHECK_INT(stg_question_scale(&q), 6);
    CHECK(stg_candidate_make(&q, TWO_IN_A_ROW, &c));
    CHECK_INT(c.policy.breaker.failures, 2);
    CHECK_U64(c.policy.breaker.open, STG_S);
    q.patience = 60 * STG_S;
    CHECK(stg_candidate_make(&q, TWO_IN_A_ROW, &c));
    CHECK_INT(c.policy.breaker.failures, 3);
    q.patience = 20 * STG_S;
    for (size_t i = 0; stg_candidate_make(&q, i, &c); i++)
        CHECK_FROM(i, c.policy.breaker.rule != STG_BREAKER_ROW ||
                          c.policy.breaker.failures > 1);
}

/* Half to four times the outage, 80 % to 120 % of the load, of both kinds; the
 * first two are what was asked. */
TEST(advise, tries_more_than_it_was_asked)
{
    stg_question q = stg_question_default();
    stg_ns least = STG_HOUR, most = 0;
    uint32_t low = 1000, high = 0;

    for (size_t i = 0; i < STG_SCENARIOS; i++) {
        stg_scenario s = stg_scenario_at(i);
        stg_ns outage = stg_scenario_outage(&q, s);
        uint32_t load = stg_scenario_load(&q, s);

        CHECK((i < STG_SCENARIOS_ASKED) ==
              (i < 2 && s.outage == 1000 && s.load == 1000));
        CHECK(stg_scenario_options(&q, s).trigger.kind == s.kind);
        least = stg_ns_min(least, outage);
        most = stg_ns_max(most, outage);
        low = load < low ? load : low;
        high = load > high ? load : high;
    }
    CHECK(least == 15 * STG_S && most == 2 * STG_MIN);
    CHECK(low == 560 && high == 840);
    q.load = 900;
    CHECK_INT(stg_scenario_load(&q, stg_scenario_at(2)), 950);
}

TEST(advise, makes_large_questions_small)
{
    stg_question q = stg_question_default();
    stg_overload_options o;

    CHECK_INT(stg_question_scale(&q), 6);
    q.capacity *= 100;
    q.clients *= 100;
    q.processes *= 100;
    CHECK(stg_question_scale(&q) > 500 && stg_question_scale(&q) < 700);
    o = stg_scenario_options(&q, stg_scenario_at(0));
    CHECK(o.load.rate * 70 / 1000 < 150000);
    // Each process has as much to do as before.
    CHECK_INT(o.load.rate / o.processes,
              q.capacity * q.load / 1000 / q.processes);
}

/* One worker of a few requests a second would have clients lose patience where the
 * service that was asked for is quick. */
TEST(advise, makes_no_quick_service_slow)
{
    stg_question q = stg_question_default();
    stg_overload_options o;

    q.capacity = 200 * 1000;
    q.outage = 10 * STG_MIN;
    q.patience = STG_S;
    o = stg_scenario_options(&q, stg_scenario_at(0));
    CHECK(o.service.time.a <= 30 * STG_MS);
}

/* However few processes there are: their budgets are what becomes smaller. */
TEST(advise, keeps_a_run_short_and_budgets_in_proportion)
{
    for (uint64_t seed = 0; seed < seeds(3000); seed++) {
        stg_question q = any_question(seed);
        stg_overload_options o = stg_scenario_options(&q, stg_scenario_at(0));
        double rate = (double)o.load.rate / 1000, tokens, expected;
        stg_policy policy = stg_policy_default(), p;

        CHECK_FROM(seed, rate * ((double)o.end_at / 1e9) < 100000);
        policy.budget = (stg_budget_options){
            .kind = STG_BUDGET_TOKENS, .capacity = 100000, .rate = 1000000};
        p = stg_question_policy(&q, &policy);
        CHECK_FROM(seed, stg_policy_check(&p, NULL) == STG_OK);
        tokens = (double)p.budget.rate * o.processes;
        expected = 1e6 * q.processes / stg_question_scale(&q);
        CHECK_FROM(seed, p.budget.rate < 100 || (tokens > 0.98 * expected &&
                                                 tokens < 1.02 * expected));
    }
}

/* Else the goodput before the trouble is anybody's guess. */
TEST(advise, waits_for_enough_operations_before_the_trouble)
{
    stg_question q = stg_question_default();
    stg_overload_options o;

    q.clients = q.processes = 10;
    q.capacity = 1000;
    o = stg_scenario_options(&q, stg_scenario_at(1));
    CHECK(o.load.rate == 700 && o.service.time.a == STG_S);
    CHECK((double)(o.trigger.from_at - o.warmup) / 1e9 * 0.7 >= 800);
    CHECK((double)(o.end_at - o.trigger.until_at) / 1e9 * 0.7 >= 800);
    // A request takes a second, so clients do not leave before.
    CHECK(o.timeout == q.patience);
}

TEST(advise, takes_a_service_that_is_never_well_for_no_success)
{
    stg_question q = stg_question_default();
    stg_overload_options o = stg_scenario_options(&q, stg_scenario_at(0));
    stg_memory memory = test_memory_of(&(test_memory){0});
    stg_advice_verdict v = stg_verdict_begin(), other = v;
    stg_overload_summary s;

    stg_overload_settle(&o);
    CHECK(stg_overload_summary_init(&s, &o, 4, &memory) == STG_OK);
    s.runs = s.recovered = 4;
    s.healthy = 1;
    stg_verdict_add(&v, &q, 0, &s);
    CHECK_INT(v.failed, 3);
    CHECK_INT(v.unwell, 3);
    CHECK(!stg_verdict_equal(&v, &other));
    stg_verdict_add(&other, &q, 0, &s);
    CHECK(stg_verdict_equal(&v, &other));
    stg_overload_summary_close(&s);
}

TEST(advise, puts_what_recovers_first_and_then_what_loses_least)
{
    stg_advice_verdict good = stg_verdict_begin(), bad = good, worse = good,
                       heavy = good;

    good.runs = bad.runs = worse.runs = heavy.runs = 4;
    good.lost = heavy.lost = 0.2;
    bad.lost = 0.3;
    good.load = bad.load = worse.load = 1;
    heavy.load = 2;
    worse.lost = 0.1;
    worse.failed = 1;
    CHECK(stg_verdict_compare(&good, &bad) < 0);
    CHECK(stg_verdict_compare(&bad, &worse) < 0);
    CHECK(stg_verdict_compare(&good, &heavy) < 0);
    CHECK(stg_verdict_compare(&heavy, &bad) < 0);
    CHECK_INT(stg_verdict_compare(&good, &good), 0);
}

/* The runs of a scenario: what succeeds in each. */
static void fill_success(stg_overload_summary *s, const stg_overload_options *o,
                         const stg_memory *memory, double first, double second)
{
    double *values;

    CHECK(stg_overload_summary_init(s, o, 2, memory) == STG_OK);
    values = s->values + (size_t)STG_FIGURE_SUCCESS * s->runs_max;
    values[0] = first;
    values[1] = second;
    s->runs = 2;
}

/* Runs of the same seed have the same load: their differences have less chance
 * in them than they have. */
TEST(advise, takes_for_a_gain_what_is_more_than_its_error)
{
    stg_question q = stg_question_default();
    stg_overload_options o = stg_scenario_options(&q, stg_scenario_at(0));
    stg_memory memory = test_memory_of(&(test_memory){0});
    stg_overload_summary s[4];
    const stg_overload_summary *good[2] = {&s[0], &s[1]};
    const stg_overload_summary *none[2] = {&s[2], &s[3]};
    stg_estimate gain;

    stg_overload_settle(&o);
    fill_success(&s[0], &o, &memory, 0.5, 0.7);
    fill_success(&s[1], &o, &memory, 0.82, 0.9);
    fill_success(&s[2], &o, &memory, 0.4, 0.6);
    fill_success(&s[3], &o, &memory, 0.7, 0.8);
    gain = stg_verdict_gain(good, none, 2);
    CHECK(gain.mean > 0.1049 && gain.mean < 0.1051);
    CHECK(gain.se > 0.0049 && gain.se < 0.0051);
    CHECK(stg_verdict_is_gain(gain));
    CHECK(!stg_verdict_is_gain(stg_verdict_gain(none, good, 2)));
    gain = stg_verdict_gain(good, good, 2);
    CHECK(gain.mean == 0 && !stg_verdict_is_gain(gain));
    for (int i = 0; i < 4; i++)
        stg_overload_summary_close(&s[i]);
}

TEST(advise, knows_what_no_policy_can_save)
{
    stg_question q = stg_question_default();
    double hopeless = stg_scenario_hopeless(&q, stg_scenario_at(0));

    // 20 of the 30 s of outage, of 89 s that are counted.
    CHECK(hopeless > 0.224 && hopeless < 0.225);
    CHECK(stg_question_hopeless(&q) > hopeless);
    q.patience = 4 * q.outage;
    CHECK(stg_question_hopeless(&q) == 0);
}

static void check_refused(stg_question q, const char *words)
{
    stg_error err;

    CHECK(stg_question_check(&q, &err) == STG_INVALID);
    CHECK(strstr(err.text, words) != NULL);
}

TEST(advise, refuses_what_is_out_of_range)
{
    stg_question q = stg_question_default();

    CHECK(stg_question_check(&q, NULL) == STG_OK);
    q.processes = 5001;
    check_refused(q, "as many as there are clients");
    q = stg_question_default();
    q.load = 951;
    check_refused(q, "1% to 95%");
    q = stg_question_default();
    q.service = q.patience;
    check_refused(q, "less than the patience");
    q = stg_question_default();
    q.outage = 2 * STG_HOUR;
    check_refused(q, "100ms to 1h");
}
