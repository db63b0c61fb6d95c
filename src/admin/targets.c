/* Targets that calls add, change and remove: from the request and its conditions
 * to the answer. A target's settings are an object with the keys of the settings
 * file, kept as it was written. A change may be tied to the version that was
 * read, by its ETag. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/internal.h"
#include "hub/control.h"

/* -- looking --------------------------------------------------------------- */

enum { TAG_MAX = 24 };

/* The ETag of a target that a call has added; "": it is none. */
static const char *print_tag(const stg_target *t, char tag[TAG_MAX])
{
    tag[0] = '\0';
    if (stg_target_is_added(t))
        snprintf(tag, TAG_MAX, "\"%" PRIx64 "\"", t->added.version);
    return tag;
}

static void set_tag(stg_ask *ask, const stg_target *t)
{
    char tag[TAG_MAX];

    if (stg_target_is_added(t))
        stg_ask_set_tag(ask, print_tag(t, tag));
}

/* NULL: no memory. */
static json_t *read_stored(const stg_target *t)
{
    return json_loads(t->added.text, 0, NULL);
}

json_t *stg_admin_print_whole_target(const stg_admin *a, size_t i, stg_ask *ask)
{
    const stg_target *t = a->hub->targets.all[i];
    json_t *json = stg_admin_print_target(a, i), *settings;

    set_tag(ask, t);
    if (json == NULL || !stg_target_is_added(t))
        return json;
    settings = read_stored(t);
    stg_secrets_mask(settings);
    json_object_set_new(json, "settings", settings);
    return json;
}

/* -- a call ---------------------------------------------------------------- */

typedef enum call_way { ADD, PUT, PATCH, REMOVE } call_way;

typedef struct write_call {
    stg_admin *admin;
    stg_ask *ask;
    call_way way;
    bool is_dry;
    stg_change_call *change;  /* NULL: of a dry run, or not begun */
    const stg_target *target; /* that there is; NULL: none; in the call */
    json_t *old, *next;       /* settings */
    char *text;               /* of next */
    char name[STG_TARGET_NAME_MAX];
    stg_diagnostics diagnostics;
    stg_lane_view lane; /* of a removal */
    bool is_new;
} write_call;

static void free_call(write_call *w)
{
    json_decref(w->old);
    json_decref(w->next);
    free(w->text);
    stg_diagnostics_free(&w->diagnostics);
    free(w);
}

