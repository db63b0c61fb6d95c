#include "tests/harness.h"

#include <stdio.h>

#include "sim/service.h"
#include "tests/sim/memory.h"

/* A service of 10 ms a request, and the story of what became of each. */
typedef struct stage {
    stg_sim_service service;
    test_memory counts;
    stg_memory memory;
    stg_ns due_at[8]; /* end of each worker's request */
    char story[1024];
} stage;

static void on_start(void *ctx, uint32_t worker, stg_ns due_at)
{
    stage *s = ctx;

    s->due_at[worker] = due_at;
}

static void tell(stage *s, const char *what, uint32_t caller, stg_ns now)
{
    size_t length = strlen(s->story);

    snprintf(s->story + length, sizeof s->story - length, "%3ju ms  %c %s\n",
             (uintmax_t)(now / STG_MS), (char)('a' + caller), what);
}

static void set_up(stage *s, stg_sim_service_options o)
{
    memset(s, 0, sizeof *s);
    s->memory = test_memory_of(&s->counts);
    o.time.a = 10 * STG_MS;
    CHECK(stg_sim_service_init(&s->service, &o, 100, &s->memory) == STG_OK);
    s->service.on_start = on_start;
    s->service.ctx = s;
}

static void tear_down(stage *s)
{
    stg_sim_service_close(&s->service);
    CHECK_U64(s->counts.held, 0);
}

static uint32_t reach(stage *s, uint32_t caller, stg_ns ms)
{
    static const char *const words[] = {"starts", "waits", "is refused"};
    uint32_t id = stg_sim_service_take(&s->service, caller);
    stg_reception r = stg_sim_service_reach(&s->service, id, ms * STG_MS);

    tell(s, words[r], caller, ms * STG_MS);
    if (r == STG_RECEPTION_REFUSED)
        stg_sim_service_drop(&s->service, id);
    return id;
}

static void finish(stage *s, uint32_t worker)
{
    stg_ns now = s->due_at[worker];
    uint32_t id;

    CHECK(stg_sim_service_is_due(&s->service, worker, now));
    id = stg_sim_service_finish(&s->service, worker, now);
    tell(s, "is served", s->service.requests[id].caller, now);
    stg_sim_service_drop(&s->service, id);
}

TEST(service, serves_in_order_and_refuses_what_has_no_place)
{
    stage s;

    set_up(&s, (stg_sim_service_options){.workers = 1, .queue_max = 2});
    for (uint32_t i = 0; i < 4; i++)
        reach(&s, i, i);
    for (int i = 0; i < 3; i++)
        finish(&s, 0);
    CHECK_TRACE(s.story,
                "  0 ms  a starts\n"
                "  1 ms  b waits\n"
                "  2 ms  c waits\n"
                "  3 ms  d is refused\n"
                " 10 ms  a is served\n"
                " 20 ms  b is served\n"
                " 30 ms  c is served\n");
    CHECK(!stg_sim_service_is_due(&s.service, 0, 30 * STG_MS));
    tear_down(&s);
}

TEST(service, serves_the_last_first_where_it_is_told_to)
{
    stage s;

    set_up(&s, (stg_sim_service_options){
                   .workers = 1, .queue_max = 9, .order = STG_SIM_ORDER_LIFO});
    for (uint32_t i = 0; i < 3; i++)
        reach(&s, i, i);
    for (int i = 0; i < 3; i++)
        finish(&s, 0);
    CHECK_TRACE(s.story,
                "  0 ms  a starts\n"
                "  1 ms  b waits\n"
                "  2 ms  c waits\n"
                " 10 ms  a is served\n"
                " 20 ms  c is served\n"
                " 30 ms  b is served\n");
    tear_down(&s);
}

TEST(service, has_as_many_under_way_as_workers)
{
    stage s;

    set_up(&s, (stg_sim_service_options){.workers = 3, .queue_max = 0});
    for (uint32_t i = 0; i < 4; i++)
        reach(&s, i, 0);
    CHECK_INT(s.service.busy, 3);
    finish(&s, 1);
    reach(&s, 4, 10);
    CHECK_TRACE(s.story,
                "  0 ms  a starts\n"
                "  0 ms  b starts\n"
                "  0 ms  c starts\n"
                "  0 ms  d is refused\n"
                " 10 ms  b is served\n"
                " 10 ms  e starts\n");
    tear_down(&s);
}

