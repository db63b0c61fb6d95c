/* Who is served next, and what is shed. */
#include "tests/harness.h"

#include <math.h>

#include "sim/service.h"
#include "tests/sim/memory.h"

enum { SHED_MAX = 300, SLOTS = 4000 };

/* One worker of 10 ms a request. */
typedef struct stage {
    stg_sim_service service;
    test_memory counts;
    stg_memory memory;
    stg_ns now, due_at;
    size_t shed_count;
    stg_ns shed_at[SHED_MAX];
    uint32_t shed[SHED_MAX]; /* callers */
} stage;

static void on_start(void *ctx, uint32_t worker, stg_ns due_at)
{
    stage *s = ctx;

    (void)worker;
    s->due_at = due_at;
}

static void on_shed(void *ctx, uint32_t request)
{
    stage *s = ctx;

    CHECK(s->shed_count < SHED_MAX);
    s->shed[s->shed_count] = s->service.requests[request].caller;
    s->shed_at[s->shed_count++] = s->now;
    stg_sim_service_drop(&s->service, request);
}

static void set_up(stage *s, stg_sim_service_options o)
{
    memset(s, 0, sizeof *s);
    s->memory = test_memory_of(&s->counts);
    o.workers = 1;
    o.time.a = 10 * STG_MS;
    CHECK(stg_sim_service_check(&o, NULL) == STG_OK);
    CHECK(stg_sim_service_init(&s->service, &o, SLOTS, &s->memory) == STG_OK);
    s->service.on_start = on_start;
    s->service.on_shed = on_shed;
    s->service.ctx = s;
}

static void tear_down(stage *s)
{
    stg_sim_service_close(&s->service);
    CHECK_U64(s->counts.held, 0);
}

static stg_reception reach(stage *s, uint32_t caller, stg_ns at)
{
    uint32_t id = stg_sim_service_take(&s->service, caller);
    stg_reception r;

    s->now = at;
    r = stg_sim_service_reach(&s->service, id, at);
    if (r == STG_RECEPTION_REFUSED)
        stg_sim_service_drop(&s->service, id);
    return r;
}

/* Who was served. */
static uint32_t finish(stage *s)
{
    uint32_t id, caller;

    s->now = s->due_at;
    CHECK(stg_sim_service_is_due(&s->service, 0, s->now));
    id = stg_sim_service_finish(&s->service, 0, s->now);
    caller = s->service.requests[id].caller;
    stg_sim_service_drop(&s->service, id);
    return caller;
}

static void finish_all(stage *s)
{
    while (s->service.busy > 0)
        (void)finish(s);
}

TEST(service_queue, serves_the_last_first_while_it_stands)
{
    static const uint32_t served[] = {0, 1, 4, 3, 2};
    stage s;

    set_up(&s, (stg_sim_service_options){.queue_max = 9,
                                         .order = STG_SIM_ORDER_ADAPTIVE,
                                         .stands_after = 15 * STG_MS});
    for (uint32_t i = 0; i < 5; i++)
        (void)reach(&s, i, i * STG_MS);
    // It stands from 1 ms on: at 10 ms not for long enough, at 20 ms it does.
    for (size_t i = 0; i < 5; i++)
        CHECK_INT(finish(&s), served[i]);
    for (uint32_t i = 0; i < 3; i++)
        (void)reach(&s, i, s.now);
    for (uint32_t i = 0; i < 2; i++)
        CHECK_INT(finish(&s), i);
    finish_all(&s);
    tear_down(&s);
}

