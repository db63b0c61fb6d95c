/* Which dead letters are meant: a filter, read from the query of a list or from
 * the body of a change.
 *
 * Both go through one table of texts, so that a name means the same in each.
 * A choice that reads well but can fit nothing (an id that this hub never gave, a cause
 * against a category) is no error: is_impossible is set, and callers answer
 * with nothing found, without asking the store.
 *
 * The filter points into the request's JSON: choice.json must live as long. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/internal.h"
#include "config/targets.h"
#include "host/wall.h"
#include "store/parcel.h"

/* A text of the request, and where it is for. */
typedef struct given {
    stg_choice *choice;
    const stg_admin *admin;
    stg_ask *ask;
    const char *name, *text;
} given;

static bool refuse(const given *g, const char *expected)
{
    stg_ask_refuse(g->ask, 400, "%s: expected %s", g->name, expected);
    return false;
}

static bool take_target(const given *g)
{
    g->choice->filter.target = g->text;
    return stg_target_is_name(g->text) || refuse(g, "the name of a target");
}

/* A cause may be a category as well: then both hold. */
static bool take_letter(stg_choice *c, const char *letter)
{
    c->is_impossible |=
        c->filter.category != NULL && strcmp(c->filter.category, letter) != 0;
    c->filter.category = letter;
    return true;
}

static bool take_cause(const given *g)
{
    stg_choice *c = g->choice;
    char near[STG_CAUSE_MAX], expected[STG_CAUSE_MAX + 80];

    if (!stg_cause_read(&c->cause, g->text, near)) {
        snprintf(expected, sizeof expected,
                 "a cause like HTTP_503 or refused%s%s%s",
                 near[0] == '\0' ? "" : "; did you mean ", near,
                 near[0] == '\0' ? "" : "?");
        return refuse(g, expected);
    }
    if (c->cause.category[0] != '\0')
        return take_letter(c, c->cause.category);
    c->filter.cause = c->cause.pattern;
    return true;
}

static bool take_category(const given *g)
{
    stg_choice *c = g->choice;
    char near[STG_CAUSE_MAX];

    if (!stg_cause_read(&c->category, g->text, near) ||
        c->category.category[0] == '\0')
        return refuse(g, "A, B, C or D");
    return take_letter(c, c->category.category);
}

static bool take_state(const given *g)
{
    g->choice->filter.state = g->text;
    return stg_letter_is_state(g->text) ||
           refuse(g, STG_LETTER_STATES_EXPECTED);
}

static bool take_time(const given *g, stg_ns *wall)
{
    return stg_instant_read(g->text, wall) ||
           refuse(g, "a time in UTC, like 2026-03-01T12:00:00Z");
}

static bool take_since(const given *g)
{
    return take_time(g, &g->choice->filter.since);
}

static bool take_until(const given *g)
{
    return take_time(g, &g->choice->filter.until);
}

/* An id of the right shape that the store does not know is impossible; a text
 * of another shape is refused. */
static bool take_message(const given *g)
{
    stg_letter_filter *f = &g->choice->filter;
    const stg_store *store = g->admin->hub->store;

    f->has_position = true;
    if (!stg_admin_is_id(g->text))
        return refuse(g, "the id of a message");
    g->choice->is_impossible |=
        !stg_store_find_id(store, g->text, &f->partition, &f->position);
    return true;
}

static const struct {
    const char *name;
    bool (*take)(const given *g);
    bool is_looked_at; /* only: what is changed is dead */
} texts[] = {
    {"target", take_target, false},     {"cause", take_cause, false},
    {"category", take_category, false}, {"since", take_since, false},
    {"until", take_until, false},       {"message", take_message, false},
    {"state", take_state, true},
};

enum { TEXTS = sizeof texts / sizeof *texts };

/* -- from a query ------------------------------------------------------------ */

bool stg_choice_read_query(stg_choice *c, const stg_admin *a, stg_ask *ask)
{
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < TEXTS; i++) {
        given g = {c, a, ask, texts[i].name,
                   stg_ask_option(ask, texts[i].name)};

        if (g.text != NULL && !texts[i].take(&g))
            return false;
    }
    return true;
}

/* -- from a body ------------------------------------------------------------- */

/* Numbers of letters, from 1; at most as many as fit into choice.ids. */
static bool take_ids(stg_choice *c, stg_ask *ask, const json_t *value)
{
    size_t count = json_array_size(value);

    if (!json_is_array(value) || count == 0 ||
        count > sizeof c->ids / sizeof *c->ids) {
        stg_ask_refuse(ask, 400, "ids: expected a list of 1 to 1000 numbers");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(value, i);

        if (!json_is_integer(id) || json_integer_value(id) < 1) {
            stg_ask_refuse(ask, 400, "ids: expected numbers from 1");
            return false;
        }
        c->ids[i] = (uint64_t)json_integer_value(id);
    }
    c->filter.ids = c->ids;
    c->filter.id_count = count;
    return true;
}

