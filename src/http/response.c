/* Heads of answers: status lines, the headers that each answer has, and the date. No
 * printf(), since one is written for each message that is published. */
#include "http/server.h"

#include <string.h>

#include "base/digits.h"

/* Source: RFC 9110, section 15; 429 and 431 from RFC 6585, 508 from
 * RFC 5842. */
const char *stg_response_reason(int status)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {
        {100, "Continue"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
        {508, "Loop Detected"},
    };

    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Error";
}

/* -- writing --------------------------------------------------------------- */

static char *put(char *out, const char *text)
{
    while (*text != '\0')
        *out++ = *text++;
    return out;
}

static char *put_line(char *out, const char *name, const char *value)
{
    return put(put(put(out, name), value), "\r\n");
}

/* Fits into STG_RESPONSE_HEAD_MAX where type is one of ours and more at most
 * STG_RESPONSE_MORE_MAX long. */
size_t stg_response_print(const stg_response *r, const char *date,
                          char head[STG_RESPONSE_HEAD_MAX])
{
    char *out = stg_digits_put(put(head, "HTTP/1.1 "), (size_t)r->status);

    out = put_line(out, " ", stg_response_reason(r->status));
    out = put_line(out, "Date: ", date);
    if (r->type != NULL)
        out = put_line(out, "Content-Type: ", r->type);
    if (r->body == STG_RESPONSE_SIZED)
        out =
            put(stg_digits_put(put(out, "Content-Length: "), r->size), "\r\n");
    else if (r->body == STG_RESPONSE_CHUNKED)
        out = put_line(out, "Transfer-Encoding: ", "chunked");
    if (r->more != NULL)
        out = put(out, r->more);
    if (r->is_last || r->is_kept)
        out =
            put_line(out, "Connection: ", r->is_last ? "close" : "keep-alive");
    return (size_t)(put(out, "\r\n") - head);
}

/* -- the date -------------------------------------------------------------- */

static void put_two(char *out, int64_t number)
{
    out[0] = (char)('0' + number / 10 % 10);
    out[1] = (char)('0' + number % 10);
}

/* Days since 1970 as year, month from 1, and day. Source: Hinnant,
 * "chrono-compatible low-level date algorithms", civil_from_days. */
static void find_day(int64_t days, int64_t *year, int64_t *month, int64_t *day)
{
    int64_t shifted = days + 719468, era = shifted / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t y =
        (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;

    *day = of_year - (153 * m + 2) / 5 + 1;
    *month = m < 10 ? m + 3 : m - 9;
    *year = y + era * 400 + (*month <= 2);
}

void stg_response_print_date(int64_t wall_s, char date[STG_DATE_MAX])
{
    static const char weekdays[] = "ThuFriSatSunMonTueWed";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t now = wall_s < 0 ? 0 : wall_s, days = now / 86400;
    int64_t year, month, day;

    find_day(days, &year, &month, &day);
    memcpy(date, "Thu, 01 Jan 1970 00:00:00 GMT", 30);
    memcpy(date, weekdays + days % 7 * 3, 3);
    put_two(date + 5, day);
    memcpy(date + 8, months + (month - 1) * 3, 3);
    put_two(date + 12, year / 100);
    put_two(date + 14, year);
    put_two(date + 17, now % 86400 / 3600);
    put_two(date + 20, now % 3600 / 60);
    put_two(date + 23, now % 60);
}