TEST(service_queue, sheds_what_has_waited_longer)
{
    stage s;

    set_up(&s, (stg_sim_service_options){.queue_max = 9,
                                         .shed = STG_SIM_SHED_WAIT,
                                         .shed_target = 20 * STG_MS});
    for (uint32_t i = 0; i < 5; i++)
        (void)reach(&s, i, i < 4 ? 0 : 25 * STG_MS);
    finish_all(&s);
    // 1 and 2 start after 10 and 20 ms, 3 is late at 30 ms.
    CHECK_INT(s.shed_count, 1);
    CHECK_INT(s.shed[0], 3);
    CHECK_U64(s.shed_at[0], 30 * STG_MS);
    CHECK_U64(s.service.counts.served, 4);
    CHECK_U64(s.service.counts.shed, 1);
    CHECK_U64(s.service.queued, 0);
    tear_down(&s);
}

TEST(service_queue, sheds_sooner_where_it_stands)
{
    stage s;

    set_up(&s, (stg_sim_service_options){.queue_max = 99,
                                         .shed = STG_SIM_SHED_WAIT,
                                         .shed_target = 5 * STG_MS,
                                         .shed_interval = 35 * STG_MS});
    for (uint32_t i = 0; i < 6; i++)
        (void)reach(&s, i, 0);
    finish_all(&s);
    CHECK_INT(s.shed_count, 2); // those that would have waited 40 and 50 ms
    CHECK_U64(s.shed_at[0], 40 * STG_MS);
    tear_down(&s);
    // Another one that is never empty: what has waited 10 ms is late, too.
    set_up(&s, (stg_sim_service_options){.queue_max = 99,
                                         .shed = STG_SIM_SHED_WAIT,
                                         .shed_target = 5 * STG_MS,
                                         .shed_interval = 35 * STG_MS});
    for (uint32_t i = 0; i < 4; i++)
        (void)reach(&s, i, 0);
    (void)finish(&s);
    (void)finish(&s);
    (void)reach(&s, 4, 21 * STG_MS);
    (void)finish(&s);
    (void)reach(&s, 5, 32 * STG_MS);
    (void)finish(&s);
    CHECK_INT(s.shed_count, 2);
    CHECK_INT(s.shed[0], 4);
    CHECK_INT(s.shed[1], 5);
    tear_down(&s);
}

/* RFC 8289, section 5: the first is dropped when the wait has been above the
 * target for an interval, and the next after interval / sqrt(1), / sqrt(2) ... A
 * worker takes every 10 ms, so each falls on the next of these. */
TEST(service_queue, drops_by_the_control_law_of_codel)
{
    const double interval = 100e6, step = 10e6;
    double due = 10e6 + interval;
    stage s;

    set_up(&s, (stg_sim_service_options){.queue_max = 3000,
                                         .shed = STG_SIM_SHED_CODEL,
                                         .shed_target = 5 * STG_MS,
                                         .shed_interval = 100 * STG_MS});
    for (uint32_t i = 0; i < 300; i++)
        (void)reach(&s, i, 0);
    while (s.shed_count < 40)
        (void)finish(&s);
    for (size_t n = 0; n < s.shed_count; n++) {
        double at = ceil(due / step) * step;

        CHECK_FROM(n, fabs((double)s.shed_at[n] - at) < 1);
        due += interval / sqrt((double)n + 1);
    }
    tear_down(&s);
}

/* Below the target, or with nobody left behind, none is dropped. */
TEST(service_queue, drops_nothing_that_codel_may_not)
{
    stage s;

    set_up(&s, (stg_sim_service_options){.queue_max = 3000,
                                         .shed = STG_SIM_SHED_CODEL,
                                         .shed_target = 50 * STG_MS,
                                         .shed_interval = 100 * STG_MS});
    for (uint32_t i = 0; i < 300; i++) {
        (void)reach(&s, i, i * 10 * STG_MS);
        if (i == 100) // they wait 40 ms from now on
            for (uint32_t k = 0; k < 4; k++)
                (void)reach(&s, k, i * 10 * STG_MS);
        (void)finish(&s);
    }
    CHECK_INT(s.shed_count, 0);
    tear_down(&s);
}

/* What was needed when the queue last stood, not long ago, is where it begins
 * again: count - lastcount of the RFC. */
