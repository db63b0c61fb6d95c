#define _GNU_SOURCE // F_SETPIPE_SZ
#include "host/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/harness.h"

/* A log into a pipe, with a clock of its own. */
typedef struct tale {
    stg_log *log;
    stg_log_options options;
    int from;
    stg_ns now;
    char text[1 << 16];
} tale;

static stg_log_now read_clock(void *ctx)
{
    const tale *t = ctx;

    return (stg_log_now){t->now, 1772366400250 * STG_MS + t->now};
}

static void begin(tale *t)
{
    int ends[2];

    memset(t, 0, sizeof *t);
    CHECK(pipe(ends) == 0);
    CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    t->from = ends[0];
    t->options = stg_log_options_default();
    t->options.is_colour = false;
    t->options.fd = ends[1];
    t->options.clock = read_clock;
    t->options.ctx = t;
}

static void start(tale *t)
{
    begin(t);
    t->log = stg_log_new(&t->options);
    CHECK(t->log != NULL);
}

/* With level debug nothing is folded. */
static void start_unfolded(tale *t)
{
    begin(t);
    t->options.least = STG_LOG_DEBUG;
    t->log = stg_log_new(&t->options);
    CHECK(t->log != NULL);
}

/* What was written since the last call. */
static const char *told(tale *t)
{
    ssize_t size = read(t->from, t->text, sizeof t->text - 1);

    t->text[size > 0 ? size : 0] = '\0';
    return t->text;
}

static void end(tale *t)
{
    stg_log_free(t->log);
    if (t->from >= 0)
        close(t->from);
    close(t->options.fd);
}

#define HEAD "time=2026-03-01T12:00:00.250Z level="

TEST(log, writes_an_event_as_a_line_of_logfmt)
{
    tale t;

    start(&t);
    STG_LOG(t.log, STG_LOG_WARN, "attempt-failed",
            stg_field_text("target", "a"), stg_field_number("attempt", 3),
            stg_field_time("wait", 1500 * STG_MS),
            stg_field_bool("probe", true));
    CHECK_STR(told(&t), HEAD
              "warn event=attempt-failed target=a attempt=3 "
              "wait=\"1.5 s\" probe=true\n");
    stg_log_event(t.log, STG_LOG_ERROR, "ended", NULL, 0);
    CHECK_STR(told(&t), HEAD "error event=ended\n");
    end(&t);
}

TEST(log, writes_an_event_as_a_line_of_json)
{
    tale t;

    begin(&t);
    t.options.is_json = true;
    t.options.is_colour = true; // of no meaning
    t.log = stg_log_new(&t.options);
    STG_LOG(t.log, STG_LOG_INFO, "x", stg_field_text("a", "b \"c\"\n\x01\xff"),
            stg_field_number("n", UINT64_MAX),
            stg_field_time("wait", 1500 * STG_MS + 250),
            stg_field_time("never", STG_NEVER), stg_field_bool("no", false));
    CHECK_STR(told(&t),
              "{\"time\":\"2026-03-01T12:00:00.250Z\",\"level\":\"info\","
              "\"event\":\"x\",\"a\":\"b \\\"c\\\"\\n\\u0001\\ufffd\","
              "\"n\":18446744073709551615,\"wait_ms\":1500.00025,"
              "\"never_ms\":null,\"no\":false}\n");
    end(&t);
}

TEST(log, quotes_what_could_be_misread)
{
    static const char *const values[][2] = {
        {"plain/word:8080", "plain/word:8080"},
        {"", "\"\""},
        {"two words", "\"two words\""},
        {"a=b", "\"a=b\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"a\tb\r\nc", "\"a\\tb\\r\\nc\""},
        {"\x1b[31m\x7f", "\"\\u001b[31m\\u007f\""},
        {"gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""},
        {"\xc2\x9b", "\"\\u009b\""},     // a control character, too
        {"\xe2\x80\xae", "\"\\u202e\""}, // turns text round
        {"\xc3(\xed\xa0\x80", "\"\\xc3(\\xed\\xa0\\x80\""},
    };
    tale t;
    char expected[256];

    start_unfolded(&t);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        STG_LOG(t.log, STG_LOG_INFO, "x", stg_field_text("v", values[i][0]));
        snprintf(expected, sizeof expected, HEAD "info event=x v=%s\n",
                 values[i][1]);
        CHECK_STR(told(&t), expected);
    }
    end(&t);
}

