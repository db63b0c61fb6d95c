/* When people are told, in virtual time: facts in, digests out, as a story. */
#include "alerts/engine.h"

#include <stdio.h>
#include <stdlib.h>

#include <stagger/rng.h>

#include "tests/harness.h"

/* -- a story --------------------------------------------------------------- */

typedef struct story {
    stg_alert_engine *engine;
    stg_ns now;
    size_t size;
    char text[8192];
    char lines[64][160]; /* of the digest at hand */
    size_t line_count;
} story;

static void say(story *s, const char *text)
{
    s->size += (size_t)snprintf(s->text + s->size, sizeof s->text - s->size,
                                "%s", text);
    CHECK(s->size < sizeof s->text);
}

static stg_alert_cause http(int status)
{
    stg_outcome o = stg_answered(status);

    return stg_alert_cause_of(&o);
}

static const char *lane_name(uint32_t lane)
{
    static char name[8];

    if (lane == STG_ALERT_NO_LANE)
        return "all";
    if (!stg_alert_is_lane(lane))
        return "hub";
    snprintf(name, sizeof name, "%c", 'a' + (int)lane);
    return name;
}

static const char *causes_of(const stg_alert_causes *causes)
{
    static char text[120];
    char cause[STG_CAUSE_MAX];
    stg_alert_causes sorted = *causes;
    size_t size = 0;

    stg_alert_causes_sort(&sorted);
    text[0] = '\0';
    for (size_t i = 0; i < STG_ALERT_CAUSES_MAX && sorted.list[i].count > 0;
         i++)
        size += (size_t)snprintf(
            text + size, sizeof text - size, " %ju %s",
            (uintmax_t)sorted.list[i].count,
            stg_alert_cause_text(sorted.list[i].cause, cause) + 5);
    if (sorted.others > 0)
        snprintf(text + size, sizeof text - size, " %ju others",
                 (uintmax_t)sorted.others);
    return text;
}

static void note(void *ctx, const stg_alert_news *n)
{
    static const char *const phases[] = {"began", "more", "still", "was",
                                         "ended"};
    story *s = ctx;
    char *line = s->lines[s->line_count++];

    CHECK(s->line_count <= 64);
    snprintf(line, sizeof s->lines[0], "  %s %s %s %ju +%ju%s%s%s",
             n->name != NULL ? n->name : lane_name(n->lane),
             stg_alert_name(n->alert), phases[n->phase], (uintmax_t)n->count,
             (uintmax_t)n->fresh, causes_of(&n->causes),
             n->detail.text != NULL ? " " : "",
             n->detail.text != NULL ? n->detail.text : "");
}

/* Readers of digests. */
enum { FIRST, SECOND };