static bool take_text(stg_choice *c, const stg_admin *a, stg_ask *ask,
                      const char *name, const json_t *value)
{
    given g = {c, a, ask, name, json_string_value(value)};

    for (size_t i = 0; i < TEXTS; i++) {
        if (texts[i].is_looked_at || strcmp(name, texts[i].name) != 0)
            continue;
        return g.text == NULL ? refuse(&g, "a text") : texts[i].take(&g);
    }
    stg_ask_refuse(
        ask, 400,
        "%.40s: there is no such field; expected ids, target, cause, "
        "category, since, until, message, all or dry_run",
        name);
    return false;
}

static bool take_field(stg_choice *c, const stg_admin *a, stg_ask *ask,
                       const char *name, const json_t *value)
{
    if (strcmp(name, "ids") == 0)
        return take_ids(c, ask, value);
    if (strcmp(name, "dry_run") == 0 && json_is_boolean(value)) {
        c->is_dry_run = json_is_true(value);
        return true;
    }
    if (strcmp(name, "all") == 0 && json_is_true(value))
        return true;
    if (strcmp(name, "dry_run") == 0 || strcmp(name, "all") == 0) {
        stg_ask_refuse(ask, 400, "%s: expected true%s", name,
                       *name == 'd' ? " or false" : "");
        return false;
    }
    return take_text(c, a, ask, name, value);
}

/* An object that chooses something. `{}` is refused, and so is dry_run alone: a
 * change of everything needs `"all": true`, so that a field that a client
 * forgot does not replay or drop all. */
static bool parse(stg_choice *c, stg_ask *ask)
{
    stg_span body = stg_ask_body(ask);
    json_error_t why;

    c->json = json_loadb(body.at, body.size, JSON_REJECT_DUPLICATES, &why);
    if (c->json == NULL) {
        stg_ask_refuse(ask, 400, "line %d, column %d: %.120s", why.line,
                       why.column, why.text);
        return false;
    }
    if (json_is_object(c->json) &&
        json_object_size(c->json) >
            (json_object_get(c->json, "dry_run") != NULL ? 1u : 0u))
        return true;
    stg_ask_refuse(ask, 400,
                   "expected an object that says which dead letters; "
                   "{\"all\": true} for all of them");
    return false;
}

static bool take_fields(stg_choice *c, const stg_admin *a, stg_ask *ask)
{
    const char *name;
    json_t *value;

    json_object_foreach(c->json, name, value)
    {
        if (!take_field(c, a, ask, name, value))
            return false;
    }
    return true;
}

bool stg_choice_read_body(stg_choice *c, const stg_admin *a, stg_ask *ask)
{
    memset(c, 0, sizeof *c);
    if (parse(c, ask) && take_fields(c, a, ask))
        return true;
    stg_choice_free(c);
    return false;
}

/* -- in words ---------------------------------------------------------------- */

typedef struct words {
    char *text;
    size_t size, at;
} words;

__attribute__((format(printf, 2, 3))) static void add(words *w,
                                                      const char *format, ...)
{
    va_list arguments;
    int size;

    if (w->at >= w->size)
        return;
    va_start(arguments, format);
    size = vsnprintf(w->text + w->at, w->size - w->at, format, arguments);
    va_end(arguments);
    w->at += size > 0 ? (size_t)size : 0;
}

static void add_ids(words *w, const stg_letter_filter *f)
{
    enum { FEW = 10 };

    add(w, "ids=");
    for (size_t i = 0; i < f->id_count && i < FEW; i++)
        add(w, "%s%" PRIu64, i > 0 ? "," : "", f->ids[i]);
    if (f->id_count > FEW)
        add(w, " and %zu more", f->id_count - FEW);
}

/* For the audit log: in the order of the request, cut at size. */
void stg_choice_print(const stg_choice *c, char *text, size_t size)
{
    words w = {.text = text, .size = size};
    const char *name;
    json_t *value;

    text[0] = '\0';
    json_object_foreach(c->json, name, value)
    {
        const char *between = w.at > 0 ? " " : "";

        if (json_is_string(value)) {
            add(&w, "%s%s=%s", between, name, json_string_value(value));
        } else if (json_is_array(value)) {
            add(&w, "%s", between);
            add_ids(&w, &c->filter);
        }
    }
    if (w.at == 0)
        add(&w, "all");
}

void stg_choice_free(stg_choice *c)
{
    json_decref(c->json);
    c->json = NULL;
}