TEST(log, leaves_out_texts_that_are_null)
{
    tale t;

    start(&t);
    STG_LOG(t.log, STG_LOG_INFO, "x", stg_field_text("a", NULL),
            stg_field_text("b", "c"));
    CHECK_STR(told(&t), HEAD "info event=x b=c\n");
    end(&t);
}

TEST(log, prints_nothing_below_its_level_or_without_a_log)
{
    tale t;

    start(&t);
    STG_LOG(t.log, STG_LOG_DEBUG, "x", stg_field_number("n", 1));
    STG_LOG(NULL, STG_LOG_ERROR, "x", stg_field_number("n", 1));
    STG_LOG_REPEAT(NULL, STG_LOG_ERROR, "x", 1, stg_field_number("n", 1));
    CHECK_U64(stg_log_tick(NULL), STG_NEVER);
    stg_log_free(NULL);
    CHECK_STR(told(&t), "");
    end(&t);
}

TEST(log, colours_logfmt_and_nothing_else_changes)
{
    tale t;
    char plain[512];
    size_t size = 0;

    begin(&t);
    t.options.is_colour = true;
    t.log = stg_log_new(&t.options);
    STG_LOG(t.log, STG_LOG_ERROR, "x", stg_field_text("a", "b c"));
    for (const char *c = told(&t); *c != '\0'; c++)
        if (*c == '\033')
            c = strchr(c, 'm');
        else
            plain[size++] = *c;
    plain[size] = '\0';
    CHECK(size < strlen(t.text));
    CHECK_STR(plain, HEAD "error event=x a=\"b c\"\n");
    end(&t);
}

TEST(log, bounds_values_and_lines)
{
    tale t;
    char *huge = malloc(100001);
    const char *line;

    CHECK(huge != NULL);
    memset(huge, '\x01', 100000);
    huge[100000] = '\0';
    start(&t);
    STG_LOG(t.log, STG_LOG_INFO, "x", stg_field_text("v", huge),
            stg_field_text("w", "end"));
    line = told(&t);
    CHECK(strlen(line) < 1200);
    CHECK(strstr(line, "...\" w=end\n") != NULL);
    STG_LOG(t.log, STG_LOG_INFO, "x", stg_field_text("a", huge),
            stg_field_text("b", huge), stg_field_text("c", huge),
            stg_field_text("d", huge), stg_field_text("e", "end"));
    line = told(&t);
    CHECK(strlen(line) <= STG_LOG_LINE_MAX);
    CHECK(strstr(line, "...\" cut=true\n") != NULL);
    CHECK(strstr(line, " d=") == NULL);
    free(huge);
    end(&t);
}

/* -- repeats ----------------------------------------------------------------- */

static void fail_delivery(tale *t, const char *target, const char *message)
{
    STG_LOG_REPEAT(t->log, STG_LOG_WARN, "attempt-failed", 2,
                   stg_field_text("target", target),
                   stg_field_text("cause", "refused"),
                   stg_field_text("message", message));
}