TEST(service_queue, remembers_how_often_codel_had_to_drop)
{
    size_t first;
    stg_ns gap;
    stage s;

    set_up(&s, (stg_sim_service_options){.queue_max = 3000,
                                         .shed = STG_SIM_SHED_CODEL,
                                         .shed_target = 5 * STG_MS,
                                         .shed_interval = 100 * STG_MS});
    for (uint32_t i = 0; i < 60; i++)
        (void)reach(&s, i, 0);
    finish_all(&s);
    first = s.shed_count;
    CHECK(first > 5);
    CHECK_INT(s.service.codel.count, first);
    for (uint32_t i = 0; i < 60; i++)
        (void)reach(&s, i, s.now);
    finish_all(&s);
    CHECK(s.shed_count > first + 2);
    gap = s.shed_at[first + 1] - s.shed_at[first];
    CHECK_U64(gap, (stg_ns)(ceil(100 / sqrt((double)first - 1) / 10) * 10e6));
    tear_down(&s);
}

/* Netflix's AIMDLimit: one more for each in time where half is in use, nine
 * tenths for each that is late. */
TEST(service_queue, adapts_its_limit)
{
    stage s;
    uint32_t before;

    set_up(&s,
           (stg_sim_service_options){.queue_max = 30, .limit = 50 * STG_MS});
    CHECK_INT(s.service.inside_max, 1);
    CHECK_INT(reach(&s, 0, 0), STG_RECEPTION_STARTED);
    CHECK_INT(reach(&s, 1, 0), STG_RECEPTION_REFUSED);
    CHECK_U64(s.service.counts.refused, 1);
    for (uint32_t i = 0; i < 300; i++) {
        bool is_late;

        while (reach(&s, i, s.now) != STG_RECEPTION_REFUSED)
            continue;
        before = s.service.inside_max;
        CHECK(s.service.busy + s.service.queued >= before);
        is_late =
            s.due_at -
                s.service.requests[s.service.workers[0].request].reached_at >
            50 * STG_MS;
        (void)finish(&s);
        CHECK_FROM(i, s.service.inside_max == (!is_late     ? before + 1
                                               : before > 1 ? before * 9 / 10
                                                            : 1));
    }
    finish_all(&s);
    before = s.service.inside_max;
    for (int i = 0; i < 9; i++) { // less than half in use: no more
        (void)reach(&s, 0, s.now);
        (void)finish(&s);
    }
    CHECK_INT(s.service.inside_max, before);
    tear_down(&s);
}

TEST(service_queue, is_written_as_it_is_read)
{
    static const char *const orders[] = {"fifo", "lifo", "adaptive-lifo:100ms",
                                         "adaptive-lifo:2s"};
    static const char *const sheds[] = {"none", "wait:1s", "wait:5ms:100ms",
                                        "codel:5ms:100ms"};
    static const char *const limits[] = {"none", "aimd:100ms"};
    stg_sim_service_options o = {.workers = 1};
    char text[STG_SERVICE_TEXT_MAX];

#define READ(kind, word) \
    stg_service_read_##kind(&(stg_reader){word, (word) + strlen(word)}, &o)
    for (size_t i = 0; i < 4; i++) {
        CHECK(READ(order, orders[i]) && READ(shed, sheds[i]));
        CHECK(READ(limit, limits[i % 2]));
        CHECK(stg_sim_service_check(&o, NULL) == STG_OK);
        CHECK_STR(stg_service_print_order(&o, text), orders[i]);
        CHECK_STR(stg_service_print_shed(&o, text), sheds[i]);
        CHECK_STR(stg_service_print_limit(&o, text), limits[i % 2]);
    }
    CHECK(!READ(shed, "codel:5ms") && !READ(shed, "wait:0") &&
          !READ(shed, "codel:5ms:2d") && !READ(limit, "aimd:1ns") &&
          !READ(order, "adaptive-lifo:"));
#undef READ
}
