/* Writes the log: a line an event, one line a window for events that repeat, and
 * one line a second for events that happen to many targets (log_fold.h).
 *
 * Logging never blocks: a line for which the descriptor has no room is dropped
 * and counted, and the count is the next line that is written. A listener
 * hears of every event, also of those whose line was dropped or folded. */
#include "host/log.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/list.h"
#include "host/log_fold.h"
#include "host/wall.h"

enum {
    SERIES_MAX = 256,
    SAME_ROOM = 1024, /* bytes of the fields that make a series */
    REST_ROOM = 512,  /* and of the others, as the last event had them */
    EVENT_MAX = 64,
    FACT_ROOM = 128, /* bytes of a cause or a subject */
};

/* A line is printed in two forms: as the options say, and for the listener. */
typedef enum form { OWN, HEARD, FORMS } form;

/* Fields of an event as one form has them. */
typedef struct kept {
    size_t same_size, rest_size;
    char same[SAME_ROOM], rest[REST_ROOM];
} kept;

/* Events that are the same, in a window that has not ended. */
typedef struct series {
    stg_link link;
    uint64_t hash;
    stg_log_level level;
    stg_ns end_at;  /* of the window */
    uint64_t since; /* UTC of its beginning */
    uint64_t repeats;
    char event[EVENT_MAX];
    stg_log_fact fact; /* texts: in event, cause and subject */
    char cause[FACT_ROOM], subject[FACT_ROOM];
    kept fields[FORMS];
} series;

/* What a line says. */
typedef struct news {
    stg_log_now now;
    stg_log_level level;
    const char *event;
    const stg_field *fields;
    size_t count;
    const series *series; /* NULL: it is one event; else these are around it */
    bool is_always;       /* never folded */
} news;

struct stg_log {
    stg_log_options options;
    stg_hash_seed seed; /* nobody makes two events that pass for one */
    stg_list series;    /* the one that was silent for longest first */
    size_t series_count;
    stg_log_fold *fold;      /* owned */
    uint64_t dropped;        /* lines, to be told */
    uint64_t dropped_before; /* and told */
    bool is_gone;            /* nobody reads any more */
    stg_log_heard_fn *heard; /* NULL: nobody listens */
    void *heard_ctx;
};

static stg_ns read_clock(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return stg_ns_add(stg_ns_mul(STG_S, (uint64_t)t.tv_sec), (stg_ns)t.tv_nsec);
}

static stg_log_now read_clocks(void *ctx)
{
    (void)ctx;
    return (stg_log_now){read_clock(CLOCK_MONOTONIC),
                         read_clock(CLOCK_REALTIME)};
}

/* NO_COLOR counts only where it has a value (no-color.org). */
stg_log_options stg_log_options_default(void)
{
    const char *no_colour = getenv("NO_COLOR");

    return (stg_log_options){
        .fd = STDERR_FILENO,
        .is_colour = isatty(STDERR_FILENO) &&
                     (no_colour == NULL || no_colour[0] == '\0'),
        .least = STG_LOG_INFO,
        .window = 10 * STG_S,
        .clock = read_clocks,
    };
}

/* -- fields ------------------------------------------------------------------ */

stg_field stg_field_text(const char *name, const char *text)
{
    return stg_field_span(name,
                          (stg_span){text, text == NULL ? 0 : strlen(text)});
}

stg_field stg_field_span(const char *name, stg_span text)
{
    return (stg_field){.name = name, .kind = STG_FIELD_TEXT, .text = text};
}

stg_field stg_field_number(const char *name, uint64_t number)
{
    return (stg_field){
        .name = name, .kind = STG_FIELD_NUMBER, .number = number};
}

stg_field stg_field_bool(const char *name, bool is_true)
{
    return (stg_field){.name = name, .kind = STG_FIELD_BOOL, .number = is_true};
}

stg_field stg_field_time(const char *name, stg_ns ns)
{
    return (stg_field){.name = name, .kind = STG_FIELD_TIME, .number = ns};
}

/* -- lines go out ------------------------------------------------------------ */

static void init_line(stg_log_line *line, const stg_log *l, form f, size_t room)
{
    const stg_log_options json = {.is_json = true};

    stg_log_line_init(line, f == OWN ? &l->options : &json, room);
}

