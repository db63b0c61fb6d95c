/* Times of the wall clock as texts of RFC 3339, written and read. */
#include "host/wall.h"

#include <stdio.h>
#include <string.h>

const char *stg_utc_text(uint64_t utc, char text[STG_UTC_TEXT_MAX])
{
    time_t seconds = (time_t)(utc / STG_S);
    struct tm tm;
    size_t length;

    gmtime_r(&seconds, &tm);
    length = strftime(text, STG_UTC_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + length, STG_UTC_TEXT_MAX - length, ".%03uZ",
             (unsigned)(utc / STG_MS % 1000));
    return text;
}

/* -- reading ---------------------------------------------------------------- */

/* A number of exactly so many digits, at the start of *text, which moves. */
static bool read_digits(const char **text, int digits, int *number)
{
    *number = 0;
    for (; digits > 0; digits--, ++*text) {
        if (**text < '0' || **text > '9')
            return false;
        *number = *number * 10 + (**text - '0');
    }
    return true;
}

static bool read_sign(const char **text, char sign)
{
    return *(*text)++ == sign;
}

static bool read_fraction(const char **text, stg_ns *fraction)
{
    stg_ns unit = STG_S / 10;

    *fraction = 0;
    if (**text != '.')
        return true;
    for (++*text; **text >= '0' && **text <= '9' && unit > 0; ++*text) {
        *fraction += (stg_ns)(**text - '0') * unit;
        unit /= 10;
    }
    return unit < STG_S / 10;
}

/* Only UTC: a local time has a different meaning on each machine. timegm()
 * turns the 31st of June into the 1st of July, which is noticed by its day. */
bool stg_instant_read(const char *text, stg_ns *wall)
{
    struct tm t = {.tm_isdst = 0}, whole;
    stg_ns fraction;

    if (!read_digits(&text, 4, &t.tm_year) || !read_sign(&text, '-') ||
        !read_digits(&text, 2, &t.tm_mon) || !read_sign(&text, '-') ||
        !read_digits(&text, 2, &t.tm_mday) || !read_sign(&text, 'T') ||
        !read_digits(&text, 2, &t.tm_hour) || !read_sign(&text, ':') ||
        !read_digits(&text, 2, &t.tm_min) || !read_sign(&text, ':') ||
        !read_digits(&text, 2, &t.tm_sec) || !read_fraction(&text, &fraction) ||
        strcmp(text, "Z") != 0)
        return false;
    if (t.tm_year < 1970 || t.tm_year > 2500 || t.tm_mon < 1 || t.tm_mon > 12 ||
        t.tm_hour > 23 || t.tm_min > 59 || t.tm_sec > 59)
        return false;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    whole = t;
    *wall = (stg_ns)timegm(&whole) * STG_S + fraction;
    return whole.tm_mday == t.tm_mday; // the 31st of June is none
}
