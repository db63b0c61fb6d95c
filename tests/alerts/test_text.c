/* Digests, and what they say. */
#include "alerts/text.h"

#include <stdio.h>

#include "base/visible.h"
#include "tests/harness.h"

/* 2026-03-01T12:00:00Z */
static const uint64_t NOON = UINT64_C(1772366400) * STG_S;

static stg_alert_cause http(int status)
{
    stg_outcome o = stg_answered(status);

    return stg_alert_cause_of(&o);
}

static stg_alert_cause refused(void)
{
    stg_outcome o = stg_failed(STG_FAULT_REFUSED);

    return stg_alert_cause_of(&o);
}

/* -- a hub that is asked --------------------------------------------------- */

typedef struct hub {
    stg_alert_engine *engine;
    stg_ns now;
    uint32_t unwanted; /* a lane */
    stg_alert_target target;
} hub;

static bool wants(void *ctx, stg_alert alert, uint32_t lane)
{
    const hub *h = ctx;

    (void)alert;
    return lane != h->unwanted;
}

static void describe(void *ctx, uint32_t lane, stg_alert_target *target)
{
    static char names[4][16];
    static unsigned next;
    hub *h = ctx;
    char *name = names[next++ % 4];

    *target = h->target;
    snprintf(name, sizeof names[0], "target-%u", (unsigned)lane);
    if (target->name == NULL)
        target->name = name;
}

static hub open_hub(void)
{
    stg_alert_options o = stg_alert_options_default();

    return (hub){.engine = stg_alert_engine_new(&o),
                 .unwanted = 999999,
                 .now = STG_HOUR,
                 .target = {.has_lane = true, .state = STG_LANE_LIVE}};
}

/* What it tells now; "": nothing. */
static const char *words_of(hub *h)
{
    static char text[STG_ALERT_TEXT_MAX + STG_ALERT_SUBJECT_MAX + 2];
    char subject[STG_ALERT_SUBJECT_MAX], body[STG_ALERT_TEXT_MAX];
    stg_digest_source s = {.wants = wants,
                           .describe = describe,
                           .ctx = h,
                           .now = h->now,
                           .utc = NOON + h->now - STG_HOUR};
    stg_digest d;

    if (!stg_alert_engine_gather(h->engine, true, h->now) ||
        !stg_digest_make(&d, h->engine, &s))
        return "";
    stg_alert_engine_hear(h->engine, s.reader, wants, h);
    stg_alert_engine_settle(h->engine, h->now);
    strcpy(d.hub, "box");
    stg_alert_subject(&d, subject);
    stg_alert_text(&d, body, sizeof body);
    snprintf(text, sizeof text, "%s\n\n%s", subject, body);
    return text;
}

static void close_hub(hub *h)
{
    stg_alert_engine_free(h->engine);
}

static void raise_one(hub *h, stg_alert alert, uint32_t lane,
                      stg_alert_detail detail)
{
    stg_alert_engine_raise(h->engine, alert, lane, &detail, h->now);
}

/* -- what each alert says -------------------------------------------------- */

TEST(text, tells_of_dead_letters)
{
    hub h = open_hub();

    stg_alert_engine_dead(h.engine, 1, http(503), 30, h.now);
    h.now += 4 * STG_MIN;
    stg_alert_engine_dead(h.engine, 1, refused(), 7, h.now);
    h.target.parked = 12;
    CHECK_TRACE(words_of(&h),
                "[stagger box] target-1: 37 dead letters in 4 min\n"
                "\n"
                "target-1: 37 dead letters in 4 min\n"
                "    causes: 30 HTTP_503, 7 CONNECTION_REFUSED\n"
                "    first: 2026-03-01 12:00:00 UTC, last: 2026-03-01 12:04:00 "
                "UTC\n"
                "    the hub: delivering: what fails is parked or becomes a "
                "dead letter, the rest goes on; 12 deliveries are parked\n"
                "    more: stagger dead list --target target-1 --since "
                "2026-03-01T12:00:00Z\n");
    h.now += STG_HOUR;
    h.target.parked = 0;
    CHECK_TRACE(words_of(&h),
                "[stagger box] target-1: over: 37 dead letters in 4 min\n"
                "\n"
                "target-1: over: 37 dead letters in 4 min\n"
                "    causes: 30 HTTP_503, 7 CONNECTION_REFUSED\n"
                "    first: 2026-03-01 12:00:00 UTC, last: 2026-03-01 12:04:00 "
                "UTC\n"
                "    the hub: delivering: what fails is parked or becomes a "
                "dead letter, the rest goes on\n"
                "    more: stagger dead list --target target-1 --since "
                "2026-03-01T12:00:00Z\n");
    close_hub(&h);
}

