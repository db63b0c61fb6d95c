/* --trace FILE: one operation a line.
 *
 *   access log   common or combined log format, and then a duration: seconds with a
 *                point (nginx's $request_time), or whole microseconds (Apache's %D),
 *                with or without NAME= before it
 *   hub's log    JSON; of each message its first attempt (delivered, attempt-failed)
 *   CSV          time,duration: seconds, or RFC 3339; the duration may be missing
 *
 * What kind it is the first line says. Servers log a request when it ends; the
 * time of CSV is when it begins. Where times are whole seconds, what ends in one is
 * spread evenly over it, in the order of the file. */
#include "cli/sim/overload.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ENTRIES_MAX = 20000000, COLUMNS_MAX = 60 };

typedef enum kind { UNKNOWN, ACCESS_LOG, HUB_LOG, CSV } kind;

typedef struct entry {
    double at;     /* seconds since 1970, or since anything */
    double took;   /* seconds; below 0: not known */
    bool is_whole; /* at is a whole second */
    bool is_end;   /* at is when it ended */
} entry;

typedef struct reading {
    const char *path;
    size_t line;
    kind kind;
    entry *all;
    size_t count, room;
    stg_error *err;
} reading;

static stg_status refuse(const reading *r, const char *format, ...)
{
    char words[160];
    va_list list;

    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    snprintf(r->err->text, sizeof r->err->text, "%.80s:%zu: %s", r->path,
             r->line, words);
    return STG_INVALID;
}

/* -- times ----------------------------------------------------------------- */

/* Exactly so many digits. */
static bool take_digits(const char **text, int count, int *number)
{
    *number = 0;
    for (int i = 0; i < count; i++, ++*text) {
        if (**text < '0' || **text > '9')
            return false;
        *number = *number * 10 + (**text - '0');
    }
    return true;
}

static bool take(const char **text, char c)
{
    if (**text != c)
        return false;
    ++*text;
    return true;
}

/* timegm() turns the 31st of June into the 1st of July. */
static bool to_seconds(struct tm t, double *seconds)
{
    struct tm whole = t;

    if (t.tm_mon < 0 || t.tm_mon > 11 || t.tm_hour > 23 || t.tm_min > 59 ||
        t.tm_sec > 60)
        return false;
    *seconds = (double)timegm(&whole);
    return whole.tm_mday == t.tm_mday || t.tm_sec == 60;
}

/* "+02:00", "-0700" or "Z", in seconds. */
static bool take_zone(const char **text, double *zone)
{
    int hours, minutes;
    bool is_west = **text == '-';

    *zone = 0;
    if (take(text, 'Z'))
        return true;
    if (!is_west && **text != '+')
        return false;
    ++*text;
    if (!take_digits(text, 2, &hours))
        return false;
    (void)take(text, ':');
    if (!take_digits(text, 2, &minutes))
        return false;
    *zone = (is_west ? -1 : 1) * (hours * 3600.0 + minutes * 60.0);
    return true;
}

/* "10/Oct/2000:13:55:36 -0700" */
static bool take_log_time(const char **text, double *seconds)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm t = {.tm_isdst = 0};
    char month[4] = "";
    const char *found;
    double zone;

    if (!take_digits(text, 2, &t.tm_mday) || !take(text, '/') ||
        strlen(*text) < 4)
        return false;
    memcpy(month, *text, 3);
    *text += 3;
    found = strstr(months, month);
    if (found == NULL || (found - months) % 3 != 0)
        return false;
    t.tm_mon = (int)(found - months) / 3;
    if (!take(text, '/') || !take_digits(text, 4, &t.tm_year) ||
        !take(text, ':') || !take_digits(text, 2, &t.tm_hour) ||
        !take(text, ':') || !take_digits(text, 2, &t.tm_min) ||
        !take(text, ':') || !take_digits(text, 2, &t.tm_sec) ||
        !take(text, ' ') || !take_zone(text, &zone))
        return false;
    t.tm_year -= 1900;
    if (!to_seconds(t, seconds))
        return false;
    *seconds -= zone;
    return true;
}

/* A decimal without a sign or an exponent; has_point, if not NULL, says whether it
 * has a point. */
static bool take_decimal(const char **text, double *number, bool *has_point)
{
    const char *at = *text;
    double unit = 1;

    *number = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        *number = *number * 10 + (*at - '0');
    if (at == *text)
        return false;
    if (has_point != NULL)
        *has_point = *at == '.';
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++) {
            unit /= 10;
            *number += (*at - '0') * unit;
        }
    *text = at;
    return isfinite(*number);
}

