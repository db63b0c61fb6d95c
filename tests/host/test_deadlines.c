#include "host/deadlines.h"

#include <stdlib.h>

#include <stagger/rng.h>

#include "tests/harness.h"

typedef struct clockwork {
    uv_loop_t loop;
    stg_deadlines all;
    stg_ns last_at; /* for which the last one was set */
    int passed;
    bool is_closed;
} clockwork;

typedef struct hand {
    stg_deadline deadline; /* first, since pass() casts it to a hand */
    clockwork *c;
    stg_ns at;
    int times;
    struct hand *other;
} hand;

static void open_clockwork(clockwork *c)
{
    memset(c, 0, sizeof *c);
    CHECK(uv_loop_init(&c->loop) == 0);
    stg_deadlines_init(&c->all, &c->loop);
}

static void note_closed(void *ctx)
{
    clockwork *c = ctx;

    c->is_closed = true;
}

static void close_clockwork(clockwork *c)
{
    stg_deadlines_close(&c->all, note_closed, c);
    CHECK(uv_run(&c->loop, UV_RUN_DEFAULT) == 0);
    CHECK(c->is_closed);
    CHECK(uv_loop_close(&c->loop) == 0);
}

static void pass(stg_deadline *d)
{
    hand *h = (hand *)d;

    CHECK(stg_deadlines_now() >= h->at);
    CHECK(h->at >= h->c->last_at);
    CHECK_U64(stg_deadline_at(d), STG_NEVER);
    h->c->last_at = h->at;
    h->c->passed++;
    h->times++;
}

static void set(clockwork *c, hand *h, stg_ns at)
{
    h->c = c;
    h->at = at;
    if (h->deadline.passed == NULL)
        h->deadline.passed = pass;
    stg_deadline_set(&c->all, &h->deadline, at);
}

/* Never early, in their order, each once; those that are cleared never. */
TEST(deadlines, pass_in_order_and_never_early)
{
    enum { HANDS = 200 };
    clockwork c;
    hand hands[HANDS];
    stg_rng rng = stg_rng_seed(1);
    stg_ns now;
    int cleared = 0;

    open_clockwork(&c);
    memset(hands, 0, sizeof hands);
    now = stg_deadlines_now();
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < HANDS; i++)
            set(&c, &hands[i], now + stg_rng_upto(&rng, 12 * STG_MS));
    for (int i = 0; i < HANDS; i += 3, cleared++)
        stg_deadline_clear(&c.all, &hands[i].deadline);
    CHECK(uv_run(&c.loop, UV_RUN_DEFAULT) == 0); // ends by itself
    CHECK_INT(c.passed, HANDS - cleared);
    for (int i = 0; i < HANDS; i++)
        CHECK_FROM(i, hands[i].times == (i % 3 != 0));
    close_clockwork(&c);
}

TEST(deadlines, keep_the_loop_alive_only_while_one_is_set)
{
    clockwork c;
    hand h = {.times = 0};

    open_clockwork(&c);
    CHECK(!uv_loop_alive(&c.loop));
    set(&c, &h, stg_deadlines_now() + STG_HOUR);
    CHECK(uv_loop_alive(&c.loop));
    stg_deadline_clear(&c.all, &h.deadline);
    stg_deadline_clear(&c.all, &h.deadline);
    CHECK(!uv_loop_alive(&c.loop));
    set(&c, &h, STG_NEVER - 1);
    CHECK_U64(stg_deadline_at(&h.deadline), STG_NEVER - 1);
    set(&c, &h, STG_NEVER); // clears
    CHECK(!uv_loop_alive(&c.loop));
    CHECK_INT(h.times, 0);
    close_clockwork(&c);
}

TEST(deadlines, pass_late_but_not_from_within_the_call_when_they_are_past)
{
    clockwork c;
    hand h = {.times = 0};

    open_clockwork(&c);
    set(&c, &h, 0);
    CHECK_INT(h.times, 0);
    (void)uv_run(&c.loop, UV_RUN_NOWAIT);
    CHECK_INT(h.times, 1);
    close_clockwork(&c);
}

/* The timer is set for an hour when the earlier one comes. */
TEST(deadlines, are_told_of_an_earlier_one)
{
    clockwork c;
    hand late = {.times = 0}, early = {.times = 0};
    stg_ns now;

    open_clockwork(&c);
    now = stg_deadlines_now();
    set(&c, &late, now + STG_HOUR);
    set(&c, &early, now + 2 * STG_MS);
    while (early.times == 0)
        (void)uv_run(&c.loop, UV_RUN_ONCE);
    CHECK(stg_deadlines_now() < now + STG_HOUR);
    stg_deadline_clear(&c.all, &late.deadline);
    close_clockwork(&c);
}

static void set_again(stg_deadline *d)
{
    hand *h = (hand *)d;

    h->times++;
    stg_deadline_set(&h->c->all, &h->other->deadline, 0);
}

/* Two that set each other for the past do not keep the loop. */
TEST(deadlines, leave_the_loop_its_turns)
{
    clockwork c;
    hand one = {.times = 0}, two = {.times = 0};

    open_clockwork(&c);
    one.deadline.passed = two.deadline.passed = set_again;
    one.other = &two;
    two.other = &one;
    two.c = &c;
    set(&c, &one, 0);
    for (int i = 0; i < 20; i++)
        (void)uv_run(&c.loop, UV_RUN_ONCE);
    // Timers run twice in a turn that waits.
    CHECK(one.times + two.times > 1 && one.times + two.times <= 40);
    stg_deadline_clear(&c.all, &one.deadline);
    stg_deadline_clear(&c.all, &two.deadline);
    close_clockwork(&c);
}

static void clear_other(stg_deadline *d)
{
    hand *h = (hand *)d;

    h->times++;
    stg_deadline_clear(&h->c->all, &h->other->deadline);
}

TEST(deadlines, may_be_cleared_by_one_that_passes)
{
    clockwork c;
    hand one = {.times = 0}, two = {.times = 0};

    open_clockwork(&c);
    one.deadline.passed = two.deadline.passed = clear_other;
    one.other = &two;
    two.other = &one;
    set(&c, &one, 1);
    set(&c, &two, 1);
    CHECK(uv_run(&c.loop, UV_RUN_DEFAULT) == 0);
    CHECK_INT(one.times + two.times, 1);
    close_clockwork(&c);
}