static bool wants_all(void *ctx, stg_alert alert, uint32_t lane)
{
    (void)ctx;
    (void)alert;
    (void)lane;
    return true;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void say_time(story *s)
{
    char text[40];
    unsigned long long ms = s->now / STG_MS;

    snprintf(text, sizeof text, "%llum%02llu.%01llu", ms / 60000,
             ms / 1000 % 60, ms / 100 % 10);
    say(s, text);
}

/* To the first reader alone. */
static void tell_news(stg_alert_engine *e, stg_alert_news_fn *each, void *ctx,
                      stg_ns now)
{
    stg_alert_engine_each(e, FIRST, each, ctx, now);
    stg_alert_engine_hear(e, FIRST, wants_all, NULL);
}

/* A line for each alert that the reader was told. */
static void say_lines(story *s)
{
    qsort(s->lines, s->line_count, sizeof *s->lines, compare);
    if (s->line_count > 0)
        say_time(s);
    for (size_t i = 0; i < s->line_count; i++) {
        say(s, s->lines[i]);
        say(s, "\n");
        if (i + 1 < s->line_count)
            say(s, "      ");
    }
}

static void say_digest(story *s, bool is_last)
{
    s->line_count = 0;
    if (!stg_alert_engine_gather(s->engine, is_last, s->now))
        return;
    tell_news(s->engine, note, s, s->now);
    stg_alert_engine_settle(s->engine, s->now);
    say_lines(s);
}

/* To a time, with all that comes due until then. */
static void pass(story *s, stg_ns until)
{
    size_t turns = 0;

    for (;;) {
        stg_ns at = stg_alert_engine_wake_at(s->engine);

        if (at > until)
            break;
        CHECK(at == STG_NEVER || turns++ < 200000);
        if (at > s->now)
            s->now = at;
        say_digest(s, false);
    }
    s->now = until;
}

static story tell(const stg_alert_options *o)
{
    story s = {.engine = stg_alert_engine_new(o)};

    CHECK(s.engine != NULL);
    return s;
}

static const char *finish(story *s)
{
    stg_alert_engine_free(s->engine);
    return s->text;
}

static void dead(story *s, uint32_t lane, int status, uint64_t count)
{
    stg_alert_engine_dead(s->engine, lane, http(status), count, s->now);
}

static void opens(story *s, uint32_t lane)
{
    stg_alert_detail d = {.has_cause = false};

    stg_alert_engine_raise(s->engine, STG_ALERT_BREAKER, lane, &d, s->now);
}

static void closes(story *s, uint32_t lane)
{
    stg_alert_engine_clear(s->engine, STG_ALERT_BREAKER, lane, s->now);
}

enum { A, B, C };

static stg_alert_options options(void)
{
    return stg_alert_options_default();
}

/* Without what all targets do together. */
static stg_alert_options options_single(void)
{
    stg_alert_options o = options();

    o.threshold_all.failures = 0;
    return o;
}

/* -- dead letters ---------------------------------------------------------- */

TEST(engine, tells_at_the_threshold_and_when_it_is_over)
{
    stg_alert_options o = options_single();
    story s = tell(&o);

    for (int i = 0; i < 10; i++) {
        pass(&s, (stg_ns)i * 10 * STG_S);
        dead(&s, A, i < 7 ? 503 : 500, 1);
    }
    pass(&s, STG_HOUR);
    CHECK_TRACE(finish(&s),
                "1m35.0  a dead-letters began 10 +10 7 503 3 500\n"
                "6m05.0  a dead-letters ended 10 +0 7 503 3 500\n");
}

TEST(engine, says_nothing_below_the_threshold)
{
    stg_alert_options o = options();
    story s = tell(&o);
    stg_alert_engine_view view;

    for (int i = 0; i < 100; i++) { // nine in any five minutes and a slice
        pass(&s, (stg_ns)i * 36 * STG_S);
        dead(&s, A, 503, 1);
    }
    pass(&s, 10 * STG_HOUR);
    stg_alert_engine_look(s.engine, &view);
    CHECK_INT(view.keys, 0);
    CHECK_TRACE(finish(&s), "");
}

TEST(engine, tells_more_once_an_interval_while_it_goes_on)
{
    stg_alert_options o = options_single();
    story s = tell(&o);

    for (int i = 0; i < 40 * 60; i++) { // a second
        pass(&s, (stg_ns)i * STG_S);
        dead(&s, A, 503, 1);
    }
    pass(&s, 3 * STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m14.0  a dead-letters began 14 +14 14 503\n"
                "15m19.0  a dead-letters more 919 +905 919 503\n"
                "30m24.0  a dead-letters more 1824 +905 1824 503\n"
                "45m05.0  a dead-letters ended 2400 +576 2400 "
                "503\n");
}

TEST(engine, forgets_the_causes_of_what_has_left_the_window)
{
    stg_alert_options o = options_single();
    story s = tell(&o);

    dead(&s, A, 500, 9);
    pass(&s, 10 * STG_MIN);
    dead(&s, A, 503, 10);
    pass(&s, 11 * STG_MIN);
    CHECK_TRACE(finish(&s), "10m05.0  a dead-letters began 10 +10 10 503\n");
}

TEST(engine, tells_what_all_targets_do_together)
{
    stg_alert_options o = options();
    story s = tell(&o);

    dead(&s, A, 503, 4);
    dead(&s, B, 500, 3);
    pass(&s, STG_MIN);
    dead(&s, C, 503, 3);
    pass(&s, 2 * STG_MIN);
    CHECK_TRACE(finish(&s),
                "1m05.0  all dead-letters began 10 +10 7 503 3 "
                "500\n");
}

TEST(engine, does_not_tell_twice_of_one_bad_target)
{
    stg_alert_options o = options();
    story s = tell(&o);

    for (int i = 0; i < 10; i++)
        dead(&s, A, 503, 1);
    dead(&s, B, 500, 1);
    for (int i = 0; i < 1000; i++)
        dead(&s, A, 503, 1);
    pass(&s, 2 * STG_MIN);
    dead(&s, B, 500, 8);
    pass(&s, 3 * STG_MIN);
    CHECK_TRACE(finish(&s),
                "0m05.0  a dead-letters began 1010 +1010 1010 "
                "503\n");
}

TEST(engine, does_not_tell_twice_of_many_bad_targets)
{
    stg_alert_options o = options();
    story s = tell(&o);

    for (uint32_t i = 0; i < 300; i++) // all fire together before each does
        dead(&s, i % 3, 503, 1);
    dead(&s, 3, 500, 4);
    pass(&s, 2 * STG_MIN);
    CHECK_TRACE(finish(&s),
                "0m05.0  a dead-letters began 100 +100 100 503\n"
                "        b dead-letters began 100 +100 100 503\n"
                "        c dead-letters began 100 +100 100 503\n");
}

TEST(engine, leaves_the_others_their_causes_when_one_target_fires)
{
    stg_alert_options o = options();
    story s = tell(&o);

    dead(&s, A, 503, 9);
    dead(&s, B, 500, 3);
    dead(&s, A, 503, 2); // it fires with these, which were nobody else's
    pass(&s, STG_MIN);
    dead(&s, C, 404, 7);
    pass(&s, 2 * STG_MIN);
    CHECK_TRACE(finish(&s),
                "0m05.0  a dead-letters began 11 +11 11 503\n"
                "1m05.0  all dead-letters began 10 +10 7 404 3 500\n");
}

TEST(engine, names_the_lanes_that_share_what_is_told_for_all)
{
    stg_alert_options o = options();
    story s = tell(&o);
    stg_alert_share shares[3];

    for (uint32_t lane = 0; lane < 8; lane++)
        dead(&s, lane, 503, lane + 1);
    CHECK_INT(stg_alert_engine_shares(s.engine, shares, 3), 3);
    CHECK_INT(shares[0].lane, 7);
    CHECK_INT(shares[1].lane, 6);
    CHECK_INT(shares[2].lane, 5);
    CHECK_U64(shares[2].count, 6);
    CHECK_INT(stg_alert_engine_shares(s.engine, shares, 0), 0);
    finish(&s);
}

/* -- conditions ------------------------------------------------------------ */

TEST(engine, tells_of_a_breaker_that_opens_and_closes)
{
    stg_alert_options o = options();
    story s = tell(&o);

    pass(&s, 10 * STG_S);
    opens(&s, A);
    pass(&s, 3 * STG_MIN);
    closes(&s, A);
    pass(&s, STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m15.0  a breaker began 1 +1\n"
                "4m05.0  a breaker ended 1 +0\n");
}

TEST(engine, bears_a_breaker_that_flaps)
{
    stg_alert_options o = options();
    story s = tell(&o);

    for (int i = 0; i < 80; i++) { // for 40 minutes
        pass(&s, (stg_ns)i * 30 * STG_S);
        opens(&s, A);
        pass(&s, s.now + 15 * STG_S);
        closes(&s, A);
    }
    pass(&s, 2 * STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "15m10.0  a breaker more 31 +30\n"
                "30m15.0  a breaker more 61 +30\n"
                "40m50.0  a breaker ended 80 +19\n");
}

TEST(engine, tells_what_began_and_ended_within_an_interval)
{
    stg_alert_options o = options();
    story s = tell(&o);

    opens(&s, A);
    pass(&s, STG_MIN);
    closes(&s, A);
    pass(&s, 5 * STG_MIN);
    opens(&s, A);
    pass(&s, 6 * STG_MIN);
    closes(&s, A);
    pass(&s, 3 * STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "2m05.0  a breaker ended 1 +0\n"
                "15m10.0  a breaker was 1 +1\n");
}

TEST(engine, reminds_of_what_goes_on)
{
    stg_alert_options o = options();
    stg_alert_detail d = {.time = 1};
    story s = tell(&o);

    opens(&s, A);
    stg_alert_engine_raise(s.engine, STG_ALERT_CERTIFICATE, B, &d, s.now);
    pass(&s, 26 * STG_HOUR);
    o.repeat_interval = STG_NEVER;
    stg_alert_engine_change(s.engine, &o, s.now);
    pass(&s, 100 * STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "        b certificate began 1 +1\n"
                "240m10.0  a breaker still 1 +0\n"
                "480m15.0  a breaker still 1 +0\n"
                "720m20.0  a breaker still 1 +0\n"
                "960m25.0  a breaker still 1 +0\n"
                "1200m30.0  a breaker still 1 +0\n"
                "1440m10.0  b certificate still 1 +0\n"
                "1441m10.0  a breaker still 1 +0\n");
}

static void lags(story *s, uint64_t messages)
{
    stg_alert_detail d = {.number = messages};

    stg_alert_engine_raise(s->engine, STG_ALERT_LAG, A, &d, s->now);
}

TEST(engine, tells_again_of_a_number_that_has_doubled)
{
    stg_alert_options o = options();
    story s = tell(&o);

    for (int i = 0; i < 120; i++) {
        pass(&s, (stg_ns)i * STG_MIN);
        lags(&s, i < 50 ? 1000 : 2000);
    }
    CHECK_TRACE(finish(&s),
                "0m05.0  a lag began 1 +1\n"
                "50m05.0  a lag more 1 +0\n");
}

TEST(engine, keeps_apart_what_is_wrong_with_the_store)
{
    stg_alert_options o = options();
    stg_alert_detail full = {.text = "full"}, letters = {.text = "no file"};
    story s = tell(&o);

    stg_alert_engine_raise(s.engine, STG_ALERT_STORE,
                           STG_ALERT_LANE_OF(STG_TROUBLE_FULL), &full, s.now);
    stg_alert_engine_raise(s.engine, STG_ALERT_STORE,
                           STG_ALERT_LANE_OF(STG_TROUBLE_LETTERS), &letters,
                           s.now);
    pass(&s, STG_MIN);
    stg_alert_engine_clear(s.engine, STG_ALERT_STORE,
                           STG_ALERT_LANE_OF(STG_TROUBLE_FULL), s.now);
    pass(&s, 5 * STG_MIN);
    letters.text = "another file";
    stg_alert_engine_raise(s.engine, STG_ALERT_STORE,
                           STG_ALERT_LANE_OF(STG_TROUBLE_LETTERS), &letters,
                           s.now);
    pass(&s, 20 * STG_MIN);
    CHECK_TRACE(finish(&s),
                "0m05.0  hub store began 1 +1 full\n"
                "        hub store began 1 +1 no file\n"
                "2m05.0  hub store ended 1 +0 full\n"
                "15m10.0  hub store more 1 +0 another file\n");
}

/* -- together -------------------------------------------------------------- */

TEST(engine, tells_together_what_comes_together)
{
    stg_alert_options o = options();
    story s = tell(&o);

    opens(&s, A);
    pass(&s, 3 * STG_S);
    opens(&s, B);
    pass(&s, 10 * STG_S);
    opens(&s, C);
    pass(&s, 2 * STG_MIN);
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "        b breaker began 1 +1\n"
                "1m05.0  c breaker began 1 +1\n");
}

