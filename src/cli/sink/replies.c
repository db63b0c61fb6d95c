/* The answers of a sink: a list for the attempts of a message in order, or
 * weights for random ones. Each is written out once, headers included, and
 * again only when the second of a Retry-After date changes: a sink is used to
 * measure others. */
#include "cli/sink/sink.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <llhttp.h>

#include "base/suggest.h"

enum { TIMES_MAX = 1000000000 };

static const char *find_name(int status)
{
    switch (status) {
#define NAME(number, name, text) \
    case number:                 \
        return #name;
        HTTP_STATUS_MAP(NAME)
#undef NAME
    default:
        return "UNASSIGNED";
    }
}

/* SERVICE_UNAVAILABLE as Service Unavailable; OK stays. */
static const char *write_phrase(char phrase[SINK_ANSWER_MAX], int status)
{
    const char *name = find_name(status);
    bool is_first = true;
    size_t i;

    for (i = 0; i < SINK_ANSWER_MAX - 1 && name[i] != '\0'; i++) {
        bool is_letter = name[i] >= 'A' && name[i] <= 'Z';

        phrase[i] = name[i] == '_' ? ' ' : name[i];
        if (is_letter && !is_first && status != 200)
            phrase[i] = (char)(name[i] - 'A' + 'a');
        is_first = name[i] == '_';
    }
    phrase[i] = '\0';
    return phrase;
}

/* An informational status (1xx) would not end the exchange, so the range begins
 * at 200. */
static const char *read_deed(stg_reader *r, sink_reply *reply)
{
    stg_suggestion near;
    uint32_t status;

    if (stg_read_text(r, "reset")) {
        reply->deed = SINK_RESET;
        return NULL;
    }
    if (stg_read_text(r, "hang")) {
        reply->deed = SINK_HANG;
        return NULL;
    }
    near = stg_suggestion_begin(r->at,
                                strspn(r->at, "abcdefghijklmnopqrstuvwxyz"));
    stg_suggestion_try(&near, "reset");
    stg_suggestion_try(&near, "hang");
    if (near.name != NULL)
        return near.name[0] == 'r' ? "did you mean reset?"
                                   : "did you mean hang?";
    if (!stg_read_int(r, &status) || status < 200 || status > 599)
        return "expected a status from 200 to 599, reset or hang";
    reply->deed = SINK_ANSWER;
    reply->status = (int)status;
    return NULL;
}

/* One item, with its times (1 without) or its weight. */
static const char *read_reply(stg_reader *r, sink_reply *reply, bool is_random,
                              uint32_t sum)
{
    uint32_t number = 1;
    const char *wrong = read_deed(r, reply);

    if (wrong != NULL)
        return wrong;
    if (is_random) {
        if (!stg_read_text(r, ":") || !stg_read_int(r, &number))
            return "expected a weight after each, such as 200:95,503:5";
    } else if (stg_read_text(r, "x")) {
        if (!stg_read_int(r, &number) || number == 0)
            return "expected a count after the x, such as 503x2,200";
    }
    if (number > TIMES_MAX - sum)
        return "the numbers add up to more than 1000000000";
    if (!stg_reader_is_empty(r))
        return is_random
                   ? "expected items such as 503:5, with commas between them"
                   : "expected items such as 503x2, with commas between them";
    reply->upto = sum + number;
    return NULL;
}

/* `upto` is a running sum, so that one comparison finds the item of an attempt
 * or of a random draw. The last item of a list also answers all attempts after
 * it. */
const char *stg_sink_replies_read(sink_replies *r, const char *text,
                                  bool is_random)
{
    stg_reader rest = {text, text + strlen(text)};
    uint32_t sum = 0;

    r->count = 0;
    r->is_random = is_random;
    do {
        stg_reader item = stg_read_until(&rest, ',');
        const char *wrong;

        if (r->count == SINK_REPLIES_MAX)
            return "64 items are the most";
        wrong = read_reply(&item, &r->list[r->count], is_random, sum);
        if (wrong != NULL)
            return wrong;
        sum = r->list[r->count++].upto;
    } while (!stg_reader_is_empty(&rest));
    if (rest.end > text && rest.end[-1] == ',')
        return "nothing stands behind the last comma";
    return sum > 0 ? NULL : "all the weights are 0";
}

