/* Reads how long a server asks callers to wait: Retry-After-Ms, then
 * Retry-After (seconds or one of the three forms of an HTTP date), then the
 * rate limit headers.
 *
 * Dates are compared with the answer's own Date header where it has one, so
 * that a clock of ours that is wrong does not matter. Pure. */
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
    // A day of one digit has a blank in front.
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

/* Years begin in March: (153 month + 2) / 5 is the number of days before a
 * month then. Source: Hinnant, "chrono-compatible low-level date algorithms",
 * days_from_civil. */
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

static const struct {
    const char *name;
    stg_delay_header header;
} names[] = {
    {"Retry-After", STG_DELAY_RETRY_AFTER},
    {"retry-after-ms", STG_DELAY_RETRY_AFTER_MS},
    {"Date", STG_DELAY_DATE},
    {"RateLimit", STG_DELAY_RATE_LIMIT},
    {"RateLimit-Remaining", STG_DELAY_REMAINING},
    {"X-RateLimit-Remaining", STG_DELAY_REMAINING},
    {"X-Rate-Limit-Remaining", STG_DELAY_REMAINING},
    {"RateLimit-Reset", STG_DELAY_RESET},
    {"X-RateLimit-Reset", STG_DELAY_RESET},
    {"X-Rate-Limit-Reset", STG_DELAY_RESET},
};

const char *stg_delay_name(size_t i, stg_delay_header *header)
{
    if (i >= sizeof names / sizeof *names)
        return NULL;
    if (header != NULL)
        *header = names[i].header;
    return names[i].name;
}

/* The first header of a kind counts. */
void stg_delay_note(stg_delay_headers *headers, stg_delay_header header,
                    const char *value)
{
    const char **places[STG_DELAY_HEADERS];

    if (headers == NULL || (unsigned)header >= STG_DELAY_HEADERS)
        return;
    places[STG_DELAY_RETRY_AFTER] = &headers->retry_after;
    places[STG_DELAY_RETRY_AFTER_MS] = &headers->retry_after_ms;
    places[STG_DELAY_DATE] = &headers->date;
    places[STG_DELAY_RATE_LIMIT] = &headers->rate_limit;
    places[STG_DELAY_REMAINING] = &headers->rate_limit_remaining;
    places[STG_DELAY_RESET] = &headers->rate_limit_reset;
    if (*places[header] == NULL)
        *places[header] = value;
}

/* One limit, as far as it is told. */
typedef struct limit {
    bool has_remaining;
    bool has_reset;
    uint64_t remaining;
    uint64_t reset; /* seconds from now */
} limit;

/* Without a number that remains, only an answer that may refuse for a limit
 * says that it is used up. */
static bool is_used_up(const limit *l, int status)
{
    return l->has_remaining ? l->remaining == 0
                            : status == 429 || status == 403;
}

static uint64_t reset_of(const limit *l, int status)
{
    return l->has_reset && is_used_up(l, status) ? l->reset : 0;
}

/* Leaves *has as it is for any other parameter, and for one that is no
 * number. */
static void read_parameter(stg_reader piece, const char *name, bool *has,
                           uint64_t *value)
{
    uint32_t number;

    while (!stg_reader_is_empty(&piece) && stg_is_blank(*piece.at))
        piece.at++;
    while (!stg_reader_is_empty(&piece) && stg_is_blank(piece.end[-1]))
        piece.end--;
    if (!stg_read_text(&piece, name) || !stg_read_int(&piece, &number) ||
        !stg_reader_is_empty(&piece))
        return;
    *has = true;
    *value = number;
}

/* What stands before the next ',' or ';' outside of quotes; `at` is then on
 * it, or at the end. */
static stg_reader take_piece(stg_reader *rest)
{
    const char *start = rest->at;
    bool is_quoted = false;

    while (!stg_reader_is_empty(rest) &&
           (is_quoted || (*rest->at != ',' && *rest->at != ';'))) {
        if (*rest->at == '"')
            is_quoted = !is_quoted;
        rest->at++;
    }
    return (stg_reader){start, rest->at};
}

