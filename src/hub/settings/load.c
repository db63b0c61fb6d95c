#include "hub/settings/load.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/suggest.h"
#include "hub/settings/loading.h"
#include "hub/target.h"

enum { PATH_MAX_SIZE = 128, KEYS_MAX = 64 };

static const stg_file_place nowhere = {0, 0};

/* -- memory ---------------------------------------------------------------- */

void *stg_load_keep(stg_loading *l, size_t size)
{
    void *kept = stg_settings_keep(l->s, size);

    if (kept == NULL)
        stg_complain(l->c, nowhere, "there is no memory for the settings");
    return kept;
}

const char *stg_load_keep_text(stg_loading *l, const char *text)
{
    size_t size = strlen(text);
    char *kept = stg_load_keep(l, size + 1);

    if (kept != NULL)
        memcpy(kept, text, size);
    return kept;
}

const char *stg_load_keep_path(stg_loading *l, const char *path)
{
    const char *slash = strrchr(l->path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - l->path) + 1 : 0;
    char *kept;

    if (*path == '/' || folder == 0)
        return stg_load_keep_text(l, path);
    kept = stg_load_keep(l, folder + strlen(path) + 1);
    if (kept != NULL) {
        memcpy(kept, l->path, folder);
        memcpy(kept + folder, path, strlen(path));
    }
    return kept;
}

/* -- places ---------------------------------------------------------------- */

static stg_file_place *add_places(stg_loading *l)
{
    stg_file_place *places = calloc(stg_setting_count(), sizeof *places);

    if (places == NULL)
        stg_complain(l->c, nowhere, "there is no memory for the settings");
    return places;
}

static size_t number_of(stg_setting_in in, const char *path)
{
    return stg_setting_number(stg_setting_find(in, path, strlen(path)));
}

stg_file_place stg_load_target_place(const stg_loading *l, size_t target,
                                     const char *path)
{
    size_t number = number_of(STG_IN_TARGET, path);
    stg_file_place place = l->targets[target][number];

    if (place.line == 0)
        place = l->defaults[number];
    return place.line > 0 ? place : l->s->targets[target].place;
}

stg_file_place stg_settings_place(const stg_settings *s, const char *path)
{
    const stg_file_place *places = s->inside->places;

    return places != NULL ? places[number_of(STG_IN_HUB, path)] : nowhere;
}

stg_file_place stg_load_hub_place(const stg_loading *l, const char *path)
{
    return stg_settings_place(l->s, path);
}

/* -- keys ------------------------------------------------------------------ */

/* What begins with the prefix, and has no further dot: "quota" of
 * "store.quota". NULL: no. */
static const char *last_of(const stg_setting *s, const char *prefix)
{
    size_t size = strlen(prefix);

    if (strncmp(s->path, prefix, size) != 0 ||
        strchr(s->path + size, '.') != NULL)
        return NULL;
    return s->path + size;
}

static size_t list_keys(stg_setting_in in, const char *prefix, bool is_default,
                        const char *keys[KEYS_MAX + 1])
{
    const stg_setting *s;
    size_t count = 0;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->in == in && last_of(s, prefix) != NULL && count < KEYS_MAX &&
            !(is_default && s->is_own))
            keys[count++] = last_of(s, prefix);
    keys[count] = NULL;
    return count;
}

/* Settings of that name elsewhere: `quota` for `store.quota`. */
static const stg_setting *find_elsewhere(const char *key)
{
    const stg_setting *s;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++) {
        const char *dot = strrchr(s->path, '.');

        if (strcmp(dot != NULL ? dot + 1 : s->path, key) == 0 &&
            s->in != STG_IN_SINK)
            return s;
    }
    return NULL;
}

static void join(const char *const *keys, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (; *keys != NULL && used < size; keys++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 used > 0 ? ", " : "", *keys);
}

