#include <stagger/delay.h>

#include <string.h>

#include "core/reader.h"

typedef struct moment {
    int64_t year, month, day; /* month and day from 1 */
    int64_t hour, minute, second;
} moment;

/* Reads exactly `digits` digits and moves on. */
static bool take_number(const char **at, int digits, int64_t *number)
{
    *number = 0;
    for (; digits > 0; digits--, (*at)++) {
        if (!stg_is_digit(**at))
            return false;
        *number = 10 * *number + (**at - '0');
    }
    return true;
}

/* Nothing but blanks is left. */
static bool is_at_end(const char *at)
{
    while (stg_is_blank(*at))
        at++;
    return *at == '\0';
}

static bool take_text(const char **at, const char *text)
{
    size_t length = strlen(text);

    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* One of seven or twelve three-letter names; number counts from 0. */
static bool take_name(const char **at, const char *names, int64_t *number)
{
    *number = 0;
    for (; *names != '\0'; names += 3, (*number)++) {
        if (strncmp(*at, names, 3) == 0) {
            *at += 3;
            return true;
        }
    }
    return false;
}

static bool take_month(const char **at, int64_t *month)
{
    bool ok = take_name(at, "JanFebMarAprMayJunJulAugSepOctNovDec", month);

    ++*month;
    return ok;
}

static bool take_time(const char **at, moment *m)
{
    return take_number(at, 2, &m->hour) && take_text(at, ":") &&
           take_number(at, 2, &m->minute) && take_text(at, ":") &&
           take_number(at, 2, &m->second);
}

/* Sun, 06 Nov 1994 08:49:37 GMT, behind the day's name */
static bool take_imf(const char *at, moment *m)
{
    return take_text(&at, ", ") && take_number(&at, 2, &m->day) &&
           take_text(&at, " ") && take_month(&at, &m->month) &&
           take_text(&at, " ") && take_number(&at, 4, &m->year) &&
           take_text(&at, " ") && take_time(&at, m) && take_text(&at, " GMT") &&
           is_at_end(at);
}

/* Sunday, 06-Nov-94 08:49:37 GMT, behind "Sun"; the year is left as it is */
static bool take_rfc850(const char *at, int64_t weekday, moment *m)
{
    static const char *const ends[] = {"day",   "day", "sday", "nesday",
                                       "rsday", "day", "urday"};

    return take_text(&at, ends[weekday]) && take_text(&at, ", ") &&
           take_number(&at, 2, &m->day) && take_text(&at, "-") &&
           take_month(&at, &m->month) && take_text(&at, "-") &&
           take_number(&at, 2, &m->year) && take_text(&at, " ") &&
           take_time(&at, m) && take_text(&at, " GMT") && is_at_end(at);
}

/* Sun Nov  6 08:49:37 1994, behind "Sun" */
static bool take_asctime(const char *at, moment *m)
{
    if (!take_text(&at, " ") || !take_month(&at, &m->month) ||
        !take_text(&at, " "))
        return false;
    if (!take_number(&at, take_text(&at, " ") ? 1 : 2, &m->day))
        return false;
    return take_text(&at, " ") && take_time(&at, m) && take_text(&at, " ") &&
           take_number(&at, 4, &m->year) && is_at_end(at);
}

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool exists(const moment *m)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30,
                                  31, 31, 30, 31, 30, 31};
    int64_t last = days[m->month - 1] + (m->month == 2 && is_leap(m->year));

    return m->day >= 1 && m->day <= last && m->hour <= 23 && m->minute <= 59 &&
           m->second <= 60; // a leap second
}

/* Days from 0000-03-01 to the year's first of March, so that the leap day is
 * the last of its year. */
static int64_t days_before(int64_t year)
{
    return 365 * year + year / 4 - year / 100 + year / 400;
}

static int64_t to_unix(const moment *m)
{
    enum { DAYS_TO_1970 = 719468 + 146097 }; // and 400 years, for the year 0
    int64_t year = 400 + (m->month > 2 ? m->year : m->year - 1);
    int64_t month = m->month > 2 ? m->month - 3 : m->month + 9;
    int64_t days = days_before(year) + (153 * month + 2) / 5 + m->day - 1;

    return (days - DAYS_TO_1970) * 86400 + m->hour * 3600 + m->minute * 60 +
           m->second;
}

/* The latest year with these two digits in which the moment is at most 50 years
 * ahead, as RFC 9110 wants, and none of five digits. */
static void find_century(moment *m, int64_t wall_s)
{
    const int64_t ahead_s = 50 * INT64_C(31556952);

    do
        m->year += 100;
    while (to_unix(m) - ahead_s <= wall_s && m->year < 10000);
    m->year -= 100;
}

/* A clock before 1970 says nothing. */
static int64_t clamp_wall(int64_t wall_s)
{
    return wall_s < 0 ? 0 : wall_s;
}

bool stg_delay_date(const char *text, int64_t wall_s, int64_t *date_s)
{
    moment m;
    int64_t weekday;
    bool has_century;

    if (text == NULL || date_s == NULL)
        return false;
    while (stg_is_blank(*text))
        text++;
    if (!take_name(&text, "SunMonTueWedThuFriSat", &weekday))
        return false;
    has_century = take_imf(text, &m) || take_asctime(text, &m);
    if (!has_century && !take_rfc850(text, weekday, &m))
        return false;
    if (!has_century)
        find_century(&m, clamp_wall(wall_s));
    if (!exists(&m))
        return false;
    *date_s = to_unix(&m);
    return true;
}

stg_ns stg_delay_read(const stg_delay_headers *headers, int64_t wall_s)
{
    int64_t from_s = clamp_wall(wall_s), until_s;
    uint64_t count;

    if (headers == NULL)
        return 0;
    if (headers->retry_after_ms != NULL &&
        stg_read_count(headers->retry_after_ms, &count))
        return stg_ns_mul(count, STG_MS);
    if (headers->retry_after == NULL)
        return 0;
    if (stg_read_count(headers->retry_after, &count))
        return stg_ns_mul(count, STG_S);

    stg_delay_date(headers->date, from_s, &from_s);
    if (!stg_delay_date(headers->retry_after, from_s, &until_s))
        return 0;
    return until_s > from_s ? stg_ns_mul((uint64_t)(until_s - from_s), STG_S)
                            : 0;
}
