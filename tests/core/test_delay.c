/* What a server says about when to come back. */
#include <stagger/delay.h>

#include <stdio.h>
#include <time.h>

#include <stagger/rng.h>

#include "tests/harness.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

enum {
    NOVEMBER_6_1994 = 784111777, /* 08:49:37, as in the standard's examples */
};

/* The years that have four digits; with a small time_t, those it knows. */
static int64_t last_second(void)
{
    return sizeof(time_t) > 4 ? INT64_C(253402300799) : INT32_MAX;
}

/* -- counts */

TEST(delay, is_what_the_headers_ask_for)
{
    static const struct {
        const char *retry_after, *retry_after_ms;
        stg_ns delay;
    } rows[] = {
        {NULL, NULL, 0},
        {"120", NULL, 120 * STG_S},
        {"0", NULL, 0},
        {" 120\t", NULL, 120 * STG_S},
        {"007", NULL, 7 * STG_S},
        {NULL, "1500", 1500 * STG_MS},
        {NULL, "1", STG_MS},
        {NULL, " 20 ", 20 * STG_MS},
        // The finer one wins, with any number that it says.
        {"120", "1500", 1500 * STG_MS},
        {"120", "0", 0},
        {"120", "999999", 999999 * STG_MS},
        // What cannot be read is not there.
        {"120", "", 120 * STG_S},
        {"120", "soon", 120 * STG_S},
        {"120", "-5", 120 * STG_S},
        {"120", "1.5", 120 * STG_S},
        {"", NULL, 0},
        {" ", NULL, 0},
        {"-1", NULL, 0},
        {"-120", "-1", 0},
        {"+5", NULL, 0},
        {"1.5", NULL, 0},
        {"120s", NULL, 0},
        {"120, 60", NULL, 0},
        {"12 0", NULL, 0},
        {"0x10", NULL, 0},
        {"soon", NULL, 0},
        {"\x80\xff", "\xc3\xa9", 0},
        // Huge ones stop; a policy cuts them further.
        {"18446744073", NULL, UINT64_C(18446744073) * STG_S},
        {"18446744074", NULL, STG_NEVER},
        {"18446744073709551616", NULL, STG_NEVER},
        {"99999999999999999999999999", NULL, STG_NEVER},
        {NULL, "18446744073709", UINT64_C(18446744073709) * STG_MS},
        {NULL, "18446744073710", STG_NEVER},
        {NULL, "99999999999999999999999999", STG_NEVER},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        stg_delay_headers h = {.retry_after = rows[i].retry_after,
                               .retry_after_ms = rows[i].retry_after_ms};

        CHECK_U64(stg_delay_read(&h, NOVEMBER_6_1994), rows[i].delay);
        // No clock plays a part in a count.
        h.date = "Sun, 06 Nov 1994 08:49:37 GMT";
        CHECK_U64(stg_delay_read(&h, 0), rows[i].delay);
    }
    CHECK_U64(stg_delay_read(NULL, NOVEMBER_6_1994), 0);
}

/* -- dates */

TEST(delay, reads_the_three_forms_of_a_date)
{
    static const char *const forms[] = {
        "Sun, 06 Nov 1994 08:49:37 GMT",    "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",         "Sun Nov 06 08:49:37 1994",
        " \tSun, 06 Nov 1994 08:49:37 GMT",
    };

    for (size_t i = 0; i < COUNT(forms); i++) {
        int64_t date_s = 1;

        CHECK_STR(stg_delay_date(forms[i], NOVEMBER_6_1994, &date_s) ? forms[i]
                                                                     : NULL,
                  forms[i]);
        CHECK_INT(date_s, NOVEMBER_6_1994);
    }
}