TEST(log, counts_repeats_and_tells_them_when_the_window_ends)
{
    tale t;

    start(&t);
    fail_delivery(&t, "a", "1");
    CHECK_STR(told(&t), HEAD
              "warn event=attempt-failed target=a cause=refused "
              "message=1\n");
    t.now = STG_S;
    fail_delivery(&t, "a", "2");
    fail_delivery(&t, "a", "3");
    CHECK_STR(told(&t), "");
    CHECK_U64(stg_log_tick(t.log), 9 * STG_S);
    CHECK_STR(told(&t), "");
    t.now = 10 * STG_S;
    CHECK_U64(stg_log_tick(t.log), 10 * STG_S);
    CHECK_STR(told(&t),
              "time=2026-03-01T12:00:10.250Z level=warn "
              "event=attempt-failed target=a cause=refused "
              "repeated=2 since=2026-03-01T12:00:00.250Z "
              "message=3\n");
    // In the next window it is still the same, and not printed at once.
    t.now = 12 * STG_S;
    fail_delivery(&t, "a", "4");
    CHECK_STR(told(&t), "");
    t.now = 20 * STG_S;
    CHECK_U64(stg_log_tick(t.log), 10 * STG_S);
    CHECK(strstr(told(&t),
                 "repeated=1 since=2026-03-01T12:00:10.250Z "
                 "message=4\n") != NULL);
    // A window without one ends it.
    t.now = 30 * STG_S;
    CHECK_U64(stg_log_tick(t.log), STG_NEVER);
    CHECK_STR(told(&t), "");
    fail_delivery(&t, "a", "5");
    CHECK(strstr(told(&t), "cause=refused message=5\n") != NULL);
    end(&t);
}

/* What somebody heard, a line each. */
static void hear(void *ctx, stg_log_level level, const char *event,
                 stg_span json)
{
    char *heard = ctx;

    CHECK_U64(strlen(json.at), json.size);
    sprintf(heard + strlen(heard), "%d %s %s\n", (int)level, event, json.at);
}

TEST(log, lets_one_hear_what_it_prints_as_json)
{
    char heard[4096] = "";
    tale t;

    start(&t);
    fail_delivery(&t, "a", "1");
    stg_log_listen(t.log, hear, heard);
    fail_delivery(&t, "a", "2"); // of a window that had begun
    STG_LOG(t.log, STG_LOG_DEBUG, "quiet", stg_field_number("n", 1));
    STG_LOG(t.log, STG_LOG_INFO, "x", stg_field_text("a", "b c"));
    CHECK_STR(heard,
              "1 x {\"time\":\"2026-03-01T12:00:00.250Z\","
              "\"level\":\"info\",\"event\":\"x\",\"a\":\"b c\"}\n");
    heard[0] = '\0';
    t.now = 10 * STG_S;
    (void)stg_log_tick(t.log);
    CHECK_STR(heard,
              "2 attempt-failed {\"time\":\"2026-03-01T12:00:10.250Z\","
              "\"level\":\"warn\",\"event\":\"attempt-failed\","
              "\"target\":\"a\",\"cause\":\"refused\",\"repeated\":1,"
              "\"since\":\"2026-03-01T12:00:00.250Z\",\"message\":\"2\"}\n");
    CHECK(strstr(told(&t), "target=a cause=refused repeated=1 since=") != NULL);
    stg_log_listen(t.log, NULL, NULL);
    STG_LOG(t.log, STG_LOG_INFO, "y", stg_field_text("a", "b"));
    CHECK(strstr(heard, "event\":\"y") == NULL);
    stg_log_listen(NULL, hear, heard);
    end(&t);
}

TEST(log, lets_one_hear_what_nobody_reads)
{
    char heard[512] = "";
    tale t;

    start(&t);
    stg_log_listen(t.log, hear, heard);
    close(t.from);
    t.from = -1;
    STG_LOG(t.log, STG_LOG_ERROR, "x", stg_field_number("n", 7));
    CHECK(strstr(heard, "\"n\":7}") != NULL);
    CHECK_U64(stg_log_dropped(t.log), 1);
    end(&t);
}

TEST(log, tells_others_apart)
{
    tale t;

    start(&t);
    fail_delivery(&t, "a", "1");
    CHECK(told(&t)[0] != '\0');
    fail_delivery(&t, "b", "1");
    CHECK(told(&t)[0] != '\0');
    STG_LOG_REPEAT(t.log, STG_LOG_WARN, "other", 2,
                   stg_field_text("target", "a"),
                   stg_field_text("cause", "refused"));
    CHECK(told(&t)[0] != '\0');
    fail_delivery(&t, "a", "1");
    CHECK_STR(told(&t), "");
    end(&t);
}

