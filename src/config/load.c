/* A settings file: read as YAML, loaded key by key, named and validated.
 *
 * A mistake does not end it: all mistakes of a file are told at once, sorted by
 * place, and there are settings only where there was none. Places are kept for
 * each setting of the hub, of the defaults and of each target, and go with the
 * settings, since a reload tells where a change cannot be made. */
#include "config/load.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/loading.h"
#include "config/targets.h"
#include "host/process.h"
#include "http/url.h"

static const stg_file_place nowhere = {0, 0};

/* -- memory ---------------------------------------------------------------- */

void *stg_load_keep(stg_loading *l, size_t size)
{
    void *kept = stg_settings_keep(l->s, size);

    if (kept == NULL)
        stg_complain(l->c, nowhere, "out of memory");
    return kept;
}

const char *stg_load_keep_text(stg_loading *l, const char *text)
{
    const char *kept = stg_settings_keep_text(l->s, text, strlen(text));

    if (kept == NULL)
        stg_complain(l->c, nowhere, "out of memory");
    return kept;
}

/* A path in a file is relative to the file, not to where the hub was
 * started. */
const char *stg_load_keep_path(stg_loading *l, const char *path)
{
    const char *slash = strrchr(l->path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - l->path) + 1 : 0;
    size_t size = folder + strlen(path) + 1;
    char *kept;

    if (*path == '/' || folder == 0)
        return stg_load_keep_text(l, path);
    kept = stg_load_keep(l, size);
    if (kept != NULL)
        snprintf(kept, size, "%.*s%s", (int)folder, l->path, path);
    return kept;
}

void stg_load_note_file(stg_loading *l, const stg_setting *s,
                        stg_file_place place, const char *path)
{
    stg_settings_file_note *note = stg_load_keep(l, sizeof *note);

    if (note == NULL)
        return;
    *note = (stg_settings_file_note){.next = l->s->inside->files,
                                     .setting = s,
                                     .path = path,
                                     .place = place};
    l->s->inside->files = note;
}

/* -- places ---------------------------------------------------------------- */

stg_file_place *stg_load_add_places(stg_loading *l)
{
    stg_file_place *places = calloc(stg_setting_count(), sizeof *places);

    if (places == NULL)
        stg_complain(l->c, nowhere, "out of memory");
    return places;
}

size_t stg_load_number(stg_setting_in in, const char *path)
{
    return stg_setting_number(stg_setting_find(in, path, strlen(path)));
}

bool stg_load_is_own(const stg_loading *l, size_t target, const char *path)
{
    return l->targets[target][stg_load_number(STG_IN_TARGET, path)].line > 0;
}

bool stg_load_is_written(const stg_loading *l, size_t target, const char *path)
{
    return stg_load_is_own(l, target, path) ||
           l->defaults[stg_load_number(STG_IN_TARGET, path)].line > 0;
}

/* Where a target's setting was written: in the target, else in the defaults,
 * else the target itself. */
stg_file_place stg_load_target_place(const stg_loading *l, size_t target,
                                     const char *path)
{
    size_t number = stg_load_number(STG_IN_TARGET, path);
    stg_file_place place = l->targets[target][number];

    if (place.line == 0)
        place = l->defaults[number];
    return place.line > 0 ? place : l->s->targets[target].place;
}

stg_file_place stg_settings_place(const stg_settings *s, const char *path)
{
    const stg_file_place *places = s->inside->places;

    return places != NULL ? places[stg_load_number(STG_IN_HUB, path)] : nowhere;
}

stg_file_place stg_load_hub_place(const stg_loading *l, const char *path)
{
    return stg_settings_place(l->s, path);
}

/* -- names ----------------------------------------------------------------- */

/* A name that is made of a path ends in its hash. */
static void advise_name(stg_loading *l, const stg_target_settings *t)
{
    stg_url url;

    if (t->name != NULL && stg_url_parse(&url, t->url, NULL) == STG_OK &&
        url.path.size > 1)
        stg_warn(l->c, t->place,
                 "no `name`: the target is called `%s`, made of its URL, so "
                 "that with another path or query it would be a new target "
                 "and its messages another's; expected a `name`",
                 t->name);
}

/* The same names as stg_settings_complete() gives, but here with places. A name
 * that is made of a URL is advised against where the URL has a path: a change
 * of the path would make another target. */
static void name_targets(stg_loading *l)
{
    stg_text_table names = {.at = NULL};
    stg_settings *s = l->s;

    for (size_t i = 0; i < s->target_count; i++) {
        stg_target_settings *t = &s->targets[i];
        char name[STG_TARGET_NAME_MAX];
        size_t first = i;

        if (t->name == NULL && t->url != NULL &&
            stg_target_name(t->url, name, NULL) == STG_OK) {
            t->name = stg_load_keep_text(l, name);
            advise_name(l, t);
        }
        if (t->name == NULL)
            continue;
        if (!stg_text_table_add(&names, t->name, i, &first))
            stg_complain(l->c, nowhere, "out of memory");
        else if (first != i)
            stg_complain(l->c, t->place,
                         "two targets have the name `%s`; expected a `name` of "
                         "its own (see line %" PRIu32 ")",
                         t->name, s->targets[first].place.line);
    }
    stg_text_table_free(&names);
}

/* By places and not by values, for a value that was refused is complained of
 * already. */