TEST(delay, reads_each_month_and_weekday)
{
    static const struct {
        const char *fixdate, *rfc850;
        int64_t date_s;
    } rows[] = {
        {"Thu, 01 Jan 1970 00:00:00 GMT", "Thursday, 01-Jan-70 00:00:00 GMT",
         0},
        {"Fri, 27 Feb 1970 00:00:01 GMT", "Friday, 27-Feb-70 00:00:01 GMT",
         57 * 86400 + 1},
        {"Sat, 28 Mar 1970 00:01:00 GMT", "Saturday, 28-Mar-70 00:01:00 GMT",
         86 * 86400 + 60},
        {"Sun, 26 Apr 1970 01:00:00 GMT", "Sunday, 26-Apr-70 01:00:00 GMT",
         115 * 86400 + 3600},
        {"Mon, 25 May 1970 23:59:59 GMT", "Monday, 25-May-70 23:59:59 GMT",
         145 * 86400 - 1},
        {"Tue, 30 Jun 1970 00:00:00 GMT", "Tuesday, 30-Jun-70 00:00:00 GMT",
         180 * 86400},
        {"Wed, 01 Jul 1970 00:00:00 GMT", "Wednesday, 01-Jul-70 00:00:00 GMT",
         181 * 86400},
        {"Mon, 31 Aug 1970 00:00:00 GMT", "Monday, 31-Aug-70 00:00:00 GMT",
         242 * 86400},
        {"Wed, 30 Sep 1970 00:00:00 GMT", "Wednesday, 30-Sep-70 00:00:00 GMT",
         272 * 86400},
        {"Sat, 31 Oct 1970 00:00:00 GMT", "Saturday, 31-Oct-70 00:00:00 GMT",
         303 * 86400},
        {"Sun, 01 Nov 1970 00:00:00 GMT", "Sunday, 01-Nov-70 00:00:00 GMT",
         304 * 86400},
        {"Thu, 31 Dec 1970 23:59:59 GMT", "Thursday, 31-Dec-70 23:59:59 GMT",
         365 * 86400 - 1},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t date_s = 1;

        CHECK(stg_delay_date(rows[i].fixdate, 0, &date_s));
        CHECK_INT(date_s, rows[i].date_s);
        CHECK(stg_delay_date(rows[i].rfc850, 0, &date_s));
        CHECK_INT(date_s, rows[i].date_s);
    }
}

