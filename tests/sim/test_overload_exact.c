/* The model where theory has the answer. */
#include "tests/sim/overload_help.h"

enum { REPETITIONS = 20 };

/* A service that nobody retries at: Poisson arrivals, exponential times. */
static stg_overload_options queue_of(uint32_t workers, double load,
                                     uint32_t queue_max)
{
    stg_overload_options o = stg_overload_default();

    o.policy = help_policy("attempts=1 deadline=none");
    o.trigger = (stg_trigger){.kind = STG_TRIGGER_NONE};
    o.timeout = STG_NEVER;
    o.network = (stg_distribution){.kind = STG_DISTRIBUTION_FIXED};
    o.processes = 1;
    o.service.workers = workers;
    o.service.queue_max = queue_max;
    o.load.rate = (uint64_t)(workers * load * 100 * 1000);
    o.warmup = 20 * STG_S;
    o.end_at = 220 * STG_S;
    o.bin = STG_S;
    return o;
}

typedef struct measured {
    help_sample stay, wait, waited, refused, present, little;
} measured;

static measured measure(const stg_overload_options *o)
{
    measured m = {0};

    for (uint64_t i = 0; i < REPETITIONS; i++) {
        stg_overload_result r = help_run(o, i);
        const stg_sim_service_counts *c = &r.service;
        double seconds = (double)r.counted / 1e9;

        CHECK(!r.is_cut);
        help_add(&m.stay, c->stay / (double)c->timed / 1e9);
        help_add(&m.wait, c->wait / (double)c->timed / 1e9);
        help_add(&m.waited, (double)c->waited / (double)c->started);
        help_add(&m.refused, (double)c->refused / (double)c->reached);
        help_add(&m.present, c->present / 1e9 / seconds);
        help_add(&m.little, (double)(c->reached - c->refused) / seconds);
        stg_overload_free(&r, &help_memory);
    }
    return m;
}

/* W = 1 / (mu - lambda), and L = rho / (1 - rho): Kleinrock, "Queueing
 * Systems", volume 1, 1975. The mean does not know who is served first. */
TEST(overload, is_an_m_m_1_queue)
{
    for (int is_lifo = 0; is_lifo < 2; is_lifo++) {
        stg_overload_options o = queue_of(1, 0.7, 1000000);
        measured m;

        o.service.order = is_lifo ? STG_SIM_ORDER_LIFO : STG_SIM_ORDER_FIFO;
        m = measure(&o);
        CHECK_NEAR(m.stay, 1 / (100.0 - 70.0), 0.03);
        CHECK_NEAR(m.present, 0.7 / 0.3, 0.03);
        CHECK_NEAR(m.waited, 0.7, 0.015);
    }
}

/* Pb = (1 - rho) rho^K / (1 - rho^(K + 1)), K places with the worker's. */
TEST(overload, is_an_m_m_1_k_queue)
{
    static const struct {
        double load;
        uint32_t places;
    } cases[] = {{0.8, 5}, {1.0, 4}, {1.5, 3}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double rho = cases[i].load;
        uint32_t places = cases[i].places;
        stg_overload_options o = queue_of(1, rho, places - 1);
        measured m = measure(&o);
        double expected = rho == 1.0 ? 1.0 / (places + 1)
                                     : (1 - rho) * pow(rho, places) /
                                           (1 - pow(rho, places + 1));

        CHECK_NEAR(m.refused, expected, 0.015);
    }
}

/* Who has waited for T is shed: of M/M/1 with fixed patience the work ahead of
 * an arrival has the density l P0 exp(-(m - l) x) up to T, and falls as exp(-m x)
 * beyond: Barrer, "Queuing with impatient customers and ordered service",
 * Operations Research 5(5), 1957. */
