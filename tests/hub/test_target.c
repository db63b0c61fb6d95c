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