TEST(text, tells_of_all_targets_together)
{
    hub h = open_hub();

    for (uint32_t lane = 1; lane <= 6; lane++)
        stg_alert_engine_dead(h.engine, lane, http(500), lane < 3 ? 3 : 1,
                              h.now);
    CHECK_TRACE(words_of(&h),
                "[stagger box] all targets together: 10 dead letters\n"
                "\n"
                "all targets together: 10 dead letters\n"
                "    causes: 10 HTTP_500\n"
                "    most of them: target-1 3, target-2 3, target-3 1, "
                "target-4 1, target-5 1\n"
                "    first: 2026-03-01 12:00:00 UTC, last: 2026-03-01 12:00:00 "
                "UTC\n"
                "    more: stagger dead list --since 2026-03-01T12:00:00Z\n");
    close_hub(&h);
}

TEST(text, tells_of_a_breaker)
{
    hub h = open_hub();

    h.target.state = STG_LANE_CIRCUIT_OPEN;
    h.target.waiting = 1204;
    h.target.gate_until = NOON + 90 * STG_S;
    raise_one(&h, STG_ALERT_BREAKER, 7,
              (stg_alert_detail){.has_cause = true, .cause = refused()});
    CHECK_TRACE(words_of(&h),
                "[stagger box] target-7: the breaker opened\n"
                "\n"
                "target-7: the breaker opened\n"
                "    last cause: CONNECTION_REFUSED\n"
                "    first: 2026-03-01 12:00:00 UTC, last: 2026-03-01 12:00:00 "
                "UTC\n"
                "    the hub: circuit open: 1204 messages wait in the log, and "
                "go out by themselves when a probe succeeds; the next probe is "
                "at 2026-03-01 12:01:30 UTC\n"
                "    more: stagger status\n");
    h.now += 10 * STG_MIN;
    stg_alert_engine_clear(h.engine, STG_ALERT_BREAKER, 7, h.now);
    h.now += 2 * STG_MIN;
    CHECK_TRACE(words_of(&h),
                "[stagger box] target-7: over: the breaker opened, and closed "
                "after 10 min\n"
                "\n"
                "target-7: over: the breaker opened, and closed after 10 min\n"
                "    last cause: CONNECTION_REFUSED\n"
                "    first: 2026-03-01 12:00:00 UTC, last: 2026-03-01 12:00:00 "
                "UTC\n"
                "    more: stagger status\n");
    h.target.state = STG_LANE_CIRCUIT_OPEN;
    raise_one(&h, STG_ALERT_BREAKER, 8, (stg_alert_detail){.number = 0});
    (void)words_of(&h);
    h.now += STG_MIN;
    h.target.state = STG_LANE_PAUSED;
    stg_alert_engine_clear(h.engine, STG_ALERT_BREAKER, 8, h.now);
    h.now += 2 * STG_MIN;
    CHECK_TRACE(
        words_of(&h),
        "[stagger box] target-8: over: the breaker opened, and the "
        "target is paused or has left\n"
        "\n"
        "target-8: over: the breaker opened, and the target is paused or "
        "has left\n"
        "    first: 2026-03-01 12:12:00 UTC, last: 2026-03-01 12:12:00 "
        "UTC\n"
        "    more: stagger status\n");
    close_hub(&h);
}

/* The line of what the hub does. */
static const char *deed_of(stg_alert alert, uint64_t waiting, uint64_t parked,
                           bool is_replaying)
{
    static char text[STG_ALERT_WORDS_MAX];
    stg_digest_item i = {.alert = alert,
                         .has_lane = true,
                         .state = STG_LANE_CIRCUIT_OPEN,
                         .waiting = waiting,
                         .parked = parked,
                         .is_replaying = is_replaying};

    stg_alert_deed(&i, text);
    return text;
}

/* Messages that wait go out by themselves, and dead letters do not. */
TEST(text, says_of_an_open_circuit_what_goes_out_by_itself)
{
    stg_digest_item i = {.alert = STG_ALERT_BREAKER,
                         .has_lane = true,
                         .state = STG_LANE_CIRCUIT_OPEN,
                         .gate_until = NOON};
    char text[STG_ALERT_WORDS_MAX];

    CHECK_STR(deed_of(STG_ALERT_BREAKER, 1, 0, false),
              "circuit open: 1 message waits in the log, and goes out by "
              "itself when a probe succeeds");
    CHECK_STR(deed_of(STG_ALERT_BREAKER, 0, 2, false),
              "circuit open: what is parked goes out by itself when a probe "
              "succeeds; 2 deliveries are parked");
    CHECK_STR(deed_of(STG_ALERT_DEAD, 0, 0, false),
              "circuit open: no message waits, and the next one is the probe; "
              "dead letters are sent again only by a replay");
    CHECK_STR(deed_of(STG_ALERT_DEAD, 2, 1, true),
              "circuit open: 2 messages wait in the log, and go out by "
              "themselves when a probe succeeds; 1 delivery is parked; dead "
              "letters that never reached the target are sent again then, the "
              "others only by a replay");
    stg_alert_deed(&i, text);
    CHECK_STR(text,
              "circuit open: no message waits, and the next one is the probe, "
              "after 2026-03-01 12:00:00 UTC");
}