TEST(overload, sheds_as_many_as_impatience_would_lose)
{
    static const double loads[] = {0.8, 1.2, 2};
    const double mu = 100, patience = 0.03;

    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        stg_overload_options o = queue_of(1, loads[i], 1000000);
        double lambda = mu * loads[i], apart = mu - lambda;
        double tail = exp(-apart * patience);
        double idle =
            1 / (1 + lambda * (1 - tail) / apart + lambda / mu * tail);
        help_sample lost = {0}, busy = {0};

        o.service.shed = STG_SIM_SHED_WAIT;
        o.service.shed_target = 30 * STG_MS;
        for (uint64_t n = 0; n < REPETITIONS; n++) {
            stg_overload_result r = help_run(&o, n);
            const stg_sim_service_counts *c = &r.service;

            CHECK_U64(c->refused, 0);
            help_add(&lost, (double)c->shed / (double)c->reached);
            help_add(&busy, (c->present - c->queued) / (double)r.counted);
            stg_overload_free(&r, &help_memory);
        }
        CHECK_NEAR(lost, idle * lambda / mu * tail, 0.02);
        CHECK_NEAR(busy, 1 - idle, 0.01);
    }
}

/* At twice the capacity: the workers have work, and by Little's law those inside
 * are the throughput times the stay, so no more than the limit's target says. */
TEST(overload, keeps_stays_below_its_limit)
{
    static const stg_ns limits[] = {50 * STG_MS, 100 * STG_MS, 400 * STG_MS};

    for (size_t i = 0; i < 3; i++) {
        stg_overload_options o = queue_of(10, 2, 1000000);
        help_sample stay = {0}, present = {0}, busy = {0};

        o.service.limit = limits[i];
        for (uint64_t n = 0; n < 4; n++) {
            stg_overload_result r = help_run(&o, n);
            const stg_sim_service_counts *c = &r.service;

            help_add(&stay, c->stay / (double)c->timed);
            help_add(&present, c->present / (double)r.counted);
            help_add(&busy, (c->present - c->queued) / (double)r.counted);
            stg_overload_free(&r, &help_memory);
        }
        CHECK_FROM(i, help_mean(&busy) > 9.9);
        CHECK_FROM(i, help_mean(&stay) < (double)limits[i]);
        CHECK_FROM(i, help_mean(&stay) > 0.5 * (double)limits[i]);
        CHECK_FROM(i, fabs(help_mean(&present) / help_mean(&stay) * 1e9 /
                               (100 * help_mean(&busy)) -
                           1) < 0.02);
    }
}

/* That an arrival has to wait with c workers and offered load a. */
static double erlang_c(uint32_t workers, double load)
{
    double a = workers * load, blocked = 1;

    for (uint32_t k = 1; k <= workers; k++)
        blocked = a * blocked / (k + a * blocked);
    return blocked / (1 - load + load * blocked);
}

TEST(overload, has_the_waits_of_erlang_c)
{
    stg_overload_options o = queue_of(8, 0.75, 1000000);
    measured m = measure(&o);
    double expected = erlang_c(8, 0.75);

    CHECK(fabs(expected - 0.3570) < 0.0005);
    CHECK_NEAR(m.waited, expected, 0.015);
    CHECK_NEAR(m.wait, expected / (8 * 100.0 * 0.25), 0.03);
}

/* Wq = lambda E[S^2] / (2 (1 - rho)): Pollaczek and Khinchine. */
TEST(overload, is_an_m_g_1_queue)
{
    static const struct {
        stg_distribution time;
        double squares; /* E[S^2] / E[S]^2 */
    } cases[] = {
        {{.kind = STG_DISTRIBUTION_FIXED, .a = 10 * STG_MS}, 1},
        {{.kind = STG_DISTRIBUTION_UNIFORM, .a = 0, .b = 20 * STG_MS}, 4 / 3.0},
        {{.kind = STG_DISTRIBUTION_ERLANG, .a = 10 * STG_MS, .count = 4}, 1.25},
        {{.kind = STG_DISTRIBUTION_MIX,
          .a = 55 * STG_MS,
          .b = 5 * STG_MS,
          .count = 100},
         2 * (0.1 * 5.5 * 5.5 + 0.9 * 0.5 * 0.5)},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stg_overload_options o = queue_of(1, 0.6, 1000000);
        measured m;

        o.service.time = cases[i].time;
        m = measure(&o);
        CHECK_NEAR(m.wait, 60 * 1e-4 * cases[i].squares / (2 * 0.4), 0.04);
    }
}

/* L = lambda W: Little, "A proof for the queuing formula L = lambda W",
 * Operations Research 9(3), 1961. Counted over the same time it is no
 * approximation: what is in the service at each moment, summed over time, is
 * the time that each spends in it, summed over requests. */