/* A header's value with an end of line in it would begin another header. */
static bool is_visible(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

const char *stg_sink_replies_after(sink_replies *r, const char *text)
{
    stg_reader rest = {text, text + strlen(text)};

    if (stg_read_text(&rest, "date:")) {
        r->after = SINK_AFTER_DATE;
        if (stg_read_int(&rest, &r->after_s) && stg_reader_is_empty(&rest))
            return NULL;
        return "expected seconds after date:, such as date:3";
    }
    if (text[0] == '\0' || strlen(text) >= sizeof r->after_text ||
        !is_visible(text))
        return "expected seconds, date:SECONDS, or an HTTP date";
    r->after = SINK_AFTER_TEXT;
    memcpy(r->after_text, text, strlen(text) + 1);
    return NULL;
}

/* Sun, 06 Nov 1994 08:49:37 GMT; no locale has a say in it. */
static void write_date(char text[SINK_AFTER_MAX], int64_t at_s)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed",
                                   "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t at = (time_t)at_s;
    struct tm t;

    gmtime_r(&at, &t);
    snprintf(text, SINK_AFTER_MAX, "%s, %02d %s %04d %02d:%02d:%02d GMT",
             days[t.tm_wday], t.tm_mday, months[t.tm_mon],
             (t.tm_year + 1900) % 10000, t.tm_hour, t.tm_min, t.tm_sec);
}

/* Retry-After goes with 429 and 503 only. */
static void write_answer(const sink_replies *r, sink_answer *answer, int status,
                         bool is_closing)
{
    bool has_after =
        r->after != SINK_AFTER_NONE && (status == 429 || status == 503);
    // These two have no body by definition.
    bool has_length = status != 204 && status != 304;
    char phrase[SINK_ANSWER_MAX];

    answer->size = (size_t)snprintf(
        answer->text, sizeof answer->text, "HTTP/1.1 %d %s\r\n%s%s%s%s%s\r\n",
        status, write_phrase(phrase, status),
        has_length ? "Content-Length: 0\r\n" : "",
        has_after ? "Retry-After: " : "", has_after ? r->after_text : "",
        has_after ? "\r\n" : "", is_closing ? "Connection: close\r\n" : "");
}

static void write_answers(sink_replies *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->list[i].deed == SINK_ANSWER) {
            write_answer(r, &r->list[i].kept, r->list[i].status, false);
            write_answer(r, &r->list[i].closing, r->list[i].status, true);
        }
}

/* A date has no fractions: the second that is under way does not count. */
static void renew(sink_replies *r)
{
    int64_t now_s = (int64_t)time(NULL);

    if (r->made_at == now_s)
        return;
    r->made_at = now_s;
    write_date(r->after_text, now_s + 1 + r->after_s);
    write_answers(r);
}

void stg_sink_replies_make(sink_replies *r)
{
    if (r->after == SINK_AFTER_DATE)
        renew(r);
    else
        write_answers(r);
}

/* Random choice draws from rng once for each receipt, so answers depend on the
 * seed and the order of arrival, not on the message. */
const sink_reply *stg_sink_replies_choose(sink_replies *r, uint64_t attempt,
                                          stg_rng *rng)
{
    uint32_t sum = r->list[r->count - 1].upto;
    uint64_t place = r->is_random ? stg_rng_upto(rng, sum - 1) : attempt - 1;
    size_t i = 0;

    while (i < r->count - 1 && place >= r->list[i].upto)
        i++;
    return &r->list[i];
}

/* The date is looked at for each answer, and written again once a second at
 * most. */
const sink_answer *stg_sink_replies_answer(sink_replies *r,
                                           const sink_reply *reply,
                                           bool is_closing)
{
    if (r->after == SINK_AFTER_DATE)
        renew(r);
    return is_closing ? &reply->closing : &reply->kept;
}

const char *stg_sink_reply_name(const sink_reply *reply,
                                char text[SINK_ANSWERED_MAX])
{
    if (reply->deed == SINK_ANSWER)
        snprintf(text, SINK_ANSWERED_MAX, "%d", reply->status);
    else
        snprintf(text, SINK_ANSWERED_MAX, "%s",
                 reply->deed == SINK_RESET ? "reset" : "hang");
    return text;
}