TEST(log, tells_repeats_without_a_tick)
{
    tale t;

    start(&t);
    fail_delivery(&t, "a", "1");
    fail_delivery(&t, "a", "2");
    told(&t);
    t.now = 11 * STG_S;
    fail_delivery(&t, "a", "3");
    CHECK(strstr(told(&t), "repeated=1 ") != NULL);
    stg_log_free(t.log);
    t.log = NULL;
    CHECK(strstr(told(&t), "repeated=1 ") != NULL);
    end(&t);
}

TEST(log, forgets_the_one_that_was_silent_for_longest)
{
    tale t;
    char name[16];
    const char *line;

    start_unfolded(&t);
    fail_delivery(&t, "oldest", "1");
    fail_delivery(&t, "oldest", "2");
    for (int i = 0; i < 255; i++) {
        snprintf(name, sizeof name, "t%d", i);
        fail_delivery(&t, name, "1");
        told(&t);
    }
    fail_delivery(&t, "one more", "1");
    line = told(&t);
    CHECK(strstr(line, "target=\"one more\"") != NULL);
    CHECK(strstr(line, "target=oldest cause=refused repeated=1 ") != NULL);
    fail_delivery(&t, "t0", "2");
    CHECK_STR(told(&t), "");
    fail_delivery(&t, "oldest", "3");
    CHECK(strstr(told(&t), "target=oldest cause=refused message=3") != NULL);
    end(&t);
}

/* -- folds ------------------------------------------------------------------- */

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

static void fail_targets(tale *t, int first, int count)
{
    char name[16];

    for (int i = first; i < first + count; i++) {
        snprintf(name, sizeof name, "t%d", i);
        fail_delivery(t, name, "1");
    }
}

/* The lines of the log with their counts are as many as there were events. */
static uint64_t sum_events(const char *text)
{
    uint64_t sum = 0;

    for (const char *at = text; *at != '\0'; at = strchr(at, '\n') + 1) {
        const char *end = strchr(at, '\n');
        const char *folded = strstr(at, " folded=");
        const char *repeated = strstr(at, " repeated=");

        if (folded != NULL && folded < end)
            sum += strtoull(folded + strlen(" folded="), NULL, 10);
        else if (repeated != NULL && repeated < end)
            sum += strtoull(repeated + strlen(" repeated="), NULL, 10);
        else
            sum++;
    }
    return sum;
}

TEST(log, folds_one_cause_over_all_targets)
{
    tale t;

    start(&t);
    fail_targets(&t, 0, 5000);
    CHECK_U64(count_lines(told(&t)), 9);
    CHECK_U64(stg_log_tick(t.log), STG_S);
    t.now = STG_S;
    (void)stg_log_tick(t.log);
    CHECK_STR(told(&t),
              "time=2026-03-01T12:00:01.250Z level=warn event=attempt-failed "
              "cause=refused folded=4991 since=2026-03-01T12:00:00.250Z "
              "targets=4991 names=\"t9, t10, t11\"\n");
    end(&t);
}

TEST(log, folds_lines_of_json)
{
    tale t;

    begin(&t);
    t.options.is_json = true;
    t.log = stg_log_new(&t.options);
    for (int i = 0; i < 12; i++)
        STG_LOG(t.log, STG_LOG_INFO, "x", stg_field_text("target", "a\"b"),
                stg_field_number("n", 1));
    CHECK_U64(count_lines(told(&t)), 9);
    stg_log_flush(t.log);
    CHECK_STR(told(&t),
              "{\"time\":\"2026-03-01T12:00:00.250Z\","
              "\"level\":\"info\",\"event\":\"x\",\"folded\":3,"
              "\"since\":\"2026-03-01T12:00:00.250Z\","
              "\"targets\":1,\"names\":\"a\\\"b\"}\n");
    end(&t);
}

/* Repeats of each target are counted first, and the lines that tell them are
 * folded with the others. */
TEST(log, counts_exactly_what_is_repeated_and_folded)
{
    uint64_t sum = 0;
    tale t;

    start(&t);
    for (int second = 0; second < 25; second++) {
        for (int round = 0; round < 10; round++)
            fail_targets(&t, 0, 300);
        (void)stg_log_tick(t.log);
        CHECK(count_lines(told(&t)) <= 10);
        sum += sum_events(t.text);
        t.now += STG_S;
    }
    stg_log_free(t.log);
    t.log = NULL;
    CHECK(count_lines(told(&t)) <= 10);
    CHECK_U64(sum + sum_events(t.text), 25 * 10 * 300);
    end(&t);
}