TEST(overload, keeps_littles_law_whatever_happens)
{
    static const stg_trigger_kind kinds[] = {
        STG_TRIGGER_NONE, STG_TRIGGER_OUTAGE, STG_TRIGGER_STALL,
        STG_TRIGGER_SLOW, STG_TRIGGER_SPIKE,  STG_TRIGGER_ERRORS};

    for (uint64_t i = 0; i < 24; i++) {
        stg_overload_options o = stg_overload_default();
        stg_overload_result r;

        o.policy = help_policy(i % 2 ? "attempts=4 base=100ms" : "backend");
        o.trigger.kind = kinds[i % 6];
        o.trigger.factor = i % 6 == 5 ? 700 : i % 6 >= 3 ? 3000 : 0;
        o.service.order = i % 4 > 1 ? STG_SIM_ORDER_LIFO : STG_SIM_ORDER_FIFO;
        o.service.skips_gone = i % 8 > 3;
        o.service.shed = (stg_sim_shed)(i % 3);
        o.service.shed_target = 20 * STG_MS;
        o.service.shed_interval = 100 * STG_MS;
        o.service.limit = i % 7 == 0 ? 50 * STG_MS : 0;
        o.service.queue_max = i % 3 == 0 ? 10 : 2000;
        if (i % 5 == 0)
            o.load = (stg_overload_load){
                .is_closed = true, .clients = 900, .think = {.a = STG_S}};
        r = help_run(&o, i);
        CHECK_FROM(i, r.service.present > 0);
        CHECK_FROM(i,
                   fabs(r.service.stay_inside / r.service.present - 1) < 1e-9);
        stg_overload_free(&r, &help_memory);
    }
}

/* With failure probability p and k retries: success 1 - p^(k + 1), load
 * 1 + p + ... + p^k, whatever the load is. */
TEST(overload, has_the_success_and_load_of_independent_failures)
{
    static const double failing[] = {0.1, 0.5, 0.9};

    for (int i = 0; i < 3; i++)
        for (int retries = 0; retries < 5; retries += 2) {
            stg_overload_options o = queue_of(50, 0.06, 1000000);
            help_sample success = {0}, sent = {0};
            double p = failing[i], load = 0;

            o.policy = help_policy("fixed base=10ms jitter=none deadline=none");
            o.policy.attempts_max = (uint64_t)retries + 1;
            o.errors = (uint32_t)(p * 1000000);
            o.warmup = 0;
            o.end_at = 20 * STG_S;
            // In the last seconds nearly nothing begins, so that all ends.
            o.trigger = (stg_trigger){.kind = STG_TRIGGER_SPIKE,
                                      .factor = 1,
                                      .from_at = 18 * STG_S,
                                      .until_at = 20 * STG_S - 1};
            for (uint64_t n = 0; n < REPETITIONS; n++) {
                stg_overload_result r = help_run(&o, n);

                help_add(&success,
                         (double)r.saved / (double)(r.saved + r.lost));
                help_add(&sent, (double)r.sent / (double)r.begun);
                stg_overload_free(&r, &help_memory);
            }
            for (int k = 0; k <= retries; k++)
                load += pow(p, k);
            CHECK_NEAR(success, 1 - pow(p, retries + 1), 0.03);
            if (retries > 0)
                CHECK_NEAR(sent, load, 0.015);
        }
}

/* A machine repairman: N clients that think for Z, one worker of mean S. Mean
 * value analysis has the throughput: Reiser and Lavenberg, JACM 27(2), 1980. */
TEST(overload, has_the_throughput_of_a_closed_network)
{
    stg_overload_options o = queue_of(1, 0.5, 1000000);
    double length = 0, throughput = 0;
    help_sample served = {0};

    o.load = (stg_overload_load){
        .is_closed = true,
        .clients = 20,
        .think = {.kind = STG_DISTRIBUTION_EXPONENTIAL, .a = 200 * STG_MS}};
    for (int n = 1; n <= 20; n++) {
        double stay = 0.010 * (1 + length);

        throughput = n / (0.200 + stay);
        length = throughput * stay;
    }
    for (uint64_t i = 0; i < REPETITIONS; i++) {
        stg_overload_result r = help_run(&o, i);

        help_add(&served, (double)r.service.served / ((double)r.counted / 1e9));
        stg_overload_free(&r, &help_memory);
    }
    CHECK_NEAR(served, throughput, 0.01);
}
