#include "kafka/assignment.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness.h"

typedef struct story {
    stg_kafka_troubles all;
    char text[2048];
} story;

static void tell(void *ctx, const stg_kafka_trouble *one, bool is_over)
{
    story *s = ctx;
    size_t used = strlen(s->text);

    snprintf(s->text + used, sizeof s->text - used, "%s%s%s: %u more, %s\n",
             one->text, one->topic[0] != '\0' ? " of " : "", one->topic,
             (unsigned)(one->count - one->told), is_over ? "over" : "goes on");
}

static void note(story *s, stg_ns now, int kind, const char *topic,
                 const char *text)
{
    size_t used = strlen(s->text);

    if (stg_kafka_troubles_note(&s->all, kind, topic, text, now))
        snprintf(s->text + used, sizeof s->text - used, "%s begins\n", text);
}

/* Three brokers fail every 30 s for 20 minutes: one line, one every five minutes,
 * and one at the end. */
TEST(kafka_trouble, is_told_when_it_begins_at_intervals_and_when_it_is_over)
{
    static story s;
    stg_ns now = 7 * STG_S, next;

    for (int i = 0; i < 40; i++, now += 30 * STG_S) {
        for (int broker = 0; broker < 3; broker++)
            note(&s, now, -195, NULL, "refused");
        next = stg_kafka_troubles_tick(&s.all, now, tell, &s);
        CHECK(next > now && next <= now + STG_KAFKA_CALM);
    }
    CHECK_U64(stg_kafka_troubles_tick(&s.all, now + 2 * STG_MIN, tell, &s),
              STG_NEVER);
    CHECK_STR(s.text,
              "refused begins\n"
              "refused: 32 more, goes on\n"
              "refused: 30 more, goes on\n"
              "refused: 30 more, goes on\n"
              "refused: 27 more, over\n");
}

TEST(kafka_trouble, is_one_of_a_kind_and_a_topic)
{
    static story s;

    note(&s, 0, 29, "a", "denied");
    note(&s, 0, 29, "b", "denied, too");
    note(&s, 0, 29, "a", "denied");
    note(&s, STG_MIN, 30, "a", "other");
    (void)stg_kafka_troubles_tick(&s.all, 100 * STG_S, tell, &s);
    CHECK_STR(s.text,
              "denied begins\n"
              "denied, too begins\n"
              "other begins\n"
              "denied of a: 1 more, over\n"
              "denied, too of b: 0 more, over\n");
    note(&s, 101 * STG_S, 29, "a", "again");
    CHECK(strstr(s.text, "again begins\n") != NULL);
}

/* The one that is silent for longest gives way. */
TEST(kafka_trouble, has_room_for_so_many)
{
    static story s;
    char topic[16];

    for (int i = 0; i <= STG_KAFKA_TROUBLES; i++) {
        snprintf(topic, sizeof topic, "t%d", i);
        note(&s, (stg_ns)i, 1, topic, topic);
    }
    s.text[0] = '\0';
    note(&s, STG_S, 1, "t1", "t1");
    CHECK_STR(s.text, "");
    note(&s, STG_S, 1, "t0", "t0");
    CHECK_STR(s.text, "t0 begins\n");
}