TEST(engine, tells_at_once_what_has_no_later)
{
    stg_alert_options o = options();
    story s = tell(&o);

    opens(&s, A);
    say_digest(&s, false);
    say_digest(&s, true);
    opens(&s, B);
    say_digest(&s, true);
    say_digest(&s, true);
    CHECK_TRACE(finish(&s),
                "0m00.0  a breaker began 1 +1\n"
                "0m00.0  b breaker began 1 +1\n");
}

/* -- targets that leave ----------------------------------------------------- */

static void leaves(story *s, uint32_t lane)
{
    stg_alert_engine_leave(s->engine, lane, s->now);
}

TEST(engine, ends_all_that_a_target_has_when_it_leaves)
{
    stg_alert_options o = options_single();
    story s = tell(&o);
    stg_alert_engine_view view;

    opens(&s, A);
    dead(&s, A, 503, 10);
    opens(&s, B);
    pass(&s, STG_MIN);
    opens(&s, C);
    for (int i = 0; i < 3; i++)
        leaves(&s, A);
    leaves(&s, C); // before anybody was told
    leaves(&s, 70000);
    stg_alert_engine_look(s.engine, &view);
    CHECK_INT(view.firing[STG_ALERT_BREAKER], 1);
    CHECK_INT(view.firing[STG_ALERT_DEAD], 0);
    pass(&s, 5 * STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "        a dead-letters began 10 +10 10 503\n"
                "        b breaker began 1 +1\n"
                "1m05.0  a dead-letters ended 10 +0 10 503\n"
                "        c breaker began 1 +1\n"
                "2m05.0  a breaker ended 1 +0\n"
                "        c breaker ended 1 +0\n"
                "240m10.0  b breaker still 1 +0\n");
}