static void refuse_key(stg_loading *l, stg_setting_in in, const char *prefix,
                       const stg_yaml_node *key, bool is_default)
{
    const char *keys[KEYS_MAX + 1], *near;
    const stg_setting *other = find_elsewhere(key->text);
    char all[400];

    list_keys(in, prefix, is_default, keys);
    near = stg_suggest(key->text, keys);
    join(keys, all, sizeof all);
    if (near != NULL)
        stg_complain(l->c, key->place,
                     "`%s%.60s`: no such setting; did you mean `%s`?", prefix,
                     key->text, near);
    else if (other != NULL && other->in == in && strcmp(prefix, "") == 0)
        stg_complain(l->c, key->place,
                     "`%.60s`: no such setting here; did you mean `%s`?",
                     key->text, other->path);
    else if (strchr(key->text, '.') != NULL &&
             stg_setting_find(in, key->text, strlen(key->text)) != NULL)
        stg_complain(l->c, key->place,
                     "`%.60s`: no such setting; did you mean `%.*s:`, and "
                     "`%s:` in it?",
                     key->text, (int)strcspn(key->text, "."), key->text,
                     key->text + strcspn(key->text, ".") + 1);
    else if (other != NULL && other->in == STG_IN_HUB && in == STG_IN_TARGET)
        stg_complain(l->c, key->place,
                     "`%.60s`: no such setting of a target; did you mean `%s` "
                     "of the hub, beside `targets`?",
                     key->text, other->path);
    else if (other != NULL && other->in == STG_IN_TARGET)
        stg_complain(l->c, key->place,
                     "`%s%.60s`: no such setting here; did you mean `%s` of a "
                     "target, or of `defaults`?",
                     prefix, key->text, other->path);
    else
        stg_complain(l->c, key->place,
                     "`%s%.60s`: no such setting; wanted one of %s", prefix,
                     key->text, all);
}

/* -- values ---------------------------------------------------------------- */

static const char *kind_of(const stg_yaml_node *n)
{
    return n->kind == STG_NODE_MAP ? "a map"
           : n->kind == STG_NODE_LIST
               ? n->count > 0 ? "a list" : "an empty list"
               : "a text";
}

void stg_load_refuse_kind(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n)
{
    char wanted[STG_WANTED_MAX];

    stg_setting_wanted(s, wanted);
    if (stg_node_is_null(n))
        stg_complain(l->c, n->place, "`%s`: nothing; wanted %s%s", s->path,
                     wanted, s->is_needed ? "" : ", or no such key at all");
    else
        stg_complain(l->c, n->place, "`%s`: %s; wanted %s", s->path, kind_of(n),
                     wanted);
}

/* Numbers and truth are not texts: "64" is one in JSON, too. */
static bool is_quoted_number(const stg_setting *s, const stg_yaml_node *n)
{
    return !n->is_plain &&
           (s->kind == STG_KIND_COUNT || s->kind == STG_KIND_FLAG ||
            s->kind == STG_KIND_FLAG_NOT);
}

static void refuse_value(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n, const stg_value_flaw *flaw)
{
    bool has_hint = flaw->hint[0] != '\0';

    stg_complain(l->c, n->place, "`%s`: %s; wanted %s%s%s%s", s->path,
                 flaw->what, flaw->wanted, has_hint ? "; did you mean " : "",
                 flaw->hint, has_hint ? "?" : "");
}

static const char *keep_value(stg_loading *l, const stg_setting *s,
                              const char *text)
{
    if (s->kind == STG_KIND_FILE && *text != '\0')
        return stg_load_keep_path(l, text);
    return stg_load_keep_text(l, text);
}

static void fix_letters(stg_loading *l, const stg_setting *s, void *base)
{
    const char *path;

    if (s->kind != STG_KIND_LETTERS)
        return;
    memcpy(&path, (char *)base + s->at, sizeof path);
    path = stg_load_keep_path(l, path);
    memcpy((char *)base + s->at, &path, sizeof path);
}

