/* Any headers and any clock: a delay that is what they say, and never wraps.
 *
 * The input is up to eight lines: our clock in seconds, Retry-After,
 * retry-after-ms, Date, RateLimit, the remaining number, the reset and the
 * status. A line that is "-", or is not there, is a header
 * that the answer does not have. */
#include <stagger/delay.h>

#include <string.h>

#include "fuzz/fuzz.h"

enum { LINES = 8 };

/* Cuts the text into lines; NULL for those that are not there. */
static void cut(char *text, char *lines[LINES])
{
    for (size_t i = 0; i < LINES; i++) {
        char *end = text == NULL ? NULL : strchr(text, '\n');

        lines[i] = text;
        if (end != NULL)
            *end++ = '\0';
        text = end;
        if (lines[i] != NULL && strcmp(lines[i], "-") == 0)
            lines[i] = NULL;
    }
}

/* The number of a count, or false; by other means than the library's. */
static bool count_of(const char *text, uint64_t *count)
{
    size_t digits, blanks;

    if (text == NULL)
        return false;
    text += strspn(text, " \t");
    digits = strspn(text, "0123456789");
    blanks = strspn(text + digits, " \t");
    // Past 64 bits strtoull() answers with the largest there is.
    *count = strtoull(text, NULL, 10);
    return digits > 0 && text[digits + blanks] == '\0';
}

static stg_ns times(uint64_t count, stg_ns unit)
{
    return count > STG_NEVER / unit ? STG_NEVER : count * unit;
}

/* Only the form of RFC 850, with two digits of the year, has a '-'. */
static bool has_two_digits(const char *text)
{
    return text != NULL && strchr(text, '-') != NULL;
}

/* What a date says: in the years that have four digits, and where the clock
 * settles the century at most 50 years from it, unless a later year would have
 * five digits. Else nothing is written. */
static bool date_of(const char *text, int64_t wall_s, int64_t *date_s)
{
    static const int64_t year_0_s = INT64_C(-62167219200);
    static const int64_t year_10000_s = INT64_C(253402300800);
    static const int64_t half_a_century_s = 50 * INT64_C(31556952) + 86400;
    static const int64_t latest_s = year_10000_s - half_a_century_s;
    int64_t read_s = INT64_MIN;
    int64_t now_s = wall_s < 0 ? 0 : wall_s; // no clock is before 1970

    if (!stg_delay_date(text, wall_s, &read_s)) {
        HOLDS(read_s == INT64_MIN);
        return false;
    }
    if (has_two_digits(text))
        HOLDS(read_s >=
                  (now_s < latest_s ? now_s : latest_s) - half_a_century_s &&
              read_s - half_a_century_s <= now_s);
    HOLDS(read_s >= year_0_s && read_s <= year_10000_s);
    *date_s = read_s;
    return true;
}

/* The delay, once more and in other words. */
static stg_ns expected(const stg_delay_headers *h, int64_t wall_s)
{
    int64_t from_s = wall_s < 0 ? 0 : wall_s, until_s;
    uint64_t count;

    if (count_of(h->retry_after_ms, &count))
        return times(count, STG_MS);
    if (count_of(h->retry_after, &count))
        return times(count, STG_S);
    if (h->retry_after == NULL)
        return 0;
    (void)date_of(h->date, from_s, &from_s);
    if (!date_of(h->retry_after, from_s, &until_s) || until_s <= from_s)
        return 0;
    return times((uint64_t)until_s - (uint64_t)from_s, STG_S);
}

/* Where no header says when, a rate limit may: none that has something left, nor
 * an answer of another status where that is not told. Whole seconds. */
static void check_limit(const stg_delay_headers *h, stg_ns delay)
{
    uint64_t remaining, reset;
    bool is_told = count_of(h->rate_limit_remaining, &remaining);
    bool is_refused = h->status == 429 || h->status == 403;

    HOLDS(delay % STG_S == 0 || delay == STG_NEVER);
    if (h->rate_limit != NULL)
        return;
    if (!count_of(h->rate_limit_reset, &reset))
        HOLDS(delay == 0);
    else if (is_told ? remaining != 0 : !is_refused)
        HOLDS(delay == 0);
    else if (reset < 1000000000)
        HOLDS(delay == times(reset, STG_S));
    else
        HOLDS(delay <= times(reset, STG_S));
}

/* A date is the same moment by any clock, but for the century of two digits,
 * where the leap day is not in each. */
static void check_clock(const char *text)
{
    int64_t early_s, late_s;
    bool is_early = stg_delay_date(text, 0, &early_s);
    bool is_late = stg_delay_date(text, INT64_C(4102444800), &late_s);

    if (has_two_digits(text))
        HOLDS(is_early == is_late || strstr(text, "29-Feb-00") != NULL);
    else
        HOLDS(is_early == is_late && (!is_early || early_s == late_s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *lines[LINES];
    stg_delay_headers h;
    int64_t wall_s, date_s;
    stg_ns delay;

    HOLDS(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    cut(text, lines);
    wall_s = lines[0] == NULL ? 0 : strtoll(lines[0], NULL, 10);
    (void)stg_delay_date(lines[1], wall_s, &date_s); // at any time there is
    wall_s /= 8; // the end of time is not to be told exactly
    h = (stg_delay_headers){
        .retry_after = lines[1],
        .retry_after_ms = lines[2],
        .date = lines[3],
        .rate_limit = lines[4],
        .rate_limit_remaining = lines[5],
        .rate_limit_reset = lines[6],
        .status = lines[7] == NULL ? 0 : (int)strtol(lines[7], NULL, 10)};
    delay = stg_delay_read(&h, wall_s);
    if (h.retry_after != NULL || h.retry_after_ms != NULL)
        HOLDS(delay == expected(&h, wall_s));
    else
        check_limit(&h, delay);
    HOLDS(delay == stg_delay_read(&h, wall_s));
    check_clock(lines[1]);
    check_clock(lines[3]);
    free(text);
    return 0;
}
