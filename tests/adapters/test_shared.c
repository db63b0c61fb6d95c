/* What threads share: budgets, breakers and limiters, on a virtual clock. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <stagger/loop.h>

#include "tests/adapters/story.h"
#include "tests/harness.h"

enum { THREADS = 4 };

/* A thread of a test, with its own part of a common seed. */
typedef struct worker {
    void *shared;
    int number;
    stg_rng rng;
    pthread_t thread;
} worker;

static void run_workers(void *(*run)(void *), void *shared, uint64_t seed)
{
    worker workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] =
            (worker){.shared = shared,
                     .number = i,
                     .rng = stg_rng_seed(seed * THREADS + (unsigned)i)};
        CHECK(pthread_create(&workers[i].thread, NULL, run, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
}

static bool chance(worker *w, unsigned percent)
{
    return stg_rng_upto(&w->rng, 99) < percent;
}

/* -- tokens, and places of a rate limit */

/* A clock that all threads read and any of them moves, and the instants at
 * which something was granted. */
typedef struct bucket {
    stg_budget budget;
    stg_limiter limiter;
    _Atomic stg_ns now;
    stg_ns step_max;
    atomic_size_t count;
    stg_ns granted_at[THREADS * 1000];
} bucket;

static void grant(bucket *b, stg_ns at)
{
    b->granted_at[atomic_fetch_add(&b->count, 1)] = at;
}

/* Some threads lag behind, and read the clock of a while ago. */
static stg_ns tick(worker *w, bucket *b)
{
    stg_ns now = atomic_fetch_add(&b->now, stg_rng_upto(&w->rng, b->step_max));

    return stg_ns_sub(now, chance(w, 20) ? 3 * b->step_max : 0);
}

static void *take_tokens(void *arg)
{
    worker *w = arg;
    bucket *b = w->shared;

    for (int i = 0; i < 1000; i++) {
        stg_ns now = tick(w, b);

        if (stg_budget_take(&b->budget, STG_CHARGE_RETRY, now).granted)
            grant(b, now);
    }
    return NULL;
}

static void *take_places(void *arg)
{
    worker *w = arg;
    bucket *b = w->shared;

    for (int i = 0; i < 1000; i++) {
        stg_ns now = tick(w, b);

        if (stg_limiter_take(&b->limiter, now, NULL))
            grant(b, now);
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    stg_ns x = *(const stg_ns *)a, y = *(const stg_ns *)b;

    return x < y ? -1 : x > y;
}

/* In no window [from, to] more than capacity + (to - from) / interval. */
static void check_windows(uint64_t seed, bucket *b, uint64_t capacity,
                          stg_ns interval)
{
    int64_t least = INT64_MAX;

    qsort(b->granted_at, b->count, sizeof *b->granted_at, compare);
    for (size_t i = 0; i < b->count; i++) {
        int64_t at = (int64_t)b->granted_at[i];
        int64_t before = (int64_t)(i * interval) - at;

        least = before < least ? before : least;
        CHECK_FROM(seed, before + (int64_t)interval - least <=
                             (int64_t)(capacity * interval));
    }
    CHECK_FROM(seed, b->count >= capacity);
}

static bucket *new_bucket(uint64_t seed, uint32_t *capacity, stg_ns *interval)
{
    bucket *b = calloc(1, sizeof *b);
    stg_rng rng = stg_rng_seed(seed);
    uint32_t rate = 1000 + (uint32_t)stg_rng_upto(&rng, 1000000);

    CHECK(b != NULL);
    *capacity = 1 + (uint32_t)stg_rng_upto(&rng, 100);
    *interval = (1000 * STG_S + rate - 1) / rate;
    b->step_max = *interval * stg_rng_upto(&rng, 2);
    b->now = STG_DAY;
    CHECK(stg_limiter_init(&b->limiter, rate, *capacity, NULL) == STG_OK);
    CHECK(stg_budget_init(&b->budget,
                          &(stg_budget_options){.kind = STG_BUDGET_TOKENS,
                                                .capacity = *capacity,
                                                .rate = rate}) == STG_OK);
    return b;
}

TEST(shared, tokens_are_never_granted_beyond_their_rate)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        uint32_t capacity;
        stg_ns interval;
        bucket *b = new_bucket(seed, &capacity, &interval);

        run_workers(take_tokens, b, seed);
        check_windows(seed, b, capacity, interval);
        free(b);
    }
}

