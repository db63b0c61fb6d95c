/* log.h - what the hub tells its operator: one structured line an event.
 *
 *     STG_LOG(log, STG_LOG_WARN, "attempt-failed", stg_field_text("target", t),
 *             stg_field_number("attempt", 3), stg_field_time("wait", wait));
 *
 *     time=2026-03-01T12:00:00.250Z level=warn event=attempt-failed target=a
 *     attempt=3 wait="1.5 s"
 *
 * logfmt, or JSON; in colours where logfmt goes to a terminal and NO_COLOR is
 * not set. A line is one write() of STG_LOG_LINE_MAX bytes at most: a value above
 * 1 KiB is cut and ends in "...", and a line that has no room for its last
 * fields ends in cut=true. Whatever the bytes of a value are, the line is valid
 * UTF-8 without control characters.
 *
 * An event with one cause has ten lines a second at most, over all targets: the
 * rest are counted, and told by one line a second (log_fold.h). Level debug
 * folds nothing.
 *
 * Logging never waits: while the other end does not read, lines are dropped and
 * counted, and the count is told as soon as it reads again. It cannot fail, and
 * a NULL log is none. All on one thread. */
#ifndef STAGGER_HOST_LOG_H
#define STAGGER_HOST_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stagger/ns.h>

#include "base/span.h"

typedef struct stg_log stg_log;

enum { STG_LOG_LINE_MAX = 4096 }; /* a pipe takes so much whole, or nothing */

typedef enum stg_log_level {
    STG_LOG_DEBUG,
    STG_LOG_INFO,
    STG_LOG_WARN,
    STG_LOG_ERROR,
} stg_log_level;

extern const char *const stg_log_levels[]; /* their names, ended by NULL */

/* What time it is; the log asks once for each event. */
typedef struct stg_log_now {
    stg_ns now;   /* monotonic */
    uint64_t utc; /* ns since 1970, for people */
} stg_log_now;

typedef struct stg_log_options {
    int fd; /* 2; not closed by the log */
    bool is_json;
    bool is_colour;      /* of logfmt */
    stg_log_level least; /* what is below is not printed: STG_LOG_INFO */
    stg_ns window;       /* for what stg_log_repeat() counts: 10 s */
    stg_log_now (*clock)(void *ctx); /* the system's */
    void *ctx;
} stg_log_options;

/* stderr as logfmt, in colours if it is a terminal and NO_COLOR is not set. */
stg_log_options stg_log_options_default(void);

/* NULL when there is no memory. */
stg_log *stg_log_new(const stg_log_options *o);

/* From now on what is below is not printed. STG_LOG_DEBUG tells first what is
 * folded. */
void stg_log_set_least(stg_log *l, stg_log_level least);

/* Hears every line, as an object of JSON, which is lent and ends in a NUL behind
 * its size: {"time":"..","level":"..","event":"..",...}. It must not log. One
 * listener; NULL: nobody listens any more. Lines are not folded for the
 * listener. Of what was counted before it came,
 * some fields may be left out. */
typedef void stg_log_heard_fn(void *ctx, stg_log_level level, const char *event,
                              stg_span json);
void stg_log_listen(stg_log *l, stg_log_heard_fn *heard, void *ctx);

/* Tells what is counted and not yet told, in one second ten lines of an event and
 * cause at most. For the end: more calls within a second write more lines. */
void stg_log_flush(stg_log *l);

/* Flushes, and frees the log. */
void stg_log_free(stg_log *l);

/* -- what a line says ------------------------------------------------------ */

typedef struct stg_field {
    const char *name; /* of letters, digits and _ - . */
    enum {
        STG_FIELD_TEXT,
        STG_FIELD_NUMBER,
        STG_FIELD_TIME,
        STG_FIELD_BOOL,
    } kind;
    stg_span text;
    uint64_t number;
} stg_field;

/* NULL prints nothing, not even the name. */
stg_field stg_field_text(const char *name, const char *text);
stg_field stg_field_span(const char *name, stg_span text);
stg_field stg_field_number(const char *name, uint64_t number);
stg_field stg_field_bool(const char *name, bool is_true);

/* A duration: "1.5 s" in logfmt, milliseconds in JSON as NAME_ms; STG_NEVER is
 * "never", and null. */
stg_field stg_field_time(const char *name, stg_ns ns);

/* An event with the fields in their order. event: words-with-hyphens. */
void stg_log_event(stg_log *l, stg_log_level level, const char *event,
                   const stg_field *fields, size_t count);

/* Writes an event that is never folded: what the process itself or an operator
 * does, such as a stop, and the result of a reload. */
void stg_log_always(stg_log *l, stg_log_level level, const char *event,
                    const stg_field *fields, size_t count);

/* The same for what may come a thousand times a second. Events with the same
 * name whose first `same` fields are the same are one: the first is printed;
 * those that follow in the window are counted; at its end one line tells
 * `repeated`, `since`, and the other fields as the last one had them; then the
 * next window begins. A window without a repeat ends it. 256 different ones are
 * told apart; beyond that the one that was silent for longest is told and
 * forgotten. */
void stg_log_repeat(stg_log *l, stg_log_level level, const char *event,
                    const stg_field *fields, size_t count, size_t same);

/* Tells what is due. Returns how long until there is something to tell again:
 * STG_NEVER for nothing. To be called then, or more often. */
stg_ns stg_log_tick(stg_log *l);

/* Lines that were dropped since the start. */
uint64_t stg_log_dropped(const stg_log *l);

#define STG_LOG(log, level, event, ...)                                      \
    stg_log_event((log), (level), (event), (const stg_field[]){__VA_ARGS__}, \
                  sizeof((const stg_field[]){__VA_ARGS__}) /                 \
                      sizeof(stg_field))

#define STG_LOG_ALWAYS(log, level, event, ...)                                \
    stg_log_always((log), (level), (event), (const stg_field[]){__VA_ARGS__}, \
                   sizeof((const stg_field[]){__VA_ARGS__}) /                 \
                       sizeof(stg_field))

#define STG_LOG_REPEAT(log, level, event, same, ...)               \
    stg_log_repeat(                                                \
        (log), (level), (event), (const stg_field[]){__VA_ARGS__}, \
        sizeof((const stg_field[]){__VA_ARGS__}) / sizeof(stg_field), (same))

/* -- the text of a line, for the log itself -------------------------------------
 *
 * In a buffer of its own: fields are added while there is room, and what has
 * none is left out, whole. */

typedef struct stg_log_line {
    bool is_json, is_colour;
    bool is_begun; /* the next field has one before it */
    bool is_cut;   /* a field was left out */
    size_t room;   /* the most bytes of text, up to STG_LOG_LINE_MAX */
    size_t size;
    char text[STG_LOG_LINE_MAX];
} stg_log_line;

/* No field yet; for the end of a line that another one begins. */
void stg_log_line_init(stg_log_line *l, const stg_log_options *o, size_t room);

/* time, level and event. */
void stg_log_line_head(stg_log_line *l, uint64_t utc, stg_log_level level,
                       const char *event);

/* Fields, each with what separates it from the one before. */
void stg_log_line_fields(stg_log_line *l, const stg_field *fields,
                         size_t count);

/* Fields that another line holds already. */
void stg_log_line_raw(stg_log_line *l, const char *text, size_t size);

/* `cut`, if a field was left out, and the end of the line. There is room. */
void stg_log_line_end(stg_log_line *l);

#endif