/* The first line of what it tells. */
static const char *subject_of(hub *h)
{
    static char line[STG_ALERT_SUBJECT_MAX];
    const char *words = words_of(h);

    snprintf(line, sizeof line, "%.*s", (int)strcspn(words, "\n"), words);
    return line;
}

TEST(text, has_words_for_every_alert)
{
    hub h = open_hub();

    raise_one(&h, STG_ALERT_GONE, 1, (stg_alert_detail){.number = 0});
    CHECK_STR(subject_of(&h), "[stagger box] target-1: it answered 410 Gone");
    raise_one(&h, STG_ALERT_LAG, 1,
              (stg_alert_detail){.number = 120000, .time = 720 * STG_S});
    CHECK_STR(subject_of(&h),
              "[stagger box] target-1: 120000 messages behind, "
              "the oldest waits for 12 min");
    raise_one(&h, STG_ALERT_CERTIFICATE, 1,
              (stg_alert_detail){.time = NOON + 13 * STG_DAY});
    CHECK_STR(subject_of(&h),
              "[stagger box] target-1: its certificate is valid "
              "until 2026-03-14");
    raise_one(&h, STG_ALERT_RETENTION, 1, (stg_alert_detail){.number = 50});
    CHECK_STR(subject_of(&h),
              "[stagger box] target-1: it holds back 50 % of "
              "what the log may keep");
    raise_one(&h, STG_ALERT_STORE, STG_ALERT_LANE_OF(STG_TROUBLE_FULL),
              (stg_alert_detail){.number = 0});
    CHECK_STR(subject_of(&h),
              "[stagger box] the hub: the store takes no messages");
    raise_one(&h, STG_ALERT_STORE, STG_ALERT_LANE_OF(STG_TROUBLE_LETTERS),
              (stg_alert_detail){.text = "dead.jsonl: read-only\r\nX: y"});
    CHECK_STR(subject_of(&h),
              "[stagger box] the hub: the file of dead letters "
              "cannot be written: dead.jsonl: read-only??X: y");
    close_hub(&h);
}

TEST(text, has_a_test)
{
    char subject[STG_ALERT_SUBJECT_MAX], body[1000];
    stg_digest d;

    stg_digest_make_test(&d, NOON);
    strcpy(d.hub, "box");
    stg_alert_subject(&d, subject);
    stg_alert_text(&d, body, sizeof body);
    CHECK_STR(subject, "[stagger box] a test: nothing has happened");
    CHECK_STR(body,
              "This is a test of the alerts of the hub on box.\n"
              "Nothing has happened, and nothing is to be done.\n");
}

/* -- many ------------------------------------------------------------------ */

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

TEST(text, names_the_worst_and_counts_the_rest)
{
    hub h = open_hub();
    const char *words;

    for (uint32_t lane = 0; lane < 10000; lane++)
        stg_alert_engine_dead(h.engine, lane, http(503), 10 + lane % 1000,
                              h.now);
    words = words_of(&h);
    CHECK_INT(count_of(words, "causes: "), 20);
    CHECK(strstr(words, "[stagger box] target-") == words);
    CHECK(strstr(words, ": 1009 dead letters, and 9999 more\n") != NULL);
    CHECK(strstr(words, "target-999: 1009 dead letters\n") != NULL);
    CHECK(strstr(words, "target-9998: 1008 dead letters\n") != NULL);
    CHECK(strstr(words, "1007 dead letters") == NULL);
    CHECK(strstr(words,
                 "\nand 9980 more: 9980 dead-letters (stagger status "
                 "shows all)\n") != NULL);
    close_hub(&h);
}

TEST(text, leaves_out_whole_items_where_there_is_no_room)
{
    hub h = open_hub();
    stg_digest_source s = {.wants = wants, .describe = describe, .ctx = &h};
    char body[STG_ALERT_TEXT_MAX];
    stg_digest d;

    for (uint32_t lane = 0; lane < 30; lane++)
        stg_alert_engine_dead(h.engine, lane, http(503), 10, h.now);
    s.now = h.now;
    s.utc = NOON;
    CHECK(stg_alert_engine_gather(h.engine, true, h.now));
    CHECK(stg_digest_make(&d, h.engine, &s));
    for (size_t room = 1000; room < sizeof body; room += 37) {
        char rest[64];
        size_t shown;

        stg_alert_text(&d, body, room);
        CHECK(strlen(body) < room);
        CHECK(body[strlen(body) - 1] == '\n');
        shown = count_of(body, "more: stagger dead list");
        CHECK_INT(count_of(body, "causes: "), shown);
        snprintf(rest, sizeof rest, "\nand %zu more: ", 30 - shown);
        CHECK(strstr(body, rest) != NULL);
        CHECK(shown >= 1 && shown <= 20);
    }
    close_hub(&h);
}