TEST(log, folds_neither_with_level_debug_nor_the_results_of_acts)
{
    tale t;

    start(&t);
    for (int i = 0; i < 100; i++)
        STG_LOG_ALWAYS(t.log, STG_LOG_ERROR, "store-broken",
                       stg_field_number("n", 1));
    CHECK_U64(count_lines(told(&t)), 100);
    fail_targets(&t, 0, 20);
    CHECK_U64(count_lines(told(&t)), 9);
    stg_log_set_least(t.log, STG_LOG_DEBUG);
    CHECK(strstr(told(&t), " folded=11 ") != NULL);
    fail_targets(&t, 100, 100);
    CHECK_U64(count_lines(told(&t)), 100);
    stg_log_set_least(NULL, STG_LOG_DEBUG);
    stg_log_flush(NULL);
    STG_LOG_ALWAYS(NULL, STG_LOG_ERROR, "x", stg_field_number("n", 1));
    end(&t);
}

TEST(log, lets_one_hear_what_is_folded)
{
    static char heard[1 << 15];
    tale t;

    heard[0] = '\0';
    start(&t);
    stg_log_listen(t.log, hear, heard);
    fail_targets(&t, 0, 100);
    CHECK_U64(count_lines(told(&t)), 9);
    stg_log_flush(t.log);
    CHECK_U64(count_lines(told(&t)), 1);
    CHECK_U64(count_lines(heard), 100);
    CHECK(strstr(heard, "folded") == NULL);
    end(&t);
}

/* A pipe of one page has room for one line. */
TEST(log, keeps_a_fold_until_somebody_reads)
{
    tale t;

    start(&t);
    CHECK(fcntl(t.options.fd, F_SETPIPE_SZ, 4096) >= 4096);
    fail_targets(&t, 0, 100);
    CHECK_U64(stg_log_dropped(t.log), 8);
    t.now = STG_S;
    CHECK_U64(stg_log_tick(t.log), STG_S);
    CHECK_U64(count_lines(told(&t)), 1);
    t.now = 2 * STG_S;
    CHECK_U64(stg_log_tick(t.log), STG_S);
    CHECK(strstr(told(&t), "event=log-lines-dropped lines=8\n") != NULL);
    t.now = 3 * STG_S;
    (void)stg_log_tick(t.log);
    CHECK(strstr(told(&t), " folded=91 ") != NULL);
    CHECK_U64(stg_log_dropped(t.log), 8);
    end(&t);
}

/* -- ends that do not read --------------------------------------------------- */

TEST(log, drops_and_counts_lines_while_nobody_reads)
{
    tale t;
    int lines = 0, all = 0;
    char expected[128];

    start_unfolded(&t);
    CHECK(fcntl(t.options.fd, F_SETPIPE_SZ, 4096) >= 4096);
    for (; all < 1000; all++)
        STG_LOG(t.log, STG_LOG_INFO, "x", stg_field_number("n", (uint64_t)all));
    CHECK_U64(stg_log_tick(t.log), STG_S);
    for (const char *c = told(&t); *c != '\0'; c++)
        lines += *c == '\n';
    CHECK(lines > 0 && lines < all);
    CHECK_U64(stg_log_tick(t.log), STG_NEVER);
    snprintf(expected, sizeof expected,
             HEAD "warn event=log-lines-dropped lines=%d\n", all - lines);
    CHECK_STR(told(&t), expected);
    STG_LOG(t.log, STG_LOG_INFO, "x", stg_field_number("n", 1));
    CHECK_STR(told(&t), HEAD "info event=x n=1\n");
    end(&t);
}

TEST(log, goes_on_when_the_reader_is_gone)
{
    tale t;

    start(&t);
    close(t.from);
    t.from = -1;
    STG_LOG(t.log, STG_LOG_INFO, "x", stg_field_number("n", 1));
    CHECK_U64(stg_log_tick(t.log), STG_NEVER);
    end(&t);
}
