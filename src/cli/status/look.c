/* What a hub says of itself and its targets, read once: pages of /v1/targets as
 * rows. Times of the hub are compared with the hub's own clock, for that of this
 * machine may differ. Rows of trouble come first: what sheds messages is worse
 * than an open circuit, that is worse than a delay, and so on; then the backlog
 * counts. */
#include "cli/status/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/visible.h"

enum { PAGE = 200 }; /* of which a MiB holds the longest URLs */

/* -- what the hub says ----------------------------------------------------- */

/* Takes two digits, or four, and what stands behind them. False: they are not
 * there. */
static bool take_digits(const char **at, int count, char behind, int *number)
{
    *number = 0;
    for (; count > 0; count--, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *number = 10 * *number + (**at - '0');
    }
    if (behind == '\0')
        return true;
    return *(*at)++ == behind;
}

/* "2026-03-01T12:00:00.250Z", since 1970. 0: it is none. Always UTC; what
 * stands behind the fraction is not looked at. */
static stg_ns read_time(const char *text)
{
    struct tm at = {0};
    stg_ns ns = 0;
    int64_t seconds;

    if (!take_digits(&text, 4, '-', &at.tm_year) ||
        !take_digits(&text, 2, '-', &at.tm_mon) ||
        !take_digits(&text, 2, 'T', &at.tm_mday) ||
        !take_digits(&text, 2, ':', &at.tm_hour) ||
        !take_digits(&text, 2, ':', &at.tm_min) ||
        !take_digits(&text, 2, '\0', &at.tm_sec))
        return 0;
    at.tm_year -= 1900;
    at.tm_mon--;
    seconds = (int64_t)timegm(&at);
    if (*text++ == '.')
        for (stg_ns one = STG_S / 10; *text >= '0' && *text <= '9'; one /= 10)
            ns += (stg_ns)(*text++ - '0') * one;
    return seconds < 0 ? 0 : (stg_ns)seconds * STG_S + ns;
}

/* A field that is missing or null is not 0: the table shows "-". */
static uint64_t count_or_none(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) && json_number_value(value) >= 0
               ? (uint64_t)json_number_value(value)
               : STATUS_NONE;
}

/* The bound keeps the product within 64 bits. */
static uint64_t thousandths_or_none(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    double number = json_is_number(value) ? json_number_value(value) : -1;

    return number < 0 || number > 1e15 ? STATUS_NONE
                                       : (uint64_t)(number * 1000 + 0.5);
}

/* Milliseconds, with a fraction. */
static stg_ns time_or_none(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    double ms = json_is_number(value) ? json_number_value(value) : -1;

    return ms < 0 || ms > 1e15 ? STATUS_NONE : (stg_ns)(ms * 1e6 + 0.5);
}

/* Names come from a hub: they are cleaned once here, and widths count them as
 * they are shown. */
static void copy(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text);
    stg_visible_string(to, STG_VISIBLE_IN_COLUMN);
}

/* Until an instant of the hub's clock; 0: it has come. */
static stg_ns until(const json_t *object, const char *key, stg_ns now)
{
    stg_ns at = read_time(stg_json_text_of(object, key));

    return at == 0 ? STATUS_NONE : stg_ns_sub(at, now);
}

/* Of what holds the target back, or of its last failure. A hub of an older version
 * tells of no token. */
static void read_cause(status_row *row, const json_t *target)
{
    const json_t *token = json_object_get(target, "token");

    row->lacks_token = json_is_false(json_object_get(token, "is_usable")) &&
                       json_is_string(json_object_get(token, "cause"));
    copy(row->cause, sizeof row->cause,
         row->lacks_token ? stg_json_text_of(token, "cause")
                          : stg_json_text_of(target, "last_cause"));
}

