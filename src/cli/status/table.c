/* The table of `stagger status`. Each number has a fixed width of a few letters,
 * whatever it is, so that columns stand still while it is refreshed; names and
 * causes share what is left of the line. A cause that does not fit gets a line of
 * its own, and text wraps: what is wrong is never cut. Targets that do not fit the
 * screen are counted below. */
#include "cli/status/status.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/say.h"

/* -- short numbers --------------------------------------------------------- */

static const char *put(const char *what, char text[8])
{
    snprintf(text, 8, "%s", what);
    return text;
}

/* Three digits at most, and rounded down: a number never looks larger than it
 * is. */
const char *status_count(uint64_t number, char text[8])
{
    static const char units[] = " kMGTPE";
    unsigned unit = 0;
    uint64_t tenths = number;

    if (number == STATUS_NONE)
        return put("-", text);
    if (number < 1000) {
        snprintf(text, 8, "%" PRIu64, number);
        return text;
    }
    for (; number >= 1000; number /= 1000) {
        tenths = number / 100;
        unit++;
    }
    if (tenths < 100)
        snprintf(text, 8, "%u.%u%c", (unsigned)(tenths / 10),
                 (unsigned)(tenths % 10), units[unit]);
    else
        snprintf(text, 8, "%u%c", (unsigned)(tenths / 10), units[unit]);
    return text;
}

/* A larger unit begins late (100 min, 48 h), so that a whole number of it still
 * says enough. */
const char *status_time(stg_ns time, status_form form, char text[8])
{
    static const struct {
        stg_ns least[2]; // of each form
        stg_ns unit;
        const char *name;
    } units[] = {
        {{48 * STG_HOUR, 48 * STG_HOUR}, STG_DAY, "d"},
        {{100 * STG_MIN, 100 * STG_MIN}, STG_HOUR, "h"},
        {{100 * STG_S, STG_MIN}, STG_MIN, "m"},
        {{STG_S, 0}, STG_S, "s"},
        {{STG_MS, 0}, STG_MS, "ms"},
        {{0, 0}, STG_US, "us"},
    };
    size_t i = 0;
    stg_ns tenths;

    if (time == STATUS_NONE)
        return put("-", text);
    while (time < units[i].least[form])
        i++;
    tenths = time / (units[i].unit / 10);
    if (form == STATUS_TENTHS && tenths < 100 && units[i].unit <= STG_S &&
        units[i].unit >= STG_MS)
        snprintf(text, 8, "%u.%u%s", (unsigned)(tenths / 10),
                 (unsigned)(tenths % 10), units[i].name);
    else
        snprintf(text, 8, "%u%s", (unsigned)(tenths / 10 % 100000),
                 units[i].name);
    return text;
}

/* Of thousandths, with a place behind the point where they are few. */
static const char *rate_text(uint64_t rate, char text[8])
{
    if (rate == STATUS_NONE || rate >= 10000)
        return status_count(rate == STATUS_NONE ? rate : rate / 1000, text);
    if (rate == 0)
        return put("0", text);
    snprintf(text, 8, "%u.%u", (unsigned)(rate / 1000),
             (unsigned)(rate % 1000 / 100));
    return text;
}

/* More than the whole is shown as unknown. */
static const char *share_text(uint64_t thousandths, char text[8])
{
    if (thousandths == STATUS_NONE || thousandths > 1000)
        return put("-", text);
    snprintf(text, 8, "%u%%", (unsigned)(thousandths / 10));
    return text;
}

/* In floating point: part * 1000 may not fit 64 bits. */
static const char *part_text(uint64_t part, uint64_t whole, char text[8])
{
    return share_text(whole == 0 || part > whole
                          ? STATUS_NONE
                          : (uint64_t)((double)part * 1000 / (double)whole),
                      text);
}

/* -- lines ----------------------------------------------------------------- */

enum {
    WIDE = 118,
    NAME_LEAST = 12,
    NAME_MOST = 40,
    CAUSE_LEAST = 18, /* "HTTP_503 probe 12s" */
    CAUSE_WIDE = 24,
};

