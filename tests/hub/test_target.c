#include "hub/target.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/targets.h"
#include "tests/harness.h"

static const char *name_of(const char *url)
{
    static char name[STG_TARGET_NAME_MAX];

    return stg_target_name(url, name, NULL) == STG_OK ? name : "none";
}

TEST(target, is_named_by_its_host_and_port)
{
    CHECK_STR(name_of("http://a.example"), "a.example-80");
    CHECK_STR(name_of("http://a.example/"), "a.example-80");
    CHECK_STR(name_of("https://A.Example"), "a.example-443");
    CHECK_STR(name_of("http://127.0.0.1:9000/"), "127.0.0.1-9000");
    CHECK_STR(name_of("http://[::1]:9000/"), "--1-9000");
    CHECK_STR(name_of("ftp://a.example/"), "none");
}

/* The lane is found again by it: these may never change. */
TEST(target, is_named_by_the_hash_of_its_path_too)
{
    CHECK_STR(name_of("http://a/in"), "a-80-0861ee96");
    CHECK_STR(name_of("http://a/in?b=c"), "a-80-c6a936ce");
    CHECK_STR(name_of("http://a/?b=c"), "a-80-9cbd6ee4");
}

TEST(target, has_a_name_of_its_own_however_long_the_host)
{
    char url[320], other[STG_TARGET_NAME_MAX];

    (void)snprintf(url, sizeof url, "http://%0200d/a", 0);
    (void)snprintf(other, sizeof other, "%s", name_of(url));
    CHECK_INT(strlen(other), STG_TARGET_NAME_MAX - 1);
    (void)snprintf(url, sizeof url, "http://%0199d/a", 0);
    CHECK_INT(strlen(name_of(url)), STG_TARGET_NAME_MAX - 1);
    CHECK(strcmp(name_of(url), other) != 0);
}

/* One that is taken out again is not found, and its name may come anew. */
TEST(target, is_found_by_its_name)
{
    stg_targets t = {.all = NULL};
    char name[STG_TARGET_NAME_MAX];

    for (uint32_t i = 0; i < 1000; i++) {
        stg_target *one;

        (void)snprintf(name, sizeof name, "t%u", i % 900);
        one = stg_targets_named(&t, name);
        CHECK_FROM(i, (one != NULL) == (i >= 900));
        if (one != NULL) {
            stg_targets_move(&t, one, false);
            stg_targets_remove(&t, one);
            CHECK_FROM(i, stg_targets_named(&t, name) == NULL);
        }
        one = stg_target_new(name, "");
        CHECK_FROM(i, stg_targets_put(&t, one, i));
        CHECK_FROM(i, stg_targets_insert(&t, one));
        CHECK_FROM(i, stg_targets_named(&t, name) == one);
    }
    CHECK_INT(t.count, 900);
    CHECK(stg_targets_named(&t, "t") == NULL);
    stg_targets_free(&t);
}

TEST(target, is_not_found_where_its_lane_could_not_begin)
{
    stg_targets t = {.all = NULL};
    stg_target *one = stg_target_new("a", "");

    CHECK(stg_targets_put(&t, one, 3));
    CHECK(stg_targets_named(&t, "a") == one && stg_targets_at(&t, 3) == one);
    stg_targets_unput(&t, one);
    CHECK(stg_targets_named(&t, "a") == NULL && stg_targets_at(&t, 3) == NULL);
    stg_target_free(one);
    stg_targets_free(&t);
}