TEST(text, tells_only_what_is_wanted)
{
    hub h = open_hub();

    h.unwanted = 3;
    raise_one(&h, STG_ALERT_BREAKER, 3, (stg_alert_detail){.number = 0});
    CHECK_STR(words_of(&h), "");
    raise_one(&h, STG_ALERT_BREAKER, 4, (stg_alert_detail){.number = 0});
    CHECK_STR(subject_of(&h), "[stagger box] target-4: the breaker opened");
    close_hub(&h);
}

/* -- two into one ---------------------------------------------------------- */

static stg_digest digest_of(stg_alert alert, stg_alert_phase phase,
                            const char *target, uint64_t fresh, uint64_t count)
{
    stg_digest d = {.hub = "box", .item_count = 1};

    d.items[0] = (stg_digest_item){.alert = alert,
                                   .phase = phase,
                                   .fresh = fresh,
                                   .count = count,
                                   .first_at = NOON,
                                   .last_at = NOON};
    snprintf(d.items[0].target, sizeof d.items[0].target, "%s", target);
    return d;
}

TEST(digest, says_at_once_what_two_say_of_one_thing)
{
    stg_digest older = digest_of(STG_ALERT_BREAKER, STG_ALERT_BEGAN, "a", 1, 1);
    stg_digest d = digest_of(STG_ALERT_BREAKER, STG_ALERT_ENDED, "a", 0, 1);
    stg_digest third = digest_of(STG_ALERT_BREAKER, STG_ALERT_BEGAN, "a", 2, 2);

    stg_digest_merge(&d, &older);
    CHECK_INT(d.item_count, 1);
    CHECK_INT(d.items[0].phase, STG_ALERT_WAS);
    CHECK_U64(d.items[0].fresh, 1);
    CHECK_U64(d.merged, 1);
    stg_digest_merge(&third, &d);
    CHECK_INT(third.items[0].phase, STG_ALERT_BEGAN);
    CHECK_U64(third.items[0].count, 3);
    CHECK_U64(third.items[0].fresh, 3);
    CHECK_U64(third.merged, 2);
}

TEST(digest, keeps_the_worst_of_many)
{
    stg_digest d = digest_of(STG_ALERT_DEAD, STG_ALERT_BEGAN, "z", 1, 1);
    char text[STG_ALERT_TEXT_MAX];

    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        stg_digest older;

        snprintf(name, sizeof name, "t%u", i);
        older = digest_of(STG_ALERT_DEAD, STG_ALERT_BEGAN, name, 2 + i, 2 + i);
        stg_digest_merge(&d, &older);
    }
    CHECK_INT(d.item_count, STG_DIGEST_ITEMS);
    CHECK_U64(stg_digest_total(&d), 101);
    CHECK_STR(d.items[0].target, "t99");
    CHECK_STR(d.items[19].target, "t80");
    stg_alert_text(&d, text, sizeof text);
    CHECK(strstr(text,
                 "\n101 messages in one: they could not be sent "
                 "before.\n") != NULL);
}

/* Whatever is in the store's words, or a name: lines of UTF-8. */
TEST(digest, has_no_control_bytes_and_only_characters)
{
    static const char *const bad[] = {"a\nb",     "\xff\xfe",           "\xc3",
                                      "x\x1b[2J", "\xc2\x85 next line", "\x7f"};
    static const char *const clean[] = {"a?b",   "??",          "?",
                                        "x?[2J", "? next line", "?"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hub h = open_hub();
        char text[256];

        raise_one(&h, STG_ALERT_STORE, STG_ALERT_LANE_OF(STG_TROUBLE_BROKEN),
                  (stg_alert_detail){.text = bad[i]});
        snprintf(text, sizeof text,
                 "[stagger box] the hub: the store is broken: %s", clean[i]);
        CHECK_STR(subject_of(&h), text);
        close_hub(&h);
    }
}

TEST(digest, cuts_long_words_at_the_end_of_a_character)
{
    hub h = open_hub();
    char text[1024];
    const char *words;
    size_t left;

    for (size_t i = 0; i < sizeof text - 2; i += 2)
        memcpy(text + i, "\xc3\xa4", 3);
    raise_one(&h, STG_ALERT_STORE, STG_ALERT_LANE_OF(STG_TROUBLE_BROKEN),
              (stg_alert_detail){.text = text});
    words = words_of(&h);
    left = strlen(words);
    while (left > 0) {
        size_t length = stg_utf8_length(words, left);

        CHECK(length > 0);
        words += length;
        left -= length;
    }
    close_hub(&h);
}