static void read_row(status_row *row, const json_t *target, stg_ns now)
{
    copy(row->name, sizeof row->name, stg_json_text_of(target, "name"));
    copy(row->state, sizeof row->state,
         json_is_true(json_object_get(target, "is_disabled"))
             ? "disabled"
             : stg_json_text_of(target, "state"));
    read_cause(row, target);
    copy(row->breaker, sizeof row->breaker,
         stg_json_text_of(target, "breaker"));
    row->is_known = json_is_true(json_object_get(target, "is_known"));
    row->is_catching_up =
        json_is_true(json_object_get(target, "is_catching_up"));
    row->delivered = stg_json_count_of(target, "delivered");
    row->in_flight = stg_json_count_of(target, "in_flight");
    row->in_flight_limit = stg_json_count_of(target, "in_flight_limit");
    row->parked = stg_json_count_of(target, "parked");
    row->dead = stg_json_count_of(target, "dead");
    row->waiting = stg_json_count_of(target, "waiting");
    row->lag = count_or_none(target, "lag_messages");
    row->age = time_or_none(target, "lag_ms");
    row->p50 = time_or_none(target, "p50_ms");
    row->p99 = time_or_none(target, "p99_ms");
    row->failed_ago = time_or_none(target, "last_failure_ms_ago");
    row->probe_in = until(target, "probe_at", now);
    row->is_lag_exact = json_is_true(json_object_get(target, "is_lag_exact"));
    row->budget = thousandths_or_none(target, "budget_left");
    row->rate = STATUS_NONE;
    row->target = target;
}

/* -- pages ----------------------------------------------------------------- */

/* Rows point into the pages, so all pages are kept. */
static bool take_page(status_look *look, stg_remote *r, char cursor[512])
{
    char path[700];
    json_t *page = NULL;
    size_t size;

    if (cursor[0] == '\0')
        size =
            (size_t)snprintf(path, sizeof path, "/v1/targets?limit=%d", PAGE);
    else
        size = (size_t)snprintf(path, sizeof path,
                                "/v1/targets?limit=%d&cursor=%s", PAGE, cursor);
    if (size >= sizeof path || !stg_remote_call(r, "GET", path, NULL, &page))
        return false;
    (void)stg_remote_escape(stg_json_text_of(page, "next"), cursor, 512);
    return json_array_append_new(look->pages, page) == 0;
}

static bool take_pages(status_look *look, stg_remote *r)
{
    char cursor[512] = "";

    do {
        if (!take_page(look, r, cursor))
            return false;
    } while (cursor[0] != '\0');
    return true;
}

/* Also the order that bsearch() expects in find_rates(). */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const status_row *)a)->name, ((const status_row *)b)->name);
}

static const json_t *targets_of(const status_look *look, size_t page)
{
    return json_object_get(json_array_get(look->pages, page), "targets");
}

/* Room for one more, since calloc() of none may be NULL. */
static bool read_rows(status_look *look)
{
    size_t pages = json_array_size(look->pages), count = 0;

    for (size_t i = 0; i < pages; i++)
        count += json_array_size(targets_of(look, i));
    look->rows = calloc(count + 1, sizeof *look->rows);
    if (look->rows == NULL)
        return false;
    for (size_t i = 0; i < pages; i++) {
        const json_t *targets = targets_of(look, i);

        for (size_t k = 0; k < json_array_size(targets); k++)
            read_row(&look->rows[look->count++], json_array_get(targets, k),
                     look->at);
    }
    status_look_order(look);
    return true;
}

/* -- rates ----------------------------------------------------------------- */

/* A target that is new, or whose count went back, has no rate yet. */
static void find_rates(status_look *look, const status_look *before)
{
    stg_ns span = stg_ns_sub(look->at, before->at);

    if (span == 0)
        return;
    for (size_t i = 0; i < look->count; i++) {
        status_row *row = &look->rows[i];
        const status_row *then =
            bsearch(row, before->rows, before->count, sizeof *row, by_name);

        if (then != NULL && row->delivered >= then->delivered)
            row->rate = (uint64_t)((double)(row->delivered - then->delivered) *
                                       1e12 / (double)span +
                                   0.5);
    }
}

static void read_times(status_look *look)
{
    look->at = read_time(stg_json_text_of(look->hub, "now"));
    look->up = stg_ns_sub(look->at,
                          read_time(stg_json_text_of(look->hub, "started_at")));
}

/* The status comes first, as its clock is what the instants of the rows are
 * compared with. */
