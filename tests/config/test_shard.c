#include "config/targets.h"

#include <stdio.h>
#include <string.h>

#include "config/from.h"
#include "tests/harness.h"

enum { NAMES = 2000 };

static const char *name_of(unsigned i, char text[32])
{
    snprintf(text, 32, "leaf-%u.example", i);
    return text;
}

TEST(shard, gives_each_target_to_one_of_them)
{
    char name[32];

    for (uint32_t of = 1; of <= 9; of++)
        for (unsigned i = 0; i < NAMES; i++) {
            unsigned owners = 0;

            for (uint32_t me = 1; me <= of; me++) {
                stg_shard_settings s = {STG_SHARD_TARGETS, of, me};

                owners += stg_shard_has(&s, name_of(i, name));
            }
            CHECK_FROM(i, owners == 1);
        }
}

TEST(shard, spreads_targets_evenly)
{
    char name[32];

    for (uint32_t of = 2; of <= 8; of++) {
        unsigned counts[9] = {0};

        for (unsigned i = 0; i < NAMES; i++)
            counts[stg_shard_of(name_of(i, name), of)]++;
        // Five standard deviations of a binomial are less than that.
        for (uint32_t me = 1; me <= of; me++)
            CHECK_FROM(me, counts[me] > NAMES / of * 3 / 4 &&
                               counts[me] < NAMES / of * 4 / 3);
    }
}

TEST(shard, moves_only_what_the_new_one_takes)
{
    char name[32];

    for (uint32_t of = 1; of <= 8; of++)
        for (unsigned i = 0; i < NAMES; i++) {
            uint32_t before = stg_shard_of(name_of(i, name), of);
            uint32_t after = stg_shard_of(name, of + 1);

            CHECK_FROM(i, after == before || after == of + 1);
        }
}

/* A target whose hash changes with a release would move to another group, and
 * begin anew. */
TEST(shard, is_the_same_in_every_release)
{
    CHECK(stg_shard_of("shop", 4) == 3);
    CHECK(stg_shard_of("stock", 4) == 4);
    CHECK(stg_shard_of("mail", 4) == 2);
}

TEST(shard, has_all_targets_where_partitions_are_shared)
{
    stg_shard_settings s = {STG_SHARD_PARTITIONS, 4, 2};

    CHECK(stg_shard_has(&s, "shop") && stg_shard_has(&s, "stock"));
}

TEST(shard, has_a_group_of_its_own)
{
    stg_settings *s = stg_settings_new();
    char text[STG_SHARD_GROUP_MAX];

    s->kafka.group = "hub";
    CHECK_STR(stg_shard_group(s, text), "hub");
    s->shard = (stg_shard_settings){STG_SHARD_TARGETS, 4, 2};
    CHECK_STR(stg_shard_group(s, text), "hub.2-of-4");
    stg_settings_free(s);
}

/* -- kafka://... ----------------------------------------------------------- */

TEST(from, reads_brokers_topics_and_group)
{
    stg_settings *s = stg_settings_new();

    CHECK(stg_from_read(s, "kafka://k1:1,[::1]:2,k3/a,b.c?group=g", NULL) ==
          STG_OK);
    CHECK(s->source == STG_SOURCE_KAFKA);
    CHECK(s->kafka.brokers.count == 3 && s->kafka.topics.count == 2);
    CHECK_STR(s->kafka.brokers.at[1], "[::1]:2");
    CHECK_STR(s->kafka.brokers.at[2], "k3");
    CHECK(s->kafka.brokers.at[3] == NULL && s->kafka.topics.at[2] == NULL);
    CHECK_STR(s->kafka.topics.at[1], "b.c");
    CHECK_STR(s->kafka.group, "g");
    stg_settings_free(s);
}

TEST(from, changes_nothing_by_what_is_wrong)
{
    static const char *const bad[] = {
        "",
        "file",
        "kafka:",
        "kafka://",
        "kafka://k1",
        "kafka://k1/",
        "kafka:///t",
        "kafka://k1,/t",
        "kafka://k1/t,",
        "kafka://k1:/t",
        "kafka://k1:65536/t",
        "kafka://u@k1/t",
        "kafka://k1/t/u",
        "kafka://k1/..",
        "kafka://k1/t?",
        "kafka://k1/t?group=",
        "kafka://k1/t?group=a b",
        "kafka://k1/t?group=a&x=y",
        "kafka://k1/t?start=now",
        "kafka://k1/t?start=earliest&",
        "kafka://[::1/t",
        "kafka://[]:9/t",
    };
    stg_settings *s = stg_settings_new();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stg_error err = {.line = 0};

        CHECK_FROM(i, stg_from_read(s, bad[i], &err) == STG_INVALID);
        CHECK_FROM(i, err.text[0] != '\0');
        CHECK_FROM(i, s->source == STG_SOURCE_QUEUE &&
                          s->kafka.brokers.count == 0);
    }
    stg_settings_free(s);
}

TEST(from, finds_a_password_wherever_it_is)
{
    CHECK(stg_from_has_password("postgres://u:p@h/d"));
    CHECK(stg_from_has_password("postgresql://u:p@h/d"));
    CHECK(stg_from_has_password("postgres://h/d?password=p"));
    CHECK(stg_from_has_password("postgres://h/d?a=b&password=p"));
    CHECK(!stg_from_has_password("postgres://u@h:5432/d"));
    CHECK(!stg_from_has_password("postgres://u:@h/d"));
    CHECK(!stg_from_has_password("postgres://h/d?passfile=p"));
    CHECK(!stg_from_has_password("a:b@c"));
    CHECK(!stg_from_is_postgres("postgres.db"));
}