TEST(shared, places_are_never_granted_beyond_their_rate)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        uint32_t capacity;
        stg_ns interval;
        bucket *b = new_bucket(seed, &capacity, &interval);

        run_workers(take_places, b, seed);
        check_windows(seed, b, capacity, interval);
        free(b);
    }
}

/* -- places of a bulkhead */

typedef struct room {
    stg_bulkhead bulkhead;
    atomic_int inside, entered;
} room;

static void *enter_and_leave(void *arg)
{
    worker *w = arg;
    room *r = w->shared;

    for (int i = 0; i < 2000; i++) {
        if (!stg_bulkhead_enter(&r->bulkhead))
            continue;
        atomic_fetch_add(&r->entered, 1);
        CHECK(atomic_fetch_add(&r->inside, 1) < 2);
        atomic_fetch_sub(&r->inside, 1);
        stg_bulkhead_leave(&r->bulkhead);
    }
    return NULL;
}

TEST(shared, a_bulkhead_never_lets_in_more_than_it_has_places)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        room r = {.entered = 0};

        CHECK(stg_bulkhead_init(&r.bulkhead,
                                &(stg_bulkhead_options){.max = 2}) == STG_OK);
        run_workers(enter_and_leave, &r, seed);
        CHECK_FROM(seed, stg_bulkhead_taken(&r.bulkhead) == 0);
        CHECK_FROM(seed, r.entered >= 2000);
    }
}

/* -- throttles */

typedef struct crowd {
    stg_throttle throttle;
    _Atomic stg_ns now;
    atomic_int out;
} crowd;

static void *be_throttled(void *arg)
{
    worker *w = arg;
    crowd *c = w->shared;

    for (int i = 0; i < 1000; i++) {
        stg_ns now = atomic_fetch_add(&c->now, STG_MS);
        stg_outcome o = stg_answered(chance(w, 50) ? 429 : 200);

        if (!stg_throttle_enter(&c->throttle, now, &w->rng, NULL))
            continue;
        atomic_fetch_add(&c->out, 1);
        if (chance(w, 10))
            stg_throttle_withdraw(&c->throttle, now);
        else
            stg_throttle_report(&c->throttle, &o, now, now);
    }
    return NULL;
}

/* One that lets two out for each that is accepted, and one that has a rate. */
TEST(shared, a_throttle_holds_its_threads_back_together)
{
    static const stg_throttle_options kinds[] = {{STG_THROTTLE_SRE, 1100},
                                                 {STG_THROTTLE_AWS, 0}};

    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        crowd c = {.out = 0};

        CHECK(stg_throttle_init(&c.throttle, &kinds[seed % 2]) == STG_OK);
        run_workers(be_throttled, &c, seed);
        CHECK_FROM(seed, c.out >= 1 && c.out < 2000);
        CHECK_FROM(seed,
                   seed % 2 == 0 || stg_throttle_rate(&c.throttle) >= 500);
    }
}

/* Of tokens that do not come back in the time of the test. */
typedef struct purse {
    stg_budget budget;
    atomic_int kept;
} purse;

static void *take_and_give_back(void *arg)
{
    worker *w = arg;
    purse *p = w->shared;

    for (int i = 0; i < 1000; i++) {
        stg_grant g = stg_budget_take(&p->budget, STG_CHARGE_RETRY, STG_DAY);

        if (g.granted && chance(w, 90))
            stg_budget_give_back(&p->budget, STG_CHARGE_RETRY, STG_DAY,
                                 STG_DAY);
        else if (g.granted)
            atomic_fetch_add(&p->kept, 1);
    }
    return NULL;
}

TEST(shared, tokens_that_are_given_back_are_there_again_and_no_more)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        purse p = {.kept = 0};

        CHECK(stg_budget_init(&p.budget,
                              &(stg_budget_options){.kind = STG_BUDGET_TOKENS,
                                                    .capacity = 200,
                                                    .rate = 1}) == STG_OK);
        run_workers(take_and_give_back, &p, seed);
        CHECK_FROM(seed, stg_budget_left(&p.budget, STG_DAY) ==
                             1000 * (200 - (uint64_t)p.kept));
    }
}

/* -- ratio */

enum { SECONDS = 40 };

/* All threads live in the same second, and go to the next one together. */
typedef struct counts {
    stg_budget budget;
    pthread_barrier_t next_second;
    atomic_uint attempts[SECONDS], retries[SECONDS];
} counts;

