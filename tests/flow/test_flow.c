/* Flow as a whole: what happens to messages, as traces. */
#include "tests/flow/world.h"

TEST(flow, delivers_each_message_once_to_each_lane)
{
    world *w = world_new(1);

    world_lane(w, STEADY);
    world_lane(w, STEADY);
    world_publish(w, 3);
    world_start(w);
    world_run(w, STG_NEVER);
    world_check_ends(w, 1);
    CHECK_U64(world_look(w, 0).delivered, 3);
    CHECK_U64(world_look(w, 1).delivered, 3);
    CHECK_U64(world_dead_count(w), 0);
    world_free(w);
}

TEST(flow, parks_what_is_to_be_tried_again)
{
    world *w = world_begin(2, STEADY, "503 503 200", 1);

    world_run(w, STG_NEVER);
    CHECK_TRACE(world_trace(w),
                "     10 ms  0:1 #1 503  wait 1000 ms (backoff)\n"
                "   1020 ms  0:1 #2 503  wait 1000 ms (backoff)\n"
                "   2030 ms  0:1 #3 200  done\n");
    world_end(w, 2);
}