TEST(engine, goes_on_where_a_target_comes_back_in_time)
{
    stg_alert_options o = options_single();
    story s = tell(&o);

    opens(&s, A);
    pass(&s, STG_MIN);
    leaves(&s, A);
    pass(&s, STG_MIN + 30 * STG_S);
    opens(&s, A);
    pass(&s, STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "15m10.0  a breaker more 2 +1\n");
}

TEST(engine, tells_the_end_of_a_lane_that_is_gone_by_its_name)
{
    stg_alert_options o = options();
    story s = tell(&o);

    opens(&s, A);
    pass(&s, STG_MIN);
    dead(&s, A, 503, 100); // not told yet
    opens(&s, B);
    stg_alert_engine_forget(s.engine, A, "old", s.now);
    stg_alert_engine_forget(s.engine, 70000, "none", s.now);
    opens(&s, A); // another target's, of this number
    pass(&s, 2 * STG_MIN);
    CHECK(!stg_alert_engine_has_gone(s.engine));
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "1m05.0  a breaker began 1 +1\n"
                "        b breaker began 1 +1\n"
                "        old breaker ended 1 +0\n");
}

TEST(engine, ends_nothing_of_a_new_target_of_the_same_name)
{
    stg_alert_options o = options();
    story s = tell(&o);

    opens(&s, A);
    pass(&s, STG_MIN);
    stg_alert_engine_forget(s.engine, A, "same", s.now);
    opens(&s, C); // the table has the new target's lane
    stg_alert_engine_return(s.engine, B, "other", s.now);
    CHECK(stg_alert_engine_has_gone(s.engine));
    stg_alert_engine_return(s.engine, B, "same", s.now);
    CHECK(!stg_alert_engine_has_gone(s.engine));
    opens(&s, B);
    pass(&s, STG_HOUR);
    closes(&s, B);
    pass(&s, 2 * STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "1m05.0  c breaker began 1 +1\n"
                "15m10.0  b breaker more 2 +1\n"
                "61m05.0  b breaker ended 2 +0\n");
}