typedef struct sheet {
    const status_print_options *options;
    bool is_wide;
    int name, cause; /* widths of columns */
    unsigned lines;
} sheet;

static void end_line(sheet *s)
{
    fputs(s->options->end, stdout);
    s->lines++;
}

/* How much of text stands in a line: up to a blank, or else what fits. */
static size_t size_of_line(const sheet *s, const char *text)
{
    size_t width = (size_t)s->options->terminal.width, at = width;

    if (strlen(text) <= width)
        return strlen(text);
    while (at > 0 && text[at] != ' ')
        at--;
    return at > 0 ? at : width;
}

/* The rest of text behind its first line. */
static const char *next_line(const sheet *s, const char *text)
{
    text += size_of_line(s, text);
    return text + strspn(text, " ");
}

static unsigned count_lines(const sheet *s, const char *text)
{
    unsigned count = 0;

    for (; text != NULL && *text != '\0'; text = next_line(s, text))
        count++;
    return count;
}

/* Lines of their own, as many as the text needs. */
__attribute__((format(printf, 2, 3))) static void
put_line(sheet *s, const char *format, ...)
{
    char text[1100];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text[strcspn(text, "\n")] = '\0';
    for (const char *at = text; *at != '\0'; at = next_line(s, at)) {
        stg_say(stdout, "%.*s", (int)size_of_line(s, at), at);
        end_line(s);
    }
}

/* text, padded, or cut with a mark where it is longer. */
static void put_cut(const char *text, int width)
{
    if ((int)strlen(text) > width)
        printf("%.*s..", width - 2, text);
    else
        printf("%-*s", width, text);
}

static const char *style(const sheet *s, stg_style style)
{
    return stg_terminal_style(&s->options->terminal, style);
}

/* -- the hub --------------------------------------------------------------- */

static const json_t *part_of(const status_look *look, const char *name)
{
    return json_object_get(look->hub, name);
}

/* To all targets, over their lives. */
static uint64_t sum_delivered(const status_look *look)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < look->count; i++)
        sum += look->rows[i].delivered;
    return sum;
}

static void put_proxies(sheet *s, const json_t *hub)
{
    const json_t *all = json_object_get(hub, "proxies_down");
    char waiting[8];

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *p = json_array_get(all, i);

        put_line(s, "proxy %s is away: %s targets wait, uncounted: %s",
                 stg_json_text_of(p, "proxy"),
                 status_count(stg_json_count_of(p, "waiting_targets"), waiting),
                 stg_json_text_of(p, "detail"));
    }
}

/* The URL and all texts of the hub go through put_line(), which cleans them. */
static void put_hub(sheet *s, const char *url, const status_look *look)
{
    const json_t *store = part_of(look, "store");
    const json_t *memory = part_of(look, "memory");
    const json_t *uplink = part_of(look, "uplink");
    const char *missing = stg_json_text_of(look->hub, "missing");
    char up[8], accepted[8], delivered[8], flying[8], used[8], held[8],
        replays[8];
    uint64_t running = stg_json_count_of(look->hub, "replays_running");

    put_line(s, "stagger %s at %s: %s, up %s",
             stg_json_text_of(look->hub, "version"), url,
             stg_json_text_of(look->hub, "state"),
             status_time(look->up, STATUS_TENTHS, up));
    put_line(s, "%s", missing);
    put_line(s,
             "%s accepted, %s delivered, %s in flight, store %s, memory "
             "%s%s%s%s",
             status_count(stg_json_count_of(look->hub, "accepted"), accepted),
             status_count(sum_delivered(look), delivered),
             status_count(stg_json_count_of(look->hub, "in_flight"), flying),
             part_text(stg_json_count_of(store, "used_bytes"),
                       stg_json_count_of(store, "quota_bytes"), used),
             part_text(stg_json_count_of(memory, "held_bytes"),
                       stg_json_count_of(memory, "max_bytes"), held),
             running > 0 ? ", " : "",
             running > 0 ? status_count(running, replays) : "",
             running == 1  ? " replay"
             : running > 1 ? " replays"
                           : "");
    if (json_is_true(json_object_get(uplink, "is_down")))
        put_line(
            s,
            "no connection can be made, for want of a network or a name "
            "server: %s targets wait, uncounted",
            status_count(stg_json_count_of(uplink, "waiting_targets"), flying));
    put_proxies(s, look->hub);
}