static void load_scalar(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *n, void *base)
{
    stg_value_flaw flaw;
    const char *text;

    if (n->kind != STG_NODE_TEXT || stg_node_is_null(n)) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    text = keep_value(l, s, n->text);
    if (text == NULL)
        return;
    if (is_quoted_number(s, n)) {
        flaw = (stg_value_flaw){.what = "a text in quotes"};
        stg_setting_wanted(s, flaw.wanted);
        snprintf(flaw.hint, sizeof flaw.hint, "%.60s", n->text);
        refuse_value(l, s, n, &flaw);
    } else if (!stg_value_read(s, text, base, &flaw)) {
        refuse_value(l, s, n, &flaw);
    } else {
        fix_letters(l, s, base);
        if (s->kind == STG_KIND_POLICY)
            stg_load_check_policy(l, n);
        if (s->is_secret)
            stg_load_check_secret(l, n->place, s->path, text);
    }
}

static void load_section(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n, void *base,
                         stg_file_place *places)
{
    char prefix[PATH_MAX_SIZE];

    if (n->kind != STG_NODE_MAP) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    snprintf(prefix, sizeof prefix, "%s.", s->path);
    stg_load_map(l, s->in, prefix, n, base, places);
}

/* -- targets and sinks ----------------------------------------------------- */

static void load_target(stg_loading *l, const stg_yaml_node *n)
{
    size_t number = l->s->target_count;
    stg_target_settings *t = stg_settings_add_target(l->s);
    stg_file_place *places = t != NULL ? add_places(l) : NULL;
    size_t name = number_of(STG_IN_TARGET, "name");

    if (places == NULL) {
        l->s->target_count = number;
        return;
    }
    l->targets[number] = places;
    t->place = n->place;
    stg_load_map(l, STG_IN_TARGET, "", n, t, places);
    if (places[name].line > 0)
        t->place = places[name];
}

static void refuse_parts(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n)
{
    if (n->kind == STG_NODE_LIST && n->count == 0)
        stg_complain(l->c, n->place, "`%s`: an empty list; wanted one at least",
                     s->path);
    else
        stg_load_refuse_kind(l, s, n);
}

static void load_targets(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n)
{
    if (n->kind != STG_NODE_LIST || n->count == 0) {
        refuse_parts(l, s, n);
        return;
    }
    l->targets = calloc(n->count, sizeof(stg_file_place *));
    if (l->targets == NULL) {
        stg_complain(l->c, nowhere, "there is no memory for the settings");
        return;
    }
    for (size_t i = 0; i < n->count; i++)
        if (n->at[i]->kind == STG_NODE_MAP)
            load_target(l, n->at[i]);
        else
            stg_load_refuse_kind(l, s, n->at[i]);
}

static void load_sink(stg_loading *l, stg_alert_sink_options *sink,
                      const stg_yaml_node *n)
{
    stg_file_place *places = add_places(l);

    if (places == NULL)
        return;
    *sink = stg_alert_sink_options_default(STG_ALERT_WEBHOOK);
    places[0] = n->place; // of no setting of a sink
    stg_load_map(l, STG_IN_SINK, "", n, sink, places);
    l->sinks[l->sink_count++] = places;
}

static void load_sinks(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n)
{
    stg_alert_sink_options *sinks;

    if (n->kind != STG_NODE_LIST) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    if (n->count > STG_ALERT_SINKS_MAX) {
        stg_complain(l->c, n->place, "`%s`: %zu of them; wanted %d at most",
                     s->path, n->count, STG_ALERT_SINKS_MAX);
        return;
    }
    sinks = stg_load_keep(l, (n->count + 1) * sizeof *sinks);
    l->sinks = calloc(n->count + 1, sizeof(stg_file_place *));
    if (sinks == NULL || l->sinks == NULL)
        return;
    for (size_t i = 0; i < n->count; i++)
        if (n->at[i]->kind == STG_NODE_MAP)
            load_sink(l, &sinks[l->sink_count], n->at[i]);
        else
            stg_load_refuse_kind(l, s, n->at[i]);
    l->s->alerts.sinks = sinks;
    l->s->alerts.sink_count = l->sink_count;
}