TEST(engine, drops_a_lane_that_is_gone_if_nobody_asks_for_ends)
{
    stg_alert_options o = options();
    story s = tell(&o);

    o.send_resolved = false;
    stg_alert_engine_change(s.engine, &o, s.now);
    opens(&s, A);
    pass(&s, STG_MIN);
    stg_alert_engine_forget(s.engine, A, "old", s.now);
    pass(&s, 2 * STG_MIN);
    CHECK(!stg_alert_engine_has_gone(s.engine));
    CHECK_TRACE(finish(&s), "0m05.0  a breaker began 1 +1\n");
}

TEST(engine, does_not_tell_that_it_is_over_if_nobody_asks)
{
    stg_alert_options o = options();
    stg_alert_engine_view view;
    story s = tell(&o);

    o.send_resolved = false;
    stg_alert_engine_change(s.engine, &o, s.now);
    opens(&s, A);
    dead(&s, B, 503, 10);
    pass(&s, STG_MIN);
    closes(&s, A);
    pass(&s, 2 * STG_HOUR);
    stg_alert_engine_look(s.engine, &view);
    CHECK_INT(view.keys, 0);
    opens(&s, A);
    pass(&s, 3 * STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "        b dead-letters began 10 +10 10 503\n"
                "120m05.0  a breaker began 1 +1\n");
}

/* -- other options --------------------------------------------------------- */

TEST(engine, keeps_what_it_knows_when_options_change)
{
    stg_alert_options o = options_single();
    story s = tell(&o);

    dead(&s, A, 503, 10);
    dead(&s, B, 503, 9);
    pass(&s, STG_MIN);
    o.threshold.window = STG_HOUR;
    stg_alert_engine_change(s.engine, &o, s.now);
    pass(&s, 50 * STG_MIN);
    dead(&s, B, 503, 1);
    pass(&s, 2 * STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m05.0  a dead-letters began 10 +10 10 503\n"
                "50m05.0  b dead-letters began 10 +10 10 503\n"
                "63m05.0  a dead-letters ended 10 +0 10 503\n"
                "        b dead-letters ended 10 +0 10 503\n");
}

TEST(engine, judges_what_it_has_counted_by_the_new_threshold)
{
    stg_alert_options o = options();
    story s = tell(&o);

    dead(&s, A, 503, 9);
    dead(&s, B, 503, 20);
    pass(&s, STG_MIN);
    o.threshold.failures = 5;
    stg_alert_engine_change(s.engine, &o, s.now);
    pass(&s, 2 * STG_MIN);
    o.threshold.failures = 19;
    stg_alert_engine_change(s.engine, &o, s.now);
    pass(&s, 3 * STG_MIN);
    CHECK_TRACE(finish(&s),
                "0m05.0  b dead-letters began 20 +20 20 503\n"
                "1m05.0  a dead-letters began 9 +9 9 503\n"
                "2m05.0  a dead-letters ended 9 +0 9 503\n");
}

