#include "cli/sink/seen.h"

#include <stagger/rng.h>

#include "tests/harness.h"

/* Counts it once more: which attempt that is. */
static uint32_t count(sink_seen *s, uint64_t hash)
{
    return stg_sink_seen_count(s, hash)->attempts;
}

TEST(sink_seen, counts_each_delivery_by_itself)
{
    sink_seen s;

    CHECK(stg_sink_seen_init(&s));
    for (uint32_t attempt = 1; attempt <= 3; attempt++)
        for (uint64_t hash = 0; hash < 10; hash++)
            CHECK_INT(count(&s, hash), attempt);
    CHECK_U64(s.count, 10);
    stg_sink_seen_close(&s);
}

/* These differ in bits that a chain is not chosen by. */
TEST(sink_seen, tells_deliveries_of_one_chain_apart)
{
    sink_seen s;

    CHECK(stg_sink_seen_init(&s));
    for (uint32_t attempt = 1; attempt <= 2; attempt++)
        for (uint64_t i = 0; i < 1000; i++)
            CHECK_INT(count(&s, i << 20), attempt);
    stg_sink_seen_close(&s);
}

TEST(sink_seen, remembers_what_was_delivered)
{
    sink_seen s;

    CHECK(stg_sink_seen_init(&s));
    CHECK_INT(stg_sink_seen_count(&s, 7)->is_delivered, 0);
    stg_sink_seen_count(&s, 7)->is_delivered = 1;
    CHECK_INT(stg_sink_seen_count(&s, 8)->is_delivered, 0);
    CHECK_INT(stg_sink_seen_count(&s, 7)->is_delivered, 1);
    stg_sink_seen_close(&s);
}

/* However the hashes fall: the last million count on, the ones before begin
 * anew. */
TEST(sink_seen, forgets_the_oldest_and_no_other)
{
    enum { OVER = 1000 };
    stg_rng rng = stg_rng_seed(1);
    uint64_t mask = stg_rng_next(&rng);
    sink_seen s;

    CHECK(stg_sink_seen_init(&s));
    for (uint64_t i = 0; i < SINK_SEEN_MAX + OVER; i++)
        CHECK_INT(count(&s, (i * 0x9e3779b97f4a7c15) ^ mask), 1);
    for (uint64_t i = OVER; i < SINK_SEEN_MAX + OVER; i++)
        CHECK_INT(count(&s, (i * 0x9e3779b97f4a7c15) ^ mask), 2);
    CHECK_U64(s.count, SINK_SEEN_MAX + OVER);
    for (uint64_t i = 0; i < OVER; i++)
        CHECK_INT(count(&s, (i * 0x9e3779b97f4a7c15) ^ mask), 1);
    stg_sink_seen_close(&s);
}
