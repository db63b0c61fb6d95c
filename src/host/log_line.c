/* A log line is made in a buffer of fixed size: a field that has no room is left
 * out whole, and the line says cut=true. So printing allocates nothing and cannot
 * fail, and what is printed is valid logfmt or JSON, whatever bytes a value
 * has. */
#include "host/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/visible.h"
#include "host/wall.h"

enum {
    VALUE_MAX = 1024, /* bytes of a value as printed, without its "..." */
    TAIL = 16,        /* of the room: for stg_log_line_end() */
    STEP_MAX = 16,    /* bytes that one character of a value takes at most */
};

#define FAINT "\033[2m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

void stg_log_line_init(stg_log_line *l, const stg_log_options *o, size_t room)
{
    assert(room >= 2 * TAIL && room <= sizeof l->text);
    l->is_json = o->is_json;
    l->is_colour = o->is_colour && !o->is_json;
    l->is_begun = true;
    l->is_cut = false;
    l->room = room;
    l->size = 0;
}

/* -- bytes; a line without room for them is cut ----------------------------- */

/* Leaves TAIL bytes free, so that the end of the line always fits. */
void stg_log_line_raw(stg_log_line *l, const char *text, size_t size)
{
    if (l->is_cut || size > l->room - TAIL - l->size) {
        l->is_cut = true;
        return;
    }
    memcpy(l->text + l->size, text, size);
    l->size += size;
}

static void add(stg_log_line *l, const char *text)
{
    stg_log_line_raw(l, text, strlen(text));
}

static void add_colour(stg_log_line *l, const char *colour)
{
    if (l->is_colour)
        add(l, colour);
}

/* -- text, escaped ----------------------------------------------------------- */

/* The character at the start of `text` as the line has it; returns the bytes of
 * the text that it stands for. */
static size_t escape(const stg_log_line *l, stg_span text, char step[STEP_MAX])
{
    static const char named[] = "\"\\\n\r\t", letters[] = "\"\\nrt";
    stg_visible_char c =
        stg_visible_next(text.at, text.size, STG_VISIBLE_IN_LINE);
    const char *found = *text.at == '\0' ? NULL : strchr(named, *text.at);

    if (found != NULL)
        snprintf(step, STEP_MAX, "\\%c", letters[found - named]);
    else if (!c.is_valid && !l->is_json)
        snprintf(step, STEP_MAX, "\\x%02x", (unsigned char)*text.at);
    else if (!c.is_visible)
        step[stg_visible_escape(c.code, step)] = '\0';
    else
        snprintf(step, STEP_MAX, "%.*s", (int)c.size, text.at);
    return c.size;
}

/* A long value is cut between characters, never inside of an escape. */
static void add_escaped(stg_log_line *l, stg_span text)
{
    char step[STEP_MAX];
    size_t end = l->size + VALUE_MAX;

    for (size_t i = 0; i < text.size && !l->is_cut;) {
        i += escape(l, (stg_span){text.at + i, text.size - i}, step);
        if (l->size + strlen(step) > end) {
            add(l, "...");
            return;
        }
        add(l, step);
    }
}

/* logfmt writes a value bare where nobody can misread it. */
static bool is_bare(stg_span text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.at[i] <= ' ' || text.at[i] > '~' ||
            strchr("\"=\\", text.at[i]) != NULL)
            return false;
    return text.size > 0;
}

static void add_text(stg_log_line *l, stg_span text)
{
    bool is_quoted = l->is_json || !is_bare(text);

    if (is_quoted)
        add(l, "\"");
    add_escaped(l, text);
    if (is_quoted)
        add(l, "\"");
}

/* -- fields ------------------------------------------------------------------ */

/* In JSON the unit is a part of the name, so that a number stays a number. */
static void add_name(stg_log_line *l, const char *name, const char *unit)
{
    char text[128];

    snprintf(text, sizeof text, l->is_json ? "%s\"%s%s\":" : "%s%s%s=",
             !l->is_begun ? ""
             : l->is_json ? ","
                          : " ",
             name, unit);
    l->is_begun = true;
    add_colour(l, FAINT);
    add(l, text);
    add_colour(l, PLAIN);
}

static void add_number(stg_log_line *l, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    add(l, text);
}

/* Milliseconds, with as many digits behind the point as there are. */
static void add_ms(stg_log_line *l, stg_ns ns)
{
    char text[40];
    int length = snprintf(text, sizeof text, "%" PRIu64 ".%06" PRIu64,
                          ns / STG_MS, ns % STG_MS);

    while (text[length - 1] == '0')
        length--;
    if (text[length - 1] == '.')
        length--;
    stg_log_line_raw(l, text, (size_t)length);
}

static void add_time(stg_log_line *l, stg_ns ns)
{
    char text[STG_NS_TEXT_MAX];

    if (!l->is_json)
        add_text(l, (stg_span){text, strlen(stg_ns_text(ns, text))});
    else if (ns == STG_NEVER)
        add(l, "null");
    else
        add_ms(l, ns);
}

static void add_field(stg_log_line *l, const stg_field *f)
{
    add_name(l, f->name, l->is_json && f->kind == STG_FIELD_TIME ? "_ms" : "");
    switch (f->kind) {
    case STG_FIELD_TEXT:
        add_text(l, f->text);
        break;
    case STG_FIELD_NUMBER:
        add_number(l, f->number);
        break;
    case STG_FIELD_TIME:
        add_time(l, f->number);
        break;
    case STG_FIELD_BOOL:
        add(l, f->number != 0 ? "true" : "false");
        break;
    }
}

void stg_log_line_fields(stg_log_line *l, const stg_field *fields, size_t count)
{
    for (size_t i = 0; i < count && !l->is_cut; i++) {
        size_t size = l->size;

        if (fields[i].kind == STG_FIELD_TEXT && fields[i].text.at == NULL)
            continue;
        add_field(l, &fields[i]);
        if (l->is_cut)
            l->size = size;
    }
}

/* -- the whole --------------------------------------------------------------- */

const char *const stg_log_levels[] = {"debug", "info", "warn", "error", NULL};

static const char *level_colour(stg_log_level level)
{
    static const char *const colours[] = {"\033[2m", "\033[32m", "\033[33m",
                                          "\033[31m"};

    return colours[level];
}

static void add_word(stg_log_line *l, const char *name, const char *colour,
                     const char *word)
{
    add_name(l, name, "");
    add_colour(l, colour);
    add_text(l, (stg_span){word, strlen(word)});
    add_colour(l, PLAIN);
}

void stg_log_line_head(stg_log_line *l, uint64_t utc, stg_log_level level,
                       const char *event)
{
    char time[STG_UTC_TEXT_MAX];

    if (l->is_json)
        add(l, "{");
    l->is_begun = false;
    add_word(l, "time", FAINT, stg_utc_text(utc, time));
    add_word(l, "level", level_colour(level), stg_log_levels[level]);
    add_word(l, "event", BOLD, event);
}

void stg_log_line_end(stg_log_line *l)
{
    const char *cut = "";

    if (l->is_cut)
        cut = l->is_json ? ",\"cut\":true" : " cut=true";
    l->size += (size_t)snprintf(l->text + l->size, TAIL, "%s%s\n", cut,
                                l->is_json ? "}" : "");
}