TEST(engine, counts_nothing_where_the_threshold_is_off)
{
    stg_alert_options o = options();
    story s = tell(&o);

    dead(&s, A, 503, 100);
    pass(&s, STG_MIN);
    o.threshold.failures = o.threshold_all.failures = 0;
    o.threshold.window = o.threshold_all.window = 0;
    stg_alert_engine_change(s.engine, &o, s.now);
    pass(&s, 2 * STG_MIN);
    dead(&s, A, 503, 100);
    pass(&s, STG_HOUR);
    CHECK_TRACE(finish(&s),
                "0m05.0  a dead-letters began 100 +100 100 503\n"
                "1m05.0  a dead-letters ended 100 +0 100 503\n");
}

/* -- readers ----------------------------------------------------------------- */

static bool wants_breakers(void *ctx, stg_alert alert, uint32_t lane)
{
    (void)ctx;
    (void)lane;
    return alert == STG_ALERT_BREAKER;
}

/* To the second reader, who wants breakers alone. */
static void tell_second(story *s, const char *title)
{
    bool is_any = stg_alert_engine_gather_unheard(s->engine, SECOND);

    s->line_count = 0;
    say(s, title);
    if (is_any)
        stg_alert_engine_each(s->engine, SECOND, note, s, s->now);
    stg_alert_engine_hear(s->engine, SECOND, wants_breakers, NULL);
    stg_alert_engine_release(s->engine);
    say_lines(s);
}

/* Both hear of what is due. */
static void tell_both(story *s)
{
    CHECK(stg_alert_engine_gather(s->engine, true, s->now));
    s->line_count = 0;
    say(s, "first\n");
    tell_news(s->engine, note, s, s->now);
    say_lines(s);
    s->line_count = 0;
    say(s, "second\n");
    stg_alert_engine_each(s->engine, SECOND, note, s, s->now);
    stg_alert_engine_hear(s->engine, SECOND, wants_breakers, NULL);
    say_lines(s);
    stg_alert_engine_settle(s->engine, s->now);
}

TEST(engine, tells_a_reader_that_comes_later_of_what_fires)
{
    stg_alert_options o = options_single();
    story s = tell(&o);

    opens(&s, A);
    opens(&s, B);
    dead(&s, B, 503, 10);
    pass(&s, STG_MIN);
    closes(&s, B);
    opens(&s, C); // not told yet: it is told to both when it is due
    tell_second(&s, "late\n");
    tell_second(&s, "again\n");
    pass(&s, STG_HOUR);
    closes(&s, A);
    pass(&s, STG_HOUR + STG_MIN);
    tell_both(&s);
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "        b breaker began 1 +1\n"
                "        b dead-letters began 10 +10 10 503\n"
                "late\n"
                "1m00.0  a breaker began 1 +1\n"
                "        b dead-letters began 10 +10 10 503\n"
                "again\n"
                "1m00.0  b dead-letters began 10 +10 10 503\n"
                "1m05.0  c breaker began 1 +1\n"
                "2m05.0  b breaker ended 1 +0\n"
                "5m20.0  b dead-letters ended 10 +0 10 503\n"
                "first\n"
                "61m00.0  a breaker ended 1 +0\n"
                "second\n"
                "61m00.0  a breaker ended 1 +0\n");
}

TEST(engine, tells_an_end_to_readers_alone_that_heard_the_beginning)
{
    static const stg_alert_successor swapped[STG_ALERT_READERS_MAX] = {
        [SECOND] = {.told = 1u << FIRST}};
    stg_alert_options o = options();
    story s = tell(&o);

    opens(&s, A);
    pass(&s, STG_MIN);
    // The second is where the first was, and the first is a stranger.
    stg_alert_engine_change_readers(s.engine, swapped, 2);
    tell_second(&s, "nothing\n");
    closes(&s, A);
    pass(&s, 2 * STG_MIN - 1);
    s.now = 2 * STG_MIN;
    tell_both(&s);
    CHECK_TRACE(finish(&s),
                "0m05.0  a breaker began 1 +1\n"
                "nothing\n"
                "first\n"
                "second\n"
                "2m00.0  a breaker ended 1 +0\n");
}

/* -- a storm --------------------------------------------------------------- */

static void count_news(void *ctx, const stg_alert_news *n)
{
    uint64_t *counts = ctx;

    counts[0]++;
    counts[1] += n->fresh;
}