enum { TOPICS_SHOWN = 4 };

/* "4 of orders, 2 of refunds": they come by topic. */
static void count_topics(const json_t *places, char *text, size_t size)
{
    size_t at = 0, shown = 0, count = json_array_size(places);

    text[0] = '\0';
    for (size_t i = 0, next; i < count && at < size; i = next) {
        const char *topic =
            stg_json_text_of(json_array_get(places, i), "topic");

        for (next = i + 1; next < count; next++)
            if (strcmp(stg_json_text_of(json_array_get(places, next), "topic"),
                       topic) != 0)
                break;
        if (shown++ == TOPICS_SHOWN) {
            snprintf(text + at, size - at, ", ...");
            return;
        }
        at += (size_t)snprintf(text + at, size - at, "%s%zu of %s",
                               i > 0 ? ", " : "", next - i, topic);
    }
}

/* Of a source that has partitions; of the queue the lines above say all. */
static void put_source(sheet *s, const status_look *look)
{
    const json_t *source = part_of(look, "source");
    const json_t *places = json_object_get(source, "partitions");
    char kind[32], topics[512], behind[8];
    uint64_t lag = 0;

    if (!json_is_array(places))
        return;
    snprintf(kind, sizeof kind, "%s", stg_json_text_of(source, "kind"));
    kind[0] = (char)toupper((unsigned char)kind[0]);
    for (size_t i = 0; i < json_array_size(places); i++)
        lag += stg_json_count_of(json_array_get(places, i), "lag_messages");
    count_topics(places, topics, sizeof topics);
    put_line(s, "%s: %zu partition%s%s%s, %s to read%s", kind,
             json_array_size(places), stg_plural(json_array_size(places)),
             topics[0] != '\0' ? ", " : "", topics, status_count(lag, behind),
             json_is_true(json_object_get(source, "is_away"))
                 ? "; it cannot be reached"
                 : "");
}

/* "3 live, 1 circuit-open" of the rows from `from` on. A state that is missing
 * from this list is not counted. */
static void count_states(const status_look *look, size_t from, char *text,
                         size_t size)
{
    static const char *const states[] = {
        "live",   "throttled", "circuit-open", "shedding",
        "paused", "disabled",  "orphaned",     "removing"};
    size_t at = 0;

    text[0] = '\0';
    for (size_t k = 0; k < sizeof states / sizeof *states; k++) {
        size_t count = 0;

        for (size_t i = from; i < look->count; i++)
            count += strcmp(look->rows[i].state, states[k]) == 0;
        if (count > 0 && at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%zu %s",
                                   at > 0 ? ", " : "", count, states[k]);
    }
}

/* ", 2 failing" of the rows from `from` on; "": none is. */
static const char *count_failing(const status_look *look, size_t from,
                                 char text[32])
{
    size_t count = 0;

    for (size_t i = from; i < look->count; i++)
        count += status_is_failing(&look->rows[i]);
    text[0] = '\0';
    if (count > 0)
        snprintf(text, 32, ", %zu failing", count);
    return text;
}

static void put_targets(sheet *s, const status_look *look)
{
    char states[160], failing[32];

    count_states(look, 0, states, sizeof states);
    put_line(s, "%zu target%s%s%s%s", look->count, stg_plural(look->count),
             count_failing(look, 0, failing), look->count > 0 ? ": " : "",
             states);
}

enum { REST_MAX = 300 };