static void *attempt_and_retry(void *arg)
{
    worker *w = arg;
    counts *c = w->shared;

    for (unsigned s = 0; s < SECONDS; s++) {
        stg_ns now = STG_DAY + s * STG_S;
        unsigned share = (unsigned)stg_rng_upto(&w->rng, 100);

        for (uint64_t left = stg_rng_upto(&w->rng, 100); left > 0; left--) {
            now += stg_rng_upto(&w->rng, 9 * STG_MS);
            if (chance(w, share)) {
                stg_budget_attempt(&c->budget, now);
                atomic_fetch_add(&c->attempts[s], 1);
            } else if (stg_budget_take(&c->budget, STG_CHARGE_RETRY, now)
                           .granted) {
                atomic_fetch_add(&c->retries[s], 1);
            }
        }
        pthread_barrier_wait(&c->next_second);
    }
    return NULL;
}

static unsigned last_ten(const atomic_uint *count, unsigned second)
{
    unsigned sum = 0;

    for (unsigned i = second < 9 ? 0 : second - 9; i <= second; i++)
        sum += count[i];
    return sum;
}

TEST(shared, a_ratio_is_never_exceeded)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        counts c = {.attempts = {0}};
        stg_rng rng = stg_rng_seed(seed);
        stg_budget_options o = {.kind = STG_BUDGET_RATIO};
        unsigned granted = 0;

        o.ratio = (uint32_t)stg_rng_upto(&rng, 500);
        o.rate = 100 + (uint32_t)stg_rng_upto(&rng, 2000);
        CHECK(stg_budget_init(&c.budget, &o) == STG_OK);
        CHECK(pthread_barrier_init(&c.next_second, NULL, THREADS) == 0);
        run_workers(attempt_and_retry, &c, seed);
        pthread_barrier_destroy(&c.next_second);
        for (unsigned s = 0; s < SECONDS; s++) {
            // By itself a window shrinks, when attempts fall out of it: what
            // counts is that a retry was granted in this second.
            CHECK_FROM(seed,
                       c.retries[s] == 0 ||
                           1000 * last_ten(c.retries, s) <=
                               o.ratio * last_ten(c.attempts, s) + 10 * o.rate);
            granted += c.retries[s];
        }
        CHECK_FROM(seed, granted > 0);
    }
}

/* -- share */

static void *come_and_go(void *arg)
{
    worker *w = arg;
    stg_budget *b = w->shared;

    for (int i = 0; i < 1000; i++) {
        bool is_retry = chance(w, 40);

        if (is_retry && !stg_budget_take(b, STG_CHARGE_RETRY, 0).granted)
            continue;
        if (is_retry && chance(w, 30)) {
            stg_budget_give_back(b, STG_CHARGE_RETRY, 0, 0);
            continue;
        }
        stg_budget_begin(b);
        // Of so many threads each has one at most.
        CHECK((uint32_t)b->level <= THREADS && b->level >> 32 <= THREADS);
        stg_budget_end(b, is_retry ? STG_CHARGE_RETRY : STG_CHARGE_NONE);
    }
    return NULL;
}

TEST(shared, a_share_is_empty_when_all_have_ended)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_budget b;

        CHECK(stg_budget_init(
                  &b, &(stg_budget_options){.kind = STG_BUDGET_SHARE,
                                            .ratio = 50 * (uint32_t)(seed % 21),
                                            .capacity = 1}) == STG_OK);
        run_workers(come_and_go, &b, seed);
        CHECK_FROM(seed, b.level == 0);
        CHECK_FROM(seed, stg_budget_left(&b, 0) == 1000);
    }
}

/* -- aws and grpc */

/* Whatever they do, at any moment, the level is one that there can be. */
static void *live_on(void *arg)
{
    worker *w = arg;
    stg_budget *b = w->shared;
    uint64_t most = 1000 * (uint64_t)b->options.capacity;

    for (int i = 0; i < 1000; i++) {
        stg_charge paid = STG_CHARGE_NONE;

        for (int failures = 0; chance(w, 60) && failures < 3; failures++) {
            stg_charge charge = chance(w, 50)   ? STG_CHARGE_RETRY
                                : chance(w, 50) ? STG_CHARGE_TIMEOUT
                                                : STG_CHARGE_THROTTLE;
            bool is_granted;

            stg_budget_fail(b);
            is_granted = stg_budget_take(b, charge, STG_DAY).granted;
            CHECK(stg_budget_left(b, STG_DAY) <= most);
            if (!is_granted)
                break;
            paid = charge;
            if (chance(w, 10)) {
                stg_budget_give_back(b, paid, STG_DAY, STG_DAY);
                paid = STG_CHARGE_NONE;
            }
        }
        if (chance(w, 30))
            stg_budget_succeed(b, paid);
        CHECK(stg_budget_left(b, STG_DAY) <= most);
    }
    return NULL;
}