/* RFC 3339, or seconds. */
static bool take_time(const char **text, double *seconds, bool *is_whole)
{
    const char *at = *text;
    struct tm t = {.tm_isdst = 0};
    double zone = 0, part = 0;

    *is_whole = false;
    if (!take_digits(&at, 4, &t.tm_year) || !take(&at, '-'))
        return take_decimal(text, seconds, NULL);
    if (!take_digits(&at, 2, &t.tm_mon) || !take(&at, '-') ||
        !take_digits(&at, 2, &t.tm_mday) ||
        (!take(&at, 'T') && !take(&at, ' ')) ||
        !take_digits(&at, 2, &t.tm_hour) || !take(&at, ':') ||
        !take_digits(&at, 2, &t.tm_min) || !take(&at, ':') ||
        !take_digits(&at, 2, &t.tm_sec))
        return false;
    *is_whole = *at != '.';
    for (double unit = 0.1; !*is_whole && at[1] >= '0' && at[1] <= '9'; at++)
        part += (at[1] - '0') * unit, unit /= 10;
    if (!*is_whole)
        at++;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    if (!take_zone(&at, &zone) || !to_seconds(t, seconds))
        return false;
    *seconds += part - zone;
    *text = at;
    return true;
}

/* -- lines ----------------------------------------------------------------- */