TEST(service, serves_for_nobody_unless_it_skips_who_has_gone)
{
    for (int skips = 0; skips < 2; skips++) {
        stage s;
        uint32_t b;

        set_up(&s, (stg_sim_service_options){
                       .workers = 1, .queue_max = 9, .skips_gone = skips});
        reach(&s, 0, 0);
        b = reach(&s, 1, 1);
        reach(&s, 2, 2);
        CHECK(stg_sim_service_leave(&s.service, b, 3 * STG_MS) == skips);
        if (skips)
            stg_sim_service_drop(&s.service, b);
        finish(&s, 0);
        finish(&s, 0);
        CHECK_INT(s.service.counts.served_for_nobody, !skips);
        CHECK_INT(s.service.counts.lost, skips);
        CHECK_STR(strrchr(s.story, 'm') + 4,
                  skips ? "c is served\n" : "b is served\n");
        tear_down(&s);
    }
}

TEST(service, stands_still_in_a_stall_and_goes_on_after_it)
{
    stage s;

    set_up(&s, (stg_sim_service_options){.workers = 2, .queue_max = 9});
    reach(&s, 0, 0);
    stg_sim_service_stall(&s.service, 4 * STG_MS);
    CHECK(!stg_sim_service_is_due(&s.service, 0, 10 * STG_MS));
    reach(&s, 1, 5); // a worker is free, and does not move
    stg_sim_service_resume(&s.service, 100 * STG_MS);
    CHECK_U64(s.due_at[0], 106 * STG_MS);
    CHECK_U64(s.due_at[1], 110 * STG_MS);
    finish(&s, 0);
    finish(&s, 1);
    CHECK_INT(s.service.busy, 0);
    tear_down(&s);
}

TEST(service, takes_longer_when_it_is_slow)
{
    stage s;

    set_up(&s, (stg_sim_service_options){.workers = 1, .queue_max = 9});
    s.service.slowness = 2500;
    reach(&s, 0, 0);
    CHECK_U64(s.due_at[0], 25 * STG_MS);
    tear_down(&s);
}

TEST(service, loses_all_that_is_inside)
{
    stage s;
    int lost = 0;
    uint32_t id;

    set_up(&s, (stg_sim_service_options){.workers = 2, .queue_max = 9});
    for (uint32_t i = 0; i < 5; i++)
        reach(&s, i, 0);
    while ((id = stg_sim_service_clear(&s.service, STG_MS)) != STG_SIM_NONE) {
        stg_sim_service_drop(&s.service, id);
        lost++;
    }
    CHECK_INT(lost, 5);
    CHECK_INT(s.service.busy + s.service.queued, 0);
    CHECK(!stg_sim_service_is_due(&s.service, 0, 10 * STG_MS));
    reach(&s, 5, 20);
    CHECK_INT(s.service.busy, 1);
    tear_down(&s);
}

TEST(service, counts_who_waited_how_long_and_how_many_there_were)
{
    stage s;
    const stg_sim_service_counts *c = &s.service.counts;

    set_up(&s, (stg_sim_service_options){.workers = 1, .queue_max = 9});
    for (uint32_t i = 0; i < 3; i++)
        reach(&s, i, 0);
    for (int i = 0; i < 3; i++)
        finish(&s, 0);
    stg_sim_service_count_rest(&s.service, 40 * STG_MS);
    CHECK_INT(c->reached, 3);
    CHECK_INT(c->timed, 3);
    CHECK(c->wait == 30e6 && c->stay == 60e6);
    CHECK(c->present == 60e6 && c->stay_inside == 60e6);
    CHECK(c->queued == 30e6);
    CHECK_INT(c->queued_most, 2);
    tear_down(&s);
}

TEST(service, has_no_more_slots_than_it_may)
{
    stage s;
    int count = 0;

    set_up(&s, (stg_sim_service_options){.workers = 1, .queue_max = 9});
    while (stg_sim_service_take(&s.service, 0) != STG_SIM_NONE)
        count++;
    CHECK_INT(count, 100);
    tear_down(&s);
}
