#include "http/trace.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness.h"

#define ID "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"
#define GOOD "00-" ID "-" PARENT "-01"

static stg_span span(const char *text)
{
    return (stg_span){text, strlen(text)};
}

/* "ID sampled", "ID" or "none". */
static const char *parsed(const char *value)
{
    static char text[64];
    char id[STG_TRACE_TEXT_MAX];
    stg_trace t;
    bool is_good = stg_trace_parse(&t, span(value));

    CHECK(is_good == stg_trace_is_there(&t));
    if (!is_good)
        return "none";
    (void)snprintf(text, sizeof text, "%s%s", stg_trace_print(&t, id),
                   t.is_sampled ? " sampled" : "");
    return text;
}

TEST(trace, is_read_from_a_traceparent)
{
    CHECK_STR(parsed(GOOD), ID " sampled");
    CHECK_STR(parsed("00-" ID "-" PARENT "-00"), ID);
    CHECK_STR(parsed("00-" ID "-" PARENT "-ff"), ID " sampled");
    CHECK_STR(parsed("00-" ID "-" PARENT "-fe"), ID);
}

TEST(trace, is_none_where_the_traceparent_is_malformed)
{
    static const char *const bad[] = {
        "",
        "00",
        ID,
        GOOD "-00", /* version 00 has no more */
        GOOD " ",
        "00-" ID "-" PARENT "-0", /* too short */
        "ff-" ID "-" PARENT "-01",
        "0x-" ID "-" PARENT "-01",
        "00-" ID "-" PARENT "-0g",
        "00_" ID "-" PARENT "-01",
        "00-" ID "_" PARENT "-01",
        "00-" ID "-" PARENT "_01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" ID "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
        "00-" ID "-B7AD6B7169203331-01",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (strcmp(parsed(bad[i]), "none") != 0)
            harness_fail(__FILE__, __LINE__, "%s is read as %s", bad[i],
                         parsed(bad[i]));
}

TEST(trace, that_begins_is_sampled_by_its_share)
{
    stg_trace t, begun = stg_trace_begin(7, 42);
    char text[STG_TRACE_LINE_MAX];

    CHECK(stg_trace_put(text, span(""), STG_TRACE_BEGIN, 7, 42, 9, begun.low,
                        &t) > text);
    CHECK(t.is_sampled && t.span == 9 && t.parent == 0);
    CHECK(stg_trace_put(text, span(""), STG_TRACE_BEGIN, 7, 42, 9,
                        begun.low - 1, &t) > text);
    CHECK(!t.is_sampled);
    CHECK(memcmp(text + 13 + 53, "00", 2) == 0);
}

TEST(trace, that_goes_on_is_what_it_was)
{
    char text[2 * STG_TRACE_LINE_MAX];
    stg_trace t;

    CHECK(stg_trace_put(text, span("traceparent: 00-" ID "-" PARENT "-01\r\n"),
                        STG_TRACE_PASS, 7, 42, 0, 0, &t) > text);
    CHECK(t.is_sampled && t.span == 1);
    CHECK(t.parent != 0 && t.parent != t.span);
}

TEST(trace, is_read_from_a_later_version_as_far_as_it_is_known)
{
    CHECK_STR(parsed("01-" ID "-" PARENT "-01"), ID " sampled");
    CHECK_STR(parsed("cc-" ID "-" PARENT "-01-what-is-new"), ID " sampled");
    CHECK_STR(parsed("cc-" ID "-" PARENT "-01.what-is-new"), "none");
}

/* -- header lines ---------------------------------------------------------- */

enum { EPOCH = 7, POSITION = 42 };

static const char *put(const char *headers, stg_trace_mode mode,
                       uint64_t parent)
{
    static char text[1024];
    stg_trace t;
    char *end = stg_trace_put(text, span(headers), mode, EPOCH, POSITION,
                              parent, UINT64_MAX, &t);

    CHECK((size_t)(end - text) <= strlen(headers) + STG_TRACE_LINE_MAX);
    *end = '\0';
    CHECK(stg_trace_is_there(&t) == (strstr(text, "traceparent: 00-") != NULL));
    return text;
}

static const char *begun(void)
{
    static char line[STG_TRACE_LINE_MAX + 1];
    char id[STG_TRACE_TEXT_MAX];
    stg_trace t = stg_trace_begin(EPOCH, POSITION);

    (void)snprintf(line, sizeof line, "traceparent: 00-%s-%016x-01\r\n",
                   stg_trace_print(&t, id), 9);
    return line;
}

TEST(trace, goes_on_with_a_parent_of_the_attempts_own)
{
    CHECK_STR(put("X-A: 1\r\ntraceparent: " GOOD "\r\ntracestate: a=1,b=2\r\n"
                  "X-B: 2\r\n",
                  STG_TRACE_PASS, 0x1122334455667788),
              "X-A: 1\r\ntracestate: a=1,b=2\r\nX-B: 2\r\n"
              "traceparent: 00-" ID "-1122334455667788-01\r\n");
    CHECK_STR(
        put("TraceParent: 00-" ID "-" PARENT "-00\r\n", STG_TRACE_BEGIN, 9),
        "traceparent: 00-" ID "-0000000000000009-00\r\n");
}

TEST(trace, never_has_a_parent_of_zeros)
{
    CHECK_STR(put("traceparent: " GOOD "\r\n", STG_TRACE_PASS, 0),
              "traceparent: 00-" ID "-0000000000000001-01\r\n");
}

TEST(trace, is_dropped_with_both_headers_where_it_is_off)
{
    CHECK_STR(put("X-A: 1\r\ntraceparent: " GOOD "\r\ntracestate: a=1\r\n"
                  "X-B: 2\r\n",
                  STG_TRACE_OFF, 9),
              "X-A: 1\r\nX-B: 2\r\n");
    CHECK_STR(put("", STG_TRACE_OFF, 9), "");
}

TEST(trace, begins_where_there_is_none)
{
    char expected[256];

    CHECK_STR(put("", STG_TRACE_BEGIN, 9), begun());
    (void)snprintf(expected, sizeof expected, "X-Trace: t\r\n%s", begun());
    CHECK_STR(put("X-Trace: t\r\n", STG_TRACE_BEGIN, 9), expected);
    CHECK_STR(put("X-Trace: t\r\n", STG_TRACE_PASS, 9), "X-Trace: t\r\n");
    CHECK_STR(put("", STG_TRACE_PASS, 9), "");
}

/* And its tracestate goes: it speaks of the trace that is no more. */
TEST(trace, begins_anew_where_it_was_malformed)
{
    static const char *const bad[] = {
        "traceparent: 00-nonsense\r\ntracestate: a=1\r\n",
        "tracestate: a=1\r\n",
        "traceparent: \r\n",
        "traceparent: " GOOD "\r\nTRACESTATE: a=1\r\nTraceparent: " GOOD "\r\n",
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STR(put(bad[i], STG_TRACE_BEGIN, 9), begun());
        CHECK_STR(put(bad[i], STG_TRACE_PASS, 9), "");
    }
}

TEST(trace, leaves_headers_alone_whose_names_are_only_alike)
{
    CHECK_STR(
        put("traceparents: 1\r\ntrace: 2\r\nT: 3\r\nt\r\n", STG_TRACE_PASS, 9),
        "traceparents: 1\r\ntrace: 2\r\nT: 3\r\nt\r\n");
}

TEST(trace, has_the_same_id_for_all_attempts_of_a_message_and_no_other)
{
    enum { SIDE = 300 };
    static stg_trace all[SIDE * 2];

    for (uint64_t i = 0; i < SIDE; i++) {
        all[2 * i] = stg_trace_begin(1, i);
        all[2 * i + 1] = stg_trace_begin(i + 2, 0);
    }
    for (size_t i = 0; i < SIDE * 2; i++)
        for (size_t j = 0; j < i; j++)
            CHECK_FROM(i,
                       all[i].high != all[j].high && all[i].low != all[j].low);
    CHECK(stg_trace_begin(5, 6).low == stg_trace_begin(5, 6).low);
}

TEST(trace, has_an_id_even_of_a_message_of_zeros)
{
    stg_trace t = stg_trace_begin(0, 0);

    CHECK(stg_trace_is_there(&t));
}