/* "default";r=0;t=30, "burst";r=7;t=2: each member is a limit. Or, in earlier
 * drafts, one limit: limit=100, remaining=0, reset=30. The longest wait of all
 * limits counts. */
static uint64_t read_rate_limit(const char *text, int status)
{
    stg_reader rest = {text, text + strlen(text)};
    limit whole = {.has_reset = false}, member = whole;
    uint64_t longest = 0;

    for (;;) {
        stg_reader piece = take_piece(&rest);

        read_parameter(piece, "r=", &member.has_remaining, &member.remaining);
        read_parameter(piece, "t=", &member.has_reset, &member.reset);
        read_parameter(piece, "remaining=", &whole.has_remaining,
                       &whole.remaining);
        read_parameter(piece, "reset=", &whole.has_reset, &whole.reset);
        if (stg_reader_is_empty(&rest) || *rest.at == ',') {
            longest = stg_ns_max(longest, reset_of(&member, status));
            member = (limit){.has_reset = false};
        }
        if (stg_reader_is_empty(&rest))
            return stg_ns_max(longest, reset_of(&whole, status));
        rest.at++;
    }
}

/* Seconds from now, or since 1970. From 10^9 on a number is a time since 1970;
 * from 10^12 on, as in milliseconds, it is not understood and left out. */
static uint64_t read_reset(const stg_delay_headers *h, int64_t from_s)
{
    const uint64_t epoch_least = 1000000000, epoch_end = 1000000000000;
    limit l = {.has_reset = false};

    l.has_reset = h->rate_limit_reset != NULL &&
                  stg_read_count(h->rate_limit_reset, &l.reset) &&
                  l.reset < epoch_end;
    l.has_remaining = h->rate_limit_remaining != NULL &&
                      stg_read_count(h->rate_limit_remaining, &l.remaining);
    if (l.has_reset && l.reset >= epoch_least)
        l.reset = stg_ns_sub(l.reset, (uint64_t)from_s);
    return reset_of(&l, h->status);
}

static stg_ns read_limits(const stg_delay_headers *h, int64_t from_s)
{
    uint64_t reset_s = read_reset(h, from_s);

    if (h->rate_limit != NULL)
        reset_s =
            stg_ns_max(reset_s, read_rate_limit(h->rate_limit, h->status));
    return stg_ns_mul(reset_s, STG_S);
}

/* As nearly all answers: no Date is read for it. */
static bool says_nothing(const stg_delay_headers *h)
{
    return h->retry_after == NULL && h->retry_after_ms == NULL &&
           h->rate_limit == NULL && h->rate_limit_reset == NULL;
}

/* The most exact header wins: milliseconds, seconds, a date, and then the
 * limits. A Retry-After that cannot be read is no wait, and the limits are not
 * asked in its place. */
stg_ns stg_delay_read(const stg_delay_headers *headers, int64_t wall_s)
{
    int64_t from_s = clamp_wall(wall_s), until_s;
    uint64_t count;

    if (headers == NULL || says_nothing(headers))
        return 0;
    if (headers->retry_after_ms != NULL &&
        stg_read_count(headers->retry_after_ms, &count))
        return stg_ns_mul(count, STG_MS);
    if (headers->retry_after != NULL &&
        stg_read_count(headers->retry_after, &count))
        return stg_ns_mul(count, STG_S);

    stg_delay_date(headers->date, from_s, &from_s);
    if (headers->retry_after == NULL && headers->retry_after_ms == NULL)
        return read_limits(headers, clamp_wall(from_s));
    if (!stg_delay_date(headers->retry_after, from_s, &until_s))
        return 0;
    return until_s > from_s ? stg_ns_mul((uint64_t)(until_s - from_s), STG_S)
                            : 0;
}