static void want_needed(stg_loading *l)
{
    for (size_t i = 0; i < l->s->target_count; i++)
        if (l->targets[i][stg_load_number(STG_IN_TARGET, "url")].line == 0)
            stg_complain(l->c, l->s->targets[i].place,
                         "a target without `url`; expected `url: "
                         "https://HOST/PATH`");
    if (stg_load_hub_place(l, "targets").line == 0)
        stg_complain(
            l->c, nowhere,
            "there are no `targets`; expected `targets:`, and a list of "
            "`- {name: NAME, url: URL}`, or `targets: []` where calls add "
            "them");
}

/* -- the file -------------------------------------------------------------- */

bool stg_load_is_option(const stg_loading *l, const char *path)
{
    const stg_settings_override_note *n =
        l->options != NULL ? l->options->inside->overrides : NULL;

    while (n != NULL && strcmp(n->setting->path, path) != 0)
        n = n->next;
    return n != NULL;
}

/* Options of the command come before settings are checked beside each other, which
 * is to see what is in force. */
static void load_options(stg_loading *l)
{
    if (l->options == NULL)
        return;
    stg_settings_take_overrides(l->options, l->s, l->c);
    l->s->listen.bound = l->options->listen.bound;
}

/* The number of targets comes first: the default policy depends on it, and
 * targets are loaded last. */
static void read_hub(stg_loading *l, const stg_yaml_node *top)
{
    stg_settings *s = l->s;

    if (top->kind != STG_NODE_MAP) {
        stg_complain(l->c, top->place,
                     "%s; expected a map of settings, with `targets:`",
                     stg_load_kind(top));
        return;
    }
    l->target_total = 0;
    for (size_t i = 0; i < top->count; i += 2)
        if (strcmp(top->at[i]->text, "targets") == 0)
            l->target_total = top->at[i + 1]->count;
    stg_load_map(l, STG_IN_HUB, "", top, s, s->inside->places);
    load_options(l);
    name_targets(l);
    want_needed(l);
    stg_validate(l);
}

/* What only loading needs. The places of the hub's settings stay, since a
 * reload and the command ask for them. */
static void end(stg_loading *l)
{
    for (size_t i = 0; l->targets != NULL && i < l->s->target_count; i++)
        free(l->targets[i]);
    for (size_t i = 0; i < l->receiver_count; i++)
        free(l->receivers[i]);
    for (size_t i = 0; i < l->inbound_count; i++)
        free(l->inbounds[i]);
    free(l->targets);
    free(l->receivers);
    free(l->inbounds);
    free(l->defaults);
    stg_text_table_free(&l->policies);
    stg_text_table_free(&l->files);
}

/* is_exposed: others may read the settings file, so that a secret in it is
 * warned of. */
static bool begin(stg_loading *l, const char *path)
{
    struct stat status;

    l->s = stg_settings_new();
    if (l->s == NULL) {
        stg_complain(l->c, nowhere, "out of memory");
        return false;
    }
    l->path = l->s->file = stg_load_keep_text(l, path);
    l->defaults = stg_load_add_places(l);
    l->s->inside->places = stg_load_add_places(l);
    l->is_exposed = stat(path, &status) == 0 && !stg_file_is_private(&status);
    return l->path != NULL && l->defaults != NULL &&
           l->s->inside->places != NULL;
}

/* Completes the settings only if there is no mistake so far. */
static stg_status load(const stg_yaml_node *top, const char *path,
                       const stg_settings *options, stg_settings **s,
                       stg_diagnostics *c)
{
    stg_loading l = {.c = c, .options = options};
    stg_error err;

    if (begin(&l, path))
        read_hub(&l, top);
    if (l.s != NULL)
        end(&l);
    if (c->mistakes == 0 && stg_settings_complete(l.s, &err) != STG_OK)
        stg_complain(c, nowhere, "%s", err.text);
    stg_diagnostics_sort(c);
    if (c->mistakes == 0) {
        *s = l.s;
        return STG_OK;
    }
    stg_settings_free(l.s);
    return STG_INVALID;
}

/* What was read of a tree, which may be NULL; status: what is returned then.
 * STG_IO means that the file could not be read, and STG_INVALID that it is
 * wrong. */
static stg_status load_tree(stg_yaml *yaml, const stg_yaml_node *top,
                            const char *path, const stg_settings *options,
                            stg_settings **s, stg_diagnostics *c,
                            stg_status status)
{
    if (top != NULL && !stg_yaml_expand(yaml, top)) {
        status = STG_INVALID;
        top = NULL;
    }
    if (top != NULL)
        status = load(top, path, options, s, c);
    else
        stg_diagnostics_sort(c);
    stg_yaml_free(yaml);
    return status;
}

stg_status stg_settings_load_text(const char *text, size_t size,
                                  const char *path, stg_settings **s,
                                  stg_diagnostics *c)
{
    stg_yaml *yaml;
    const stg_yaml_node *top = stg_yaml_parse(&yaml, text, size, c);

    return load_tree(yaml, top, path, NULL, s, c, STG_INVALID);
}

stg_status stg_settings_load_over(const char *path, const stg_settings *options,
                                  stg_settings **s, stg_diagnostics *c)
{
    stg_yaml *yaml;
    const stg_yaml_node *top = stg_yaml_load(&yaml, path, c);

    return load_tree(yaml, top, path, options, s, c,
                     yaml == NULL ? STG_IO : STG_INVALID);
}

stg_status stg_settings_load(const char *path, stg_settings **s,
                             stg_diagnostics *c)
{
    return stg_settings_load_over(path, NULL, s, c);
}