static void print(stg_log_line *line, const stg_log *l, form f, const news *n)
{
    const kept *around = n->series == NULL ? NULL : &n->series->fields[f];

    init_line(line, l, f, sizeof line->text);
    stg_log_line_head(line, n->now.utc, n->level, n->event);
    if (around != NULL)
        stg_log_line_raw(line, around->same, around->same_size);
    stg_log_line_fields(line, n->fields, n->count);
    if (around != NULL)
        stg_log_line_raw(line, around->rest, around->rest_size);
    stg_log_line_end(line);
}

/* A write of a line that poll() has room for does not wait, and the flags of a
 * stderr that others share stay as they are. */
static bool write_line(stg_log *l, const stg_log_line *line)
{
    struct pollfd p = {.fd = l->options.fd, .events = POLLOUT};

    if (poll(&p, 1, 0) != 1)
        return false;
    l->is_gone = (p.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    if (l->is_gone)
        return false;
    return write(l->options.fd, line->text, line->size) == (ssize_t)line->size;
}

/* Says how many lines are missing, ahead of the next one; tried again with
 * each line until it is written. */
static void tell_dropped(stg_log *l, stg_log_now now)
{
    stg_field lines = stg_field_number("lines", l->dropped);
    stg_log_line line;

    if (l->dropped == 0)
        return;
    print(
        &line, l, OWN,
        &(news){now, STG_LOG_WARN, "log-lines-dropped", &lines, 1, NULL, true});
    if (!write_line(l, &line))
        return;
    l->dropped_before += l->dropped;
    l->dropped = 0;
}

/* While the count of dropped lines cannot be written, no line is: a reader
 * sees where they are missing. */
static bool log_write(stg_log *l, const news *n)
{
    stg_log_line line;

    print(&line, l, OWN, n);
    tell_dropped(l, n->now);
    return l->dropped == 0 && write_line(l, &line);
}

static void log_let_hear(stg_log *l, const news *n)
{
    stg_log_line line;

    print(&line, l, HEARD, n);
    line.text[--line.size] = '\0';
    l->heard(l->heard_ctx, n->level, n->event,
             (stg_span){line.text, line.size});
}

/* With level debug everything is written. */
static bool log_admits(stg_log *l, const news *n)
{
    stg_log_fact fact;

    if (n->is_always || l->options.least == STG_LOG_DEBUG)
        return true;
    if (n->series != NULL) {
        fact = n->series->fact;
        fact.events = n->series->repeats;
    } else {
        fact = stg_log_fact_of(n->level, n->event, n->fields, n->count);
    }
    return stg_log_fold_admit(l->fold, &fact, n->now);
}

/* Returns whether anybody was told: false where the line is folded, and nobody
 * listens. */
static bool tell(stg_log *l, const news *n)
{
    bool is_admitted = log_admits(l, n);

    if (is_admitted && !log_write(l, n))
        l->dropped++;
    if (l->heard != NULL)
        log_let_hear(l, n);
    return is_admitted || l->heard != NULL;
}

/* A fold is not dropped while somebody may read it later: its count would be
 * lost. */
static bool log_write_folded(void *ctx, const stg_log_folded *line,
                             stg_log_now now)
{
    stg_log *l = ctx;

    if (log_write(l, &(news){now, line->level, line->event, line->fields,
                             line->count, NULL, true}))
        return true;
    l->dropped += l->is_gone;
    return l->is_gone;
}

static void log_any_event(stg_log *l, stg_log_level level, const char *event,
                          const stg_field *fields, size_t count, bool is_always)
{
    if (l == NULL || level < l->options.least)
        return;
    (void)tell(l, &(news){l->options.clock(l->options.ctx), level, event,
                          fields, count, NULL, is_always});
}

void stg_log_event(stg_log *l, stg_log_level level, const char *event,
                   const stg_field *fields, size_t count)
{
    log_any_event(l, level, event, fields, count, false);
}

void stg_log_always(stg_log *l, stg_log_level level, const char *event,
                    const stg_field *fields, size_t count)
{
    log_any_event(l, level, event, fields, count, true);
}

/* -- series ------------------------------------------------------------------ */

/* Of what was hashed before, and the bytes. What was hashed before becomes a
 * part of the seed. */
static uint64_t hash_on(const stg_log *l, uint64_t hash, const void *bytes,
                        size_t size)
{
    const stg_hash_seed seed = {{l->seed.at[0] ^ hash, l->seed.at[1]}};

    return stg_hash(&seed, bytes, size);
}

static uint64_t hash_event(const stg_log *l, const char *event,
                           const stg_field *fields, size_t count)
{
    uint64_t hash = hash_on(l, 0, event, strlen(event));

    for (size_t i = 0; i < count; i++) {
        const stg_field *f = &fields[i];

        hash = hash_on(l, hash, f->name, strlen(f->name));
        hash = hash_on(l, hash, &f->number, sizeof f->number);
        hash = hash_on(l, hash, f->text.at, f->text.size);
    }
    return hash;
}

/* By the hash alone: 64 bits under a secret seed. From the newest on, for what
 * repeats has mostly come just now. */
static series *find_series(const stg_log *l, uint64_t hash)
{
    for (stg_link *at = stg_list_last(&l->series); at != NULL;
         at = stg_list_prev(&l->series, at)) {
        series *s = STG_HOLDER(at, series, link);

        if (s->hash == hash)
            return s;
    }
    return NULL;
}

static void tell_series(stg_log *l, const series *s, stg_log_now now)
{
    char since[STG_UTC_TEXT_MAX];
    stg_field counted[] = {
        stg_field_number("repeated", s->repeats),
        stg_field_text("since", stg_utc_text(s->since, since)),
    };

    (void)tell(l, &(news){now, s->level, s->event, counted, 2, s, false});
}

static void forget_series(stg_log *l, series *s, stg_log_now now)
{
    if (s->repeats > 0)
        tell_series(l, s, now);
    stg_list_remove(&s->link);
    l->series_count--;
    free(s);
}

static void begin_window(const stg_log *l, series *s, stg_log_now now)
{
    s->end_at = stg_ns_add(now.now, l->options.window);
    s->since = now.utc;
    s->repeats = 0;
}

/* The window's end: the next one begins if there is something to count. NULL:
 * there was not, and the series is gone. */
static series *end_window(stg_log *l, series *s, stg_log_now now)
{
    if (s->repeats == 0) {
        forget_series(l, s, now);
        return NULL;
    }
    tell_series(l, s, now);
    begin_window(l, s, now);
    return s;
}

static size_t keep_fields(const stg_log *l, form f, char *text, size_t room,
                          const stg_field *fields, size_t count)
{
    stg_log_line line;

    init_line(&line, l, f, room);
    stg_log_line_fields(&line, fields, count);
    memcpy(text, line.text, line.size);
    return line.size;
}

static stg_span log_keep_text(char room[FACT_ROOM], stg_span text)
{
    size_t size = text.size < FACT_ROOM ? text.size : FACT_ROOM;

    if (text.at == NULL)
        return text;
    memcpy(room, text.at, size);
    return (stg_span){room, size};
}

/* Keeps what the lines of a series are about. */
static void log_keep_fact(series *s, const stg_field *fields, size_t same)
{
    stg_log_fact *fact = &s->fact;

    *fact = stg_log_fact_of(s->level, s->event, fields, same);
    fact->cause.text = log_keep_text(s->cause, fact->cause.text);
    fact->subject = log_keep_text(s->subject, fact->subject);
}

/* Without memory there is no series, and every event is printed. Where there
 * are too many, the one that was silent for longest ends early, and its count
 * is told. */
static void begin_series(stg_log *l, stg_log_now now, uint64_t hash,
                         stg_log_level level, const char *event,
                         const stg_field *fields, size_t same)
{
    series *s = malloc(sizeof *s);

    if (s == NULL)
        return;
    if (l->series_count == SERIES_MAX)
        forget_series(l, STG_HOLDER(stg_list_first(&l->series), series, link),
                      now);
    s->hash = hash;
    s->level = level;
    strncpy(s->event, event, sizeof s->event - 1);
    s->event[sizeof s->event - 1] = '\0';
    log_keep_fact(s, fields, same);
    for (form f = OWN; f < FORMS; f++) {
        kept *k = &s->fields[f];

        k->same_size = keep_fields(l, f, k->same, sizeof k->same, fields, same);
        k->rest_size = 0;
    }
    begin_window(l, s, now);
    stg_list_push(&l->series, &s->link);
    l->series_count++;
}

/* The window is looked at when the event comes, too: a tick that is late loses
 * no count. */
void stg_log_repeat(stg_log *l, stg_log_level level, const char *event,
                    const stg_field *fields, size_t count, size_t same)
{
    uint64_t hash;
    stg_log_now now;
    series *s;

    if (l == NULL || level < l->options.least)
        return;
    now = l->options.clock(l->options.ctx);
    hash = hash_event(l, event, fields, same);
    s = find_series(l, hash);
    if (s != NULL && now.now >= s->end_at)
        s = end_window(l, s, now);
    if (s == NULL) {
        if (tell(l, &(news){now, level, event, fields, count, NULL, false}))
            begin_series(l, now, hash, level, event, fields, same);
        return;
    }
    s->repeats++;
    for (form f = OWN; f < FORMS; f++) {
        kept *k = &s->fields[f];

        if (f == OWN || l->heard != NULL)
            k->rest_size = keep_fields(l, f, k->rest, sizeof k->rest,
                                       fields + same, count - same);
    }
    stg_list_remove(&s->link);
    stg_list_push(&l->series, &s->link);
}

stg_ns stg_log_tick(stg_log *l)
{
    stg_ns next_at = STG_NEVER, wait;
    stg_link *next;
    stg_log_now now;

    if (l == NULL)
        return STG_NEVER;
    now = l->options.clock(l->options.ctx);
    tell_dropped(l, now);
    for (stg_link *at = stg_list_first(&l->series); at != NULL; at = next) {
        series *s = STG_HOLDER(at, series, link);

        next = stg_list_next(&l->series, at);
        if (now.now < s->end_at)
            next_at = stg_ns_min(next_at, s->end_at);
        else if (s->repeats > 0)
            next_at = stg_ns_min(next_at, now.now + l->options.window);
        if (now.now >= s->end_at)
            (void)end_window(l, s, now);
    }
    next_at = stg_ns_min(next_at, stg_log_fold_tick(l->fold, now));
    wait = next_at == STG_NEVER ? STG_NEVER : stg_ns_sub(next_at, now.now);
    return l->dropped > 0 && !l->is_gone ? stg_ns_min(wait, STG_S) : wait;
}

uint64_t stg_log_dropped(const stg_log *l)
{
    return l == NULL ? 0 : l->dropped_before + l->dropped;
}

void stg_log_listen(stg_log *l, stg_log_heard_fn *heard, void *ctx)
{
    if (l == NULL)
        return;
    l->heard = heard;
    l->heard_ctx = ctx;
}

/* -- begin and end ----------------------------------------------------------- */

stg_log *stg_log_new(const stg_log_options *o)
{
    stg_log *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->options = *o;
    l->seed = stg_hash_seed_draw(stg_env_system());
    stg_list_init(&l->series);
    l->fold = stg_log_fold_new(&l->seed, log_write_folded, l);
    if (l->fold != NULL)
        return l;
    free(l);
    return NULL;
}

void stg_log_set_least(stg_log *l, stg_log_level least)
{
    if (l == NULL)
        return;
    if (least == STG_LOG_DEBUG)
        stg_log_fold_flush(l->fold, l->options.clock(l->options.ctx));
    l->options.least = least;
}

void stg_log_flush(stg_log *l)
{
    stg_log_now now;
    stg_link *at;

    if (l == NULL)
        return;
    now = l->options.clock(l->options.ctx);
    while ((at = stg_list_first(&l->series)) != NULL)
        forget_series(l, STG_HOLDER(at, series, link), now);
    stg_log_fold_flush(l->fold, now);
    tell_dropped(l, now);
}

void stg_log_free(stg_log *l)
{
    if (l == NULL)
        return;
    stg_log_flush(l);
    stg_log_fold_free(l->fold);
    free(l);
}