static bool take(status_look *look, stg_remote *r)
{
    if (!stg_remote_call(r, "GET", "/v1/status", NULL, &look->hub))
        return false;
    read_times(look);
    return take_pages(look, r) && read_rows(look);
}

/* `before` must be in order of name, as it is searched. On failure *look is
 * empty, and needs no free. */
bool status_look_take(status_look *look, stg_remote *r,
                      const status_look *before)
{
    *look = (status_look){.pages = json_array()};
    if (look->pages == NULL || !take(look, r)) {
        status_look_free(look);
        return false;
    }
    if (before != NULL)
        find_rates(look, before);
    return true;
}

/* May be called twice, and for one that is all zeros. */
void status_look_free(status_look *look)
{
    json_decref(look->hub);
    json_decref(look->pages);
    free(look->rows);
    *look = (status_look){.hub = NULL};
}

/* -- the worst first ------------------------------------------------------- */

/* Higher is worse. A paused target is somebody's decision, and an orphaned one
 * waits for one: both are below those that fail. */
static unsigned badness(const status_row *row)
{
    static const char *const states[] = {"shedding", "circuit-open", "disabled",
                                         "throttled", "removing"};
    enum { STATES = sizeof states / sizeof *states };

    for (unsigned i = 0; i < STATES; i++)
        if (strcmp(row->state, states[i]) == 0)
            return STATES + 4 - i;
    if (!row->is_known)
        return 1;
    if (strcmp(row->state, "live") != 0)
        return 2; // paused, by someone
    if (status_is_failing(row))
        return 4;
    return row->is_catching_up || row->parked > 0 ? 3 : 0;
}

static uint64_t backlog(const status_row *row)
{
    uint64_t lag = row->lag == STATUS_NONE ? 0 : row->lag;

    return row->parked + row->waiting + lag;
}

static int by_badness(const void *a, const void *b)
{
    const status_row *one = a, *other = b;
    unsigned bad = badness(one), worse = badness(other);

    if (bad != worse)
        return bad < worse ? 1 : -1;
    if (bad > 0 && backlog(one) != backlog(other))
        return backlog(one) < backlog(other) ? 1 : -1;
    return by_name(a, b);
}

void status_look_sort(status_look *look)
{
    qsort(look->rows, look->count, sizeof *look->rows, by_badness);
}

void status_look_order(status_look *look)
{
    qsort(look->rows, look->count, sizeof *look->rows, by_name);
}

/* -- faults ----------------------------------------------------------------- */

bool status_is_failing(const status_row *row)
{
    return row->failed_ago < STG_MIN;
}

/* The states in which probes are sent. */
static bool is_probed(const status_row *row)
{
    return strcmp(row->state, "circuit-open") == 0 ||
           strcmp(row->state, "shedding") == 0;
}

/* What stands behind the name of the fault; "": nothing is known. */
static const char *when_text(const status_row *row, bool is_roomy,
                             char text[32])
{
    char age[8];

    text[0] = '\0';
    if (is_probed(row) && strcmp(row->breaker, "half-open") == 0)
        snprintf(text, 32, "probing");
    else if (is_probed(row) && row->probe_in != STATUS_NONE)
        snprintf(text, 32, "probe %s%s", is_roomy ? "in " : "",
                 status_time(row->probe_in, STATUS_WHOLE, age));
    else if (row->failed_ago != STATUS_NONE)
        snprintf(text, 32, "%s ago",
                 status_time(row->failed_ago, STATUS_WHOLE, age));
    return text;
}

const char *status_fault(const status_row *row, bool is_roomy,
                         char text[STATUS_FAULT_MAX])
{
    const char *cause = row->is_known ? row->cause : "not in settings";
    char when[32] = "";

    if (row->is_known && !row->lacks_token)
        when_text(row, is_roomy, when);
    snprintf(text, STATUS_FAULT_MAX, "%s%s%s", cause,
             cause[0] != '\0' && when[0] != '\0' ? " " : "", when);
    return text[0] != '\0' ? text : memcpy(text, "-", sizeof "-");
}