TEST(delay, knows_leap_years_and_the_last_of_each_month)
{
    static const struct {
        const char *date;
        int64_t date_s; /* -1: there is no such day */
    } rows[] = {
        {"Tue, 29 Feb 2000 00:00:00 GMT", 951782400},
        {"Thu, 29 Feb 2024 00:00:00 GMT", 1709164800},
        {"Fri, 01 Mar 2024 00:00:00 GMT", 1709251200},
        {"Mon, 29 Feb 2400 00:00:00 GMT", INT64_C(13574563200)},
        {"Sun, 28 Feb 2100 23:59:59 GMT", INT64_C(4107542399)},
        {"Mon, 01 Mar 2100 00:00:00 GMT", INT64_C(4107542400)},
        {"Sat, 29 Feb 2025 00:00:00 GMT", -1},
        {"Mon, 29 Feb 2100 00:00:00 GMT", -1},
        {"Thu, 29 Feb 1900 00:00:00 GMT", -1},
        {"Thu, 30 Feb 2024 00:00:00 GMT", -1},
        {"Thu, 32 Jan 2026 00:00:00 GMT", -1},
        {"Thu, 32 Mar 2026 00:00:00 GMT", -1},
        {"Thu, 31 Apr 2026 00:00:00 GMT", -1},
        {"Thu, 32 May 2026 00:00:00 GMT", -1},
        {"Thu, 32 Jul 2026 00:00:00 GMT", -1},
        {"Thu, 32 Aug 2026 00:00:00 GMT", -1},
        {"Thu, 32 Oct 2026 00:00:00 GMT", -1},
        {"Thu, 31 Jun 2026 00:00:00 GMT", -1},
        {"Thu, 31 Sep 2026 00:00:00 GMT", -1},
        {"Thu, 31 Nov 2026 00:00:00 GMT", -1},
        {"Thu, 32 Dec 2026 00:00:00 GMT", -1},
        {"Thu, 00 Jan 2026 00:00:00 GMT", -1},
        // The last second of the last year, and a leap second behind it.
        {"Fri, 31 Dec 9999 23:59:59 GMT", INT64_C(253402300799)},
        {"Fri, 31 Dec 9999 23:59:60 GMT", INT64_C(253402300800)},
        {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
        {"Sat, 31 Dec 2016 23:59:61 GMT", -1},
        {"Sat, 31 Dec 2016 23:60:00 GMT", -1},
        {"Sat, 31 Dec 2016 24:00:00 GMT", -1},
        {"Mon, 01 Jan 0001 00:00:00 GMT", INT64_C(-62135596800)},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t date_s = -1;
        bool is_date = stg_delay_date(rows[i].date, 0, &date_s);

        CHECK_FROM(i, is_date == (rows[i].date_s != -1));
        CHECK_INT(date_s, rows[i].date_s);
    }
}

TEST(delay, reads_dates_before_1970)
{
    int64_t date_s = 0;

    CHECK(stg_delay_date("Wed, 31 Dec 1969 23:59:59 GMT", 0, &date_s));
    CHECK_INT(date_s, -1);
}

TEST(delay, refuses_what_is_no_date)
{
    static const char *const texts[] = {
        "",
        " ",
        "S",
        "Sun",
        "Sun,",
        "Sun, ",
        "Xxx, 06 Nov 1994 08:49:37 GMT",
        "sun, 06 nov 1994 08:49:37 gmt",
        "Sun 06 Nov 1994 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun,  6 Nov 1994 08:49:37 GMT",
        "Sun, 006 Nov 1994 08:49:37 GMT",
        "Sun, 06 Xxx 1994 08:49:37 GMT",
        "Sun, 06 No",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT",
        "Sun, 06 Nov -994 08:49:37 GMT",
        "Sun, 06 Nov 1994  08:49:37 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08.49:37 GMT",
        "Sun, 06 Nov 1994 08:49.37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08:49:3 GMT",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06 Nov 1994 08:49:37 GMTX",
        "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37",
        "Sunday 06-Nov-94 08:49:37 GMT",
        "Sunday, 6-Nov-94 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMTX",
        "Sunday, 06-Nov 94 08:49:37 GMT",
        "Sunday, 06 Nov-94 08:49:37 GMT",
        "Sunday, 06-Xxx-94 08:49:37 GMT",
        "Sunday, 06-Nov-94-08:49:37 GMT",
        "Sunday, 31-Feb-94 08:49:37 GMT",
        "Sunsday, 06-Nov-94 08:49:37 GMT",
        "Monsday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov   6 08:49:37 1994",
        "Sun  Nov  6 08:49:37 1994",
        "Sun Xxx  6 08:49:37 1994",
        "Sun Nov  6  08:49:37 1994",
        "Sun Nov  6 08:49:37  1994",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun Nov  6 08:49:37 UTC 1994",
        "Sun Nov  x 08:49:37 1994",
        "Sun Nov -6 08:49:37 1994",
        "1994-11-06T08:49:37Z",
        "784111777",
        "\xff\xfe",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        int64_t date_s = 12345;

        CHECK_STR(stg_delay_date(texts[i], NOVEMBER_6_1994, &date_s) ? texts[i]
                                                                     : NULL,
                  NULL);
        CHECK_INT(date_s, 12345);
    }
    CHECK(!stg_delay_date(NULL, NOVEMBER_6_1994, &(int64_t){0}));
    CHECK(!stg_delay_date("Sun, 06 Nov 1994 08:49:37 GMT", 0, NULL));
}

/* Each part of each date, cut off anywhere. */
TEST(delay, refuses_a_date_that_is_cut_short)
{
    static const char *const dates[] = {
        "Wed, 26 Nov 2025 08:49:37 GMT",    "Wednesday, 26-Nov-25 08:49:37 GMT",
        "Wed Nov 26 08:49:37 2025",         "Thursday, 06-Nov-25 08:49:37 GMT",
        "Saturday, 06-Nov-25 08:49:37 GMT",
    };

    for (size_t i = 0; i < COUNT(dates); i++)
        for (size_t length = 0; length < strlen(dates[i]); length++) {
            char text[40];
            int64_t date_s;

            snprintf(text, sizeof text, "%.*s", (int)length, dates[i]);
            CHECK_STR(stg_delay_date(text, 0, &date_s) ? text : NULL, NULL);
        }
}

/* -- against the calendar of the C library */

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

typedef enum form { FIXDATE, RFC850, ASCTIME } form;

static struct tm calendar(int64_t at_s)
{
    time_t at = (time_t)at_s;
    struct tm tm;

    CHECK(gmtime_r(&at, &tm) != NULL);
    return tm;
}

static void write_date(char text[64], form f, int64_t at_s)
{
    struct tm tm = calendar(at_s);
    const char *day = days[tm.tm_wday], *month = months[tm.tm_mon];
    int year = tm.tm_year + 1900;

    if (f == FIXDATE)
        snprintf(text, 64, "%.3s, %02d %s %04d %02d:%02d:%02d GMT", day,
                 tm.tm_mday, month, year, tm.tm_hour, tm.tm_min, tm.tm_sec);
    else if (f == RFC850)
        snprintf(text, 64, "%s, %02d-%s-%02d %02d:%02d:%02d GMT", day,
                 tm.tm_mday, month, year % 100, tm.tm_hour, tm.tm_min,
                 tm.tm_sec);
    else
        snprintf(text, 64, "%.3s %s %2d %02d:%02d:%02d %04d", day, month,
                 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, year);
}

TEST(delay, agrees_with_the_calendar_of_the_c_library)
{
    for (uint64_t seed = 0; seed < seeds(10000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t last = (uint64_t)last_second();
        int64_t at_s = (int64_t)stg_rng_upto(&rng, last), date_s;
        // A two-digit year is meant to be read within 48 years of it.
        int64_t wall_s = at_s + (int64_t)stg_rng_upto(&rng, 96u * 31536000) -
                         48 * INT64_C(31536000);
        char text[64];

        for (form f = FIXDATE; f <= ASCTIME; f++) {
            date_s = -1;
            write_date(text, f, at_s);
            if (f == RFC850 && wall_s < 0)
                wall_s = 0;
            CHECK_FROM(seed, stg_delay_date(text, wall_s, &date_s));
            CHECK_FROM(seed, date_s == at_s);
        }
    }
}

/* -- rate limits */

enum { JULY_1_2013 = 1372700873 }; /* 17:47:53, the example of GitHub */

static stg_ns limit_of(const char *remaining, const char *reset, int status)
{
    stg_delay_headers h = {.rate_limit_remaining = remaining,
                           .rate_limit_reset = reset,
                           .status = status};

    return stg_delay_read(&h, JULY_1_2013);
}

TEST(delay, is_the_reset_of_a_rate_limit_that_is_used_up)
{
    CHECK_U64(limit_of("0", "1372700903", 403), 30 * STG_S); // GitHub
    CHECK_U64(limit_of("0", "30", 429), 30 * STG_S);         // RateLimit-Reset
    CHECK_U64(limit_of(" 0 ", " 30 ", 500), 30 * STG_S);
    CHECK_U64(limit_of("0", "30", 0), 30 * STG_S);
    CHECK_U64(limit_of("1", "30", 429), 0); // there is some left
    CHECK_U64(limit_of("57", "1372700903", 403), 0);
    // A number that is not told: the status says it.
    CHECK_U64(limit_of(NULL, "30", 429), 30 * STG_S);
    CHECK_U64(limit_of(NULL, "30", 403), 30 * STG_S);
    CHECK_U64(limit_of(NULL, "30", 503), 0);
    CHECK_U64(limit_of(NULL, "30", 0), 0);
    CHECK_U64(limit_of("some", "30", 429), 30 * STG_S);
    CHECK_U64(limit_of("some", "30", 500), 0);
    // No time, or one that is past.
    CHECK_U64(limit_of("0", NULL, 429), 0);
    CHECK_U64(limit_of("0", "soon", 429), 0);
    CHECK_U64(limit_of("0", "-30", 429), 0);
    CHECK_U64(limit_of("0", "1372700873", 429), 0);
    CHECK_U64(limit_of("0", "1372700872", 429), 0);
    CHECK_U64(limit_of("0", "0", 429), 0);
    // Seconds from now end where seconds since 1970 begin.
    CHECK_U64(limit_of("0", "999999999", 429), 999999999 * STG_S);
    CHECK_U64(limit_of("0", "1000000000", 429), 0);
    CHECK_U64(limit_of("0", "999999999999", 429), STG_NEVER);
    CHECK_U64(limit_of("0", "1000000000000", 429), 0);
}

TEST(delay, counts_a_reset_from_the_answers_date)
{
    stg_delay_headers h = {.rate_limit_remaining = "0",
                           .rate_limit_reset = "1372700903",
                           .date = "Mon, 01 Jul 2013 17:48:03 GMT"};

    CHECK_U64(stg_delay_read(&h, 0), 20 * STG_S);
    h.date = "Mon, 01 Jul 1963 17:48:03 GMT"; // no clock is before 1970
    CHECK_U64(stg_delay_read(&h, 0), 1372700903 * STG_S);
    h.date = "soon";
    CHECK_U64(stg_delay_read(&h, JULY_1_2013), 30 * STG_S);
    CHECK_U64(stg_delay_read(&h, -1), 1372700903 * STG_S);
}

TEST(delay, prefers_retry_after_to_a_rate_limit)
{
    stg_delay_headers h = {.retry_after = "5",
                           .rate_limit = "\"a\";r=0;t=60",
                           .rate_limit_remaining = "0",
                           .rate_limit_reset = "30"};

    CHECK_U64(stg_delay_read(&h, 0), 5 * STG_S);
    h.retry_after = "soon";
    CHECK_U64(stg_delay_read(&h, 0), 0);
    h.retry_after = NULL;
    h.retry_after_ms = "7";
    CHECK_U64(stg_delay_read(&h, 0), 7 * STG_MS);
    h.retry_after_ms = "soon";
    CHECK_U64(stg_delay_read(&h, 0), 0);
    h.retry_after_ms = NULL;
    CHECK_U64(stg_delay_read(&h, 0), 60 * STG_S); // the longest
    h.rate_limit = "\"a\";r=0;t=6";
    CHECK_U64(stg_delay_read(&h, 0), 30 * STG_S);
}

TEST(delay, reads_the_field_ratelimit_of_all_drafts)
{
    static const struct {
        const char *text;
        int status;
        uint64_t seconds;
    } rows[] = {
        {"\"default\";r=0;t=30", 429, 30},
        {"\"default\";r=50;t=30", 429, 0},
        {"default;r=0;t=30", 0, 30},
        {"\"a\" ; r=0 ; t=30 ", 0, 30},
        {"\"a\";t=30;r=0", 0, 30},
        {"\"a\";t=30", 429, 30},
        {"\"a\";t=30", 503, 0},
        {"\"a\";r=0", 429, 0},
        // Each member is a limit; the longest that is used up counts.
        {"\"burst\";r=0;t=2, \"day\";r=0;t=3600", 429, 3600},
        {"\"day\";r=0;t=3600,\"burst\";r=0;t=2", 429, 3600},
        {"\"burst\";r=0;t=2, \"day\";r=7;t=3600", 429, 2},
        {"\"day\";r=7;t=3600, \"burst\";r=0;t=2", 429, 2},
        // A string may hold anything.
        {"\"r=0;t=9, x\";r=5;t=30", 429, 0},
        {"\"x;t=9\";r=0;t=30", 429, 30},
        {"\"x;r=0;t=9", 0, 0},
        // Before: one limit.
        {"limit=100, remaining=0, reset=30", 200, 30},
        {"limit=100, remaining=50, reset=30", 429, 0},
        {"reset=30", 429, 30},
        {"reset=30", 500, 0},
        {"limit=100, remaining=0", 429, 0},
        // What cannot be read is not there.
        {"", 429, 0},
        {",;,", 429, 0},
        {"\"a\";r=0;t=soon", 429, 0},
        {"\"a\";r=0;t=-1", 429, 0},
        {"\"a\";r=0;t=1.5", 429, 0},
        {"\"a\";r=0;tt=30", 429, 0},
        {"\"a\";r=0;t=4294967295", 429, 4294967295},
        {"\"a\";r=0;t=4294967296", 429, 0},
        {"\"a\";r=x;t=30", 429, 30},
        {"\"a\";r=x;t=30", 500, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        stg_delay_headers h = {.rate_limit = rows[i].text,
                               .status = rows[i].status};

        CHECK_FROM(i, stg_delay_read(&h, 0) == rows[i].seconds * STG_S);
    }
}

TEST(delay, names_each_header_to_look_for)
{
    stg_delay_headers h = {.status = 429};
    stg_delay_header header, last = STG_DELAY_RETRY_AFTER;
    const char *name;
    size_t i;

    for (i = 0; (name = stg_delay_name(i, &header)) != NULL; i++) {
        CHECK_FROM(i, header >= last && header < STG_DELAY_HEADERS);
        stg_delay_note(&h, header, NULL);
        stg_delay_note(&h, header, name);
        last = header;
    }
    CHECK_INT(last, STG_DELAY_RESET);
    CHECK(stg_delay_name(i - 1, NULL) != NULL);
    CHECK(stg_delay_name(SIZE_MAX, &header) == NULL);
    CHECK_STR(h.retry_after, "Retry-After");
    CHECK_STR(h.retry_after_ms, "retry-after-ms");
    CHECK_STR(h.date, "Date");
    CHECK_STR(h.rate_limit, "RateLimit");
    // The first of several counts.
    CHECK_STR(h.rate_limit_remaining, "RateLimit-Remaining");
    CHECK_STR(h.rate_limit_reset, "RateLimit-Reset");
    stg_delay_note(&h, STG_DELAY_HEADERS, "x");
    stg_delay_note(NULL, STG_DELAY_DATE, "x");
    CHECK_STR(h.date, "Date");
}

TEST(delay, is_the_time_from_date_to_date)
{
    for (uint64_t seed = 0; seed < seeds(10000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        int64_t from_s =
            (int64_t)stg_rng_upto(&rng, (uint64_t)last_second() - 86400);
        int64_t delay_s = (int64_t)stg_rng_upto(&rng, 86400);
        form f = (form)stg_rng_upto(&rng, ASCTIME);
        int64_t wrong_s = stg_rng_upto(&rng, 1) ? INT64_MAX : INT64_MIN;
        char date[64], until[64];
        stg_delay_headers h = {.retry_after = until, .date = date};

        write_date(date, FIXDATE, from_s);
        write_date(until, f, from_s + delay_s);
        // Whatever our own clock says.
        CHECK_FROM(seed,
                   stg_delay_read(&h, wrong_s) == (stg_ns)delay_s * STG_S);
        // And by it where there is no date.
        h.date = NULL;
        CHECK_FROM(seed, stg_delay_read(&h, from_s) == (stg_ns)delay_s * STG_S);
        // The other way round it is past.
        write_date(until, FIXDATE, from_s + delay_s);
        h = (stg_delay_headers){.retry_after = date, .date = until};
        CHECK_FROM(seed, stg_delay_read(&h, wrong_s) == 0);
    }
}

/* -- the century of a two-digit year */

TEST(delay, reads_a_two_digit_year_near_to_now)
{
    static const struct {
        const char *date;
        int64_t wall_s;
        int year;
    } rows[] = {
        {"Wednesday, 01-Jul-26 00:00:00 GMT", 1782864000, 2026},
        {"Wednesday, 01-Jul-99 00:00:00 GMT", 1782864000, 1999},
        {"Wednesday, 01-Jul-00 00:00:00 GMT", 1782864000, 2000},
        {"Wednesday, 01-Jan-76 00:00:00 GMT", 1782864000, 2076},
        {"Wednesday, 31-Dec-77 00:00:00 GMT", 1782864000, 1977},
        {"Wednesday, 01-Jan-77 00:00:00 GMT", 1782864000, 1977},
        {"Wednesday, 01-Jul-00 00:00:00 GMT", 931000000, 2000},
        {"Wednesday, 01-Jul-49 00:00:00 GMT", 931000000, 2049},
        {"Wednesday, 31-Dec-50 00:00:00 GMT", 931000000, 1950},
        {"Wednesday, 01-Jul-99 00:00:00 GMT", 931000000, 1999},
        {"Wednesday, 01-Jul-00 00:00:00 GMT", INT64_C(4090000000), 2100},
        {"Wednesday, 01-Jul-49 00:00:00 GMT", INT64_C(4090000000), 2149},
        {"Wednesday, 31-Dec-50 00:00:00 GMT", INT64_C(4090000000), 2050},
        // A clock that says nothing is taken for 1970.
        {"Wednesday, 01-Jul-70 00:00:00 GMT", 0, 1970},
        {"Wednesday, 01-Jul-19 00:00:00 GMT", 0, 2019},
        {"Wednesday, 31-Dec-21 00:00:00 GMT", 0, 1921},
        {"Wednesday, 31-Dec-21 00:00:00 GMT", INT64_MIN, 1921},
        // No year has five digits, whatever the clock says.
        {"Wednesday, 01-Jul-00 00:00:00 GMT", INT64_MAX, 9900},
        {"Wednesday, 01-Jul-99 00:00:00 GMT", INT64_MAX, 9999},
        // The leap day is the year's that is meant.
        {"Tuesday, 29-Feb-00 00:00:00 GMT", 931000000, 2000},
        {"Tuesday, 29-Feb-00 00:00:00 GMT", INT64_C(4090000000), 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t date_s = 0;
        bool is_date = stg_delay_date(rows[i].date, rows[i].wall_s, &date_s);

        CHECK_FROM(i, is_date == (rows[i].year != 0));
        if (is_date && date_s > INT32_MIN && date_s < last_second())
            CHECK_INT(calendar(date_s).tm_year + 1900, rows[i].year);
        if (rows[i].year >= 9900)
            CHECK_INT(date_s, rows[i].year == 9900 ? INT64_C(250262265600)
                                                   : INT64_C(253386403200));
    }
}

/* RFC 9110, 5.6.7: what seems more than 50 years ahead is past. A year may be
 * one of the calendar or a mean one: a day more or less. */
TEST(delay, never_reads_a_two_digit_year_more_than_50_years_ahead)
{
    enum { DAY = 86400 };

    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t wall_s = stg_rng_upto(&rng, UINT64_C(200) * 31556952);
        struct tm tm = calendar((int64_t)wall_s);
        int64_t date_s = 0, least_s, most_s;
        char text[64];

        if (sizeof(time_t) <= 4)
            return;
        tm.tm_year += 50;
        most_s = timegm(&tm) + DAY;
        tm.tm_year -= 100;
        least_s = timegm(&tm) - DAY;
        snprintf(text, sizeof text, "Monday, %02u-%s-%02u 12:00:00 GMT",
                 (unsigned)stg_rng_upto(&rng, 27) + 1,
                 months[stg_rng_upto(&rng, 11)],
                 (unsigned)stg_rng_upto(&rng, 99));
        CHECK_FROM(seed, stg_delay_date(text, (int64_t)wall_s, &date_s));
        CHECK_FROM(seed, date_s <= most_s);
        CHECK_FROM(seed, date_s >= least_s);
    }
}

/* 50 years of 365.2425 days ahead, to the second, is not more than that. */
TEST(delay, reads_a_two_digit_year_exactly_50_years_ahead_as_that)
{
    const char *date = "Wednesday, 01-Jan-76 00:00:00 GMT";
    const int64_t year_2076_s = 3345062400, half_s = INT64_C(50) * 31556952;
    int64_t date_s = 0;

    CHECK(stg_delay_date(date, year_2076_s - half_s, &date_s));
    CHECK_INT(date_s, year_2076_s);
    CHECK(stg_delay_date(date, year_2076_s - half_s - 1, &date_s));
    CHECK_INT(date_s, 189302400); // 1976
    // Late in a century the next one is meant.
    CHECK(stg_delay_date("Saturday, 01-Jan-01 00:00:00 GMT", year_2076_s,
                         &date_s));
    CHECK_INT(date_s, INT64_C(4133980800)); // 2101
}

TEST(delay, reads_a_date_between_blanks)
{
    static const char *const dates[] = {" Sun, 06 Nov 1994 08:49:37 GMT \t",
                                        "Sunday, 06-Nov-94 08:49:37 GMT ",
                                        "Sun Nov  6 08:49:37 1994 "};
    int64_t date_s;

    for (int i = 0; i < 3; i++) {
        date_s = 0;
        CHECK_FROM(i, stg_delay_date(dates[i], 784111777, &date_s));
        CHECK_INT(date_s, 784111777);
    }
    CHECK(!stg_delay_date("Sun, 06 Nov 1994 08:49:37 GMT x", 0, &date_s));
}

/* -- which clock */

TEST(delay, prefers_the_answers_date_to_our_clock)
{
    static const char in_a_minute[] = "Sun, 06 Nov 1994 08:50:37 GMT";
    static const struct {
        const char *date;
        int64_t wall_s;
        stg_ns delay;
    } rows[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0, STG_MIN},
        {"Sun, 06 Nov 1994 08:49:37 GMT", INT64_C(9000000000), STG_MIN},
        {"Sunday, 06-Nov-94 08:49:37 GMT", NOVEMBER_6_1994, STG_MIN},
        {"Sun Nov  6 08:49:37 1994", 0, STG_MIN},
        {"Sun, 06 Nov 1994 08:50:36 GMT", 0, STG_S},
        {"Sun, 06 Nov 1994 08:50:37 GMT", 0, 0},
        {"Sun, 06 Nov 1994 08:50:38 GMT", 0, 0},
        {"Sun, 06 Nov 1994 08:49:38 GMT", NOVEMBER_6_1994, 59 * STG_S},
        // One that cannot be read is not there.
        {NULL, NOVEMBER_6_1994, STG_MIN},
        {"", NOVEMBER_6_1994, STG_MIN},
        {"784111777", NOVEMBER_6_1994, STG_MIN},
        {"Sun, 31 Feb 1994 08:49:37 GMT", NOVEMBER_6_1994 + 59, STG_S},
        {NULL, NOVEMBER_6_1994 + 60, 0},
        {NULL, NOVEMBER_6_1994 + 61, 0},
        {NULL, INT64_MAX, 0},
        // A clock before 1970 is taken for 1970.
        {NULL, 0, (NOVEMBER_6_1994 + 60) * STG_S},
        {NULL, -1, (NOVEMBER_6_1994 + 60) * STG_S},
        {NULL, INT64_MIN, (NOVEMBER_6_1994 + 60) * STG_S},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        stg_delay_headers h = {.retry_after = in_a_minute,
                               .date = rows[i].date};

        CHECK_U64(stg_delay_read(&h, rows[i].wall_s), rows[i].delay);
    }
}

/* The date itself says in which century a two-digit one is. */
TEST(delay, settles_the_century_by_the_answers_date)
{
    stg_delay_headers h = {.retry_after = "Friday, 01-Jan-10 00:01:00 GMT",
                           .date = "Fri, 01 Jan 2010 00:00:00 GMT"};

    CHECK_U64(stg_delay_read(&h, 0), STG_MIN);
    h.date = "Wed, 01 Jan 2110 00:00:00 GMT";
    CHECK_U64(stg_delay_read(&h, 0), STG_MIN);
}

TEST(delay, does_not_wrap_over_all_of_time)
{
    stg_delay_headers h = {.retry_after = "Fri, 31 Dec 9999 23:59:59 GMT"};

    CHECK_U64(stg_delay_read(&h, 0), STG_NEVER);
    CHECK_U64(stg_delay_read(&h, INT64_C(253402300799) - 5), 5 * STG_S);
    CHECK_U64(stg_delay_read(&h, INT64_MAX), 0);
    h.date = "Mon, 01 Jan 0001 00:00:00 GMT";
    CHECK_U64(stg_delay_read(&h, INT64_MAX), STG_NEVER);
}

/* It has four digits, too, and a leap day. */
TEST(delay, reads_the_year_0_right_or_not_at_all)
{
    static const struct {
        const char *date;
        int64_t date_s;
    } rows[] = {
        {"Sat, 01 Jan 0000 00:00:00 GMT", INT64_C(-62167219200)},
        {"Tue, 29 Feb 0000 00:00:00 GMT", INT64_C(-62162121600)},
        {"Wed, 01 Mar 0000 00:00:00 GMT", INT64_C(-62162035200)},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t date_s;

        if (stg_delay_date(rows[i].date, 0, &date_s))
            CHECK_INT(date_s, rows[i].date_s);
    }
}

/* By a clock at the end of time, a two-digit year does not overflow. */
TEST(delay, settles_the_century_by_any_clock)
{
    for (int year = 0; year < 100; year++) {
        char text[64];
        int64_t date_s = 0;

        snprintf(text, sizeof text, "Monday, 01-Mar-%02d 00:00:00 GMT", year);
        if (stg_delay_date(text, INT64_MAX, &date_s))
            CHECK_FROM(year, date_s > 0);
        date_s = 0;
        if (stg_delay_date(text, INT64_MIN, &date_s))
            CHECK_FROM(year, date_s > INT64_C(-2208988800) &&
                                 date_s < INT64_C(2208988800));
    }
}