TEST(shared, the_level_of_aws_stays_within_its_range)
{
    stg_budget b;

    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        CHECK(stg_budget_init(&b, &(stg_budget_options){
                                      .kind = STG_BUDGET_AWS,
                                      .capacity = 20 + 10 * (uint32_t)seed,
                                      .cost = 5,
                                      .timeout_cost = 1 + (uint32_t)seed % 20,
                                      .throttle_cost =
                                          20 - (uint32_t)seed % 20}) == STG_OK);
        run_workers(live_on, &b, seed);
    }
}

TEST(shared, the_level_of_grpc_stays_within_its_range)
{
    stg_budget b;

    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        CHECK(stg_budget_init(
                  &b, &(stg_budget_options){
                          .kind = STG_BUDGET_GRPC,
                          .capacity = 1 + (uint32_t)seed % 50,
                          .ratio = 100 + 300 * (uint32_t)seed}) == STG_OK);
        run_workers(live_on, &b, seed);
    }
}

/* -- the breaker */

/* Threads that all ask at the same instants, once each: how many passed. */
typedef struct door {
    stg_breaker breaker;
    pthread_barrier_t next;
    atomic_int probes, passed, refused;
    stg_ns now;
} door;

enum { ROUNDS = 50 };

static void ask(door *d)
{
    stg_ns reopen_at = 0;

    switch (stg_breaker_enter(&d->breaker, d->now, &reopen_at)) {
    case STG_PERMIT_GRANTED:
        atomic_fetch_add(&d->passed, 1);
        break;
    case STG_PERMIT_PROBE:
        atomic_fetch_add(&d->probes, 1);
        break;
    case STG_PERMIT_DENIED:
        CHECK(reopen_at > d->now);
        atomic_fetch_add(&d->refused, 1);
        break;
    }
}

/* Each round is an interval later, and nobody answers. */
static void *knock(void *arg)
{
    const worker *w = arg;
    door *d = w->shared;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 10; i++)
            ask(d);
        pthread_barrier_wait(&d->next);
        if (w->number == 0) {
            CHECK_INT(d->probes, round + 1);
            CHECK_INT(d->refused, (round + 1) * (10 * THREADS - 1));
            d->now += 30 * STG_S + 2 * STG_US;
        }
        pthread_barrier_wait(&d->next);
    }
    return NULL;
}

static void open_door(door *d, stg_ns open_max)
{
    *d = (door){.now = STG_DAY};
    CHECK(stg_breaker_init(&d->breaker, &(stg_breaker_options){
                                            .rule = STG_BREAKER_ROW,
                                            .failures = 1,
                                            .open = 30 * STG_S,
                                            .open_max = open_max}) == STG_OK);
    CHECK(pthread_barrier_init(&d->next, NULL, THREADS) == 0);
    stg_breaker_report(&d->breaker, false, STG_BREAKER_FAILURE, d->now, d->now);
    d->now += 30 * STG_S + 2 * STG_US;
}

TEST(shared, a_breaker_lets_one_probe_pass_an_interval)
{
    door d;

    open_door(&d, 30 * STG_S);
    run_workers(knock, &d, 0);
    CHECK_INT(d.passed, 0);
    pthread_barrier_destroy(&d.next);
}

/* Of ten that may pass, those that are cancelled make room for others. */
static void *knock_in_crowd(void *arg)
{
    worker *w = arg;
    door *d = w->shared;
    stg_ns reopen_at;

    for (int i = 0; i < 1000; i++) {
        if (stg_breaker_enter(&d->breaker, d->now, &reopen_at) !=
            STG_PERMIT_PROBE)
            continue;
        CHECK(atomic_fetch_add(&d->probes, 1) < 10);
        if (!chance(w, 95))
            return NULL; // without a word
        atomic_fetch_sub(&d->probes, 1);
        stg_breaker_abandon(&d->breaker, d->now);
    }
    return NULL;
}

TEST(shared, a_breaker_has_so_many_probes_under_way)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        door d;
        int left = 0;

        open_door(&d, 30 * STG_S);
        d.breaker.options.probes = 10;
        d.breaker.options.probes_good = 10;
        run_workers(knock_in_crowd, &d, seed);
        while (stg_breaker_enter(&d.breaker, d.now, NULL) == STG_PERMIT_PROBE)
            left++;
        CHECK_FROM(seed, d.probes + left == 10);
        pthread_barrier_destroy(&d.next);
    }
}