/* What is in quotes may have escaped ones. */
static const char *skip_word(const char *at)
{
    if (*at != '"')
        return at + strcspn(at, " ");
    for (at++; *at != '"' && *at != '\0'; at++)
        if (*at == '\\' && at[1] != '\0')
            at++;
    return *at == '"' ? at + 1 : at;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* The first number behind status and bytes that stands outside of quotes. */
static bool find_duration(const char *at, double *took)
{
    for (at = skip_blanks(at); *at != '\0'; at = skip_blanks(skip_word(at))) {
        const char *number = at;
        bool has_point;

        if (*at == '"')
            continue;
        for (const char *c = at; *c != ' ' && *c != '\0'; c++)
            if (*c == '=')
                number = c + 1;
        if (!take_decimal(&number, took, &has_point) ||
            (*number != ' ' && *number != '\0'))
            continue;
        if (!has_point)
            *took /= 1e6;
        return true;
    }
    return false;
}

/* host ident user [time] "request" status bytes ... */
static stg_status read_access(const reading *r, const char *line, entry *e)
{
    const char *at = strchr(line, '[');

    *e = (entry){.took = -1, .is_whole = true, .is_end = true};
    if (at == NULL || (at++, !take_log_time(&at, &e->at)) || *at != ']')
        return refuse(r,
                      "expected a time, such as [10/Oct/2000:13:55:36 "
                      "-0700]");
    at = skip_blanks(at + 1);
    if (*at != '"')
        return refuse(r, "expected a request in quotes behind the time");
    for (int i = 0; i < 3; i++) { // request, status, bytes
        if (*at == '\0')
            return refuse(r,
                          "expected a status and a number of bytes behind "
                          "the request");
        at = skip_blanks(skip_word(at));
    }
    if (!find_duration(at, &e->took))
        e->took = -1;
    return STG_OK;
}

/* A field of the hub's log, whose objects are flat: in a text the quotes would be
 * escaped. */
static const char *find_field(const char *line, const char *name)
{
    char key[32];
    const char *at;

    snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(line, key);
    if (at == NULL || at == line || (at[-1] != '{' && at[-1] != ','))
        return NULL;
    return at + strlen(key);
}

static bool is_event(const char *at, const char *name)
{
    return strncmp(at, name, strlen(name)) == 0 && at[strlen(name)] == '"';
}

/* *is_one: it is the first attempt for a message; other lines say nothing of
 * one. */
static stg_status read_hub(const reading *r, const char *line, entry *e,
                           bool *is_one)
{
    const char *time = find_field(line, "time"),
               *event = find_field(line, "event"),
               *attempt = find_field(line, "attempt"),
               *took = find_field(line, "took_ms");

    *e = (entry){.took = -1, .is_end = true};
    *is_one = false;
    if (time == NULL || event == NULL || *time++ != '"' || *event++ != '"')
        return refuse(r,
                      "expected a line of the hub's JSON log, with time and "
                      "event");
    if (!is_event(event, "delivered") && !is_event(event, "attempt-failed"))
        return STG_OK;
    if (find_field(line, "folded") != NULL) // many events, without their times
        return STG_OK;
    if (!take_time(&time, &e->at, &e->is_whole) || *time != '"')
        return refuse(r, "expected a time, such as 2026-03-01T12:00:00.250Z");
    if (took == NULL || !take_decimal(&took, &e->took, NULL))
        return refuse(r, "expected took_ms, a number");
    e->took /= 1000;
    *is_one = attempt != NULL && attempt[0] == '1' &&
              (attempt[1] < '0' || attempt[1] > '9');
    return STG_OK;
}

static stg_status read_csv(const reading *r, const char *line, entry *e,
                           bool *is_one)
{
    const char *at = line;

    *e = (entry){.took = -1};
    *is_one = r->count > 0 || strncmp(line, "time", 4) != 0; // the head
    if (!*is_one)
        return STG_OK;
    if (!take_time(&at, &e->at, &e->is_whole) || (*at != ',' && *at != '\0'))
        return refuse(r,
                      "expected time,duration: seconds, or times such as "
                      "2026-03-01T12:00:00.250Z");
    if (*at == ',' && at[1] != '\0') {
        at++;
        if (!take_decimal(&at, &e->took, NULL) || *at != '\0')
            return refuse(r, "expected a duration in seconds, such as 0.125");
    }
    return STG_OK;
}

static kind find_kind(const char *line)
{
    return line[0] == '{'                                           ? HUB_LOG
           : strchr(line, '[') != NULL && strchr(line, '"') != NULL ? ACCESS_LOG
                                                                    : CSV;
}

static stg_status add(reading *r, const entry *e)
{
    if (e->took > 3600.0 * 24)
        return refuse(r, "a duration of more than a day");
    if (r->count == ENTRIES_MAX)
        return refuse(r, "more than %d operations", (int)ENTRIES_MAX);
    if (r->count == r->room) {
        size_t room = r->room == 0 ? 1024 : 2 * r->room;
        entry *all = realloc(r->all, room * sizeof *all);

        if (all == NULL) {
            (void)refuse(r, "out of memory");
            return STG_IO;
        }
        r->all = all;
        r->room = room;
    }
    r->all[r->count++] = *e;
    return STG_OK;
}

/* A line whose end is cut off; what is empty is no operation. */
static stg_status read_line(reading *r, const char *line)
{
    bool is_one = true;
    stg_status status = STG_OK;
    entry e;

    line = skip_blanks(line);
    if (*line == '\0')
        return STG_OK;
    if (r->kind == UNKNOWN)
        r->kind = find_kind(line);
    if (r->kind == ACCESS_LOG)
        status = read_access(r, line, &e);
    else if (r->kind == HUB_LOG)
        status = read_hub(r, line, &e, &is_one);
    else
        status = read_csv(r, line, &e, &is_one);
    return status == STG_OK && is_one ? add(r, &e) : status;
}

/* -- the trace ------------------------------------------------------------- */

/* The entries of one second, from `first` on, which are neighbours in the file. */
static void spread(entry *all, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        all[first + i].at += ((double)i + 0.5) / (double)count;
}

static void spread_all(reading *r)
{
    for (size_t i = 0, next; i < r->count; i = next) {
        double second = r->all[i].at;

        for (next = i + 1; next < r->count && r->all[next].is_whole &&
                           r->all[next].at == second;
             next++)
            ;
        if (r->all[i].is_whole)
            spread(r->all, i, next - i);
    }
}

static int compare(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

/* Arrivals from 0 on, and the times that are known. */
static stg_status make(const reading *r, stg_sim_trace *t)
{
    double *at = malloc((r->count + 1) * sizeof *at);

    t->at = malloc((r->count + 1) * sizeof *t->at);
    t->times = malloc((r->count + 1) * sizeof *t->times);
    if (at == NULL || t->at == NULL || t->times == NULL) {
        free(at);
        snprintf(r->err->text, sizeof r->err->text, "out of memory");
        return STG_IO;
    }
    for (size_t i = 0; i < r->count; i++) {
        const entry *e = &r->all[i];

        at[i] = e->is_end && e->took > 0 ? e->at - e->took : e->at;
        if (e->took >= 0)
            t->times[t->time_count++] = (stg_ns)(e->took * 1e9 + 0.5);
    }
    qsort(at, r->count, sizeof *at, compare);
    t->count = r->count;
    for (size_t i = 0; i < r->count; i++)
        t->at[i] = at[i] - at[0] > 31 * 86400.0
                       ? 31 * STG_DAY
                       : (stg_ns)((at[i] - at[0]) * 1e9 + 0.5);
    free(at);
    return STG_OK;
}

static stg_status read_all(reading *r, FILE *file)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    stg_status status = STG_OK;

    while (status == STG_OK && (length = getline(&line, &size, file)) >= 0) {
        r->line++;
        while (length > 0 &&
               (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        status = strlen(line) == (size_t)length
                     ? read_line(r, line)
                     : refuse(r, "a line with a zero byte");
    }
    if (status == STG_OK && ferror(file)) {
        snprintf(r->err->text, sizeof r->err->text, "%.80s: %s", r->path,
                 strerror(errno));
        status = STG_IO;
    }
    free(line);
    return status;
}

stg_status stg_trace_read(stg_sim_trace *t, const char *path, stg_error *err)
{
    reading r = {.path = path, .err = err};
    FILE *file = fopen(path, "re");
    stg_status status;

    *t = (stg_sim_trace){0};
    if (file == NULL) {
        snprintf(err->text, sizeof err->text, "%.80s: %s", path,
                 strerror(errno));
        return STG_IO;
    }
    status = read_all(&r, file);
    fclose(file);
    if (status == STG_OK && r.count < 2) {
        snprintf(err->text, sizeof err->text,
                 "%.80s: expected two operations at least", path);
        status = STG_INVALID;
    }
    if (status == STG_OK) {
        spread_all(&r);
        status = make(&r, t);
    }
    free(r.all);
    return status;
}

void stg_trace_free(stg_sim_trace *t)
{
    free(t->at);
    free(t->times);
    *t = (stg_sim_trace){0};
}