__attribute__((format(printf, 3, 4))) static void
refuse(write_call *w, int status, const char *format, ...)
{
    char why[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (w->change != NULL)
        stg_change_refuse(w->change, status, "%s", why);
    else
        stg_ask_refuse(w->ask, status, "%s", why);
    free_call(w);
}

/* {"pointer": "/rate", "detail": "..."} each. */
static json_t *list_diagnostics(const stg_diagnostics *c, bool is_warning)
{
    json_t *list = json_array();

    for (size_t i = 0; i < c->count; i++)
        if (c->all[i].is_warning == is_warning)
            json_array_append_new(
                list, json_pack("{s:o,s:o}", "pointer",
                                stg_json_text(c->all[i].pointer != NULL
                                                  ? c->all[i].pointer
                                                  : ""),
                                "detail", stg_json_text(c->all[i].text)));
    return list;
}

/* errors: given. */
static void refuse_settings(write_call *w, json_t *errors)
{
    json_t *warnings = list_diagnostics(&w->diagnostics, true);
    const char *first =
        json_string_value(json_object_get(json_array_get(errors, 0), "detail"));
    size_t count = json_array_size(errors);
    char why[200];

    if (count == 1 && first != NULL)
        snprintf(why, sizeof why, "%s", first);
    else
        snprintf(why, sizeof why,
                 "the settings have %zu mistakes, and nothing has changed",
                 count);
    if (w->change != NULL)
        stg_change_refuse_all(w->change, 422, errors, warnings, "%s", why);
    else
        stg_ask_answer_problem(w->ask, 422,
                               stg_admin_problem(422, why, errors, warnings));
    free_call(w);
}

/* NULL: answered. */
static write_call *begin(stg_admin *a, stg_ask *ask, call_way way)
{
    static const char *const actions[] = {
        [ADD] = "target-add",
        [PUT] = "target-set",
        [PATCH] = "target-set",
        [REMOVE] = "target-remove",
    };
    write_call *w;
    bool is_dry;

    if (!stg_admin_read_dry_run(ask, &is_dry))
        return NULL;
    w = calloc(1, sizeof *w);
    if (w == NULL) {
        stg_ask_refuse(ask, 503, "no memory");
        return NULL;
    }
    *w = (write_call){.admin = a, .ask = ask, .way = way, .is_dry = is_dry};
    snprintf(w->name, sizeof w->name, "%s", stg_ask_word(ask, 0));
    if (w->is_dry)
        return w;
    w->change = stg_change_begin(
        a, ask, actions[way],
        way == ADD ? NULL
                   : json_pack("{s:o}", "target", stg_json_text(w->name)));
    if (w->change != NULL)
        return w;
    free_call(w); // it is answered
    return NULL;
}

/* -- conditions ------------------------------------------------------------ */

/* False: answered. */
static bool check_version(write_call *w)
{
    const char *expected = stg_ask_if_match(w->ask);
    bool is_there = stg_target_is_added(w->target);
    char tag[TAG_MAX];

    print_tag(w->target, tag);
    if (*expected != '\0' && strcmp(expected, tag) != 0 &&
        !(is_there && strcmp(expected, "*") == 0)) {
        refuse(w, 412,
               is_there ? "If-Match: it has changed since; read it again, its "
                          "ETag is %s"
                        : "If-Match: there is no such target%s",
               tag);
        return false;
    }
    if (is_there && stg_ask_is_for_new(w->ask)) {
        refuse(w, 412, "If-None-Match: there is such a target");
        return false;
    }
    return true;
}

static void refuse_double(write_call *w)
{
    refuse(w, 409,
           "there is such a target: PUT replaces its settings, and PATCH "
           "changes some");
}

/* Whether this way may go to the target that there is, if any. A new one has no
 * version yet. */
static bool check_target(write_call *w)
{
    const stg_hub *h = w->admin->hub;
    const stg_target *t = w->target = stg_targets_named(&h->targets, w->name);
    bool is_added = stg_target_is_added(t);
    stg_error err;

    set_tag(w->ask, t);
    if (stg_target_change_may(h, t, &err) != STG_OK)
        refuse(w, 409, "%s", err.text);
    else if (w->way == ADD && is_added)
        refuse_double(w);
    else if ((w->way == PATCH || w->way == REMOVE) && t == NULL)
        refuse(w, stg_admin_status_for(stg_hub_refuse_name(h, w->name, &err)),
               "%s", err.text);
    else if ((w->way == PATCH || w->way == REMOVE) && !is_added)
        refuse(w, 404,
               "there is no target of this name but in the store; forget it, "
               "or add it again");
    else
        return w->way == ADD || check_version(w);
    return false;
}

/* -- settings -------------------------------------------------------------- */

/* Source: RFC 7396, a JSON merge patch. */
static void merge(json_t *to, json_t *patch)
{
    const char *key;
    json_t *value;

    json_object_foreach(patch, key, value)
    {
        json_t *there = json_object_get(to, key);

        if (json_is_null(value)) {
            json_object_del(to, key);
        } else if (json_is_object(value)) {
            if (!json_is_object(there)) {
                json_object_set_new(to, key, json_object());
                there = json_object_get(to, key);
            }
            merge(there, value);
        } else {
            json_object_set(to, key, value);
        }
    }
}

/* Reads the body to w->next. False: answered. */
static bool read_body(write_call *w)
{
    stg_span body = stg_ask_body(w->ask);
    json_error_t wrong;
    const json_t *name;

    w->next = json_loadb(body.size == 0 ? "" : body.at, body.size,
                         JSON_REJECT_DUPLICATES, &wrong);
    if (w->next == NULL || !json_is_object(w->next)) {
        refuse(w, 400,
               "the body is no JSON object with a target's settings%s%.100s",
               w->next == NULL ? ": " : "", w->next == NULL ? wrong.text : "");
        return false;
    }
    name = json_object_get(w->next, "name");
    if (w->way == ADD)
        snprintf(w->name, sizeof w->name, "%s",
                 json_is_string(name) ? json_string_value(name) : "");
    if (w->way == ADD || name == NULL ||
        (json_is_string(name) && strcmp(json_string_value(name), w->name) == 0))
        return true;
    refuse(w, 422,
           "`name`: it is another one than in the path; a target keeps its "
           "name");
    return false;
}

/* w->next becomes the whole of the settings, and w->text is that. */
static bool make_text(write_call *w)
{
    if (stg_target_is_added(w->target))
        w->old = read_stored(w->target);
    if (w->way == PATCH) {
        json_t *patch = w->next;

        w->next = json_deep_copy(w->old);
        merge(w->next, patch);
        json_decref(patch);
    }
    if (w->old != NULL)
        stg_secrets_unmask(w->next, w->old);
    if (*w->name != '\0')
        json_object_set_new(w->next, "name", json_string(w->name));
    w->text = json_dumps(w->next, JSON_COMPACT | JSON_REAL_PRECISION(15));
    if (w->text == NULL)
        refuse(w, 503, "no memory");
    return w->text != NULL;
}

/* The store must not get a secret that it cannot encrypt. */
static void want_key(const write_call *w, json_t *errors)
{
    static const char words[] =
        "a secret, and the hub has no key to encrypt it in its store; expected "
        "`secrets.key` in its settings, or --secrets-key FILE (openssl rand "
        "-hex 32 makes a key)";
    char pointer[80];

    if (!stg_hub_has_secrets_key(w->admin->hub) &&
        stg_secrets_find(w->next, pointer, sizeof pointer))
        json_array_append_new(errors, json_pack("{s:o,s:s}", "pointer",
                                                stg_json_text(pointer),
                                                "detail", words));
}

/* A name that is made of the URL is written down, so that it stays. */
static bool check_settings(write_call *w)
{
    json_t *errors = json_array();
    char name[STG_TARGET_NAME_MAX];
    bool is_good =
        stg_hub_check_target(w->admin->hub, w->text, name, &w->diagnostics);

    stg_secrets_check(w->next, errors);
    if (is_good && json_array_size(errors) == 0)
        want_key(w, errors);
    if (!is_good || json_array_size(errors) > 0) {
        json_t *all = list_diagnostics(&w->diagnostics, false);

        json_array_extend(all, errors);
        json_decref(errors);
        refuse_settings(w, all);
        return false;
    }
    json_decref(errors);
    if (*w->name != '\0')
        return true;
    memcpy(w->name, name, sizeof w->name);
    free(w->text);
    w->text = NULL;
    return check_target(w) && make_text(w);
}

/* The keys whose values differ, as pointers. */
static json_t *list_changes(const write_call *w)
{
    json_t *list = json_array(), *value;
    const char *key;
    char pointer[80];

    json_object_foreach(
        w->next, key,
        value) if (!json_equal(value, json_object_get(w->old, key)))
    {
        snprintf(pointer, sizeof pointer, "/%.70s", key);
        json_array_append_new(list, stg_json_text(pointer));
    }
    json_object_foreach(w->old, key,
                        value) if (json_object_get(w->next, key) == NULL)
    {
        snprintf(pointer, sizeof pointer, "/%.70s", key);
        json_array_append_new(list, stg_json_text(pointer));
    }
    return list;
}

/* -- answers --------------------------------------------------------------- */

static void answer_target(write_call *w, int status)
{
    json_t *json = NULL;
    size_t i;

    if (stg_hub_find_target(w->admin->hub, w->name, &i) == STG_OK)
        json = stg_admin_print_whole_target(w->admin, i, w->ask);
    if (json != NULL)
        json_object_set_new(json, "warnings",
                            list_diagnostics(&w->diagnostics, true));
    stg_change_done(w->change, status, json, false);
    free_call(w);
}

static void answer_removed(write_call *w)
{
    if (w->is_dry)
        stg_admin_look_removal(w->admin, w->ask, w->name, &w->lane);
    else
        stg_change_done(w->change, 200,
                        stg_admin_print_removal(w->name, false, &w->lane),
                        true);
    free_call(w);
}

/* Which answer it is depends on whether the change is durable; of UNCERTAIN nobody
 * knows, and the caller is told so. */
static void changed(void *ctx, stg_target_changed how, const char *why)
{
    write_call *w = ctx;

    if (how == STG_TARGET_OTHER && w->way == ADD)
        refuse_double(w);
    else if (how == STG_TARGET_OTHER)
        refuse(w, 412,
               "it has changed in this moment, perhaps by another hub; read it "
               "again");
    else if (how == STG_TARGET_NO_ROOM)
        refuse(w, 503, "the store is full; nothing has changed");
    else if (how == STG_TARGET_REFUSED)
        refuse(w, 409, "%s", why);
    else if (how == STG_TARGET_UNCERTAIN)
        refuse(w, 503,
               "the hub is stopping, or its store is full: the change may have "
               "been made or not; ask again when it is back");
    else if (w->way == REMOVE)
        answer_removed(w);
    else
        answer_target(w, w->is_new ? 201 : 200);
}

static uint64_t version_of(const write_call *w)
{
    return stg_target_is_added(w->target) ? w->target->added.version : 0;
}

static void answer_dry(write_call *w)
{
    json_t *changes = list_changes(w);
    const char *what = w->old == NULL                  ? "add"
                       : json_array_size(changes) == 0 ? "none"
                                                       : "change";

    stg_ask_answer_json(w->ask, 200,
                        json_pack("{s:b,s:s,s:s,s:o,s:o}", "is_dry_run", 1,
                                  "name", w->name, "change", what, "changed",
                                  changes, "warnings",
                                  list_diagnostics(&w->diagnostics, true)));
    free_call(w);
}

/* Each step answers where it finds something wrong. A change that changes nothing is
 * done without a new version, so that repeating it is harmless. */
static void write_target(void *admin, stg_ask *ask, call_way way)
{
    write_call *w = begin(admin, ask, way);
    stg_status status;
    stg_error err;

    if (w == NULL || !read_body(w) || !check_target(w) || !make_text(w) ||
        !check_settings(w))
        return;
    if (w->is_dry) {
        answer_dry(w);
        return;
    }
    w->is_new = w->old == NULL;
    stg_change_set_target(w->change, w->name);
    if (w->old != NULL && json_equal(w->old, w->next)) {
        answer_target(w, 200);
        return;
    }
    status = stg_hub_write_target(w->admin->hub, w->name, w->text,
                                  version_of(w), changed, w, &err);
    if (status != STG_OK)
        refuse(w, stg_admin_status_for(status), "%s", err.text);
}

void stg_admin_add_target(void *admin, stg_ask *ask)
{
    write_target(admin, ask, ADD);
}

void stg_admin_put_target(void *admin, stg_ask *ask)
{
    write_target(admin, ask, PUT);
}

void stg_admin_patch_target(void *admin, stg_ask *ask)
{
    write_target(admin, ask, PATCH);
}

/* -- removing -------------------------------------------------------------- */

/* ?waiting=cancel. False: it is something else, and answered. */
static bool read_waiting(write_call *w, bool *cancels)
{
    const char *text = stg_ask_option(w->ask, "waiting");

    *cancels = text != NULL;
    if (text == NULL || strcmp(text, "cancel") == 0)
        return true;
    refuse(w, 400, "?waiting: expected cancel");
    return false;
}

/* Messages that wait are cancelled only where the caller says so. */
void stg_admin_remove_target(void *admin, stg_ask *ask)
{
    const stg_admin *a = admin;
    write_call *w = begin(admin, ask, REMOVE);
    stg_status status;
    uint64_t waiting;
    stg_error err;
    bool cancels;

    if (w == NULL || !read_waiting(w, &cancels) || !check_target(w))
        return;
    (void)stg_hub_look_lane(a->hub, w->target->lane, &w->lane,
                            stg_deadlines_now());
    if (w->is_dry) {
        answer_removed(w);
        return;
    }
    waiting = stg_ns_add(w->lane.waiting, w->lane.lag);
    if (!cancels && waiting + w->lane.parked + w->lane.in_flight > 0) {
        refuse(w, 409,
               "%" PRIu64 " messages wait for it, %" PRIu64
               " deliveries are parked and %" PRIu64
               " are under way: to cancel them, ask with ?waiting=cancel",
               waiting, w->lane.parked, (uint64_t)w->lane.in_flight);
        return;
    }
    status = stg_hub_remove_target(w->admin->hub, w->name, version_of(w),
                                   changed, w, &err);
    if (status != STG_OK)
        refuse(w, stg_admin_status_for(status), "%s", err.text);
}
