/* Flow as a whole: what happens to messages, as traces. */
#include "tests/flow/world.h"

/* Whatever may have arrived uses an attempt up, however it ended. */
TEST(flow, counts_attempts_that_end_in_a_reset_or_a_timeout)
{
    stg_world *w =
        world_begin(8,
                    "fixed base=1s jitter=none attempts=3 deadline=none "
                    "attempt-timeout=5s retry=reset,timeout,protocol",
                    "reset timeout reset", 1);

    stg_world_run(w, STG_NEVER);
    CHECK_U64(stg_world_sum(w).starts, 3);
    CHECK_U64(stg_world_sum_lane(w, 0).dead, 1);
    world_end(w);
}

TEST(flow, delivers_each_message_once_to_each_lane)
{
    stg_world *w = world_new(1);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    stg_world_publish(w, 0, 3);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    stg_world_check_ends(w);
    CHECK_U64(world_look(w, 0).delivered, 3);
    CHECK_U64(world_look(w, 1).delivered, 3);
    CHECK_U64(stg_world_sum(w).dead, 0);
    world_free(w);
}

/* Lanes whose attempts end together, many in each turn of the shell; with one at a
 * time they start in the order in which the others have ended. One lane parks: of
 * several the groups of the store would differ. */
static stg_world *trace_asked(uint32_t events, uint32_t ends)
{
    stg_world *w = world_new(3);

    stg_world_set_turn(w, events, ends, 0);
    for (uint32_t l = 0; l < 40; l++) {
        stg_lane_options *o = world_lane(w, STEADY);

        o->in_flight_max = 1;
        o->order = (stg_order)(l % 3);
        world_script(w, l, l == 7 ? "503 503 200 timeout 200" : "200");
    }
    stg_world_publish(w, 0, 12);
    stg_world_start(w);
    stg_world_run(w, STG_NEVER);
    return w;
}

TEST(flow, decides_the_same_however_often_it_is_asked)
{
    static const uint32_t often[][2] = {
        {16, 16}, {156, 156}, {156, STG_ENDS_MAX}, {156, 1}};
    stg_world *w = trace_asked(1, 1);

    for (size_t i = 0; i < sizeof often / sizeof *often; i++) {
        stg_world *other = trace_asked(often[i][0], often[i][1]);

        CHECK_TRACE(world_trace(other), world_trace(w));
        world_end(other);
    }
    world_end(w);
}

TEST(flow, parks_what_is_to_be_tried_again)
{
    stg_world *w = world_begin(2, STEADY, "503 503 200", 1);

    stg_world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "   1020 ms  0:1 #2 503  wait 1000 ms (backoff)\n"
                "   2030 ms  0:1 #3 200  done\n");
    world_end(w);
}