/* Tells of the rows from `shown` on. Returns text. */
static const char *rest_text(const status_look *look, size_t shown,
                             char text[REST_MAX])
{
    char states[160], failing[32];

    count_states(look, shown, states, sizeof states);
    snprintf(text, REST_MAX, "and %zu more%s: %s (--all --once shows them)",
             look->count - shown, count_failing(look, shown, failing), states);
    return text;
}

/* -- the rows -------------------------------------------------------------- */

static void put_heading(sheet *s)
{
    fputs(style(s, STG_STYLE_FAINT), stdout);
    put_cut("target", s->name);
    printf(" %-12s", "state");
    if (s->is_wide)
        printf(" %9s", "delivered");
    printf(" %5s %*s %6s %5s", "per s", s->is_wide ? 9 : 4,
           s->is_wide ? "in flight" : "fly", "parked", "lag");
    if (s->is_wide)
        printf(" %6s", "oldest");
    printf(" %4s", "dead");
    if (s->is_wide)
        printf(" %5s", "p50");
    printf(" %5s", "p99");
    if (s->is_wide)
        printf(" %4s", "left");
    printf(" last fault%s", style(s, STG_STYLE_PLAIN));
    end_line(s);
}

/* The limit is what the hub found for the target, and changes by itself. */
static const char *flight_text(const sheet *s, const status_row *row,
                               char text[24])
{
    char now[8], most[8];

    status_count(row->in_flight, now);
    if (s->is_wide)
        snprintf(text, 24, "%s/%s", now,
                 status_count(row->in_flight_limit, most));
    else
        snprintf(text, 24, "%s", now);
    return text;
}

/* All that waits for its first attempt, also what a lane has taken, or has put
 * back. "45k+": there are more, which were not read yet. */
static const char *lag_text(const status_row *row, char text[16])
{
    bool is_known = row->lag != STATUS_NONE;
    char lag[8];

    snprintf(
        text, 16, "%s%s",
        status_count(is_known ? row->lag + row->waiting : STATUS_NONE, lag),
        is_known && !row->is_lag_exact ? "+" : "");
    return text;
}

/* Whether the row's fault fits its column, as text. */
static bool fault_fits(const sheet *s, const status_row *row,
                       char text[STATUS_FAULT_MAX])
{
    size_t room = (size_t)s->cause;

    return strlen(status_fault(row, true, text)) <= room ||
           strlen(status_fault(row, false, text)) <= room;
}

/* What is over is there, and strikes nobody. */
static void put_fault(sheet *s, const status_row *row)
{
    bool is_over = row->failed_ago != STATUS_NONE && !status_is_failing(row) &&
                   row->probe_in == STATUS_NONE;
    char text[STATUS_FAULT_MAX];
    int indent = 1, room = STATUS_FAULT_MAX;

    if (!fault_fits(s, row, text)) {
        end_line(s);
        status_fault(row, true, text);
        indent = s->name + 1;
        room = s->options->terminal.width - indent;
    }
    printf("%*s%s%.*s%s", indent, "",
           style(s, is_over ? STG_STYLE_FAINT : STG_STYLE_PLAIN), room, text,
           style(s, STG_STYLE_PLAIN));
}

/* A live target with a fault in the last minute is coloured as a warning. */
static void put_row(sheet *s, const status_row *row)
{
    bool is_well = strcmp(row->state, "live") == 0 && !status_is_failing(row);
    char a[8], b[8], c[16], flight[24];

    put_cut(row->name, s->name);
    printf(" %s%-12.12s%s", style(s, is_well ? STG_STYLE_GOOD : STG_STYLE_WARN),
           row->state, style(s, STG_STYLE_PLAIN));
    if (s->is_wide)
        printf(" %9s", status_count(row->delivered, a));
    printf(" %5s %*s %6s %5s", rate_text(row->rate, a), s->is_wide ? 9 : 4,
           flight_text(s, row, flight), status_count(row->parked, b),
           lag_text(row, c));
    if (s->is_wide)
        printf(" %6s", status_time(row->age, STATUS_TENTHS, a));
    printf(" %4s", status_count(row->dead, a));
    if (s->is_wide)
        printf(" %5s", status_time(row->p50, STATUS_TENTHS, a));
    printf(" %5s", status_time(row->p99, STATUS_TENTHS, a));
    if (s->is_wide)
        printf(" %4s", rate_text(row->budget, a));
    put_fault(s, row);
    end_line(s);
}