/* -- maps ------------------------------------------------------------------ */

static void load_defaults(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n)
{
    if (n->kind == STG_NODE_MAP)
        stg_load_map(l, STG_IN_TARGET, "", n, &l->s->defaults, l->defaults);
    else
        stg_load_refuse_kind(l, s, n);
}

static void load_value(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, void *base,
                       stg_file_place *places)
{
    places[stg_setting_number(s)] = n->place;
    switch (s->kind) {
    case STG_KIND_SECTION:
        load_section(l, s, n, base, places);
        break;
    case STG_KIND_POLICIES:
        stg_load_policies(l, n);
        break;
    case STG_KIND_DEFAULTS:
        load_defaults(l, s, n);
        break;
    case STG_KIND_TARGETS:
        load_targets(l, s, n);
        break;
    case STG_KIND_SINKS:
        load_sinks(l, s, n);
        break;
    default:
        if (stg_setting_is_scalar(s))
            load_scalar(l, s, n, base);
        else
            stg_load_list(l, s, n, base);
    }
}

/* What others lean on is read first, wherever it stands. */
static int turn_of(const stg_setting *s)
{
    return s->kind == STG_KIND_TARGETS    ? 2
           : s->kind == STG_KIND_DEFAULTS ? 1
                                          : 0;
}

static void load_key(stg_loading *l, const stg_setting *s,
                     const stg_yaml_node *key, const stg_yaml_node *value,
                     void *base, stg_file_place *places)
{
    if (s->is_own && places == l->defaults)
        stg_complain(l->c, key->place,
                     "`defaults.%s`: each target has its own; wanted it in "
                     "`targets`",
                     s->path);
    else
        load_value(l, s, value, base, places);
}

void stg_load_map(stg_loading *l, stg_setting_in in, const char *prefix,
                  const stg_yaml_node *map, void *base, stg_file_place *places)
{
    int turns = in == STG_IN_HUB && *prefix == '\0' ? 3 : 1;

    for (int turn = 0; turn < turns; turn++)
        for (size_t i = 0; i < map->count; i += 2) {
            const stg_yaml_node *key = map->at[i];
            char path[PATH_MAX_SIZE];
            const stg_setting *s;
            int size = snprintf(path, sizeof path, "%s%s", prefix, key->text);

            // A dot in a key is no way into a section.
            s = size < PATH_MAX_SIZE && strchr(key->text, '.') == NULL
                    ? stg_setting_find(in, path, (size_t)size)
                    : NULL;
            if (s == NULL && turn == 0)
                refuse_key(l, in, prefix, key, places == l->defaults);
            else if (s != NULL && (turns == 1 || turn_of(s) == turn))
                load_key(l, s, key, map->at[i + 1], base, places);
        }
}

/* -- names ----------------------------------------------------------------- */

static void name_targets(stg_loading *l)
{
    stg_text_table names = {.at = NULL};
    stg_settings *s = l->s;

    for (size_t i = 0; i < s->target_count; i++) {
        stg_target_settings *t = &s->targets[i];
        char name[STG_TARGET_NAME_MAX];
        size_t first = i;

        if (t->name == NULL && t->url != NULL &&
            stg_target_name(t->url, name, NULL) == STG_OK)
            t->name = stg_load_keep_text(l, name);
        if (t->name == NULL)
            continue;
        if (!stg_text_table_add(&names, t->name, i, &first))
            stg_complain(l->c, nowhere, "there is no memory for the settings");
        else if (first != i)
            stg_complain(l->c, t->place,
                         "two targets have the name `%s`; wanted a `name` of "
                         "its own (see line %" PRIu32 ")",
                         t->name, s->targets[first].place.line);
    }
    stg_text_table_free(&names);
}