/* The probe of each round fails, which doubles the interval, but the last one
 * succeeds. All report what they like: only the probe's word counts. */
static void *probe(void *arg)
{
    worker *w = arg;
    door *d = w->shared;
    stg_ns open = 30 * STG_S;

    for (int round = 0; round < 10; round++) {
        stg_ns reopen_at;
        bool is_probe = stg_breaker_enter(&d->breaker, d->now, &reopen_at) ==
                        STG_PERMIT_PROBE;

        pthread_barrier_wait(&d->next);
        if (is_probe)
            atomic_fetch_add(&d->probes, 1);
        stg_breaker_report(&d->breaker, is_probe,
                           is_probe && round < 9 ? STG_BREAKER_FAILURE
                                                 : STG_BREAKER_SUCCESS,
                           d->now, d->now);
        pthread_barrier_wait(&d->next);
        if (w->number == 0) {
            CHECK_INT(d->probes, round + 1);
            CHECK_INT(stg_breaker_look(&d->breaker, d->now, NULL),
                      round < 9 ? STG_BREAKER_OPEN : STG_BREAKER_CLOSED);
            open = stg_ns_min(2 * open, STG_HOUR);
            d->now += open + 2 * STG_US;
        }
        pthread_barrier_wait(&d->next);
    }
    ask(d);
    return NULL;
}

TEST(shared, a_breaker_listens_to_its_probe_only)
{
    door d;

    open_door(&d, STG_HOUR);
    run_workers(probe, &d, 0);
    CHECK_INT(d.passed, THREADS);
    pthread_barrier_destroy(&d.next);
}

/* -- all of it, through loops */

typedef struct site {
    stg_policy policy;
    stg_peer peer;
    atomic_uint attempts, retries, waits, ended;
} site;

static void count_event(void *ctx, const stg_event *event)
{
    site *s = ctx;

    if (event->kind == STG_EVENT_ATTEMPT)
        atomic_fetch_add(&s->attempts, 1);
    if (event->kind == STG_EVENT_ATTEMPT && event->retry->attempts > 1)
        atomic_fetch_add(&s->retries, 1);
    if (event->kind == STG_EVENT_DECISION && event->decision.next == STG_WAIT)
        atomic_fetch_add(&s->waits, 1);
    if (event->kind == STG_EVENT_END)
        atomic_fetch_add(&s->ended, 1);
}

enum { OPERATIONS = 200 };

/* Each on a clock of its own. A fifth of the loops is left early. */
static void *work(void *arg)
{
    worker *w = arg;
    site *here = w->shared;
    stg_hook hook = {.on = count_event, .ctx = here};
    story s;

    story_begin(&s, "");
    for (int i = 0; i < OPERATIONS; i++) {
        stg_loop r;

        s.bits = stg_rng_next(&w->rng);
        stg_loop_begin(
            &r, &here->policy,
            &(stg_with){.peer = &here->peer, .hook = &hook, .env = &s.env});
        while (stg_loop_again(&r)) {
            stg_loop_report(&r, chance(w, 50) ? stg_ok() : stg_answered(503));
            if (chance(w, 20))
                stg_loop_end(&r);
        }
        CHECK(stg_operation_has_ended(&r.op));
        s.now += STG_MS;
    }
    return NULL;
}

TEST(shared, loops_leave_nothing_behind)
{
    static const char *const texts[] = {
        "fixed base=10ms attempts=4 budget=tokens:40:0.001/s",
        "fixed base=10ms attempts=4 budget=ratio:0.2+1/s",
        "fixed base=10ms attempts=4 budget=aws",
        "fixed base=10ms attempts=4 budget=grpc:10:0.5",
        "fixed base=10ms attempts=4 breaker=5:30ms-1s retry=any",
        "fixed base=10ms attempts=4 breaker=60%/10/100ms:30ms retry=any",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        site s = {.policy = policy_of(texts[i])};

        s.peer = peer_of(&s.policy);
        run_workers(work, &s, i);
        CHECK_FROM(i, s.ended == THREADS * OPERATIONS);
        CHECK_FROM(i, s.waits >= s.retries);
        // What was paid was used: each of the 40 tokens for a retry.
        if (i == 0)
            CHECK_U64(stg_budget_left(&s.peer.budget, 0) / 1000,
                      40 - s.retries);
    }
}