/* The name has what it needs, if that leaves room for the cause. */
static void share_width(sheet *s, const status_look *look)
{
    int rest = s->options->terminal.width - (s->is_wide ? 82 : 49);
    int name = NAME_LEAST, most;

    for (size_t i = 0; i < look->count; i++)
        if ((int)strlen(look->rows[i].name) > name)
            name = (int)strlen(look->rows[i].name);
    most = rest - (s->is_wide ? CAUSE_WIDE : CAUSE_LEAST);
    if (most > NAME_MOST)
        most = NAME_MOST;
    if (name > most)
        name = most;
    s->name = name < NAME_LEAST ? NAME_LEAST : name;
    s->cause = rest - s->name;
    if (s->cause < 8)
        s->cause = 8;
}

static bool has_orphans(const status_look *look)
{
    for (size_t i = 0; i < look->count; i++)
        if (strcmp(look->rows[i].state, "orphaned") == 0)
            return true;
    return false;
}

/* How many rows, from the first, stand in so many lines. */
static size_t rows_within(const sheet *s, const status_look *look,
                          unsigned lines)
{
    char text[STATUS_FAULT_MAX];
    unsigned used = 0;
    size_t i = 0;

    for (; i < look->count; i++) {
        used += fault_fits(s, &look->rows[i], text) ? 1 : 2;
        if (used > lines)
            break;
    }
    return i;
}

/* How many rows there is room for, with `behind` lines below them, and those for
 * the rows that are left. The table must not be higher than the screen: draw()
 * moves the cursor up by its lines, and cannot go above the top. */
static size_t room_for(const sheet *s, const status_look *look, unsigned behind)
{
    unsigned lines = s->options->lines, other = s->lines + behind;
    char text[REST_MAX];
    size_t room;

    if (lines == 0)
        return look->count;
    lines = lines > other ? lines - other : 0;
    room = rows_within(s, look, lines);
    if (room == look->count)
        return room;
    other = count_lines(s, rest_text(look, 0, text));
    return rows_within(s, look, lines > other ? lines - other : 0);
}

unsigned status_table_print(const status_print_options *options,
                            const char *hub, const status_look *look,
                            const char *notice)
{
    static const char orphans[] =
        "orphaned: not in the settings; stagger targets forget NAME ends it";
    sheet s = {.options = options, .is_wide = options->terminal.width >= WIDE};
    const char *advice = has_orphans(look) ? orphans : "";
    char text[REST_MAX];
    size_t room;

    share_width(&s, look);
    put_hub(&s, hub, look);
    put_source(&s, look);
    put_targets(&s, look);
    end_line(&s);
    if (look->count > 0)
        put_heading(&s);
    room =
        room_for(&s, look, count_lines(&s, notice) + count_lines(&s, advice));
    for (size_t i = 0; i < room; i++)
        put_row(&s, &look->rows[i]);
    if (room < look->count)
        put_line(&s, "%s", rest_text(look, room, text));
    put_line(&s, "%s", advice);
    put_line(&s, "%s", notice != NULL ? notice : "");
    return s.lines;
}

static const char *policy_of(const status_look *look, size_t row)
{
    return stg_json_text_of(look->rows[row].target, "policy");
}

static bool has_same_policy(const void *look, size_t a, size_t b)
{
    return strcmp(policy_of(look, a), policy_of(look, b)) == 0;
}

/* Targets of one policy are named together. */
void status_policies_print(const status_look *look)
{
    for (size_t i = 0; i < look->count; i++)
        if (policy_of(look, i)[0] != '\0')
            stg_say_policy(
                stdout, look->rows[i].name, policy_of(look, i),
                stg_count_same(i, look->count, has_same_policy, look));
}