static void want_needed(stg_loading *l)
{
    for (size_t i = 0; i < l->s->target_count; i++)
        if (l->targets[i][number_of(STG_IN_TARGET, "url")].line == 0)
            stg_complain(l->c, l->s->targets[i].place,
                         "a target without `url`; wanted `url: "
                         "https://HOST/PATH`");
    if (stg_load_hub_place(l, "targets").line == 0)
        stg_complain(l->c, nowhere,
                     "there are no `targets`; wanted `targets:`, and a list of "
                     "`- {name: NAME, url: URL}`");
}

/* -- the file -------------------------------------------------------------- */

static void read_hub(stg_loading *l, const stg_yaml_node *top)
{
    stg_settings *s = l->s;

    if (top->kind != STG_NODE_MAP) {
        stg_complain(l->c, top->place,
                     "%s; wanted a map of settings, with `targets:`",
                     kind_of(top));
        return;
    }
    l->target_total = 0;
    for (size_t i = 0; i < top->count; i += 2)
        if (strcmp(top->at[i]->text, "targets") == 0)
            l->target_total = top->at[i + 1]->count;
    stg_load_map(l, STG_IN_HUB, "", top, s, s->inside->places);
    if (s->listen.address == NULL && s->source == STG_SOURCE_QUEUE)
        s->listen.address = "127.0.0.1:8080";
    name_targets(l);
    want_needed(l);
    stg_judge(l);
}

static void end(stg_loading *l)
{
    for (size_t i = 0; l->targets != NULL && i < l->s->target_count; i++)
        free(l->targets[i]);
    for (size_t i = 0; i < l->sink_count; i++)
        free(l->sinks[i]);
    free(l->targets);
    free(l->sinks);
    free(l->defaults);
    stg_text_table_free(&l->policies);
    stg_text_table_free(&l->files);
}

static bool begin(stg_loading *l, const char *path)
{
    struct stat status;

    l->s = stg_settings_new();
    if (l->s == NULL) {
        stg_complain(l->c, nowhere, "there is no memory for the settings");
        return false;
    }
    l->path = l->s->file = stg_load_keep_text(l, path);
    l->defaults = add_places(l);
    l->s->inside->places = add_places(l);
    l->is_exposed =
        stat(path, &status) == 0 && (status.st_mode & (S_IRGRP | S_IROTH)) != 0;
    return l->path != NULL && l->defaults != NULL &&
           l->s->inside->places != NULL;
}

static stg_status load(const stg_yaml_node *top, const char *path,
                       stg_settings **s, stg_complaints *c)
{
    stg_loading l = {.c = c};
    stg_error err;

    if (begin(&l, path))
        read_hub(&l, top);
    if (l.s != NULL)
        end(&l);
    if (c->mistakes == 0 && stg_settings_complete(l.s, &err) != STG_OK)
        stg_complain(c, nowhere, "%s", err.text);
    stg_complaints_sort(c);
    if (c->mistakes == 0) {
        *s = l.s;
        return STG_OK;
    }
    stg_settings_free(l.s);
    return STG_INVALID;
}

stg_status stg_settings_load_text(const char *text, size_t size,
                                  const char *path, stg_settings **s,
                                  stg_complaints *c)
{
    stg_yaml *yaml;
    const stg_yaml_node *top = stg_yaml_parse(&yaml, text, size, c);
    stg_status status = STG_INVALID;

    if (top != NULL)
        status = load(top, path, s, c);
    else
        stg_complaints_sort(c);
    stg_yaml_free(yaml);
    return status;
}

stg_status stg_settings_load(const char *path, stg_settings **s,
                             stg_complaints *c)
{
    stg_yaml *yaml;
    const stg_yaml_node *top = stg_yaml_load(&yaml, path, c);
    stg_status status = yaml == NULL ? STG_IO : STG_INVALID;

    if (top != NULL)
        status = load(top, path, s, c);
    else
        stg_complaints_sort(c);
    stg_yaml_free(yaml);
    return status;
}