TEST(engine, makes_a_handful_of_digests_of_a_storm)
{
    enum { TARGETS = 10000, FAILURES = 100000 };
    stg_alert_options o = options();
    stg_alert_engine *e = stg_alert_engine_new(&o);
    uint64_t digests = 0, counts[2] = {0, 0};
    stg_alert_engine_view view;
    stg_ns now = 0;

    for (uint32_t i = 0; i < FAILURES; i++) { // in five minutes
        now = (stg_ns)i * 3 * STG_MS;
        stg_alert_engine_dead(e, i % TARGETS, http(503), 1, now);
        if (stg_alert_engine_gather(e, false, now)) {
            tell_news(e, count_news, counts, now);
            stg_alert_engine_settle(e, now);
            digests++;
        }
    }
    stg_alert_engine_look(e, &view);
    CHECK_INT(view.keys, TARGETS);
    CHECK_U64(view.unkept, 0);
    CHECK(stg_alert_engine_gather(e, true, now));
    tell_news(e, count_news, counts, now);
    CHECK(digests >= 1 && digests <= 6);
    CHECK(counts[0] >= TARGETS);
    CHECK(counts[1] >= FAILURES);
    stg_alert_engine_free(e);
}

TEST(engine, counts_what_it_has_no_key_for)
{
    stg_alert_options o = options();
    stg_alert_engine *e = stg_alert_engine_new(&o);
    stg_alert_engine_view view;
    uint64_t counts[2] = {0, 0};

    o.threshold_all.failures = 1000000;
    stg_alert_engine_change(e, &o, 0);
    for (uint32_t lane = 0; lane < STG_ALERT_KEYS_MAX + 100; lane++)
        stg_alert_engine_dead(e, lane, http(503), 1, 0);
    stg_alert_engine_look(e, &view);
    CHECK_INT(view.keys, STG_ALERT_KEYS_MAX);
    CHECK_U64(view.unkept, 100);
    // All together they are counted none the less.
    o.threshold_all.failures = STG_ALERT_KEYS_MAX + 101;
    stg_alert_engine_change(e, &o, 0);
    stg_alert_engine_dead(e, 999999, http(503), 1, 0);
    CHECK(stg_alert_engine_gather(e, true, 0));
    tell_news(e, count_news, counts, 0);
    CHECK_U64(counts[0], 1);
    CHECK_U64(counts[1], STG_ALERT_KEYS_MAX + 101);
    stg_alert_engine_free(e);
}

/* -- whatever comes -------------------------------------------------------- */

enum { LANES = 3 };

/* What a lane's breaker has come to, and what was told of it. */
typedef struct record {
    bool is_on, owes_end;
    bool has_told, has_ended;
    stg_ns told_at;
    stg_ns quiet_since;  /* closed */
    stg_ns untold_since; /* STG_NEVER: nothing new */
    uint64_t openings, told;
} record;

typedef struct watch {
    uint64_t seed;
    const stg_alert_options *o;
    record lanes[LANES];
    stg_ns now;
} watch;

static void judge(void *ctx, const stg_alert_news *n)
{
    watch *w = ctx;
    record *r = &w->lanes[n->lane];
    bool is_end = n->phase == STG_ALERT_ENDED;

    if (is_end) {
        // Once, and only what was told; and not before it was calm.
        CHECK_FROM(w->seed, r->owes_end && !r->is_on);
        CHECK_FROM(w->seed, w->now >= r->quiet_since + w->o->resolve_after);
        r->owes_end = false;
    } else {
        CHECK_FROM(w->seed,
                   !r->has_told || w->now >= r->told_at + w->o->interval);
        CHECK_FROM(w->seed, (n->phase == STG_ALERT_MORE ||
                             n->phase == STG_ALERT_STILL) == r->owes_end);
        r->owes_end = n->phase != STG_ALERT_WAS;
        r->has_told = true;
        r->told_at = w->now;
    }
    r->told += n->fresh;
    CHECK_FROM(w->seed, r->told == r->openings);
    r->untold_since = STG_NEVER;
}

/* Nothing waits for longer than was said. */
static void check_silence(watch *w)
{
    stg_ns slack = w->o->group_wait + w->o->min_interval + STG_S;

    for (size_t i = 0; i < LANES; i++) {
        const record *r = &w->lanes[i];
        stg_ns may_at = r->has_told ? r->told_at + w->o->interval : 0;

        if (r->untold_since != STG_NEVER)
            CHECK_FROM(w->seed,
                       w->now <= stg_ns_max(may_at, r->untold_since) + slack);
        if (r->owes_end && !r->is_on)
            CHECK_FROM(w->seed,
                       w->now <= r->quiet_since + w->o->resolve_after + slack);
        if (r->is_on && r->untold_since == STG_NEVER)
            CHECK_FROM(w->seed,
                       w->now <= r->told_at + w->o->repeat_interval + slack);
    }
}

