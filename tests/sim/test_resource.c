#include "sim/resource.h"

#include <math.h>

#include "tests/harness.h"
#include "tests/sim/memory.h"

TEST(resource, reads_what_it_prints)
{
    static const char *const texts[] = {
        "optimistic",
        "optimistic fault=409",
        "lock hold=10ms",
        "lock hold=normal:10ms:2ms fault=deadlock",
        "rate=100/1s",
        "rate=1/365d retry-after=yes",
        "rate=7/250ms retry-after=yes fault=503",
        "workers=8 service=exponential:50ms queue=100",
        "workers=1 service=10ms queue=unlimited",
        "workers=1000000 service=uniform:1ms:2ms queue=0 fault=reset",
        "round=40ms",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[STG_RESOURCE_TEXT_MAX];
        stg_resource r;
        stg_error err;

        if (stg_resource_parse(&r, texts[i], &err) != STG_OK)
            harness_fail(__FILE__, __LINE__, "%s", err.text);
        CHECK_STR(stg_resource_print(&r, text), texts[i]);
    }
}

TEST(resource, says_what_is_wrong_and_changes_nothing)
{
    static const char *const texts[][2] = {
        {"", "optimistic, lock"},
        {"mutex", "optimistic, lock"},
        {"lock  hold=1ms", "a setting of this resource"},
        {"lock hold=1", "a time"},
        {"lock queue=3", "a setting of this resource"},
        {"rate=", "1 to 1000000"},
        {"rate=0/1s", "1 to 1000000"},
        {"rate=1000001/1s", "1 to 1000000"},
        {"rate=5/0", "1 to 1000000"},
        {"rate=5/1s retry-after=perhaps", "yes or no"},
        {"workers=0", "workers=1 to 1000000"},
        {"workers=3 queue=1000001", "0 to 1000000"},
        {"workers=3 service=normal:1ms", "a time"},
        {"workers=3 hold=1ms", "a setting of this resource"},
        {"round=0", "a time"},
        {"round=366d", "a time"},
        {"optimistic fault=299", "300 to 599"},
        {"optimistic fault=cancelled", "300 to 599"},
        {"optimistic fault=ok", "300 to 599"},
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stg_resource r = {.count = 77};
        stg_error err;

        CHECK_INT(stg_resource_parse(&r, texts[i][0], &err), STG_INVALID);
        if (strstr(err.text, texts[i][1]) == NULL)
            harness_fail(__FILE__, __LINE__, "%s: %s", texts[i][0], err.text);
        CHECK_INT(r.count, 77);
    }
}

TEST(resource, says_how_many_calls_it_can_say_yes_to)
{
    static const struct {
        const char *text;
        double capacity;
    } cases[] = {
        {"rate=50/2s", 25},      {"workers=8 service=50ms", 160},
        {"lock hold=10ms", 100}, {"round=40ms", 25},
        {"optimistic", 0},       {"workers=8 service=0s", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stg_resource r;
        stg_error err;

        CHECK_INT(stg_resource_parse(&r, cases[i].text, &err), STG_OK);
        CHECK(fabs(stg_resource_capacity(&r) - cases[i].capacity) < 1e-9);
    }
}

TEST(resource, of_a_rate_says_when_its_window_ends)
{
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    stg_resource r;
    stg_server s;
    stg_resource_answer a;

    CHECK_INT(stg_resource_parse(&r, "rate=1/1s retry-after=yes", NULL),
              STG_OK);
    CHECK(stg_server_init(&s, &r, &memory));
    stg_server_clear(&s, stg_rng_seed(1));
    CHECK(stg_server_call(&s, 2300 * STG_MS, 0).is_success);
    a = stg_server_call(&s, 2300 * STG_MS, 0);
    CHECK(!a.is_success);
    CHECK_U64(a.outcome->delay, 700 * STG_MS);
    CHECK_U64(a.at, 2300 * STG_MS);
    CHECK(stg_server_call(&s, 3 * STG_S, 0).is_success);
    stg_server_close(&s);
    CHECK_INT(counts.held, 0);
}

TEST(resource, of_a_version_refuses_what_read_an_older_one)
{
    test_memory counts;
    stg_memory memory = test_memory_of(&counts);
    stg_resource r = stg_resource_default();
    stg_server s;

    CHECK(stg_server_init(&s, &r, &memory));
    stg_server_clear(&s, stg_rng_seed(1));
    CHECK(stg_server_call(&s, 30, 10).is_success);
    CHECK(!stg_server_call(&s, 35, 29).is_success);
    CHECK(stg_server_call(&s, 40, 30).is_success); // in that very instant
    CHECK(!stg_server_call(&s, 50, 30).is_success);
    stg_server_close(&s);
}

TEST(resource, needs_memory_for_its_workers_and_says_so)
{
    stg_resource r;

    CHECK_INT(stg_resource_parse(&r, "workers=5 queue=10", NULL), STG_OK);
    for (size_t left = 0; left < 2; left++) {
        test_memory counts;
        stg_memory memory = test_memory_of(&counts);
        stg_server s;

        counts.left = left;
        CHECK(!stg_server_init(&s, &r, &memory));
        CHECK_INT(counts.held, 0);
    }
}