static void turn(watch *w, stg_alert_engine *e)
{
    if (stg_alert_engine_gather(e, false, w->now)) {
        tell_news(e, judge, w, w->now);
        stg_alert_engine_settle(e, w->now);
    }
    check_silence(w);
}

static void switch_one(watch *w, stg_alert_engine *e, uint32_t lane)
{
    static const stg_alert_detail none = {.number = 0};
    record *r = &w->lanes[lane];

    r->is_on = !r->is_on;
    if (r->is_on) {
        r->openings++;
        r->untold_since = stg_ns_min(r->untold_since, w->now);
        stg_alert_engine_raise(e, STG_ALERT_BREAKER, lane, &none, w->now);
    } else {
        r->quiet_since = w->now;
        stg_alert_engine_clear(e, STG_ALERT_BREAKER, lane, w->now);
    }
}

static void wait_until(watch *w, stg_alert_engine *e, stg_ns until)
{
    stg_ns at;

    while ((at = stg_alert_engine_wake_at(e)) <= until) {
        w->now = stg_ns_max(w->now, at);
        turn(w, e);
    }
    w->now = until;
    turn(w, e);
}

static stg_ns some(stg_rng *rng, stg_ns least, stg_ns most)
{
    return least + stg_rng_upto(rng, most - least);
}

/* At most one an interval and key, never silent for longer than stated, and
 * that it is over exactly once. */
TEST(engine, keeps_its_promises_whatever_comes)
{
    for (uint64_t seed = 0; seed < seeds(1000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_alert_options o = options();
        watch w = {.seed = seed, .o = &o};
        stg_alert_engine *e;
        stg_ns pace = some(&rng, STG_S, 10 * STG_MIN);

        o.interval = some(&rng, STG_MIN, 20 * STG_MIN);
        o.repeat_interval = some(&rng, o.interval, STG_HOUR);
        o.group_wait = some(&rng, 0, 10 * STG_S);
        o.min_interval = some(&rng, 0, STG_MIN);
        o.resolve_after = some(&rng, 0, 5 * STG_MIN);
        CHECK_FROM(seed, stg_alert_options_check(&o, NULL) == STG_OK);
        for (size_t i = 0; i < LANES; i++)
            w.lanes[i].untold_since = STG_NEVER;
        e = stg_alert_engine_new(&o);
        for (int i = 0; i < 100; i++) {
            wait_until(&w, e, w.now + stg_rng_upto(&rng, pace));
            switch_one(&w, e, (uint32_t)stg_rng_upto(&rng, LANES - 1));
        }
        for (uint32_t i = 0; i < LANES; i++)
            if (w.lanes[i].is_on)
                switch_one(&w, e, i);
        wait_until(&w, e, w.now + 2 * STG_HOUR);
        for (size_t i = 0; i < LANES; i++) {
            CHECK_FROM(seed, !w.lanes[i].owes_end);
            CHECK_FROM(seed, w.lanes[i].told == w.lanes[i].openings);
        }
        CHECK_FROM(seed, stg_alert_engine_wake_at(e) == STG_NEVER);
        stg_alert_engine_free(e);
    }
}

/* The counts of dead letters that are told add up to what came. */
TEST(engine, loses_no_dead_letter_of_a_key_that_fires)
{
    for (uint64_t seed = 0; seed < seeds(300); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_alert_options o = options_single();
        stg_alert_engine *e = stg_alert_engine_new(&o);
        uint64_t counts[2] = {0, 0}, came = 0, more;
        stg_ns now = some(&rng, 0, STG_DAY);

        for (int i = 0; i < 200; i++) { // it never stops firing
            more = some(&rng, 10, 100);
            stg_alert_engine_dead(e, A, http(500 + i % 9), more, now);
            came += more;
            now += stg_rng_upto(&rng, 4 * STG_MIN);
            if (stg_alert_engine_gather(e, false, now)) {
                tell_news(e, count_news, counts, now);
                stg_alert_engine_settle(e, now);
            }
        }
        while (stg_alert_engine_wake_at(e) != STG_NEVER) {
            now = stg_alert_engine_wake_at(e);
            if (stg_alert_engine_gather(e, false, now)) {
                tell_news(e, count_news, counts, now);
                stg_alert_engine_settle(e, now);
            }
        }
        CHECK_FROM(seed, counts[1] == came);
        stg_alert_engine_free(e);
    }
}
